"""The switch that calls of traced functions look at: as Python, or with a profiler looking on."""

from __future__ import annotations

from typing import Final


class Detours:
    """Why calls take another way than the short one.

    Attributes:
        on: whether they do.
        python: whether functions run as the Python that they wrap.
        watched: whether a profiler looks on.
    """

    __slots__ = ("on", "python", "watched")

    def __init__(self) -> None:
        self.on = self.python = self.watched = False

    def set(self, *, python: bool | None = None, watched: bool | None = None) -> None:
        """Change what is given."""
        self.python = self.python if python is None else python
        self.watched = self.watched if watched is None else watched
        self.on = self.python or self.watched


DETOURS: Final = Detours()


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Let every :func:`function` run as the Python it wraps, to step through it in a debugger, or not.

    >>> import dualflow as df
    >>> df.config.run_functions_eagerly(True)
    >>> df.function(lambda x: x.numpy() + 1)(df.constant(1.0))
    np.float32(2.0)
    >>> df.config.run_functions_eagerly(False)
    """
    DETOURS.set(python=bool(run_eagerly))


def functions_run_eagerly() -> bool:
    """Whether :func:`run_functions_eagerly` is on."""
    return DETOURS.python
