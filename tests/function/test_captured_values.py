"""Python values from globals and closures: traces keep them, and say so."""

from __future__ import annotations

import functools
import warnings

import pytest

import dualflow as df
from dualflow.function import CapturedValueWarning

RATE = 0.5
TABLE = {"rate": 0.5}
X, Y = df.constant(1.0), df.constant([1.0])


@pytest.fixture(autouse=True)
def restored():
    yield
    globals()["RATE"] = 0.5


def scaled(x):
    return x * RATE


def line_of(function):
    return function.__code__.co_firstlineno + 1


def test_a_trace_keeps_the_value_it_was_made_with():
    f = df.function(scaled)
    assert float(f(X)) == 0.5
    globals()["RATE"] = 0.25
    assert float(f(X)) == 0.5


def test_explain_says_what_was_compiled_in_and_where():
    f = df.function(scaled)
    f(X)
    assert f.explain().split("\n")[-1] == f"RATE = 0.5 was compiled in (read in line {line_of(scaled)})"


def test_explain_says_what_has_changed_since():
    f = df.function(scaled)
    f(X)
    globals()["RATE"] = 0.25
    assert f.explain().endswith(
        "it is 0.25 now, which no trace has seen: Pass it as an argument, or keep it in a df.Variable"
    )


def test_traces_that_keep_different_values_warn_once():
    f = df.function(scaled)
    f(X)
    globals()["RATE"] = 0.25
    message = "scaled was traced with RATE = 0.25, while earlier traces keep RATE = 0.5 .*df.Variable"
    with pytest.warns(CapturedValueWarning, match=message) as caught:
        assert f(Y).numpy().tolist() == [0.25]
    assert caught[0].filename == __file__
    assert "RATE = 0.5 from trace 1 on, then 0.25 from trace 2 on was compiled in" in f.explain()
    globals()["RATE"] = 0.125
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(df.ones([2]))


@pytest.mark.parametrize(("first", "second"), [(1, True), (1, 1.0), (0.0, -0.0), ("a", "b"), (None, 0)])
def test_values_are_told_apart_by_type_and_bits(first, second):
    value = first
    f = df.function(lambda x: df.constant(repr(value) != ""))
    f(X)
    value = second
    assert f"it is {second!r} now" in f.explain()


def test_closures_and_functions_inside_are_looked_into():
    rate = 2.0

    def outer(x):
        def inner(y):
            return y * rate

        return inner(x)

    f = df.function(outer)
    f(X)
    assert "rate = 2.0 was compiled in" in f.explain()


def test_methods_are_looked_into():
    class Model:
        @df.function
        def call(self, x):
            return x * RATE

    model = Model()
    model.call(X)
    assert "RATE = 0.5 was compiled in" in model.call.explain()


def test_what_the_function_itself_changes_is_no_surprise():
    count = 0

    @df.function
    def f(x):
        nonlocal count
        count += 1
        return x

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(X), f(Y)
    assert "compiled in" not in f.explain()


def test_other_objects_and_other_callables_are_left_alone():
    f = df.function(lambda x: x * TABLE["rate"] * len("a"))
    f(X)
    g = df.function(functools.partial(scaled))
    g(X)
    assert "compiled in" not in f.explain() + g.explain()


def test_calls_do_not_pay_for_it(lines_run):
    f, g = df.function(scaled), df.function(lambda x: x * 0.5)
    for _ in range(3):
        f(X), g(X)
    assert lines_run(lambda: f(X)) == lines_run(lambda: g(X))
