"""Views: their strides and offset, and the operand's axis for each of their axes.

They are computed by applying the op's NumPy view to an array without memory of its own.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from dualflow.core.array_address import address_of
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.virtual_array import VirtualArray, contiguous
from dualflow.ops.op_kinds import Elementwise, Literal, SizeVector, View
from dualflow.sizes.size_scalars import SizeScalar
from dualflow.sizes.symbolic_sizes import is_static, size_variable, size_variables

_ORIGIN = np.zeros(1, np.int8)


def sizes(value: Value) -> tuple[int, ...]:
    """The shape of a value, in a graph without dynamic sizes."""
    return tuple(value.spec.shape)  # type: ignore[arg-type]  # no None is left


def is_view(node: Node) -> bool:
    """Whether ``node`` is a view of its operand's elements."""
    return isinstance(node.op.kind, View)


def base_of(value: Value) -> Value:
    """The value that ``value`` is a view of, through any number of views; itself if it is no view."""
    while (node := value.node) is not None and isinstance(node.op.kind, View):
        value = node.inputs[0]
    return value


def bases_of(graph: Graph) -> dict[Value, Value]:
    """The :func:`base_of` of each value of ``graph``."""
    bases = {v: v for v in graph.inputs}
    for node in graph.nodes:
        view_of = bases[node.inputs[0]] if isinstance(node.op.kind, View) else None
        for value in node.outputs:
            bases[value] = value if view_of is None else view_of
    return bases


def is_scalar_literal(value: Value) -> bool:
    """Whether ``value`` is a constant with one element, a scalar of sizes, or a view of one of these."""
    node = base_of(value).node
    if node is None:
        return False
    if isinstance(node.op.kind, SizeVector):
        return isinstance(node.attrs["values"][0], SizeScalar)
    return isinstance(node.op.kind, Literal) and node.output.spec.num_elements == 1


def is_generated(value: Value) -> bool:
    """Whether ``value`` has no operands and is computed from its indices, as ``range`` is.

    Consumers inline it.
    """
    node = value.node
    return node is not None and isinstance(node.op.kind, Elementwise) and not node.inputs


def strided_view(
    view: Any, attrs: Mapping[str, Any], shape: Sequence[int], strides: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...], int] | None:
    """The shape, strides and offset of a view of an array with ``strides``; None if the view needs a copy.

    The view is applied to an array that has these strides, but no memory of that size.
    """
    if not is_static(shape) or not is_static(strides) or size_variables(attrs):
        return _symbolic_view(view, attrs, shape, strides)
    array = as_strided(_ORIGIN, tuple(shape), tuple(strides), writeable=False)
    try:
        viewed = view(array, **attrs)
    except ValueError:
        return None
    if viewed.size and not np.may_share_memory(viewed, array):
        return None
    offset = address_of(viewed) - address_of(_ORIGIN)
    return viewed.shape, viewed.strides, offset if viewed.size else 0


def _symbolic_view(
    view: Any, attrs: Mapping[str, Any], shape: Sequence[int], strides: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...], int] | None:
    try:
        viewed = view(VirtualArray(shape, strides), **attrs)
    except ValueError:
        return None
    return viewed.shape, viewed.strides, viewed.offset


def row_major(value: Value) -> Value:
    """The first value of the chain of reshapes that ends with ``value``: all elements, in the same order."""
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
        symbolic = _symbolic_view(view, dict(attrs), shape, contiguous(shape))
        return symbolic is not None and symbolic[1:] == (contiguous(symbolic[0]), 0)
    array = _virtual(shape)
    try:
        viewed = view(array, **dict(attrs))
    except ValueError:
        return False
    same_start = address_of(viewed) == address_of(array)
    return bool(viewed.size == array.size > 0 and viewed.flags.c_contiguous and same_start)


def _virtual(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """An array in row-major order, without memory of that size."""
    strides = list(itertools.accumulate(reversed(shape[1:]), operator.mul, initial=1))[::-1]
    return as_strided(_ORIGIN, shape, strides[: len(shape)], writeable=False)


def dims_through(node: Node) -> tuple[int | None, ...] | None:
    """For each axis of a view, the axis of its operand; None if it has size 1 or is broadcast.

    None instead of the tuple if the view has an offset, skips elements or joins dims.
    """
    kind = node.op.kind
    assert isinstance(kind, View)
    return _dims(kind.view, tuple(node.attrs.items()), sizes(node.inputs[0]))


def dims_of_base(value: Value) -> tuple[int | None, ...] | None:
    """For each axis of ``value``, the axis of ``base_of(value)``.

    None as for :func:`dims_through`.
    """
    dims: tuple[int | None, ...] = tuple(range(value.spec.rank))
    while value.node is not None and is_view(value.node):
        view_dims = dims_through(value.node)
        if view_dims is None:
            return None
        dims = tuple(None if d is None else view_dims[d] for d in dims)
        value = value.node.inputs[0]
    return dims


@functools.lru_cache(4096)
def _dims(
    view: Any, attrs: tuple[tuple[str, Any], ...], shape: tuple[int, ...]
) -> tuple[int | None, ...] | None:
    if 0 in shape:
        return None
    strides = _unmergeable_strides(shape)
    viewed = strided_view(view, dict(attrs), shape, strides)
    if viewed is None or viewed[2] != 0:
        return None
    sources = {
        (stride, size): i for i, (stride, size) in enumerate(zip(strides, shape, strict=True)) if size != 1
    }
    dims: list[int | None] = []
    for size, stride in zip(viewed[0], viewed[1], strict=True):
        if size == 1 or stride == 0:
            dims.append(None)
        elif (stride, size) in sources:
            dims.append(sources[stride, size])
        else:
            return None
    used = [d for d in dims if d is not None]
    return tuple(dims) if len(used) == len(sources) == len(set(used)) else None


def _unmergeable_strides(shape: Sequence[int]) -> list[int]:
    """Distinct strides with gaps, so that no view can join two dims."""
    if not is_static(shape):
        return [size_variable(least=1) for _ in shape]
    strides, step = [], 3
    for size in reversed(shape):
        strides.append(step)
        step = step * size * 2 + 1
    return strides[::-1]
