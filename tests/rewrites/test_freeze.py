"""Frozen functions, and batch normalisation folded into weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualflow as df

RANDOM = np.random.default_rng(0)
FOLD = [df.rewrite.fold_batch_norm]


def normal(*shape: int) -> df.Tensor:
    return df.constant(RANDOM.normal(size=shape), df.float32)


X, W, B, S, M = normal(4, 6), normal(6, 5), normal(5), normal(5), normal(5)


def names(f: Any, *args: Any) -> list[str]:
    return [node.op.name for node in f.get_concrete_function(*args).graph.nodes if node.op.name != "constant"]


def test_variables_are_constants_and_what_depends_on_them_is_computed_once() -> None:
    w = df.Variable(W)
    f = df.rewrite.freeze(lambda x: x @ df.tanh(w * 2.0))
    expected = X @ df.tanh(w * 2.0)
    np.testing.assert_allclose(f(X), expected, rtol=1e-6)
    assert names(f, X) == ["matmul", "stop_gradient"]
    w.assign(df.zeros_like(w))
    np.testing.assert_allclose(f(X), expected, rtol=1e-6)


def test_dynamic_sizes_structures_and_keywords_stay() -> None:
    @df.function(input_signature=[df.TensorSpec([None, 6]), df.TensorSpec([5])])
    def f(x: Any, b: Any) -> Any:
        return {"y": (x @ W + b, b)}

    frozen = df.rewrite.freeze(f)
    for rows in (1, 3):
        result = frozen(x=df.ones([rows, 6]), b=B)
        np.testing.assert_allclose(result["y"][0], df.ones([rows, 6]) @ W + B, rtol=1e-6)
    assert frozen.experimental_get_tracing_count() == 1


def test_a_frozen_function_is_part_of_the_trace_that_calls_it() -> None:
    inner = df.rewrite.freeze(lambda x: (x @ W) * S, FOLD)
    outer = df.function(lambda x: inner(x) + 1.0)
    np.testing.assert_allclose(outer(X), (X @ W) * S + 1.0, rtol=1e-5)
    assert names(outer, X) == ["matmul", "stop_gradient", "add"]


def test_results_have_no_gradient() -> None:
    f = df.rewrite.freeze(lambda x: x @ W)
    with df.GradientTape() as tape:
        tape.watch(X)
        y = f(X)
    assert tape.gradient(y, X) is None


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (x @ W) * S,
        lambda x: S * (x @ W + B) + M,
        lambda x: (df.matmul(x, W) - B) * S - M,
        lambda x: (df.reshape(x @ W + B, [2, 2, 5]) - M) * S,
        lambda x: df.nn.batch_normalization(x @ W + B, M, df.abs(S), S, B, 1e-3),
        lambda x: df.matmul(x, df.transpose(W), transpose_b=True) * S,
    ],
)
def test_batch_norm_is_folded_into_a_product(f: Callable[..., Any]) -> None:
    folded = df.rewrite.freeze(f, FOLD)
    np.testing.assert_allclose(folded(X), f(X), rtol=1e-4, atol=1e-5)
    ops = names(folded, X)
    assert "multiply" not in ops
    assert ops.count("add") + ops.count("subtract") <= 1 + ("reshape" in ops)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (x @ W) * df.reshape(S[:4], [4, 1]),  # a factor for each row
        lambda x: (x @ W) * (x @ W),
        lambda x: ((x @ W) * S, x @ W),  # the product has another consumer
        lambda x: df.tanh(x @ W) * S,
    ],
)
def test_other_products_stay(f: Callable[..., Any]) -> None:
    folded = df.rewrite.freeze(f, FOLD)
    for a, b in zip(df.nest.flatten(folded(X)), df.nest.flatten(f(X)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert "multiply" in names(folded, X)


def test_a_convolution_is_a_product() -> None:
    images, filters = normal(2, 6, 6, 4), normal(3, 3, 4, 16)
    mean, variance, gamma, beta = normal(16), df.abs(normal(16)), normal(16), normal(16)

    def f(x: Any) -> Any:
        y = df.nn.conv2d(x, filters, strides=2, padding="SAME")
        return df.nn.relu(df.nn.batch_normalization(y, mean, variance, beta, gamma, 1e-3))

    folded = df.rewrite.freeze(f, FOLD)
    np.testing.assert_allclose(folded(images), f(images), rtol=1e-4, atol=1e-4)
    assert "multiply" not in names(folded, images)


def test_a_frozen_function_is_saved_without_the_variables(tmp_path: Path) -> None:
    model = df.Module()
    model.serve = df.rewrite.freeze(df.function(lambda x: (x @ W) * S, input_signature=[X.spec]), FOLD)
    df.saved_model.save(model, tmp_path)
    np.testing.assert_array_equal(df.saved_model.load(tmp_path).serve(X), model.serve(X))
