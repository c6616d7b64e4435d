"""Whether and where the largest values are, and how many are 0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.core.dtypes import float32, int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Dim, normalize_axis
from dualflow.ops.arithmetic import negative
from dualflow.ops.arrangement import expand_dims, transpose
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.choice import masked
from dualflow.ops.comparison import equal, isfinite, logical_and
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.positions import iota
from dualflow.ops.reduction import reduce_all
from dualflow.ops.shapes import size
from dualflow.ops.sorting import TopK, top_k
from dualflow.ops.static import static_int

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor


def in_top_k(targets: Any, predictions: Any, k: Any, name: str | None = None) -> Tensor:
    """Whether the class of each row is among the ``k`` with the largest predictions; ties all are.

    Args:
        targets: classes, integers ``[batch]``.
        predictions: floats ``[batch, classes]``.
        k: an integer.
        name: ignored; as in TensorFlow.

    Returns:
        Bools ``[batch]``: False for a row with a number that is not finite, and for what is no class.

    Raises:
        InvalidArgumentError: the shapes do not match.
        DTypeError: targets that are no integers.

    >>> import dualflow as df
    >>> df.nn.in_top_k([1, 2], [[0.1, 0.7, 0.2], [0.5, 0.3, 0.2]], k=2).numpy()
    array([ True, False])
    """
    values, classes = convert_to_tensor(predictions), convert_to_tensor(targets)
    if not classes.dtype.is_integer:
        raise DTypeError(
            f"in_top_k takes classes, integers, not {classes.dtype.name}; convert them with df.cast."
        )
    if len(classes.shape) != 1 or len(values.shape) != 2 or not _match(classes.shape[0], values.shape[0]):
        raise InvalidArgumentError(
            "in_top_k takes targets [batch] and predictions [batch, classes], not shapes "
            f"{classes.shape} and {values.shape}."
        )
    if values.shape[1] is None:
        raise InvalidArgumentError(f"the number of classes must be known while tracing, not {values.shape}.")
    hot = equal(expand_dims(classes, 1), iota([1, values.shape[1]], 1, classes.dtype))
    finite = isfinite(values)
    wanted = reduce_sum(masked(logical_and(hot, finite), values), 1, keepdims=True)
    larger = reduce_sum(cast(values > wanted, int64), 1)
    there = reduce_sum(cast(hot, int64), 1) > 0
    return logical_and(logical_and(there, reduce_all(finite, 1)), larger < cast(k, int64))


def _match(x: Dim, y: Dim) -> bool:
    return x is None or y is None or x == y


def zero_fraction(value: Any, name: str | None = None) -> Tensor:
    """The share of zeros among the elements, a float32; nan of none.

    >>> import dualflow as df
    >>> float(df.nn.zero_fraction([0.0, 3.0, 0.0, 1.0]))
    0.5
    """
    x = convert_to_tensor(value)
    zeros = reduce_sum(cast(equal(x, 0), int64))
    return cast(zeros, float32) / cast(size(x), float32)


def approx_max_k(
    operand: Any,
    k: Any,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
    name: str | None = None,
) -> TopK:
    """The ``k`` largest elements along an axis, largest first, and where they are: all of them, always.

    Args:
        operand: floats.
        k: how many.
        reduction_dimension: the axis.
        recall_target: ignored: none is missed.
        reduction_input_size_override: ignored.
        aggregate_to_topk: ignored: there are ``k``.
        name: ignored; as in TensorFlow.

    Raises:
        InvalidArgumentError: ``k`` is more than there are.

    >>> import dualflow as df
    >>> values, places = df.nn.approx_max_k([[1.0, 3.0, 2.0]], 2)
    >>> values.numpy().tolist(), places.numpy().tolist()
    ([[3.0, 2.0]], [[1, 2]])
    """
    x = convert_to_tensor(operand)
    rank = len(x.shape)
    axis = normalize_axis(static_int(reduction_dimension, "reduction_dimension"), rank)
    if axis == rank - 1:
        return top_k(x, k)
    order = (*(a for a in range(rank) if a != axis), axis)
    found = top_k(transpose(x, order), k)
    back = tuple(sorted(range(rank), key=order.__getitem__))
    return TopK(transpose(found.values, back), transpose(found.indices, back))


def approx_min_k(
    operand: Any,
    k: Any,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
    name: str | None = None,
) -> TopK:
    """The ``k`` smallest elements along an axis, smallest first, and where; see :func:`approx_max_k`."""
    found = approx_max_k(negative(operand), k, reduction_dimension)
    return TopK(negative(found.values), found.indices)
