"""Discrete cosine transforms of signals and of overlapping frames."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import scipy.fft

from dualflow.core import dispatch
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.ops.batching_rules import LEADING
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.joining import concat, split
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Op, register
from dualflow.ops.repetition import pad, reverse
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.signal.framing import frame, overlap_and_add
from dualflow.ops.signal.windows import vorbis_window
from dualflow.ops.size_values import numbers_below, operand, selected
from dualflow.ops.static import static_int

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntLike, TensorLike
    from dualflow.ops.tensor import Tensor

Window = Callable[..., Any] | None
_INVERSE: Final = {1: 1, 2: 3, 3: 2, 4: 4}
"""The type of the inverse transform, up to a factor, by type."""


def _infer(x: TensorSpec, kind: int, norm: str | None) -> TensorSpec:
    if x.dtype.name not in ("float32", "float64"):
        raise DTypeError(f"takes float32 or float64, not {x.dtype.name}; convert the input with df.cast.")
    return x


def _kernel(x: Any, kind: int, norm: str | None) -> Any:
    if x.dtype.kind != "f" or x.dtype.itemsize not in (4, 8):
        raise TypeError("takes float32 or float64")
    return scipy.fft.dct(x, kind, norm=norm) if x.size else x.copy()


def _vjp(g: Any, out: Any, x: Any, kind: int, norm: str | None) -> Any:
    """The transposed transform: the inverse one where it is orthogonal, else one whose first element differs.

    In types 1 and 3 the first element counts once, the others twice; in type 1 the last one counts once too.
    """
    if norm == "ortho" or kind == 4:
        return _transform(g, _INVERSE[kind], norm)
    size = static_int(x.shape[-1], "the length of a cosine transform with a gradient")
    index = numbers_below(size)
    first = selected(index == 0, 0.5, 1.0)
    if kind == 1:
        ends = selected((index == 0) | (index == operand(size) - 1), 0.5, 1.0)
        return _multiply_last_axis(_transform(_multiply_last_axis(g, 1 / ends), 1, None), ends)
    if kind == 2:
        return _transform(_multiply_last_axis(g, 1 / first), 3, None)
    return _multiply_last_axis(_transform(g, 2, None), first)


def _multiply_last_axis(x: Any, weights: Any) -> Any:
    return x * cast(weights, x.dtype)


def _sample(kind: int, norm: str | None, shape: tuple[int, ...]) -> Sample:
    return Sample((Domain(-3, 3, "f", shape),), {"kind": kind, "norm": norm})


COSINE: Final = register(
    Op(
        name="cosine_transform",
        doc="""The discrete cosine transform of one of the types 1 to 4 along the last axis.""",
        infer=_infer,
        kernel=_kernel,
        kind=Opaque("cosine transforms are SciPy's"),
        batching_rule=LEADING,
        vjp=(_vjp,),
        samples=(
            _sample(1, None, (2, 5)),
            _sample(2, None, (2, 5)),
            _sample(2, "ortho", (4,)),
            _sample(3, None, (2, 5)),
            _sample(3, "ortho", (4,)),
            _sample(4, None, (2, 5)),
            _sample(4, "ortho", (4,)),
            _sample(2, None, (0, 3)),
        ),
    )
)


def _transform(x: Any, kind: int, norm: str | None) -> Any:
    return dispatch.current().apply(COSINE, (x,), {"kind": kind, "norm": norm})


def _check(kind: Any, axis: Any, norm: Any, length: Any) -> None:
    if kind not in _INVERSE:
        raise InvalidArgumentError(f"the type of a cosine transform is 1, 2, 3 or 4, not {kind!r}.")
    if norm not in (None, "ortho"):
        raise InvalidArgumentError(f"norm is None or 'ortho', not {norm!r}.")
    if axis != -1:
        raise InvalidArgumentError(f"cosine transforms take the axis -1, not {axis}; use df.transpose.")
    if kind == 1 and (norm == "ortho" or (length is not None and length < 2)):
        raise InvalidArgumentError(
            f"the cosine transform of type 1 takes two samples or more (here {length}) and norm=None."
        )


def dct(
    input: TensorLike,
    type: int = 2,
    n: IntLike | None = None,
    axis: int = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The discrete cosine transform along the last axis.

    Args:
        input: float32 or float64, of shape ``(..., samples)``.
        type: 1, 2, 3 or 4.
        n: the length of the transform: longer signals are cut off, shorter ones padded with zeros. None for
            all samples.
        axis: must be -1.
        norm: "ortho" for an orthogonal transform (not of type 1), or None.

    Returns:
        A tensor of shape ``(..., n)`` with the dtype of ``input``.

    Raises:
        DTypeError: ``input`` has another dtype.
        InvalidArgumentError: the type, norm or axis is another, or type 1 has less than two samples.

    >>> import dualflow as df
    >>> df.signal.dct([1.0, 1.0, 1.0, 1.0]).numpy()
    array([8., 0., 0., 0.], dtype=float32)
    """
    x = convert_to_tensor(input)
    if not x.shape:
        raise InvalidArgumentError("cosine transforms take one axis or more, not a scalar; use df.reshape.")
    if n is not None:
        length, size = static_int(n, "n"), static_int(x.shape[-1], "the length of a signal that n changes")
        if length < 1:
            raise InvalidArgumentError(f"n is 1 or more, not {length}.")
        short = [[0, 0]] * (len(x.shape) - 1) + [[0, max(0, length - size)]]
        x = x[..., :length] if length <= size else pad(x, short)
    _check(type, axis, norm, x.shape[-1])
    return _transform(x, type, norm)


def idct(
    input: TensorLike,
    type: int = 2,
    n: IntLike | None = None,
    axis: int = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The inverse of :func:`dct` for ``norm="ortho"``.

    Without a norm it is ``2 * samples`` times the inverse, and ``2 * (samples - 1)`` times for type 1.

    Args:
        input: float32 or float64, of shape ``(..., samples)``.
        type: 1, 2, 3 or 4.
        n: must be None.
        axis: must be -1.
        norm: "ortho" for an orthogonal transform (not of type 1), or None.

    Returns:
        A tensor with the shape and dtype of ``input``.

    Raises:
        DTypeError: ``input`` has another dtype.
        InvalidArgumentError: the type, norm or axis is another, or ``n`` is not None.

    >>> import dualflow as df
    >>> x = df.signal.idct(df.signal.dct([1.0, 2.0, 3.0], norm="ortho"), norm="ortho")
    >>> x.numpy().round(5)
    array([1., 2., 3.], dtype=float32)
    """
    if n is not None:
        raise InvalidArgumentError(f"idct takes n=None, not {n}; cut or pad its input.")
    if type not in (1, 2, 3, 4):
        raise InvalidArgumentError(f"the type of a cosine transform is 1, 2, 3 or 4, not {type!r}.")
    return dct(input, _INVERSE[type], None, axis, norm)


def _windowed(frames: Any, window_fn: Window) -> Any:
    if window_fn is None:
        return frames * (1 / math.sqrt(2))
    return frames * window_fn(frames.shape[-1], dtype=frames.dtype)


def mdct(
    signals: TensorLike,
    frame_length: IntLike,
    window_fn: Window = vorbis_window,
    pad_end: bool = False,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The modified discrete cosine transform of frames that overlap by half.

    Princen, Johnson and Bradley, "Subband/Transform Coding Using Filter Bank Designs Based on Time Domain
    Aliasing Cancellation" (1987).

    Args:
        signals: float32 or float64, of shape ``(..., samples)``.
        frame_length: the size of a frame, a multiple of 4.
        window_fn: a function ``window_fn(frame_length, dtype=dtype)`` that returns the weights of a frame;
            None for ``sqrt(1 / 2)``.
        pad_end: see :func:`dualflow.signal.frame`.
        norm: the norm of the cosine transform of type 4: "ortho" or None.

    Returns:
        A tensor of shape ``(..., frames, frame_length // 2)`` with the dtype of ``signals``.

    Raises:
        InvalidArgumentError: ``frame_length`` is not a multiple of 4.
        DTypeError: ``signals`` has another dtype.

    >>> import dualflow as df
    >>> df.signal.mdct(df.ones([16]), 8).shape.as_list()
    [3, 4]
    """
    length = static_int(frame_length, "frame_length")
    if length % 4:
        raise InvalidArgumentError(f"mdct takes a frame_length that is a multiple of 4, not {length}.")
    a, b, c, d = split(_windowed(frame(signals, length, length // 2, pad_end), window_fn), 4, axis=-1)
    folded = concat([-reverse(c, [-1]) - d, a - reverse(b, [-1])], axis=-1)
    return dct(folded, type=4, norm=norm)


def inverse_mdct(
    mdcts: TensorLike, window_fn: Window = vorbis_window, norm: str | None = None, name: str | None = None
) -> Tensor:
    """The signals from the transform of :func:`mdct`.

    The window must be the same, and squares of weights half a window apart must add to 1. At the two ends,
    which only one frame covers, the signal is not restored.

    Args:
        mdcts: float32 or float64, of shape ``(..., frames, frame_length // 2)``.
        window_fn: a function ``window_fn(frame_length, dtype=dtype)`` that returns the weights of a frame;
            None for ``sqrt(1 / 2)``.
        norm: the norm of :func:`mdct`.

    Returns:
        A tensor of shape ``(..., samples)`` with the dtype of ``mdcts``.

    Raises:
        InvalidArgumentError: ``mdcts`` has fewer than two axes.
        DTypeError: ``mdcts`` has another dtype.

    >>> import dualflow as df
    >>> x = df.ones([16])
    >>> y = df.signal.inverse_mdct(df.signal.mdct(x, 8))
    >>> y[4:-4].numpy().round(5).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """
    mdcts = convert_to_tensor(mdcts)
    if len(mdcts.shape) < 2:
        raise InvalidArgumentError(
            f"coefficients are [..., frames, frame_length // 2], but the shape is {mdcts.shape}."
        )
    half = static_int(mdcts.shape[-1], "the number of coefficients")
    transformed = dct(mdcts, type=4, norm=norm)
    first, second = split(transformed if norm == "ortho" else transformed * (0.5 / half), 2, axis=-1)
    frames = concat([second, -reverse(second, [-1]), -reverse(first, [-1]), -first], axis=-1)
    return overlap_and_add(_windowed(frames, window_fn), half)
