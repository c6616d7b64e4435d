"""Builds the result of fusion: the graph in which each group of nodes is one fused node."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from dualflow.core.records import NamedTuple, dataclass, field
from dualflow.graph.column_reductions import MIN_ELEMENTS
from dualflow.graph.cost_model import CostModel
from dualflow.graph.failing import may_fail
from dualflow.graph.fused import FUSED, Axes, IterationSpace, operands_with_axes, output_axes, reduced_axes
from dualflow.graph.ir import Graph, Node, Update, Value
from dualflow.graph.views import bases_of, is_generated, is_scalar_literal, is_view
from dualflow.ops.op_kinds import Elementwise, Gather, Reduce, Scan, View
from dualflow.sizes.symbolic_sizes import typical


class Stages(NamedTuple):
    """When a node of a fused node is computed: its stages, which are passes over the reduction loops.

    Attributes:
        available_from: the stage from which on its value is available.
        number: the number of stages that its computation needs.
    """

    available_from: int
    number: int


FIRST = Stages(0, 1)
"""The stages of a node that depends on no reduction."""
_RECOMPUTING: Final = (Elementwise, Reduce)
"""The kinds of nodes that can recompute an operand in place of reading it."""


@dataclass(slots=True, eq=False)
class Group:
    """Nodes that one loop nest computes.

    Attributes:
        position: its position among all groups.
        shape: the sizes of the iteration space.
        result_axes: the loop axes of the values that it computes.
        operand_axes: the loop axes of the values that it reads.
        first_consumer: the smallest position of a consumer.
        stage: for each node, the stage from which on its value is available.
        stages: the number of stages.
    """

    position: int
    shape: tuple[int, ...]
    nodes: list[Node] = field(default_factory=list)
    index_axes: dict[Node, Axes] = field(default_factory=dict)
    result_axes: dict[Value, Axes] = field(default_factory=dict)
    operand_axes: dict[Value, Axes] = field(default_factory=dict)
    reduced: frozenset[int] = frozenset()
    stage: dict[Node, int] = field(default_factory=dict)
    stages: int = 1
    first_consumer: float = math.inf
    all_axes: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        self.all_axes = frozenset(range(len(self.shape)))

    @property
    def parallel_axes(self) -> frozenset[int]:
        return self.all_axes - self.reduced

    @property
    def is_scan(self) -> bool:
        """Whether this group is a scan, whose loop nest computes nothing else."""
        return isinstance(self.nodes[0].op.kind, Scan)

    def add(self, node: Node, index_axes: Axes, at: Stages = FIRST) -> None:
        """Add ``node``, whose index has the loop axes ``index_axes``."""
        self.nodes.append(node)
        self.index_axes[node] = index_axes
        axes = output_axes(node, index_axes)
        for value in node.outputs:
            self.result_axes[value] = axes
        if reduced := reduced_axes(node, index_axes):
            self.reduced |= reduced
        for value, axes in operands_with_axes(node, index_axes):
            self.operand_axes.setdefault(value, axes)
        self.stage[node] = at.available_from
        self.stages = max(self.stages, at.number)


def regroup(graph: Graph, groups: Sequence[Group], costs: CostModel) -> Graph:
    """``graph`` with each group replaced by a fused node, in the order of positions."""
    rebuild = _Rebuild(graph, groups, costs)
    units: list[tuple[int, Node | Group]] = [(g.position, g) for g in groups]
    units += [
        (i, n)
        for i, n in enumerate(graph.nodes)
        if n not in rebuild.group_of and rebuild.is_copied_in_order(n)
    ]
    for _, unit in sorted(units, key=lambda u: u[0]):
        rebuild.copy(unit) if isinstance(unit, Node) else rebuild.fuse(unit)
    outputs = tuple(rebuild.value(v) for v in graph.outputs)
    updates = tuple(Update(u.input, rebuild.value(u.value)) for u in graph.updates)
    return Graph(graph.name, graph.inputs, tuple(rebuild.nodes), outputs, graph.captures, updates)


class _Rebuild:
    """The nodes of the new graph so far, and the new value of each value of the old graph."""

    def __init__(self, graph: Graph, groups: Sequence[Group], costs: CostModel) -> None:
        self.group_of = {n: g for g in groups for n in g.nodes}
        self.nodes: list[Node] = []
        self.new: dict[Value, Value] = {v: v for v in graph.inputs}
        self.bases = bases_of(graph)
        escaping = _escaping(graph, self.group_of, self.bases, set())
        self.repeated = _repeated(graph, self.group_of, self.bases, escaping, costs)
        self.computed: set[Value] = set()
        self.escaping = (
            _escaping(graph, self.group_of, self.bases, self.repeated) if self.repeated else escaping
        )

    def is_copied_in_order(self, node: Node) -> bool:
        """Whether an unfused node keeps its position in the new graph; others are copied when read.

        Views and constants move to their readers.
        """
        return bool(node.inputs or node.effect) and not is_view(node)

    def value(self, old: Value) -> Value:
        """The new value for ``old``; a view or literal is copied when it is first read."""
        if old in self.new:
            return self.new[old]
        for node in _uncopied(old, self.new):
            self._append(node, [self.new[v] for v in node.inputs])
        return self.new[old]

    def copy(self, node: Node) -> None:
        self._append(node, [self.value(v) for v in node.inputs])

    def _append(self, node: Node, inputs: list[Value]) -> None:
        copied = node.with_inputs(inputs)
        self.nodes.append(copied)
        for old, new in zip(node.outputs, copied.outputs, strict=True):
            self.new[old] = new

    def fuse(self, group: Group) -> None:
        body = _Body(group, self)
        results = [v for n in group.nodes for v in n.outputs if v in self.escaping]
        nodes = _in_order_of_use(group, results, self.bases)
        if not nodes:  # the groups that read its values compute them
            return
        for node in nodes:
            body.copy(node)
        graph = Graph(
            name="+".join(dict.fromkeys(n.op.name for n in nodes)),
            inputs=tuple(body.inputs.values()),
            nodes=tuple(body.nodes),
            outputs=tuple(body.new[v] for v in results),
        )
        space = IterationSpace(group.shape, group.reduced, body.index_axes, frozenset(body.recomputing))
        outside = [self.value(v) for v in body.inputs]
        origin = next((n.origin for n in reversed(group.nodes) if n.origin), None)
        fused = Node(FUSED, outside, {"body": graph, "space": space}, [v.spec for v in results], origin)
        self.nodes.append(fused)
        self.new.update(zip(results, fused.outputs, strict=True))


def _in_order_of_use(group: Group, results: Sequence[Value], bases: Mapping[Value, Value]) -> Sequence[Node]:
    """The nodes of ``group`` that compute its ``results``, in the order of a depth-first walk from these.

    The order depends on nothing but the expressions, so that traces with other sizes, and other functions
    with these expressions, have the same kernels. Nodes that may fail keep the order of the trace, in which
    the first failure is the error.
    """
    ordered: dict[Node, None] = {}
    visited: set[Node] = set()
    pending = [v.node for v in reversed(results) if v.node is not None]
    while pending:
        node = pending[-1]
        if node in visited:  # all nodes that it reads are in order
            ordered[pending.pop()] = None
            continue
        visited.add(node)
        for value in reversed(node.inputs):
            producer = bases[value].node
            if producer in group.index_axes and producer not in visited:
                pending.append(producer)
    nodes = list(ordered)
    return group.nodes if nodes != group.nodes and any(map(may_fail, group.nodes)) else nodes


class _Body:
    """Builds the body of one fused node."""

    def __init__(self, group: Group, rebuild: _Rebuild) -> None:
        self.group, self.group_of, self.bases = group, rebuild.group_of, rebuild.bases
        self.repeated, self.computed = rebuild.repeated, rebuild.computed
        self.recomputing: set[Node] = set()
        self.inputs: dict[Value, Value] = {}
        self.nodes: list[Node] = []
        self.index_axes: dict[Node, Axes] = {}
        self.new: dict[Value, Value] = {}
        self.generated: dict[tuple[Value, Axes], Value] = {}

    def copy(self, node: Node) -> None:
        """Copy a node of the group, and the views, literals and generated values among its operands."""
        operands = operands_with_axes(node, self.group.index_axes[node])
        inputs = [
            self._table(v) if i == 0 and isinstance(node.op.kind, Gather) else self._read(v, axes)
            for i, (v, axes) in enumerate(operands)
        ]
        self._record_copy(node, self._append(node, inputs), self.group.index_axes[node])

    def _record_copy(self, node: Node, copy: Node, axes: Axes) -> None:
        """Record the loop axes of the copy of a node, and whether another copy computes the same value."""
        self.index_axes[copy] = axes
        if not self.computed.isdisjoint(node.outputs):
            self.recomputing.add(copy)
        self.computed.update(node.outputs)

    def _append(self, node: Node, inputs: list[Value]) -> Node:
        copied = node.with_inputs(inputs)
        self.nodes.append(copied)
        for old, new in zip(node.outputs, copied.outputs, strict=True):
            self.new[old] = new
        return copied

    def _table(self, value: Value) -> Value:
        """The table of a gather: an input in memory, even if it is a scalar literal broadcast."""
        if value not in self.inputs:
            self.inputs[value] = Value(value.spec)
            if not is_scalar_literal(value):
                self.new[value] = self.inputs[value]
        return self.inputs[value]

    def _read(self, value: Value, axes: Axes) -> Value:
        if value in self.new:
            return self.new[value]
        base = self.bases[value].node
        if is_generated(value) and value.node is not None and value.node not in self.group_of:
            return self._generate(value, value.node, axes)
        producer_group = None if base is None else self.group_of.get(base)
        if producer_group is not self.group and value in self.repeated:
            return self._repeat(value, axes)
        if producer_group is not self.group and not is_scalar_literal(value):
            self.inputs[value] = self.new[value] = Value(value.spec)
            return self.new[value]
        for node in _uncopied(value, self.new):
            self._append(node, [self.new[v] for v in node.inputs])
        return self.new[value]

    def _repeat(self, value: Value, axes: Axes) -> Value:
        """A copy of a value that another group computes as well."""
        key = value, axes
        if key not in self.generated:
            assert value.node is not None, "a node of another group computes it"
            operands = operands_with_axes(value.node, axes)
            copied = self._append(value.node, [self._read(v, a) for v, a in operands])
            del self.new[value]  # on other loop axes it is another node
            self._record_copy(value.node, copied, axes)
            self.generated[key] = copied.output
        return self.generated[key]

    def _generate(self, value: Value, node: Node, axes: Axes) -> Value:
        """A copy of a generated value, one for each combination of loop axes."""
        key = value, axes
        if key not in self.generated:
            copied = node.with_inputs(())
            self.nodes.append(copied)
            self._record_copy(node, copied, axes)
            self.generated[key] = copied.output
        return self.generated[key]


def _escaping(
    graph: Graph, group_of: dict[Node, Group], bases: Mapping[Value, Value], repeated: set[Value]
) -> set[Value]:
    """The values that a node outside their group reads, directly or through views."""
    escaping = {bases[v] for v in graph.results}
    for node in graph.nodes:
        if isinstance(node.op.kind, View):
            continue
        consumer_group = group_of.get(node)
        read = list(node.inputs)
        for value in read:  # it grows by the operands of values that are recomputed
            base = bases[value]
            if base.node is None or group_of.get(base.node) is consumer_group:
                continue
            if value in repeated and value.node is not None:
                read += value.node.inputs
            else:
                escaping.add(base)
    return escaping


def _repeated(
    graph: Graph,
    group_of: dict[Node, Group],
    bases: Mapping[Value, Value],
    written: set[Value],
    costs: CostModel,
) -> set[Value]:
    """The values that each consuming group recomputes, where that is no slower than reading them from memory.

    Each is a cheap elementwise function of one equally large array that is in memory anyway, and of smaller
    arrays. If several such values have one expensive source, the source is written to memory instead.
    ``written`` has the values that groups write if none is recomputed.
    """
    cheap = {node.output for node in group_of if _is_cheap(node)}
    if written.isdisjoint(cheap):
        return set()
    candidates = cheap.difference([bases[v] for v in graph.results], _read_elsewhere(graph, group_of))
    recipes = _recipes(graph, candidates, costs)
    sources = Counter(r.source for v, r in recipes.items() if v in written)

    def is_read(source: Value) -> bool:
        base = bases[source]
        return base.node not in group_of or base in written or sources[source] > 1

    return {v for v, r in recipes.items() if is_read(r.source)}


def _read_elsewhere(graph: Graph, group_of: dict[Node, Group]) -> set[Value]:
    """Values with a reader that can't recompute them: not an elementwise op or a reduction in a group."""
    return {
        value
        for node in graph.nodes
        if not isinstance(node.op.kind, _RECOMPUTING) or node not in group_of
        for value in node.inputs
    }


class _Recipe(NamedTuple):
    """The recomputation of a value: the large array that it reads, and the cost per element."""

    source: Value
    cost: float


def _recipes(graph: Graph, candidates: set[Value], costs: CostModel) -> dict[Value, _Recipe]:
    """The recipes of the candidates that are cheap to recompute from one array, itself no candidate."""
    recipes: dict[Value, _Recipe] = {}
    for node in graph.nodes:
        if not candidates.isdisjoint(node.outputs):
            recipe = _recipe(node, recipes, costs)
            if recipe is not None:
                recipes[node.output] = recipe
    return recipes


def _recipe(node: Node, recipes: dict[Value, _Recipe], costs: CostModel) -> _Recipe | None:
    """The recipe of the output of ``node``, by the ``recipes`` of its operands."""
    size = _typical_size(node.output)
    sources, cost = set(), 1.0
    for value in set(node.inputs):
        if _typical_size(value) * costs.negligible > size:
            source, cost_of_operand = recipes.get(value, (value, 0.0))
            sources.add(source)
            cost += cost_of_operand
    itemsize = node.output.spec.dtype.size
    if len(sources) != 1 or cost > _transfer_cost(size, itemsize, costs):
        return None
    (source,) = sources
    is_narrow = 4 <= source.spec.dtype.size <= itemsize
    return _Recipe(source, cost) if is_narrow and not may_fail(node) else None


def _typical_size(value: Value) -> int:
    return typical(value.spec.size)


def _transfer_cost(size: int, itemsize: int, costs: CostModel) -> float:
    """The cost of writing an element for another kernel, and reading it there; small arrays stay cached."""
    return costs.load_cost + costs.store_cost if size < MIN_ELEMENTS else costs.through_memory(itemsize)


def _is_cheap(node: Node) -> bool:
    kind = node.op.kind
    return isinstance(kind, Elementwise) and kind.cost <= 1.0 and bool(node.inputs)


def _uncopied(value: Value, copies: Mapping[Value, Value]) -> Iterator[Node]:
    """The views that lead to ``value`` from one that has a copy, or from a literal, in order."""
    chain = []
    while value not in copies and value.node is not None:
        chain.append(value.node)
        if not value.node.inputs:
            break
        value = value.node.inputs[0]
    return reversed(chain)
