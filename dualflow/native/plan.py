"""Where every value of a graph lives, and the order of the calls that compute them.

Outputs get fresh buffers, constants keep theirs, intermediates share one arena, views point into what they
view. An updated variable is computed in its own buffer where nothing reads the old value later; else it is
copied there last. Nodes that have no native form are host calls between native parts, and what crosses to
them has a buffer of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dualflow.core.spec import TensorSpec
from dualflow.graph.axes import base_of, is_view
from dualflow.graph.fused import FUSED, Domain, input_axes, output_axes
from dualflow.graph.ir import Graph, Node, Value
from dualflow.native.arena import Lifetime, assign
from dualflow.native.copying import copy_node
from dualflow.native.nest import Layout, contiguous_strides
from dualflow.native.operands import Step, kind_of, view_layout, with_copies
from dualflow.ops.forms import Literal


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One step of the program: ``node`` on inputs and outputs that lie as given."""

    node: Node
    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]

    @property
    def kind(self) -> str:
        """``kernel`` (a loop nest), ``product`` (a matrix product) or ``host`` (NumPy or Python)."""
        return kind_of(self.node)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The calls of a graph and its buffer table.

    The table holds, in order: the inputs, the constants, the outputs, the arrays that host calls read or
    write (``temporaries``), and the arena. ``in_place`` are the inputs that the graph writes to.
    """

    calls: tuple[Call, ...]
    inputs: int
    constants: tuple[np.ndarray[Any, Any], ...]
    outputs: tuple[TensorSpec, ...]
    temporaries: tuple[TensorSpec, ...]
    arena_bytes: int

    @property
    def first_output(self) -> int:
        return self.inputs + len(self.constants)

    @property
    def first_temporary(self) -> int:
        return self.first_output + len(self.outputs)

    @property
    def arena(self) -> int:
        """The arena's place in the table."""
        return self.first_temporary + len(self.temporaries)


@dataclass(frozen=True, slots=True)
class _Home:
    """A buffer of one of the table's classes, and the first element of a value in it."""

    kind: str
    index: int = 0
    offset: int = 0


def plan(graph: Graph) -> Plan:
    """Give every value of ``graph`` a place; see the module's first lines."""
    nodes, targets = _ordered(graph)
    steps = with_copies(nodes)
    homes = {v: _Home("input", i) for i, v in enumerate(graph.inputs)}
    constants = _place_constants(steps, homes)
    temporaries = _place_made(steps, targets, homes)
    arena_bytes = _fill_arena(steps, homes)
    starts = {"input": 0, "constant": len(graph.inputs), "output": len(graph.inputs) + len(constants)}
    starts["temporary"] = starts["output"] + len(graph.outputs)
    starts["arena"] = starts["temporary"] + len(temporaries)
    layouts = _Layouts(homes, starts)
    calls = tuple(
        Call(s.node, tuple(map(layouts.of, s.inputs)), tuple(map(layouts.of, s.node.outputs))) for s in steps
    )
    outputs = tuple(v.spec for v in graph.outputs)
    return Plan(calls, len(graph.inputs), tuple(constants), outputs, tuple(temporaries), arena_bytes)


def _ordered(graph: Graph) -> tuple[list[Node], dict[Value, _Home]]:
    """The calls in order, with copies in and out, and the values that have a home from the start.

    First come copies of inputs that are handed back, while they still have their old values; then the graph's
    own nodes; then copies to outputs; last, copies into variables.
    """
    body = [n for n in graph.nodes if not is_view(n) and not isinstance(n.op.form, Literal)]
    place = {n: i for i, n in enumerate(body)}
    targets: dict[Value, _Home] = {}
    first: list[Node] = []
    after: list[Node] = []
    last: list[Node] = []

    def copy(value: Value, target: _Home | None, calls: list[Node]) -> Value:
        node = copy_node(value)
        calls.append(node)
        if target is not None:
            targets[node.output] = target
        return node.output

    updated = {u.value for u in graph.updates}
    for i, value in enumerate(graph.outputs):
        home = _Home("output", i)
        if value.node in place and value not in targets and value not in updated:
            targets[value] = home
        else:
            copy(value, home, first if base_of(value).node is None else after)
    inputs = {v: i for i, v in enumerate(graph.inputs)}
    last_read = _last_reads(body)
    for update in graph.updates:
        value, home = update.value, _Home("input", inputs[update.input])
        if value is update.input:
            continue
        if value not in targets and _may_overwrite(update.input, value, place, last_read):
            targets[value] = home
            continue
        if base_of(value).node is None:
            value = copy(value, None, first)
        copy(value, home, last)
    return [*first, *body, *after, *last], targets


def _last_reads(body: Sequence[Node]) -> dict[Value, int]:
    """The last step that reads each buffer, also through views."""
    return {base_of(value): step for step, node in enumerate(body) for value in node.inputs}


def _may_overwrite(old: Value, new: Value, place: dict[Node, int], last_read: dict[Value, int]) -> bool:
    """Whether ``new`` may be computed in the buffer of ``old``: nobody reads the old value afterwards."""
    node = new.node
    if node is None or node not in place or last_read.get(old, -1) > place[node]:
        return False
    if kind_of(node) == "product":
        return len(node.inputs) == 3 and node.inputs[2] is old and old not in map(base_of, node.inputs[:2])
    return node.op is FUSED and _reads_what_it_writes(node, old, new)


def _reads_what_it_writes(node: Node, old: Value, new: Value) -> bool:
    """Whether the nest reads ``old`` only at the element that it writes of ``new``, and before that."""
    graph: Graph = node.attrs["body"]
    domain: Domain = node.attrs["domain"]
    maker = graph.outputs[new.index].node
    written = output_axes(maker, domain.own[maker]) if maker is not None and maker in domain.own else None
    by_stages = written is None or any(a in domain.reduced for a in written)
    for outer, value in zip(node.inputs, graph.inputs, strict=True):
        if base_of(outer) is not old:
            continue
        if outer is not old or by_stages:
            return False
        readers = [n for n in graph.nodes if value in n.inputs]
        if not all(n in domain.own for n in readers):
            return False
        laid = [(v, a) for n in readers for v, a in zip(n.inputs, input_axes(n, domain.own[n]), strict=True)]
        if any(v is value and axes != written for v, axes in laid):
            return False
    return True


def _place_constants(steps: Sequence[Step], homes: dict[Value, _Home]) -> list[np.ndarray[Any, Any]]:
    constants: list[np.ndarray[Any, Any]] = []
    for base in (base_of(v) for s in steps for v in s.inputs):
        if base.node is not None and isinstance(base.node.op.form, Literal) and base not in homes:
            homes[base] = _Home("constant", len(constants))
            constants.append(np.ascontiguousarray(base.node.attrs["value"]))
    return constants


def _place_made(
    steps: Sequence[Step], targets: dict[Value, _Home], homes: dict[Value, _Home]
) -> list[TensorSpec]:
    """Homes for what the steps make; answers the arrays needed beside outputs and arena."""
    hosts = [s for s in steps if kind_of(s.node) == "host"]
    met = {base_of(v) for s in hosts for v in s.inputs} | {v for s in hosts for v in s.node.outputs}
    temporaries: list[TensorSpec] = []
    for value in (v for s in steps for v in s.node.outputs):
        if value in targets:
            homes[value] = targets[value]
        elif value in met:
            homes[value] = _Home("temporary", len(temporaries))
            temporaries.append(value.spec)
        else:
            homes[value] = _Home("arena")
    return temporaries


def _fill_arena(steps: Sequence[Step], homes: dict[Value, _Home]) -> int:
    """Offsets in the arena, from the steps at which each value is made and last read; answers its bytes."""
    birth: dict[Value, int] = {}
    death: dict[Value, int] = {}
    for at, step in enumerate(steps):
        for value in step.node.outputs:
            if homes[value].kind == "arena":
                birth[value] = death[value] = at
        for base in map(base_of, step.inputs):
            if base in birth:
                death[base] = at
    offsets, size = assign(Lifetime(birth[v], death[v], v.spec.nbytes) for v in birth)
    for value, offset in zip(birth, offsets, strict=True):
        homes[value] = _Home("arena", 0, offset // value.spec.dtype.size)
    return size


@dataclass(frozen=True, slots=True)
class _Layouts:
    """Where values lie, once every buffer has its place in the table."""

    homes: dict[Value, _Home]
    starts: dict[str, int]

    def of(self, value: Value) -> Layout:
        chain: list[Node] = []
        while value not in self.homes:
            assert value.node is not None, f"{value} has no home"
            chain.append(value.node)
            value = value.node.inputs[0]
        home = self.homes[value]
        layout = Layout(
            self.starts[home.kind] + home.index, home.offset, contiguous_strides(value.spec.shape)
        )
        for node in reversed(chain):
            seen = view_layout(node, layout)
            assert seen is not None, f"{node} was not copied"
            layout = seen
        return layout
