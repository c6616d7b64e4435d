"""NumPy's functions on tensors: those of ``df.numpy`` run instead where a tape or a trace records.

An array that is combined with a tensor takes the tensor's precision, as with Python's operators:
``np.add(array, x)`` is ``array + x``. A function that ``df.numpy`` lacks gets arrays; a tape that watches the
tensor warns of that, and a symbolic tensor, which has no values, raises an error.
"""

from __future__ import annotations

import inspect
import opcode
from collections.abc import Callable, Iterable, Iterator
from functools import cache, reduce
from types import FrameType
from typing import Any, Final

import numpy as np

from dualflow import numpy as ours
from dualflow.core import dispatch
from dualflow.core.dispatch import AbstractTensor, AbstractVariable
from dualflow.core.dtypes import as_dtype, promote
from dualflow.core.errors import DTypeError
from dualflow.core.tracebacks import entry
from dualflow.function.errors import SymbolicValueError
from dualflow.ops.record import operand
from dualflow.ops.tensor import Operators

_TENSORS: Final = (AbstractTensor, AbstractVariable)
_ARRAYS: Final = (np.ndarray, np.generic)
_LISTS: Final = (list, tuple)
_NAMESPACES: Final = {
    "numpy": ("", np),
    "numpy.linalg": ("linalg", np.linalg),
    "numpy.fft": ("fft", np.fft),
}


@cache
def overrides() -> dict[Any, Callable[..., Any]]:
    """For each of NumPy's functions, the one of ``df.numpy`` that replaces it."""
    functions: dict[Any, Callable[..., Any]] = {}
    for index, numpy_namespace in _NAMESPACES.values():
        namespace: Any = getattr(ours, index) if index else ours
        for name in namespace.__all__:
            function = getattr(numpy_namespace, name, None)
            if callable(function) and not isinstance(function, type):
                functions[function] = getattr(namespace, name)
    return functions


@cache
def operators() -> dict[np.ufunc, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]]:
    """The methods of the left and of the right operand, for each ufunc that implements an operator."""
    names = {
        np.add: "add",
        np.subtract: "sub",
        np.multiply: "mul",
        np.true_divide: "truediv",
        np.floor_divide: "floordiv",
        np.remainder: "mod",
        np.power: "pow",
        np.bitwise_and: "and",
        np.bitwise_or: "or",
        np.bitwise_xor: "xor",
        np.left_shift: "lshift",
        np.right_shift: "rshift",
    }
    methods = {ufunc: (name, f"r{name}") for ufunc, name in names.items()}
    mirrored = {np.less: ("lt", "gt"), np.less_equal: ("le", "ge"), np.equal: ("eq", "eq")}
    mirrored |= {np.greater: ("gt", "lt"), np.greater_equal: ("ge", "le"), np.not_equal: ("ne", "ne")}
    return {
        ufunc: (getattr(Operators, f"__{left}__"), getattr(Operators, f"__{right}__"))
        for ufunc, (left, right) in (methods | mirrored).items()
    }


@entry
def universal_function(
    ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any], caller: FrameType
) -> Any:
    """The result of a NumPy ufunc of which an input or output is a tensor.

    ``caller`` is the frame that called NumPy.

    Raises:
        DTypeError: tensors that are recorded and another method than a call, or options that tensors refuse.
    """
    is_operator = method == "__call__" and ufunc in operators() and _is_array_with_tensor(inputs)
    if is_operator and (not options or _is_update_in_place(inputs, options, caller)):
        return _by_operator(ufunc, *inputs)
    if not _is_recorded([inputs, options]):
        return getattr(ufunc, method)(*_as_arrays(inputs), **_as_arrays(options))
    name = ufunc.__name__
    if method != "__call__":
        raise DTypeError(
            f"np.{name}.{method} has no equivalent for tensors that are recorded; use {_INSTEAD[method]}."
        )
    function = overrides().get(ufunc)
    if function is None:
        return _by_numpy(ufunc, name, caller, inputs, options)
    dtype = _precision(inputs)
    operands = inputs if dtype is None else [_as_operand(x, dtype) for x in inputs]
    return function(*operands, **options)


_INSTEAD: Final = {
    "reduce": "a reduction such as np.sum, np.prod, np.max or np.all",
    "accumulate": "np.cumsum or np.cumprod",
    "reduceat": "df.math.segment_sum and its like",
    "outer": "the function itself on x[:, np.newaxis] and y",
    "at": "df.tensor_scatter_nd_add, or df.tensor_scatter_nd_update",
}


def _is_array_with_tensor(inputs: tuple[Any, ...]) -> bool:
    """Whether the inputs are an array and a tensor, in any order."""
    return len(inputs) == 2 and any(
        isinstance(x, _ARRAYS) and isinstance(y, _TENSORS) for x, y in (inputs, inputs[::-1])
    )


def _by_operator(ufunc: np.ufunc, x: Any, y: Any) -> Any:
    """The result of the operator that the ufunc stands for, between a tensor and an array."""
    from_left, from_right = operators()[ufunc]
    return from_left(x, y) if isinstance(x, _TENSORS) else from_right(y, x)


_BINARY_OPERATOR: Final = opcode.opmap["BINARY_OP"]


def _is_update_in_place(inputs: tuple[Any, ...], options: dict[str, Any], caller: FrameType) -> bool:
    """Whether the call is ``x += y`` or the like, of an array ``x`` and a tensor ``y``.

    NumPy passes on the same arguments for ``np.add(x, y, out=x)``, which must write the array or be refused,
    where ``x += y`` binds the name to a tensor: only the caller's current instruction differs.
    """
    out = options.get("out")
    if len(options) != 1 or out is None or out[0] is not inputs[0]:
        return False
    return caller.f_lasti >= 0 and caller.f_code.co_code[caller.f_lasti] == _BINARY_OPERATOR


@entry
def function(numpy_function: Any, inputs: tuple[Any, ...], options: dict[str, Any], caller: FrameType) -> Any:
    """The result of a NumPy function of which an argument is, or contains, a tensor.

    ``caller`` is the frame that called NumPy.
    """
    if not _is_recorded([inputs, options]):
        return numpy_function(*_as_arrays(inputs), **_as_arrays(options))
    replacement = overrides().get(numpy_function)
    if replacement is None:
        return _by_numpy(numpy_function, numpy_function.__name__, caller, inputs, options)
    inputs, options = _without_defaults(inputs, options)
    dtype = _precision([inputs, options])
    if dtype is None or not dtype.is_inexact:
        return replacement(*inputs, **options)
    return replacement(*_in_precision(inputs, dtype), **_in_precision(options, dtype))


_NO_VALUE: Final = inspect.signature(np.sum).parameters["initial"].default
"""NumPy's default of an argument that may be left out: a private object of NumPy's."""


def _without_defaults(
    inputs: tuple[Any, ...], options: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments without those that are NumPy's default for an argument left out."""
    while inputs and inputs[-1] is _NO_VALUE:
        inputs = inputs[:-1]
    return inputs, {name: x for name, x in options.items() if x is not _NO_VALUE}


def _by_numpy(
    function: Any, name: str, frame: FrameType, inputs: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """The result of the NumPy function for arrays; a tape that watches a tensor warns that no gradient flows.

    Raises:
        SymbolicValueError: a tensor has no value.
    """
    engine = dispatch.current()
    for x in _tensors([inputs, options]):
        if isinstance(x, AbstractTensor) and not hasattr(x, "numpy"):
            raise SymbolicValueError(
                f"Cannot convert a symbolic df.Tensor to a NumPy array: np.{name} has no equivalent in "
                f"df.numpy, and {x!r} has no value yet; use functions that have, or hand the values to NumPy "
                "with df.numpy_function."
            )
        engine.record_numpy_use(x, frame)
    return function(*_as_arrays(inputs), **_as_arrays(options))


def _leaves(value: Any) -> Iterator[Any]:
    """The leaves of nested lists, tuples and dicts."""
    if isinstance(value, _LISTS):
        for x in value:
            yield from _leaves(x)
    elif isinstance(value, dict):
        for x in value.values():
            yield from _leaves(x)
    else:
        yield value


def _tensors(value: Any) -> Iterator[Any]:
    return (x for x in _leaves(value) if isinstance(x, _TENSORS))


def _is_recorded(value: Any) -> bool:
    """Whether a tensor in ``value`` is recorded: watched by a tape, or symbolic."""
    is_traced = dispatch.current().is_traced
    return any(is_traced(x) for x in _tensors(value))


def _map_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """Nested lists and dicts with ``change`` applied to their leaves."""
    if isinstance(value, _LISTS):
        changed = [_map_leaves(x, change) for x in value]
        return changed if type(value) is list else tuple(changed)
    if isinstance(value, dict):
        return {key: _map_leaves(x, change) for key, x in value.items()}
    return change(value)


def _as_arrays(value: Any) -> Any:
    """``value`` with tensors as arrays."""

    def array(x: Any) -> Any:
        return np.asarray(x) if isinstance(x, _TENSORS) else x

    return _map_leaves(value, array)


def _precision(values: Iterable[Any]) -> Any:
    """The common dtype of the tensors; None without any."""
    dtypes = [x.dtype for x in _tensors(list(values))]
    return reduce(promote, dtypes) if dtypes else None


_KIND_ORDER: Final = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}
"""The kinds of dtypes, from the lowest."""


def _as_operand(x: Any, dtype: Any) -> Any:
    """``x`` as a tensor of ``dtype``, that of the tensors; unchanged if no array, or of a higher kind."""
    if isinstance(x, _ARRAYS) and _KIND_ORDER[as_dtype(x.dtype).kind] <= _KIND_ORDER[dtype.kind]:
        return operand(x, dtype)
    return x


def _in_precision(value: Any, dtype: Any) -> Any:
    """``value`` with its arrays of floats and complex numbers cast to the precision of ``dtype``."""
    kinds = {"f": dtype.real.dtype, "c": np.result_type(dtype.dtype, np.complex64)}

    def to_precision(x: Any) -> Any:
        kind = x.dtype.kind if isinstance(x, _ARRAYS) else ""
        return x.astype(kinds[kind]) if kind in kinds else x

    return _map_leaves(value, to_precision)
