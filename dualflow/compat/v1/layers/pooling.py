"""Layers of pooling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from dualflow import nn
from dualflow.compat.v1.layers.base import (
    Layer,
    as_function,
    checked_padding,
    data_format_of,
    ints_per_axis,
    is_channels_first,
)
from dualflow.compat.v1.scopes import Reuse, VariableScope

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, IntsLike
    from dualflow.ops.tensor import Tensor


class PoolingLayer(Layer):
    """The base of layers that compute the maximum or the mean of each window.

    Raises:
        InvalidArgumentError: the size, padding or format is invalid.
    """

    axes: ClassVar[int] = 2
    """The number of axes of the window."""
    takes_largest: ClassVar[bool] = True
    """Whether the result is the maximum rather than the mean."""

    def __init__(
        self,
        pool_size: IntsLike,
        strides: IntsLike,
        padding: str = "valid",
        data_format: str = "channels_last",
        name: str | None = None,
        dtype: DTypeLike | None = None,
        _reuse: bool | Reuse | None = None,
        _scope: VariableScope | str | None = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype, _reuse=_reuse, _scope=_scope)
        self.pool_size = ints_per_axis(pool_size, self.axes, "pool_size")
        self.strides = self.pool_size if strides is None else ints_per_axis(strides, self.axes, "strides")
        self.padding = checked_padding(padding)
        self.channels_first = is_channels_first(data_format)

    def call(self, inputs: Tensor) -> Any:
        """The pooled inputs, whose layout is ``data_format``, such as ``[batch, *axes, channels]``.

        Raises:
            InvalidArgumentError: the inputs have another rank.
        """
        if len(inputs.shape) != self.axes + 2:
            self._reject_rank(f"ndim={self.axes + 2}", inputs.shape)
        data_format = data_format_of(self.axes, self.channels_first)
        pool = nn.max_pool if self.takes_largest else nn.avg_pool
        return pool(inputs, self.pool_size, self.strides, self.padding, data_format)


class MaxPooling1D(PoolingLayer):
    """The maxima of windows of ``[batch, length, channels]``, as :class:`MaxPooling2D`.

    >>> from dualflow.compat import v1
    >>> v1.layers.MaxPooling1D(2, 2)(v1.constant([[[1.0], [3.0], [2.0], [0.0]]])).numpy().ravel().tolist()
    [3.0, 2.0]
    """

    axes = 1


class MaxPooling2D(PoolingLayer):
    """The maxima of windows of images ``[batch, height, width, channels]``.

    Args:
        pool_size: the size of the window: an integer for each axis, or one for all.
        strides: the distance between windows; by default their size.
        padding: "valid", or "same" for windows that extend over the edge.
        data_format: "channels_last", or "channels_first" for ``[batch, channels, height, width]``.
        name: of the layer, by default the class's in snake_case.

    >>> from dualflow.compat import v1
    >>> v1.layers.MaxPooling2D(2, 2)(v1.ones([1, 6, 6, 3])).shape
    (1, 3, 3, 3)
    """

    axes = 2


class MaxPooling3D(PoolingLayer):
    """The maxima of windows of ``[batch, depth, height, width, channels]``.

    The arguments are those of :class:`MaxPooling2D`.

    >>> from dualflow.compat import v1
    >>> v1.layers.MaxPooling3D(2, 2)(v1.ones([1, 4, 4, 4, 3])).shape
    (1, 2, 2, 2, 3)
    """

    axes = 3


class AveragePooling1D(PoolingLayer):
    """The means of windows of ``[batch, length, channels]``, as :class:`MaxPooling2D`.

    >>> from dualflow.compat import v1
    >>> v1.layers.AveragePooling1D(2, 2)(v1.constant([[[1.0], [3.0], [2.0], [0.0]]])).numpy().ravel().tolist()
    [2.0, 1.0]
    """

    axes = 1
    takes_largest = False


class AveragePooling2D(PoolingLayer):
    """The means of windows of images ``[batch, height, width, channels]``, as :class:`MaxPooling2D`.

    >>> from dualflow.compat import v1
    >>> v1.layers.AveragePooling2D(2, 2)(v1.ones([1, 6, 6, 3])).shape
    (1, 3, 3, 3)
    """

    axes = 2
    takes_largest = False


class AveragePooling3D(PoolingLayer):
    """The means of windows of ``[batch, depth, height, width, channels]``, as :class:`MaxPooling2D`.

    >>> from dualflow.compat import v1
    >>> v1.layers.AveragePooling3D(2, 2)(v1.ones([1, 4, 4, 4, 3])).shape
    (1, 2, 2, 2, 3)
    """

    axes = 3
    takes_largest = False


max_pooling1d = as_function(
    MaxPooling1D,
    "max_pooling1d",
    """>>> from dualflow.compat import v1
    >>> v1.layers.max_pooling1d(v1.ones([1, 6, 3]), 2, 2).shape
    (1, 3, 3)""",
)
max_pooling2d = as_function(
    MaxPooling2D,
    "max_pooling2d",
    """>>> from dualflow.compat import v1
    >>> v1.layers.max_pooling2d(v1.ones([1, 6, 6, 3]), 2, 2).shape
    (1, 3, 3, 3)""",
)
max_pooling3d = as_function(
    MaxPooling3D,
    "max_pooling3d",
    """>>> from dualflow.compat import v1
    >>> v1.layers.max_pooling3d(v1.ones([1, 6, 6, 6, 3]), 2, 2).shape
    (1, 3, 3, 3, 3)""",
)
average_pooling1d = as_function(
    AveragePooling1D,
    "average_pooling1d",
    """>>> from dualflow.compat import v1
    >>> v1.layers.average_pooling1d(v1.ones([1, 6, 3]), 2, 2).shape
    (1, 3, 3)""",
)
average_pooling2d = as_function(
    AveragePooling2D,
    "average_pooling2d",
    """>>> from dualflow.compat import v1
    >>> v1.layers.average_pooling2d(v1.ones([1, 6, 6, 3]), 2, 2).shape
    (1, 3, 3, 3)""",
)
average_pooling3d = as_function(
    AveragePooling3D,
    "average_pooling3d",
    """>>> from dualflow.compat import v1
    >>> v1.layers.average_pooling3d(v1.ones([1, 6, 6, 6, 3]), 2, 2).shape
    (1, 3, 3, 3, 3)""",
)
