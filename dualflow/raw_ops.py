"""Ops that libraries call by the names of TensorFlow's kernels: ``df.raw_ops``.

Only a few are here: for all others, the function has the op's behaviour. Arguments are passed by name.
"""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.ops.neural.fused_batch_norm import FusedBatchNormV2 as FusedBatchNormV2

    FusedBatchNorm = FusedBatchNormV2
    FusedBatchNormV3 = FusedBatchNormV2

_publish(
    globals(),
    lazy={
        "dualflow.ops.neural.fused_batch_norm": (
            "FusedBatchNorm=FusedBatchNormV2 FusedBatchNormV2 FusedBatchNormV3=FusedBatchNormV2"
        ),
    },
)
