"""What a ragged tensor is: a structure of tensors, with gradients, specs, and conversions."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dualflow as df
from dualflow.compat import v1
from dualflow.core.dtypes import DType

ROWS = st.lists(st.lists(st.integers(-9, 9), max_size=4), min_size=1, max_size=5)
X = df.ragged.constant([[3.0, 1.0], [], [4.0, 1.0, 5.0]])
Y = df.ragged.constant([[[1, 2], [3]], [], [[4, 5, 6]]])


@given(ROWS)
def test_rows_go_in_and_out_unchanged(rows: list[list[int]]) -> None:
    x = df.ragged.constant(rows, df.int32)
    assert x.to_list() == rows
    assert [row.numpy().tolist() for row in x] == rows
    dense = x.to_tensor(-10)
    assert df.RaggedTensor.from_tensor(dense, padding=-10).to_list() == rows
    assert df.RaggedTensor.from_tensor(dense, lengths=x.row_lengths()).to_list() == rows
    assert df.RaggedTensor.from_sparse(x.to_sparse()).to_list() == rows


@given(ROWS, ROWS)
def test_operations_are_those_of_lists(rows: list[list[int]], more: list[list[int]]) -> None:
    x, y = (df.ragged.constant(r, df.int32) for r in (rows, more))
    assert df.concat([x, y], 0).to_list() == rows + more
    shorter = min(len(rows), len(more))
    pairs = zip(rows, more, strict=False)
    assert df.concat([x[:shorter], y[:shorter]], 1).to_list() == [a + b for a, b in pairs]
    assert df.reduce_sum(x, axis=1).numpy().tolist() == [sum(row) for row in rows]
    assert (x * 2 + 1).to_list() == [[2 * i + 1 for i in row] for row in rows]
    assert x[::-1, 1:].to_list() == [row[1:] for row in rows[::-1]]
    assert x[:, -2::-1].to_list() == [row[-2::-1] for row in rows]


@pytest.mark.parametrize(
    ("x", "shape", "rank"),
    [
        (X, (3, None), 1),
        (Y, (3, None, None), 2),
        (df.RaggedTensor.from_uniform_row_length([1, 2, 3, 4], 2), (2, 2), 1),
        (df.ragged.constant([[[1, 2]], []], inner_shape=(2,)), (2, None, 2), 1),
    ],
)
def test_a_ragged_axis_has_no_size(x: Any, shape: Any, rank: int) -> None:
    assert (x.shape, x.get_shape(), x.ndim) == (shape, shape, len(shape))
    assert (x.ragged_rank, len(x.nested_row_splits)) == (rank, rank)
    x.set_shape([None] * len(shape))


def test_a_function_takes_and_returns_ragged_tensors() -> None:
    @df.function(input_signature=[df.RaggedTensorSpec([None, None, None], df.int32)])
    def double(x: Any) -> Any:
        assert x.shape == (None, None, None)
        return {"all": x * 2, "first": x[0]}

    for x in (Y, Y[:2], Y[1:]):
        results = double(x)
        assert results["all"].to_list() == (x * 2).to_list()
        assert results["first"].to_list() == x[0].to_list()
    assert double.experimental_get_tracing_count() == 1


def test_branches_and_loops_take_ragged_tensors() -> None:
    @df.function
    def largest(x: Any) -> Any:
        if df.reduce_sum(x) > 1.0:
            x = x + 1.0
        best = df.constant(0.0)
        for i in df.range(x.nrows()):
            best = df.maximum(best, df.reduce_sum(x[i]))
        return x, best

    x, best = largest(X)
    assert x.to_list() == (X + 1.0).to_list()
    assert float(best) == 13.0


def loss(values: Any) -> Any:
    x = df.RaggedTensor.from_row_splits(values, [0, 2, 2, 5])
    weights = df.constant([[1.0], [2.0], [3.0]])
    return (
        df.reduce_sum(df.square(x.to_tensor()))
        + df.reduce_sum(df.reduce_max(x[::2], axis=1))
        + df.reduce_sum(df.concat([x, x], 1) * weights)
        + df.reduce_sum(df.gather(x, [2, 2]))
    )


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_gradients_flow_to_the_values(compiled: bool) -> None:
    v = df.Variable([3.0, 1.0, 4.0, 1.0, 5.0])
    with df.GradientTape() as tape:
        value = (df.function(loss) if compiled else loss)(v)
    assert tape.gradient(value, v).numpy().tolist() == [9.0, 4.0, 16.0, 10.0, 19.0]


def test_the_gradient_of_a_ragged_tensor_is_ragged() -> None:
    x = df.ragged.constant([[[3.0], [1.0, 2.0]], []])
    with df.GradientTape() as tape:
        tape.watch(x)
        y = df.reduce_sum(x * x)
    assert tape.gradient(y, x).to_list() == [[[6.0], [2.0, 4.0]], []]


def test_a_spec_describes_ragged_tensors() -> None:
    spec = df.RaggedTensorSpec([3, None], df.float32)
    assert spec == df.RaggedTensorSpec.from_value(X) == df.type_spec_from_value(X)
    assert hash(spec) == hash(df.RaggedTensorSpec([3, None], "float32", 1, df.int64))
    assert spec.value_type is df.RaggedTensor
    assert spec.is_compatible_with(X)
    assert spec.is_compatible_with(df.RaggedTensorSpec([None, None]))
    for other in (Y, X[:2], df.cast(X, df.int32), X.with_row_splits_dtype(df.int32), df.ones([3, 1])):
        assert not spec.is_compatible_with(other)
    assert repr(spec) == "RaggedTensorSpec(TensorShape([3, None]), tf.float32, 1, tf.int64)"


def test_row_splits_may_be_of_32_bits() -> None:
    x = df.ragged.constant([[[1], [2, 3]]], row_splits_dtype=df.int32)
    assert {splits.dtype for splits in x.nested_row_splits} == {df.int32}
    assert (x + 1)[:, :1].row_splits.dtype is df.int32
    mixed = df.RaggedTensor.from_row_splits(x.values, df.constant([0, 1, 2], df.int64))
    assert {splits.dtype for splits in mixed.nested_row_splits} == {df.int64}
    assert mixed.with_row_splits_dtype("int32").row_starts().dtype is df.int32
    assert x.nrows(df.int64).dtype is df.int64


@pytest.mark.parametrize(
    ("rows", "array"),
    [
        ([[b"a", b"bc"], [b"d", b""]], np.array([[b"a", b"bc"], [b"d", b""]], object)),
        ([[1, 2], [3, 4]], np.array([[1, 2], [3, 4]], np.int32)),
        ([[[1], [2]], [[3], [4]]], np.array([[[1], [2]], [[3], [4]]], np.int32)),
        ([[], []], np.zeros([2, 0], np.float32)),
        ([], np.zeros([0, 0], np.float32)),
    ],
)
def test_rows_of_one_length_are_one_array(rows: list[Any], array: np.ndarray[Any, Any]) -> None:
    result = df.ragged.constant(rows, ragged_rank=array.ndim - 1).numpy()
    assert result.dtype == array.dtype
    np.testing.assert_array_equal(result, array)


def test_rows_of_other_lengths_are_arrays_in_an_array() -> None:
    first, second = df.ragged.constant([[b"a", b"bc"], [b"d"]]).numpy()
    assert (first.tolist(), second.tolist()) == ([b"a", b"bc"], [b"d"])


def test_arrays_of_rows_belong_to_the_caller() -> None:
    rows = X.numpy()
    assert rows.dtype == object
    rows[0][0] = 7.0
    assert X.to_list()[0] == [3.0, 1.0]
    assert df.RaggedTensor.from_tensor([[1, 2], [3, 4]]).numpy().tolist() == [[1, 2], [3, 4]]
    assert [row.tolist() for row in Y.numpy()[0]] == [[1, 2], [3]]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_ragged_tensor_can_be_copied(copied: Any) -> None:
    assert copied(Y).to_list() == Y.to_list()


def test_it_shows_its_rows() -> None:
    assert repr(X) == str(X) == "<tf.RaggedTensor [[3.0, 1.0], [], [4.0, 1.0, 5.0]]>"
    shown: list[str] = []
    df.function(lambda x: shown.append(repr(x)) or x)(X)
    assert shown[0].startswith("tf.RaggedTensor(values=<tf.Tensor")


def test_libraries_recognise_it() -> None:
    assert isinstance(X, df.RaggedTensor)
    assert not isinstance(df.ones([2]), df.RaggedTensor)
    assert df.is_tensor(X)
    assert df.nest.flatten(X, expand_composites=True)[0] is X.values


@pytest.mark.parametrize("dtype", [df.bfloat16, df.float16, df.complex64, df.bool, df.uint8], ids=str)
def test_values_may_be_of_any_dtype(dtype: DType) -> None:
    x = df.cast(df.ragged.constant([[1, 0], [], [1]]), dtype)
    assert x.dtype is dtype
    assert x.to_tensor().dtype is dtype
    assert df.concat([x, x], 1)[0].numpy().astype(complex).tolist() == [1, 0, 1, 0]


def test_no_rows_are_a_ragged_tensor_too() -> None:
    x = df.RaggedTensor.from_row_splits(np.zeros(0, np.float32), [0])
    assert x.to_list() == []
    assert x.to_tensor().shape == (0, 0)
    assert df.reduce_sum(x, axis=1).shape == (0,)
    assert df.concat([x, X], 0).to_list() == X.to_list()


def test_a_session_computes_the_parts_of_a_ragged_tensor() -> None:

    with v1.Graph().as_default(), v1.Session() as session:
        values = v1.placeholder(df.float32, [None])
        x = df.RaggedTensor.from_row_splits(values, [0, 2, 3])
        fetched = session.run((x * 2.0).values, {values: [1.0, 2.0, 3.0]})
        total = session.run(df.reduce_sum(x, axis=1), {values: [1.0, 2.0, 3.0]})
    assert fetched.tolist() == [2.0, 4.0, 6.0]
    assert total.tolist() == [3.0, 3.0]
