"""NumPy's universal functions: each is a function of ops over tensors whose dtypes NumPy itself resolves."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from dualflow.core.errors import DTypeError
from dualflow.core.tracebacks import hide_frames
from dualflow.numpy import operands
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, TensorLike


class UnaryUfunc(Protocol):
    """A universal function of one input."""

    __name__: str
    __qualname__: str
    ufunc: np.ufunc

    def __call__(
        self,
        x: TensorLike,
        /,
        out: None = None,
        *,
        where: bool = True,
        dtype: DTypeLike | None = None,
        casting: str = "same_kind",
        order: str | None = "K",
        subok: bool = True,
    ) -> Tensor: ...


class BinaryUfunc(Protocol):
    """A universal function of two inputs."""

    __name__: str
    __qualname__: str
    ufunc: np.ufunc

    def __call__(
        self,
        x1: TensorLike,
        x2: TensorLike,
        /,
        out: None = None,
        *,
        where: bool = True,
        dtype: DTypeLike | None = None,
        casting: str = "same_kind",
        order: str | None = "K",
        subok: bool = True,
    ) -> Tensor: ...


_SIGNATURES: Final = [
    inspect.signature(function.__call__).replace(
        parameters=list(inspect.signature(function.__call__).parameters.values())[1:]
    )
    for function in (UnaryUfunc, BinaryUfunc)
]
"""The signatures of universal functions by their number of inputs, for ``help``."""
_PYTHON_SCALARS: Final = (int, float, complex)
_ORDERS: Final = ("K", "A", "C", None)


def unary(
    module: str, name: str, doc: str, function: Callable[..., Any], inputs: str, result: str
) -> UnaryUfunc:
    """A universal function of one input; see :func:`universal`."""
    wrapper: UnaryUfunc = universal(module, name, doc, function, inputs, result)
    return wrapper


def binary(
    module: str, name: str, doc: str, function: Callable[..., Any], inputs: str, result: str
) -> BinaryUfunc:
    """A universal function of two inputs; see :func:`universal`."""
    wrapper: BinaryUfunc = universal(module, name, doc, function, inputs, result)
    return wrapper


def universal(
    module: str, name: str, doc: str, function: Callable[..., Any], inputs: str, result: str
) -> Any:
    """``np.<name>`` on tensors: ``function`` of inputs in the dtypes that NumPy computes in.

    Args:
        module: the name of the module that defines it.
        name: NumPy's name.
        doc: one line about what it computes.
        function: takes tensors of those dtypes, and returns a tensor, or a tuple of as many as NumPy does.
        inputs: the inputs of an example.
        result: the example's result, as it is printed.
    """
    ufunc: np.ufunc = getattr(np, name)

    def call(
        *x: TensorLike,
        out: object = None,
        where: bool = True,
        dtype: DTypeLike | None = None,
        casting: str = "same_kind",
        order: str | None = "K",
        subok: bool = True,
    ) -> Any:
        try:
            if len(x) > ufunc.nin:  # NumPy accepts out as a positional argument too
                x, out = x[: ufunc.nin], (out if out is not None else x[ufunc.nin :])
            operands.reject_unsupported(name, out=out, order=None if order in _ORDERS else order)
            if where is not True:
                raise DTypeError(
                    f"df.numpy.{name} takes no where=: a tensor has no elements that are left as they were; "
                    "choose between two tensors with df.numpy.where."
                )
            if len(x) < ufunc.nin:
                raise DTypeError(f"df.numpy.{name} takes {ufunc.nin} inputs, not {len(x)}.")
            return _compute(ufunc, function, x, dtype, casting)
        except Exception as error:
            hide_frames(error)
            raise

    wrapper: Any = call
    wrapper.__name__ = wrapper.__qualname__ = name
    wrapper.__doc__ = f"{doc}\n\n{_sections(ufunc)}\n{_example(ufunc, inputs, result)}"
    wrapper.__module__ = module
    wrapper.ufunc = ufunc
    wrapper.__signature__ = _SIGNATURES[ufunc.nin - 1]
    return wrapper


def _sections(ufunc: np.ufunc) -> str:
    """The arguments, result and errors of a universal function, which follow from NumPy's."""
    is_unary = ufunc.nin == 1
    inputs = "x: a tensor, an array, a number or a list of them."
    if not is_unary:
        inputs = "x1, x2: tensors, arrays, numbers or lists of them, whose shapes broadcast."
    tensors = "A tensor" if ufunc.nout == 1 else "A tuple of two tensors"
    shape = "of ``x``" if is_unary else "to which the inputs broadcast"
    reasons = "" if is_unary else "    InvalidArgumentError: the shapes do not broadcast.\n"
    return f"""Args:
    {inputs}
    out: must be None; tensors don't change.
    where: must be True; tensors don't change.
    dtype: the dtype to compute in; by default the one that NumPy computes in.
    casting: NumPy's rule for casts to that dtype; 'same_kind' by default.
    order: ignored: elements are in C's order.
    subok: ignored: there are no subclasses.

Returns:
    {tensors} with the shape {shape}, and {_result_in_words(ufunc)}.

Raises:
    DTypeError: ``np.{ufunc.__name__}`` doesn't take the dtypes; or ``out`` or ``where`` is passed.
{reasons}"""


def _result_in_words(ufunc: np.ufunc) -> str:
    """The dtypes of a universal function's results, from its table of dtypes."""
    rules = [rule for rule in ufunc.types if not set(rule) & set("mMO")]
    results = [rule.split("->")[1] for rule in rules]
    if set("".join(results)) == {"?"}:
        return "dtype bool"
    if ufunc.nout == 2 and results[0][0] != results[0][1]:  # frexp
        return "the floating dtype of ``x`` and dtype int32"
    if {result.lower() for result in results} == {"b"}:  # bitwise_count
        return "dtype uint8"
    takes_integers = any("l" in rule.split("->")[0] for rule in rules) and "ei->e" not in rules
    common = "the dtype of ``x``" if ufunc.nin == 1 else "the common dtype of the inputs"
    if rules[0].startswith("d"):  # functions of doubles only
        return "dtype float64 or complex128"
    if any(rule.startswith("F") and rule.endswith("f") for rule in rules):  # absolute
        return f"{common}, real for complex numbers"
    if takes_integers:
        return common
    return f"{common}; float16, float32 or float64 for integers of 8, 16 or more bits"


def _example(ufunc: np.ufunc, inputs: str, result: str) -> str:
    call = f"df.numpy.{ufunc.__name__}({inputs})"
    shown = f"{call}.numpy()" if ufunc.nout == 1 else f"[x.numpy().tolist() for x in {call}]"
    return f">>> import dualflow as df\n>>> {shown}\n{result}\n"


def _compute(
    ufunc: np.ufunc, function: Callable[..., Any], x: tuple[Any, ...], dtype: Any, casting: Any
) -> Tensor | tuple[Tensor, ...]:
    has_array = not all(type(v) in _PYTHON_SCALARS for v in x)
    values = [v if has_array and type(v) in _PYTHON_SCALARS else operands.tensor(v) for v in x]
    input_dtypes = [type(v) if type(v) in _PYTHON_SCALARS else v.dtype.dtype for v in values]
    dtypes = _resolve_dtypes(ufunc, input_dtypes, dtype, casting)
    if any(type(v) in _PYTHON_SCALARS for v in values):
        values = [
            operands.number(v, t) if type(v) in _PYTHON_SCALARS else v
            for v, t in zip(values, dtypes, strict=False)
        ]
    computed = function(*[operands.to(v, t) for v, t in zip(values, dtypes, strict=False)])
    results = dtypes[ufunc.nin :]
    if isinstance(computed, tuple):
        return tuple(operands.to(v, t) for v, t in zip(computed, results, strict=True))
    return operands.to(computed, results[0])


def _resolve_dtypes(
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
