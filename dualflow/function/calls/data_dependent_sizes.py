"""Graphs in which sizes depend on data: a test for them, and such a graph as one node that NumPy runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dualflow.core.records import dataclass, field
from dualflow.core.spec import TensorSpec
from dualflow.graph.control_spec import effect_of, loop_of
from dualflow.graph.interpret import evaluate
from dualflow.graph.ir import BodySpec, Graph, Node, Update
from dualflow.ops.op_kinds import Decompose, Elementwise, Loop, Opaque
from dualflow.ops.record import Effect, Op

Array = np.ndarray[Any, Any]


def sized_by_data(graph: Graph) -> Node | None:
    """The first node with a result whose size depends on data, or that reads sizes; None if there is none.

    The length of a loop's stack doesn't count: the nodes that read a stack iterate over its rows.
    """
    open_inputs = any(not v.spec.shape.is_static for v in graph.inputs)
    for node in graph.nodes:
        if isinstance(node.op.kind, Decompose):
            return node
        if not open_inputs and isinstance(node.op.kind, Elementwise):
            continue
        if any(not spec.shape.is_static for spec in _sizes_read(node, open_inputs)):
            return node
        for _, body in node.bodies:
            inner = sized_by_data(body)
            if inner is not None:
                return inner
    return None


def _sizes_read(node: Node, open_inputs: bool) -> Sequence[TensorSpec]:
    """The values of ``node`` whose sizes the program reads: with open inputs all of them, else the results.

    A stack stores its own length.
    """
    if open_inputs:
        return (*node.specs, *[v.spec for v in node.inputs])
    if not isinstance(node.op.kind, Loop):
        return node.specs
    return node.specs[: loop_of(node).carried]


@dataclass(frozen=True, slots=True)
class InterpretedSpec(BodySpec):
    """The attribute of a node that runs a graph through NumPy.

    Attributes:
        body: the graph.
        effect: the effect of running it; None if it only computes results.
    """

    body: Graph
    effect: Effect | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "effect", effect_of([self.body]))

    @property
    def bodies(self) -> tuple[tuple[str, Graph], ...]:
        return (("body", self.body),)

    @property
    def settings(self) -> Mapping[str, Any]:
        return {}

    def with_bodies(self, change: Callable[[Graph], Graph]) -> InterpretedSpec:
        return InterpretedSpec(change(self.body))


def as_one_node(graph: Graph, cause: Node) -> Graph:
    """``graph`` as one node, which runs it op by op through NumPy; ``cause`` is the reason."""
    body = Graph(graph.name, graph.inputs, graph.nodes, graph.results)
    where = f" in line {cause.origin.line}" if cause.origin is not None else ""
    op = _all_ops(f"the size of the result of {cause.op.name}{where} depends on data")
    node = Node(op, graph.inputs, {"interpreted": InterpretedSpec(body)}, [v.spec for v in graph.results])
    count = len(graph.outputs)
    updates = [Update(u.input, v) for u, v in zip(graph.updates, node.outputs[count:], strict=True)]
    return Graph(graph.name, graph.inputs, (node,), node.outputs[:count], graph.captures, tuple(updates))


class _AllOps(Op):
    """The op of such a node, a new one for each reason; it is pickled as its reason."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        assert isinstance(self.kind, Opaque), "NumPy runs it"
        return _all_ops, (self.kind.reason,)


def _all_ops(reason: str) -> Op:
    return _AllOps(
        name="all_ops",
        doc="A graph, op by op.",
        infer=_infer,
        kernel=_run,
        kind=Opaque(reason),
        outputs=None,
        effect=Effect.INSIDE,
    )


def _infer(*specs: TensorSpec, interpreted: InterpretedSpec) -> tuple[TensorSpec, ...]:
    return tuple(v.spec for v in interpreted.body.outputs)


def _run(*arrays: Array, interpreted: InterpretedSpec) -> tuple[Array, ...]:
    return tuple(evaluate(interpreted.body, arrays))
