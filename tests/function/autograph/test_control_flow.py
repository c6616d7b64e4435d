"""Python's control flow over tensors: one graph computes the same results as eager execution."""
# The statements are what is tested, not what they could be shortened to.
# ruff: noqa: SIM102, SIM108

from __future__ import annotations

import functools
import subprocess
import sys

import numpy as np
import pytest

import dualflow as df
from dualflow.core.errors import OperatorNotAllowedInGraphError


def assert_matches_eager(f, *cases):
    """Assert that ``f``, compiled once, equals Python in all cases; returns the compiled function."""
    compiled = df.function(f)
    for case in cases:
        tensors = [df.constant(x) for x in (case if isinstance(case, tuple) else (case,))]
        now, then = np.asarray(f(*tensors)), compiled(*tensors).numpy()
        np.testing.assert_allclose(then, now, rtol=1e-6)
    assert len(compiled.concrete_functions) == 1
    return compiled


def kinds(compiled):
    return {p.kind for c in compiled.concrete_functions for p in c.parts}


# conditionals


def test_if_takes_the_branch_that_holds():
    def f(x):
        if x > 0:
            y = x * 2
        else:
            y = -x
        return y

    assert kinds(assert_matches_eager(f, 3.0, -3.0, 0.0)) == {"native"}


def test_elif_takes_the_first_that_holds():
    def f(x):
        if x < 0:
            y = 0
        elif x < 10:
            y = 1
        elif x < 100:
            y = 2
        else:
            y = 3
        return y

    assert_matches_eager(f, -5, 5, 50, 500)


def test_if_without_else_keeps_what_was_before():
    def f(x):
        y = x + 1
        if x > 0:
            y = y * 10
        return y

    assert_matches_eager(f, 2, -2)


def test_ifs_nest():
    def f(x, y):
        z = x
        if x > 0:
            if y > 0:
                z = x + y
            else:
                z = x - y
        return z

    assert_matches_eager(f, (1, 2), (1, -2), (-1, 2))


def test_branches_return_early():
    def f(x):
        if x > 10:
            return x * 2
        if x > 0:
            if x > 5:
                return x + 100
        return -x

    assert_matches_eager(f, 20, 7, 3, -3)


def test_an_if_over_python_values_stays_python():
    def f(x, flag):
        if flag:
            return x + 1
        if x > 0:
            x = x * 2
        return x

    compiled = df.function(f)
    assert int(compiled(df.constant(3), True)) == 4
    assert int(compiled(df.constant(3), False)) == 6


def test_an_if_over_sizes_traces_only_its_branch():
    @df.function
    def f(x):
        if df.size(x) > 2:
            y = x[2]
        else:
            y = x[0]
        if y > 0:
            y = y + 1.0
        return y

    assert f(df.constant([1.0])).numpy() == 2.0
    assert f(df.constant([1.0, 2.0, 3.0])).numpy() == 4.0


def test_branches_leave_structures():
    @df.function
    def f(x):
        if x > 0:
            result = {"a": x, "b": (x + 1, 2)}
        else:
            result = {"a": -x, "b": (x, 2)}
        return result["a"] + result["b"][0] + result["b"][1]

    assert [int(f(df.constant(x))) for x in (3, -3)] == [9, 2]


def test_python_numbers_adapt_to_the_other_branch():
    def f(x):
        total = 0
        if x > 1.0:
            total = x * 2
        return total

    assert assert_matches_eager(f, 3.0, 0.0)(df.constant(3.0)).dtype is df.float32


def test_branches_assign_variables():
    v = df.Variable(1.0)

    @df.function
    def f(x):
        if x > 0:
            v.assign_add(x)
        else:
            v.assign(0.0)

    f(df.constant(2.0))
    assert v.numpy() == 3.0
    f(df.constant(-2.0))
    assert v.numpy() == 0.0


def test_branches_assign_attributes():
    class Box:
        pass

    box = Box()

    @df.function
    def f(x):
        box.value = x
        if x > 0:
            box.value = x * 2
        return box.value

    assert [int(f(df.constant(x))) for x in (3, -3)] == [6, -3]


def test_a_variable_is_a_condition():
    v = df.Variable(True)

    @df.function
    def f(x):
        if v:
            return x
        return -x

    assert int(f(df.constant(1))) == 1
    v.assign(False)
    assert int(f(df.constant(1))) == -1


# expressions


def test_conditional_expression():
    assert_matches_eager(lambda x: x * 2 if x > 0 else -x, 3, -3)


def test_and_or_not():
    def f(x, y):
        result = 0
        if x > 0 and y > 0:
            result += 1
        if x > 0 or y > 0:
            result += 2
        if not x > 0:
            result += 4
        return result

    assert_matches_eager(f, (1, 1), (1, -1), (-1, 1), (-1, -1))


def test_and_requests_its_second_side_only_where_needed():
    def f(x, i):
        result = df.constant(-1)
        if i < 3 and x[i] > 0:
            result = x[i]
        return result

    compiled = df.function(f)
    x = df.constant([1, -1, 5])
    assert [int(compiled(x, df.constant(i))) for i in (0, 1, 2, 7)] == [1, -1, 5, -1]


def test_chained_comparison():
    def f(x):
        if 0 < x < 10:
            return x
        return -x

    assert_matches_eager(f, 5, -5, 50)


# loops


def test_while_counts():
    def collatz(n):
        count = df.constant(0)
        while n != 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            count += 1
        return count

    assert kinds(assert_matches_eager(collatz, 1, 27, 97)) == {"native"}


def test_while_may_not_run_at_all():
    def f(x):
        while x > 100:
            x = x // 2
        return x

    assert_matches_eager(f, 7, 100, 101, 12345)


def test_python_numbers_become_loop_variables():
    def f(x):
        n, total = 0, 0
        while total < x:
            n += 1
            total += n
        return n

    assert_matches_eager(f, 0, 1, 100)


def test_loops_nest():
    def f(n):
        total = 0
        for i in range(n):
            for j in range(i):
                total += i * j
        return total

    assert kinds(assert_matches_eager(f, 0, 1, 7)) == {"native"}


def test_while_true_with_break():
    def f(x):
        while True:
            x = x * 2
            if x > 100:
                break
        return x

    assert_matches_eager(f, 1, 70, 1000)


def test_break_and_continue():
    def f(n):
        total = 0
        for i in range(n):
            if i % 2 == 0:
                continue
            if i > 7:
                break
            total += i
        return total

    assert_matches_eager(f, 0, 3, 50)


def test_return_inside_a_loop():
    def f(n):
        for i in range(n):
            if i * i > 20:
                return i
        return -1

    assert_matches_eager(f, 3, 5, 50)


def test_while_assigns_what_was_not_assigned_before():
    def f(n):
        while n > 0:
            last = n * 10
            n -= 3
        return last

    assert int(df.function(f)(df.constant(7))) == 10


@pytest.mark.parametrize(
    "limits", [(0, 5, 1), (2, 11, 3), (10, 0, -3), (5, 5, 1), (5, 0, 1), (0, 7, 2), (-5, 6, 4)]
)
def test_range_with_tensor_limits(limits):
    def f(start, stop, step):
        total = 1
        for i in df.range(start, stop, step):
            total = total * 3 + i
        return total

    expected = functools.reduce(lambda total, i: total * 3 + i, range(*limits), 1)
    assert int(df.function(f)(*map(df.constant, limits))) == expected


def test_range_with_known_limits_is_a_loop_of_the_graph():
    @df.function
    def f(x):
        for i in df.range(3, 30000, 3):
            x = x + i
        return x

    assert int(f(df.constant(0))) == sum(range(3, 30000, 3))
    assert len(f.concrete_functions[0].graph.nodes) < 30


def test_range_of_floats():
    def f(x):
        total = 0.0
        for t in df.range(0.0, x, 0.25):
            total += t
        return total

    assert_matches_eager(f, 0.0, 1.0, 2.1)


def test_a_tensor_is_iterated_along_its_first_axis():
    def f(x):
        total = df.zeros([2])
        for row in x:
            total = total * 2.0 + row
        return total

    assert_matches_eager(f, np.arange(6, dtype=np.float32).reshape(3, 2))


def test_enumerate_and_zip_over_tensors():
    def f(x, y):
        total = 0.0
        for i, (a, b) in enumerate(zip(x, y, strict=False)):
            total += a * b * df.cast(i, df.float32)
        return total

    assert_matches_eager(
        f, (np.array([1.0, 2.0, 3.0], np.float32), np.array([4.0, 5.0, 6.0, 7.0], np.float32))
    )


def test_a_python_loop_is_left_by_a_tensor_condition():
    def f(x):
        for k in [1, 10, 100]:
            if x < k:
                break
            x = x - k
        return x

    assert_matches_eager(f, 0, 5, 50, 500)


def test_a_python_loop_returns_under_a_tensor_condition():
    def f(x):
        for k in (1, 10, 100):
            if x < k:
                return df.constant(k)
        return x

    assert_matches_eager(f, 0, 5, 50, 500)


def test_loops_assign_variables():
    v = df.Variable(0)

    @df.function
    def f(n):
        for i in range(n):
            v.assign_add(i)
        return v + 0

    assert int(f(df.constant(5))) == 10 == v.numpy()


def test_the_test_of_a_loop_runs_once_more_than_its_body():
    v = df.Variable(0)

    @df.function
    def f(n):
        iterations = 0
        while v.assign_add(1) < n:
            iterations += 1
        return iterations

    assert int(f(df.constant(5))) == 4
    assert v.numpy() == 5


def test_a_gradient_goes_through_a_loop():
    @df.function
    def power(x, n):
        y = df.constant(1.0)
        for _ in range(n):
            y = y * x
        return y

    x = df.constant(3.0)
    with df.GradientTape() as tape:
        tape.watch(x)
        y = power(x, df.constant(4))
    assert (y.numpy(), tape.gradient(y, x).numpy()) == (81.0, 108.0)


def test_built_in_functions_take_tensors():
    @df.function
    def f(x, n):
        if n > 0:
            return int(x[0]) + len(x) + abs(n) + max(n, 2) + min(n, 1) + int(sum(x)) + int(any(x > 1.0))
        return n

    assert int(f(df.constant([1.5, 2.5]), df.constant(3))) == 1 + 2 + 3 + 3 + 1 + 4 + 1


# what is converted


def clamp(x):
    if x > 1.0:
        return df.ones_like(x)
    return x


def test_called_functions_are_converted():
    assert_matches_eager(lambda x: clamp(x) + 1.0, 0.5, 5.0)


def test_functions_given_to_control_flow_are_converted():
    def iteration(i, x):
        if i > 2:
            x = x * 2.0
        return i + 1, x

    def f(n, x):
        if n < 0:
            return x
        return df.while_loop(lambda i, x: i < n, iteration, (0, x))[1]

    assert_matches_eager(f, (5, 1.0), (-1, 1.0))


def test_partials_are_converted():
    def above(limit, x):
        if x > limit:
            x = limit
        return x

    assert_matches_eager(lambda x: functools.partial(above, df.constant(2.0))(x), 1.0, 5.0)


def test_nested_functions_see_their_closure():
    def f(x):
        scale = 3.0

        def g(y):
            if y > 0:
                return y * scale
            return y

        return g(x) + g(-x)

    assert_matches_eager(f, 2.0, -2.0)


def test_closures_share_their_cells():
    scale = 2.0

    @df.function
    def f(x):
        if x > 0:
            x = x * scale
        return x

    scale = 5.0
    assert f(df.constant(1.0)).numpy() == 5.0


class Model:
    def __init__(self, limit):
        self.limit = limit

    def below(self, x):
        if x > self.limit:
            x = x * 0.0
        return x

    def __call__(self, x):
        return self.below(x) + 1.0

    @df.function
    def step(self, x):
        return self.below(x)


def test_methods_are_converted():
    assert [Model(2.0).step(df.constant(x)).numpy() for x in (1.0, 3.0)] == [1.0, 0.0]


def test_bound_methods_are_traced():
    f = df.function(Model(2.0).below)
    assert [f(df.constant(x)).numpy() for x in (1.0, 3.0)] == [1.0, 0.0]


def test_callable_objects_are_converted():
    f = df.function(Model(2.0))
    assert [f(df.constant(x)).numpy() for x in (1.0, 3.0)] == [2.0, 1.0]


def test_super_finds_its_class():
    class Child(Model):
        def below(self, x):
            if x < 0.0:
                return x - 1.0
            return super().below(x)

    f = df.function(Child(2.0).below)
    assert [f(df.constant(x)).numpy() for x in (-1.0, 1.0, 3.0)] == [-2.0, 1.0, 0.0]


def test_traced_functions_call_each_other():
    inner = df.function(clamp)
    assert_matches_eager(lambda x: inner(x) if x > 0.0 else x, -1.0, 0.5, 5.0)


def test_recursion_over_python_numbers():
    def power(x, n):
        if n == 0:
            return df.ones_like(x)
        if x > 100.0:
            return x
        return x * power(x, n - 1)

    assert df.function(lambda x: power(x, 3))(df.constant(2.0)).numpy() == 8.0


def test_decorators_and_defaults_stay():
    def twice(g):
        @functools.wraps(g)
        def inner(*args, **kwargs):
            return g(*args, **kwargs) * 2.0

        return inner

    @twice
    def between(x, low=0.0, *, high=1.0):
        if x < low:
            return df.constant(low)
        if x > high:
            return df.constant(high)
        return x

    f = df.function(lambda x: between(x, high=5.0))
    assert [f(df.constant(x)).numpy() for x in (-1.0, 3.0, 9.0)] == [0.0, 6.0, 10.0]


def test_do_not_convert_leaves_a_function_as_it_is():
    @df.autograph.do_not_convert
    def g(x):
        return x if x > 0 else -x

    with pytest.raises(OperatorNotAllowedInGraphError):
        df.function(lambda x: g(x) + 1)(df.constant(1))
    assert df.autograph.experimental.do_not_convert is df.autograph.do_not_convert


def test_straight_line_code_imports_no_control_flow(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(
        "import sys, dualflow as df\n"
        "f = df.function(lambda x: df.nn.gelu(x) + df.math.xlogy(x, x))\n"
        "f(df.constant(1.0))\n"
        "assert 'dualflow.function.autograph.compilation' not in sys.modules\n"
    )
    subprocess.run([sys.executable, str(path)], check=True)


def test_to_code_shows_what_a_function_becomes():
    shown = df.autograph.to_code(clamp)
    assert shown.startswith("def ag__clamp(x):")
    assert "ag__.if_stmt" in shown
    assert df.autograph.to_code(df.function(clamp)) == shown


def test_autograph_can_be_switched_off():
    with pytest.raises(OperatorNotAllowedInGraphError):
        df.function(clamp, autograph=False)(df.constant(1.0))


def test_to_graph_converts_without_compiling():
    converted = df.autograph.to_graph(clamp)
    assert converted.__name__ == "clamp"
    for x in (-1.0, 0.5, 3.0):
        expected = clamp(df.constant(x)).numpy()
        assert converted(df.constant(x)).numpy() == expected
        assert df.function(converted, autograph=False)(df.constant(x)).numpy() == expected
    assert df.autograph.to_graph(lambda x: x)(1) == 1


@pytest.mark.parametrize(
    ("entity", "options", "message"),
    [
        (5, {}, "takes a Python function, not a int"),
        (clamp, {"recursive": False}, "converts what a function calls as well; mark .*do_not_convert"),
        (eval("lambda x: x if x > 1 else -x"), {}, "source"),  # without source
    ],
    ids=["no function", "not recursive", "no source"],
)
def test_to_graph_refuses_what_it_cannot_convert(entity, options, message):
    with pytest.raises(df.errors.InvalidArgumentError, match=message):
        df.autograph.to_graph(entity, **options)


def test_a_condition_of_one_element_is_a_scalar():
    @df.function(input_signature=[df.TensorSpec([1, None]), df.TensorSpec([1, 1])])
    def f(x, y):
        count = 0
        while x < 3.0:
            x += 1.0
            count += 1
            if not (x < 100.0) or x == y:
                break
        return count

    assert int(f(df.constant([[0.0]]), df.constant([[9.0]]))) == 3
    assert int(f(df.constant([[0.0]]), df.constant([[1.0]]))) == 1
    with pytest.raises(ValueError, match="shape"):
        f(df.constant([[0.0, 1.0]]), df.constant([[9.0]]))
