"""What TensorFlow 1 named or meant otherwise than version 2."""

from __future__ import annotations

import numpy as np
import pytest

from dualflow.compat import v1

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (lambda: v1.reduce_sum(X, reduction_indices=1), lambda: v1.reduce_sum(X, axis=1)),
        (lambda: v1.reduce_mean(X, 1, keep_dims=True), lambda: v1.reduce_mean(X, 1, keepdims=True)),
        (lambda: v1.argmax(X, dimension=1), lambda: v1.argmax(X, axis=1)),
        (lambda: v1.nn.softmax(X, dim=0), lambda: v1.nn.softmax(X, axis=0)),
        (lambda: v1.expand_dims(X, dim=0), lambda: v1.expand_dims(X, axis=0)),
        (lambda: v1.squeeze(X[:1], squeeze_dims=[0]), lambda: v1.squeeze(X[:1], axis=[0])),
    ],
)
def test_arguments_have_their_older_names_too(old, new):
    np.testing.assert_array_equal(old().numpy(), new().numpy())


def test_an_older_name_beside_the_newer_is_an_error():
    with pytest.raises(TypeError, match=r"reduce_sum\(\) got 'axis' and 'reduction_indices'"):
        v1.reduce_sum(X, axis=0, reduction_indices=1)


def test_an_older_name_without_a_value_is_nothing_given():
    assert v1.reduce_sum(X, axis=0, reduction_indices=None).shape == (3,)


def test_division_of_integers_is_rounded_down():
    assert v1.div([7, -7], 2).numpy().tolist() == [3, -4]
    assert v1.div([7, -7], 2.0).numpy().tolist() == [3.5, -3.5]


def test_casts_by_name():
    found = [f(2.7).dtype for f in (v1.to_float, v1.to_double, v1.to_int32, v1.to_int64)]
    assert found == [v1.float32, v1.float64, v1.int32, v1.int64]


def test_dropout_takes_the_chance_to_keep():
    found = v1.nn.dropout(v1.ones([10_000]), 0.8).numpy()
    assert set(found.tolist()) == {0.0, 1.25}
    assert abs((found > 0).mean() - 0.8) < 0.03


@pytest.mark.parametrize("given", [{}, {"keep_prob": 0.5, "rate": 0.5}])
def test_dropout_takes_one_chance(given):
    with pytest.raises(ValueError, match="either keep_prob or rate"):
        v1.nn.dropout(v1.ones([3]), **given)


def test_dropout_takes_open_sizes_and_a_chance_that_is_fed():
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(v1.float32, [None, 3])
        keep = v1.placeholder_with_default(1.0, [])
        y = v1.nn.dropout(x, keep, name="dropped")
        (slope,) = v1.gradients(v1.reduce_sum(y), [x])
        ones = np.ones([1000, 3], np.float32)
        assert y.name == "dropped:0"
        assert session.run(y, {x: ones}).min() == 1.0
        found, back = session.run([y, slope], {x: ones, keep: 0.5})
        np.testing.assert_array_equal(found, back)
        assert set(found.ravel().tolist()) == {0.0, 2.0}
        assert abs((found > 0).mean() - 0.5) < 0.05
        assert not np.array_equal(found, session.run(y, {x: ones, keep: 0.5}))


@pytest.mark.parametrize(
    ("make", "low", "high", "mean"),
    [
        (lambda shape: v1.zeros(shape), 0.0, 0.0, 0.0),
        (lambda shape: v1.ones(shape), 1.0, 1.0, 1.0),
        (lambda shape: v1.random_normal(shape, 5.0, 0.1), 4.0, 6.0, 5.0),
        (lambda shape: v1.random_uniform(shape, 2.0, 4.0), 2.0, 4.0, 3.0),
        (lambda shape: v1.random.uniform(shape), 0.0, 1.0, 0.5),
    ],
)
def test_what_is_new_may_have_the_sizes_of_what_is_fed(make, low, high, mean):
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(v1.int32, [None, 3])
        y = make(v1.shape(x))
        assert y.shape == (None, 3)
        assert y.dtype is v1.float32
        for rows in (400, 900):
            found = session.run(y, {x: np.zeros([rows, 3], np.int32)})
            assert found.shape == (rows, 3)
            assert low <= found.min() <= found.max() <= high
            assert abs(found.mean() - mean) < 0.1


def test_what_is_drawn_for_open_sizes_is_new_in_each_run():
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(v1.float32, [None])
        y = v1.random_normal(v1.shape(x))
        one, two = session.run([y, y + 0.0], {x: [1.0, 2.0]})
        assert np.array_equal(one, two)
        assert not np.array_equal(one, session.run(y, {x: [1.0, 2.0]}))
