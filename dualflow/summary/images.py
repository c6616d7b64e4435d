"""Encoding of arrays as PNG and WAV files."""

from __future__ import annotations

import io
import struct
import wave
import zlib
from typing import Any, Final

import numpy as np

from dualflow.core.convert import Array

_DARK: Final = 1e-6
"""Images whose numbers are all smaller are black, or grey."""
_COLOURS: Final = {1: 0, 2: 4, 3: 2, 4: 6}
"""PNG's number of a colour type, by the number of channels."""


def as_bytes_of_colour(pixels: Array) -> Array:
    """Pixels as uint8: floats are scaled from [0, 1] and clipped; nan is 0."""
    if pixels.dtype == np.uint8:
        return pixels
    if pixels.dtype.kind == "f":
        scaled = np.nan_to_num(pixels.astype(np.float64), nan=0.0, posinf=1.0, neginf=0.0) * 255.999
        return np.clip(scaled, 0, 255).astype(np.uint8)
    if pixels.dtype.kind == "b":
        return pixels.astype(np.uint8) * 255
    return np.clip(pixels, 0, 255).astype(np.uint8)


def rescaled(images: Array) -> Array:
    """Images as uint8, by the rule of TensorFlow 1: each image fills the range of brightness.

    Without negative numbers the largest one becomes 255. Otherwise 0 becomes 128, and the number with the
    largest magnitude 1 or 255. Integers and bools are converted as by :func:`as_bytes_of_colour`. A pixel
    that is not finite is red.

    >>> rescaled(np.array([[[[0.0], [2.0]]]])).ravel()
    array([  0, 255], dtype=uint8)
    """
    if images.dtype.kind in "biu":
        return as_bytes_of_colour(images)
    numbers = images.astype(np.float64)
    finite = np.isfinite(numbers)
    numbers[~finite] = 0.0
    axes = tuple(range(1, numbers.ndim))
    low = numbers.min(axes, keepdims=True, initial=0.0)
    largest = np.abs(numbers).max(axes, keepdims=True, initial=0.0)
    signed = low < 0
    scale = np.where(signed, 127.0, 255.0) / np.maximum(largest, _DARK)
    pixels = (numbers * np.where(largest < _DARK, 0.0, scale) + np.where(signed, 128.0, 0.0)).astype(np.uint8)
    if not finite.all():
        channels = numbers.shape[-1]
        pixels[~finite.all(-1)] = {1: [255], 2: [255, 255]}.get(channels, [255, 0, 0, 255][:channels])
    return pixels


def png(pixels: Array) -> bytes:
    """A PNG file (RFC 2083) of uint8 pixels of shape ``[height, width, channels]``, with 1 to 4 channels.

    >>> png(np.zeros([2, 2, 3], np.uint8))[1:4]
    b'PNG'
    """
    height, width, channels = pixels.shape
    rows = np.zeros([height, 1 + width * channels], np.uint8)  # each begins with 0: no filter
    rows[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOURS[channels], 0, 0, 0)
    parts = (b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )


def wav(samples: Array, sample_rate: int) -> bytes:
    """A WAV file, with 16-bit integers, of samples of shape ``[frames, channels]`` in [-1, 1].

    >>> wav(np.zeros([4, 1]), 8000)[:4]
    b'RIFF'
    """
    pcm: Any = np.clip(np.nan_to_num(samples.astype(np.float64)) * 32767, -32768, 32767)
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(samples.shape[1])
        sound.setsampwidth(2)
        sound.setframerate(sample_rate)
        sound.writeframes(pcm.round().astype("<i2").tobytes())
    return file.getvalue()
