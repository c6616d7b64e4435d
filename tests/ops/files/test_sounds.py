"""Sounds in WAV files. What is decoded is what was encoded; values are those of TensorFlow 2.21."""

from __future__ import annotations

import io
import struct
import wave
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

import dualflow as df

SAMPLES = np.array([[1, 2], [-32768, 32767], [300, -300]], np.int16)
SIXTEEN_BITS = st.integers(-32768, 32767)


def written(samples: Any, rate: int = 8000) -> bytes:
    """A file as Python writes it."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(samples.shape[1])
        sound.setsampwidth(2)
        sound.setframerate(rate)
        sound.writeframes(samples.astype("<i2").tobytes())
    return file.getvalue()


@given(arrays(np.int16, array_shapes(min_dims=2, max_dims=2, max_side=5), elements=SIXTEEN_BITS))
def test_decoding_is_the_inverse_of_encoding(samples: Any) -> None:
    sound, rate = df.audio.decode_wav(written(samples, 44100))
    np.testing.assert_array_equal(sound, samples.astype(np.float32) / 32768)
    assert rate.numpy() == 44100
    assert df.audio.encode_wav(sound, rate).numpy() == written(samples, 44100)


def test_the_last_channel_is_repeated_and_others_are_dropped(mode: Any) -> None:
    for channels, kept in ((0, []), (1, [0]), (2, [0, 1]), (4, [0, 1, 1, 1])):
        decode = mode(lambda file, n=channels: df.audio.decode_wav(file, desired_channels=n).audio)
        np.testing.assert_array_equal(decode(df.constant(written(SAMPLES))), SAMPLES[:, kept] / 32768)


def test_a_sound_is_cut_off_or_padded(mode: Any) -> None:
    for size in (0, 2, 5):
        decode = mode(lambda file, n=size: df.audio.decode_wav(file, desired_samples=n).audio)
        expected = np.vstack([SAMPLES, np.zeros((2, 2))])[:size] / 32768
        np.testing.assert_array_equal(decode(df.constant(written(SAMPLES))), expected)


def test_a_trace_has_the_sizes_that_are_static() -> None:
    @df.function
    def decode(file: Any) -> Any:
        return df.audio.decode_wav(file, 1), df.audio.decode_wav(file, desired_samples=7)

    mono, short = decode.get_concrete_function(df.TensorSpec([], df.string)).structured_outputs
    assert tuple(mono.audio.shape) == (None, 1)
    assert tuple(short.audio.shape) == (7, None)
    assert (mono.sample_rate.shape, mono.sample_rate.dtype) == ((), df.int32)


def test_samples_are_rounded_and_clipped() -> None:
    sound = [[0.5, -1.0], [1.0, 2.0], [-2.0, 1e-9], [0.00002, 0.99999], [float("nan"), float("inf")]]
    data = np.frombuffer(df.audio.encode_wav(sound, 8000).numpy()[44:], "<i2")
    assert data.tolist() == [16384, -32768, 32767, 32767, -32768, 0, 1, 32767, 0, 32767]


def test_a_sound_without_samples() -> None:
    empty = df.audio.encode_wav(df.zeros([0, 2]), 8000)
    assert df.audio.decode_wav(empty).audio.shape == (0, 2)


def test_other_chunks_are_skipped() -> None:
    file = written(SAMPLES)
    title = b"LIST" + struct.pack("<I", 5) + b"title" + b"\0"
    for position in (12, 36):
        sound = df.audio.decode_wav(file[:position] + title + file[position:]).audio
        np.testing.assert_array_equal(sound, SAMPLES / 32768)
