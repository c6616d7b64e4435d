"""The calls of a graph in order, and the values that have an allocation from the start: results and
variables."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from enum import Enum

from dualflow.core.records import NamedTuple
from dualflow.core.symbolic_sizes import SizeVariable, is_static, size_variables
from dualflow.graph.axes import base_of, is_view, sizes
from dualflow.graph.failing import may_fail
from dualflow.graph.fused import FUSED, LoopDomain, input_axes, output_axes
from dualflow.graph.ir import Graph, Node, Update, Value
from dualflow.graph.run_time_sizes import measures
from dualflow.ops.op_kinds import Literal, Scatter
from dualflow.schedule.copying import copy_node, is_native, move_node
from dualflow.schedule.operands import CallKind, kind_of, shows_in_order, strides_to_show
from dualflow.schedule.scattering import bounds_node


class BufferKind(Enum):
    """Whose memory a buffer is."""

    INPUT = "an input's"
    CONSTANT = "the graph's own"
    OUTPUT = "a result's"
    TEMPORARY = "what host calls read and write, and all other values where each has a buffer of its own"
    ARENA = "the arena, where all other values are"
    STACK = "rows that a loop keeps of iterations whose number only the run knows"


class Allocation(NamedTuple):
    """A buffer of one of the kinds in a plan, by its number, and the first element of a value in it.

    Its elements lie in order where no ``strides`` are given.
    """

    kind: BufferKind
    number: int = 0
    offset: int = 0
    strides: tuple[int, ...] | None = None


def ordered(graph: Graph, *, lasting: bool) -> tuple[list[Node], dict[Value, Allocation]]:
    """The calls in order, with copies in and out, and the values that have an allocation from the start.

    First come copies of inputs that are handed back, while they still have their old values; then the graph's
    own nodes; then copies to outputs; last, copies into variables.

    Args:
        graph: the whole graph, or a body, whose updates are those of what a loop carries.
        lasting: whether updates outlive a failed call, as those of variables do. Then nothing that may fail
            comes after the first of them: what can't wait so long goes elsewhere, and is copied there last.
    """
    body = [n for n in graph.nodes if not is_view(n) and not isinstance(n.op.kind, Literal)]
    body = _sunk(body, graph.updates)
    failing: Fails = functools.cache(fails)
    if lasting and graph.updates:
        body = _behind_failures(_with_bounds(body, failing), graph.updates, failing)
    targets: dict[Value, Allocation] = {}
    parts = _parts_of_inputs(graph.outputs, body)
    for at, _, node in parts:
        body.insert(at, node)
    place = {n: i for i, n in enumerate(body)}
    copies = {value: node.output for _, value, node in parts}
    first: list[Node] = []
    after: list[Node] = []
    last: list[Node] = []

    def copy(value: Value, target: Allocation | None, calls: list[Node], make: Copy = copy_node) -> Value:
        node = make(value)
        calls.append(node)
        if target is not None:
            targets[node.output] = target
        return node.output

    updated = {u.value for u in graph.updates}
    for i, value in enumerate(graph.outputs):
        allocation = Allocation(BufferKind.OUTPUT, i)
        value = copies.get(value, value)
        made, strides = _shown(value)
        if made.node in place and made not in targets and made not in updated:
            targets[made] = allocation._replace(strides=strides)
        else:
            copy(_shortest(value), allocation, first if base_of(value).node is None else after)
    whole = {u: _whole(u.value, copy, after) if lasting else u.value for u in graph.updates}
    settled = _last_failure([*body, *after], failing) if lasting and graph.updates else -1
    inputs = {v: i for i, v in enumerate(graph.inputs)}
    last_read = _last_reads(body)
    for update in graph.updates:
        value, allocation = whole[update], Allocation(BufferKind.INPUT, inputs[update.input])
        if value is update.input:
            continue
        sure = value.node is not None and place.get(value.node, -1) > settled
        if value not in targets and sure and _may_overwrite(update.input, value, place, last_read):
            targets[value] = allocation
            continue
        if base_of(value).node is None:
            value = copy(value, None, first)
        copy(value, allocation, last, move_node if lasting else copy_node)
    return [*first, *body, *after, *last], targets


def _shown(value: Value) -> tuple[Value, tuple[int, ...] | None]:
    """What a call makes whose elements, in order or by strides, are those of ``value``; else ``value``."""
    base = base_of(value)
    if base is value or base.node is None or kind_of(base.node) not in _IN_ORDER:
        return value, None
    if not is_static(sizes(base)) or not is_static(sizes(value)) or base.spec.dtype is not value.spec.dtype:
        return value, None
    if shows_in_order(value):
        return base, None
    strides = strides_to_show(value) if kind_of(base.node) is CallKind.KERNEL else None
    return (value, None) if strides is None else (base, strides)


def _shortest(value: Value) -> Value:
    """The first of the views that show the elements of ``value`` in order: its copy is one of ``value``.

    NumPy copies what no loop holds: then it is ``value`` itself, for the result has its shape.
    """
    found = at = value
    while is_native(value) and is_static(sizes(at)) and at.node is not None and is_view(at.node):
        at = at.node.inputs[0]
        if at.spec.dtype is value.spec.dtype and is_static(sizes(at)) and shows_in_order(value, at):
            found = at
    return found


_IN_ORDER = (CallKind.KERNEL, CallKind.PRODUCT, CallKind.ASSEMBLY, CallKind.WINDOW_SUM)


def _parts_of_inputs(outputs: Sequence[Value], body: Sequence[Node]) -> list[tuple[int, Value, Node]]:
    """Copies of outputs that are parts of inputs by sizes that the run tells: where, of what, and the copy.

    They come as soon as the sizes are known, and so before variables are written to. The last come first.
    """
    told = [i for i, n in enumerate(body) if measures(n)]
    found: list[tuple[int, Value, Node]] = []
    for value in dict.fromkeys(outputs) if told else ():
        if base_of(value).node is None and value.node is not None:
            needed = _sizes_of_view(value)
            last = max(
                (i for i in told if needed & size_variables(body[i].attrs.get("extent"))), default=None
            )
            if last is not None:
                found.append((last + 1, value, copy_node(value)))
    return sorted(found, key=lambda row: -row[0])


def _sizes_of_view(value: Value) -> set[SizeVariable]:
    """The symbols of sizes that views of an input are made by."""
    found: set[SizeVariable] = set()
    while value.node is not None:
        found |= size_variables(tuple(value.spec.shape)) | size_variables(dict(value.node.attrs))
        value = value.node.inputs[0]
    return found


Copy = Callable[[Value], Node]
Fails = Callable[[Node], bool]


def _whole(value: Value, copy: Callable[..., Value], calls: list[Node]) -> Value:
    """``value``, or a copy in order of a view of elements that only NumPy copies: that can't be done last."""
    node = value.node
    if is_native(value) or node is None or base_of(value).node is None or not is_view(node):
        return value
    return copy(value, None, calls)


def fails(node: Node) -> bool:
    """Whether a call of ``node`` may end the program: see :func:`dualflow.graph.failing.may_fail`.

    A scatter can't once its indices are known to be inside.
    """
    kind = kind_of(node)
    return kind is CallKind.HOST or (kind not in (CallKind.SCATTER, CallKind.MOVE) and may_fail(node))


def _last_failure(nodes: Sequence[Node], failing: Fails) -> int:
    """The place of the last node that may fail."""
    return next((i for i in reversed(range(len(nodes))) if failing(nodes[i])), -1)


def _with_bounds(body: list[Node], failing: Fails) -> list[Node]:
    """``body`` with a check of its indices for each scatter: as soon as they are known, in the old order."""
    if not any(isinstance(n.op.kind, Scatter) for n in body):
        return body
    checks: dict[int, list[Node]] = {}
    made: dict[Node, int] = {}
    last = -1
    for i, node in enumerate(body):
        if kind_of(node) is CallKind.SCATTER:
            maker = base_of(node.inputs[-2]).node
            at = last if maker is None else max(last, made.get(maker, -1))
            checks.setdefault(at, []).append(bounds_node(node))
        made[node] = i
        if failing(node):
            last = i
    behind = ([*body[i : i + 1], *checks.get(i, [])] for i in range(len(body)))
    return [*checks.get(-1, []), *(n for nodes in behind for n in nodes)]


def _behind_failures(body: list[Node], updates: Sequence[Update], failing: Fails) -> list[Node]:
    """``body`` with what makes updates behind all that may fail, unless that depends on it."""
    settled = _last_failure(body, failing) + 1
    tied: set[Node] = set()
    for node in reversed(body[:settled]):
        if node in tied or failing(node):
            tied.add(node)
            tied.update(n for v in node.inputs if (n := base_of(v).node) is not None)
    makers = {u.value.node for u in updates}
    waiting: set[Node] = set()
    for node in body[:settled]:
        if (node in makers and node not in tied) or any(base_of(v).node in waiting for v in node.inputs):
            waiting.add(node)
    early = [n for n in body[:settled] if n not in waiting]
    return [*early, *(n for n in body[:settled] if n in waiting), *body[settled:]]


def _sunk(body: list[Node], updates: Sequence[Update]) -> list[Node]:
    """``body`` with each scatter onto an old value behind what else reads that, where its readers allow it.

    Then it can go in place.
    """
    for update in updates:
        node = update.value.node
        if node is None or kind_of(node) is not CallKind.SCATTER or update.input not in node.inputs[:1]:
            continue
        at = body.index(node)
        last = _last_reads(body)[update.input]
        if last > at and not any(base_of(v).node is node for n in body[at : last + 1] for v in n.inputs):
            body = [*body[:at], *body[at + 1 : last + 1], node, *body[last + 1 :]]
    return body


def _last_reads(body: Sequence[Node]) -> dict[Value, int]:
    """The last step that reads each buffer, also through views."""
    return {base_of(value): step for step, node in enumerate(body) for value in node.inputs}


def _may_overwrite(old: Value, new: Value, place: dict[Node, int], last_read: dict[Value, int]) -> bool:
    """Whether ``new`` may be computed in the buffer of ``old``: nobody reads the old value afterwards."""
    node = new.node
    if node is None or node not in place or last_read.get(old, -1) > place[node]:
        return False
    if kind_of(node) is CallKind.PRODUCT:
        return len(node.inputs) == 3 and node.inputs[2] is old and old not in map(base_of, node.inputs[:2])
    if kind_of(node) is CallKind.SCATTER:
        return node.inputs[0] is old and len(node.inputs) == 3 and old not in map(base_of, node.inputs[1:])
    if kind_of(node) is CallKind.ASSEMBLY:
        return last_read.get(old, -1) < place[node]
    return node.op is FUSED and _reads_what_it_writes(node, old, new)


def _reads_what_it_writes(node: Node, old: Value, new: Value) -> bool:
    """Whether the nest reads ``old`` only at the element that it writes of ``new``, and before that."""
    graph: Graph = node.attrs["body"]
    domain: LoopDomain = node.attrs["domain"]
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
