"""Loop-invariant code motion: what each iteration computes from what never changes is computed once,
before."""

from __future__ import annotations

from collections.abc import Sequence

from dualflow.core.records import NamedTuple, replace
from dualflow.core.symbolic_sizes import typical
from dualflow.graph.axes import base_of, is_generated
from dualflow.graph.control import LOOP
from dualflow.graph.control_spec import LoopSpec, loop_of
from dualflow.graph.extract import ancestors
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.passes.bodies import inside_out
from dualflow.graph.passes.common_subexpressions import merge_common_subexpressions
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.graph.passes.trimming import trim_control
from dualflow.graph.rewrite import Expansion, copied, expand, rebuild, without
from dualflow.graph.run_time_sizes import has_symbolic_sizes
from dualflow.ops.op_kinds import CopyPieces, Elementwise, Literal, Loop, MatMul, Reduce, View


@inside_out
def hoist_invariants(graph: Graph) -> Graph:
    """``graph`` whose loops read from before them what no iteration changes.

    Views, literals and what is computed from positions alone stay where they are read, since they cost
    nothing there. A loop that may have no iteration keeps what may fail.
    """
    found = expand(graph, _lightened, (Loop,))
    return found if found is graph else trim_control(merge_common_subexpressions(found))


def _lightened(node: Node) -> Expansion | None:
    loop = loop_of(node)
    if any(map(has_symbolic_sizes, loop.graphs)):  # each iteration has sizes of its own
        return None
    parts = [_steady(loop.body, loop.end, sure=_has_iterations(loop) and node.effect is None)]
    if loop.condition is not None:
        parts.append(_steady(loop.condition, loop.end, sure=loop.length != 0))
    if not any(p.values for p in parts):
        return None
    nodes: list[Node] = []
    new: list[Value] = []
    for part in parts:
        outer = dict(zip(part.graph.inputs, node.inputs, strict=True))
        nodes += copied(part.nodes, outer)
        new += [outer[v] for v in part.values]
    body, *tests = [_without(i, parts) for i in range(len(parts))]
    lighter = loop.another(body=body, condition=tests[0] if tests else None)
    made = Node(LOOP, (*node.inputs, *new), {"loop": lighter}, node.specs, node.origin, node.also)
    return Expansion((*nodes, made), made.outputs)


def _has_iterations(loop: LoopSpec) -> bool:
    """Whether there is an iteration for sure."""
    return type(loop.iterations) is int and loop.iterations > 0


class _Steady(NamedTuple):
    """The nodes of a loop's body, or of its condition, that go before it, and what others read of them."""

    graph: Graph
    nodes: Sequence[Node]
    values: Sequence[Value]


def _steady(graph: Graph, start: int, *, sure: bool) -> _Steady:
    """What may leave a graph whose inputs from ``start`` on never change, and that is ``sure`` to run."""
    known = set(graph.inputs[start:])
    moved: set[Node] = set()
    for node in graph.nodes:
        if node.effect is None and known.issuperset(node.inputs):
            if _costs_nothing(node):
                known.update(node.outputs)
            elif (sure or _never_fails(node)) and _is_no_larger(node):
                known.update(node.outputs)
                moved.add(node)
    made = [v for n in graph.nodes if n in moved for v in n.outputs]
    effects = [n for n in graph.nodes if n.effect is not None]
    staying, _ = ancestors(graph.outputs, made, effects)
    read = {v for n in staying for v in n.inputs} | set(graph.outputs)
    values = [v for v in made if v in read]
    needed, _ = ancestors(values, ())
    return _Steady(graph, [n for n in graph.nodes if n in needed], values)


def _costs_nothing(node: Node) -> bool:
    return isinstance(node.op.kind, View | Literal) or any(map(is_generated, node.outputs))


def _never_fails(node: Node) -> bool:
    """Whether no values make ``node`` fail: the checks of element code are those of integers."""
    if isinstance(node.op.kind, Elementwise):
        return node.op.kind.error is None and all(
            v.spec.dtype.is_inexact or v.spec.dtype.is_bool for v in node.inputs
        )
    return isinstance(node.op.kind, Reduce | MatMul | CopyPieces)


def _is_no_larger(node: Node) -> bool:
    """Whether ``node`` is worth its memory: an element's repetition is cheaper to compute than to read."""
    bases = list(map(base_of, node.inputs))
    if not all(v.spec.shape.is_static for v in (*bases, *node.outputs)):
        return False
    if not isinstance(node.op.kind, Elementwise):
        return True
    return typical(node.output.spec.size) <= max(typical(v.spec.size) for v in bases)


def _without(place: int, parts: Sequence[_Steady]) -> Graph:
    """The graph of a part, which reads what goes before the loop; all take the same inputs."""
    graph = parts[place].graph
    inputs = list(graph.inputs)
    moved: dict[Value, Value] = {}
    for i, part in enumerate(parts):
        for value in part.values:
            inputs.append(Value(value.spec))
            if i == place:
                moved[value] = inputs[-1]
    gone = {v.node for v in moved}
    lighter = rebuild(graph, lambda node, _: without(node) if node in gone else None, moved)
    return eliminate_dead_code(replace(lighter, inputs=tuple(inputs)))
