"""Conversion of strings to numbers and back, in the formats of C."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import Array
from dualflow.core.dtypes import DType, as_dtype, float32, float64, int32, int64, uint32, uint64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.core.string_arrays import string
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.static import static_int
from dualflow.ops.text.mapping import filled, of_strings, text_op, words

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, TensorLike
    from dualflow.ops.tensor import Tensor

_NUMBERS: Final = (float32, float64, int32, int64, uint32, uint64)
_INTEGER: Final = re.compile(rb"[+-]?[0-9]+")
_DECIMAL: Final = re.compile(
    rb"[+-]?([0-9]+\.?[0-9]*([eE][+-]?[0-9]+)?|\.[0-9]+([eE][+-]?[0-9]+)?|inf(inity)?|nan(\([0-9a-z_]*\))?)",
    re.IGNORECASE,
)
_HEXADECIMAL: Final = re.compile(rb"[+-]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)([pP][+-]?[0-9]+)?")


def number_in(text: bytes, dtype: DType) -> Any:
    """The number of ``dtype`` that a string spells, white space around it ignored; None for other strings.

    Floats are what C's ``strtod`` reads: also in hexadecimal, inf and nan. Those too large are infinite.
    """
    stripped = text.strip()
    if dtype.is_integer:
        number = int(stripped) if _INTEGER.fullmatch(stripped) else None
        signed = dtype.is_unsigned and stripped.startswith(b"-")
        return None if number is None or signed or not dtype.min <= number <= dtype.max else number
    if _DECIMAL.fullmatch(stripped):
        return float(stripped.partition(b"(")[0])
    return _hexadecimal(stripped.decode()) if _HEXADECIMAL.fullmatch(stripped) else None


def _hexadecimal(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:
        return -math.inf if text.startswith("-") else math.inf


def _read(x: Array, dtype: DType) -> Array:
    numbers = []
    for text in x.ravel().tolist():
        number = number_in(text, dtype)
        if number is None:
            raise InvalidArgumentError(
                f"to_number could not correctly convert string {text!r} to {dtype.name}; take another "
                "out_type, or look for what is no number with df.strings.regex_full_match."
            )
        numbers.append(number)
    with np.errstate(over="ignore"):
        return filled(numbers, x.shape, dtype)


_TO_NUMBER: Final = text_op(
    "string_to_number",
    "The numbers that strings represent, in ``dtype``.",
    infer=lambda x, dtype: TensorSpec.of(x.shape, dtype),
    kernel=_read,
    samples=[
        Sample((words("1", " -2e3", "inf", "0.1", "0x1p3"),), {"dtype": float32}),
        Sample((words("1", " -20 ", "+3"),), {"dtype": int64}),
    ],
)


def to_number(input: TensorLike, out_type: DTypeLike = float32, name: str | None = None) -> Tensor:
    """The numbers that strings represent; white space around them is ignored.

    Args:
        input: strings of any shape: decimal numbers; for floats also hexadecimal ones, ``inf`` and ``nan``.
        out_type: float32, float64, int32, int64, uint32 or uint64.

    Returns:
        A tensor with the shape of ``input`` and dtype ``out_type``; floats that are too large are infinite.

    Raises:
        InvalidArgumentError: a string is not a number, or outside of the range of an integer ``out_type``.
        DTypeError: ``out_type`` is another, or ``input`` holds numbers.

    >>> import dualflow as df
    >>> df.strings.to_number(["1.5", " -2e3 "]).numpy()
    array([ 1.5e+00, -2.0e+03], dtype=float32)
    """
    dtype = as_dtype(out_type)
    if dtype not in _NUMBERS:
        dtypes = ", ".join(t.name for t in _NUMBERS)
        raise DTypeError(f"to_number gives {dtypes}, not {dtype.name}; cast its result with df.cast.")
    return dispatch.current().apply(_TO_NUMBER, (of_strings(input, "to_number"),), {"dtype": dtype})


def _written(x: Array, notation: str, precision: int, width: int, fill: str) -> Array:
    kind = "f" if as_dtype(x.dtype).narrow else x.dtype.kind
    size = str(width) if width > -1 else ""
    if kind == "b":
        texts = [b"true" if e else b"false" for e in x.ravel().tolist()]
    elif kind in "iu":
        texts = [f"%{fill}{size}d".encode() % e for e in x.ravel().tolist()]
    elif kind == "O":
        left = "-" if fill == "-" else ""
        texts = [f"%{left}{size}b".encode() % e for e in x.ravel().tolist()]
    else:
        digits = f".{precision}" if precision > -1 else ""
        form = f"{size}{digits}{notation}"
        wide = x.astype(np.complex128 if kind == "c" else np.float64).ravel().tolist()
        texts = [_float_or_pair(e, fill, form) for e in wide]
    return filled(texts, x.shape)


def _float_or_pair(x: Any, fill: str, form: str) -> bytes:
    if isinstance(x, complex):
        return b"(%b,%b)" % (_float(x.real, fill, form), _float(x.imag, fill, form))
    return _float(x, fill, form)


def _float(x: float, fill: str, form: str) -> bytes:
    """A float as C's ``printf`` writes it, which puts no zeros before inf and nan, and shows nan's sign."""
    if math.isnan(x) and math.copysign(1.0, x) < 0:
        width = form.partition(".")[0].rstrip("feg")
        return f"%{'-' if fill == '-' else ''}{width}s".encode() % b"-nan"
    fill = "" if fill == "0" and not math.isfinite(x) else fill
    return f"%{fill}{form}".encode() % x


_AS_STRING: Final = text_op(
    "as_string",
    "Numbers as C prints them.",
    infer=lambda x, **attrs: TensorSpec.of(x.shape, string),
    kernel=_written,
    samples=[
        Sample((Domain(-50, 50, "fibc"),), {"notation": n, "precision": -1, "width": w, "fill": f})
        for n, w, f in (("f", -1, ""), ("e", 9, "-"), ("g", 9, "0"))
    ],
)


def as_string(
    input: TensorLike,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
    name: str | None = None,
) -> Tensor:
    """Numbers as strings, as C's ``printf`` writes them; bools are ``true`` and ``false``.

    Args:
        input: numbers, bools or strings of any shape.
        precision: the number of digits after the point of floats, or with ``shortest`` of all digits; -1 for
            6.
        scientific: whether floats have an exponent: ``1.5e+00``.
        shortest: whether floats have an exponent where that is shorter, and no trailing zeros.
        width: the least length of each string; -1 for none.
        fill: the padding: "" or " " for spaces before, "0" for zeros, "-" for spaces after, "+" for spaces
            and a sign. A " " also leaves a place for the sign.

    Returns:
        A tensor of strings with the shape of ``input``.

    Raises:
        InvalidArgumentError: ``scientific`` and ``shortest`` together, one of them or ``precision`` with
            integers or bools, or another ``fill``.

    >>> import dualflow as df
    >>> df.as_string([1.0, 0.25], precision=2).numpy(), df.as_string(7, width=3, fill="0").numpy()
    (array([b'1.00', b'0.25'], dtype=object), b'007')
    """
    x = convert_to_tensor(input)
    if scientific and shortest:
        raise InvalidArgumentError("as_string writes scientific or shortest notation; choose one of them.")
    if fill not in _FILLS:
        raise InvalidArgumentError(
            f"as_string fills with one of {', '.join(map(repr, _FILLS))}, not {fill!r}."
        )
    decimals = static_int(precision, "precision")
    if not (x.dtype.is_inexact or x.dtype.is_string) and (decimals > -1 or scientific or shortest):
        raise InvalidArgumentError(
            f"as_string takes precision, scientific and shortest for floats only, not for {x.dtype.name}."
        )
    attrs = {
        "notation": "e" if scientific else "g" if shortest else "f",
        "precision": decimals,
        "width": static_int(width, "width"),
        "fill": fill,
    }
    return dispatch.current().apply(_AS_STRING, (x,), attrs)


_FILLS: Final = ("", " ", "0", "-", "+")
