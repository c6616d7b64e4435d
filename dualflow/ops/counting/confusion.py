"""The confusion matrix, and the fraction of elements that are zero."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.core.dtypes import as_dtype, float32, int32, int64
from dualflow.core.errors import InvalidArgumentError
from dualflow.ops.arrangement import squeeze
from dualflow.ops.broadcasting import broadcast_like
from dualflow.ops.checks import required
from dualflow.ops.comparison import equal, less, logical_and
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor, ones_like, zeros
from dualflow.ops.joining import stack
from dualflow.ops.reduction import reduce_all
from dualflow.ops.scattering import scatter_nd, tensor_scatter_nd_add
from dualflow.ops.segments.rows import as_count, count_up_to
from dualflow.ops.statistics import reduce_mean

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, IntLike, TensorLike
    from dualflow.ops.tensor import Tensor


def confusion_matrix(
    labels: TensorLike,
    predictions: TensorLike,
    num_classes: IntLike | None = None,
    weights: TensorLike | None = None,
    dtype: DTypeLike = int32,
    name: str | None = None,
) -> Tensor:
    """The number of times that each label, a row, occurs with each prediction, a column.

    Args:
        labels: the true classes, numbers of 0 or more, of one axis; fractions are cut off.
        predictions: the predicted classes, of the same shape; either may have a last axis of size 1.
        num_classes: the number of classes; None for one more than the largest class, which is dynamic while
            tracing unless both inputs are static.
        weights: the weight of each pair, cast to ``dtype``; None for 1.
        dtype: the dtype of the counts.

    Returns:
        A tensor of shape ``(num_classes, num_classes)`` and dtype ``dtype``.

    Raises:
        InvalidArgumentError: a class is negative, or ``num_classes`` or more, or the shapes differ.

    >>> import dualflow as df
    >>> df.math.confusion_matrix([1, 2, 0], [2, 2, 0]).numpy().tolist()
    [[1, 0, 0], [0, 0, 1], [0, 0, 1]]
    """
    rows, columns = _classes(labels), _classes(predictions)
    if len(rows.shape) == len(columns.shape) + 1:
        rows = squeeze(rows, -1)
    if len(columns.shape) == len(rows.shape) + 1:
        columns = squeeze(columns, -1)
    if len(rows.shape) != 1 or len(columns.shape) != 1:
        raise InvalidArgumentError(
            f"confusion_matrix takes one label and one prediction for each example, not of shapes "
            f"{rows.shape} and {columns.shape}."
        )
    pairs = stack([rows, columns], -1)
    count = count_up_to(pairs) if num_classes is None else as_count(num_classes, "num_classes")
    inside = reduce_all(logical_and(pairs >= 0, less(pairs, cast(count, int64))))
    shown = f" ({count})" if type(count) is int and num_classes is not None else ""
    pairs = required(pairs, inside, f"labels and predictions are 0 or more and below num_classes{shown}.")
    weight_of_pairs = (
        ones_like(rows, as_dtype(dtype)) if weights is None else cast(convert_to_tensor(weights), dtype)
    )
    if type(count) is int:
        return scatter_nd(pairs, broadcast_like(weight_of_pairs, rows), [count, count])
    return tensor_scatter_nd_add(
        zeros([count, count], weight_of_pairs.dtype), pairs, broadcast_like(weight_of_pairs, rows)
    )


def _classes(x: Any) -> Any:
    return cast(convert_to_tensor(x), int64)


def zero_fraction(value: TensorLike, name: str | None = None) -> Tensor:
    """The fraction of elements that are 0; nan if there are no elements.

    Args:
        value: numbers of any shape.

    Returns:
        A float32 scalar.

    Raises:
        DTypeError: ``value`` holds strings.

    >>> import dualflow as df
    >>> df.math.zero_fraction([0, 1, 0, 3]).numpy()
    np.float32(0.5)
    """
    return reduce_mean(cast(equal(value, 0), float32))
