"""Tapes, variables and optimizers inside of a traced function do what they do outside."""

import numpy as np
import pytest

import dualflow as df
from dualflow.compat import v1
from dualflow.core import tree

X = [1.0, -2.0, 3.0]
FREE = df.constant(np.linspace(-1, 1, 30, dtype=np.float32))


def watched(x, v):
    with df.GradientTape() as tape:
        tape.watch(x)
        y = x * x * x
    return tape.gradient(y, x)


def variable(x, v):
    with df.GradientTape() as tape:
        y = df.reduce_sum(v * x)
    return tape.gradient(y, v)


def captured_tensor(x, v):
    with df.GradientTape(persistent=True) as tape:
        tape.watch(FREE)
        y = df.reduce_sum(FREE * FREE) * x
        z = y * y
    return tape.gradient(y, FREE), tape.gradient(z, FREE), tape.gradient(z, y)


def nested(x, v):
    with df.GradientTape() as outer:
        outer.watch(x)
        with df.GradientTape() as inner:
            inner.watch(x)
            y = x * x * x * v
        slope = inner.gradient(y, x)
    return outer.gradient(slope, [x, v])


def jacobian(x, v):
    with df.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    return tape.jacobian(y, [x, v])[0]


@df.custom_gradient
def log1pexp(x):
    e = df.exp(x)
    return df.math.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))


def custom(x, v):
    with df.GradientTape() as outer:
        outer.watch(x)
        with df.GradientTape() as inner:
            inner.watch(x)
            y = log1pexp(x)
        slope = inner.gradient(y, x)
    return y, slope, outer.gradient(slope, x)


def one_output_of_several(x, v):
    with df.GradientTape() as tape:
        tape.watch(x)
        first, _, _ = df.split(x, 3)
        y = first * first
    return tape.gradient(y, x)


def value_read_before(x, v):
    before = v.value()
    with df.GradientTape() as tape:
        y = v * before
    return tape.gradient(y, v)


def reads_and_assignments(x, v):
    with df.GradientTape() as tape:
        y = v * v
        v.assign(x)
        y = y + v * v
    slope = tape.gradient(y, v)
    v[0].assign(5.0)
    v.scatter_nd_add([[1]], [10.0])
    return slope, v.value(), v[1]


def paused(x, v):
    with df.GradientTape() as tape:
        tape.watch(x)
        with tape.stop_recording():
            constant = x * 100.0
        y = x * constant
    return tape.gradient(y, x)


CASES = [
    watched, variable, captured_tensor, nested, jacobian, custom, one_output_of_several, value_read_before,
    reads_and_assignments, paused,
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda f: f.__name__)
def test_now_and_traced_agree(case):
    results = []
    for f in (case, df.function(case)):
        v = df.Variable([2.0, 3.0, 4.0])
        results.append([x.numpy() for x in tree.leaves((f(df.constant(X), v), v.value()))])
    for now, traced in zip(*results, strict=True):
        np.testing.assert_allclose(traced, now, rtol=1e-5, atol=1e-6)


OPTIMIZERS = {
    "descent": lambda: v1.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: v1.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adam": lambda: v1.train.AdamOptimizer(0.1),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_training_step_is_traced_with_its_slots(name):
    def training():
        w, step = df.Variable([5.0, 5.0, 5.0]), df.Variable(0, trainable=False)
        optimizer = OPTIMIZERS[name]()

        def train(x):
            optimizer.minimize(lambda: df.reduce_sum((w - x) ** 2), global_step=step)
            return w.value(), step.value()

        return train

    now, traced, x = training(), df.function(training()), df.constant(X)
    for _ in range(5):
        (w, i), (u, j) = now(x), traced(x)
        np.testing.assert_allclose(u.numpy(), w.numpy(), rtol=1e-5)
        assert i.numpy() == j.numpy()


def test_random_numbers_are_new_at_each_call_and_follow_the_global_seed():
    f = df.function(lambda: df.random.normal([3]))
    df.random.set_seed(1)
    a, b = f().numpy(), f().numpy()
    df.random.set_seed(1)
    assert np.array_equal(a, f().numpy())
    assert not np.array_equal(a, b)


def test_stateless_random_numbers_stay_the_same():
    f = df.function(lambda: df.random.stateless_normal([3], seed=[1, 2]))
    assert np.array_equal(f().numpy(), f().numpy())


def test_a_tape_outside_sees_through_a_traced_function_with_a_custom_gradient():
    v, x = df.Variable([2.0, 3.0, 4.0]), df.constant(X)
    f = df.function(lambda x: log1pexp(x) * v)
    with df.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    dx, dv = tape.gradient(y, [x, v])
    sigmoid = 1 / (1 + np.exp(-np.array(X)))
    np.testing.assert_allclose(dx.numpy(), sigmoid * v.numpy(), rtol=1e-5)
    np.testing.assert_allclose(dv.numpy(), np.log1p(np.exp(X)), rtol=1e-5)


def test_a_symbolic_tensor_that_outlives_its_trace_is_refused():
    kept = []

    @df.function
    def f(x):
        kept.append(x * 2.0)
        return x

    f(df.constant(1.0))
    with pytest.raises(TypeError, match="traced function"):
        kept[0] + 1.0


def test_symbolic_tensors_are_keys_by_reference():
    compared = []

    @df.function
    def f(x):
        y = x + 1.0
        compared.append((x.ref() == x.ref(), x.ref() == y.ref(), {y.ref(): "y"}[y.ref()]))
        assert y.ref().deref() is y
        return y

    f(df.constant(1.0))
    assert compared == [(True, False, "y")]
