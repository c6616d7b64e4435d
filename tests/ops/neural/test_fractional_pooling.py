"""Fractional pooling: the drawn windows, the pooled values and their gradients."""

import numpy as np
import pytest

import dualflow as df

POOLS = {"maxima": (df.nn.fractional_max_pool, np.max), "means": (df.nn.fractional_avg_pool, np.mean)}


@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize("pseudo", [False, True])
@pytest.mark.parametrize(("rows", "columns"), [(1.0, 1.5), (1.44, 1.73), (2.0, 3.5)])
def test_each_window_is_pooled(mode, name, rows, columns, pseudo, overlapping):
    pool, reduce = POOLS[name]
    x = np.random.default_rng(0).normal(size=(2, 12, 11, 3))
    run = mode(lambda x: pool(x, [1.0, rows, columns, 1.0], pseudo, overlapping))
    result, high, wide = (t.numpy() for t in run(df.constant(x)))
    assert result.shape == (2, int(12 / rows), int(11 / columns), 3)
    for sequence, size in ((high, 12), (wide, 11)):
        lengths = np.diff(sequence)
        assert (sequence[0], sequence[-1]) == (0, size)
        short = size // len(lengths)
        assert set(lengths.tolist()) <= {short, short + 1}
    for i in range(len(high) - 1):
        for j in range(len(wide) - 1):
            end = int(overlapping)
            window = x[:, high[i] : high[i + 1] + end, wide[j] : wide[j + 1] + end]
            np.testing.assert_allclose(result[:, i, j], reduce(window, axis=(1, 2)), rtol=1e-12)


@pytest.mark.parametrize("name", POOLS)
def test_a_seed_gives_the_same_windows_each_time(name):
    pool, _ = POOLS[name]
    x = df.constant(np.random.default_rng(1).normal(size=(1, 30, 30, 1)))
    one, same, other = pool(x, 1.4, seed=3), pool(x, 1.4, seed=3), pool(x, 1.4, seed=4)
    np.testing.assert_array_equal(one.row_pooling_sequence, same.row_pooling_sequence)
    assert (one.row_pooling_sequence != other.row_pooling_sequence).numpy().any()


def test_the_gradient_goes_to_the_first_maximum_or_to_all(mode):
    def gradient(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.nn.fractional_max_pool(x, 2.0).output
        return tape.gradient(y, x)

    slope = mode(gradient)(df.ones([1, 4, 4, 1])).numpy()[0, ..., 0]
    np.testing.assert_array_equal(slope, np.kron(np.ones((2, 2)), [[1, 0], [0, 0]]))
    x = df.ones([1, 4, 4, 1])
    with df.GradientTape() as tape:
        tape.watch(x)
        y = df.nn.fractional_avg_pool(x, 2.0).output
    np.testing.assert_allclose(tape.gradient(y, x), np.full((1, 4, 4, 1), 0.25))


def test_a_ratio_is_one_for_both_axes_or_one_for_each():
    x = df.ones([1, 6, 6, 1])
    shapes = [
        df.nn.fractional_max_pool(x, ratio).output.shape for ratio in (1.5, [1.5], [1.5, 2.0], [1, 1.5, 2, 1])
    ]
    assert shapes == [(1, 4, 4, 1), (1, 4, 4, 1), (1, 4, 3, 1), (1, 4, 3, 1)]
