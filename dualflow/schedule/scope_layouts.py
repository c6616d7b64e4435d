"""The layouts of the values of a planned graph or body, through their views."""

from __future__ import annotations

from dualflow.core.records import dataclass, field
from dualflow.graph.ir import Value
from dualflow.graph.views import sizes
from dualflow.schedule.call_order import Allocation, BufferKind
from dualflow.schedule.element_ranges import check_view
from dualflow.schedule.nest import Layout, contiguous_strides
from dualflow.schedule.operands import view_layout
from dualflow.sizes.symbolic_sizes import is_static


@dataclass(slots=True, eq=False)
class ScopeLayouts:
    """The layouts of the values of a scope.

    Attributes:
        starts: the first index of each kind of buffer in the table.
        allocations: of the values.
        base: the byte at which the scope's arena begins.
        inputs: for a body, the layouts of its inputs, which are values of the graph around it.
        outputs: likewise of its outputs.
        computed: the layouts that :meth:`layout_of` has returned.
    """

    starts: dict[BufferKind, int]
    allocations: dict[Value, Allocation]
    base: int = 0
    inputs: tuple[Layout, ...] | None = None
    outputs: tuple[Layout, ...] | None = None
    computed: dict[Value, Layout] = field(default_factory=dict)

    def layout_of(self, value: Value) -> Layout:
        """The layout of ``value``, through its views; computed once."""
        layout = self.computed.get(value)
        if layout is None:
            layout = self.computed[value] = self._layout_of(value)
        return layout

    def _layout_of(self, value: Value) -> Layout:
        base, chain = value, []
        while base not in self.allocations:
            assert base.node is not None, f"{base} has no allocation"
            chain.append(base.node)
            base = base.node.inputs[0]
        source = layout = self._base(base, self.allocations[base])
        for node in reversed(chain):
            view = view_layout(node, layout)
            assert view is not None, f"{node} was not copied"
            layout = view
        if chain:
            check_view(value, layout, base, source)
        return layout

    def _base(self, value: Value, allocation: Allocation) -> Layout:
        strides = allocation.strides or contiguous_strides(value.spec.shape)
        if allocation.kind is BufferKind.INPUT and self.inputs is not None:
            return self.inputs[allocation.number]
        if allocation.kind is BufferKind.OUTPUT and self.outputs is not None:
            layout = self.outputs[allocation.number]
            if not is_static(sizes(value)):
                return layout
            return Layout(layout.buffer, layout.offset + allocation.offset, strides)
        offset = allocation.offset + (
            self.base // value.spec.dtype.size if allocation.kind is BufferKind.ARENA else 0
        )
        return Layout(self.starts[allocation.kind] + allocation.number, offset, strides)
