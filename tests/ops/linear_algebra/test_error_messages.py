"""Errors of ``df.linalg``, in both modes: each states the rejected input and what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from error_cases import ErrorCases

import dualflow as df
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.ops.record import REGISTRY

L = df.linalg
V, M, Q = df.ones([3]), df.ones([2, 3]), df.eye(3)
HALVES, BANDS = df.ones([2, 2], df.float16), df.ones([3, 4])
SINGULAR = df.constant([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 2.0], [2.0, 4.0]]])
NEGATIVE = df.constant([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, -1.0]]])
NAN = df.fill([2, 2], np.nan)


def gradient(function: Callable[[Any], Any], x: Any) -> Any:
    with df.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return tape.gradient(y, x)


def traced(function: Callable[[Any], Any], *shape: int | None) -> Any:
    return df.function(function).get_concrete_function(df.TensorSpec(shape))


CASES: dict[str, tuple[Callable[[], Any], type[Exception], str, str]] = {
    # dtypes and shapes
    "halves": (lambda: L.inv(HALVES), DTypeError, r"inv\(float16\[2, 2\]\)", "df.cast"),
    "integers": (lambda: L.cholesky([[1]]), DTypeError, "not int32", "df.cast"),
    "halves of a norm": (lambda: df.norm(HALVES, 2, [0, 1]), DTypeError, "not float16", "df.cast"),
    "a vector": (lambda: L.det(V), InvalidArgumentError, r"determinant.*shape is \(3,\)", "two axes or more"),
    "no square": (lambda: L.eigh(M), InvalidArgumentError, r"must be square, but the shape is \(2, 3\)", ""),
    "sides of other rows": (
        lambda: L.solve(Q, M),
        InvalidArgumentError,
        "3 rows and the right-hand sides 2",
        "as many",
    ),
    "a side without columns": (lambda: L.solve(Q, V), InvalidArgumentError, r"shape is \(3,\)", "two axes"),
    "a triangle and other rows": (
        lambda: L.triangular_solve(Q, M),
        InvalidArgumentError,
        "3 rows",
        "as many",
    ),
    "the logarithm of reals": (lambda: L.logm(Q), DTypeError, "takes complex64", "df.cast"),
    "the diagonal of a vector": (
        lambda: L.diag_part(V),
        InvalidArgumentError,
        r"shape is \(3,\)",
        "two axes",
    ),
    "a diagonal of a scalar": (
        lambda: L.diag(1.0),
        InvalidArgumentError,
        r"shape is \(\)",
        "give it an axis",
    ),
    "no axis for a tensor's diagonal": (
        lambda: L.tensor_diag(1.0),
        InvalidArgumentError,
        r"shape is \(\)",
        "one axis",
    ),
    "half of a tensor": (
        lambda: L.tensor_diag_part(M),
        InvalidArgumentError,
        r"shape is \(2, 3\)",
        "twice the same",
    ),
    "diagonals of another batch": (
        lambda: L.set_diag(df.ones([2, 2, 2]), [1.0, 2.0]),
        InvalidArgumentError,
        r"shape \(2,\) do not fit matrices of shape \(2, 2, 2\)",
        "each its own",
    ),
    "a diagonal of another length": (
        lambda: L.set_diag(M, [1.0, 2.0], k=2),
        InvalidArgumentError,
        "2 elements do not fit matrices of 2 rows and 3 columns",
        "diagonal 2 has 1",
    ),
    "a cross product of pairs": (
        lambda: L.cross([1, 2], [3, 4]),
        InvalidArgumentError,
        r"3 elements.*\(2,\)",
        "",
    ),
    "a cross product of bools": (lambda: L.cross([True] * 3, [True] * 3), DTypeError, "not bools", "df.cast"),
    "least squares of a vector": (
        lambda: L.lstsq(Q, V),
        InvalidArgumentError,
        r"\(3, 3\) and \(3,\)",
        "two axes",
    ),
    # norms
    "an unknown norm": (lambda: df.norm(V, ord="big"), InvalidArgumentError, "not 'big'", "'euclidean'"),
    "a norm over three axes": (
        lambda: df.norm(df.ones([1, 1, 1]), axis=(0, 1, 2)),
        InvalidArgumentError,
        "an integer or two of them",
        r"not \(0, 1, 2\)",
    ),
    "a norm that matrices don't have": (
        lambda: df.norm(M, 3, axis=(0, 1)),
        InvalidArgumentError,
        "'fro', 1, 2 or inf, not 3",
        "one axis",
    ),
    # banded matrices
    "too many diagonals": (
        lambda: L.tridiagonal_solve(df.ones([4, 3]), V),
        InvalidArgumentError,
        r"\(4, 3\)",
        "3 rows",
    ),
    "bands of other sizes": (
        lambda: L.banded_triangular_solve(BANDS, M),
        InvalidArgumentError,
        "4 rows and the right-hand sides 2",
        "as many",
    ),
    "bands of another number": (
        lambda: REGISTRY["banded_solve"].specs(
            [TensorSpec([3, 4]), TensorSpec([4, 1])], {"band": (0, 1), "transpose": False}
        ),
        InvalidArgumentError,
        "2 diagonals",
        "as many rows",
    ),
    "no band": (
        lambda: L.banded_triangular_solve(df.ones([0, 3]), Q),
        InvalidArgumentError,
        r"\(0, 3\)",
        "1 diagonal or",
    ),
    "an unknown format": (
        lambda: L.tridiagonal_matmul(BANDS, Q, "dense"),
        InvalidArgumentError,
        "not 'dense'",
        "'matrix'",
    ),
    "two of three diagonals": (
        lambda: L.tridiagonal_solve([V, V], V, "sequence"),
        InvalidArgumentError,
        "list of three",
        "above, main, below",
    ),
    "a tridiagonal product of other rows": (
        lambda: L.tridiagonal_matmul(BANDS, Q),
        InvalidArgumentError,
        r"needs a right-hand side of 4 rows, not of shape \(3, 3\)",
        "",
    ),
    "a singular matrix, perturbed": (
        lambda: L.tridiagonal_solve(BANDS, df.ones([4]), perturb_singular=True),
        InvalidArgumentError,
        "does not perturb",
        "add a small number",
    ),
    "diagonals of other ranks": (
        lambda: L.eigh_tridiagonal(M, V),
        InvalidArgumentError,
        r"\(2, 3\) and \(3,\)",
        "n - 1",
    ),
    "a missing range": (
        lambda: L.eigh_tridiagonal(V, V[1:], select="i"),
        InvalidArgumentError,
        "not 'i' and None",
        "ascending",
    ),
    "an empty range": (
        lambda: L.eigh_tridiagonal(V, V[1:], select="i", select_range=(2, 1)),
        InvalidArgumentError,
        r"not 'i' and \(2, 1\)",
        "ascending",
    ),
    # factors
    "an order of other rows": (
        lambda: L.lu_reconstruct(Q, [[0, 1, 2]]),
        InvalidArgumentError,
        r"\(3, 3\) and \(1, 3\)",
        "df.linalg.lu returns",
    ),
    "a vector with factors": (
        lambda: L.lu_solve(Q, [0, 1, 2], V),
        InvalidArgumentError,
        r"\(3,\)",
        "df.expand_dims",
    ),
    # values
    "a singular matrix": (
        lambda: L.inv(SINGULAR),
        InvalidArgumentError,
        r"Input matrix is not invertible \(matrix \[1\] of the batch\)",
        "df.linalg.pinv",
    ),
    "singular equations": (
        lambda: L.solve(SINGULAR[1], M[:, :1]),
        InvalidArgumentError,
        "not invertible: its",
        "lstsq",
    ),
    "factors of a singular matrix": (
        lambda: L.lu(SINGULAR),
        InvalidArgumentError,
        r"not invertible \(matrix",
        "pinv",
    ),
    "a singular band": (
        lambda: L.banded_triangular_solve([[1.0, 0.0]], df.ones([2, 1])),
        InvalidArgumentError,
        "not invertible",
        "df.linalg.pinv",
    ),
    "the slope of a determinant of 0": (
        lambda: gradient(L.det, SINGULAR),
        InvalidArgumentError,
        "not invertible",
        "pinv",
    ),
    "a negative matrix": (
        lambda: L.cholesky(NEGATIVE),
        InvalidArgumentError,
        r"Cholesky decomposition was not successful.*\(matrix \[1\] of the batch\)",
        "df.linalg.eigh",
    ),
    "eigenvalues of nan": (lambda: L.eigvalsh(NAN), InvalidArgumentError, "inf or nan", "check_numerics"),
    "eigenvectors of nan": (lambda: L.eigh(NAN), InvalidArgumentError, "inf or nan", "check_numerics"),
    "eigenvectors of inf": (
        lambda: L.eig(1 / df.zeros([2, 2])),
        InvalidArgumentError,
        "Eigen.*inf or",
        "check_numerics",
    ),
    # gradients
    "a basis that may rotate": (
        lambda: gradient(lambda x: L.qr(x, full_matrices=True).q, df.ones([3, 2])),
        InvalidArgumentError,
        r"no gradient with full_matrices=True .*\(3, 2\)",
        "full_matrices=False",
    ),
}


class TestErrorMessages(ErrorCases):
    cases = CASES
    internal = ("bands of another number",)
    tested_elsewhere: ClassVar = {"ops/linear_algebra/bands.py": "test_diagonals.py"}
    raised_in = ("ops/linear_algebra/*.py",)


@pytest.mark.parametrize(
    ("function", "x"),
    [(L.inv, SINGULAR), (lambda x: L.solve(x, x), SINGULAR), (L.lu, SINGULAR), (L.cholesky, NEGATIVE)],
)
def test_a_compiled_function_names_the_line_that_requested(function: Callable[[Any], Any], x: Any) -> None:
    @df.function
    def compiled(x: Any) -> Any:
        return function(x)

    with pytest.raises(InvalidArgumentError, match=r"matrix \[1\] of the batch") as caught:
        compiled(x)
    notes = "\n".join(getattr(caught.value, "__notes__", []))
    assert Path(__file__).name in notes + str(caught.value)


def test_matrices_that_fail_do_not_spoil_the_next_call() -> None:
    compiled = df.function(L.inv)
    with pytest.raises(InvalidArgumentError):
        compiled(SINGULAR)
    np.testing.assert_array_equal(compiled(SINGULAR[:1])[0], np.eye(2))
