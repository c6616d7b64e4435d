"""Groups of nodes become fused nodes of a new graph."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from dualflow.core.records import NamedTuple, dataclass, field
from dualflow.core.symbolic_sizes import typical
from dualflow.graph.axes import base_of, is_generated, is_scalar_literal, is_view, sizes
from dualflow.graph.column_folds import LEAST_ELEMENTS
from dualflow.graph.cost_model import CostModel
from dualflow.graph.failing import may_fail
from dualflow.graph.fused import FUSED, Axes, IterationSpace, input_axes, output_axes, reduced_axes
from dualflow.graph.ir import Graph, Node, Update, Value
from dualflow.ops.op_kinds import Elementwise, Gather, Reduce, Scan


class Staged(NamedTuple):
    """A node among the stages of its group.

    Attributes:
        ready: the run of the reduced loops from which on its value is available.
        runs: how often they have to run until it is.
    """

    ready: int
    runs: int


FIRST = Staged(0, 1)
"""A node that waits for no reduction."""


@dataclass(slots=True, eq=False)
class Group:
    """Nodes that one loop nest computes.

    Attributes:
        position: where it stands in the order of all groups.
        reader: the smallest position that reads from it.
        stage: for each node the run of the reduced loops from which on its value is available.
        runs: how often the reduced loops run.
    """

    position: int
    shape: tuple[int, ...]
    nodes: list[Node] = field(default_factory=list)
    own: dict[Node, Axes] = field(default_factory=dict)
    made: dict[Value, Axes] = field(default_factory=dict)
    seen: dict[Value, Axes] = field(default_factory=dict)
    reduced: frozenset[int] = frozenset()
    stage: dict[Node, int] = field(default_factory=dict)
    runs: int = 1
    reader: float = math.inf
    everything: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        self.everything = frozenset(range(len(self.shape)))

    @property
    def kept(self) -> frozenset[int]:
        return self.everything - self.reduced

    @property
    def alone(self) -> bool:
        """Whether this is a scan, whose loops go one way: nothing else is computed in them."""
        return isinstance(self.nodes[0].op.kind, Scan)

    def add(self, node: Node, own: Axes, at: Staged = FIRST) -> None:
        """Take ``node`` in, its own index lying on ``own``."""
        self.nodes.append(node)
        self.own[node] = own
        axes = output_axes(node, own)
        for value in node.outputs:
            self.made[value] = axes
        if reduced := reduced_axes(node, own):
            self.reduced |= reduced
        for value, axes in zip(node.inputs, input_axes(node, own), strict=True):
            self.seen.setdefault(value, axes)
        self.stage[node] = at.ready
        self.runs = max(self.runs, at.runs)


def regroup(graph: Graph, groups: Sequence[Group], costs: CostModel) -> Graph:
    """``graph`` with each group as one fused node, in order of the groups' positions."""
    rebuild = _Rebuild(graph, groups, costs)
    units: list[tuple[int, Node | Group]] = [(g.position, g) for g in groups]
    units += [
        (i, n) for i, n in enumerate(graph.nodes) if n not in rebuild.group_of and rebuild.stands_alone(n)
    ]
    for _, unit in sorted(units, key=lambda u: u[0]):
        rebuild.copy(unit) if isinstance(unit, Node) else rebuild.fuse(unit)
    outputs = tuple(rebuild.value(v) for v in graph.outputs)
    updates = tuple(Update(u.input, rebuild.value(u.value)) for u in graph.updates)
    return Graph(graph.name, graph.inputs, tuple(rebuild.nodes), outputs, graph.captures, updates)


class _Rebuild:
    """The nodes of the new graph, and where each old value went."""

    def __init__(self, graph: Graph, groups: Sequence[Group], costs: CostModel) -> None:
        self.group_of = {n: g for g in groups for n in g.nodes}
        self.nodes: list[Node] = []
        self.new: dict[Value, Value] = {v: v for v in graph.inputs}
        self.repeated = _repeated(graph, self.group_of, costs)
        self.computed: set[Value] = set()
        self.escaping = _escaping(graph, self.group_of, self.repeated)

    def stands_alone(self, node: Node) -> bool:
        """Whether a node outside all groups has a place of its own; views and literals come on demand."""
        return bool(node.inputs or node.effect) and not is_view(node)

    def value(self, old: Value) -> Value:
        """The new value for ``old``; a view or literal is copied when first asked for."""
        chain = []
        at = old
        while at not in self.new:
            assert at.node is not None
            chain.append(at.node)
            if not at.node.inputs:
                break
            at = at.node.inputs[0]
        for node in reversed(chain):
            self._append(node, [self.new[v] for v in node.inputs])
        return self.new[old]

    def copy(self, node: Node) -> None:
        self._append(node, [self.value(v) for v in node.inputs])

    def _append(self, node: Node, inputs: list[Value]) -> None:
        made = node.with_inputs(inputs)
        self.nodes.append(made)
        self.new.update(zip(node.outputs, made.outputs, strict=True))

    def fuse(self, group: Group) -> None:
        body = _Body(group, self.group_of, self.repeated, self.computed)
        for node in group.nodes:
            body.copy(node)
        results = [v for n in group.nodes for v in n.outputs if v in self.escaping]
        graph = Graph(
            name="+".join(dict.fromkeys(n.op.name for n in group.nodes)),
            inputs=tuple(body.inputs.values()),
            nodes=tuple(body.nodes),
            outputs=tuple(body.new[v] for v in results),
        )
        space = IterationSpace(group.shape, group.reduced, body.own, frozenset(body.again))
        outside = [self.value(v) for v in body.inputs]
        origin = next((n.origin for n in reversed(group.nodes) if n.origin), None)
        fused = Node(FUSED, outside, {"body": graph, "space": space}, [v.spec for v in results], origin)
        self.nodes.append(fused)
        self.new.update(zip(results, fused.outputs, strict=True))


class _Body:
    """The graph inside one fused node."""

    def __init__(
        self, group: Group, group_of: dict[Node, Group], repeated: set[Value], computed: set[Value]
    ) -> None:
        self.group, self.group_of, self.repeated, self.computed = group, group_of, repeated, computed
        self.again: set[Node] = set()
        self.inputs: dict[Value, Value] = {}
        self.nodes: list[Node] = []
        self.own: dict[Node, Axes] = {}
        self.new: dict[Value, Value] = {}
        self.generated: dict[tuple[Value, Axes], Value] = {}

    def copy(self, node: Node) -> None:
        """Copy a node of the group, and the views, literals and generated values that it reads."""
        from_axes = input_axes(node, self.group.own[node])
        inputs = [
            self._looked_up(v) if i == 0 and isinstance(node.op.kind, Gather) else self._read(v, axes)
            for i, (v, axes) in enumerate(zip(node.inputs, from_axes, strict=True))
        ]
        self._place(node, self._append(node, inputs), self.group.own[node])

    def _place(self, node: Node, copy: Node, axes: Axes) -> None:
        """Note on which loops the copy of a node lies, and whether another copy computes the same."""
        self.own[copy] = axes
        if not self.computed.isdisjoint(node.outputs):
            self.again.add(copy)
        self.computed.update(node.outputs)

    def _append(self, node: Node, inputs: list[Value]) -> Node:
        made = node.with_inputs(inputs)
        self.nodes.append(made)
        self.new.update(zip(node.outputs, made.outputs, strict=True))
        return made

    def _looked_up(self, value: Value) -> Value:
        """What elements are picked from: it lies in memory, even where it is one number repeated."""
        if value not in self.inputs:
            self.inputs[value] = Value(value.spec)
            if not is_scalar_literal(value):
                self.new[value] = self.inputs[value]
        return self.inputs[value]

    def _read(self, value: Value, axes: Axes) -> Value:
        if value in self.new:
            return self.new[value]
        base = base_of(value)
        if is_generated(value) and value.node is not None and value.node not in self.group_of:
            return self._generate(value, value.node, axes)
        maker = None if base.node is None else self.group_of.get(base.node)
        if maker is not self.group and value in self.repeated:
            return self._repeat(value, axes)
        if maker is not self.group and not is_scalar_literal(value):
            self.inputs[value] = self.new[value] = Value(value.spec)
            return self.new[value]
        chain = []
        at = value
        while at not in self.new and at.node is not None:
            chain.append(at.node)
            if not at.node.inputs:
                break
            at = at.node.inputs[0]
        for node in reversed(chain):
            self._append(node, [self.new[v] for v in node.inputs])
        return self.new[value]

    def _repeat(self, value: Value, axes: Axes) -> Value:
        """A value that another group computes as well."""
        key = value, axes
        if key not in self.generated:
            assert value.node is not None, "a node of another group makes it"
            sources = zip(value.node.inputs, input_axes(value.node, axes), strict=True)
            made = self._append(value.node, [self._read(v, a) for v, a in sources])
            del self.new[value]  # where it lies otherwise in the loops, it is another node
            self._place(value.node, made, axes)
            self.generated[key] = made.output
        return self.generated[key]

    def _generate(self, value: Value, node: Node, axes: Axes) -> Value:
        """A generated value of its own for each way it lies in the loops."""
        key = value, axes
        if key not in self.generated:
            made = node.with_inputs(())
            self.nodes.append(made)
            self._place(node, made, axes)
            self.generated[key] = made.output
        return self.generated[key]


def _escaping(graph: Graph, group_of: dict[Node, Group], repeated: set[Value]) -> set[Value]:
    """The values that something outside their group reads, also through views."""
    escaping = {base_of(v) for v in graph.results}

    def note(value: Value, home: Group | None) -> None:
        base = base_of(value)
        if base.node is None or group_of.get(base.node) is home:
            return
        if value in repeated and value.node is not None:
            for source in value.node.inputs:
                note(source, home)
        else:
            escaping.add(base)

    for node in graph.nodes:
        if not is_view(node):
            for value in node.inputs:
                note(value, group_of.get(node))
    return escaping


def _repeated(graph: Graph, group_of: dict[Node, Group], costs: CostModel) -> set[Value]:
    """The values that every group which reads them computes anew: as cheap as to write and read them.

    Such are sums and products of few steps that begin at one array as large as they are, which is in memory
    anyway, and at smaller ones. A costly value of which several such values are made is written in their
    place.
    """
    cheap = [node.output for node in group_of if _is_cheap(node)]
    if not cheap:
        return set()
    results = set(map(base_of, graph.results))
    users = graph.users()
    written = _escaping(graph, group_of, set())
    candidates = {
        value
        for value in cheap
        if value not in results
        and all(isinstance(u.op.kind, Elementwise | Reduce) and u in group_of for u in users.get(value, ()))
    }
    recipes = _recipes(graph, group_of, candidates, costs)
    sources = Counter(r.source for v, r in recipes.items() if v in written)

    def is_read(source: Value) -> bool:
        base = base_of(source)
        return base.node not in group_of or base in written or sources[source] > 1

    return {v for v, r in recipes.items() if is_read(r.source)}


class _Recipe(NamedTuple):
    """How a value is computed anew: from one large array, by so much work for an element."""

    source: Value
    cost: float


def _recipes(
    graph: Graph, group_of: dict[Node, Group], candidates: set[Value], costs: CostModel
) -> dict[Value, _Recipe]:
    """Those of the candidates that come from one array which is none of them, by little work."""
    found: dict[Value, _Recipe] = {}
    for node in graph.nodes:
        if node not in group_of or node.output not in candidates:
            continue
        large = _large(node, costs)
        sources = {found[v].source if v in found else v for v in large}
        cost = sum(found[v].cost for v in large if v in found) + 1.0
        if len(sources) != 1 or cost > costs.through_memory(node.output.spec.dtype.size):
            continue
        (source,) = sources
        if _is_narrow(source, node.output):
            found[node.output] = _Recipe(source, cost)
    return found


def _is_cheap(node: Node) -> bool:
    kind = node.op.kind
    return (
        isinstance(kind, Elementwise)
        and kind.cost <= 1.0
        and bool(node.inputs)
        and typical(math.prod(sizes(node.output))) >= LEAST_ELEMENTS
        and not may_fail(node)
    )


def _large(node: Node, costs: CostModel) -> set[Value]:
    """What a node reads, but for what is so small that it costs next to nothing."""
    size = typical(math.prod(sizes(node.output)))
    return {v for v in node.inputs if typical(math.prod(sizes(v))) * costs.negligible > size}


def _is_narrow(source: Value, made: Value) -> bool:
    return 4 <= source.spec.dtype.size <= made.spec.dtype.size
