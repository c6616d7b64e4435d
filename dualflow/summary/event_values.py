"""Conversion of arrays to values of events: numbers, histograms, images, sounds and texts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from dualflow.core.convert import Array
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.summary.images import as_bytes_of_colour, png, wav
from dualflow.summary.tensorboardx import protocol


def event_of(values: Sequence[Any], step: int) -> Any:
    """An ``Event`` message for a step, with these values."""
    messages = protocol()
    return messages.event.Event(
        wall_time=time.time(), step=step, summary=messages.summary.Summary(value=values)
    )


def scalar_values(tag: str, array: Array, description: str | None) -> list[Any]:
    """The value of a number.

    Raises:
        InvalidArgumentError: ``array`` has axes.
        DTypeError: it is not real.
    """
    _require_kind(array, "biuf", "scalar")
    if array.ndim:
        raise InvalidArgumentError(
            f"df.summary.scalar takes one number, not a tensor of shape {array.shape}: reduce it, or write a "
            "histogram."
        )
    return [_value(tag, "scalars", description, simple_value=float(array))]


def histogram_values(tag: str, array: Array, description: str | None, buckets: int) -> list[Any]:
    """The value of a histogram with ``buckets`` equal intervals from the smallest to the largest number.

    Numbers that are not finite are ignored.
    """
    _require_kind(array, "biuf", "histogram")
    numbers = array.astype(np.float64).ravel()
    numbers = numbers[np.isfinite(numbers)]
    counts, edges = _buckets(numbers, buckets)
    histogram = protocol().summary.HistogramProto(
        min=float(numbers.min(initial=np.inf)) if numbers.size else 0.0,
        max=float(numbers.max(initial=-np.inf)) if numbers.size else 0.0,
        num=float(numbers.size),
        sum=float(numbers.sum()),
        sum_squares=float(np.square(numbers).sum()),
        bucket_limit=edges[1:].tolist(),
        bucket=counts.tolist(),
    )
    return [_value(tag, "histograms", description, histo=histogram)]


def _buckets(numbers: Array, buckets: int) -> tuple[Array, Array]:
    if not numbers.size or not buckets:
        return np.zeros(1), np.zeros(2)
    low, high = numbers.min(), numbers.max()
    if low == high:
        return np.array([float(numbers.size)]), np.array([low - 0.5, low + 0.5])
    edges = np.linspace(low, high, buckets + 1)
    counts, _ = np.histogram(numbers, edges)
    return counts.astype(np.float64), edges


def image_values(tag: str, array: Array, description: str | None, most: int) -> list[Any]:
    """The values of the first images of a batch, encoded as PNG.

    Raises:
        InvalidArgumentError: not ``[batch, height, width, channels]`` with 1 to 4 channels.
        DTypeError: the pixels are not real numbers.
    """
    _require_kind(array, "biuf", "image")
    if array.ndim != 4 or array.shape[3] not in (1, 2, 3, 4) or 0 in array.shape[1:3]:
        raise InvalidArgumentError(
            "df.summary.image takes images of shape (batch, height, width, channels) with 1 to 4 channels, "
            f"not {array.shape}; x[None] is a batch of one."
        )
    images, count = [], len(array[:most])
    for i, pixels in enumerate(as_bytes_of_colour(array[:most])):
        height, width, channels = pixels.shape
        image = protocol().summary.Summary.Image(
            height=height, width=width, colorspace=channels, encoded_image_string=png(pixels)
        )
        images.append(_value(_numbered(tag, "image", i, count), "images", description, image=image))
    return images


def audio_values(tag: str, array: Array, description: str | None, sample_rate: int, most: int) -> list[Any]:
    """The values of the first sounds of a batch, encoded as WAV.

    Raises:
        InvalidArgumentError: not ``[batch, frames, channels]``.
        DTypeError: the samples are not floats.
    """
    _require_kind(array, "f", "audio")
    if array.ndim != 3 or not array.shape[2]:
        raise InvalidArgumentError(
            f"df.summary.audio takes sounds of shape (batch, frames, channels), not {array.shape}."
        )
    sounds, count = [], len(array[:most])
    for i, samples in enumerate(array[:most]):
        sound = protocol().summary.Summary.Audio(
            sample_rate=sample_rate,
            num_channels=samples.shape[1],
            length_frames=samples.shape[0],
            encoded_audio_string=wav(samples, sample_rate),
            content_type="audio/wav",
        )
        sounds.append(_value(_numbered(tag, "audio", i, count), "audio", description, audio=sound))
    return sounds


def text_values(tag: str, array: Array, description: str | None) -> list[Any]:
    """The value of texts, which TensorBoard shows as Markdown; an array of two axes as a table.

    Raises:
        DTypeError: the elements are not strings.
    """
    texts = [x if isinstance(x, bytes) else x.encode() if isinstance(x, str) else None for x in array.ravel()]
    if None in texts:
        raise DTypeError("df.summary.text takes texts, not numbers: format them, as with str().")
    messages = protocol()
    tensor = messages.tensor(
        dtype=messages.types.DT_STRING,
        string_val=texts,
        tensor_shape=messages.shape(dim=[messages.shape.Dim(size=n) for n in array.shape]),
    )
    return [_value(tag, "text", description, tensor=tensor)]


def _value(tag: str, plugin: str, description: str | None, **content: Any) -> Any:
    """A value for a plugin of TensorBoard; only texts need the plugin's name."""
    messages = protocol().summary
    if description is None and plugin != "text":
        return messages.Summary.Value(tag=tag, **content)
    metadata = messages.SummaryMetadata(summary_description=description or "")
    if plugin == "text":
        metadata.plugin_data.CopyFrom(messages.SummaryMetadata.PluginData(plugin_name=plugin))
    return messages.Summary.Value(tag=tag, metadata=metadata, **content)


def _numbered(tag: str, kind: str, place: int, count: int) -> str:
    """The tag of one of several images or sounds."""
    return f"{tag}/{kind}" if count == 1 else f"{tag}/{kind}/{place}"


def _require_kind(array: Array, kinds: str, what: str) -> None:
    narrow = array.dtype.kind == "V" and np.can_cast(array.dtype, np.float64)  # bfloat16 and its like
    if array.dtype.kind not in kinds and not narrow:
        raise DTypeError(f"df.summary.{what} takes real numbers, not {array.dtype.name}.")
