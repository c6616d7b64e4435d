"""``df.train.ExponentialMovingAverage``: variables that follow others at a distance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.tracebacks import entries, entry
from dualflow.eager.variable import Variable
from dualflow.graph_mode import Operation, name_scope, trainable_variables
from dualflow.graph_mode.default_graph import graph_recording
from dualflow.graph_mode.variables import VariableV1
from dualflow.ops.arithmetic import minimum
from dualflow.ops.conversion import cast


@entries
class ExponentialMovingAverage:
    """Keeps an average of each variable: ``average -= (1 - decay) * (average - variable)``.

    The averages begin at the variables' values, and are found by a checkpoint that has this object.

    Args:
        decay: how much of an average stays at each step: a number below 1, near to it.
        num_updates: how many steps were made, a number or a variable; the decay is at most
            ``(1 + num_updates) / (10 + num_updates)`` then, so that the first averages follow faster.
        zero_debias: ignored: it matters for averages of tensors only, which are not kept here.
        name: stands in the names of the averages, as in ``w/ExponentialMovingAverage`` of the variable ``w``.

    >>> import dualflow as df
    >>> w, averages = df.Variable(1.0), df.train.ExponentialMovingAverage(0.9)
    >>> averages.apply([w])
    >>> updated = w.assign(2.0)
    >>> averages.apply([w])
    >>> round(float(averages.average(w)), 4)
    1.1
    """

    @entry
    def __init__(
        self,
        decay: Any,
        num_updates: Any = None,
        zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:
        self._decay, self._updates, self._name = decay, num_updates, name
        self._averages: dict[int, tuple[Variable, Variable]] = {}

    @property
    def name(self) -> str:
        """What stands in the names of the averages."""
        return self._name

    def apply(self, var_list: Sequence[Any] | None = None) -> Operation | None:
        """Update the average of each variable; make those that are new.

        In an explicit graph this returns the operation that does so; elsewhere it happens at once.

        Args:
            var_list: variables, in a graph by default those that are trained.

        Raises:
            InvalidArgumentError: there is no list, and no graph.
            DTypeError: something that is no variable of floats.
        """
        graph = graph_recording()
        if var_list is None and graph is None:
            raise InvalidArgumentError("Only a graph knows its variables: give apply() a list of them.")
        variables = list(trainable_variables() if var_list is None else var_list)
        for variable in variables:
            self._check(variable)
        if graph is None:
            self._update(variables)
            return None
        for variable in variables:
            self._average_of(variable)
        with graph.name_scope(self._name) as scope, graph.assignments() as made:
            self._update(variables)
        return graph.engine.group(scope, made)

    def average(self, var: Any) -> Variable | None:
        """The variable that holds the average of ``var``; None if there is none."""
        found = self._averages.get(id(var))
        return None if found is None else found[1]

    def average_name(self, var: Any) -> str:
        """The name of the average of ``var``, also if there is none yet."""
        return f"{var.name.partition(':')[0]}/{self._name}"

    def variables_to_restore(self, moving_avg_variables: Sequence[Any] | None = None) -> dict[str, Variable]:
        """The variables by the names of their averages, for a :class:`Saver` that restores these into them.

        Args:
            moving_avg_variables: variables, by default those that have an average here.
        """
        given = (
            [v for v, _ in self._averages.values()] if moving_avg_variables is None else moving_avg_variables
        )
        return {self.average_name(v): v for v in given}

    def _trackable_children(self) -> Mapping[str, Any]:
        """What a checkpoint finds beside the slots: nothing."""
        return {}

    def _slot_variables(self) -> list[tuple[Variable, str, Variable]]:
        """The averages for a checkpoint, as slots of their variables."""
        return [(variable, self._name, average) for variable, average in self._averages.values()]

    def _check(self, variable: Any) -> None:
        if not isinstance(variable, Variable) or not variable.dtype.is_floating:
            raise DTypeError(
                f"Averages are kept of variables of floats, not of {variable!r}; leave the others out."
            )

    def _average_of(self, variable: Variable) -> Variable:
        if id(variable) not in self._averages:
            known: Any = variable
            of_graph = isinstance(variable, VariableV1) and graph_recording() is not None
            start = known.initial_value if of_graph else variable.value()
            with name_scope(""):
                made = VariableV1(start, trainable=False, name=self.average_name(variable))
            # the variable is kept beside its average, so that no other gets its id
            self._averages[id(variable)] = variable, made
        return self._averages[id(variable)][1]

    def _update(self, variables: Sequence[Variable]) -> None:
        decay = self._decay
        if self._updates is not None:
            made = cast(self._updates, variables[0].dtype) if variables else 0.0
            decay = minimum(decay, (1.0 + made) / (10.0 + made))
        for variable in variables:
            average = self._average_of(variable)
            share = cast(1.0 - decay, variable.dtype)
            average.assign_sub((average - variable) * share)
