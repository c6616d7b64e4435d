"""Spectra of frames: the short-time Fourier transform and its inverse, and the mel scale."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.dtypes import as_dtype, float32, float64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.ops.conversion import cast
from dualflow.ops.creation import constant, convert_to_tensor
from dualflow.ops.powers import sqrt
from dualflow.ops.repetition import pad
from dualflow.ops.signal.cosine import dct
from dualflow.ops.signal.fourier import irfft, rfft
from dualflow.ops.signal.framing import frame, overlap_and_add
from dualflow.ops.signal.windows import hann_window
from dualflow.ops.size_values import operand
from dualflow.ops.static import static_int, static_value
from dualflow.sizes.symbolic_sizes import SymInt

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, IntLike, IntsLike, TensorLike
    from dualflow.ops.tensor import Tensor

Window = Callable[..., Any] | None


def _fft_length(fft_length: Any, frame_length: int) -> int:
    """The given length, or the least power of two that holds a frame."""
    if fft_length is not None:
        return static_int(fft_length, "fft_length")
    return int(1 << max(0, frame_length - 1).bit_length())


def stft(
    signals: TensorLike,
    frame_length: IntLike,
    frame_step: IntLike,
    fft_length: IntsLike | None = None,
    window_fn: Window = hann_window,
    pad_end: bool = False,
    name: str | None = None,
) -> Tensor:
    """The short-time Fourier transform: the transform of each frame of a signal, multiplied by a window.

    Args:
        signals: float32 or float64, of shape ``(..., samples)``.
        frame_length: the size of a frame.
        frame_step: the distance between frames.
        fft_length: the length of the transforms; None for the least power of two that holds a frame.
        window_fn: a function ``window_fn(frame_length, dtype=dtype)`` that returns the weights of a frame;
            None for none.
        pad_end: see :func:`dualflow.signal.frame`.

    Returns:
        A complex tensor of shape ``(..., frames, fft_length // 2 + 1)``.

    Raises:
        InvalidArgumentError: ``signals`` is a scalar, or a length or step is below 1.
        DTypeError: ``signals`` has another dtype, or a length is not known while tracing.

    >>> import dualflow as df
    >>> df.signal.stft(df.ones([1000]), frame_length=256, frame_step=128).shape.as_list()
    [6, 129]
    """
    length = static_int(frame_length, "frame_length")
    frames = frame(signals, length, frame_step, pad_end)
    if window_fn is not None:
        frames = frames * window_fn(length, dtype=frames.dtype)
    return rfft(frames, [_fft_length(fft_length, length)])


def inverse_stft_window_fn(
    frame_step: IntLike, forward_window_fn: Callable[..., Any] = hann_window, name: str | None = None
) -> Callable[..., Any]:
    """The window function for :func:`inverse_stft` that restores the signal of :func:`stft`.

    It is the forward window, divided by the sum of the squares of all windows that cover a sample: Griffin
    and Lim, "Signal estimation from modified short-time Fourier transform" (1984).

    Args:
        frame_step: the distance between frames.
        forward_window_fn: the window function of :func:`stft`.

    Returns:
        A function ``window_fn(frame_length, dtype)`` that returns a tensor of shape ``(frame_length,)``.

    Raises:
        DTypeError: when it is called: ``frame_step`` is not an integer known while tracing.

    >>> import dualflow as df
    >>> df.signal.inverse_stft_window_fn(2)(4, dtype=df.float32).shape
    (4,)
    """

    def window_fn(frame_length: Any, dtype: Any) -> Any:
        length, step = static_int(frame_length, "frame_length"), static_int(frame_step, "frame_step")
        forward = np.asarray(static_value(forward_window_fn(length, dtype=dtype)))
        overlaps = -(-length // step)
        squares = np.zeros(overlaps * step)
        squares[:length] = forward.astype(np.float64) ** 2
        over = np.tile(squares.reshape(overlaps, step).sum(0), overlaps)[:length]
        weights = np.divide(forward, over, out=np.zeros(length), where=over != 0)
        return constant(weights.astype(forward.dtype))

    return window_fn


def inverse_stft(
    stfts: TensorLike,
    frame_length: IntLike,
    frame_step: IntLike,
    fft_length: IntsLike | None = None,
    window_fn: Window = hann_window,
    name: str | None = None,
) -> Tensor:
    """The signals from a short-time Fourier transform: the sum of the frames, multiplied by a window.

    Args:
        stfts: complex numbers of shape ``(..., frames, fft_length // 2 + 1)``.
        frame_length: the size of a frame.
        frame_step: the distance between frames.
        fft_length: as in :func:`stft`.
        window_fn: a function ``window_fn(frame_length, dtype=dtype)``; that of :func:`inverse_stft_window_fn`
            restores a signal.

    Returns:
        A real tensor of shape ``(..., (frames - 1) * frame_step + frame_length)``.

    Raises:
        InvalidArgumentError: ``stfts`` has fewer than two axes, or the step is below 1.
        DTypeError: ``stfts`` doesn't hold complex numbers, or a length is not known while tracing.

    >>> import dualflow as df
    >>> x = df.random.stateless_normal([1000], seed=(1, 2))
    >>> spectra = df.signal.stft(x, 400, 160)
    >>> window = df.signal.inverse_stft_window_fn(160)
    >>> y = df.signal.inverse_stft(spectra, 400, 160, window_fn=window)
    >>> bool(df.reduce_max(abs(y - x[:880])[400:-400]) < 1e-5)  # fewer frames cover the ends
    True
    """
    length = static_int(frame_length, "frame_length")
    frames: Any = irfft(stfts, [_fft_length(fft_length, length)])
    size = frames.shape[-1]
    if size > length:
        frames = frames[..., :length]
    elif size < length:
        frames = pad(frames, [[0, 0]] * (len(frames.shape) - 1) + [[0, length - size]])
    if window_fn is not None:
        frames = frames * window_fn(length, dtype=frames.dtype)
    return overlap_and_add(frames, frame_step)


def _mels(hertz: Any) -> Any:
    return 1127.0 * np.log1p(np.asarray(hertz, np.float64) / 700.0)


def linear_to_mel_weight_matrix(
    num_mel_bins: IntLike = 20,
    num_spectrogram_bins: IntLike = 129,
    sample_rate: TensorLike = 8000,
    lower_edge_hertz: TensorLike = 125.0,
    upper_edge_hertz: TensorLike = 3800.0,
    dtype: DTypeLike = float32,
    name: str | None = None,
) -> Tensor:
    """The matrix that maps spectra to bands of the mel scale.

    Each band is a triangle of height 1; the scale is ``1127 * log(1 + hertz / 700)``. All arguments must be
    known while tracing.

    Args:
        num_mel_bins: the number of bands.
        num_spectrogram_bins: the number of frequencies of a spectrum, from 0 to ``sample_rate / 2``.
        sample_rate: the number of samples per second.
        lower_edge_hertz: the lower end of the lowest band.
        upper_edge_hertz: the upper end of the highest band.
        dtype: a float dtype; float32 by default.

    Returns:
        A tensor of shape ``(num_spectrogram_bins, num_mel_bins)`` and dtype ``dtype``.

    Raises:
        InvalidArgumentError: there are no bands, or the edges are not in order below ``sample_rate / 2``.
        DTypeError: ``dtype`` is not a float dtype, or a number is not known.

    >>> import dualflow as df
    >>> weights = df.signal.linear_to_mel_weight_matrix(num_mel_bins=4)
    >>> df.matmul(df.ones([10, 129]), weights).shape.as_list()
    [10, 4]
    """
    bands = static_int(num_mel_bins, "num_mel_bins")
    bins = static_int(num_spectrogram_bins, "num_spectrogram_bins")
    rate, low, high = (_number(x) for x in (sample_rate, lower_edge_hertz, upper_edge_hertz))
    if bands < 1 or bins < 1 or not 0 <= low < high <= rate / 2:
        raise InvalidArgumentError(
            f"a mel matrix has bands and bins, here {bands} and {bins}, and edges with 0 <= lower < upper <= "
            f"sample_rate / 2, here {low}, {high} and {rate / 2}."
        )
    kind = as_dtype(dtype)
    if not kind.is_floating:
        raise DTypeError(f"mel weights are floats, not {kind.name}; choose another dtype.")
    edges = np.linspace(_mels(low), _mels(high), bands + 2)
    bin_mels = _mels(np.linspace(0.0, rate / 2, bins))[:, None]
    rising = (bin_mels - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - bin_mels) / (edges[2:] - edges[1:-1])
    weights = np.maximum(0, np.minimum(rising, falling))
    weights[0] = 0  # the mean of a signal is in no band
    return constant(weights.astype(kind.dtype))


def _number(x: Any) -> float:
    value = static_value(x)
    if value is None:
        raise DTypeError(f"a mel matrix is made while tracing, but {x!r} is symbolic; pass a Python number.")
    return float(value)


def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: TensorLike, name: str | None = None) -> Tensor:
    """The mel-frequency cepstral coefficients of logarithmic mel spectra.

    They are the cosine transform of type 2, divided by ``sqrt(2 * num_mel_bins)``.

    Args:
        log_mel_spectrograms: float32 or float64, of shape ``(..., num_mel_bins)``.

    Returns:
        A tensor with the shape and dtype of ``log_mel_spectrograms``.

    Raises:
        InvalidArgumentError: there are no bands.
        DTypeError: the dtype is another.

    >>> import dualflow as df
    >>> df.signal.mfccs_from_log_mel_spectrograms([[1.0, 1.0]]).numpy()
    array([[2., 0.]], dtype=float32)
    """
    spectra = convert_to_tensor(log_mel_spectrograms)
    if not spectra.shape:
        raise InvalidArgumentError("spectra are [..., num_mel_bins], but the shape is (); use df.reshape.")
    bands = static_int(spectra.shape[-1], "num_mel_bins")
    if not bands:
        raise InvalidArgumentError("spectra have one band or more, not 0; check num_mel_bins.")
    if isinstance(bands, SymInt):
        return dct(spectra, type=2) / cast(sqrt(operand(2 * bands, float64)), spectra.dtype)
    return dct(spectra, type=2) * (1 / math.sqrt(2 * bands))
