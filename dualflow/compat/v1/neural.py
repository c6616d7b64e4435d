"""``v1.nn``: the functions of neural networks with TensorFlow 1's arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import dualflow
import dualflow.nn as nn2
from dualflow.compat.v1 import changed_functions
from dualflow.compat.v1.naming import Namespace, with_name
from dualflow.compat.v1.recurrent import loops, rnn_cell
from dualflow.core.errors import InvalidArgumentError
from dualflow.ops.checks import required
from dualflow.ops.neural.convolution_gradients import conv_backprop_filter, conv_backprop_input
from dualflow.ops.neural.normalization import fused_batch_norm
from dualflow.ops.sparse.dense import to_dense
from dualflow.ops.sparse.row_major import sparse

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntsLike, TensorLike
    from dualflow.ops.sparse.sparse_tensor import SparseTensor
    from dualflow.ops.tensor import Tensor


def xw_plus_b(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """``x @ weights + biases``.

    >>> from dualflow.compat import v1
    >>> v1.nn.xw_plus_b([[1.0, 2.0]], [[1.0], [1.0]], [0.5]).numpy().tolist()
    [[3.5]]
    """
    return nn2.bias_add(dualflow.matmul(x, weights), biases)


def relu_layer(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """``relu(x @ weights + biases)``.

    >>> from dualflow.compat import v1
    >>> v1.nn.relu_layer([[1.0, -2.0]], [[1.0], [1.0]], [0.5]).numpy().tolist()
    [[0.0]]
    """
    return nn2.relu(xw_plus_b(x, weights, biases))


def ctc_loss(
    labels: SparseTensor,
    inputs: TensorLike | None = None,
    sequence_length: Any = None,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False,
    time_major: bool = True,
    logits: TensorLike | None = None,
) -> Tensor:
    """:func:`dualflow.nn.ctc_loss` of a SparseTensor of labels; the last class is the blank.

    Args:
        labels: integers ``[batch, most labels]``.
        inputs, logits: floats ``[steps, batch, classes]``; two names of one argument.
        sequence_length: how many steps each sequence has, integers ``[batch]``.
        preprocess_collapse_repeated, ctc_merge_repeated: only the default values are implemented.
        ignore_longer_outputs_than_inputs: the loss of a sequence of more labels than steps is 0; else it is
            an error.
        time_major: False for logits ``[batch, steps, classes]``.

    Returns:
        Losses ``[batch]`` in the dtype of the logits.

    Raises:
        InvalidArgumentError: a sequence has more labels than steps, or other values of the two options.

    >>> from dualflow.compat import v1
    >>> labels = v1.SparseTensor([[0, 0]], [1], [1, 1])
    >>> v1.nn.ctc_loss(labels, v1.zeros([2, 1, 3]), [2]).numpy()
    array([1.0986123], dtype=float32)
    """
    if preprocess_collapse_repeated or not ctc_merge_repeated:
        raise InvalidArgumentError(
            "ctc_loss merges repeated classes of the logits, and keeps those of the labels; leave "
            "preprocess_collapse_repeated and ctc_merge_repeated out."
        )
    present = to_dense(sparse(labels), -1) >= 0
    steps = dualflow.cast(sequence_length, dualflow.int32)
    fits = dualflow.math.count_nonzero(present, 1, dtype=dualflow.int32) <= steps
    scores: Any = inputs if logits is None else logits
    losses = nn2.ctc_loss(labels, scores, steps, steps, time_major, blank_index=-1)
    if ignore_longer_outputs_than_inputs:
        return dualflow.where(fits, losses, dualflow.zeros_like(losses))
    checked: Tensor = required(losses, dualflow.reduce_all(fits), _TOO_FEW_STEPS)
    return checked


_TOO_FEW_STEPS: Final = (
    "ctc_loss: a sequence has fewer steps than labels; set ignore_longer_outputs_than_inputs=True for a loss "
    "of 0."
)


def dilation2d_v1(
    input: TensorLike,
    filters: TensorLike,
    strides: IntsLike,
    dilations: IntsLike,
    padding: Any,
    name: str | None = None,
) -> Tensor:
    """:func:`dualflow.nn.dilation2d` with TensorFlow 1's order of arguments."""
    return nn2.dilation2d(input, filters, strides, padding, "NHWC", dilations)


def erosion2d_v1(
    value: TensorLike,
    filters: TensorLike,
    strides: IntsLike,
    dilations: IntsLike,
    padding: Any,
    name: str | None = None,
) -> Tensor:
    """:func:`dualflow.nn.erosion2d` with TensorFlow 1's order of arguments."""
    return nn2.erosion2d(value, filters, strides, padding, "NHWC", dilations)


# The strings are TensorFlow 1's parameters in their order; of a renamed parameter both names are listed. See
# ``with_name``.
nn = Namespace(
    nn2,
    bidirectional_dynamic_rnn=loops.bidirectional_dynamic_rnn,
    dynamic_rnn=loops.dynamic_rnn,
    rnn_cell=rnn_cell,
    softmax_cross_entropy_with_logits_v2=with_name(nn2.softmax_cross_entropy_with_logits),
    static_rnn=loops.static_rnn,
    conv1d=with_name(
        nn2.conv1d,
        "value filters stride padding use_cudnn_on_gpu data_format name input dilations",
    ),
    conv2d=with_name(
        nn2.conv2d,
        "input filter strides padding use_cudnn_on_gpu data_format dilations name filters",
    ),
    conv2d_transpose=with_name(
        nn2.conv2d_transpose,
        "value filter output_shape strides padding data_format name input filters dilations",
    ),
    convolution=with_name(
        nn2.convolution,
        "input filter padding strides dilation_rate name data_format filters dilations",
    ),
    depthwise_conv2d=with_name(
        nn2.depthwise_conv2d, "input filter strides padding rate name data_format dilations"
    ),
    dropout=with_name(changed_functions.dropout),
    embedding_lookup=with_name(
        nn2.embedding_lookup, "params ids partition_strategy name validate_indices max_norm"
    ),
    fused_batch_norm=with_name(fused_batch_norm),
    moments=with_name(nn2.moments, "x axes shift name keep_dims keepdims"),
    nce_loss=with_name(
        nn2.nce_loss,
        "weights biases labels inputs num_sampled num_classes num_true sampled_values remove_accidental_hits "
        "partition_strategy name",
    ),
    sampled_softmax_loss=with_name(
        nn2.sampled_softmax_loss,
        "weights biases labels inputs num_sampled num_classes num_true sampled_values remove_accidental_hits "
        "partition_strategy name seed",
    ),
    atrous_conv2d=with_name(nn2.atrous_conv2d),
    avg_pool=with_name(nn2.avg_pool, "value ksize strides padding data_format name input"),
    avg_pool_v2=with_name(nn2.avg_pool),
    conv2d_backprop_filter=with_name(
        conv_backprop_filter,
        "input filter_sizes out_backprop strides padding use_cudnn_on_gpu data_format dilations name",
    ),
    conv2d_backprop_input=with_name(
        conv_backprop_input,
        "input_sizes filter out_backprop strides padding use_cudnn_on_gpu data_format dilations name filters",
    ),
    conv3d=with_name(nn2.conv3d, "input filter strides padding data_format dilations name filters"),
    conv3d_backprop_filter=with_name(conv_backprop_filter),
    conv3d_backprop_filter_v2=with_name(conv_backprop_filter),
    conv3d_transpose=with_name(
        nn2.conv3d_transpose,
        "value filter output_shape strides padding data_format name input filters dilations",
    ),
    crelu=with_name(nn2.crelu, "features name axis"),
    ctc_beam_search_decoder_v2=nn2.ctc_beam_search_decoder,
    ctc_loss=ctc_loss,
    ctc_loss_v2=with_name(nn2.ctc_loss),
    depth_to_space=with_name(nn2.depth_to_space, "input block_size name data_format"),
    depthwise_conv2d_native=with_name(nn2.depthwise_conv2d),
    depthwise_conv2d_native_backprop_filter=with_name(nn2.depthwise_conv2d_backprop_filter),
    depthwise_conv2d_native_backprop_input=with_name(nn2.depthwise_conv2d_backprop_input),
    dilation2d=with_name(dilation2d_v1, "input filter strides rates padding name filters dilations"),
    embedding_lookup_sparse=with_name(
        nn2.embedding_lookup_sparse,
        "params sp_ids sp_weights partition_strategy name combiner max_norm allow_fast_lookup",
    ),
    erosion2d=with_name(erosion2d_v1, "value kernel strides rates padding name"),
    in_top_k=with_name(nn2.in_top_k, "predictions targets k name"),
    log_uniform_candidate_sampler=with_name(dualflow.random.log_uniform_candidate_sampler),
    max_pool=with_name(nn2.max_pool, "value ksize strides padding data_format name input"),
    max_pool_v2=with_name(nn2.max_pool),
    max_pool_with_argmax=with_name(
        nn2.max_pool_with_argmax,
        "input ksize strides padding data_format Targmax name output_dtype include_batch_in_index",
    ),
    pool=with_name(
        nn2.pool,
        "input window_shape pooling_type padding dilation_rate strides name data_format dilations",
    ),
    relu_layer=with_name(relu_layer),
    safe_embedding_lookup_sparse=with_name(
        nn2.safe_embedding_lookup_sparse,
        "embedding_weights sparse_ids sparse_weights combiner default_id name partition_strategy max_norm "
        "allow_fast_lookup",
    ),
    separable_conv2d=with_name(
        nn2.separable_conv2d,
        "input depthwise_filter pointwise_filter strides padding rate name data_format dilations",
    ),
    space_to_depth=with_name(nn2.space_to_depth, "input block_size name data_format"),
    sufficient_statistics=with_name(nn2.sufficient_statistics, "x axes shift keep_dims name keepdims"),
    uniform_candidate_sampler=with_name(dualflow.random.uniform_candidate_sampler),
    weighted_cross_entropy_with_logits=with_name(
        nn2.weighted_cross_entropy_with_logits, "labels logits pos_weight name targets"
    ),
    weighted_moments=with_name(nn2.weighted_moments, "x axes frequency_weights name keep_dims keepdims"),
    xw_plus_b=with_name(xw_plus_b),
)
