"""Python's statements around and over tensors: each works as in Python, or has a clear error."""
# The statements are what is tested, not what they could be shortened to.
# ruff: noqa: PERF402, C416, SIM108

from __future__ import annotations

import numpy as np
import pytest

import dualflow as df
from dualflow.core.errors import (
    DTypeError,
    InaccessibleTensorError,
    InvalidArgumentError,
    OperatorNotAllowedInGraphError,
)


def number(match):
    return None if match is None else np.asarray(match).tolist()


def assert_matches_eager(f, *cases):
    """Whether ``f`` compiled once gives what Python gives for each of the cases."""
    compiled = df.function(f)
    for case in cases:
        tensors = [df.constant(x) for x in (case if isinstance(case, tuple) else (case,))]
        assert number(compiled(*tensors)) == number(f(*tensors))
    assert len(compiled.concrete_functions) == 1


# else of loops


def test_for_else_runs_unless_the_loop_was_left():
    def f(n):
        for i in range(n):
            if i == 3:
                break
        else:
            n = n + 100
        return n

    assert_matches_eager(f, 0, 3, 4, 9)


def test_while_else_runs_unless_the_loop_was_left():
    def f(n):
        while n > 0:
            n = n - 2
            if n == 4:
                break
        else:
            n = n * 10
        return n

    assert_matches_eager(f, 5, 8, -1)


def test_an_else_belongs_to_its_own_loop():
    def f(n):
        result = 0
        for i in range(n):
            for j in range(i):
                if j == 2:
                    break
            else:
                result += 1
                continue
            result += 10
            if result > 20:
                break
        else:
            result += 100
        return result

    assert_matches_eager(f, 0, 2, 4, 9)


def test_an_else_may_leave_the_outer_loop():
    def f(n):
        total = 0
        for i in range(n):
            for j in range(2):
                total += j
            else:
                if i > 2:
                    break
        else:
            total += 100
        return total

    assert_matches_eager(f, 0, 2, 9)


def test_a_return_in_a_loop_passes_its_else():
    def f(n):
        for i in range(n):
            if i == 3:
                return i * 1000
        else:
            n = n + 1
        return n

    assert_matches_eager(f, 2, 9)


# match


def test_match_compares_with_values():
    def f(x):
        match x:
            case 1:
                y = x * 10
            case 2 | 3:
                y = x * 100
            case _:
                y = -x
        return y

    assert_matches_eager(f, 1, 2, 3, 4)


def test_match_has_guards_and_captures():
    def f(x):
        match x + 1:
            case y if y > 10:
                return y
            case 5:
                return x
            case y:
                return y * 2

    assert_matches_eager(f, 20, 4, 1)


def test_match_takes_sequences_apart():
    def f(x, y):
        match (x, y):
            case (0, 0):
                return x
            case (0, second):
                return second * 2
            case (first, 1 as second):
                return first + second
            case [_, _]:
                return x - y

    assert_matches_eager(f, (0, 0), (0, 5), (3, 1), (7, 2))


def test_match_of_python_values_stays_python():
    def f(x, kind=None):
        match kind:
            case None:
                x = x + 1
            case "double" | "twice":
                x = x * 2
            case (a, b):
                x = x * a + b
        if x > 100:
            x = x * 0
        return x

    compiled = df.function(f)
    results = [int(compiled(df.constant(5), kind)) for kind in (None, "twice", (3, 4), "other")]
    assert results == [6, 10, 19, 5]


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("int()", "names a class or a mapping"),
        ("{'a': 1}", "names a class or a mapping"),
        ("(1, *rest)", "has a star"),
        ("(1, y) | (y, 1)", "captures in alternatives"),
        ("(1, y) if y > 1", "captures a part and has a guard"),
    ],
)
def test_patterns_without_another_form_are_reported(pattern, reason, tmp_path, load):
    lines = ["def f(x):", "    match x:", f"        case {pattern}:", "            return x", "    if x > 0:"]
    f = load(tmp_path, "\n".join([*lines, "        x = -x", "    return x"]))
    with pytest.raises(OperatorNotAllowedInGraphError) as caught:
        df.function(f)(df.constant(1))
    (note,) = [n for n in caught.value.__notes__ if "not converted" in n]
    assert f"the pattern in line 3 of it {reason}" in note
    assert "write the `match` as `if` and `elif`" in note
    assert "program.py" in note


# assignments


def test_walrus_in_tests():
    def f(x):
        if (y := x * 2) > 3:
            return y
        return y + 1

    assert_matches_eager(f, 1, 3)


def test_walrus_in_the_test_of_a_loop():
    def f(x):
        while (x := x - 2) > 3:
            if x == 6:
                continue
        return x

    assert_matches_eager(f, 1, 8, 31)


@pytest.mark.parametrize(
    "expression", ["x > 0 and (y := x) > 1", "x > 0 or (y := x) > 1", "(y := x) if x > 0 else x"]
)
def test_walrus_where_it_may_not_run_is_reported(expression, tmp_path, load):
    f = load(tmp_path, f"def f(x):\n    if {expression}:\n        return x\n    return -x\n")
    with pytest.raises(OperatorNotAllowedInGraphError) as caught:
        df.function(f)(df.constant(1))
    (note,) = [n for n in caught.value.__notes__ if "not converted" in n]
    assert "line 2 of it assigns with `:=`" in note
    assert "assign in a statement before" in note


def test_del_in_branches():
    def f(x):
        y = x * 2
        if x > 0:
            z = y + 1
            del y
        else:
            z = y
            del y
        return z

    assert_matches_eager(f, 3, -3)


def test_deleted_elements_are_absent():
    def f(x):
        y = x * 2
        if x > 0:
            del y
            x = x + 1
        else:
            del y
        return y

    with pytest.raises(UnboundLocalError, match="y"):
        df.function(f)(df.constant(1))


LIMIT = 0


def test_a_global_is_assigned_in_a_branch():
    global LIMIT

    def f(x):
        global LIMIT
        if x > 0:
            LIMIT = x
        else:
            LIMIT = -x
        return LIMIT + 1

    try:
        assert_matches_eager(f, 3, -3)
    finally:
        LIMIT = 0


def test_a_nonlocal_is_assigned_in_a_branch():
    def f(x):
        k = x

        def g():
            nonlocal k
            if x > 0:
                k = x * 2
            else:
                k = x * 3

        g()
        return k

    assert_matches_eager(f, 3, -3)


def test_unpacking_takes_a_tensor_apart():
    def f(x):
        (a, _), (b, c), *others = x
        if a > b:
            return c
        return others[0][0] + a

    assert_matches_eager(f, np.array([[1, 2], [3, 4], [5, 6]]), np.array([[9, 2], [3, 4], [5, 6]]))


def test_stars_take_tensors_apart():
    def f(x, y):
        return df.stack([*x, *y]) * max(*x)

    g = df.function(f)
    for n in (2, 3, 5):
        x, y = df.range(n), df.range(n + 1)
        np.testing.assert_array_equal(g(x, y), df.concat([x, y], 0) * (n - 1))


def test_chained_assignments_unpack():
    def f(x):
        (a, b) = pair = x
        if a > 0:
            a = pair[1] + b
        return a

    assert_matches_eager(f, np.array([1, 2]), np.array([-1, 2]))


def test_unpacking_of_another_number_of_rows_is_pythons_error():
    @df.function
    def f(x):
        a, b = x
        return a + b

    with pytest.raises(ValueError, match="too many values to unpack"):
        f(df.constant([1, 2, 3]))


def test_a_scalar_is_not_taken_apart():
    @df.function
    def f(x):
        a, b = x
        return a + b

    with pytest.raises(DTypeError, match="is a scalar, which can't be unpacked"):
        f(df.constant(1))


def test_targets_of_for_take_rows_apart():
    def f(x):
        total = 0
        for a, *b in x:
            total = total + a * b[0] + b[1]
        return total

    assert_matches_eager(f, np.array([[1, 2, 3], [4, 5, 6]]))


def test_targets_of_for_nest():
    def f(x, y):
        total = 0
        for i, ((a, b), c) in enumerate(zip(x, y, strict=True)):
            total = total + i * a + b * c
        return total

    assert_matches_eager(f, (np.array([[1, 2], [3, 4]]), np.array([5, 6])))


def test_starred_targets_over_python_lists():
    def f(x):
        total = x * 0
        for a, *b in [(1, 2, 3), (4, 5, 6)]:
            if x > a:
                total = total + b[0]
        return total

    assert_matches_eager(f, 0, 3, 9)


# comprehensions, generators, in


def test_comprehensions_go_through_the_rows_of_a_tensor():
    def f(x):
        doubled = [v * 2 for v in x]
        by_place = {i: v for i, v in enumerate(x)}
        if x[0] > 0:
            return doubled[1] + by_place[2] + sum(v for v in x)
        return doubled[0]

    assert_matches_eager(f, np.array([1, 2, 3]), np.array([-1, 2, 3]))


def test_comprehensions_nest_and_zip():
    def f(x, y):
        total = sum([a * b for row in x for a, b in zip(row, y, strict=True)])
        if total > 10:
            return total
        return -total

    assert_matches_eager(
        f, (np.array([[1, 2], [3, 4]]), np.array([1, 2])), (np.array([[1, 0], [0, 0]]), np.array([1, 2]))
    )


def test_a_comprehension_that_filters_by_a_tensor_is_refused():
    @df.function
    def f(x):
        return sum([v for v in x if v > 0])

    with pytest.raises(OperatorNotAllowedInGraphError, match="bool") as caught:
        f(df.constant([1, -2]))
    assert __file__ in str(caught.value)


def test_a_comprehension_over_many_rows_is_refused():
    @df.function
    def f(x):
        return [v * 2 for v in x]

    with pytest.raises(OperatorNotAllowedInGraphError, match=r"5000 rows .* Map over them with df.map_fn"):
        f(df.zeros([5000]))


def test_a_comprehension_over_rows_of_unknown_number_is_refused():
    @df.function(input_signature=[df.TensorSpec([None])])
    def f(x):
        return [v * 2 for v in x]

    with pytest.raises(OperatorNotAllowedInGraphError, match=r"is dynamic\. Loop over it with a `for`"):
        f(df.zeros([3]))


def test_a_comprehension_over_a_range_of_unknown_length_is_refused():
    @df.function
    def f(n):
        if n > 100:
            return n
        return sum([v for v, _ in enumerate(range(n))])

    with pytest.raises(OperatorNotAllowedInGraphError, match="whose size is dynamic"):
        f(df.constant(3))


def test_in_looks_through_lists_and_tensors():
    def f(x):
        if x in (1, 5):
            return x * 10
        if x not in df.constant([2, 3]):
            return -x
        return x

    assert_matches_eager(f, 1, 2, 5, 7)


def test_in_looks_for_keys_and_texts_as_python_does():
    @df.function
    def f(x, options):
        if "scale" in options and x > 0:
            x = x * options["scale"]
        return x

    assert int(f(df.constant(3), {"scale": 2})) == 6
    assert int(f(df.constant(3), {})) == 3


def test_a_generator_is_run_as_it_is_written():
    def parts(x):
        yield x
        yield x * 2

    def f(x):
        total = 0
        for v in parts(x):
            if v > 3:
                total = total + v
        return total

    assert_matches_eager(f, 1, 3)


def test_a_generator_that_tests_a_tensor_is_named():
    def parts(x):
        if x > 0:
            yield x

    @df.function
    def f(x):
        return sum(parts(x))

    with pytest.raises(OperatorNotAllowedInGraphError) as caught:
        f(df.constant(1))
    assert f'File "{__file__}", line {parts.__code__.co_firstlineno + 1}, in ' in str(caught.value)


def test_a_generator_has_no_result_to_compile():
    f = df.function(lambda x: (row for row in [x]))
    with pytest.raises(DTypeError, match="returned an object of type generator"):
        f(df.constant(1))


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_a_coroutine_has_no_result_to_compile():
    async def f(x):
        return x

    with pytest.raises(DTypeError, match="returned an object of type coroutine"):
        df.function(lambda x: f(x))(df.constant(1))


# with and try


def test_with_around_branches():
    def f(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            if x > 0.0:
                y = x * x
            else:
                y = x * 5.0
        return tape.gradient(y, x)

    assert_matches_eager(f, 3.0, -3.0)


def test_branches_in_try_and_finally():
    def f(x):
        try:
            if x > 0:
                x = x * 2
        finally:
            x = x + 1
        return x

    assert_matches_eager(f, 3, -3)


def test_a_return_in_finally_replaces_the_result():
    def f(x):
        try:
            return 2
        finally:
            if x > 0:
                return 1  # noqa: B012  # the subject
            return 0  # noqa: B012, SIM107

    assert_matches_eager(f, 3, -3)


def test_a_branch_in_a_handler_assigns_what_is_read_after_it():
    def f(x):
        total = 0
        try:
            result = {}["missing"]
        except KeyError:
            if x > 0:
                result = x * 2
            else:
                result = x - 1
            for i in df.range(3):
                total += i
        return result + total

    assert_matches_eager(f, 3, -3)


def test_except_has_its_exception():
    def f(x):
        try:
            result = {}["missing"]
        except KeyError as error:
            result = len(error.args) * x
        if result > 0:
            result = result * 2
        return result

    assert_matches_eager(f, 3, -3)


# results


def test_a_function_without_result_returns_early():
    v = df.Variable(0)

    @df.function
    def f(x):
        if x < 0:
            return
        v.assign_add(x)

    assert f(df.constant(-5)) is None
    assert v.numpy() == 0
    f(df.constant(5))
    assert v.numpy() == 5


def test_a_result_in_one_branch_alone_is_refused():
    @df.function
    def f(x):
        if x < 0:
            return None
        return x

    with pytest.raises(InvalidArgumentError, match="return value is None at the end of the main branch"):
        f(df.constant(1))


def test_a_list_that_grows_in_a_loop_is_refused():
    @df.function
    def f(n):
        out = []
        for i in range(n):
            out.append(i)
        return out

    with pytest.raises(
        InaccessibleTensorError,
        match="inside of a loop or branch over tensors, and stored in a list",
    ):
        f(df.constant(3))


def test_names_with_two_underscores_belong_to_their_class():
    class Model:
        __scale = 3

        def f(self, x):
            def g(y):
                return y * self.__scale

            if x > 0:
                return g(x)
            return x

    assert_matches_eager(Model().f, 2, -2)


def _parameter_of_an_inner_function(x, n):
    def doubled(a):
        return a * 2.0

    for _ in range(1):
        a = x
        v = a
        for _ in df.range(n):
            v = v * 0.5

        def doubled_again(z):
            return doubled(z)

    return doubled_again(a + v)


def _parameter_assigned_in_both_branches(x, n):
    def same(q):
        return q

    if n > 1:
        q = x * 2.0
    else:
        q = x
    for _ in df.range(n):
        q = same(q) + 1.0
    return q


def _variable_of_the_function_around(x, n):
    a = x * 100.0

    def inner(y):
        def doubled(a):
            return a * 2.0

        for _ in range(2):
            a = y
            for _ in df.range(n):
                a = a + 1.0
            y = doubled(a)
        return y

    return inner(x) + a


def _own_nonlocal(x, n):
    total = x * 0.0

    def add(y):
        nonlocal total
        if df.reduce_sum(y) > 0.0:
            total = total + y
        for _ in df.range(n):
            total = total * 2.0

    add(x)
    add(x)
    return total


@pytest.mark.parametrize(
    "function",
    [
        _parameter_of_an_inner_function,
        _parameter_assigned_in_both_branches,
        _variable_of_the_function_around,
        _own_nonlocal,
    ],
)
@pytest.mark.parametrize("n", [0, 3])
def test_functions_inside_share_variables_as_python_reports(function, n):
    x = df.constant([0.5, 1.0])
    assert df.function(function)(x, df.constant(n)).numpy().tolist() == function(x, n).numpy().tolist()
