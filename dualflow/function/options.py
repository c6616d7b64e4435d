"""How graphs are compiled: what a function says about it, and what holds where it says nothing."""

from __future__ import annotations

import os
import re
from typing import Final

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.memory import available_bytes
from dualflow.core.tracebacks import entry
from dualflow.graph.options import CompileOptions

BACKENDS: Final = ("llvm", "numba", "numpy")


class _Settings:
    """The process's own choices; None where none was made."""

    backend: str | None = None
    kept_by_loops: int | None = None


_settings: Final = _Settings()


def compile_options(
    backend: str | None = None, strict: bool = False, memory_budget: int | None = None
) -> CompileOptions:
    """The options of a compile that begins now: what the function says, else what holds for the process.

    ``DUALFLOW_CHECK_PASSES=1`` turns :attr:`CompileOptions.checking` on.

    Raises:
        InvalidArgumentError: ``DUALFLOW_BACKEND`` names no backend.
    """
    return CompileOptions(
        backend=backend or get_backend(),
        strict=strict,
        memory=available_bytes(),
        kept_by_loops=_settings.kept_by_loops,
        memory_budget=memory_budget,
        checking=os.environ.get("DUALFLOW_CHECK_PASSES") == "1",
    )


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
    >>> df.config.get_backend()
    'numpy'
    >>> f = df.function(lambda x: df.reduce_sum(x * x))
    >>> f(df.constant([3.0, 4.0])).numpy()
    np.float32(25.0)
    >>> df.config.set_backend(None)
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


@entry
def set_loop_memory(nbytes: int | None) -> None:
    """Let the gradient of a loop keep at most about so many bytes of its turns; None for the default.

    Where a loop would keep more, its turns are run again in segments instead. That can be told before the
    loop runs if the number of turns is known, or bounded by ``maximum_iterations``; with a limit set here,
    also for any other loop. The default is a quarter of the memory that was available when first asked for.
    Functions that have been traced stay as they are.

    Raises:
        InvalidArgumentError: ``nbytes`` is not positive.

    >>> import dualflow as df
    >>> df.config.set_loop_memory(64 << 20)
    >>> df.config.loop_memory() >> 20
    64
    >>> df.config.set_loop_memory(None)
    """
    if nbytes is not None and nbytes <= 0:
        raise InvalidArgumentError(f"The memory of a loop is a positive number of bytes, not {nbytes}.")
    _settings.kept_by_loops = None if nbytes is None else int(nbytes)


def loop_memory() -> int:
    """How many bytes the gradient of a loop may keep; see :func:`set_loop_memory`."""
    return compile_options().loop_budget


def bytes_of(size: int | str) -> int:
    """A number of bytes, as an int or as text such as ``"2GB"`` or ``"1.5 GiB"``.

    KB, MB, GB and TB are powers of 1000; KiB, MiB, GiB and TiB powers of 1024.

    Raises:
        InvalidArgumentError: it says no positive number of bytes.

    >>> bytes_of("2GB"), bytes_of("1.5 KiB"), bytes_of(4096)
    (2000000000, 1536, 4096)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(?:([KMGT]?)(i?)B)?", str(size).strip(), re.IGNORECASE)
    if found is not None and isinstance(size, str | int) and not isinstance(size, bool):
        number, prefix, binary = found.groups()
        power = " KMGT".index((prefix or " ").upper())
        nbytes = int(float(number) * (1024 if binary else 1000) ** power) if power else int(float(number))
        if nbytes > 0:
            return nbytes
    raise InvalidArgumentError(
        f"A memory budget is a positive number of bytes, such as 2 << 30, '2GB' or '512 MiB', not {size!r}."
    )


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
