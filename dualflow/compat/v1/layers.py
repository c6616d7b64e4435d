"""Layers: ``v1.layers``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dualflow import nn
from dualflow.compat.v1.initializers import Zeros
from dualflow.compat.v1.scopes import Reuse, VariableScope, get_variable, variable_scope
from dualflow.core.dtypes import as_dtype, float32
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.namespace import publish as _publish
from dualflow.core.tracebacks import entry
from dualflow.eager.module import Module
from dualflow.graph_mode import name_scope
from dualflow.ops.contraction import matmul
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor

__all__ = ["Dense", "dense"]


class Dense(Module):
    """A fully connected layer: ``activation(inputs @ kernel + bias)``.

    The variables are created by the first call, in a variable scope of the layer's name, and used by all.

    Args:
        units: the size of the last axis of the results.
        activation: a function of the sum, as ``nn.relu``, or the name of one of ``nn``; none by default.
        use_bias: whether there is a bias.
        kernel_initializer, bias_initializer: by default the scope's or Glorot's uniform numbers, and zeros.
        kernel_regularizer, bias_regularizer: see :func:`get_variable`.
        activity_regularizer: ignored.
        kernel_constraint, bias_constraint: see :func:`get_variable`.
        trainable: whether optimizers change the variables by themselves.
        name: of the scope, by default ``dense``, ``dense_1``, ...
        dtype: of the variables, float32 by default; inputs are cast to it.
        _reuse: whether the first call finds variables, as ``reuse`` of :func:`variable_scope`.

    >>> from dualflow.compat import v1
    >>> layer = v1.layers.Dense(1, kernel_initializer=v1.ones_initializer())
    >>> layer(v1.constant([[1.0, 2.0, 4.0]])).numpy().tolist()
    [[7.0]]
    >>> layer.kernel.name, layer.bias.name
    ('dense/kernel:0', 'dense/bias:0')
    """

    def __init__(
        self,
        units: int,
        activation: Callable[[Any], Any] | str | None = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: str | None = None,
        dtype: Any = None,
        _reuse: bool | Reuse | None = None,
    ) -> None:
        super().__init__(name or "dense")
        self.units = int(units)
        self.activation = _named_activation(activation)
        self.use_bias = use_bias
        self.kernel: Any = None
        self.bias: Any = None
        self.dtype = float32 if dtype is None else as_dtype(dtype)
        self.trainable = trainable
        self._kernel = {
            "initializer": kernel_initializer,
            "regularizer": kernel_regularizer,
            "constraint": kernel_constraint,
        }
        self._bias = {
            "initializer": Zeros() if bias_initializer is None else bias_initializer,
            "regularizer": bias_regularizer,
            "constraint": bias_constraint,
        }
        self._given_name = name
        self._reuse = _reuse
        self._scope: VariableScope | None = None

    @property
    def built(self) -> bool:
        """Whether the variables are there."""
        return self._scope is not None

    @property
    def weights(self) -> list[Any]:
        """The kernel, and the bias if there is one."""
        return [v for v in (self.kernel, self.bias) if v is not None]

    @property
    def trainable_weights(self) -> list[Any]:
        """Those of :attr:`weights` that optimizers change by themselves."""
        return [v for v in self.weights if v.trainable]

    @property
    def scope_name(self) -> str:
        """The name of the variable scope.

        Raises:
            InvalidArgumentError: before the first call.
        """
        if self._scope is None:
            raise InvalidArgumentError(f"The layer {self.name!r} has no scope before its first call.")
        return self._scope.name

    def build(self, input_shape: Any) -> None:
        """Create the variables for inputs whose last axis has the last size of ``input_shape``."""
        width = tuple(input_shape)[-1] if len(input_shape) else None
        if width is None:
            raise InvalidArgumentError(
                "The last dimension of the inputs to a Dense layer should be defined. Found None: give the "
                "placeholder its last size."
            )
        with variable_scope(
            self._given_name, "dense", reuse=self._reuse, auxiliary_name_scope=False
        ) as scope:
            shapes = {"kernel": [width, self.units], "bias": [self.units]}
            self.kernel = get_variable(
                "kernel", shapes["kernel"], self.dtype, trainable=self.trainable, **self._kernel
            )
            if self.use_bias:
                self.bias = get_variable(
                    "bias", shapes["bias"], self.dtype, trainable=self.trainable, **self._bias
                )
        self._scope = scope
        self._name = scope.name.rpartition("/")[2]

    def __call__(self, inputs: Any) -> Any:
        """The layer's result for ``inputs``.

        Args:
            inputs: a tensor ``[..., width]`` of two or more axes.

        Returns:
            A tensor ``[..., units]``.

        Raises:
            InvalidArgumentError: fewer axes, or another width than the first call's.
        """
        inputs = convert_to_tensor(inputs)
        if len(inputs.shape) < 2:
            raise InvalidArgumentError(
                f"Input 0 of layer {self.name} is incompatible with the layer: expected min_ndim=2, found "
                f"ndim={len(inputs.shape)}. Full shape received: {inputs.shape}"
            )
        if not self.built:
            self.build(inputs.shape)
        if inputs.shape[-1] not in (None, self.kernel.shape[0]):
            raise InvalidArgumentError(
                f"Input 0 of layer {self.name} is incompatible with the layer: expected axis -1 of input "
                f"shape to have value {self.kernel.shape[0]} but received input with shape {inputs.shape}"
            )
        with name_scope(self.name):
            given = inputs if inputs.dtype is self.dtype else cast(inputs, self.dtype)
            found = matmul(given, self.kernel)
            if self.use_bias:
                found = found + self.bias
            return found if self.activation is None else self.activation(found)

    apply = __call__


def _named_activation(activation: Callable[[Any], Any] | str | None) -> Callable[[Any], Any] | None:
    """The activation that is given, by its name in ``nn`` too; "linear" is none."""
    if not isinstance(activation, str):
        return activation
    if activation == "linear":
        return None
    if activation not in dir(nn):
        raise InvalidArgumentError(
            f"{activation!r} names no function of df.nn; give a name such as 'relu', or a function."
        )
    found: Callable[[Any], Any] = getattr(nn, activation)
    return found


@entry
def dense(
    inputs: Any,
    units: int,
    activation: Callable[[Any], Any] | str | None = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = None,
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    kernel_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: bool | Reuse | None = None,
) -> Any:
    """A new :class:`Dense` layer's result for ``inputs``.

    In a scope that reuses variables, or with ``reuse``, the variables of the layer of that name are used
    again.

    >>> from dualflow.compat import v1
    >>> v1.layers.dense(v1.ones([2, 3]), 4, activation="relu").shape
    (2, 4)
    """
    dtype = convert_to_tensor(inputs).dtype
    layer = Dense(
        units,
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
        dtype if dtype.is_inexact else float32,
        reuse,
    )
    return layer(inputs)


_publish(globals())
