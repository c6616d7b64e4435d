"""Sets, which are the rows of tensors: ``df.sets``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.ops.sets.operations import difference as difference
    from dualflow.ops.sets.operations import intersection as intersection
    from dualflow.ops.sets.operations import size as size
    from dualflow.ops.sets.operations import union as union

_publish(globals(), lazy={"dualflow.ops.sets.operations": "difference intersection size union"})
