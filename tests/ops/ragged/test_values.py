"""Ragged tensors compute what TensorFlow 2.21 computes, eagerly and in compiled functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df

Case = tuple[Callable[..., Any], Any]
X = df.ragged.constant([[3.0, 1.0], [], [4.0, 1.0, 5.0]])
Y = df.ragged.constant([[[1, 2], [3]], [], [[4, 5, 6]]])
Z = df.ragged.constant([[[1, 2], [3, 4]], [[5, 6]]], ragged_rank=1)
I = df.ragged.constant([[2, 0], [], [1]])  # noqa: E741  # indices
S = df.ragged.constant([["a b", "c"], ["d"]])
SPECS = [
    df.RaggedTensorSpec([None, None], df.float32),
    df.RaggedTensorSpec([None, None, None], df.int32),
    df.RaggedTensorSpec([None, None, 2], df.int32, ragged_rank=1),
    df.RaggedTensorSpec([None, None], df.int32),
]
nan = float("nan")

OF_NUMBERS: list[Case] = [
    # Indexing
    (lambda x, y, z, i: x[0], [3.0, 1.0]),
    (lambda x, y, z, i: x[-1], [4.0, 1.0, 5.0]),
    (lambda x, y, z, i: x[1], []),
    (lambda x, y, z, i: y[0], [[1, 2], [3]]),
    (lambda x, y, z, i: y[2, 0], [4, 5, 6]),
    (lambda x, y, z, i: y[2, 0, 1], 5),
    (lambda x, y, z, i: x[1:], [[], [4.0, 1.0, 5.0]]),
    (lambda x, y, z, i: x[:2], [[3.0, 1.0], []]),
    (lambda x, y, z, i: x[::2], [[3.0, 1.0], [4.0, 1.0, 5.0]]),
    (lambda x, y, z, i: x[::-1], [[4.0, 1.0, 5.0], [], [3.0, 1.0]]),
    (lambda x, y, z, i: x[5:], []),
    (lambda x, y, z, i: x[:, :1], [[3.0], [], [4.0]]),
    (lambda x, y, z, i: x[:, 1:], [[1.0], [], [1.0, 5.0]]),
    (lambda x, y, z, i: x[:, -2:-1], [[3.0], [], [1.0]]),
    (lambda x, y, z, i: x[:, ::-1], [[1.0, 3.0], [], [5.0, 1.0, 4.0]]),
    (lambda x, y, z, i: x[:, 1:3:2], [[1.0], [], [1.0]]),
    (lambda x, y, z, i: y[:, :, :1], [[[1], [3]], [], [[4]]]),
    (lambda x, y, z, i: y[:, :1], [[[1, 2]], [], [[4, 5, 6]]]),
    (lambda x, y, z, i: x[...], [[3.0, 1.0], [], [4.0, 1.0, 5.0]]),
    (lambda x, y, z, i: y[..., :1], [[[1], [3]], [], [[4]]]),
    (lambda x, y, z, i: z[:, :, 0], [[1, 3], [5]]),
    (lambda x, y, z, i: z[..., 1], [[2, 4], [6]]),
    (lambda x, y, z, i: z[0], [[1, 2], [3, 4]]),
    (lambda x, y, z, i: z[:, :1, 1], [[2], [6]]),
    (lambda x, y, z, i: x[df.newaxis], [[[3.0, 1.0], [], [4.0, 1.0, 5.0]]]),
    (lambda x, y, z, i: x[:, df.newaxis], [[[3.0, 1.0]], [[]], [[4.0, 1.0, 5.0]]]),
    (lambda x, y, z, i: y[:, :, df.newaxis, :1], [[[[1]], [[3]]], [], [[[4]]]]),
    (lambda x, y, z, i: x[df.constant(2)], [4.0, 1.0, 5.0]),
    # Elementwise
    (lambda x, y, z, i: x + 1, [[4.0, 2.0], [], [5.0, 2.0, 6.0]]),
    (lambda x, y, z, i: -x, [[-3.0, -1.0], [], [-4.0, -1.0, -5.0]]),
    (lambda x, y, z, i: 2.0 / x, [[0.6666666865348816, 2.0], [], [0.5, 2.0, 0.4000000059604645]]),
    (lambda x, y, z, i: x**2, [[9.0, 1.0], [], [16.0, 1.0, 25.0]]),
    (lambda x, y, z, i: x > 2, [[True, False], [], [True, False, True]]),
    (lambda x, y, z, i: x == 1.0, [[False, True], [], [False, True, False]]),
    (lambda x, y, z, i: df.cast(x, df.int32), [[3, 1], [], [4, 1, 5]]),
    (lambda x, y, z, i: df.maximum(x, 2.0), [[3.0, 2.0], [], [4.0, 2.0, 5.0]]),
    (lambda x, y, z, i: df.nn.relu(2 - x), [[0.0, 1.0], [], [0.0, 1.0, 0.0]]),
    (lambda x, y, z, i: x - [[1.0], [2.0], [3.0]], [[2.0, 0.0], [], [1.0, -2.0, 2.0]]),
    (lambda x, y, z, i: x * df.constant([[10.0]]), [[30.0, 10.0], [], [40.0, 10.0, 50.0]]),
    (lambda x, y, z, i: y + df.constant([[[1]], [[2]], [[3]]]), [[[2, 3], [4]], [], [[7, 8, 9]]]),
    (lambda x, y, z, i: z + df.constant([10, 20]), [[[11, 22], [13, 24]], [[15, 26]]]),
    (lambda x, y, z, i: z * df.constant([[[1]], [[2]]]), [[[1, 2], [3, 4]], [[10, 12]]]),
    (lambda x, y, z, i: df.clip_by_value(x, 2.0, 4.0), [[3.0, 2.0], [], [4.0, 2.0, 4.0]]),
    (lambda x, y, z, i: df.where(x > 2, x, -x), [[3.0, -1.0], [], [4.0, -1.0, 5.0]]),
    (lambda x, y, z, i: x + x * x, [[12.0, 2.0], [], [20.0, 2.0, 30.0]]),
    (lambda x, y, z, i: df.zeros_like(x), [[0.0, 0.0], [], [0.0, 0.0, 0.0]]),
    (lambda x, y, z, i: df.ones_like(y), [[[1, 1], [1]], [], [[1, 1, 1]]]),
    (lambda x, y, z, i: df.identity(y), [[[1, 2], [3]], [], [[4, 5, 6]]]),
    (lambda x, y, z, i: df.one_hot(i, 3), [[[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]], [], [[0.0, 1.0, 0.0]]]),
    (lambda x, y, z, i: df.math.logical_and(x > 1, x < 4), [[True, False], [], [False, False, False]]),
    # Reductions
    (lambda x, y, z, i: df.reduce_sum(x), 14.0),
    (lambda x, y, z, i: df.reduce_sum(x, 0), [7.0, 2.0, 5.0]),
    (lambda x, y, z, i: df.reduce_sum(x, 1), [4.0, 0.0, 10.0]),
    (lambda x, y, z, i: df.reduce_sum(x, -1, keepdims=True), [[4.0], [0.0], [10.0]]),
    (lambda x, y, z, i: df.reduce_sum(x, 0, keepdims=True), [[7.0, 2.0, 5.0]]),
    (lambda x, y, z, i: df.reduce_sum(x, [0, 1]), 14.0),
    (lambda x, y, z, i: df.reduce_sum(y, 0), [[5, 7, 6], [3]]),
    (lambda x, y, z, i: df.reduce_sum(y, 1), [[4, 2], [], [4, 5, 6]]),
    (lambda x, y, z, i: df.reduce_sum(y, 2), [[3, 3], [], [15]]),
    (lambda x, y, z, i: df.reduce_sum(y, [1, 2]), [6, 0, 15]),
    (lambda x, y, z, i: df.reduce_sum(z, 0), [[6, 8], [3, 4]]),
    (lambda x, y, z, i: df.reduce_sum(z, 1), [[4, 6], [5, 6]]),
    (lambda x, y, z, i: df.reduce_sum(z, 2), [[3, 7], [11]]),
    (lambda x, y, z, i: df.reduce_prod(x, 1), [3.0, 1.0, 20.0]),
    (lambda x, y, z, i: df.reduce_prod(y, 0), [[4, 10, 6], [3]]),
    (lambda x, y, z, i: df.reduce_max(y, 2), [[2, 3], [], [6]]),
    (lambda x, y, z, i: df.reduce_max(x, 1)[::2], [3.0, 5.0]),
    (lambda x, y, z, i: df.reduce_min(y, 0), [[1, 2, 6], [3]]),
    (lambda x, y, z, i: df.reduce_min(x), 1.0),
    (lambda x, y, z, i: df.reduce_mean(x, 1)[::2], [2.0, 3.3333332538604736]),
    (lambda x, y, z, i: df.reduce_mean(x), 2.799999952316284),
    (lambda x, y, z, i: df.reduce_mean(y, 2), [[1.5, 3.0], [], [5.0]]),
    (lambda x, y, z, i: df.reduce_mean(x, 0), [3.5, 1.0, 5.0]),
    (lambda x, y, z, i: df.reduce_any(x > 2, 1), [True, False, True]),
    (lambda x, y, z, i: df.reduce_all(x > 2, 1), [False, True, False]),
    (lambda x, y, z, i: df.reduce_any(y > 3, 0), [[True, True, True], [False]]),
    (lambda x, y, z, i: df.math.reduce_variance(x, 1)[::2], [1.0, 2.8888893127441406]),
    (lambda x, y, z, i: df.math.reduce_std(x, 1)[::2], [1.0, 1.6996732950210571]),
    (lambda x, y, z, i: df.math.reduce_variance(x), 2.559999942779541),
    # Joining
    (lambda x, y, z, i: df.concat([x, x[:1]], 0), [[3.0, 1.0], [], [4.0, 1.0, 5.0], [3.0, 1.0]]),
    (lambda x, y, z, i: df.concat([x, x], 1), [[3.0, 1.0, 3.0, 1.0], [], [4.0, 1.0, 5.0, 4.0, 1.0, 5.0]]),
    (lambda x, y, z, i: df.concat([y, y], 2), [[[1, 2, 1, 2], [3, 3]], [], [[4, 5, 6, 4, 5, 6]]]),
    (lambda x, y, z, i: df.concat([y, y[1:]], 0), [[[1, 2], [3]], [], [[4, 5, 6]], [], [[4, 5, 6]]]),
    (lambda x, y, z, i: df.concat([x, [[1.0, 2.0]]], 0), [[3.0, 1.0], [], [4.0, 1.0, 5.0], [1.0, 2.0]]),
    (
        lambda x, y, z, i: df.concat([x, [[1.0], [2.0], [3.0]]], 1),
        [[3.0, 1.0, 1.0], [2.0], [4.0, 1.0, 5.0, 3.0]],
    ),
    (lambda x, y, z, i: df.concat([z, z], 2), [[[1, 2, 1, 2], [3, 4, 3, 4]], [[5, 6, 5, 6]]]),
    (
        lambda x, y, z, i: df.stack([x, x]),
        [[[3.0, 1.0], [], [4.0, 1.0, 5.0]], [[3.0, 1.0], [], [4.0, 1.0, 5.0]]],
    ),
    (
        lambda x, y, z, i: df.stack([x, x], 1),
        [[[3.0, 1.0], [3.0, 1.0]], [[], []], [[4.0, 1.0, 5.0], [4.0, 1.0, 5.0]]],
    ),
    (
        lambda x, y, z, i: df.stack([x, x], 2),
        [[[3.0, 3.0], [1.0, 1.0]], [], [[4.0, 4.0], [1.0, 1.0], [5.0, 5.0]]],
    ),
    (lambda x, y, z, i: df.ragged.stack([x, x[:1]]), [[[3.0, 1.0], [], [4.0, 1.0, 5.0]], [[3.0, 1.0]]]),
    (
        lambda x, y, z, i: df.tile(x, [2, 1]),
        [[3.0, 1.0], [], [4.0, 1.0, 5.0], [3.0, 1.0], [], [4.0, 1.0, 5.0]],
    ),
    (lambda x, y, z, i: df.tile(x, [1, 2]), [[3.0, 1.0, 3.0, 1.0], [], [4.0, 1.0, 5.0, 4.0, 1.0, 5.0]]),
    (lambda x, y, z, i: df.tile(y, [1, 1, 2]), [[[1, 2, 1, 2], [3, 3]], [], [[4, 5, 6, 4, 5, 6]]]),
    (lambda x, y, z, i: df.tile(z, [1, 1, 2]), [[[1, 2, 1, 2], [3, 4, 3, 4]], [[5, 6, 5, 6]]]),
    (lambda x, y, z, i: df.tile(x, [0, 1]), []),
    (lambda x, y, z, i: df.tile(x, [1, 0]), [[], [], []]),
    (lambda x, y, z, i: df.expand_dims(x, 0), [[[3.0, 1.0], [], [4.0, 1.0, 5.0]]]),
    (lambda x, y, z, i: df.expand_dims(x, 1), [[[3.0, 1.0]], [[]], [[4.0, 1.0, 5.0]]]),
    (lambda x, y, z, i: df.expand_dims(x, 2), [[[3.0], [1.0]], [], [[4.0], [1.0], [5.0]]]),
    (lambda x, y, z, i: df.expand_dims(y, 2), [[[[1, 2]], [[3]]], [], [[[4, 5, 6]]]]),
    (lambda x, y, z, i: df.reverse(x, [1]), [[1.0, 3.0], [], [5.0, 1.0, 4.0]]),
    (lambda x, y, z, i: df.reverse(y, [0, 2]), [[[6, 5, 4]], [], [[2, 1], [3]]]),
    # Gathering
    (lambda x, y, z, i: df.gather(x, [2, 0]), [[4.0, 1.0, 5.0], [3.0, 1.0]]),
    (lambda x, y, z, i: df.gather(y, [2, 0, 0]), [[[4, 5, 6]], [[1, 2], [3]], [[1, 2], [3]]]),
    (lambda x, y, z, i: df.gather(x, [[2, 0], [1, 1]]), [[[4.0, 1.0, 5.0], [3.0, 1.0]], [[], []]]),
    (lambda x, y, z, i: df.gather(x, df.zeros([2, 0], df.int32)), [[], []]),
    (lambda x, y, z, i: df.gather(x, df.zeros([2, 0, 3], df.int32)), [[], []]),
    (lambda x, y, z, i: df.gather(df.constant([10, 20, 30]), i), [[30, 10], [], [20]]),
    (lambda x, y, z, i: df.gather(x, i), [[[4.0, 1.0, 5.0], [3.0, 1.0]], [], [[]]]),
    (lambda x, y, z, i: df.gather(x, 1), []),
    (lambda x, y, z, i: df.gather(x, i[:, :1] * 0, batch_dims=1)[::2], [[3.0], [4.0]]),
    (
        lambda x, y, z, i: df.gather(df.constant([[1, 2, 3], [4, 5, 6], [7, 8, 9]]), i, batch_dims=1),
        [[3, 1], [], [8]],
    ),
    (lambda x, y, z, i: df.ragged.boolean_mask(x, x > 1), [[3.0], [], [4.0, 5.0]]),
    (lambda x, y, z, i: df.ragged.boolean_mask(y, [True, False, True]), [[[1, 2], [3]], [[4, 5, 6]]]),
    (lambda x, y, z, i: df.ragged.boolean_mask(y, y > 2), [[[], [3]], [], [[4, 5, 6]]]),
    (
        lambda x, y, z, i: df.ragged.boolean_mask(
            [[1, 2, 3], [4, 5, 6]], [[True, False, True], [False, False, False]]
        ),
        [[1, 3], []],
    ),
    # Conversions
    (lambda x, y, z, i: x.to_tensor(), [[3.0, 1.0, 0.0], [0.0, 0.0, 0.0], [4.0, 1.0, 5.0]]),
    (lambda x, y, z, i: x.to_tensor(-1), [[3.0, 1.0, -1.0], [-1.0, -1.0, -1.0], [4.0, 1.0, 5.0]]),
    (lambda x, y, z, i: x.to_tensor(shape=[2, 2]), [[3.0, 1.0], [0.0, 0.0]]),
    (lambda x, y, z, i: x.to_tensor(9, shape=[5, 1]), [[3.0], [9.0], [4.0], [9.0], [9.0]]),
    (
        lambda x, y, z, i: x.to_tensor(shape=[None, 5]),
        [[3.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0], [4.0, 1.0, 5.0, 0.0, 0.0]],
    ),
    (
        lambda x, y, z, i: y.to_tensor(),
        [[[1, 2, 0], [3, 0, 0]], [[0, 0, 0], [0, 0, 0]], [[4, 5, 6], [0, 0, 0]]],
    ),
    (lambda x, y, z, i: y.to_tensor(7, shape=[2, 1, 2]), [[[1, 2]], [[7, 7]]]),
    (lambda x, y, z, i: z.to_tensor([8, 9]), [[[1, 2], [3, 4]], [[5, 6], [8, 9]]]),
    (
        lambda x, y, z, i: df.sparse.to_dense(x.to_sparse()),
        [[3.0, 1.0, 0.0], [0.0, 0.0, 0.0], [4.0, 1.0, 5.0]],
    ),
    (
        lambda x, y, z, i: df.sparse.to_dense(y.to_sparse()),
        [[[1, 2, 0], [3, 0, 0]], [[0, 0, 0], [0, 0, 0]], [[4, 5, 6], [0, 0, 0]]],
    ),
    (lambda x, y, z, i: y.merge_dims(0, 1), [[1, 2], [3], [4, 5, 6]]),
    (lambda x, y, z, i: y.merge_dims(1, 2), [[1, 2, 3], [], [4, 5, 6]]),
    (lambda x, y, z, i: z.merge_dims(1, 2), [[1, 2, 3, 4], [5, 6]]),
    (lambda x, y, z, i: z.merge_dims(0, 1), [[1, 2], [3, 4], [5, 6]]),
    # Parts
    (lambda x, y, z, i: y.values, [[1, 2], [3], [4, 5, 6]]),
    (lambda x, y, z, i: y.flat_values, [1, 2, 3, 4, 5, 6]),
    (lambda x, y, z, i: y.nrows(), 3),
    (lambda x, y, z, i: y.row_lengths(), [2, 0, 1]),
    (lambda x, y, z, i: y.row_lengths(2), [[2, 1], [], [3]]),
    (lambda x, y, z, i: z.row_lengths(2), [[2, 2], [2]]),
    (lambda x, y, z, i: y.value_rowids(), [0, 0, 2]),
    (lambda x, y, z, i: y.row_starts(), [0, 2, 2]),
    (lambda x, y, z, i: y.row_limits(), [2, 2, 3]),
    (lambda x, y, z, i: y.bounding_shape(), [3, 2, 3]),
    (lambda x, y, z, i: y.bounding_shape(2), 3),
    (lambda x, y, z, i: x.with_values([1, 2, 3, 4, 5]), [[1, 2], [], [3, 4, 5]]),
    (lambda x, y, z, i: y.with_flat_values(df.range(6) * 10), [[[0, 10], [20]], [], [[30, 40, 50]]]),
    (lambda x, y, z, i: df.size(x), 5),
    (lambda x, y, z, i: df.rank(y), 3),
]
OF_STRINGS: list[Case] = [
    (lambda s: df.strings.lower(s), [[b"a b", b"c"], [b"d"]]),
    (lambda s: df.strings.length(s), [[3, 1], [1]]),
    (lambda s: df.strings.regex_replace(s, " ", "-"), [[b"a-b", b"c"], [b"d"]]),
    (lambda s: df.strings.join([s, s]), [[b"a ba b", b"cc"], [b"dd"]]),
    (lambda s: df.strings.strip(s), [[b"a b", b"c"], [b"d"]]),
    (lambda s: df.strings.substr(s, 0, 1), [[b"a", b"c"], [b"d"]]),
    (lambda s: s + "!", [[b"a b!", b"c!"], [b"d!"]]),
    (lambda s: s == "d", [[False, False], [True]]),
    (lambda s: s.to_tensor(), [[b"a b", b"c"], [b"d", b""]]),
    (lambda s: s.to_tensor("none"), [[b"a b", b"c"], [b"d", b"none"]]),
    (lambda s: df.strings.split(s), [[[b"a", b"b"], [b"c"]], [[b"d"]]]),
    (lambda s: df.strings.bytes_split(s), [[[b"a", b" ", b"b"], [b"c"]], [[b"d"]]]),
    (lambda s: s[:, 1:], [[b"c"], []]),
    (lambda s: df.concat([s, s], 1), [[b"a b", b"c", b"a b", b"c"], [b"d", b"d"]]),
    (lambda s: df.gather(s, [1, 0]), [[b"d"], [b"a b", b"c"]]),
    (lambda s: df.strings.split(["a b", "", "c"]), [[b"a", b"b"], [], [b"c"]]),
    (lambda s: df.strings.split([["a b"], ["c"]]), [[[b"a", b"b"]], [[b"c"]]]),
    (lambda s: df.strings.split(["a,b,c", ""], ","), [[b"a", b"b", b"c"], [b""]]),
    (lambda s: df.strings.split(["a b c"], maxsplit=1), [[b"a", b"b c"]]),
    (lambda s: df.strings.bytes_split(["ab", "", "c"]), [[b"a", b"b"], [], [b"c"]]),
    (lambda s: df.as_string(df.ragged.constant([[1], [2, 3]])), [[b"1"], [b"2", b"3"]]),
    (lambda s: df.strings.to_number(df.ragged.constant([["1"], ["2", "3"]])), [[1.0], [2.0, 3.0]]),
]
CREATED: list[Case] = [
    (lambda: df.ragged.constant([[1, 2], [3]]), [[1, 2], [3]]),
    (lambda: df.ragged.constant([[[1], []], []]), [[[1], []], []]),
    (lambda: df.ragged.constant([[], []]), [[], []]),
    (lambda: df.ragged.constant([[], [[]]]), [[], [[]]]),
    (
        lambda: df.ragged.constant([[[1, 2]], [], [[3, 4], [5, 6]]], inner_shape=(2,)),
        [[[1, 2]], [], [[3, 4], [5, 6]]],
    ),
    (lambda: df.ragged.constant([[[1, 2], [3, 4]]], ragged_rank=1), [[[1, 2], [3, 4]]]),
    (lambda: df.ragged.constant([1, 2]), [1, 2]),
    (lambda: df.ragged.constant([]), []),
    (lambda: df.ragged.constant([], ragged_rank=1), []),
    (lambda: df.ragged.constant([[], []], ragged_rank=2), [[], []]),
    (lambda: df.gather(X[::2], [[1], [0]], batch_dims=1), [[1.0], [4.0]]),
    (lambda: df.ragged.constant([[1], [2.5]]), [[1.0], [2.5]]),
    (lambda: df.ragged.range([3, 0, 2]), [[0, 1, 2], [], [0, 1]]),
    (lambda: df.ragged.range([0, 5, 8], [3, 3, 12]), [[0, 1, 2], [], [8, 9, 10, 11]]),
    (lambda: df.ragged.range([0, 5, 8], [3, 3, 12], 2), [[0, 2], [], [8, 10]]),
    (lambda: df.ragged.range([5, 0], [0, 3], [-2, 1]), [[5, 3, 1], [0, 1, 2]]),
    (lambda: df.ragged.range(0, [2, 3]), [[0, 1], [0, 1, 2]]),
    (lambda: df.ragged.range([0.0, 1.0], [1.0, 2.0], 0.5), [[0.0, 0.5], [1.0, 1.5]]),
    (lambda: df.ragged.range(3), [[0, 1, 2]]),
    (lambda: df.ragged.stack([[1, 2], [3]]), [[1, 2], [3]]),
    (lambda: df.ragged.stack([[[1, 2]], [[3], [4]]]), [[[1, 2]], [[3], [4]]]),
    (lambda: df.ragged.stack([1, 2]), [1, 2]),
    (lambda: df.ragged.row_splits_to_segment_ids([0, 3, 3, 5]), [0, 0, 0, 2, 2]),
    (lambda: df.ragged.segment_ids_to_row_splits([0, 0, 0, 2, 2]), [0, 3, 3, 5]),
    (lambda: df.ragged.segment_ids_to_row_splits([0, 2], 5), [0, 1, 1, 2, 2, 2]),
    (lambda: df.ragged.stack_dynamic_partitions([10, 20, 30], [1, 0, 1], 3), [[20], [10, 30], []]),
    (lambda: df.ragged.map_flat_values(df.negative, [1, 2]), [-1, -2]),
    (lambda: df.RaggedTensor.from_row_splits([1, 2, 3], [0, 2, 2, 3]), [[1, 2], [], [3]]),
    (lambda: df.RaggedTensor.from_row_lengths([1, 2, 3], [2, 0, 1]), [[1, 2], [], [3]]),
    (lambda: df.RaggedTensor.from_value_rowids([1, 2, 3], [0, 0, 2]), [[1, 2], [], [3]]),
    (lambda: df.RaggedTensor.from_value_rowids([1, 2, 3], [0, 0, 2], nrows=5), [[1, 2], [], [3], [], []]),
    (lambda: df.RaggedTensor.from_row_starts([1, 2, 3], [0, 2, 2]), [[1, 2], [], [3]]),
    (lambda: df.RaggedTensor.from_row_limits([1, 2, 3], [2, 2, 3]), [[1, 2], [], [3]]),
    (lambda: df.RaggedTensor.from_uniform_row_length([1, 2, 3, 4], 2), [[1, 2], [3, 4]]),
    (lambda: df.RaggedTensor.from_uniform_row_length([], 0, nrows=3), [[], [], []]),
    (lambda: df.RaggedTensor.from_nested_row_splits([1, 2, 3], [[0, 1, 2], [0, 2, 3]]), [[[1, 2]], [[3]]]),
    (lambda: df.RaggedTensor.from_nested_row_lengths([1, 2, 3], [[1, 1], [2, 1]]), [[[1, 2]], [[3]]]),
    (lambda: df.RaggedTensor.from_nested_value_rowids([1, 2, 3], [[0, 1], [0, 0, 1]]), [[[1, 2]], [[3]]]),
    (
        lambda: df.RaggedTensor.from_nested_value_rowids([1, 2, 3], [[0, 1], [0, 0, 1]], [3, 2]),
        [[[1, 2]], [[3]], []],
    ),
    (lambda: df.RaggedTensor.from_tensor([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
    (lambda: df.RaggedTensor.from_tensor([[1, 0, 2, 0], [0, 0, 0, 0]], padding=0), [[1, 0, 2], []]),
    (lambda: df.RaggedTensor.from_tensor([[1, 2, 3], [4, 5, 6]], lengths=[1, 2]), [[1], [4, 5]]),
    (lambda: df.RaggedTensor.from_tensor([[[1], [2]]], ragged_rank=2), [[[1], [2]]]),
    (
        lambda: df.RaggedTensor.from_sparse(df.SparseTensor([[0, 0], [0, 1], [2, 0]], [1, 2, 3], [4, 3])),
        [[1, 2], [], [3], []],
    ),
]


def listed(value: Any) -> Any:
    return value.to_list() if isinstance(value, df.RaggedTensor) else value.numpy().tolist()


def check(value: Any, expected: Any) -> None:
    """Compare nested lists; floats by a tolerance of a few units of the last place."""
    assert flat(listed(value)) == flat(expected)
    np.testing.assert_allclose(numbers(listed(value)), numbers(expected), rtol=3e-7)


def flat(value: Any) -> Any:
    """The nesting of lists, with the elements that are no floats."""
    return [flat(v) for v in value] if isinstance(value, list) else 0.0 if isinstance(value, float) else value


def numbers(value: Any) -> list[float]:
    if isinstance(value, list):
        return [x for v in value for x in numbers(v)]
    return [value] if isinstance(value, float) else []


@pytest.mark.parametrize("case", OF_NUMBERS, ids=lambda case: str(case[0].__code__.co_firstlineno))
def test_a_function_of_ragged_numbers(case: Case) -> None:
    compute, expected = case
    check(compute(X, Y, Z, I), expected)


def test_compiled_functions_of_ragged_numbers_of_any_sizes() -> None:
    """Many in one compiled function, which costs a tenth of one each."""
    for start in range(0, len(OF_NUMBERS), 40):
        cases = OF_NUMBERS[start : start + 40]
        compiled = df.function(
            lambda *args, cases=cases: [compute(*args) for compute, _ in cases], input_signature=SPECS
        )
        for value, (_, expected) in zip(compiled(X, Y, Z, I), cases, strict=True):
            check(value, expected)


@pytest.mark.parametrize("case", OF_STRINGS, ids=lambda case: str(case[0].__code__.co_firstlineno))
def test_a_function_of_ragged_strings(case: Case) -> None:
    compute, expected = case
    check(compute(S), expected)
    check(df.function(compute)(S), expected)


@pytest.mark.parametrize("case", CREATED, ids=lambda case: str(case[0].__code__.co_firstlineno))
def test_a_ragged_tensor_is_created(case: Case) -> None:
    compute, expected = case
    check(compute(), expected)
    check(df.function(compute)(), expected)


def test_no_rows_have_the_bounds_and_sums_of_none() -> None:
    spec = df.RaggedTensorSpec([None, None])
    functions = (lambda x: df.reduce_sum(x, 0), lambda x: x.bounding_shape(), lambda x: x.to_tensor())
    for function in functions:
        compiled = df.function(function, input_signature=[spec])
        for rows in (df.RaggedTensor.from_row_splits(df.zeros([0]), [0]), X):
            np.testing.assert_array_equal(compiled(rows), function(rows))
    assert functions[0](df.RaggedTensor.from_row_splits(df.zeros([0]), [0])).shape == [0]


def test_no_rows_of_a_tensor_have_its_columns_again() -> None:
    padded = df.function(
        lambda x: df.RaggedTensor.from_tensor(x).to_tensor(), input_signature=[df.TensorSpec([None, None])]
    )
    assert [padded(df.zeros(shape)).shape for shape in ([0, 3], [2, 0], [2, 3])] == [(0, 3), (2, 0), (2, 3)]


def test_padding_is_removed_from_rows_without_columns() -> None:
    assert df.RaggedTensor.from_tensor(df.zeros([2, 0]), padding=0.0).to_list() == [[], []]
    images = df.constant([[[1, 1], [0, 0]], [[0, 0], [0, 0]]])
    assert df.RaggedTensor.from_tensor(images, padding=0).to_list() == [[[1, 1]], []]
