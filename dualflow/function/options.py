"""How graphs are compiled: what a function says about it, and what holds where it says nothing."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import entry

BACKENDS: Final = ("llvm", "numba", "numpy")


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """What a graph is compiled for.

    Attributes:
        backend: what runs it, one of :data:`BACKENDS`.
        strict: whether all of it must run natively.
    """

    backend: str
    strict: bool = False


class _Settings:
    """The process's own choice; None where none was made."""

    backend: str | None = None


_settings: Final = _Settings()


@entry
def set_backend(name: str | None) -> None:
    """Choose what runs the functions that are traced from now on and don't name a backend themselves.

    Args:
        name: ``"llvm"``, the default: kernels as LLVM text, compiled at once, fastest to start and to run;
            ``"numba"``: the same kernels as Python source, compiled by ``numba.njit``, portable and readable;
            ``"numpy"``: each op by its NumPy kernel, the reference. None leaves the choice to the environment
            variable ``DUALFLOW_BACKEND``.

    Raises:
        InvalidArgumentError: there is no such backend.

    >>> import dualflow as df
    >>> df.config.set_backend("numpy")
    >>> f = df.function(lambda x: df.reduce_sum(x * x))
    >>> f(df.constant([3.0, 4.0])).numpy()
    np.float32(25.0)
    >>> df.config.set_backend(None)
    >>> df.config.get_backend()
    'llvm'
    """
    _settings.backend = None if name is None else known_backend(name)


@entry
def get_backend() -> str:
    """What runs functions that don't name a backend.

    Raises:
        InvalidArgumentError: ``DUALFLOW_BACKEND`` names no backend.
    """
    return backend_choice()[0]


def backend_choice() -> tuple[str, str]:
    """The backend of functions that don't name one, and what chose it."""
    if _settings.backend is not None:
        return _settings.backend, "df.config.set_backend"
    named = os.environ.get("DUALFLOW_BACKEND")
    if named:
        return known_backend(named, " in DUALFLOW_BACKEND"), "DUALFLOW_BACKEND"
    return BACKENDS[0], "the default"


def known_backend(name: str, where: str = "") -> str:
    """``name``, if a backend has it.

    Raises:
        InvalidArgumentError: none has.
    """
    if name not in BACKENDS:
        raise InvalidArgumentError(
            f"There is no backend {name!r}{where}; it is one of {', '.join(BACKENDS)}."
        )
    return name
