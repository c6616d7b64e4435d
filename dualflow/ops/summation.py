"""Sums of NumPy arrays whose rounding error hardly grows with the number of elements, along every axis.

NumPy adds pairwise along the axis that is contiguous in memory, and one row after another along all others.
Here those are added in blocks of a few rows, and the sums of the blocks likewise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dualflow.core.errors import DTypeError

_add_reduce: Callable[..., Any] = np.add.reduce
_HALF = "e"
_OTHERS = "e?"
"""The characters of the dtypes that NumPy's sum of the same dtype doesn't suit."""
_SINGLE = np.dtype(np.float32)
_MAX_SEQUENTIAL = 256
"""The number of elements up to which a plain sequential sum is used."""

_BLOCK_ROWS = 64
"""The number of rows of a block."""

_MIN_WIDTH = 1024
"""The least length of a row; shorter rows are processed several at a time."""

_BUFFERED = 1 << 12
"""The block size for dtypes that NumPy converts in a buffer, within which alone it adds pairwise."""


def total(x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    """The sum of ``x`` over ``axis``, non-negative axes without repetition, in the dtype of ``x``.

    float16 is added in float32, and rounded once.
    """
    dtype = x.dtype
    if dtype.char in _OTHERS:
        return _total_of_others(x, axis, keepdims)
    if x.size <= _MAX_SEQUENTIAL:
        return _add_reduce(x, axis, dtype, None, keepdims)
    shape = x.shape
    if (
        dtype.kind not in "fc"
        or (len(axis) == len(shape) and x.flags.c_contiguous)
        or math.prod([shape[a] for a in axis]) <= _MAX_SEQUENTIAL
    ):
        return _add_reduce(x, axis, dtype, None, keepdims)
    return _in_blocks(x, axis, keepdims)


def _total_of_others(x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    """The sum of float16.

    Raises:
        DTypeError: ``x`` holds bools, of which NumPy returns the disjunction.
    """
    if x.dtype.char != _HALF:
        raise DTypeError(
            "reduce_sum takes numbers, not bools; count the true ones with df.math.count_nonzero."
        )
    if x.size <= _MAX_SEQUENTIAL:
        return _add_reduce(x, axis, _SINGLE, None, keepdims).astype(x.dtype)
    return _in_blocks(x, axis, keepdims).astype(x.dtype)


def _in_blocks(x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    """The sum over one axis after another, the longest first."""
    order = sorted(range(x.ndim), key=lambda a: -abs(x.strides[a]))
    rows, summed = _joined(x.transpose(order), [a in axis for a in order])
    while any(summed):
        longest = max([a for a in range(rows.ndim) if summed[a]], key=rows.shape.__getitem__)
        rows = _along(rows, longest)
        del summed[longest]
    kept = [a for a in order if a not in axis]
    sums = rows.reshape([x.shape[a] for a in kept]).transpose(np.argsort(kept))
    return np.expand_dims(sums, axis) if keepdims else sums


def _joined(x: Any, summed: Sequence[bool]) -> tuple[Any, list[bool]]:
    """A view of ``x`` with neighbouring axes, both summed or both kept, merged where strides allow it."""
    sizes: list[int] = []
    steps: list[int] = []
    kinds: list[bool] = []
    for size, step, kind in zip(x.shape, x.strides, summed, strict=True):
        if sizes and kind == kinds[-1] and steps[-1] == step * size:
            sizes[-1] *= size
            steps[-1] = step
        elif size != 1:
            sizes.append(size)
            steps.append(step)
            kinds.append(kind)
    return x.reshape(sizes), kinds


def _along(x: Any, a: int) -> Any:
    """The sum over one axis of an array whose axes are in memory order."""
    count, width = x.shape[a], math.prod(x.shape[a + 1 :])
    wide = _SINGLE if x.dtype.char == _HALF else x.dtype
    pairwise = a == x.ndim - 1
    if count <= _MAX_SEQUENTIAL or (pairwise and (x.dtype == wide or count <= _BUFFERED)):
        return _add_reduce(x, a, wide)
    several = 1 if pairwise else min(-(-_MIN_WIDTH // width), count // (2 * _BLOCK_ROWS))
    length = _BUFFERED if pairwise else _BLOCK_ROWS
    blocks = count // (length * several)
    length = count // (blocks * several)
    before = (slice(None),) * a
    used = blocks * length * several
    split = (*x.shape[:a], blocks, length, several, *x.shape[a + 1 :])
    parts = _add_reduce(x[(*before, slice(used))].reshape(split), a + 1, wide)
    sums = _along(parts.reshape((*x.shape[:a], blocks * several, *x.shape[a + 1 :])), a)
    return sums + _along(x[(*before, slice(used, None))], a) if used < count else sums
