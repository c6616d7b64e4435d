"""Linear algebra; see :mod:`keras.ops.linalg`."""

from __future__ import annotations

from typing import Any

from keras.src.backend.common.backend_utils import standardize_axis_for_numpy

import dualflow as df
import dualflow.numpy as dnp
from dualflow.function.control.scan_loop import scan_loop
from keras_dualflow.src.ops.core import cast
from keras_dualflow.src.ops.promotion import floats, promote, result_type, tensor


def cholesky(a: Any, upper: bool = False) -> Any:
    lower = df.linalg.cholesky(tensor(a))
    return df.linalg.adjoint(lower) if upper else lower


def cholesky_inverse(a: Any, upper: bool = False) -> Any:
    """The inverse of the matrix whose Cholesky factor is ``a``."""
    a = tensor(a)
    lower = df.linalg.adjoint(a) if upper else a
    return df.linalg.cholesky_solve(lower, df.eye(a.shape[-1], batch_shape=a.shape[:-2], dtype=a.dtype))


def det(a: Any) -> Any:
    return df.linalg.det(tensor(a))


def eig(a: Any) -> Any:
    return tuple(df.linalg.eig(tensor(a)))


def eigh(a: Any) -> Any:
    return tuple(df.linalg.eigh(tensor(a)))


def inv(a: Any) -> Any:
    return df.linalg.inv(tensor(a))


def lu_factor(a: Any) -> tuple[Any, Any]:
    """The factors of ``a`` in one matrix, and the pivots, as in LAPACK."""
    factors, order = df.linalg.lu(tensor(a))
    return factors, _exchanges(order)


def _exchanges(order: Any) -> Any:
    """The pivots whose exchanges, from the first row on, permute the rows into an order."""
    count = order.shape[-1]
    indices = df.range(count)

    def exchange(carry: list[Any], row: list[Any]) -> tuple[list[Any], list[Any]]:
        (current,), (index, target) = carry, row
        target = df.expand_dims(target, -1)
        pivot = df.argmax(cast(df.equal(current, target), "int32"), -1, output_type=current.dtype)
        displaced = df.expand_dims(df.gather(current, index, axis=-1), -1)
        is_pivot = df.equal(indices, df.expand_dims(pivot, -1))
        current = df.where(df.equal(indices, index), target, df.where(is_pivot, displaced, current))
        return [current], [pivot]

    start = df.broadcast_to(indices, df.shape(order))
    scanned = [indices, dnp.moveaxis(order, -1, 0)]
    _, (pivots,) = scan_loop(exchange, [start], scanned, count, reverse=False)
    return dnp.moveaxis(pivots, 0, -1)


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    x = tensor(x)
    dtype = x.dtype.name
    if not x.dtype.is_inexact:
        dtype = result_type(x.dtype, float)
    return dnp.linalg.norm(cast(x, dtype), ord, standardize_axis_for_numpy(axis), keepdims)


def qr(x: Any, mode: str = "reduced") -> Any:
    if mode not in ("reduced", "complete"):
        raise ValueError(
            "`mode` argument value not supported. Expected one of {'reduced', 'complete'}. "
            f"Received: mode={mode}"
        )
    return tuple(df.linalg.qr(tensor(x), full_matrices=mode == "complete"))


def solve(a: Any, b: Any) -> Any:
    return dnp.linalg.solve(*promote(a, b))


def solve_triangular(a: Any, b: Any, lower: bool = False) -> Any:
    a, b = promote(a, b)
    if len(b.shape) == len(a.shape) - 1:
        return df.squeeze(df.linalg.triangular_solve(a, df.expand_dims(b, -1), lower), -1)
    return df.linalg.triangular_solve(a, b, lower)


def svd(x: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    x = tensor(x)
    if not compute_uv:
        return df.linalg.svd(x, compute_uv=False)
    values, left, right = df.linalg.svd(x, full_matrices)
    return left, values, df.linalg.adjoint(right)


def lstsq(a: Any, b: Any, rcond: float | None = None) -> Any:
    a, b = promote(a, b)
    return dnp.linalg.lstsq(a, b, rcond)[0]


def matrix_rank(x: Any, tol: Any = None) -> Any:
    return cast(df.linalg.matrix_rank(floats(x), tol), "int32")


def pinv(x: Any, rcond: Any = None) -> Any:
    return dnp.linalg.pinv(tensor(x), **({} if rcond is None else {"rcond": rcond}))


def jvp(fun: Any, primals: Any, tangents: Any, has_aux: bool = False) -> Any:
    """The value of ``fun`` at ``primals``, and its derivative in the direction of ``tangents``."""
    primals, tangents = [tensor(x) for x in primals], [tensor(x) for x in tangents]
    with df.autodiff.ForwardAccumulator(primals, tangents) as accumulator:
        result = fun(*primals)
        value, extra = result if has_aux else (result, None)
        moved = df.nest.map_structure(
            lambda y: accumulator.jvp(y, unconnected_gradients=df.UnconnectedGradients.ZERO), value
        )
    return (value, moved, extra) if has_aux else (value, moved)
