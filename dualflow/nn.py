"""Neural-network functions: ``df.nn``."""

from typing import Any

from dualflow.core.namespace import publish as _publish
from dualflow.core.tracebacks import entry
from dualflow.ops.activations import elu as elu
from dualflow.ops.activations import gelu as gelu
from dualflow.ops.activations import leaky_relu as leaky_relu
from dualflow.ops.activations import log_softmax as log_softmax
from dualflow.ops.activations import relu as relu
from dualflow.ops.activations import relu6 as relu6
from dualflow.ops.activations import selu as selu
from dualflow.ops.activations import silu as silu
from dualflow.ops.activations import softmax as softmax
from dualflow.ops.activations import softsign as softsign
from dualflow.ops.convolution import conv1d as conv1d
from dualflow.ops.convolution import conv2d as conv2d
from dualflow.ops.convolution import conv2d_transpose as conv2d_transpose
from dualflow.ops.convolution import convolution as convolution
from dualflow.ops.convolution import depthwise_conv2d as depthwise_conv2d
from dualflow.ops.embedding import embedding_lookup as embedding_lookup
from dualflow.ops.exponential import log_sigmoid as log_sigmoid
from dualflow.ops.exponential import sigmoid as sigmoid
from dualflow.ops.exponential import softplus as softplus
from dualflow.ops.losses import l2_loss as l2_loss
from dualflow.ops.losses import sigmoid_cross_entropy_with_logits as sigmoid_cross_entropy_with_logits
from dualflow.ops.losses import softmax_cross_entropy_with_logits as softmax_cross_entropy_with_logits
from dualflow.ops.losses import (
    sparse_softmax_cross_entropy_with_logits as sparse_softmax_cross_entropy_with_logits,
)
from dualflow.ops.normalization import batch_normalization as batch_normalization
from dualflow.ops.normalization import bias_add as bias_add
from dualflow.ops.normalization import l2_normalize as l2_normalize
from dualflow.ops.normalization import moments as moments
from dualflow.ops.pooling import avg_pool as avg_pool
from dualflow.ops.pooling import max_pool as max_pool
from dualflow.ops.random import dropout as _dropout
from dualflow.ops.sorting import top_k as top_k
from dualflow.ops.tensor import Tensor
from dualflow.ops.trigonometric import tanh as tanh
from dualflow.random import stream as _stream

swish = silu
avg_pool1d = avg_pool2d = avg_pool3d = avg_pool
max_pool1d = max_pool2d = max_pool3d = max_pool
conv3d = convolution


@entry
def dropout(
    x: Any, rate: Any, noise_shape: Any = None, seed: int | None = None, name: str | None = None
) -> Tensor:
    """``x`` with each element 0 at a chance of ``rate``, the others divided by ``1 - rate`` to keep the mean.

    Args:
        x: floats of any shape.
        rate: the chance, in [0, 1).
        noise_shape: the shape of the draws, which broadcast to ``x``; by default that of ``x``.
        seed: a stream of draws of its own, as in :func:`dualflow.random.uniform`.
        name: ignored; as in TensorFlow.

    Raises:
        InvalidArgumentError: ``rate`` is not in [0, 1).
        DTypeError: ``x`` is not of floats.

    >>> import dualflow as df
    >>> float(df.reduce_max(df.nn.dropout(df.ones([1000]), rate=0.75)))
    4.0
    """
    return _dropout(_stream(seed), x, rate, noise_shape)


_publish(globals(), internal=("Any", "Tensor", "entry"))
