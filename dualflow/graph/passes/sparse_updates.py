"""Sparse updates: steps along a gradient with few nonzero rows change only these rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from dualflow.core.dtypes import int32
from dualflow.core.records import NamedTuple
from dualflow.core.shape import Shape
from dualflow.graph.cost_model import CostModel
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.graph.rewrite import Expansion, rebuild
from dualflow.graph.scalar_functions import scalar_op_of
from dualflow.graph.size_guards import decided_by_guards
from dualflow.graph.views import sizes
from dualflow.ops.arithmetic import multiply, subtract
from dualflow.ops.arrangement import RESHAPE
from dualflow.ops.broadcasting import BROADCAST_TO
from dualflow.ops.creation import CONSTANT
from dualflow.ops.op_kinds import Literal
from dualflow.ops.positions import IOTA
from dualflow.ops.record import Op
from dualflow.ops.scattering import UPDATE_ND
from dualflow.ops.taking import GATHER, SCATTER_ADD
from dualflow.scalar import ScalarOp
from dualflow.sizes.symbolic_sizes import UndecidedSize, is_static


def step_on_rows(graph: Graph, costs: CostModel) -> Graph:
    """v - c * scatter(i, rows) = ``v`` with the rows at ``i`` updated, if nothing else reads the scatter.

    It is exact: ``v - c * 0`` is ``v`` to the bit for constants ``c > 0``. Rows with the same index are added
    first, in the order in which the scatter adds them: the number of one of them is written to a table at
    that index, and all of them are added to the sum of that number.
    """
    if SCATTER_ADD not in graph.ops:
        return graph
    once = _read_once(graph)
    changed = rebuild(graph, lambda original, node: _on_rows(original, node, once, costs))
    return graph if changed is graph else eliminate_dead_code(changed)


def compared_sizes(graph: Graph, costs: CostModel) -> Iterator[tuple[int, int]]:
    """Pairs of sizes of which :func:`step_on_rows` reads whether the first is less, if one is symbolic."""
    if SCATTER_ADD not in graph.ops:
        return
    once = _read_once(graph)
    for node in graph.nodes:
        step = _step(node, once, costs)
        if step is not None and not is_static(step.compared):
            yield step.compared


def _read_once(graph: Graph) -> set[Value]:
    """The values that are no results and have one reader."""
    results = set(graph.results)
    return {v for v, readers in graph.users().items() if len(readers) == 1 and v not in results}


class _Step(NamedTuple):
    """An update ``v - factor * scatter`` that changes rows of a static size.

    Attributes:
        scatter: the gradient.
        factor: a positive constant; None if there is none.
        compared: the number of all rows, and the number from which changed rows are too many. It pays to
            change these alone unless the first is less than the second.
    """

    scatter: Node
    factor: Value | None
    compared: tuple[int, int]


def _step(node: Node, once: set[Value], costs: CostModel) -> _Step | None:
    if scalar_op_of(node) is not ScalarOp.SUBTRACT or node.inputs[0].spec != node.output.spec:
        return None
    term, factor = node.inputs[1], None
    producer = term.node
    if producer is not None and term in once and scalar_op_of(producer) is ScalarOp.MULTIPLY:
        constants = [v for v in producer.inputs if _is_positive(v)]
        scatters = [v for v in producer.inputs if v not in constants]
        if len(constants) != 1 or len(scatters) != 1:
            return None
        (factor,), (term,) = constants, scatters
    scatter = term.node
    if scatter is None or scatter.op is not SCATTER_ADD or term not in once:
        return None
    if scatter.attrs["axis"] != 0 or scatter.output.spec != node.output.spec:
        return None
    shape, count = sizes(node.output), math.prod(sizes(scatter.inputs[0]))
    if not is_static(shape) or count == 0 or math.prod(shape[1:]) < costs.sparse_row:
        return None
    return _Step(scatter, factor, (shape[0], count * costs.sparse_rows))


def _is_positive(value: Value) -> bool:
    """Whether ``value`` is a positive finite scalar constant."""
    node = value.node
    if node is None or not isinstance(node.op.kind, Literal) or value.spec.rank:
        return False
    number = node.attrs["value"]
    return bool(np.issubdtype(number.dtype, np.floating) and np.isfinite(number) and number > 0)


def _pays(step: _Step) -> bool:
    """Whether changing the rows alone is faster: for a symbolic number of them, if a guard decides it."""
    try:
        with decided_by_guards():
            return not step.compared[0] < step.compared[1]
    except UndecidedSize:
        return False


def _on_rows(original: Node, node: Node, once: set[Value], costs: CostModel) -> Expansion | None:
    if original is not node:  # an operand was replaced: of two dependent steps, one stays
        return None
    step = _step(node, once, costs)
    if step is None or not _pays(step):
        return None
    new_nodes: list[Node] = []

    def append(op: Op, *inputs: Value, **attrs: Any) -> Value:
        specs = op.specs([v.spec for v in inputs], attrs)
        new_nodes.append(Node(op, inputs, attrs, specs, step.scatter.origin, step.scatter.merged_origins))
        return new_nodes[-1].output

    indices, rows = step.scatter.inputs
    old = node.inputs[0]
    size, *row = sizes(old)
    count = math.prod(sizes(indices))
    flat = indices.spec.rank == 1
    at = indices if flat else append(RESHAPE, indices, shape=Shape((count,)))
    positions = append(RESHAPE, indices, shape=Shape((count, 1)))
    zero = append(CONSTANT, value=np.zeros((), np.int32))
    table = append(BROADCAST_TO, zero, shape=Shape((size,)))
    if type(count) is int:
        numbers = append(CONSTANT, value=np.arange(count, dtype=np.int32))
    else:
        numbers = append(IOTA, shape=(count,), axis=0, dtype=int32)
    table = append(UPDATE_ND, table, positions, numbers)
    number = append(GATHER, table, at, axis=0)
    rows = rows if flat else append(RESHAPE, rows, shape=Shape((count, *row)))
    sums = append(SCATTER_ADD, number, rows, axis=0, size=count)
    change = append(GATHER, sums, number, axis=0)
    if step.factor is not None:
        change = append(multiply.op, change, step.factor)
    new = append(subtract.op, append(GATHER, old, at, axis=0), change)
    return Expansion(new_nodes, [append(UPDATE_ND, old, positions, new)])
