"""Quantized functions: close to the float ones, a quarter of their size, and made of plain ops."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from required_tools import require_module, require_tool
from sklearn.datasets import load_digits

import dualflow as df
from tests.harness.c_programs import bits, call, compiled, program_of

RANDOM = np.random.default_rng(0)


def normal(*shape: int) -> df.Tensor:
    return df.constant(RANDOM.normal(size=shape), df.float32)


def quantized(f: Callable[..., Any], *data: Any) -> Any:
    return df.quantization.int8(f, df.quantization.calibrate(f, data))


def ops(f: Any, *args: Any) -> list[str]:
    return [node.op.name for node in f.get_concrete_function(*args).graph.nodes]


@pytest.mark.parametrize("inner", [32, 35, 64, 257])
@pytest.mark.parametrize("columns", [1, 5, 40])
@pytest.mark.parametrize("shift", [0.0, 3.0, -3.0])
def test_a_product_is_off_by_half_a_step_of_each_factor(inner: int, columns: int, shift: float) -> None:
    x, w = normal(7, inner) + shift, normal(inner, columns)
    f = quantized(lambda x: x @ w, x)
    step = max(float(df.reduce_max(x)), 0.0) - min(float(df.reduce_min(x)), 0.0)
    columns_largest = np.abs(w).max(0)
    bound = 0.51 * step / 255 * np.abs(w).sum(0) + 0.51 * columns_largest / 127 * np.abs(x).sum(
        1, keepdims=True
    )
    assert np.all(np.abs(f(x).numpy() - (x @ w).numpy()) <= bound + 1e-4)
    assert "integer_product" in ops(f, x)
    assert "matmul" not in ops(f, x)


def test_compiled_code_equals_the_kernels_of_numpy() -> None:
    x, w = normal(9, 40), normal(40, 33)
    f = quantized(lambda x: df.nn.relu(x @ w) @ df.transpose(w), x)
    assert df.verify(f, x).agrees


def test_values_outside_of_the_range_become_its_ends() -> None:
    def f(x: Any) -> Any:
        return x @ df.eye(32)

    def rows(*values: float) -> Any:
        return df.constant(np.full((32, len(values)), values, np.float32).T)

    g = quantized(f, rows(-1.0, 2.0))
    np.testing.assert_allclose(g(rows(-50.0, 50.0, np.inf))[:, 0], [-1.0, 2.0, 2.0], atol=0.02)


def test_zeros_stay_zeros() -> None:
    x, w = normal(3, 32), normal(32, 4)
    f = quantized(lambda x: x @ w, x)
    np.testing.assert_array_equal(f(df.zeros([3, 32])), np.zeros([3, 4]))


@pytest.mark.parametrize("options", [{"padding": "SAME"}, {"padding": "VALID", "strides": 2}])
@pytest.mark.parametrize("channels", [4, 16])
def test_convolutions_with_padding_and_batch_norm(options: dict[str, Any], channels: int) -> None:
    images, filters = normal(2, 8, 8, channels) + 1.0, normal(3, 3, channels, 24)
    mean, variance, gamma, beta = normal(24), df.abs(normal(24)) + 0.1, normal(24), normal(24)

    def f(x: Any) -> Any:
        y = df.nn.conv2d(x, filters, **options)
        return df.nn.relu(df.nn.batch_normalization(y, mean, variance, beta, gamma, 1e-3))

    g, expected = quantized(f, images), f(images).numpy()
    assert np.abs(g(images).numpy() - expected).max() < 0.02 * np.abs(expected).max()
    assert "integer_product" in ops(g, images)


def test_one_value_is_quantized_once() -> None:
    x, v, w = normal(3, 32), normal(32, 4), normal(32, 4)
    f = quantized(lambda x: (x @ v) * (x @ w), x)
    assert ops(f, x).count("round") == 1
    assert ops(f, x).count("integer_product") == 2


def test_layers_of_few_values_and_products_of_arguments_stay() -> None:
    x, w = normal(8, 8), normal(8, 8)
    f = df.quantization.int8(lambda x: x @ w @ x, df.quantization.calibrate(lambda x: x @ w @ x, [x]))
    np.testing.assert_allclose(f(x), x @ w @ x, rtol=1e-5, atol=1e-4)
    assert ops(f, x).count("matmul") == 2


def test_more_axes_and_dynamic_sizes() -> None:
    w = normal(32, 16) / 4.0
    f = df.function(lambda x: df.tanh(x @ w), input_signature=[df.TensorSpec([None, None, 32])])
    g = quantized(f, df.clip_by_value(normal(2, 50, 32), -1.0, 1.0))
    for shape in ((1, 1, 32), (3, 2, 32)):
        x = df.clip_by_value(normal(*shape), -1.0, 1.0)
        np.testing.assert_allclose(g(x), f(x), atol=0.1)
    assert g.experimental_get_tracing_count() == 1


def test_ranges_are_those_of_all_data_and_contain_zero() -> None:
    w = normal(32, 3)
    data = df.data.Dataset.from_tensor_slices(np.float32([[1, 2] * 16, [3, 4] * 16, [2, 1] * 16])).batch(1)
    calibration = df.quantization.calibrate(lambda x: x @ w, data)
    assert calibration.ranges == ((0.0, 4.0),)
    assert calibration.weights == ((32, 3),)
    assert "reads 0 to 4" in str(calibration)


@pytest.fixture(scope="module")
def digits() -> tuple[Any, Any, Any, Any]:
    data = load_digits()
    images, labels = (data.images / 16.0).astype(np.float32), data.target.astype(np.int32)
    return images[:1200], labels[:1200], images[1200:], labels[1200:]


def trained(model: Any, variables: list[Any], images: Any, labels: Any, steps: int) -> Any:
    @df.function
    def step(x: Any, y: Any) -> None:
        with df.GradientTape() as tape:
            loss = df.reduce_mean(df.nn.sparse_softmax_cross_entropy_with_logits(y, model(x)))
        for v, g in zip(variables, tape.gradient(loss, variables), strict=True):
            v.assign_sub(0.2 * g)

    for i in range(steps):
        start = 64 * i % 1152
        step(df.constant(images[start : start + 64]), df.constant(labels[start : start + 64]))
    return model


def accuracy(f: Any, images: Any, labels: Any) -> float:
    return float(np.mean(np.argmax(f(df.constant(images)), -1) == labels))


class Dense(df.Module):
    """Two dense layers."""

    def __init__(self) -> None:
        super().__init__()
        random = np.random.default_rng(1)
        self.weights = [
            df.Variable(random.normal(0, 0.2, s), dtype=df.float32) for s in ((64, 128), (128, 10))
        ]

    def __call__(self, x: Any) -> Any:
        x = df.reshape(x, [-1, 64])
        return df.nn.relu(x @ self.weights[0]) @ self.weights[1]


class Convolutional(df.Module):
    """Two convolutions and a dense layer."""

    def __init__(self) -> None:
        super().__init__()
        random = np.random.default_rng(1)
        shapes = ((3, 3, 1, 32), (3, 3, 32, 32), (128, 10))
        self.weights = [df.Variable(random.normal(0, 0.1, s), dtype=df.float32) for s in shapes]

    def __call__(self, x: Any) -> Any:
        x = df.nn.relu(df.nn.conv2d(x[..., None], self.weights[0], 2, "SAME"))
        x = df.nn.relu(df.nn.conv2d(x, self.weights[1], 2, "SAME"))
        return df.reshape(x, [-1, 128]) @ self.weights[2]


@pytest.mark.parametrize("kind", [Dense, Convolutional])
def test_digits_lose_half_a_point_at_most(
    kind: Any, digits: tuple[Any, Any, Any, Any], tmp_path: Path
) -> None:
    train, labels, images, held_out = digits
    model = kind()
    trained(model, model.weights, train, labels, 250)
    small = df.quantization.int8(model, df.quantization.calibrate(model, [df.constant(train[:256])]))
    before = accuracy(model, images, held_out)
    assert before > 0.85
    assert accuracy(small, images, held_out) >= before - 0.005

    saved = df.Module()
    saved.call = df.function(small, input_signature=[df.TensorSpec([None, 8, 8])])
    df.saved_model.save(saved, tmp_path)
    floats = 4 * sum(np.size(w) for w in model.weights)
    weights = sum(file.stat().st_size for file in tmp_path.rglob("*.safetensors"))
    assert weights < 0.3 * floats
    loaded = df.saved_model.load(tmp_path)
    np.testing.assert_array_equal(loaded.call(df.constant(images)), small(df.constant(images)))


def test_an_exported_c_program_has_the_same_bits(tmp_path: Path) -> None:
    images, filters, w = normal(3, 6, 6, 4), normal(3, 3, 4, 8), normal(288, 10)

    def f(x: Any) -> Any:
        return df.reshape(df.nn.relu(df.nn.conv2d(x, filters, padding="SAME")), [3, 288]) @ w

    g = quantized(f, images)
    concrete = g.get_concrete_function(images.spec)
    program = program_of(concrete, "classify")
    library = compiled([program], tmp_path, require_tool("gcc"))
    (result,) = call(library, program, [images.numpy()])
    assert bits(result) == bits(g(images).numpy())


def test_an_exported_onnx_model_has_the_same_bits(tmp_path: Path) -> None:
    onnxruntime = require_module("onnxruntime")
    images, filters, w = normal(3, 6, 6, 4), normal(3, 3, 4, 8), normal(288, 10)

    @df.function(input_signature=[df.TensorSpec([None, 6, 6, 4])])
    def f(x: Any) -> Any:
        y = df.nn.relu(df.nn.conv2d(x, filters, padding="SAME"))
        return df.reshape(y, [-1, 288]) @ w

    g = quantized(f, images)
    (path,) = g.get_concrete_function().export(tmp_path / "model.onnx", to="onnx")
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (result,) = session.run(None, {session.get_inputs()[0].name: images.numpy()})
    assert bits(result) == bits(g(images).numpy())


def test_a_keras_model_is_quantized_with_its_batch_normalisation() -> None:
    keras = df.keras
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input([8, 8, 4]),
            layers.Conv2D(16, 3, padding="same", use_bias=False),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.Flatten(),
            layers.Dense(10, activation="softmax"),
        ]
    )
    for variable in model.weights:
        value = np.abs(RANDOM.normal(size=variable.shape)) * 0.1 + 0.01
        variable.assign(value if "variance" in variable.name else value - 0.05)
    images = normal(5, 8, 8, 4)
    small = quantized(model, images)
    np.testing.assert_allclose(small(images), model(images), atol=0.02)
    assert ops(small, images).count("integer_product") == 2
    assert "rsqrt" not in ops(small, images)
