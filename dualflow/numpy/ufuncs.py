"""NumPy's universal functions: each is a function of ops over tensors whose dtypes NumPy itself resolves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol, cast

import numpy as np

from dualflow.core.errors import DTypeError
from dualflow.core.tracebacks import hide_frames
from dualflow.numpy import operands
from dualflow.ops.tensor import Tensor


class UniversalFunction(Protocol):
    """A function of the elements of its inputs, with NumPy's arguments."""

    __name__: str
    __qualname__: str
    ufunc: np.ufunc

    def __call__(
        self,
        *x: Any,
        out: Any = None,
        where: Any = True,
        dtype: Any = None,
        casting: Any = "same_kind",
        order: str = "K",
        subok: bool = True,
    ) -> Any: ...


_WEAK: Final = (int, float, complex)
_ORDERS: Final = ("K", "A", "C", None)


def universal(name: str, doc: str, function: Callable[..., Any]) -> UniversalFunction:
    """``np.<name>`` on tensors: ``function`` of inputs in the dtypes that NumPy computes in.

    Args:
        name: NumPy's name.
        doc: one line of what it computes.
        function: takes tensors of those dtypes, and returns a tensor, or a tuple of as many as NumPy does.
    """
    ufunc: np.ufunc = getattr(np, name)

    def call(
        *x: Any,
        out: Any = None,
        where: Any = True,
        dtype: Any = None,
        casting: Any = "same_kind",
        order: str = "K",
        subok: bool = True,
    ) -> Any:
        try:
            if len(x) > ufunc.nin:  # NumPy takes out by place too
                x, out = x[: ufunc.nin], (out if out is not None else x[ufunc.nin :])
            operands.refuse(name, out=out, order=None if order in _ORDERS else order)
            if where is not True:
                raise DTypeError(
                    f"df.numpy.{name} takes no where=: a tensor has no elements that are left as they were; "
                    "choose between two tensors with df.numpy.where."
                )
            if len(x) < ufunc.nin:
                raise DTypeError(f"df.numpy.{name} takes {ufunc.nin} inputs, not {len(x)}.")
            return _computed(ufunc, function, x, dtype, casting)
        except Exception as error:
            hide_frames(error)
            raise

    wrapper = cast(UniversalFunction, call)
    wrapper.__name__ = wrapper.__qualname__ = name
    wrapper.__doc__ = f"{doc}\n\n{_CONTRACT.format(name=ufunc.__name__)}"
    wrapper.__module__ = f"{__package__}.elementwise"
    wrapper.ufunc = ufunc
    return wrapper


_CONTRACT: Final = """``np.{name}`` of tensors, arrays, Python numbers or lists of them; shapes broadcast.
Dtypes are those that NumPy 2 computes and returns; ``dtype`` selects another one to compute in.

Raises:
    DTypeError: inputs that NumPy's function doesn't take; or ``out`` or ``where``, as tensors don't change.
    InvalidArgumentError: shapes that do not broadcast.
"""


def _computed(
    ufunc: np.ufunc, function: Callable[..., Any], x: tuple[Any, ...], dtype: Any, casting: Any
) -> Tensor | tuple[Tensor, ...]:
    adapting = not all(type(v) in _WEAK for v in x)
    values = [v if adapting and type(v) in _WEAK else operands.tensor(v) for v in x]
    input_dtypes = [type(v) if type(v) in _WEAK else v.dtype.dtype for v in values]
    dtypes = _resolved(ufunc, input_dtypes, dtype, casting)
    if any(type(v) in _WEAK for v in values):
        values = [
            operands.number(v, t) if type(v) in _WEAK else v for v, t in zip(values, dtypes, strict=False)
        ]
    computed = function(*[operands.to(v, t) for v, t in zip(values, dtypes, strict=False)])
    results = dtypes[ufunc.nin :]
    if isinstance(computed, tuple):
        return tuple(operands.to(v, t) for v, t in zip(computed, results, strict=True))
    return operands.to(computed, results[0])


def _resolved(
    ufunc: np.ufunc, input_dtypes: list[Any], dtype: Any, casting: Any
) -> tuple[np.dtype[Any], ...]:
    """The dtypes of the inputs and the results."""
    options = {"casting": casting}
    if dtype is not None:
        options["signature"] = (*[None] * ufunc.nin, *[operands.numpy_dtype(dtype)] * ufunc.nout)
    try:
        return ufunc.resolve_dtypes((*input_dtypes, *[None] * ufunc.nout), **options)
    except TypeError:
        shown = ", ".join(t.__name__ if isinstance(t, type) else t.name for t in input_dtypes)
        requested = "" if dtype is None else f" as {operands.numpy_dtype(dtype).name}"
        raise DTypeError(
            f"np.{ufunc.__name__} does not take ({shown}){requested}; convert the inputs with astype."
        ) from None
