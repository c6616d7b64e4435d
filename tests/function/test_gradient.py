"""Gradients inside of, through and around compiled functions."""

from __future__ import annotations

import numpy as np
import pytest

import dualflow as df
from dualflow.core import dispatch
from dualflow.core.dispatch import Engine
from dualflow.eager.engine import EAGER
from dualflow.function.calls import trace_gradients


def gradient(f, *xs, persistent=False):
    with df.GradientTape(persistent=persistent) as tape:
        tape.watch(xs)
        y = f(*xs)
    return [None if g is None else g.numpy() for g in tape.gradient(y, xs)]


def model(x, w):
    h = df.tanh(df.matmul(x, w))
    return df.reduce_sum(h * h, 1)


X = df.constant(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3))
W = df.constant(np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4))


def test_the_gradient_through_a_function_is_the_eager_one():
    for mine, eager in zip(gradient(df.function(model), X, W), gradient(model, X, W), strict=True):
        assert np.allclose(mine, eager, rtol=1e-5)


def test_every_output_takes_its_share():
    f = df.function(lambda x: (x * 2.0, [x * x, None], df.cast(x, "int32")))

    def total(x):
        a, (b, _), n = f(x)
        return df.reduce_sum(a) + df.reduce_sum(b * 3.0) + df.cast(df.reduce_sum(n), "float32")

    x = df.constant([1.0, 2.0])
    assert gradient(total, x)[0].tolist() == [8.0, 14.0]


def test_only_what_the_tape_watches_gets_a_gradient():
    f = df.function(lambda x, y: x * y)
    x, y = df.constant(2.0), df.constant(3.0)
    with df.GradientTape() as tape:
        tape.watch(x)
        z = f(x, y)
    assert [g if g is None else float(g) for g in tape.gradient(z, [x, y])] == [3.0, None]


def test_graphs_are_kept_for_the_latest_sets_of_watched_inputs(monkeypatch):
    monkeypatch.setattr(trace_gradients, "MAX_WATCHED", 2)
    f = df.function(lambda *xs: xs[0] * xs[1] * xs[2])
    xs = [df.constant(x) for x in (2.0, 3.0, 5.0)]
    products = [15.0, 10.0, 6.0]
    for watched in [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0,)]:
        with df.GradientTape() as tape:
            tape.watch([xs[i] for i in watched])
            y = f(*xs)
        gradients = tape.gradient(y, xs)
        expected = [products[i] if i in watched else None for i in range(3)]
        assert [g and float(g) for g in gradients] == expected
    (trace,) = f.concrete_functions
    assert len(trace._own.graphs) == 1 + 2 * 2


def test_captured_tensors_and_variables_are_differentiated():
    big, v = df.constant(np.ones(100, np.float32)), df.Variable(2.0)
    f = df.function(lambda: df.reduce_sum(big * big) * v)
    with df.GradientTape() as tape:
        tape.watch(big)
        y = f()
    g, gv = tape.gradient(y, [big, v])
    assert (g.numpy()[0], float(gv)) == (4.0, 100.0)


def looped(x, w):
    total = df.constant(0.0)
    for _ in df.range(3):
        total += df.reduce_sum(x * w)
    return total


OF_A_SMALL_CAPTURE = {
    "captured": lambda w: df.function(lambda x: df.reduce_sum(x * w)),
    "by a function inside": lambda w: df.function(df.function(lambda x: df.reduce_sum(x * w))),
    "by a branch": lambda w: df.function(
        lambda x: df.cond(x[0] > 0.0, lambda: df.reduce_sum(x * w), lambda: 0.0)
    ),
    "by a loop": lambda w: df.function(lambda x: looped(x, w) / 3.0),
}


@pytest.mark.parametrize("make", OF_A_SMALL_CAPTURE.values(), ids=OF_A_SMALL_CAPTURE)
def test_captured_tensors_of_few_elements_are_differentiated_too(make):
    x, w = df.constant([3.0, 4.0]), df.constant([1.0, 2.0])
    f = make(w)
    f(x)  # the trace is made before a tape requests the gradient
    with df.GradientTape() as tape:
        tape.watch(w)
        y = f(x)
    assert tape.gradient(y, w).numpy().tolist() == [3.0, 4.0]
    with df.autodiff.ForwardAccumulator(w, df.ones([2])) as accumulator:
        y = f(x)
    assert float(accumulator.jvp(y)) == 7.0


def test_a_captured_tensor_of_few_elements_decides_sizes_while_tracing():
    limit = df.constant(2.5)
    f = df.function(lambda x: df.range(limit) * x)
    assert f.get_concrete_function(df.constant(1.0)).graph.outputs[0].spec.shape == (3,)


def test_a_tensor_that_is_argument_and_captured_gets_both_shares():
    x = df.constant(np.full(20, 3.0, np.float32))
    f = df.function(lambda y: df.reduce_sum(x * x * y))
    assert gradient(f, x)[0].tolist() == [27.0] * 20


def test_an_untrainable_variable_is_not_watched_by_itself():
    v = df.Variable(2.0, trainable=False)
    with df.GradientTape() as tape:
        y = df.function(lambda: v * v)()
    assert tape.gradient(y, v) is None


def test_a_variable_argument_is_differentiated():
    f = df.function(lambda v, x: v * v * x)
    v = df.Variable(3.0)
    with df.GradientTape() as tape:
        y = f(v, df.constant(2.0))
    assert float(tape.gradient(y, v)) == 12.0


def test_the_gradient_is_of_the_value_before_an_update():
    v = df.Variable(3.0)

    @df.function
    def f():
        y = v * v
        v.assign(100.0)
        return y

    with df.GradientTape() as tape:
        y = f()
    assert float(v) == 100.0
    assert float(tape.gradient(y, v)) == 6.0


def test_a_persistent_tape_requests_again():
    f = df.function(lambda x: (x * x, x * x * x))
    x = df.constant(2.0)
    with df.GradientTape(persistent=True) as tape:
        tape.watch(x)
        a, b = f(x)
    assert [float(tape.gradient(y, x)) for y in (a, b, a)] == [4.0, 12.0, 4.0]


def test_subsets_of_the_sources_are_right_too():
    f = df.function(lambda x, y, z: x * y * z)
    xs = [df.constant(float(n)) for n in (2, 3, 5)]
    with df.GradientTape(persistent=True) as tape:
        tape.watch(xs)
        out = f(*xs)
    assert [float(tape.gradient(out, x)) for x in xs] == [15.0, 10.0, 6.0]
    assert [float(g) for g in tape.gradient(out, xs[::2])] == [15.0, 6.0]


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_any_order_agrees_with_eager(order):
    def f(x):
        return df.exp(2.0 * x) * df.sin(x)

    def derivative(f, n):
        if n == 0:
            return f

        def g(x):
            with df.GradientTape() as tape:
                tape.watch(x)
                y = derivative(f, n - 1)(x)
            return tape.gradient(y, x)

        return g

    x = df.constant(0.3, df.float64)
    expected = float(derivative(f, order)(x))
    assert float(derivative(df.function(f), order)(x)) == pytest.approx(expected, rel=1e-9)
    assert float(df.function(derivative(f, order))(x)) == pytest.approx(expected, rel=1e-9)
    assert float(df.function(derivative(df.function(f), order))(x)) == pytest.approx(expected, rel=1e-9)


def test_second_order_mixes_arguments_and_variables():
    v = df.Variable(3.0)
    f = df.function(lambda x: x * x * v * v)
    x = df.constant(2.0)
    with df.GradientTape() as outer:
        outer.watch(x)
        with df.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        g = inner.gradient(y, x)
    assert [float(h) for h in outer.gradient(g, [x, v])] == [18.0, 24.0]


def test_custom_gradients_are_honoured():
    @df.custom_gradient
    def reversal(x):
        scale = df.exp(x)
        return x * 1.0, lambda g: -g * scale

    x = df.constant(0.0)
    f = df.function(lambda x: reversal(x) * 3.0)
    assert gradient(f, x) == [-3.0]
    with df.GradientTape() as outer:
        outer.watch(x)
        with df.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        g = inner.gradient(y, x)
    assert float(outer.gradient(g, x)) == -3.0


def test_stop_gradient_stops():
    f = df.function(lambda x: x * df.stop_gradient(x))
    assert gradient(f, df.constant(3.0)) == [3.0]


def test_the_gradient_sees_the_numbers_that_were_drawn():
    f = df.function(lambda x: x * df.random.normal([5]))
    x = df.constant(np.full(5, 2.0, np.float32))
    with df.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x)
    drawn = y.numpy() / 2.0
    assert np.allclose(tape.gradient(y, x).numpy(), drawn)
    assert np.allclose(tape.gradient(y, x).numpy(), drawn)


def test_a_second_derivative_sees_the_numbers_that_were_drawn():
    f = df.function(lambda x: x * x * df.random.normal([]))
    x = df.constant(3.0)
    with df.GradientTape() as outer:
        outer.watch(x)
        with df.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        g = inner.gradient(y, x)
    assert float(outer.gradient(g, x)) == pytest.approx(float(y) / 9.0 * 2.0, rel=1e-5)


def test_nested_functions_are_differentiated():
    inner = df.function(lambda x: x * x)
    outer = df.function(lambda x: inner(x) * inner(x + 1.0))
    assert gradient(outer, df.constant(2.0)) == [2 * 2 * 9 + 4 * 2 * 3]


def test_a_whole_training_step_is_one_function():
    v = df.Variable(3.0)

    @df.function
    def step():
        with df.GradientTape() as tape:
            loss = v * v
        v.assign_sub(0.1 * tape.gradient(loss, v))
        return loss

    assert float(step()) == 9.0
    assert float(v) == pytest.approx(2.4)
    assert {n.effect for n in step.concrete_functions[0].optimised_graph.nodes} == {None}


def test_a_gradient_taken_inside_a_trace_of_an_eager_call_works():
    f = df.function(lambda x: x * x)
    x = df.constant(3.0)
    with df.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x)
    assert float(df.function(lambda: tape.gradient(y, x))()) == 6.0


def test_the_jacobian_of_a_function():
    f = df.function(lambda x: x * x)
    x = df.constant([1.0, 2.0])
    with df.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert tape.jacobian(y, x).numpy().tolist() == [[2.0, 0.0], [0.0, 4.0]]


def test_an_engine_that_is_not_known_sees_the_ops():
    class Listener(Engine):
        eager = True

        def __init__(self):
            self.op_names = []

        def run(self, op, inputs, attrs):
            self.op_names.append(op.name)
            return EAGER.run(op, inputs, attrs)

        def constant(self, array):
            return EAGER.constant(array)

        def read(self, variable):
            return EAGER.read(variable)

    f = df.function(lambda x: df.exp(x) * 2.0)
    with dispatch.using(Listener()) as listener:
        y = f(df.constant(0.0))
    assert float(y) == 2.0
    assert listener.op_names == ["exp", "multiply"]


def test_a_deep_functions_gradient_needs_no_deep_stack():
    def deep(x):
        for _ in range(3000):
            x = x * 1.0001
        return x

    assert gradient(df.function(deep), df.constant(1.0))[0] == pytest.approx(1.0001**3000, rel=1e-3)


def powers(x):
    y = x
    for _ in df.range(3):
        y = y * df.sin(x)
    return df.reduce_sum(y)


def halves(x):
    return df.reduce_sum(x * x) if df.reduce_sum(x) > 0.0 else df.reduce_sum(x * x * x)


@pytest.mark.parametrize("function", [powers, halves])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_forward_mode_goes_through_control_flow_of_a_function_that_is_called(function, sign):
    f, direction = df.function(function), df.constant([0.5, -2.0])
    x = df.constant([0.25, 0.75]) * sign
    with df.autodiff.ForwardAccumulator(x, direction) as accumulator:
        y = f(x)
    (g,) = gradient(f, x)
    assert np.allclose(accumulator.jvp(y), np.dot(g, direction.numpy()), rtol=1e-5)


@pytest.mark.parametrize("function", [powers, halves])
def test_forward_over_reverse_goes_through_control_flow_of_a_function_that_is_called(function):
    f, direction = df.function(function), df.constant([0.5, -2.0])
    x = df.constant([0.25, 0.75])
    with df.autodiff.ForwardAccumulator(x, direction) as accumulator:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        g = tape.gradient(y, x)
    with df.GradientTape() as outer:
        outer.watch(x)
        with df.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        product = df.reduce_sum(inner.gradient(y, x) * direction)
    assert np.allclose(accumulator.jvp(g), outer.gradient(product, x), rtol=1e-4)


def assigned_and_read(v, x):
    v.assign(df.reduce_sum(x) * v)
    return v * x


def result_of_an_assignment(v, x):
    return v * x + v.assign_add(df.reduce_mean(x))


def assigned_value_used_twice(v, x):
    product = v * df.reduce_sum(x)
    v.assign(product)
    return product * v


def assigned_in_a_branch(v, x):
    if df.reduce_sum(x) > 0.0:
        v.assign(v * df.reduce_sum(x))
        return v * x + v * 2.0
    return v * x


def assigned_in_a_loop(v, x):
    y = x
    for _ in df.range(3):
        v.assign(v * df.reduce_mean(y))
        y = y + v * x
    return y + v


def assigned_by_a_function(v, x):
    inner = df.function(assigned_and_read)
    return inner(v, x) * v + inner(v, x)


@pytest.mark.parametrize("taped", ["around", "inside"])
@pytest.mark.parametrize(
    "function",
    [
        assigned_and_read,
        result_of_an_assignment,
        assigned_value_used_twice,
        assigned_in_a_branch,
        assigned_in_a_loop,
        assigned_by_a_function,
    ],
)
def test_no_gradient_flows_through_an_assignment(function, taped):
    x, v = df.constant([1.0, 2.0, 4.0]), df.Variable(3.0)

    def gradients(f, x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = f(v, x)
        return tape.gradient(y, [x, v])

    expected = [g.numpy() for g in gradients(function, x)]
    assigned = v.numpy()
    v.assign(3.0)
    compiled = df.function(function)
    results = gradients(compiled, x) if taped == "around" else df.function(gradients)(compiled, x)
    for result, value in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, value, rtol=1e-6)
    np.testing.assert_allclose(v, assigned, rtol=1e-6)
