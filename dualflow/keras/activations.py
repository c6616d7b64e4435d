"""Activations by Keras's names: ``df.keras.activations``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.ops.exponential import log_sigmoid as log_sigmoid
    from dualflow.ops.exponential import sigmoid as sigmoid
    from dualflow.ops.exponential import softplus as softplus
    from dualflow.ops.neural.activations import gelu as gelu
    from dualflow.ops.neural.activations import relu6 as relu6
    from dualflow.ops.neural.activations import selu as selu
    from dualflow.ops.neural.activations import silu as silu
    from dualflow.ops.neural.activations import softsign as softsign
    from dualflow.ops.neural.keras_activations import celu as celu
    from dualflow.ops.neural.keras_activations import elu as elu
    from dualflow.ops.neural.keras_activations import exponential as exponential
    from dualflow.ops.neural.keras_activations import glu as glu
    from dualflow.ops.neural.keras_activations import hard_shrink as hard_shrink
    from dualflow.ops.neural.keras_activations import hard_sigmoid as hard_sigmoid
    from dualflow.ops.neural.keras_activations import hard_silu as hard_silu
    from dualflow.ops.neural.keras_activations import hard_tanh as hard_tanh
    from dualflow.ops.neural.keras_activations import leaky_relu as leaky_relu
    from dualflow.ops.neural.keras_activations import linear as linear
    from dualflow.ops.neural.keras_activations import log_softmax as log_softmax
    from dualflow.ops.neural.keras_activations import mish as mish
    from dualflow.ops.neural.keras_activations import relu as relu
    from dualflow.ops.neural.keras_activations import soft_shrink as soft_shrink
    from dualflow.ops.neural.keras_activations import softmax as softmax
    from dualflow.ops.neural.keras_activations import squareplus as squareplus
    from dualflow.ops.neural.keras_activations import tanh_shrink as tanh_shrink
    from dualflow.ops.neural.keras_activations import threshold as threshold
    from dualflow.ops.trigonometric import tanh as tanh

    hard_swish = hard_silu
    swish = silu

_publish(globals(), internal=("TYPE_CHECKING",), deferred=True)
