"""The switch that lets all traced functions run as the Python that they wrap."""

from __future__ import annotations

from typing import Final


class EagerSwitch:
    """What :func:`run_functions_eagerly` sets; calls read it."""

    __slots__ = ("on",)

    def __init__(self) -> None:
        self.on = False


EAGERLY: Final = EagerSwitch()


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Let every :func:`function` run as the Python it wraps, to step through it in a debugger, or not.

    >>> import dualflow as df
    >>> df.config.run_functions_eagerly(True)
    >>> df.function(lambda x: x.numpy() + 1)(df.constant(1.0))
    np.float32(2.0)
    >>> df.config.run_functions_eagerly(False)
    """
    EAGERLY.on = bool(run_eagerly)


def functions_run_eagerly() -> bool:
    """Whether :func:`run_functions_eagerly` is on."""
    return EAGERLY.on
