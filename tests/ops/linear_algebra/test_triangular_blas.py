"""One triangular system: for every dtype and layout, by NumPy's BLAS and by SciPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dualflow.ops.linear_algebra import triangular_blas

SOLVERS = [triangular_blas.solve, triangular_blas._by_scipy]
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "apart": lambda x: np.repeat(np.repeat(x, 2, 0), 2, 1)[::2, ::2],
    "backwards": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("solve", SOLVERS)
def test_the_product_with_the_triangle_is_the_right_side(solve: Any, dtype: str, layout: str) -> None:
    rng = np.random.default_rng(0)
    full = rng.normal(size=(9, 9)) / 9 + np.eye(9) * 2
    sides = rng.normal(size=(9, 4)) + (1j * rng.normal(size=(9, 4)) if dtype in "FD" else 0)
    a, b = LAYOUTS[layout](full.astype(dtype)), LAYOUTS[layout](sides.astype(dtype))
    for lower, part in ((True, np.tril), (False, np.triu)):
        before = b.copy()
        x = solve(a, b, lower)
        np.testing.assert_array_equal(b, before)
        assert x.dtype == b.dtype
        np.testing.assert_allclose(part(a) @ x, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_nothing_to_solve(shape: tuple[int, int]) -> None:
    result = triangular_blas.solve(np.eye(shape[0], dtype="f"), np.ones(shape, "f"), True)
    assert result.shape == shape


def test_a_zero_on_the_diagonal_gives_no_number() -> None:
    result = triangular_blas.solve(np.zeros((1, 1)), np.array([[1.0, 0.0]]), True)
    np.testing.assert_array_equal(result, [[np.inf, np.nan]])
