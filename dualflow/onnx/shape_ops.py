"""ONNX's ops that move elements: shapes, slices, gathers, scatters, joins."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np

import dualflow as df
from dualflow.onnx.calls import (
    NodeCall,
    Rules,
    constant_value,
    dtype_of,
    is_constant,
    normalized,
    rank_of,
    size_of,
)
from dualflow.ops.segments.joins import join_at
from dualflow.ops.sorting import take_along_axis


def _shape(call: NodeCall) -> Any:
    (x,), rank = call.inputs, rank_of(call.inputs[0])
    start = max(0, normalized(call.attrs.get("start", 0), rank))
    end = min(rank, normalized(call.attrs.get("end", rank), rank))
    sizes = x.shape[start:end]
    if None not in sizes:
        return np.array(sizes, np.int64)
    return df.shape(x, out_type=df.int64)[start:end]


def _size(call: NodeCall) -> Any:
    return df.size(call.inputs[0], out_type=df.int64)


def _reshape(call: NodeCall) -> Any:
    x, shape = call.inputs
    if not is_constant(shape):
        return df.reshape(x, shape)
    sizes = shape.tolist()
    if not call.attrs.get("allowzero", 0):
        sizes = [size_of(x, i) if size == 0 else size for i, size in enumerate(sizes)]
    return df.reshape(x, sizes)


def _flatten(call: NodeCall) -> Any:
    (x,), axis = call.inputs, normalized(call.attrs.get("axis", 1), rank_of(call.inputs[0]))
    if None not in x.shape[axis:]:
        return df.reshape(
            x, [-1 if None in x.shape[:axis] else int(np.prod(x.shape[:axis])), int(np.prod(x.shape[axis:]))]
        )
    return df.reshape(x, [int(np.prod(x.shape[:axis])), -1])


def _transpose(call: NodeCall) -> Any:
    (x,) = call.inputs
    return df.transpose(x, call.attrs.get("perm", tuple(reversed(range(rank_of(x))))))


def _squeeze(call: NodeCall) -> Any:
    return df.squeeze(call.inputs[0], call.ints(1, "axes"))


def _unsqueeze(call: NodeCall) -> Any:
    x, axes = call.inputs[0], call.ints(1, "axes") or []
    rank = rank_of(x) + len(axes)
    for axis in sorted(normalized(a, rank) for a in axes):
        x = df.expand_dims(x, axis)
    return x


def _expand(call: NodeCall) -> Any:
    x, shape = call.inputs
    if is_constant(shape) and None not in x.shape:
        return df.broadcast_to(x, np.broadcast_shapes(tuple(x.shape), tuple(shape.tolist())))
    own = df.shape(x, out_type=df.int64)
    return df.broadcast_to(x, df.broadcast_dynamic_shape(own, df.convert_to_tensor(shape)))


def _split(call: NodeCall) -> Any:
    x, axis = call.inputs[0], call.attrs.get("axis", 0)
    sizes = call.ints(1, "split")
    if sizes is None:
        size = x.shape[axis]
        if size is None:
            raise call.unsupported("it splits an axis whose size is known only at run time")
        count = call.attrs.get("num_outputs", call.outputs)
        each = -(-size // count)
        sizes = [min(each, size - i * each) for i in range(count)]
    return tuple(df.split(x, sizes, axis=axis))


def _slice(call: NodeCall) -> Any:
    x, rank = call.inputs[0], rank_of(call.inputs[0])
    bounds = [call.optional(1), call.optional(2)]
    count = bounds[0].shape[0]
    axes = call.ints(3) or list(range(count))
    steps = call.ints(4) or [1] * count
    key: list[slice] = [slice(None)] * rank
    for i, (axis, step) in enumerate(zip(axes, steps, strict=True)):
        start, stop = [int(b[i]) if is_constant(b) else b[i] for b in bounds]
        key[normalized(axis, rank)] = _python_slice(start, stop, step, x.shape[axis])
    return x[tuple(key)]


def _python_slice(start: Any, stop: Any, step: int, size: int | None) -> slice:
    """A Python slice from bounds of ONNX, where a stop before the axis includes the first element."""
    if step < 0 and isinstance(stop, int) and (stop < -(size if size is not None else 2**62)):
        stop = None
    return slice(start, stop, step)


def _gather(call: NodeCall) -> Any:
    x, indices = call.inputs
    axis = normalized(call.attrs.get("axis", 0), rank_of(x))
    return df.gather(x, _nonnegative(indices, x, axis), axis=axis)


def _nonnegative(indices: Any, x: Any, axis: int) -> Any:
    """Indices counted from the front of an axis."""
    if is_constant(indices) and (indices >= 0).all():
        return indices
    size = df.cast(size_of(x, axis), dtype_of(indices))
    return df.where(df.less(indices, 0), df.add(indices, size), indices)


def _gather_elements(call: NodeCall) -> Any:
    x, indices = call.inputs
    axis = normalized(call.attrs.get("axis", 0), rank_of(x))
    return take_along_axis(df.convert_to_tensor(x), _nonnegative(indices, x, axis), axis)


def _gather_nd(call: NodeCall) -> Any:
    x, indices = call.inputs
    return df.gather_nd(x, indices, batch_dims=call.attrs.get("batch_dims", 0))


_SCATTERS: Final = {
    "none": df.tensor_scatter_nd_update,
    "mul": partial(join_at, join="multiply"),
    "add": df.tensor_scatter_nd_add,
    "max": df.tensor_scatter_nd_max,
    "min": df.tensor_scatter_nd_min,
}


def _scatter_function(call: NodeCall) -> Any:
    reduction = call.attrs.get("reduction", b"none").decode()
    if reduction not in _SCATTERS:
        raise call.unsupported(f"its reduction is {reduction!r}")
    return _SCATTERS[reduction]


def _scatter_nd(call: NodeCall) -> Any:
    return _scatter_function(call)(*[df.convert_to_tensor(x) for x in call.inputs])


def _scatter_elements(call: NodeCall) -> Any:
    x, indices, updates = map(df.convert_to_tensor, call.inputs)
    axis, rank = normalized(call.attrs.get("axis", 0), rank_of(x)), rank_of(x)
    shape = df.shape(indices, out_type=df.int64)
    along = [df.range(shape[i]) for i in range(rank)]
    grid = [
        df.cast(_nonnegative(indices, x, axis), df.int64)
        if i == axis
        else df.broadcast_to(df.reshape(numbers, [-1 if j == i else 1 for j in range(rank)]), shape)
        for i, numbers in enumerate(along)
    ]
    return _scatter_function(call)(x, df.stack(grid, -1), updates)


def _pad(call: NodeCall) -> Any:
    x, rank = call.inputs[0], rank_of(call.inputs[0])
    pads, value = call.ints(1, "pads") or [], call.optional(2)
    axes = call.ints(3) or list(range(rank))
    paddings = [[0, 0]] * rank
    for i, axis in enumerate(axes):
        paddings[normalized(axis, rank)] = [pads[i], pads[i + len(axes)]]
    mode = call.attrs.get("mode", b"constant").decode()
    if mode not in ("constant", "reflect"):
        raise call.unsupported(f"its mode is {mode!r}")
    if any(n < 0 for pair in paddings for n in pair):
        cuts = [slice(max(-a, 0), None if b >= 0 else b) for a, b in paddings]
        x, paddings = x[tuple(cuts)], [[max(a, 0), max(b, 0)] for a, b in paddings]
    constant = 0 if value is None else constant_value(value, call.name).item()
    return df.pad(x, paddings, mode.upper(), constant_values=constant)


def _range_op(call: NodeCall) -> Any:
    return df.range(*call.inputs)


def _constant(call: NodeCall) -> Any:
    ((name, value),) = call.attrs.items()
    dtypes = {
        "value_int": np.int64,
        "value_ints": np.int64,
        "value_float": np.float32,
        "value_floats": np.float32,
    }
    return np.asarray(value, dtypes.get(name))


def _constant_of_shape(call: NodeCall) -> Any:
    value = call.attrs.get("value", np.zeros(1, np.float32))
    return df.fill(call.inputs[0], value.reshape(()))


def _non_zero(call: NodeCall) -> Any:
    (x,) = call.inputs
    return df.transpose(df.where(df.cast(x, df.bool)))


def _tile(call: NodeCall) -> Any:
    return df.tile(*call.inputs)


def _one_hot(call: NodeCall) -> Any:
    indices, depth, values = call.inputs
    count = int(constant_value(depth, call.name).reshape(()))
    indices = df.where(df.less(indices, 0), df.add(indices, df.cast(count, dtype_of(indices))), indices)
    return df.one_hot(indices, count, values[1], values[0], axis=call.attrs.get("axis", -1))


def _trilu(call: NodeCall) -> Any:
    x, k = call.inputs[0], 0
    if call.optional(1) is not None:
        k = int(constant_value(call.inputs[1], call.name).reshape(()))
    return df.numpy.triu(x, k) if call.attrs.get("upper", 1) else df.numpy.tril(x, k)


def _top_k(call: NodeCall) -> Any:
    x, axis = call.inputs[0], normalized(call.attrs.get("axis", -1), rank_of(call.inputs[0]))
    (count,) = call.ints(1) or [1]
    direction = "DESCENDING" if call.attrs.get("largest", 1) else "ASCENDING"
    indices = df.argsort(x, axis, direction, stable=True)
    indices = indices[(*[slice(None)] * axis, slice(0, count))]
    return take_along_axis(df.convert_to_tensor(x), indices, axis), df.cast(indices, df.int64)


RULES: Final[Rules] = {
    "Concat": lambda call: df.concat(call.inputs, call.attrs["axis"]),
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "Expand": _expand,
    "Flatten": _flatten,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "NonZero": _non_zero,
    "OneHot": _one_hot,
    "Pad": _pad,
    "Range": _range_op,
    "Reshape": _reshape,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "Shape": _shape,
    "Size": _size,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "TopK": _top_k,
    "Transpose": _transpose,
    "Trilu": _trilu,
    "Unsqueeze": _unsqueeze,
}
