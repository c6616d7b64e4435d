"""Transposition of tiles in registers."""

from __future__ import annotations

from collections.abc import Sequence

from dualflow.backends.llvm.text.emitted_values import EmittedValue


def transposed(rows: Sequence[EmittedValue]) -> list[EmittedValue]:
    """The columns of a matrix with rows of 128 bits, by transposing its square tiles in parallel.

    A vector has row i of all tiles; interleaving the vectors of the upper and the lower half, log2(side)
    times, transposes them. For one tile of 4 x 4::

        a0 a1 a2 a3               a0 c0 a1 c1               a0 b0 c0 d0
        b0 b1 b2 b3   a with c,   a2 c2 a3 c3   first with  a1 b1 c1 d1
        c0 c1 c2 c3   b with d    b0 d0 b1 d1   third, ...  a2 b2 c2 d2
        d0 d1 d2 d3               b2 d2 b3 d3               a3 b3 c3 d3
    """
    side = rows[0].type.lanes
    interleaved = [concatenated(rows[i::side]) for i in range(side)]
    lanes, half = interleaved[0].type.lanes, side // 2
    low = [i - i % side + i % side // 2 + (lanes if i % 2 else 0) for i in range(lanes)]
    high = [i + half for i in low]
    for _ in range(half.bit_length()):
        pairs = list(zip(interleaved[:half], interleaved[half:], strict=True))
        interleaved = [upper.shuffle(order, lower) for upper, lower in pairs for order in (low, high)]
    return interleaved


def concatenated(parts: Sequence[EmittedValue]) -> EmittedValue:
    """Vectors concatenated; their number is a power of two."""
    while len(parts) > 1:
        order = range(2 * parts[0].type.lanes)
        parts = [left.shuffle(order, right) for left, right in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]
