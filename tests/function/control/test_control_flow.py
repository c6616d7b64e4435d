"""Conditionals and loops over tensors: the same results eagerly, traced and compiled."""

from __future__ import annotations

import numpy as np
import pytest

import dualflow as df


def kinds(function):
    """How the parts of a function's traces run."""
    return {p.kind for c in function.concrete_functions for p in c.parts}


def collatz(n):
    def iteration(n, count):
        return df.cond(df.equal(n % 2, 0), lambda: n // 2, lambda: 3 * n + 1), count + 1

    return df.while_loop(lambda n, count: n != 1, iteration, (n, 0))[1]


def test_a_loop_of_scalars_runs_in_machine_code():
    compiled = df.function(collatz)
    assert [int(compiled(df.constant(n))) for n in (1, 27, 97)] == [0, 111, 118]
    assert [int(collatz(df.constant(n))) for n in (1, 27, 97)] == [0, 111, 118]
    assert kinds(compiled) == {"native"}


@pytest.mark.parametrize("flag", [True, False])
def test_only_the_chosen_branch_runs(flag):
    v = df.Variable(0.0)

    @df.function
    def f(p):
        return df.cond(p, lambda: v.assign_add(1.0) + 0.0, lambda: v.assign_sub(10.0) + 0.0)

    f(df.constant(flag))
    assert v.numpy() == (1.0 if flag else -10.0)


@pytest.mark.parametrize(("index", "expected"), [(0, 10), (1, 20), (2, 30), (7, 30), (-1, 30)])
def test_an_index_out_of_range_takes_the_last_branch(index, expected):
    def f(i):
        return df.switch_case(i, [lambda: df.constant(10), lambda: df.constant(20), lambda: df.constant(30)])

    assert int(f(df.constant(index))) == int(df.function(f)(df.constant(index))) == expected


def test_a_loop_carries_tensors_and_reads_what_is_outside():
    @df.function
    def power(m, n):
        return df.while_loop(lambda i, p: i < n, lambda i, p: (i + 1, p @ m), (0, df.eye(2)))[1]

    m = df.constant([[1.0, 1.0], [1.0, 0.0]])
    assert power(m, df.constant(10)).numpy().tolist() == [[89.0, 55.0], [55.0, 34.0]]


def test_a_loop_assigns_variables_iteration_by_iteration():
    v = df.Variable(1.0)

    @df.function
    def f(x):
        def iteration(i):
            v.assign(v * x)
            return [i + 1]

        df.while_loop(lambda i: i < 3, iteration, [0])
        return v + 0.0

    assert f(df.constant(2.0)).numpy() == 8.0 == v.numpy()


def test_maximum_iterations_ends_a_loop():
    def f(x):
        return df.while_loop(lambda x: True, lambda x: [x * 2.0], [x], maximum_iterations=5)[0]

    assert f(df.constant(1.0)).numpy() == df.function(f)(df.constant(1.0)).numpy() == 32.0


def test_loops_nest():
    @df.function
    def f(n):
        def outer(i, total):
            inner = df.while_loop(lambda j, s: j < i, lambda j, s: (j + 1, s + j), (0, total))[1]
            return i + 1, inner

        return df.while_loop(lambda i, t: i < n, outer, (0, 0))[1]

    assert int(f(df.constant(10))) == sum(j for i in range(10) for j in range(i))


def test_structures_go_round():
    @df.function
    def f(x):
        iteration = {"count": 0, "pair": (x, x * 0.0)}
        return df.while_loop(
            lambda s: s["count"] < 4,
            lambda s: {"count": s["count"] + 1, "pair": (s["pair"][1], s["pair"][0] + s["pair"][1] + 1.0)},
            iteration,
        )

    result = f(df.constant([1.0, 2.0]))
    a, b = np.array([1.0, 2.0]), np.zeros(2)
    for _ in range(4):
        a, b = b, a + b + 1
    assert int(result["count"]) == 4
    assert np.array_equal(result["pair"][0].numpy(), a)
    assert np.array_equal(result["pair"][1].numpy(), b)


def gradient(f, x):
    with df.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x).numpy()


@pytest.mark.parametrize("value", [3.0, -3.0])
def test_a_gradient_goes_through_the_branch_that_ran(value):
    def f(x):
        return df.cond(x > 0, lambda: x * x * 2.0, lambda: x * 5.0)

    assert gradient(df.function(f), df.constant(value)) == gradient(f, df.constant(value))


def test_a_second_gradient_goes_through_a_branch():
    @df.function
    def f(x):
        return df.cond(x > 0, lambda: x * x * x, lambda: x)

    x = df.constant(2.0)
    with df.GradientTape() as outer:
        outer.watch(x)
        with df.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        slope = inner.gradient(y, x)
    assert outer.gradient(slope, x).numpy() == 12.0


def test_a_gradient_goes_back_through_all_iterations():
    m = df.constant([[0.5, 0.2], [0.1, 0.9]])

    def f(x):
        v = df.while_loop(lambda i, v: i < 7, lambda i, v: (i + 1, df.tanh(m @ v) + x), (0, x))[1]
        return df.reduce_sum(v * v)

    x = df.constant([[1.0], [-2.0]])
    np.testing.assert_allclose(gradient(df.function(f), x), gradient(f, x), rtol=1e-5)


def test_a_tape_inside_a_function_goes_through_a_loop():
    @df.function
    def slope(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), (0, 1.0))[1]
        return tape.gradient(y, x)

    assert slope(df.constant(2.0)).numpy() == 12.0


def test_a_loop_that_draws_has_the_gradient_of_that_run():
    @df.function
    def f(x):
        return df.while_loop(lambda v: v < 9.0, lambda v: [v + x * df.random.uniform([])], [x])[0]

    x = df.constant(2.0)
    with df.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    np.testing.assert_allclose(tape.gradient(y, x), y / x, rtol=1e-6)


def test_a_loop_variable_that_begins_as_a_python_number_takes_the_dtype_of_an_iteration(mode):
    def total(n):
        return df.while_loop(lambda i, c: i < n, lambda i, c: (i + 1, c + 0.5), (df.constant(0), 0))[1]

    result = mode(total)(df.constant(3))
    assert result.dtype is df.float32
    assert float(result) == 1.5
    with pytest.raises(TypeError, match="dtype int32 before the loop, but dtype float32 after"):
        mode(lambda: df.while_loop(lambda c: c < 2.0, lambda c: c + 0.5, [df.constant(0)]))()


@pytest.mark.parametrize("rows", [0, 1, 2, 5])
def test_branches_may_leave_different_sizes(rows):
    def chosen(x):
        return df.cond(df.reduce_sum(x) > 2.5, lambda: x[:1], lambda: df.concat([x, x], 0)) ** 2

    def gradient(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = chosen(x)
        return y, tape.gradient(y, x)

    x = df.ones([rows, 2])
    for now, compiled in zip(gradient(x), df.function(gradient)(x), strict=True):
        np.testing.assert_array_equal(now, compiled)


@pytest.mark.parametrize("rows", [1, 2])
def test_a_branch_of_run_time_size_has_a_gradient_whatever_the_number_of_rows(rows):
    @df.function
    def gradient(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.cond(df.reduce_sum(x) > 9.0, lambda: x[x[:, 0] > 0.0], lambda: x) ** 2
        return tape.gradient(y, x)

    np.testing.assert_array_equal(gradient(df.ones([rows, 2])), np.full([rows, 2], 2.0))
