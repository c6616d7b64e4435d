"""``get_logger``: the logger of programs written for TensorFlow."""

from __future__ import annotations

import logging


def get_logger() -> logging.Logger:
    """Python's logger ``tensorflow``; if the program has configured no logging, it writes to stderr.

    Returns:
        The logger, whose ``setLevel`` selects what ``compat.v1.logging`` writes.

    >>> import dualflow as df
    >>> df.get_logger().name
    'tensorflow'
    """
    logger = logging.getLogger("tensorflow")
    if not logger.handlers and not logging.getLogger().handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(levelname)s:%(name)s:%(message)s"))
        logger.addHandler(handler)
    return logger
