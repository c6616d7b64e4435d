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
MACHINE_CODE: Final = BACKENDS[0]
"""The default backend, whose programs are machine code that other code can call."""
REFERENCE: Final = BACKENDS[-1]
"""The backend that compiles nothing: NumPy runs node by node."""
EAGER_KERNELS: Final = ("compiled", "numpy")
FIRST_CALLS: Final = ("compile", "interpret")


class _Settings:
    """The process's own choices; None where none was made."""

    backend: str | None = None
    kept_by_loops: int | None = None
    eager_kernels: str | None = None
    eager_unavailable_reason: str = ""
    eager_kernels_on: bool | None = None


_settings: Final = _Settings()


def compile_options(
    backend: str | None = None,
    strict: bool = False,
    memory_budget: int | None = None,
    *,
    interpret_first: bool = False,
) -> CompileOptions:
    """The options of a compile that begins now: what the function says, else what holds for the process.

    ``DUALFLOW_CHECK_PASSES=1`` iterations :attr:`CompileOptions.checking` on.

    Raises:
        InvalidArgumentError: ``DUALFLOW_BACKEND`` names no backend.
    """
    return CompileOptions(
        backend=backend or get_backend(),
        strict=strict,
        interpret_first=interpret_first,
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
    _settings.eager_kernels_on = None


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
    return MACHINE_CODE, "the default"


@entry
def set_eager_kernels(name: str | None) -> None:
    """Choose what computes ops on large tensors where they run eagerly.

    Args:
        name: ``"compiled"``, the default: an op of which an input has more than 32,768 elements runs the
            kernel that a compiled function of this one op has, on all threads, if the backend is ``"llvm"``;
            ``"numpy"``: NumPy computes all of them, on one thread. None leaves the choice to the environment
            variable ``DUALFLOW_EAGER_KERNELS``.

    Raises:
        InvalidArgumentError: there is no such choice.

    The last digits of floats may differ between the two, and hence between small and large tensors. With
    ``"compiled"`` a large tensor has the bits that a compiled function of the op gives.

    >>> import dualflow as df
    >>> df.config.set_eager_kernels("numpy")
    >>> df.config.get_eager_kernels()
    'numpy'
    >>> df.config.set_eager_kernels(None)
    """
    _settings.eager_kernels = None if name is None else _known_kernels(name)
    _settings.eager_kernels_on, _settings.eager_unavailable_reason = None, ""


@entry
def get_eager_kernels() -> str:
    """What computes ops on large tensors where they run eagerly: ``"compiled"`` or ``"numpy"``.

    Raises:
        InvalidArgumentError: ``DUALFLOW_EAGER_KERNELS`` or ``DUALFLOW_BACKEND`` names nothing that there is.
    """
    return eager_kernels_choice()[0]


def eager_kernels_choice() -> tuple[str, str]:
    """What computes large eager ops, and what chose it."""
    if _settings.eager_unavailable_reason:
        return "numpy", _settings.eager_unavailable_reason
    found, reason = EAGER_KERNELS[0], "the default"
    if _settings.eager_kernels is not None:
        found, reason = _settings.eager_kernels, "df.config.set_eager_kernels"
    elif named := os.environ.get("DUALFLOW_EAGER_KERNELS"):
        found, reason = _known_kernels(named, " in DUALFLOW_EAGER_KERNELS"), "DUALFLOW_EAGER_KERNELS"
    backend = get_backend()
    if found == "compiled" and backend != MACHINE_CODE:
        return "numpy", f"the backend is {backend}"
    return found, reason


def eager_kernels_on() -> bool:
    """Whether large eager ops run compiled kernels; the environment is read once for each setting."""
    if _settings.eager_kernels_on is None:
        _settings.eager_kernels_on = eager_kernels_choice()[0] == "compiled"
    return _settings.eager_kernels_on


def without_eager_kernels(unavailable_reason: str) -> None:
    """Leave large eager ops to NumPy from now on, until the user chooses anew."""
    _settings.eager_unavailable_reason, _settings.eager_kernels_on = unavailable_reason, False


@entry
def set_loop_memory(nbytes: int | None) -> None:
    """Let the gradient of a loop keep at most about so many bytes of its iterations; None for the default.

    Where a loop would keep more, its iterations are run again in segments instead. That can be told before
    the loop runs if the number of iterations is known, or bounded by ``maximum_iterations``; with a limit set
    here, also for any other loop. The default is a quarter of the memory that was available when first asked
    for. Functions that have been traced stay as they are.

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


def known_first_call(name: str, *, strict: bool, memory_budget: int | str | None) -> str:
    """``name``, if it says what the first call of a function with these options may do.

    Raises:
        InvalidArgumentError: it is no such thing, or the function promises what NumPy can't keep.
    """
    if name not in FIRST_CALLS:
        raise InvalidArgumentError(
            f"There is no first_call={name!r}; it is one of {', '.join(map(repr, FIRST_CALLS))}."
        )
    if name == "interpret" and (strict or memory_budget is not None):
        promise = "strict" if strict else "within a memory budget"
        raise InvalidArgumentError(
            f"A function that is {promise} can't have first_call='interpret': the calls that NumPy runs are "
            "neither native nor planned. Leave out one of the two."
        )
    return name


def _known_kernels(name: str, where: str = "") -> str:
    if name not in EAGER_KERNELS:
        raise InvalidArgumentError(
            f"There are no eager kernels {name!r}{where}; they are one of {', '.join(EAGER_KERNELS)}."
        )
    return name
