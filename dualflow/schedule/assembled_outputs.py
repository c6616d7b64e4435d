"""Outputs that are assembled from pieces, as by a concatenation: a copy for each piece."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from dualflow.graph.ir import Node
from dualflow.graph.views import sizes
from dualflow.graph.virtual_array import VirtualArray
from dualflow.ops.op_kinds import CopyPieces
from dualflow.schedule.copying import copy_elements, fill_elements
from dualflow.schedule.nest import Layout
from dualflow.schedule.planned import PlannedCall
from dualflow.sizes.symbolic_sizes import is_static


def pieces(call: PlannedCall) -> list[tuple[Node, tuple[Layout, ...], Layout]]:
    """The copies that assemble an output: a node, the layouts of its sources, and the layout of its result.

    A piece that has been computed in place is not copied.
    """
    kind = call.node.op.kind
    assert isinstance(kind, CopyPieces)
    values = (call.node.output, *call.node.inputs)
    layouts = (*call.outputs, *call.inputs)
    if not all(
        is_static(v.spec.shape) and is_static(p.strides) for v, p in zip(values, layouts, strict=True)
    ):
        return _symbolic_pieces(call, kind)
    arrays = [
        as_strided(np.zeros(1, np.int8), sizes(v), layout.strides)
        for v, layout in zip(values, layouts, strict=True)
    ]
    starts = list(map(address_of, arrays))
    owners = {id(owner_of(a)): i for i, a in enumerate(arrays)}

    def layout_of(view: Any) -> Layout:
        i = owners[id(owner_of(view))]
        offset = address_of(view) - starts[i] if view.size else 0
        return Layout(layouts[i].buffer, layouts[i].offset + offset, view.strides)

    dtype = call.node.output.spec.dtype
    copies: list[tuple[Node, tuple[Layout, ...], Layout]] = []
    for target, source in kind.pieces(*arrays, **call.node.attrs):
        if isinstance(source, np.ndarray):
            if source.shape == target.shape and layout_of(source) == layout_of(target):
                continue
            repeated = spread(layout_of(source), source.shape, target.shape)
            copies.append((copy_elements(target.shape, dtype), (repeated,), layout_of(target)))
        else:
            copies.append((fill_elements(target.shape, dtype, source), (), layout_of(target)))
    return copies


def _symbolic_pieces(call: PlannedCall, kind: CopyPieces) -> list[tuple[Node, tuple[Layout, ...], Layout]]:
    """The copies of :func:`pieces` for symbolic sizes."""
    dtype = call.node.output.spec.dtype
    values = (call.node.output, *call.node.inputs)
    layouts = (*call.outputs, *call.inputs)
    arrays = [VirtualArray(sizes(v), p.strides) for v, p in zip(values, layouts, strict=True)]
    allocations = dict(zip(map(id, arrays), layouts, strict=True))

    def layout_of(view: VirtualArray) -> Layout:
        allocation = allocations[id(view.owner)]
        return Layout(allocation.buffer, allocation.offset + view.offset, view.strides)

    copies: list[tuple[Node, tuple[Layout, ...], Layout]] = []
    for target, source in kind.pieces(*arrays, **call.node.attrs):
        if isinstance(source, VirtualArray):
            repeated = spread(layout_of(source), source.shape, target.shape)
            copies.append((copy_elements(target.shape, dtype), (repeated,), layout_of(target)))
        else:
            copies.append((fill_elements(target.shape, dtype, source), (), layout_of(target)))
    return copies


def address_of(array: Any) -> int:
    """The address of an array's first element."""
    address: int = array.__array_interface__["data"][0]
    return address


def owner_of(array: Any) -> Any:
    """The array that owns the memory of a view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def spread(layout: Layout, shape: Sequence[int], target: Sequence[int]) -> Layout:
    """``layout`` of elements of ``shape`` broadcast to ``target``: a stride of 0 repeats them."""
    strides = [0 if size == 1 else stride for size, stride in zip(shape, layout.strides, strict=True)]
    return Layout(layout.buffer, layout.offset, (0,) * (len(target) - len(shape)) + tuple(strides))
