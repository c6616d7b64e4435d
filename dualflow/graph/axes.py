"""Where the dims of a view come from, found by asking the op's own NumPy view."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from dualflow.core.symbolic_sizes import is_static, size_variable, size_variables
from dualflow.graph.ir import Node, Value
from dualflow.graph.virtual_array import VirtualArray, contiguous
from dualflow.ops.op_kinds import Elementwise, Literal, View

_ORIGIN = np.zeros(1, np.int8)


def sizes(value: Value) -> tuple[int, ...]:
    """The shape of a value, every axis of which has a known size: so it is in a graph that is compiled."""
    return tuple(value.spec.shape)  # type: ignore[arg-type]  # no None is left


def is_view(node: Node) -> bool:
    """Whether ``node`` shows its input's elements under another shape."""
    return isinstance(node.op.kind, View)


def base_of(value: Value) -> Value:
    """The value that ``value`` is a view of, itself if it is none."""
    while (node := value.node) is not None and isinstance(node.op.kind, View):
        value = node.inputs[0]
    return value


def is_scalar_literal(value: Value) -> bool:
    """Whether every element of ``value`` is one known number, which code can hold."""
    node = base_of(value).node
    return (
        node is not None and isinstance(node.op.kind, Literal) and node.output.spec.shape.num_elements() == 1
    )


def is_generated(value: Value) -> bool:
    """Whether ``value`` is computed from positions alone, so that every reader can make its own."""
    node = value.node
    return node is not None and isinstance(node.op.kind, Elementwise) and not node.inputs


def strided_view(
    view: Any, attrs: Mapping[str, Any], shape: Sequence[int], strides: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...], int] | None:
    """The shape, strides and offset of a view of elements laid out by ``strides``; None where none exists.

    The view is taken of an array that has the strides but no memory behind them.
    """
    if not is_static(shape) or not is_static(strides) or size_variables(attrs):
        return _by_extents(view, attrs, shape, strides)
    array = as_strided(_ORIGIN, tuple(shape), tuple(strides), writeable=False)
    try:
        seen = view(array, **attrs)
    except ValueError:
        return None
    if seen.size and not np.may_share_memory(seen, array):
        return None
    offset = seen.__array_interface__["data"][0] - _ORIGIN.__array_interface__["data"][0]
    return seen.shape, seen.strides, offset if seen.size else 0


def _by_extents(
    view: Any, attrs: Mapping[str, Any], shape: Sequence[int], strides: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...], int] | None:
    try:
        seen = view(VirtualArray(shape, strides), **attrs)
    except ValueError:
        return None
    return seen.shape, seen.strides, seen.offset


def row_major(value: Value) -> Value:
    """The value whose elements ``value`` has, all of them in the same order, if under another shape."""
    while value.node is not None and is_view(value.node):
        kind = value.node.op.kind
        assert isinstance(kind, View)
        if not _keeps_order(kind.view, tuple(value.node.attrs.items()), sizes(value.node.inputs[0])):
            break
        value = value.node.inputs[0]
    return value


@functools.lru_cache(4096)
def _keeps_order(view: Any, attrs: tuple[tuple[str, Any], ...], shape: tuple[int, ...]) -> bool:
    if not is_static(shape) or size_variables(attrs):
        found = _by_extents(view, dict(attrs), shape, contiguous(shape))
        return found is not None and found[1:] == (contiguous(found[0]), 0)
    array = _virtual(shape)
    try:
        seen = view(array, **dict(attrs))
    except ValueError:
        return False
    same = seen.__array_interface__["data"][0] == array.__array_interface__["data"][0]
    return bool(seen.size == array.size > 0 and seen.flags.c_contiguous and same)


def _virtual(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """An array in row-major order without memory behind it."""
    strides = list(itertools.accumulate(reversed(shape[1:]), operator.mul, initial=1))[::-1]
    return as_strided(_ORIGIN, shape, strides[: len(shape)], writeable=False)


def dims_through(node: Node) -> tuple[int | None, ...] | None:
    """For each dim of a view, the input's dim that it runs along, None for one of size 1 or repeated.

    None as a whole where the view starts elsewhere, skips elements or joins dims.
    """
    kind = node.op.kind
    assert isinstance(kind, View)
    return _dims(kind.view, tuple(node.attrs.items()), sizes(node.inputs[0]))


def dims_of_base(value: Value) -> tuple[int | None, ...] | None:
    """For each dim of ``value`` that of ``base_of(value)``; None as a whole where a view hides them."""
    dims: tuple[int | None, ...] = tuple(range(value.spec.rank))
    while value.node is not None and is_view(value.node):
        through = dims_through(value.node)
        if through is None:
            return None
        dims = tuple(None if d is None else through[d] for d in dims)
        value = value.node.inputs[0]
    return dims


@functools.lru_cache(4096)
def _dims(
    view: Any, attrs: tuple[tuple[str, Any], ...], shape: tuple[int, ...]
) -> tuple[int | None, ...] | None:
    if 0 in shape:
        return None
    strides = _unmergeable_strides(shape)
    seen = strided_view(view, dict(attrs), shape, strides)
    if seen is None or seen[2] != 0:
        return None
    sources = {
        (stride, size): i for i, (stride, size) in enumerate(zip(strides, shape, strict=True)) if size != 1
    }
    found: list[int | None] = []
    for size, stride in zip(seen[0], seen[1], strict=True):
        if size == 1 or stride == 0:
            found.append(None)
        elif (stride, size) in sources:
            found.append(sources[stride, size])
        else:
            return None
    kept = [d for d in found if d is not None]
    return tuple(found) if len(kept) == len(sources) == len(set(kept)) else None


def _unmergeable_strides(shape: Sequence[int]) -> list[int]:
    """Distinct strides with gaps, so that no two dims can be taken for one."""
    if not is_static(shape):
        return [size_variable(least=1) for _ in shape]
    strides, step = [], 3
    for size in reversed(shape):
        strides.append(step)
        step = step * size * 2 + 1
    return strides[::-1]
