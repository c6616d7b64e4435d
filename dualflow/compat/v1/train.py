"""The optimizers of TensorFlow 1: ``v1.train``.

They update variables by ops, so that a training step can be traced into one graph. The state of a variable
(its slots) is created by its first update. In an explicit graph an update is an operation, for sessions to
run.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from dualflow.compat.v1.global_step import assert_global_step as assert_global_step
from dualflow.compat.v1.global_step import create_global_step as create_global_step
from dualflow.compat.v1.global_step import get_global_step as get_global_step
from dualflow.compat.v1.global_step import get_or_create_global_step as get_or_create_global_step
from dualflow.compat.v1.global_step import global_step as global_step
from dualflow.core.argument_types import TensorLike
from dualflow.core.errors import FailedPreconditionError, InvalidArgumentError
from dualflow.core.namespace import publish as _publish
from dualflow.core.tracebacks import entry
from dualflow.eager.device_engine import DeviceBlock
from dualflow.eager.tape import GradientTape
from dualflow.eager.variable import Variable
from dualflow.graph_mode import Operation, VariableV1, gradients, name_scope, trainable_variables
from dualflow.graph_mode import write_graph as write_graph
from dualflow.graph_mode.default_graph import recording_graph
from dualflow.graph_mode.graph import ExplicitGraph
from dualflow.ops.creation import ones_like, zeros_like
from dualflow.ops.powers import sqrt

__all__ = [
    "AdagradOptimizer",
    "AdamOptimizer",
    "GradientDescentOptimizer",
    "MomentumOptimizer",
    "Optimizer",
    "RMSPropOptimizer",
    "assert_global_step",
    "create_global_step",
    "get_global_step",
    "get_or_create_global_step",
    "global_step",
    "write_graph",
]
Pairs = list[tuple[Any, Any]]
_POWERS: Final = "beta1_power", "beta2_power"


@entry
class Optimizer:
    """The base class of optimizers: computes gradients and applies them to variables.

    Args:
        learning_rate: a number, a tensor, a variable, or a function that returns one.
        name: the last part of the names of slots, such as ``w/Momentum`` for the variable ``w``.
    """

    GATE_NONE, GATE_OP, GATE_GRAPH = 0, 1, 2
    """The values of ``gate_gradients``."""

    def __init__(self, learning_rate: TensorLike, name: str) -> None:
        self._learning_rate = learning_rate
        self._name = name
        self._slots: dict[tuple[str, int], tuple[Any, Variable]] = {}

    def get_name(self) -> str:
        """The optimizer's name."""
        return self._name

    def compute_gradients(
        self,
        loss: object,
        var_list: Sequence[Any] | None = None,
        gate_gradients: int = 1,
        aggregation_method: object = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: TensorLike | None = None,
    ) -> Pairs:
        """The gradient of ``loss()`` for each variable of ``var_list``, by default those that ``loss`` reads.

        In an explicit graph ``loss`` may be a tensor; the default is the graph's trainable variables.

        Args:
            loss: a function without arguments, or a graph's tensor.
            var_list: variables.
            gate_gradients, aggregation_method, colocate_gradients_with_ops: TensorFlow's, and ignored.
            grad_loss: the cotangent of the loss, ones by default.

        Raises:
            FailedPreconditionError: eagerly, ``loss`` is not a function.
            InvalidArgumentError: the graph has no variables to train.
        """
        if recording_graph() is not None and not callable(loss):
            variables = trainable_variables() if var_list is None else list(var_list)
            if not variables:
                raise InvalidArgumentError("No variables to optimize: the graph has no trainable variables.")
            cotangents = None if grad_loss is None else [grad_loss]
            return list(zip(gradients(loss, variables, cotangents), variables, strict=True))
        if not callable(loss):
            raise FailedPreconditionError(
                "`loss` passed to Optimizer.compute_gradients should be a function when eager execution is "
                "enabled: lambda: the_loss."
            )
        with GradientTape() as tape:
            value = loss()
        variables = list(tape.watched_variables() if var_list is None else var_list)
        return list(zip(tape.gradient(value, variables, grad_loss), variables, strict=True))

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, Any]],
        global_step: TensorLike | None = None,
        name: str | None = None,
    ) -> Operation | None:
        """Update each variable by its gradient; pairs without a gradient are skipped.

        Eagerly the update runs at once. In an explicit graph the result is the operation that runs it.

        Args:
            grads_and_vars: pairs of a gradient, or None, and a variable.
            global_step: a variable to increment.
            name: of the operation, by default the optimizer's.

        Raises:
            InvalidArgumentError: there is no gradient.
        """
        all_pairs = list(grads_and_vars)
        pairs = [(g, v) for g, v in all_pairs if g is not None]
        if not pairs:
            names = [v.name for _, v in all_pairs]
            raise InvalidArgumentError(f"No gradients provided for any variable: {names}.")
        graph = recording_graph()
        if graph is None:
            self._update(pairs, global_step)
            return None
        return self._operation(graph, pairs, global_step, name or self._name)

    def _operation(self, graph: ExplicitGraph, pairs: Pairs, global_step: Any, name: str) -> Operation:
        """The assignments of :meth:`_update` as one operation of a graph."""
        with graph.name_scope(name) as scope, graph.assignments() as assignments:
            self._update(pairs, global_step)
        return graph.engine.group(scope, assignments)

    def _update(self, pairs: Pairs, global_step: Any) -> None:
        with DeviceBlock(pairs[0][1].device if pairs else None):
            rate = self._rate()
        for gradient, variable in pairs:
            self._apply(gradient, variable, rate)
            if variable.constraint is not None:
                variable.assign(variable.constraint(variable.value()))
        self._finish()
        if global_step is not None:
            global_step.assign_add(1)

    def minimize(
        self,
        loss: object,
        global_step: TensorLike | None = None,
        var_list: Sequence[Any] | None = None,
        gate_gradients: int = 1,
        aggregation_method: object = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: TensorLike | None = None,
    ) -> Operation | None:
        """One step: :meth:`compute_gradients`, then :meth:`apply_gradients`, whose result it returns."""
        pairs = self.compute_gradients(loss, var_list, grad_loss=grad_loss)
        return self.apply_gradients(pairs, global_step, name)

    def variables(self) -> list[Variable]:
        """The slot variables that have been created."""
        return [slot for _, slot in self._slots.values()]

    def get_slot(self, var: object, name: str) -> Variable | None:
        """The slot ``name`` of a variable; None if there is none (yet)."""
        pair = self._slots.get((name, id(var)))
        return None if pair is None else pair[1]

    def get_slot_names(self) -> list[str]:
        """The names of slots, sorted."""
        return sorted({name for name, _ in self._slots})

    def _trackable_children(self) -> dict[str, Variable]:
        """The children of the optimizer in a checkpoint, without slots."""
        return {}

    def _slot_variables(self) -> list[tuple[Variable, str, Variable]]:
        """The slots for a checkpoint: variable, name and slot."""
        return [(variable, name, slot) for (name, _), (variable, slot) in self._slots.items()]

    def _slot(self, variable: Any, name: str, initial: Callable[[Any], Any] = zeros_like) -> Variable:
        key = name, id(variable)
        if key not in self._slots:
            # the variable is stored with its slot, so that its id is not reused
            full = self._slot_name(variable)
            with name_scope(""), DeviceBlock(variable.device):
                self._slots[key] = variable, VariableV1(lambda: initial(variable), trainable=False, name=full)
        return self._slots[key][1]

    def _slot_name(self, variable: Any) -> str:
        """The name of a new slot: ``w/Adam``, then ``w/Adam_1``; in a graph always ``w/Adam``."""
        name = f"{variable.name.partition(':')[0]}/{self._name}"
        if recording_graph() is not None:
            return name
        taken = {slot.name.partition(":")[0] for _, slot in self._slots.values()}
        numbered = (f"{name}_{i}" for i in itertools.count(1))
        return next(n for n in itertools.chain([name], numbered) if n not in taken)

    def _rate(self) -> Any:
        rate = self._learning_rate
        return rate() if callable(rate) else rate

    def _apply(self, gradient: Any, variable: Any, rate: Any) -> None:
        raise NotImplementedError

    def _finish(self) -> None:
        """A hook that runs after all variables have been updated."""


class GradientDescentOptimizer(Optimizer):
    """``v -= learning_rate * gradient``.

    >>> import dualflow as df
    >>> v = df.Variable(3.0)
    >>> df.compat.v1.train.GradientDescentOptimizer(0.1).minimize(lambda: v * v)
    >>> round(float(v), 4)
    2.4
    """

    def __init__(
        self, learning_rate: TensorLike, use_locking: bool = False, name: str = "GradientDescent"
    ) -> None:
        super().__init__(learning_rate, name)

    def _apply(self, gradient: Any, variable: Any, rate: Any) -> None:
        variable.assign_sub(rate * gradient)


class MomentumOptimizer(Optimizer):
    """``a = momentum * a + gradient``, then ``v -= learning_rate * a``.

    With ``use_nesterov``, ``v -= learning_rate * (gradient + momentum * a)`` (Sutskever et al., "On the
    importance of initialization and momentum in deep learning", 2013).
    """

    def __init__(
        self,
        learning_rate: TensorLike,
        momentum: TensorLike,
        use_locking: bool = False,
        name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(learning_rate, name)
        self._momentum = momentum
        self._nesterov = use_nesterov

    def _apply(self, gradient: Any, variable: Any, rate: Any) -> None:
        velocity = self._slot(variable, "momentum")
        new_velocity = self._momentum * velocity + gradient
        velocity.assign(new_velocity)
        variable.assign_sub(
            rate * (gradient + self._momentum * new_velocity if self._nesterov else new_velocity)
        )


class AdamOptimizer(Optimizer):
    """Adam (Kingma and Ba, "Adam: a method for stochastic optimization", 2015).

    It is the variant at the end of the paper's section 2: ``v -= rate * m / (sqrt(n) + epsilon)`` with the
    decaying means ``m`` of the gradient and ``n`` of its square, and at step ``t``
    ``rate = learning_rate * sqrt(1 - beta2**t) / (1 - beta1**t)``.
    """

    def __init__(
        self,
        learning_rate: TensorLike = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        super().__init__(learning_rate, name)
        self._beta1, self._beta2, self._epsilon = beta1, beta2, epsilon
        self._powers: tuple[Variable, Variable] | None = None

    def variables(self) -> list[Variable]:
        return [*(self._powers or ()), *super().variables()]

    def _trackable_children(self) -> dict[str, Variable]:
        return {} if self._powers is None else dict(zip(_POWERS, self._powers, strict=True))

    def _beta_powers(self) -> tuple[Variable, Variable]:
        """beta1 and beta2 to the power of the step."""
        if self._powers is None:
            first, second = self._beta1, self._beta2
            with name_scope(""):
                self._powers = (
                    VariableV1(first, trainable=False, name=_POWERS[0]),
                    VariableV1(second, trainable=False, name=_POWERS[1]),
                )
        return self._powers

    def _rate(self) -> Any:
        first, second = self._beta_powers()
        return super()._rate() * sqrt(1 - second) / (1 - first)

    def _apply(self, gradient: Any, variable: Any, rate: Any) -> None:
        mean, mean_square = self._slot(variable, "m"), self._slot(variable, "v")
        new_mean = mean + (1 - self._beta1) * (gradient - mean)
        new_square = mean_square + (1 - self._beta2) * (gradient * gradient - mean_square)
        mean.assign(new_mean)
        mean_square.assign(new_square)
        variable.assign_sub(rate * new_mean / (sqrt(new_square) + self._epsilon))

    def _finish(self) -> None:
        first, second = self._beta_powers()
        first.assign(first * self._beta1)
        second.assign(second * self._beta2)


class AdagradOptimizer(Optimizer):
    """``a += gradient ** 2``, then ``v -= learning_rate * gradient / sqrt(a)``.

    Duchi, Hazan and Singer, "Adaptive subgradient methods for online learning and stochastic optimization",
    2011.

    >>> import dualflow as df
    >>> v = df.Variable(3.0)
    >>> df.compat.v1.train.AdagradOptimizer(0.1).minimize(lambda: v * v)
    >>> round(float(v), 4)
    2.9001
    """

    def __init__(
        self,
        learning_rate: TensorLike,
        initial_accumulator_value: float = 0.1,
        use_locking: bool = False,
        name: str = "Adagrad",
    ) -> None:
        super().__init__(learning_rate, name)
        self._start = initial_accumulator_value

    def _apply(self, gradient: Any, variable: Any, rate: Any) -> None:
        total = self._slot(variable, "accumulator", lambda v: zeros_like(v) + self._start)
        new_total = total + gradient * gradient
        total.assign(new_total)
        variable.assign_sub(rate * gradient / sqrt(new_total))


class RMSPropOptimizer(Optimizer):
    """RMSProp: ``a = momentum * a + learning_rate * gradient / sqrt(s + epsilon)``, then ``v -= a``.

    ``s`` is the decaying mean of ``gradient ** 2``, with the initial value 1. With ``centered``, the square
    of the decaying mean of the gradient is subtracted from ``s`` under the root. Tieleman and Hinton,
    "Lecture 6.5: RMSProp", 2012; Graves, "Generating sequences with recurrent neural networks", 2013,
    equations 38 to 41.

    >>> import dualflow as df
    >>> v = df.Variable(3.0)
    >>> df.compat.v1.train.RMSPropOptimizer(0.1).minimize(lambda: v * v)
    >>> round(float(v), 4)
    2.7172
    """

    def __init__(
        self,
        learning_rate: TensorLike,
        decay: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        name: str = "RMSProp",
    ) -> None:
        super().__init__(learning_rate, name)
        self._decay, self._momentum, self._epsilon = decay, momentum, epsilon
        self._centered = centered

    def _apply(self, gradient: Any, variable: Any, rate: Any) -> None:
        square, velocity = self._slot(variable, "rms", ones_like), self._slot(variable, "momentum")
        mean_square = self._updated_mean(square, gradient * gradient)
        variance = mean_square
        if self._centered:
            mean = self._updated_mean(self._slot(variable, "mg"), gradient)
            variance = mean_square - mean * mean
        step = self._momentum * velocity + rate * gradient / sqrt(variance + self._epsilon)
        velocity.assign(step)
        variable.assign_sub(step)

    def _updated_mean(self, mean: Variable, value: Any) -> Any:
        """Update a decaying mean by ``value``; returns the new mean."""
        new_mean = self._decay * mean + (1 - self._decay) * value
        mean.assign(new_mean)
        return new_mean


_publish(
    globals(),
    later={  # the modules of optimizers import this one
        "dualflow.compat.v1.adadelta": "AdadeltaOptimizer",
        "dualflow.compat.v1.coordinator": "Coordinator",
        "dualflow.compat.v1.learning_rates": (
            "cosine_decay cosine_decay_restarts exponential_decay inverse_time_decay linear_cosine_decay "
            "natural_exp_decay noisy_linear_cosine_decay piecewise_constant piecewise_constant_decay "
            "polynomial_decay"
        ),
        "dualflow.compat.v1.monitored_session": "MonitoredSession MonitoredTrainingSession",
        "dualflow.compat.v1.moving_average": "ExponentialMovingAverage",
        "dualflow.compat.v1.proximal": (
            "FtrlOptimizer ProximalAdagradOptimizer ProximalGradientDescentOptimizer"
        ),
        "dualflow.compat.v1.session_creation": "ChiefSessionCreator Scaffold",
        "dualflow.compat.v1.session_hooks": (
            "CheckpointSaverHook FeedFnHook FinalOpsHook LoggingTensorHook NanLossDuringTrainingError "
            "NanTensorHook SessionRunArgs "
            "SessionRunContext SessionRunHook SessionRunValues StopAtStepHook SummarySaverHook"
        ),
        "dualflow.ops.records.example_messages": (
            "BytesList Example Feature FeatureList FeatureLists Features FloatList Int64List SequenceExample"
        ),
        "dualflow.train.checkpoint": "Checkpoint",
        "dualflow.train.manager": "CheckpointManager",
        "dualflow.train.readers": (
            "NewCheckpointReader=load_checkpoint checkpoints_iterator list_variables load_checkpoint "
            "load_variable"
        ),
        "dualflow.train.saver": "Saver",
        "dualflow.train.state_file": (
            "checkpoint_exists get_checkpoint_mtimes get_checkpoint_state latest_checkpoint "
            "remove_checkpoint update_checkpoint_state"
        ),
    },
)
