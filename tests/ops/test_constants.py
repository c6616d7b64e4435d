"""Python numbers as operands of tensors keep their precision: none passes through a narrower dtype."""

import numpy as np
import pytest

import dualflow as df


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (df.float64, 1.41),
        (df.float64, 1e300),
        (df.float32, 1.41),
        (df.float16, 1.41),
        (df.int64, 2**62 + 1),
        (df.int64, -(2**63)),
        (df.uint64, 2**64 - 1),
        (df.complex128, 0.1 + 0.7j),
        (df.bool, True),
    ],
)
def test_pad_adds_its_constant_in_the_tensors_dtype(mode, dtype, value):
    result = mode(lambda x: df.pad(x, [[1, 0], [0, 1]], constant_values=value))(df.zeros([1, 1], dtype))
    np.testing.assert_array_equal(result, np.array([[value, value], [0, value]], dtype.dtype), strict=True)


def test_pad_takes_a_constant_known_only_at_run_time(mode):
    def padded(x, value):
        with df.GradientTape() as tape:
            tape.watch([x, value])
            y = df.pad(x, [[1, 1]], constant_values=value * 3.0)
            z = y * [1.0, 2.0, 3.0]
        slope, none = tape.gradient(z, [x, value], unconnected_gradients="zero")
        return y, slope, none

    y, slope, none = mode(padded)(df.constant([5.0], df.float64), df.constant(0.1, df.float64))
    assert y.numpy().tolist() == [0.1 * 3.0, 5.0, 0.1 * 3.0]
    assert slope.numpy().tolist() == [2.0]
    assert float(none) == 0.0


def test_numbers_that_the_dtype_does_not_hold_are_refused(mode):
    def padded(x, value):
        return mode(lambda x: df.pad(x, [[1, 1]], constant_values=value))(x)

    with pytest.raises(df.errors.DTypeError, match=r"int32 from 1\.5"):
        padded(df.constant([1]), 1.5)
    with pytest.raises(df.errors.InvalidArgumentError, match="integer 300 is outside int8"):
        padded(df.constant([1], df.int8), 300)


WIDE = df.constant([0.0, 2.0], df.float64)


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda x: df.one_hot([1], 2, 1.41, 0.1, dtype=df.float64)[0] + x * 0.0, [0.1, 1.41]),
        (lambda x: df.math.divide_no_nan(x, 0.3), [0.0, 2.0 / 0.3]),
        (lambda x: df.math.divide_no_nan(0.3, x), [0.0, 0.3 / 2.0]),
        (lambda x: df.math.xlogy(x, 0.3), [0.0, 2.0 * np.log(0.3)]),
        (lambda x: df.clip_by_value(x, 0.1, 1.41), [0.1, 1.41]),
        (lambda x: df.where(x > 1.0, 1.41, x), [0.0, 1.41]),
        (lambda x: df.range(0.1, 0.5, 0.2, dtype=df.float64) + x * 0.0, [0.1, 0.1 + 0.2]),
    ],
)
def test_python_numbers_next_to_float64_are_float64(mode, f, expected):
    np.testing.assert_allclose(mode(f)(WIDE), expected, rtol=1e-15)


@pytest.mark.parametrize("f", [df.math.divide_no_nan, df.math.xlogy, df.math.xdivy, df.math.multiply_no_nan])
def test_python_numbers_next_to_float16_are_float16(mode, f):
    x = df.constant([1.0, 0.0], df.float16)
    assert mode(lambda x: f(x, 2.0))(x).dtype is df.float16
    assert mode(lambda x: f(2.0, x))(x).dtype is df.float16


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_range_has_as_many_steps_as_fit_in_its_own_dtype(dtype):
    limits = [np.array(v, dtype) for v in (0.0, 0.3, 0.1)]
    result = df.range(*map(df.constant, limits))
    assert result.shape == [np.ceil(limits[1] / limits[2])]
    np.testing.assert_array_equal(df.function(df.range)(*map(df.constant, limits)), result)


def test_a_range_of_large_integers_is_exact(mode):
    result = mode(lambda: df.range(2**60 + 1, 2**60 + 7, 2, dtype=df.int64))()
    assert result.numpy().tolist() == [2**60 + 1, 2**60 + 3, 2**60 + 5]
