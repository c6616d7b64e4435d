"""Custom gradients of functions."""

import numpy as np
import pytest

import dualflow as df


def derivative(f, at, order=1):
    x = df.constant(at)
    if order == 0:
        return f(x)
    with df.GradientTape() as tape:
        tape.watch(x)
        y = derivative_of(f, x, order - 1)
    return tape.gradient(y, x)


def derivative_of(f, x, order):
    if order == 0:
        return f(x)
    with df.GradientTape() as tape:
        tape.watch(x)
        y = derivative_of(f, x, order - 1)
    return tape.gradient(y, x)


@df.custom_gradient
def log1pexp(x):
    e = df.exp(x)
    return df.math.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))


def test_the_given_gradient_is_used():
    assert derivative(log1pexp, 100.0).numpy() == 1.0
    assert np.isnan(derivative(lambda x: df.math.log(1 + df.exp(x)), 100.0).numpy())


def test_higher_orders_differentiate_the_given_gradient():
    gradient = derivative(log1pexp, 0.5, order=2).numpy()
    s = 1 / (1 + np.exp(-0.5))
    np.testing.assert_allclose(gradient, s * (1 - s), rtol=1e-6)


def test_it_is_the_function_where_no_tape_listens():
    np.testing.assert_allclose(log1pexp(df.constant(0.0)).numpy(), np.log(2), rtol=1e-6)
    assert log1pexp.__name__ == "log1pexp"


def test_several_arguments_and_outputs():
    @df.custom_gradient
    def f(x, y, scale):
        def grad(da, db):
            return da * 10.0, db * 100.0, None

        return (x + y, {"product": x * y * scale}), grad

    x, y = df.constant(2.0), df.constant(3.0)
    with df.GradientTape() as tape:
        tape.watch([x, y])
        a, b = f(x, y, 0.5)
        z = 2.0 * a + b["product"]
    assert z.numpy() == 13.0
    dx, dy = tape.gradient(z, [x, y])
    assert dx.numpy() == 20.0
    assert dy.numpy() == 100.0


def test_an_output_that_does_not_matter_has_a_zero_gradient():
    gradients = []

    @df.custom_gradient
    def f(x):
        def grad(da, db):
            gradients.extend([da.numpy(), db.numpy()])
            return da

        return (x * 2.0, x * 3.0), grad

    x = df.constant(1.0)
    with df.GradientTape() as tape:
        tape.watch(x)
        a, _ = f(x)
    tape.gradient(a, x)
    assert gradients == [1.0, 0.0]


def test_the_gradient_function_runs_once_for_all_arguments():
    calls = []

    @df.custom_gradient
    def f(x, y, z):
        def grad(d):
            calls.append(d)
            return d, d, d

        return x + y + z, grad

    xs = [df.constant(float(i)) for i in range(3)]
    with df.GradientTape() as tape:
        tape.watch(xs)
        y = f(*xs)
    tape.gradient(y, xs)
    assert len(calls) == 1


def test_a_variable_as_an_argument():
    @df.custom_gradient
    def f(v):
        return v * 2.0, lambda d: d * 7.0

    v = df.Variable(3.0)
    with df.GradientTape() as tape:
        y = f(v)
    assert tape.gradient(y, v).numpy() == 7.0


def test_variables_inside_need_a_gradient_function_that_takes_them():
    w = df.Variable(3.0, name="inside")

    @df.custom_gradient
    def bad(x):
        return x * w, lambda d: d * w

    with pytest.raises(TypeError, match=r"must accept a 'variables' keyword argument.*inside"):
        bad(df.constant(2.0))


def test_variables_inside_get_the_gradients_that_are_given():
    w = df.Variable(3.0)

    @df.custom_gradient
    def f(x):
        def grad(d, variables):
            assert variables[0] is w
            return d * 10.0, [d * 100.0]

        return x * w, grad

    x = df.constant(2.0)
    with df.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert y.numpy() == 6.0
    dx, dw = tape.gradient(y, [x, w])
    assert dx.numpy() == 10.0
    assert dw.numpy() == 100.0


@pytest.mark.parametrize("answer", [(1.0,), (1.0, 2.0, 3.0)])
def test_the_number_of_gradients_must_be_right(answer):
    @df.custom_gradient
    def f(x, y):
        return x + y, lambda d: answer

    x = df.constant(1.0)
    with df.GradientTape() as tape:
        tape.watch(x)
        y = f(x, x)
    with pytest.raises(ValueError, match="each of its 2 arguments"):
        tape.gradient(y, x)


def test_gradients_may_be_numbers_and_arrays():
    @df.custom_gradient
    def f(x, y):
        return x * y, lambda d: (2, np.ones(2, np.float32))

    x, y = df.constant(1.0), df.constant([1.0, 2.0])
    with df.GradientTape() as tape:
        tape.watch([x, y])
        z = f(x, y)
    dx, dy = tape.gradient(z, [x, y])
    assert dx.dtype is df.float32
    assert dy.numpy().tolist() == [1.0, 1.0]


def test_tapes_inside():
    @df.custom_gradient
    def f(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        slope = tape.gradient(y, x)
        return y, lambda d: d * slope

    assert derivative(f, 3.0).numpy() == 6.0


def test_keywords_pass_through():
    @df.custom_gradient
    def f(x, *, power):
        return x**power, lambda d: d * power

    x = df.constant(2.0)
    with df.GradientTape() as tape:
        tape.watch(x)
        y = f(x, power=3)
    assert tape.gradient(y, x).numpy() == 3.0


class Scaled:
    """A layer whose gradient is made larger."""

    def __init__(self, factor=10.0):
        self.factor = factor

    @df.custom_gradient
    def call(self, x, times=2.0):
        return x * times, lambda dy: dy * self.factor

    def __call__(self, x):
        return self.call(x)


class Wider(Scaled):
    def call(self, x):
        return super().call(x) + 1.0


class Holding(df.Module):
    """A module, whose variables are no arguments of its methods."""

    def __init__(self):
        self.weight = df.Variable(3.0)

    @df.custom_gradient
    def call(self, x):
        def grad(dy, variables):
            return dy * 10.0, [dy * 100.0 for _ in variables]

        return x * self.weight, grad


@pytest.mark.parametrize("layer", [Scaled(), Wider(), Scaled().call, Wider().call])
def test_a_method_has_no_gradient_for_its_object(layer, mode):
    @mode
    def slope(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = layer(x)
        return tape.gradient(y, x)

    assert slope(df.constant(3.0)).numpy() == 10.0


def test_a_method_may_be_called_by_its_class():
    x = df.constant(3.0)
    with df.GradientTape() as tape:
        tape.watch(x)
        y = Scaled.call(Scaled(5.0), x)
    assert (y.numpy(), tape.gradient(y, x).numpy()) == (6.0, 5.0)


def test_a_methods_variables_are_those_that_it_reads():
    module, x = Holding(), df.constant(2.0)
    with df.GradientTape() as tape:
        tape.watch(x)
        y = module.call(x)
    assert [g.numpy() for g in tape.gradient(y, [x, module.weight])] == [10.0, 100.0]
