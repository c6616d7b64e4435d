"""``tfe.metrics``: the metrics of TensorFlow 1's eager guides.

A metric accumulates sums in variables. In an explicit graph a call returns the operation that updates them,
and ``result()`` returns a tensor, both for a session to run; elsewhere they run at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from dualflow.compat.v1.collection import GraphKeys
from dualflow.compat.v1.initializers import Zeros
from dualflow.compat.v1.scopes import VariableScope, get_variable, variable_scope
from dualflow.core.argument_types import DTypeLike, ShapeLike, TensorLike
from dualflow.core.dtypes import as_dtype, bool_, float64
from dualflow.core.errors import FailedPreconditionError, InvalidArgumentError
from dualflow.core.namespace import publish as _publish
from dualflow.core.tracebacks import entry
from dualflow.eager.module import Module
from dualflow.graph_mode import recording_graph, variables_initializer
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.comparison import equal
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor, zeros_like
from dualflow.ops.reduction import argmax
from dualflow.ops.shapes import size

__all__ = ["Accuracy", "BinaryAccuracy", "CategoricalAccuracy", "Mean", "Metric", "SparseAccuracy"]


class Metric(Module):
    """The base class of metrics: ``build`` creates variables, ``call`` updates them, ``result`` reads them.

    Args:
        name: the name of the class by default.
        use_global_variables: whether the variables are in a graph's collection of global variables, rather
            than local ones.

    >>> import dualflow.eager as tfe
    >>> class Count(tfe.metrics.Metric):
    ...     def build(self, values):
    ...         self.count = self.add_variable("count", (), "int32")
    ...     def call(self, values):
    ...         self.count.assign_add(len(values))
    ...     def result(self):
    ...         return self.count.value()
    >>> count = Count()
    >>> count([3, 1]), count([2]), int(count.result())
    (None, None, 3)
    """

    def __init__(self, name: str | None = None, use_global_variables: bool = False) -> None:
        super().__init__(name or type(self).__name__)
        self.built = False
        self._own: dict[str, Any] = {}
        self._use_global_variables = use_global_variables
        self._scope: VariableScope | None = None

    @property
    def variables(self) -> tuple[Any, ...]:
        """The variables that :meth:`add_variable` has created, in that order."""
        return tuple(self._own.values())

    @entry
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Update the metric; the arguments are those of ``call``.

        Returns:
            The result of ``call``; in an explicit graph the operation that updates the variables.
        """
        if not self.built:
            with self._within():
                self.build(*args, **kwargs)
            self.built = True
        graph = recording_graph()
        if graph is None:
            return self.call(*args, **kwargs)
        with graph.name_scope(self._scope_of_ops()) as scope, graph.assignments() as assignments:
            self.call(*args, **kwargs)
        return graph.engine.group(scope, assignments)

    def build(self, *args: Any, **kwargs: Any) -> None:
        """Create the variables, with :meth:`add_variable`; called once, with the first call's arguments."""
        raise NotImplementedError(f"{type(self).__name__} is a metric without a method build().")

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Update the variables from the arguments."""
        raise NotImplementedError(f"{type(self).__name__} is a metric without a method call().")

    def result(self) -> Any:
        """The metric of all data so far, a tensor."""
        raise NotImplementedError(f"{type(self).__name__} is a metric without a method result().")

    def value(self) -> Any:
        """The result in an explicit graph; elsewhere the method :meth:`result`, uncalled."""
        return self.result if recording_graph() is None else self.result()

    @entry
    def init_variables(self) -> Any:
        """Reset the variables to zeros; in an explicit graph, return their initializer operation.

        Raises:
            FailedPreconditionError: before the first call, which creates them.
        """
        if not self.built:
            raise FailedPreconditionError(
                f"The metric {self.name!r} has no variables before its first call; call it first."
            )
        if recording_graph() is not None:
            return variables_initializer(self.variables, f"{self.name}/init")
        for variable in self.variables:
            variable.assign(zeros_like(variable))
        return None

    @entry
    def add_variable(
        self,
        name: str,
        shape: ShapeLike | None = None,
        dtype: DTypeLike | None = None,
        initializer: TensorLike | Callable[..., Any] | None = None,
    ) -> Any:
        """A variable of the metric, for ``build``.

        Args:
            name: in the scope of the metric.
            shape: the shape of the variable, a scalar by default.
            dtype: float32 by default.
            initializer: a function of shape and dtype; zeros by default.

        Raises:
            FailedPreconditionError: the metric has been called before.
        """
        if self.built:
            raise FailedPreconditionError("Can't call add_variable() except in build().")
        kind = GraphKeys.GLOBAL_VARIABLES if self._use_global_variables else GraphKeys.LOCAL_VARIABLES
        self._own[name] = get_variable(
            name,
            () if shape is None else shape,
            dtype,
            Zeros() if initializer is None else initializer,
            trainable=False,
            collections=[kind],
        )
        return self._own[name]

    def _scope_of_ops(self) -> str:
        return re.sub("[^A-Za-z0-9.]", "_", self.name)

    def _within(self) -> Any:
        """A context manager that enters the metric's variable scope."""
        if self._scope is None:
            with variable_scope(None, self._scope_of_ops(), auxiliary_name_scope=False) as self._scope:
                pass
        return variable_scope(self._scope, auxiliary_name_scope=False)


class RunningMean(Metric):
    """The base class of weighted means: a weighted sum, and the sum of the weights.

    Args:
        name: the name of the class by default.
        dtype: the dtype of the sums, float64 by default.
        use_global_variables: as in :class:`Metric`.
    """

    def __init__(
        self, name: str | None = None, dtype: DTypeLike = float64, use_global_variables: bool = False
    ) -> None:
        super().__init__(name, use_global_variables)
        self.dtype = as_dtype(dtype)

    def build(self, *args: Any, **kwargs: Any) -> None:
        """Create the sum of the values and the sum of the weights."""
        self.numer = self.add_variable("numer", (), self.dtype)
        self.denom = self.add_variable("denom", (), self.dtype)

    def add(self, values: TensorLike, weights: TensorLike | None = None) -> None:
        """Add ``values``, numbers of any shape, weighted by ``weights``, 1 by default."""
        numbers = cast(convert_to_tensor(values), self.dtype)
        if weights is None:
            total, weight = reduce_sum(numbers), cast(size(numbers), self.dtype)
        else:
            factors = cast(convert_to_tensor(weights), self.dtype)
            total, weight = reduce_sum(numbers * factors), reduce_sum(factors)
        self.denom.assign_add(weight)
        self.numer.assign_add(total)

    @entry
    def result(self) -> Any:
        """The mean, a scalar of the metric's dtype; nan without data since the variables were reset.

        Raises:
            FailedPreconditionError: before the first call.
        """
        if not self.built:
            raise FailedPreconditionError(f"The metric {self.name!r} has no data; call it first.")
        return self.numer / self.denom


class Mean(RunningMean):
    """The mean of all values so far, weighted if weights were passed.

    Args:
        name: the name of the class by default.
        dtype: the dtype of the sums, float64 by default.
        use_global_variables: as in :class:`Metric`.

    >>> import dualflow.eager as tfe
    >>> mean = tfe.metrics.Mean("loss")
    >>> _ = mean(1.0), mean([2.0, 6.0])
    >>> float(mean.result())
    3.0
    """

    def call(self, values: TensorLike, weights: TensorLike | None = None) -> Any:
        """Add ``values``.

        Args:
            values: numbers of any shape.
            weights: numbers that broadcast to the shape of ``values``; 1 by default.

        Returns:
            ``values``, or the pair of values and weights.
        """
        self.add(values, weights)
        return values if weights is None else (values, weights)


class Accuracy(RunningMean):
    """The fraction of predictions that equal their labels.

    >>> import dualflow.eager as tfe
    >>> accuracy = tfe.metrics.Accuracy()
    >>> _ = accuracy(labels=[1, 2, 3, 4], predictions=[1, 2, 0, 0])
    >>> float(accuracy.result())
    0.5
    """

    def call(self, labels: TensorLike, predictions: TensorLike, weights: TensorLike | None = None) -> Any:
        """Compare labels with predictions, and update the counts.

        Args:
            labels: the expected values.
            predictions: of the shape of ``labels``.
            weights: the weight of each comparison; 1 by default.

        Returns:
            The arguments that were passed.

        Raises:
            InvalidArgumentError: labels and predictions differ in shape.
        """
        expected, actual = self._compared(convert_to_tensor(labels), convert_to_tensor(predictions))
        if not expected.shape.is_compatible_with(actual.shape):
            raise InvalidArgumentError(
                f"Shapes of labels and predictions are unequal: {expected.shape} and {actual.shape}; "
                f"{type(self).__name__} compares them one by one."
            )
        self.add(equal(expected, actual), weights)
        return (labels, predictions) if weights is None else (labels, predictions, weights)

    def _compared(self, labels: Any, predictions: Any) -> tuple[Any, Any]:
        return labels, predictions


class CategoricalAccuracy(Accuracy):
    """The fraction of rows whose largest prediction has the index of the largest label.

    Labels are one-hot rows, predictions are rows of logits or probabilities.

    >>> import dualflow.eager as tfe
    >>> accuracy = tfe.metrics.CategoricalAccuracy()
    >>> _ = accuracy([[0, 1], [1, 0]], [[0.1, 0.9], [0.2, 0.8]])
    >>> float(accuracy.result())
    0.5
    """

    def _compared(self, labels: Any, predictions: Any) -> tuple[Any, Any]:
        return argmax(labels, axis=-1), argmax(predictions, axis=-1)


class BinaryAccuracy(Accuracy):
    """The fraction of predictions that, compared with a threshold, equal their labels.

    Args:
        threshold: predictions above it count as 1.
        name: the name of the class by default.
        dtype: the dtype of the sums, float64 by default.

    >>> import dualflow.eager as tfe
    >>> accuracy = tfe.metrics.BinaryAccuracy(threshold=0.5)
    >>> _ = accuracy([1, 0, 1], [0.7, 0.2, 0.4])
    >>> round(float(accuracy.result()), 3)
    0.667
    """

    def __init__(self, threshold: float, name: str | None = None, dtype: DTypeLike = float64) -> None:
        super().__init__(name, dtype)
        self.threshold = threshold

    def _compared(self, labels: Any, predictions: Any) -> tuple[Any, Any]:
        return cast(labels, bool_), predictions > self.threshold


class SparseAccuracy(Accuracy):
    """The fraction of rows whose largest prediction has the label as its index.

    >>> import dualflow.eager as tfe
    >>> accuracy = tfe.metrics.SparseAccuracy()
    >>> _ = accuracy([1, 1], [[0.1, 0.9], [0.8, 0.2]])
    >>> float(accuracy.result())
    0.5
    """

    def _compared(self, labels: Any, predictions: Any) -> tuple[Any, Any]:
        return labels, cast(argmax(predictions, axis=-1), labels.dtype)


_publish(globals())
