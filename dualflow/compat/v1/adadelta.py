"""The Adadelta optimizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.compat.v1.train import Optimizer
from dualflow.ops.powers import sqrt

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike


class AdadeltaOptimizer(Optimizer):
    """Adadelta, which scales gradients by the ratio of the RMS of recent steps and of recent gradients.

    ``v -= learning_rate * gradient * sqrt(u + epsilon) / sqrt(s + epsilon)``, with the decaying means ``s``
    of the gradient's square and ``u`` of the steps' squares.

    Zeiler, "Adadelta: an adaptive learning rate method", 2012.

    >>> import dualflow as df
    >>> v = df.Variable(3.0)
    >>> df.compat.v1.train.AdadeltaOptimizer(1.0, epsilon=0.01).minimize(lambda: v * v)
    >>> round(float(v), 4)
    2.554
    """

    def __init__(
        self,
        learning_rate: TensorLike = 0.001,
        rho: float = 0.95,
        epsilon: float = 1e-8,
        use_locking: bool = False,
        name: str = "Adadelta",
    ) -> None:
        super().__init__(learning_rate, name)
        self._rho, self._epsilon = rho, epsilon

    def _apply(self, gradient: Any, variable: Any, rate: Any) -> None:
        squares, steps = self._slot(variable, "accum"), self._slot(variable, "accum_update")
        new_squares = self._rho * squares + (1 - self._rho) * gradient * gradient
        step = sqrt(steps + self._epsilon) / sqrt(new_squares + self._epsilon) * gradient
        squares.assign(new_squares)
        steps.assign(self._rho * steps + (1 - self._rho) * step * step)
        variable.assign_sub(rate * step)
