"""Proximal optimizers and FTRL, whose L1 and L2 penalties make weights small or zero."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.compat.v1.train import Optimizer
from dualflow.core.errors import InvalidArgumentError
from dualflow.ops.arithmetic import maximum, sign
from dualflow.ops.creation import zeros_like
from dualflow.ops.powers import sqrt
from dualflow.ops.selection import where

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike


def _require_penalties(**penalties: float) -> None:
    for name, value in penalties.items():
        if value < 0:
            raise InvalidArgumentError(f"{name} needs to be greater than or equal to zero, not {value}.")


def _proximal_step(x: Any, rate: Any, l1: float, l2: float) -> Any:
    """``x`` shrunk towards 0 by ``rate * l1``, then divided by ``1 + rate * l2``: the proximal operator."""
    return sign(x) * maximum(abs(x) - rate * l1, 0.0) / (1 + rate * l2)


class ProximalGradientDescentOptimizer(Optimizer):
    """Proximal gradient descent: after each step, the penalties shrink the variables towards 0.

    Duchi and Singer, "Efficient learning using forward-backward splitting", 2009.

    Raises:
        InvalidArgumentError: a negative penalty.

    >>> import dualflow as df
    >>> v = df.Variable(3.0)
    >>> optimizer = df.compat.v1.train.ProximalGradientDescentOptimizer(0.1, l1_regularization_strength=1.0)
    >>> optimizer.minimize(lambda: v * v)
    >>> round(float(v), 4)
    2.3
    """

    def __init__(
        self,
        learning_rate: TensorLike,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "ProximalGradientDescent",
    ) -> None:
        super().__init__(learning_rate, name)
        _require_penalties(l1=l1_regularization_strength, l2=l2_regularization_strength)
        self._l1, self._l2 = l1_regularization_strength, l2_regularization_strength

    def _apply(self, gradient: Any, variable: Any, rate: Any) -> None:
        variable.assign(_proximal_step(variable - rate * gradient, rate, self._l1, self._l2))


class ProximalAdagradOptimizer(Optimizer):
    """Proximal Adagrad: after each step, the penalties shrink the variables towards 0.

    Duchi and Singer, "Efficient learning using forward-backward splitting", 2009.

    Raises:
        InvalidArgumentError: a negative penalty, or an initial accumulator that is not positive.

    >>> import dualflow as df
    >>> v = df.Variable(3.0)
    >>> df.compat.v1.train.ProximalAdagradOptimizer(0.1).minimize(lambda: v * v)
    >>> round(float(v), 4)
    2.9001
    """

    def __init__(
        self,
        learning_rate: TensorLike,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "ProximalAdagrad",
    ) -> None:
        super().__init__(learning_rate, name)
        _require_penalties(l1=l1_regularization_strength, l2=l2_regularization_strength)
        if initial_accumulator_value <= 0:
            raise InvalidArgumentError(
                f"initial_accumulator_value must be positive, not {initial_accumulator_value}."
            )
        self._start = initial_accumulator_value
        self._l1, self._l2 = l1_regularization_strength, l2_regularization_strength

    def _apply(self, gradient: Any, variable: Any, rate: Any) -> None:
        total = self._slot(variable, "accumulator", lambda v: zeros_like(v) + self._start)
        new_total = total + gradient * gradient
        total.assign(new_total)
        step_size = rate / sqrt(new_total)
        variable.assign(_proximal_step(variable - step_size * gradient, step_size, self._l1, self._l2))


class FtrlOptimizer(Optimizer):
    """Follow the regularized leader (FTRL): a variable minimizes the sum of past gradients and penalties.

    McMahan et al., "Ad click prediction: a view from the trenches", 2013.

    Args:
        learning_rate: a number, a tensor, a variable, or a function that returns one.
        learning_rate_power: the power of the sum of squares in the rate; at most 0, which is a fixed rate.
        initial_accumulator_value: the initial sum of the gradients' squares; 0 or more.
        l1_regularization_strength, l2_regularization_strength: the penalties; 0 or more.
        name: of the slots.
        l2_shrinkage_regularization_strength: an L2 penalty that is added to the gradients only.
        beta: added to the square root of the sum of squares, as in the paper; 0 by default.
        use_locking, accum_name, linear_name: TensorFlow's, and ignored.

    Raises:
        InvalidArgumentError: an argument out of its range.

    >>> import dualflow as df
    >>> v = df.Variable(3.0)
    >>> df.compat.v1.train.FtrlOptimizer(0.1, l1_regularization_strength=1e3).minimize(lambda: v * v)
    >>> float(v)
    0.0
    """

    def __init__(
        self,
        learning_rate: TensorLike,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "Ftrl",
        accum_name: str | None = None,
        linear_name: str | None = None,
        l2_shrinkage_regularization_strength: float = 0.0,
        beta: float | None = None,
    ) -> None:
        super().__init__(learning_rate, name)
        _require_penalties(
            initial_accumulator_value=initial_accumulator_value,
            l1_regularization_strength=l1_regularization_strength,
            l2_regularization_strength=l2_regularization_strength,
            l2_shrinkage_regularization_strength=l2_shrinkage_regularization_strength,
        )
        if learning_rate_power > 0:
            raise InvalidArgumentError(
                f"learning_rate_power needs to be less than or equal to zero, not {learning_rate_power}."
            )
        self._power, self._start = -learning_rate_power, initial_accumulator_value
        self._l1, self._l2 = l1_regularization_strength, l2_regularization_strength
        self._shrinkage, self._beta = l2_shrinkage_regularization_strength, beta or 0.0

    def _apply(self, gradient: Any, variable: Any, rate: Any) -> None:
        total = self._slot(variable, "accum", lambda v: zeros_like(v) + self._start)
        linear = self._slot(variable, "linear")
        old_total, new_total = total.value(), total + gradient * gradient
        shrunk_gradient = gradient + 2 * self._shrinkage * variable if self._shrinkage else gradient
        gradient_sum = (
            linear + shrunk_gradient - (new_total**self._power - old_total**self._power) / rate * variable
        )
        total.assign(new_total)
        linear.assign(gradient_sum)
        curvature = new_total**self._power / rate + 2 * self._l2 + self._beta / rate
        minimum = (self._l1 * sign(gradient_sum) - gradient_sum) / curvature
        variable.assign(where(abs(gradient_sum) > self._l1, minimum, zeros_like(minimum)))
