"""Exported files of traces with dynamic sizes: one program, which reads sizes from its arguments' shapes."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dualflow as df
from dualflow.backends.c.sizes import Sizes
from dualflow.backends.numba.sizes import SourceSizes
from dualflow.core.errors import InvalidArgumentError
from dualflow.schedule.size_text import SizeWriter
from dualflow.sizes.size_functions import largest
from dualflow.sizes.symbolic_sizes import SizeFactor, evaluate_size, size_variable, variable_of

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


def chain_of_sizes(steps: int) -> tuple[int, SizeFactor]:
    """A size of which each step has the one before in both operands of a function, and its variable."""
    size = variable = size_variable(least=0)
    for i in range(steps):
        size = largest(size + size % (3 + i), 2 * size - (i + 5) * (size // 2))
    factor = variable_of(variable)
    assert factor is not None
    return size, factor


def definitions_and_text(writer: type[SizeWriter], steps: int) -> tuple[dict[str, str], str]:
    size, variable = chain_of_sizes(steps)
    sizes = writer({variable: "n"})
    text = sizes.text(size)
    return sizes.definitions_for(text), text


@pytest.mark.parametrize("writer", [SourceSizes, Sizes])
def test_the_text_of_a_size_grows_with_its_operands_and_not_with_the_paths_to_them(writer: Any) -> None:
    short, long = (
        sum(map(len, [text, *definitions, *definitions.values()]))
        for definitions, text in (definitions_and_text(writer, steps) for steps in (10, 40))
    )
    assert long < 5 * short


@given(st.integers(0, 60), st.integers(0, 12))
def test_definitions_compute_the_size_of_the_expression(n: int, steps: int) -> None:
    size, variable = chain_of_sizes(steps)
    sizes = SourceSizes({variable: "n"})
    text = sizes.text(size)
    values: dict[str, Any] = {"n": n}
    for function in sizes.functions.values():
        exec(function, values)
    for name, definition in sizes.definitions_for(text).items():
        values[name] = eval(definition, values)
    assert eval(text, values) == evaluate_size(size, {variable: n})
