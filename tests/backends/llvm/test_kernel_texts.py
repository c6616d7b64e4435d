"""Kernel deduplication: equal kernels are written once in a process, and are one function in all graphs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.backends.llvm import kernel_texts
from dualflow.backends.llvm.executable import Executable
from dualflow.backends.llvm.program import Program

Function = Callable[..., Any]
LAYERS = 5


def executable(f: Function, *specs: df.TensorSpec) -> Executable:
    compiled: Executable = df.function(f).get_concrete_function(*specs).compiled.executable
    return compiled


def kernels(program: Program) -> set[str]:
    """The names of the functions that a program calls as kernels."""
    return {name for name in program.image.functions.values() if name.startswith("kernel")}


def layers(x: Any, w: Any) -> Any:
    for i in range(LAYERS):
        x = df.nn.softmax(df.tanh(x @ w + float(i)) @ w)
    return x


def test_a_graph_with_layers_alike_has_one_function_for_each_of_their_kernels() -> None:
    program = executable(layers, df.TensorSpec([6, 7]), df.TensorSpec([7, 7])).program
    assert len(program.kernels) == 2 * LAYERS
    assert len(kernels(program)) == 2


def test_layers_alike_compute_with_their_own_numbers() -> None:
    rng = np.random.default_rng(0)
    x, w = (df.constant(rng.normal(size=s).astype(np.float32)) for s in ((6, 7), (7, 7)))
    np.testing.assert_allclose(df.function(layers)(x, w), layers(x, w), rtol=1e-5)


def test_whole_reductions_alike_have_their_own_partial_results() -> None:
    def sums(x: Any, y: Any) -> Any:
        return df.reduce_sum(x), df.reduce_sum(y), df.reduce_sum(x) + df.reduce_sum(y)

    x, y = (df.constant(np.full(n, value, np.float64)) for n, value in ((100_003, 1.0), (70_001, 3.0)))
    results = [float(v) for v in df.function(sums)(x, y)]
    assert results == [100_003.0, 210_003.0, 310_006.0]


def test_rows_are_kept_by_each_of_several_kernels_alike() -> None:
    def softmaxes(x: Any, w: Any) -> Any:
        return df.nn.softmax(df.nn.softmax(x) @ w)

    rng = np.random.default_rng(0)
    x, w = (df.constant(rng.normal(size=s).astype(np.float32)) for s in ((600, 33), (33, 210)))
    np.testing.assert_allclose(df.function(softmaxes)(x, w), softmaxes(x, w), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("wrong", ["first", "second"])
def test_of_equal_kernels_the_error_names_the_one_that_fails(wrong: str) -> None:
    def picked(x: Any, i: Any, w: Any, j: Any) -> Any:
        first = df.gather(x, i) @ w
        return df.gather(first, j) @ w

    right, outside = df.constant([0, 1]), df.constant([0, 9])
    i, j = (outside, right) if wrong == "first" else (right, outside)
    with pytest.raises(df.errors.OutOfRangeError) as raised:
        df.function(picked)(df.ones([2, 2]), i, df.ones([2, 2]), j)
    line = "first = df.gather(x, i) @ w" if wrong == "first" else "return df.gather(first, j) @ w"
    assert str(source_line(picked, line)) in str(raised.value)


def source_line(f: Function, text: str) -> int:
    """The number of a line of a function."""
    lines, first = inspect.getsourcelines(f)
    return first + next(i for i, line in enumerate(lines) if text in line)


def test_a_kernel_is_written_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_texts, "_cached", {})
    f = lambda x: df.sin(x) * 0.5 + df.exp(x)  # noqa: E731
    executable(f, df.TensorSpec([100]))
    before = dict(kernel_texts._cached)
    executable(f, df.TensorSpec([200, 3]))
    assert kernel_texts._cached == before


def test_a_process_does_not_remember_kernels_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_texts, "_cached", {})
    monkeypatch.setattr(kernel_texts, "MAX_CACHED", 8)
    ops = [df.exp, df.sin, df.cos, df.tan, df.tanh, df.log, df.sqrt, df.abs, df.square, df.sinh, df.cosh]
    for op in ops:
        executable(op, df.TensorSpec([10]))
    assert 0 < len(kernel_texts._cached) <= 8
