"""Variables, shape inference, control flow and scans of the Keras backend."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dualflow as df

# Variables


def test_ops_read_the_value_of_a_variable(keras: Any, mode: Any) -> None:
    v = keras.Variable([1.0, 2.0])
    assert mode(lambda x: df.multiply(x, v) + v)(df.constant([3.0, 4.0])).numpy().tolist() == [4.0, 10.0]


def test_a_variable_has_the_dtype_and_shape_that_ops_request_for(keras: Any) -> None:
    v = keras.Variable([[1.0, 2.0]])
    assert df.zeros_like(v).shape == df.shape(v).numpy().tolist() == [1, 2]
    assert df.cast(v, df.int32).numpy().tolist() == [[1, 2]]
    assert df.ones_like(v).dtype is df.float32


def test_a_tape_watches_trainable_variables_and_takes_them_as_sources(keras: Any, mode: Any) -> None:
    v, fixed = keras.Variable([1.0, 2.0]), keras.Variable([5.0, 5.0], trainable=False)

    def gradients(x: Any) -> Any:
        with df.GradientTape() as tape:
            y = df.reduce_sum(x * v * v + fixed)
        return tape.gradient(y, [v, fixed], unconnected_gradients="zero")

    gradient = mode(gradients)(df.constant([1.0, 10.0]))
    assert [g.numpy().tolist() for g in gradient] == [[2.0, 40.0], [0.0, 0.0]]


def test_a_variable_made_untrainable_is_not_watched(keras: Any) -> None:
    v = keras.Variable(1.0)
    v.trainable = False
    with df.GradientTape() as tape:
        y = v * 2.0
    assert tape.gradient(y, v) is None


def test_reads_see_the_assignments_before_them(keras: Any, mode: Any) -> None:
    v = keras.Variable(1.0)

    def change() -> Any:
        before = v + 0.0
        v.assign_add(2.0)
        return before, v * 10.0

    assert [float(x) for x in mode(change)()] == [1.0, 30.0]
    assert float(v) == 3.0


def test_a_variable_is_read_in_the_dtype_of_the_autocast_scope(keras: Any) -> None:
    from keras.src.backend.common.variables import AutocastScope

    v = keras.Variable([1.0], dtype="float32")
    with AutocastScope("float16"):
        assert (v.dtype, df.identity(v).dtype) == ("float16", df.float16)
    assert df.identity(v).dtype is df.float32


def test_a_copy_is_a_variable_of_its_own(keras: Any) -> None:
    v = keras.Variable([1.0])
    other = copy.deepcopy(v)
    v.assign([2.0])
    assert other.numpy().tolist() == [1.0]


def test_a_layer_built_in_a_trace_draws_its_weights_once(keras: Any) -> None:
    layer = keras.layers.Dense(3)

    @df.function(autograph=False)
    def call(x: Any) -> Any:
        return layer(x)

    x = df.ones([2, 4])
    first = call(x).numpy()
    np.testing.assert_array_equal(call(x).numpy(), first)
    np.testing.assert_allclose(first, np.ones((2, 4)) @ layer.kernel.numpy(), rtol=1e-6)


# Shape inference


def test_inferring_runs_nothing(keras: Any, backend: Any, capfd: pytest.CaptureFixture[str]) -> None:
    def shown(x: Any) -> Any:
        df.print("run")
        return df.matmul(x, df.ones([4, 5]))

    result = backend.compute_output_spec(shown, keras.KerasTensor((None, 3, 4)))
    assert (result.shape, result.dtype) == ((None, 3, 5), "float32")
    assert "run" not in "".join(capfd.readouterr())


def test_dynamic_sizes_stay_open_where_the_result_follows_them(keras: Any, backend: Any) -> None:
    def several(x: Any) -> Any:
        return {"same": x, "folded": df.reduce_sum(x, 0), "made": df.reshape(x, [-1]), "other": 7}

    result = backend.compute_output_spec(several, keras.KerasTensor((None, 2), "int32"))
    assert [result[k].shape for k in ("same", "folded", "made")] == [(None, 2), (2,), (None,)]
    assert (result["same"].dtype, result["other"]) == ("int32", 7)


def test_inferring_changes_no_variable(keras: Any, backend: Any) -> None:
    seeds = keras.random.SeedGenerator(3)
    before = seeds.state.numpy().tolist()
    backend.compute_output_spec(
        lambda x: keras.random.dropout(x, 0.5, seed=seeds), keras.KerasTensor((None, 2))
    )
    assert seeds.state.numpy().tolist() == before


# Choices and loops


@pytest.mark.parametrize("chosen", [True, False])
def test_a_choice_assigns_in_the_branch_that_is_taken(keras: Any, mode: Any, chosen: bool) -> None:
    v = keras.Variable(1.0)

    def choose(p: Any) -> Any:
        return keras.ops.cond(p, lambda: v.assign(v + 1.0), lambda: v.assign(v * 10.0))

    mode(choose)(df.constant(chosen))
    assert float(v) == (2.0 if chosen else 10.0)


def test_a_loop_carries_several_values(keras: Any, mode: Any) -> None:
    def powers(n: Any) -> Any:
        return keras.ops.while_loop(lambda i, x: i < n, lambda i, x: (i + 1, x * 2.0), (0, 1.0))

    assert [float(x) for x in mode(powers)(df.constant(5))] == [5.0, 32.0]


def test_switch_takes_the_nearest_branch(keras: Any, mode: Any) -> None:
    branches = [lambda x: x + 1.0, lambda x: x * 10.0]
    choose = mode(lambda i, x: keras.ops.switch(i, branches, x))
    assert [float(choose(df.constant(i), df.constant(3.0))) for i in (-1, 0, 1, 7)] == [4.0, 4.0, 30.0, 30.0]


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_carries_and_stacks(keras: Any, mode: Any, reverse: bool) -> None:
    x = np.arange(1.0, 6.0, dtype=np.float32)

    def scan(x: Any) -> Any:
        return keras.ops.scan(lambda c, row: (c + row, c * row), 0.0, x, reverse=reverse)

    last, result = mode(scan)(x)
    rows = x[::-1] if reverse else x
    expected = (np.cumsum(rows) - rows) * rows
    assert float(last) == 15.0
    np.testing.assert_allclose(result.numpy(), expected[::-1] if reverse else expected)


def test_rows_may_be_as_many_as_the_run_brings(keras: Any) -> None:
    def doubled_and_summed(x: Any) -> Any:
        ops = keras.ops
        return ops.vectorized_map(lambda r: 2 * r, x), ops.scan(lambda c, r: (c + r, c), np.zeros(2, "f"), x)

    trace = df.function(doubled_and_summed, input_signature=[df.TensorSpec([None, 2])])
    for count in (1, 3, 40):
        x = np.arange(2.0 * count, dtype=np.float32).reshape(count, 2)
        doubled, (last, before) = trace(x)
        np.testing.assert_array_equal(doubled, 2 * x)
        np.testing.assert_array_equal(last, x.sum(0))
        np.testing.assert_array_equal(before, x.cumsum(0) - x)


@given(st.integers(1, 20), st.booleans(), st.integers(0, 1))
def test_an_associative_scan_is_a_running_sum(size: int, reverse: bool, axis: int) -> None:
    shape = (size, 2) if axis == 0 else (2, size)
    x = np.arange(2.0 * size, dtype=np.float32).reshape(shape)
    result = df.keras.ops.associative_scan(df.add, x, reverse=reverse, axis=axis)
    expected = np.flip(np.cumsum(np.flip(x, axis), axis), axis) if reverse else np.cumsum(x, axis)
    np.testing.assert_array_equal(result.numpy(), expected)


@given(st.integers(-3, 6), st.integers(-3, 6))
def test_an_update_beyond_an_end_is_moved_before_it(row: int, column: int) -> None:
    x, part = np.zeros((4, 5), np.float32), np.ones((2, 3), np.float32)
    expected = x.copy()
    r, c = np.clip(row, 0, 2), np.clip(column, 0, 2)
    expected[r : r + 2, c : c + 3] = 1
    np.testing.assert_array_equal(df.keras.ops.slice_update(x, (row, column), part).numpy(), expected)


# Conversion


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (1.5, None, df.float32),
        ([1, 2], None, df.int32),
        (True, None, df.bool),
        (np.float64(1.5), None, df.float64),
        ([1.7, 2.2], "int32", df.int32),
        (3, "float16", df.float16),
        ([], None, df.float32),
    ],
)
def test_values_take_keras_s_dtypes(keras: Any, value: Any, dtype: str | None, expected: Any) -> None:
    assert keras.ops.convert_to_tensor(value, dtype).dtype is expected


def test_python_s_floats_take_floatx(keras: Any) -> None:
    keras.config.set_floatx("float64")
    try:
        result = keras.ops.convert_to_tensor([0.1, 1])
    finally:
        keras.config.set_floatx("float32")
    assert result.dtype is df.float64
    assert result.numpy()[0] == 0.1


@pytest.mark.parametrize("kind", ["sparse", "ragged"])
def test_sparse_and_ragged_tensors_are_refused(backend: Any, kind: str) -> None:
    with pytest.raises(ValueError, match=f"`{kind}=True` is not supported with the dualflow backend"):
        backend.convert_to_tensor([1.0], **{kind: True})
