"""The best boxes of all classes: ``df.image.combined_non_max_suppression``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from dualflow.core.dtypes import float32, int32
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import op_entry
from dualflow.ops.arithmetic import floordiv, minimum
from dualflow.ops.arrangement import expand_dims, reshape, transpose
from dualflow.ops.broadcasting import broadcast_to, reduce_sum
from dualflow.ops.clipping import clip_by_value
from dualflow.ops.comparison import less
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor, zeros_like
from dualflow.ops.image.boxes import non_max_suppression_padded
from dualflow.ops.ordering.extremes import top_k
from dualflow.ops.positions import iota
from dualflow.ops.repetition import pad
from dualflow.ops.selection import where
from dualflow.ops.static import require_static_sizes, static_int
from dualflow.ops.taking import gather

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntLike, TensorLike
    from dualflow.ops.tensor import Tensor


class CombinedNonMaxSuppression(NamedTuple):
    """What :func:`combined_non_max_suppression` returns."""

    nmsed_boxes: Tensor
    nmsed_scores: Tensor
    nmsed_classes: Tensor
    valid_detections: Tensor


@op_entry
def combined_non_max_suppression(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size_per_class: IntLike,
    max_total_size: IntLike,
    iou_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = -math.inf,
    pad_per_class: bool = False,
    clip_boxes: bool = True,
    name: str | None = None,
) -> CombinedNonMaxSuppression:
    """The best boxes of each image of a batch, among those that are chosen for each class.

    Args:
        boxes: float32 of shape ``(batch, boxes, classes, 4)``: two opposite corners each; or ``(batch, boxes,
            1, 4)``, if all classes have the same boxes.
        scores: float32 of shape ``(batch, boxes, classes)``.
        max_output_size_per_class: the largest number of boxes of a class.
        max_total_size: the largest number of boxes of an image.
        iou_threshold: the intersection divided by the union of two boxes above which the worse is left out.
        score_threshold: only boxes with a higher score are chosen.
        pad_per_class: whether results are padded to ``max_output_size_per_class * classes`` at most.
        clip_boxes: whether coordinates are clipped to 0 and 1.
        name: ignored; as in TensorFlow.

    Returns:
        ``nmsed_boxes`` of shape ``(batch, results, 4)``, ``nmsed_scores`` and ``nmsed_classes`` of shape
        ``(batch, results)``, float32, by falling score and padded with zeros, and ``valid_detections``, int32
        of shape ``(batch,)``, the number of results that are no padding.

    Raises:
        InvalidArgumentError: the shapes don't fit, a size is not static, or a number of boxes is less than 1.

    >>> import dualflow as df
    >>> boxes = df.constant([[[[0.0, 0.0, 1.0, 1.0]], [[0.0, 0.0, 0.5, 0.5]]]])
    >>> best = df.image.combined_non_max_suppression(boxes, [[[0.2, 0.9], [0.8, 0.1]]], 1, 2)
    >>> best.nmsed_classes.numpy().tolist(), best.valid_detections.numpy().tolist()
    ([[1.0, 0.0]], [2])
    """
    boxes = convert_to_tensor(boxes, dtype_hint=float32)
    scores = convert_to_tensor(scores, dtype_hint=float32)
    if len(boxes.shape) != 4 or len(scores.shape) != 3:
        raise InvalidArgumentError(
            "combined_non_max_suppression takes boxes (batch, boxes, classes, 4) and scores (batch, boxes, "
            f"classes), not of the shapes {boxes.shape} and {scores.shape}; reshape them."
        )
    batch, count, classes = require_static_sizes(scores.shape, "combined_non_max_suppression")
    total = static_int(max_total_size, "max_total_size")
    per_class = static_int(max_output_size_per_class, "max_output_size_per_class")
    if total < 1 or per_class < 1:
        raise InvalidArgumentError(
            "combined_non_max_suppression takes max_total_size and max_output_size_per_class of 1 or more, "
            f"not {total} and {per_class}."
        )
    limit = min(per_class, count)
    by_class = broadcast_to(transpose(boxes, [0, 2, 1, 3]), [batch, classes, count, 4])
    class_scores = transpose(scores, [0, 2, 1])
    chosen, counts = non_max_suppression_padded(
        by_class, class_scores, limit, iou_threshold, score_threshold, pad_to_max_output_size=True
    )
    is_chosen = less(iota((limit,), 0), expand_dims(counts, -1))
    ranked = where(is_chosen, gather(class_scores, chosen, batch_dims=2), -math.inf)
    results = min(total, classes * limit)
    best, places = top_k(reshape(ranked, [batch, classes * limit]), results)
    candidates = reshape(gather(by_class, chosen, batch_dims=2), [batch, classes * limit, 4])
    result_boxes: Any = gather(candidates, places, batch_dims=1)
    valid = minimum(reduce_sum(counts, 1), total)
    is_valid = less(iota((best.shape[1],), 0), expand_dims(valid, -1))
    padding = (min(total, classes * per_class) if pad_per_class else total) - results

    def padded(x: Any, mask: Any) -> Any:
        return pad(where(mask, x, zeros_like(x)), [[0, 0], [0, padding]] + [[0, 0]] * (len(x.shape) - 2))

    if clip_boxes:
        result_boxes = clip_by_value(result_boxes, 0.0, 1.0)
    return CombinedNonMaxSuppression(
        padded(result_boxes, expand_dims(is_valid, -1)),
        padded(best, is_valid),
        padded(cast(floordiv(places, max(limit, 1)), float32), is_valid),
        cast(valid, int32),
    )
