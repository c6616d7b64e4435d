"""``raise`` and ``assert`` under conditions that are tensors: Python's exception, from the branch that runs.

PYTEST_DONT_REWRITE: assertions have the messages that they are written with.
"""
# The statements are what is tested, not what they could be shortened to.
# ruff: noqa: RET506, SIM108

from __future__ import annotations

import pytest

import dualflow as df
from dualflow.core.errors import InvalidArgumentError


def outcome(f, *numbers):
    """What a call gives, or the type and the arguments of what it raises."""
    try:
        result = f(*map(df.constant, numbers))
    except Exception as error:
        return type(error), [x.numpy() if isinstance(x, df.Tensor) else x for x in error.args]
    return None if result is None else result.numpy()


def assert_matches_eager(f, *cases):
    """Assert that ``f``, compiled once, returns and raises as in Python; returns the compiled function."""
    compiled = df.function(f)
    for case in cases:
        numbers = case if isinstance(case, tuple) else (case,)
        assert outcome(compiled, *numbers) == outcome(f, *numbers)
    assert len(compiled.concrete_functions) == 1
    return compiled


def test_a_branch_raises_only_where_it_runs():
    def f(x):
        if x < 0:
            raise ValueError("negative")
        return x * 2

    assert_matches_eager(f, 3, -3, 0)


def test_an_else_branch_raises():
    def f(x):
        if x > 0:
            y = x * 2
        else:
            raise ValueError("not positive")
        return y

    assert_matches_eager(f, 3, -3)


def test_the_last_of_several_cases_raises():
    def f(x):
        if x < 0:
            return -x
        if x < 10:
            return x * 2
        raise OverflowError("too large")

    assert_matches_eager(f, -3, 5, 50)


def test_code_after_a_return_raises():
    def f(x):
        if x > 0:
            return x
        raise ValueError

    assert_matches_eager(f, 3, -3)


def test_all_ways_raise():
    def f(x):
        if x > 0:
            raise ValueError("positive")
        else:
            raise TypeError("not positive")

    assert_matches_eager(f, 3, -3)


def test_only_the_innermost_branch_raises():
    def f(x):
        if x > 0:
            if x > 5:
                raise ValueError("big")
            x = x * 10
        else:
            x = x - 1
        return x

    assert_matches_eager(f, 3, 8, -1)


def test_the_surviving_branch_needs_no_counterpart():
    """The other branch has no results, so this one may leave anything."""

    def f(x):
        if x > 0:
            result = {"sum": x + 1, "text": "fine"}
        else:
            raise ValueError("no")
        assert result["text"] == "fine"
        return result["sum"]

    assert_matches_eager(f, 3, -3)


def test_dynamic_sizes():
    @df.function(input_signature=[df.TensorSpec([None], df.float32)])
    def f(x):
        if df.reduce_any(x < 0.0):
            raise ValueError("negative")
        else:
            y = df.sqrt(x)
        return y

    assert f(df.constant([4.0, 9.0])).numpy().tolist() == [2.0, 3.0]
    with pytest.raises(ValueError, match="negative"):
        f(df.constant([4.0, -9.0, 1.0]))


def test_assert_states_what_holds():
    def f(x):
        assert x > 0, "must be positive"
        y = x + 1
        assert y < 10
        return y

    assert_matches_eager(f, 3, -3, 50)


def test_assert_has_what_is_a_tensor():
    def f(x, limits):
        assert limits, "no limits"
        assert x > limits[0]
        return x

    compiled = df.function(f)
    assert int(compiled(df.constant(3), (1,))) == 3
    with pytest.raises(AssertionError, match="no limits"):
        compiled(df.constant(3), ())


def test_a_loop_raises_in_the_iteration_that_is_wrong():
    def f(n):
        total = n * 0
        for i in df.range(n):
            total = total + i
            if total > 10:
                raise RuntimeError(f"more than ten at {int(i)}")
        return total

    assert_matches_eager(f, 3, 20)


def test_a_while_loop_raises():
    def f(n):
        while n > 0:
            n = n - 2
            assert n != 3, "three"
        return n

    assert_matches_eager(f, 4, 5, 9)


def test_a_body_that_always_raises_does_so_in_its_first_iteration():
    def f(n):
        for _ in range(n):
            raise ValueError("there is one")
        return n

    assert_matches_eager(f, 0, 2)


def test_a_python_loop_raises_under_a_condition():
    def f(x):
        for limit in (1, 10, 100):
            if x > limit:
                raise ValueError(f"more than {limit}")
        return x

    assert_matches_eager(f, 0, 5)


def test_a_check_goes_before_what_follows_it():
    """Without the check the loop would not end."""

    def f(n):
        if n <= 0:
            raise ValueError("not positive")
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
        return n

    assert_matches_eager(f, 7, 0)


def test_effects_before_it_stay_and_those_after_it_do_not_happen():
    v = df.Variable(0)

    @df.function
    def f(x):
        df.print("before", output_stream=printed.append)
        if x > 0:
            raise ValueError("no")
        df.print("after", output_stream=printed.append)
        v.assign_add(1)

    printed = []
    with pytest.raises(ValueError, match="no"):
        f(df.constant(1))
    assert printed == ["before\n"]
    assert v.numpy() == 0
    f(df.constant(-1))
    assert printed == ["before\n", "before\n", "after\n"]
    assert v.numpy() == 1


# what is raised


def test_messages_hold_the_values():
    def f(x):
        if x < 0:
            raise ValueError(f"{int(x)} is negative, {float(x):.2f}, twice that is {x * 2}, {x!s}")
        return x

    assert_matches_eager(f, -3)


def test_messages_are_formatted_in_any_way():
    def f(x):
        y = x + 1
        assert x > 0, "%s and {}".format(y) % x  # noqa: UP032
        return x

    assert_matches_eager(f, -3)


def test_arguments_may_be_tensors():
    def f(x):
        if x < 0:
            raise KeyError("key", x + 1, [x])
        return x

    compiled = assert_matches_eager(lambda x: f(x) if x < 100 else x, 3)
    with pytest.raises(KeyError) as caught:
        compiled(df.constant(-3))
    assert caught.value.args[1].numpy() == -2
    assert caught.value.args[2][0].numpy() == -3


class TooLarge(Exception):
    def __init__(self, size, *, limit):
        super().__init__(f"{size} of {limit}")
        self.size = size


def test_exceptions_of_the_user_are_made_as_they_make_them():
    @df.function
    def f(x):
        if x > 5:
            raise TooLarge(x, limit=5)
        return x

    with pytest.raises(TooLarge, match="of 5") as caught:
        f(df.constant(8))
    assert int(caught.value.size) == 8


def test_each_call_makes_its_own_exception():
    @df.function
    def f(x):
        if x < 0:
            raise ValueError(f"{int(x)}")
        return x

    errors = []
    for number in (-1, -2):
        with pytest.raises(ValueError, match="-") as caught:
            f(df.constant(number))
        errors.append(caught.value)
    assert [str(e) for e in errors] == ["-1", "-2"]
    assert errors[0] is not errors[1]
    assert errors[0].__notes__ == errors[1].__notes__


def test_a_cause_is_kept():
    @df.function
    def f(x):
        if x < 0:
            raise ValueError("second") from KeyError("first")
        return x

    with pytest.raises(ValueError, match="second") as caught:
        f(df.constant(-1))
    assert repr(caught.value.__cause__) == "KeyError('first')"


def test_messages_read_variables_as_they_are():
    v = df.Variable(1)

    @df.function
    def f(x):
        v.assign_add(1)
        if x > 0:
            raise ValueError(f"{int(v)}")
        return x

    with pytest.raises(ValueError, match="2"):
        f(df.constant(1))


def test_the_users_line_is_named():
    def f(x):
        if x < 0:
            y = x * 2
            raise ValueError(f"{y}")  # this line
        return x

    line = f.__code__.co_firstlineno + 3
    with pytest.raises(ValueError, match="-6") as caught:
        df.function(f)(df.constant(-3))
    assert f'File "{__file__}", line {line}, in ' in caught.value.__notes__[0]
    assert caught.value.__notes__[0].endswith('raise ValueError(f"{y}")  # this line')


def test_a_called_function_raises():
    def checked(x):
        if x < 0:
            raise ValueError("negative")
        return x

    def fail(x):
        raise ValueError(f"fails with {int(x)}")

    def f(x):
        if x < 10:
            y = checked(x) + 1
        else:
            y = fail(x)
        return y

    assert_matches_eager(f, 3, -3, 50)


def test_a_traced_function_raises_in_another():
    @df.function
    def checked(x):
        assert x >= 0, "negative"
        return x * 2

    assert_matches_eager(lambda x: checked(x) + 1 if x < 100 else x, 3, -3, 1000)


def test_functions_given_to_cond_raise():
    def fail(x):
        if x != 0:
            raise ValueError(f"fails with {int(x)}")
        return x

    def f(x):
        if x > 100:
            return x
        return df.cond(x > 0, lambda: x * 2, lambda: fail(x))

    assert_matches_eager(f, 3, -3, 0, 1000)


def fails_always(x):
    raise ValueError(f"fails with {int(x)}")


def test_a_function_given_to_cond_that_always_raises_needs_no_result():
    def f(x):
        if x > 100:
            return x
        return df.cond(x > 0, lambda: x * 2, lambda: fails_always(x))

    assert_matches_eager(f, 3, -3, 1000)


def test_a_function_given_to_switch_case_that_always_raises_needs_no_result():
    def f(i, x):
        if x > 100:
            return x
        return df.switch_case(i, [lambda: x, lambda: fails_always(x), lambda: x * 3])

    assert_matches_eager(f, (0, 5), (1, 5), (2, 5))


def test_gradients_of_code_with_raise_and_assert():
    def f(x):
        if x < 0.0:
            raise ValueError("negative")
        else:
            y = x * x
        assert y < 100.0
        return y

    for g in (f, df.function(f)):
        x = df.constant(3.0)
        with df.GradientTape() as tape:
            tape.watch(x)
            y = g(x)
        assert tape.gradient(y, x).numpy() == 6.0
        with df.GradientTape() as tape:
            tape.watch(x)
            with pytest.raises(ValueError, match="negative"):
                g(-x)


def doubled(v):
    assert v >= 0.0, f"negative: {float(v)}"
    return v * 2.0


@pytest.mark.parametrize(
    "call",
    [
        lambda x: df.map_fn(doubled, x),
        lambda x: df.vectorized_map(doubled, x),
        lambda x: df.scan(lambda total, v: total + doubled(v), x),
        lambda x: df.foldl(lambda total, v: total + doubled(v), x),
        lambda x: df.while_loop(lambda i, t: i < 3, lambda i, t: (i + 1, t + doubled(x[i])), (0, 0.0))[1],
    ],
    ids=["map_fn", "vectorized_map", "scan", "foldl", "while_loop"],
)
def test_functions_of_rows_raise(call):
    compiled = df.function(call)
    for row in ([1.0, 2.0, 3.0], [1.0, -2.0, 3.0]):
        now, later = (str(outcome(f, row)) for f in (call, compiled))
        assert now == later


# try


def test_a_try_inside_the_branch_catches():
    def f(x):
        if x > 0:
            try:
                raise ValueError("caught")
            except (TypeError, ValueError):
                x = x * 5
        return x

    assert_matches_eager(f, 3, -3)


def test_a_try_around_the_call_catches():
    compiled = df.function(lambda x: fails_always(x) if x > 0 else x)

    def safe(x):
        try:
            return int(compiled(x))
        except ValueError as error:
            return str(error)

    assert [safe(df.constant(x)) for x in (1, -1)] == ["fails with 1", -1]


def test_a_try_that_names_other_exceptions_lets_it_pass():
    def f(x):
        try:
            if x > 0:
                raise ValueError("passes")
        except KeyError:
            return x
        finally:
            x = x + 1
        return x * 2

    assert_matches_eager(f, 3, -3)


@pytest.mark.parametrize(
    "clause", ["except ValueError", "except Exception as e", "except", "except (KeyError, ValueError)"]
)
def test_a_try_around_the_condition_cannot_catch_and_reports_it(clause, tmp_path, load):
    f = load(
        tmp_path,
        "def f(x):\n"
        "    try:\n"
        "        if x > 0:\n"
        "            raise ValueError('never caught')\n"
        f"    {clause}:\n"
        "        return x\n"
        "    return -x\n",
    )
    with pytest.raises(InvalidArgumentError, match="can't be caught by a `try` around") as caught:
        df.function(f)(df.constant(1))
    assert f'File "{tmp_path}/program.py", line 4, in f' in str(caught.value)


def test_a_raise_that_depends_on_no_tensor_happens_while_tracing():
    @df.function
    def f(x, n):
        if x > 0:
            x = x + 1
        if n > 3:
            raise ValueError(f"n is {n}")
        return x

    with pytest.raises(ValueError, match="n is 5"):
        f.get_concrete_function(df.TensorSpec([], df.int32), 5)


def test_a_bare_raise_raises_again():
    def f(x):
        if x > 0:
            x = x + 1
        try:
            {}["missing"]
        except KeyError:
            raise
        return x

    with pytest.raises(KeyError, match="missing"):
        df.function(f)(df.constant(1))


# how it runs


def test_checks_are_machine_code():
    @df.function
    def f(n, x):
        total = x * 0.0
        for i in range(n):
            assert i >= 0, "counts up"
            if df.reduce_max(x) > 100.0:
                raise ValueError(f"{x} is too large")
            total = total + x
        return total

    assert f(df.constant(3), df.constant([1.0, 2.0])).numpy().tolist() == [3.0, 6.0]
    assert {p.kind for c in f.concrete_functions for p in c.parts} == {"native"}
    with pytest.raises(ValueError, match=r"too large") as caught:
        f(df.constant(3), df.constant([1.0, 200.0]))
    assert "[  1. 200.]" in str(caught.value)


def test_checks_are_shown_among_the_kernels():
    @df.function
    def f(x):
        assert x > 0, "no"
        return x + 1

    line = f.python_function.__code__.co_firstlineno + 2
    f(df.constant(1))
    (concrete,) = f.concrete_functions
    assert f"# raise (test_raising.py:{line})" in concrete.kernels
    assert "raise(" in str(concrete.graph)


def test_large_tensors_in_a_message_take_python():
    @df.function
    def f(x):
        if x[0] > 0.0:
            raise ValueError("large", x)
        return x + 1.0

    with pytest.raises(ValueError, match="large") as caught:
        f(df.ones([5000]))
    assert caught.value.args[1].shape == (5000,)
    assert "the exception contains large tensors" in f.status()


def test_every_dtype_can_be_formatted_in_a_message():
    for dtype in (df.bool, df.uint8, df.int64, df.float16, df.float64, df.complex64):

        @df.function
        def f(x, y):
            if x > 0:
                raise ValueError("given", y)
            return x

        y = df.cast(df.constant([[1, 0, 1]]), dtype)
        with pytest.raises(ValueError, match="given") as caught:
            f(df.constant(1), y)
        result = caught.value.args[1]
        assert result.dtype is dtype
        assert result.numpy().tolist() == y.numpy().tolist()


def test_a_gradient_goes_back_through_a_loop_that_checks():
    def f(x):
        y = x * 1.0
        for _ in range(df.cast(x, df.int32)):
            assert y < 20.0, f"{float(y)}"
            y = y * x
        return y

    def slope(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    inside = df.function(slope)
    for number in (1.0, 2.5, 3.0, 4.5):
        assert outcome(inside, number) == outcome(slope, number)


def test_numba_can_not_raise_them_and_reports_it():
    @df.function
    def f(x):
        assert x > 0, "no"
        return x + 1

    with pytest.raises(InvalidArgumentError, match="raises exceptions that Python creates"):
        f.get_concrete_function(df.TensorSpec([], df.int32)).njit()
