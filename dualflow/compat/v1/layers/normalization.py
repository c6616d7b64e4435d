"""Layers of batch normalization."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow import nn
from dualflow.compat.v1.initializers import Ones, Zeros
from dualflow.compat.v1.layers.base import Layer, WeightOptions
from dualflow.compat.v1.layers.core import smart_cond
from dualflow.compat.v1.scopes import Reuse, VariableScope
from dualflow.core.dispatch import TENSORS
from dualflow.core.dtypes import float32
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.ops.arithmetic import maximum
from dualflow.ops.arrangement import reshape
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor, ones_like

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dualflow.core.argument_types import DTypeLike, TensorLike
    from dualflow.ops.tensor import Tensor


class BatchNormalization(Layer):
    """Batch normalization: ``gamma * (inputs - mean) / sqrt(variance + epsilon) + beta``.

    In training, mean and variance are the batch's; otherwise they are moving averages. In an explicit graph
    the operations that update the averages are in :attr:`updates` and in ``GraphKeys.UPDATE_OPS``, for a
    session to run; eagerly a call in training updates them.

    Ioffe and Szegedy, "Batch normalization: accelerating deep network training by reducing internal
    covariate shift", 2015.

    Args:
        axis: the axis of the channels, or several.
        momentum: the weight of the old moving average in an update.
        epsilon: added to the variance.
        center, scale: whether there are ``beta`` and ``gamma``.
        beta_initializer, gamma_initializer, moving_mean_initializer, moving_variance_initializer: by default
            zeros, ones, zeros and ones.
        beta_regularizer, gamma_regularizer, beta_constraint, gamma_constraint: see :func:`get_variable`.
        fused: whether the moving average is that of the unbiased variance; by default for inputs of four
            axes, as in TensorFlow's fused kernel.
        trainable: whether optimizers update ``gamma`` and ``beta`` by default.
        name: of the scope, by default ``batch_normalization``.
        dtype: of the variables, float32 by default; inputs are cast to it.
        renorm, virtual_batch_size, adjustment: not supported.
        renorm_clipping, renorm_momentum: ignored without ``renorm``.

    Raises:
        InvalidArgumentError: ``renorm``, ``virtual_batch_size`` or ``adjustment``.

    >>> from dualflow.compat import v1
    >>> layer = v1.layers.BatchNormalization(momentum=0.5)
    >>> y = layer(v1.constant([[1.0], [3.0]]), training=True)
    >>> y.numpy().round(3).tolist(), layer.moving_mean.numpy().tolist()
    ([[-1.0], [1.0]], [1.0])
    """

    min_ndim = 1

    def __init__(
        self,
        axis: int | Sequence[int] = -1,
        momentum: float = 0.99,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: str | Callable[..., Any] | None = None,
        gamma_initializer: str | Callable[..., Any] | None = None,
        moving_mean_initializer: str | Callable[..., Any] | None = None,
        moving_variance_initializer: str | Callable[..., Any] | None = None,
        beta_regularizer: Callable[..., Any] | None = None,
        gamma_regularizer: Callable[..., Any] | None = None,
        beta_constraint: Callable[..., Any] | None = None,
        gamma_constraint: Callable[..., Any] | None = None,
        renorm: bool = False,
        renorm_clipping: TensorLike | None = None,
        renorm_momentum: float = 0.99,
        fused: bool | None = None,
        trainable: bool = True,
        virtual_batch_size: int | None = None,
        adjustment: TensorLike | None = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
        _reuse: bool | Reuse | None = None,
        _scope: VariableScope | str | None = None,
    ) -> None:
        super().__init__(trainable, name, dtype, None, _reuse, _scope)
        unsupported = {"renorm": renorm, "virtual_batch_size": virtual_batch_size, "adjustment": adjustment}
        for option, value in unsupported.items():
            if value:
                raise InvalidArgumentError(
                    f"BatchNormalization has no {option}; leave it out, or normalize with "
                    "df.nn.batch_normalization by moments of your own."
                )
        axes: Any = axis
        self.axis: list[int] = list(axes) if isinstance(axes, list | tuple) else [axes]
        self.momentum = momentum
        self.epsilon = epsilon
        self.fused = fused
        self.gamma: Any = None
        self.beta: Any = None
        self.moving_mean: Any = None
        self.moving_variance: Any = None
        self._gamma_options = WeightOptions(gamma_initializer or Ones(), gamma_regularizer, gamma_constraint)
        self._beta_options = WeightOptions(beta_initializer or Zeros(), beta_regularizer, beta_constraint)
        self._moving_initializers = moving_mean_initializer or Zeros(), moving_variance_initializer or Ones()
        self._center, self._scale = center, scale

    def build(self, input_shape: Sequence[int | None]) -> None:
        """Create the variables for inputs with the channels of ``input_shape``."""
        sizes, channels = tuple(input_shape), self._channel_axes(len(input_shape))
        if any(sizes[a] is None for a in channels):
            raise InvalidArgumentError(
                f"BatchNormalization needs the size of axis {channels} of the inputs, whose shape is "
                f"{input_shape}: give the placeholder that size."
            )
        is_single = len(channels) == 1
        shape = (
            [sizes[channels[0]]] if is_single else [n if a in channels else 1 for a, n in enumerate(sizes)]
        )
        if self._scale:
            self.gamma = self._weight("gamma", shape, self._gamma_options)
        if self._center:
            self.beta = self._weight("beta", shape, self._beta_options)
        mean, variance = self._moving_initializers
        self.moving_mean = self.add_weight("moving_mean", shape, None, mean, trainable=False)
        self.moving_variance = self.add_weight("moving_variance", shape, None, variance, trainable=False)
        super().build(input_shape)

    def call(self, inputs: Tensor, training: TensorLike = False) -> Any:
        """The normalized inputs.

        Args:
            inputs: floats of the rank that the layer was built for.
            training: a bool or a scalar tensor: whether to normalize by the batch's mean and variance, and to
                update the moving averages.
        """
        x = self._cast_inputs(inputs)
        rank = len(x.shape)
        channels = self._channel_axes(rank)
        reduced = [a for a in range(rank) if a not in channels]
        broadcast_shape = [x.shape[a] if a in channels else 1 for a in range(rank)]
        is_single = len(channels) == 1
        mean, variance = smart_cond(
            training,
            lambda: nn.moments(x, reduced, keepdims=not is_single),
            lambda: (self.moving_mean.value(), self.moving_variance.value()),
        )
        if isinstance(training, TENSORS) or training:
            self._update(self.moving_mean, mean, training)
            count = (
                reduce_sum(ones_like(x), reduced, keepdims=not is_single)
                if self._uses_unbiased_variance(rank)
                else None
            )
            unbiased = variance if count is None else variance * (count / maximum(count - 1, 1))
            self._update(self.moving_variance, unbiased, training)
        mean, variance, beta, gamma = (
            value if value is None or not is_single else reshape(value, broadcast_shape)
            for value in (mean, variance, self.beta, self.gamma)
        )
        outputs = nn.batch_normalization(x, mean, variance, beta, gamma, self.epsilon)
        return cast(outputs, inputs.dtype) if inputs.dtype.is_floating else outputs

    def _update(self, average: Any, value: Any, training: Any) -> None:
        """Update a moving average with the value of a batch; does nothing outside of training."""
        rate = smart_cond(
            training,
            lambda: convert_to_tensor(1 - self.momentum, self.dtype),
            lambda: convert_to_tensor(0.0, self.dtype),
        )
        self.add_update(average.assign_sub((average - value) * rate))

    def _uses_unbiased_variance(self, rank: int) -> bool:
        return rank == 4 if self.fused is None else self.fused

    def _channel_axes(self, rank: int) -> list[int]:
        axes = [a + rank if a < 0 else a for a in self.axis]
        if any(not 0 <= a < rank for a in axes):
            raise InvalidArgumentError(f"Invalid axis {self.axis} of inputs of {rank} axes.")
        return axes


@entry
def batch_normalization(
    inputs: TensorLike,
    axis: int | Sequence[int] = -1,
    momentum: float = 0.99,
    epsilon: float = 1e-3,
    center: bool = True,
    scale: bool = True,
    beta_initializer: str | Callable[..., Any] | None = None,
    gamma_initializer: str | Callable[..., Any] | None = None,
    moving_mean_initializer: str | Callable[..., Any] | None = None,
    moving_variance_initializer: str | Callable[..., Any] | None = None,
    beta_regularizer: Callable[..., Any] | None = None,
    gamma_regularizer: Callable[..., Any] | None = None,
    beta_constraint: Callable[..., Any] | None = None,
    gamma_constraint: Callable[..., Any] | None = None,
    training: TensorLike = False,
    trainable: bool = True,
    name: str | None = None,
    reuse: bool | Reuse | None = None,
    renorm: bool = False,
    renorm_clipping: TensorLike | None = None,
    renorm_momentum: float = 0.99,
    fused: bool | None = None,
    virtual_batch_size: int | None = None,
    adjustment: TensorLike | None = None,
) -> Any:
    """The outputs of a new :class:`BatchNormalization` layer for ``inputs``; the arguments are the layer's.

    >>> from dualflow.compat import v1
    >>> v1.layers.batch_normalization(v1.constant([[1.0], [3.0]]), training=True).numpy().round(3).tolist()
    [[-1.0], [1.0]]
    """
    x = convert_to_tensor(inputs)
    layer = BatchNormalization(
        axis,
        momentum,
        epsilon,
        center,
        scale,
        beta_initializer,
        gamma_initializer,
        moving_mean_initializer,
        moving_variance_initializer,
        beta_regularizer,
        gamma_regularizer,
        beta_constraint,
        gamma_constraint,
        renorm,
        renorm_clipping,
        renorm_momentum,
        fused,
        trainable,
        virtual_batch_size,
        adjustment,
        name,
        x.dtype if x.dtype.is_floating and x.dtype.size > 2 else float32,
        reuse,
    )
    return layer(x, training=training)
