"""``x[key]`` of integers and slices is NumPy's, forward and backward."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import dualflow as df

SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=4)


@st.composite
def array_and_key(draw):
    shape = draw(SHAPES)
    key = draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))
    return np.arange(np.prod(shape), dtype=np.float64).reshape(shape), key


@given(array_and_key())
@settings(deadline=None)
def test_basic_indices_are_numpys(case):
    array, key = case
    np.testing.assert_array_equal(df.constant(array)[key], array[key])


@given(array_and_key())
@settings(deadline=None)
def test_the_gradient_fills_the_slots_that_were_read(case):
    array, key = case
    x = df.constant(array)
    with df.GradientTape() as tape:
        tape.watch(x)
        y = x[key]
    g = np.cos(np.arange(y.shape.num_elements(), dtype=np.float64)).reshape(y.shape)
    expected = np.zeros_like(array)
    expected[key] = g
    np.testing.assert_array_equal(tape.gradient(y, x, output_gradients=df.constant(g)), expected)


X = df.constant(np.arange(12.0).reshape(3, 4))


KEYS = [1, (1, 2), slice(1, None), (..., None), (slice(None, None, -1), 2), ..., None]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("held", [X, df.Variable(X)], ids=["tensor", "variable"])
def test_a_part_is_a_view_that_nothing_can_write_to(held, key):
    part = held[key]
    assert isinstance(part, df.Tensor)
    assert part.shape == np.asarray(X)[key].shape
    array = np.asarray(part)
    np.testing.assert_array_equal(array, np.asarray(X)[key])
    assert np.shares_memory(array, np.asarray(held[...]))
    assert not array.flags.writeable


def test_a_list_with_a_slice_or_a_new_axis_is_a_tuple():
    x = df.constant([[1, 2, 3]])
    assert x[[0, slice(1, None)]].numpy().tolist() == [2, 3]
    assert x[[None, ..., 0]].numpy().tolist() == [[1]]


@pytest.mark.parametrize("dtype", [df.bfloat16, df.string, df.complex64, df.bool], ids=str)
def test_parts_keep_the_dtype(dtype):
    x = df.fill([2, 3], b"a") if dtype is df.string else df.cast(df.ones([2, 3]), dtype)
    for part in (x[0], x[0, 1], x[:, ::2], x[..., None]):
        assert part.dtype is dtype
        assert (part == x[0, 0]).numpy().all()


@pytest.mark.parametrize("key", [0, (slice(1, 3), None), (..., -1)])
def test_a_part_of_what_is_not_watched_is_not_recorded(key):
    x, y = df.constant(X), df.constant(2.0, X.dtype)
    with df.GradientTape(persistent=True) as tape:
        tape.watch(y)
        z = df.reduce_sum(x[key] * y)
    np.testing.assert_allclose(tape.gradient(z, y), np.asarray(X)[key].sum())
    assert tape.gradient(z, x) is None


@pytest.mark.parametrize("index", [df.constant(1), np.int64(1), np.array(1), df.constant(-2, df.int64)])
def test_a_scalar_integer_tensor_or_array_is_an_index(index):
    np.testing.assert_array_equal(X[index], np.asarray(X)[1])


def test_slice_bounds_may_be_scalar_tensors():
    np.testing.assert_array_equal(X[df.constant(1) : df.constant(3)], np.asarray(X)[1:3])


def test_a_mask_picks_the_elements_where_it_holds():
    np.testing.assert_array_equal(X[X > 4], np.arange(5.0, 12.0))
    np.testing.assert_array_equal(X[np.array([True, False, True])], np.asarray(X)[[0, 2]])
    np.testing.assert_array_equal(X[[True, False, True]], np.asarray(X)[[0, 2]])


@pytest.mark.parametrize("key", [3, -4, (0, 4), (slice(None), -5)])
def test_an_integer_outside_its_axis_is_an_invalid_argument_and_an_index_error(key):
    with pytest.raises(df.errors.InvalidArgumentError, match="out of range"):
        X[key]
    with pytest.raises(IndexError):
        X[key]


@pytest.mark.parametrize("key", [1.0, df.constant(1.0), "a", {}, object()])
def test_other_keys_are_refused(key):
    with pytest.raises(TypeError, match=r"index is made of integers|is no index"):
        X[key]


def test_too_many_indices_and_a_step_of_zero_are_invalid_arguments():
    with pytest.raises(df.errors.InvalidArgumentError, match="3 indices"):
        X[0, 0, 0]
    with pytest.raises(df.errors.InvalidArgumentError, match="step"):
        X[::0]


def test_tensors_do_not_change_in_place():
    with pytest.raises(TypeError, match="tensor_scatter_nd_update"):
        X[0] = 1.0


@given(
    hnp.arrays(
        np.float64,
        hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4),
        elements=st.floats(-9, 9),
    ),
    st.data(),
)
@settings(deadline=None)
def test_gather_is_take_and_its_gradient_adds_up(array, data):
    axis = data.draw(st.integers(-array.ndim, array.ndim - 1))
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3))
    indices = data.draw(hnp.arrays(np.int32, shape, elements=st.integers(0, array.shape[axis] - 1)))
    x = df.constant(array)
    with df.GradientTape() as tape:
        tape.watch(x)
        y = df.gather(x, indices, axis=axis)
    np.testing.assert_array_equal(y, np.take(array, indices, axis))
    counts = np.bincount(indices.ravel(), minlength=array.shape[axis]).astype(float)
    along = [1] * array.ndim
    along[axis] = -1
    np.testing.assert_array_equal(tape.gradient(y, x), np.broadcast_to(counts.reshape(along), array.shape))


@pytest.mark.parametrize("indices", [[3], [-1], [[0, 7]]])
def test_gather_outside_the_axis_names_the_index(indices):
    with pytest.raises(
        df.errors.InvalidArgumentError, match=f"index {np.ravel(indices)[-1]} is out of range"
    ):
        df.gather(X, indices)


def test_where_alone_gives_the_positions_of_what_holds():
    assert df.where(X > 9).numpy().tolist() == [[2, 2], [2, 3]]
    assert df.where([0, 3, 0, 1]).numpy().tolist() == [[1], [3]]
    assert df.where([False]).numpy().shape == (0, 1)


def test_scattered_updates_land_or_add_up_where_they_are_named():
    assert df.scatter_nd([[1], [3], [1]], [1, 2, 10], [4]).numpy().tolist() == [0, 11, 0, 2]
    assert df.tensor_scatter_nd_update([1, 2, 3], [[1]], [20]).numpy().tolist() == [1, 20, 3]
    assert df.tensor_scatter_nd_add([1, 2, 3], [[1], [1]], [20, 30]).numpy().tolist() == [1, 52, 3]
    assert df.gather_nd(X, [[2, 3], [0, 1]]).numpy().tolist() == [11.0, 1.0]
    with pytest.raises(df.errors.InvalidArgumentError, match="out of range"):
        df.gather_nd(X, [[3, 0]])
