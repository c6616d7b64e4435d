"""``df.debugging.enable_check_numerics``: the op, the line and the element where a nan or inf comes from."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import dualflow as df
from dualflow.core import dispatch
from dualflow.eager.engine import EAGER


@pytest.fixture
def checked() -> Iterator[None]:
    df.debugging.enable_check_numerics()
    yield
    df.debugging.disable_check_numerics()


def line_of(function: object, part: str) -> int:
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if part in line)


@pytest.mark.usefixtures("checked")
def test_an_eager_op_is_named_with_line_index_and_value() -> None:
    def bad(x):
        y = x + 1.0
        return df.math.log(y)

    with pytest.raises(df.errors.InvalidArgumentError) as caught:
        bad(df.constant([[1.0, 2.0], [-1.0, -3.0]]))
    message = str(caught.value)
    assert message.startswith("log(float32[2, 2]) computed -inf at [1, 0] of float32[2, 2], from 0.0")
    assert f'File "{__file__}", line {line_of(bad, "math.log")}, in ' in message


@pytest.mark.usefixtures("checked")
def test_a_traced_function_names_its_own_line() -> None:
    @df.function
    def bad(x):
        y = df.exp(x)
        return y * 2.0

    with pytest.raises(
        df.errors.InvalidArgumentError, match=r"exp\(float32\[1\]\) computed inf at \[0\]"
    ) as caught:
        bad(df.constant([1000.0]))
    assert f"line {line_of(bad.python_function, 'df.exp')}, in " in str(caught.value)


@pytest.mark.usefixtures("checked")
def test_branches_and_loops_are_checked_inside() -> None:
    @df.function
    def shrink(x):
        y = x
        while x > -2.0:
            x = x - 1.0
            y = df.sqrt(x)
        return y

    with pytest.raises(
        df.errors.InvalidArgumentError, match=r"sqrt\(float32\[\]\) computed nan, from -1\.0"
    ) as caught:
        shrink(df.constant(1.0))
    assert f"line {line_of(shrink.python_function, 'df.sqrt')}, in " in str(caught.value)


@pytest.mark.usefixtures("checked")
@pytest.mark.parametrize("compiled", [False, True])
def test_a_gradient_is_checked_and_nothing_is_assigned(compiled: bool) -> None:
    v = df.Variable([0.0, 1.0])

    def step():
        with df.GradientTape() as tape:
            loss = df.reduce_sum(df.sqrt(v))
        v.assign_sub(tape.gradient(loss, v))

    with pytest.raises(df.errors.InvalidArgumentError, match=r"divide.* computed inf at \[0\]"):
        (df.function(step) if compiled else step)()
    np.testing.assert_array_equal(v, [0.0, 1.0])


@pytest.mark.usefixtures("checked")
@pytest.mark.parametrize("compiled", [False, True])
def test_nonfinite_inputs_are_not_reported(compiled: bool) -> None:
    def f(x):
        return df.reduce_sum(x * 2.0)

    result = (df.function(f) if compiled else f)(df.constant([1.0, np.nan]))
    assert np.isnan(result.numpy())


@pytest.mark.usefixtures("checked")
def test_results_updates_and_random_numbers_are_as_without() -> None:
    v = df.Variable(1.0)

    @df.function
    def f(x):
        v.assign_add(df.reduce_sum(x))
        return df.cast(x, df.int32), x / 2.0

    whole, half = f(df.constant([1.0, 2.0]))
    np.testing.assert_array_equal(whole, [1, 2])
    np.testing.assert_array_equal(half, [0.5, 1.0])
    assert v.numpy() == 4.0


def test_when_disabled_the_engine_and_the_compiled_call_are_back() -> None:
    f = df.function(lambda x: df.sqrt(x))
    df.debugging.enable_check_numerics()
    df.debugging.enable_check_numerics()
    with pytest.raises(df.errors.InvalidArgumentError):
        f(df.constant(-1.0))
    df.debugging.disable_check_numerics()
    df.debugging.disable_check_numerics()
    assert dispatch.current() is EAGER
    assert np.isnan(f(df.constant(-1.0)).numpy())
    assert f.experimental_get_tracing_count() == 1


@pytest.mark.usefixtures("checked")
def test_other_threads_are_not_checked() -> None:
    results = []
    thread = threading.Thread(target=lambda: results.append(df.sqrt(df.constant(-1.0)).numpy()))
    thread.start()
    thread.join()
    assert np.isnan(results).all()


def test_it_is_not_switched_inside_of_a_tape_or_a_trace() -> None:
    with (
        df.GradientTape(),
        pytest.raises(df.errors.FailedPreconditionError, match="while a function is traced"),
    ):
        df.debugging.enable_check_numerics()
    with pytest.raises(df.errors.FailedPreconditionError, match="while a function is traced"):
        df.function(df.debugging.enable_check_numerics)()
