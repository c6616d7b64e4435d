"""The standard's linear algebra: ``dualflow.array_api.linalg``.

Matrices are the last two axes; those before them are a batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.array_api.decompositions import cholesky as cholesky
    from dualflow.array_api.decompositions import eigh as eigh
    from dualflow.array_api.decompositions import eigvalsh as eigvalsh
    from dualflow.array_api.decompositions import qr as qr
    from dualflow.array_api.decompositions import svd as svd
    from dualflow.array_api.decompositions import svdvals as svdvals
    from dualflow.array_api.equations import det as det
    from dualflow.array_api.equations import inv as inv
    from dualflow.array_api.equations import matrix_power as matrix_power
    from dualflow.array_api.equations import matrix_rank as matrix_rank
    from dualflow.array_api.equations import pinv as pinv
    from dualflow.array_api.equations import slogdet as slogdet
    from dualflow.array_api.equations import solve as solve
    from dualflow.array_api.linear_products import cross as cross
    from dualflow.array_api.linear_products import diagonal as diagonal
    from dualflow.array_api.linear_products import matmul as matmul
    from dualflow.array_api.linear_products import matrix_transpose as matrix_transpose
    from dualflow.array_api.linear_products import outer as outer
    from dualflow.array_api.linear_products import tensordot as tensordot
    from dualflow.array_api.linear_products import trace as trace
    from dualflow.array_api.linear_products import vecdot as vecdot
    from dualflow.array_api.norms import matrix_norm as matrix_norm
    from dualflow.array_api.norms import vector_norm as vector_norm

_publish(
    globals(),
    lazy={
        "dualflow.array_api.decompositions": "cholesky eigh eigvalsh qr svd svdvals",
        "dualflow.array_api.equations": "det inv matrix_power matrix_rank pinv slogdet solve",
        "dualflow.array_api.linear_products": (
            "cross diagonal matmul matrix_transpose outer tensordot trace vecdot"
        ),
        "dualflow.array_api.norms": "matrix_norm vector_norm",
    },
)
