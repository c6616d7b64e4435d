"""Orders the calls of a graph, and preassigns storage to its outputs and variables."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

from dualflow.core.records import NamedTuple
from dualflow.graph.failing import may_fail
from dualflow.graph.fused import (
    FUSED,
    FUSED_PRODUCT,
    IterationSpace,
    operands_with_axes,
    output_axes,
    product_of,
)
from dualflow.graph.ir import Graph, Node, Update, Value
from dualflow.graph.symbolic_size_ops import (
    WITH_SHAPE,
    argument_sizes,
    binds_or_checks_size,
    computes_sizes,
)
from dualflow.graph.views import base_of, is_view, sizes
from dualflow.ops.op_kinds import Literal, Scatter
from dualflow.schedule.copying import copy_node, is_native, move_node
from dualflow.schedule.operands import CallKind, is_contiguous_view, kind_of, strides_for_contiguous_view
from dualflow.schedule.scatter_calls import bounds_node
from dualflow.sizes.symbolic_sizes import SizeVariable, is_static, size_variables

Copy = Callable[[Value], Node]
"""Returns the call that copies a value."""
Fails = Callable[[Node], bool]
"""Whether a call may end the program."""


class BufferKind(StrEnum):
    """The kinds of buffers."""

    INPUT = "an input"
    CONSTANT = "a constant of the graph"
    OUTPUT = "an output"
    TEMPORARY = "a value that host calls read or write; any intermediate value if each has its own buffer"
    ARENA = "all other intermediate values"
    TASK = "a value that one concurrent task alone accesses: memory of the thread that runs it"
    STACK = "a value of dynamic size, such as the rows that a loop stacks"


class Allocation(NamedTuple):
    """The storage of a value: a buffer and a layout in it.

    Attributes:
        kind: what the buffer holds.
        number: the buffer's number among those of its kind.
        offset: the first element.
        strides: in elements; None if the value is contiguous.
    """

    kind: BufferKind
    number: int = 0
    offset: int = 0
    strides: tuple[int, ...] | None = None


def ordered(graph: Graph, *, updates_variables: bool) -> tuple[list[Node], dict[Value, Allocation]]:
    """The nodes of ``graph`` in execution order, with copies, and the buffers of outputs and updated values.

    Copies of inputs that are outputs come first, while the inputs have their old values. The nodes of the
    graph follow, then copies to outputs, then copies into variables.

    Args:
        graph: the whole graph, or the body of a loop, whose updates are the loop-carried values.
        updates_variables: whether updates outlive a failed call, as those of variables do. Then no node that
            may fail comes after the first update. An updated value that has to be computed earlier goes to a
            buffer of its own, and is copied into the variable at the end.
    """
    body = [n for n in graph.nodes if not is_view(n) and not isinstance(n.op.kind, Literal)]
    body = _with_late_scatters(body, graph.updates)
    failing: Fails = functools.cache(fails)
    if updates_variables and graph.updates:
        body = _updates_last(_with_bounds(body, failing), graph.updates, failing)
    sizes_are_bound = updates_variables and bool(argument_sizes(graph)) and not computes_sizes(graph)
    input_copies = _copies_of_input_views(graph.outputs, body, sizes_are_bound)
    for at, _, node in input_copies:
        body.insert(at, node)
    order = _Order(body)
    copies = {value: node.output for _, value, node in input_copies}
    order.store_outputs([copies.get(v, v) for v in graph.outputs], graph.updates, sizes_are_bound)
    if updates_variables:
        order.store_variables(graph, failing)
    else:
        order.store_updates(graph, {u: u.value for u in graph.updates}, -1, copy_node)
    return [*order.first, *body, *order.after, *order.last], order.targets


class _Order:
    """The copies before and after the calls of a graph, and the buffers of outputs and updated values.

    Attributes:
        body: the calls of the graph, in order.
        first: copies before them, of the old values of inputs.
        after: copies after them.
        last: copies into inputs that are updated.
        targets: the buffer of each output and updated value.
    """

    def __init__(self, body: Sequence[Node]) -> None:
        self.body = body
        self.first: list[Node] = []
        self.after: list[Node] = []
        self.last: list[Node] = []
        self.targets: dict[Value, Allocation] = {}
        self._index = {n: i for i, n in enumerate(body)}

    def store_outputs(
        self, outputs: Sequence[Value], updates: Sequence[Update], sizes_are_bound: bool
    ) -> None:
        """Preassign the output buffers to ``outputs``; copy those that no call can write there."""
        updated = {u.value for u in updates}
        for i, value in enumerate(outputs):
            allocation = Allocation(BufferKind.OUTPUT, i)
            computed, strides = _computed_value(value, sizes_are_bound)
            if computed.node in self._index and computed not in self.targets and computed not in updated:
                self.targets[computed] = allocation._replace(strides=strides)
            else:
                calls = self.first if base_of(value).node is None else self.after
                self._copy(_contiguous_source(value, sizes_are_bound), allocation, calls)

    def store_variables(self, graph: Graph, failing: Fails) -> None:
        """Preassign the buffers of variables to updated values that are computed after the last failure."""
        values = {u: self._copied_by_numpy(u.value) for u in graph.updates}
        last_failure = _last_failure([*self.body, *self.after], failing) if graph.updates else -1
        self.store_updates(graph, values, last_failure, move_node)

    def store_updates(
        self, graph: Graph, values: Mapping[Update, Value], last_failure: int, make: Copy
    ) -> None:
        """Preassign the buffers of updated inputs to their new values.

        A value is copied at the end, by the call that ``make`` returns, if it is computed before the step
        ``last_failure``, or while the old value is still read.
        """
        inputs = {v: i for i, v in enumerate(graph.inputs)}
        last_read = _last_reads(self.body)
        for update in graph.updates:
            value, allocation = values[update], Allocation(BufferKind.INPUT, inputs[update.input])
            computed = _with_own_sizes(value)
            if computed is update.input:
                continue
            after_failures = computed.node is not None and self._index.get(computed.node, -1) > last_failure
            may_overwrite = computed not in self.targets and after_failures
            if may_overwrite and _may_overwrite(update.input, computed, self._index, last_read):
                self.targets[computed] = allocation
                continue
            if base_of(value).node is None:
                value = self._copy(value, None, self.first)
            self._copy(value, allocation, self.last, make)

    def _copied_by_numpy(self, value: Value) -> Value:
        """``value``, or a contiguous copy of it if only NumPy can copy its elements from a view.

        A copy by NumPy may fail, so it can't be one of the last.
        """
        node = value.node
        if is_native(value) or node is None or base_of(value).node is None or not is_view(node):
            return value
        return self._copy(value, None, self.after)

    def _copy(
        self, value: Value, target: Allocation | None, calls: list[Node], make: Copy = copy_node
    ) -> Value:
        """Append a copy of ``value`` into the buffer ``target`` to ``calls``; returns the copy's output."""
        node = make(value)
        calls.append(node)
        if target is not None:
            self.targets[node.output] = target
        return node.output


def _computed_value(value: Value, sizes_are_bound: bool) -> tuple[Value, tuple[int, ...] | None]:
    """The value that a call writes into the buffer for ``value``, and its strides there.

    It is ``value`` itself, or the source of a view of all its elements. None for strides means contiguous.
    If symbolic sizes are not bound before the first call, a buffer of such a size is for ``value`` alone.
    """
    base = base_of(value)
    if base is value or base.node is None or kind_of(base.node) not in _WRITES_ANY_LAYOUT:
        return value, None
    static = is_static(sizes(base)) and is_static(sizes(value))
    if not (static or sizes_are_bound) or base.spec.dtype is not value.spec.dtype:
        return value, None
    if is_contiguous_view(value):
        return base, None
    strides = strides_for_contiguous_view(value) if kind_of(base.node) is CallKind.KERNEL else None
    return (value, None) if strides is None else (base, strides)


def _with_own_sizes(value: Value) -> Value:
    """``value``, or the value of which it is the same elements with other expressions for its sizes."""
    while value.node is not None and value.node.op is WITH_SHAPE and not value.node.attrs["repeats"]:
        value = value.node.inputs[0]
    return value


def _contiguous_source(value: Value, sizes_are_bound: bool) -> Value:
    """The first value in the chain of views of ``value`` with the same elements in the same order.

    A copy of it is a copy of ``value``. It is ``value`` itself if NumPy makes the copy, which has its shape,
    and where symbolic sizes are not bound before the first call.
    """

    def is_known(value: Value) -> bool:
        return sizes_are_bound or is_static(sizes(value))

    source = viewed = value
    while is_native(value) and is_known(viewed) and viewed.node is not None and is_view(viewed.node):
        viewed = viewed.node.inputs[0]
        if viewed.spec.dtype is value.spec.dtype and is_known(viewed) and is_contiguous_view(value, viewed):
            source = viewed
    return source


_WRITES_ANY_LAYOUT = (CallKind.KERNEL, CallKind.PRODUCT, CallKind.ASSEMBLY, CallKind.WINDOW_SUM)


def _copies_of_input_views(
    outputs: Sequence[Value], body: Sequence[Node], sizes_are_bound: bool
) -> list[tuple[int, Value, Node]]:
    """Copies of outputs that are views of inputs with dynamic sizes: position in ``body``, value and copy.

    A copy runs as soon as its sizes are computed and checked, so before variables are written. The last one
    comes first, so that insertion keeps the other positions.
    """
    size_nodes = [i for i, n in enumerate(body) if binds_or_checks_size(n)]
    copies: list[tuple[int, Value, Node]] = []
    for value in dict.fromkeys(outputs) if size_nodes else ():
        if base_of(value).node is None and value.node is not None:
            needed = _sizes_of_view(value)
            last = max((i for i in size_nodes if needed & size_variables(dict(body[i].attrs))), default=None)
            if last is not None:
                source = _contiguous_source(value, sizes_are_bound)
                copies.append((last + 1, value, copy_node(source)))
    return sorted(copies, key=lambda copy: -copy[0])


def _sizes_of_view(value: Value) -> set[SizeVariable]:
    """The size variables of a chain of views of an input."""
    variables: set[SizeVariable] = set()
    while value.node is not None:
        variables |= size_variables(tuple(value.spec.shape)) | size_variables(dict(value.node.attrs))
        value = value.node.inputs[0]
    return variables


def fails(node: Node) -> bool:
    """Whether a call of ``node`` may end the program: see :func:`dualflow.graph.failing.may_fail`.

    A scatter can't fail: a separate call has checked its indices (:func:`_with_bounds`).
    """
    kind = kind_of(node)
    return kind is CallKind.HOST or (kind not in (CallKind.SCATTER, CallKind.MOVE) and may_fail(node))


def _last_failure(nodes: Sequence[Node], failing: Fails) -> int:
    """The position of the last node that may fail; -1 if none may."""
    return next((i for i in reversed(range(len(nodes))) if failing(nodes[i])), -1)


def _with_bounds(body: list[Node], failing: Fails) -> list[Node]:
    """``body`` with a bounds check for each scatter, as soon as its indices are computed.

    Nodes that may fail keep their order, so that the first error of a call stays the first.
    """
    if not any(isinstance(n.op.kind, Scatter) for n in body):
        return body
    checks: dict[int, list[Node]] = {}
    index: dict[Node, int] = {}
    last_failure = -1
    for i, node in enumerate(body):
        if kind_of(node) is CallKind.SCATTER:
            producer = base_of(node.inputs[-2]).node
            after = last_failure if producer is None else max(last_failure, index.get(producer, -1))
            checks.setdefault(after, []).append(bounds_node(node))
        index[node] = i
        if failing(node):
            last_failure = i
    checked = ([*body[i : i + 1], *checks.get(i, [])] for i in range(len(body)))
    return [*checks.get(-1, []), *(n for nodes in checked for n in nodes)]


def _updates_last(body: list[Node], updates: Sequence[Update], failing: Fails) -> list[Node]:
    """``body`` with updates moved after all nodes that may fail, except those that depend on them."""
    end = _last_failure(body, failing) + 1
    needed: set[Node] = set()
    for node in reversed(body[:end]):
        if node in needed or failing(node):
            needed.add(node)
            needed.update(n for v in node.inputs if (n := base_of(v).node) is not None)
    producers = {u.value.node for u in updates}
    delayed: set[Node] = set()
    for node in body[:end]:
        if (node in producers and node not in needed) or any(base_of(v).node in delayed for v in node.inputs):
            delayed.add(node)
    early = [n for n in body[:end] if n not in delayed]
    return [*early, *(n for n in body[:end] if n in delayed), *body[end:]]


def _with_late_scatters(body: list[Node], updates: Sequence[Update]) -> list[Node]:
    """``body`` with each scatter into a variable moved after the other readers of its old value.

    The scatter can then work in place. It stays where one of these readers depends on its result.
    """
    scattering = [
        (u.input, node)
        for u in updates
        if (node := u.value.node) is not None
        and kind_of(node) is CallKind.SCATTER
        and u.input in node.inputs[:1]
    ]
    last_reads = _last_reads(body) if scattering else {}
    index = {node: i for i, node in enumerate(body)} if scattering else {}
    for variable, node in scattering:
        i, last = index[node], last_reads[variable]
        if last > i and not any(base_of(v).node is node for n in body[i : last + 1] for v in n.inputs):
            body = [*body[:i], *body[i + 1 : last + 1], node, *body[last + 1 :]]
            last_reads = _last_reads(body)
            index = {node: i for i, node in enumerate(body)}
    return body


def _last_reads(body: Sequence[Node]) -> dict[Value, int]:
    """For each value, the last step that reads it, directly or through views."""
    return {base_of(value): step for step, node in enumerate(body) for value in node.inputs}


def _may_overwrite(old: Value, new: Value, index: dict[Node, int], last_read: dict[Value, int]) -> bool:
    """Whether ``new`` may be computed in the buffer of ``old``, which no later call reads."""
    node = new.node
    if node is None or node not in index or last_read.get(old, -1) > index[node]:
        return False
    if node.op is FUSED_PRODUCT:
        factors = node.inputs[: len(product_of(node).inputs)]
        return old not in map(base_of, factors) and _is_elementwise_update(node, old, new)
    if kind_of(node) is CallKind.PRODUCT:
        return len(node.inputs) == 3 and node.inputs[2] is old and old not in map(base_of, node.inputs[:2])
    if kind_of(node) is CallKind.SCATTER:
        return node.inputs[0] is old and len(node.inputs) == 3 and old not in map(base_of, node.inputs[1:])
    if kind_of(node) is CallKind.ASSEMBLY:
        return last_read.get(old, -1) < index[node]
    return node.op is FUSED and _is_elementwise_update(node, old, new)


def _is_elementwise_update(node: Node, old: Value, new: Value) -> bool:
    """Whether the nest reads an element of ``old`` only to compute the same element of ``new``."""
    graph: Graph = node.attrs["body"]
    space: IterationSpace = node.attrs["space"]
    producer = graph.outputs[new.index].node
    written = (
        output_axes(producer, space.index_axes[producer])
        if producer is not None and producer in space.index_axes
        else None
    )
    by_stages = written is None or any(a in space.reduced for a in written)
    for outer, value in zip(node.inputs, graph.inputs, strict=True):
        if base_of(outer) is not old:
            continue
        if outer is not old or by_stages:
            return False
        readers = [n for n in graph.nodes if value in n.inputs]
        if not all(n in space.index_axes for n in readers):
            return False
        reads = [read for n in readers for read in operands_with_axes(n, space.index_axes[n])]
        if any(v is value and axes != written for v, axes in reads):
            return False
    return True
