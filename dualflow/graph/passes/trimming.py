"""Removes unused inputs, outputs and carried values of loops and branches, and outputs of other nodes."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from dualflow.core.records import NamedTuple, replace
from dualflow.graph.control_spec import CondSpec, LoopSpec, branches_of, loop_of
from dualflow.graph.extract import ancestors
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.passes.dead_code import is_live
from dualflow.graph.rewrite import Expansion, rebuild, removal
from dualflow.ops.op_kinds import CONTROL, Loop
from dualflow.ops.record import Op


def trim_control(graph: Graph) -> Graph:
    """``graph`` without unused inputs, outputs and carried values of branches and loops.

    Unused outputs of other nodes are removed if the op has ``prune_outputs``.
    """
    if is_live(graph) and not any(map(_may_have_unused_outputs, graph.ops)):
        return graph
    needs: dict[Node, _Needs] = {}
    parts: dict[Node, dict[str, Any]] = {}
    needed: set[Node] = set()
    live = set(graph.results)
    for node in reversed(graph.nodes):
        if node.effect is None and live.isdisjoint(node.outputs):
            continue
        needed.add(node)
        if isinstance(node.op.kind, CONTROL):
            node_needs = needs[node] = (
                _loop_needs(node, live) if isinstance(node.op.kind, Loop) else _cond_needs(node, live)
            )
            live.update([node.inputs[i] for i in node_needs.inputs])
            live.update([node.inputs[i] for o, i in node_needs.same.items() if node.outputs[o] in live])
        else:
            attrs = _pruned_attrs(node, live)
            if attrs is not None:
                parts[node] = attrs
            live.update(node.inputs)

    if not parts and not needs and len(needed) == len(graph.nodes):
        return graph

    def trimmed(node: Node, current: Node) -> Expansion | None:
        if node not in needed:
            return removal(node)
        if node in parts:
            return _part_of(current, parts[node], [i for i, v in enumerate(node.outputs) if v in live])
        used = needs.get(node)
        return None if used is None or used.all_of(node) else _expansion(current, used)

    return rebuild(graph, trimmed)


def _may_have_unused_outputs(op: Op) -> bool:
    return op.prune_outputs is not None or isinstance(op.kind, CONTROL)


def _pruned_attrs(node: Node, live: Container[Value]) -> dict[str, Any] | None:
    """The attributes with which a node computes its live outputs only; None if it computes all."""
    needed = tuple([v in live for v in node.outputs])
    return (
        None if node.op.prune_outputs is None or all(needed) else node.op.prune_outputs(needed, **node.attrs)
    )


def _part_of(node: Node, attrs: dict[str, Any], outputs: Sequence[int]) -> Expansion:
    """The expansion of ``node`` to a node with ``attrs``, which computes only ``outputs``."""
    pruned = Node(
        node.op, node.inputs, attrs, [node.outputs[i].spec for i in outputs], node.origin, node.merged_origins
    )
    values = list(node.outputs)
    for i, value in zip(outputs, pruned.outputs, strict=True):
        values[i] = value
    return Expansion((pruned,), values)


class _Needs(NamedTuple):
    """The inputs and outputs of a branch or loop that are needed, by index.

    ``same`` maps outputs that are always equal to an input to this input; they are not computed.
    """

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    same: Mapping[int, int]

    def all_of(self, node: Node) -> bool:
        return len(self.inputs) == len(node.inputs) and len(self.outputs) == len(node.outputs)


def _expansion(node: Node, needs: _Needs) -> Expansion:
    """The trimmed node, and the values that replace all outputs; no node if no output is needed."""
    trimmed = _trimmed(node, needs)
    values = list(node.outputs)
    for output, index in needs.same.items():
        values[output] = node.inputs[index]
    for output, value in zip(needs.outputs, trimmed.outputs, strict=True):
        values[output] = value
    return Expansion((trimmed,) if trimmed.outputs or trimmed.effect is not None else (), values)


def _cond_needs(node: Node, live: Container[Value]) -> _Needs:
    branches = branches_of(node)
    numbers = [{v: i for i, v in enumerate(b.inputs)} for b in branches]
    same: dict[int, int] = {}
    for i in range(len(node.outputs)):
        indices = {number.get(b.outputs[i], -1) for b, number in zip(branches, numbers, strict=True)}
        if len(indices) == 1 and indices != {-1}:
            same[i] = 1 + indices.pop()
    outputs = [i for i, v in enumerate(node.outputs) if v in live and i not in same]
    read = {i for b in branches for i in _read(b, [b.outputs[o] for o in outputs])}
    return _Needs((0, *[1 + i for i in sorted(read)]), tuple(outputs), same)


def _loop_needs(node: Node, live: Container[Value]) -> _Needs:
    loop = loop_of(node)
    body, test, carried, end = loop.body, loop.condition, loop.carried, loop.end
    unchanged = {i: i for i, (before, after) in enumerate(loop.carried_values) if after is before}
    stacks = [i for i in range(carried, len(node.outputs)) if node.outputs[i] in live]
    used = _read(test, test.outputs) if test is not None else set()  # with a condition, nothing is scanned
    needed = {i for i in range(carried) if node.outputs[i] in live and i not in unchanged}
    changing = {i for i, (before, after) in enumerate(loop.carried_values) if before.spec != after.spec}
    needed |= changing  # sizes are read too
    while True:
        needed |= {i for i in used if i < carried and i not in unchanged}
        body_reads = _read(body, [body.outputs[i] for i in (*sorted(needed), *stacks)])
        if body_reads <= used:
            break
        used |= body_reads
    scanned = [i for i in range(carried, end) if i in used]
    if not scanned and end > carried and loop.length is None:
        scanned = [carried]  # its number of rows is the trip count
    invariants = [i for i in sorted(used) if i >= end or i in unchanged]
    return _Needs((*sorted(needed), *scanned, *invariants), (*sorted(needed), *stacks), unchanged)


def _read(graph: Graph, values: Iterable[Value]) -> set[int]:
    """The indices of the inputs of ``graph`` on which ``values`` and its effects depend."""
    _, sources = ancestors(values, (), [n for n in graph.nodes if n.effect is not None])
    return {i for i, v in enumerate(graph.inputs) if v in sources}


def _trimmed(node: Node, needs: _Needs) -> Node:
    attrs: dict[str, Any]
    if isinstance(node.op.kind, Loop):
        attrs = {"loop": _loop(loop_of(node), needs, len(node.outputs))}
    else:
        operands = [i - 1 for i in needs.inputs[1:]]
        parts = [_part(b, operands, [b.outputs[i] for i in needs.outputs]) for b in branches_of(node)]
        attrs = {"cond": CondSpec(tuple(parts))}
    specs = [node.outputs[i].spec for i in needs.outputs]
    return Node(
        node.op, [node.inputs[i] for i in needs.inputs], attrs, specs, node.origin, node.merged_origins
    )


def _loop(loop: LoopSpec, needs: _Needs, outputs: int) -> LoopSpec:
    """The trimmed loop; a new loop if it has fewer than ``outputs`` outputs."""
    body, test = loop.body, loop.condition
    trimmed = replace(
        loop,
        body=_part(body, needs.inputs, [body.outputs[i] for i in needs.outputs]),
        carried=sum(o < loop.carried for o in needs.outputs),
        scanned=sum(loop.carried <= i < loop.end for i in needs.inputs),
        condition=None if test is None else _part(test, needs.inputs, test.outputs),
    )
    return trimmed if len(needs.outputs) == outputs else trimmed.as_new_loop()


def _part(graph: Graph, inputs: Iterable[int], outputs: Sequence[Value]) -> Graph:
    effects = [n for n in graph.nodes if n.effect is not None]
    needed, _ = ancestors(outputs, (), effects)
    nodes = tuple([n for n in graph.nodes if n in needed])
    return Graph(graph.name, tuple([graph.inputs[i] for i in inputs]), nodes, tuple(outputs))
