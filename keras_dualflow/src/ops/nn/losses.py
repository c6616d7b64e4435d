"""Cross-entropies, CTC and PSNR."""

from __future__ import annotations

from typing import Any

from keras.src.backend import epsilon

import dualflow as df
import dualflow.numpy as dnp
from keras_dualflow.src.ops.core import cast, convert_to_tensor
from keras_dualflow.src.ops.promotion import floats, result_type, tensor


def _check_shapes(target: Any, output: Any, expected: Any) -> None:
    """Raise ValueError if the shape of ``target`` is not compatible with ``expected``."""
    fits = len(target.shape) == len(expected) and all(
        a is None or b is None or a == b for a, b in zip(target.shape, expected, strict=True)
    )
    if not fits:
        raise ValueError(
            "Arguments `target` and `output` must have the same shape"
            f"{'' if len(expected) == len(output.shape) else ' up until the last dimension'}. "
            f"Received: target.shape={target.shape}, output.shape={output.shape}"
        )


def _check_rank(output: Any) -> None:
    if len(output.shape) < 1:
        raise ValueError(
            f"Arguments `target` and `output` must be at least rank 1. Received: output.shape={output.shape}"
        )


def _clipped_probabilities(output: Any) -> Any:
    """``output``, clipped so that ``log(output)`` and ``log(1 - output)`` are finite."""
    return df.clip_by_value(output, epsilon(), 1.0 - epsilon())


def categorical_crossentropy(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> Any:
    target, output = tensor(target), floats(output)
    _check_rank(output)
    _check_shapes(target, output, output.shape)
    target = cast(target, output.dtype.name)
    if from_logits:
        return df.nn.softmax_cross_entropy_with_logits(target, output, axis)
    output = output / df.reduce_sum(output, axis, keepdims=True)
    return -df.reduce_sum(target * df.math.log(_clipped_probabilities(output)), axis)


def sparse_categorical_crossentropy(
    target: Any, output: Any, from_logits: bool = False, axis: int = -1
) -> Any:
    target, output = cast(target, "int32"), floats(output)
    _check_rank(output)
    if axis not in (-1, len(output.shape) - 1):
        raise ValueError(f"Only axis=-1 is currently supported. Received: axis={axis}")
    if len(target.shape) == len(output.shape) and target.shape[-1] == 1:
        target = df.squeeze(target, -1)
    _check_shapes(target, output, output.shape[:-1])
    if not from_logits:
        output = output / df.reduce_sum(output, -1, keepdims=True)
        output = df.math.log(_clipped_probabilities(output))
    return df.nn.sparse_softmax_cross_entropy_with_logits(target, output)


def binary_crossentropy(target: Any, output: Any, from_logits: bool = False) -> Any:
    target, output = tensor(target), floats(output)
    _check_shapes(target, output, output.shape)
    target = cast(target, output.dtype.name)
    if from_logits:
        return df.nn.sigmoid_cross_entropy_with_logits(target, output)
    output = _clipped_probabilities(output)
    return -(target * df.math.log(output) + (1.0 - target) * df.math.log(1.0 - output))


def ctc_loss(target: Any, output: Any, target_length: Any, output_length: Any, mask_index: int = 0) -> Any:
    output = tensor(output)
    return df.nn.ctc_loss(
        cast(target, "int32"),
        cast(output, result_type(output.dtype, "float32")),
        cast(target_length, "int32"),
        cast(output_length, "int32"),
        logits_time_major=False,
        blank_index=mask_index,
    )


def ctc_decode(
    inputs: Any,
    sequence_lengths: Any,
    strategy: str = "greedy",
    beam_width: int = 100,
    top_paths: int = 1,
    merge_repeated: bool = True,
    mask_index: int | None = 0,
) -> tuple[Any, Any]:
    inputs = tensor(inputs)
    inputs = cast(inputs, result_type(inputs.dtype, "float32"))
    sizes = df.shape(inputs)
    lengths = cast(sequence_lengths, "int32")
    logits = df.transpose(inputs, (1, 0, 2))
    if strategy == "greedy":
        paths, scores = df.nn.ctc_greedy_decoder(logits, lengths, merge_repeated, mask_index)
    elif strategy == "beam_search":
        classes = inputs.shape[-1]
        blank = classes - 1 if mask_index is None else mask_index % classes
        # the decoder takes the last class for the blank; its labels are renumbered below
        blank_last = [*[i for i in range(classes) if i != blank], blank]
        paths, scores = df.nn.ctc_beam_search_decoder(
            df.gather(logits, blank_last, axis=-1), lengths, beam_width, top_paths
        )
    else:
        raise ValueError(f"Invalid strategy {strategy}. Supported values are 'greedy' and 'beam_search'.")
    dense = df.stack([_dense_labels(path, sizes) for path in paths])
    if strategy == "beam_search":
        dense = df.where(dense >= blank, dense + 1, dense)
    return dense, scores


def _dense_labels(path: Any, sizes: Any) -> Any:
    """Labels as a dense matrix with a column for each step, padded with -1 after the last label."""
    labels = df.SparseTensor(path.indices, path.values, cast(sizes[:2], "int64"))
    return cast(df.sparse.to_dense(labels, default_value=-1), "int32")


def psnr(x1: Any, x2: Any, max_val: Any) -> Any:
    x1, x2 = tensor(x1), tensor(x2)
    if x1.shape != x2.shape:
        raise ValueError(f"Input shapes {x1.shape} and {x2.shape} must match for PSNR calculation. ")
    largest = convert_to_tensor(max_val, x2.dtype.name)
    return 20.0 * dnp.log10(largest) - 10.0 * dnp.log10(df.reduce_mean(df.square(x1 - x2)))
