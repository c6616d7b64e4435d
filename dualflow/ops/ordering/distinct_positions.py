"""The positions of the distinct elements of a NumPy vector."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from dualflow.ops.stable_order import NAN_KEY, order, sorted_pairs

_COMPARED_BLOCK: Final = 1 << 15
"""The number of elements compared at a time, which fit into a processor's cache."""

Places = tuple[Any, ...]


def distinct_positions(x: Any, results: int) -> Places:
    """The first ``results`` of: first positions, inverse indices, and counts of the distinct elements.

    These are where each distinct element is first, in ascending order; the place of each element among them;
    and how often each of them occurs.
    """
    if x.ndim != 1 or x.dtype.kind == "c":
        raise TypeError("takes a vector of real numbers")
    if x.dtype.kind == "O":
        return _by_hash(x)[:results]
    if x.dtype.kind == "b":
        x = x.view(np.uint8)
    if x.dtype.kind in "iu" and len(x):
        least = int(x.min())
        size = int(x.max()) - least + 1
        if size <= len(x):
            return _by_table(x, least, size, results)
    return _by_sorting(x, results)


def _by_table(x: Any, least: int, size: int, results: int) -> Places:
    """:func:`distinct_positions` for integers from ``least`` to ``least + size - 1``, by a table."""
    index, is_known = np.empty(size, np.int32), np.zeros(size, bool)
    new_positions, count = [], 0
    for block in _blocks(x):
        keys = _from(least, x[block])
        fresh = np.flatnonzero(~is_known[keys])
        new = keys[fresh]
        index[new[::-1]] = fresh[::-1]  # of equal ones the first is put last, and stays
        first = fresh[index[new] == fresh]
        is_known[new] = True
        index[keys[first]] = np.arange(count, count + len(first))
        new_positions.append(first + block.start)
        count += len(first)
        if count == size:
            break
    firsts = np.concatenate(new_positions).astype(np.int32)
    if results == 1:
        return (firsts,)
    indices = np.empty(len(x), np.int32)
    for block in _blocks(x):
        indices[block] = index[_from(least, x[block])]
    if results == 2:
        return firsts, indices
    return firsts, indices, np.bincount(indices, minlength=count).astype(np.int32)


def _from(least: int, x: Any) -> Any:
    """``x - least`` modulo 2**64 as int64; exact, since the difference itself fits into int64."""
    keys = x.astype(np.int64)
    keys -= np.int64(least if least < 1 << 63 else least - (1 << 64))
    return keys


def _by_sorting(x: Any, results: int) -> Places:
    """:func:`distinct_positions` by a stable sort and the comparison of neighbours."""
    ordered, ascending = _sorted(x)
    starts = np.empty(len(x), bool)
    starts[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=starts[1:])
    if ordered.dtype != x.dtype and x.dtype.kind == "f":
        starts[1:] |= ordered[1:] == NAN_KEY
    first = ascending[starts]
    is_first = np.zeros(len(x), bool)
    for block in _blocks(first):
        is_first[first[block]] = True
    firsts = _true_positions(is_first, len(first))
    if results == 1:
        return (firsts,)
    counts = np.empty(len(first), np.int32)
    at = _true_positions(starts, len(first))
    np.subtract(at[1:], at[:-1], out=counts[:-1])
    counts[-1:] = len(x) - at[-1:]
    index = np.cumsum(is_first, dtype=np.int32)[first]
    index -= 1
    indices, of_sorted = np.empty(len(x), np.int32), index.repeat(counts)
    for block in _blocks(indices):
        indices[ascending[block]] = of_sorted[block]
    if results == 2:
        return firsts, indices
    of_place = np.empty(len(at), np.int32)
    of_place[index] = counts
    return firsts, indices, of_place


def _sorted(x: Any) -> tuple[Any, Any]:
    """The sorted elements, or sorted integer keys, and the permutation that sorts."""
    keyed = sorted_pairs(x, 0)
    if keyed is not None:
        return keyed.keys(), keyed.positions()
    ascending = order(x, 0, False)
    return x[ascending], ascending


def _true_positions(bools: Any, count: int) -> Any:
    """The positions of the ``count`` elements that are True."""
    out, end = np.empty(count, np.int32), 0
    for block in _blocks(bools):
        positions = np.flatnonzero(bools[block])
        np.add(positions, block.start, out=out[end : end + len(positions)], casting="unsafe")
        end += len(positions)
    return out


def _blocks(x: Any) -> Iterator[slice]:
    """Slices of a vector that are so short that temporary arrays stay in the cache."""
    return (slice(start, start + _COMPARED_BLOCK) for start in range(0, len(x), _COMPARED_BLOCK))


def _by_hash(x: Any) -> Places:
    """:func:`distinct_positions` for strings, by a dict."""
    index: dict[bytes, int] = {}
    indices = np.array([index.setdefault(s, len(index)) for s in x.tolist()], np.int32)
    _, first, counts = np.unique(indices, return_index=True, return_counts=True)
    return first.astype(np.int32), indices, counts.astype(np.int32)
