"""Python values from globals and closures: traces keep them as constants, and report it."""

from __future__ import annotations

import functools
import gc
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


def test_explain_reports_what_was_compiled_in_and_where():
    f = df.function(scaled)
    f(X)
    assert f.explain().split("\n")[-1] == f"RATE = 0.5 was compiled in (read in line {line_of(scaled)})"


def test_explain_reports_what_has_changed_since():
    f = df.function(scaled)
    f(X)
    globals()["RATE"] = 0.25
    assert f.explain().endswith(
        "it is 0.25 now, which no trace has read: Pass it as an argument, or keep it in a df.Variable"
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
def test_values_are_distinguished_by_type_and_bits(first, second):
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


def test_changes_by_the_function_itself_do_not_warn():
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


# Attributes


class Options:
    __slots__ = ("rate",)

    def __init__(self, rate):
        self.rate = rate


class Optimizer:
    decay = 0.5
    calls = 0

    def __init__(self):
        self.lr = 0.1
        self.options = Options(2.0)
        self.steps = 0

    @property
    def warm(self):
        raise AssertionError("no code of the user's is run to look")

    @df.function
    def step(self, x):
        self.steps += 1
        shown = self.warm if x is None else 0.0
        return x * self.lr * self.options.rate * self.decay + shown

    @df.function
    def inside(self, x):
        return df.cond(x > 0.0, lambda: x * self.lr, lambda: x)

    def __call__(self, x):
        return x * self.lr


options = Options(3.0)


def stale(f, name):
    """The line of ``explain`` about a name's present value; None if there is none."""
    lines = [line for line in f.explain().split("\n") if line.startswith(f"{name} = ")]
    return lines[0].partition("; it is ")[2].partition(" now")[0] or None if lines else "unknown"


def test_a_changed_attribute_of_self_is_reported():
    optimizer = Optimizer()
    optimizer.step(X)
    assert stale(optimizer.step, "self.lr") is None
    optimizer.lr = 0.01
    assert stale(optimizer.step, "self.lr") == "0.01"
    assert "self.lr = 0.1 was compiled in" in optimizer.step.explain()


def test_attributes_of_attributes_and_of_classes_are_reported():
    optimizer = Optimizer()
    optimizer.step(X)
    optimizer.options.rate = 5.0
    optimizer.decay = 0.25
    assert stale(optimizer.step, "self.options.rate") == "5.0"
    assert stale(optimizer.step, "self.decay") == "0.25"


def test_each_object_has_its_own_values():
    first, second = Optimizer(), Optimizer()
    first.step(X)
    second.step(X)
    second.lr = 1.0
    assert stale(first.step, "self.lr") is None
    assert stale(second.step, "self.lr") == "1.0"


def test_attributes_that_the_function_writes_are_its_own_business():
    optimizer = Optimizer()
    optimizer.step(X)
    assert stale(optimizer.step, "self.steps") == "unknown"


def test_functions_inside_of_a_method_read_its_object():
    optimizer = Optimizer()
    optimizer.inside(X)
    optimizer.lr = 3.0
    assert stale(optimizer.inside, "self.lr") == "3.0"


def test_attributes_of_globals_closures_and_callables_are_reported():
    local, optimizer = Options(1.0), Optimizer()
    f = df.function(lambda x: x * options.rate * local.rate)
    g = df.function(optimizer)
    f(X)
    g(X)
    options.rate, local.rate, optimizer.lr = 4.0, 5.0, 6.0
    assert stale(f, "options.rate") == "4.0"
    assert stale(f, "local.rate") == "5.0"
    assert stale(g, "self.lr") == "6.0"
    options.rate = 3.0


def test_a_trace_that_keeps_another_attribute_warns():
    optimizer = Optimizer()
    optimizer.step(X)
    optimizer.lr = 0.2
    with pytest.warns(
        CapturedValueWarning, match=r"self\.lr = 0\.2, while earlier traces keep self\.lr = 0\.1"
    ):
        optimizer.step(Y)


def test_an_object_that_is_gone_has_no_values():
    optimizer = Optimizer()
    step = optimizer.step.__wrapped__
    optimizer.step(X)
    del optimizer
    gc.collect()
    assert "self.lr = 0.1 was compiled in" in step.explain()
