"""Linear algebra: ``df.linalg``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.ops.arrangement import matrix_transpose as matrix_transpose
    from dualflow.ops.clipping import global_norm as global_norm
    from dualflow.ops.contraction import matmul as matmul
    from dualflow.ops.linear_algebra.diagonals import band_part as band_part
    from dualflow.ops.linear_algebra.diagonals import diag as diag
    from dualflow.ops.linear_algebra.diagonals import diag_part as diag_part
    from dualflow.ops.linear_algebra.diagonals import trace as trace
    from dualflow.ops.linear_algebra.norms import norm as norm
    from dualflow.ops.neural.normalization import l2_normalize as l2_normalize
    from dualflow.ops.positions import eye as eye
    from dualflow.ops.products import einsum as einsum
    from dualflow.ops.products import matvec as matvec
    from dualflow.ops.products import tensordot as tensordot

_publish(globals(), internal=("TYPE_CHECKING",), deferred=True)
