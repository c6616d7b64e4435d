"""Linear algebra: ``df.linalg``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.linear_operators.adjoint_and_inverse import LinearOperatorAdjoint as LinearOperatorAdjoint
    from dualflow.linear_operators.adjoint_and_inverse import (
        LinearOperatorInversion as LinearOperatorInversion,
    )
    from dualflow.linear_operators.banded_and_toeplitz import LinearOperatorToeplitz as LinearOperatorToeplitz
    from dualflow.linear_operators.banded_and_toeplitz import LinearOperatorTridiag as LinearOperatorTridiag
    from dualflow.linear_operators.block_lower_triangular import (
        LinearOperatorBlockLowerTriangular as LinearOperatorBlockLowerTriangular,
    )
    from dualflow.linear_operators.blocks import LinearOperatorBlockDiag as LinearOperatorBlockDiag
    from dualflow.linear_operators.circulant import LinearOperatorCirculant as LinearOperatorCirculant
    from dualflow.linear_operators.circulant import LinearOperatorCirculant2D as LinearOperatorCirculant2D
    from dualflow.linear_operators.circulant import LinearOperatorCirculant3D as LinearOperatorCirculant3D
    from dualflow.linear_operators.composition import LinearOperatorComposition as LinearOperatorComposition
    from dualflow.linear_operators.dense import LinearOperatorFullMatrix as LinearOperatorFullMatrix
    from dualflow.linear_operators.dense import LinearOperatorLowerTriangular as LinearOperatorLowerTriangular
    from dualflow.linear_operators.diagonal import LinearOperatorDiag as LinearOperatorDiag
    from dualflow.linear_operators.diagonal import (
        LinearOperatorScaledIdentity as LinearOperatorScaledIdentity,
    )
    from dualflow.linear_operators.identities import LinearOperatorIdentity as LinearOperatorIdentity
    from dualflow.linear_operators.identities import LinearOperatorZeros as LinearOperatorZeros
    from dualflow.linear_operators.kronecker import LinearOperatorKronecker as LinearOperatorKronecker
    from dualflow.linear_operators.linear_operator import LinearOperator as LinearOperator
    from dualflow.linear_operators.low_rank_update import (
        LinearOperatorLowRankUpdate as LinearOperatorLowRankUpdate,
    )
    from dualflow.linear_operators.orthogonal import LinearOperatorHouseholder as LinearOperatorHouseholder
    from dualflow.linear_operators.orthogonal import LinearOperatorPermutation as LinearOperatorPermutation
    from dualflow.ops.arrangement import matrix_transpose as matrix_transpose
    from dualflow.ops.clipping import global_norm as global_norm
    from dualflow.ops.contraction import matmul as matmul
    from dualflow.ops.linear_algebra.banded import banded_triangular_solve as banded_triangular_solve
    from dualflow.ops.linear_algebra.cholesky import cholesky as cholesky
    from dualflow.ops.linear_algebra.cholesky import cholesky_solve as cholesky_solve
    from dualflow.ops.linear_algebra.cholesky import logdet as logdet
    from dualflow.ops.linear_algebra.diagonals import band_part as band_part
    from dualflow.ops.linear_algebra.diagonals import diag as diag
    from dualflow.ops.linear_algebra.diagonals import diag_part as diag_part
    from dualflow.ops.linear_algebra.diagonals import set_diag as set_diag
    from dualflow.ops.linear_algebra.diagonals import tensor_diag as tensor_diag
    from dualflow.ops.linear_algebra.diagonals import tensor_diag_part as tensor_diag_part
    from dualflow.ops.linear_algebra.diagonals import trace as trace
    from dualflow.ops.linear_algebra.eigenvalues import eig as eig
    from dualflow.ops.linear_algebra.eigenvalues import eigh as eigh
    from dualflow.ops.linear_algebra.eigenvalues import eigvals as eigvals
    from dualflow.ops.linear_algebra.eigenvalues import eigvalsh as eigvalsh
    from dualflow.ops.linear_algebra.inverse import det as det
    from dualflow.ops.linear_algebra.inverse import inv as inv
    from dualflow.ops.linear_algebra.inverse import slogdet as slogdet
    from dualflow.ops.linear_algebra.least_squares import lstsq as lstsq
    from dualflow.ops.linear_algebra.lu import lu as lu
    from dualflow.ops.linear_algebra.lu import lu_matrix_inverse as lu_matrix_inverse
    from dualflow.ops.linear_algebra.lu import lu_reconstruct as lu_reconstruct
    from dualflow.ops.linear_algebra.lu import lu_solve as lu_solve
    from dualflow.ops.linear_algebra.matrix_functions import expm as expm
    from dualflow.ops.linear_algebra.matrix_functions import logm as logm
    from dualflow.ops.linear_algebra.matrix_functions import sqrtm as sqrtm
    from dualflow.ops.linear_algebra.norms import norm as norm
    from dualflow.ops.linear_algebra.orthogonal import qr as qr
    from dualflow.ops.linear_algebra.singular_values import matrix_rank as matrix_rank
    from dualflow.ops.linear_algebra.singular_values import pinv as pinv
    from dualflow.ops.linear_algebra.singular_values import svd as svd
    from dualflow.ops.linear_algebra.solving import solve as solve
    from dualflow.ops.linear_algebra.triangular import triangular_solve as triangular_solve
    from dualflow.ops.linear_algebra.tridiagonal import eigh_tridiagonal as eigh_tridiagonal
    from dualflow.ops.linear_algebra.tridiagonal import tridiagonal_matmul as tridiagonal_matmul
    from dualflow.ops.linear_algebra.tridiagonal import tridiagonal_solve as tridiagonal_solve
    from dualflow.ops.linear_algebra.vectors import adjoint as adjoint
    from dualflow.ops.linear_algebra.vectors import cross as cross
    from dualflow.ops.linear_algebra.vectors import normalize as normalize
    from dualflow.ops.neural.normalization import l2_normalize as l2_normalize
    from dualflow.ops.positions import eye as eye
    from dualflow.ops.products import einsum as einsum
    from dualflow.ops.products import matvec as matvec
    from dualflow.ops.products import tensordot as tensordot

_publish(
    globals(),
    lazy={
        "dualflow.linear_operators.adjoint_and_inverse": "LinearOperatorAdjoint LinearOperatorInversion",
        "dualflow.linear_operators.banded_and_toeplitz": "LinearOperatorToeplitz LinearOperatorTridiag",
        "dualflow.linear_operators.circulant": (
            "LinearOperatorCirculant LinearOperatorCirculant2D LinearOperatorCirculant3D"
        ),
        "dualflow.linear_operators.block_lower_triangular": "LinearOperatorBlockLowerTriangular",
        "dualflow.linear_operators.blocks": "LinearOperatorBlockDiag",
        "dualflow.linear_operators.composition": "LinearOperatorComposition",
        "dualflow.linear_operators.dense": "LinearOperatorFullMatrix LinearOperatorLowerTriangular",
        "dualflow.linear_operators.diagonal": "LinearOperatorDiag LinearOperatorScaledIdentity",
        "dualflow.linear_operators.identities": "LinearOperatorIdentity LinearOperatorZeros",
        "dualflow.linear_operators.kronecker": "LinearOperatorKronecker",
        "dualflow.linear_operators.linear_operator": "LinearOperator",
        "dualflow.linear_operators.low_rank_update": "LinearOperatorLowRankUpdate",
        "dualflow.linear_operators.orthogonal": "LinearOperatorHouseholder LinearOperatorPermutation",
        "dualflow.ops.arrangement": "matrix_transpose",
        "dualflow.ops.clipping": "global_norm",
        "dualflow.ops.contraction": "matmul",
        "dualflow.ops.linear_algebra.banded": "banded_triangular_solve",
        "dualflow.ops.linear_algebra.cholesky": "cholesky cholesky_solve logdet",
        "dualflow.ops.linear_algebra.diagonals": (
            "band_part diag diag_part set_diag tensor_diag tensor_diag_part trace"
        ),
        "dualflow.ops.linear_algebra.eigenvalues": "eig eigh eigvals eigvalsh",
        "dualflow.ops.linear_algebra.inverse": "det inv slogdet",
        "dualflow.ops.linear_algebra.least_squares": "lstsq",
        "dualflow.ops.linear_algebra.lu": "lu lu_matrix_inverse lu_reconstruct lu_solve",
        "dualflow.ops.linear_algebra.matrix_functions": "expm logm sqrtm",
        "dualflow.ops.linear_algebra.norms": "norm",
        "dualflow.ops.linear_algebra.orthogonal": "qr",
        "dualflow.ops.linear_algebra.singular_values": "matrix_rank pinv svd",
        "dualflow.ops.linear_algebra.solving": "solve",
        "dualflow.ops.linear_algebra.triangular": "triangular_solve",
        "dualflow.ops.linear_algebra.tridiagonal": "eigh_tridiagonal tridiagonal_matmul tridiagonal_solve",
        "dualflow.ops.linear_algebra.vectors": "adjoint cross normalize",
        "dualflow.ops.neural.normalization": "l2_normalize",
        "dualflow.ops.positions": "eye",
        "dualflow.ops.products": "einsum matvec tensordot",
    },
)
