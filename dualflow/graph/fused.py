"""The fused node: a graph that one loop nest computes, and how its values lie in the loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dualflow.core.errors import InternalError
from dualflow.core.records import dataclass
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.graph.ir import Graph, Node
from dualflow.ops.op_kinds import Gather, Opaque, Reduce, Scan
from dualflow.ops.record import Op

Axes = tuple[int | None, ...]
"""For each dim of a value, the loop axis it runs along; None for a dim of size 1 or a repeated element."""


@dataclass(frozen=True, slots=True, eq=False)
class IterationSpace:
    """The axes of a loop nest.

    Attributes:
        extents: how long each axis is.
        reduced: the axes that the nest's reductions fold, or the one that its scan goes along.
        own: for each node of the body that computes, the axes of its index: the input's dims for a fold, the
            output's for any other.
        repeated: those of them whose value another node computes as well, in this body or an earlier one.
    """

    extents: tuple[int, ...]
    reduced: frozenset[int]
    own: Mapping[Node, Axes]
    repeated: frozenset[Node] = frozenset()


def _infer(*specs: TensorSpec, body: Graph, space: IterationSpace) -> tuple[TensorSpec, ...]:
    return tuple(v.spec for v in body.outputs)


def _kernel(*arrays: Any, body: Graph, space: IterationSpace) -> Any:
    raise InternalError("a fused node is run by interpreting its body")


FUSED = Op(
    name="fused",
    doc="Nodes that one loop nest computes; attrs: body (a Graph) and space (an IterationSpace).",
    infer=_infer,
    kernel=_kernel,
    kind=Opaque("its body says what it computes"),
    outputs=None,
)


def body_of(node: Node) -> Graph | None:
    """The graph inside a fused node, None for any other node."""
    return node.attrs["body"] if node.op is FUSED else None


def index_shape(node: Node) -> Sequence[int]:
    """The shape that ``node`` is computed over: a fold's input, any other's output."""
    value = node.inputs[0] if isinstance(node.op.kind, Reduce) else node.output
    return value.spec.shape  # type: ignore[return-value]  # sizes are static in the passes


def input_axes(node: Node, own: Axes) -> tuple[Axes, ...]:
    """The loop axes of each input's dims, given those of the node's own index."""
    if isinstance(node.op.kind, Gather):
        indices = node.inputs[1].spec
        axis, batch = node.attrs["axis"], node.attrs.get("batch_dims", 0)
        end = axis + indices.rank - batch
        gap: Axes = (None,)
        return (*own[:axis], *gap, *own[end:]), (*own[:batch], *own[axis:end])
    return tuple([_broadcast_axes(own, v.spec.shape) for v in node.inputs])


def _broadcast_axes(own: Axes, shape: Shape) -> Axes:
    """The loop axes of an operand's dims, which are the last of the index where they aren't 1."""
    last = own[len(own) - len(shape) :]
    return tuple([None if d == 1 else a for a, d in zip(last, shape, strict=True)]) if 1 in shape else last


def output_axes(node: Node, own: Axes) -> Axes:
    """The loop axes of the output's dims, given those of the node's own index."""
    if not isinstance(node.op.kind, Reduce):
        return own
    folded, keepdims = set(node.attrs["axis"]), node.attrs["keepdims"]
    return tuple(None if i in folded else a for i, a in enumerate(own) if keepdims or i not in folded)


def reduced_axes(node: Node, own: Axes) -> frozenset[int]:
    """The loop axes that a fold folds, or that a scan goes along; none for any other node."""
    kind = node.op.kind
    if not isinstance(kind, Reduce | Scan):
        return frozenset()
    folded = node.attrs["axis"] if isinstance(kind, Reduce) else (node.attrs["axis"],)
    return frozenset(a for i in folded if (a := own[i]) is not None)


def fold_of(node: Node) -> Reduce:
    """What a node folds elements by."""
    kind = node.op.kind
    if isinstance(kind, Scan):
        return kind.exclusive if node.attrs["exclusive"] else kind.inclusive
    assert isinstance(kind, Reduce)
    return kind


def axis_set(axes: Axes) -> frozenset[int]:
    """The loop axes that a value varies along."""
    return frozenset(a for a in axes if a is not None)
