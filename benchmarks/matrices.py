"""Workloads of linear algebra: LAPACK in dualflow, compared with NumPy and SciPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.linalg

import dualflow as df
from benchmarks.workloads import Array, Workload


def matrix_workloads(quick: bool = False) -> Iterator[Workload]:
    """A workload for each kind of call; ``quick`` selects tiny sizes, for tests of the benchmark."""
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> Array:
        return rng.standard_normal(shape).astype(np.float32)

    side, count = (8, 4) if quick else (256, 1000)
    matrix = normal(side, side) + 4 * np.sqrt(side, dtype=np.float32) * np.eye(side, dtype=np.float32)
    positive = matrix @ matrix.T / side
    small = normal(count, 8, 8) + 12 * np.eye(8, dtype=np.float32)
    triangles, sides = np.tril(small), normal(count, 8, 2)
    linalg = df.linalg

    def row(
        name: str, inputs: tuple[Array, ...], function: Callable[..., Any], reference: Callable[..., Any]
    ) -> Workload:
        return Workload(name, inputs, lambda: function, lambda: reference)

    yield row("Cholesky, 8x8", (positive[:8, :8],), linalg.cholesky, np.linalg.cholesky)
    yield row("Cholesky, 256x256", (positive,), linalg.cholesky, np.linalg.cholesky)
    yield row("inverse, 256x256", (matrix,), linalg.inv, np.linalg.inv)
    yield row("solve, 1000 of 8x8", (small, sides), linalg.solve, np.linalg.solve)
    yield row(
        "triangular solve, 1000 of 8x8",
        (triangles, sides),
        linalg.triangular_solve,
        lambda a, b: np.stack(
            [scipy.linalg.solve_triangular(x, y, lower=True) for x, y in zip(a, b, strict=True)]
        ),
    )
    yield row("singular values, 256x256", (matrix,), lambda x: linalg.svd(x)[0], svd_numpy)
    yield row("eigenvalues, 256x256", (positive,), linalg.eigvalsh, np.linalg.eigvalsh)
    yield row("exponential, 256x256", (matrix / side,), linalg.expm, scipy.linalg.expm)
    yield row("log-likelihood and gradient, 256", (positive, matrix[:, :1]), likelihood, likelihood_numpy)


def svd_numpy(x: Array) -> Array:
    """Singular values, computed with the singular vectors, as in ``df.linalg.svd``."""
    return np.linalg.svd(x, full_matrices=False).S


def likelihood(covariance: Any, y: Any) -> tuple[Any, Any]:
    """The negative logarithm of a normal density, up to a constant, and its gradient to the covariance."""
    with df.GradientTape() as tape:
        tape.watch(covariance)
        factor = df.linalg.cholesky(covariance)
        distance = df.reduce_sum(y * df.linalg.cholesky_solve(factor, y))
        value = 0.5 * distance + df.reduce_sum(df.math.log(df.linalg.diag_part(factor)))
    return value, tape.gradient(value, covariance)


def likelihood_numpy(covariance: Array, y: Array) -> tuple[Array, Array]:
    """:func:`likelihood` in NumPy, with a gradient written by hand."""
    factor = np.linalg.cholesky(covariance)
    inverse = scipy.linalg.cho_solve((factor, True), np.eye(len(y), dtype=np.float32))
    solved = inverse @ y
    value = 0.5 * np.sum(y * solved) + np.sum(np.log(np.diag(factor)))
    return value, 0.5 * (inverse - solved @ solved.T)
