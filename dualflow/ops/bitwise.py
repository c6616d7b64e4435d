"""Operations on the bits of integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualflow.ops.elementwise import BinaryFunction, UnaryFunction, bits, elementwise, integral
from dualflow.ops.samples import Domain


def _bitwise(name: str, doc: str, ufunc: np.ufunc, code: Any, result: str) -> Any:
    domain = Domain(-50, 50, "ib")
    return elementwise(
        name,
        doc,
        dtype=bits,
        eager=ufunc,
        code=code,
        samples=(domain, domain) if ufunc.nin == 2 else domain,
        example=(f"df.bitwise.{name}([6]{', [3]' if ufunc.nin == 2 else ''})", result),
    )


bitwise_and: BinaryFunction = _bitwise(
    "bitwise_and", """Bits set in both.""", np.bitwise_and, lambda m, x, y: x & y, "[2]"
)
bitwise_or: BinaryFunction = _bitwise(
    "bitwise_or", """Bits set in either.""", np.bitwise_or, lambda m, x, y: x | y, "[7]"
)
bitwise_xor: BinaryFunction = _bitwise(
    "bitwise_xor", """Bits set in exactly one.""", np.bitwise_xor, lambda m, x, y: x ^ y, "[5]"
)
invert: UnaryFunction = _bitwise(
    "invert", """Every bit flipped; of bools, the opposite.""", np.invert, lambda m, x: ~x, "[-7]"
)


def _fits(m: Any, y: Any) -> Any:
    """Whether ``y`` is from 0 to the number of bits - 1; machine shifts are undefined otherwise."""
    return (y >= 0) & (y < 8 * m.dtype(y).size)


def _left_shift(m: Any, x: Any, y: Any) -> Any:
    fits = _fits(m, y)
    return m.where(fits, x << m.where(fits, y, 0), 0)


def _right_shift(m: Any, x: Any, y: Any) -> Any:
    fits = _fits(m, y)
    emptied = x >> (8 * m.dtype(x).size - 1) if m.dtype(x).kind == "i" else x ^ x
    return m.where(fits, x >> m.where(fits, y, 0), emptied)


_SHIFTS = (Domain(-50, 50, "i"), Domain(0, 10, "i"))

left_shift = elementwise(
    "left_shift",
    """``x`` shifted left by ``y`` bits; 0 if ``y`` is the number of bits or more.""",
    example=("df.bitwise.left_shift([3], 2)", "[12]"),
    dtype=integral,
    eager=lambda x, y: np.left_shift(x, y),  # the ufunc itself takes bools
    code=_left_shift,
    samples=_SHIFTS,
)

right_shift = elementwise(
    "right_shift",
    """``x`` shifted right by ``y`` bits; copies of the sign bit are shifted in (unsigned: zeros).""",
    example=("df.bitwise.right_shift([-8], 1)", "[-4]"),
    dtype=integral,
    eager=lambda x, y: np.right_shift(x, y),  # the ufunc itself takes bools
    code=_right_shift,
    samples=_SHIFTS,
)
