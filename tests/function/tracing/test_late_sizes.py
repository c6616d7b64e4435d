"""Functions that read sizes as numbers are traced with symbolic sizes, and computed once these are bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df

IMAGES = np.random.default_rng(0).uniform(size=(2, 7, 5, 3)).astype(np.float32)
FILTER = np.random.default_rng(1).normal(size=(3, 3, 3, 2)).astype(np.float32)
OPEN = df.TensorSpec([None, None, None, 3])

CASES: dict[str, tuple[Callable[[Any], Any], list[int | None]]] = {
    "conv": (lambda x: df.nn.conv2d(x, FILTER, 1, "SAME"), [None, None, None, 2]),
    "strided conv": (lambda x: df.nn.conv2d(x, FILTER, 2, "SAME"), [None, None, None, 2]),
    "conv inside": (lambda x: df.nn.conv2d(x, FILTER, 2, "VALID"), [None, None, None, 2]),
    "maxima": (lambda x: df.nn.max_pool2d(x, 2, 2, "SAME"), [None, None, None, 3]),
    "means": (lambda x: df.nn.avg_pool2d(x, 2, 2, "SAME"), [None, None, None, 3]),
    "resized": (lambda x: df.image.resize(x, [4, 6]), [None, 4, 6, 3]),
    "nearest": (lambda x: df.image.resize(x, [9, 3], "nearest"), [None, 9, 3, 3]),
    "of one ratio": (
        lambda x: df.image.resize(x, [4, 4], preserve_aspect_ratio=True),
        [None, None, None, 3],
    ),
    "with borders": (lambda x: df.image.resize_with_pad(x, 4, 4), [None, 4, 4, 3]),
    "cut or padded": (lambda x: df.image.resize_with_crop_or_pad(x, 6, 6), [None, 6, 6, 3]),
    "middle": (lambda x: df.image.central_crop(x, 0.5), [None, None, None, 3]),
    "cut": (lambda x: df.image.crop_to_bounding_box(x, 1, 1, 3, 2), [None, 3, 2, 3]),
    "padded": (lambda x: df.image.pad_to_bounding_box(x, 1, 1, 9, 8), [None, 9, 8, 3]),
    "standardized": (df.image.per_image_standardization, [None, None, None, 3]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_trace_of_dynamic_sizes_computes_what_known_sizes_do(name: str) -> None:
    function, shape = CASES[name]
    traced = df.function(function, input_signature=[OPEN])
    assert traced.get_concrete_function().graph.outputs[0].spec.shape == shape
    for images in (IMAGES, IMAGES[:1, :5]):
        np.testing.assert_allclose(traced(images).numpy(), function(images).numpy(), rtol=1e-5, atol=1e-6)
    assert traced.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("name", ["strided conv", "maxima", "resized", "cut"])
def test_gradients_are_those_of_known_sizes(name: str) -> None:
    function, _ = CASES[name]

    def gradients(x: Any) -> Any:
        weight = df.constant(2.0)
        with df.GradientTape() as tape:
            tape.watch([x, weight])
            y = df.reduce_sum(function(x * weight) ** 2)
        return tape.gradient(y, [x, weight])

    result = df.function(gradients, input_signature=[OPEN])(df.constant(IMAGES))
    for a, b in zip(result, gradients(df.constant(IMAGES)), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-5)


def test_second_derivatives_are_those_of_known_sizes() -> None:
    def second(x: Any) -> Any:
        with df.GradientTape() as outer:
            outer.watch(x)
            with df.GradientTape() as inner:
                inner.watch(x)
                y = df.reduce_sum(df.nn.conv2d(x, FILTER, 2, "SAME") ** 3)
            first = inner.gradient(y, x)
        return outer.gradient(first, x)

    x = df.constant(IMAGES[:, :3, :3])
    result = df.function(second, input_signature=[OPEN])(x)
    np.testing.assert_allclose(result.numpy(), second(x).numpy(), rtol=1e-4, atol=1e-4)


def test_sizes_may_depend_on_data() -> None:
    def shown(x: Any, rows: Any) -> Any:
        return df.image.resize(x[:, :rows], [4, 4]) + 1.0

    traced = df.function(shown)
    for rows in (3, 6):
        result = traced(df.constant(IMAGES), df.constant(rows))
        assert result.shape == (2, 4, 4, 3)
        np.testing.assert_allclose(result.numpy(), shown(IMAGES, rows).numpy(), rtol=1e-5)
    assert traced.experimental_get_tracing_count() == 1


def test_an_error_comes_with_the_sizes_of_the_call() -> None:
    traced = df.function(CASES["cut"][0], input_signature=[OPEN])
    with pytest.raises(df.errors.InvalidArgumentError, match="are not inside of images of 2 x 5"):
        traced(IMAGES[:, :2])


def test_python_may_give_sizes_that_are_open() -> None:
    traced = df.function(
        lambda x: 1.0 + df.numpy_function(lambda a: a[..., :3], [x], df.float32),
        input_signature=[df.TensorSpec([2, None])],
    )
    for width in (3, 5):
        assert traced(np.ones((2, width), np.float32)).shape == (2, 3)
    with pytest.raises(df.errors.InvalidArgumentError, match=r"returned shape \(2,\)"):
        df.function(
            lambda x: df.numpy_function(lambda a: a[:, 0], [x], df.float32),
            input_signature=[df.TensorSpec([2, None])],
        )(np.ones((2, 3), np.float32))
