"""Parts of strings, by position and length."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import Array
from dualflow.core.dtypes import int32, int64
from dualflow.core.errors import DTypeError, OutOfRangeError
from dualflow.core.shape import broadcast
from dualflow.core.spec import TensorSpec
from dualflow.core.string_arrays import string
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.samples import Sample, integers
from dualflow.ops.text.letters import in_characters, starts
from dualflow.ops.text.mapping import filled, of_strings, text_op, words

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
    bounds = [convert_to_tensor(p) for p in (pos, len)]
    if any(p.dtype not in (int32, int64) for p in bounds):
        shown = " and ".join(p.dtype.name for p in bounds)
        raise DTypeError(f"substr counts in int32 or int64, not in {shown}; cast them with df.cast.")
    inputs = (of_strings(input, "substr"), *bounds)
    return dispatch.current().apply(_SUBSTR, inputs, {"characters": in_characters(unit)})
