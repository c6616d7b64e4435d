"""Stateless random numbers: TensorFlow's to the bit, the same in both modes, of the right distributions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualflow as df
from dualflow.ops.random_numbers.philox import few_words, words_at

random = df.random
SEED = (1, 2)
WORDS = st.integers(0, 2**64 - 1)

# Values of TensorFlow 2.21, of the seed (1, 2)
UNIFORM = {
    "float16": [0.54296875, 0.2353515625, 0.060546875],
    "float32": [0.844060420989990234, 0.192045331001281738, 0.996223211288452148],
    "float64": [0.7524837538451801, 0.9697857725627486, 0.17592233912897481],
}
NORMAL = {
    "float32": [0.5441101, 0.20738031, 0.07356432],
    "float64": [-0.14231181, 0.74060725, -1.46904767],
}
WHOLE_RANGE = {
    "int32": [1105988140, 1738052849, -335576002],
    "uint64": [7464880146280614444, 1591045637757961278, 17389275318164050067],
}
BETWEEN = {"int32": [97, 284, 647], "int64": [928, 223, 146]}


@given(WORDS, WORDS, WORDS, st.integers(1, 9))
def test_the_words_of_few_groups_are_those_of_many(low, high, key, groups):
    places = np.arange(groups, dtype=np.uint64)
    many = words_at(places, *(np.uint64(x) for x in (low, high, key)))
    assert many.reshape(-1).tolist() == few_words(low, high, key, groups)


def test_the_words_are_those_of_the_generators_authors():
    """The known answers of Random123 for a counter and key of zeros only, and of ones only."""
    assert few_words(0, 0, 0, 1) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    ones = 2**64 - 1
    assert few_words(ones, ones, ones, 1) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]


@pytest.mark.parametrize("dtype", UNIFORM)
def test_uniform_numbers_are_tensorflows(mode, dtype):
    drawn = mode(lambda: random.stateless_uniform([3], SEED, dtype=dtype))()
    assert drawn.dtype == dtype
    assert drawn.numpy().tolist() == UNIFORM[dtype]


@pytest.mark.parametrize("dtype", WHOLE_RANGE)
def test_integers_of_the_whole_range_are_tensorflows(mode, dtype):
    drawn = mode(lambda: random.stateless_uniform([3], SEED, None, None, dtype))()
    assert drawn.numpy().tolist() == WHOLE_RANGE[dtype]


@pytest.mark.parametrize("dtype", BETWEEN)
def test_integers_are_tensorflows(mode, dtype):
    drawn = mode(lambda: random.stateless_uniform([3], SEED, -3, 1000, dtype))()
    assert drawn.numpy().tolist() == BETWEEN[dtype]


@pytest.mark.parametrize("dtype", NORMAL)
def test_normal_numbers_are_tensorflows(mode, dtype):
    drawn = mode(lambda: random.stateless_normal([3], SEED, dtype=dtype))()
    np.testing.assert_allclose(drawn, NORMAL[dtype], rtol=1e-6)


def test_truncated_normal_numbers_are_tensorflows(mode):
    drawn = mode(lambda: random.stateless_truncated_normal([3], SEED))()
    np.testing.assert_allclose(drawn, NORMAL["float32"], rtol=1e-6)


def test_classes_are_tensorflows(mode):
    odds = df.math.log([[0.2, 0.3, 0.5], [0.1, 0.8, 0.1]])
    drawn = mode(lambda: random.stateless_categorical(odds, 7, SEED))()
    assert drawn.numpy().tolist() == [[2, 2, 0, 2, 2, 2, 2], [1, 1, 1, 1, 1, 1, 1]]


def test_new_seeds_are_tensorflows(mode):
    assert mode(lambda: random.split(SEED, 2))().numpy().tolist() == [
        [1105988140, 1738052849],
        [-335576002, 370444179],
    ]
    assert mode(lambda: random.fold_in([1, 2], 3))().numpy().tolist() == [1105988140, 3]


@settings(max_examples=20, deadline=None)
@given(st.tuples(*[st.integers(-(2**31), 2**31 - 1)] * 2), st.integers(0, 70))
def test_a_seed_known_only_to_the_run_draws_the_same(seed, count):
    drawn = df.function(lambda seed: random.stateless_uniform([count], seed, None, None, df.int32))
    expected = random.stateless_uniform([count], seed, None, None, df.int32)
    np.testing.assert_array_equal(drawn(df.constant(seed)), expected)


def test_a_seed_may_be_a_list_that_contains_tensors(mode):
    draw = mode(lambda n: df.random.stateless_uniform([3], [n, 2]))
    assert draw(df.constant(1)).numpy().tolist() == df.random.stateless_uniform([3], [1, 2]).numpy().tolist()


def test_ends_may_be_lists_that_contain_tensors(mode):
    draw = mode(lambda n: df.random.stateless_uniform([2], [1, 2], [0.0, n], [n, 2.0 * n]))
    expected = df.random.stateless_uniform([2], [1, 2], [0.0, 3.0], [3.0, 6.0])
    assert draw(df.constant(3.0)).numpy().tolist() == expected.numpy().tolist()


def test_uniform_and_normal_draws_are_machine_code():
    def draws(seed):
        whole = random.stateless_uniform([9], seed, 0, 7, df.int32)
        return whole, random.stateless_uniform([3, 3], seed), random.stateless_normal([5], seed)

    concrete = df.function(draws).get_concrete_function(df.TensorSpec([2], df.int64))
    assert {part.kind for part in concrete.parts} == {"native"}


def test_numbers_that_are_drawn_again_are_a_host_call_with_a_reason():
    drawn = df.function(lambda seed: random.stateless_gamma([2], seed, 1.0))
    concrete = drawn.get_concrete_function(df.TensorSpec([2], df.int64))
    assert "numbers that do not fit are drawn again" in str(concrete.status())


def test_a_shape_and_its_rows_are_the_same_numbers():
    np.testing.assert_array_equal(
        random.stateless_uniform([2, 3], SEED).numpy().ravel(), random.stateless_uniform([6], SEED)
    )


@pytest.mark.parametrize("shape", [[], [0], [3, 0], [1]])
@pytest.mark.parametrize("dtype", [df.float16, df.float32, df.float64])
def test_draws_have_the_shape_that_is_requested(mode, shape, dtype):
    for draw in (random.stateless_uniform, random.stateless_normal, random.stateless_truncated_normal):
        drawn = mode(lambda draw=draw: draw(shape, SEED, dtype=dtype))()
        assert (drawn.shape.as_list(), drawn.dtype) == (shape, dtype)


def test_ends_and_moments_broadcast_and_have_gradients(mode):
    def gradient(low, high):
        with df.GradientTape() as tape:
            tape.watch([low, high])
            drawn = random.stateless_uniform([2, 3], SEED, low, high)
        return drawn, *tape.gradient(drawn, [low, high])

    low, high = df.constant([0.0, 1.0, 2.0]), df.constant([[10.0], [20.0]])
    drawn, to_low, to_high = mode(gradient)(low, high)
    part = random.stateless_uniform([2, 3], SEED).numpy()
    np.testing.assert_allclose(drawn, low.numpy() + part * (high.numpy() - low.numpy()), rtol=1e-6)
    np.testing.assert_allclose(to_low, (1 - part).sum(0), rtol=1e-6)
    np.testing.assert_allclose(to_high, part.sum(1, keepdims=True), rtol=1e-6)


# Distributions: means and deviations of 100,000 numbers, within 4.5 standard errors

COUNT = 100_000
MOMENTS = {
    "uniform": (lambda: random.stateless_uniform([COUNT], SEED, 2.0, 5.0), 3.5, 0.75),
    "integers": (lambda: random.stateless_uniform([COUNT], SEED, 0, 10, df.int32), 4.5, 8.25),
    "normal": (lambda: random.stateless_normal([COUNT], SEED, 1.0, 3.0), 1.0, 9.0),
    "truncated": (lambda: random.stateless_truncated_normal([COUNT], SEED), 0.0, 0.773741),
    "gamma": (lambda: random.stateless_gamma([COUNT], SEED, 2.5, 2.0), 1.25, 0.625),
    "poisson": (lambda: random.stateless_poisson([COUNT], SEED, 3.5), 3.5, 3.5),
    "binomial": (lambda: random.stateless_binomial([COUNT], SEED, 40, 0.3), 12.0, 8.4),
    "classes": (lambda: random.stateless_categorical([[0.0, 0.0]], COUNT, SEED), 0.5, 0.25),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_moments(name):
    draw, mean, variance = MOMENTS[name]
    drawn = draw().numpy().astype(float).ravel()
    assert abs(drawn.mean() - mean) < 4.5 * np.sqrt(variance / COUNT)
    squares = (drawn - mean) ** 2
    assert abs(squares.mean() - variance) <= 4.5 * np.sqrt(squares.var() / COUNT)


@pytest.mark.parametrize(
    ("low", "high"),
    [(-2, 2), (8, 9), (-9, -8.99), (0.5, 0.6), (0.1, 5), (3, np.inf), (-np.inf, np.inf), (-3, -0.1)],
)
def test_bounded_normal_numbers_follow_their_distribution(low, high):
    """The largest distance of the distribution functions, within what one of 10,000 such samples exceeds."""
    from scipy.stats import truncnorm

    draw = random.stateless_parameterized_truncated_normal
    drawn = np.sort(draw([COUNT], SEED, np.float64(1.0), 2.0, 1 + 2.0 * low, 1 + 2.0 * high).numpy())
    expected = truncnorm(low, high, loc=1, scale=2).cdf(drawn)
    distance = np.abs(expected - (np.arange(COUNT) + 0.5) / COUNT).max()
    assert distance < 2.23 / np.sqrt(COUNT)


def test_gamma_numbers_are_positive():
    drawn = random.stateless_gamma([1000], SEED, 1e-4).numpy()
    assert (drawn >= np.finfo(np.float32).tiny).all()


def test_a_shuffle_keeps_the_rows_and_depends_on_the_seed(mode):
    rows = np.arange(40).reshape(20, 2)
    shuffle = random.experimental.stateless_shuffle
    result = mode(lambda seed: shuffle(rows, seed))(df.constant(SEED)).numpy()
    assert sorted(result.tolist()) == rows.tolist()
    np.testing.assert_array_equal(result, shuffle(rows, SEED))
    assert result.tolist() != shuffle(rows, (2, 1)).numpy().tolist()
