"""Functions of extension types: ``df.experimental.extension_type``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.ops.extension_types.extension_type import as_dict as as_dict

_publish(globals(), lazy={"dualflow.ops.extension_types.extension_type": "as_dict"})
