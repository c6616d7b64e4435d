"""Loop-invariant code motion."""

from __future__ import annotations

from collections.abc import Sequence

from dualflow.core.records import NamedTuple, replace
from dualflow.graph.control_ops import LOOP
from dualflow.graph.control_spec import LoopSpec, loop_of
from dualflow.graph.extract import ancestors
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.passes.common_subexpressions import merge_common_subexpressions
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.graph.passes.over_bodies import inside_out
from dualflow.graph.passes.trimming import trim_control
from dualflow.graph.rewrite import Expansion, copied, expand, rebuild, removal
from dualflow.graph.symbolic_size_ops import has_symbolic_sizes
from dualflow.graph.views import base_of, is_generated
from dualflow.ops.op_kinds import CopyPieces, Elementwise, Literal, Loop, MatMul, Reduce, View
from dualflow.sizes.symbolic_sizes import typical


@inside_out
def hoist_invariants(graph: Graph) -> Graph:
    """``graph`` with loop invariants hoisted out of loops.

    Views, constants, and values that are computed from indices alone stay in the loop, where they are free.
    If the loop may have no iteration, nodes that may fail stay too.
    """
    hoisted = expand(graph, _hoist_from, (Loop,))
    return hoisted if hoisted is graph else trim_control(merge_common_subexpressions(hoisted))


def _hoist_from(node: Node) -> Expansion | None:
    """The loop ``node`` without invariant nodes, after copies of these; None if nothing can be hoisted."""
    loop = loop_of(node)
    if any(map(has_symbolic_sizes, loop.graphs)):  # each iteration has sizes of its own
        return None
    parts = [_hoistable(loop.body, loop.end, always_runs=_has_iterations(loop) and node.effect is None)]
    if loop.condition is not None:
        parts.append(_hoistable(loop.condition, loop.end, always_runs=loop.length != 0))
    if not any(p.values for p in parts):
        return None
    nodes: list[Node] = []
    new: list[Value] = []
    for part in parts:
        outer = dict(zip(part.graph.inputs, node.inputs, strict=True))
        nodes += copied(part.nodes, outer)
        new += [outer[v] for v in part.values]
    body, *tests = [_with_hoisted_as_inputs(i, parts) for i in range(len(parts))]
    lighter = loop.as_new_loop(body=body, condition=tests[0] if tests else None)
    new_loop = Node(
        LOOP, (*node.inputs, *new), {"loop": lighter}, node.specs, node.origin, node.merged_origins
    )
    return Expansion((*nodes, new_loop), new_loop.outputs)


def _has_iterations(loop: LoopSpec) -> bool:
    """Whether the loop has at least one iteration."""
    return type(loop.iterations) is int and loop.iterations > 0


class _HoistableNodes(NamedTuple):
    """The nodes to hoist out of the body or condition of a loop, and their values that it reads."""

    graph: Graph
    nodes: Sequence[Node]
    values: Sequence[Value]


def _hoistable(graph: Graph, start: int, *, always_runs: bool) -> _HoistableNodes:
    """The nodes that can be hoisted out of ``graph``, whose inputs from ``start`` on are invariant."""
    invariant_values = set(graph.inputs[start:])
    hoisted: set[Node] = set()
    for node in graph.nodes:
        if node.effect is None and invariant_values.issuperset(node.inputs):
            if _costs_nothing(node):
                invariant_values.update(node.outputs)
            elif (always_runs or _never_fails(node)) and _is_no_larger(node):
                invariant_values.update(node.outputs)
                hoisted.add(node)
    hoisted_values = [v for n in graph.nodes if n in hoisted for v in n.outputs]
    effects = [n for n in graph.nodes if n.effect is not None]
    staying, _ = ancestors(graph.outputs, hoisted_values, effects)
    read = {v for n in staying for v in n.inputs} | set(graph.outputs)
    values = [v for v in hoisted_values if v in read]
    needed, _ = ancestors(values, ())
    return _HoistableNodes(graph, [n for n in graph.nodes if n in needed], values)


def _costs_nothing(node: Node) -> bool:
    return isinstance(node.op.kind, View | Literal) or any(map(is_generated, node.outputs))


def _never_fails(node: Node) -> bool:
    """Whether ``node`` can't fail for any operands: only elementwise ops on integers have checks."""
    if isinstance(node.op.kind, Elementwise):
        return node.op.kind.error is None and all(
            v.spec.dtype.is_inexact or v.spec.dtype.is_bool for v in node.inputs
        )
    return isinstance(node.op.kind, Reduce | MatMul | CopyPieces)


def _is_no_larger(node: Node) -> bool:
    """Whether the result is no larger than the operands: broadcasts are cheaper to compute than to read."""
    bases = list(map(base_of, node.inputs))
    if not all(v.spec.shape.is_static for v in (*bases, *node.outputs)):
        return False
    if not isinstance(node.op.kind, Elementwise):
        return True
    return typical(node.output.spec.size) <= max(typical(v.spec.size) for v in bases)


def _with_hoisted_as_inputs(index: int, parts: Sequence[_HoistableNodes]) -> Graph:
    """A graph of a loop (condition or body) with all hoisted values as further inputs."""
    graph = parts[index].graph
    inputs = list(graph.inputs)
    replaced: dict[Value, Value] = {}
    for i, part in enumerate(parts):
        for value in part.values:
            inputs.append(Value(value.spec))
            if i == index:
                replaced[value] = inputs[-1]
    removed = {v.node for v in replaced}
    lighter = rebuild(graph, lambda node, _: removal(node) if node in removed else None, replaced)
    return eliminate_dead_code(replace(lighter, inputs=tuple(inputs)))
