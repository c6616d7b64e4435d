"""Dtype promotion: tensors promote, Python numbers adapt."""

import numpy as np
import pytest

import dualflow as df


def test_a_python_float_keeps_its_precision_next_to_float64():
    x = df.constant([1.0], df.float64)
    assert (x * 0.1).numpy()[0] == 0.1
    assert df.where(x > 0, 0.1, x).numpy()[0] == 0.1
    assert (df.constant([1.0], df.complex128) * 0.1).numpy()[0] == 0.1


@pytest.mark.parametrize(
    ("dtype", "number", "result"),
    [
        (df.float32, 2, df.float32),
        (df.float16, 0.5, df.float16),
        (df.int8, 3, df.int8),
        (df.int32, 0.5, df.float32),
        (df.int32, True, df.int32),
        (df.float32, True, df.float32),
        (df.bool, 1, df.int32),
        (df.float32, 1j, df.complex64),
        (df.float64, 1j, df.complex128),
        (df.complex64, 0.5, df.complex64),
    ],
)
def test_a_python_number_takes_the_tensors_dtype_unless_its_kind_is_higher(dtype, number, result):
    x = df.cast([1, 0], dtype)
    assert (x + number).dtype is result
    assert (number + x).dtype is result


@pytest.mark.parametrize(
    ("x", "y", "result"),
    [
        (df.float32, df.float64, df.float64),
        (df.int8, df.uint8, df.int16),
        (df.int64, df.float32, df.float32),
        (df.bool, df.int32, df.int32),
        (df.float64, df.complex64, df.complex128),
    ],
)
def test_tensors_promote_by_the_array_api_and_an_integer_takes_the_float(x, y, result):
    assert (df.cast([1], x) + df.cast([1], y)).dtype is result
    assert (df.cast([1], y) * df.cast([1], x)).dtype is result


def test_uint64_and_signed_integers_do_not_promote():
    with pytest.raises(df.errors.DTypeError, match="cast"):
        df.cast([1], df.uint64) + df.cast([1], df.int32)


@pytest.mark.parametrize(("dtype", "number"), [(df.int8, 300), (df.uint8, -1), (df.int32, 2**40)])
def test_an_integer_that_the_tensors_dtype_cannot_hold_is_refused(dtype, number):
    with pytest.raises(df.errors.InvalidArgumentError, match="outside"):
        df.cast([1], dtype) + number


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (df.int8, np.int64(300)),
        (df.int8, np.array([1, -129])),
        (df.uint8, np.int8(-1)),
        (df.uint64, np.array([-1])),
        (df.int64, np.uint64(2**63)),
        (df.int8, [300, 1]),
    ],
)
def test_numpy_integers_that_the_tensors_dtype_cannot_hold_are_refused(mode, dtype, value):
    x = df.cast([1, 1], dtype)
    for use in (
        lambda x: x + value,
        lambda x: value - x,
        lambda x: df.maximum(x, value),
        lambda x: df.where(x > 0, value, x),
        lambda x: x == value,
        lambda x: x != value,
    ):
        with pytest.raises(df.errors.InvalidArgumentError, match=f"outside of {dtype.name}"):
            mode(use)(x)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (df.int8, np.int64(100)),
        (df.uint8, np.array([255, 0])),
        (df.uint64, np.uint64(2**64 - 1)),
        (df.int8, np.zeros([0, 2], int)),
        (df.int8, np.array([True, False])),
        (df.float16, np.float64(0.5)),
        (df.float32, np.array([1, 2])),
    ],
)
def test_numpy_values_that_fit_take_the_tensors_dtype(dtype, value):
    result = df.cast([0, 0], dtype) + value
    assert result.dtype is dtype
    np.testing.assert_array_equal(result.numpy(), np.zeros(2, dtype.dtype) + value.astype(dtype.dtype))


def test_a_numpy_value_of_a_higher_kind_keeps_its_own_dtype():
    assert (df.constant([1], df.int8) + np.float64(0.5)).dtype is df.float64
    assert (df.constant([True]) + np.int64(300)).dtype is df.int64


@pytest.mark.parametrize(
    ("dtype", "quotient"),
    [(df.int32, df.float64), (df.int64, df.float64), (df.uint8, df.float32), (df.float16, df.float16)],
)
def test_true_division_of_integers_is_in_float64_or_float32_for_narrow_ones(dtype, quotient):
    x = df.cast([6, 8], dtype)
    assert (x / x).dtype is quotient
    assert (x / 2).dtype is quotient


def test_real_functions_of_integers_are_in_float32():
    assert df.sqrt([4, 9]).dtype is df.float32
    assert df.sin(np.array([1, 2])).dtype is df.float32
    assert df.sqrt(df.constant([4.0], df.float64)).dtype is df.float64


def test_arrays_keep_their_dtype_and_python_numbers_take_the_default():
    assert df.add(np.array(1), np.array(1)).dtype is df.int64
    assert df.add(1, 1).dtype is df.int32
    assert df.add(1, 2.5).dtype is df.float32
    assert df.add(np.float64(1), 1).dtype is df.float64


def test_an_array_next_to_a_tensor_takes_its_dtype():
    result = np.ones(2) + df.constant([1.0, 2.0])
    assert isinstance(result, df.Tensor)
    assert result.dtype is df.float32


def test_lists_that_hold_tensors_become_one_tensor():
    x = df.constant(3.0, df.float64)
    assert df.add([x, 1.0], 1).numpy().tolist() == [4.0, 2.0]
    assert df.constant([[x, 2.0], [0.5, x]]).dtype is df.float64


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        (df.int32, [0, 2**31 - 1, -(2**31), 2**31 - 1, -(2**31), 1]),
        (df.int64, [0, 2**63 - 1, -(2**63), 3 * 10**9, -3 * 10**9, 1]),
        (df.uint64, [0, 2**64 - 1, 0, 3 * 10**9, 0, 1]),
        (df.uint32, [0, 2**32 - 1, 0, 3 * 10**9, 0, 1]),
        (df.int16, [0, 2**15 - 1, -(2**15), 2**15 - 1, -(2**15), 1]),
        (df.uint8, [0, 255, 0, 255, 0, 1]),
    ],
)
def test_floats_beyond_an_integer_dtype_saturate_and_nan_is_zero(dtype, values):
    x = df.constant([np.nan, np.inf, -np.inf, 3e9, -3e9, 1.9], df.float64)
    assert df.cast(x, dtype).numpy().tolist() == values
