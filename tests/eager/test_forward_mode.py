"""Forward mode: ``ForwardAccumulator`` and the functions of ``df.autodiff`` that use it."""

from __future__ import annotations

import numpy as np
import pytest

import dualflow as df

X = df.constant(np.random.default_rng(3).uniform(0.5, 1.5, (3, 4)))
V = df.constant(np.random.default_rng(4).uniform(-1, 1, (3, 4)))


def program(x):
    """Products, folds, choices and views, in float64."""
    y = df.matmul(df.nn.softmax(x), df.transpose(df.sin(x)))
    return df.where(y > 0.2, df.exp(y), y * y)[:2]


def slope(f, x, v, step=1e-6):
    return (np.asarray(f(x + step * v)) - np.asarray(f(x - step * v))) / (2 * step)


# The accumulator


def test_the_derivative_is_the_slope_along_the_direction():
    with df.autodiff.ForwardAccumulator(X, V) as acc:
        y = program(X)
    np.testing.assert_allclose(acc.jvp(y), slope(program, X, V), rtol=1e-6)


def test_structures_keep_their_shape():
    with df.autodiff.ForwardAccumulator({"a": X, "b": V}, {"a": V, "b": X}) as acc:
        results = [X * V, (X + V,)]
    product, (total,) = acc.jvp(results)
    np.testing.assert_allclose(product, np.asarray(V * V + X * X))
    np.testing.assert_allclose(total, np.asarray(V + X))


def test_values_independent_of_the_primals_have_no_derivative():
    with df.autodiff.ForwardAccumulator(X, V) as acc:
        other = df.ones([2])
    assert acc.jvp(other) is None
    assert acc.jvp(other, unconnected_gradients="zero").numpy().tolist() == [0.0, 0.0]


def test_stop_gradient_stops_it():
    with df.autodiff.ForwardAccumulator(X, V) as acc:
        y = X * df.stop_gradient(X)
    np.testing.assert_allclose(acc.jvp(y), np.asarray(V * X))


def test_a_variable_has_its_tangent_whenever_it_is_read():
    """As for a tape: no derivative flows through an assignment, and each read is the variable."""
    v = df.Variable([2.0, 3.0])
    with df.autodiff.ForwardAccumulator(v, df.constant([1.0, 0.0])) as acc:
        before = v * v
        v.assign(before)
        after = v * v
    assert acc.jvp(before).numpy().tolist() == [4.0, 0.0]
    assert acc.jvp(after).numpy().tolist() == [8.0, 0.0]
    assert acc.jvp(v).numpy().tolist() == [1.0, 0.0]


def test_values_computed_before_the_block_have_no_derivative():
    before = X * X
    with df.autodiff.ForwardAccumulator(X, V) as acc:
        y = before + 1.0
    assert acc.jvp(y) is None


def test_a_custom_gradient_goes_forward_too():
    @df.custom_gradient
    def clipped(x):
        return df.identity(x), lambda g: g * 7.0

    with df.autodiff.ForwardAccumulator(X, V) as acc:
        y = clipped(X)
    np.testing.assert_allclose(acc.jvp(y), 7.0 * np.asarray(V))


def test_ops_of_several_results_go_forward():
    with df.autodiff.ForwardAccumulator(X, V) as acc:
        parts = df.unstack(X, axis=0)
        y = parts[0] * parts[2]
    np.testing.assert_allclose(acc.jvp(y), np.asarray(V[0] * X[2] + X[0] * V[2]))


# Higher orders


def test_forward_over_forward():
    with df.autodiff.ForwardAccumulator(X, V) as outer:
        with df.autodiff.ForwardAccumulator(X, V) as inner:
            y = X**3
        first = inner.jvp(y)
    np.testing.assert_allclose(outer.jvp(first), np.asarray(6 * X * V * V))


def test_forward_over_reverse():
    v = df.Variable(X)
    with df.autodiff.ForwardAccumulator(v, V) as acc:
        with df.GradientTape() as tape:
            y = df.reduce_sum(v**3)
        gradient = tape.gradient(y, v)
    np.testing.assert_allclose(acc.jvp(gradient), np.asarray(6 * X * V))


def test_reverse_over_forward():
    with df.GradientTape() as tape:
        tape.watch(X)
        with df.autodiff.ForwardAccumulator(X, V) as acc:
            y = df.reduce_sum(X**3)
    np.testing.assert_allclose(tape.gradient(acc.jvp(y), X), np.asarray(6 * X * V))


# In functions


def test_it_compiles_with_the_function_around_it():
    @df.function
    def both(x, v):
        with df.autodiff.ForwardAccumulator(x, v) as acc:
            y = program(x)
        return y, acc.jvp(y)

    values, derivatives = both(X, V)
    np.testing.assert_allclose(values, np.asarray(program(X)))
    np.testing.assert_allclose(derivatives, slope(program, X, V), rtol=1e-6)
    assert "NumPy" not in str(both.get_concrete_function(X, V).status()).split("in this process")[0]


def test_a_compiled_function_called_in_the_block_goes_forward():
    compiled = df.function(program)
    with df.autodiff.ForwardAccumulator(X, V) as acc:
        y = compiled(X)
    np.testing.assert_allclose(acc.jvp(y), slope(program, X, V), rtol=1e-6)


def test_integers_have_no_derivative_and_warn():
    with pytest.warns(UserWarning, match="must be floating"):
        acc = df.autodiff.ForwardAccumulator(df.constant(3), df.constant(1))
    assert acc.jvp(df.constant(3)) is None


def power(x):
    y = x
    for _ in df.range(4):
        y = y * x
    return y


def grown(x):
    y = x
    while y < 10.0:
        y = y * x
    return y


def folded(x):
    return x * x if x > 1.0 else -x


@pytest.mark.parametrize(("program", "expected"), [(power, 5 * 1.5**4), (grown, 6 * 1.5**5), (folded, 3.0)])
def test_loops_and_branches_over_tensors_go_forward(program, expected):
    @df.function
    def derivative(x, v):
        with df.autodiff.ForwardAccumulator(x, v) as acc:
            y = program(x)
        return acc.jvp(y)

    assert float(derivative(df.constant(1.5), df.constant(1.0))) == pytest.approx(expected)


# Functions into functions


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse"])
def test_a_jacobian_is_the_same_either_way(mode):
    jacobian = df.autodiff.jacobian(program, mode=mode)(X)
    with df.GradientTape() as tape:
        tape.watch(X)
        y = program(X)
    np.testing.assert_allclose(jacobian, np.asarray(tape.jacobian(y, X)), rtol=1e-9, atol=1e-12)


def test_jacobians_for_several_arguments():
    a, b = df.autodiff.jacobian(lambda x, y: x * y[:2], argnums=(0, 1))(X[:2, 0], X[0])
    assert (a.shape, b.shape) == ((2, 2), (2, 4))
    np.testing.assert_allclose(a, np.diag(np.asarray(X[0, :2])))


def test_a_jacobian_of_nothing_is_empty():
    assert df.autodiff.jacobian(lambda x: x * 2.0)(df.zeros([0])).shape == (0, 0)
    assert df.autodiff.jacobian(lambda x: df.zeros([3]), mode="forward")(df.zeros([0])).shape == (3, 0)


def test_a_hessian_is_symmetric_and_its_products_are_hvps():
    def energy(x):
        return df.reduce_sum(df.exp(x) * df.reverse(x, [0]))

    x, v = X[0], V[0]
    matrix = np.asarray(df.autodiff.hessian(energy)(x))
    np.testing.assert_allclose(matrix, matrix.T)
    np.testing.assert_allclose(df.autodiff.hvp(energy, [x], [v])[0], matrix @ np.asarray(v))


def test_vjp_and_jvp_are_transposes():
    outputs, vjp = df.autodiff.vjp(program, X)
    _, forward = df.autodiff.jvp(program, [X], [V])
    w = df.cast(df.range(1, 5), df.float64)[:, None][:2] * df.ones_like(outputs)
    (backward,) = vjp(w)
    np.testing.assert_allclose(np.sum(np.asarray(forward * w)), np.sum(np.asarray(backward * V)))


def test_an_argument_given_twice_is_two_arguments():
    assert float(df.autodiff.jvp(lambda a, b: a * b, [X[0, 0]] * 2, [X[0, 0], X[0, 0] * 0.0])[1]) == float(
        X[0, 0] * X[0, 0]
    )


def test_a_branch_that_only_checks_goes_forward():
    def checked(x):
        total = df.reduce_sum(x)
        df.cond(total > 0.5, lambda: df.debugging.assert_less(total, 6.0), lambda: None)
        return x * x

    along = df.function(lambda x: df.autodiff.jvp(checked, [x], [df.ones_like(x)])[1])
    assert along(df.constant([1.0, 2.0])).numpy().tolist() == [2.0, 4.0]
