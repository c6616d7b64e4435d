"""Products of 8-bit integers: exact for all sizes and values, by each multiply-add instruction."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import dualflow as df
from dualflow.backends.llvm.product.gemm import Gemm, MatrixStrides
from dualflow.backends.llvm.product.gemm_kernel import Field
from dualflow.backends.llvm.product.multiply_add import BYTES, PAIRS, VNNI, MultiplyAdd, integer_multiply_add
from dualflow.backends.llvm.runtime import jit
from dualflow.backends.llvm.runtime.ir_source import IrSource
from dualflow.backends.llvm.runtime.target import vector_bits

pytestmark = [
    pytest.mark.llvm,
    pytest.mark.skipif(vector_bits() < 256, reason="processors without wide vectors compute sums in loops"),
]
small = st.integers(0, 70)
PRODUCT = df.function(lambda x, w: df.quantization.integer_product(x, w))


def exact(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    groups, columns, _ = w.shape
    weights = w.swapaxes(1, 2).reshape(4 * groups, columns)
    return x.astype(np.int64) @ weights.astype(np.int64)


def drawn(rows: int, groups: int, columns: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Bytes; a quarter of them are the extremes, whose pairs of products exceed 16 bits."""
    random = np.random.default_rng(seed)
    x = random.integers(0, 256, (rows, 4 * groups)).astype(np.uint8)
    w = random.integers(-128, 128, (groups, columns, 4)).astype(np.int8)
    x[random.random(x.shape) < 0.25] = 255
    w[random.random(w.shape) < 0.25] = random.choice([-128, 127])
    return x, w


@settings(max_examples=40, deadline=None)
@example(1, 300, 1, 0)
@example(130, 3, 33, 0)
@given(small, small, small, st.integers(0, 9))
def test_products_are_exact(rows: int, groups: int, columns: int, seed: int) -> None:
    x, w = drawn(rows, groups, columns, seed)
    np.testing.assert_array_equal(PRODUCT(x, w), exact(x, w))


def test_the_product_is_native_also_of_slices_at_odd_addresses() -> None:
    x, w = drawn(9, 5, 7, 1)
    f = df.function(lambda x, w: df.quantization.integer_product(df.reshape(x[1:161], [8, 20]), w))
    flat = x.ravel()
    np.testing.assert_array_equal(f(flat, w), exact(flat[1:161].reshape(8, 20), w))
    assert "1 matrix product routine" in f.status()


def test_sums_do_not_saturate() -> None:
    for weight in (127, -128):
        x, w = np.full((3, 4000), 255, np.uint8), np.full((1000, 9, 4), weight, np.int8)
        np.testing.assert_array_equal(PRODUCT(x, w), np.full((3, 9), 255 * weight * 4000))


ROUTINES = [Field.NARROW, Field.DOT, Field.PACK, Field.COPY, Field.WIDE]


def compiled(name: str, text: str) -> jit.Library:
    return jit.compile_sources([IrSource(text, (name,))], {})


def run(products: MultiplyAdd, x: np.ndarray, w: np.ndarray, monkeypatch: Any) -> np.ndarray:
    """The product by machine code with this multiply-add."""
    monkeypatch.setattr("dualflow.backends.llvm.product.gemm.integer_multiply_add", lambda bits: products)
    routine = Gemm("i", vector_bits())
    code = compiled(routine.routine, routine.text())
    (rows, groups), columns = (x.shape[0], w.shape[0]), w.shape[1]
    c = np.empty((rows, columns), np.int32)
    strides = MatrixStrides(groups, 1), MatrixStrides(columns, 1), MatrixStrides(columns, 1)
    table = routine.table((rows, columns, groups), strides, scale=1.0, accumulate=False, threads=1)
    integers = np.array(table, np.int64)
    others = {
        which: compiled(f"of_{which}", routine.routine_text(which, f"of_{which}")) for which in ROUTINES
    }
    for which, library in others.items():
        integers[which] = library.address(f"of_{which}")
    scratch = np.empty(routine.scratch_bytes(table, 1) + 64, np.uint8)
    address = scratch.ctypes.data + -scratch.ctypes.data % 64
    pointers = [a.ctypes.data for a in (integers, x, w, c)]
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 7)(code.address(routine.routine))
    function(*pointers, address, None, None)
    return c


@pytest.mark.parametrize("products", [BYTES, PAIRS], ids=["bytes", "pairs"])
@pytest.mark.parametrize("sizes", [(5, 9, 37), (1, 40, 64), (70, 3, 1), (33, 130, 20)])
def test_each_form_is_exact(products: MultiplyAdd, sizes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = drawn(*sizes, seed=2)
    np.testing.assert_array_equal(run(products, x, w, monkeypatch), exact(x, w))


@pytest.mark.parametrize(
    ("bits", "extensions", "form"),
    [
        (512, {"avx512bw", "avx512_vnni"}, VNNI),
        (512, {"avx512bw"}, PAIRS),
        (512, {"avx512f"}, BYTES),
        (256, {"avx2", "avx_vnni"}, VNNI),
        (256, {"avx2", "avx512_vnni"}, PAIRS),
        (256, {"asimd"}, BYTES),
    ],
)
def test_the_form_follows_from_the_extensions(bits: int, extensions: set[str], form: MultiplyAdd) -> None:
    assert integer_multiply_add(bits, frozenset(extensions)) is form


@pytest.mark.parametrize(("bits", "cpu"), [(512, "icelake-server"), (256, "alderlake")])
def test_with_vnni_a_group_is_one_instruction(bits: int, cpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dualflow.backends.llvm.product.gemm.integer_multiply_add", lambda bits: VNNI)
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("x86_64-unknown-linux-gnu").create_target_machine(cpu=cpu, opt=2)
    assembly = target.emit_assembly(llvm.parse_assembly(Gemm("i", bits).wide_source().text))
    assert "vpdpbusd" in assembly
    assert "vpmaddwd" not in assembly


def test_other_backends_and_processors_compute_sums_in_loops() -> None:
    x, w = drawn(6, 5, 7, 3)
    f = df.function(lambda x, w: df.quantization.integer_product(x, w), backend="numba")
    np.testing.assert_array_equal(f(x, w), exact(x, w))
    program = (
        "import numpy as np, dualflow as df\n"
        "x, w = np.full((3, 40), 255, np.uint8), np.full((10, 9, 4), -128, np.int8)\n"
        "f = df.function(lambda x, w: df.quantization.integer_product(x, w))\n"
        "print(set(f(x, w).numpy().ravel().tolist()), 'numpy:' not in f.status())\n"
    )
    environment = os.environ | {"DUALFLOW_DISABLE": "product"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.stdout == f"{{{-255 * 128 * 40}}} True\n", done.stderr
