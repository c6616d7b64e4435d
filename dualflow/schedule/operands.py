"""Operands as strided layouts: resolves views, and inserts copies for views that strides can't express."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final

from dualflow.core.records import NamedTuple
from dualflow.graph.capabilities import Capabilities
from dualflow.graph.fused import FUSED, FUSED_PRODUCT, product_of
from dualflow.graph.ir import Node, Value
from dualflow.graph.loop_dtypes import in_loops
from dualflow.graph.passes.fourier_tables import FOUR_STEPS
from dualflow.graph.symbolic_size_ops import SIZE_OPS
from dualflow.graph.views import base_of, dims_of_base, is_view, sizes, strided_view
from dualflow.ops.integer_product import INTEGER_PRODUCT
from dualflow.ops.op_kinds import (
    CONTROL,
    Check,
    CollectiveCall,
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
from dualflow.schedule.scatter_calls import BOUNDS, is_scatter_supported
from dualflow.schedule.sliding import WINDOW_PRODUCT, WINDOW_SUM
from dualflow.sizes.symbolic_sizes import SizeFactor, size_variables

PRODUCT_CHARS = "fd"
"""The characters of the dtypes whose matrix products have native code."""


class StridedNode(NamedTuple):
    """A node and the values it reads, each of which strides can express."""

    node: Node
    inputs: tuple[Value, ...]


class CallKind(StrEnum):
    """The kind of call that runs a node: a kernel, a matrix product, a copy of memory, a host call, ..."""

    KERNEL = "kernel"
    """A loop nest."""
    ASSEMBLY = "assembly"
    """A loop nest for each piece."""
    PRODUCT = "product"
    """A matrix product."""
    WINDOW_SUM = "window sum"
    """Windows times a filter, summed per channel."""
    SCATTER = "scatter"
    """A scatter of rows."""
    BOUNDS = "bounds"
    """A bounds check of a scatter's indices."""
    CONTROL = "control"
    """A conditional or loop over bodies of such calls."""
    CHECK = "check"
    """A check, which ends the program if it fails."""
    MEASURE = "measure"
    """Computes a dynamic size."""
    SIZES = "sizes"
    """Sizes written to memory."""
    POSITIONS = "positions"
    """Indices of elements, by counting."""
    MOVE = "move"
    """A copy of memory."""
    FOURIER = "fourier"
    """Fourier transforms of long rows."""
    COLLECTIVE = "collective"
    """A collective with other workers, by machine code."""
    HOST = "host"
    """The op's NumPy or Python kernel."""


_KIND_BY_OP: Final = {
    FUSED: CallKind.KERNEL,
    FUSED_PRODUCT: CallKind.PRODUCT,
    INTEGER_PRODUCT: CallKind.PRODUCT,
    BOUNDS: CallKind.BOUNDS,
    MOVE: CallKind.MOVE,
    WINDOW_SUM: CallKind.WINDOW_SUM,
    FOUR_STEPS: CallKind.FOURIER,
    **dict.fromkeys(SIZE_OPS, CallKind.MEASURE),
}
_KIND_BY_OP_KIND: Final[dict[type, CallKind]] = {
    Cond: CallKind.CONTROL,
    Loop: CallKind.CONTROL,
    CollectiveCall: CallKind.COLLECTIVE,
    SizeVector: CallKind.SIZES,
    RepeatIndices: CallKind.POSITIONS,
    Check: CallKind.CHECK,
}


def kind_of(node: Node) -> CallKind:
    """The kind of call that runs ``node``; see :class:`CallKind`."""
    kind = node.op.kind
    call = _KIND_BY_OP.get(node.op) or _KIND_BY_OP_KIND.get(type(kind))
    if call is not None:
        return call
    dtype = node.outputs[0].spec.dtype if node.outputs else None
    if dtype is None:
        return CallKind.HOST
    if isinstance(kind, CopyPieces) and in_loops(dtype):
        return CallKind.ASSEMBLY
    if isinstance(kind, MatMul) and (kind.of_integers or dtype.char in PRODUCT_CHARS):
        return CallKind.PRODUCT
    if isinstance(kind, Scatter) and is_scatter_supported(kind, dtype):
        return CallKind.SCATTER
    return CallKind.HOST


def is_control(node: Node) -> bool:
    """Whether ``node`` is a conditional or loop that runs natively."""
    return isinstance(node.op.kind, CONTROL)


def view_layout(node: Node, source: Layout) -> Layout | None:
    """The layout of a view of ``source``; None if strides can't express it."""
    kind = node.op.kind
    assert isinstance(kind, View)
    if 0 in sizes(node.output):  # without elements, any strides do
        return Layout(source.buffer, source.offset, contiguous_strides(node.output.spec.shape))
    view = strided_view(kind.view, node.attrs, sizes(node.inputs[0]), source.strides)
    return None if view is None else Layout(source.buffer, source.offset + view[2], view[1])


def is_contiguous_view(value: Value, of: Value | None = None) -> bool:
    """Whether ``value`` has all elements of a contiguous source, in the same order, through a chain of views.

    The source is ``of``, or the first value of the chain.
    """
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
    contiguous = contiguous_strides(value.spec.shape)
    return all(n == 1 or a == b for n, a, b in zip(sizes(value), layout.strides, contiguous, strict=True))


def strides_for_contiguous_view(value: Value) -> tuple[int, ...] | None:
    """Strides for the base of ``value``'s views that make ``value`` contiguous; None if there are none.

    They exist if the views permute axes, and then reshape the contiguous result.
    """
    current: Value = value
    count = math.prod(sizes(base_of(value)))
    while current.node is not None and is_view(current.node):
        dims = dims_of_base(current) if math.prod(sizes(current)) == count else None
        if dims is not None and is_contiguous_view(value, current):
            strides = dict(zip(dims, contiguous_strides(current.spec.shape), strict=True))
            shape = base_of(current).spec.shape
            by_axis = tuple([strides.get(i, 1 if n == 1 else None) for i, n in enumerate(shape)])
            return None if None in by_axis else by_axis  # type: ignore[return-value]  # no None is left
        current = current.node.inputs[0]
    return None


def chosen_strides(
    nodes: Sequence[Node], placed: Collection[Value], bound_sizes: Collection[SizeFactor]
) -> dict[Value, tuple[int, ...]]:
    """Strides for kernel results whose first reader would otherwise need a copy.

    Values in ``placed`` and values that host calls read are contiguous, and so are those whose sizes are not
    all numbers or expressions in ``bound_sizes``: each has a block of its own.
    """
    chosen: dict[Value, tuple[int, ...]] = {}
    unread: set[Value] = set()
    placed = {*placed, *(base_of(v) for n in nodes if kind_of(n) is CallKind.HOST for v in n.inputs)}
    for node in nodes:
        for value in node.inputs:
            base = base_of(value)
            if base in unread:
                unread.discard(base)
                is_bound = base.spec.shape.is_static and size_variables(base.spec.shape) <= set(bound_sizes)
                strides = copy_free_strides(value) if is_bound and base is not value else None
                if strides is not None:
                    chosen[base] = strides
        if kind_of(node) is CallKind.KERNEL:
            unread.update(v for v in node.outputs if v not in placed)
    return chosen


def copy_free_strides(value: Value) -> tuple[int, ...] | None:
    """Strides for the source of ``value`` that avoid a copy; None if no copy is needed or avoidable."""
    layout: Layout | None = Layout(0, 0, contiguous_strides(base_of(value).spec.shape))
    chain: list[Node] = []
    current = value
    while current.node is not None and is_view(current.node):
        chain.insert(0, current.node)
        current = current.node.inputs[0]
    for node in chain:
        layout = None if layout is None else view_layout(node, layout)
    return strides_for_contiguous_view(value) if layout is None else None


def with_copies(
    nodes: Iterable[Node], strides: Mapping[Value, tuple[int, ...]], capabilities: Capabilities
) -> list[StridedNode]:
    """``nodes`` with their operands; a view that strides can't express is copied before its first reader.

    Args:
        nodes: the nodes in order.
        strides: the strides of values that are not contiguous.
        capabilities: whether products read matrices of any strides, or only those that BLAS reads.
    """
    return _Resolver(strides, capabilities).resolve(nodes)


def readable_by_blas(strides: Sequence[int], rows: int, columns: int) -> bool:
    """Whether BLAS can read a matrix: its rows or its columns are contiguous and do not overlap."""
    down, across = strides[-2:]
    by_rows = across == 1 and (down >= columns or rows == 1)
    return by_rows or (down == 1 and (across >= rows or columns == 1))


class _Resolver:
    """Finds the operands of nodes for :func:`with_copies`, and copies views that strides can't express.

    Attributes:
        resolved: for each value the value with the same elements that is read instead.
        strides: of resolved values.
    """

    def __init__(self, strides: Mapping[Value, tuple[int, ...]], capabilities: Capabilities) -> None:
        self.capabilities = capabilities
        self.non_contiguous = strides
        self.steps: list[StridedNode] = []
        self.resolved: dict[Value, Value] = {}
        self.strides: dict[Value, tuple[int, ...]] = {}

    def resolve(self, nodes: Iterable[Node]) -> list[StridedNode]:
        for node in nodes:
            kind = kind_of(node)
            inputs = tuple([self._operand(node, kind, i, v) for i, v in enumerate(node.inputs)])
            self.steps.append(StridedNode(node, inputs))
        return self.steps

    def _operand(self, node: Node, kind: CallKind, i: int, value: Value) -> Value:
        strided = kind not in _READS_CONTIGUOUS and node.op is not INTEGER_PRODUCT
        if kind is CallKind.HOST:
            strided = self.capabilities.strided_host_calls
        if not strided or (i == 0 and product_of(node).op is WINDOW_PRODUCT):
            return self._contiguous(value)
        return self._matrix(value) if kind is CallKind.PRODUCT and i < 2 else self._resolve(value)

    def _resolve(self, value: Value) -> Value:
        """The value that nodes read in place of ``value``: it has the same elements, and known strides."""
        chain = []
        at = value
        while at not in self.resolved and at.node is not None and is_view(at.node):
            chain.append(at.node)
            at = at.node.inputs[0]
        if at not in self.resolved:
            self._set(at, at, self.non_contiguous.get(at) or contiguous_strides(at.spec.shape))
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
        self._set(node.output, view, layout.strides)

    def _matrix(self, value: Value) -> Value:
        """``value``, or a copy of it whose strides matrix products can read."""
        resolved = self._resolve(value)
        rows, columns = sizes(value)[-2:]
        if self.capabilities.strided_products or readable_by_blas(self.strides[resolved], rows, columns):
            return resolved
        return self._copy(value)

    def _contiguous(self, value: Value) -> Value:
        """A contiguous value with the same elements."""
        resolved = self._resolve(value)
        contiguous = self.strides[resolved] == contiguous_strides(value.spec.shape)
        return resolved if contiguous else self._copy(value)

    def _copy(self, value: Value) -> Value:
        source = self.resolved[value]
        node = copy_node(source)
        self.steps.append(StridedNode(node, (source,)))
        self._set(value, node.output, contiguous_strides(value.spec.shape))
        return node.output

    def _set(self, value: Value, resolved: Value, strides: tuple[int, ...]) -> None:
        self.resolved[value] = resolved
        self.strides[resolved] = strides


_READS_CONTIGUOUS = (
    CallKind.CONTROL,
    CallKind.SCATTER,
    CallKind.CHECK,
    CallKind.BOUNDS,
    CallKind.MOVE,
    CallKind.MEASURE,
    CallKind.POSITIONS,
    CallKind.FOURIER,
    CallKind.WINDOW_SUM,
    CallKind.COLLECTIVE,
)
"""The kinds of calls whose operands must be contiguous."""
