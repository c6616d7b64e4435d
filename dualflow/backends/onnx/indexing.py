"""Ops that move elements: gathers, scatters, joined and padded tensors, sorted elements, repeated indices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from dualflow.backends.onnx.element_types import INT64, runtime_dtype
from dualflow.backends.onnx.scope import Operand
from dualflow.backends.onnx.unsupported import require_comparable, unsupported_error
from dualflow.backends.onnx.views import getitem
from dualflow.backends.onnx.writer import GraphWriter, Rules, sizes_of
from dualflow.core.dtypes import bool_
from dualflow.graph.ir import Node
from dualflow.ops.indexing import PLACE, REPLACE
from dualflow.ops.joining import CONCAT, STACK
from dualflow.ops.op_kinds import Gather, RepeatIndices, Scatter
from dualflow.ops.ordering.extremes import TOP_PLACES
from dualflow.ops.repetition import PAD
from dualflow.ops.scattering import GATHER_ND
from dualflow.ops.sorting import ADD_ALONG, ARGSORT, SORT, TAKE_ALONG


def _concat(w: GraphWriter, node: Node) -> Operand:
    return w.scope.add("Concat", *w.operands(node), axis=node.attrs["axis"])


def _stack(w: GraphWriter, node: Node) -> Operand:
    axis = node.attrs["axis"]
    rows = [w.scope.add("Unsqueeze", x, w.scope.ints(axis)) for x in w.operands(node)]
    return w.scope.add("Concat", *rows, axis=axis)


def _pad(w: GraphWriter, node: Node) -> Operand:
    (x,), paddings = w.operands(node), node.attrs["paddings"]
    return _padded(w, x, paddings, node.attrs["value"])


def _padded(w: GraphWriter, x: Operand, paddings: Sequence[tuple[int, int]], value: Any) -> Operand:
    around = w.sizes.shape_vector([*[before for before, _ in paddings], *[after for _, after in paddings]])
    wide = runtime_dtype("Pad", x.dtype)
    padded = w.scope.add("Pad", w.scope.cast(x, wide), around, w.scope.constant(value, wide))
    return w.scope.cast(padded, x.dtype)


def _set_in_zeros(w: GraphWriter, node: Node) -> Operand:
    """Zeros after ``zeros[key] = x``."""
    shape = sizes_of(node.output)
    zeros = w.filled(shape, 0, node.output.spec.dtype)
    (x,) = w.operands(node)
    return _set_item(w, zeros, shape, x, node.attrs["key"])


def _set_in_tensor(w: GraphWriter, node: Node) -> Operand:
    """``x`` after ``x[key] = new``."""
    x, new = w.operands(node)
    return _set_item(w, x, sizes_of(node.inputs[0]), new, node.attrs["key"])


def _set_item(w: GraphWriter, x: Operand, shape: Sequence[int], new: Operand, key: Sequence[Any]) -> Operand:
    """``x`` after ``x[key] = new``: a scatter by flat indices."""
    count = math.prod(shape)
    all_indices = w.reshaped(w.arange(count), (count,), shape)
    selected = getitem(w, all_indices, shape, key)
    values = w.scope.add_with_casts("Expand", new, others=[w.scope.add("Shape", selected, dtype=INT64)])
    flat = w.scope.ints(-1)
    rows = [w.scope.add("Reshape", operand, flat) for operand in (x, selected, values)]
    changed = w.scope.add("ScatterElements", *rows, axis=0)
    return w.reshaped(changed, (count,), shape)


def _gather(w: GraphWriter, node: Node) -> Operand:
    params, indices = w.operands(node)
    axis, batch = node.attrs["axis"], node.attrs.get("batch_dims", 0)
    if not batch:
        return w.scope.add("Gather", params, _as_indices(w, indices), axis=axis)
    # GatherND gathers along the first axis after the batch: axis is moved there, and back in the result
    rank, num_between = len(node.inputs[0].spec.shape), axis - batch
    order = [*range(batch), axis, *range(batch, axis), *range(axis + 1, rank)]
    index_vectors = w.scope.add("Unsqueeze", w.scope.cast(indices, INT64), w.scope.ints(-1))
    rows = w.scope.add("GatherND", w.transposed(params, order), index_vectors, batch_dims=batch)
    index_rank = len(node.inputs[1].spec.shape) - batch
    between = range(batch + index_rank, batch + index_rank + num_between)
    last = range(batch + index_rank + num_between, len(node.output.spec.shape))
    return w.transposed(rows, [*range(batch), *between, *range(batch, batch + index_rank), *last])


def _as_indices(w: GraphWriter, x: Operand) -> Operand:
    return x if x.dtype.name == "int32" else w.scope.cast(x, INT64)


def _gather_nd(w: GraphWriter, node: Node) -> Operand:
    params, indices = w.operands(node)
    if node.inputs[1].spec.shape[-1] == 0:
        return w.expanded(params, sizes_of(node.inputs[0]), sizes_of(node.output))
    return w.scope.add("GatherND", params, w.scope.cast(indices, INT64))


def _take_along(w: GraphWriter, node: Node) -> Operand:
    x, indices = w.operands(node)
    return w.scope.add("GatherElements", x, _as_indices(w, indices), axis=node.attrs["axis"])


def _add_along(w: GraphWriter, node: Node) -> Operand:
    indices, updates = w.operands(node)
    zeros = w.filled(sizes_of(node.output), 0, updates.dtype)
    positions = w.scope.cast(indices, INT64)
    return w.scope.add("ScatterElements", zeros, positions, updates, axis=node.attrs["axis"], reduction="add")


def _scatter(w: GraphWriter, node: Node) -> Operand:
    kind = node.op.kind
    assert isinstance(kind, Scatter)
    *onto, indices, updates = w.operands(node)
    shape, indices_shape = sizes_of(node.output), sizes_of(node.inputs[-2])
    target = onto[0] if kind.onto else w.filled(shape, 0, updates.dtype)
    join = kind.join or node.attrs["join"]
    reduction = "none" if join == "put" else join[:3]  # ONNX calls them add, mul, max, min
    positions = w.scope.cast(indices, INT64)
    if "axis" not in node.attrs:
        if type(indices_shape[-1]) is int and not indices_shape[-1]:
            raise unsupported_error(node, "its index vectors are empty")
        return w.scope.add("ScatterND", target, positions, updates, reduction=reduction)
    # ScatterND indexes the first axis: axis is moved there in target and updates, and back in the result
    axis, rank, index_rank = node.attrs["axis"], len(shape), len(indices_shape)
    index_vectors = w.scope.add("Unsqueeze", positions, w.scope.ints(-1))
    order = [axis, *range(axis), *range(axis + 1, rank)]
    updates_order = [
        *range(axis, axis + index_rank),
        *range(axis),
        *range(axis + index_rank, rank + index_rank - 1),
    ]
    rows = w.transposed(updates, updates_order)
    added = w.scope.add("ScatterND", w.transposed(target, order), index_vectors, rows, reduction=reduction)
    return w.transposed(added, [*range(1, axis + 1), 0, *range(axis + 1, rank)])


def _repeated_indices(w: GraphWriter, node: Node) -> Operand:
    """The indices of true elements; for counts, each index ``i`` repeated ``counts[i]`` times.

    Counts become a table of bools: its row ``i`` has ``counts[i]`` true elements.
    """
    (counts,) = w.operands(node)
    flat = w.scope.add("Reshape", counts, w.scope.ints(-1))
    if not counts.dtype.is_bool:
        counts_int64 = w.scope.cast(flat, INT64)
        largest = w.scope.add(
            "ReduceMax", w.scope.add("Concat", counts_int64, w.scope.ints(0), axis=0), keepdims=0
        )
        zero, one = w.scope.constant(0, INT64), w.scope.constant(1, INT64)
        repetitions = w.scope.add("Range", zero, largest, one)
        flat = w.scope.add(
            "Less", repetitions, w.scope.add("Unsqueeze", counts_int64, w.scope.ints(1)), dtype=bool_
        )
    true_indices = w.scope.add("NonZero", flat, dtype=INT64)
    return w.scope.add("Gather", true_indices, w.scope.constant(0, INT64), axis=0)


def _sorted(w: GraphWriter, node: Node) -> tuple[Operand, Operand]:
    """The sorted elements, and their indices in ``x``."""
    (x,), axis = w.operands(node), node.attrs["axis"]
    require_comparable(node, node.inputs[0])
    size = w.sizes.as_vector(sizes_of(node.inputs[0])[axis])
    wide = runtime_dtype("TopK", x.dtype)
    values, indices = w.scope.add_node(
        "TopK", [w.scope.cast(x, wide), size], [wide, INT64], axis=axis, largest=int(node.attrs["descending"])
    )
    return w.scope.cast(values, x.dtype), indices


def _top_k_indices(w: GraphWriter, node: Node) -> Operand:
    (x,), attrs = w.operands(node), node.attrs
    require_comparable(node, node.inputs[0])
    wide = runtime_dtype("TopK", x.dtype)
    operands = [w.scope.cast(x, wide), w.sizes.as_vector(attrs["count"])]
    largest = int(attrs["descending"])
    _, indices = w.scope.add_node("TopK", operands, [wide, INT64], axis=-1, largest=largest)
    return w.scope.cast(indices, node.output.spec.dtype)


def _sort(w: GraphWriter, node: Node) -> Operand:
    return _sorted(w, node)[0]


def _argsort(w: GraphWriter, node: Node) -> Operand:
    return w.scope.cast(_sorted(w, node)[1], node.output.spec.dtype)


RULES: Final[Rules] = {
    CONCAT: _concat,
    STACK: _stack,
    PAD: _pad,
    PLACE: _set_in_zeros,
    REPLACE: _set_in_tensor,
    Gather: _gather,
    GATHER_ND: _gather_nd,
    TAKE_ALONG: _take_along,
    ADD_ALONG: _add_along,
    Scatter: _scatter,
    RepeatIndices: _repeated_indices,
    SORT: _sort,
    ARGSORT: _argsort,
    TOP_PLACES: _top_k_indices,
}
