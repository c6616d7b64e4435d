"""Exported files of traces with dynamic sizes: one program, which reads sizes from its arguments' shapes."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.core.errors import InvalidArgumentError

Program = Callable[..., list[np.ndarray]]
RNG = np.random.default_rng(0)


def loaded(concrete: Any, folder: Path) -> Program:
    """The function of an exported file."""
    path = folder / "exported.py"
    path.write_text(concrete.source())
    spec = importlib.util.spec_from_file_location("exported", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    program: Program = getattr(module, concrete.name)
    return program


def scaled(x: Any) -> Any:
    return x / df.reduce_max(x, 1, keepdims=True), df.shape(x)


def normalised(x: Any) -> Any:
    centred = x - df.reduce_mean(x, -1, keepdims=True)
    return df.nn.softmax(centred), df.reduce_sum(centred, 0)


def assembled(x: Any) -> Any:
    return df.concat([x[:, ::-1], x * 2.0], 0), df.sort(x, 1), df.tile(x, [2, 1]), df.reshape(x, [-1])


def looped(x: Any) -> Any:
    total = df.zeros([])
    for row in x:
        total = total + df.reduce_max(row) * 0.5
    return total, df.cumsum(x, 0)


def gradient(x: Any) -> Any:
    with df.GradientTape() as tape:
        tape.watch(x)
        y = df.reduce_mean(df.matmul(x, x, transpose_b=True) ** 2)
    return tape.gradient(y, x)


@pytest.mark.parametrize(
    "function",
    [
        scaled,
        pytest.param(normalised, marks=pytest.mark.exhaustive),
        pytest.param(assembled, marks=pytest.mark.exhaustive),
        pytest.param(looped, marks=pytest.mark.exhaustive),
        pytest.param(gradient, marks=pytest.mark.exhaustive),
    ],
)
def test_one_file_serves_all_sizes(function: Callable[..., Any], tmp_path: Path) -> None:
    traced = df.function(function, name=function.__name__)
    program = loaded(traced.get_concrete_function(df.TensorSpec([None, None])), tmp_path)
    for shape in ((5, 6), (1, 1), (2, 31), (33, 32), (0, 3), (100, 70)):
        x = RNG.normal(size=shape).astype(np.float32)
        results = traced(df.constant(x))
        results = results if isinstance(results, tuple) else (results,)
        for a, b in zip(program(x), results, strict=True):
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_sizes_that_must_be_equal_are_checked_before_a_variable_changes(tmp_path: Path) -> None:
    weights = df.Variable([1.0, 2.0, 3.0], name="weights")

    @df.function
    def step(x: Any, y: Any) -> Any:
        weights.assign_add(df.reduce_sum(x * y, 0))
        return df.reduce_sum(x)

    concrete = step.get_concrete_function(
        df.TensorSpec([None, 3], name="x"), df.TensorSpec([None, 3], name="y")
    )
    program, own = loaded(concrete, tmp_path), np.array(weights)
    with pytest.raises(ValueError, match=r"(?s)do not broadcast|does not broadcast"):
        program(np.ones((4, 3)), np.ones((5, 3)), own)
    with pytest.raises(ValueError, match=r"x has shape \(4, 2\), but .* \(None, 3\)"):
        program(np.ones((4, 2)), np.ones((5, 3)), own)
    np.testing.assert_array_equal(own, [1, 2, 3])
    (total,) = program(np.ones((4, 3)), np.ones((4, 3)), own)
    assert total == 12
    np.testing.assert_array_equal(own, [5, 6, 7])


def test_a_size_that_depends_on_data_is_refused() -> None:
    concrete = df.function(lambda x: x[x > 0]).get_concrete_function(df.TensorSpec([None]))
    with pytest.raises(InvalidArgumentError, match=r"for all sizes: the size of a tensor depends on data"):
        concrete.source()
