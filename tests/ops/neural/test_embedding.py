"""Embedding lookups by sparse ids."""

import numpy as np
import pytest

import dualflow as df

TABLE = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
PLACES = [[0, 0], [0, 1], [2, 0]]
IDS = df.SparseTensor(PLACES, [1, 3, 0], [4, 2])
WEIGHTS = df.SparseTensor(PLACES, [1.0, 2.0, 0.5], [4, 2])


def joined(weights, combiner, rows):
    """By hand: the rows of row 0 and of row 2, and zeros elsewhere."""
    out = np.zeros((rows, 3))
    for row, (ids, each) in {0: ([1, 3], weights[:2]), 2: ([0], weights[2:])}.items():
        total = sum(w * TABLE[i] for i, w in zip(ids, each, strict=True))
        by = {"sum": 1.0, "mean": sum(each), "sqrtn": sum(w * w for w in each) ** 0.5}[combiner]
        out[row] = total / by
    return out


@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_are_joined_up_to_the_last_with_an_id(mode, combiner, weighted):
    weights = WEIGHTS if weighted else None
    run = mode(lambda t: df.nn.embedding_lookup_sparse(t, IDS, weights, combiner))
    expected = joined([1.0, 2.0, 0.5] if weighted else [1.0] * 3, combiner, 3)
    np.testing.assert_allclose(run(df.constant(TABLE)), expected, rtol=1e-5)


@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_safe_lookup_has_all_rows(mode, combiner, weighted):
    weights = WEIGHTS if weighted else None
    run = mode(lambda t: df.nn.safe_embedding_lookup_sparse(t, IDS, weights, combiner))
    expected = joined([1.0, 2.0, 0.5] if weighted else [1.0] * 3, combiner, 4)
    np.testing.assert_allclose(run(df.constant(TABLE)), expected, rtol=1e-5)


def test_the_safe_lookup_leaves_out_what_is_invalid(mode):
    ids = df.SparseTensor([[0, 0], [0, 1], [1, 0], [2, 0]], [1, -1, 2, 3], [4, 2])
    weights = df.SparseTensor([[0, 0], [0, 1], [1, 0], [2, 0]], [1.0, 1.0, -1.0, 2.0], [4, 2])
    result = mode(lambda t: df.nn.safe_embedding_lookup_sparse(t, ids, weights))(df.constant(TABLE)).numpy()
    np.testing.assert_allclose(result, [TABLE[1], np.zeros(3), TABLE[3], np.zeros(3)], rtol=1e-6)
    default = df.nn.safe_embedding_lookup_sparse(TABLE, ids, weights, default_id=4).numpy()
    np.testing.assert_allclose(default, [TABLE[1], TABLE[4], TABLE[3], TABLE[4]], rtol=1e-6)


def test_the_safe_lookup_keeps_the_axes_before_the_last():
    ids = df.SparseTensor([[0, 0, 0], [0, 1, 1], [1, 1, 0]], [1, 3, 0], [2, 2, 2])
    result = df.nn.safe_embedding_lookup_sparse(TABLE, ids)
    np.testing.assert_allclose(result, [[TABLE[1], TABLE[3]], [np.zeros(3), TABLE[0]]], rtol=1e-6)


def test_long_rows_are_scaled_down():
    result = df.nn.embedding_lookup_sparse(TABLE, IDS, None, "sum", max_norm=0.5)
    short = TABLE * np.minimum(1, 0.5 / np.linalg.norm(TABLE, axis=1, keepdims=True))
    np.testing.assert_allclose(result[0], short[1] + short[3], rtol=1e-5)


def test_the_gradient_goes_to_the_rows_that_were_looked_up(mode):
    def gradient(t):
        with df.GradientTape() as tape:
            tape.watch(t)
            y = df.nn.safe_embedding_lookup_sparse(t, IDS, WEIGHTS, "sum")
        return df.convert_to_tensor(tape.gradient(y, t))

    slope = mode(gradient)(df.constant(TABLE)).numpy()
    np.testing.assert_allclose(slope[:, 0], [0.5, 1.0, 0.0, 2.0, 0.0])


def test_no_ids_give_no_rows():
    none = df.SparseTensor(np.zeros((0, 2), np.int64), np.zeros(0, np.int64), [4, 2])
    assert df.nn.embedding_lookup_sparse(TABLE, none, None).shape == (0, 3)
    assert df.nn.safe_embedding_lookup_sparse(TABLE, none).numpy().tolist() == [[0.0] * 3] * 4
