"""Frames: overlapping parts of a signal, as views of it, and the signal that is their sum."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Dim, normalize_axis
from dualflow.core.tracebacks import op_entry
from dualflow.ops.arrangement import reshape, transpose
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.neural.windows import Geometry, windows
from dualflow.ops.repetition import pad
from dualflow.ops.static import require_static_sizes, static_int
from dualflow.ops.tensor_sizes import reshape_sizes

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, IntLike, TensorLike
    from dualflow.ops.tensor import Tensor


def frame(
    signal: TensorLike,
    frame_length: IntLike,
    frame_step: IntLike,
    pad_end: bool = False,
    pad_value: float = 0,
    axis: AxisLike = -1,
    name: str | None = None,
) -> Tensor:
    """Overlapping parts of a signal along an axis: ``frame_length`` elements each, ``frame_step`` apart.

    Args:
        signal: a tensor of one axis or more, of any dtype.
        frame_length: the size of a frame, known while tracing.
        frame_step: the distance between frames, known while tracing.
        pad_end: whether frames begin up to the end of the signal, which is then padded with ``pad_value``.
        pad_value: a Python number.
        axis: the axis of the signal; the last by default.

    Returns:
        A tensor of shape ``(..., frames, frame_length, ...)`` with the dtype of ``signal``.

    Raises:
        InvalidArgumentError: ``signal`` is a scalar, or a length or step is below 1.

    >>> import dualflow as df
    >>> df.signal.frame([1, 2, 3, 4, 5], 3, 2).numpy()
    array([[1, 2, 3],
           [3, 4, 5]], dtype=int32)
    """
    signal = convert_to_tensor(signal)
    length, step = static_int(frame_length, "frame_length"), static_int(frame_step, "frame_step")
    if length < 1 or step < 1:
        raise InvalidArgumentError(f"frame_length and frame_step are at least 1, not {length} and {step}.")
    index = normalize_axis(static_int(axis, "axis"), len(signal.shape))
    outer, inner = signal.shape[:index], signal.shape[index + 1 :]
    beyond = 0
    if pad_end:
        samples = static_int(signal.shape[index], "the length of a signal that is padded")
        beyond = max(0, length + step * (-(-samples // step) - 1) - samples)
    rows = _joined(signal, outer, [signal.shape[index]], inner)
    frames = windows(rows, Geometry((length,), (step,), (1,), ((0, beyond),)), pad_value)
    return _split_axes(frames, signal, outer, list(frames.shape[1:3]), inner)


def _joined(x: Any, outer: Any, middle: list[Dim], inner: Any) -> Any:
    """The outer axes as one, and the inner ones."""
    if len(outer) == 1 and len(inner) == 1:
        return x
    return reshape(x, _sizes([math.prod(outer) if None not in outer else None, *middle, _product(inner)]))


def _product(dims: Any) -> Dim:
    return None if None in dims else math.prod(dims)


def _split_axes(x: Any, signal: Any, outer: Any, middle: list[Dim], inner: Any) -> Any:
    """``x`` with the first axes of ``signal``, the axes ``middle`` and the last axes of ``signal``."""
    if len(outer) == 1 and len(inner) == 1:
        return x
    return _with_outer_axes(x, signal, [*outer, *middle, *inner])


def _with_outer_axes(x: Any, signal: Any, shape: list[Dim]) -> Any:
    """``x`` reshaped to ``shape``, whose unknown size, if there is one, is of an outer axis of ``signal``."""
    if shape.count(None) > 1:
        require_static_sizes(shape, "a signal of frames")
    return reshape(x, reshape_sizes(shape, signal))


def _sizes(dims: list[Dim]) -> list[int]:
    """Sizes for ``reshape``, with -1 for an unknown one."""
    if dims.count(None) > 1:
        require_static_sizes(dims, "a signal of frames")
    return [-1 if n is None else n for n in dims]


@op_entry
def overlap_and_add(signal: TensorLike, frame_step: IntLike, name: str | None = None) -> Tensor:
    """The sum of frames that begin ``frame_step`` apart.

    Args:
        signal: frames of shape ``(..., frames, frame_length)``, whose number and length are known while
            tracing.
        frame_step: the distance between frames, known while tracing.

    Returns:
        A tensor of shape ``(..., (frames - 1) * frame_step + frame_length)`` with the dtype of ``signal``.

    Raises:
        InvalidArgumentError: ``signal`` has fewer than two axes, or the step is below 1.

    >>> import dualflow as df
    >>> df.signal.overlap_and_add([[1, 1, 1], [1, 1, 1]], 2).numpy()
    array([1, 1, 2, 1, 1], dtype=int32)
    """
    signal = convert_to_tensor(signal)
    step = static_int(frame_step, "frame_step")
    if len(signal.shape) < 2:
        raise InvalidArgumentError(f"frames have two axes or more, not {signal.shape}; use df.reshape.")
    frames = static_int(signal.shape[-2], "the number of frames")
    length = static_int(signal.shape[-1], "the length of a frame")
    if step < 1:
        raise InvalidArgumentError(f"frame_step is at least 1, not {step}.")
    outer = signal.shape[:-2]
    if not frames or not length or step == length:
        return _with_outer_axes(signal, signal, [*outer, frames * length])
    return _skewed_sum(signal, list(outer), frames, length, step)


def _skewed_sum(signal: Any, outer: list[Dim], frames: int, length: int, step: int) -> Any:
    """The sum of overlapping frames: of rows of parts of length ``step``, each shifted by one step more.

    Reading rows with a length that is shorter by one shifts each by one more.
    """
    parts, rank = -(-length // step), len(outer)
    first = _product(outer)
    filled = pad(signal, [[0, 0]] * (rank + 1) + [[0, parts * step - length]])
    skewed = reshape(filled, _sizes([first, frames, parts, step]))
    rows = pad(transpose(skewed, [0, 2, 1, 3]), [[0, 0], [0, 0], [0, parts], [0, 0]])
    flat = reshape(rows, _sizes([first, parts * (frames + parts), step]))[:, : parts * (frames + parts - 1)]
    added = reduce_sum(reshape(flat, _sizes([first, parts, frames + parts - 1, step])), 1)
    total = (frames - 1) * step + length
    samples = reshape(added, _sizes([first, (frames + parts - 1) * step]))[:, :total]
    return _with_outer_axes(samples, signal, [*outer, total])
