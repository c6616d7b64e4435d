"""The positions that sort an array stably: narrow keys are sorted together with their positions.

NumPy sorts numbers far faster than positions. So the keys of long rows and their positions are packed into
integers of 32 or 64 bits, which NumPy sorts, and unpacked again.
"""

from __future__ import annotations

import sys
from typing import Any, Final

import numpy as np

from dualflow.core.records import NamedTuple

_LONG = 1 << 10
"""The length of rows from which the methods for long rows are used."""
_VERY_LONG: Final = 1 << 14
"""The length of rows from which 64-bit elements are sorted in two passes of packed keys."""
_RUNS: Final = 64
"""The number of sorted runs up to which merging them is faster than sorting."""
_BLOCK: Final = 1 << 15
"""The number of elements that are converted to keys at a time."""
NAN_KEY: Final = np.uint32(0xFFFFFFFF)
"""The key of a nan, which no other float has."""
_KEY: Final = 1 if sys.byteorder == "little" else 0
"""The index of the upper 32 bits of a 64-bit pair, which depends on the byte order."""


def order(x: Any, axis: int, descending: bool) -> Any:
    """The indices that sort an array along an axis; the sort is stable, and nan is the largest element."""
    if not descending:
        return _ascending(x, axis)
    back = (slice(None),) * axis + (slice(None, None, -1),)
    positions = _ascending(x[back], axis)[back]
    return positions.dtype.type(max(0, x.shape[axis] - 1)) - positions


def _ascending(x: Any, axis: int) -> Any:
    """The permutation that sorts, ascending."""
    sorted_keys = sorted_pairs(x, axis)
    if sorted_keys is not None:
        return sorted_keys.positions()
    if x.dtype.itemsize == 8 and x.shape[axis] >= _VERY_LONG and not _in_runs(np.moveaxis(x, axis, -1)):
        return _ascending_wide(x, axis)
    return x.argsort(axis, kind="stable")


def _in_runs(rows: Any) -> bool:
    """Whether rows consist of a few rising or falling runs, which NumPy's stable sort merges."""
    falls = rows[..., 1:] < rows[..., :-1]
    direction_changes = np.count_nonzero(falls[..., 1:] != falls[..., :-1])
    return bool(direction_changes <= _RUNS * (rows.size // rows.shape[-1]))


def _ascending_wide(x: Any, axis: int) -> Any:
    """The positions that sort elements of 64 bits.

    NumPy's unstable sort is much faster, but doesn't keep the order of equal elements. So the positions are
    sorted again as integers ``group << 32 | position``, where the group is the number of smaller distinct
    elements.

    For elements ``[7, 3, 7]``, the unstable sort may return positions ``[1, 2, 0]``. Their groups are
    ``[0, 1, 1]``, and the integers ``[0|1, 1|2, 1|0]`` sort to ``[0|1, 1|0, 1|2]``: the positions are
    ``[1, 0, 2]``.
    """
    positions = x.argsort(axis)
    rows, indices = np.moveaxis(x, axis, -1), np.moveaxis(positions, axis, -1)
    ordered = np.take_along_axis(rows, indices, -1)
    if np.isnan(ordered[..., -1]).any():  # nans are not distinguished from their neighbours
        return x.argsort(axis, kind="stable")
    differs = ordered[..., 1:] != ordered[..., :-1]
    if differs.all():
        return positions
    both = np.zeros(rows.shape, np.uint64)
    np.cumsum(differs, -1, out=both[..., 1:])
    both <<= np.uint64(32)
    both |= indices.astype(np.uint64)
    both.sort(-1)
    both &= np.uint64((1 << 32) - 1)
    return np.moveaxis(both, -1, axis)


class Pairs(NamedTuple):
    """Integers, each a key above a position, which sort together.

    Keys are integers that compare as the elements do; that of every nan is ``NAN_KEY``.
    """

    both: Any
    shift: int

    def keys(self) -> Any:
        """The keys, in the order of the pairs."""
        both = self.both
        return both.view(np.uint32)[..., _KEY::2] if self.shift == 32 else both >> both.dtype.type(self.shift)

    def positions(self) -> Any:
        """The positions, in the order of the pairs; of sorted pairs, the permutation that sorts."""
        both = self.both
        if self.shift == 32:
            return both.view(np.uint32)[..., 1 - _KEY :: 2]
        return both & both.dtype.type((1 << self.shift) - 1)


def sorted_pairs(x: Any, axis: int) -> Pairs | None:
    """Keys and positions of the elements, sorted along an axis; None for short rows or wide elements."""
    unsorted = pairs(x, axis)
    if unsorted is not None:
        unsorted.both.sort(axis)
    return unsorted


def pairs(x: Any, axis: int) -> Pairs | None:
    """Keys and positions of the elements in their present order; None for short rows or wide elements."""
    size = x.shape[axis]
    key_range = _range(x) if size >= _LONG and x.size else None
    if key_range is None:
        return None
    least, reach = key_range
    indices = np.arange(size, dtype=np.uint32).reshape((size,) + (1,) * (x.ndim - 1 - axis))
    shift = (size - 1).bit_length()
    if reach.bit_length() + shift <= 32:
        both = _keys(x, least)
        both <<= np.uint32(shift)
        both |= indices
        return Pairs(both, shift)
    halves = np.empty((*x.shape, 2), np.uint32)
    halves[..., 1 - _KEY] = indices
    # Temporary arrays are small and stay in a cache where a vector is taken in blocks.
    step = _BLOCK if x.ndim == 1 else len(x)
    for start in range(0, len(x), step):
        halves[start : start + step, ..., _KEY] = _keys(x[start : start + step], least)
    return Pairs(halves.view(np.uint64)[..., 0], 32)


def _range(x: Any) -> tuple[Any, int] | None:
    """The least integer, and how large keys may be; None where these take more than 32 bits."""
    if x.dtype.kind in "iu" and x.dtype.itemsize > 2:
        least = x.min()
        reach = int(x.max()) - int(least)
        return (least, reach) if reach < 1 << 32 else None
    return (None, int(NAN_KEY)) if x.dtype.kind == "f" and x.dtype.itemsize <= 4 else None


def _keys(x: Any, least: Any) -> Any:
    """Unsigned integers of 32 bits that compare as the elements do; ``least`` is None for floats."""
    if least is not None:
        return (x - least).astype(np.uint32)
    single = np.add(x, np.float32(0), dtype=np.float32)  # -0.0 becomes 0.0
    bits, nans = single.view(np.int32), np.isnan(single)
    flipped_bits = bits >> 31
    flipped_bits |= np.int32(-(1 << 31))
    bits ^= flipped_bits
    keys = bits.view(np.uint32)
    keys[nans] = NAN_KEY
    return keys
