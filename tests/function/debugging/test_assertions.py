"""``df.debugging.assert_*``: the same refusals op by op, traced, and in a graph that a session runs."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualflow as df
from dualflow.compat import v1
from dualflow.core.errors import InvalidArgumentError

debugging = df.debugging
Runs = Callable[[Callable[..., Any]], Callable[..., Any]]


PAIRS = {
    "assert_equal": np.equal,
    "assert_none_equal": np.not_equal,
    "assert_less": np.less,
    "assert_less_equal": np.less_equal,
    "assert_greater": np.greater,
    "assert_greater_equal": np.greater_equal,
}
SIGNS = {
    "assert_negative": np.less,
    "assert_positive": np.greater,
    "assert_non_negative": np.greater_equal,
    "assert_non_positive": np.less_equal,
}
numbers = st.lists(st.sampled_from([-1.0, 0.0, 1.0, float("nan")]), min_size=0, max_size=4)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(sorted(PAIRS)), numbers, st.sampled_from([-1.0, 0.0, 1.0]))
def test_a_relation_must_hold_for_all_elements(name: str, x: list[float], y: float) -> None:
    check, holds = getattr(debugging, name), PAIRS[name](np.array(x), y).all()
    for run in (check, df.function(check)):
        if holds:
            assert run(df.constant(x), df.constant(y)) is None
        else:
            with pytest.raises(InvalidArgumentError, match="did not hold"):
                run(df.constant(x), df.constant(y))


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(sorted(SIGNS)), numbers)
def test_signs(name: str, x: list[float]) -> None:
    check, holds = getattr(debugging, name), SIGNS[name](np.array(x), 0).all()
    for run in (check, df.function(check)):
        if holds:
            assert run(df.constant(x)) is None
        else:
            with pytest.raises(InvalidArgumentError, match="did not hold"):
                run(df.constant(x))


def test_the_error_reports_which_elements(mode: Runs) -> None:
    check = mode(lambda x, y: debugging.assert_equal(x, y, message="sizes", summarize=2))
    with pytest.raises(InvalidArgumentError) as caught:
        check(df.constant([[1, 2], [3, 4]]), df.constant([1, 5]))
    assert caught.value.message == (
        "sizes\nCondition x == y did not hold for 3 of 4 elements:\n    [0, 1]: x = 2, y = 5\n"
        "    [1, 0]: x = 3, y = 1"
    )


def test_the_error_of_a_large_tensor_reports_the_first_element() -> None:
    x = np.ones((100, 50), np.float32)
    x[3, 4] = x[70, 2] = -2
    check = df.function(lambda x: debugging.assert_positive(x))
    with pytest.raises(InvalidArgumentError, match=r"2 of 5000 elements:\n    \[3, 4\]: x = -2.0"):
        check(df.constant(x))
    assert "host" not in check.status()
    assert check(df.constant(abs(x))) is None


def test_a_size_may_be_open() -> None:
    check = df.function(debugging.assert_positive, input_signature=[df.TensorSpec([None])])
    assert check(df.constant([1.0])) is None
    with pytest.raises(InvalidArgumentError, match=r"\[1\]: x = -2.0"):
        check(df.constant([1.0, -2.0, 3.0]))


def test_the_error_names_the_line_of_a_traced_function() -> None:
    @df.function
    def root(x: Any) -> Any:
        debugging.assert_non_negative(x)
        return df.sqrt(x)

    assert root(df.constant(4.0)).numpy() == 2.0
    with pytest.raises(InvalidArgumentError) as caught:
        root(df.constant(-4.0))
    line = root.python_function.__code__.co_firstlineno + 2
    assert f", line {line}, in " in "".join(caught.value.__notes__)


def test_errors_of_static_values_are_raised_while_tracing() -> None:
    @df.function
    def f(x: Any) -> Any:
        debugging.assert_less(df.constant([1, 2]), [2, 2])
        return x

    with pytest.raises(InvalidArgumentError, match=r"\[1\]: x = 2, y = 2"):
        f.get_concrete_function(df.TensorSpec([3]))


def test_a_check_in_a_loop_stops_it() -> None:
    @df.function
    def count(n: Any) -> Any:
        done = 0
        for i in df.range(n):
            debugging.assert_less(i, 3)
            done = i
        return done

    assert count(df.constant(3)).numpy() == 2
    with pytest.raises(InvalidArgumentError, match="x < y did not hold: x = 3, y = 3"):
        count(df.constant(9))


def test_a_variable_is_as_it_was_where_a_check_fails() -> None:
    v = df.Variable(1.0)

    @df.function
    def step(x: Any) -> None:
        debugging.assert_positive(x)
        v.assign_add(x)

    step(df.constant(2.0))
    with pytest.raises(InvalidArgumentError):
        step(df.constant(-2.0))
    assert v.numpy() == 3.0


def test_a_session_runs_the_check_that_an_op_waits_for() -> None:
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(df.float32, [None])
        with v1.control_dependencies([debugging.assert_positive(x)]):
            y = x * 2.0
        assert session.run(y, {x: [1.0]}).tolist() == [2.0]
        with pytest.raises(InvalidArgumentError, match="x > 0"):
            session.run(y, {x: [-1.0]})


def test_tensors_of_dynamic_size_without_elements_satisfy_assertions() -> None:
    @df.function(input_signature=[df.TensorSpec([None, None])])
    def checked(x: Any) -> Any:
        debugging.assert_positive(x)
        debugging.assert_less(x, df.reduce_sum(x))
        return df.size(x)

    assert [checked(df.ones(shape)).numpy() for shape in ([2, 1], [0, 3], [2, 0])] == [2, 0, 0]
    with pytest.raises(
        InvalidArgumentError, match=r"x < y did not hold for 1 of 1 elements:\n    \[0, 0\]: x = 1"
    ):
        checked(df.ones([1, 1]))


def test_floats_that_are_near(mode: Runs) -> None:
    near = mode(debugging.assert_near)
    near(df.constant([1.0, 2.0]), df.constant([1.0, 2.000001]))
    near(df.constant(1j), df.constant(1j + 1e-16))
    mode(lambda x, y: debugging.assert_near(x, y, rtol=0.1))(df.constant(2.0), df.constant(2.1))
    mode(lambda x, y: debugging.assert_near(x, y, atol=0.2, rtol=0.0))(df.constant(2.0), df.constant(2.1))
    with pytest.raises(InvalidArgumentError, match=r"x = 2.0, y = 2.1"):
        near(df.constant(2.0), df.constant(2.1))
    near(df.constant(1.0, df.float16), df.constant(1.005, df.float16))


def test_integers_are_not_near() -> None:
    with pytest.raises(InvalidArgumentError, match="use assert_equal"):
        debugging.assert_near(1, 1)


def test_an_assertion_shows_its_data(mode: Runs) -> None:
    check = mode(lambda ok, x: debugging.Assert(ok, ["sizes", x, 7], summarize=2))
    assert check(df.constant(True), df.constant([1, 2, 3])) is None
    with pytest.raises(InvalidArgumentError, match=re.escape("assertion failed: sizes [1, 2, ...] 7")):
        check(df.constant(False), df.constant([1, 2, 3]))
    with pytest.raises(InvalidArgumentError, match=re.escape("assertion failed: sizes 5 7")):
        check(df.constant([True, False]), df.constant(5))


@pytest.mark.parametrize(
    ("x", "kinds"), [([np.nan, 1], "NaN"), ([-np.inf, 1], "Inf"), ([np.nan, np.inf], "Inf and NaN")]
)
@pytest.mark.parametrize("dtype", [df.float16, df.float32, df.float64])
def test_numbers_must_be_finite(mode: Runs, x: list[float], kinds: str, dtype: Any) -> None:
    for check in (debugging.check_numerics, debugging.assert_all_finite):
        run = mode(lambda x, check=check: check(x, "rates"))
        assert run(df.constant([1.0, 2.0], dtype)).numpy().tolist() == [1.0, 2.0]
        with pytest.raises(InvalidArgumentError, match=f"^rates : Tensor had {kinds} values"):
            run(df.constant(x, dtype))


def test_a_gradient_flows_through_checked_numbers(mode: Runs) -> None:
    def slope(x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = debugging.check_numerics(x, "x") ** 2
        return tape.gradient(y, x)

    assert mode(slope)(df.constant(3.0)).numpy() == 6.0


def test_check_numerics_skips_integers() -> None:
    with pytest.raises(InvalidArgumentError, match="takes floats, not int32; cast it"):
        debugging.check_numerics(1, "x")


@pytest.mark.parametrize("dtypes", [("bool", "float32")])
def test_other_dtypes_are_refused(dtypes: tuple[str, str]) -> None:
    with pytest.raises(InvalidArgumentError):
        debugging.assert_negative(df.constant(True))


def test_the_traceback_shows_the_users_lines_alone() -> None:
    for call in (
        lambda: debugging.assert_equal(1, 2),
        lambda: debugging.assert_negative(df.constant(True)),
        lambda: debugging.Assert(False, [1]),
        lambda: debugging.check_numerics(np.float32("nan"), "x"),
        lambda: debugging.assert_near(1, 1),
    ):
        with pytest.raises(InvalidArgumentError) as caught:
            call()
        assert {f.filename for f in traceback.extract_tb(caught.value.__traceback__)} == {__file__}


def test_the_names_at_the_top_are_the_same() -> None:
    assert df.assert_equal is debugging.assert_equal
    assert (df.assert_less, df.assert_greater) == (debugging.assert_less, debugging.assert_greater)
    assert (df.assert_rank, df.Assert) == (debugging.assert_rank, debugging.Assert)
