"""Assignments to items of NumPy arrays that a function creates: ``xs = np.zeros(3)``, then ``xs[i] = x``.

An array can't hold a symbolic tensor. So an assignment to an item becomes an assignment to the variable, of a
tensor with another item. AutoGraph's loops and branches carry the variable like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dispatch import TENSORS, AbstractTensor
from dualflow.core.errors import DTypeError
from dualflow.function.errors import SymbolicValueError, here
from dualflow.function.tracing.numpy_writes import REMEDY
from dualflow.function.tracing.symbolic_tensor import SymbolicTensor
from dualflow.function.tracing.tracer import Tracer
from dualflow.graph.ir import Value
from dualflow.graph.views import base_of
from dualflow.ops.arrangement import expand_dims, reshape
from dualflow.ops.broadcasting import broadcast_to
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.item_assignment import assign_item
from dualflow.ops.scattering import tensor_scatter_nd_update
from dualflow.ops.selection import where
from dualflow.ops.tensor_sizes import axis_sizes

_NO_CONTAINERS: Final = (str, bytes, range, np.ndarray, *TENSORS)
"""Classes of collections whose items are values: they keep no reference to another array."""


def with_item(
    value: Any,
    array: Any,
    key: Any,
    modules: tuple[Any, ...],
    others: tuple[Callable[[], Any], ...],
    is_elsewhere: bool,
) -> Any:
    """``array`` after ``array[key] = value``; a tensor if the value, the key or the array is symbolic.

    Args:
        value: what is assigned.
        array: the value of the variable: an array, or the tensor that has taken its place.
        key: the index.
        modules: the modules whose functions created the array; items of others are assigned in place.
        others: functions that return the values of other variables, which may refer to the array.
        is_elsewhere: whether the array may be referred to from elsewhere.

    Raises:
        SymbolicValueError: a symbolic assignment to an array that something else may refer to.
        DTypeError: the array's dtype can't hold the value.
    """
    if not _is_created(array, modules):
        return _with_plain_item(value, array, key, may_copy=False)
    is_aliased = is_elsewhere or any(_may_refer(_assigned_value(other), array) for other in others)
    if not any(map(_is_symbolic, (value, array, key))):
        return _with_plain_item(value, array, key, may_copy=not is_aliased)
    if is_aliased:
        raise SymbolicValueError(
            "A symbolic df.Tensor can't be written into a NumPy array that something else may refer to (a "
            "variable, a view, a container, another function), which would keep the old elements. Give that "
            f"np.copy of the array or of the view. {REMEDY}.{here()}"
        )
    return _changed(convert_to_tensor(array), key, value)


def _assigned_value(variable: Callable[[], Any]) -> Any:
    """The value of a variable or an attribute; None if it has none."""
    try:
        return variable()
    except (NameError, AttributeError):
        return None


def _may_refer(x: Any, array: Any) -> bool:
    """Whether ``x`` may be the array or a view of it, or a container with one."""
    return any(_may_be_view(item, array) for item in _with_contents(x))


def _with_contents(x: Any) -> Iterator[Any]:
    """``x`` and, if it is a container, what it contains, at any depth; containers may contain each other."""
    pending, entered = [x], {}
    while pending:
        item = pending.pop()
        yield item
        is_container = isinstance(item, Collection) and not isinstance(item, _NO_CONTAINERS)
        if is_container and id(item) not in entered:
            entered[id(item)] = item  # keeps its id from being that of another one
            pending += item.values() if isinstance(item, Mapping) else item


def _may_be_view(x: Any, array: Any) -> bool:
    """Whether ``x`` may be the array or a view of it."""
    if isinstance(x, np.ndarray):
        if type(array) is np.ndarray:
            return np.may_share_memory(x, array)
        return x.ndim > 0 and _is_carried(base_of(array._value))
    if type(x) is SymbolicTensor:
        base = base_of(x._value)
        is_same = type(array) is SymbolicTensor and base is base_of(array._value)
        return x.spec.shape.rank != 0 and (is_same or _is_carried(base))
    return False


def _is_carried(base: Value) -> bool:
    """Whether a value is that of a variable which a loop or a branch carries: so it may be any of before."""
    return base.node is None or bool(base.node.bodies)


def augmented_item(array: Any, key: Any, modules: tuple[Any, ...]) -> Any:
    """``array[key]`` for ``array[key] += x`` and its like, which :func:`with_item` assigns afterwards.

    A part of a created array is copied: ``+=`` would change the array, and a traced body may not run.
    """
    item = array[key]
    return item.copy() if type(item) is np.ndarray and _is_created(array, modules) else item


def _is_created(array: Any, modules: tuple[Any, ...]) -> bool:
    """Whether NumPy's functions created ``array``, or the array in whose place a tensor is."""
    return type(array) in (np.ndarray, SymbolicTensor) and all(module is np for module in modules)


def _with_plain_item(value: Any, array: Any, key: Any, may_copy: bool) -> Any:
    """The container after the assignment: itself, or a copy in a traced body, which may not run."""
    tracer = dispatch.current().innermost
    if may_copy and type(array) is np.ndarray and isinstance(tracer, Tracer) and tracer.outer is not None:
        array = array.copy()
    array[key] = value
    return array


def _is_symbolic(x: Any) -> bool:
    """Whether ``x`` is a symbolic tensor, or a list or an index with one."""
    if isinstance(x, list | tuple):
        return any(map(_is_symbolic, x))
    if isinstance(x, slice):
        return any(map(_is_symbolic, (x.start, x.stop, x.step)))
    return type(x) is SymbolicTensor


def _changed(x: Any, key: Any, value: Any) -> Any:
    """The tensor ``x`` with another item."""
    part = convert_to_tensor(value, dtype_hint=x.dtype)
    if not np.can_cast(part.dtype.dtype, x.dtype.dtype, "same_kind"):
        raise DTypeError(
            f"An array of {x.dtype.name} can't hold a tensor of {part.dtype.name}; create the array with "
            f"dtype=np.{part.dtype.name}.{here()}"
        )
    part = cast(part, x.dtype)
    if isinstance(key, AbstractTensor) and key.dtype.is_integer and not key.shape:
        return _with_row(x, key, part)
    return assign_item(x, key, part)


def _with_row(x: Any, index: Any, row: Any) -> Any:
    """``x`` with another row, at a symbolic index."""
    sizes = axis_sizes(x)
    position = where(index < 0, index + cast(sizes[0], index.dtype), index)
    rows = expand_dims(broadcast_to(row, sizes[1:]), 0)
    return tensor_scatter_nd_update(x, reshape(position, [1, 1]), rows)
