"""Dropout by the library's numbers, by a seed alone, and by numbers of one's own."""

import numpy as np
import pytest

import dualflow as df

experimental = df.nn.experimental


def test_a_seed_alone_decides(mode):
    run = mode(lambda x, seed: experimental.stateless_dropout(x, 0.25, seed))
    x = df.ones([1000])
    one, same = run(x, df.constant([1, 2])), run(x, df.constant([1, 2]))
    np.testing.assert_array_equal(one, same)
    assert (one != run(x, df.constant([1, 3]))).numpy().any()
    assert set(np.unique(one.numpy()).tolist()) == {0.0, float(np.float32(1 / 0.75))}
    assert abs(one.numpy().mean() - 1) < 0.1


def test_numbers_below_the_rate_drop(mode):
    requests = []

    def draws(shape, dtype):
        requests.append((tuple(shape), dtype))
        return df.constant([[0.1, 0.6, 0.4, 0.5]], dtype)

    result = mode(lambda x: experimental.general_dropout(x, 0.5, draws, noise_shape=[1, None]))(
        df.ones([2, 4])
    )
    assert result.numpy().tolist() == [[0.0, 2.0, 0.0, 2.0]] * 2
    assert requests[0] == ((1, 4), df.float32)


@pytest.mark.parametrize("noise_shape", [[5, 1], [None, 1]])
def test_elements_with_one_draw_drop_together(mode, noise_shape):
    result = mode(lambda x: df.nn.dropout(x, 0.5, noise_shape=noise_shape))(df.ones([5, 100])).numpy()
    assert set(result.sum(1).tolist()) <= {0.0, 200.0}


def test_a_rate_may_be_a_tensor(mode):
    run = mode(lambda x, rate: df.nn.dropout(x, rate))
    result = run(df.ones([1000]), df.constant(0.5)).numpy()
    assert set(np.unique(result).tolist()) == {0.0, 2.0}


@pytest.mark.parametrize("rate", [0, 0.0])
def test_a_rate_of_0_drops_nothing(rate):
    assert df.nn.dropout(df.ones([3]), rate).numpy().tolist() == [1.0] * 3


@pytest.mark.parametrize("rate", [df.constant(1.0), df.Variable(1.0)], ids=["tensor", "variable"])
def test_a_tensors_rate_of_one_sets_all_to_zero(rate):
    """Schedules end there; a number 1.0 is refused, as in TensorFlow."""
    assert df.nn.dropout(df.ones([3]), rate).numpy().tolist() == [0.0] * 3
    assert df.function(df.nn.dropout)(df.ones([3]), rate).numpy().tolist() == [0.0] * 3
    with pytest.raises(ValueError, match=r"not .*1\.5"):
        df.nn.dropout(df.ones([3]), df.constant(1.5))
