"""Exported ONNX models: their nodes, and that ONNX Runtime computes dualflow's results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_models import exported, op_types, run, shapes

import dualflow as df

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def compare(model: Any, concrete: Any, *arrays: np.ndarray, atol: float = 1e-5) -> None:
    """The model's results are those of the function, under the names of both."""
    results = concrete(*[df.constant(x) for x in arrays])
    if not isinstance(results, dict):
        listed = results if isinstance(results, tuple) else (results,)
        results = {f"output_{i}": x for i, x in enumerate(listed)}
    computed = run(model, arrays)
    assert list(computed) == sorted(results)
    for name, result in results.items():
        assert computed[name].dtype == np.asarray(result).dtype
        np.testing.assert_allclose(computed[name], np.asarray(result), rtol=1e-4, atol=atol)


def test_a_linear_regression_is_a_product_and_a_sum(tmp_path: Path) -> None:
    w, b = df.Variable(normal(3, 1), name="w"), df.Variable(normal(1), name="b")
    predict = df.function(lambda x: df.matmul(x, w) + b, name="predict")
    concrete = predict.get_concrete_function(df.TensorSpec([None, 3], name="x"))
    model = exported(concrete, tmp_path)
    assert op_types(model) == ["MatMul", "Add"]
    assert {i.name for i in model.graph.initializer} == {"w", "b"}
    assert shapes(model.graph.input) == {"x": ["x_size0", 3]}
    assert shapes(model.graph.output) == {"output_0": ["x_size0", 1]}
    for rows in (1, 5, 0):
        compare(model, concrete, normal(rows, 3))


def test_the_digits_classifier(tmp_path: Path) -> None:
    """The network of examples/train_digits.py: two layers and a softmax."""
    w1, b1, w2, b2 = (df.Variable(normal(*s) * 0.2) for s in ((64, 32), (32,), (32, 10), (10,)))

    @df.function
    def classify(x: Any) -> Any:
        logits = df.matmul(df.nn.relu(df.matmul(x, w1) + b1), w2) + b2
        return {"label": df.argmax(logits, -1), "probabilities": df.nn.softmax(logits)}

    concrete = classify.get_concrete_function(df.TensorSpec([None, 64], name="pixels"))
    model = exported(concrete, tmp_path)
    assert sorted(op_types(model)) == sorted(["MatMul", "Add", "Relu", "MatMul", "Add", "ArgMax", "Softmax"])
    compare(model, concrete, normal(17, 64))


def test_an_image_model_has_the_ops_for_images(tmp_path: Path) -> None:
    kernel, depthwise = df.Variable(normal(3, 3, 2, 4)), df.Variable(normal(3, 3, 4, 1))

    @df.function
    def features(x: Any) -> Any:
        h = df.nn.relu(df.nn.conv2d(x, kernel, 2, "SAME"))
        h = df.nn.depthwise_conv2d(h, depthwise, dilations=2, padding=[[2, 1], [0, 3]])
        h = df.nn.max_pool2d(h, 2, 1, "SAME")
        return df.nn.avg_pool2d(h, 3, 2, "SAME") + df.nn.avg_pool2d(h, 2, 2, "SAME")[:, :1, :1]

    concrete = features.get_concrete_function(df.TensorSpec([None, 11, 12, 2], name="x"))
    model = exported(concrete, tmp_path)
    kinds = [kind for kind in op_types(model) if "Conv" in kind or "Pool" in kind]
    assert kinds == ["Conv", "Conv", "MaxPool", "AveragePool", "AveragePool"]
    compare(model, concrete, normal(3, 11, 12, 2))


def test_neighbouring_transposes_of_layouts_are_one_or_none(tmp_path: Path) -> None:
    concrete = df.function(lambda x: df.nn.avg_pool2d(df.nn.max_pool2d(x, 2), 2)).get_concrete_function(
        df.TensorSpec([1, 8, 8, 3])
    )
    assert op_types(exported(concrete, tmp_path)) == ["Transpose", "MaxPool", "AveragePool", "Transpose"]


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("size", "strides"), [(2, 3), (3, 2), (4, 1), (5, 2)])
def test_transposed_convolutions(tmp_path: Path, size: int, strides: int, padding: str) -> None:
    kernel, channels = normal(size, size, 2, 3), normal(2, 5, 6, 3)
    spatial = [n * strides + (max(size - strides, 0) if padding == "VALID" else 0) for n in (5, 6)]

    @df.function
    def f(x: Any) -> Any:
        return df.nn.conv2d_transpose(x, kernel, [2, *spatial, 2], strides, padding)

    concrete = f.get_concrete_function(df.TensorSpec(channels.shape))
    model = exported(concrete, tmp_path)
    assert "ConvTranspose" in op_types(model)
    compare(model, concrete, channels, atol=1e-4)


def test_attention_of_any_length(tmp_path: Path) -> None:
    """One block of a transformer, causal, for any batch and length."""
    q, k, v, o = (df.Variable(normal(16, 16) * 0.3) for _ in range(4))
    up, down = df.Variable(normal(16, 32) * 0.3), df.Variable(normal(32, 16) * 0.3)

    def heads(x: Any) -> Any:
        return df.transpose(df.reshape(x, [df.shape(x)[0], df.shape(x)[1], 4, 4]), [0, 2, 1, 3])

    def norm(x: Any) -> Any:
        centred = x - df.reduce_mean(x, -1, keepdims=True)
        return centred * df.math.rsqrt(df.reduce_mean(centred * centred, -1, keepdims=True) + 1e-5)

    @df.function
    def block(x: Any) -> Any:
        scores = df.matmul(heads(df.matmul(x, q)), heads(df.matmul(x, k)), transpose_b=True) / 2.0
        n = df.shape(x)[1]
        causal = df.range(n)[:, None] >= df.range(n)[None, :]
        mixed = df.matmul(df.nn.softmax(df.where(causal, scores, -1e9)), heads(df.matmul(x, v)))
        h = norm(x + df.matmul(df.reshape(df.transpose(mixed, [0, 2, 1, 3]), df.shape(x)), o))
        return norm(h + df.matmul(df.nn.gelu(df.matmul(h, up)), down))

    concrete = block.get_concrete_function(df.TensorSpec([None, None, 16], name="tokens"))
    model = exported(concrete, tmp_path)
    assert shapes(model.graph.output) == {"output_0": ["tokens_size0", "tokens_size1", 16]}
    for batch, length in ((1, 1), (3, 7)):
        compare(model, concrete, normal(batch, length, 16))


def test_a_training_step_takes_variables_and_returns_new_ones(tmp_path: Path) -> None:
    w = df.Variable(normal(4, 3), name="w")
    rate = df.Variable(0.1, name="rate")

    @df.function
    def step(x: Any, y: Any) -> Any:
        with df.GradientTape() as tape:
            loss = df.reduce_mean((df.matmul(x, w) - y) ** 2)
        w.assign_sub(rate * tape.gradient(loss, w))
        return {"loss": loss}

    x, y = normal(8, 4), normal(8, 3)
    concrete = step.get_concrete_function(
        df.TensorSpec([None, 4], name="x"), df.TensorSpec([None, 3], name="y")
    )
    model = exported(concrete, tmp_path)
    assert list(shapes(model.graph.input)) == ["x", "y", "w"]
    assert list(shapes(model.graph.output)) == ["loss", "w_updated"]
    feeds = {"x": x, "y": y}  # w has a default: the variable's value
    for _ in range(3):
        results = run(model, feeds)
        np.testing.assert_allclose(results["loss"], np.asarray(step(x, y)["loss"]), rtol=1e-5)
        np.testing.assert_allclose(results["w_updated"], np.asarray(w), rtol=1e-5, atol=1e-6)
        feeds["w"] = results["w_updated"]


def test_random_numbers_of_a_generator_are_the_same(tmp_path: Path) -> None:
    generator = df.random.Generator.from_seed(7)

    @df.function
    def draw() -> Any:
        return generator.uniform([5]), generator.normal([2, 3])

    concrete = draw.get_concrete_function()
    model = exported(concrete, tmp_path)
    first, again = run(model, {}), run(model, {})
    for expected, name in zip(concrete(), ("output_0", "output_1"), strict=True):
        np.testing.assert_allclose(first[name], np.asarray(expected), rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(first[name], again[name])


def test_a_quantized_function_has_integer_products(tmp_path: Path) -> None:
    w1, w2 = df.Variable(normal(64, 48) * 0.2), df.Variable(normal(48, 32) * 0.2)
    x = normal(50, 64)

    def f(x: Any) -> Any:
        return df.matmul(df.nn.relu(df.matmul(x, w1)), w2)

    quantized = df.quantization.int8(f, df.quantization.calibrate(f, [x]))
    concrete = quantized.get_concrete_function(df.TensorSpec([None, 64], name="x"))
    model = exported(concrete, tmp_path)
    assert op_types(model).count("MatMulInteger") == 2
    compare(model, concrete, x)
