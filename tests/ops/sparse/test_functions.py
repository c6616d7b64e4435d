"""``df.sparse``: each function agrees with NumPy's on the dense form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualflow as df

Array = np.ndarray[Any, Any]
sparse = df.sparse


@st.composite
def arrays(draw: Any, rank: int = 2, shape: tuple[int, ...] | None = None) -> Array:
    """Small integers, of which most are 0."""
    sizes = shape or tuple(draw(st.integers(1, 4)) for _ in range(rank))
    elements = st.sampled_from([0, 0, 0, 1, 2, -3])
    count = int(np.prod(sizes))
    return np.array(draw(st.lists(elements, min_size=count, max_size=count)), np.float32).reshape(sizes)


def dense(x: Any) -> Array:
    return sparse.to_dense(x).numpy()


def both(function: Callable[..., Any], *args: Any) -> Array:
    """What ``function`` gives op by op, which must be what it gives compiled."""
    eager, compiled = function(*args), df.function(function)(*args)
    if isinstance(eager, df.SparseTensor):
        assert eager.shape == compiled.shape
        assert np.array_equal(eager.indices, compiled.indices)
        return dense(compiled)
    np.testing.assert_array_equal(eager, compiled)
    return compiled.numpy()


few = settings(max_examples=10, deadline=None)


@few
@given(arrays(3))
def test_a_tensor_becomes_sparse_and_back(x: Array) -> None:
    converted = sparse.from_dense(x)
    assert converted.values.shape == (np.count_nonzero(x),)
    assert np.array_equal(dense(converted), x)


def test_other_elements_are_the_default_value() -> None:
    x = df.SparseTensor([[0], [2]], [5, 6], [4])
    assert sparse.to_dense(x, default_value=-1).numpy().tolist() == [5, -1, 6, -1]


def test_a_compiled_function_checks_the_order_at_its_run() -> None:
    f = df.function(sparse.to_dense)
    assert f(df.SparseTensor([[0], [2]], [5, 6], [4])).numpy().tolist() == [5, 0, 6, 0]
    with pytest.raises(ValueError, match="out of order or repeated"):
        f(df.SparseTensor([[2], [0]], [5, 6], [4]))


def test_of_several_elements_at_a_place_the_last_counts_where_none_is_checked() -> None:
    x = df.SparseTensor([[2], [0], [2]], [5, 6, 7], [4])
    assert sparse.to_dense(x, validate_indices=False).numpy().tolist() == [6, 0, 7, 0]


@few
@given(st.data(), arrays(2))
def test_sums_maxima_and_minima(data: Any, x: Array) -> None:
    y = data.draw(arrays(shape=x.shape))
    a, b = sparse.from_dense(x), sparse.from_dense(y)
    for ours, theirs in [
        (sparse.add, np.add),
        (sparse.maximum, np.maximum),
        (sparse.minimum, np.minimum),
    ]:
        assert np.array_equal(both(ours, a, b), theirs(x, y))
    assert np.array_equal(both(sparse.add, a, df.constant(y)), x + y)
    assert np.array_equal(both(sparse.add, df.constant(y), a), x + y)


def test_a_sum_below_the_threshold_is_not_stored() -> None:
    x = df.SparseTensor([[0], [2]], [1.0, 3.0], [4])
    y = df.SparseTensor([[0], [3]], [-1.0, -0.5], [4])
    assert sparse.add(x, y).indices.numpy().tolist() == [[0], [2], [3]]
    assert sparse.add(x, y, threshold=0.6).indices.numpy().tolist() == [[2]]
    assert sparse.add(x, y, threshold=0.5).indices.numpy().tolist() == [[2], [3]]


def test_elements_of_one_place_are_added() -> None:
    x = df.SparseTensor([[1], [1], [0]], [1, 2, 4], [3])
    result = sparse.add(x, df.SparseTensor([[1]], [8], [3]))
    assert result.indices.numpy().tolist() == [[0], [1]]
    assert result.values.numpy().tolist() == [4, 11]


@few
@given(st.data(), arrays(2))
def test_products_with_matrices(data: Any, x: Array) -> None:
    y = data.draw(arrays(shape=(x.shape[1], 3)))
    a = sparse.from_dense(x)
    assert np.array_equal(both(sparse.sparse_dense_matmul, a, df.constant(y)), x @ y)
    assert np.array_equal(
        both(lambda p, q: sparse.sparse_dense_matmul(p, q), df.constant(y.T), sparse.from_dense(x.T)),
        y.T @ x.T,
    )


@pytest.mark.parametrize("adjoint_a", [False, True])
@pytest.mark.parametrize("adjoint_b", [False, True])
def test_products_with_complex_adjoints(adjoint_a: bool, adjoint_b: bool) -> None:
    x = np.array([[0, 1 + 2j], [3j, 0]])
    y = np.array([[1 - 1j, 2], [0, 3 + 1j]])
    left, right = x.conj().T if adjoint_a else x, y.conj().T if adjoint_b else y
    flags = {"adjoint_a": adjoint_a, "adjoint_b": adjoint_b}
    result = sparse.sparse_dense_matmul(sparse.from_dense(x), y, **flags)
    np.testing.assert_allclose(result, left @ right)
    np.testing.assert_allclose(sparse.sparse_dense_matmul(x, sparse.from_dense(y), **flags), left @ right)


def test_a_product_has_the_gradient_of_the_dense_one(mode: Any) -> None:
    x, y = np.array([[0, 2], [3, 0]], np.float32), np.array([[1, 2, 3], [4, 5, 6]], np.float32)

    def slopes(a: Any, b: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch([a, b])
            z = sparse.sparse_dense_matmul(a, b) ** 2
        return tape.gradient(z, [a, b])

    by_a, by_b = mode(slopes)(sparse.from_dense(x), df.constant(y))
    assert np.array_equal(dense(by_a), np.where(x != 0, 2 * (x @ y) @ y.T, 0))
    assert np.array_equal(by_b, x.T @ (2 * (x @ y)))


@few
@given(arrays(3), st.sampled_from([None, 0, -1, [0, 2], [1]]), st.booleans())
def test_sums_over_axes(x: Array, axis: Any, keepdims: bool) -> None:
    expected = x.sum(None if axis is None else tuple(np.ravel(axis)), keepdims=keepdims)
    a = sparse.from_dense(x)
    assert np.array_equal(both(lambda p: sparse.reduce_sum(p, axis, keepdims), a), expected)
    if np.ndim(expected):
        result = both(lambda p: sparse.reduce_sum(p, axis, keepdims, output_is_sparse=True), a)
        assert np.array_equal(result, expected)


def test_a_sparse_sum_over_all_axes_has_no_places() -> None:
    result = sparse.reduce_sum(sparse.from_dense([[0, 3], [4, 0]]), output_is_sparse=True)
    assert (result.shape, result.indices.shape, result.values.numpy().tolist()) == ((), (1, 0), [7])


@few
@given(arrays(3), st.permutations(range(3)))
def test_axes_in_another_order(x: Array, perm: list[int]) -> None:
    assert np.array_equal(both(lambda p: sparse.transpose(p, perm), sparse.from_dense(x)), x.transpose(perm))
    assert np.array_equal(both(sparse.transpose, sparse.from_dense(x)), x.T)


@few
@given(arrays(2), st.integers(-3, 2))
def test_a_new_axis(x: Array, axis: int) -> None:
    result = both(lambda p: sparse.expand_dims(p, axis), sparse.from_dense(x))
    assert np.array_equal(result, np.expand_dims(x, axis))


@few
@given(arrays(shape=(2, 6)), st.sampled_from([(12,), (3, 4), (-1, 2), (2, 3, 2), (1, 12)]))
def test_another_shape(x: Array, shape: tuple[int, ...]) -> None:
    assert np.array_equal(both(lambda p: sparse.reshape(p, shape), sparse.from_dense(x)), x.reshape(shape))


@few
@given(st.lists(arrays(shape=(2, 3)), min_size=1, max_size=3), st.integers(-2, 1))
def test_one_after_another(parts: list[Array], axis: int) -> None:
    result = both(lambda *p: sparse.concat(axis, p), *map(sparse.from_dense, parts))
    assert np.array_equal(result, np.concatenate(parts, axis))


def test_other_sizes_may_differ_where_that_is_requested() -> None:
    result = sparse.concat(0, [sparse.eye(2), sparse.eye(1, 3)], expand_nonconcat_dims=True)
    assert dense(result).tolist() == [[1, 0, 0], [0, 1, 0], [1, 0, 0]]


@few
@given(
    arrays(2),
    st.tuples(st.integers(0, 4), st.integers(0, 4)),
    st.tuples(st.integers(0, 4), st.integers(0, 4)),
)
def test_a_part(x: Array, start: tuple[int, int], size: tuple[int, int]) -> None:
    result = both(lambda p: sparse.slice(p, start, size), sparse.from_dense(x))
    assert np.array_equal(result, x[start[0] : start[0] + size[0], start[1] : start[1] + size[1]])


@few
@given(arrays(shape=(3, 5)), st.integers(1, 3))
def test_parts_along_an_axis(x: Array, count: int) -> None:
    for axis in (0, -1):
        parts = [dense(part) for part in sparse.split(sparse.from_dense(x), count, axis)]
        expected = np.array_split(x, count, axis)
        assert all(np.array_equal(a, b) for a, b in zip(parts, expected, strict=True))


def test_elements_that_are_kept(mode: Any) -> None:
    x = df.SparseTensor([[0], [1], [3]], [5, 6, 7], [4])
    result = mode(sparse.retain)(x, df.constant([True, False, True]))
    assert result.indices.numpy().tolist() == [[0], [3]]
    assert result.values.numpy().tolist() == [5, 7]


def test_empty_rows_get_an_element(mode: Any) -> None:
    x = df.SparseTensor([[1, 2]], [5], [3, 4])
    filled, empty = mode(lambda p: sparse.fill_empty_rows(p, -1))(x)
    assert dense(filled).tolist() == [[-1, 0, 0, 0], [0, 0, 5, 0], [-1, 0, 0, 0]]
    assert empty.numpy().tolist() == [True, False, True]


def test_elements_in_order(mode: Any) -> None:
    x = df.SparseTensor([[1, 0], [0, 2], [1, 0]], [1, 2, 3], [2, 3])
    result = mode(sparse.reorder)(x)
    assert result.indices.numpy().tolist() == [[0, 2], [1, 0], [1, 0]]
    assert result.values.numpy().tolist() == [2, 1, 3]


def test_the_smallest_shape_and_a_larger_one() -> None:
    x = df.SparseTensor([[0, 1], [3, 0]], [1, 2], [9, 9])
    assert sparse.reset_shape(x).shape == (4, 2)
    assert sparse.reset_shape(x, [10, 9]).shape == (10, 9)
    assert sparse.reset_shape(df.SparseTensor(np.zeros((0, 2)), [], [9, 9])).shape == (0, 0)


def test_ones_on_the_diagonal() -> None:
    for size in [(3,), (2, 4), (4, 2), (0, 2)]:
        assert np.array_equal(dense(sparse.eye(*size)), np.eye(*size))
    assert sparse.eye(2, dtype=df.int32).dtype == df.int32


def test_functions_of_the_values(mode: Any) -> None:
    x = df.SparseTensor([[0], [2]], [2.0, 3.0], [3])
    assert mode(lambda p: sparse.map_values(df.add, p, 1.0))(x).values.numpy().tolist() == [3, 4]
    assert mode(lambda p: sparse.map_values(df.multiply, p, y=p))(x).values.numpy().tolist() == [4, 9]
    other = df.SparseTensor([[0], [1]], [2.0, 3.0], [3])
    with pytest.raises(ValueError, match="other places"):
        mode(lambda p, q: sparse.map_values(df.multiply, p, q))(x, other)


def test_a_product_at_some_places() -> None:
    left, right = np.arange(6.0, dtype=np.float32).reshape(2, 3), np.ones((3, 4), np.float32)
    places = np.array([[0, 3], [1, 1]])
    result = sparse.sampled_addmm(places, [10.0, 20.0], [2, 4], left, right, beta=0.5, alpha=2.0)
    assert result[1].numpy().tolist() == [5 + 2 * 3, 10 + 2 * 12]
    assert result[2].numpy().tolist() == [2, 4]


def test_nothing_is_stored_of_an_empty_tensor() -> None:
    x = sparse.from_dense(np.zeros((0, 3), np.float32))
    assert dense(sparse.add(x, x)).shape == (0, 3)
    assert dense(sparse.transpose(x)).shape == (3, 0)
    assert sparse.sparse_dense_matmul(x, np.ones((3, 2), np.float32)).shape == (0, 2)


@few
@given(arrays(2), st.sampled_from([None, 0, -1]), st.booleans())
def test_the_largest_of_the_elements_that_are_stored(x: Array, axis: Any, keepdims: bool) -> None:
    largest = np.where(x != 0, x, -np.inf).max(axis, keepdims=keepdims, initial=-np.inf)
    expected = np.where(np.isneginf(largest), 0, largest)
    a = sparse.from_dense(x)
    assert np.array_equal(both(lambda p: sparse.reduce_max(p, axis, keepdims), a), expected)
    if axis is not None:
        result = both(lambda p: sparse.reduce_max(p, axis, keepdims, output_is_sparse=True), a)
        assert np.array_equal(result, expected)


@few
@given(arrays(3))
def test_the_softmax_of_each_rows_elements(x: Array) -> None:
    powers = np.where(x != 0, np.exp(x - x.max(-1, keepdims=True)), 0)
    expected = powers / np.maximum(powers.sum(-1, keepdims=True), 1e-30)
    a = sparse.from_dense(x)
    for run in (sparse.softmax, df.function(sparse.softmax)):
        np.testing.assert_allclose(dense(run(a)), expected, rtol=1e-5)


def test_a_softmax_is_stable_and_has_a_gradient(mode: Any) -> None:
    def slope(values: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(values)
            y = sparse.softmax(df.SparseTensor([[0, 0], [0, 3]], values, [1, 4])).values[0]
        return y, tape.gradient(y, values)

    y, gradient = mode(slope)(df.constant([1e30, 1e30]))
    assert y.numpy() == 0.5
    np.testing.assert_allclose(gradient, [0.25, -0.25])


def test_numbers_that_rows_store(mode: Any) -> None:
    x = df.SparseTensor([[0, 0], [0, 1], [2, 0]], [2, 0, 2], [3, 5])
    result = mode(lambda p: sparse.to_indicator(p, 4))(x).numpy()
    assert result.tolist() == [[True, False, True, False], [False] * 4, [False, False, True, False]]
    with pytest.raises(IndexError):
        mode(lambda p: sparse.to_indicator(p, 2))(x)


@pytest.mark.parametrize(
    ("name", "divide"), [("sum", lambda n: 1), ("mean", lambda n: n), ("sqrt_n", lambda n: n**0.5)]
)
def test_rows_that_are_picked_by_segments(mode: Any, name: str, divide: Any) -> None:
    data = np.arange(12, dtype=np.float32).reshape(4, 3)
    rows, ids = [0, 2, 2, 3], [0, 0, 0, 2]
    expected = np.zeros((4, 3))
    for at in range(3):
        picked = [row for row, segment in zip(rows, ids, strict=True) if segment == at]
        expected[at] = data[picked].sum(0) / divide(max(len(picked), 1))
    function = getattr(sparse, f"segment_{name}")
    result = mode(lambda x: function(x, rows, ids, num_segments=4))(df.constant(data))
    np.testing.assert_allclose(result, expected, rtol=1e-6)
    np.testing.assert_allclose(function(data, rows, ids), expected[:3], rtol=1e-6)


@pytest.mark.parametrize("name", ["segment_sum", "segment_mean", "segment_sqrt_n"])
def test_an_empty_list_of_rows_gathers_none(name: str) -> None:
    assert getattr(sparse, name)(df.ones([3, 2]), [], []).shape == (0, 2)
    assert getattr(sparse, name)(df.ones([3, 2]), [], [], 2).numpy().tolist() == [[0, 0], [0, 0]]


def test_segments_must_be_in_order(mode: Any) -> None:
    with pytest.raises(ValueError, match="ascending order"):
        mode(lambda ids: sparse.segment_sum(df.ones([3, 2]), [0, 1, 2], ids, 3))(df.constant([0, 2, 1]))


@pytest.mark.parametrize(
    ("buckets", "expected"),
    [
        (
            0,
            [
                2928842892298887678,
                7560904255693475987,
                9216350530976061679,
                5354134812324246176,
                85918459618309357,
                9204035953345268157,
                1081993872874431407,
                4707660378794676007,
                6885183645886368187,
                4645772519469004306,
                7892767901445697090,
                2482195030867835762,
            ],
        ),
        (100, [85, 87, 86, 83, 57, 64, 7, 7, 94, 13, 90, 62]),
    ],
)
def test_crosses_are_hashed_as_by_tensorflow(buckets: int, expected: list[int]) -> None:
    words, numbers = df.constant([["a", "b"], ["c", "d"]]), df.constant([[1, 2, 3], [-4, 5, 6]])
    for function in (sparse.cross_hashed, df.function(sparse.cross_hashed)):
        crosses = function([words, numbers], buckets)
        assert crosses.values.numpy().tolist() == expected
        assert crosses.indices.numpy().tolist() == [[i, j] for i in range(2) for j in range(6)]
        assert crosses.dense_shape.numpy().tolist() == [2, 6]


@pytest.mark.parametrize("shape", [(0, 2), (2, 0)])
def test_no_features_have_no_crosses(shape: tuple[int, int]) -> None:
    features = np.zeros(shape, np.int64), np.zeros((shape[0], 3), np.int64)
    for function in (sparse.cross_hashed, df.function(sparse.cross_hashed)):
        crosses = function(features, 10)
        assert crosses.indices.shape == (0, 2)
        assert crosses.dense_shape.numpy().tolist() == [shape[0], shape[1] * 3]


DYNAMIC: dict[str, Callable[[Any, Any], Any]] = {
    "a part": lambda x, n: sparse.slice(x, [n // 2, 0], [n // 3 + 1, 2]),
    "a part past the end": lambda x, n: sparse.slice(x, [1, n - n], [2 * n, 9]),
    "one axis": lambda x, n: sparse.reshape(x, [-1]),
    "another shape": lambda x, n: sparse.reshape(x, [2, n, 2]),
    "a shape with one size left out": lambda x, n: sparse.reshape(x, [n + 1 - 1, -1]) if n > 0 else x,
    "parts along a static axis": lambda x, n: sparse.split(x, 2, 1)[1],
    "parts along the dynamic axis": lambda x, n: sparse.split(sparse.concat(0, [x, x, x]), 2, 0)[0],
    "ones on the diagonal": lambda x, n: sparse.eye(n, 3),
    "numbers that rows store": lambda x, n: sparse.to_indicator(
        sparse.map_values(lambda v: df.cast(v, df.int64), x), n + 5
    ),
}


@pytest.mark.parametrize("name", DYNAMIC)
def test_one_trace_serves_all_sizes(name: str) -> None:
    function = DYNAMIC[name]

    def whole(x: Any) -> Any:
        result = function(sparse.from_dense(x), df.shape(x)[0])
        return sparse.to_dense(result) if isinstance(result, df.SparseTensor) else result

    compiled = df.function(whole, input_signature=[df.TensorSpec([None, 4])])
    for rows in (3, 0, 1, 2, 31, 32, 33):
        if not rows and name.startswith("parts along the dynamic"):
            continue  # refused in both modes
        x = df.constant(np.arange(rows * 4).reshape(rows, 4) % 3, df.float32)
        np.testing.assert_array_equal(compiled(x).numpy(), whole(x).numpy(), strict=True)
    assert compiled.experimental_get_tracing_count() == 1


SIZES = df.TensorSpec([2], df.int64)
DIFFERENT_SIZES: dict[str, Callable[[Any, Any], Any]] = {
    "the values of a sum": lambda x, y: sparse.add(x, y).values,
    "the shape of a sum": lambda x, y: sparse.add(x, y).dense_shape,
    "the shape of joined tensors": lambda x, y: sparse.concat(0, [x, y]).dense_shape,
    "a product": lambda x, y: sparse.sparse_dense_matmul(x, df.zeros([y.dense_shape[1], 3])),
    "the shape of a reshaped tensor": lambda x, y: sparse.reshape(x, [3, -1]).dense_shape + y.dense_shape,
}


@pytest.mark.parametrize("name", DIFFERENT_SIZES)
def test_different_sizes_of_tensors_without_elements_are_an_error(name: str) -> None:
    def run(first: Any, second: Any) -> Any:
        indices, values = df.zeros([0, 2], df.int64), df.zeros([0])
        x, y = (df.SparseTensor(indices, values, shape) for shape in (first, second))
        return DIFFERENT_SIZES[name](x, y)

    compiled = df.function(run, input_signature=[SIZES, SIZES])
    equal, different = df.constant([3, 3], df.int64), df.constant([2, 2], df.int64)
    np.testing.assert_array_equal(compiled(equal, equal), run(equal, equal))
    for function in (run, compiled):
        with pytest.raises(df.errors.InvalidArgumentError):
            function(different, equal)


def test_joined_tensors_have_the_largest_size_if_they_are_expanded() -> None:
    def run(first: Any, second: Any) -> Any:
        parts = [df.SparseTensor([[0, 0]], [1.0], shape) for shape in (first, second)]
        return sparse.concat(0, parts, expand_nonconcat_dims=True).dense_shape

    sizes = [df.constant([1, n], df.int64) for n in (2, 5)]
    assert df.function(run, input_signature=[SIZES, SIZES])(*sizes).numpy().tolist() == [2, 5]


@pytest.mark.parametrize(
    "function",
    [lambda x, n: sparse.reshape(x, [n, 3]), lambda x, n: sparse.split(x, 5, 0)[0]],
    ids=["reshape", "split"],
)
def test_sizes_of_the_run_that_do_not_fit_are_refused(mode: Any, function: Callable[[Any, Any], Any]) -> None:
    call = mode(lambda x: sparse.to_dense(function(sparse.from_dense(x), df.shape(x)[0])))
    with pytest.raises(df.errors.InvalidArgumentError, match=r"split makes|can't be reshaped"):
        call(df.ones([4, 4]))
    with pytest.raises(df.errors.InvalidArgumentError, match=r"split makes|can't be reshaped"):
        call(df.ones([2, 4]))
