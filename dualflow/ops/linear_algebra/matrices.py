"""The matrices that ops take: float32, float64, complex64 or complex128, of two axes or more.

The functions with ``Spec`` in their arguments serve the rules of ops, the others their kernels, which raise
for what the rules refuse.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Dim, Shape, broadcast
from dualflow.core.spec import TensorSpec
from dualflow.sizes.size_functions import common_size

_DTYPES: Final = ("float32", "float64", "complex64", "complex128")


def matrices(x: TensorSpec) -> tuple[Shape, Dim, Dim]:
    """The batch, rows and columns of matrices.

    Raises:
        DTypeError: the dtype is none of LAPACK's four.
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
        DTypeError: the dtype is none of LAPACK's four.
        InvalidArgumentError: fewer than two axes, or not as many rows as columns.
    """
    batch, rows, columns = matrices(x)
    if rows is not None and columns is not None and rows != columns:
        raise InvalidArgumentError(f"Input matrix must be square, but the shape is {x.shape}.")
    return batch, columns if rows is None else rows


def same_squares(x: TensorSpec) -> TensorSpec:
    """The type rule of an op from square matrices to square matrices: the spec of the input.

    Raises:
        DTypeError: the dtype is none of LAPACK's four.
        InvalidArgumentError: fewer than two axes, or not as many rows as columns.
    """
    squares(x)
    return x


def require_square_shapes(x: Sequence[int], *others: Sequence[int], **attrs: Any) -> list[Sequence[int]]:
    """The rule of :attr:`Op.required_shapes` of ops on square matrices."""
    size = common_size(*x[-2:]) if len(x) > 1 else None
    return [x if size is None else (*x[:-2], size, size), *others]


def require_solution_shapes(a: Sequence[int], b: Sequence[int], **attrs: Any) -> list[Sequence[int]]:
    """The rule of :attr:`Op.required_shapes` of ops that solve ``a @ x = b``, of square matrices."""
    if len(a) < 2 or len(b) < 2:
        return [a, b]
    size = common_size(*a[-2:], b[-2])
    return [(*a[:-2], size, size), (*b[:-2], size, b[-1])]


def only(results: Any) -> Any:
    """The result of an op whose number of outputs depends on its attributes, and is 1 here."""
    return results[0] if isinstance(results, tuple) else results


def solution(a: TensorSpec, b: TensorSpec) -> TensorSpec:
    """The spec of ``x`` in ``a @ x = b``, of square matrices.

    Raises:
        DTypeError: the dtype is none of LAPACK's four.
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
    """Raise an error unless each array has one of LAPACK's dtypes and at least two axes.

    Raises:
        TypeError: the dtype is none of LAPACK's four.
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
        TypeError: the dtype is none of LAPACK's four.
        ValueError: fewer than two axes, or not as many rows as columns.
    """
    require_matrices(x)
    if x.shape[-2] != x.shape[-1]:
        raise ValueError("takes square matrices")


def first_singular(x: Any) -> list[int]:
    """The position in the batch of the first matrix that is not invertible."""
    indices: list[list[int]] = np.argwhere(np.linalg.slogdet(x)[0] == 0).tolist()
    return indices[0] if indices else []


def not_invertible(index: Sequence[int]) -> InvalidArgumentError:
    """The error for a matrix that is not invertible, at a position in a batch."""
    of_batch = f" (matrix {list(index)} of the batch)" if index else ""
    return InvalidArgumentError(
        f"Input matrix is not invertible{of_batch}: its columns depend on each other. Use df.linalg.pinv or "
        "df.linalg.lstsq(..., fast=False), or add a small multiple of the identity matrix."
    )


def not_positive_definite(index: Sequence[int]) -> InvalidArgumentError:
    """The error for a matrix that is not positive definite, at a position in a batch."""
    of_batch = f" (matrix {list(index)} of the batch)" if index else ""
    return InvalidArgumentError(
        "Cholesky decomposition was not successful. The input might not be valid: it is not positive "
        f"definite{of_batch}. Add a small multiple of the identity matrix, or use df.linalg.eigh, or for "
        "df.linalg.lstsq fast=False."
    )
