"""ONNX's If, Loop and Scan."""

from __future__ import annotations

from typing import Any, Final

import dualflow as df
from dualflow.backends.onnx.element_types import dtype_of_element_type
from dualflow.function.control.scan_loop import scan_loop
from dualflow.onnx.calls import NodeCall, Rules


def _if(call: NodeCall) -> Any:
    condition, attrs = call.inputs[0], call.attrs
    results = df.cond(
        df.reshape(condition, []),
        lambda: tuple(map(df.convert_to_tensor, call.run(attrs["then_branch"], []))),
        lambda: tuple(map(df.convert_to_tensor, call.run(attrs["else_branch"], []))),
    )
    return results if isinstance(results, tuple | list) else (results,)


def _loop(call: NodeCall) -> Any:
    body, limit, condition = call.attrs["body"], call.inputs[0], call.inputs[1]
    carried = [df.convert_to_tensor(x) for x in call.inputs[2:]]
    count = len(carried)
    first = df.constant(True) if condition is None else df.reshape(condition, [])

    def condition_of(number: Any, ok: Any, *others: Any) -> Any:
        return ok if limit is None else df.logical_and(ok, df.less(number, df.reshape(limit, [])))

    def step(number: Any, ok: Any, *others: Any) -> Any:
        ok, *results = call.run(body, [number, ok, *others[:count]])
        index = df.cast(number, df.int32)
        rows = zip(others[count:], results[count:], strict=True)
        stacks = [stack.write(index, row) for stack, row in rows]
        states = map(df.convert_to_tensor, results[:count])
        return number + 1, df.reshape(ok, []), *states, *stacks

    stacks = [_growing_array(output.type.tensor_type) for output in list(body.output)[1 + count :]]
    _, _, *results = df.while_loop(condition_of, step, (df.constant(0, df.int64), first, *carried, *stacks))
    return (*results[:count], *[stack.stack() for stack in results[count:]])


def _growing_array(row: Any) -> Any:
    """An empty dynamic TensorArray for a scan output of the body."""
    sizes = [dim.dim_value if dim.HasField("dim_value") else None for dim in row.shape.dim]
    shape: Any = sizes if row.HasField("shape") and None not in sizes else None
    dtype: Any = dtype_of_element_type(row.elem_type)
    return df.TensorArray(dtype, 0, dynamic_size=True, element_shape=shape)


def _scan(call: NodeCall) -> Any:
    attrs, body = call.attrs, call.attrs["body"]
    scanned = attrs["num_scan_inputs"]
    count = len(call.inputs) - scanned
    outputs = len(body.output) - count
    directions = [*attrs.get("scan_input_directions", [0] * scanned)]
    directions += attrs.get("scan_output_directions", [0] * outputs)
    if len(set(directions)) > 1:
        raise call.unsupported("its tensors have different directions")
    axes = attrs.get("scan_input_axes", [0] * scanned)
    rows = [_move_axis(x, axis, 0) for x, axis in zip(call.inputs[count:], axes, strict=True)]

    def step(states: list[Any], row: list[Any]) -> tuple[list[Any], list[Any]]:
        results = [df.convert_to_tensor(x) for x in call.run(body, [*states, *row])]
        return results[:count], results[count:]

    initial = [df.convert_to_tensor(x) for x in call.inputs[:count]]
    states, stacks = scan_loop(step, initial, rows, rows[0].shape[0], reverse=bool(directions[0]))
    axes = attrs.get("scan_output_axes", [0] * outputs)
    return (*states, *[_move_axis(x, 0, axis) for x, axis in zip(stacks, axes, strict=True)])


def _move_axis(x: Any, axis: int, index: int) -> Any:
    x = df.convert_to_tensor(x)
    return x if axis == index else df.experimental.numpy.moveaxis(x, axis, index)


RULES: Final[Rules] = {"If": _if, "Loop": _loop, "Scan": _scan}
