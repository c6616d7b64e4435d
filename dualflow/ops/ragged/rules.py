"""Rules by which functions of ops compute on ragged tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dualflow.core.composite_rules import rule_for
from dualflow.core.dtypes import int32
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import normalize_axes, normalize_axis
from dualflow.ops import broadcasting, creation, joining, positions, reduction, repetition, shapes
from dualflow.ops import statistics as averages
from dualflow.ops.arithmetic import square, subtract
from dualflow.ops.arrangement import expand_dims
from dualflow.ops.checks import required
from dualflow.ops.comparison import equal, less, logical_and
from dualflow.ops.conversion import cast
from dualflow.ops.counting import bins
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.extension_types import elementwise_functions
from dualflow.ops.powers import sqrt
from dualflow.ops.ragged import row_joining, row_reductions
from dualflow.ops.ragged.flat_values import map_values
from dualflow.ops.ragged.ragged_rows import RaggedRows
from dualflow.ops.ragged.row_gathering import as_index_list, as_ragged, expand_rows, gather_rows, take_rows
from dualflow.ops.ragged.row_reductions import RowReduction
from dualflow.ops.static import ints, static_int
from dualflow.ops.taking import gather


def _reduction(function: Callable[..., Any], combining: RowReduction) -> None:
    @rule_for(RaggedRows, function)
    def rule(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
        return row_reductions.reduced(input_tensor, combining, axis, keepdims)


for _function, _combining in (
    (broadcasting.reduce_sum, row_reductions.SUM),
    (reduction.reduce_prod, row_reductions.PROD),
    (reduction.reduce_max, row_reductions.MAX),
    (reduction.reduce_min, row_reductions.MIN),
    (reduction.reduce_any, row_reductions.ANY),
    (reduction.reduce_all, row_reductions.ALL),
):
    _reduction(_function, _combining)


@rule_for(RaggedRows, averages.reduce_mean)
def _mean(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    return row_reductions.mean(input_tensor, axis, keepdims)


@rule_for(RaggedRows, averages.reduce_variance)
def _variance(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """The mean of the squares minus the square of the mean, as in TensorFlow."""
    squares: Any = square(input_tensor)
    center = row_reductions.mean(input_tensor, axis, keepdims)
    return subtract(row_reductions.mean(squares, axis, keepdims), square(center))


@rule_for(RaggedRows, averages.reduce_std)
def _std(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    return sqrt(_variance(input_tensor, axis, keepdims))


def _per_value(*functions: Callable[..., Any]) -> None:
    """Rules of functions of each element: the function of the innermost values, in the same rows."""
    for function in functions:

        @rule_for(RaggedRows, function)
        def rule(*args: Any, _function: Any = function, **kwargs: Any) -> Any:
            return map_values(_function, *args, **kwargs)


_per_value(*elementwise_functions.FUNCTIONS_WITHOUT_OP)


@rule_for(RaggedRows, positions.one_hot)
def _one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: Any = None,
    dtype: Any = None,
    name: str | None = None,
) -> Any:
    if axis not in (None, -1, len(indices.shape)):
        raise InvalidArgumentError(
            f"one_hot of ragged indices adds the last axis, not axis {axis}; leave axis out."
        )
    return map_values(positions.one_hot, indices, depth, on_value, off_value, -1, dtype)


@rule_for(RaggedRows, joining.concat)
def _concat(values: Any, axis: Any, name: str | None = None) -> Any:
    tensors = list(values)
    return row_joining.concat(tensors, normalize_axis(static_int(axis, "axis"), len(tensors[0].shape)))


@rule_for(RaggedRows, joining.stack)
def _stack(values: Any, axis: Any = 0, name: str | None = None) -> Any:
    tensors = list(values)
    template = next(x for x in tensors if isinstance(x, RaggedRows))
    return row_joining.stack(
        tensors, normalize_axis(static_int(axis, "axis"), len(template.shape) + 1), template
    )


@rule_for(RaggedRows, expand_dims)
def _expand_dims(input: Any, axis: Any, name: str | None = None) -> Any:
    return expand_rows(input, normalize_axis(static_int(axis, "axis"), len(input.shape) + 1))


@rule_for(RaggedRows, repetition.tile)
def _tile(input: Any, multiples: Any, name: str | None = None) -> Any:
    times = ints(multiples, "multiples")
    if len(times) != len(input.shape) or min(times) < 0:
        raise InvalidArgumentError(
            f"multiples {times} are not one number of 0 or more for each axis of {input.shape}."
        )
    return row_joining.tile(input, times)


@rule_for(RaggedRows, repetition.reverse)
def _reverse(tensor: Any, axis: Any, name: str | None = None) -> Any:
    return row_joining.reverse(tensor, normalize_axes(ints(axis, "axis"), len(tensor.shape)))


@rule_for(RaggedRows, gather)
def _gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    axis: Any = None,
    batch_dims: Any = 0,
    name: str | None = None,
) -> Any:
    batches = static_int(batch_dims, "batch_dims")
    at = batches if axis is None else static_int(axis, "axis")
    if batches not in (0, 1) or at != batches:
        raise InvalidArgumentError(
            f"gather of ragged tensors is along axis batch_dims, which is 0 or 1, not axis={axis}, "
            f"batch_dims={batch_dims}; transpose the tensors first."
        )
    indices = as_index_list(indices)
    if not batches:
        return gather_rows(params, indices)
    return _gather_in_rows(params, indices)


def _gather_in_rows(params: Any, indices: Any) -> Any:
    """Row i of the result has values of row i of ``params``, in the order of row i of ``indices``."""
    template = params if isinstance(params, RaggedRows) else indices
    params, indices = (
        x if isinstance(x, RaggedRows) else as_ragged(convert_to_tensor(x), template, 1)
        for x in (params, indices)
    )
    if isinstance(indices.values, RaggedRows):
        raise InvalidArgumentError(
            "gather with batch_dims=1 takes indices with one ragged axis; merge the others."
        )
    fits = equal(params.nrows(), cast(indices.nrows(), params.row_splits.dtype))
    starts = required(params.row_starts(), fits, "gather with batch_dims=1 takes as many rows of both.")
    rows, columns = indices.value_rowids(), cast(indices.values, starts.dtype)
    in_row = logical_and(columns >= 0, less(columns, gather(params.row_lengths(), rows)))
    columns = required(
        columns, reduction.reduce_all(in_row), "gather with batch_dims=1 takes indices below the row lengths."
    )
    return indices.with_parts(
        take_rows(params.values, columns + gather(starts, rows)),
        indices.row_splits,
        indices._uniform_row_length,
    )


@rule_for(RaggedRows, shapes.size)
def _size(input: Any, out_type: Any = None, name: str | None = None) -> Any:
    return shapes.size(input.flat_values, out_type)


@rule_for(RaggedRows, shapes.rank)
def _rank(input: Any, name: str | None = None) -> Any:
    return creation.constant(len(input.shape), int32)


@rule_for(RaggedRows, shapes.shape)
def _shape(input: Any, out_type: Any = None, name: str | None = None) -> Any:
    raise InvalidArgumentError(
        f"A RaggedTensor of shape {input.shape} has no shape as a tensor: use x.row_lengths(), or "
        "x.bounding_shape() for the sizes of the tensor that holds it."
    )


@rule_for(RaggedRows, bins.bincount)
def _bincount(
    arr: Any,
    weights: Any = None,
    minlength: Any = None,
    maxlength: Any = None,
    dtype: Any = int32,
    name: str | None = None,
    axis: Any = None,
    binary_output: bool = False,
) -> Any:
    """The counts of padded rows: the padding is an integer that is left out, as it is too large."""
    if axis != -1:
        flat_weights = weights.flat_values if isinstance(weights, RaggedRows) else weights
        return bins.bincount(
            arr.flat_values, flat_weights, minlength, maxlength, dtype, None, axis, binary_output
        )
    size = bins.length(arr.flat_values, minlength, maxlength)
    padded = arr.to_tensor(default_value=cast(size, arr.dtype))
    rows: Any = weights
    padded_weights = rows.to_tensor() if isinstance(weights, RaggedRows) else weights
    return bins.bincount(padded, padded_weights, size, size, dtype, None, -1, binary_output)
