"""``@function(strict=True)``: an op that can't run natively is an error with line and reason."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import dualflow as df


def refusal(f: object, *args: object) -> str:
    with pytest.raises(df.errors.FailedPreconditionError) as caught:
        f(*args)
    return str(caught.value)


def test_native_ops_run() -> None:
    v = df.Variable(df.ones([3]))

    @df.function(strict=True)
    def step(x):
        with df.GradientTape() as tape:
            loss = df.reduce_mean((x @ df.reshape(v, [3, 1])) ** 2)
        v.assign_sub(0.1 * tape.gradient(loss, v))
        return loss

    assert step(df.ones([2, 3])).numpy() == 9.0


def test_the_op_its_line_the_reason_and_the_remedy_are_named() -> None:
    @df.function(strict=True)
    def f(x):
        y = x * 2.0
        return df.sort(y) + 1.0

    message = refusal(f, df.ones([4]))
    line = inspect.getsourcelines(f.python_function)[1] + 3
    assert "'f' is strict" in message
    assert "sort would run through NumPy, as NumPy sorts; compute it outside of the function" in message
    assert f'File "{__file__}", line {line}, in ' in message


def test_all_ops_are_named_at_once() -> None:
    @df.function(strict=True)
    def f(x):
        df.print(x)
        return df.random.normal([2]) + df.numpy_function(np.sin, [x], df.float32)

    message = refusal(f, df.ones([2]))
    assert "print what the function returns" in message
    assert "draw the numbers outside" in message
    assert "would run in Python" in message


def test_it_is_refused_when_it_is_traced_and_keeps_no_trace() -> None:
    f = df.function(lambda x: df.sort(x), strict=True)
    with pytest.raises(df.errors.FailedPreconditionError):
        f.get_concrete_function(df.TensorSpec([3]))
    assert f.concrete_functions == []
    assert "sort" in refusal(f, df.ones([3]))


def test_without_strict_it_runs_and_status_names_the_part() -> None:
    f = df.function(lambda x: df.sort(x))
    f(df.ones([3]))
    assert "numpy: sort" in f.status()


def test_dynamic_sizes_are_refused_when_they_are_called() -> None:
    f = df.function(lambda x: df.sort(x), input_signature=[df.TensorSpec([None])], strict=True)
    assert "sort would run through NumPy" in refusal(f, df.ones([3]))


def test_a_gradient_that_is_not_native_is_refused() -> None:
    v = df.Variable(df.ones([5]))

    @df.custom_gradient
    def sorted_gradient(x):
        return x * 2.0, df.sort

    @df.function(strict=True)
    def f():
        return sorted_gradient(v.value())

    np.testing.assert_array_equal(f(), 2 * np.ones([5]))
    with df.GradientTape() as tape:
        rows = f()
    with pytest.raises(df.errors.FailedPreconditionError, match="would run through NumPy"):
        tape.gradient(rows, v)


def test_methods_are_strict_too() -> None:
    class Sorter:
        @df.function(strict=True)
        def __call__(self, x):
            return df.sort(x)

    assert "sort" in refusal(Sorter(), df.ones([3]))


def test_a_dtype_without_native_code_must_be_cast() -> None:
    f = df.function(lambda x: df.sin(x), strict=True)
    assert "cast to float32 or float64" in refusal(f, df.ones([3], df.complex64))
