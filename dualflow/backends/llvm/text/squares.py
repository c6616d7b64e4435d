"""Squares of elements that change rows for columns in registers."""

from __future__ import annotations

from collections.abc import Sequence

from dualflow.backends.llvm.text.values import EmittedValue


def transposed(rows: Sequence[EmittedValue]) -> list[EmittedValue]:
    """The columns of a tall matrix given by its rows of 128 bits: squares are transposed side by side.

    Row i of every square makes one vector; interleaving those of the upper and lower half of the squares, as
    often as halves can be halved, puts each element in its place.
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
    """Vectors end to end; their number is a power of two."""
    while len(parts) > 1:
        order = range(2 * parts[0].type.lanes)
        parts = [left.shuffle(order, right) for left, right in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]
