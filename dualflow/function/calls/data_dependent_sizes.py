"""Detects graphs in which sizes depend on data, and converts such a graph to one node that NumPy runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dualflow.core.records import dataclass, field
from dualflow.core.spec import TensorSpec
from dualflow.graph.control_spec import effect_of, loop_of
from dualflow.graph.interpret import evaluate
from dualflow.graph.ir import BodySpec, Graph, Node, Update, Value
from dualflow.ops.op_kinds import Decompose, Elementwise, Loop, Opaque
from dualflow.ops.record import Effect, Op
from dualflow.sizes.symbolic_sizes import SizeVariable, size_variables

Array = np.ndarray[Any, Any]


def sized_by_data(graph: Graph) -> Node | None:
    """The first node with a result whose size depends on data, or that reads sizes; None if there is none.

    The length of a loop's stack is no such size, since only loops over its rows read it.
    """
    has_dynamic_inputs = any(not v.spec.shape.is_static for v in graph.inputs)
    for node in graph.nodes:
        if isinstance(node.op.kind, Decompose):
            return node
        if not has_dynamic_inputs and isinstance(node.op.kind, Elementwise):
            continue
        if any(not spec.shape.is_static for spec in _sizes_read(node, has_dynamic_inputs)):
            return node
        for _, body in node.bodies:
            inner = sized_by_data(body)
            if inner is not None:
                return inner
    return None


def _sizes_read(node: Node, has_dynamic_inputs: bool) -> Sequence[TensorSpec]:
    """The specs whose sizes a program reads to run ``node``: all with dynamic inputs, else those of results.

    A loop's stacks are excluded, since a stack stores its own length.
    """
    if has_dynamic_inputs:
        return (*node.specs, *[v.spec for v in node.inputs])
    if not isinstance(node.op.kind, Loop):
        return node.specs
    return loop_of(node).split_results(node.specs).carried


@dataclass(frozen=True, slots=True)
class InterpretedSpec(BodySpec):
    """The attribute of a node that runs a whole graph through NumPy.

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


def is_one_node(graph: Graph) -> bool:
    """Whether a graph is a result of :func:`as_one_node`, on which no pass has run."""
    return any(isinstance(node.attrs.get("interpreted"), InterpretedSpec) for node in graph.nodes)


def as_one_node(graph: Graph, cause: Node) -> Graph:
    """A graph with one node, which runs the nodes of ``graph`` through NumPy.

    ``cause`` is the node whose size depends on data; reports name it.
    """
    body = Graph(graph.name, graph.inputs, graph.nodes, graph.results)
    where = f" in line {cause.origin.line}" if cause.origin is not None else ""
    op = _all_ops(f"the size of the result of {cause.op.name}{where} depends on data")
    node = Node(op, graph.inputs, {"interpreted": InterpretedSpec(body)}, [v.spec for v in graph.results])
    count = len(graph.outputs)
    updates = [Update(u.input, v) for u, v in zip(graph.updates, node.outputs[count:], strict=True)]
    return Graph(graph.name, graph.inputs, (node,), node.outputs[:count], graph.captures, tuple(updates))


class _AllOps(Op):
    """An op that runs a whole graph through NumPy, for a reason that reports show.

    It is pickled as the reason.
    """

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


def changed_sizes(
    carry: Sequence[TensorSpec], results: Sequence[Value], changing: set[SizeVariable]
) -> list[tuple[int, int]]:
    """``(index, axis)`` of each carried size that an iteration changes, without those in ``changing``."""
    differing = []
    for index, spec in enumerate(carry):
        for axis, (before, after) in enumerate(zip(spec.shape, results[index].spec.shape, strict=True)):
            if before != after and not size_variables((before,)) & changing:
                differing.append((index, axis))
    return differing
