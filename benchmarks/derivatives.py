"""Workloads of derivatives: vmap, jacobians and hessians, compared with NumPy code written by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import dualflow as df
from benchmarks.workloads import Array, Workload

autodiff = df.autodiff


def derivative_workloads(quick: bool = False) -> Iterator[Workload]:
    """A workload for each kind of derivative; ``quick`` selects tiny sizes, for tests of the benchmark."""
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> Array:
        return rng.standard_normal(shape).astype(np.float32)

    examples, width, hidden = (4, 3, 5) if quick else (256, 32, 64)
    first, second = normal(width, hidden) / width, normal(hidden) / hidden
    x, y = normal(examples, width), normal(examples)
    numbers = (1 + np.abs(normal(8 if quick else 10_000))).astype(np.float32)

    def row(
        name: str, inputs: tuple[Array, ...], function: Callable[..., Any], reference: Callable[..., Any]
    ) -> Workload:
        return Workload(name, inputs, lambda: function, lambda: reference)

    gradients = autodiff.vmap(autodiff.grad(loss, (0, 1)), (None, None, 0, 0))
    yield row("gradients for each example, 256", (first, second, x, y), gradients, gradients_numpy)
    yield row("jacobian, 64x32", (first, x[0]), autodiff.jacobian(layer, 1), jacobian_numpy)
    yield row("hessian, 32x32", (first, second, x[0]), autodiff.hessian(network, 2), hessian_numpy)
    yield row("a loop for each row, 10k", (numbers,), autodiff.vmap(square_root), square_roots_numpy)


def layer(first: Any, x: Any) -> Any:
    return df.tanh(df.linalg.matvec(first, x, transpose_a=True))


def network(first: Any, second: Any, x: Any) -> Any:
    return df.tensordot(layer(first, x), second, 1)


def loss(first: Any, second: Any, x: Any, y: Any) -> Any:
    return (network(first, second, x) - y) ** 2


def square_root(x: Any) -> Any:
    """A square root by Newton's method, which needs more iterations for larger numbers."""
    root, _ = df.while_loop(
        lambda root, x: df.abs(root * root - x) > 1e-5 * x,
        lambda root, x: (0.5 * (root + x / root), x),
        (x, x),
    )
    return root


def gradients_numpy(first: Array, second: Array, x: Array, y: Array) -> tuple[Array, Array]:
    hidden = np.tanh(x @ first)
    slope = 2 * (hidden @ second - y)
    back = slope[:, None] * second * (1 - hidden**2)
    return x[:, :, None] * back[:, None, :], slope[:, None] * hidden


def jacobian_numpy(first: Array, x: Array) -> Array:
    return (1 - np.tanh(x @ first) ** 2)[:, None] * first.T


def hessian_numpy(first: Array, second: Array, x: Array) -> Array:
    hidden = np.tanh(x @ first)
    return (first * (-2 * hidden * (1 - hidden**2) * second)) @ first.T


def square_roots_numpy(x: Array) -> Array:
    root, active = x.copy(), np.ones(x.shape, bool)
    while active.any():
        root = np.where(active, 0.5 * (root + x / root), root)
        active = np.abs(root * root - x) > np.float32(1e-5) * x
    return root
