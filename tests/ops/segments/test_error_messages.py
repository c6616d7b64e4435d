"""Errors of segments, partitions and their scatters: the rejected input, and what to do."""

from __future__ import annotations

import re

import numpy as np
import pytest
from error_cases import ErrorCases

import dualflow as df
from dualflow.core.errors import DTypeError, InvalidArgumentError

V, IDS = df.ones([3]), df.constant([0, 1, 1])
C, B = df.constant([1j, 2j]), df.constant([True, False, True])
math, partition, stitch = df.math, df.dynamic_partition, df.dynamic_stitch
total = math.unsorted_segment_sum

CASES = {
    "segments of bools": (lambda: math.segment_sum(B, IDS), DTypeError, "not bool", "cast"),
    "extremes of complex numbers": (
        lambda: math.unsorted_segment_max(C, [0, 1], 2),
        DTypeError,
        "real numbers, not complex128",
        "cast",
    ),
    "ids in floats": (lambda: total(V, V, 2), DTypeError, "segment_ids are integers, not float32", "cast"),
    "ids of a matrix, sorted": (
        lambda: math.segment_sum(V, [[0, 1, 1]]),
        InvalidArgumentError,
        r"\(1, 3\)",
        "unsorted",
    ),
    "too few ids": (lambda: total(V, [0, 1], 2), InvalidArgumentError, r"\(3,\) does not start", r"\(2,\)"),
    "a number of segments in floats": (lambda: total(V, IDS, 2.0), DTypeError, "num_segments", "cast"),
    "several numbers of segments": (
        lambda: total(V, IDS, [2]),
        InvalidArgumentError,
        "one number",
        r"\(1,\)",
    ),
    "a negative number of segments": (lambda: total(V, IDS, -1), InvalidArgumentError, "0 or more", "-1"),
    "an id that no segment has": (
        lambda: total(V, IDS, 1),
        InvalidArgumentError,
        r"num_segments \(1\)",
        "negative",
    ),
    "ids out of order": (
        lambda: math.segment_sum(V, [1, 0, 0]),
        InvalidArgumentError,
        "never decrease",
        "sort them",
    ),
    "no partitions": (lambda: partition(V, IDS, 0), InvalidArgumentError, "1 partition or more", "not 0"),
    "a partition outside": (
        lambda: partition(V, IDS, 1),
        InvalidArgumentError,
        r"0\.\.0",
        "below num_partitions",
    ),
    "nothing to stitch": (
        lambda: stitch([], []),
        InvalidArgumentError,
        "not 0 for 0",
        "for each of its data",
    ),
    "indices without data": (
        lambda: stitch([[0]], []),
        InvalidArgumentError,
        "not 1 for 0",
        "for each of its data",
    ),
    "rows of several shapes": (
        lambda: stitch([[0], [1]], [[[1, 2]], [[1]]]),
        InvalidArgumentError,
        "one shape",
        r"\(2,\)",
    ),
    "the larger of complex numbers": (
        lambda: df.tensor_scatter_nd_max(C, [[0]], [1j]),
        DTypeError,
        "real numbers, not complex128",
        "cast",
    ),
    "the larger of another dtype": (
        lambda: df.tensor_scatter_nd_max(V, [[0]], df.constant([1])),
        DTypeError,
        "int32 should be float32",
        "cast",
    ),
}


class TestErrorMessages(ErrorCases):
    cases = CASES
    raised_in = ("ops/segments/*.py",)


def test_a_compiled_function_names_the_users_line():
    f = df.function(lambda ids: total(np.ones(2), ids, 2))
    with pytest.raises(InvalidArgumentError, match=re.escape(__file__)):
        f(df.constant([0, 2]))
