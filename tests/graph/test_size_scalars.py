"""Scalars that are computed from sizes: arguments of kernels, as constants are with static sizes."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualflow as df
from dualflow.backends.numba.listing import listing
from dualflow.backends.runtime import switches
from dualflow.graph.cost_model import CPU

Scalar = Callable[[Any, Any], Any]
"""Computes a scalar from a dtype, and a size as an integer tensor."""


def scalars() -> st.SearchStrategy[Scalar]:
    size: Scalar = lambda dtype, n: df.cast(n, dtype)  # noqa: E731
    numbers = st.sampled_from([1.0, -0.5, 3.0, 0.1, 0.0, -0.0]).map(
        lambda number: lambda dtype, n: df.constant(number, dtype)
    )

    def larger(parts: st.SearchStrategy[Scalar]) -> st.SearchStrategy[Scalar]:
        return st.one_of(
            parts.map(lambda x: lambda dtype, n: -x(dtype, n)),
            *[
                st.builds(lambda x, y, op=op: lambda dtype, n: op(x(dtype, n), y(dtype, n)), parts, parts)
                for op in (df.add, df.subtract, df.multiply, df.divide)
            ],
        )

    return st.recursive(st.just(size) | numbers, larger, max_leaves=6)


@given(scalars(), st.sampled_from(["float32", "float64"]))
@settings(deadline=None, max_examples=40)
def test_scalars_have_the_bits_of_eager_code(scalar: Scalar, dtype: str) -> None:
    def function(x: Any) -> Any:
        return x + scalar(x.dtype, df.shape(x)[0])

    compiled = df.function(function, input_signature=[df.TensorSpec([None], dtype)])
    for n in (1, 3, 40):
        x = df.constant(np.linspace(-1.0, 1.0, n), dtype)
        with np.errstate(all="ignore"):
            expected = function(x).numpy()
        np.testing.assert_array_equal(compiled(x).numpy(), expected, strict=True)


def test_products_with_zeros_of_both_signs_are_two_scalars() -> None:
    @df.function(input_signature=[df.TensorSpec([None])])
    def zeros(x: Any) -> Any:
        n = df.cast(df.shape(x)[0], df.float32)
        return n * 0.0, n * -0.0

    assert [bool(np.signbit(x)) for x in zeros(df.ones([3]))] == [False, True]


def mean_and_gradient(x: Any) -> Any:
    with df.GradientTape() as tape:
        tape.watch(x)
        mean = df.reduce_mean(x * x)
    return mean, tape.gradient(mean, x)


@pytest.mark.llvm
@pytest.mark.skipif(
    bool(switches.checked_side()), reason="programs with checked memory compute sizes by code of their own"
)
def test_a_program_for_all_sizes_runs_the_kernels_of_the_one_before() -> None:
    sources = []
    for sizes in ("exact", "automatic"):
        traced = df.function(mean_and_gradient, sizes=sizes)
        traced(df.ones([32]))
        (concrete,) = traced.concrete_functions
        sources.append(set(concrete.compiled_for([df.ones([32])]).executable.program.sources))
    static, symbolic = sources
    assert symbolic == static


def test_scalars_are_results_and_operands_of_loops() -> None:
    def function(x: Any) -> Any:
        n = df.cast(df.shape(x)[0], df.float32)
        _, total = df.while_loop(lambda i, s: i < n, lambda i, s: (i + 1.0, s + n / 2.0), [0.0, -n])
        return n, df.fill([2], 1.0 / n), total

    compiled = df.function(function, input_signature=[df.TensorSpec([None])])
    for n in (1, 3):
        for result, expected in zip(compiled(df.ones([n])), function(df.ones([n])), strict=True):
            np.testing.assert_array_equal(result.numpy(), expected.numpy(), strict=True)


def test_the_listing_of_a_program_computes_its_scalars(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = df.function(mean_and_gradient, input_signature=[df.TensorSpec([None])])
    graph = compiled.get_concrete_function().compiled_for([df.ones([5])]).executable.graph
    (tmp_path / "listed.py").write_text(listing(graph))
    monkeypatch.syspath_prepend(tmp_path)
    mean, gradient = import_module("listed").mean_and_gradient(np.full(5, 3.0, np.float32))
    assert mean == 9.0
    np.testing.assert_allclose(gradient, np.full(5, 1.2, np.float32), rtol=1e-6)


def test_long_kernels_have_scalars_as_arguments() -> None:
    def function(x: Any) -> Any:
        factor = 1.0 / df.cast(df.shape(x)[0], df.float32)
        for i in range(CPU.long_kernel):
            x = x * factor + 0.5 * i
        return x

    compiled = df.function(function, input_signature=[df.TensorSpec([None])])
    for n in (3, 40):
        x = df.constant(np.linspace(-1.0, 1.0, n), df.float32)
        np.testing.assert_array_equal(compiled(x).numpy(), function(x).numpy(), strict=True)


def test_scalars_of_many_operations_take_linear_time() -> None:
    """Each is an operand of the next one twice, so as expressions they would double."""

    def function(x: Any) -> Any:
        scalar = 1.0 / df.cast(df.shape(x)[0], df.float32)
        for _ in range(50):
            scalar = scalar + 0.25 * scalar
        return x * scalar

    compiled = df.function(function, input_signature=[df.TensorSpec([None])])
    for n in (1, 3):
        x = df.ones([n])
        np.testing.assert_allclose(compiled(x).numpy(), function(x).numpy(), rtol=1e-5)
