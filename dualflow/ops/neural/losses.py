"""Cross-entropies and the squared loss."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dualflow.core import dispatch
from dualflow.core.dtypes import float64, int64
from dualflow.core.errors import DTypeError, InvalidArgumentError, OutOfRangeError
from dualflow.core.shape import normalize_axis
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.ops.arithmetic import divide_no_nan, multiply
from dualflow.ops.arrangement import expand_dims
from dualflow.ops.batching_rules import LEADING
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.comparison import equal, logical_and, logical_not
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.exponential import exp, softplus
from dualflow.ops.neural.activations import log_softmax
from dualflow.ops.op_kinds import Elementwise
from dualflow.ops.positions import iota
from dualflow.ops.powers import log
from dualflow.ops.record import Op, register
from dualflow.ops.samples import Sample, integers
from dualflow.ops.selection import masked, where
from dualflow.ops.shapes import shape as shape_tensor
from dualflow.ops.static import static_int, static_value
from dualflow.ops.statistics import reduce_logsumexp
from dualflow.ops.tensor_sizes import sizes_of

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, TensorLike
    from dualflow.ops.tensor import Tensor


def _labels_infer(labels: TensorSpec, *count: TensorSpec, classes: int | None) -> TensorSpec:
    if not labels.dtype.is_integer:
        raise DTypeError(f"labels are class numbers, not {labels.dtype.name}; cast them with df.cast.")
    return labels


def _bad_label(classes: int | None) -> str:
    interval = "the interval of" if classes is None else f"[0, {classes}),"
    return f"a label is outside of {interval} the classes of the logits; mask such rows"


def _labels_kernel(labels: Any, *count: Any, classes: int | None) -> Any:
    if labels.dtype.kind not in "iu":
        raise TypeError("labels are class numbers")
    classes = int(count[0]) if classes is None else classes
    if labels.size and (labels.min() < 0 or labels.max() >= classes):
        bad_label = labels[(labels < 0) | (labels >= classes)].flat[0]
        raise OutOfRangeError(f"{_bad_label(classes)}: {bad_label}.")
    return labels


def _labels_code(m: Any, labels: Any, *count: Any, classes: int | None) -> Any:
    end = count[0] if classes is None else classes
    m.check((labels >= 0) & (labels < end), _bad_label(classes) + ".")
    return labels


LABELS = register(
    Op(
        name="labels",
        doc="``labels``; an error unless each is in ``[0, classes)``: an attribute, or an operand.",
        infer=_labels_infer,
        kernel=_labels_kernel,
        kind=Elementwise(_labels_code, error=OutOfRangeError),
        batching_rule=LEADING,
        samples=(Sample((integers(0, 5),), {"classes": 5}),),
    )
)


def sparse_softmax_cross_entropy_with_logits(
    labels: TensorLike, logits: TensorLike, name: str | None = None
) -> Tensor:
    """The cross entropy of ``softmax(logits)`` and class numbers: minus the label's log-probability.

    Args:
        labels: class numbers, integers of shape ``(...)``.
        logits: floats of shape ``(..., classes)``.

    Returns:
        A loss for each row, of shape ``(...)``, with the dtype of ``logits``.

    Raises:
        OutOfRangeError: a label is not a class.
        InvalidArgumentError: the shapes do not match.
        DTypeError: ``labels`` doesn't hold integers, or ``logits`` floats.

    >>> import dualflow as df
    >>> df.nn.sparse_softmax_cross_entropy_with_logits(labels=[1], logits=[[0.0, 0.0]]).numpy()
    array([0.6931...], dtype=float32)
    """
    x, ids = convert_to_tensor(logits), convert_to_tensor(labels)
    if not x.shape or len(ids.shape) != len(x.shape) - 1 or _differ(ids.shape, x.shape[:-1]):
        raise InvalidArgumentError(
            f"labels of shape {ids.shape} and logits of shape {x.shape} do not match: "
            "labels have the shape of the logits without its last axis."
        )
    classes, last = x.shape[-1], len(ids.shape)
    if type(classes) is int:
        ids = dispatch.current().apply(LABELS, (ids,), {"classes": classes})
    else:
        classes, ids = sizes_of(x, int64)[-1], cast(ids, int64) if ids.dtype.is_integer else ids
        ids = dispatch.current().apply(LABELS, (ids, classes), {"classes": None})
    one_hot = equal(expand_dims(ids, last), iota([1] * last + [classes], last, ids.dtype))
    return reduce_logsumexp(x, last) - reduce_sum(masked(one_hot, x), last)


def _differ(x: Any, y: Any) -> bool:
    return any(a != b and a is not None and b is not None for a, b in zip(x, y, strict=True))


def softmax_cross_entropy_with_logits(
    labels: TensorLike, logits: TensorLike, axis: AxisLike = -1, name: str | None = None
) -> Tensor:
    """The cross entropy of ``softmax(logits)`` and a distribution: ``-sum(labels * log_softmax(logits))``.

    Args:
        labels: a distribution over the classes for each row, which broadcasts with ``logits``.
        logits: floats of one axis or more.
        axis: the axis of the classes; the last by default.

    Returns:
        A loss for each row: the shape of ``logits`` without ``axis``, and its dtype.

    Raises:
        InvalidArgumentError: the shapes do not broadcast, or ``axis`` is out of range.
        DTypeError: ``logits`` doesn't hold floats.

    >>> import dualflow as df
    >>> df.nn.softmax_cross_entropy_with_logits([[0.0, 1.0]], [[0.0, 0.0]]).numpy()
    array([0.6931...], dtype=float32)
    """
    x = convert_to_tensor(logits)
    axis_index = normalize_axis(static_int(axis, "axis"), len(x.shape))
    return -reduce_sum(multiply(labels, log_softmax(x, axis_index)), axis_index)


def sigmoid_cross_entropy_with_logits(
    labels: TensorLike | None = None, logits: TensorLike | None = None, name: str | None = None
) -> Tensor:
    """``-z log(sigmoid(x)) - (1 - z) log(1 - sigmoid(x))`` for each logit ``x`` and label ``z``.

    Args:
        labels: numbers in [0, 1], with the shape of ``logits``.
        logits: floats of any shape.

    Returns:
        A loss for each element, with the shape and dtype of ``logits``.

    Raises:
        InvalidArgumentError: the shapes differ.
        DTypeError: ``logits`` doesn't hold real numbers.

    >>> import dualflow as df
    >>> df.nn.sigmoid_cross_entropy_with_logits(labels=[1.0], logits=[0.0]).numpy()
    array([0.6931...], dtype=float32)
    """
    arguments: tuple[Any, Any] = (labels, logits)  # None is an error of the conversion
    x: Any = convert_to_tensor(arguments[1])
    z = convert_to_tensor(arguments[0], dtype_hint=x.dtype)
    _check_same_shape(z, x, "labels and logits")
    return softplus(x) - x * z


def weighted_cross_entropy_with_logits(
    labels: TensorLike, logits: TensorLike, pos_weight: TensorLike, name: str | None = None
) -> Tensor:
    """:func:`sigmoid_cross_entropy_with_logits` with the positive term multiplied by ``pos_weight``.

    A weight above 1 leads to fewer false negatives, one below 1 to fewer false positives.

    Args:
        labels: numbers in [0, 1], with the shape of ``logits``.
        logits: floats of any shape.
        pos_weight: numbers that broadcast with the logits.

    Returns:
        A loss for each element, with the shape and dtype of ``logits``.

    Raises:
        InvalidArgumentError: the shapes differ.
        DTypeError: ``logits`` doesn't hold real numbers.

    >>> import dualflow as df
    >>> df.nn.weighted_cross_entropy_with_logits([1.0, 0.0], [0.0, 0.0], pos_weight=2.0).numpy()
    array([1.386..., 0.693...], dtype=float32)
    """
    x: Any = convert_to_tensor(logits)
    z = convert_to_tensor(labels, dtype_hint=x.dtype)
    _check_same_shape(z, x, "labels and logits")
    is_list = isinstance(pos_weight, list | tuple)
    weight: Any = convert_to_tensor(pos_weight, dtype_hint=x.dtype) if is_list else pos_weight
    return (1 - z) * x + (1 + (weight - 1) * z) * softplus(-x)


def _check_same_shape(x: Any, y: Any, what: str) -> None:
    if len(x.shape) != len(y.shape) or _differ(x.shape, y.shape):
        raise InvalidArgumentError(
            f"{what} have one shape, but got {x.shape} and {y.shape}; reshape one of them."
        )


def log_poisson_loss(
    targets: TensorLike, log_input: TensorLike, compute_full_loss: bool = False, name: str | None = None
) -> Tensor:
    """``exp(log_input) - targets * log_input``: minus the log-likelihood of a Poisson distribution.

    The term ``log(targets!)``, which doesn't depend on ``log_input``, is left out by default.

    Args:
        targets: counts, with the shape of ``log_input``.
        log_input: the logarithm of the mean, floats of any shape.
        compute_full_loss: whether to add ``log(targets!)``, by Stirling's formula for targets above 1.

    Returns:
        A loss for each element, with the shape and dtype of ``log_input``.

    Raises:
        InvalidArgumentError: the shapes differ.

    >>> import dualflow as df
    >>> df.nn.log_poisson_loss([2.0], [0.0]).numpy().tolist()
    [1.0]
    """
    x: Any = convert_to_tensor(log_input)
    z: Any = convert_to_tensor(targets, dtype_hint=x.dtype)
    _check_same_shape(z, x, "targets and log_input")
    loss = exp(x) - z * x
    if not compute_full_loss:
        return loss
    small = logical_and(z >= 0, z <= 1)
    safe = where(small, 1, z)
    stirling = z * log(safe) - z + 0.5 * log(2 * math.pi * safe)
    return loss + masked(logical_not(small), stirling)


@entry
def compute_average_loss(
    per_example_loss: TensorLike,
    sample_weight: TensorLike | None = None,
    global_batch_size: TensorLike | None = None,
) -> Tensor:
    """The sum of the losses of a batch, divided by the batch size.

    Args:
        per_example_loss: the losses, of one axis or more.
        sample_weight: factors of the losses, of the same shape or without its last axis; None for 1.
        global_batch_size: an integer scalar of 0 or more; None for the size of the first axis.

    Returns:
        A scalar with the dtype of the losses; 0 for a size of 0.

    Raises:
        InvalidArgumentError: the loss is a scalar, or the size is negative.
        DTypeError: the size is not an integer.

    >>> import dualflow as df
    >>> float(df.nn.compute_average_loss([1.0, 2.0, 6.0], global_batch_size=6))
    1.5
    """
    loss: Any = convert_to_tensor(per_example_loss)
    if not loss.shape:
        raise InvalidArgumentError(
            "compute_average_loss takes a loss for each row, but per_example_loss is a scalar; leave it "
            "as it is."
        )
    if sample_weight is not None:
        weight: Any = cast(convert_to_tensor(sample_weight), loss.dtype)
        if weight.shape and len(weight.shape) == len(loss.shape) - 1:
            weight = expand_dims(weight, -1)
        loss = loss * weight
    if loss.dtype.is_integer:
        loss = cast(loss, float64)
    size: Any = shape_tensor(loss)[0] if global_batch_size is None else convert_to_tensor(global_batch_size)
    if not size.dtype.is_integer or size.shape:
        raise DTypeError(f"global_batch_size is one integer, not {global_batch_size!r}.")
    static_size = static_value(size)
    if static_size is not None and static_size < 0:
        raise InvalidArgumentError(f"global_batch_size is 0 or more, not {static_size}.")
    return divide_no_nan(reduce_sum(loss), cast(size, loss.dtype))


@entry
def scale_regularization_loss(regularization_loss: TensorLike) -> Tensor:
    """The sum of the terms of a regularization loss, divided by the number of replicas, which is 1.

    Args:
        regularization_loss: numbers of any shape.

    Returns:
        A scalar with the dtype of the loss.

    Raises:
        DTypeError: the loss holds bools or strings.

    >>> import dualflow as df
    >>> float(df.nn.scale_regularization_loss([1.0, 2.0]))
    3.0
    """
    return reduce_sum(convert_to_tensor(regularization_loss))
