"""Casts of floats that an integer dtype can't hold: its nearest number, in both modes and every lane."""

import math

import numpy as np
import pytest

import dualflow as df

FLOATS = ("float16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
ENDS = [
    sign * 2.0**bits + near
    for bits in (7, 8, 15, 16, 31, 32, 63, 64)
    for sign in (1, -1)
    for near in (-1, 0, 1)
]
VALUES = [math.nan, math.inf, -math.inf, 1e20, -1e20, 0.0, -0.0, 0.9, -0.9, 300.7, -300.7, *ENDS]


def nearest(x, dtype):
    """The number of ``dtype`` that is nearest to the whole part of ``x``."""
    ends = np.iinfo(dtype)
    if math.isnan(x):
        return 0
    return ends.max if x == math.inf else ends.min if x == -math.inf else min(max(int(x), ends.min), ends.max)


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("target", INTEGERS)
def test_casts_clip_to_the_range_and_nan_becomes_zero(mode, source, target):
    with np.errstate(all="ignore"):
        x = np.array(VALUES).astype(source)
    expected = [nearest(float(v), target) for v in x]
    f = mode(lambda x: df.cast(x, target))
    assert f(df.constant(x)).numpy().tolist() == expected
    assert [f(df.constant(v)).numpy().item() for v in x[:12]] == expected[:12]
    assert f(df.constant(np.tile(x, (3, 1)).T)).numpy().T.tolist() == [expected] * 3


@pytest.mark.parametrize("source", FLOATS)
def test_a_bool_is_whether_it_is_not_zero(mode, source):
    x = df.cast([math.nan, math.inf, 0.0, -0.0, 0.5, -7.0], source)
    assert mode(lambda x: df.cast(x, df.bool))(x).numpy().tolist() == [True, True, False, False, True, True]


@pytest.mark.parametrize("target", ["int32", "uint8", "float32", "bool"])
def test_of_complex_numbers_the_real_part_is_cast(mode, target):
    z = np.array([1.5 + 2j, 3e9 - 1j, complex(np.nan, 0), 1j, -7.25])
    result = mode(lambda z: df.cast(z, target))(df.constant(z))
    np.testing.assert_array_equal(result, df.cast(z.real, target))


def test_integers_wrap(mode):
    x = df.constant([300, -1, 2**31 - 1])
    assert mode(lambda x: df.cast(x, df.uint8))(x).numpy().tolist() == [44, 255, 255]
    assert mode(lambda x: df.cast(x, df.int8))(x).numpy().tolist() == [44, -1, -1]
