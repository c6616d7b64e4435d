"""Outputs that are assembled from pieces, as by a concatenation: a copy for each piece."""

from __future__ import annotations

from collections.abc import Sequence

from dualflow.graph.ir import Node
from dualflow.graph.views import sizes
from dualflow.graph.virtual_array import VirtualArray
from dualflow.ops.op_kinds import CopyPieces
from dualflow.schedule.copying import copy_elements, fill_elements
from dualflow.schedule.nest import Layout
from dualflow.schedule.planned import PlannedCall


def pieces(call: PlannedCall) -> list[tuple[Node, tuple[Layout, ...], Layout]]:
    """The copies that assemble an output: a node, the layouts of its sources, and the layout of its result.

    A piece that has been computed in place is not copied.
    """
    kind = call.node.op.kind
    assert isinstance(kind, CopyPieces)
    layouts = (*call.outputs, *call.inputs)
    values = (call.node.output, *call.node.inputs)
    arrays = [VirtualArray(sizes(v), p.strides) for v, p in zip(values, layouts, strict=True)]
    allocations = dict(zip(map(id, arrays), layouts, strict=True))

    def layout_of(view: VirtualArray) -> Layout:
        allocation = allocations[id(view.owner)]
        offset = 0 if 0 in view.shape else view.offset
        return Layout(allocation.buffer, allocation.offset + offset, view.strides)

    dtype = call.node.output.spec.dtype
    copies: list[tuple[Node, tuple[Layout, ...], Layout]] = []
    for target, source in kind.pieces(*arrays, **call.node.attrs):
        if not isinstance(source, VirtualArray):
            copies.append((fill_elements(target.shape, dtype, source), (), layout_of(target)))
        elif source.shape != target.shape or layout_of(source) != layout_of(target):
            repeated = spread(layout_of(source), source.shape, target.shape)
            copies.append((copy_elements(target.shape, dtype), (repeated,), layout_of(target)))
    return copies


def spread(layout: Layout, shape: Sequence[int], target: Sequence[int]) -> Layout:
    """``layout`` of elements of ``shape`` broadcast to ``target``: a stride of 0 repeats them."""
    strides = [0 if size == 1 else stride for size, stride in zip(shape, layout.strides, strict=True)]
    return Layout(layout.buffer, layout.offset, (0,) * (len(target) - len(shape)) + tuple(strides))
