"""Shapes, joins, paddings and new tensors are NumPy's."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import dualflow as df

ARRAYS = hnp.arrays(
    np.float32, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4), elements=st.just(1.0)
)


def numbered(array):
    """Distinct values in the array's shape."""
    return np.arange(array.size, dtype=np.float32).reshape(array.shape)


@given(ARRAYS, st.data())
@settings(deadline=None)
def test_transpose(array, data):
    x = numbered(array)
    perm = data.draw(st.permutations(range(x.ndim)))
    np.testing.assert_array_equal(df.transpose(x, perm), x.transpose(perm))
    np.testing.assert_array_equal(df.transpose(x), x.T)


@given(ARRAYS)
@settings(deadline=None)
def test_reshape_with_a_dynamic_size(array):
    x = numbered(array)
    np.testing.assert_array_equal(df.reshape(x, [-1]) if x.size else df.reshape(x, [0]), x.reshape(x.size))
    np.testing.assert_array_equal(df.reshape(x, x.shape), x)


@given(ARRAYS, st.data())
@settings(deadline=None)
def test_expand_dims_and_squeeze_undo_each_other(array, data):
    x = numbered(array)
    axis = data.draw(st.integers(-x.ndim - 1, x.ndim))
    wide = df.expand_dims(x, axis)
    np.testing.assert_array_equal(wide, np.expand_dims(x, axis))
    np.testing.assert_array_equal(df.squeeze(wide, axis), x)
    np.testing.assert_array_equal(df.squeeze(wide), np.squeeze(x))


@given(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=3))
@settings(deadline=None)
def test_broadcast_to(shapes):
    x = np.arange(np.prod(shapes.input_shapes[0]), dtype=np.float32).reshape(shapes.input_shapes[0])
    np.testing.assert_array_equal(
        df.broadcast_to(x, shapes.result_shape), np.broadcast_to(x, shapes.result_shape)
    )


@given(ARRAYS.filter(lambda a: a.ndim), st.data())
@settings(deadline=None)
def test_concat_and_split_undo_each_other(array, data):
    x = numbered(array)
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    joined = df.concat([x, x + 1, x], axis)
    np.testing.assert_array_equal(joined, np.concatenate([x, x + 1, x], axis))
    for part, expected in zip(df.split(joined, 3, axis), [x, x + 1, x], strict=True):
        np.testing.assert_array_equal(part, expected)


@given(ARRAYS, st.data())
@settings(deadline=None)
def test_stack_and_unstack_undo_each_other(array, data):
    x = numbered(array)
    axis = data.draw(st.integers(-x.ndim - 1, x.ndim))
    piled = df.stack([x, x + 1], axis)
    np.testing.assert_array_equal(piled, np.stack([x, x + 1], axis))
    np.testing.assert_array_equal(df.unstack(piled, axis=axis), [x, x + 1])


@given(ARRAYS, st.data(), st.sampled_from(["CONSTANT", "REFLECT", "SYMMETRIC"]))
@settings(deadline=None)
def test_pad(array, data, mode):
    x = numbered(array)
    most = {"CONSTANT": [3] * x.ndim, "REFLECT": [d - 1 for d in x.shape], "SYMMETRIC": list(x.shape)}[mode]
    pairs = [[data.draw(st.integers(0, max(0, min(m, 3)))) for _ in range(2)] for m in most]
    if mode != "CONSTANT" and 0 in x.shape:
        return
    padded = df.pad(x, np.reshape(np.array(pairs, int), (x.ndim, 2)), mode)
    np.testing.assert_array_equal(padded, np.pad(x, pairs, mode.lower()) if x.ndim else x)


@given(ARRAYS, st.data())
@settings(deadline=None)
def test_tile_reverse_and_roll(array, data):
    x = numbered(array)
    times = [data.draw(st.integers(0, 3)) for _ in x.shape]
    np.testing.assert_array_equal(df.tile(x, times), np.tile(x, times))
    if x.ndim:
        axis, shift = data.draw(st.integers(-x.ndim, x.ndim - 1)), data.draw(st.integers(-5, 5))
        np.testing.assert_array_equal(df.reverse(x, [axis]), np.flip(x, axis))
        np.testing.assert_array_equal(df.roll(x, shift, axis), np.roll(x, shift, axis))


def test_roll_by_what_is_known_at_run_time():
    traced = df.function(
        lambda x, shift: df.roll(x, [shift, 1], [0, -1]),
        input_signature=[df.TensorSpec([None, None]), df.TensorSpec([], df.int32)],
    )
    for shape, shift in (((3, 4), 2), ((5, 2), -7), ((3, 4), 0), ((0, 2), 1)):
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        np.testing.assert_array_equal(traced(x, shift), np.roll(x, (shift, 1), (0, -1)))


def test_the_gradient_of_roll_rolls_back():
    @df.function
    def gradient(x, shift, g):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.roll(x, shift, 0)
        return tape.gradient(y, x, output_gradients=g)

    g = np.arange(5.0)
    np.testing.assert_array_equal(gradient(df.zeros([5], df.float64), df.constant(2), g), np.roll(g, -2))


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_cumsum_is_a_triangular_product(exclusive, reverse):
    x = np.arange(1.0, 6.0)
    lower = np.tril(np.ones((5, 5)), -1 if exclusive else 0)
    np.testing.assert_array_equal(
        df.cumsum(x, exclusive=exclusive, reverse=reverse), (lower.T if reverse else lower) @ x
    )


@pytest.mark.parametrize("descending", [False, True])
def test_sorting_keeps_the_order_of_equals(descending):
    x = np.array([[3, 1, 2, 1], [2, 2, 9, 2]])
    direction = "DESCENDING" if descending else "ASCENDING"
    order = sorted(range(4), key=lambda i: (-1 if descending else 1) * x[1, i])
    assert df.argsort(x, direction=direction).numpy()[1].tolist() == order
    expected = np.sort(x, axis=1)[:, ::-1] if descending else np.sort(x, axis=1)
    np.testing.assert_array_equal(df.sort(x, direction=direction), expected)
    np.testing.assert_array_equal(df.sort(x, axis=0), np.sort(x, axis=0))


def test_conjugate_transposes():
    x = np.array([[1 + 2j, 3 - 1j], [0, 4j]])
    for result in (df.transpose(x, conjugate=True), df.linalg.matrix_transpose(x, conjugate=True)):
        np.testing.assert_array_equal(result, x.conj().T)


def test_a_sequence_mask_is_as_wide_as_the_longest_sequence():
    lengths = df.constant([[1], [3]])
    assert df.sequence_mask(lengths).numpy().tolist() == [[[True, False, False]], [[True, True, True]]]
    floats = df.function(lambda: df.sequence_mask([1, 2], dtype=df.float32))()
    assert floats.numpy().tolist() == [[1.0, 0.0], [1.0, 1.0]]
    for short in ([0, -2], df.zeros([2], df.int32)):
        assert df.sequence_mask(short).shape == (2, 0)
    assert df.sequence_mask(df.zeros([0], df.int32)).shape == (0, 0)


def test_sizes_and_positions_have_the_dtype_that_is_requested():
    for out_type, dtype in ((None, df.int32), (df.int64, df.int64)):
        assert df.shape([1], out_type).dtype is df.size([1], out_type).dtype is dtype
    assert df.math.top_k([1, 2], index_type=df.int64).indices.dtype is df.int64


def test_top_k_gives_the_largest_first_and_where_they_were():
    values, indices = df.math.top_k([[1.0, 9.0, 9.0, 5.0]], k=3)
    assert values.numpy().tolist() == [[9.0, 9.0, 5.0]]
    assert indices.numpy().tolist() == [[1, 2, 3]]
    assert indices.dtype is df.int32


@pytest.mark.parametrize("args", [(5,), (2, 9, 3), (9, 2, -3), (0, 1, 0.25), (3, 3), (5, 2), (1.5, 4.0)])
def test_range_is_arange(args):
    result = df.range(*args)
    np.testing.assert_array_equal(result, np.arange(*args))
    assert result.dtype is (df.float32 if any(isinstance(a, float) for a in args) else df.int32)


def test_linspace_includes_both_ends_exactly():
    result = df.linspace(0.1, 0.7, 7).numpy()
    np.testing.assert_allclose(result, np.linspace(0.1, 0.7, 7), rtol=1e-6)
    assert result[0] == np.float32(0.1)
    assert result[-1] == np.float32(0.7)
    assert df.linspace([0.0, 10.0], [1.0, 20.0], 3, axis=-1).numpy().tolist() == [[0, 0.5, 1], [10, 15, 20]]


def test_new_tensors():
    assert df.zeros([2, 3]).numpy().tolist() == [[0.0] * 3] * 2
    assert df.ones((), df.int8).dtype is df.int8
    assert df.fill([2], 7).dtype is df.int32
    assert df.zeros_like(df.ones([2], df.int64)).dtype is df.int64
    assert df.ones_like([1, 2], dtype=df.bool).numpy().tolist() == [True, True]
    np.testing.assert_array_equal(df.eye(2, 3, batch_shape=[2]), np.broadcast_to(np.eye(2, 3), (2, 2, 3)))


def test_one_hot_rows():
    assert df.one_hot([0, 2, -1, 5], 3).numpy().tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]]
    assert df.one_hot([1], 2, on_value=5, off_value=-1).numpy().tolist() == [[-1, 5]]
    assert df.one_hot([0, 1], 3, axis=0).numpy().tolist() == [[1, 0], [0, 1], [0, 0]]
    assert df.one_hot([0], 2, dtype=df.int64).dtype is df.int64
    assert df.one_hot([], 2).shape == (0, 2)


def test_shape_size_and_rank_are_int32_tensors():
    x = df.zeros([2, 0, 3])
    assert df.shape(x).numpy().tolist() == [2, 0, 3]
    assert int(df.size(x)) == 0
    assert int(df.rank(x)) == 3
    assert {df.shape(x).dtype, df.size(x).dtype, df.rank(x).dtype} == {df.int32}
    assert df.shape(x, out_type=df.int64).dtype is df.int64


def test_shapes_may_be_tensors_or_hold_them():
    x = df.range(6)
    assert df.reshape(x, df.constant([2, 3])).shape == (2, 3)
    assert df.reshape(x, [df.shape(x)[0] // 2, -1]).shape == (3, 2)
    assert df.zeros(df.shape(x)).shape == (6,)


def test_boolean_mask_on_a_later_axis():
    x = np.arange(24).reshape(2, 3, 4)
    mask = np.array([True, False, True])
    np.testing.assert_array_equal(df.boolean_mask(x, mask, axis=1), x[:, mask])


def test_diagonals_and_bands():
    x = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(df.linalg.diag_part(x), np.diagonal(x, axis1=1, axis2=2))
    np.testing.assert_array_equal(df.linalg.trace(x), np.trace(x, axis1=1, axis2=2))
    np.testing.assert_array_equal(df.linalg.diag([1.0, 2.0]), np.diag([1.0, 2.0]))
    np.testing.assert_array_equal(df.linalg.band_part(x, -1, 0), np.tril(x))
    np.testing.assert_array_equal(df.linalg.band_part(x, 0, 1), np.tril(np.triu(x), 1))


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("sizes", [(3,), (2, 3), (2, 3, 4)])
def test_meshgrid(indexing, sizes):
    vectors = [np.arange(float(n)) for n in sizes]
    for result, expected in zip(
        df.meshgrid(*vectors, indexing=indexing), np.meshgrid(*vectors, indexing=indexing), strict=True
    ):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("paddings", [[[1, 2], [3, 0]], [[0, 0], [1, 1]], [[2, 0], [0, 0]], [[0, 0], [0, 0]]])
@pytest.mark.parametrize("shape", [(None, 1000), (None, None), (60, None)], ids=str)
def test_pad_around_axes_of_dynamic_size(shape, paddings):
    traced = df.function(
        lambda x: df.pad(x, paddings, constant_values=7.0), [df.TensorSpec(shape, df.float64)]
    )
    for n in (2, 0, 1, 300):
        x = np.random.default_rng(n).standard_normal([n if size is None else size for size in shape])
        np.testing.assert_array_equal(traced(x), np.pad(x, paddings, constant_values=7.0))


@pytest.mark.llvm
def test_the_inside_of_a_large_padded_array_of_dynamic_size_is_written_once():
    def padded(x):
        return df.pad(x, [[1, 2], [3, 0]])

    x = df.ones([300, 1000])
    static, dynamic = df.function(padded), df.function(padded, [df.TensorSpec([None, 1000])])
    for function in (static, dynamic):
        function(x)
    kernels = [re.findall(r"\d+ kernels", function.status()) for function in (static, dynamic)]
    assert kernels[0] == kernels[1]


@pytest.mark.parametrize("repeats", [0, 1, 3])
@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_repeat_by_a_number_along_axes_of_dynamic_size(repeats, axis):
    specs = [df.TensorSpec([None, None, 2], df.float64)]
    traced = df.function(lambda x: df.repeat(x, repeats, axis), input_signature=specs)
    for n in (2, 0, 1, 300):
        x = np.arange(n * 6.0).reshape(n, 3, 2)
        np.testing.assert_array_equal(traced(x), np.repeat(x, repeats, axis))


@pytest.mark.parametrize("shift", [0, 1, -1, 4, -1000])
def test_roll_along_an_axis_of_dynamic_size(shift):
    traced = df.function(
        lambda x: df.roll(x, shift, 0), input_signature=[df.TensorSpec([None, 2], df.float64)]
    )
    for n in (2, 0, 1, 5, 300):
        x = np.arange(n * 2.0).reshape(n, 2)
        np.testing.assert_array_equal(traced(x), np.roll(x, shift, 0))


@pytest.mark.parametrize(("repeats", "axis"), [(2, None), (2, 1), ([1, 0, 3], 1), ([2, 1], 0)])
def test_repeat(repeats, axis):
    x = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(df.repeat(x, repeats, axis), np.repeat(x, repeats, axis))


def test_a_part_by_begin_and_size_lies_inside():
    x = np.arange(24).reshape(2, 3, 4)
    np.testing.assert_array_equal(df.slice(x, [1, 0, 2], [1, -1, 2]), x[1:2, :, 2:4])
    with pytest.raises(df.errors.InvalidArgumentError, match="leave shape"):
        df.slice(x, [0, 2, 0], [1, 2, 1])


def test_ensure_shape_passes_what_fits():
    assert df.ensure_shape(df.zeros([2, 3]), [None, 3]).shape == (2, 3)
    with pytest.raises(df.errors.InvalidArgumentError, match=r"should have shape \(None, 4\)"):
        df.ensure_shape(df.zeros([2, 3]), [None, 4])
