"""Compile options: those of the function, with the settings of the process as defaults."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any, Final, Literal, TypedDict

from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.memory import available_bytes
from dualflow.core.tracebacks import entry
from dualflow.eager.placement import SOFT_PLACEMENT
from dualflow.graph.options import CompileOptions
from dualflow.graph.user_rewrites import Rewrite

BACKENDS: Final = ("llvm", "numba", "opencl", "numpy")
MACHINE_CODE: Final = BACKENDS[0]
"""The default backend, whose programs are machine code that other code can call."""
DEVICE_CODE: Final = BACKENDS[2]
"""The backend whose programs run on a GPU."""
REFERENCE: Final = BACKENDS[-1]
"""The backend that compiles nothing: NumPy runs node by node."""
EAGER_KERNELS: Final = ("compiled", "numpy")
FIRST_CALLS: Final = ("compile", "interpret")
AUTOMATIC: Final = "automatic"
SIZES: Final = (AUTOMATIC, "exact")


class FunctionOptions(TypedDict, total=False):
    """The options of ``df.function``, which don't affect the type of its result."""

    input_signature: Sequence[Any] | None
    autograph: bool
    jit_compile: bool | None
    reduce_retracing: bool | Literal["batch"]
    experimental_implements: object
    experimental_autograph_options: object
    experimental_attributes: object
    experimental_relax_shapes: bool | None
    experimental_compile: bool | None
    experimental_follow_type_hints: bool | None
    strict: bool
    backend: str | None
    memory_budget: int | str | None
    first_call: Literal["compile", "interpret"]
    sizes: Literal["automatic", "exact"]
    rewrites: Sequence[Rewrite]
    name: str | None


class _Settings:
    """The settings of the process; None if not set."""

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
    rewrites: tuple[Rewrite, ...] = (),
) -> CompileOptions:
    """The options of a compile: the arguments are those of the function, None for the process's setting.

    ``DUALFLOW_CHECK_PASSES=1`` enables :attr:`CompileOptions.checking`.

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
        rewrites=rewrites,
        soft_placement=SOFT_PLACEMENT.enabled,
    )


@entry
def set_backend(name: str | None) -> None:
    """Set the backend of functions without one of their own, for traces from now on.

    Args:
        name: ``"llvm"``, the default: kernels as LLVM text, the fastest to compile and to run; ``"numba"``:
            the same kernels as Python source, compiled by ``numba.njit``, portable and readable;
            ``"opencl"``: the same kernels on a GPU or another device of OpenCL, with ``dualflow[gpu]``;
            ``"numpy"``: each op by its NumPy kernel, the reference. None resets to the environment variable
            ``DUALFLOW_BACKEND``.

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
    _settings.backend = None if name is None else checked_backend(name)
    _settings.eager_kernels_on = None


@entry
def get_backend() -> str:
    """The backend of functions without one of their own.

    Raises:
        InvalidArgumentError: ``DUALFLOW_BACKEND`` names no backend.
    """
    return backend_choice()[0]


def backend_choice() -> tuple[str, str]:
    """The backend of functions without one of their own, and the source of this setting."""
    if _settings.backend is not None:
        return _settings.backend, "df.config.set_backend"
    named = os.environ.get("DUALFLOW_BACKEND")
    if named:
        return checked_backend(named, " in DUALFLOW_BACKEND"), "DUALFLOW_BACKEND"
    return MACHINE_CODE, "the default"


@entry
def set_eager_kernels(name: str | None) -> None:
    """Set what computes eager ops on large tensors.

    Args:
        name: with ``"compiled"``, the default, an op with an input of more than 32,768 elements runs the
            kernel that a compiled function of this one op has, on all threads, if the backend is ``"llvm"``.
            With ``"numpy"`` NumPy computes all ops, on one thread. None resets to the environment variable
            ``DUALFLOW_EAGER_KERNELS``.

    Raises:
        InvalidArgumentError: ``name`` is neither of these.

    The last digits of floats may differ between the two, and hence between small and large tensors. With
    ``"compiled"`` a large tensor has the same bits as in a compiled function of the op.

    >>> import dualflow as df
    >>> df.config.set_eager_kernels("numpy")
    >>> df.config.get_eager_kernels()
    'numpy'
    >>> df.config.set_eager_kernels(None)
    """
    _settings.eager_kernels = None if name is None else _checked_kernels(name)
    _settings.eager_kernels_on, _settings.eager_unavailable_reason = None, ""


@entry
def get_eager_kernels() -> str:
    """The implementation of eager ops on large tensors: ``"compiled"`` or ``"numpy"``.

    Raises:
        InvalidArgumentError: the value of ``DUALFLOW_EAGER_KERNELS`` or ``DUALFLOW_BACKEND`` is invalid.
    """
    return eager_kernels_choice()[0]


def eager_kernels_choice() -> tuple[str, str]:
    """The implementation of eager ops on large tensors, and the source of this setting."""
    if _settings.eager_unavailable_reason:
        return "numpy", _settings.eager_unavailable_reason
    kernels, source = EAGER_KERNELS[0], "the default"
    if _settings.eager_kernels is not None:
        kernels, source = _settings.eager_kernels, "df.config.set_eager_kernels"
    elif named := os.environ.get("DUALFLOW_EAGER_KERNELS"):
        kernels, source = _checked_kernels(named, " in DUALFLOW_EAGER_KERNELS"), "DUALFLOW_EAGER_KERNELS"
    backend = get_backend()
    if kernels == "compiled" and backend != MACHINE_CODE:
        return "numpy", f"the backend is {backend}"
    return kernels, source


def eager_kernels_on() -> bool:
    """Whether large eager ops run compiled kernels; the environment is read once for each setting."""
    if _settings.eager_kernels_on is None:
        _settings.eager_kernels_on = eager_kernels_choice()[0] == "compiled"
    return _settings.eager_kernels_on


def without_eager_kernels(unavailable_reason: str) -> None:
    """Run large eager ops on NumPy until the setting is changed."""
    _settings.eager_unavailable_reason, _settings.eager_kernels_on = unavailable_reason, False


@entry
def set_loop_memory(nbytes: int | None) -> None:
    """Limit the bytes that a loop stores of its iterations for its gradient; None restores the default.

    The limit is approximate. A loop that would store more runs its iterations again in segments instead. That
    is decided before the loop runs, if the number of iterations is static, or bounded by
    ``maximum_iterations``; with a limit set here, for any other loop too. The default is a quarter of the
    memory that was available when it was first read. Existing traces are unchanged.

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
    """The number of bytes that a loop may store for its gradient; see :func:`set_loop_memory`."""
    return compile_options().loop_budget


def bytes_of(size: int | str) -> int:
    """A number of bytes, as an int or as text such as ``"2GB"`` or ``"1.5 GiB"``.

    KB, MB, GB and TB are powers of 1000; KiB, MiB, GiB and TiB powers of 1024.

    Raises:
        InvalidArgumentError: it is no positive number of bytes.

    >>> bytes_of("2GB"), bytes_of("1.5 KiB"), bytes_of(4096)
    (2000000000, 1536, 4096)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(?:([KMGT]?)(i?)B)?", str(size).strip(), re.IGNORECASE)
    if match is not None and isinstance(size, str | int) and not isinstance(size, bool):
        number, prefix, binary = match.groups()
        power = " KMGT".index((prefix or " ").upper())
        nbytes = int(float(number) * (1024 if binary else 1000) ** power) if power else int(float(number))
        if nbytes > 0:
            return nbytes
    raise InvalidArgumentError(
        f"A memory budget is a positive number of bytes, such as 2 << 30, '2GB' or '512 MiB', not {size!r}."
    )


def checked_backend(name: str, where: str = "") -> str:
    """``name``, checked to be the name of a backend.

    Raises:
        InvalidArgumentError: there is no such backend.
    """
    if name not in BACKENDS:
        raise InvalidArgumentError(
            f"There is no backend {name!r}{where}; it is one of {', '.join(BACKENDS)}."
        )
    return name


def checked_first_call(name: str, *, strict: bool, memory_budget: int | str | None) -> str:
    """``name``, a value of ``first_call`` that is compatible with the other options.

    Raises:
        InvalidArgumentError: there is no such value; or it is ``"interpret"`` with ``strict`` or a budget.
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


def checked_sizes(name: str) -> str:
    """``name``, a value of ``sizes``.

    Raises:
        InvalidArgumentError: there is no such value.
    """
    if name not in SIZES:
        raise InvalidArgumentError(f"There is no sizes={name!r}; it is one of {', '.join(map(repr, SIZES))}.")
    return name


def _checked_kernels(name: str, where: str = "") -> str:
    if name not in EAGER_KERNELS:
        raise InvalidArgumentError(
            f"There are no eager kernels {name!r}{where}; they are one of {', '.join(EAGER_KERNELS)}."
        )
    return name


def checked_rewrites(rewrites: Sequence[Rewrite]) -> tuple[Rewrite, ...]:
    """``rewrites`` as a tuple.

    Raises:
        DTypeError: an element is no rewrite.
        InvalidArgumentError: two of them have one name.
    """
    for rewrite in rewrites:
        if not isinstance(rewrite, Rewrite):
            raise DTypeError(
                f"rewrites holds {rewrite!r}, which is no rewrite. Decorate the function with "
                "df.rewrite.equation, df.rewrite.rule or df.rewrite.graph_pass."
            )
    names = [rewrite.name for rewrite in rewrites]
    if len(set(names)) < len(names):
        raise InvalidArgumentError(f"Two of the rewrites {names} have one name; pass name= to one of them.")
    return tuple(rewrites)
