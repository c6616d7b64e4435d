"""Initializers: shapes, dtypes, ranges, variances, seeds and options."""

import math

import numpy as np
import pytest

import dualflow as df

init = df.initializers
DRAWN = {
    "RandomNormal": init.RandomNormal,
    "TruncatedNormal": init.TruncatedNormal,
    "RandomUniform": init.RandomUniform,
    "VarianceScaling": init.VarianceScaling,
    "GlorotNormal": init.GlorotNormal,
    "GlorotUniform": init.GlorotUniform,
    "HeNormal": init.HeNormal,
    "HeUniform": init.HeUniform,
    "LecunNormal": init.LecunNormal,
    "LecunUniform": init.LecunUniform,
    "Orthogonal": init.Orthogonal,
}
CUT = 0.87962566103423978  # the standard deviation of normal numbers within 2 of 0


@pytest.fixture(params=DRAWN)
def drawn(request):
    return DRAWN[request.param]


def test_fixed_values():
    assert init.Zeros()([2]).numpy().tolist() == [0.0, 0.0]
    assert init.Ones()([2], df.int32).numpy().tolist() == [1, 1]
    assert init.Ones()([1], df.bool).numpy().tolist() == [True]
    assert init.Constant(3)([2, 1]).numpy().tolist() == [[3.0], [3.0]]
    assert init.Constant([1, 2, 3, 4])([2, 2]).numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert init.Identity(2)([2, 3]).numpy().tolist() == [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]]
    assert init.Zeros()(4).shape == (4,)


def test_the_constant_of_the_main_namespace_keeps_its_own_dtype():
    assert df.constant_initializer([1, 2])([2]).dtype is df.int32
    assert df.constant_initializer(2.5)([2]).dtype is df.float32
    assert df.constant_initializer(2)([2], df.float64).numpy().tolist() == [2.0, 2.0]


@pytest.mark.parametrize("dtype", [df.float16, df.float32, df.float64])
@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 3, 4), (4, 2)])
def test_drawn_values_have_the_shape_and_the_dtype(drawn, shape, dtype):
    result = drawn()(shape, dtype)
    assert (result.shape, result.dtype) == (shape, dtype)
    assert np.isfinite(result.numpy()).all()


def test_a_seed_gives_the_same_numbers_each_time(drawn):
    one, other = drawn(seed=1), drawn(seed=2)
    np.testing.assert_array_equal(one((4, 5)), one((4, 5)))
    np.testing.assert_array_equal(one((4, 5)), drawn(seed=1)((4, 5)))
    assert (one((4, 5)) != other((4, 5))).numpy().any()
    free = drawn()
    assert (free((4, 5)) != free((4, 5))).numpy().any()


def test_the_seed_of_all_streams_makes_new_numbers_repeatable(drawn):
    df.random.set_seed(3)
    first = drawn()((4, 5))
    df.random.set_seed(3)
    np.testing.assert_array_equal(first, drawn()((4, 5)))


@pytest.mark.parametrize("distribution", ["truncated_normal", "untruncated_normal", "uniform"])
@pytest.mark.parametrize(("mode", "fan"), [("fan_in", 300), ("fan_out", 200), ("fan_avg", 250)])
def test_the_variance_is_the_scale_by_the_fan(mode, fan, distribution):
    result = init.VarianceScaling(2.0, mode, distribution, seed=1)([300, 200]).numpy()
    assert abs(result.mean()) < 0.002
    np.testing.assert_allclose(result.std(), math.sqrt(2.0 / fan), rtol=0.02)


@pytest.mark.parametrize(
    ("kind", "largest", "deviation"),
    [
        (init.GlorotUniform, math.sqrt(6 / 500), math.sqrt(2 / 500)),
        (init.GlorotNormal, 2 * math.sqrt(2 / 500) / CUT, math.sqrt(2 / 500)),
        (init.HeUniform, math.sqrt(6 / 300), math.sqrt(2 / 300)),
        (init.HeNormal, 2 * math.sqrt(2 / 300) / CUT, math.sqrt(2 / 300)),
        (init.LecunUniform, math.sqrt(3 / 300), math.sqrt(1 / 300)),
        (init.LecunNormal, 2 * math.sqrt(1 / 300) / CUT, math.sqrt(1 / 300)),
        (init.RandomNormal, math.inf, 0.05),
        (init.TruncatedNormal, 0.1, 0.05 * CUT),
        (init.RandomUniform, 0.05, 0.1 / math.sqrt(12)),
    ],
)
def test_ranges_and_deviations(kind, largest, deviation):
    result = kind(seed=1)([300, 200]).numpy()
    assert abs(result).max() <= largest * (1 + 1e-6)
    np.testing.assert_allclose(result.std(), deviation, rtol=0.02)


def test_the_window_of_a_convolution_counts_among_the_inputs():
    result = init.HeUniform(seed=1)([5, 5, 12, 2]).numpy()
    assert math.sqrt(6 / 300) * 0.95 < abs(result).max() <= math.sqrt(6 / 300)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 3, 4), (2, 2, 7)])
def test_orthogonal_rows_or_columns_are_of_one_length(shape):
    q = init.Orthogonal(gain=2.0, seed=1)(shape, df.float64).numpy().reshape(-1, shape[-1])
    square = q @ q.T if q.shape[0] <= q.shape[1] else q.T @ q
    np.testing.assert_allclose(square, 4 * np.eye(len(square)), atol=1e-12)


def test_random_integers_are_in_their_range():
    result = df.random_uniform_initializer(2, 5, seed=1)([100], df.int32).numpy()
    assert set(result.tolist()) == {2, 3, 4}


def test_a_variable_is_made_of_one():
    v = df.Variable(df.zeros_initializer()([2]), dtype=df.float32)
    assert v.numpy().tolist() == [0.0, 0.0]


def test_options_make_an_equal_initializer(drawn):
    one = drawn(seed=5)
    again = type(one).from_config(one.get_config())
    np.testing.assert_array_equal(one((2, 3)), again((2, 3)))
    assert "dtype" not in one.get_config()
    assert init.deserialize(init.serialize(one)) == one


@pytest.mark.parametrize(
    ("identifier", "kind"),
    [
        ("glorot_uniform", init.GlorotUniform),
        ("HeNormal", init.HeNormal),
        (init.Zeros, init.Zeros),
        (init.Ones(), init.Ones),
        ({"class_name": "Constant", "config": {"value": 1.0}}, init.Constant),
    ],
)
def test_names_classes_and_options_name_initializers(identifier, kind):
    assert type(init.get(identifier)) is kind


def test_functions_and_none_stay_as_they_are():
    assert init.get(None) is None
    assert init.get(df.zeros) is df.zeros


def test_short_names_are_the_same_classes():
    assert init.he_uniform is init.HeUniform
    assert df.ones_initializer is init.Ones
    assert df.random_normal_initializer is init.RandomNormal


# TensorFlow 1's


def test_version_1_draws_from_0_to_1_and_with_deviation_1():
    v1 = df.compat.v1
    uniform = v1.random_uniform_initializer(seed=1)([1000]).numpy()
    assert uniform.min() >= 0.0
    assert 0.9 < uniform.max() < 1.0
    assert 0.9 < v1.random_normal_initializer(seed=1)([1000]).numpy().std() < 1.1
    assert 0.8 < v1.truncated_normal_initializer(seed=1)([1000]).numpy().std() < 0.95
    assert v1.constant_initializer(2)([1]).dtype is df.float32


def test_version_1_takes_a_dtype_when_it_is_made():
    v1 = df.compat.v1
    assert v1.zeros_initializer(df.int32)([1]).dtype is df.int32
    assert v1.random_normal_initializer(0.0, 1.0, 1, df.float64)([1]).dtype is df.float64
    assert v1.glorot_uniform_initializer(dtype=df.float64)([1]).dtype is df.float64


def test_a_graph_draws_anew_each_time_it_initializes():
    v1 = df.compat.v1
    with v1.Graph().as_default(), v1.Session() as session:
        w = v1.get_variable("w", [4], initializer=v1.initializers.he_normal(seed=1))
        session.run(w.initializer)
        first = session.run(w)
        session.run(w.initializer)
        assert (session.run(w) != first).all()
