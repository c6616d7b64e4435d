"""Python callbacks in compiled functions: when they run, in which order, and their gradients."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.core.errors import DTypeError, InvalidArgumentError


class OfTheUserError(Exception):
    """An error that dualflow has never heard of."""


def square(v):
    return v * v


def test_the_function_gets_tensors_that_have_their_values(mode):
    received = []

    def f(x):
        return df.py_function(lambda v: received.append(v.numpy().tolist()) or v, [x], df.float32)

    mode(f)(df.constant([1.0, 2.0]))
    assert received == [[1.0, 2.0]]


def test_a_compiled_function_calls_python_once_each_time():
    calls = []

    @df.function
    def f(x):
        df.py_function(lambda v: calls.append(int(v)), [x], None)
        return x + 1

    assert [int(f(df.constant(i))) for i in range(3)] == [1, 2, 3]
    assert calls == [0, 1, 2]


def test_effects_of_all_kinds_keep_the_order_of_the_program(capsys):
    @df.function
    def f(x):
        df.print("first", x)
        y = df.numpy_function(lambda v: print("second", file=sys.stderr) or v + 1, [x], df.int32)
        df.print("third", y)
        df.py_function(lambda v: print("fourth", file=sys.stderr), [x], [])
        df.print("fifth")
        return y

    assert int(f(df.constant(1))) == 2
    assert capsys.readouterr().err.split() == ["first", "1", "second", "third", "2", "fourth", "fifth"]


@pytest.mark.parametrize("call", [df.py_function, df.numpy_function])
def test_an_exception_keeps_its_type(call, mode):
    def fail(v):
        raise OfTheUserError("no")

    with pytest.raises(OfTheUserError, match="no"):
        mode(lambda x: call(fail, [x], df.float32))(df.constant(1.0))


def test_several_results_come_as_a_list(mode):
    def f(x):
        return df.py_function(lambda v: (v + 1, v * 2), [x], [df.float32, df.float32])

    result = mode(f)(df.constant(3.0))
    assert isinstance(result, list)
    assert [float(y) for y in result] == [4.0, 6.0]


def test_too_few_results_are_an_error(mode):
    def f(x):
        return df.py_function(lambda v: (v, v), [x], [df.float32] * 3)

    with pytest.raises(InvalidArgumentError, match="returned 2 values, but Tout declares 3"):
        mode(f)(df.constant(1.0))


def test_a_result_of_none_is_an_error_where_one_is_declared(mode):
    with pytest.raises(DTypeError, match="returned None"):
        mode(lambda x: df.py_function(lambda v: None, [x], df.float32))(df.constant(1.0))


def test_a_result_of_another_dtype_is_an_error(mode):
    with pytest.raises(InvalidArgumentError, match="float64, but Tout declares float32"):
        mode(lambda x: df.numpy_function(lambda v: v.astype("f8"), [x], df.float32))(df.constant(1.0))


def test_a_spec_declares_a_shape_that_is_not_the_inputs():
    @df.function
    def f(x):
        return df.py_function(df.reduce_sum, [x], df.TensorSpec([], df.float32)) * 2

    assert float(f(df.constant([1.0, 2.0]))) == 6.0


def test_a_shape_that_was_not_declared_is_an_error_that_reports_how_to():
    f = df.function(lambda x: df.py_function(df.reduce_sum, [x], df.float32))
    with pytest.raises(InvalidArgumentError, match=r"df.TensorSpec\(\(\), df.float32\)"):
        f(df.constant([1.0, 2.0]))


def test_inputs_without_a_common_shape_need_a_spec():
    f = df.function(lambda x, y: df.py_function(lambda a, b: a, [x, y], df.float32))
    with pytest.raises(InvalidArgumentError, match="TensorSpec"):
        f(df.constant([1.0, 2.0]), df.constant([1.0, 2.0, 3.0]))


def test_arrays_that_the_function_keeps_and_changes_are_its_own():
    kept = []

    @df.function
    def f(x):
        y = x + 1
        df.numpy_function(lambda v: kept.append(v), [y], None)
        z = y * 2
        return df.numpy_function(lambda v: v.sort() or v, [z], df.float32), z

    x = df.constant([3.0, 1.0])
    ordered, z = f(x)
    f(df.constant([0.0, 0.0]))
    assert kept[0].tolist() == [4.0, 2.0]
    assert (ordered.numpy().tolist(), z.numpy().tolist()) == ([4.0, 8.0], [8.0, 4.0])


def test_gradients_flow_through_py_function(mode):
    f = mode(lambda x: 3 * df.py_function(square, [x], df.float32))
    x = df.constant([1.0, 2.0])
    with df.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert tape.gradient(y, x).numpy().tolist() == [6.0, 12.0]


def test_a_tape_inside_the_trace_goes_through_py_function():
    @df.function
    def f(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.py_function(square, [x], df.float32)
        return tape.gradient(y, x)

    assert f(df.constant([1.0, 2.0])).numpy().tolist() == [2.0, 4.0]


def test_second_derivatives_of_py_function_inside_a_trace():
    @df.function
    def f(x):
        with df.GradientTape() as outer:
            outer.watch(x)
            with df.GradientTape() as inner:
                inner.watch(x)
                y = df.py_function(lambda v: v * v * v, [x], df.float32)
            first = inner.gradient(y, x)
        return outer.gradient(first, x)

    assert float(f(df.constant(2.0))) == 12.0


def test_gradients_reach_only_the_inputs_that_can_have_one():
    @df.function
    def f(x, n):
        return df.py_function(lambda a, k: (a * float(k), k), [x, n], [df.float32, df.int32])[0]

    x = df.constant(2.0)
    with df.GradientTape() as tape:
        tape.watch(x)
        y = f(x, df.constant(5))
    assert float(tape.gradient(y, x)) == 5.0


def test_complex_gradients_are_those_of_the_op_itself():
    x = df.constant(1.0 + 2.0j)

    def gradient(f):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x).numpy()

    called = df.function(lambda z: df.py_function(square, [z], x.dtype))
    assert gradient(called) == gradient(square)


def test_numpy_function_has_no_gradient(mode):
    f = mode(lambda x: df.numpy_function(np.sin, [x], df.float32))
    x = df.constant(1.0)
    with df.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert tape.gradient(y, x) is None


def test_ops_of_the_function_run_now_while_another_function_is_traced():
    kinds = []

    @df.function
    def inner(x):
        return df.py_function(lambda v: kinds.append(df.executing_eagerly()) or v, [x], df.float32)

    df.function(lambda x: inner(x) + 1)(df.constant(1.0))
    assert kinds == [True]


def test_a_function_in_a_loop_is_called_at_each_iteration():
    calls = []

    @df.function
    def f(n):
        def iteration(i):
            df.py_function(lambda v: calls.append(int(v)), [i], None)
            return (i + 1,)

        return df.while_loop(lambda i: i < n, iteration, (df.constant(0),))

    f(df.constant(3))
    assert calls == [0, 1, 2]


def test_print_runs_at_each_call_not_while_tracing(capsys):
    @df.function
    def f(x):
        df.print("value", x)

    f.get_concrete_function(df.TensorSpec([], df.int32))
    assert capsys.readouterr().err == ""
    f(df.constant(1))
    f(df.constant(2))
    assert capsys.readouterr().err == "value 1\nvalue 2\n"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (df.constant([1, 2, 3]), "[1 2 3]"),
        (df.constant(6.0), "6"),
        (df.constant([0.1, 1 / 3, 1e10]), "[0.1 0.333333343 1e+10]"),
        (df.constant(1 / 3, df.float64), "0.33333333333333331"),
        (df.constant([float("nan"), float("inf"), -float("inf")]), "[nan inf -inf]"),
        (df.constant([True, False]), "[1 0]"),
        (df.range(9), "[0 1 2 ... 6 7 8]"),
        (df.constant([[1, 2], [3, 4]]), "[[1 2]\n [3 4]]"),
        (df.ones([1, 2, 1]), "[[[1]\n  [1]]]"),
        (df.zeros([0]), "[]"),
        ([df.constant(1), "a", None], "[1, 'a', None]"),
        ((df.constant([1]),), "([1],)"),
        ({"x": df.constant(1.5)}, "{'x': 1.5}"),
        (df.Variable(2.0), "2"),
        (7, "7"),
    ],
)
def test_print_shows_values_as_tensorflow_does(value, shown, capsys):
    df.print(value)
    assert capsys.readouterr().err == shown + "\n"


def test_print_takes_a_separator_and_an_end(capsys):
    df.print("a", 1, df.constant(2), sep=",", end="!")
    assert capsys.readouterr().err == "a,1,2!"


@pytest.mark.parametrize(("summarize", "shown"), [(1, "[0 ... 8]"), (-1, "[0 1 2 3 4 5 6 7 8]")])
def test_print_shows_as_many_elements_as_requested(summarize, shown, capsys):
    df.print(df.range(9), summarize=summarize)
    assert capsys.readouterr().err == shown + "\n"


def test_print_writes_to_the_stream_it_is_given(tmp_path, capsys):
    path = tmp_path / "log"
    said = []
    df.print("out", output_stream=sys.stdout)
    df.print("file", output_stream=f"file://{path}")
    df.print("file", output_stream=f"file://{path}")
    df.print("call", output_stream=said.append)
    assert capsys.readouterr() == ("out\n", "")
    assert path.read_text() == "file\nfile\n"
    assert said == ["call\n"]


def test_print_refuses_a_stream_that_is_none():
    with pytest.raises(DTypeError, match="output_stream"):
        df.print("x", output_stream=3)


def test_py_function_is_a_decorator(mode):
    @df.py_function(Tout=df.float32)
    def reversed_product(x, y):
        """The product, backwards."""
        return (x * y).numpy()[::-1]

    result = mode(lambda x: reversed_product(x, [1.0, 10.0]))(df.constant([2.0, 3.0]))
    assert result.numpy().tolist() == [30.0, 2.0]
    assert reversed_product.__doc__ == "The product, backwards."


def test_numpy_function_is_a_decorator(mode):
    @df.numpy_function(Tout=[df.float32, df.float32])
    def parts(x):
        return x + 1, x - 1

    more, less = mode(parts)(df.constant([2.0]))
    assert (more.numpy().tolist(), less.numpy().tolist()) == ([3.0], [1.0])


@pytest.mark.parametrize("call", [df.numpy_function, df.py_function])
@pytest.mark.parametrize("under_a_tape", [False, True])
def test_set_shape_declares_the_result_of_a_python_function(call: Any, under_a_tape: bool) -> None:
    @df.function
    def f(n: Any) -> Any:
        with df.GradientTape() if under_a_tape else contextlib.nullcontext():
            state, count = call(
                lambda n: (np.arange(3, dtype=np.float32), np.int32(n)), [n], [df.float32, df.int32]
            )
            state.set_shape([3])
        assert (state.shape, count.shape) == ((3,), ())
        return df.reduce_sum(state * 2.0), count

    total, count = f(df.constant(5))
    assert (float(total), int(count)) == (6.0, 5)


def test_the_declared_shape_is_checked_when_the_function_runs() -> None:
    @df.function
    def f(n: Any) -> Any:
        rows = df.numpy_function(lambda n: np.ones([n, 2], np.float32), [n], df.float32)
        rows.set_shape([None, 2])
        return df.reduce_sum(rows, axis=0)

    assert f(df.constant(3)).numpy().tolist() == [3.0, 3.0]
    assert f(df.constant(4)).numpy().tolist() == [4.0, 4.0]

    @df.function
    def wrong() -> Any:
        x = df.numpy_function(lambda: np.ones([2], np.float32), [], df.float32)
        x.set_shape([3])
        return x + 1.0

    with pytest.raises(InvalidArgumentError, match=r"\(2,\)"):
        wrong()


def test_a_shape_that_an_op_has_read_already_is_not_declared_again() -> None:
    @df.function
    def f(n: Any) -> Any:
        x = df.numpy_function(lambda n: np.ones([3], np.float32), [n], df.float32)
        y = x + 1.0
        x.set_shape([3])
        return y

    with pytest.raises(InvalidArgumentError, match="incompatible"):
        f(df.constant(1))


def test_a_state_of_an_environment_in_a_loop() -> None:
    def step(state: Any) -> Any:
        return state + 1.0, np.int32(2), np.int32(state[0] > 2)

    @df.function
    def episode(state: Any) -> Any:
        total = df.constant(0)
        for _ in df.range(10):
            shape = state.shape
            state, reward, done = df.numpy_function(
                lambda s: (s + 1.0, np.int32(2), np.int32(s[0] > 2)),
                [state],
                [df.float32, df.int32, df.int32],
            )
            reward.set_shape([])
            done.set_shape([])
            state.set_shape(shape)
            total += reward
            if df.cast(done, df.bool):
                break
        return total, state

    total, state = episode(df.zeros([4]))
    assert (int(total), state.numpy().tolist()) == (8, [4.0] * 4)
