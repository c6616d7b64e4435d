"""The graph: immutable nodes in program order, joined by values.

    Graph
      inputs     the arguments, then the captures
      captures   the source of each captured input: variables, then tensors
      nodes      Node(op, inputs, attrs, specs, origin), each after the producers of its inputs
      outputs    values that are returned
      updates    new values of captured variables

A variable is read once, at its input, and written once, by its update: the trace resolves the reads and
assignments in between. Effects (random, print, Python) keep the order of ``nodes``; nothing else is ordered.
Bodies of fused nodes, branches and loops are graphs in ``attrs``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from dualflow.core.errors import InternalError
from dualflow.core.records import NamedTuple, dataclass, field
from dualflow.core.shape import UNKNOWN_RANK
from dualflow.core.slot import Slot, unfilled
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.core.traced_device import TRACED_DEVICE
from dualflow.ops.record import Effect, Op

T = TypeVar("T")


class Origin(NamedTuple):
    """The user's line that called an op."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f'File "{self.file}", line {self.line}, in {self.function}'


class Value:
    """A result of a node, or an input of the graph (``node`` is None). Compared by identity."""

    __slots__ = ("index", "node", "spec")

    def __init__(self, spec: TensorSpec, node: Node | None = None, index: int = 0) -> None:
        self.spec = spec
        self.node = node
        self.index = index

    def __repr__(self) -> str:
        source = "input" if self.node is None else self.node.op.name
        return f"<value {source}:{self.index} {self.spec}>"


class BodySpec:
    """The base of attributes that hold the graphs inside a node (a cond, a loop): frozen dataclasses.

    Attributes:
        effect: the strongest effect of the graphs; None for none.
    """

    __slots__ = ()
    effect: Effect | None

    @property
    def bodies(self) -> tuple[tuple[str, Graph], ...]:
        """The graphs, each with its name."""
        raise NotImplementedError

    @property
    def settings(self) -> Mapping[str, Any]:
        """The other settings that are printed, by name."""
        raise NotImplementedError

    def with_bodies(self, change: Callable[[Graph], Graph]) -> BodySpec:
        """This spec with ``change(graph)`` for each graph; itself if no graph changes."""
        raise NotImplementedError


class Node:
    """An op applied to values. Immutable by convention; compared by identity.

    Attributes:
        effect: the effect of the node; None for none.
        output: the first output, of a node that has one.
        origin: the user's line that called the op.
        merged_origins: the lines of other nodes, which a rewrite has merged into this one.
        device: the full name of the device of the ``df.device`` block that called the op; None outside of
            blocks. The pass :mod:`dualflow.graph.passes.lower_placement` lowers it before others make nodes.
    """

    __slots__ = ("attrs", "device", "effect", "inputs", "merged_origins", "op", "origin", "output", "outputs")

    def __init__(
        self,
        op: Op,
        inputs: Sequence[Value],
        attrs: Mapping[str, Any],
        specs: Sequence[TensorSpec],
        origin: Origin | None = None,
        merged_origins: tuple[Origin, ...] = (),
        device: str | None = None,
    ) -> None:
        self.op = op
        self.inputs = tuple(inputs)
        self.attrs = attrs
        self.origin = origin
        self.merged_origins = merged_origins
        self.device = device
        effect = op.effect
        self.effect = effect if effect is not Effect.INSIDE else _inside(attrs)
        if len(specs) == 1:
            self.output = Value(specs[0], self)
            self.outputs: tuple[Value, ...] = (self.output,)
        else:
            self.outputs = tuple([Value(spec, self, i) for i, spec in enumerate(specs)])
            if self.outputs:
                self.output = self.outputs[0]

    def with_inputs(self, inputs: Sequence[Value]) -> Node:
        """This node with other inputs of the same specs."""
        if len(self.outputs) != 1:
            return self.like(self.op, inputs, self.attrs, self.specs)
        node = Node.__new__(Node)  # passes copy most nodes several times, and nothing is to be computed
        node.op, node.inputs, node.attrs, node.effect = self.op, tuple(inputs), self.attrs, self.effect
        node.origin, node.merged_origins, node.device = self.origin, self.merged_origins, self.device
        node.output = Value(self.output.spec, node)
        node.outputs = (node.output,)
        return node

    def like(
        self, op: Op, inputs: Sequence[Value], attrs: Mapping[str, Any], specs: Sequence[TensorSpec]
    ) -> Node:
        """Another node in place of this one, with its lines and its device."""
        return Node(op, inputs, attrs, specs, self.origin, self.merged_origins, self.device)

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        return tuple([v.spec for v in self.outputs])

    @property
    def bodies(self) -> tuple[tuple[str, Graph], ...]:
        """The graphs among the attributes, each with its name: ``body``, ``branches[0]``, ..."""
        graphs: list[tuple[str, Graph]] = []
        for name, value in self.attrs.items():
            if isinstance(value, Graph):
                graphs.append((name, value))
            elif isinstance(value, BodySpec):
                graphs += value.bodies
        return tuple(graphs)

    @property
    def settings(self) -> dict[str, Any]:
        """The attributes except graphs; those of a cond or loop include each setting of its spec."""
        settings: dict[str, Any] = {}
        for name, value in self.attrs.items():
            if isinstance(value, BodySpec):
                settings.update(value.settings)
            elif not isinstance(value, Graph):
                settings[name] = value
        return settings

    def __repr__(self) -> str:
        return f"<node {self.op.name} -> {', '.join(str(s) for s in self.specs)}>"


def _inside(attrs: Mapping[str, Any]) -> Effect | None:
    """The effect of a node that runs graphs: the strongest effect in them."""
    (spec,) = attrs.values()
    effect: Effect | None = spec.effect
    return effect


class Capture(NamedTuple):
    """The source of a captured input: a variable (read at each call) or a tensor."""

    source: Any
    variable: bool


class Update(NamedTuple):
    """The graph assigns ``value`` to the variable captured by ``input``."""

    input: Value
    value: Value


def walk_nodes(node: Node) -> Iterator[Node]:
    """``node``, and the nodes of the graphs inside it."""
    pending = [iter((node,))]
    while pending:
        current = next(pending[-1], None)
        if current is None:
            pending.pop()
            continue
        yield current
        pending += [iter(body.nodes) for _, body in reversed(current.bodies)]


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A traced computation. See the module's first lines for its parts.

    Attributes:
        facts: the results of functions that are computed once per graph, since a graph doesn't change.
    """

    name: str
    inputs: tuple[Value, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Value, ...]
    captures: tuple[Capture, ...] = ()
    updates: tuple[Update, ...] = ()
    facts: dict[Callable[[Graph], Any], Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "facts", {})

    @property
    def arguments(self) -> tuple[Value, ...]:
        """The inputs that are not captures."""
        return self.inputs[: len(self.inputs) - len(self.captures)]

    @property
    def updated_inputs(self) -> tuple[int, ...]:
        """The number of the input whose variable each update assigns."""
        number = {v: i for i, v in enumerate(self.inputs)} if self.updates else {}
        return tuple([number[u.input] for u in self.updates])

    @property
    def results(self) -> tuple[Value, ...]:
        """All values that leave the graph: outputs, then updates."""
        return (*self.outputs, *(u.value for u in self.updates))

    def with_results(self, results: Sequence[Value], nodes: tuple[Node, ...] | None = None) -> Graph:
        """This graph with other :attr:`results`, and other nodes if ``nodes`` is given."""
        count = len(self.outputs)
        updates = tuple([Update(u.input, v) for u, v in zip(self.updates, results[count:], strict=True)])
        if nodes is None:
            nodes = self.nodes
        return Graph(self.name, self.inputs, nodes, tuple(results[:count]), self.captures, updates)

    @property
    def ops(self) -> frozenset[Op]:
        """The ops of the nodes, without those of the graphs inside them. Computed once."""
        return _ops(self)

    def users(self) -> dict[Value, list[Node]]:
        """The consumers of each value."""
        consumers: dict[Value, list[Node]] = {}
        for node in self.nodes:
            for value in node.inputs:
                readers = consumers.get(value)
                if readers is None:
                    consumers[value] = [node]
                elif readers[-1] is not node:  # it reads the value twice
                    readers.append(node)
        return consumers

    @entry
    def draw(self, path: str | os.PathLike[str], stage: str | None = None) -> None:
        """Write a picture of the graph: ops from top to bottom, with the user's lines and the values' specs.

        Kernels, branches and loops are boxes around their ops. Kernels are numbered, and have colours that
        colour-blind readers can distinguish. Variables, updates and effects have their own colours and
        outlines. An .svg is dark where its reader prefers that. A wire over more than 40 rows is cut, and
        continues at a dotted box with the value's name. Three or more ops that differ in their attributes
        alone, and have the same readers, are one box (``getitem x 31``); eight or more with any readers. In a
        graph of 200 ops or more, consecutive ops of one Python function are one box.

        Args:
            path: the file; its extension, .svg, .png or .pdf, is the format.
            stage: of a trace: ``"traced"`` is the trace, ``"optimised"`` the graph after the passes that
                write no kernels, ``"kernels"`` the graph that runs. By default this graph as it is.

        Raises:
            InvalidArgumentError: the extension is another one, the graph is too large for a png, or there is
                no such stage.
            NotFoundError: matplotlib is not installed, which a .png and a .pdf need.

        >>> import os, tempfile
        >>> import dualflow as df
        >>> concrete = df.function(df.nn.softmax).get_concrete_function(df.TensorSpec([8, 100]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     concrete.optimised_graph.draw(os.path.join(folder, "softmax.svg"))
        ...     os.listdir(folder)
        ['softmax.svg']
        """
        PICTURE.value(self if stage is None else STAGED.value(self, stage), path)

    def __reduce__(self) -> tuple[Any, ...]:
        """The nodes as tuples that refer to values by number, so that pickling doesn't recurse."""
        computed = (v for node in self.nodes for v in node.outputs)
        number = {value: i for i, value in enumerate((*self.inputs, *computed))}
        nodes = [
            (
                n.op,
                [number[v] for v in n.inputs],
                dict(n.attrs),
                n.specs,
                n.origin,
                n.merged_origins,
                n.device,
            )
            for n in self.nodes
        ]
        captures = [(c.source, c.variable) for c in self.captures]
        updates = [(number[u.input], number[u.value]) for u in self.updates]
        specs = [v.spec for v in self.inputs]
        return _loaded, (self.name, specs, nodes, [number[v] for v in self.outputs], captures, updates)

    def __deepcopy__(self, memo: Any) -> Graph:
        return self  # it doesn't change

    def __str__(self) -> str:
        return TEXT.value(self)

    __repr__ = __str__

    def _repr_svg_(self) -> str:
        """The picture that a notebook shows."""
        return SVG.value(self)


def _ops(graph: Graph) -> frozenset[Op]:
    if _ops not in graph.facts:
        graph.facts[_ops] = frozenset([node.op for node in graph.nodes])
    ops: frozenset[Op] = graph.facts[_ops]
    return ops


TEXT: Final[Slot[Callable[[Graph], str]]] = Slot("the text of graphs", unfilled("the text of graphs"))
"""The text of a graph, which ``print`` shows."""
PICTURE: Final[Slot[Callable[[Graph, str | os.PathLike[str]], None]]] = Slot(
    "pictures of graphs", unfilled("pictures of graphs")
)
"""Writes the picture of a graph to a path."""
STAGED: Final[Slot[Callable[[Graph, str], Graph]]] = Slot("graphs at a stage", unfilled("graphs at a stage"))
"""A trace after the passes up to a stage."""
SVG: Final[Slot[Callable[[Graph], str]]] = Slot(
    "pictures of graphs as text", unfilled("pictures of graphs as text")
)
"""The picture of a graph for a notebook."""


def _loaded(
    name: str,
    specs: Sequence[TensorSpec],
    nodes: Sequence[tuple[Op, Sequence[int], Mapping[str, Any], Sequence[TensorSpec], Any, Any, str | None]],
    outputs: Sequence[int],
    captures: Sequence[tuple[Any, bool]],
    updates: Sequence[tuple[int, int]],
) -> Graph:
    """The graph that :meth:`Graph.__reduce__` has pickled; its captures are copies."""
    inputs = tuple([Value(spec) for spec in specs])
    values, new_nodes = list(inputs), []
    for op, read, attrs, results, *marks in nodes:
        node = Node(op, [values[i] for i in read], attrs, results, *marks)
        values += node.outputs
        new_nodes.append(node)
    return Graph(
        name,
        inputs,
        tuple(new_nodes),
        tuple([values[i] for i in outputs]),
        tuple([Capture(source, variable) for source, variable in captures]),
        tuple([Update(values[i], values[j]) for i, j in updates]),
    )


def _sizes(spec: TensorSpec) -> tuple[Any, ...]:
    """The sizes of ``spec``; none if its rank is unknown, where the type of the shape is another."""
    return () if spec.shape is UNKNOWN_RANK else tuple(spec.shape)


class GraphBuilder:
    """A graph under construction."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.inputs: list[Value] = []
        self.captures: list[tuple[Value, Capture]] = []
        self.nodes: list[Node] = []
        self._inferred: dict[tuple[Any, ...], tuple[TensorSpec, ...]] = {}
        self._specs: dict[tuple[Any, ...], TensorSpec] = {}

    def inner(self, name: str) -> GraphBuilder:
        """A builder for a body."""
        return GraphBuilder(name)

    def argument(self, spec: TensorSpec) -> Value:
        """A new argument."""
        value = Value(spec)
        self.inputs.append(value)
        return value

    def capture(self, spec: TensorSpec, source: Any, *, variable: bool) -> Value:
        """A new captured input with the value of ``source``."""
        value = Value(spec)
        self.captures.append((value, Capture(source, variable)))
        return value

    def add(
        self, op: Op, inputs: Sequence[Value], attrs: Mapping[str, Any], origin: Origin | None = None
    ) -> Node:
        """Append a node, on the device of the traced block.

        The op's shape and dtype rule gives its specs, and raises for invalid operands.
        """
        specs = (
            self._infer(op, inputs, attrs)
            if attrs
            else self._inferred.get((op, *[id(v.spec) for v in inputs]))
        )
        if specs is None:
            specs = self._inferred[(op, *[id(v.spec) for v in inputs])] = self._infer(op, inputs, attrs)
        node = Node(op, inputs, attrs, specs, origin, (), TRACED_DEVICE.get())
        self.nodes.append(node)
        return node

    def _infer(self, op: Op, inputs: Sequence[Value], attrs: Mapping[str, Any]) -> tuple[TensorSpec, ...]:
        """The specs of a node. Equal ones are one object, since ``add`` caches by their ids."""
        specs = op.specs([v.spec for v in inputs], dict(attrs))
        distinct = self._specs
        return tuple([distinct.setdefault((type(s.shape), s.dtype.name, *_sizes(s)), s) for s in specs])

    def finish(self, outputs: Sequence[Value], updates: Sequence[Update] = ()) -> Graph:
        """The graph built so far."""
        captures = sorted(self.captures, key=lambda c: not c[1].variable)
        return Graph(
            name=self.name,
            inputs=(*self.inputs, *(v for v, _ in captures)),
            nodes=tuple(self.nodes),
            outputs=tuple(outputs),
            captures=tuple(c for _, c in captures),
            updates=tuple(updates),
        )


def verify(graph: Graph) -> None:
    """Raise InternalError if ``graph`` breaks a rule of the IR. Tests call it between passes."""
    defined = set(graph.inputs)
    if len(defined) != len(graph.inputs):
        raise InternalError(f"{graph.name}: an input appears twice")
    for node in graph.nodes:
        missing = [v for v in node.inputs if v not in defined]
        if missing:
            raise InternalError(f"{graph.name}: {node} reads {missing[0]} before it is computed")
        inferred = node.op.specs([v.spec for v in node.inputs], dict(node.attrs))
        if inferred != node.specs:
            raise InternalError(f"{graph.name}: {node} should have specs {inferred}")
        defined.update(node.outputs)
    for value in graph.results:
        if value not in defined:
            raise InternalError(f"{graph.name}: result {value} is computed by no node of the graph")
    inputs = set(graph.inputs)
    for update in graph.updates:
        if update.input.spec != update.value.spec or update.input not in inputs:
            raise InternalError(f"{graph.name}: update of {update.input} by {update.value} changes its spec")
