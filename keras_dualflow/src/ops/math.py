"""Segment reductions, top-k, Fourier transforms and special functions; see :mod:`keras.ops`."""

from __future__ import annotations

from math import inf
from typing import Any

import dualflow as df
import dualflow.numpy as dnp
from keras_dualflow.src.ops.core import cast, convert_to_tensor
from keras_dualflow.src.ops.promotion import floats, inexact, promote, tensor


def _segments(
    function: Any, data: Any, segment_ids: Any, num_segments: int | None, empty: float | None = None
) -> Any:
    """The reduction of each segment; ``empty`` for segments without elements."""
    ids = cast(segment_ids, "int32")
    count = _last(ids) if num_segments is None else num_segments
    data = tensor(data)
    reduced = function(data, ids, count)
    if empty is None or not data.dtype.is_floating:
        return reduced
    nonempty = df.math.unsorted_segment_sum(df.ones_like(ids), ids, count) > 0
    return df.where(df.reshape(nonempty, (-1, *[1] * (len(reduced.shape) - 1))), reduced, empty)


def _last(ids: Any) -> Any:
    """The number of segments up to the largest id: a Python int if it is constant."""
    count = df.reduce_max(ids) + 1
    constant = df.get_static_value(count)
    return count if constant is None else int(constant)


def segment_sum(data: Any, segment_ids: Any, num_segments: int | None = None, sorted: bool = False) -> Any:
    return _segments(df.math.unsorted_segment_sum, data, segment_ids, num_segments)


def segment_max(data: Any, segment_ids: Any, num_segments: int | None = None, sorted: bool = False) -> Any:
    return _segments(df.math.unsorted_segment_max, data, segment_ids, num_segments, -inf)


def segment_min(data: Any, segment_ids: Any, num_segments: int | None = None, sorted: bool = False) -> Any:
    return _segments(df.math.unsorted_segment_min, data, segment_ids, num_segments, inf)


def segment_prod(data: Any, segment_ids: Any, num_segments: int | None = None, sorted: bool = False) -> Any:
    return _segments(df.math.unsorted_segment_prod, data, segment_ids, num_segments)


def top_k(x: Any, k: int, sorted: bool = True) -> Any:
    return tuple(df.math.top_k(tensor(x), k, sorted))


def in_top_k(targets: Any, predictions: Any, k: int) -> Any:
    return df.math.in_top_k(cast(targets, "int32"), floats(predictions), k)


def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return df.reduce_logsumexp(floats(x), axis, keepdims)


def cdist(x: Any, y: Any) -> Any:
    """The distance between each row of ``x`` and each row of ``y``."""
    x, y = promote(x, y, also=(float,))
    if len(x.shape) < 2 or len(y.shape) < 2:
        raise ValueError("`cdist` inputs must have rank >= 2")
    if x.shape[-1] != y.shape[-1]:
        raise ValueError("Last dimension of inputs to `cdist` must match")
    return df.reduce_euclidean_norm(df.expand_dims(x, -2) - df.expand_dims(y, -3), -1)


def extract_sequences(x: Any, sequence_length: int, sequence_stride: int) -> Any:
    return df.signal.frame(tensor(x), sequence_length, sequence_stride)


def _get_complex_tensor_from_tuple(x: Any) -> Any:
    """The complex tensor of a pair of real and imaginary parts."""
    if not isinstance(x, tuple | list) or len(x) != 2:
        raise ValueError(f"Input `x` should be a tuple of two tensors - real and imaginary. Received: x={x}")
    real, imaginary = tensor(x[0]), tensor(x[1])
    if real.shape != imaginary.shape:
        raise ValueError(
            "Input `x` should be a tuple of two tensors - real and imaginary. Both the real and imaginary "
            f"parts should have the same shape. Received: {real.shape} and {imaginary.shape}"
        )
    if not (real.dtype.is_floating and imaginary.dtype.is_floating):
        raise ValueError(f"At least one tensor in input `x` is not of type float. Received: x={x}.")
    return df.complex(real, imaginary)


def _parts(x: Any) -> tuple[Any, Any]:
    return df.math.real(x), df.math.imag(x)


def fft(x: Any) -> tuple[Any, Any]:
    return _parts(df.signal.fft(_get_complex_tensor_from_tuple(x)))


def fft2(x: Any) -> tuple[Any, Any]:
    return _parts(df.signal.fft2d(_get_complex_tensor_from_tuple(x)))


def ifft2(x: Any) -> tuple[Any, Any]:
    return _parts(df.signal.ifft2d(_get_complex_tensor_from_tuple(x)))


def rfft(x: Any, fft_length: int | None = None) -> tuple[Any, Any]:
    return _parts(df.signal.rfft(tensor(x), None if fft_length is None else [fft_length]))


def irfft(x: Any, fft_length: int | None = None) -> Any:
    return df.signal.irfft(_get_complex_tensor_from_tuple(x), None if fft_length is None else [fft_length])


def _window(window: Any, sequence_length: int, fft_length: int, dtype: Any) -> Any:
    """The weights of a frame, padded with zeros to the length of the transform."""
    before = (fft_length - sequence_length) // 2
    if window is None:
        return df.ones([fft_length], dtype)
    if isinstance(window, str):
        named = {"hann": df.signal.hann_window, "hamming": df.signal.hamming_window}
        if window not in named:
            raise ValueError(
                'If a string is passed to `window`, it must be one of `"hann"`, `"hamming"`. '
                f"Received: window={window}"
            )
        weights = named[window](sequence_length, dtype=dtype)
    else:
        weights = convert_to_tensor(window, dtype.name)
    if tuple(weights.shape) != (sequence_length,):
        raise ValueError(
            "The shape of `window` must be equal to [sequence_length]. "
            f"Received: window shape={weights.shape}"
        )
    return df.pad(weights, [[before, fft_length - sequence_length - before]])


def stft(
    x: Any,
    sequence_length: int,
    sequence_stride: int,
    fft_length: int,
    window: Any = "hann",
    center: bool = True,
) -> tuple[Any, Any]:
    x = tensor(x)
    if x.dtype.name not in ("float32", "float64"):
        raise TypeError(
            f"Invalid input type. Expected `float32` or `float64`. Received: input type={x.dtype.name}"
        )
    if fft_length < sequence_length:
        raise ValueError(
            "`fft_length` must equal or larger than `sequence_length`. Received: "
            f"sequence_length={sequence_length}, fft_length={fft_length}"
        )
    weights = _window(window, sequence_length, fft_length, x.dtype)
    if center:
        x = dnp.pad(x, [*[(0, 0)] * (len(x.shape) - 1), (fft_length // 2, fft_length // 2)], "reflect")
    frames = df.signal.frame(x, fft_length, sequence_stride)
    return _parts(df.signal.rfft(frames * weights, [fft_length]))


def istft(
    x: Any,
    sequence_length: int,
    sequence_stride: int,
    fft_length: int,
    length: int | None = None,
    window: Any = "hann",
    center: bool = True,
) -> Any:
    """The signal of spectra: the sum of its windowed frames, divided by the sum of the squared windows."""
    spectra = _get_complex_tensor_from_tuple(x)
    dtype = df.math.real(spectra).dtype
    weights = _window(window, sequence_length, fft_length, dtype)
    inverse = df.signal.inverse_stft_window_fn(sequence_stride, lambda length, dtype: weights)
    signal = df.signal.inverse_stft(
        spectra, fft_length, sequence_stride, fft_length, None if window is None else inverse
    )
    start = fft_length // 2 if center else 0
    if length is None:
        length = fft_length + sequence_stride * (spectra.shape[-2] - 1) - 2 * start
    return signal[..., start : start + length]


def rsqrt(x: Any) -> Any:
    return df.rsqrt(inexact(x))


def erf(x: Any) -> Any:
    return df.erf(inexact(x))


def erfc(x: Any) -> Any:
    return df.erfc(floats(x))


def erfinv(x: Any) -> Any:
    return df.math.erfinv(floats(x))


def logdet(x: Any) -> Any:
    return df.linalg.slogdet(tensor(x))[1]
