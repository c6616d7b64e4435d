"""Nodes that copy a value into another buffer: fused nodes, or moves of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dualflow.core.dtypes import DType
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.graph.fused import FUSED, Axes, IterationSpace
from dualflow.graph.ir import Graph, Node, Origin, Value
from dualflow.graph.loop_dtypes import in_loops
from dualflow.ops.op_kinds import Elementwise, Opaque
from dualflow.ops.record import Op

COPY = Op(
    name="copy",
    doc="The same elements in another buffer.",
    infer=lambda x: x,
    kernel=lambda x: x.copy(),
    kind=Elementwise(lambda m, x: x, parts=True),
)
FILL = Op(
    name="fill",
    doc="A tensor filled with one number; attrs: spec and number.",
    infer=lambda spec, number: spec,
    kernel=lambda spec, number: np.full(spec.shape, number, spec.dtype.dtype),
    kind=Elementwise(lambda m, spec, number: number, parts=True),
)


MOVE = Op(
    name="move",
    doc="The same bytes in another buffer: a copy of elements whose dtype loops have no registers for.",
    infer=lambda x: x,
    kernel=lambda x: x.copy(),
    kind=Opaque("a copy of memory"),
)


def is_native(value: Value) -> bool:
    """Whether kernels support the dtype of ``value``."""
    return in_loops(value.spec.dtype)


def move_node(value: Value) -> Node:
    """A node that copies the contiguous ``value`` in machine code, whatever its dtype."""
    return copy_node(value) if is_native(value) else Node(MOVE, [value], {}, [value.spec])


def copy_node(value: Value) -> Node:
    """A node that copies ``value``: fused if kernels support its dtype."""
    if not is_native(value):
        return Node(COPY, [value], {}, [value.spec], _origin(value))
    source = Value(value.spec)
    return _nest(Node(COPY, [source], {}, [value.spec], _origin(value)), [source], [value])


def _origin(value: Value) -> Origin | None:
    return None if value.node is None else value.node.origin


def copy_elements(shape: Sequence[int], dtype: DType) -> Node:
    """A fused node that copies elements of a shape."""
    return copy_node(Value(TensorSpec.of(Shape(shape), dtype)))


def fill_elements(shape: Sequence[int], dtype: DType, number: Any) -> Node:
    """A fused node that writes ``number`` to every element of a shape."""
    spec = TensorSpec.of(Shape(shape), dtype)
    return _nest(Node(FILL, [], {"spec": spec, "number": number}, [spec]), [], [])


def _nest(node: Node, inputs: list[Value], outside: list[Value]) -> Node:
    axes = iter(range(node.output.spec.rank))
    index_axes: Axes = tuple(None if d == 1 else next(axes) for d in node.output.spec.shape)
    extents = tuple(d for d in node.output.spec.shape if d is not None and d != 1)
    body = Graph(node.op.name, tuple(inputs), (node,), (node.output,))
    attrs = {"body": body, "space": IterationSpace(extents, frozenset(), {node: index_axes})}
    return Node(FUSED, outside, attrs, node.specs, node.origin)
