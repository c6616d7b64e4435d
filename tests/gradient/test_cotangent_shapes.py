"""Cotangents from user code have the shape and dtype of the value that they belong to, or it is an error."""

from __future__ import annotations

import numpy as np
import pytest

import dualflow as df

X = np.array([1.0, -2.0, 3.0, 4.0, -5.0, 2.0], np.float32)
POSITIVE = X[X > 0]

OPS = {
    "mask": lambda x: df.boolean_mask(x, x > 1.0),
    "repeat": lambda x: df.repeat(x, df.cast(x, df.int32)),
    "tile": lambda x: df.tile(x, [df.size(x)]),
    "pad": lambda x: df.pad(x, [[df.size(x), 1]]),
    "concat": lambda x: df.concat([x, x * 2.0], 0),
    "gather": lambda x: df.gather(x, df.range(df.size(x) - 1)),
    "cumsum": df.cumsum,
    "scatter": lambda x: df.tensor_scatter_nd_add(x * 2.0, df.range(df.size(x))[::-1, None], x),
    "reshape": lambda x: df.reshape(x, [df.size(x), 1]),
    "slice": lambda x: x[1:],
    "sum": lambda x: df.reduce_sum(x[:, None] * x, 1),
}


def rule(grad):
    """The identity whose gradient is what ``grad`` makes of a cotangent."""

    @df.custom_gradient
    def passed_on(x):
        return df.identity(x), grad

    return passed_on


def slope(f, weights=None):
    def gradient(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x, output_gradients=None if weights is None else weights(y))

    return gradient


def of_run_time_size(gradient):
    """``gradient`` at the positive elements, whose number is known only at run time."""
    return df.function(lambda x: gradient(df.boolean_mask(x, x > 0.0)))


def longer(x):
    return df.concat([x, x], 0)


def shorter(x):
    return x[:-1]


@pytest.mark.parametrize("wrong", [longer, shorter])
@pytest.mark.parametrize("name", OPS)
def test_a_rule_that_returns_another_size_before_an_op_is_an_error(name, wrong):
    f = of_run_time_size(slope(lambda x: OPS[name](rule(wrong)(x))))
    sizes = rf"gradient function of passed_on .* shape \({len(wrong(POSITIVE))},\) .* shape \(4,\)"
    with pytest.raises(df.errors.InvalidArgumentError, match=sizes) as raised:
        f(X)
    assert "test_cotangent_shapes.py" in "".join([str(raised.value), *getattr(raised.value, "__notes__", [])])


@pytest.mark.parametrize("wrong", [longer, shorter])
@pytest.mark.parametrize("name", OPS)
def test_a_rule_that_returns_another_size_after_an_op_is_an_error(name, wrong):
    f = of_run_time_size(slope(lambda x: rule(wrong)(OPS[name](x))))
    with pytest.raises(df.errors.InvalidArgumentError, match="gradient function of passed_on returned"):
        f(X)


@pytest.mark.parametrize("wrong", [longer, shorter])
@pytest.mark.parametrize("name", OPS)
def test_output_gradients_of_another_size_are_an_error(name, wrong):
    f = of_run_time_size(slope(OPS[name], wrong))
    with pytest.raises(
        df.errors.InvalidArgumentError, match=r"output_gradients of shape \(.* target's shape \("
    ):
        f(X)


@pytest.mark.parametrize("name", OPS)
def test_right_sizes_are_taken(name):
    doubled = slope(lambda x: OPS[name](rule(lambda g: 2.0 * g)(x)), lambda y: y * 3.0)
    np.testing.assert_allclose(of_run_time_size(doubled)(X), doubled(df.constant(POSITIVE)), rtol=1e-6)


@pytest.mark.parametrize("equal", [True, False])
def test_only_sizes_that_may_differ_are_compared_by_the_program(equal):
    f = of_run_time_size(slope(rule(lambda g: 2.0 * g if equal else df.boolean_mask(g, g > 0.0))))
    concrete = f.get_concrete_function(df.TensorSpec([6]))
    assert "checked_gradient" in str(concrete.graph)
    assert ("require_size" in str(concrete.optimised_graph)) is not equal


@pytest.mark.parametrize("wrap", [lambda f: f, df.function, of_run_time_size])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda g: df.cast(g, df.float64), "dtype float64 for argument 1, which has dtype float32"),
        (lambda g: df.cast(g, df.int32), "dtype int32 for argument 1, which has dtype float32"),
        (lambda g: g[:, None], r"shape \(.*\) for argument 1, which has shape"),
        (lambda g: df.reduce_sum(g), r"shape \(\) for argument 1, which has shape"),
        (lambda g: df.stack([g, g]), r"shape \(2, .*\) for argument 1, which has shape"),
    ],
)
def test_a_rule_that_returns_another_dtype_or_rank_is_an_error(wrong, message, wrap):
    f = wrap(slope(rule(wrong)))
    with pytest.raises(
        (TypeError, ValueError), match=f"gradient function of passed_on returned a gradient of {message}"
    ):
        f(df.constant(X))


def test_the_variable_is_named_whose_gradient_has_another_shape():
    v = df.Variable([1.0, 2.0], name="weights")

    @df.custom_gradient
    def scaled(x):
        return x * v, lambda g, variables: (g, [df.reduce_sum(g)])

    with df.GradientTape() as tape:
        y = scaled(df.ones([2]))
    with pytest.raises(
        df.errors.InvalidArgumentError, match=r"scaled .* shape \(\) for weights:?0?, .* shape \(2,\)"
    ):
        tape.gradient(y, v)


@pytest.mark.parametrize("static", [True, False])
def test_output_gradients_broadcast(static):
    gradient = slope(lambda x: x * 2.0, lambda y: df.reduce_sum(df.ones_like(y), keepdims=True))
    f = gradient if static else of_run_time_size(gradient)
    assert f(df.constant(POSITIVE if static else X)).numpy().tolist() == [8.0, 8.0, 8.0, 8.0]


BROADCAST = {
    "product": lambda x, w: x * w,
    "rows": lambda x, w: x[:, None] - w,
    "columns": lambda x, w: df.maximum(x, w[:, None]),
    "both": lambda x, w: x[:, None] * w[None, :] + w,
    "broadcast_to": lambda x, w: x * df.broadcast_to(w, df.shape(x)),
    "a product of matrices": lambda x, w: df.ones([4, 2, 4]) * x[0] @ (df.ones([1, 4, 2]) * w[:, None, None]),
}


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("name", BROADCAST)
def test_the_gradient_of_what_is_repeated_at_run_time_is_summed(name, size):
    w = np.arange(1.0, size + 1.0, dtype=np.float32)

    def gradients(x, w):
        with df.GradientTape() as tape:
            tape.watch([x, w])
            y = df.reduce_sum(BROADCAST[name](x, w) ** 2)
        return tape.gradient(y, [x, w])

    expected = gradients(df.constant(POSITIVE), df.constant(w))
    opened = df.function(gradients, input_signature=[df.TensorSpec([None]), df.TensorSpec([None])])
    masked = df.function(lambda x, w: gradients(df.boolean_mask(x, x > 0.0), df.boolean_mask(w, w > 0.0)))
    for actual in (opened(POSITIVE, w), masked(X, np.append(w, -1.0).astype(np.float32))):
        for a, e in zip(actual, expected, strict=True):
            assert a.shape == e.shape
            np.testing.assert_allclose(a, e, rtol=1e-6)


def test_orders_above_the_first_of_what_is_repeated_at_run_time():
    def curvature(x, w):
        with df.GradientTape() as outer:
            outer.watch(w)
            with df.GradientTape() as tape:
                tape.watch(w)
                y = df.reduce_sum(x * w**3)
            first = tape.gradient(y, w)
        return outer.gradient(first, w)

    opened = df.function(curvature, input_signature=[df.TensorSpec([None]), df.TensorSpec([None])])
    for w in ([2.0], [2.0, 3.0, 4.0, 5.0]):
        np.testing.assert_allclose(
            opened(POSITIVE, w), curvature(df.constant(POSITIVE), df.constant(w)), rtol=1e-6
        )
