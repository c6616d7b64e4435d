"""Layers of separable convolutions: a depthwise convolution, then a pointwise one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dualflow import nn
from dualflow.compat.v1.layers.base import WeightOptions, as_function
from dualflow.compat.v1.layers.convolution import ConvolutionLayer
from dualflow.compat.v1.scopes import Reuse, VariableScope
from dualflow.core.errors import InvalidArgumentError
from dualflow.ops.arrangement import expand_dims, squeeze

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualflow.core.argument_types import DTypeLike, IntsLike


class SeparableLayer(ConvolutionLayer):
    """The base of layers of separable convolutions, depthwise and then pointwise.

    Chollet, "Xception: deep learning with depthwise separable convolutions", 2017.

    Raises:
        InvalidArgumentError: strides that differ, or an invalid size, padding or format.
    """

    def __init__(
        self,
        filters: int,
        kernel_size: IntsLike,
        strides: IntsLike = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: IntsLike = 1,
        depth_multiplier: int = 1,
        activation: Callable[[Any], Any] | str | None = None,
        use_bias: bool = True,
        depthwise_initializer: str | Callable[..., Any] | None = None,
        pointwise_initializer: str | Callable[..., Any] | None = None,
        bias_initializer: str | Callable[..., Any] | None = None,
        depthwise_regularizer: Callable[..., Any] | None = None,
        pointwise_regularizer: Callable[..., Any] | None = None,
        bias_regularizer: Callable[..., Any] | None = None,
        activity_regularizer: Callable[..., Any] | None = None,
        depthwise_constraint: Callable[..., Any] | None = None,
        pointwise_constraint: Callable[..., Any] | None = None,
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
            dilation_rate,
            activation,
            use_bias,
            bias_initializer=bias_initializer,
            bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer,
            bias_constraint=bias_constraint,
            trainable=trainable,
            name=name,
            dtype=dtype,
            _reuse=_reuse,
            _scope=_scope,
        )
        if len(set(self.strides)) > 1:
            raise InvalidArgumentError(
                f"A separable convolution takes one stride for all axes, not {self.strides}."
            )
        self.depth_multiplier = int(depth_multiplier)
        self.depthwise_kernel: Any = None
        self.pointwise_kernel: Any = None
        self._depthwise_options = WeightOptions(
            depthwise_initializer, depthwise_regularizer, depthwise_constraint
        )
        self._pointwise_options = WeightOptions(
            pointwise_initializer, pointwise_regularizer, pointwise_constraint
        )

    def build(self, input_shape: Sequence[int | None]) -> None:
        """Create the variables for inputs with the channels of ``input_shape``."""
        channels = self._channels(input_shape)
        depthwise_shape = [*self.kernel_size, channels, self.depth_multiplier]
        pointwise_shape = [*[1] * self.axes, channels * self.depth_multiplier, self.filters]
        self.depthwise_kernel = self._weight("depthwise_kernel", depthwise_shape, self._depthwise_options)
        self.pointwise_kernel = self._weight("pointwise_kernel", pointwise_shape, self._pointwise_options)
        self._build_bias(input_shape)

    def _channels_of_kernel(self) -> int | None:
        return None if self.depthwise_kernel is None else self.depthwise_kernel.shape[-2]

    def _convolve(self, inputs: Any) -> Any:
        depthwise, pointwise = self.depthwise_kernel, self.pointwise_kernel
        height_axis = 2 if self.channels_first else 1
        if self.axes == 1:
            inputs = expand_dims(inputs, height_axis)
            depthwise, pointwise = expand_dims(depthwise, 0), expand_dims(pointwise, 0)
        step = [self.strides[0]] * 2
        outputs = nn.separable_conv2d(
            inputs,
            depthwise,
            pointwise,
            [1, 1, *step] if self.channels_first else [1, *step, 1],
            self.padding,
            "NCHW" if self.channels_first else "NHWC",
            [1] * (2 - self.axes) + list(self.dilation_rate),
        )
        return squeeze(outputs, [height_axis]) if self.axes == 1 else outputs


class SeparableConv1D(SeparableLayer):
    """A separable convolution of inputs ``[batch, length, channels]``, as :class:`SeparableConv2D`.

    >>> from dualflow.compat import v1
    >>> v1.layers.SeparableConv1D(8, 3, padding="same")(v1.ones([2, 10, 4])).shape
    (2, 10, 8)
    """

    axes = 1


class SeparableConv2D(SeparableLayer):
    """A separable convolution of images ``[batch, height, width, channels]``.

    Args:
        depth_multiplier: the number of channels that the depthwise convolution computes from each channel.
        depthwise_initializer, depthwise_regularizer, depthwise_constraint: of the depthwise kernel
            ``[*kernel_size, channels, depth_multiplier]``.
        pointwise_initializer, pointwise_regularizer, pointwise_constraint: of the pointwise kernel.

    The other arguments are those of :class:`Conv2D`; all strides must be equal.

    >>> from dualflow.compat import v1
    >>> v1.layers.SeparableConv2D(8, 3, depth_multiplier=2)(v1.ones([2, 10, 10, 4])).shape
    (2, 8, 8, 8)
    """

    axes = 2


separable_conv1d = as_function(
    SeparableConv1D,
    "separable_conv1d",
    """>>> from dualflow.compat import v1
    >>> v1.layers.separable_conv1d(v1.ones([2, 10, 4]), 8, 3).shape
    (2, 8, 8)""",
)
separable_conv2d = as_function(
    SeparableConv2D,
    "separable_conv2d",
    """>>> from dualflow.compat import v1
    >>> v1.layers.separable_conv2d(v1.ones([2, 10, 10, 4]), 8, 3).shape
    (2, 8, 8, 8)""",
)
