"""The project's own GEMM: right for all sizes and strides, same bits on any number of threads."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from linked_products import linked

from dualflow.backends.llvm.product.gemm import MAX_KC, MAX_MC, MIN_THREAD_WORK, Gemm, MatrixStrides, gemm
from dualflow.backends.llvm.product.gemm_kernel import Field
from dualflow.backends.llvm.runtime import jit, threads
from dualflow.sizes.symbolic_sizes import evaluate_size, size_variable, size_variables

Array = np.ndarray[Any, Any]
DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])
ORDERS = [(a, b) for a in "nt" for b in "nt"]


def multiply(
    a: Array,
    b: Array,
    c: Array,
    *,
    scale: float = 1.0,
    accumulate: bool = False,
    blocks_for: int = 1,
    shared: bool = False,
    symbolic: str = "",
    alone: bool = True,
    which: Gemm | None = None,
) -> list[int]:
    """Run ``c = scale * (a @ b) + accumulate * c`` in machine code; returns its table.

    ``symbolic`` names the sizes, of "mnk", that are symbolic in the table.
    """
    product = which or gemm(c.dtype.char)
    lies = [MatrixStrides(*(stride // c.itemsize for stride in array.strides)) for array in (a, b, c)]
    numbers = c.shape[0], c.shape[1], a.shape[1]
    sizes = with_symbols(numbers, symbolic)
    written = table = product.table(
        sizes, (lies[0], lies[1], lies[2]), scale=scale, accumulate=accumulate, threads=blocks_for
    )
    if symbolic:
        pairs = zip(sizes, numbers, strict=True)
        bound = {variable: number for size, number in pairs for variable in size_variables(size)}
        table = [evaluate_size(entry, bound) for entry in table]
    scratch = np.empty(product.scratch_bytes(table, threads.max_threads()) + 64, np.uint8)
    integers = linked(product, table, written)
    integers[Field.ALONE] *= alone
    address = scratch.ctypes.data + -scratch.ctypes.data % 64
    pool = threads.pool() if shared else None
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 7)(library(product).address(product.routine))
    pointers = [array.ctypes.data for array in (integers, a, b, c)]
    function(*pointers, address, pool.address if pool else None, pool.pfor if pool else None)
    return table


def with_symbols(sizes: tuple[int, int, int], symbolic: str) -> tuple[int, int, int]:
    """The sizes, of which those that ``symbolic`` names, of "mnk", are size variables."""
    m, n, k = (
        size_variable(least=0) if name in symbolic else size for name, size in zip("mnk", sizes, strict=True)
    )
    return m, n, k


@functools.cache
def library(product: Gemm) -> jit.Library:
    """The machine code."""
    return jit.compile_sources([product.source()], {})


def matrix(rows: int, columns: int, dtype: Any, order: str = "n", seed: int = 0) -> Array:
    """A matrix of random numbers, in memory by rows ('n') or by columns ('t')."""
    numbers = np.random.default_rng(seed).normal(size=(rows, columns)).astype(dtype)
    return numbers if order == "n" else np.asfortranarray(numbers)


def assert_is_product(c: Array, a: Array, b: Array, scale: float = 1.0, before: Array | None = None) -> None:
    """Each element is within the error of a chain of multiplications and additions."""
    wide = np.longdouble
    old = np.zeros(c.shape, wide) if before is None else before.astype(wide)
    exact = scale * (a.astype(wide) @ b.astype(wide)) + old
    size = abs(scale) * (abs(a).astype(wide) @ abs(b).astype(wide)) + abs(old)
    bound = (a.shape[1] + 2) * np.finfo(c.dtype).eps * size + np.finfo(c.dtype).tiny
    assert (abs(c - exact) <= bound).all()


small = st.integers(0, 70)
"""Sizes around every edge of the tiles."""


@settings(max_examples=75, deadline=None)
@given(
    sizes=st.tuples(small, small, small),
    orders=st.sampled_from(ORDERS),
    dtype=st.sampled_from([np.float32, np.float64]),
    scale=st.sampled_from([1.0, -0.001, 2.5]),
    accumulate=st.booleans(),
    seed=st.integers(0, 9),
)
@example((1, 1, 1), ("n", "n"), np.float32, 1.0, False, 0)
@example((7, 1, 33), ("n", "n"), np.float64, 1.0, True, 0)
@example((1, 70, 9), ("n", "t"), np.float32, 1.0, True, 0)
@example((5, 6, 0), ("n", "n"), np.float32, 1.0, False, 0)
def test_any_sizes_and_orders(
    sizes: tuple[int, int, int], orders: str, dtype: Any, scale: float, accumulate: bool, seed: int
) -> None:
    m, n, k = sizes
    a, b = matrix(m, k, dtype, orders[0], seed), matrix(k, n, dtype, orders[1], seed + 1)
    c = matrix(m, n, dtype, "n", seed + 2)
    before = c.copy()
    multiply(a, b, c, scale=scale, accumulate=accumulate)
    # The factor itself is rounded to the dtype.
    assert_is_product(c, a, b, float(dtype(scale)), before if accumulate else None)


@settings(max_examples=30, deadline=None)
@given(
    sizes=st.tuples(small, small, small),
    orders=st.sampled_from(ORDERS),
    dtype=st.sampled_from([np.float32, np.float64]),
    accumulate=st.booleans(),
    symbolic=st.sampled_from(["", "m", "k", "mk"]),
)
@example((5, 9, 17), ("n", "n"), np.float32, True, "")
@example((5, 60, 17), ("n", "n"), np.float32, False, "m")
@example((5, 1, 17), ("n", "n"), np.float64, True, "k")
@example((5, 9, MAX_KC + 1), ("n", "n"), np.float32, False, "k")
@example((MAX_MC + 1, 9, 17), ("n", "n"), np.float32, False, "m")
@example((0, 9, 17), ("n", "n"), np.float32, False, "m")
def test_a_micro_kernel_alone_has_the_bits_of_the_loops(
    sizes: tuple[int, int, int], orders: str, dtype: Any, accumulate: bool, symbolic: str
) -> None:
    m, n, k = sizes
    a, b = matrix(m, k, dtype, orders[0]), matrix(k, n, dtype, orders[1], 1)
    c = matrix(m, n, dtype, seed=2)
    in_loops = c.copy()
    multiply(a, b, c, accumulate=accumulate, symbolic=symbolic)
    multiply(a, b, in_loops, accumulate=accumulate, symbolic=symbolic, alone=False)
    np.testing.assert_array_equal(c, in_loops)


@pytest.mark.parametrize(
    ("sizes", "symbolic", "order", "alone"),
    [
        ((5, 9, 17), "", "n", Field.NARROW),
        ((5, 9, 17), "mk", "n", Field.NARROW),  # if the sizes of the call are small
        ((5, 9, 17), "n", "n", None),
        ((5, 9, 17), "", "t", None),  # B is packed
        ((5, 60, 17), "", "n", Field.WIDE),
        ((5, 60, 17), "m", "n", Field.WIDE),
        ((5, 1, 17), "", "t", Field.DOT),
        ((5, 1, 17), "m", "t", Field.DOT),
        ((5, 9, MAX_KC + 1), "m", "n", None),  # two K blocks
        ((5, 70, 17), "m", "n", None),  # two panels of B
        ((MAX_MC + 1, 9, 17), "k", "n", None),  # two blocks
    ],
)
def test_a_micro_kernel_computes_small_products_alone(
    sizes: tuple[int, int, int], symbolic: str, order: str, alone: Field | None
) -> None:
    m, n, k = with_symbols(sizes, symbolic)
    product = Gemm("f", 512)
    b = MatrixStrides(n, 1) if order == "n" else MatrixStrides(1, k)
    table = product.table(
        (m, n, k), (MatrixStrides(k, 1), b, MatrixStrides(n, 1)), scale=1.0, accumulate=False, threads=1
    )
    routines = product.routines(table)
    assert routines.get(Field.ALONE) == (None if alone is None else routines[alone])


@settings(max_examples=30, deadline=None)
@given(
    st.tuples(small, small, small),
    st.tuples(*[st.sampled_from([-3, -1, 1, 2, 5])] * 4),
    st.sampled_from([np.float32, np.float64]),
)
def test_any_strides(sizes: tuple[int, int, int], steps: tuple[int, ...], dtype: Any) -> None:
    m, n, k = sizes
    down, across, b_down, b_across = steps
    a = matrix(m * abs(down), k * abs(across), dtype)[::down, ::across]
    b = matrix(k * abs(b_down), n * abs(b_across), dtype, seed=1)[::b_down, ::b_across]
    c = np.empty((m, n), dtype)
    multiply(a, b, c)
    assert_is_product(c, a, b)


@DTYPES
def test_operands_that_repeat_one_row_or_column(dtype: Any) -> None:
    a = np.broadcast_to(matrix(1, 20, dtype), (9, 20))
    b = np.broadcast_to(matrix(20, 1, dtype, seed=1), (20, 30))
    c = np.empty((9, 30), dtype)
    multiply(a, b, c)
    assert_is_product(c, a, b)


@DTYPES
@pytest.mark.parametrize("orders", ORDERS)
@pytest.mark.parametrize(
    "sizes",
    [
        (MAX_MC + 9, 130, 20),  # two blocks of rows
        (20, 70, 2 * MAX_KC + 3),  # three chunks of K
        (130, 513, 70),
        (1000, 1, 1200),
        (1, 1000, 1200),
    ],
)
def test_sizes_beyond_one_block(dtype: Any, orders: str, sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    a, b = matrix(m, k, dtype, orders[0]), matrix(k, n, dtype, orders[1], 1)
    c = matrix(m, n, dtype, "n", 2)
    before = c.copy()
    multiply(a, b, c, scale=-0.5, accumulate=True, blocks_for=2, shared=True)
    assert_is_product(c, a, b, -0.5, before)


@DTYPES
def test_columns_of_a_that_are_pages_apart_are_copied(dtype: Any) -> None:
    rows = 4096 // np.dtype(dtype).itemsize
    a, b = matrix(rows, 300, dtype, "t"), matrix(300, 40, dtype)
    c = np.empty((rows, 40), dtype)
    table = multiply(a, b, c)
    assert table[Field.COPY_STRIDE] > 0
    assert_is_product(c, a, b)


@pytest.mark.parametrize("bits", [128, 256, 512])
@DTYPES
def test_vectors_of_any_width(bits: int, dtype: Any) -> None:
    which = Gemm(np.dtype(dtype).char, bits)
    for orders in ORDERS:
        a, b = matrix(37, 45, dtype, orders[0]), matrix(45, 83, dtype, orders[1], 1)
        c = np.empty((37, 83), dtype)
        multiply(a, b, c, which=which)
        assert_is_product(c, a, b)


@settings(max_examples=25, deadline=None)
@given(
    st.tuples(st.integers(1, 600), st.integers(1, 300), st.integers(1, 700)),
    st.sampled_from(ORDERS),
    st.sampled_from([np.float32, np.float64]),
    st.integers(2, 64),
)
def test_the_bits_do_not_depend_on_the_number_of_threads(
    sizes: tuple[int, int, int], orders: str, dtype: Any, blocks_for: int
) -> None:
    m, n, k = sizes
    a, b = matrix(m, k, dtype, orders[0]), matrix(k, n, dtype, orders[1], 1)
    alone, shared = np.empty((m, n), dtype), np.empty((m, n), dtype)
    multiply(a, b, alone)
    multiply(a, b, shared, blocks_for=blocks_for, shared=True)
    assert alone.tobytes() == shared.tobytes()


@DTYPES
def test_nan_and_infinity_reach_their_row_and_column_and_no_further(dtype: Any) -> None:
    a, b = np.ones((9, 30), dtype), np.ones((30, 70), dtype)
    a[4, 7], b[3, 68] = np.nan, np.inf
    c = np.empty((9, 70), dtype)
    multiply(a, b, c)
    assert np.isnan(c[4]).all()
    assert (np.delete(c[:, 68], 4) == np.inf).all()
    assert (np.delete(np.delete(c, 4, 0), 68, 1) == 30).all()


@DTYPES
def test_the_output_buffer_is_read_only_if_it_is_accumulated_to(dtype: Any) -> None:
    a, b, c = matrix(33, 600, dtype), matrix(600, 50, dtype, seed=1), np.full((33, 50), np.nan, dtype)
    multiply(a, b, c)
    assert_is_product(c, a, b)


@DTYPES
@pytest.mark.parametrize("orders", ORDERS)
def test_nothing_next_to_c_is_written(dtype: Any, orders: str) -> None:
    a, b = matrix(13, 21, dtype, orders[0]), matrix(21, 75, dtype, orders[1], 1)
    around = np.full((17, 90), 7, dtype)
    multiply(a, b, around[2:15, 5:80])
    assert_is_product(around[2:15, 5:80], a, b)
    around[2:15, 5:80] = 7
    assert (around == 7).all()


@DTYPES
def test_operands_are_left_alone(dtype: Any) -> None:
    a, b = matrix(40, 50, dtype), matrix(50, 60, dtype, "t", 1)
    kept = a.copy(), b.copy()
    multiply(a, b, np.empty((40, 60), dtype))
    assert (a == kept[0]).all()
    assert (b == kept[1]).all()


@given(st.tuples(*[st.integers(1, 5000)] * 3), st.integers(1, 64))
def test_blocks_are_as_the_machine_code_expects_them(sizes: tuple[int, int, int], count: int) -> None:
    """Whole tiles, except at the edges, and K in chunks that fit the scratch."""
    product = Gemm("f", 512)
    blocking = product.blocks(sizes, count)
    assert blocking.mc % product.wide.rows == 0
    assert blocking.nc % (product.wide.vectors * product.lanes) == 0
    assert 1 <= blocking.kc <= MAX_KC
    assert blocking.mc <= MAX_MC


def test_any_thread_of_the_pool_may_compute_a_block_of_few() -> None:
    """An idle worker claims a block, whatever its number: each number has scratch memory of its own."""
    count, kernel = 8, gemm("f")
    a, b = matrix(64, 80, np.float32), matrix(80, 256, np.float32, seed=1)
    c = np.empty((64, 256), np.float32)
    strides = MatrixStrides(80, 1), MatrixStrides(256, 1), MatrixStrides(256, 1)
    table = kernel.table((64, 256, 80), strides, scale=1.0, accumulate=False, threads=count)
    assert 1 < table[Field.BLOCKS] < count
    nbytes = kernel.scratch_bytes(table, count)
    memory = np.full(nbytes + 64 + (1 << 20), 7, np.uint8)
    start = -memory.ctypes.data % 64
    body = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *[ctypes.c_int64] * 3)

    @ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64, ctypes.c_int64)
    def by_the_last_thread(pool: int, function: int, context: int, blocks: int, chunk: int) -> None:
        for block in range(blocks):
            body(function)(context, block, block + 1, count - 1)

    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 7)(library(kernel).address(kernel.routine))
    pointers = [array.ctypes.data for array in (linked(kernel, table), a, b, c)]
    function(*pointers, memory.ctypes.data + start, None, ctypes.cast(by_the_last_thread, ctypes.c_void_p))
    assert_is_product(c, a, b)
    assert (memory[start + nbytes :] == 7).all()


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 700),
    st.integers(1, 700),
    st.integers(1, 300),
    st.integers(2, 8),
    st.sampled_from(("mnk", "m", "n", "k", "mn")),
)
def test_a_call_with_small_sizes_has_few_blocks_whatever_sizes_are_typical(
    rows: int, columns: int, inner: int, blocks_for: int, symbolic: str
) -> None:
    a, b, c = (
        matrix(rows, inner, np.float32),
        matrix(inner, columns, np.float32),
        matrix(rows, columns, np.float32),
    )
    table = multiply(a, b, c, blocks_for=blocks_for, symbolic=symbolic)
    assert_is_product(c, a, b)
    most = max(rows * columns * inner * 4 // MIN_THREAD_WORK, 1)
    row_blocks = -(-rows // table[Field.MC])
    assert row_blocks <= max(most, -(-rows // MAX_MC))
    assert table[Field.BLOCKS] < most + row_blocks  # the number of columns of blocks is rounded up
