"""Which draws repeat: in a traced function each random op with a seed has its own stream, as in TensorFlow.

A pattern names the draws of a program in order: equal numbers have equal letters. The patterns are what
TensorFlow 2.21 prints, except where a test states otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.compat import v1


def uniform(seed: int | None = None) -> Any:
    return df.random.uniform([2], seed=seed)


def pattern(draws: Iterable[Any]) -> str:
    letters: dict[bytes, str] = {}
    return "".join(
        letters.setdefault(np.asarray(x).tobytes(), "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[len(letters)]) for x in draws
    )


def begun_anew_and_again(draws: Callable[[], Iterable[Any]]) -> str:
    """The pattern after ``set_seed``, which must be the same twice."""
    df.random.set_seed(1234)
    first = [np.asarray(x) for x in draws()]
    df.random.set_seed(1234)
    np.testing.assert_array_equal(first, [np.asarray(x) for x in draws()])
    return pattern(first)


def test_an_op_seed_begins_at_the_same_number_eagerly_and_in_each_function():
    def draws() -> list[Any]:
        f, g = df.function(lambda: uniform(1)), df.function(lambda: uniform(1))
        return [uniform(1), f(), g(), f(), g(), uniform(1)]

    assert begun_anew_and_again(draws) == "AAABBB"


def test_two_ops_of_one_seed_draw_the_same_and_differ_between_calls():
    def draws() -> list[Any]:
        f = df.function(lambda: (uniform(1), uniform(1)))
        return [*f(), *f(), *f()]

    assert begun_anew_and_again(draws) == "AABBCC"


def test_another_trace_of_a_function_starts_from_scratch():
    def draws() -> list[Any]:
        f = df.function(lambda n: uniform(1))
        return [f(0), f(0), f(1), f(0), f(1)]

    assert begun_anew_and_again(draws) == "ABACB"


def test_ops_without_seeds_go_on_with_the_eager_stream():
    """They never repeat each other's numbers; TensorFlow's do in other functions and traces."""

    def draws() -> list[Any]:
        f = df.function(lambda: (uniform(), uniform(5), uniform()))
        g = df.function(lambda n: uniform())
        return [uniform(), *f(), g(0), g(1), uniform(), uniform(5)]

    assert begun_anew_and_again(draws) == "ABCDEFGC"


def test_the_seed_zero_is_a_seed():
    def draws() -> list[Any]:
        f = df.function(lambda: (uniform(0), uniform()))
        return [uniform(0), uniform(), *f()]

    assert begun_anew_and_again(draws) == "ABAC"


def test_a_python_loop_makes_several_ops_and_a_tensor_loop_one():
    @df.function
    def unrolled() -> Any:
        return [uniform(1) for _ in range(3)]

    @df.function
    def looped() -> Any:
        drawn = df.TensorArray(df.float32, 3)
        for i in df.range(3):
            drawn = drawn.write(i, uniform(1))
        return drawn.stack()

    assert begun_anew_and_again(lambda: [*unrolled(), *unrolled()]) == "AAABBB"
    assert begun_anew_and_again(lambda: [*looped(), *looped()]) == "ABCDEF"


def test_each_branch_has_a_stream():
    @df.function
    def f(c: Any) -> Any:
        if c:  # noqa: SIM108  # two ops are what is tested
            drawn = uniform(1)
        else:
            drawn = uniform(1)
        return drawn

    yes, no = df.constant(True), df.constant(False)
    assert begun_anew_and_again(lambda: [f(yes), f(no), f(yes), f(yes), f(no)]) == "AABCB"


def test_each_call_of_a_function_in_another_has_streams_of_its_own():
    def draws() -> list[Any]:
        inner = df.function(lambda: uniform(1))
        outer = df.function(lambda: (inner(), inner()))
        return [*outer(), *outer(), inner()]

    assert begun_anew_and_again(draws) == "AABBA"


def test_a_random_op_of_run_time_size_has_a_stream_of_its_own():
    def draws() -> list[Any]:
        f = df.function(
            lambda n: (df.random.uniform([n], seed=1), df.random.uniform([n], seed=1)),
            input_signature=[df.TensorSpec([], df.int32)],
        )
        inside = df.function(lambda n: f(n), input_signature=[df.TensorSpec([], df.int32)])
        return [*f(df.constant(2)), *f(df.constant(2)), *inside(df.constant(2)), uniform(1)]

    assert begun_anew_and_again(draws) == "AABBAAA"


def test_many_numbers_come_from_the_stream_of_the_op():
    def many() -> Any:
        return df.random.uniform([40_000], seed=1)[:2]

    def draws() -> list[Any]:
        f = df.function(lambda: (many(), many()))
        return [*f(), *f(), many()]

    assert begun_anew_and_again(draws) == "AABBA"


def test_dropouts_of_one_seed_drop_the_same_elements():
    x = df.range(1.0, 101.0)

    def draws() -> list[Any]:
        f = df.function(lambda: [df.nn.dropout(x, 0.5, seed=5) for _ in range(2)])
        return [*f(), *f()]

    assert begun_anew_and_again(draws) == "AABB"


def test_a_taped_call_draws_on():
    """TensorFlow's taped calls begin anew: it runs another function there."""
    x = df.constant([1.0, 1.0])
    f = df.function(lambda x: x * uniform(1))

    def taped() -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        np.testing.assert_array_equal(tape.gradient(y, x), y)
        return y

    assert begun_anew_and_again(lambda: [f(x), taped(), f(x), taped()]) == "ABCD"


def test_a_seed_set_between_calls_begins_the_streams_of_traces_again():
    """Also with another seed than the trace began with, which TensorFlow's traces go on using."""
    f = df.function(lambda: uniform(1))
    df.random.set_seed(1)
    before = [f(), f()]
    df.random.set_seed(2)
    after = [f(), uniform(1)]
    df.random.set_seed(1)
    again = [f(), f()]
    assert pattern([*before, *after, *again]) == "ABCCAB"


def test_calls_in_an_explicit_graph_have_streams_of_its_session():
    with v1.Graph().as_default(), v1.Session() as session:
        v1.set_random_seed(1)
        f = df.function(lambda: v1.random_uniform([2], seed=2))
        a, b = f(), f()
        first = [*session.run([a, b]), *session.run([a, b])]
        with v1.Session() as other:
            second = other.run([a, b])
    assert pattern([*first, *second]) == "AABBAA"


@pytest.mark.parametrize("inspect", [df.verify, df.compare])
def test_inspection_gives_both_modes_the_same_numbers_and_puts_streams_back(inspect: Any):
    """Eagerly two calls with one seed differ, and compiled they don't: no fault of the compiled code."""
    f = df.function(lambda: (uniform(1), uniform(1), uniform()))
    df.random.set_seed(7)
    first = [np.asarray(x) for x in f()]
    df.random.set_seed(7)
    report = inspect(f)
    assert getattr(report, "difference", report).agrees
    np.testing.assert_array_equal([np.asarray(x) for x in f()], first)
    df.random.set_seed(7)
    eager = uniform(1)
    df.random.set_seed(7)
    inspect(f)
    np.testing.assert_array_equal(uniform(1), eager)


def test_functions_that_run_eagerly_draw_from_the_eager_stream():
    def draws() -> list[Any]:
        f = df.function(lambda: uniform(1))
        df.config.run_functions_eagerly(True)
        try:
            return [f(), f(), uniform(1)]
        finally:
            df.config.run_functions_eagerly(False)

    assert begun_anew_and_again(draws) == "ABC"


def test_a_failed_call_leaves_the_streams_where_eager_code_would():
    v = df.Variable(0.0)

    @df.function
    def f(x: Any) -> Any:
        v.assign(df.random.uniform([], seed=1))
        df.debugging.assert_positive(x)
        return v + df.random.uniform([], seed=1)

    df.random.set_seed(3)
    f(df.constant(1.0))
    first = v.numpy()
    with pytest.raises(df.errors.InvalidArgumentError):
        f(df.constant(-1.0))
    assert v.numpy() != first
    df.random.set_seed(3)
    f(df.constant(1.0))
    assert v.numpy() == first


def test_a_seed_may_be_taken_away_and_may_be_a_whole_float():
    df.random.set_seed(5)
    seeded = uniform()
    df.random.set_seed(None)
    first, again = uniform(), uniform(1)
    df.random.set_seed(None)
    assert pattern([seeded, first, uniform(), again, df.random.uniform([2], seed=1.0)]) == "ABCDD"
