"""Sounds in files of the format WAV, with samples of 16 bits."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import Array
from dualflow.core.dtypes import DType, as_dtype, float32, int32
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.string_arrays import string
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.static import static_int
from dualflow.ops.text.mapping import of_strings, one_word, text_op

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor

_HEADER: Final = struct.Struct("<4sI4s")
_CHUNK: Final = struct.Struct("<4sI")
_FORMAT: Final = struct.Struct("<HHIIHH")
"""Encoding, channels, samples per second, bytes per second, bytes of a sample of all channels, bits."""

_PCM: Final = 1
_EXTENSIBLE: Final = 0xFFFE
_SCALE: Final = 1 << 15
_ALL: Final = -1


class DecodeWav(NamedTuple):
    """The results of :func:`decode_wav`.

    Attributes:
        audio: float32 samples between -1 and 1, of shape ``(samples, channels)``.
        sample_rate: an int32 scalar: the samples per second.
    """

    audio: Tensor
    sample_rate: Tensor


def _chunks(contents: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The names and contents of the chunks of a WAV file; each begins at an even position."""
    if len(contents) < _HEADER.size:
        raise InvalidArgumentError(f"{len(contents)} bytes are no WAV file; was the file read?")
    riff, _, wave = _HEADER.unpack_from(contents)
    if (riff, wave) != (b"RIFF", b"WAVE"):
        raise InvalidArgumentError(
            f"A WAV file begins with b'RIFF', its size and b'WAVE'; this begins with {contents[:12]!r}."
        )
    start = _HEADER.size
    while start + _CHUNK.size <= len(contents):
        name, size = _CHUNK.unpack_from(contents, start)
        start += _CHUNK.size
        if start + size > len(contents):
            raise InvalidArgumentError(
                f"The sound is cut off: its chunk {name!r} has {size} bytes, and the file {len(contents)}."
            )
        yield name, contents[start : start + size]
        start += size + size % 2


def _samples_of_file(contents: bytes) -> tuple[Array, int]:
    """The samples of a WAV file, as int16 of shape (samples, channels), and their number per second.

    http://soundfile.sapp.org/doc/WaveFormat describes the format.
    """
    layout: tuple[int, int] | None = None
    for name, chunk in _chunks(contents):
        if name == b"fmt " and len(chunk) >= _FORMAT.size:
            encoding, channels, rate, _, _, bits = _FORMAT.unpack_from(chunk)
            if encoding not in (_PCM, _EXTENSIBLE) or bits != 16 or not channels:
                raise InvalidArgumentError(
                    f"Can only read WAV files with PCM samples of 16 bits, not encoding {encoding} with "
                    f"{bits} bits and {channels} channels; read others with a package such as soundfile."
                )
            layout = channels, rate
        elif name == b"data" and layout is not None:
            channels, rate = layout
            whole = len(chunk) // (2 * channels) * 2 * channels
            return np.frombuffer(chunk[:whole], "<i2").reshape(-1, channels), rate
    raise InvalidArgumentError("The WAV file has no chunk b'data' after a chunk b'fmt '; it is damaged.")


def _decoded(contents: Array, channels: int, samples: int) -> tuple[Array, Array]:
    sound, rate = _samples_of_file(contents.item())
    if channels != _ALL:  # the last channel of the file is repeated
        sound = sound[:, np.minimum(np.arange(channels), sound.shape[1] - 1)]
    if samples != _ALL:
        sound = np.pad(sound[:samples], ((0, max(samples - len(sound), 0)), (0, 0)))
    return sound * np.float32(1 / _SCALE), np.array(rate, np.int32)


def _decoded_spec(contents: TensorSpec, channels: int, samples: int) -> tuple[TensorSpec, TensorSpec]:
    sizes = [None if size == _ALL else size for size in (samples, channels)]
    return TensorSpec.of(Shape(sizes), float32), TensorSpec.of(Shape(), int32)


def _encoded(sound: Array, rate: Array) -> Array:
    _check_dtypes(as_dtype(sound.dtype), as_dtype(rate.dtype))
    if not 0 < sound.shape[1] < 1 << 16:
        raise InvalidArgumentError(f"A WAV file has 1 to 65535 channels, not {sound.shape[1]}.")
    if rate <= 0:
        raise InvalidArgumentError(f"sample_rate is a positive number of samples per second, not {rate}.")
    scaled = sound.astype(np.float32) * np.float32(_SCALE)
    nearest = np.trunc(scaled + np.copysign(np.float32(0.5), scaled))
    data = np.clip(np.nan_to_num(nearest), -_SCALE, _SCALE - 1).astype("<i2").tobytes()
    channels, width = sound.shape[1], 2 * sound.shape[1]
    layout = _FORMAT.pack(_PCM, channels, int(rate), int(rate) * width, width, 16)
    chunks = _CHUNK.pack(b"fmt ", len(layout)) + layout + _CHUNK.pack(b"data", len(data)) + data
    return np.array(_HEADER.pack(b"RIFF", 4 + len(chunks), b"WAVE") + chunks, object)


def _check_dtypes(sound: DType, rate: DType) -> None:
    if not sound.is_floating or not rate.is_integer:
        raise DTypeError(f"takes floats and an integer, not {sound.name} and {rate.name}; see df.cast.")


def _encoded_spec(sound: TensorSpec, rate: TensorSpec) -> TensorSpec:
    _check_dtypes(sound.dtype, rate.dtype)
    return TensorSpec.of(Shape(), string)


SMALL: Final = _encoded(np.array([[0.5, -0.5], [0.25, 1.0]], np.float32), np.array(8000)).item()
"""A sound of two samples in two channels, for samples of ops."""

_DECODE: Final = text_op(
    "decode_wav",
    "The samples of a sound in the format WAV, and their number per second.",
    infer=_decoded_spec,
    kernel=_decoded,
    outputs=2,
    samples=[
        Sample((one_word(SMALL),), {"channels": c, "samples": n}) for c, n in ((_ALL, _ALL), (1, 3), (3, 1))
    ],
)
_ENCODE: Final = text_op(
    "encode_wav",
    "A sound in the format WAV.",
    infer=_encoded_spec,
    kernel=_encoded,
    samples=[
        Sample(
            (
                Domain(-1, 1, "f", (2, 2), values=np.array([[0.5, -1], [0.25, 1]], np.float32)),
                Domain(1, 9, "i", (), values=np.array(8000, np.int32)),
            )
        )
    ],
)


def decode_wav(
    contents: TensorLike, desired_channels: int = -1, desired_samples: int = -1, name: str | None = None
) -> DecodeWav:
    """The samples of a sound in the bytes of a WAV file, whose samples have 16 bits.

    Chunks with other data, such as a title, are skipped.

    Args:
        contents: a scalar string.
        desired_channels: the number of channels; more than the file has repeat its last one. -1 for those
            of the file.
        desired_samples: the number of samples: a longer sound is cut off, a shorter one ends with zeros.
            -1 for those of the file.

    Returns:
        A pair: ``audio``, float32 samples between -1 and 1, of shape ``(samples, channels)``; and
        ``sample_rate``, an int32 scalar.

    Raises:
        InvalidArgumentError: ``contents`` is not a WAV file, is cut off, or has samples of another encoding;
            or a number below -1.
        DTypeError: ``contents`` holds numbers.

    >>> import dualflow as df
    >>> contents = df.audio.encode_wav([[0.5], [-1.0], [0.25]], 8000)
    >>> sound, rate = df.audio.decode_wav(contents, desired_samples=4)
    >>> sound[:, 0].numpy().tolist(), rate.numpy().item()
    ([0.5, -1.0, 0.25, 0.0], 8000)
    """
    file = of_strings(contents, "decode_wav")
    if len(file.shape):
        raise InvalidArgumentError(
            f"decode_wav takes the bytes of one file, not shape {file.shape}: sounds may differ in length. "
            "Take them one by one, as in [df.audio.decode_wav(file) for file in x]."
        )
    attrs = {
        "channels": _number(desired_channels, "desired_channels"),
        "samples": _number(desired_samples, "desired_samples"),
    }
    audio, rate = dispatch.current().apply(_DECODE, (file,), attrs)
    return DecodeWav(audio, rate)


def encode_wav(audio: TensorLike, sample_rate: TensorLike, name: str | None = None) -> Tensor:
    """The bytes of a WAV file with samples of 16 bits.

    Args:
        audio: float32 samples, of shape ``(samples, channels)``; those beyond -1 and 1 are clipped.
        sample_rate: an integer: the samples per second.

    Returns:
        A scalar string.

    Raises:
        InvalidArgumentError: ``audio`` has another shape or dtype or no channel, or ``sample_rate`` is not
            positive.
        DTypeError: ``sample_rate`` is not an integer.

    >>> import dualflow as df
    >>> len(df.audio.encode_wav(df.zeros([10, 2]), 44100).numpy())  # 44 bytes of header
    84
    """
    sound: Any = convert_to_tensor(audio)
    rate: Any = convert_to_tensor(sample_rate)
    if sound.dtype is not float32 or len(sound.shape) != 2:
        raise InvalidArgumentError(
            f"audio has axes (samples, channels) and dtype float32, not {sound.spec}; see df.expand_dims and "
            "df.cast."
        )
    if not rate.dtype.is_integer or len(rate.shape):
        raise DTypeError(f"sample_rate is one integer, not {rate.spec}.")
    encoded: Tensor = dispatch.current().apply(_ENCODE, (sound, rate), {})
    return encoded


def _number(value: int, name: str) -> int:
    number = static_int(value, name)
    if number < _ALL:
        raise InvalidArgumentError(f"{name} is a number, or -1 for that of the file, not {number}.")
    return number
