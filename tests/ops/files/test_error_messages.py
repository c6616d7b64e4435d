"""Errors of functions of files: each states the rejected input and what to do."""

from __future__ import annotations

import sys
from unittest.mock import patch

import numpy as np
from error_cases import ErrorCases

import dualflow as df
from dualflow.core import dispatch
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.ops.record import REGISTRY

E = df.errors
io = df.io
AB = df.constant(["a", "b"])
PNG = io.encode_png(np.zeros((2, 3, 3), np.uint8))
GIF = b"GIF89a" + bytes([1, 0, 1, 0, 0, 0, 0]) + b",\0\0\0\0\1\0\1\0\0\2\2D\1\0;"
HERE = __file__


def without_pillow():
    with patch.dict(sys.modules, {"PIL.Image": None}):
        return io.decode_png(PNG)


def beyond_pillows_limit():
    with patch("PIL.Image.MAX_IMAGE_PIXELS", 2):
        return io.decode_png(PNG)


@entry
def encode_complex_sound():
    """Apply the op itself: df.audio.encode_wav refuses the dtype before."""
    sound = df.ones([1, 1], df.complex64), df.constant(8000)
    return dispatch.current().apply(REGISTRY["encode_wav"], sound, {})


def changed(file, position, value):
    return file[:position] + bytes([value]) + file[position + 1 :]


WAV = df.audio.encode_wav([[0.5]], 8000).numpy()
CASES = {
    "an empty sound": (
        lambda: df.audio.decode_wav(b""),
        InvalidArgumentError,
        "0 bytes",
        "was the file read",
    ),
    "an image as a sound": (
        lambda: df.audio.decode_wav(PNG),
        InvalidArgumentError,
        "begins with",
        "PNG",
    ),
    "a sound that is cut off": (
        lambda: df.audio.decode_wav(WAV[:-1]),
        InvalidArgumentError,
        "cut off: its chunk b'data' has 2 bytes",
    ),
    "a sound without data": (
        lambda: df.audio.decode_wav(WAV[:36]),
        InvalidArgumentError,
        "no chunk b'data'",
    ),
    "a sound of 8 bits": (
        lambda: df.audio.decode_wav(changed(WAV, 34, 8)),
        InvalidArgumentError,
        "PCM samples of 16 bits, not encoding 1 with 8 bits",
        "soundfile",
    ),
    "several sounds": (lambda: df.audio.decode_wav(AB), InvalidArgumentError, "one file", "one by one"),
    "a number of channels below -1": (
        lambda: df.audio.decode_wav(WAV, -2),
        InvalidArgumentError,
        "desired_channels is a number, or -1",
        "not -2",
    ),
    "a sound without channels": (
        lambda: df.audio.encode_wav(df.zeros([2, 0]), 8000),
        InvalidArgumentError,
        "1 to 65535 channels, not 0",
    ),
    "a sound without an axis of channels": (
        lambda: df.audio.encode_wav(df.zeros([2]), 8000),
        InvalidArgumentError,
        r"audio has axes \(samples, channels\)",
        "df.expand_dims",
    ),
    "a sample rate of 0": (
        lambda: df.audio.encode_wav([[0.5]], 0),
        InvalidArgumentError,
        "sample_rate is a positive number",
    ),
    "a complex sound, given to the op": (
        encode_complex_sound,
        DTypeError,
        "takes floats and an integer",
        "df.cast",
    ),
    "a sample rate of a fraction": (
        lambda: df.audio.encode_wav([[0.5]], 0.5),
        DTypeError,
        "sample_rate is one integer",
    ),
    "an image that is a number": (lambda: io.decode_image(1.5), DTypeError, "bytes of a file", "not float32"),
    "a large image": (beyond_pillows_limit, InvalidArgumentError, "limit of 4", "MAX_IMAGE_PIXELS to None"),
    "no text": (
        lambda: io.gfile.GFile(sys.executable).read(),
        InvalidArgumentError,
        "no text in UTF-8",
        "mode 'rb'",
    ),
    "no file": (lambda: io.read_file("/no/such/file"), E.NotFoundError, "/no/such/file", "No such file"),
    "a folder": (lambda: io.read_file("/"), E.FailedPreconditionError, "/", "Is a directory"),
    "a folder to write": (lambda: io.write_file("/", "a"), E.FailedPreconditionError, "/", "directory"),
    "several files": (lambda: io.read_file(AB), InvalidArgumentError, "filename is one string", r"\(2,\)"),
    "a file that is a number": (lambda: io.read_file(df.constant(1)), DTypeError, "int32", "as_string"),
    "no folder to list": (lambda: io.gfile.listdir("/no"), E.NotFoundError, "Could not find", "/no"),
    "a folder to remove": (lambda: io.gfile.remove("/"), E.FailedPreconditionError, "a folder", "rmtree"),
    "a file that is there": (lambda: io.gfile.copy(HERE, HERE), E.AlreadyExistsError, "exists", "overwrite"),
    "numbers of several lengths": (
        lambda: io.decode_raw([b"ab", b"c"], df.uint8),
        InvalidArgumentError,
        "element 0 has 2 bytes and element 1 has 1",
        "fixed_length",
    ),
    "half a number": (
        lambda: io.decode_raw(b"abc", df.int16),
        InvalidArgumentError,
        "3 bytes",
        "size of int16",
    ),
    "numbers that are not raw": (lambda: io.decode_raw(b"", df.uint32), DTypeError, "uint32", "int32"),
    "a length that does not fit": (
        lambda: io.decode_raw(b"", df.int16, fixed_length=3),
        InvalidArgumentError,
        "fixed_length is a positive multiple of 2",
        "not 3",
    ),
    "no base64": (lambda: io.decode_base64("a!"), InvalidArgumentError, "b'a!'", "letters, digits"),
    "no compressed data": (lambda: io.decode_compressed("abc", "ZLIB"), E.DataLossError, "ZLIB", "header"),
    "another compression": (lambda: io.decode_compressed("abc", "X"), InvalidArgumentError, "'X'", "'GZIP'"),
    "too many fields": (
        lambda: io.decode_csv(["1", "1,2"], [0]),
        InvalidArgumentError,
        "Expect 1 fields but have 2",
        "record 1",
    ),
    "a field that is no number": (
        lambda: io.decode_csv("x", [0]),
        InvalidArgumentError,
        "Field 0 in record 0",
        "valid int32",
    ),
    "a field that is missing": (
        lambda: io.decode_csv(",1", [df.constant([], df.int32), 0]),
        InvalidArgumentError,
        "Field 0 is required but missing in record 0",
        "give a default",
    ),
    "quotes inside": (
        lambda: io.decode_csv('a"b', [""]),
        InvalidArgumentError,
        "Unquoted fields cannot have quotes",
        "record 0",
    ),
    "quotes that do not end": (
        lambda: io.decode_csv('"a', [""]),
        InvalidArgumentError,
        "has to end with quote",
        "record 0",
    ),
    "quotes that end twice": (
        lambda: io.decode_csv('"a"b', [""]),
        InvalidArgumentError,
        "escaped by another quote",
        "record 0",
    ),
    "a long delimiter": (
        lambda: io.decode_csv("1", [0], field_delim=";;"),
        InvalidArgumentError,
        "one character",
        "';;'",
    ),
    "other columns": (
        lambda: io.decode_csv("1", [0], select_cols=[0, 1]),
        InvalidArgumentError,
        "2 select_cols and 1",
        "one",
    ),
    "columns back to front": (
        lambda: io.decode_csv("1,2", [0, 0], select_cols=[1, 0]),
        InvalidArgumentError,
        "select_cols grow",
        r"\(1, 0\)",
    ),
    "two defaults": (
        lambda: io.decode_csv("1", [[1, 2]]),
        InvalidArgumentError,
        "column 0 is one value",
        r"\[1, 2\]",
    ),
    "a default of bools": (lambda: io.decode_csv("1", [True]), DTypeError, "column 0 is of bool", "int32"),
    "no image": (
        lambda: io.decode_image(b"abc"),
        InvalidArgumentError,
        "Unknown image file format",
        "b'abc'",
    ),
    "an empty image": (
        lambda: io.decode_image(b""),
        InvalidArgumentError,
        "empty string",
        "was the file read",
    ),
    "half a header": (
        lambda: io.decode_png(PNG.numpy()[:20]),
        InvalidArgumentError,
        "damaged or cut off",
        "its header can't be read in 20 bytes",
    ),
    "half an image": (
        lambda: io.decode_png(PNG.numpy()[:45]),
        InvalidArgumentError,
        "damaged or cut off",
        "image",
    ),
    "two channels": (lambda: io.decode_png(PNG, channels=2), InvalidArgumentError, "0, 1, 3 or 4", "2"),
    "an image of integers": (lambda: io.decode_image(PNG, dtype=df.int32), DTypeError, "int32", "df.cast"),
    "a png of floats": (lambda: io.decode_png(PNG, dtype=df.float32), DTypeError, "float32", "df.cast"),
    "a third of an image": (lambda: io.decode_jpeg(PNG, ratio=3), InvalidArgumentError, "1, 2, 4 or 8", "3"),
    "several images": (lambda: io.decode_png(AB), InvalidArgumentError, r"shape \(2,\)", "one by one"),
    "a shape of floats": (
        lambda: io.extract_jpeg_shape(PNG, df.float32),
        DTypeError,
        "int32 or int64",
        "float32",
    ),
    "16 bits in colour": (
        lambda: io.decode_png(io.encode_png(np.zeros((1, 1, 3), np.uint16)), dtype=df.uint16),
        InvalidArgumentError,
        "16 bits in colour",
        "dtype=df.uint8",
    ),
    "frames in a function": (
        lambda: df.function(lambda x: io.decode_image(x))(df.constant(GIF)),
        InvalidArgumentError,
        "fourth axis",
        "expand_animations=False",
    ),
    "a window of another form": (
        lambda: io.decode_and_crop_jpeg(PNG, [0, 0]),
        InvalidArgumentError,
        "height, width",
        "cast",
    ),
    "a window outside": (
        lambda: io.decode_and_crop_jpeg(PNG, [0, 0, 3, 3]),
        InvalidArgumentError,
        "not inside",
        "2 x 3",
    ),
    "a png of numbers": (
        lambda: io.encode_png(np.zeros((1, 1, 3))),
        DTypeError,
        "float64",
        "convert_image_dtype",
    ),
    "a png of a row": (
        lambda: io.encode_png(np.zeros((2, 3), np.uint8)),
        InvalidArgumentError,
        "1 to 4 channels",
        r"\(2, 3\)",
    ),
    "another compression of png": (
        lambda: io.encode_png(np.zeros((1, 1, 1), np.uint8), compression=10),
        InvalidArgumentError,
        "from 0 to 9",
        "10",
    ),
    "a jpeg of numbers": (
        lambda: io.encode_jpeg(np.zeros((1, 1, 3))),
        DTypeError,
        "float64",
        "convert_image_dtype",
    ),
    "a jpeg of two channels": (
        lambda: io.encode_jpeg(np.zeros((1, 1, 2), np.uint8)),
        InvalidArgumentError,
        "1 or 3 channels",
        r"\(1, 1, 2\)",
    ),
    "a jpeg of another quality": (
        lambda: io.encode_jpeg(np.zeros((1, 1, 3), np.uint8), quality=101),
        InvalidArgumentError,
        "0 to 100",
        "101",
    ),
    "a grey jpeg in colour": (
        lambda: io.encode_jpeg(np.zeros((1, 1, 3), np.uint8), "grayscale"),
        InvalidArgumentError,
        "'grayscale'",
        "3 channels",
    ),
    "without Pillow": (without_pillow, ImportError, "Pillow", "pip install"),
}


class TestErrorMessages(ErrorCases):
    cases = CASES
    raised_in = ("ops/files/*.py",)
