"""Scatter of rows by a ufunc, in order: ``ufunc.at`` on flat arrays, where it is fast."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]

_JOINED_BLOCK: Final = 1 << 16  # elements joined at a time, so that their positions stay in the cache


def join_rows(ufunc: np.ufunc, out: Array, indices: Array, rows: Array) -> None:
    """``out[t, i] = ufunc(out[t, i], row)`` for each ``t`` and each position ``i`` with its row, in order.

    Args:
        ufunc: the function of two elements, such as ``np.add``.
        out: a matrix for each iteration ``t``, without gaps, which is changed.
        indices: which row of the matrix, each inside of it; the same in each iteration.
        rows: for each iteration a matrix with a row for each place.

    >>> out = np.zeros((1, 2, 2))
    >>> join_rows(np.add, out, np.array([1, 1]), np.array([[[1, 2], [3, 4]]]))
    >>> out.tolist()
    [[[0.0, 0.0], [4.0, 6.0]]]
    """
    iterations, size, length = out.shape
    count = len(indices)
    if not iterations * count * length:
        return
    flat, along = out.reshape(-1), np.arange(length)
    rows = rows.reshape(iterations, count, length)
    some_iterations, block = max(1, _JOINED_BLOCK // (count * length)), max(1, _JOINED_BLOCK // length)
    for iteration in range(0, iterations, some_iterations):
        begins = np.arange(iteration, min(iteration + some_iterations, iterations))[:, None] * size
        for start in range(0, count, block):  # all of them, where there is more than one iteration
            positions = (begins + indices[start : start + block]).reshape(-1)
            if length > 1:
                positions = (positions[:, None] * length + along).reshape(-1)
            ufunc.at(
                flat,
                positions,
                rows[iteration : iteration + some_iterations, start : start + block].reshape(-1),
            )
