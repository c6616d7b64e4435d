"""Calls of matrix products in emitted code: the project's own GEMM and BLAS, for each product of a batch."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from linked_products import linked

import dualflow as df
from dualflow.backends.llvm.product import product
from dualflow.backends.llvm.product.gemm import gemm
from dualflow.backends.llvm.product.product import ProductBatch
from dualflow.backends.llvm.runtime import jit
from dualflow.backends.llvm.steps import HEADER, RUN_STEPS, StepKind, driver
from dualflow.core import blas
from dualflow.schedule.nest import Layout

Array = np.ndarray[Any, Any]
OWN = pytest.mark.parametrize(
    "own",
    [
        True,
        pytest.param(
            False, marks=pytest.mark.skipif(blas.find() is None, reason="NumPy's BLAS is not found")
        ),
    ],
)


def run(batch: ProductBatch, arrays: Sequence[Array], own: bool) -> None:
    """Walk a step that makes the products, on arrays whose layouts the batch has."""
    generated = gemm(batch.char)
    table = linked(generated, batch.product_parameters(threads=1)).tolist()
    room = np.empty(generated.scratch_bytes(table, 1) + 64, np.uint8)
    function = generated.source() if own else product.blas_function(batch.char)
    symbols = {} if own else product.blas_symbols()
    library = jit.compile_sources([function, driver()], symbols)
    step = batch.step_parameters(
        (len(arrays), -room.ctypes.data % 64), table if own else batch.blas_parameters()
    )
    head = [0, len(HEADER), *HEADER[2:]]
    integers = np.array([*head, StepKind.PRODUCT, 0, library.address(function.name), *step], np.int64)
    addresses = np.array([array.ctypes.data for array in (*arrays, room)], np.uintp)
    status = np.zeros(1, np.int64)
    run_steps = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(library.address(RUN_STEPS))
    run_steps(addresses.ctypes.data, integers.ctypes.data, status.ctypes.data)


def layout(buffer: int, array: Array) -> Layout:
    return Layout(buffer, 0, tuple(stride // array.itemsize for stride in array.strides))


@OWN
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
def test_every_product_of_a_batch(own: bool, dtype: Any, transposed: tuple[bool, bool]) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(3, 2, 5, 7)).astype(dtype), rng.normal(size=(2, 7, 4)).astype(dtype)
    x, y = (
        np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2) if t else a
        for a, t in zip((x, y), transposed, strict=True)
    )
    out = rng.normal(size=(3, 2, 5, 4)).astype(dtype)
    before = out.copy()
    spread = np.broadcast_to(y, (3, 2, 7, 4))
    layouts = (layout(0, x), layout(1, spread), layout(2, out))
    run(ProductBatch(x.dtype.char, (5, 4, 7), (3, 2), layouts, scale=-0.5, accumulate=True), (x, y, out), own)
    assert np.allclose(out, before - 0.5 * (x @ y), rtol=1e-5, atol=1e-5)


@OWN
def test_previous_contents_are_read_only_if_they_are_kept(own: bool) -> None:
    x, y, out = np.ones((3, 4), np.float32), np.ones((4, 2), np.float32), np.full((3, 2), np.nan, np.float32)
    layouts = (layout(0, x), layout(1, y), layout(2, out))
    run(ProductBatch("f", (3, 2, 4), (), layouts, scale=1.0, accumulate=False), (x, y, out), own)
    assert (out == 4).all()


def test_blas_is_called_by_addresses_that_are_known() -> None:
    if blas.find() is None:
        pytest.skip("NumPy's BLAS is not found")
    assert all(product.blas_symbols().values())
    assert set(product.blas_symbols()) >= {"cblas_sgemm", "cblas_dgemm"}


def bits_of_each_product(x: Array, y: Array) -> bytes:
    """The bits of the products of all pairs of matrices, one call for each."""
    multiply = df.function(df.matmul)
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    x, y = (np.broadcast_to(a, (*batch, *a.shape[-2:])) for a in (x, y))
    return b"".join(multiply(x[i].copy(), y[i].copy()).numpy().tobytes() for i in np.ndindex(batch))


@pytest.mark.parametrize(
    ("x_shape", "y_shape"),
    [
        ((64, 40, 33), (64, 33, 50)),
        ((9, 7, 40, 33), (9, 7, 33, 50)),
        ((32, 1, 64, 30), (3, 30, 40)),
        ((300, 60, 64), (300, 64, 1)),
        ((40, 40, 40), (40, 40)),
    ],
)
def test_products_that_threads_share_have_the_bits_of_single_ones(
    x_shape: tuple[int, ...], y_shape: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=shape).astype(np.float32) for shape in (x_shape, y_shape))
    assert df.function(df.matmul)(x, y).numpy().tobytes() == bits_of_each_product(x, y)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 5, 64, 301])
def test_one_program_shares_batches_of_any_size(size: int) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(size, 2, 40, 33)), rng.normal(size=(size, 2, 33, 50))
    assert open_batches()(x, y).numpy().tobytes() == bits_of_each_product(x, y)


@functools.cache
def open_batches() -> Any:
    """Batches of products of dynamic size."""
    specs = [df.TensorSpec([None, 2, 40, 33], df.float64), df.TensorSpec([None, 2, 33, 50], df.float64)]
    return df.function(lambda x, y: df.matmul(x, y), input_signature=specs)


def test_a_batch_is_shared_if_there_are_several_products_for_each_thread() -> None:
    def batch(*axes: int) -> ProductBatch:
        array = np.empty((*axes, 40, 40), np.float32)
        return ProductBatch("f", (40, 40, 40), axes, (layout(0, array),) * 3, 1.0, False)

    assert batch(64).splits_whole_products(threads=2)
    assert batch(8, 8).splits_whole_products(threads=2)
    assert not batch(64).splits_whole_products(threads=1)
    assert not batch(3, 64).splits_whole_products(threads=2)
    assert not batch(2, 2, 16).splits_whole_products(threads=2)
    assert not batch(4).splits_whole_products(threads=2)
