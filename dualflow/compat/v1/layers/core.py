"""Dense layers, and layers without variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dualflow.compat.v1 import changed_functions
from dualflow.compat.v1.initializers import Zeros
from dualflow.compat.v1.layers.base import (
    Layer,
    WeightOptions,
    as_function,
    is_channels_first,
    named_activation,
)
from dualflow.compat.v1.scopes import Reuse, VariableScope
from dualflow.core.dispatch import TENSORS
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.function.control.control_flow import cond
from dualflow.ops.arrangement import expand_dims, reshape, transpose
from dualflow.ops.contraction import matmul
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.shapes import shape as shape_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualflow.core.argument_types import DTypeLike, ShapeLike, TensorLike
    from dualflow.ops.tensor import Tensor


class Dense(Layer):
    """A fully connected layer: ``activation(inputs @ kernel + bias)``.

    The variables are created by the first call, in a variable scope of the layer's name, and shared by all
    calls.

    Args:
        units: the size of the last axis of the outputs.
        activation: a function such as ``nn.relu``, or its name in ``nn``; none by default.
        use_bias: whether there is a bias.
        kernel_initializer, bias_initializer: by default the variable scope's initializer or Glorot
            uniform for the kernel, and zeros for the bias.
        kernel_regularizer, bias_regularizer: see :func:`get_variable`.
        activity_regularizer: a function of the outputs whose result is added to the layer's losses.
        kernel_constraint, bias_constraint: see :func:`get_variable`.
        trainable: whether optimizers update the variables by default.
        name: of the scope, by default ``dense``, ``dense_1``, ...
        dtype: of the variables, float32 by default; inputs are cast to it.
        _reuse: whether the first call reuses variables, as ``reuse`` of :func:`variable_scope`.

    >>> from dualflow.compat import v1
    >>> layer = v1.layers.Dense(1, kernel_initializer=v1.ones_initializer())
    >>> layer(v1.constant([[1.0, 2.0, 4.0]])).numpy().tolist()
    [[7.0]]
    >>> layer.kernel.name, layer.bias.name
    ('dense/kernel:0', 'dense/bias:0')
    """

    min_ndim = 2

    def __init__(
        self,
        units: int,
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
        self.units = int(units)
        self.activation = named_activation(activation)
        self.use_bias = use_bias
        self.kernel: Any = None
        self.bias: Any = None
        self._kernel_options = WeightOptions(kernel_initializer, kernel_regularizer, kernel_constraint)
        first = Zeros() if bias_initializer is None else bias_initializer
        self._bias_options = WeightOptions(first, bias_regularizer, bias_constraint)

    def build(self, input_shape: Sequence[int | None]) -> None:
        """Create the variables for inputs with the last size of ``input_shape``."""
        width = tuple(input_shape)[-1] if len(input_shape) else None
        if width is None:
            raise InvalidArgumentError(
                "The last dimension of the inputs to a Dense layer should be defined. Found None: give the "
                "placeholder its last size."
            )
        self.kernel = self._weight("kernel", [width, self.units], self._kernel_options)
        if self.use_bias:
            self.bias = self._weight("bias", [self.units], self._bias_options)
        super().build(input_shape)

    def call(self, inputs: Tensor) -> Any:
        """``activation(inputs @ kernel + bias)``.

        Args:
            inputs: a tensor ``[..., width]`` of two or more axes.

        Returns:
            A tensor ``[..., units]``.

        Raises:
            InvalidArgumentError: the width differs from that of the first call.
        """
        if inputs.shape[-1] not in (None, self.kernel.shape[0]):
            raise InvalidArgumentError(
                f"Input 0 of layer {self.name} is incompatible with the layer: expected axis -1 of input "
                f"shape to have value {self.kernel.shape[0]} but received input with shape {inputs.shape}"
            )
        outputs = matmul(self._cast_inputs(inputs), self.kernel)
        if self.use_bias:
            outputs = outputs + self.bias
        return outputs if self.activation is None else self.activation(outputs)


class Flatten(Layer):
    """Flattens all axes after the batch to one.

    Args:
        trainable, dtype: ignored, since there are no variables.
        name: of the layer, by default ``flatten``.
        data_format: "channels_last", or "channels_first", with which channels are first made the last axis.

    >>> from dualflow.compat import v1
    >>> v1.layers.Flatten()(v1.ones([2, 3, 4])).shape
    (2, 12)
    """

    min_ndim = 1

    def __init__(
        self,
        trainable: bool = True,
        name: str | None = None,
        dtype: DTypeLike | None = None,
        data_format: str = "channels_last",
        _reuse: bool | Reuse | None = None,
        _scope: VariableScope | str | None = None,
    ) -> None:
        super().__init__(trainable, name, dtype, None, _reuse, _scope)
        self._channels_first = is_channels_first(data_format)

    def call(self, inputs: Tensor) -> Any:
        """``inputs`` of shape ``[batch, ...]`` as ``[batch, size]``; a vector gets an axis of size 1."""
        if len(inputs.shape) == 1:
            return expand_dims(inputs, -1)
        if self._channels_first and len(inputs.shape) > 2:
            inputs = transpose(inputs, [0, *range(2, len(inputs.shape)), 1])
        batch, element = inputs.shape[0], inputs.shape[1:]
        if element.is_static and element.num_elements():
            return reshape(inputs, [-1 if batch is None else batch, element.num_elements()])
        return reshape(inputs, [shape_of(inputs)[0] if batch is None else batch, -1 if batch != 0 else 0])


class Dropout(Layer):
    """Dropout: sets a fraction of the inputs to 0 in training, and scales up the others.

    Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting", 2014.

    Args:
        rate: the probability that an element is dropped, in [0, 1).
        noise_shape: the shape of the random numbers, which broadcast to the inputs; by default that of the
            inputs.
        seed: the seed of a random stream for the layer.
        name: of the layer, by default ``dropout``.

    >>> from dualflow.compat import v1
    >>> layer = v1.layers.Dropout(0.5)
    >>> float(v1.reduce_sum(layer(v1.ones([10])))), float(v1.reduce_max(layer(v1.ones([100]), training=True)))
    (10.0, 2.0)
    """

    def __init__(
        self,
        rate: TensorLike = 0.5,
        noise_shape: ShapeLike | None = None,
        seed: int | None = None,
        name: str | None = None,
        _reuse: bool | Reuse | None = None,
        _scope: VariableScope | str | None = None,
    ) -> None:
        super().__init__(name=name, _reuse=_reuse, _scope=_scope)
        self.rate = rate
        self.noise_shape = noise_shape
        self.seed = seed

    def call(self, inputs: Tensor, training: TensorLike = False) -> Any:
        """``inputs``, with dropout if ``training``, a bool or a scalar tensor, is true."""
        return smart_cond(training, lambda: self._apply_dropout(inputs), lambda: convert_to_tensor(inputs))

    def _apply_dropout(self, inputs: Any) -> Any:
        return changed_functions.dropout(inputs, noise_shape=self.noise_shape, seed=self.seed, rate=self.rate)


def smart_cond(pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any]) -> Any:
    """``true_fn()`` if ``pred``, else ``false_fn()``; a ``cond`` if ``pred`` is a tensor."""
    if isinstance(pred, TENSORS):
        return cond(pred, true_fn, false_fn)
    return true_fn() if pred else false_fn()


dense = as_function(
    Dense,
    "dense",
    """>>> from dualflow.compat import v1
    >>> v1.layers.dense(v1.ones([2, 3]), 4, activation="relu").shape
    (2, 4)""",
)


@entry
def flatten(inputs: Tensor, name: str | None = None, data_format: str = "channels_last") -> Any:
    """``inputs`` with all axes after the batch flattened to one; see :class:`Flatten`.

    >>> from dualflow.compat import v1
    >>> v1.layers.flatten(v1.ones([2, 3, 4])).shape
    (2, 12)
    """
    return Flatten(name=name, data_format=data_format)(inputs)


@entry
def dropout(
    inputs: TensorLike,
    rate: TensorLike = 0.5,
    noise_shape: ShapeLike | None = None,
    seed: int | None = None,
    training: TensorLike = False,
    name: str | None = None,
) -> Any:
    """``inputs``, with dropout if ``training`` is true; see :class:`Dropout`.

    >>> from dualflow.compat import v1
    >>> v1.layers.dropout(v1.constant([1.0, 2.0])).numpy().tolist()
    [1.0, 2.0]
    """
    return Dropout(rate, noise_shape, seed, name)(inputs, training=training)
