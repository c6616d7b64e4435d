"""Neural-network functions: ``df.nn``."""

from typing import Any

from dualflow.core.namespace import publish as _publish
from dualflow.core.tracebacks import entry
from dualflow.ops.arrangement import reshape
from dualflow.ops.clipping import l2_loss as l2_loss
from dualflow.ops.exponential import log_sigmoid as log_sigmoid
from dualflow.ops.exponential import sigmoid as sigmoid
from dualflow.ops.exponential import softplus as softplus
from dualflow.ops.neural.activations import elu as elu
from dualflow.ops.neural.activations import gelu as gelu
from dualflow.ops.neural.activations import leaky_relu as leaky_relu
from dualflow.ops.neural.activations import log_softmax as log_softmax
from dualflow.ops.neural.activations import relu as relu
from dualflow.ops.neural.activations import relu6 as relu6
from dualflow.ops.neural.activations import selu as selu
from dualflow.ops.neural.activations import silu as silu
from dualflow.ops.neural.activations import softmax as softmax
from dualflow.ops.neural.activations import softsign as softsign
from dualflow.ops.neural.convolution import atrous_conv2d as atrous_conv2d
from dualflow.ops.neural.convolution import conv1d as conv1d
from dualflow.ops.neural.convolution import conv2d as conv2d
from dualflow.ops.neural.convolution import conv3d as conv3d
from dualflow.ops.neural.convolution import convolution as convolution
from dualflow.ops.neural.depthwise import depthwise_conv2d as depthwise_conv2d
from dualflow.ops.neural.depthwise import depthwise_conv2d_backprop_filter as depthwise_conv2d_backprop_filter
from dualflow.ops.neural.depthwise import depthwise_conv2d_backprop_input as depthwise_conv2d_backprop_input
from dualflow.ops.neural.depthwise import separable_conv2d as separable_conv2d
from dualflow.ops.neural.embedding import embedding_lookup as embedding_lookup
from dualflow.ops.neural.losses import sigmoid_cross_entropy_with_logits as sigmoid_cross_entropy_with_logits
from dualflow.ops.neural.losses import softmax_cross_entropy_with_logits as softmax_cross_entropy_with_logits
from dualflow.ops.neural.losses import (
    sparse_softmax_cross_entropy_with_logits as sparse_softmax_cross_entropy_with_logits,
)
from dualflow.ops.neural.normalization import batch_normalization as batch_normalization
from dualflow.ops.neural.normalization import bias_add as bias_add
from dualflow.ops.neural.normalization import l2_normalize as l2_normalize
from dualflow.ops.neural.normalization import moments as moments
from dualflow.ops.neural.pooling import avg_pool as avg_pool
from dualflow.ops.neural.pooling import avg_pool1d as avg_pool1d
from dualflow.ops.neural.pooling import avg_pool2d as avg_pool2d
from dualflow.ops.neural.pooling import avg_pool3d as avg_pool3d
from dualflow.ops.neural.pooling import max_pool as max_pool
from dualflow.ops.neural.pooling import max_pool1d as max_pool1d
from dualflow.ops.neural.pooling import max_pool2d as max_pool2d
from dualflow.ops.neural.pooling import max_pool3d as max_pool3d
from dualflow.ops.neural.pooling import max_pool_with_argmax as max_pool_with_argmax
from dualflow.ops.neural.pooling import pool as pool
from dualflow.ops.neural.sampling import Candidates
from dualflow.ops.neural.sampling import nce_loss as _nce_loss
from dualflow.ops.neural.sampling import sampled_softmax_loss as _sampled_softmax_loss
from dualflow.ops.neural.transposed_convolution import atrous_conv2d_transpose as atrous_conv2d_transpose
from dualflow.ops.neural.transposed_convolution import conv1d_transpose as conv1d_transpose
from dualflow.ops.neural.transposed_convolution import conv2d_transpose as conv2d_transpose
from dualflow.ops.neural.transposed_convolution import conv3d_transpose as conv3d_transpose
from dualflow.ops.neural.transposed_convolution import conv_transpose as conv_transpose
from dualflow.ops.random import dropout as _dropout
from dualflow.ops.sorting import top_k as top_k
from dualflow.ops.tensor import Tensor
from dualflow.ops.trigonometric import tanh as tanh
from dualflow.random import log_uniform_candidate_sampler
from dualflow.random import stream as _stream

swish = silu


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


@entry
def nce_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = False,
    name: str = "nce_loss",
) -> Tensor:
    """The noise-contrastive loss of each row, for more classes than a loss can look at.

    Each true class is told from a sample of the others: see Gutmann and Hyvärinen, "Noise-contrastive
    estimation", 2010. Classes are sampled as if they were sorted by how common they are.

    Args:
        weights: ``[num_classes, dim]``.
        biases: ``[num_classes]``.
        labels: integers ``[batch, num_true]``, the true classes.
        inputs: ``[batch, dim]``.
        num_sampled: how many classes to sample.
        num_classes: how many there are.
        num_true: the number of true classes of each row.
        sampled_values: a sample; by default :func:`dualflow.random.log_uniform_candidate_sampler` draws one.
        remove_accidental_hits: whether sampled classes that are true in a row don't count there.
        name: ignored; as in TensorFlow.

    Returns:
        Floats ``[batch]``.

    Raises:
        InvalidArgumentError: the sample is larger than the number of classes.

    >>> import dualflow as df
    >>> df.nn.nce_loss(df.ones([50, 8]), df.zeros([50]), [[3], [7]], df.ones([2, 8]), 5, 50).shape
    (2,)
    """
    sample = sampled_values or log_uniform_candidate_sampler(labels, num_true, num_sampled, True, num_classes)
    labels = reshape(labels, [-1, num_true])
    return _nce_loss(weights, biases, labels, inputs, Candidates(*sample), remove_accidental_hits)


@entry
def sampled_softmax_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
    seed: int | None = None,
    name: str = "sampled_softmax_loss",
) -> Tensor:
    """The softmax cross entropy of each row over its true classes and a sample of the others.

    The arguments are those of :func:`nce_loss`, and a ``seed`` for the sample. It is for training; evaluate
    with the softmax over all classes.

    >>> import dualflow as df
    >>> df.nn.sampled_softmax_loss(df.ones([50, 8]), df.zeros([50]), [[3], [7]], df.ones([2, 8]), 5, 50).shape
    (2,)
    """
    sample = sampled_values or log_uniform_candidate_sampler(
        labels, num_true, num_sampled, True, num_classes, seed
    )
    labels = reshape(labels, [-1, num_true])
    return _sampled_softmax_loss(weights, biases, labels, inputs, Candidates(*sample), remove_accidental_hits)


_publish(
    globals(), internal=("Any", "Candidates", "Tensor", "entry", "log_uniform_candidate_sampler", "reshape")
)
