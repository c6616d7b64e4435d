"""Ops that libraries call by the names of TensorFlow's kernels: ``df.raw_ops``.

Only a few are here: for all others, the function has the op's behaviour. Arguments are passed by name.
"""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.ops.neural.fused_batch_norm import FusedBatchNormV2 as FusedBatchNormV2
    from dualflow.ops.special_functions.kernel_names import BroadcastGradientArgs as BroadcastGradientArgs
    from dualflow.ops.special_functions.kernel_names import IgammaGradA as IgammaGradA
    from dualflow.ops.special_functions.kernel_names import MatrixDiagPartV2 as MatrixDiagPartV2
    from dualflow.ops.special_functions.kernel_names import RandomGammaGrad as RandomGammaGrad
    from dualflow.ops.special_functions.kernel_names import UniqueWithCountsV2 as UniqueWithCountsV2

    FusedBatchNorm = FusedBatchNormV2
    FusedBatchNormV3 = FusedBatchNormV2

_publish(
    globals(),
    lazy={
        "dualflow.ops.neural.fused_batch_norm": (
            "FusedBatchNorm=FusedBatchNormV2 FusedBatchNormV2 FusedBatchNormV3=FusedBatchNormV2"
        ),
        "dualflow.ops.special_functions.kernel_names": (
            "BroadcastGradientArgs IgammaGradA MatrixDiagPartV2 RandomGammaGrad UniqueWithCountsV2"
        ),
    },
)
