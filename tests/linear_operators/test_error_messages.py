"""What linear operators refuse: what was wrong, and what to do about it."""

from __future__ import annotations

import numpy as np
from error_cases import ErrorCases

import dualflow as df
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.status_errors import UnimplementedError
from dualflow.linear_operators.blocks import BlockOperator
from dualflow.linear_operators.orthogonal import OrthogonalOperator

L = df.linalg
A = np.array([[4.0, 1.0], [1.0, 3.0]])
FULL, TALL, EYE = (
    L.LinearOperatorFullMatrix(A),
    L.LinearOperatorFullMatrix(A[:, :1]),
    L.LinearOperatorIdentity(2),
)
DIAG, WIDE = L.LinearOperatorDiag(A[0]), L.LinearOperatorDiag([1.0, 2.0, 3.0])


class Bare(df.linalg.LinearOperator):
    def _shape(self):
        return df.TensorShape([2, 2])


class Dynamic(df.linalg.LinearOperator):
    def _shape(self):
        return df.TensorShape([None, 2])


class Blocks(BlockOperator):
    _diagonal = (L.LinearOperatorIdentity(1),)


CASES = {
    "a tensor": (
        lambda: df.exp(FULL),
        DTypeError,
        "where a tensor is required",
        "to_dense",
    ),
    "a hint": (
        lambda: L.LinearOperatorDiag(A[0], is_square=False),
        InvalidArgumentError,
        "always square",
        "True",
    ),
    "hints": (
        lambda: L.LinearOperatorFullMatrix(A, is_positive_definite=True, is_non_singular=False),
        InvalidArgumentError,
        "always non-singular",
    ),
    "a square": (
        lambda: L.LinearOperatorFullMatrix(A, is_square=False).is_square,
        InvalidArgumentError,
        "imply is_square=False",
        "leave the hint out",
    ),
    "no square": (
        lambda: L.LinearOperatorFullMatrix(A[:1], is_non_singular=True).determinant(),
        InvalidArgumentError,
        "imply is_square=True",
        "leave the hint out",
    ),
    "a singular inverse": (
        lambda: L.LinearOperatorInversion(FULL, is_non_singular=False),
        InvalidArgumentError,
        "the hint is False",
        "pinv",
    ),
    "a triangle": (
        lambda: L.LinearOperatorLowerTriangular(A[:1]),
        InvalidArgumentError,
        "tril holds square matrices",
        "LinearOperatorFullMatrix",
    ),
    "four diagonals": (
        lambda: L.LinearOperatorTridiag(np.ones((4, 4))),
        InvalidArgumentError,
        "(..., 3, n)",
    ),
    "a tridiagonal matrix": (
        lambda: L.LinearOperatorTridiag(A[:1], "matrix"),
        InvalidArgumentError,
        "diagonals holds square matrices",
    ),
    "the dtype of u": (
        lambda: L.LinearOperatorLowRankUpdate(FULL, np.float32(A)),
        DTypeError,
        "u has the dtype of base_operator, float64",
        "df.cast",
    ),
    "the dtype of an operator": (lambda: EYE @ FULL, DTypeError, "takes float32", "of one dtype"),
    "a reflection of nothing": (
        lambda: L.LinearOperatorHouseholder(np.zeros(0)),
        InvalidArgumentError,
        "one element or more",
    ),
    "a shared hint": (
        lambda: L.LinearOperatorAdjoint(DIAG, is_self_adjoint=False),
        InvalidArgumentError,
        "agree in is_self_adjoint",
    ),
    "integers": (lambda: L.LinearOperatorDiag([1, 2]), DTypeError, "int32", "df.cast"),
    "a scalar": (lambda: L.LinearOperatorDiag(1.0), InvalidArgumentError, "1 axes or more", "add axes"),
    "a size": (lambda: L.LinearOperatorIdentity(-1), InvalidArgumentError, "not negative"),
    "no size": (lambda: L.LinearOperatorIdentity(1.5), DTypeError, "num_rows is an integer"),
    "sizes": (lambda: L.LinearOperatorIdentity([1, 2]), InvalidArgumentError, "num_rows is a scalar"),
    "a batch": (lambda: L.LinearOperatorIdentity(2, [-1]), InvalidArgumentError, "no negative sizes"),
    "no batch": (lambda: L.LinearOperatorIdentity(2, [1.5]), DTypeError, "batch_shape holds integers"),
    "a scalar batch": (lambda: L.LinearOperatorIdentity(2, 3), InvalidArgumentError, "is a vector"),
    "an identity": (
        lambda: L.LinearOperatorIdentity(2, is_self_adjoint=False),
        InvalidArgumentError,
        "always has is_self_adjoint",
    ),
    "zeros": (lambda: L.LinearOperatorZeros(2, is_non_singular=True), InvalidArgumentError, "never has"),
    "zeros that are not square": (
        lambda: L.LinearOperatorZeros(2, 3),
        InvalidArgumentError,
        "is_square=False",
    ),
    "zeros that are not self-adjoint": (
        lambda: L.LinearOperatorZeros(2, is_self_adjoint=False),
        InvalidArgumentError,
        "leave is_self_adjoint out",
    ),
    "the inverse of zeros": (
        lambda: L.LinearOperatorZeros(2).assert_non_singular(),
        InvalidArgumentError,
        "always",
    ),
    "positive zeros": (
        lambda: L.LinearOperatorZeros(2).assert_positive_definite(),
        InvalidArgumentError,
        "always",
    ),
    "rectangular zeros": (
        lambda: L.LinearOperatorZeros(2, 3, is_square=False, is_self_adjoint=False).assert_self_adjoint(),
        InvalidArgumentError,
        "not equal to its adjoint",
    ),
    "no operator": (lambda: L.LinearOperatorComposition([A]), DTypeError, "LinearOperatorFullMatrix makes"),
    "no list": (lambda: L.LinearOperatorComposition(FULL), DTypeError, "takes a list of operators"),
    "no operators": (lambda: L.LinearOperatorKronecker([]), InvalidArgumentError, "one operator or more"),
    "two dtypes": (lambda: L.LinearOperatorBlockDiag([FULL, EYE]), DTypeError, "same dtype", "float32"),
    "a composition": (
        lambda: L.LinearOperatorComposition([TALL, FULL]).shape,
        InvalidArgumentError,
        "1 columns",
        "2 rows",
    ),
    "a product of operators": (lambda: FULL @ TALL.H, InvalidArgumentError, "incompatible", "2 rows"),
    "a product": (lambda: FULL.matvec([1.0, 2.0, 3.0]), InvalidArgumentError, "2 elements along axis -1"),
    "a vector": (lambda: FULL.matmul([1.0, 2.0]), InvalidArgumentError, "2 axes or more", "add axes"),
    "a dtype": (lambda: FULL.matvec(df.ones([2])), DTypeError, "takes float64", "df.cast"),
    "a solution": (lambda: TALL.solvevec([1.0, 2.0]), UnimplementedError, "square matrices"),
    "a determinant": (lambda: TALL.determinant(), UnimplementedError, "square matrices"),
    "a singular matrix": (
        lambda: L.LinearOperatorFullMatrix(A, is_non_singular=False).solvevec([1.0, 2.0]),
        UnimplementedError,
        "singular by its hints",
        "lstsq",
    ),
    "an inverse": (lambda: TALL.inverse(), InvalidArgumentError, "not square", "pinv"),
    "an inversion": (lambda: L.LinearOperatorInversion(TALL), InvalidArgumentError, "True or None", "pinv"),
    "a cholesky factor": (lambda: FULL.cholesky(), InvalidArgumentError, "is_positive_definite=True"),
    "eigenvalues": (lambda: FULL.eigvals(), UnimplementedError, "Only self-adjoint", "eigvals of its"),
    "positive definiteness": (
        lambda: FULL.assert_positive_definite(),
        UnimplementedError,
        "is_self_adjoint=True",
    ),
    "a logarithm": (lambda: df.linalg.logdet(FULL), InvalidArgumentError, "log_abs_determinant"),
    "a diagonal": (lambda: df.linalg.diag_part(FULL, k=1), InvalidArgumentError, "main diagonal"),
    "a right-hand side": (lambda: df.linalg.solve(A, FULL), InvalidArgumentError, "LinearOperatorFullMatrix"),
    "a transpose": (lambda: df.matmul(FULL, A, transpose_a=True), InvalidArgumentError, "adjoint_a"),
    "rows of u": (lambda: L.LinearOperatorLowRankUpdate(FULL, A[:1]), InvalidArgumentError, "2 rows"),
    "ranks": (
        lambda: L.LinearOperatorLowRankUpdate(FULL, A, A[0, :1]),
        InvalidArgumentError,
        "agree in their last axis",
    ),
    "a positive update": (
        lambda: L.LinearOperatorLowRankUpdate(FULL, A, is_diag_update_positive=False),
        InvalidArgumentError,
        "of ones",
    ),
    "kronecker checks": (
        lambda: L.LinearOperatorKronecker([TALL]).assert_non_singular(),
        InvalidArgumentError,
        "square factors",
    ),
    "square blocks": (
        lambda: L.LinearOperatorBlockDiag([TALL], is_square=None).trace(),
        UnimplementedError,
        "square blocks",
    ),
    "blocks": (
        lambda: L.LinearOperatorBlockDiag([FULL, DIAG]).matmul([df.ones([2, 1]), df.ones([3, 1])]),
        InvalidArgumentError,
        "one block",
    ),
    "numbers of blocks": (
        lambda: (
            L.LinearOperatorBlockDiag([EYE, EYE]) @ L.LinearOperatorBlockDiag([L.LinearOperatorIdentity(4)])
        ),
        InvalidArgumentError,
        "2 and 1 blocks",
    ),
    "no permutation": (lambda: L.LinearOperatorPermutation([0, 0]), InvalidArgumentError, "once"),
    "a float permutation": (lambda: L.LinearOperatorPermutation([0.0, 1.0]), DTypeError, "integers"),
    "a scalar permutation": (lambda: L.LinearOperatorPermutation(0), InvalidArgumentError, "a vector"),
    "a singular permutation": (
        lambda: L.LinearOperatorPermutation([0, 1], is_non_singular=False),
        InvalidArgumentError,
        "leave is_non_singular out",
    ),
    "a positive reflection": (
        lambda: L.LinearOperatorHouseholder([1.0, 2.0]).assert_positive_definite(),
        InvalidArgumentError,
        "always",
    ),
    "a format": (lambda: L.LinearOperatorTridiag(A, "rows"), InvalidArgumentError, "diagonals_format"),
    "two diagonals": (lambda: L.LinearOperatorTridiag(A, "sequence"), InvalidArgumentError, "three, not 2"),
    "a row and a column": (
        lambda: L.LinearOperatorToeplitz([1.0, 2.0], [1.0]),
        InvalidArgumentError,
        "one size",
    ),
    "a row of blocks": (
        lambda: L.LinearOperatorBlockLowerTriangular([[FULL], [FULL]]),
        InvalidArgumentError,
        "2 blocks, not 1",
    ),
    "a block of the diagonal": (
        lambda: L.LinearOperatorBlockLowerTriangular([[TALL]]),
        InvalidArgumentError,
        "is square",
    ),
    "a block below": (
        lambda: L.LinearOperatorBlockLowerTriangular([[FULL], [TALL, FULL]]),
        InvalidArgumentError,
        "2 columns",
        "not 2 and 1",
    ),
    "slices": (lambda: FULL[0], InvalidArgumentError, "has no part 0"),
    "slices of a bare operator": (
        lambda: Bare(df.float32)[0],
        InvalidArgumentError,
        "does not state which axes",
    ),
    "a bare product": (lambda: Bare(df.float32).matvec([1.0, 2.0]), UnimplementedError, "_matmul"),
    "a bare shape": (lambda: L.LinearOperator(df.float32).shape, UnimplementedError, "_shape"),
    "a bare dynamic shape": (lambda: Dynamic(df.float32).shape_tensor(), UnimplementedError, "_shape_tensor"),
    "blocks of a bare operator": (
        lambda: Blocks(df.float32).matmul([df.ones([1, 1])]),
        UnimplementedError,
        "products",
    ),
    "solutions of a bare operator": (
        lambda: Blocks(df.float32).solve([df.ones([1, 1])]),
        UnimplementedError,
        "no solutions",
    ),
    "a bare vector": (lambda: OrthogonalOperator(df.float32).shape, UnimplementedError, "no vector"),
}


class TestErrorMessages(ErrorCases):
    cases = CASES
    raised_in = ("linear_operators/*.py",)
