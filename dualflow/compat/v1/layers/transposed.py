"""Layers of transposed convolutions, whose outputs are larger than their inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dualflow import nn
from dualflow.compat.v1.layers.base import as_function
from dualflow.compat.v1.layers.convolution import ConvolutionLayer
from dualflow.compat.v1.scopes import Reuse, VariableScope
from dualflow.core.errors import InvalidArgumentError

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, IntsLike


class TransposedConvolutionLayer(ConvolutionLayer):
    """The base of layers of transposed convolutions.

    The kernel has the shape ``[*kernel_size, filters, channels of the inputs]``. The size of an axis of the
    outputs is ``size * stride``, or ``size * stride + max(kernel - stride, 0)`` with "valid" padding.

    Raises:
        InvalidArgumentError: the size, padding or format is invalid.
    """

    def __init__(
        self,
        filters: int,
        kernel_size: IntsLike,
        strides: IntsLike = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        activation: Callable[[Any], Any] | str | None = None,
        use_bias: bool = True,
        kernel_initializer: str | Callable[..., Any] | None = None,
        bias_initializer: str | Callable[..., Any] | None = None,
        kernel_regularizer: Callable[..., Any] | None = None,
        bias_regularizer: Callable[..., Any] | None = None,
        activity_regularizer: Callable[..., Any] | None = None,
        kernel_constraint: Callable[..., Any] | None = None,
        bias_constraint: Callable[..., Any] | None = None,
        trainable: bool = True,
        name: str | None = None,
        dtype: DTypeLike | None = None,
        _reuse: bool | Reuse | None = None,
        _scope: VariableScope | str | None = None,
    ) -> None:
        super().__init__(
            filters,
            kernel_size,
            strides,
            padding,
            data_format,
            1,
            activation,
            use_bias,
            kernel_initializer,
            bias_initializer,
            kernel_regularizer,
            bias_regularizer,
            activity_regularizer,
            kernel_constraint,
            bias_constraint,
            trainable,
            name,
            dtype,
            _reuse,
            _scope,
        )

    def _kernel_shape(self, channels: int) -> list[int]:
        return [*self.kernel_size, self.filters, channels]

    def _channels_of_kernel(self) -> int | None:
        return None if self.kernel is None else self.kernel.shape[-1]

    def _convolve(self, inputs: Any) -> Any:
        start = 2 if self.channels_first else 1
        input_sizes = tuple(inputs.shape)[start : start + self.axes]
        if None in input_sizes:
            raise InvalidArgumentError(
                f"Layer {self.name} takes inputs whose axes have known sizes, not {inputs.shape}: give the "
                "placeholder the sizes of all axes after the batch."
            )
        axes = zip(input_sizes, self.kernel_size, self.strides, strict=True)
        sizes = [self._size(*axis) for axis in axes]
        target = [-1, self.filters, *sizes] if self.channels_first else [-1, *sizes, self.filters]
        return nn.conv_transpose(inputs, self.kernel, target, self.strides, self.padding, self._format())

    def _size(self, size: int, window: int, stride: int) -> int:
        return size * stride + (max(window - stride, 0) if self.padding == "VALID" else 0)


class Conv2DTranspose(TransposedConvolutionLayer):
    """A transposed convolution of images ``[batch, height, width, channels]``.

    Zeiler et al., "Deconvolutional networks", 2010. The arguments are those of :class:`Conv2D`, without
    ``dilation_rate``.

    >>> from dualflow.compat import v1
    >>> v1.layers.Conv2DTranspose(3, 4, strides=2, padding="same")(v1.ones([1, 5, 5, 8])).shape
    (1, 10, 10, 3)
    """

    axes = 2


class Conv3DTranspose(TransposedConvolutionLayer):
    """A transposed convolution of ``[batch, depth, height, width, channels]``, as :class:`Conv2DTranspose`.

    >>> from dualflow.compat import v1
    >>> v1.layers.Conv3DTranspose(3, 2, strides=2)(v1.ones([1, 2, 2, 2, 8])).shape
    (1, 4, 4, 4, 3)
    """

    axes = 3


conv2d_transpose = as_function(
    Conv2DTranspose,
    "conv2d_transpose",
    """>>> from dualflow.compat import v1
    >>> v1.layers.conv2d_transpose(v1.ones([1, 5, 5, 8]), 3, 4, strides=2, padding="same").shape
    (1, 10, 10, 3)""",
)
conv3d_transpose = as_function(
    Conv3DTranspose,
    "conv3d_transpose",
    """>>> from dualflow.compat import v1
    >>> v1.layers.conv3d_transpose(v1.ones([1, 2, 2, 2, 8]), 3, 2, strides=2).shape
    (1, 4, 4, 4, 3)""",
)
