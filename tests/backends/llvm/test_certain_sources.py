"""The routines that are compiled before a program is written: it calls each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.backends.llvm.certain_sources import certain_sources, probable_sources
from dualflow.backends.llvm.compile_graph import lowered
from dualflow.backends.llvm.product.gemm_or_blas import uses_own_gemm
from dualflow.backends.llvm.runtime.ir_source import QUICKLY_COMPILED
from dualflow.backends.llvm.steps import RUN_STEPS, driver


def elementwise(x: df.Tensor) -> Any:
    return df.exp(x) * 2.0


def product(x: df.Tensor) -> Any:
    return x @ x + df.matmul(x, x, transpose_a=True)


def two_types(x: df.Tensor) -> Any:
    """Products of so few columns that no machine calls the widest tile for them."""
    few = x[:4, :4]
    more_bits = df.cast(few, df.float64)
    return few @ few, more_bits @ more_bits


def wide_product(x: df.Tensor) -> Any:
    wide = df.tile(x, [8, 8])
    return wide @ wide


def convolution(x: df.Tensor) -> Any:
    image = df.reshape(x, [1, 16, 16, 1])
    return df.nn.conv2d(image, df.ones([3, 3, 1, 8]), 1, "SAME")


def bytes_of(x: df.Tensor) -> Any:
    weights = df.cast(df.ones([16, 16]), df.int8)
    return df.matmul(df.cast(x, df.int8), weights, output_type=df.int32)


def empty(x: df.Tensor) -> Any:
    return x[:0] @ x, x + 1.0


def product_in_loop(x: df.Tensor) -> Any:
    return df.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y @ x), [0, x])[1]


def host_call(x: df.Tensor) -> Any:
    return df.linalg.svd(x, compute_uv=False)


PROGRAMS = [
    elementwise,
    product,
    two_types,
    wide_product,
    convolution,
    bytes_of,
    empty,
    product_in_loop,
    host_call,
]
OWN_PRODUCTS = pytest.mark.skipif(not uses_own_gemm(), reason="BLAS computes products")
SPECS = {"static": df.TensorSpec([16, 16]), "dynamic": df.TensorSpec([None, 16])}


def certain_and_all(program: Callable[..., Any], spec: df.TensorSpec) -> tuple[list[Any], tuple[Any, ...]]:
    """The sources that are compiled early, and all sources of the program."""
    compiled = df.function(program).get_concrete_function(spec).compiled
    result = lowered(compiled.optimised, compiled.options)
    return list(certain_sources(result.plan)), result.program.sources


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_a_program_calls_each_product_that_is_compiled_before_the_passes(program: Callable[..., Any]) -> None:
    compiled = df.function(program).get_concrete_function(SPECS["static"]).compiled
    _, sources = certain_and_all(program, SPECS["static"])
    assert set(probable_sources(compiled.graph)) <= {driver(), *sources}


@OWN_PRODUCTS
def test_products_of_matrices_and_the_driver_are_compiled_before_the_passes() -> None:
    compiled = df.function(two_types).get_concrete_function(SPECS["static"]).compiled
    names = {source.name for source in probable_sources(compiled.graph)}
    assert names == {RUN_STEPS, "df_gemm_f", "df_gemm_d"}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_a_program_calls_each_of_its_certain_sources(program: Callable[..., Any]) -> None:
    certain, sources = certain_and_all(program, SPECS["static"])
    assert set(certain) <= set(sources)
    assert len(set(certain)) == len(certain)


@OWN_PRODUCTS
def test_products_of_each_type_and_the_driver_are_certain() -> None:
    def names(program: Callable[..., Any], spec: str = "static") -> set[str]:
        return {source.name for source in certain_and_all(program, SPECS[spec])[0]}

    assert names(elementwise) == {RUN_STEPS}
    assert names(elementwise, "dynamic") == {RUN_STEPS}
    assert names(two_types) == {RUN_STEPS, "df_gemm_f", "df_gemm_d"}
    assert names(wide_product) == {RUN_STEPS, "df_gemm_f", "df_gemm_f_wide"}
    assert names(convolution) == {RUN_STEPS, "df_gemm_windows_f", "df_gemm_windows_f_copy"}


def test_the_loops_of_an_entry_are_optimised() -> None:
    """A mask counts its elements in its entry, which has no loop over kernels."""
    _, sources = certain_and_all(lambda x: df.boolean_mask(x, x > 0.0), df.TensorSpec([1000]))
    assert {source for source in sources if source.text.startswith(QUICKLY_COMPILED)} == {driver()}


def test_nothing_is_certain_of_a_program_without_machine_code() -> None:
    assert not certain_and_all(host_call, SPECS["static"])[0]


def test_the_result_is_that_of_a_program_that_was_on_disk(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUALFLOW_CACHE_DIR", str(tmp_path))
    x = df.constant(np.random.default_rng(0).normal(size=(16, 16)).astype(np.float32))
    for program in PROGRAMS:
        results = [df.function(program)(x) for _ in range(2)]
        for one, two in zip(*map(df.nest.flatten, results), strict=True):
            np.testing.assert_array_equal(one, two)


@OWN_PRODUCTS
@pytest.mark.parametrize(
    ("shapes", "routines"),
    [
        (([8, 16], [16, 64]), {"wide"}),
        (([8, 16], [16, 3]), {"narrow"}),
        (([8, 16], [16, 1]), {"narrow", "dot"}),
        (([8, 16], [16, None]), {"wide", "narrow", "dot", "pack"}),
    ],
)
def test_a_program_has_the_routines_that_its_products_may_call(
    shapes: tuple[list[int | None], ...], routines: set[str]
) -> None:
    specs = [df.TensorSpec(shape) for shape in shapes]
    compiled = df.function(lambda x, y: x @ y).get_concrete_function(*specs).compiled
    graph = compiled.graph_with_symbolic_sizes if None in shapes[1] else compiled.optimised
    names = {source.name for source in lowered(graph, compiled.options).program.sources}
    assert {name.removeprefix("df_gemm_f_") for name in names if name.startswith("df_gemm_f_")} == routines
