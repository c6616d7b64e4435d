"""Names that TensorFlow marks as experimental: ``df.experimental``, with extension types and NumPy.

>>> import dualflow.experimental.numpy as tnp
>>> tnp.sum(tnp.ones([2, 3])).numpy()
np.float64(6.0)
"""

import sys as _sys
from typing import TYPE_CHECKING

from dualflow import numpy as numpy
from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.data.optional import Optional as Optional
    from dualflow.experimental import extension_type as extension_type
    from dualflow.ops.extension_types.dispatch_decorators import (
        dispatch_for_api as dispatch_for_api,
    )
    from dualflow.ops.extension_types.dispatch_decorators import (
        dispatch_for_binary_elementwise_apis as dispatch_for_binary_elementwise_apis,
    )
    from dualflow.ops.extension_types.dispatch_decorators import (
        dispatch_for_binary_elementwise_assert_apis as dispatch_for_binary_elementwise_assert_apis,
    )
    from dualflow.ops.extension_types.dispatch_decorators import (
        dispatch_for_unary_elementwise_apis as dispatch_for_unary_elementwise_apis,
    )
    from dualflow.ops.extension_types.dispatch_decorators import (
        unregister_dispatch_for as unregister_dispatch_for,
    )
    from dualflow.ops.extension_types.extension_spec import ExtensionTypeSpec as ExtensionTypeSpec
    from dualflow.ops.extension_types.extension_type import BatchableExtensionType as BatchableExtensionType
    from dualflow.ops.extension_types.extension_type import ExtensionType as ExtensionType

_sys.modules[f"{__name__}.numpy"] = numpy  # for `import dualflow.experimental.numpy`
_publish(
    globals(),
    modules=("numpy",),
    lazy={
        "dualflow.data.optional": "Optional",
        "dualflow.experimental": "extension_type",
        "dualflow.ops.extension_types.dispatch_decorators": (
            "dispatch_for_api dispatch_for_binary_elementwise_apis "
            "dispatch_for_binary_elementwise_assert_apis dispatch_for_unary_elementwise_apis "
            "unregister_dispatch_for"
        ),
        "dualflow.ops.extension_types.extension_spec": "ExtensionTypeSpec",
        "dualflow.ops.extension_types.extension_type": "BatchableExtensionType ExtensionType",
    },
)
