"""Calls of matrix products in emitted code: our own and BLAS's, for each product of a batch."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

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
    made = gemm(batch.char)
    table = batch.table(threads=1)
    room = np.empty(made.scratch_bytes(table, 1) + 64, np.uint8)
    function = made.source() if own else product.blas_function(batch.char)
    symbols = {} if own else product.blas_symbols()
    library = jit.compile_sources([function, driver()], symbols)
    step = batch.step((len(arrays), -room.ctypes.data % 64), table if own else batch.blas_table())
    head = [0, len(HEADER), 0, 0]
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
def test_what_was_there_is_not_read_unless_it_is_kept(own: bool) -> None:
    x, y, out = np.ones((3, 4), np.float32), np.ones((4, 2), np.float32), np.full((3, 2), np.nan, np.float32)
    layouts = (layout(0, x), layout(1, y), layout(2, out))
    run(ProductBatch("f", (3, 2, 4), (), layouts, scale=1.0, accumulate=False), (x, y, out), own)
    assert (out == 4).all()


def test_blas_is_called_by_addresses_that_are_known() -> None:
    if blas.find() is None:
        pytest.skip("NumPy's BLAS is not found")
    assert all(product.blas_symbols().values())
    assert set(product.blas_symbols()) >= {"cblas_sgemm", "cblas_dgemm"}
