"""String ops on characters: case, strip and length."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dualflow.core.dtypes import int32
from dualflow.ops.printing import as_text
from dualflow.ops.samples import Sample
from dualflow.ops.text.mapping import WORDS, one_of, per_string

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor

_UNITS: Final = ("BYTE", "UTF8_CHAR")


def starts(text: bytes) -> list[int]:
    """The positions where characters of UTF-8 begin: bytes that do not continue one, also in invalid text."""
    return [i for i, byte in enumerate(text) if byte & 0xC0 != 0x80]


def _case(text: bytes, upper: bool, unicode: bool) -> bytes:
    if not unicode:
        return text.upper() if upper else text.lower()
    decoded = as_text(text)
    return (decoded.upper() if upper else decoded.lower()).encode()


_CASE: Final = per_string(
    "string_case",
    "Strings in upper or lower case, of ASCII letters or of all of Unicode.",
    _case,
    samples=[
        Sample((WORDS,), {"upper": upper, "unicode": unicode})
        for upper in (True, False)
        for unicode in (True, False)
    ],
)
_STRIP: Final = per_string("string_strip", "Strings without the white space around them.", bytes.strip)
_LENGTH: Final = per_string(
    "string_length",
    "The number of bytes, or of characters of UTF-8, of each string.",
    lambda text, characters: len(starts(text)) if characters else len(text),
    result=int32,
    samples=[Sample((WORDS,), {"characters": characters}) for characters in (True, False)],
)


def lower(input: TensorLike, encoding: str = "", name: str | None = None) -> Tensor:
    """Strings with their letters in lower case.

    Args:
        input: strings of any shape.
        encoding: "" changes ASCII's letters and leaves other bytes alone; "utf-8" changes those of all
            languages, and bytes that are no UTF-8 become U+FFFD.

    Returns:
        A tensor of strings with the shape of ``input``.

    Raises:
        InvalidArgumentError: another encoding.
        DTypeError: ``input`` is of numbers.

    >>> import dualflow as df
    >>> df.strings.lower(["Abc", "ÀÉ"], encoding="utf-8").numpy()[1].decode()
    'àé'
    """
    return _change_case(input, encoding, False)


def upper(input: TensorLike, encoding: str = "", name: str | None = None) -> Tensor:
    """Strings with their letters in upper case.

    Args:
        input: strings of any shape.
        encoding: "" changes ASCII letters and leaves other bytes; "utf-8" changes those of all languages, and
            invalid bytes become U+FFFD.

    Returns:
        A tensor of strings with the shape of ``input``.

    Raises:
        InvalidArgumentError: the encoding is another.
        DTypeError: ``input`` holds numbers.

    >>> import dualflow as df
    >>> df.strings.upper("abc").numpy()
    b'ABC'
    """
    return _change_case(input, encoding, True)


def _change_case(input: Any, encoding: str, upper: bool) -> Any:
    return _CASE(input, upper=upper, unicode=one_of(encoding, ("", "utf-8"), "encoding") != "")


def strip(input: TensorLike, name: str | None = None) -> Tensor:
    r"""Strings without ASCII white space at both ends.

    Args:
        input: strings of any shape.

    Returns:
        A tensor of strings with the shape of ``input``.

    Raises:
        DTypeError: ``input`` holds numbers.

    >>> import dualflow as df
    >>> df.strings.strip("  a b\n").numpy()
    b'a b'
    """
    stripped: Tensor = _STRIP(input)
    return stripped


def length(input: TensorLike, unit: str = "BYTE", name: str | None = None) -> Tensor:
    """The length of each string.

    Args:
        input: strings of any shape.
        unit: "BYTE", or "UTF8_CHAR" for characters; each byte that does not continue one begins one.

    Returns:
        An int32 tensor with the shape of ``input``.

    Raises:
        InvalidArgumentError: another unit.
        DTypeError: ``input`` is of numbers.

    >>> import dualflow as df
    >>> df.strings.length(["a", "é"]).numpy(), df.strings.length("é", unit="UTF8_CHAR").numpy()
    (array([1, 2], dtype=int32), np.int32(1))
    """
    lengths: Tensor = _LENGTH(input, characters=in_characters(unit))
    return lengths


def in_characters(unit: str) -> bool:
    """Whether ``unit`` is "UTF8_CHAR": lengths count characters, not bytes."""
    return one_of(unit, _UNITS, "unit") == "UTF8_CHAR"
