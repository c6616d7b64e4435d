"""Parts of strings: substrings, and the parts between separators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import Array
from dualflow.core.dtypes import int32, int64
from dualflow.core.errors import DTypeError, InvalidArgumentError, OutOfRangeError
from dualflow.core.shape import Shape, broadcast
from dualflow.core.spec import TensorSpec
from dualflow.core.string_arrays import string
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.samples import Sample, integers
from dualflow.ops.static import static_int
from dualflow.ops.text.letters import in_characters, starts
from dualflow.ops.text.mapping import filled, of_strings, one_word, text_op, words

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor


def _part(text: bytes, pos: int, count: int, characters: bool) -> bytes:
    """``count`` bytes or characters from ``pos`` on, to the end where it is negative."""
    begins = [*starts(text), len(text)] if characters else range(len(text) + 1)
    size = len(begins) - 1
    if not -size <= pos <= size:
        raise OutOfRangeError(f"pos {pos} out of range for string b{str(text)[1:]} of length {size}")
    first = pos + size if pos < 0 else pos
    last = size if count < 0 else min(first + count, size)
    return text[begins[first] : begins[last]]


def _parts(x: Array, pos: Array, count: Array, characters: bool) -> Array:
    spread = np.broadcast_arrays(x, pos, count)
    rows = zip(*[a.ravel().tolist() for a in spread], strict=True)
    return filled([_part(s, first, n, characters) for s, first, n in rows], spread[0].shape)


def _parts_spec(x: TensorSpec, pos: TensorSpec, count: TensorSpec, characters: bool) -> TensorSpec:
    return TensorSpec.of(broadcast([x.shape, pos.shape, count.shape]), string)


_SUBSTR: Final = text_op(
    "string_substr",
    "A part of each string, from a position on and of a length.",
    infer=_parts_spec,
    kernel=_parts,
    samples=[
        Sample(
            (
                words("hello", "w\u00f6rld!", b"\xffabc"),
                integers(-3, 4, shape=(3,)),
                integers(0, 4, shape=(3,)),
            ),
            {"characters": characters},
        )
        for characters in (True, False)
    ],
)


def _pieces(text: Array, separator: Array, most: int) -> Array:
    pieces = text.item().split(separator.item() or None, most)
    return filled(pieces, (len(pieces),))


_SPLIT: Final = text_op(
    "string_split",
    "The parts of one string between separators.",
    infer=lambda text, separator, most: TensorSpec.of(Shape([None]), string),
    kernel=_pieces,
    samples=[
        Sample(
            (one_word(b" a,b ,,c"), one_word(s)),
            {"most": n},
        )
        for s, n in ((b",", -1), (b"", -1), (b",", 1))
    ],
)
_BYTES: Final = text_op(
    "string_bytes",
    "The bytes of one string, each as a string.",
    infer=lambda text: TensorSpec.of(Shape([None]), string),
    kernel=lambda text: filled([bytes([b]) for b in text.item()], (len(text.item()),)),
    samples=[Sample((one_word(b"abc"),))],
)


def substr(
    input: TensorLike, pos: TensorLike, len: TensorLike, unit: str = "BYTE", name: str | None = None
) -> Tensor:
    """A part of each string; the three arguments broadcast.

    Args:
        input: strings of any shape.
        pos: the position where each part begins: integers; negative ones count from the end.
        len: the largest length of each part: integers; negative for up to the end of the string.
        unit: the unit of both: "BYTE", or "UTF8_CHAR".

    Returns:
        A tensor of strings of the broadcast shape.

    Raises:
        OutOfRangeError: a part begins outside of its string.
        InvalidArgumentError: another unit, or shapes that do not broadcast.
        DTypeError: ``input`` is of numbers, or ``pos`` or ``len`` is not of integers.

    >>> import dualflow as df
    >>> df.strings.substr(["hello", "world"], [1, -2], [3, 9]).numpy()
    array([b'ell', b'ld'], dtype=object)
    """
    places = [convert_to_tensor(p) for p in (pos, len)]
    if any(p.dtype not in (int32, int64) for p in places):
        shown = " and ".join(p.dtype.name for p in places)
        raise DTypeError(f"substr counts in int32 or int64, not in {shown}; cast them with df.cast.")
    inputs = (of_strings(input, "substr"), *places)
    return dispatch.current().apply(_SUBSTR, inputs, {"characters": in_characters(unit)})


def split(
    input: TensorLike, sep: TensorLike | None = None, maxsplit: int = -1, name: str | None = None
) -> Tensor:
    """The parts of one string between separators.

    Args:
        input: a scalar string; the parts of several would be rows of different lengths, which a tensor can't
            have.
        sep: a scalar string; if it is empty or None, runs of white space separate.
        maxsplit: the number of separators to use, from the left; all if it is negative.

    Returns:
        A vector of strings.

    Raises:
        InvalidArgumentError: ``input`` or ``sep`` is not a scalar.
        DTypeError: ``input`` holds numbers.

    >>> import dualflow as df
    >>> df.strings.split("a b  c").numpy(), df.strings.split("a,,b", sep=",").numpy()
    (array([b'a', b'b', b'c'], dtype=object), array([b'a', b'', b'b'], dtype=object))
    """
    text = lone(input, "split")
    separator = lone("" if sep is None else sep, "split")
    return dispatch.current().apply(_SPLIT, (text, separator), {"most": static_int(maxsplit, "maxsplit")})


def bytes_split(input: TensorLike, name: str | None = None) -> Tensor:
    """The bytes of one string, as strings.

    Args:
        input: a scalar string.

    Returns:
        A vector of strings.

    Raises:
        InvalidArgumentError: ``input`` is not a scalar: see :func:`split`.
        DTypeError: ``input`` holds numbers.

    >>> import dualflow as df
    >>> df.strings.bytes_split("abc").numpy()
    array([b'a', b'b', b'c'], dtype=object)
    """
    return dispatch.current().apply(_BYTES, (lone(input, "bytes_split"),), {})


def lone(x: Any, name: str) -> Any:
    """``x`` as a tensor of one string, without axes.

    Raises:
        InvalidArgumentError: a tensor with axes.
        DTypeError: numbers.
    """
    tensor = of_strings(x, name)
    if len(tensor.shape):
        raise InvalidArgumentError(
            f"{name} takes one string, not shape {tensor.shape}: several give rows of different lengths, and "
            "a tensor's have one. Take them one by one, as in [df.strings.split(s) for s in x]."
        )
    return tensor
