"""Jacobians take one backward pass for all elements, and equal those of a pass for each element."""

from __future__ import annotations

import numpy as np
import pytest

import dualflow as df

X = df.constant(np.linspace(-1.0, 2.0, 12))
M = df.constant(np.linspace(-1.0, 1.0, 48).reshape(12, 4))


@df.custom_gradient
def clipped(x):
    """Its gradient function looks at the values of what it is given."""
    return df.identity(x), lambda dy: dy if float(df.reduce_max(dy)) > 0 else -dy


@df.function
def compiled(x):
    return df.sin(x) * x[::-1]


def halved(x):
    while df.reduce_max(x) > 0.5:
        x = x * x / 4.0
    return x


PROGRAMS = {
    "elements": lambda x: df.exp(x) * x,
    "products": lambda x: df.linalg.matvec(M, x, transpose_a=True)[:, None] * x,
    "sorted": lambda x: df.sort(x * x),
    "picked": lambda x: df.gather(x, [0, 0, 3, 11, 2, 1, 4, 5, 6, 7]),
    "sums": lambda x: df.cumsum(x) / df.reduce_sum(x * x),
    "a compiled part": lambda x: compiled(x) * x,
    "a loop": halved,
    "a gradient that looks at values": lambda x: clipped(x * x),
    "a linear system": lambda x: df.linalg.solve(df.linalg.diag(x * x + 1.0) + 0.1, x[:, None]),
    "complex numbers": lambda x: df.complex(x, x * x) * 2.0,
}


@pytest.fixture(params=PROGRAMS, ids=str)
def program(request):
    return PROGRAMS[request.param]


def jacobian(program, at_once, x=X):
    with df.GradientTape() as tape:
        tape.watch(x)
        y = program(x)
    return tape.jacobian(y, x, experimental_use_pfor=at_once)


def test_one_sweep_gives_what_many_give(program):
    np.testing.assert_allclose(jacobian(program, True), jacobian(program, False), rtol=1e-12, atol=1e-14)


def test_a_jacobian_can_be_differentiated():
    def total(at_once):
        with df.GradientTape() as outer:
            outer.watch(X)
            value = df.reduce_sum(jacobian(lambda x: df.sin(x) * x, at_once) ** 2)
        return outer.gradient(value, X)

    np.testing.assert_allclose(total(True), total(False), rtol=1e-12)


def test_several_sources_and_one_that_nothing_depends_on():
    w, other = df.Variable(X), df.constant(1.0)
    with df.GradientTape() as tape:
        y = df.sin(w) * w
    dw, none = tape.jacobian(y, [w, other])
    np.testing.assert_allclose(dw, np.diag(np.cos(X) * X + np.sin(X)))
    assert none is None


def test_the_jacobian_of_a_scalar_that_a_compiled_function_returns():
    f = df.function(lambda x: df.reduce_sum(x * x * x))
    np.testing.assert_allclose(jacobian(f, False), 3 * X**2)


def test_batch_jacobians():
    x = df.reshape(X, [2, 6])
    y = None
    with df.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = df.concat([df.cumsum(x, 1), x * x], 1)
    at_once, each = (tape.batch_jacobian(y, x, experimental_use_pfor=way) for way in (True, False))
    np.testing.assert_allclose(at_once, each)
    assert at_once.shape == (2, 12, 6)


def test_a_compiled_jacobian_has_as_many_ops_for_more_elements():
    def nodes(size):
        function = df.function(lambda x: jacobian(lambda x: df.sin(x) * x, True, x))
        (result,) = [function.get_concrete_function(df.TensorSpec([size]))]
        return len(result.graph.nodes)

    assert nodes(100) == nodes(20)
