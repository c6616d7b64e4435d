"""Matrices without rows and batches without matrices have results and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dualflow as df

L = df.linalg


def _sides(a: Any) -> Any:
    return df.zeros([*a.shape[:-1], 2], a.dtype)


CASES: dict[str, Callable[[Any], Any]] = {
    "cholesky": L.cholesky,
    "cholesky_solve": lambda a: L.cholesky_solve(a, _sides(a)),
    "det": L.det,
    "eigh": L.eigh,
    "eig": L.eig,
    "eigvals": L.eigvals,
    "expm": L.expm,
    "inv": L.inv,
    "logdet": L.logdet,
    "lstsq": lambda a: L.lstsq(a, _sides(a)),
    "lstsq by qr": lambda a: L.lstsq(a, _sides(a), fast=False),
    "lstsq of more columns": lambda a: L.lstsq(df.zeros([*a.shape[:-1], 3], a.dtype), _sides(a)),
    "lu": L.lu,
    "lu_solve": lambda a: L.lu_solve(*L.lu(a), _sides(a)),
    "lu_matrix_inverse": lambda a: L.lu_matrix_inverse(*L.lu(a)),
    "lu_reconstruct": lambda a: L.lu_reconstruct(*L.lu(a)),
    "matrix_rank": L.matrix_rank,
    "norm": lambda a: L.norm(a, axis=(-2, -1)),
    "pinv": L.pinv,
    "qr": L.qr,
    "slogdet": L.slogdet,
    "solve": lambda a: L.solve(a, _sides(a)),
    "sqrtm": L.sqrtm,
    "svd": L.svd,
    "trace": L.trace,
    "triangular_solve": lambda a: L.triangular_solve(a, _sides(a)),
}
SHAPES = [(0, 0), (2, 0, 0), (0, 3, 3), (0, 0, 0)]


def _leaves(results: Any) -> list[Any]:
    return list(results) if isinstance(results, tuple) else [results]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [df.float64, df.complex128])
def test_empty_matrices_have_results_and_gradients(name: str, shape: tuple[int, ...], dtype: Any) -> None:
    function = CASES[name]

    def both(a: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(a)
            results = [x for x in _leaves(function(a)) if x.dtype.is_inexact]
            total = sum([df.reduce_sum(df.math.real(x)) for x in results], df.constant(0.0, df.float64))
        return *results, tape.gradient(total, a, unconnected_gradients="zero")

    a = df.zeros(shape, dtype)
    now, compiled = both(a), df.function(both)(a)
    assert [x.shape for x in now] == [x.shape for x in compiled]
    assert now[-1].shape == shape
    for x, y in zip(now, compiled, strict=True):
        assert not df.math.is_nan(df.math.abs(x)).numpy().any()
        assert x.numpy().tolist() == y.numpy().tolist()
