"""Code points and characters of strings, which are decoded, encoded, split and converted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import Array
from dualflow.core.dtypes import int32, int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.string_arrays import string
from dualflow.ops.arrangement import reshape
from dualflow.ops.creation import convert_to_tensor, fill, ones_like
from dualflow.ops.ragged.ragged_rows import RaggedRows
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.shapes import shape as shape_of
from dualflow.ops.static import static_int
from dualflow.ops.text.mapping import filled, one_of, row_lengths, rows_of, text_op, words
from dualflow.ops.text.splitting import rows_of_parts

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike

_ENCODINGS: Final = ("UTF-8", "UTF-16-BE", "UTF-32-BE")
_INPUT_ENCODINGS: Final = (*_ENCODINGS, "US-ASCII", "ISO-8859-1")
_ERRORS: Final = ("replace", "ignore", "strict")
_LARGEST: Final = 0x10FFFF
_FIRST_PRINTED: Final = 0x20
"""The first code point that is no control character of ASCII."""

_WINDOW: Final = 256
"""The number of bytes that are decoded at once: at least two characters of any encoding."""


def _decoded(data: bytes, encoding: str, errors: str, replacement: int) -> tuple[list[int], list[int]]:
    """The code points of a string, and the index of the first byte of each.

    It is decoded in windows: after an invalid byte one window is decoded again, and not all of the string.

    Raises:
        InvalidArgumentError: bytes are invalid, and ``errors`` is "strict".
    """
    points: list[int] = []
    offsets: list[int] = []
    start = 0
    while start < len(data):
        window = data[start : start + _WINDOW]
        try:
            text, end, is_valid = window.decode(encoding), start + len(window), True
        except UnicodeDecodeError as error:
            is_valid = error.start > 0 and error.end == len(window) < len(data) - start
            if not is_valid and errors == "strict":
                raise InvalidArgumentError(
                    f"The string {data[:60]!r} is not {encoding}: {error.reason} at byte "
                    f"{start + error.start}. "
                    'Decode it with its encoding, or with errors="replace".'
                ) from None
            text = window[: error.start].decode(encoding)
            end = start + (error.start if is_valid else error.end)  # the next window may complete a character
        for character in text:
            points.append(ord(character))
            offsets.append(start)
            start += len(character.encode(encoding))
        if not is_valid and errors == "replace":
            points.append(replacement)
            offsets.append(start)
        start = end
    return points, offsets


def _decode_kernel(
    x: Array, encoding: str, errors: str, replacement: int, controls: bool
) -> tuple[Array, Array, Array]:
    rows = [_decoded(data, encoding, errors, replacement) for data in x.ravel().tolist()]
    points = np.array([p for row, _ in rows for p in row], np.int32)
    if controls:
        points[points < _FIRST_PRINTED] = replacement
    offsets = np.array([o for _, row in rows for o in row], np.int64)
    return points, offsets, np.array([len(row) for row, _ in rows], np.int64)


def _encoded(points: Sequence[int], encoding: str, errors: str, replacement: int) -> bytes:
    """The string of code points.

    Raises:
        InvalidArgumentError: one is none of Unicode, and ``errors`` is "strict".
    """
    if errors == "replace":
        points = [p if _is_code_point(p) else replacement for p in points]
    valid = [p for p in points if _is_code_point(p)]
    if errors == "strict" and len(valid) < len(points):
        wrong = next(p for p in points if not _is_code_point(p))
        raise InvalidArgumentError(
            f"{wrong} is no code point of Unicode; encode other integers, or replace them with "
            'errors="replace".'
        )
    return "".join(map(chr, valid)).encode(encoding)


def _is_code_point(p: int) -> bool:
    """Whether an integer is a code point that encodings have: one of Unicode, and no surrogate."""
    return 0 <= p <= _LARGEST and not 0xD800 <= p < 0xE000


def _encode_kernel(points: Array, counts: Array, encoding: str, errors: str, replacement: int) -> Array:
    rows = rows_of(points, counts)
    return filled([_encoded(row, encoding, errors, replacement) for row in rows], counts.shape)


def _decode_spec(x: TensorSpec, **attrs: Any) -> tuple[TensorSpec, ...]:
    count = x.shape.num_elements()
    dynamic = Shape([None])
    return (
        TensorSpec.of(dynamic, int32),
        TensorSpec.of(dynamic, int64),
        TensorSpec.of(Shape([count]), int64),
    )


def _encode_spec(points: TensorSpec, counts: TensorSpec, **attrs: Any) -> TensorSpec:
    if not points.dtype.is_integer:
        raise DTypeError(
            f"takes code points, which are integers, not {points.dtype.name}; df.cast makes them of floats, "
            "and unicode_decode of strings."
        )
    return TensorSpec.of(counts.shape, string)


_SAMPLE: Final = {"encoding": "UTF-8", "errors": "replace", "replacement": 65533}
_DECODE: Final = text_op(
    "unicode_decode",
    "The code points of each string, one after the other, their offsets, and their numbers.",
    infer=_decode_spec,
    kernel=_decode_kernel,
    outputs=3,
    samples=[
        Sample((words("aé".encode(), b"\xff\n", b""),), {**_SAMPLE, "controls": c}) for c in (False, True)
    ],
)
_ENCODE: Final = text_op(
    "unicode_encode",
    "The string of each row of code points, which follow each other, with the lengths of the rows.",
    infer=_encode_spec,
    kernel=_encode_kernel,
    samples=[
        Sample(
            (
                Domain(kinds="i", shape=(3,), values=np.array([97, 233, -1], np.int32)),
                row_lengths(2, 1),
            ),
            _SAMPLE,
        )
    ],
)


def _checked(encoding: Any, errors: Any, replacement: Any, encodings: Sequence[str]) -> dict[str, Any]:
    """The attributes that ops for code points share.

    Raises:
        InvalidArgumentError: another encoding or name for ``errors``; a replacement that is no code point.
    """
    point = static_int(replacement, "replacement_char")
    if not _is_code_point(point):
        raise InvalidArgumentError(f"replacement_char is a code point of Unicode, not {point}.")
    return {
        "encoding": one_of(_standard_name(encoding, encodings), encodings, "the encoding"),
        "errors": one_of(errors, _ERRORS, "errors"),
        "replacement": point,
    }


def _standard_name(encoding: Any, encodings: Sequence[str]) -> Any:
    """The one of ``encodings`` that has the same letters and digits, as "us ascii" has; else ``encoding``."""
    names = {_words(name): name for name in encodings}
    return names.get(_words(encoding), encoding) if isinstance(encoding, str) else encoding


def _words(encoding: str) -> str:
    return "".join(filter(str.isalnum, encoding)).upper()


def unicode_decode(
    input: TensorLike,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Any:
    """The code points of each string.

    Args:
        input: strings of any shape, which may be ragged.
        input_encoding: "UTF-8", "UTF-16-BE", "UTF-32-BE", "US-ASCII" or "ISO-8859-1".
        errors: for invalid bytes: "replace", "ignore" or "strict", which is an error.
        replacement_char: the code point in their place.
        replace_control_characters: whether it replaces code points below 32, too.

    Returns:
        An int32 RaggedTensor of one axis more; of a scalar a vector.

    Raises:
        InvalidArgumentError: the encoding is another; bytes are invalid, and ``errors`` is "strict".
        DTypeError: ``input`` holds numbers.

    >>> import dualflow as df
    >>> df.strings.unicode_decode(["aé", "b"], "UTF-8")
    <tf.RaggedTensor [[97, 233], [98]]>
    """
    attrs = _checked(input_encoding, errors, replacement_char, _INPUT_ENCODINGS)
    return _decode_rows(input, attrs, "unicode_decode", controls=replace_control_characters)[0]


def unicode_decode_with_offsets(
    input: TensorLike,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The code points of each string, as :func:`unicode_decode`, and the byte at which each begins.

    Args:
        input: strings of any shape, which may be ragged.
        input_encoding: "UTF-8", "UTF-16-BE", "UTF-32-BE", "US-ASCII" or "ISO-8859-1".
        errors: for invalid bytes: "replace", "ignore" or "strict", which is an error.
        replacement_char: the code point in their place.
        replace_control_characters: whether it replaces code points below 32, too.

    Returns:
        Two RaggedTensors, int32 and int64, of one axis more; of a scalar vectors.

    Raises:
        InvalidArgumentError: as of :func:`unicode_decode`.
        DTypeError: ``input`` holds numbers.

    >>> import dualflow as df
    >>> df.strings.unicode_decode_with_offsets("éa", "UTF-8")[1].numpy().tolist()
    [0, 2]
    """
    attrs = _checked(input_encoding, errors, replacement_char, _INPUT_ENCODINGS)
    return _decode_rows(input, attrs, "unicode_decode_with_offsets", controls=replace_control_characters)


def unicode_split(
    input: TensorLike,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    name: str | None = None,
) -> Any:
    """The characters of each string, as strings of the same encoding.

    Args:
        input: strings of any shape, which may be ragged.
        input_encoding: "UTF-8", "UTF-16-BE" or "UTF-32-BE".
        errors: for invalid bytes: "replace", "ignore" or "strict", which is an error.
        replacement_char: the code point in their place.

    Returns:
        A RaggedTensor of strings of one axis more; of a scalar a vector.

    Raises:
        InvalidArgumentError: the encoding is another; bytes are invalid, and ``errors`` is "strict".
        DTypeError: ``input`` holds numbers.

    >>> import dualflow as df
    >>> df.strings.unicode_split("né", "UTF-8").numpy().tolist() == [b"n", "é".encode()]
    True
    """
    attrs = _checked(input_encoding, errors, replacement_char, _ENCODINGS)
    return _characters(_decode_rows(input, attrs, "unicode_split")[0], attrs)


def unicode_split_with_offsets(
    input: TensorLike,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The characters of each string, as :func:`unicode_split`, and the byte at which each begins.

    Args:
        input: strings of any shape, which may be ragged.
        input_encoding: "UTF-8", "UTF-16-BE" or "UTF-32-BE".
        errors: for invalid bytes: "replace", "ignore" or "strict", which is an error.
        replacement_char: the code point in their place.

    Returns:
        Two RaggedTensors, of strings and int64, of one axis more; of a scalar vectors.

    Raises:
        InvalidArgumentError: as of :func:`unicode_split`.
        DTypeError: ``input`` holds numbers.

    >>> import dualflow as df
    >>> df.strings.unicode_split_with_offsets("éa", "UTF-8")[1].numpy().tolist()
    [0, 2]
    """
    attrs = _checked(input_encoding, errors, replacement_char, _ENCODINGS)
    points, offsets = _decode_rows(input, attrs, "unicode_split_with_offsets")
    return _characters(points, attrs), offsets


def unicode_encode(
    input: TensorLike,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    name: str | None = None,
) -> Any:
    """The strings of rows of code points.

    Args:
        input: integers of at least one axis, which may be ragged; the last axis is that of a string.
        output_encoding: "UTF-8", "UTF-16-BE" or "UTF-32-BE".
        errors: for integers that are no code points: "replace", "ignore" or "strict", which is an error.
        replacement_char: the code point in their place.

    Returns:
        Strings of one axis less.

    Raises:
        InvalidArgumentError: the encoding is another, ``input`` is a scalar, or an integer is no code point
            and ``errors`` is "strict".
        DTypeError: ``input`` holds floats or strings.

    >>> import dualflow as df
    >>> df.strings.unicode_encode([[97, 233], [98, 99]], "UTF-8").numpy()[1]
    b'bc'
    """
    return _encode_rows(input, _checked(output_encoding, errors, replacement_char, _ENCODINGS))


def unicode_transcode(
    input: TensorLike,
    input_encoding: str,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Any:
    """Strings in another encoding.

    Args:
        input: strings of any shape, which may be ragged.
        input_encoding: "UTF-8", "UTF-16-BE", "UTF-32-BE", "US-ASCII" or "ISO-8859-1".
        output_encoding: "UTF-8", "UTF-16-BE" or "UTF-32-BE".
        errors: for invalid bytes: "replace", "ignore" or "strict", which is an error.
        replacement_char: the code point in their place.
        replace_control_characters: whether it replaces code points below 32, too.

    Returns:
        Strings with the shape of ``input``.

    Raises:
        InvalidArgumentError: an encoding is another; bytes are invalid, and ``errors`` is "strict".
        DTypeError: ``input`` holds numbers.

    >>> import dualflow as df
    >>> df.strings.unicode_transcode("a", "UTF-8", "UTF-16-BE").numpy()
    b'\\x00a'
    """
    decoding = _checked(input_encoding, errors, replacement_char, _INPUT_ENCODINGS)
    encoding = _checked(output_encoding, errors, replacement_char, _ENCODINGS)
    points, _ = _decode_rows(input, decoding, "unicode_transcode", controls=replace_control_characters)
    return _encode_rows(points, encoding)


def _decode_rows(input: Any, attrs: dict[str, Any], name: str, *, controls: bool = False) -> tuple[Any, Any]:
    """The code points of each string, and the index of the first byte of each."""
    flat_offsets: Any = None

    def parts(x: Any) -> Any:
        nonlocal flat_offsets
        points, flat_offsets, counts = dispatch.current().apply(
            _DECODE, (x,), {**attrs, "controls": bool(controls)}
        )
        return points, counts

    points = rows_of_parts(input, parts, name)
    if isinstance(points, RaggedRows):
        return points, points.with_flat_values(flat_offsets)
    return points, flat_offsets


def _characters(points: Any, attrs: dict[str, Any]) -> Any:
    """Each code point as a string."""
    if isinstance(points, RaggedRows):
        return points.with_flat_values(_characters(points.flat_values, attrs))
    return dispatch.current().apply(_ENCODE, (points, ones_like(points, int64)), attrs)


def _encode_rows(input: Any, attrs: dict[str, Any]) -> Any:
    if isinstance(input, RaggedRows):
        if len(input.values.shape) > 1:
            return input.with_values(_encode_rows(input.values, attrs))
        return dispatch.current().apply(_ENCODE, (input.values, input.row_lengths()), attrs)
    x = convert_to_tensor(input, dtype_hint=int32)
    if not len(x.shape):
        raise InvalidArgumentError(
            "unicode_encode takes code points of at least one axis, not a scalar; use [x]."
        )
    sizes = shape_of(x, int64)
    counts = fill(sizes[:-1], sizes[-1])
    flat = dispatch.current().apply(_ENCODE, (reshape(x, [-1]), reshape(counts, [-1])), attrs)
    return reshape(flat, sizes[:-1])
