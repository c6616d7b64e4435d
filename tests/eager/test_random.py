"""Random numbers: seeds, streams, distributions."""

import numpy as np
import pytest

import dualflow as df


def equal(a, b):
    return np.array_equal(a.numpy(), b.numpy())


def test_a_seed_begins_all_streams_again():
    def draws():
        return [
            df.random.normal([4]),
            df.random.uniform([4]),
            df.random.normal([4], seed=5),
            df.random.shuffle(range(9)),
        ]

    df.random.set_seed(7)
    first, second = draws(), draws()
    df.random.set_seed(7)
    again = draws()
    df.random.set_seed(8)
    other = draws()
    assert all(map(equal, first, again))
    assert not any(map(equal, first, second))
    assert not any(map(equal, first, other))


def test_generators_are_independent():
    g, h = df.random.Generator.from_seed(3), df.random.Generator.from_seed(3)
    a = g.normal([5])
    df.random.normal([100])
    assert equal(a, h.normal([5]))
    g.reset_from_seed(3)
    assert equal(a, g.normal([5]))
    assert not equal(
        df.random.Generator.from_non_deterministic_state().uniform([9]),
        df.random.Generator.from_non_deterministic_state().uniform([9]),
    )


def test_split_generators_differ():
    parts = df.random.Generator.from_seed(1).split(3)
    draws = [p.normal([5]).numpy().tobytes() for p in parts]
    assert len(set(draws)) == 3


@pytest.mark.parametrize("dtype", [df.float16, df.float32, df.float64])
def test_normal_moments(dtype):
    x = df.random.Generator.from_seed(1).normal([100_000], mean=2.0, stddev=3.0, dtype=dtype)
    assert x.dtype is dtype
    assert abs(x.numpy().astype(float).mean() - 2) < 0.05
    assert abs(x.numpy().astype(float).std() - 3) < 0.05


def test_truncated_normal_stays_within_two_deviations():
    x = df.random.Generator.from_seed(1).truncated_normal([10_000], mean=1.0, stddev=0.5).numpy()
    assert x.min() >= 0.0
    assert x.max() <= 2.0


def test_uniform_is_half_open():
    g = df.random.Generator.from_seed(1)
    x = g.uniform([100_000], 2.0, 3.0).numpy()
    assert x.min() >= 2.0
    assert x.max() < 3.0
    i = g.uniform([1000], 0, 3, df.int32)
    assert i.dtype is df.int32
    assert set(i.numpy()) == {0, 1, 2}
    with pytest.raises(ValueError, match="needs maxval"):
        g.uniform([3], dtype=df.int32)


@pytest.mark.parametrize("dtype", [df.int32, df.int64, df.uint8, df.uint64])
def test_full_range_integers_use_every_bit(dtype):
    x = df.random.Generator.from_seed(1).uniform_full_int([10_000], dtype).numpy()
    info = np.iinfo(x.dtype)
    assert float(x.max()) > 0.98 * info.max
    assert float(x.min()) < info.min + 0.02 * info.max


def test_stateless_draws_depend_on_the_seed_alone():
    a = df.random.stateless_normal([4], seed=[1, 2])
    df.random.normal([3])
    assert equal(a, df.random.stateless_normal([4], seed=df.constant([1, 2])))
    assert not equal(a, df.random.stateless_normal([4], seed=[2, 1]))
    assert equal(df.random.stateless_uniform([4], seed=(0, 1)), df.random.stateless_uniform([4], seed=(0, 1)))


def test_shuffle_keeps_the_rows():
    x = np.arange(20).reshape(10, 2)
    y = df.random.shuffle(df.constant(x), seed=1).numpy()
    assert sorted(map(tuple, y)) == list(map(tuple, x))


def test_categorical_follows_the_odds():
    df.random.set_seed(0)
    x = df.random.categorical(df.math.log([[0.2, 0.8]]), 10_000).numpy()
    assert x.shape == (1, 10_000)
    assert abs(x.mean() - 0.8) < 0.03


def test_gradients_flow_to_mean_and_deviation():
    mean, deviation = df.Variable(1.0), df.Variable(2.0)
    g = df.random.Generator.from_seed(1)
    with df.GradientTape() as tape:
        x = g.normal([50], mean, deviation)
        y = df.reduce_sum(x)
    dm, dd = tape.gradient(y, [mean, deviation])
    assert dm.numpy() == 50
    np.testing.assert_allclose(dd.numpy(), ((x - 1.0) / 2.0).numpy().sum(), rtol=1e-4)


@pytest.mark.parametrize("wrong", [1.5, "x", [0.5]])
def test_seeds_are_integers(wrong):
    with pytest.raises((ValueError, TypeError)):
        df.random.Generator.from_seed(wrong)


@pytest.mark.parametrize("dtype", [df.float16, df.float32, df.float64])
@pytest.mark.parametrize("alpha", [0.0, 1e-8, 1e-4, 0.01])
def test_gamma_numbers_of_small_shapes_are_positive(dtype, alpha):
    for f in (df.random.gamma, df.function(df.random.gamma)):
        drawn = np.asarray(f([2000], alpha, dtype=dtype))
        assert (drawn >= np.finfo(dtype.dtype).tiny).all()
    assert (np.asarray(df.random.gamma([2000], df.cast(alpha, dtype), beta=df.cast(1e4, dtype))) > 0).all()
