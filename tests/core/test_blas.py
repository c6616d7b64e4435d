"""The BLAS that NumPy loaded: matrix products by address, with integers of the stated width."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dualflow.core import blas

ROW_MAJOR, COLUMN_MAJOR, NO_TRANSPOSE, TRANSPOSE = 101, 102, 111, 112
Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module")
def blas_library() -> blas.Blas:
    """The BLAS of this process; the tests of its routines need one."""
    answer = blas.find()
    if answer is None:
        pytest.skip("NumPy's BLAS is not to be found here")
    return answer


def routine(blas_library: blas.Blas, name: str, *kinds: Any) -> Callable[..., None]:
    """A routine as a function; ``int`` among the kinds is an integer of the library's width."""
    integer = {32: ctypes.c_int32, 64: ctypes.c_int64}[blas_library.int_bits]
    types = [integer if kind is int else kind for kind in kinds]
    return ctypes.CFUNCTYPE(None, *types)(blas_library.symbols[name])


@pytest.mark.parametrize(
    ("name", "dtype", "scalar"), [("sgemm", "f4", ctypes.c_float), ("dgemm", "f8", ctypes.c_double)]
)
def test_a_matrix_product(blas_library: blas.Blas, name: str, dtype: str, scalar: type) -> None:
    m, n, k = 5, 3, 4
    a, b = np.arange(m * k, dtype=dtype).reshape(m, k), np.arange(k * n, dtype=dtype).reshape(n, k)
    c = np.ones((m, n), dtype)
    enum, pointer = ctypes.c_int32, ctypes.c_void_p
    gemm = routine(
        blas_library,
        "cblas_" + name,
        enum,
        enum,
        enum,
        int,
        int,
        int,
        scalar,
        pointer,
        int,
        pointer,
        int,
        scalar,
        pointer,
        int,
    )
    addresses = (array.ctypes.data for array in (a, b, c))
    at_a, at_b, at_c = addresses
    gemm(ROW_MAJOR, NO_TRANSPOSE, TRANSPOSE, m, n, k, 2.0, at_a, k, at_b, k, 10.0, at_c, n)
    assert (c == 2 * a @ b.T + 10).all()


@pytest.mark.parametrize(
    ("name", "dtype", "scalar"), [("sgemv", "f4", ctypes.c_float), ("dgemv", "f8", ctypes.c_double)]
)
def test_a_matrix_by_a_vector(blas_library: blas.Blas, name: str, dtype: str, scalar: type) -> None:
    m, n = 6, 4
    a, x, y = np.arange(m * n, dtype=dtype).reshape(m, n), np.arange(n, dtype=dtype), np.zeros(m, dtype)
    enum, pointer = ctypes.c_int32, ctypes.c_void_p
    gemv = routine(
        blas_library,
        "cblas_" + name,
        enum,
        enum,
        int,
        int,
        scalar,
        pointer,
        int,
        pointer,
        int,
        scalar,
        pointer,
        int,
    )
    gemv(ROW_MAJOR, NO_TRANSPOSE, m, n, 1.0, a.ctypes.data, n, x.ctypes.data, 1, 0.0, y.ctypes.data, 1)
    assert (y == a @ x).all()


def test_a_negative_stride_is_read_at_its_full_width(blas_library: blas.Blas) -> None:
    """With integers of the wrong width -1 would be read as 4294967295."""
    x, y = np.arange(4.0), np.zeros(4)
    enum, pointer, scalar = ctypes.c_int32, ctypes.c_void_p, ctypes.c_double
    gemv = routine(
        blas_library,
        "cblas_dgemv",
        enum,
        enum,
        int,
        int,
        scalar,
        pointer,
        int,
        pointer,
        int,
        scalar,
        pointer,
        int,
    )
    eye = np.eye(4)
    gemv(COLUMN_MAJOR, NO_TRANSPOSE, 4, 4, 1.0, eye.ctypes.data, 4, x.ctypes.data, -1, 0.0, y.ctypes.data, 1)
    assert (y == x[::-1]).all()


def test_the_number_of_threads_can_be_set(blas_library: blas.Blas) -> None:
    if blas_library.set_num_threads is None:
        pytest.skip(f"{blas_library.name} has no such function")
    threadpoolctl = pytest.importorskip("threadpoolctl")
    with threadpoolctl.threadpool_limits(2, "blas"):  # which sets back what there was
        ctypes.CFUNCTYPE(None, ctypes.c_int)(blas_library.set_num_threads)(1)
        libraries = threadpoolctl.threadpool_info()
        a = np.random.default_rng(0).normal(size=(200, 200))
        assert np.allclose((a @ a)[0], a[0] @ a)
    assert 1 in [library["num_threads"] for library in libraries if library["user_api"] == "blas"]


def test_it_has_a_name(blas_library: blas.Blas) -> None:
    assert blas_library.name


@pytest.mark.skipif(sys.platform != "linux", reason="wheels of NumPy bring their own library there")
def test_the_library_is_one_that_numpy_loaded() -> None:
    program = """
import numpy, sys
def libraries():
    return {line.split("/", 1)[1] for line in open("/proc/self/maps") if ".so" in line and "/" in line}
before = libraries()
from dualflow.core import blas
before |= libraries()
library = blas.find()
sys.exit(libraries() != before)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
