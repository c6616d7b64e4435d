"""NumPy's universal functions that compare, combine truth values, and combine bits."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from dualflow.core.dtypes import bool_
from dualflow.numpy import ufuncs
from dualflow.ops import arithmetic, bitwise, comparison, complex_numbers
from dualflow.ops.conversion import cast
from dualflow.ops.creation import ones_like, zeros_like
from dualflow.ops.selection import where

unary = functools.partial(ufuncs.unary, __name__)
binary = functools.partial(ufuncs.binary, __name__)


def _as_bool(x: Any) -> Any:
    return x if x.dtype.is_bool else comparison.not_equal(x, zeros_like(x))


# Comparisons and logic


def _lexicographic(compare_reals: Any) -> Any:
    """A comparison of complex numbers by real, then imaginary parts; of others, ``compare_reals``."""

    def compare(x: Any, y: Any) -> Any:
        if not x.dtype.is_complex:
            return compare_reals(x, y)
        x_real, y_real = complex_numbers.real(x), complex_numbers.real(y)
        x_imag, y_imag = complex_numbers.imag(x), complex_numbers.imag(y)
        differs = comparison.not_equal(x_real, y_real)
        # nan doesn't equal itself
        defined = (
            comparison.equal(x_imag, x_imag)
            & comparison.equal(y_imag, y_imag)
            & comparison.equal(x_real, x_real)
        )
        return where(
            differs, compare_reals(x_real, y_real) & defined, compare_reals(x_imag, y_imag) & defined
        )

    return compare


_less, _less_equal = _lexicographic(comparison.less), _lexicographic(comparison.less_equal)
_greater, greater_or_equal = _lexicographic(comparison.greater), _lexicographic(comparison.greater_equal)


def _logical(of_bools: Any) -> Any:
    return lambda *x: of_bools(*[_as_bool(v) for v in x])


def _finite(x: Any) -> Any:
    return comparison.isfinite(x) if x.dtype.is_inexact else cast(ones_like(x), bool_)


def _isnan(x: Any) -> Any:
    return comparison.isnan(x) if x.dtype.is_inexact else cast(zeros_like(x), bool_)


def _isinf(x: Any) -> Any:
    return comparison.isinf(x) if x.dtype.is_inexact else cast(zeros_like(x), bool_)


def _with_mixed_sign_case(compare: Any, compare_mixed_signs: Any) -> Any:
    """``compare`` that uses ``compare_mixed_signs`` for int64 with uint64, which share no exact dtype."""
    return lambda x, y: compare(x, y) if x.dtype is y.dtype else compare_mixed_signs(x, y)


def _signed_with_unsigned(compare: Any, if_x_negative: bool, if_y_negative: bool) -> Any:
    """``compare`` for int64 with uint64, with these results if an operand is negative."""

    def compare_mixed_signs(x: Any, y: Any) -> Any:
        unsigned = x if x.dtype.is_unsigned else y
        signed = y if x.dtype.is_unsigned else x
        is_negative = comparison.less(signed, 0)
        signed_as_unsigned = cast(signed, unsigned.dtype)
        left, right = (unsigned, signed_as_unsigned) if x is unsigned else (signed_as_unsigned, unsigned)
        result_if_negative = if_y_negative if x is unsigned else if_x_negative
        return where(
            is_negative,
            cast(ones_like(left), bool_) if result_if_negative else cast(zeros_like(left), bool_),
            compare(left, right),
        )

    return compare_mixed_signs


equal = binary(
    "equal",
    "Whether ``x1 == x2``.",
    _with_mixed_sign_case(comparison.equal, _signed_with_unsigned(comparison.equal, False, False)),
    "[1, 2], 2",
    "array([False,  True])",
)
not_equal = binary(
    "not_equal",
    "Whether ``x1 != x2``.",
    _with_mixed_sign_case(comparison.not_equal, _signed_with_unsigned(comparison.not_equal, True, True)),
    "[1, 2], 2",
    "array([ True, False])",
)
less = binary(
    "less",
    "Whether ``x1 < x2``.",
    _with_mixed_sign_case(_less, _signed_with_unsigned(comparison.less, True, False)),
    "[1, 2], 2",
    "array([ True, False])",
)
less_equal = binary(
    "less_equal",
    "Whether ``x1 <= x2``.",
    _with_mixed_sign_case(_less_equal, _signed_with_unsigned(comparison.less_equal, True, False)),
    "[1, 2], 1",
    "array([ True, False])",
)
greater = binary(
    "greater",
    "Whether ``x1 > x2``.",
    _with_mixed_sign_case(_greater, _signed_with_unsigned(comparison.greater, False, True)),
    "[1, 2], 1",
    "array([False,  True])",
)
greater_equal = binary(
    "greater_equal",
    "Whether ``x1 >= x2``.",
    _with_mixed_sign_case(greater_or_equal, _signed_with_unsigned(comparison.greater_equal, False, True)),
    "[1, 2], 2",
    "array([False,  True])",
)
logical_and = binary(
    "logical_and",
    "Whether both are true (not 0).",
    _logical(comparison.logical_and),
    "[True, False], True",
    "array([ True, False])",
)
logical_or = binary(
    "logical_or",
    "Whether at least one is true (not 0).",
    _logical(comparison.logical_or),
    "[True, False], False",
    "array([ True, False])",
)
logical_xor = binary(
    "logical_xor",
    "Whether exactly one is true (not 0).",
    _logical(comparison.logical_xor),
    "[True, False], True",
    "array([False,  True])",
)
logical_not = unary(
    "logical_not",
    "Whether ``x`` is false (0).",
    _logical(comparison.logical_not),
    "[True, False]",
    "array([False,  True])",
)
isfinite = unary(
    "isfinite",
    "Whether ``x`` is neither inf nor nan.",
    _finite,
    "[1.0, float('inf')]",
    "array([ True, False])",
)
isinf = unary(
    "isinf", "Whether ``x`` is inf or -inf.", _isinf, "[1.0, float('inf')]", "array([False,  True])"
)
isnan = unary("isnan", "Whether ``x`` is nan.", _isnan, "[1.0, float('nan')]", "array([False,  True])")


# Bits


def _invert(x: Any) -> Any:
    return comparison.logical_not(x) if x.dtype.is_bool else bitwise.invert(x)


def _bitwise_count(x: Any) -> Any:
    """The number of bits that are set, added up in pairs, fours and bytes."""
    size = 8 * x.dtype.size
    unsigned = cast(arithmetic.abs(x) if x.dtype.kind == "i" else x, f"uint{size}")

    def mask(byte: int) -> int:
        return int.from_bytes(bytes([byte]) * (size // 8), "little")

    def constant(value: int) -> Any:
        return np.array(value, f"uint{size}")

    def shift_right(v: Any, bits: int) -> Any:
        return bitwise.right_shift(v, constant(bits))

    v = unsigned - (shift_right(unsigned, 1) & constant(mask(0x55)))
    v = (v & constant(mask(0x33))) + (shift_right(v, 2) & constant(mask(0x33)))
    v = (v + shift_right(v, 4)) & constant(mask(0x0F))
    total = zeros_like(v)
    for byte in range(size // 8):
        total = total + (shift_right(v, 8 * byte) & constant(0xFF))
    return total


bitwise_and = binary(
    "bitwise_and", "The bits that are set in both.", bitwise.bitwise_and, "[6], 3", "array([2])"
)
bitwise_or = binary(
    "bitwise_or", "The bits that are set in either.", bitwise.bitwise_or, "[6], 3", "array([7])"
)
bitwise_xor = binary(
    "bitwise_xor", "The bits that are set in exactly one.", bitwise.bitwise_xor, "[6], 3", "array([5])"
)
bitwise_not = bitwise_invert = invert = unary(
    "invert", "Every bit flipped; of bools, the opposite.", _invert, "[6]", "array([-7])"
)
left_shift = bitwise_left_shift = binary(
    "left_shift",
    "``x1 * 2**x2``: the bits shifted up; 0 if none is left.",
    bitwise.left_shift,
    "[6], 1",
    "array([12])",
)
right_shift = bitwise_right_shift = binary(
    "right_shift",
    "``x1 // 2**x2``: the bits shifted down; the sign fills in.",
    bitwise.right_shift,
    "[6], 1",
    "array([3])",
)
bitwise_count = unary(
    "bitwise_count",
    "The number of bits of the magnitude that are set.",
    _bitwise_count,
    "[7, 8]",
    "array([3, 1], dtype=uint8)",
)
