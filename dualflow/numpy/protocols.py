"""NumPy's functions on tensors: those of ``df.numpy`` run in their place where a tape or a trace records.

Beside a tensor, an array takes the tensor's precision, as it does with Python's operators:
``np.add(array, x)`` is ``array + x``. A function for which ``df.numpy`` has none gets arrays; a tape that
watches the tensor warns of that, and a symbol, which has no values, is refused.
"""

from __future__ import annotations

import opcode
from collections.abc import Callable, Iterable, Iterator
from functools import cache
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
_THEIR_SPACES: Final = {
    "numpy": ("", np),
    "numpy.linalg": ("linalg", np.linalg),
    "numpy.fft": ("fft", np.fft),
}


@cache
def overrides() -> dict[Any, Callable[..., Any]]:
    """Our function for each of NumPy's that asks tensors what to do: the public names of ``df.numpy``."""
    found: dict[Any, Callable[..., Any]] = {}
    for place, theirs in _THEIR_SPACES.values():
        space: Any = getattr(ours, place) if place else ours
        for name in space.__all__:
            function = getattr(theirs, name, None)
            if callable(function) and not isinstance(function, type):
                found[function] = getattr(space, name)
    return found


@cache
def operators() -> dict[np.ufunc, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]]:
    """For each universal function that is an operator, the tensor's method, and that on the right."""
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
    found = {u: (getattr(Operators, f"__{n}__"), getattr(Operators, f"__r{n}__")) for u, n in names.items()}
    mirrored = {np.less: ("lt", "gt"), np.less_equal: ("le", "ge"), np.equal: ("eq", "eq")}
    mirrored |= {np.greater: ("gt", "lt"), np.greater_equal: ("ge", "le"), np.not_equal: ("ne", "ne")}
    methods: Any = {
        u: (getattr(Operators, f"__{a}__"), getattr(Operators, f"__{b}__")) for u, (a, b) in mirrored.items()
    }
    return found | methods


@entry
def universal_function(
    ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any], caller: FrameType
) -> Any:
    """The result of a NumPy ufunc of which an input or output is a tensor.

    ``caller`` is the frame that called NumPy.

    Raises:
        DTypeError: tensors that are recorded and another method than a call, or options that tensors refuse.
    """
    followed = _followed([inputs, options])
    if method == "__call__" and ufunc in operators() and len(inputs) == 2:
        beside_array = isinstance(inputs[0], _ARRAYS) or isinstance(inputs[1], _ARRAYS)
        plain = not options or _is_operator(caller)  # x += y gives its array as out
        if beside_array and plain and any(isinstance(x, _TENSORS) for x in inputs):
            return _operated(ufunc, *inputs)
    if not followed:
        return getattr(ufunc, method)(*_as_arrays(inputs), **_as_arrays(options))
    name = ufunc.__name__
    if method != "__call__":
        raise DTypeError(
            f"np.{name}.{method} has no equivalent for tensors that are recorded; use {_INSTEAD[method]}."
        )
    function = overrides().get(ufunc)
    if function is None:
        return _handed_over(ufunc, name, caller, inputs, options)
    dtype = _precision(inputs)
    return function(*[_beside(x, dtype) for x in inputs], **options)


_INSTEAD: Final = {
    "reduce": "a reduction such as np.sum, np.prod, np.max or np.all",
    "accumulate": "np.cumsum or np.cumprod",
    "reduceat": "df.math.segment_sum and its like",
    "outer": "the function itself on x[:, np.newaxis] and y",
    "at": "df.tensor_scatter_nd_add, or df.tensor_scatter_nd_update",
}


def _operated(ufunc: np.ufunc, x: Any, y: Any) -> Any:
    """What the operator gives, of which one side is a tensor and the other an array."""
    from_left, from_right = operators()[ufunc]
    return from_left(x, y) if isinstance(x, _TENSORS) else from_right(y, x)


_OPERATIONS: Final = frozenset(opcode.opmap[name] for name in ("BINARY_OP", "COMPARE_OP"))


def _is_operator(caller: FrameType) -> bool:
    """Whether ``caller`` is at an operator: NumPy passes ``x += y`` on as it does ``np.add(x, y, out=x)``."""
    return caller.f_lasti >= 0 and caller.f_code.co_code[caller.f_lasti] in _OPERATIONS


@entry
def function(function: Any, inputs: tuple[Any, ...], options: dict[str, Any], caller: FrameType) -> Any:
    """The result of a NumPy function of which an argument is, or contains, a tensor.

    ``caller`` is the frame that called NumPy.
    """
    if not _followed([inputs, options]):
        return function(*_as_arrays(inputs), **_as_arrays(options))
    replacement = overrides().get(function)
    if replacement is None:
        return _handed_over(function, function.__name__, caller, inputs, options)
    inputs, options = _given(inputs, options)
    dtype = _precision([inputs, options])
    if dtype is None or not dtype.is_inexact:
        return replacement(*inputs, **options)
    return replacement(*_in_precision(inputs, dtype), **_in_precision(options, dtype))


def _given(inputs: tuple[Any, ...], options: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments without those that stand for none, which a signature's defaults are."""
    while inputs and inputs[-1] is np._NoValue:
        inputs = inputs[:-1]
    return inputs, {name: x for name, x in options.items() if x is not np._NoValue}


def _handed_over(
    function: Any, name: str, frame: FrameType, inputs: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """NumPy's own result, of arrays; a tape that watches one of the tensors says that no gradient flows.

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
        engine.leave(x, frame)
    return function(*_as_arrays(inputs), **_as_arrays(options))


def _leaves(value: Any) -> Iterator[Any]:
    """What stands in nested lists and dicts."""
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


def _followed(value: Any) -> bool:
    """Whether a tensor in it is recorded: watched by a tape, or a symbol."""
    follows = dispatch.current().follows
    return any(follows(x) for x in _tensors(value))


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Nested lists and dicts with their leaves changed."""
    if isinstance(value, _LISTS):
        changed = [_mapped(x, change) for x in value]
        return changed if type(value) is list else tuple(changed)
    if isinstance(value, dict):
        return {key: _mapped(x, change) for key, x in value.items()}
    return change(value)


def _as_arrays(value: Any) -> Any:
    """``value`` with tensors as arrays."""

    def array(x: Any) -> Any:
        return np.asarray(x) if isinstance(x, _TENSORS) else x

    return _mapped(value, array)


def _precision(values: Iterable[Any]) -> Any:
    """The dtype in which the tensors meet; None where there is none."""
    found = None
    for x in _tensors(list(values)):
        found = x.dtype if found is None else promote(found, x.dtype)
    return found


def _beside(x: Any, dtype: Any) -> Any:
    """An array as the tensor that it is beside tensors of ``dtype``, unless its kind is a higher one."""
    if not isinstance(x, _ARRAYS):
        return x
    ranks = "biufc".replace("u", "i")
    own = as_dtype(x.dtype)
    return (
        operand(x, dtype)
        if ranks.index(own.kind.replace("u", "i")) <= ranks.index(dtype.kind.replace("u", "i"))
        else x
    )


def _in_precision(value: Any, dtype: Any) -> Any:
    """Arrays of floats, or of complex numbers, in the precision of ``dtype``."""
    kinds = {"f": dtype.real.dtype, "c": np.result_type(dtype.dtype, np.complex64)}

    def narrowed(x: Any) -> Any:
        kind = x.dtype.kind if isinstance(x, _ARRAYS) else ""
        return x.astype(kinds[kind]) if kind in kinds else x

    return _mapped(value, narrowed)
