"""Whether a class is among the k best, and the largest or smallest elements along an axis."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dualflow.core.dtypes import int32
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import normalize_axis
from dualflow.ops.arrangement import expand_dims, transpose
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.comparison import equal, greater, isfinite, less, logical_and
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.ordering.extremes import TopK, extremes
from dualflow.ops.positions import range as count_up
from dualflow.ops.reduction import reduce_all, reduce_max
from dualflow.ops.selection import where
from dualflow.ops.shapes import shape
from dualflow.ops.static import static_int
from dualflow.ops.taking import gather

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor


def in_top_k(targets: TensorLike, predictions: TensorLike, k: TensorLike, name: str | None = None) -> Tensor:
    """Whether fewer than ``k`` classes have a higher prediction than the target, for each row.

    Classes with the same prediction as the target don't count against it. A row with a prediction that is not
    finite, or with a target that is no class, gives False.

    Args:
        targets: the true class of each row, integers of shape ``(rows,)``.
        predictions: floats of shape ``(rows, classes)``.
        k: the number of best classes, an integer.

    Returns:
        A bool tensor of shape ``(rows,)``.

    Raises:
        InvalidArgumentError: the shapes don't fit.
        DTypeError: ``targets`` doesn't hold integers, or ``predictions`` floats.

    >>> import dualflow as df
    >>> df.math.in_top_k([0, 2], [[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]], 3).numpy()
    array([ True,  True])
    """
    classes, scores = convert_to_tensor(targets), convert_to_tensor(predictions)
    if not classes.dtype.is_integer or not scores.dtype.is_floating:
        raise DTypeError(
            f"in_top_k takes integer targets and floats as predictions, not {classes.dtype.name} and "
            f"{scores.dtype.name}."
        )
    if len(classes.shape) != 1 or len(scores.shape) != 2 or _differ(classes.shape[0], scores.shape[0]):
        raise InvalidArgumentError(
            f"in_top_k takes a target for each row of a matrix, not targets of shape {classes.shape} and "
            f"predictions of shape {scores.shape}."
        )
    if scores.shape[1] == 0:
        return less(classes, classes)
    inside = logical_and(classes >= 0, less(classes, cast(_size(scores), classes.dtype)))
    target_scores = _own(scores, expand_dims(where(inside, classes, 0), 1))
    better = reduce_sum(cast(greater(scores, target_scores), int32), 1)
    return logical_and(logical_and(inside, reduce_all(isfinite(scores), 1)), less(better, k))


def _differ(a: Any, b: Any) -> bool:
    return a is not None and b is not None and a != b


def _own(scores: Any, targets: Any) -> Any:
    """The score of each row's target class; -inf if an unknown number of classes is 0 at run time."""
    if scores.shape[1] is not None:
        return gather(scores, targets, axis=1, batch_dims=1)
    is_target = equal(expand_dims(count_up(cast(_size(scores), targets.dtype)), 0), targets)
    return reduce_max(where(is_target, scores, -math.inf), 1, keepdims=True)


def _size(scores: Any) -> Any:
    """The number of classes."""
    static = scores.shape[1]
    return shape(scores)[1] if static is None else static


def approx_max_k(
    operand: TensorLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
    name: str | None = None,
) -> TopK:
    """The ``k`` largest elements along an axis, largest first, and their positions; the result is exact.

    Args:
        operand: real numbers of one axis or more.
        k: the number of elements.
        reduction_dimension: the axis; the last by default.
        recall_target: ignored: the result is exact.
        reduction_input_size_override: ignored, for the same reason.
        aggregate_to_topk: ignored: there are always ``k`` elements.

    Returns:
        The values, with the dtype of ``operand``, and their positions, int32; both of size ``k`` on the axis.

    Raises:
        InvalidArgumentError: ``k`` is larger than the axis.
        DTypeError: ``operand`` holds complex numbers or strings.

    >>> import dualflow as df
    >>> values, indices = df.math.approx_max_k([1.0, 3.0, 2.0], 2)
    >>> values.numpy(), indices.numpy()
    (array([3., 2.], dtype=float32), array([1, 2], dtype=int32))
    """
    return _along(operand, k, reduction_dimension, descending=True)


def approx_min_k(
    operand: TensorLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
    name: str | None = None,
) -> TopK:
    """The ``k`` smallest elements along an axis, smallest first, and their positions; the result is exact.

    Args:
        operand: real numbers of one axis or more.
        k: the number of elements.
        reduction_dimension: the axis; the last by default.
        recall_target: ignored: the result is exact.
        reduction_input_size_override: ignored, for the same reason.
        aggregate_to_topk: ignored: there are always ``k`` elements.

    Returns:
        The values, with the dtype of ``operand``, and their positions, int32; both of size ``k`` on the axis.

    Raises:
        InvalidArgumentError: ``k`` is larger than the axis.
        DTypeError: ``operand`` holds complex numbers or strings.

    >>> import dualflow as df
    >>> values, indices = df.math.approx_min_k([1.0, 3.0, 2.0], 2)
    >>> values.numpy(), indices.numpy()
    (array([1., 2.], dtype=float32), array([0, 2], dtype=int32))
    """
    return _along(operand, k, reduction_dimension, descending=False)


def _along(operand: Any, k: Any, axis: int, *, descending: bool) -> TopK:
    x = convert_to_tensor(operand)
    where_axis, count = normalize_axis(axis, len(x.shape)), static_int(k, "k")
    size = x.shape[where_axis]
    if count < 0 or (size is not None and count > size):
        raise InvalidArgumentError(f"{count} of the {size} elements of axis {where_axis}; k is 0..{size}.")
    perm = list(range(len(x.shape)))
    perm[where_axis], perm[-1] = perm[-1], perm[where_axis]
    values, indices = extremes(transpose(x, perm), count, descending=descending)
    return TopK(transpose(values, perm), transpose(indices, perm))
