"""``set_verbosity``: accepted as in TensorFlow; the conversion of Python code writes no messages."""

from __future__ import annotations


def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """Accepts TensorFlow's level of messages; the conversion of a function writes none.

    What was converted is in :func:`to_code`, and why a function was traced in its ``explain()``.

    Args:
        level: ignored.
        alsologtostdout: ignored.

    >>> import dualflow as df
    >>> df.autograph.set_verbosity(0)
    """
