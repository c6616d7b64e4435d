"""Errors of ``df.nn``: each states the rejected input and what to do."""

from __future__ import annotations

from error_cases import ErrorCases

import dualflow as df
from dualflow.core import dispatch
from dualflow.core.errors import DTypeError, InvalidArgumentError, OutOfRangeError
from dualflow.core.spec import TensorSpec
from dualflow.ops.neural.windows import Geometry, over_strides, sum_windows
from dualflow.ops.record import REGISTRY

nn = df.nn
sparse_loss = nn.sparse_softmax_cross_entropy_with_logits
NUMBERS, Q = df.constant([1, 2, 3]), df.ones([3, 3])
V, M = df.ones([3]), df.ones([2, 3])
IMAGE, DOT, RGB = df.ones([1, 4, 4, 1]), df.ones([1, 1, 1, 1]), df.ones([1, 4, 4, 3])
DIRECT = {
    "inferred",
    "over_strides",
    "searched",
    "sum_windows",
}  # cases that call no public function


def traced(function, *shapes):
    """Trace ``function`` with tensors of these shapes, where None is a dynamic size."""
    return df.function(function).get_concrete_function(*[df.TensorSpec(s) for s in shapes])


def gradient(function, *shapes):
    """Trace the gradient of ``function``."""

    def taken(*xs):
        with df.GradientTape() as tape:
            tape.watch(xs)
            y = function(*xs)
        return tape.gradient(y, xs)

    return traced(taken, *shapes)


def inferred(name, *specs, **attrs):
    """The error of an op's spec rule for inputs of these shapes and dtypes."""
    return REGISTRY[name].specs([TensorSpec(*spec) for spec in specs], attrs)


def searched(scores, lengths):
    """The error of the decoder's search for dtypes that the decoder never passes."""
    attrs = {"beam_width": 1, "top_paths": 1}
    return dispatch.current().apply(REGISTRY["ctc_beam_search"], (scores, lengths), attrs)


CASES = {
    "a layout that is no string": (
        lambda: nn.bias_add(M, V, data_format=1),
        InvalidArgumentError,
        "data_format is a string",
        "'NHWC' or 'NCHW', not 1",
    ),
    "a number for a file": (
        lambda: nn.fixed_unigram_candidate_sampler([[0]], 1, 1, False, 2, vocab_file=3),
        DTypeError,
        "vocab_file is the path of a file",
        "not 3",
    ),
    "weights that are a word": (
        lambda: nn.fixed_unigram_candidate_sampler([[0]], 1, 1, False, 2, unigrams="a"),
        DTypeError,
        "unigrams is a list of numbers",
        "not 'a'",
    ),
    "no shards": (
        lambda: nn.fixed_unigram_candidate_sampler([[0]], 1, 1, False, 1, num_shards=0, unigrams=[1.0]),
        InvalidArgumentError,
        "num_shards is 1 or more",
        "not 0",
    ),
    # activations, losses, dropout, tables and samples
    "gelu of ints": (lambda: nn.gelu(NUMBERS), DTypeError, "gelu takes floats, not int32", "df.cast"),
    "a bias": (
        lambda: nn.bias_add(M, df.ones([2])),
        InvalidArgumentError,
        r"bias of shape \(2,\)",
        "a vector of that size",
    ),
    "no tables": (
        lambda: nn.embedding_lookup([], [0]),
        InvalidArgumentError,
        "params is empty",
        "needs a table",
    ),
    "labels in floats": (lambda: sparse_loss(V, Q), DTypeError, "class numbers", "cast"),
    "labels outside": (lambda: sparse_loss(NUMBERS, Q), OutOfRangeError, r"outside of \[0, 3\)", "mask"),
    "labels of another shape": (
        lambda: sparse_loss(NUMBERS, M),
        InvalidArgumentError,
        "do not match",
        "without its last axis",
    ),
    "labels and logits": (
        lambda: nn.sigmoid_cross_entropy_with_logits(V, M),
        InvalidArgumentError,
        "one shape",
        "reshape",
    ),
    "dropout of ints": (lambda: nn.dropout(NUMBERS, 0.5), DTypeError, "floats, not int32", "df.cast"),
    "a sample of nothing": (
        lambda: df.random.log_uniform_candidate_sampler([[0]], 1, 0, True, 9),
        InvalidArgumentError,
        "0 classes can.t be drawn from 9",
        "give num_sampled from 1",
    ),
    "two rates": (
        lambda: nn.dropout(V, [0.5, 0.5]),
        InvalidArgumentError,
        r"not of shape \(2,\)",
        "give a scalar",
    ),
    "a rate": (lambda: nn.dropout(V, 1.0), InvalidArgumentError, "not 1.0", r"in \[0, 1\)"),
    # losses and normalisations
    "labels of other shape": (
        lambda: nn.weighted_cross_entropy_with_logits([0.0], [1.0, 2.0], 2.0),
        InvalidArgumentError,
        r"labels and logits.*\(1,\) and \(2,\)",
        "reshape",
    ),
    "an average of a scalar": (
        lambda: nn.compute_average_loss(3.0),
        InvalidArgumentError,
        "scalar",
        "leave it",
    ),
    "a size that is no integer": (
        lambda: nn.compute_average_loss(V, global_batch_size=2.5),
        DTypeError,
        "not 2.5",
        "one integer",
    ),
    "a size below 0": (
        lambda: nn.compute_average_loss(V, global_batch_size=-1),
        InvalidArgumentError,
        "not -1",
        "0 or more",
    ),
    "normalizing a matrix": (
        lambda: df.compat.v1.nn.fused_batch_norm(M, V, V),
        InvalidArgumentError,
        r"not shape \(2, 3\)",
        "df.nn.batch_normalization",
    ),
    "no running mean": (
        lambda: df.compat.v1.nn.fused_batch_norm(RGB, V, V, is_training=False),
        InvalidArgumentError,
        "needs mean and variance",
        "give both",
    ),
    "neighbours in a matrix": (lambda: nn.lrn(M), InvalidArgumentError, r"not shape \(2, 3\)", "df.reshape"),
    "a radius": (lambda: nn.lrn(RGB, -1), InvalidArgumentError, "not -1", "0 or more"),
    # samples of classes
    "no classes": (
        lambda: df.random.uniform_candidate_sampler([[0]], 1, 1, True, 0),
        InvalidArgumentError,
        "not 0",
        "range_max is the number of classes",
    ),
    "weights of too few classes": (
        lambda: nn.fixed_unigram_candidate_sampler([[0]], 1, 1, True, 3, unigrams=[1.0, 2.0]),
        InvalidArgumentError,
        "2 weights",
        "range_max=3 classes",
    ),
    # fractional pooling
    "a fraction of a matrix": (
        lambda: nn.fractional_max_pool(M, 1.5),
        InvalidArgumentError,
        r"not shape \(2, 3\)",
        r"\(batch, height, width, channels\)",
    ),
    "a ratio": (
        lambda: nn.fractional_avg_pool(RGB, [1.0, 0.5, 1.5, 1.0]),
        InvalidArgumentError,
        "0.5",
        "1 or more",
    ),
    # sparse tables
    "a combiner": (
        lambda: nn.embedding_lookup_sparse(M, df.sparse.eye(2), None, combiner="max"),
        InvalidArgumentError,
        "not 'max'",
        "'mean', 'sqrtn' or 'sum'",
    ),
    "dense ids": (
        lambda: nn.safe_embedding_lookup_sparse(M, NUMBERS),
        DTypeError,
        "takes SparseTensors",
        "df.sparse.from_dense",
    ),
    # decoding
    "scores of no steps": (
        lambda: nn.ctc_greedy_decoder(M, [3]),
        InvalidArgumentError,
        r"float32 of shape \(2, 3\)",
        r"\[steps, batch, classes\]",
    ),
    "a blank of the decoder": (
        lambda: nn.ctc_greedy_decoder(df.ones([2, 1, 3]), [2], blank_index=3),
        InvalidArgumentError,
        "blank_index 3",
        "outside of the 3 classes",
    ),
    "more paths than beams": (
        lambda: nn.ctc_beam_search_decoder(df.ones([2, 1, 3]), [2], 1, 2),
        InvalidArgumentError,
        "not 2 of 1",
        "a wider beam",
    ),
    "lengths of a search in floats": (
        lambda: searched(df.ones([2, 1, 3]), df.ones([1])),
        DTypeError,
        "not float32 and float32",
        "df.cast",
    ),
    "labels of no batch": (
        lambda: nn.ctc_unique_labels(NUMBERS),
        InvalidArgumentError,
        r"int32 of shape \(3,\)",
        r"\[batch, labels\]",
    ),
    # blocks
    "a block of one": (lambda: nn.space_to_depth(IMAGE, 1), InvalidArgumentError, "and 1", "2 or more"),
    "a block that does not fit": (
        lambda: nn.space_to_depth(IMAGE, 3),
        InvalidArgumentError,
        "block_size 3 does not divide the 4 rows",
        "df.pad",
    ),
    "channels of a block": (
        lambda: nn.depth_to_space(RGB, 2),
        InvalidArgumentError,
        "block_size 2 does not divide the 3 channels",
        "square",
    ),
    "no distance": (
        lambda: nn.with_space_to_batch(IMAGE, [0, 1], "VALID", None),
        InvalidArgumentError,
        r"dilation_rate \(0, 1\)",
        "positive number",
    ),
    "a padding apart": (
        lambda: nn.with_space_to_batch(IMAGE, [2, 1], "SAME", None),
        InvalidArgumentError,
        "not 'SAME' with None",
        "filter_shape",
    ),
    # morphology
    "a structure": (
        lambda: nn.dilation2d(RGB, df.ones([3, 3, 2]), 1, "SAME", "NHWC", 1),
        InvalidArgumentError,
        r"\(3, 3, 2\) does not fit",
        r"\(h, w, channels\)",
    ),
    # windows
    "pooling a vector": (
        lambda: nn.max_pool(V, 2, 2, "SAME"),
        InvalidArgumentError,
        r"shape \(3,\)",
        "df.reshape",
    ),
    "windows of a vector": (
        lambda: inferred("windows", ([3],), size=(2,), strides=(1,), dilations=(1,)),
        InvalidArgumentError,
        r"shape \(3,\)",
        "tensor of rank 3",
    ),
    "a filter of too many axes": (
        lambda: nn.convolution(V, DOT),
        InvalidArgumentError,
        r"shape \(3,\)",
        r"\(batch, \*2 axes, channels\)",
    ),
    "windows of bools": (
        lambda: nn.max_pool2d(df.ones([1, 4, 4, 1], df.bool), 2, 2, "SAME"),
        DTypeError,
        "not bool",
        "df.cast",
    ),
    "the mean of ints": (
        lambda: nn.avg_pool2d(df.ones([1, 4, 4, 1], df.int32), 2, 2, "SAME"),
        DTypeError,
        "takes floats, not int32",
        "df.cast",
    ),
    "filters": (
        lambda: nn.conv2d(RGB, df.ones([1, 1, 2, 1]), 1, "SAME"),
        InvalidArgumentError,
        "do not fit 3 channels",
        "divides",
    ),
    "outputs of groups": (
        lambda: nn.conv2d(df.ones([1, 4, 4, 4]), df.ones([1, 1, 2, 3]), 1, "SAME"),
        InvalidArgumentError,
        "do not fit 4 channels",
        "divide the outputs",
    ),
    "filters of other rank": (
        lambda: nn.conv2d(IMAGE, df.ones([1, 1, 1]), 1, "SAME"),
        InvalidArgumentError,
        r"not \(1, 1, 1\)",
        "channels, outputs",
    ),
    "filters of no window": (
        lambda: nn.convolution(M, M),
        InvalidArgumentError,
        r"not \(2, 3\)",
        "df.reshape",
    ),
    "strides": (
        lambda: nn.conv2d(IMAGE, DOT, [2, 1, 1, 1], "SAME"),
        InvalidArgumentError,
        "strides",
        "must be 1",
    ),
    "no stride": (lambda: nn.conv2d(IMAGE, DOT, 0, "SAME"), InvalidArgumentError, "not 0", "positive"),
    "strides and dilations": (
        lambda: nn.convolution(IMAGE, DOT, 2, dilations=2),
        InvalidArgumentError,
        r"strides \(2, 2\) and dilations \(2, 2\)",
        "give one of them",
    ),
    "a padding": (
        lambda: nn.conv2d(IMAGE, DOT, 1, "ALL"),
        InvalidArgumentError,
        "not 'ALL'",
        "'SAME', 'VALID'",
    ),
    "pairs of padding": (
        lambda: nn.conv2d(IMAGE, DOT, 1, [[1, 1]]),
        InvalidArgumentError,
        r"not \[\[1, 1\]\]",
        "one for each of 2 axes",
    ),
    "padding of channels": (
        lambda: nn.conv2d(IMAGE, DOT, 1, [[0, 0], [0, 0], [0, 0], [0, 1]]),
        InvalidArgumentError,
        "padding",
        "must be 0 for the batch and the channels",
    ),
    "a format": (
        lambda: nn.conv2d(IMAGE, DOT, 1, "SAME", data_format="NH"),
        InvalidArgumentError,
        "not 'NH'",
        "data_format",
    ),
    "a format of pooling": (
        lambda: nn.max_pool(IMAGE, 2, 2, "SAME", data_format="HW"),
        InvalidArgumentError,
        "not 'HW'",
        "data_format",
    ),
    "the gradient for dynamic sizes with strides": (
        lambda: over_strides(Geometry((3, 3), (2, 2), (1, 1), ((0, 0), (0, 0))), (None, 4), (2, 1)),
        InvalidArgumentError,
        r"\(None, 2\)",
        "give known shapes",
    ),
    "windows of dynamic sizes": (
        lambda: sum_windows(df.ones([1, 2, 3, 1]), (3,), (1,), (1,), (None,)),
        InvalidArgumentError,
        r"\(None,\)",
        "give known shapes",
    ),
    # transposed and depthwise convolutions
    "the shape of a transposed convolution": (
        lambda: nn.conv2d_transpose(IMAGE, DOT, [1, 9, 9, 1], 1),
        InvalidArgumentError,
        "not the input's shape",
        "output_shape",
    ),
    "the rank of a transposed convolution": (
        lambda: nn.conv2d_transpose(IMAGE, df.ones([1, 1, 1]), [1, 4, 4, 1], 1),
        InvalidArgumentError,
        r"not \(1, 1, 1\)",
        "outputs, channels",
    ),
    "a transposed convolution of a matrix": (
        lambda: nn.conv_transpose(M, df.ones([1, 1, 1]), [1, 4, 1], 1),
        InvalidArgumentError,
        r"\(2, 3\)",
        r"\(batch, \*axes, channels\)",
    ),
    "an output shape": (
        lambda: nn.conv2d_transpose(IMAGE, DOT, [1, 4, 4], 1),
        InvalidArgumentError,
        r"\[1, 4, 4\]",
        "or the sizes of the axes",
    ),
    "channels of a depthwise filter": (
        lambda: nn.depthwise_conv2d(RGB, df.ones([1, 1, 2, 1])),
        InvalidArgumentError,
        r"\(1, 1, 2, 1\) does not fit",
        "channels, multiplier",
    ),
    "a pointwise window": (
        lambda: nn.separable_conv2d(RGB, df.ones([1, 1, 3, 1]), df.ones([2, 1, 3, 1])),
        InvalidArgumentError,
        r"\(2, 1, 3, 1\)",
        r"\(1, 1, channels \* multiplier, outputs\)",
    ),
    "a pointwise filter": (
        lambda: nn.separable_conv2d(RGB, df.ones([1, 1, 3, 2]), df.ones([1, 1, 3, 1])),
        InvalidArgumentError,
        r"\(1, 1, 3, 1\) does not fit",
        "third size must be channels",
    ),
    "outputs of a gradient": (
        lambda: df.compat.v1.nn.conv2d_backprop_input([1, 4, 4, 1], DOT, RGB, 1, "SAME"),
        InvalidArgumentError,
        r"not \(1, 4, 4, 3\)",
        r"outputs of shape \(1, 4, 4, 1\)",
    ),
    # pooling
    "windows along channels and an axis": (
        lambda: nn.max_pool2d(IMAGE, [1, 2, 1, 2], [1, 2, 1, 2], "VALID"),
        InvalidArgumentError,
        r"\[1, 2, 1, 2\]",
        "of size 1 along the other axes",
    ),
    "a kind of pooling": (
        lambda: nn.pool(IMAGE, [2, 2], "L2"),
        InvalidArgumentError,
        "not 'L2'",
        "'MAX' or 'AVG'",
    ),
    "dilated pooling with padding": (
        lambda: nn.pool(IMAGE, [2, 2], "MAX", padding="SAME", dilations=2),
        InvalidArgumentError,
        "not 'SAME'",
        "df.pad",
    ),
}


ASKED_DIRECTLY = [case for case, (call, *_) in CASES.items() if DIRECT & {*call.__code__.co_names}]


class TestErrorMessages(ErrorCases):
    cases = CASES
    internal = ASKED_DIRECTLY
    raised_in = ("ops/neural/*.py",)
