"""The names of TensorFlow 1's ``tf.contrib`` that its first eager guides use: ``df.contrib.eager``."""

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
