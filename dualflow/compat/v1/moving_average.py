"""Moving averages of variables: ``v1.train.ExponentialMovingAverage``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dualflow.compat.v1.collection import GraphKeys
from dualflow.core.dispatch import AbstractVariable
from dualflow.core.errors import DTypeError
from dualflow.core.tracebacks import entry
from dualflow.graph_mode import Operation, VariableV1, name_scope, recording_graph, trainable_variables
from dualflow.ops.arithmetic import minimum
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor, zeros_like

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike


@entry
class ExponentialMovingAverage:
    """Moving averages of variables: ``shadow -= (1 - decay) * (shadow - variable)``, a shadow variable each.

    Args:
        decay: the weight of the old average; near 1.
        num_updates: the number of steps ``n``; the decay is then at most ``(1 + n) / (10 + n)``.
        zero_debias: whether averages of tensors, whose initial value is 0, are corrected for that bias.
        name: the last part of the names of the shadow variables.

    >>> from dualflow.compat import v1
    >>> v, averages = v1.Variable(1.0, name="v"), v1.train.ExponentialMovingAverage(0.5)
    >>> averages.apply([v])
    >>> _ = v.assign(3.0)
    >>> averages.apply([v])
    >>> float(averages.average(v)), averages.average_name(v)
    (2.0, 'v/ExponentialMovingAverage')
    """

    def __init__(
        self,
        decay: TensorLike,
        num_updates: TensorLike | None = None,
        zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:
        self._decay = decay
        self._num_updates = num_updates
        self._zero_debias = zero_debias
        self._name = name
        self._shadows: dict[int, tuple[Any, Any]] = {}
        self._weights: dict[int, Any] = {}

    @property
    def name(self) -> str:
        """The last part of the names of the shadow variables."""
        return self._name

    def apply(self, var_list: Sequence[Any] | None = None) -> Operation | None:
        """Update the averages, whose initial values are those of the variables, or 0 for a graph's tensors.

        Args:
            var_list: variables or a graph's tensors of floats; by default the graph's trainable variables.

        Returns:
            In an explicit graph the operation that updates them, else None.

        Raises:
            DTypeError: one of ``var_list`` is not of floats.
        """
        averaged = trainable_variables() if var_list is None else list(var_list)
        for variable in averaged:
            if not variable.dtype.is_floating:
                raise DTypeError(
                    f"The variables must be half, float, or double: {variable.name} is {variable.dtype.name}."
                )
            if id(variable) not in self._shadows:
                self._shadows[id(variable)] = variable, self._shadow(variable)
        graph = recording_graph()
        if graph is None:
            self._update(averaged)
            return None
        with graph.name_scope(self._name) as scope, graph.assignments() as assignments:
            self._update(averaged)
        return graph.engine.group(scope, assignments)

    def average(self, var: object) -> Any:
        """The shadow variable of ``var``; None if it has none yet."""
        pair = self._shadows.get(id(var))
        return None if pair is None else pair[1]

    def average_name(self, var: object) -> str:
        """The name of the shadow variable that ``var`` has or would get."""
        shadow = self.average(var)
        full = f"{_name_of(var)}/{self._name}" if shadow is None else shadow.name
        return full.partition(":")[0]

    def variables_to_restore(self, moving_avg_variables: Sequence[Any] | None = None) -> dict[str, Any]:
        """The names of averages in a checkpoint, and the variables to restore from them.

        Args:
            moving_avg_variables: the variables to restore from averages; by default the graph's trainable
                variables. The graph's other variables are restored from their own values.
        """
        averaged = trainable_variables() if moving_avg_variables is None else list(moving_avg_variables)
        by_name = {self.average_name(v): v for v in averaged}
        graph = recording_graph()
        ids = {id(v) for v in averaged}
        graph_variables = [] if graph is None else graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
        return {_name_of(v): v for v in graph_variables if id(v) not in ids} | by_name

    def _trackable_children(self) -> dict[str, Any]:
        """The children of this object in a checkpoint, without slots: none."""
        return {}

    def _slot_variables(self) -> list[tuple[Any, str, Any]]:
        """The shadow variables for a checkpoint, as slots of their variables."""
        pairs = [(v, shadow) for v, shadow in self._shadows.values() if isinstance(v, AbstractVariable)]
        return [(v, self._name, shadow) for v, shadow in pairs]

    def _shadow(self, of: Any) -> Any:
        first = of.initial_value if getattr(of, "_graph", None) is not None else convert_to_tensor(of)
        is_variable = isinstance(of, AbstractVariable)
        with name_scope(""):
            shadow = VariableV1(
                first if is_variable else zeros_like(of),
                trainable=False,
                name=f"{_name_of(of)}/{self._name}",
            )
            if self._zero_debias and not is_variable:
                zero, name = convert_to_tensor(0.0, of.dtype), f"{_name_of(of)}/{self._name}/weight"
                self._weights[id(of)] = VariableV1(zero, trainable=False, name=name)
        return shadow

    def _update(self, averaged: list[Any]) -> None:
        decay = convert_to_tensor(self._decay() if callable(self._decay) else self._decay)
        if self._num_updates is not None:
            count = cast(convert_to_tensor(self._num_updates), decay.dtype)
            decay = minimum(decay, (1 + count) / (10 + count))
        for variable in averaged:
            shadow, rate = self._shadows[id(variable)][1], 1 - cast(decay, variable.dtype)
            weight = self._weights.get(id(variable))
            if weight is None:
                shadow.assign_sub((shadow - variable) * rate)
            else:
                before = weight.value()
                new_weight = before + (1 - before) * rate
                weight.assign(new_weight)
                shadow.assign((shadow * before * (1 - rate) + variable * rate) / new_weight)


def _name_of(x: Any) -> str:
    return str(x.name).partition(":")[0]
