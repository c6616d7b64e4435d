"""Bounding boxes on images: drawing, and suppression of boxes that overlap a better one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import float32, int32
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.ops.arithmetic import mod
from dualflow.ops.arrangement import expand_dims, reshape
from dualflow.ops.comparison import equal, logical_and, logical_or
from dualflow.ops.conversion import cast
from dualflow.ops.creation import constant, convert_to_tensor, zeros
from dualflow.ops.joining import stack
from dualflow.ops.masking import boolean_mask
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.positions import iota
from dualflow.ops.record import Op, register
from dualflow.ops.reduction import reduce_max
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.selection import where
from dualflow.ops.static import static_int
from dualflow.ops.taking import gather
from dualflow.sizes.size_functions import common_size

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntLike, IntsLike, TensorLike
    from dualflow.ops.tensor import Tensor

Array = np.ndarray[Any, Any]

_COLOURS: Final = (
    (1.0, 1.0, 0.0, 1.0),
    (0.0, 0.0, 1.0, 1.0),
    (1.0, 0.0, 0.0, 1.0),
    (0.0, 1.0, 0.0, 1.0),
    (0.5, 0.0, 0.5, 1.0),
    (0.5, 0.5, 0.0, 1.0),
    (0.5, 0.0, 0.0, 1.0),
    (0.0, 0.0, 0.5, 1.0),
    (0.0, 1.0, 1.0, 1.0),
    (1.0, 0.0, 1.0, 1.0),
)
"""The default colours of boxes, used in rotation, as in TensorFlow: yellow, blue, red, ..."""


def draw_bounding_boxes(
    images: TensorLike, boxes: TensorLike, colors: TensorLike, name: str | None = None
) -> Tensor:
    """Images with the outlines of boxes, one pixel wide; later boxes cover earlier ones.

    Args:
        images: floats of shape ``(batch, height, width, channels)``, with 1, 3 or 4 channels.
        boxes: floats of shape ``(batch, boxes, 4)``: top, left, bottom and right, as fractions of the
            distance from the first to the last row or column. Parts outside of an image are left out.
        colors: floats of shape ``(colors, channels)``, used in rotation; None for TensorFlow's ten.

    Returns:
        A tensor with the shape and dtype of ``images``.

    Raises:
        InvalidArgumentError: a shape doesn't fit, or there is no colour.

    >>> import dualflow as df
    >>> box = [[[0.0, 0.0, 1.0, 1.0]]]
    >>> df.image.draw_bounding_boxes(df.zeros([1, 3, 3, 1]), box, [[1.0]])[0, ..., 0].numpy()
    array([[1., 1., 1.],
           [1., 0., 1.],
           [1., 1., 1.]], dtype=float32)
    """
    images, boxes = convert_to_tensor(images), convert_to_tensor(boxes, dtype_hint=float32)
    if len(images.shape) != 4 or len(boxes.shape) != 3 or boxes.shape[2] != 4:
        raise InvalidArgumentError(
            f"draw_bounding_boxes takes images [batch, height, width, channels] and boxes [batch, boxes, 4], "
            f"not {images.shape} and {boxes.shape}."
        )
    height, width, channels = (
        static_int(n, "the height, width and channels of images") for n in images.shape[1:]
    )
    palette = _palette(colors, channels, images.dtype)
    count = static_int(boxes.shape[1], "the number of boxes")
    if not count:
        return images
    edges = [cast(boxes[:, :, i] * float(n - 1), int32) for i, n in enumerate((height, width, height, width))]
    top, left, bottom, right = (expand_dims(expand_dims(edge, 2), 3) for edge in edges)
    row, column = iota([1, 1, height, 1], 2), iota([1, 1, 1, width], 3)
    inside = logical_and(logical_and(row >= top, row <= bottom), logical_and(column >= left, column <= right))
    border = logical_or(
        logical_or(equal(row, top), equal(row, bottom)), logical_or(equal(column, left), equal(column, right))
    )
    number = reshape(iota([count], 0), [1, count, 1, 1])
    last = reduce_max(where(logical_and(inside, border), number, -1), 1)
    paint = gather(palette, mod(last, palette.shape[0]))
    return where(expand_dims(last >= 0, 3), paint, images)


def _palette(colors: Any, channels: int, dtype: Any) -> Any:
    if colors is None and channels == 1:
        return constant(np.ones((1, 1)), dtype)
    palette = convert_to_tensor(_COLOURS if colors is None else colors, dtype_hint=float32)
    if len(palette.shape) != 2 or not palette.shape[0] or static_int(palette.shape[1], "channels") < channels:
        raise InvalidArgumentError(
            f"colors are [colors, {channels}] for images of {channels} channels, not {palette.shape}."
        )
    return cast(palette[:, :channels], dtype)


# Suppression


def _overlaps(boxes: Array, one: int, others: Array) -> Array:
    """The intersection of a box with others, divided by their union; corners may have any order."""
    low = np.minimum(boxes[:, :2], boxes[:, 2:])
    high = np.maximum(boxes[:, :2], boxes[:, 2:])
    area = np.prod(high - low, axis=1)
    sides = np.minimum(high[one], high[others]) - np.maximum(low[one], low[others])
    inner = np.prod(np.clip(sides, 0, None), axis=1)
    union = area[one] + area[others] - inner
    valid = (area[one] > 0) & (area[others] > 0)
    return np.divide(inner, union, out=np.zeros_like(inner), where=valid & (union > 0))


def _suppressed(
    boxes: Array, scores: Array, overlap: Array, least: Array, sigma: Array, most: int, matrix: bool
) -> tuple[Array, Array, Array]:
    """The greedy choice: the best remaining box next; scores fall with the overlap with chosen boxes.

    ``boxes`` are corners or, for ``matrix``, overlaps. A ``sigma`` of 0 removes every box that overlaps a
    chosen one by more than ``overlap``; another one lowers scores smoothly.
    """
    if boxes.dtype.kind != "f" or scores.dtype.kind != "f":
        raise TypeError("boxes and scores are floats")
    if boxes.ndim != 2 or boxes.shape != (*scores.shape, len(scores) if matrix else 4):
        raise ValueError("boxes and scores belong together")
    chosen: list[int] = []
    selected: list[Any] = []
    current = scores.astype(np.float64)
    alive = current > least
    while len(chosen) < most and alive.any():
        best = int(np.flatnonzero(alive)[np.argmax(current[alive])])
        chosen.append(best)
        selected.append(current[best])
        alive[best] = False
        candidates = np.flatnonzero(alive)
        shared = boxes[best, candidates] if matrix else _overlaps(boxes, best, candidates)
        if sigma > 0:
            current[candidates] *= np.exp(-0.5 / float(sigma) * shared**2)
        else:
            current[candidates[shared > overlap]] = -np.inf
        alive[candidates] = current[candidates] > least
    indices = np.zeros(most, np.int32)
    indices[: len(chosen)] = chosen
    best_scores = np.zeros(most, scores.dtype)
    best_scores[: len(selected)] = selected
    return indices, best_scores, np.array(len(chosen), np.int32)


def _suppressed_infer(
    boxes: TensorSpec,
    scores: TensorSpec,
    overlap: TensorSpec,
    least: TensorSpec,
    sigma: TensorSpec,
    most: int,
    matrix: bool,
) -> tuple[TensorSpec, ...]:
    if not boxes.dtype.is_floating or not scores.dtype.is_floating:
        raise DTypeError(f"takes boxes and scores in floats, not {boxes} and {scores}; use df.cast.")
    count = scores.shape[0] if len(scores.shape) == 1 else None
    if len(scores.shape) != 1 or not boxes.shape.is_compatible_with(Shape([count, count if matrix else 4])):
        kind = "overlaps [boxes, boxes]" if matrix else "boxes [boxes, 4]"
        raise InvalidArgumentError(f"takes {kind} and scores [boxes], not {boxes.shape} and {scores.shape}.")
    shape = Shape([most])
    return TensorSpec.of(shape, int32), TensorSpec.of(shape, scores.dtype), TensorSpec.of(Shape(), int32)


def _suppressed_shapes(
    boxes: Sequence[int], scores: Sequence[int], *numbers: Sequence[int], most: int, matrix: bool
) -> list[Sequence[int]]:
    count = common_size(boxes[0], scores[0])
    return [(count, count if matrix else 4), (count,), *numbers]


_BOXES: Final = Domain(
    kinds="f", shape=(4, 4), values=[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 0, -1, -1], [0, 2, 1, 3]]
)
_SCORES: Final = Domain(kinds="f", shape=(4,), values=[0.5, 0.75, 0.25, 0.5])


def _number(value: float) -> Domain:
    return Domain(kinds="f", shape=(), values=value)


SUPPRESSED: Final = register(
    Op(
        name="non_max_suppression",
        doc="""The indices of the boxes that non-maximum suppression selects, their scores and number.""",
        infer=_suppressed_infer,
        kernel=_suppressed,
        kind=Opaque("each choice of a box depends on those before it"),
        required_shapes=_suppressed_shapes,
        outputs=3,
        samples=(
            Sample((_BOXES, _SCORES, _number(0.5), _number(0.0), _number(0.0)), {"most": 3, "matrix": False}),
            Sample((_BOXES, _SCORES, _number(1.0), _number(0.3), _number(0.5)), {"most": 5, "matrix": False}),
            Sample(
                (Domain(0, 1, "f", (4, 4)), _SCORES, _number(0.5), _number(0.3), _number(0.0)),
                {"most": 4, "matrix": True},
            ),
        ),
    )
)


def _select_boxes(
    boxes: Any, scores: Any, most: Any, overlap: Any, least: Any, sigma: Any = 0.0, matrix: bool = False
) -> Any:
    numbers = [convert_to_tensor(x, float32) for x in (overlap, least, sigma)]
    inputs = convert_to_tensor(boxes, dtype_hint=float32), convert_to_tensor(scores, dtype_hint=float32)
    attrs = {"most": static_int(most, "max_output_size"), "matrix": matrix}
    return dispatch.current().apply(SUPPRESSED, (*inputs, *numbers), attrs)


def _first(values: Any, count: Any) -> Any:
    return boolean_mask(values, iota(values.shape, 0) < count)


def non_max_suppression(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size: IntLike,
    iou_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = -math.inf,
    name: str | None = None,
) -> Tensor:
    """The indices of the best boxes in descending order, without those that overlap a better one too much.

    Args:
        boxes: floats of shape ``(boxes, 4)``: two opposite corners each.
        scores: floats of shape ``(boxes,)``.
        max_output_size: the largest number of indices, known while tracing.
        iou_threshold: the intersection divided by the union of two boxes above which the worse is left out.
        score_threshold: only boxes with a higher score are returned.

    Returns:
        An int32 tensor of one axis, whose size depends on the values.

    Raises:
        InvalidArgumentError: a shape doesn't fit.
        DTypeError: boxes or scores are not floats.

    >>> import dualflow as df
    >>> boxes = [[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.1], [0.0, 2.0, 1.0, 3.0]]
    >>> df.image.non_max_suppression(boxes, [0.6, 0.9, 0.3], 3).numpy()
    array([1, 2], dtype=int32)
    """
    indices, _, count = _select_boxes(boxes, scores, max_output_size, iou_threshold, score_threshold)
    return _first(indices, count)


def non_max_suppression_with_scores(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size: IntLike,
    iou_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = -math.inf,
    soft_nms_sigma: TensorLike = 0.0,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The indices of the best boxes, and their scores.

    With ``soft_nms_sigma`` above 0 no box is left out for its overlap; instead its score is multiplied by
    ``exp(-overlap ** 2 / (2 * sigma))``. Bodla et al., "Soft-NMS" (2017).

    Args:
        boxes: floats of shape ``(boxes, 4)``: two opposite corners each.
        scores: floats of shape ``(boxes,)``.
        max_output_size: the largest number of indices, known while tracing.
        iou_threshold: the intersection divided by the union of two boxes above which the worse is left out.
        score_threshold: only boxes with a higher score are returned.
        soft_nms_sigma: the width of the decay; 0 to leave boxes out.

    Returns:
        The indices, int32, and the scores, with the dtype of ``scores``; both of one axis.

    Raises:
        InvalidArgumentError: a shape doesn't fit.
        DTypeError: boxes or scores are not floats.

    >>> import dualflow as df
    >>> boxes = [[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.1], [0.0, 2.0, 1.0, 3.0]]
    >>> indices, scores = df.image.non_max_suppression_with_scores(boxes, [0.5, 1.0, 0.25], 3)
    >>> indices.numpy().tolist(), scores.numpy().tolist()
    ([1, 2], [1.0, 0.25])
    """
    indices, best_scores, count = _select_boxes(
        boxes, scores, max_output_size, iou_threshold, score_threshold, soft_nms_sigma
    )
    return _first(indices, count), _first(best_scores, count)


def non_max_suppression_overlaps(
    overlaps: TensorLike,
    scores: TensorLike,
    max_output_size: IntLike,
    overlap_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = -math.inf,
    name: str | None = None,
) -> Tensor:
    """:func:`non_max_suppression` from a matrix of overlaps, by any measure.

    Args:
        overlaps: floats of shape ``(boxes, boxes)``.
        scores: floats of shape ``(boxes,)``.
        max_output_size: the largest number of indices, known while tracing.
        overlap_threshold: the overlap of two boxes above which the worse is left out.
        score_threshold: only boxes with a higher score are returned.

    Returns:
        An int32 tensor of one axis, whose size depends on the values.

    Raises:
        InvalidArgumentError: a shape doesn't fit.
        DTypeError: overlaps or scores are not floats.

    >>> import dualflow as df
    >>> df.image.non_max_suppression_overlaps([[1.0, 0.9], [0.9, 1.0]], [0.1, 0.2], 2).numpy()
    array([1], dtype=int32)
    """
    indices, _, count = _select_boxes(
        overlaps, scores, max_output_size, overlap_threshold, score_threshold, matrix=True
    )
    return _first(indices, count)


def non_max_suppression_padded(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size: IntLike,
    iou_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = -math.inf,
    pad_to_max_output_size: bool = False,
    name: str | None = None,
    sorted_input: bool = False,
    canonicalized_coordinates: bool = False,
    tile_size: IntsLike = 512,
) -> tuple[Tensor, Tensor]:
    """The indices of the best boxes of a batch, and their number.

    Args:
        boxes: floats of shape ``(..., boxes, 4)``: two opposite corners each.
        scores: floats of shape ``(..., boxes)``.
        max_output_size: the largest number of indices, known while tracing.
        iou_threshold: the intersection divided by the union of two boxes above which the worse is left out.
        score_threshold: only boxes with a higher score are returned.
        pad_to_max_output_size: whether the indices are padded with zeros to ``max_output_size``, as a batch
            needs.
        sorted_input: ignored: scores may have any order.
        canonicalized_coordinates: ignored: corners may have any order.
        tile_size: ignored: the computation is not tiled.

    Returns:
        The indices, int32 of shape ``(..., indices)``, and their numbers, int32 of shape ``(...)``.

    Raises:
        InvalidArgumentError: a batch without padding, or a shape doesn't fit.
        DTypeError: boxes or scores are not floats.

    >>> import dualflow as df
    >>> indices, count = df.image.non_max_suppression_padded([[0.0, 0.0, 1.0, 1.0]], [0.5], 2, 0.5, 0.0, True)
    >>> indices.numpy().tolist(), int(count)
    ([0, 0], 1)
    """
    boxes = convert_to_tensor(boxes, dtype_hint=float32)
    scores = convert_to_tensor(scores, dtype_hint=float32)
    if len(boxes.shape) == 2:
        indices, _, count = _select_boxes(boxes, scores, max_output_size, iou_threshold, score_threshold)
        return (indices if pad_to_max_output_size else _first(indices, count)), count
    if not pad_to_max_output_size:
        raise InvalidArgumentError(
            f"boxes of shape {boxes.shape} need pad_to_max_output_size=True, to have as many places each."
        )
    batch_sizes = [static_int(n, "the sizes before boxes") for n in boxes.shape[:-2]]
    limit = static_int(max_output_size, "max_output_size")
    if 0 in batch_sizes:
        return zeros([*batch_sizes, limit], int32), zeros(batch_sizes, int32)
    rows = reshape(boxes, [math.prod(batch_sizes), -1, 4])
    numbers = reshape(scores, [math.prod(batch_sizes), -1])
    selections = [
        _select_boxes(rows[i], numbers[i], max_output_size, iou_threshold, score_threshold)
        for i in range(math.prod(batch_sizes))
    ]
    indices = reshape(stack([selection[0] for selection in selections]), [*batch_sizes, limit])
    return indices, reshape(stack([selection[2] for selection in selections]), batch_sizes)
