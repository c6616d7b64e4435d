"""Calls that make no trace: ``run_functions_eagerly``, for a debugger, and functions that are inlined."""

from __future__ import annotations

import traceback
from concurrent.futures import ThreadPoolExecutor

import pytest

import dualflow as df
from dualflow.function.run_eagerly import CALL_MODE

X = df.constant([1.0, 2.0])


@pytest.fixture
def eagerly():
    """Functions run as Python in the test, and compiled again after it."""
    df.config.run_functions_eagerly(True)
    yield
    df.config.run_functions_eagerly(False)


def test_a_function_that_was_compiled_runs_as_python_too():
    modes = []

    @df.function
    def f(x, scale=1.0):
        modes.append(df.executing_eagerly())
        return x * scale

    for _ in range(3):
        f(X)
    df.config.run_functions_eagerly(True)
    try:
        f(X), f(x=X), f(X, scale=2.0), f(X.numpy())
    finally:
        df.config.run_functions_eagerly(False)
    f(X)
    assert modes == [False] + [True] * 4


def test_methods_and_functions_inside_of_functions_run_as_python(eagerly):
    class Model:
        def __init__(self):
            self.weight = df.Variable(3.0)

        @df.function
        def call(self, x):
            return self.inner(x) + float(x[0])

        @df.function
        def inner(self, x):
            return x * float(self.weight.numpy())

    assert Model().call(X).numpy().tolist() == [4.0, 7.0]


def test_python_conditions_and_effects_happen_at_each_call(eagerly):
    log = []

    @df.function
    def f(x):
        if x[0] > 0.0:
            log.append("positive")
        return x

    f(X), f(X), f(-X)
    assert log == ["positive", "positive"]


def test_gradients_are_the_compiled_ones(eagerly):
    f = df.function(lambda x: df.reduce_sum(x**3))
    with df.GradientTape() as tape:
        tape.watch(X)
        y = f(X)
    assert tape.gradient(y, X).numpy().tolist() == [3.0, 12.0]


def test_nothing_is_traced_and_nothing_refused(eagerly):
    f = df.function(lambda x: df.boolean_mask(x, x > 1.0))
    assert f(X).numpy().tolist() == [2.0]
    assert f.experimental_get_tracing_count() == 0


def test_an_error_shows_the_users_lines(eagerly):
    f = df.function(lambda x: df.reshape(x, [7]))
    with pytest.raises(ValueError, match="do not fill") as caught:
        f(X)
    assert {frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)} == {__file__}


def test_concrete_functions_stay_compiled():
    modes = []
    f = df.function(lambda x: modes.append(df.executing_eagerly()) or x * 2.0)
    concrete = f.get_concrete_function(X)
    df.config.run_functions_eagerly(True)
    try:
        assert concrete(X).numpy().tolist() == [2.0, 4.0]
    finally:
        df.config.run_functions_eagerly(False)
    assert modes == [False]


# Inlined


def test_an_inlined_function_has_no_trace(mode):
    f = df.function(lambda x: x if df.reduce_sum(x) > 0.0 else -x)
    with CALL_MODE.inlined():
        result = mode(lambda x: f(x) + 1.0)(df.constant([-2.0]))
    assert result.numpy().tolist() == [3.0]
    assert f.experimental_get_tracing_count() == 0
    assert f(df.constant([-2.0])).numpy().tolist() == [2.0]
    assert f.experimental_get_tracing_count() == 1


def test_only_the_thread_that_requests_is_inlined():
    f = df.function(lambda x: x * 2.0)
    with CALL_MODE.inlined(), ThreadPoolExecutor(1) as pool:
        pool.submit(f, df.constant(1.0)).result()
    assert f.experimental_get_tracing_count() == 1


def test_inlined_blocks_may_nest_and_fail():
    f = df.function(lambda x: x * 2.0)
    with CALL_MODE.inlined():
        with pytest.raises(KeyError), CALL_MODE.inlined():
            raise KeyError
        f(df.constant(1.0))
    assert f.experimental_get_tracing_count() == 0
    f(df.constant(1.0))
    assert f.experimental_get_tracing_count() == 1
