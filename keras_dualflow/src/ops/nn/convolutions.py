"""Convolutions, with the channels last or second."""

from __future__ import annotations

from typing import Any

from keras.src.backend import standardize_data_format
from keras.src.backend.common.backend_utils import (
    check_conv_input_channels,
    check_conv_transpose_input_channels,
    compute_conv_transpose_output_shape,
)

import dualflow as df
from keras_dualflow.src.ops.nn.layouts import dimensions, layout, per_axis
from keras_dualflow.src.ops.promotion import promote


def conv(
    inputs: Any,
    kernel: Any,
    strides: Any = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Any:
    inputs, kernel = promote(inputs, kernel)
    data_format = standardize_data_format(data_format)
    result = _convolve(inputs, kernel, strides, padding, data_format, dilation_rate)
    if result.size == 0 and inputs.size != 0:
        raise ValueError(
            "The convolution operation resulted in an empty output. This can happen if the input is too "
            "small for the given kernel size, strides, dilation rate, and padding mode: the input is "
            f"{inputs.shape}, the kernel {kernel.shape}, the output {result.shape}."
        )
    return result


def _convolve(x: Any, kernel: Any, strides: Any, padding: str, data_format: str, dilation_rate: Any) -> Any:
    function = (df.nn.conv1d, df.nn.conv2d, df.nn.conv3d)[dimensions(x, "conv") - 1]
    name = layout(data_format, len(x.shape))
    return function(x, kernel, strides, padding.upper(), name, dilation_rate)


def depthwise_conv(
    inputs: Any,
    kernel: Any,
    strides: Any = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Any:
    inputs, kernel = promote(inputs, kernel)
    data_format = standardize_data_format(data_format)
    check_conv_input_channels(inputs, kernel, data_format)
    *window, channels, multiplier = kernel.shape
    grouped = df.reshape(kernel, (*window, 1, channels * multiplier))
    return _convolve(inputs, grouped, strides, padding, data_format, dilation_rate)


def separable_conv(
    inputs: Any,
    depthwise_kernel: Any,
    pointwise_kernel: Any,
    strides: Any = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Any:
    data_format = standardize_data_format(data_format)
    y = depthwise_conv(inputs, depthwise_kernel, strides, padding, data_format, dilation_rate)
    return conv(y, pointwise_kernel, 1, "valid", data_format)


def conv_transpose(
    inputs: Any,
    kernel: Any,
    strides: Any = 1,
    padding: str = "valid",
    output_padding: Any = None,
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Any:
    inputs, kernel = promote(inputs, kernel)
    data_format = standardize_data_format(data_format)
    check_conv_transpose_input_channels(inputs, kernel, data_format)
    axes = dimensions(inputs, "conv_transpose")
    static_shape = inputs.shape
    run_time_sizes = df.shape(inputs) if None in static_shape else static_shape
    output_shape = compute_conv_transpose_output_shape(
        [run_time_sizes[i] if size is None else size for i, size in enumerate(static_shape)],
        kernel.shape[:-2],
        kernel.shape[-2],
        strides,
        padding,
        output_padding,
        data_format,
        dilation_rate,
    )
    output_shape = [-1 if static_shape[0] is None else static_shape[0], *output_shape[1:]]
    name = layout(data_format, len(inputs.shape))
    steps, dilations = per_axis(strides, axes), per_axis(dilation_rate, axes)
    return df.nn.conv_transpose(inputs, kernel, output_shape, steps, padding.upper(), name, dilations)
