"""Quotients, neighbours, angles, polynomials and conversions; values at the edges are TensorFlow 2.21's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dualflow as df

NAN, INF = np.nan, np.inf


def same(result, expected, dtype=None):
    np.testing.assert_array_equal(result, np.array(expected, dtype), strict=dtype is not None)


@given(x=st.integers(-128, 127), y=st.integers(-128, 127).filter(bool))
def test_a_quotient_of_integers_is_cut_off_towards_zero(x, y):
    expected = np.array(int(abs(x) // abs(y)) * (1 if (x < 0) == (y < 0) else -1)).astype(np.int8)
    same(df.truncatediv(df.constant(x, df.int8), df.constant(y, df.int8)), expected)


def test_a_quotient_of_floats_is_cut_off_towards_zero(mode):
    same(mode(df.truncatediv)(df.constant([7.0, -7, 1, 0]), df.constant([2.0, 2, 0, 0])), [3, -3, INF, NAN])


def test_no_integer_is_divided_by_zero(mode):
    with pytest.raises(df.errors.InvalidArgumentError, match="by zero"):
        mode(df.truncatediv)(df.constant([7]), df.constant([0]))


def test_the_quotient_of_zero_is_zero(mode):
    same(mode(df.math.reciprocal_no_nan)(df.constant([2.0, 0, INF, NAN])), [0.5, 0, 0, NAN])
    same(mode(df.realdiv)(df.constant([1.0]), df.constant([4.0])), [0.25])


def test_a_number_times_a_tensor_keeps_its_dtype(mode):
    same(mode(lambda x: df.scalar_mul(2, x))(df.constant([1.0, 3.0])), [2, 6], np.float32)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_next_float_is_one_unit_away(mode, dtype):
    x = np.array([1, -1, 0, INF, NAN, 3], dtype)
    towards = np.array([2, -2, -1, 0, 1, 3], dtype)
    same(mode(df.math.nextafter)(df.constant(x), df.constant(towards)), np.nextafter(x, towards), dtype)


def test_the_gradient_of_the_next_float_goes_to_the_first(mode):
    def gradient(x, y):
        with df.GradientTape() as tape:
            tape.watch([x, y])
            z = 3 * df.math.nextafter(x, y)
        return tape.gradient(z, [x, y])

    assert [g.numpy().tolist() for g in mode(gradient)(df.constant([1.0]), df.constant([2.0]))] == [[3], [0]]


@pytest.mark.parametrize("x", [[1.0, -1, 0, NAN], [1 + 1j, -1 + 0j, -1j]])
def test_angles(mode, x):
    expected = [0, np.float32(math.pi), 0, 0] if len(x) == 4 else np.angle(x)
    same(mode(df.math.angle)(df.constant(x)), expected)


def test_a_polynomial_at_several_points(mode):
    x = df.constant([2.0, 3.0])
    same(mode(lambda x: df.math.polyval([1.0, 2.0, 3.0], x))(x), [11, 18])
    same(mode(lambda x: df.math.polyval([[1.0, 2.0], [3.0, 4.0]], x))(x), [5, 10])
    same(mode(lambda x: df.math.polyval([], x))(x), [0, 0])


def test_a_sum_of_tensors(mode):
    same(mode(lambda x: df.math.accumulate_n([x, x], shape=[2]))(df.constant([1, 2])), [2, 4])


@pytest.mark.parametrize(
    ("x", "target", "expected"),
    [
        ([300.0, -5.0, 1.7], df.uint8, [255, 0, 1]),
        (np.array([300, -5]), df.uint8, [255, 0]),
        (np.array([300, -70000]), df.float16, [300, -65504]),
        (np.array([1e6, -1e10, NAN, INF]), df.float16, [65504, -65504, NAN, 65504]),
        ([INF, -INF, NAN], df.float32, [np.finfo(np.float32).max, np.finfo(np.float32).min, NAN]),
        ([INF], df.float64, [np.finfo(np.float32).max]),
        (np.array([2**31], np.uint32), df.int32, [2**31 - 1]),
        (np.array([-1], np.int8), df.uint64, [0]),
        (np.array([2**63], np.uint64), df.int64, [2**63 - 1]),
        ([1e10, -1e10, NAN], df.int32, [2**31 - 1, -(2**31), 0]),
        ([1 + 2j], df.float32, [1]),
        (np.array([1 + 2j, 3e40]), df.complex64, [1 + 2j, np.finfo(np.float32).max]),
        ([True], df.int8, [1]),
    ],
)
def test_saturate_cast_clips_to_the_range_of_the_dtype(mode, x, target, expected):
    result = mode(lambda x: df.saturate_cast(x, target))(df.constant(x))
    same(result, expected, target.dtype)


@given(x=st.integers(-(2**63), 2**63 - 1), target=st.sampled_from(["int8", "uint16", "int32", "uint64"]))
def test_saturated_integers_are_clipped(x, target):
    dtype = df.as_dtype(target)
    same(df.saturate_cast(np.int64(x), dtype), min(max(x, dtype.min), dtype.max), dtype.dtype)


@pytest.mark.parametrize(
    ("x", "target"),
    [
        (np.array([1.0, 2.0], np.float32), "int32"),
        (np.array([1.0, 2.0], np.float32), "uint8"),
        (np.array([[0, 0, 128, 63]], np.uint8), "float32"),
        (np.array([1], np.int64), "complex64"),
        (np.array([[1 + 1j]], np.complex64), "float32"),
        (np.array(1.0, np.float32), "int16"),
        (np.zeros((0, 4), np.uint8), "int32"),
    ],
)
def test_bits_are_read_as_numpy_reads_them(mode, x, target):
    narrower = np.dtype(target).itemsize < x.itemsize
    expected = (x[..., None] if narrower else x).view(target)
    expected = expected if np.dtype(target).itemsize <= x.itemsize else expected[..., 0]
    same(mode(lambda x: df.bitcast(x, target))(df.constant(x)), expected, target)
