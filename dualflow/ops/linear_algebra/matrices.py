"""What ops of matrices take: float32, float64, complex64 or complex128, of two axes or more.

The functions with ``Spec`` in their arguments serve the rules of ops, the others their kernels, which fail
on what the rules refuse.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Dim, Shape, broadcast
from dualflow.core.spec import TensorSpec

_DTYPES: Final = ("float32", "float64", "complex64", "complex128")


def matrices(x: TensorSpec) -> tuple[Shape, Dim, Dim]:
    """The batch, rows and columns of matrices.

    Raises:
        DTypeError: another dtype than LAPACK's four.
        InvalidArgumentError: fewer than two axes.
    """
    if x.dtype.name not in _DTYPES:
        raise DTypeError(
            f"takes float32, float64, complex64 or complex128, not {x.dtype.name}; convert the input with "
            "df.cast."
        )
    if len(x.shape) < 2:
        raise InvalidArgumentError(f"takes matrices, but the shape is {x.shape}; give it two axes or more.")
    return Shape(x.shape[:-2]), x.shape[-2], x.shape[-1]


def squares(x: TensorSpec) -> tuple[Shape, Dim]:
    """The batch and the size of square matrices.

    Raises:
        DTypeError: another dtype than LAPACK's four.
        InvalidArgumentError: fewer than two axes, or not as many rows as columns.
    """
    batch, rows, columns = matrices(x)
    if rows is not None and columns is not None and rows != columns:
        raise InvalidArgumentError(f"Input matrix must be square, but the shape is {x.shape}.")
    return batch, columns if rows is None else rows


def solution(a: TensorSpec, b: TensorSpec) -> TensorSpec:
    """The spec of ``x`` in ``a @ x = b``, of square matrices.

    Raises:
        DTypeError: another dtype than LAPACK's four.
        InvalidArgumentError: no matrices, ``a`` not square, or not as many rows in ``b``.
    """
    (first, size), (second, rows, columns) = squares(a), matrices(b)
    if size is not None and rows is not None and size != rows:
        raise InvalidArgumentError(
            f"the matrices have {size} rows and the right-hand sides {rows} (shapes {a.shape} and "
            f"{b.shape}); give as many."
        )
    return TensorSpec.of(
        Shape([*broadcast([first, second]), rows if size is None else size, columns]), b.dtype
    )


def require_matrices(*arrays: Any) -> None:
    """Fail on arrays that :func:`matrices` refuses.

    Raises:
        TypeError: another dtype than LAPACK's four.
        ValueError: fewer than two axes.
    """
    for x in arrays:
        if x.dtype.char not in "fdFD":
            raise TypeError("takes float32, float64, complex64 or complex128")
        if x.ndim < 2:
            raise ValueError("takes matrices")


def require_squares(x: Any) -> None:
    """Fail on arrays that :func:`squares` refuses.

    Raises:
        TypeError: another dtype than LAPACK's four.
        ValueError: fewer than two axes, or not as many rows as columns.
    """
    require_matrices(x)
    if x.shape[-2] != x.shape[-1]:
        raise ValueError("takes square matrices")


def not_invertible(x: Any) -> InvalidArgumentError:
    """The error for square matrices that are not all invertible; it says which is the first of a batch."""
    place = ""
    if x.ndim > 2:
        singular = np.argwhere(np.linalg.slogdet(x)[0] == 0)
        place = f" (matrix {singular[0].tolist()} of the batch)" if singular.size else ""
    return InvalidArgumentError(
        f"Input matrix is not invertible{place}: its columns depend on each other. Use df.linalg.pinv or "
        "df.linalg.lstsq(..., fast=False), or add a small multiple of the identity matrix."
    )
