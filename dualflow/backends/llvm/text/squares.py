"""Transposition of tiles in registers."""

from __future__ import annotations

from collections.abc import Sequence

from dualflow.backends.llvm.text.values import EmittedValue


def transposed(rows: Sequence[EmittedValue]) -> list[EmittedValue]:
    """The columns of a matrix with rows of 128 bits, by transposing its square tiles in parallel.

    A vector has row i of all tiles; interleaving the vectors of the upper and the lower half, log2(side)
    times, transposes them.
    """
    side = rows[0].type.lanes
    mixed = [_joined(rows[i::side]) for i in range(side)]
    lanes, half = mixed[0].type.lanes, side // 2
    low = [i - i % side + i % side // 2 + (lanes if i % 2 else 0) for i in range(lanes)]
    high = [i + half for i in low]
    for _ in range(half.bit_length()):
        pairs = list(zip(mixed[:half], mixed[half:], strict=True))
        mixed = [upper.shuffle(order, lower) for upper, lower in pairs for order in (low, high)]
    return mixed


def _joined(parts: Sequence[EmittedValue]) -> EmittedValue:
    """Vectors concatenated; their number is a power of two."""
    while len(parts) > 1:
        order = range(2 * parts[0].type.lanes)
        parts = [left.shuffle(order, right) for left, right in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]
