"""Gathers and scatters: ``gather``, ``gather_nd``, ``scatter_nd`` and ``embedding_lookup``."""

import numpy as np
import pytest

import dualflow as df
from dualflow.core.errors import DTypeError, InvalidArgumentError, OutOfRangeError

RNG = np.random.default_rng(0)

# Updates that do not fit


@pytest.mark.parametrize("updates", [1.0, [1.0], [1.0, 2.0, 3.0], [[1.0], [2.0]]])
@pytest.mark.parametrize(
    "scatter",
    [
        lambda at, updates: df.scatter_nd(at, updates, [4, 3]),
        lambda at, updates: df.tensor_scatter_nd_update(df.zeros([4, 3]), at, updates),
        lambda at, updates: df.tensor_scatter_nd_add(df.zeros([4, 3]), at, updates),
    ],
    ids=["scatter_nd", "update", "add"],
)
def test_updates_of_another_shape_are_refused(mode, scatter, updates):
    with pytest.raises(InvalidArgumentError, match=r"should have shape \(2, 3\)"):
        mode(scatter)(df.constant([[0], [1]]), df.constant(updates))


# Positions that name no axis


def test_empty_indices_select_the_whole_tensor(mode):
    at, rows = df.zeros([2, 0], df.int32), df.constant([[1.0, 2.0], [3.0, 4.0]])
    assert mode(df.gather_nd)(rows[0], at).numpy().tolist() == [[1, 2], [1, 2]]
    assert mode(lambda at, rows: df.scatter_nd(at, rows, [2]))(at, rows).numpy().tolist() == [4, 6]
    added = mode(lambda at, rows: df.tensor_scatter_nd_add(df.constant([10.0, 20.0]), at, rows))(at, rows)
    assert added.numpy().tolist() == [14, 26]
    put = mode(lambda at, rows: df.tensor_scatter_nd_update(df.constant([10.0, 20.0]), at, rows))(at, rows)
    assert put.numpy().tolist() == [3, 4]


def test_the_gradient_of_a_whole_tensor_picked_several_times(mode):
    def gradient(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.gather_nd(x, df.zeros([3, 0], df.int32))
        return tape.gradient(y, x)

    assert mode(gradient)(df.constant([1.0, 2.0])).numpy().tolist() == [3, 3]


def test_positions_are_integers_even_if_there_are_none():
    with pytest.raises(DTypeError, match="indices are integers"):
        df.gather_nd(df.constant([1.0]), [])


# Batches


@pytest.mark.parametrize(
    ("shape", "at", "axis", "batch"),
    [
        ((2, 3), (2,), None, 1),
        ((2, 3), (2, 4), 1, 1),
        ((2, 5, 3), (2, 2), 2, 1),
        ((2, 3, 4, 5), (2, 3, 2), -1, 2),
        ((2, 3, 4, 5), (2, 3), 3, -1),
        ((2, 0, 4), (2, 0, 3), 2, 2),
        ((0, 4), (0, 3), 1, 1),
    ],
)
def test_gather_of_a_batch_picks_in_each_member(mode, shape, at, axis, batch):
    params = RNG.standard_normal(shape).astype(np.float32)
    indices = RNG.integers(0, 3, at)
    result = mode(lambda p, i: df.gather(p, i, axis=axis, batch_dims=batch))(params, indices).numpy()
    count = batch + len(at) * (batch < 0)
    where = count if axis is None else axis % len(shape)
    expected = np.empty((*shape[:where], *at[count:], *shape[where + 1 :]), np.float32)
    for member in np.ndindex(*shape[:count]):
        expected[member] = params[member].take(indices[member], where - count)
    np.testing.assert_array_equal(result, expected, strict=True)


def test_gather_nd_of_a_batch_picks_in_each_member(mode):
    params = df.constant(RNG.standard_normal((2, 3, 4)).astype(np.float32))
    result = mode(lambda p: df.gather_nd(p, [[[1, 2], [0, 0]], [[2, 3], [2, 3]]], batch_dims=1))(params)
    p = params.numpy()
    np.testing.assert_array_equal(result, [[p[0, 1, 2], p[0, 0, 0]], [p[1, 2, 3], p[1, 2, 3]]])


def test_an_index_of_a_batch_does_not_reach_into_the_next_member(mode):
    with pytest.raises(OutOfRangeError, match="out of range"):
        mode(lambda p: df.gather(p, [3, 0], batch_dims=1))(df.ones([2, 3]))


@pytest.mark.parametrize(
    ("at", "axis", "batch"), [((3, 1), 1, 1), ((2, 1), 0, 1), ((2, 1), 1, 3), ((2, 1), 1, -3)]
)
def test_a_batch_that_does_not_fit_is_refused(mode, at, axis, batch):
    with pytest.raises(InvalidArgumentError):
        mode(lambda p, i: df.gather(p, i, axis=axis, batch_dims=batch))(
            df.ones([2, 3]), np.zeros(at, np.int32)
        )


# Negative indices


@pytest.mark.parametrize("index", [-1, 3])
def test_gather_takes_no_index_outside_of_the_axis(mode, index):
    with pytest.raises(OutOfRangeError, match="out of range"):
        mode(lambda p, i: df.gather(p, i))(df.constant([1.0, 2.0, 3.0]), df.constant([index]))
    with pytest.raises(OutOfRangeError, match="out of range"):
        mode(lambda p, i: df.gather_nd(p, i))(df.constant([1.0, 2.0, 3.0]), df.constant([[index]]))


# Tables


def test_a_list_of_tables_is_looked_up_as_one(mode):
    v, w = df.Variable([[1.0, 2.0], [3.0, 4.0]]), df.Variable([[5.0, 6.0]])
    assert mode(lambda i: df.nn.embedding_lookup([v], i))([1]).numpy().tolist() == [[3, 4]]
    assert mode(lambda i: df.nn.embedding_lookup([v, w], i))([2, 0]).numpy().tolist() == [[5, 6], [1, 2]]


def test_rows_are_scaled_down_to_the_largest_norm(mode):
    table = df.constant([[3.0, 4.0], [0.3, 0.4]])
    result = mode(lambda t: df.nn.embedding_lookup(t, [[0], [1]], max_norm=1.0))(table).numpy()
    np.testing.assert_allclose(result, [[[0.6, 0.8]], [[0.3, 0.4]]], rtol=1e-6)


def test_no_tables_are_an_error():
    with pytest.raises(InvalidArgumentError, match="params is empty"):
        df.nn.embedding_lookup([], [0])


# squeeze


def test_squeeze_of_no_axes_drops_all_of_size_one(mode):
    assert mode(lambda x: df.squeeze(x, []))(df.ones([1, 2, 1])).shape == (2,)


def test_a_reduction_over_no_axes_keeps_those_of_size_one(mode):
    assert mode(lambda x: df.reduce_logsumexp(x, []))(df.ones([1, 2, 1])).shape == (1, 2, 1)
