"""Checked calls: graphs with host calls go straight to the executable if the arguments are as before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualflow as df


def reversed_rows(x: Any) -> Any:
    """An op that is a host call in every backend: NumPy's own reversal, as a user's function."""
    return df.numpy_function(lambda a: np.ascontiguousarray(a[::-1]), [x], x.dtype)


def of(*values: float) -> Any:
    return df.constant(values)


def test_each_call_sees_its_own_arguments() -> None:
    f = df.function(lambda x, y: reversed_rows(x) + y)
    for i in range(4):
        result = f(of(1.0, i), of(10.0, 20.0))
        np.testing.assert_array_equal(result, [10.0 + i, 21.0])


@pytest.mark.filterwarnings("ignore:.*triggered retracing")
def test_other_shapes_dtypes_layouts_and_values_are_served_as_well() -> None:
    f = df.function(lambda x, scale=2: df.linalg.cholesky(x) * scale)
    x = df.constant([[4.0, 0.0], [0.0, 9.0]])
    for _ in range(3):
        np.testing.assert_array_equal(f(x), [[4.0, 0.0], [0.0, 6.0]])
    np.testing.assert_array_equal(f(x, 3), [[6.0, 0.0], [0.0, 9.0]])
    np.testing.assert_array_equal(f(x, scale=4), [[8.0, 0.0], [0.0, 12.0]])
    np.testing.assert_array_equal(f(x), [[4.0, 0.0], [0.0, 6.0]])
    np.testing.assert_array_equal(f(x[:1, :1]), [[4.0]])
    np.testing.assert_array_equal(f(df.cast(x, df.float64)), [[4.0, 0.0], [0.0, 6.0]])
    np.testing.assert_array_equal(f(x.numpy()), [[4.0, 0.0], [0.0, 6.0]])
    np.testing.assert_array_equal(f(df.Variable(x)), [[4.0, 0.0], [0.0, 6.0]])
    wide = df.constant([[4.0, 7.0, 2.0], [7.0, 7.0, 7.0], [2.0, 7.0, 5.0]])
    np.testing.assert_array_equal(f(wide[::2, ::2]), [[4.0, 0.0], [2.0, 4.0]])
    with pytest.raises(TypeError):
        f(x, 2, 3)


def test_variables_have_the_value_of_the_call() -> None:
    v, offset = df.Variable([1.0, 2.0]), of(100.0, 200.0)
    f = df.function(lambda x: reversed_rows(x * v) + offset)
    for i in range(4):
        v.assign([1.0, float(i)])
        np.testing.assert_array_equal(f(of(1.0, 1.0)), [100.0 + i, 201.0])


def test_variables_are_changed() -> None:
    v = df.Variable([0.0, 0.0])
    f = df.function(lambda x: v.assign_add(reversed_rows(x)))
    for _ in range(3):
        f(of(1.0, 2.0))
    np.testing.assert_array_equal(v, [6.0, 3.0])


@pytest.mark.parametrize("result", ["none", "tuple", "dict"])
def test_results_have_their_structure(result: str) -> None:
    make = {"none": lambda y: None, "tuple": lambda y: (y, y), "dict": lambda y: {"a": [y]}}[result]
    f = df.function(lambda x: make(reversed_rows(x)))
    for _ in range(3):
        actual = f(of(1.0, 2.0))
    expected = make([2.0, 1.0])
    assert (
        df.nest.map_structure(lambda y: y.numpy().tolist(), actual) == expected
        if expected
        else actual is None
    )


def test_a_returned_argument_is_a_copy() -> None:
    x = of(1.0, 2.0)
    f = df.function(lambda x: (df.numpy_function(lambda a: a, [x], x.dtype), x))
    for _ in range(3):
        same, _ = f(x)
        assert not np.may_share_memory(same.numpy(), x.numpy())
        np.testing.assert_array_equal(same, x)


def test_a_user_s_function_writes_to_no_tensor() -> None:
    def write(a: Any) -> Any:
        a[0] = 7.0
        return a

    x = of(1.0, 2.0)
    f = df.function(lambda x: df.numpy_function(write, [x], x.dtype))
    for _ in range(3):
        np.testing.assert_array_equal(f(x), [7.0, 2.0])
    np.testing.assert_array_equal(x, [1.0, 2.0])


def test_an_error_of_a_later_call_names_the_line() -> None:
    f = df.function(lambda x: df.linalg.cholesky(x))
    good, bad = df.eye(9), -df.eye(9)
    for x in (good, good, good):
        np.testing.assert_array_equal(f(x), np.eye(9))
    with pytest.raises(df.errors.InvalidArgumentError, match="not positive definite") as caught:
        f(bad)
    assert any("in cholesky, called at" in note for note in caught.value.__notes__)
    np.testing.assert_array_equal(f(good), np.eye(9))


def test_gradients_go_through_prepared_calls() -> None:
    f = df.function(lambda x: df.reduce_sum(df.linalg.inv(x)))
    x = df.constant([[2.0, 0.0], [0.0, 4.0]])
    for _ in range(3):
        f(x)
        with df.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        np.testing.assert_allclose(tape.gradient(y, x), [[-0.25, -0.125], [-0.125, -0.0625]])


@pytest.mark.parametrize("positive", [False, True], ids=["argument sizes", "a size that depends on data"])
def test_sizes_for_which_a_guard_does_not_hold_have_another_program(positive: bool) -> None:
    def ordered(x: Any) -> Any:
        y = df.boolean_mask(x, x > 0.0) if positive else x
        return df.sort(y) + 1.0 if x.shape[0] > 3 else df.sort(-y)

    f = df.function(ordered)
    for n in (4, 5, 6, 7, 2, 3, 8, 1):
        x = df.constant(np.random.default_rng(n).standard_normal(n).astype(np.float32))
        np.testing.assert_array_equal(f(x), ordered(x))
    assert f.experimental_get_tracing_count() == 3
