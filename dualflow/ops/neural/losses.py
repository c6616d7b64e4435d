"""Cross-entropies and the squared loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.core import dispatch
from dualflow.core.errors import DTypeError, InvalidArgumentError, OutOfRangeError
from dualflow.core.shape import normalize_axis
from dualflow.core.spec import TensorSpec
from dualflow.ops.arithmetic import multiply
from dualflow.ops.arrangement import expand_dims
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.choice import masked
from dualflow.ops.comparison import equal
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.exponential import softplus
from dualflow.ops.forms import Element
from dualflow.ops.neural.activations import log_softmax
from dualflow.ops.positions import iota
from dualflow.ops.record import Op, register
from dualflow.ops.samples import Sample, integers
from dualflow.ops.static import static_int
from dualflow.ops.statistics import reduce_logsumexp

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor


def _labels_infer(labels: TensorSpec, classes: int) -> TensorSpec:
    if not labels.dtype.is_integer:
        raise DTypeError(f"labels are class numbers, not {labels.dtype.name}; cast them with df.cast.")
    return labels


def _bad_label(classes: int) -> str:
    return f"a label is outside of [0, {classes}), the classes of the logits; mask such rows"


def _labels_kernel(labels: Any, classes: int) -> Any:
    if labels.dtype.kind not in "iu":
        raise TypeError("labels are class numbers")
    if labels.size and (labels.min() < 0 or labels.max() >= classes):
        odd = labels[(labels < 0) | (labels >= classes)].flat[0]
        raise OutOfRangeError(f"{_bad_label(classes)}: {odd}.")
    return labels


def _labels_code(m: Any, labels: Any, classes: int) -> Any:
    m.check((labels >= 0) & (labels < classes), _bad_label(classes) + ".")
    return labels


LABELS = register(
    Op(
        name="labels",
        doc="""``labels``, once each is known to be in ``[0, classes)``.""",
        infer=_labels_infer,
        kernel=_labels_kernel,
        form=Element(_labels_code, error=OutOfRangeError),
        samples=(Sample((integers(0, 5),), {"classes": 5}),),
    )
)


def sparse_softmax_cross_entropy_with_logits(labels: Any, logits: Any, name: str | None = None) -> Tensor:
    """Minus the log-probability that ``softmax(logits)`` gives to each row's label.

    Args:
        labels: class numbers, integers of shape ``(...)``.
        logits: floats of shape ``(..., classes)``.
        name: ignored; as in TensorFlow.

    Returns:
        One loss a row, of shape ``(...)``, in the dtype of ``logits``.

    Raises:
        OutOfRangeError: a label is no class (an InvalidArgumentError too).
        InvalidArgumentError: the shapes do not match.
        DTypeError: ``labels`` are not integers.

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
    if classes is None:
        raise InvalidArgumentError(
            f"the number of classes must be known while tracing, not {x.shape}; give logits a known last "
            "axis."
        )
    ids = dispatch.current().apply(LABELS, (ids,), {"classes": classes})
    hot = equal(expand_dims(ids, last), iota([1] * last + [classes], last, ids.dtype))
    return reduce_logsumexp(x, last) - reduce_sum(masked(hot, x), last)


def _differ(x: Any, y: Any) -> bool:
    return any(a != b and a is not None and b is not None for a, b in zip(x, y, strict=True))


def softmax_cross_entropy_with_logits(
    labels: Any, logits: Any, axis: Any = -1, name: str | None = None
) -> Tensor:
    """``-sum(labels * log_softmax(logits))`` along ``axis`` (the last by default).

    Args:
        labels: a distribution over the classes for each row, of the shape of ``logits``.
        logits: floats.
        axis: where the classes are.
        name: ignored; as in TensorFlow.

    Raises:
        InvalidArgumentError: the shapes do not broadcast.
    """
    x = convert_to_tensor(logits)
    where_axis = normalize_axis(static_int(axis, "axis"), len(x.shape))
    return -reduce_sum(multiply(labels, log_softmax(x, where_axis)), where_axis)


def sigmoid_cross_entropy_with_logits(
    labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """``-z log(sigmoid(x)) - (1 - z) log(1 - sigmoid(x))`` for each logit ``x`` and label ``z`` in [0, 1].

    Raises:
        InvalidArgumentError: the shapes differ.
    """
    x: Any = convert_to_tensor(logits)
    z = convert_to_tensor(labels, dtype_hint=x.dtype)
    if len(x.shape) != len(z.shape) or _differ(x.shape, z.shape):
        raise InvalidArgumentError(
            f"labels and logits have one shape, but got {z.shape} and {x.shape}; reshape one of them."
        )
    return softplus(x) - x * z
