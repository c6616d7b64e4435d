"""Means of integers, norms, and reductions of lists: the same now and compiled."""

import numpy as np
import pytest

import dualflow as df

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("count", [1, 200, 300, 70_000])
def test_the_mean_of_equal_integers_is_that_integer_however_many_there_are(mode, dtype, count):
    x = df.constant(np.full(count, 3, dtype))
    found = mode(df.reduce_mean)(x)
    assert found.dtype == dtype
    assert int(found) == 3


@pytest.mark.parametrize("dtype", [name for name in INTEGERS if "64" not in name])
def test_the_mean_of_the_ends_of_a_narrow_dtype_does_not_wrap(mode, dtype):
    ends = np.iinfo(dtype)
    for x in ([ends.max, ends.max], [ends.min, ends.min, ends.min + 1], [ends.min, ends.max]):
        wanted = int(sum(x) / len(x))
        assert int(mode(df.reduce_mean)(df.constant(np.array(x, dtype)))) == wanted


def test_the_mean_of_wide_integers_is_not_rounded_to_a_float(mode):
    x = df.constant(np.full(2, 2**53 + 1))
    assert int(mode(df.reduce_mean)(x)) == 2**53 + 1


def test_the_mean_of_integers_is_cut_off_towards_zero(mode):
    assert int(mode(df.reduce_mean)(df.constant([-1, -2]))) == -1
    assert int(mode(df.reduce_mean)(df.constant([1, 2]))) == 1


def test_the_mean_of_no_integers_is_zero(mode):
    rows = mode(lambda x: df.reduce_mean(x, axis=0))
    assert rows(df.zeros([0, 2], df.int8)).numpy().tolist() == [0, 0]


def test_the_mean_of_integers_over_an_axis_whose_size_only_the_run_knows():
    mean = df.function(lambda x: df.reduce_mean(x, 0), input_signature=[df.TensorSpec([None, 2], df.int8)])
    assert mean(df.fill([300, 2], df.constant(-3, df.int8))).numpy().tolist() == [-3, -3]
    assert mean(df.zeros([0, 2], df.int8)).numpy().tolist() == [0, 0]


@pytest.mark.parametrize("reduce", [df.reduce_sum, df.reduce_mean, df.reduce_max, df.reduce_variance])
def test_a_list_of_tensors_is_reduced_as_their_stack(mode, reduce):
    a, b = df.constant([1.0, 2.0]), df.constant([3.0, 7.0])
    found = mode(lambda a, b: reduce([a, b], axis=0))(a, b)
    np.testing.assert_array_equal(found, reduce(df.stack([a, b]), axis=0))
