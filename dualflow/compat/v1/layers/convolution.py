"""Layers of convolutions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from dualflow import nn
from dualflow.compat.v1.initializers import Zeros
from dualflow.compat.v1.layers.base import (
    Layer,
    WeightOptions,
    as_function,
    checked_padding,
    data_format_of,
    ints_per_axis,
    is_channels_first,
    named_activation,
)
from dualflow.compat.v1.scopes import Reuse, VariableScope
from dualflow.core.errors import InvalidArgumentError
from dualflow.ops.arrangement import reshape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualflow.core.argument_types import DTypeLike, IntsLike
    from dualflow.ops.tensor import Tensor


class ConvolutionLayer(Layer):
    """The base of layers of convolutions: ``activation(convolution(inputs, kernel) + bias)``.

    The kernel has the shape ``[*kernel_size, channels of the inputs, filters]``. The arguments are those of
    :class:`Conv2D`.

    Raises:
        InvalidArgumentError: the size, padding or format is invalid.
    """

    axes: ClassVar[int] = 2
    """The number of axes of the window."""

    def __init__(
        self,
        filters: int,
        kernel_size: IntsLike,
        strides: IntsLike = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: IntsLike = 1,
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
        super().__init__(trainable, name, dtype, activity_regularizer, _reuse, _scope)
        self.filters = int(filters)
        self.kernel_size = ints_per_axis(kernel_size, self.axes, "kernel_size")
        self.strides = ints_per_axis(strides, self.axes, "strides")
        self.padding = checked_padding(padding)
        self.channels_first = is_channels_first(data_format)
        self.dilation_rate = ints_per_axis(dilation_rate, self.axes, "dilation_rate")
        self.activation = named_activation(activation)
        self.use_bias = use_bias
        self.kernel: Any = None
        self.bias: Any = None
        self._kernel_options = WeightOptions(kernel_initializer, kernel_regularizer, kernel_constraint)
        bias_initializer = Zeros() if bias_initializer is None else bias_initializer
        self._bias_options = WeightOptions(bias_initializer, bias_regularizer, bias_constraint)

    def build(self, input_shape: Sequence[int | None]) -> None:
        """Create the variables for inputs with the channels of ``input_shape``."""
        channels = self._channels(input_shape)
        self.kernel = self._weight("kernel", self._kernel_shape(channels), self._kernel_options)
        self._build_bias(input_shape)

    def call(self, inputs: Tensor) -> Any:
        """The outputs for ``inputs``, whose layout is ``data_format``, such as ``[batch, *axes, channels]``.

        Raises:
            InvalidArgumentError: inputs of another rank, or of another number of channels than in the first
                call.
        """
        self._channels(inputs.shape)
        return self._add_bias_and_activate(self._convolve(self._cast_inputs(inputs)))

    def _kernel_shape(self, channels: int) -> list[int]:
        return [*self.kernel_size, channels, self.filters]

    def _convolve(self, inputs: Any) -> Any:
        return nn.convolution(
            inputs, self.kernel, self.strides, self.padding, self._format(), self.dilation_rate
        )

    def _format(self) -> str:
        """``data_format`` as functions of ``nn`` require it, such as "NHWC"."""
        return data_format_of(self.axes, self.channels_first)

    def _build_bias(self, input_shape: Any) -> None:
        if self.use_bias:
            self.bias = self._weight("bias", [self.filters], self._bias_options)
        super().build(input_shape)

    def _add_bias_and_activate(self, outputs: Any) -> Any:
        """``activation(outputs + bias)``."""
        if self.use_bias:
            bias_shape = [1, self.filters, *[1] * self.axes]
            outputs = outputs + (reshape(self.bias, bias_shape) if self.channels_first else self.bias)
        return outputs if self.activation is None else self.activation(outputs)

    def _channels(self, shape: Any) -> int:
        """The number of channels of inputs of a shape."""
        if len(shape) != self.axes + 2:
            self._reject_rank(f"ndim={self.axes + 2}", shape)
        channel_axis = 1 if self.channels_first else self.axes + 1
        channels = tuple(shape)[channel_axis]
        if channels is None:
            raise InvalidArgumentError(
                "The channel dimension of the inputs should be defined. Found None: give the placeholder "
                "the size of that axis."
            )
        expected = self._channels_of_kernel()
        if expected not in (None, channels):
            raise InvalidArgumentError(
                f"Input 0 of layer {self.name} is incompatible with the layer: expected axis "
                f"{channel_axis} of input shape to have value {expected} but received input with shape "
                f"{shape}"
            )
        return int(channels)

    def _channels_of_kernel(self) -> int | None:
        """The number of channels of the inputs of the first call; None before it."""
        return None if self.kernel is None else self.kernel.shape[-2]


class Conv1D(ConvolutionLayer):
    """A convolution of inputs ``[batch, length, channels]``; its arguments are those of :class:`Conv2D`.

    >>> from dualflow.compat import v1
    >>> v1.layers.Conv1D(8, 3, padding="same")(v1.ones([2, 10, 4])).shape
    (2, 10, 8)
    """

    axes = 1


class Conv2D(ConvolutionLayer):
    """A convolution of images ``[batch, height, width, channels]``.

    Args:
        filters: the number of channels of the outputs.
        kernel_size: the size of the window: an integer for each axis, or one for all.
        strides: the distance between windows.
        padding: "valid", or "same" for outputs of the inputs' size divided by the strides.
        data_format: "channels_last", or "channels_first" for ``[batch, channels, height, width]``.
        dilation_rate: the distance between the elements of a window.

    The other arguments are those of :class:`Dense`.

    >>> from dualflow.compat import v1
    >>> layer = v1.layers.Conv2D(8, [3, 3], padding="same", activation="relu")
    >>> layer(v1.ones([2, 10, 10, 3])).shape, layer.kernel.shape
    ((2, 10, 10, 8), (3, 3, 3, 8))
    """

    axes = 2


class Conv3D(ConvolutionLayer):
    """A convolution of inputs ``[batch, depth, height, width, channels]``, as :class:`Conv2D`.

    >>> from dualflow.compat import v1
    >>> v1.layers.Conv3D(8, 2)(v1.ones([2, 4, 4, 4, 1])).shape
    (2, 3, 3, 3, 8)
    """

    axes = 3


conv1d = as_function(
    Conv1D,
    "conv1d",
    """>>> from dualflow.compat import v1
    >>> v1.layers.conv1d(v1.ones([2, 10, 4]), 8, 3).shape
    (2, 8, 8)""",
)
conv2d = as_function(
    Conv2D,
    "conv2d",
    """>>> from dualflow.compat import v1
    >>> v1.layers.conv2d(v1.ones([2, 10, 10, 3]), 8, 3, strides=2).shape
    (2, 4, 4, 8)""",
)
conv3d = as_function(
    Conv3D,
    "conv3d",
    """>>> from dualflow.compat import v1
    >>> v1.layers.conv3d(v1.ones([2, 4, 4, 4, 1]), 8, 2).shape
    (2, 3, 3, 3, 8)""",
)
