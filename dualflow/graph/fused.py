"""Fused nodes, whose body is a graph that one loop nest computes, and products with such a nest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dualflow.core.errors import InternalError
from dualflow.core.records import dataclass
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.graph.ir import Graph, Node, Value
from dualflow.ops.op_kinds import Gather, MatMul, Opaque, Reduce, Scan
from dualflow.ops.record import Op

Axes = tuple[int | None, ...]
"""For each axis of a value, the axis of the iteration space; None if the size is 1 or it is broadcast."""
_NO_AXES: Final[frozenset[int]] = frozenset()
_REDUCING: Final = (Reduce, Scan)


@dataclass(frozen=True, slots=True, eq=False)
class IterationSpace:
    """The iteration space of a fused node: the axes that its loops run over.

    Attributes:
        shape: the size of each axis.
        reduced: the axes of the reduction loops, or of the scan.
        index_axes: for each node of the body that computes, the loop axes of its index: of its operand's dims
            for a reduction, else of its output's.
        repeated: the nodes whose value another node computes as well, in this body or an earlier one.
    """

    shape: tuple[int, ...]
    reduced: frozenset[int]
    index_axes: Mapping[Node, Axes]
    repeated: frozenset[Node] = frozenset()


def _infer(*specs: TensorSpec, body: Graph, space: IterationSpace) -> tuple[TensorSpec, ...]:
    return tuple(v.spec for v in body.outputs)


def _kernel(*arrays: Any, body: Graph, space: IterationSpace) -> Any:
    raise InternalError("a fused node has no kernel: the interpreter runs its body")


FUSED = Op(
    name="fused",
    doc="Nodes that one loop nest computes; attrs: body (a Graph) and space (an IterationSpace).",
    infer=_infer,
    kernel=_kernel,
    kind=Opaque("its body is what it computes"),
    outputs=None,
)

FUSED_PRODUCT = Op(
    name="fused_product",
    doc="""A matrix product and its epilogue, a nest that computes the outputs from the product's elements;
    attrs: those of ``fused``. The first node of the body is the product, whose operands are the first inputs.
    """,
    infer=_infer,
    kernel=_kernel,
    kind=MatMul(),
    outputs=None,
)


def body_of(node: Node) -> Graph | None:
    """The body of a fused node, or of a product with an epilogue; None for any other node."""
    return node.attrs["body"] if node.op is FUSED or node.op is FUSED_PRODUCT else None


def computed_op_names(node: Node) -> str:
    """The name of a node's op; of a fused node, the names of the ops that it computes, joined by plus."""
    body = body_of(node)
    return node.op.name if body is None else body.name


def computed_nodes(node: Node) -> tuple[Node, ...]:
    """The nodes that a node of an optimised graph computes: those of its body, or the node itself."""
    body = body_of(node)
    return (node,) if body is None else body.nodes


def product_of(node: Node) -> Node:
    """The matrix product inside a product with an epilogue; the node itself for any other node."""
    return node.attrs["body"].nodes[0] if node.op is FUSED_PRODUCT else node


def epilogue_of(node: Node) -> Node:
    """The fused node of the epilogue of a product; its first input is the product, or a view of all of it."""
    body, space = node.attrs["body"], node.attrs["space"]
    product = body.nodes[0]
    before = {product.output}
    nodes = []
    for inner in body.nodes[1:]:
        if inner not in space.index_axes and not before.isdisjoint(inner.inputs):
            before.update(inner.outputs)
        else:
            nodes.append(inner)
    (element,) = {v for n in nodes for v in n.inputs if v in before}
    others = slice(len(product.inputs), None)
    graph = Graph(body.name, (element, *body.inputs[others]), tuple(nodes), body.outputs)
    inputs = (Value(element.spec), *node.inputs[others])
    attrs = {"body": graph, "space": space}
    return Node(FUSED, inputs, attrs, node.specs, node.origin, node.merged_origins)


def index_shape(node: Node) -> Sequence[int]:
    """The shape that the loops of ``node`` run over: that of a reduction's operand, else of the output."""
    value = node.inputs[0] if isinstance(node.op.kind, Reduce) else node.output
    return value.spec.shape  # type: ignore[return-value]  # sizes are static in the passes


def input_axes(node: Node, index_axes: Axes) -> tuple[Axes, ...]:
    """For each operand, the loop axis of each of its axes, given those of the node's index."""
    if isinstance(node.op.kind, Gather):
        indices = node.inputs[1].spec
        axis, batch = node.attrs["axis"], node.attrs.get("batch_dims", 0)
        end = axis + indices.rank - batch
        gap: Axes = (None,)
        return (*index_axes[:axis], *gap, *index_axes[end:]), (*index_axes[:batch], *index_axes[axis:end])
    shape = index_shape(node)
    return tuple(
        [
            index_axes if v.spec.shape is shape else _broadcast_axes(index_axes, v.spec.shape)
            for v in node.inputs
        ]
    )


def operands_with_axes(node: Node, index_axes: Axes) -> tuple[tuple[Value, Axes], ...]:
    """The operands of a node, each with the loop axes that :func:`input_axes` returns for it."""
    return tuple(zip(node.inputs, input_axes(node, index_axes), strict=True))


def _broadcast_axes(index_axes: Axes, shape: Shape) -> Axes:
    """The loop axes of an operand that broadcasts to the index: the last ones, except for dims of size 1."""
    last = index_axes[len(index_axes) - len(shape) :]
    return tuple([None if d == 1 else a for a, d in zip(last, shape, strict=True)]) if 1 in shape else last


def output_axes(node: Node, index_axes: Axes) -> Axes:
    """For each axis of the output, the loop that runs along it; ``index_axes`` are all loops of the node."""
    if not isinstance(node.op.kind, Reduce):
        return index_axes
    folded, keepdims = set(node.attrs["axis"]), node.attrs["keepdims"]
    return tuple(
        [None if i in folded else a for i, a in enumerate(index_axes) if keepdims or i not in folded]
    )


def reduced_axes(node: Node, index_axes: Axes) -> frozenset[int]:
    """The loop axes that a reduction or scan runs along; empty for any other node."""
    kind = node.op.kind
    if not isinstance(kind, _REDUCING):
        return _NO_AXES
    folded = node.attrs["axis"] if isinstance(kind, Reduce) else (node.attrs["axis"],)
    return frozenset([a for i in folded if (a := index_axes[i]) is not None])


def reduction_kind_of(node: Node) -> Reduce:
    """The op kind of a reduction, or of the reduction that a scan applies to each prefix."""
    kind = node.op.kind
    if isinstance(kind, Scan):
        return kind.exclusive if node.attrs["exclusive"] else kind.inclusive
    assert isinstance(kind, Reduce)
    return kind


def axis_set(axes: Axes) -> frozenset[int]:
    """The loop axes that a value varies along."""
    return frozenset([a for a in axes if a is not None])
