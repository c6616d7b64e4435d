"""The standard's linear algebra: ``dualflow.array_api.linalg``.

Matrices are the last two axes; those before them are a batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.array_api.linear_products import cross as cross
    from dualflow.array_api.linear_products import diagonal as diagonal
    from dualflow.array_api.linear_products import matmul as matmul
    from dualflow.array_api.linear_products import matrix_transpose as matrix_transpose
    from dualflow.array_api.linear_products import outer as outer
    from dualflow.array_api.linear_products import tensordot as tensordot
    from dualflow.array_api.linear_products import trace as trace
    from dualflow.array_api.linear_products import vecdot as vecdot

_publish(globals(), internal=("TYPE_CHECKING", "annotations"), deferred=True)
