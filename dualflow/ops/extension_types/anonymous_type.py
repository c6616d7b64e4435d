"""``AnonymousExtensionType``: the extension type of loaded values whose class is not available."""

from __future__ import annotations

from typing import Any

from dualflow.ops.extension_types.extension_spec import from_fields
from dualflow.ops.extension_types.extension_type import ExtensionType


class AnonymousExtensionType(ExtensionType):
    """The fields of an extension type whose class is not available, without its methods.

    Functions of a loaded model return it if the program has not defined the class, and take it. It declares
    no fields: each instance has those of its spec.
    """

    class Spec:
        """The spec of an anonymous extension type: fields with specs in place of tensors."""

        def _serialize(self) -> Any:
            return tuple(vars(self).items())

        @classmethod
        def _deserialize(cls, serialization: Any) -> Any:
            return from_fields(cls, dict(serialization))
