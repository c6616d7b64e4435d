"""Retraces explained, and warnings about too many."""

from __future__ import annotations

import warnings

import pytest

import dualflow as df
from dualflow.compat import v1
from dualflow.function import RetracingWarning


def traced(*calls):
    f = df.function(lambda x, n=0: df.constant(0), name="f")
    for call in calls:
        f(*call)
    return f.explain().split("\n")


def test_the_first_trace_has_no_reason():
    assert traced((df.constant([1.0]), 3)) == ["f was traced 1 time.", "1. at call 1: x: float32[1], n: 3"]


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ((df.zeros([3, 4]),), (df.zeros([3, 5]),), "axis 1 of x went from 4 to 5"),
        ((df.zeros([3]),), (df.zeros([3, 1]),), "shape (3,) to (3, 1), of another rank"),
        ((df.zeros([3]),), (df.zeros([3], df.int32),), "float32 to int32 (df.cast it"),
        ((1.0, 2), (1.0, 3), "n went from 2 to 3 (Python numbers are compiled in: pass df.constant(n)"),
        ((1, "a"), (1, "b"), "n went from 'a' to 'b'"),
        ((df.constant(1.0),), (1.0,), "x went from float32[] to 1.0"),
        (([1],), ((1,),), "x went from [*] to (*) (another structure: keep to one)"),
        ((None,), (df.constant(1.0),), "x went from None to * (another structure: keep to one)"),
        (({"a": 1},), ({"b": 1},), "x went from dict(a=*) to dict(b=*) (another structure: keep to one)"),
        ((df.zeros([3, 4]),), (df.zeros([3, 5]),), "(this trace serves all sizes)"),
        (("a", df.Variable(1.0)), ("a", df.constant(1.0)), "n went from variable float32[] to float32[]"),
    ],
)
def test_the_argument_that_differs_is_named_with_a_remedy(first, second, reason):
    assert reason in traced(first, second)[-1]


def test_an_unknown_rank_is_another_rank():
    f = df.function(df.exp, name="f")
    with v1.Graph().as_default():
        f(v1.placeholder(v1.float32, None))
    assert float(f(df.constant(0.0))) == 1.0
    assert "x went from shape <unknown> to (), of another rank" in f.explain()


def test_the_difference_is_to_the_nearest_trace():
    x, y = df.zeros([2]), df.zeros([3], df.int32)
    assert traced((x, 1), (y, 2), (y, 3))[-1].endswith(
        "because n went from 2 to 3 (Python numbers are compiled in: pass df.constant(n) to trace once)"
    )


def test_calls_are_counted_on_all_call_paths():
    f = df.function(lambda x, n: x * n, name="f")
    x = df.constant(1.0)
    f(x, 2.0), f(x, n=2.0), f(x, 2.0), f(x, 3.0)
    assert "at call 4" in f.explain()
    assert f.cache_info()[:2] == (2, 2)


def test_five_traces_in_ten_calls_warn_and_name_the_argument():
    f = df.function(lambda x, n: x * n, name="f")
    x = df.constant(1.0)
    for n in range(4):
        f(x, n)
    message = r"5 out of the last 5 calls to f.*n went from .* to 4"
    with pytest.warns(RetracingWarning, match=message) as caught:
        f(x, 4)
    assert caught[0].filename == __file__


def test_traces_far_apart_do_not_warn():
    f = df.function(lambda x, n: x * n)
    x = df.constant(1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RetracingWarning)
        for n in range(8):
            for _ in range(4):
                f(x, n)


def test_a_function_warns_twice_at_most():
    f = df.function(lambda x, n: x * n)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(30):
            f(df.constant(1.0), n)
    assert len([w for w in caught if w.category is RetracingWarning]) == 2


def test_unrolled_recursion_does_not_warn():
    @df.function
    def power(x, n):
        return x * power(x, n - 1) if n > 1 else x

    with warnings.catch_warnings():
        warnings.simplefilter("error", RetracingWarning)
        power(df.constant(2.0), 20)


def test_the_count_of_traces_is_public():
    f = df.function(lambda x: x)
    f(1.0), f(2.0), f(2.0)
    assert f.experimental_get_tracing_count() == 2


def test_a_trace_of_the_same_structure_is_nearer_than_another():
    x, y = df.zeros([2]), df.zeros([3], df.int32)
    assert traced((x, 1), ([y], 2), (y, 2))[-1].endswith(
        "because x went from float32 to int32 (df.cast it before the call); n went from 1 to 2 "
        "(Python numbers are compiled in: pass df.constant(n) to trace once)"
    )


def test_an_object_that_equals_no_other_is_named():
    class Config:
        def __repr__(self):
            return "a config"

    kept = [Config(), Config()]
    f = df.function(lambda x, c: x)
    for config in kept:
        f(1.0, config)
    assert "(another object: pass the same one, or give its class __eq__ and __hash__)" in f.explain()


def test_status_of_an_uncompiled_trace_is_reported():
    f = df.function(lambda x: x + 1.0, name="f")
    f.get_concrete_function(df.TensorSpec([None]))
    assert "compiled for those of a call, and not called yet\n" in f.status()
    f(df.constant([1.0]))
    assert f.status().startswith("<ConcreteFunction f(x: float32[?])>\n    native: 1 kernel")


def test_status_reports_how_each_part_runs():
    f = df.function(lambda x: x + 1.0, name="f")
    assert f.status() == "f has not been traced yet"
    f(df.constant([1.0]))
    assert f.status().startswith("<ConcreteFunction f(x: float32[1])>\n    native: ")
