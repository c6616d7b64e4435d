"""Keras's variables, which wrap variables of dualflow."""

from __future__ import annotations

from typing import Any

import numpy as np
from keras.src.backend.common import KerasVariable

import dualflow as df
from dualflow.core.dispatch import DifferentiableComposite
from dualflow.eager.replicas import INITIAL_VALUE, gathered_whole, whole_value
from keras_dualflow import replicas
from keras_dualflow.src.core.conversion import cast, convert_to_tensor


class Variable(KerasVariable, DifferentiableComposite):  # type: ignore[misc]  # Keras has no types
    """A variable of a layer, an optimizer or a metric.

    Ops of dualflow accept it as a tensor, and read its current value in the dtype of Keras's autocast scope;
    ``GradientTape.gradient`` accepts it as a source.
    """

    _strategy: Any = None
    """The strategy of a metric's variable that is a sum over several replicas."""

    def _initialize(self, value: Any) -> None:
        if self._synchronization == "on_read" and INITIAL_VALUE.get() is not None:
            self._strategy = df.distribute.get_strategy()
        if isinstance(value, df.Variable):
            self._value = value
            return
        with df.init_scope():
            initial = convert_to_tensor(value, dtype=self._dtype)
            self._value = df.Variable(initial, trainable=self.trainable, name=self.name)

    def _initialize_with_initializer(self, initializer: Any) -> None:
        # A layer may be built while a function is traced; initial values are computed outside of the trace.
        with df.init_scope():
            super()._initialize_with_initializer(initializer)

    def assign(self, value: Any) -> Any:
        """Assign a value.

        A variable that is a part of a whole one takes its part of a whole value. A whole variable to which
        such a part is assigned gets the whole value, which all replicas gather together.
        """
        whole, assigned = whole_value(self._value), whole_value(getattr(value, "_value", None))
        if whole is None and assigned is not None and tuple(assigned.shape) == tuple(self.shape):
            value = assigned.gather(value.numpy())
        if whole is not None and tuple(value.shape) == tuple(whole.shape) != tuple(self.shape):
            value = whole.own(np.asarray(value))
        return super().assign(value)

    def _direct_assign(self, value: Any) -> None:
        value = cast(value, self._dtype)
        if self._strategy is not None:
            value = replicas.split_total(value, self._strategy)
        self._value.assign(value)

    @property
    def value(self) -> Any:
        """The current value; of a metric's variable the sum over all replicas, outside of ``run``."""
        value = super().value
        if self._strategy is None or value is not self._value:  # in a StatelessScope
            return value
        return replicas.total(value, self._strategy)

    def _convert_to_tensor(self, value: Any, dtype: Any = None) -> Any:
        return convert_to_tensor(value, dtype=dtype)

    def numpy(self) -> Any:
        """The current value as a NumPy array; for a file that is written the whole value of a part."""
        whole = gathered_whole(self._value)
        return self.value.numpy() if whole is None else whole

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.value.__array__(dtype, copy)

    # the interface of composite tensors

    @property
    def values(self) -> Any:
        """The variable that gradients flow to."""
        return self._value

    def with_values(self, new_values: Any) -> Any:
        """The gradient for this variable: a tensor."""
        return new_values

    def __as_tensor__(self) -> Any:
        """The value as a tensor."""
        return df.convert_to_tensor(self.value)

    @property
    def trainable(self) -> bool:
        """Whether tapes watch the variable and optimizers update it."""
        return bool(self._trainable)

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self._trainable = bool(value)
        if self._value is not None:
            self._value.trainable = self._trainable
