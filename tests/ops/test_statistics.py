"""Means of integers, norms, and reductions of lists: the same now and compiled."""

import numpy as np
import pytest

import dualflow as df

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("count", [1, 200, 300, 70_000])
def test_the_mean_of_equal_integers_is_that_integer_however_many_there_are(mode, dtype, count):
    x = df.constant(np.full(count, 3, dtype))
    result = mode(df.reduce_mean)(x)
    assert result.dtype == dtype
    assert int(result) == 3


@pytest.mark.parametrize("dtype", [name for name in INTEGERS if "64" not in name])
def test_the_mean_of_the_ends_of_a_narrow_dtype_does_not_wrap(mode, dtype):
    ends = np.iinfo(dtype)
    for x in ([ends.max, ends.max], [ends.min, ends.min, ends.min + 1], [ends.min, ends.max]):
        expected = int(sum(x) / len(x))
        assert int(mode(df.reduce_mean)(df.constant(np.array(x, dtype)))) == expected


def test_the_mean_of_wide_integers_is_not_rounded_to_a_float(mode):
    x = df.constant(np.full(2, 2**53 + 1))
    assert int(mode(df.reduce_mean)(x)) == 2**53 + 1


def test_the_mean_of_integers_is_cut_off_towards_zero(mode):
    assert int(mode(df.reduce_mean)(df.constant([-1, -2]))) == -1
    assert int(mode(df.reduce_mean)(df.constant([1, 2]))) == 1


def test_the_mean_of_no_integers_is_zero(mode):
    rows = mode(lambda x: df.reduce_mean(x, axis=0))
    assert rows(df.zeros([0, 2], df.int8)).numpy().tolist() == [0, 0]


def test_the_mean_of_integers_over_an_axis_whose_size_only_the_run_determines():
    mean = df.function(lambda x: df.reduce_mean(x, 0), input_signature=[df.TensorSpec([None, 2], df.int8)])
    assert mean(df.fill([300, 2], df.constant(-3, df.int8))).numpy().tolist() == [-3, -3]
    assert mean(df.zeros([0, 2], df.int8)).numpy().tolist() == [0, 0]


@pytest.mark.parametrize("reduce", [df.reduce_sum, df.reduce_mean, df.reduce_max, df.reduce_variance])
def test_a_list_of_tensors_is_reduced_as_their_stack(mode, reduce):
    a, b = df.constant([1.0, 2.0]), df.constant([3.0, 7.0])
    result = mode(lambda a, b: reduce([a, b], axis=0))(a, b)
    np.testing.assert_array_equal(result, reduce(df.stack([a, b]), axis=0))


# norms

MATRICES = np.random.default_rng(0).normal(size=(2, 3, 4))
COMPLEX = MATRICES + 1j * np.random.default_rng(1).normal(size=(2, 3, 4))


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [(-2, -1), (0, 2), (2, 0), [1, 0]])
@pytest.mark.parametrize("order", ["fro", 1, 2, np.inf])
@pytest.mark.parametrize("x", [MATRICES, COMPLEX, MATRICES.astype(np.float32)], ids=lambda x: x.dtype.name)
def test_norms_of_matrices(mode, x, order, axis, keepdims):
    result = mode(lambda x: df.norm(x, order, axis=axis, keepdims=keepdims))(df.constant(x))
    expected = np.linalg.norm(x, order, axis=tuple(axis), keepdims=keepdims)
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(result, expected, rtol=1e-6)


@pytest.mark.parametrize("order", [1, 2, 3, 0.5, np.inf])
@pytest.mark.parametrize("axis", [0, -1, None])
def test_norms_of_vectors(mode, order, axis):
    x = COMPLEX if axis is not None else COMPLEX.ravel()
    result = mode(lambda x: df.norm(x, order, axis=axis))(df.constant(x))
    np.testing.assert_allclose(result, np.linalg.norm(x, order, axis=axis))


def test_the_euclidean_norm_of_matrices_is_that_of_their_elements(mode):
    result = mode(lambda x: df.norm(x, axis=(1, 2)))(df.constant(MATRICES))
    np.testing.assert_allclose(result, np.linalg.norm(MATRICES.reshape(2, 12), axis=1))


@pytest.mark.parametrize(
    ("order", "axis"), [("fro", None), ("fro", 1), (-1, 1), (3, (0, 1)), ("nuc", (0, 1)), (1, (0, 1, 2))]
)
def test_norms_that_do_not_exist_are_refused(order, axis):
    with pytest.raises(df.errors.InvalidArgumentError, match="norm's"):
        df.norm(MATRICES, order, axis=axis)


@pytest.mark.parametrize("order", ["fro", 1, 2, np.inf])
@pytest.mark.parametrize("x", [MATRICES, COMPLEX], ids=lambda x: x.dtype.name)
def test_gradients_of_matrix_norms_point_uphill(mode, x, order):
    def slope(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.norm(x, order, axis=(1, 2))
        return tape.gradient(y, x)

    gradient = np.asarray(mode(slope)(df.constant(x)))
    along = np.cos(np.arange(x.size) + 1.0).reshape(x.shape) * (1 + 0.5j if x.dtype.kind == "c" else 1)
    there, back = (np.linalg.norm(x + s * 1e-6 * along, order, axis=(1, 2)).sum() for s in (1, -1))
    np.testing.assert_allclose(np.sum((np.conj(gradient) * along).real), (there - back) / 2e-6, rtol=1e-5)


def test_equal_singular_values_share_the_gradient_of_the_largest(mode):
    def slope(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.norm(x, 2, axis=(0, 1))
        return tape.gradient(y, x)

    np.testing.assert_allclose(mode(slope)(df.eye(2)), [[0.5, 0.0], [0.0, 0.5]], atol=1e-7)


def test_the_second_gradient_of_the_largest_singular_value():
    def slope(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.norm(x, 2, axis=(0, 1))
        return tape.gradient(y, x)

    x, along = df.constant(MATRICES[0]), np.cos(np.arange(12.0)).reshape(3, 4)
    with df.GradientTape() as tape:
        tape.watch(x)
        y = df.reduce_sum(slope(x) * along)
    there, back = (float(df.reduce_sum(slope(x + s * 1e-6 * along) * along)) for s in (1, -1))
    np.testing.assert_allclose(np.sum(tape.gradient(y, x) * along), (there - back) / 2e-6, rtol=1e-6)


# complex numbers

Z, W = np.array([1 + 2j, -3 + 0.5j, 0j]), np.array([2 - 1j, 1 + 1j, 1j])


def spread(x):
    return np.mean(np.abs(x - x.mean()) ** 2)


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda z: df.math.squared_difference(z, W), (Z - W) * np.conj(Z - W)),
        (df.reduce_variance, spread(Z)),
        (df.reduce_std, np.sqrt(spread(Z))),
        (lambda z: df.nn.moments(z, [0])[1], spread(Z) + 0j),
        (df.math.l2_normalize, Z / np.linalg.norm(Z)),
        (lambda z: df.clip_by_norm(z, 2.0), Z * 2.0 / np.linalg.norm(Z)),
        (df.nn.l2_loss, np.linalg.norm(Z) ** 2 / 2),
        (lambda z: df.linalg.global_norm([z]), np.linalg.norm(Z)),
    ],
)
def test_squares_of_complex_numbers_are_those_of_their_magnitudes(mode, f, expected):
    result = mode(f)(df.constant(Z))
    np.testing.assert_allclose(result, expected)
    assert result.dtype == expected.dtype


def test_squared_differences_have_no_imaginary_part(mode):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(2, 50)) + 1j * rng.normal(size=(2, 50))
    assert not np.asarray(mode(df.math.squared_difference)(*map(df.constant, z))).imag.any()


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda z: df.math.squared_difference(z, W), [-2 + 6j, -8 - 1j, -2j]),
        (df.reduce_variance, [10 / 9 + 7j / 9, -14 / 9 - 2j / 9, 4 / 9 - 5j / 9]),
        (df.sign, [0.35777088 - 0.17888544j, 0.0088864317 + 0.05331859j, 0]),
        (df.math.l2_normalize, [0.30208633 + 0.074359711j, 0.1533669 + 0.018589928j, 0.26490647]),
        (df.acosh, [0.16089856 + 0.38844349j, -0.34099015 + 0.063695263j, 1j]),
    ],
)
def test_gradients_of_complex_numbers_are_tensorflows(mode, f, expected):
    def slope(z):
        with df.GradientTape() as tape:
            tape.watch(z)
            y = f(z)
        return tape.gradient(y, z)

    np.testing.assert_allclose(mode(slope)(df.constant(Z)), expected, rtol=1e-6, atol=1e-12)
