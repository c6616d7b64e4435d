"""``df.onnx.load``: models of torch and dualflow compute the same, eagerly and compiled, and are trained."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_models import exported, onnx, op_types

import dualflow as df

TORCH = Path(__file__).parent / "torch_models"
RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def agree(a: Any, b: Any) -> None:
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["mlp", "conv"])
def test_a_model_of_torch_gives_the_result_of_torch(name: str) -> None:
    model, data = df.onnx.load(TORCH / f"torch_{name}.onnx"), np.load(TORCH / f"torch_{name}.npz")
    assert [(spec.name, spec.shape[0]) for spec in model.inputs] == [("x", None)]
    assert model.outputs == ["y"]
    agree(model(data["x"]), data["y"])
    compiled = df.function(model)
    agree(compiled(df.constant(data["x"])), data["y"])
    agree(compiled(df.constant(data["x"][:1])), data["y"][:1])


def test_a_model_of_torch_is_trained(tmp_path: Path) -> None:
    model, data = df.onnx.load(TORCH / "torch_mlp.onnx", trainable=True), np.load(TORCH / "torch_mlp.npz")
    assert {v.name.removesuffix(":0") for v in model.trainable_variables} == set(model.weights)
    target = df.one_hot([0, 2], 3)

    @df.function
    def step(x: Any) -> Any:
        with df.GradientTape() as tape:
            loss = df.reduce_mean((model(x) - target) ** 2)
        for v, g in zip(
            model.trainable_variables, tape.gradient(loss, model.trainable_variables), strict=True
        ):
            v.assign_sub(0.5 * g)
        return loss

    losses = [float(step(df.constant(data["x"]))) for _ in range(20)]
    assert losses[-1] < 0.5 * losses[0]
    again = exported(df.function(model).get_concrete_function(df.TensorSpec([None, 4], name="x")), tmp_path)
    onnx.save(again, tmp_path / "trained.onnx")
    agree(df.onnx.load(tmp_path / "trained.onnx")(data["x"]), model(data["x"]))


def attention(x: Any) -> Any:
    scores = df.matmul(x, x, transpose_b=True)
    n = df.shape(x)[1]
    causal = df.range(n)[:, None] >= df.range(n)[None, :]
    return df.matmul(df.nn.softmax(df.where(causal, scores, -1e9)), x)


def convolutions(x: Any) -> Any:
    image = df.reshape(x, [-1, 4, 4, 1])
    wide = df.nn.conv2d_transpose(image, df.ones([3, 3, 2, 1]), [df.shape(image)[0], 8, 8, 2], 2)
    return df.nn.max_pool2d(wide, 3, 2, "SAME"), df.nn.avg_pool2d(wide, 3, 2, "SAME")


def branches(x: Any) -> Any:
    return df.exp(x) if df.reduce_sum(x) > 0 else -x


def loops(x: Any) -> Any:
    y, i = x, df.constant(0)
    while df.reduce_sum(df.abs(y)) < 500.0 and i < 10:
        y = y * 1.5
        i += 1
    return y, i, df.scan(lambda a, row: df.tanh(a + row), x, x[0], reverse=True)


def moved(x: Any) -> Any:
    return x[::-1, 1:3], df.boolean_mask(x, x > 0), df.sort(x, 1), df.cumsum(x, 0), df.math.top_k(x, 2)[1]


@pytest.mark.parametrize("function", [branches, loops, moved], ids=lambda f: f.__name__)
def test_an_exported_function_is_loaded_again(function: Callable[..., Any], tmp_path: Path) -> None:
    trace = df.function(function).get_concrete_function(df.TensorSpec([None, None], name="x"))
    exported(trace, tmp_path)
    model = df.onnx.load(tmp_path / "model.onnx")
    for rows in (2, 5):
        x = normal(rows, 4)
        expected = df.function(function)(df.constant(x))
        listed = expected if isinstance(expected, tuple) else (expected,)
        for computed in (model(x), df.function(model)(df.constant(x))):
            results = list(computed.values()) if isinstance(computed, dict) else [computed]
            for result, value in zip(results, listed, strict=True):
                agree(result, value)


def test_the_ops_for_images_and_attention_are_loaded_again(tmp_path: Path) -> None:
    for function, shape in ((attention, (2, 5, 4)), (convolutions, (3, 16))):
        trace = df.function(function).get_concrete_function(df.TensorSpec(shape, name="x"))
        written = exported(trace, tmp_path, f"{function.__name__}.onnx")
        model, x = df.onnx.load(tmp_path / f"{function.__name__}.onnx"), normal(*shape)
        results = model(x=x)
        results = list(results.values()) if isinstance(results, dict) else [results]
        expected = function(df.constant(x))
        for result, value in zip(
            results, expected if isinstance(expected, tuple) else [expected], strict=True
        ):
            agree(result, value)
    assert "ConvTranspose" in op_types(written)


def test_a_training_step_is_loaded_with_defaults(tmp_path: Path) -> None:
    w = df.Variable(normal(2), name="w")

    @df.function
    def step(x: Any) -> Any:
        w.assign_sub(x)
        return df.reduce_sum(w)

    exported(step.get_concrete_function(df.TensorSpec([2], name="x")), tmp_path)
    model, x = df.onnx.load(tmp_path / "model.onnx"), normal(2)
    first = model(x)
    agree(first["w_updated"], w - x)
    agree(model(x, first["w_updated"])["output_0"], df.reduce_sum(w - x - x))
    assert [spec.name for spec in model.inputs] == ["x", "w"]
