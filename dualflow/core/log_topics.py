"""The topics of ``DUALFLOW_LOG``: which of dualflow's loggers print to stderr. The variable is read once."""

from __future__ import annotations

import functools
import logging
from typing import Final

from dualflow.core.errors import InvalidArgumentError

TOPICS: Final = ("trace", "compile", "cache", "memory")


@functools.cache
def enable_topics(words: str) -> None:
    """Enable the loggers of the topics that a list names, and print their lines to stderr.

    A program that configures ``logging`` itself has handlers at the root: then these print, once.

    Raises:
        InvalidArgumentError: the list names something that is no topic.
    """
    named = topics(words)
    for topic in named:
        logging.getLogger(f"dualflow.{topic}").setLevel(logging.INFO)
    if named:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
        handler.addFilter(lambda record: not logging.getLogger().handlers)
        logging.getLogger("dualflow").addHandler(handler)


def topics(words: str) -> frozenset[str]:
    """The topics that a list names.

    >>> sorted(topics("trace, cache,"))
    ['cache', 'trace']
    """
    named = frozenset(word.strip() for word in words.split(",") if word.strip())
    unknown = sorted(named - set(TOPICS))
    if unknown:
        raise InvalidArgumentError(
            f"DUALFLOW_LOG={words!r}: there is no topic {unknown[0]!r} to log; the topics are "
            f"{', '.join(TOPICS)}."
        )
    return named
