"""Nodes that tell a program its sizes: what reads one, what compares two, and elements by another size."""

from __future__ import annotations

from typing import Any, Final

from dualflow.core.errors import InternalError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.symbolic_sizes import size_variables
from dualflow.graph.ir import Graph, Node
from dualflow.ops.op_kinds import Check, View
from dualflow.ops.record import Effect, Op


def _compiled_only(*inputs: Any, **attrs: Any) -> Any:
    raise InternalError("graphs with extents are compiled, not interpreted")


MEASURE: Final = Op(
    name="measure",
    doc="""Gives the symbol ``extent`` its number, which is not below ``least``.

    That is the integer ``index`` of the input, or what ``value`` makes of other symbols, or the size of an
    axis of an input of the graph: ``given`` has the numbers of both. ``asked_by`` is the op that needs it.
    """,
    infer=lambda *inputs, extent, value=None, index=0, least=None, given=None, asked_by="": (),
    kernel=_compiled_only,
    kind=Check(),
    outputs=None,
    effect=Effect.CHECK,
)

REQUIRE: Final = Op(
    name="require_size",
    doc="""Stops the program unless ``x`` is ``y``, or 1 where it ``repeats``.

    ``message`` is that of the error, with {0} and {1} in the place of the two ``shapes``, which are sizes of
    the op ``asked_by``.
    """,
    infer=lambda x, y, message, shapes, repeats, asked_by="": (),
    kernel=_compiled_only,
    kind=Check(),
    outputs=None,
    effect=Effect.CHECK,
)

NAMED: Final = Op(
    name="of_shape",
    doc="The input by sizes that are equal to its own, as has been checked; where it ``repeats``, or are 1.",
    infer=lambda x, shape, repeats: TensorSpec.of(Shape(shape), x.dtype),
    kernel=_compiled_only,
    kind=View(lambda x, shape, repeats: x.by_sizes(shape, repeats=repeats)),
)


def measures(node: Node) -> bool:
    """Whether ``node`` reads a size, or compares sizes."""
    return node.op is MEASURE or node.op is REQUIRE


def tells_sizes(node: Node) -> bool:
    """Whether ``node``, or a graph inside it, reads a size: what comes behind it may depend on that."""
    if node.effect is None:
        return False
    return measures(node) or any(has_extents(body) for _, body in node.bodies)


def has_extents(graph: Graph) -> bool:
    """Whether ``graph`` reads a size when it runs."""
    return any(map(tells_sizes, graph.nodes))


def depends_on_extents(node: Node) -> bool:
    """Whether some size of ``node`` is known only when it runs."""
    values = (*node.inputs, *node.outputs)
    return any(size_variables(tuple(v.spec.shape)) for v in values) or bool(size_variables(dict(node.attrs)))
