"""Equations: what matches, what replaces it, and where."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import dualflow as df

X = df.constant([[0.3, -0.5, 1.0], [0.1, 2.0, -1.5], [0.7, 0.2, 0.9]])


@df.rewrite.equation
def square(x: Any) -> Any:
    """x * x = square(x)"""
    return x * x, df.square(x)


@df.rewrite.equation
def dense(x: Any, w: Any, b: Any) -> Any:
    """relu(x @ w + b) = maximum(b + x @ w, 0)"""
    return df.nn.relu(x @ w + b), df.maximum(b + df.matmul(x, w), 0.0)


@df.rewrite.equation
def halved(x: Any) -> Any:
    """exp(x / 2) = sqrt(exp(x))"""
    return df.exp(x / 2.0), df.sqrt(df.exp(x))


def ops(f: Any, *args: Any) -> list[str]:
    """The names of the ops of a compiled function, those of bodies included."""
    graph = f.get_concrete_function(*args).optimised_graph
    names, pending = [], [graph]
    while pending:
        current = pending.pop()
        names += [node.op.name for node in current.nodes]
        pending += [body for node in current.nodes for _, body in node.bodies]
    return names


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "complex64"])
@pytest.mark.parametrize("shape", [(), (0,), (4,), (2, 3, 1)])
def test_variables_of_any_dtype_and_shape(dtype: str, shape: Sequence[int]) -> None:
    x = df.cast(df.reshape(df.range(int(np.prod(shape)), dtype="float32"), shape), dtype)
    f = df.function(lambda x: x * x, rewrites=[square])
    np.testing.assert_array_equal(f(x).numpy(), (x * x).numpy())
    assert {"square", "square_re"} & {*ops(f, x)}
    assert not {"multiply", "multiply_re"} & {*ops(f, x)}


def test_a_variable_that_occurs_twice_is_one_tensor() -> None:
    f = df.function(lambda x, y: x * y, rewrites=[square])
    assert "square" not in ops(f, X, X)


@pytest.mark.parametrize("f", [lambda x, w, b: x @ w + b, lambda x, w, b: b + x @ w])
def test_operands_of_sums_match_in_either_order(f: Callable[..., Any]) -> None:
    rewritten = df.function(lambda *inputs: df.nn.relu(f(*inputs)), rewrites=[dense])
    bias = df.constant([1.0, 2.0, 3.0])
    np.testing.assert_allclose(rewritten(X, X, bias), df.nn.relu(f(X, X, bias)), rtol=1e-6)
    assert "maximum" in ops(rewritten, X, X, bias)


def test_constants_and_attributes_are_compared() -> None:
    assert "sqrt" in ops(df.function(lambda x: df.exp(x / 2.0), rewrites=[halved]), X)
    assert "sqrt" not in ops(df.function(lambda x: df.exp(x / 3.0), rewrites=[halved]), X)

    @df.rewrite.equation
    def rows(x: Any) -> Any:
        """sum(exp(x), 1) = sum(exp(x) * 1.0, 1), as an example"""
        return df.reduce_sum(df.exp(x), 1), df.reduce_sum(df.sqrt(df.exp(x + x)), 1)

    for axis, matches in ((1, True), (0, False)):
        f = df.function(lambda x, axis=axis: df.reduce_sum(df.exp(x), axis), rewrites=[rows])
        assert ("sqrt" in ops(f, X)) is matches


def test_values_inside_the_pattern_may_have_other_consumers() -> None:
    f = df.function(lambda x: (df.exp(x / 2.0), x / 2.0), rewrites=[halved])
    first, second = f(X)
    np.testing.assert_allclose(first, np.exp(X.numpy() / 2), rtol=1e-6)
    np.testing.assert_array_equal(second, X.numpy() / 2)


def test_a_condition_reads_the_specs_of_the_variables() -> None:
    @df.rewrite.equation(when=lambda x: x.dtype == df.float64)
    def wide(x: Any) -> Any:
        """x * x = square(x), in float64"""
        return x * x, df.square(x)

    f = df.function(lambda x: x * x, rewrites=[wide])
    assert "square" not in ops(f, X)
    assert "square" in ops(f, df.cast(X, df.float64))


def test_a_signature_serves_patterns_that_take_no_matrices() -> None:
    image, kernel = df.TensorSpec([1, 5, 5, 1]), df.TensorSpec([3, 3, 1, 20])

    @df.rewrite.equation(signature=[image, kernel])
    def negated(x: Any, w: Any) -> Any:
        """-conv(x, w) = conv(x, -w)"""
        return -df.nn.conv2d(x, w, padding="SAME"), df.nn.conv2d(x, -w, padding="SAME")

    images = df.reshape(df.range(200.0) / 100.0, [2, 10, 10, 1])
    filters = df.reshape(df.range(400.0) / 100.0, [4, 5, 1, 20])
    f = df.function(lambda x, w: -df.nn.conv2d(x, w, padding="SAME"), rewrites=[negated])
    np.testing.assert_allclose(f(images, filters), -df.nn.conv2d(images, filters, padding="SAME"), rtol=1e-5)
    assert "negated (" in f.explain()
    assert "nothing" not in f.explain()


def test_a_tensor_that_the_replacement_captures_is_a_constant() -> None:
    table = df.constant(np.arange(20, dtype=np.float32))

    @df.rewrite.equation
    def shifted(x: Any) -> Any:
        """log1p(x) = log1p(x) + table[0]"""
        return df.math.log1p(x), df.math.log1p(x) + table[0]

    f = df.function(df.math.log1p, rewrites=[shifted])
    np.testing.assert_allclose(f(df.abs(X)), np.log1p(np.abs(X.numpy())), rtol=1e-6)


def test_matches_in_bodies_of_loops_and_branches() -> None:
    @df.function(rewrites=[square])
    def f(x: Any, n: Any) -> Any:
        for _ in df.range(n):
            if df.reduce_sum(x) > 0.0:
                x = x * x
            else:
                x += 1.0
        return x

    expected = df.function(f.python_function)(X, df.constant(4))
    np.testing.assert_array_equal(f(X, df.constant(4)), expected)
    assert "square" in ops(f, X, df.constant(4))


def test_one_program_serves_dynamic_sizes() -> None:
    f = df.function(lambda x: x * x, input_signature=[df.TensorSpec([None, None])], rewrites=[square])
    for n in (1, 3, 7):
        np.testing.assert_array_equal(f(df.ones([n, 2 * n])), np.ones([n, 2 * n]))
    assert "square" in ops(f)


@pytest.mark.llvm  # other backends run such graphs through NumPy, as they were traced
def test_sizes_that_depend_on_data() -> None:
    f = df.function(lambda x: df.boolean_mask(x, x > 0.0) * df.boolean_mask(x, x > 0.0), rewrites=[square])
    np.testing.assert_allclose(f(X), X.numpy()[X.numpy() > 0] ** 2)
    assert "square" in ops(f, X)


def test_gradients_are_those_of_the_function_as_written() -> None:
    @df.rewrite.equation
    def straight(x: Any) -> Any:
        """x * x = square(stop_gradient(x)), which has no gradient of its own"""
        return x * x, df.square(df.stop_gradient(x))

    f = df.function(lambda x: df.reduce_sum(df.sin(x * x)), rewrites=[straight])
    inside = df.function(lambda x: df.autodiff.grad(f.python_function)(x), rewrites=[straight])
    with df.GradientTape() as tape:
        tape.watch(X)
        y = f(X)
    expected = 2 * X.numpy() * np.cos(X.numpy() ** 2)
    np.testing.assert_allclose(tape.gradient(y, X), expected, rtol=1e-5)
    np.testing.assert_allclose(inside(X), expected, rtol=1e-5)
    assert "square" in ops(inside, X)


def test_a_wrong_equation_is_named_by_verify() -> None:
    @df.rewrite.equation
    def wrong(x: Any) -> Any:
        """tanh(x) = x, which is wrong"""
        return df.tanh(x), x

    def f(x: Any) -> Any:
        for _ in df.range(2):
            x = df.tanh(x * x) + 1.0
        return x

    report = df.verify(df.function(f, rewrites=[square, wrong]), X)
    assert not report.agrees
    assert report.rewrite.startswith("wrong (tanh(x) = x, which is wrong), defined at")
    assert __file__ in report.rewrite
    assert report.rewrite in str(report)
    assert df.verify(df.function(f, rewrites=[square]), X).agrees


def test_new_nodes_have_the_lines_of_the_op_and_of_the_rewrite() -> None:
    f = df.function(lambda x: x * x, rewrites=[square])
    text = str(f.get_concrete_function(X).optimised_graph)
    lines = [line for line in text.splitlines() if "= square" in line]
    assert len(lines) == 1
    assert lines[0].count("test_equations.py:") == 2
