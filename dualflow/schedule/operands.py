"""Operands that strides can express: views are resolved, and what no strides can express is copied first."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum

from dualflow.core.records import NamedTuple
from dualflow.core.symbolic_sizes import is_static
from dualflow.graph.axes import base_of, dims_of_base, is_view, sizes, strided_view
from dualflow.graph.capabilities import Capabilities
from dualflow.graph.fused import FUSED
from dualflow.graph.ir import Node, Value
from dualflow.graph.loop_dtypes import in_loops
from dualflow.graph.passes.fourier import FOUR_STEPS
from dualflow.graph.run_time_sizes import binds_or_checks_size
from dualflow.ops.op_kinds import (
    Check,
    Cond,
    CopyPieces,
    Loop,
    MatMul,
    RepeatIndices,
    Scatter,
    SizeVector,
    View,
)
from dualflow.schedule.copying import MOVE, copy_node
from dualflow.schedule.nest import Layout, contiguous_strides
from dualflow.schedule.scattering import BOUNDS, scatters
from dualflow.schedule.sliding import WINDOW_PRODUCT, WINDOW_SUM

PRODUCT_CHARS = "fd"
"""The characters of the dtypes whose matrix products have native code."""


class StridedNode(NamedTuple):
    """A node and the values it reads, each of which strides can express."""

    node: Node
    inputs: tuple[Value, ...]


class CallKind(StrEnum):
    """How a node is called."""

    KERNEL = "kernel"
    """A loop nest."""
    ASSEMBLY = "assembly"
    """A loop nest for each piece."""
    PRODUCT = "product"
    """A matrix product."""
    WINDOW_SUM = "window sum"
    """Windows times a filter, summed channel by channel."""
    SCATTER = "scatter"
    """Rows put where integers say."""
    BOUNDS = "bounds"
    """A check of a scatter's integers."""
    CONTROL = "control"
    """A conditional or loop over bodies of such calls."""
    CHECK = "check"
    """What may end them all."""
    MEASURE = "measure"
    """A size that the program learns."""
    SIZES = "sizes"
    """Sizes written to memory."""
    POSITIONS = "positions"
    """The places of elements, counted."""
    MOVE = "move"
    """A copy of memory."""
    FOURIER = "fourier"
    """Fourier transforms of long rows."""
    HOST = "host"
    """The op's NumPy or Python kernel."""


def kind_of(node: Node) -> CallKind:
    """How a node is called."""
    kind, dtype = node.op.kind, node.outputs[0].spec.dtype if node.outputs else None
    if node.op is FUSED:
        return CallKind.KERNEL
    if node.op is BOUNDS:
        return CallKind.BOUNDS
    if node.op is MOVE:
        return CallKind.MOVE
    if node.op is WINDOW_SUM:
        return CallKind.WINDOW_SUM
    if node.op is FOUR_STEPS:
        return CallKind.FOURIER
    if is_control(node):
        return CallKind.CONTROL
    if binds_or_checks_size(node):
        return CallKind.MEASURE
    if isinstance(kind, SizeVector):
        return CallKind.SIZES
    if isinstance(kind, RepeatIndices):
        return CallKind.POSITIONS
    if isinstance(kind, Check):
        return CallKind.CHECK
    if isinstance(kind, CopyPieces) and dtype is not None and in_loops(dtype):
        return CallKind.ASSEMBLY
    if isinstance(kind, MatMul) and dtype is not None and dtype.char in PRODUCT_CHARS:
        return CallKind.PRODUCT
    if isinstance(kind, Scatter) and dtype is not None and scatters(kind, dtype):
        return CallKind.SCATTER
    return CallKind.HOST


def is_control(node: Node) -> bool:
    """Whether ``node`` is a conditional or loop that runs natively."""
    return isinstance(node.op.kind, Cond | Loop)


def view_layout(node: Node, source: Layout) -> Layout | None:
    """Where a view lies, given what it views; None where strides can't say."""
    kind = node.op.kind
    assert isinstance(kind, View)
    if 0 in sizes(node.output):  # no element lies anywhere, whatever the sizes beside it
        return Layout(source.buffer, source.offset, contiguous_strides(node.output.spec.shape))
    seen = strided_view(kind.view, node.attrs, sizes(node.inputs[0]), source.strides)
    return None if seen is None else Layout(source.buffer, source.offset + seen[2], seen[1])


def shows_in_order(value: Value, of: Value | None = None) -> bool:
    """Whether views show all elements of ``of``, or of what they are all made of, as they lie in order."""
    chain: list[Node] = []
    base = value
    while base is not of and base.node is not None and is_view(base.node):
        chain.insert(0, base.node)
        base = base.node.inputs[0]
    layout: Layout | None = Layout(0, 0, contiguous_strides(base.spec.shape))
    for node in chain:
        layout = None if layout is None else view_layout(node, layout)
    if layout is None or layout.offset != 0 or math.prod(sizes(value)) != math.prod(sizes(base)):
        return False
    whole = contiguous_strides(value.spec.shape)
    return all(n == 1 or a == b for n, a, b in zip(sizes(value), layout.strides, whole, strict=True))


def strides_to_show(value: Value) -> tuple[int, ...] | None:
    """The strides of what views are made of, in which they show its elements in order; None if none do.

    Views exchange axes, each as it is, and then show what is in order under another shape.
    """
    at: Value = value
    count = math.prod(sizes(base_of(value)))
    while at.node is not None and is_view(at.node):
        dims = dims_of_base(at) if math.prod(sizes(at)) == count else None
        if dims is not None and shows_in_order(value, at):
            strides = dict(zip(dims, contiguous_strides(at.spec.shape), strict=True))
            shape = base_of(at).spec.shape
            found = tuple([strides.get(i, 1 if n == 1 else None) for i, n in enumerate(shape)])
            return None if None in found else found  # type: ignore[return-value]  # no None is left
        at = at.node.inputs[0]
    return None


def chosen_strides(nodes: Sequence[Node], placed: Collection[Value]) -> dict[Value, tuple[int, ...]]:
    """Strides for what kernels make, where who reads it first sees it in order by them, and else by a copy.

    What is ``placed``, and what host calls read, lies in order.
    """
    chosen: dict[Value, tuple[int, ...]] = {}
    made: set[Value] = set()
    placed = {*placed, *(base_of(v) for n in nodes if kind_of(n) is CallKind.HOST for v in n.inputs)}
    for node in nodes:
        for value in node.inputs:
            base = base_of(value)
            if base in made:
                made.discard(base)
                strides = None if base is value or not is_static(sizes(base)) else strides_wanted(value)
                if strides is not None:
                    chosen[base] = strides
        if kind_of(node) is CallKind.KERNEL:
            made.update(v for v in node.outputs if v not in placed)
    return chosen


def strides_wanted(value: Value) -> tuple[int, ...] | None:
    """The strides that save a copy of ``value``; None where it needs none, or has none."""
    layout: Layout | None = Layout(0, 0, contiguous_strides(base_of(value).spec.shape))
    chain: list[Node] = []
    at = value
    while at.node is not None and is_view(at.node):
        chain.insert(0, at.node)
        at = at.node.inputs[0]
    for node in chain:
        layout = None if layout is None else view_layout(node, layout)
    return strides_to_show(value) if layout is None else None


def with_copies(
    nodes: Iterable[Node], lies: Mapping[Value, tuple[int, ...]], capabilities: Capabilities
) -> list[StridedNode]:
    """The steps for ``nodes``, with a copy before the first that reads what strides can't express.

    Args:
        nodes: the nodes in order.
        lies: the strides of values whose elements do not lie in order.
        capabilities: they state whether products read matrices of any strides, or only what BLAS reads.
    """
    return _Resolver(lies, capabilities).run(nodes)


def readable_by_blas(strides: Sequence[int], rows: int, columns: int) -> bool:
    """Whether BLAS can read a matrix: rows, or columns, of neighbouring elements, one after another."""
    down, across = strides[-2:]
    by_rows = across == 1 and (down >= columns or rows == 1)
    return by_rows or (down == 1 and (across >= rows or columns == 1))


class _Resolver:
    def __init__(self, lies: Mapping[Value, tuple[int, ...]], capabilities: Capabilities) -> None:
        self.capabilities = capabilities
        self.lies = lies
        self.steps: list[StridedNode] = []
        self.resolved: dict[Value, Value] = {}
        self.strides: dict[Value, tuple[int, ...]] = {}

    def run(self, nodes: Iterable[Node]) -> list[StridedNode]:
        for node in nodes:
            kind = kind_of(node)
            inputs = tuple([self._operand(node, kind, i, v) for i, v in enumerate(node.inputs)])
            self.steps.append(StridedNode(node, inputs))
        return self.steps

    def _operand(self, node: Node, kind: CallKind, i: int, value: Value) -> Value:
        if kind in _WHOLE or (i == 0 and node.op is WINDOW_PRODUCT):
            return self._whole(value)
        return self._matrix(value) if kind is CallKind.PRODUCT and i < 2 else self._resolve(value)

    def _resolve(self, value: Value) -> Value:
        """A value with the same elements whose strides are known."""
        chain = []
        at = value
        while at not in self.resolved and at.node is not None and is_view(at.node):
            chain.append(at.node)
            at = at.node.inputs[0]
        if at not in self.resolved:
            self._learn(at, at, self.lies.get(at) or contiguous_strides(at.spec.shape))
        for node in reversed(chain):
            self._resolve_view(node)
        return self.resolved[value]

    def _resolve_view(self, node: Node) -> None:
        source = self.resolved[node.inputs[0]]
        layout = view_layout(node, Layout(0, 0, self.strides[source]))
        if layout is None:
            source = self._copy(node.inputs[0])
            layout = view_layout(node, Layout(0, 0, self.strides[source]))
            assert layout is not None
        same = source is node.inputs[0]
        view = node.output if same else node.with_inputs([source]).output
        self._learn(node.output, view, layout.strides)

    def _matrix(self, value: Value) -> Value:
        """A value that products can read."""
        found = self._resolve(value)
        rows, columns = sizes(value)[-2:]
        if self.capabilities.strided_products or readable_by_blas(self.strides[found], rows, columns):
            return found
        return self._copy(value)

    def _whole(self, value: Value) -> Value:
        """A value whose elements lie one behind another: bodies are planned for such."""
        found = self._resolve(value)
        return found if self.strides[found] == contiguous_strides(value.spec.shape) else self._copy(value)

    def _copy(self, value: Value) -> Value:
        source = self.resolved[value]
        node = copy_node(source)
        self.steps.append(StridedNode(node, (source,)))
        self._learn(value, node.output, contiguous_strides(value.spec.shape))
        return node.output

    def _learn(self, value: Value, found: Value, strides: tuple[int, ...]) -> None:
        self.resolved[value] = found
        self.strides[found] = strides


_WHOLE = (
    CallKind.CONTROL,
    CallKind.SCATTER,
    CallKind.CHECK,
    CallKind.BOUNDS,
    CallKind.MOVE,
    CallKind.MEASURE,
    CallKind.POSITIONS,
    CallKind.FOURIER,
    CallKind.WINDOW_SUM,
)
"""The kinds of calls that read elements one behind another."""
