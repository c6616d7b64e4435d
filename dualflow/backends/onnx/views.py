"""Views: reshapes, transposes, slices, and windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dualflow.backends.onnx.element_types import INT64
from dualflow.backends.onnx.scope import Operand
from dualflow.backends.onnx.unsupported import unsupported_error
from dualflow.backends.onnx.writer import GraphWriter, Rules, sizes_of
from dualflow.core.dtypes import bool_
from dualflow.graph.ir import Node
from dualflow.graph.symbolic_size_ops import WITH_SHAPE
from dualflow.graph.views import row_major
from dualflow.ops.arrangement import EXPAND_DIMS, RESHAPE, SQUEEZE, TRANSPOSE
from dualflow.ops.broadcasting import BROADCAST_TO
from dualflow.ops.indexing import GETITEM
from dualflow.ops.neural.windows import WINDOWS
from dualflow.ops.op_kinds import View
from dualflow.ops.shapes import ENSURED
from dualflow.sizes.symbolic_sizes import SymInt

_END: Final = np.iinfo(np.int64).max


def _reshape(w: GraphWriter, node: Node) -> Operand:
    return w.reshaped(w.operand(node.inputs[0]), sizes_of(node.inputs[0]), sizes_of(node.output))


def _view(w: GraphWriter, node: Node) -> Operand:
    """The view of an op without a rule of its own: a reshape, if it keeps all elements in order."""
    if row_major(node.output) is node.output:
        raise unsupported_error(node, "its view of the elements has no ONNX form")
    return _reshape(w, node)


def _transpose(w: GraphWriter, node: Node) -> Operand:
    return w.transposed(w.operand(node.inputs[0]), node.attrs["perm"])


def _expand(w: GraphWriter, node: Node) -> Operand:
    return w.expanded(w.operand(node.inputs[0]), sizes_of(node.inputs[0]), sizes_of(node.output))


def _with_shape(w: GraphWriter, node: Node) -> Operand:
    """A tensor of checked sizes; elements are repeated unless the consumers broadcast it by themselves."""
    if not node.attrs["repeats"] or w.is_broadcast(node.output):
        return w.operand(node.inputs[0])
    return _expand(w, node)


def _getitem(w: GraphWriter, node: Node) -> Operand:
    return getitem(w, w.operand(node.inputs[0]), sizes_of(node.inputs[0]), node.attrs["key"])


def getitem(w: GraphWriter, x: Operand, shape: Sequence[int], key: Sequence[Any]) -> Operand:
    """``x[key]``: a Slice, a Gather for each integer, and new axes."""
    entries = [entry for entry in key if entry is not None]
    slices = [
        (axis, entry)
        for axis, entry in enumerate(entries)
        if isinstance(entry, tuple) and not _is_whole(entry, shape[axis])
    ]
    if slices:
        axes = w.scope.ints(*[axis for axis, _ in slices])
        steps = w.scope.ints(*[step or 1 for _, (_, _, step) in slices])
        bounds = [_bounds(w, *entry) for _, entry in slices]
        starts, ends = (w.sizes.shape_vector(ends) for ends in zip(*bounds, strict=True))
        x = w.scope.add("Slice", x, starts, ends, axes, steps)
    for axis in reversed(range(len(entries))):
        if not isinstance(entries[axis], tuple):
            x = w.scope.add("Gather", x, w.sizes.scalar(entries[axis]), axis=axis)
    return _with_new_axes(w, x, key)


def _with_new_axes(w: GraphWriter, x: Operand, key: Sequence[Any]) -> Operand:
    kept = [entry for entry in key if entry is None or isinstance(entry, tuple)]
    new = [axis for axis, entry in enumerate(kept) if entry is None]
    return w.scope.add("Unsqueeze", x, w.scope.ints(*new)) if new else x


def _is_whole(entry: tuple[Any, Any, Any], size: int) -> bool:
    start, stop, step = entry
    return (start is None or start == 0) and (stop is None or stop == size) and (step is None or step == 1)


def _bounds(w: GraphWriter, start: Any, stop: Any, step: Any) -> tuple[int | Operand, int | Operand]:
    """The bounds of a slice in ONNX, where a stop below 0 counts from the end.

    A symbolic stop below 0, with a negative step, means: before the first element.
    """
    if (step or 1) > 0:
        return (0 if start is None else start), (_END if stop is None else stop)
    first = _END if start is None else start
    if not isinstance(stop, SymInt):
        return first, -_END if stop is None else stop
    end = w.sizes.as_vector(stop)
    is_before = w.scope.add("Less", end, w.scope.ints(0), dtype=bool_)
    return first, w.scope.where(is_before, w.scope.ints(-_END), end)


def _windows(w: GraphWriter, node: Node) -> Operand:
    """A copy of the windows: a Gather for each axis, and a transpose."""
    lengths, axes = node.attrs["size"], len(node.attrs["size"])
    counts, x = sizes_of(node.output)[1 : 1 + axes], w.operand(node.inputs[0])
    for i in reversed(range(axes)):
        stride, dilation = node.attrs["strides"][i], node.attrs["dilations"][i]
        window_starts = w.scope.add("Mul", w.arange(counts[i]), w.scope.constant(stride, INT64))
        element_offsets = w.scope.shared.constant(np.arange(lengths[i]) * dilation)
        positions = w.scope.add(
            "Add", w.scope.add("Unsqueeze", window_starts, w.scope.ints(1)), element_offsets
        )
        x = w.scope.add("Gather", x, positions, axis=1 + i)
    order = (0, *range(1, 2 * axes, 2), *range(2, 2 * axes + 1, 2), 2 * axes + 1)
    return w.transposed(x, order)


RULES: Final[Rules] = {
    RESHAPE: _reshape,
    EXPAND_DIMS: _reshape,
    SQUEEZE: _reshape,
    ENSURED: _reshape,
    TRANSPOSE: _transpose,
    BROADCAST_TO: _expand,
    WITH_SHAPE: _with_shape,
    GETITEM: _getitem,
    WINDOWS: _windows,
    View: _view,
}
