"""Errors of moving blocks and shapes: each states the rejected input and what to do."""

from __future__ import annotations

from error_cases import ErrorCases

import dualflow as df
from dualflow.core.errors import DTypeError, InvalidArgumentError

X = df.ones([2, 4])
space, batch, paddings = df.space_to_batch, df.batch_to_space, df.required_space_to_batch_paddings
turned, meet, places = df.reverse_sequence, df.broadcast_dynamic_shape, df.unravel_index

CASES = {
    "blocks that do not fit": (
        lambda: space(X, [3], [[0, 0]]),
        InvalidArgumentError,
        "blocks of 3",
        "paddings",
    ),
    "more blocks than axes": (
        lambda: space(X, [2, 2], [[0, 0]] * 2),
        InvalidArgumentError,
        r"\(2, 4\)",
        "after the first",
    ),
    "blocks in floats": (lambda: space(X, [2.0], [[0, 0]]), DTypeError, "block_shape", "integers"),
    "negative paddings": (lambda: space(X, [2], [[0, -1]]), InvalidArgumentError, "paddings", "0 or more"),
    "a batch without blocks": (
        lambda: batch(X, [3], [[0, 0]]),
        InvalidArgumentError,
        "batch of 2",
        "blocks of 3",
    ),
    "crops of more than all": (
        lambda: batch(X, [2], [[5, 5]]),
        InvalidArgumentError,
        "5 and 5",
        "8 elements",
    ),
    "a block for no size": (
        lambda: paddings([4, 4], [2]),
        InvalidArgumentError,
        r"\[4, 4\]",
        "a block of 1 or more",
    ),
    "sequences along no axis": (lambda: turned(X, [1, 1]), DTypeError, "seq_axis", "an int"),
    "sequences along the batch": (
        lambda: turned(X, [1, 1], seq_axis=0),
        InvalidArgumentError,
        "batch_axis=0",
        "two axes",
    ),
    "too few lengths": (lambda: turned(X, [1], seq_axis=1), InvalidArgumentError, r"\(1,\)", "each of 2"),
    "a length of more than there are": (
        lambda: turned(X, [5, 1], seq_axis=1),
        InvalidArgumentError,
        "seq_lengths",
        "up to the size",
    ),
    "shapes of shapes": (lambda: meet([[1]], [1]), InvalidArgumentError, r"\(1, 1\)", "a vector"),
    "shapes that do not meet": (lambda: meet([2], [3]), InvalidArgumentError, "broadcast", "reshape"),
    "indices of a matrix": (
        lambda: places([[1]], [2, 2]),
        InvalidArgumentError,
        r"\(1, 1\)",
        "a scalar or a vector",
    ),
    "an index beyond the shape": (
        lambda: places([4], [2, 2]),
        InvalidArgumentError,
        "0 or more",
        "product of dims",
    ),
}


class TestErrorMessages(ErrorCases):
    cases = CASES
    raised_in = ("ops/rearranging/*.py",)
