"""``df.contrib``: the names of TensorFlow 1's ``tf.contrib`` that its eager guides use."""

import sys as _sys
from importlib import import_module as _import_module
from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow import eager as eager
    from dualflow.contrib import summary as summary

_publish(
    globals(),
    modules=("eager", "summary"),
    lazy={
        "dualflow": "eager",
        "dualflow.contrib": "summary",
    },
)
# So that `import dualflow.contrib.eager as tfe` returns the attribute of that name.
_sys.modules[f"{__name__}.eager"] = _import_module("dualflow.eager")
