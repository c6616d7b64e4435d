"""Learning rates that decay with the number of steps.

In an explicit graph a rate is a tensor; eagerly it is a function without arguments, which optimizers call in
each step.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.graph_mode import recording_graph
from dualflow.ops.arithmetic import minimum
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.exponential import exp
from dualflow.ops.powers import log, sqrt
from dualflow.ops.random_numbers.functions import normal
from dualflow.ops.rounding import ceil, floor
from dualflow.ops.selection import where
from dualflow.ops.trigonometric import cos

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike

Rate = Any
"""A scalar tensor, or a function without arguments that returns one."""


def _rate(compute: Callable[[], Any]) -> Rate:
    """The rate as a tensor in a graph; eagerly ``compute``, which returns the rate of the current step."""
    return compute if recording_graph() is None else compute()


def _tensors(learning_rate: Any, *others: Any) -> tuple[Any, ...]:
    """The rate as a tensor, and the others as tensors of its dtype; functions are called."""
    rate, *parameters = (convert_to_tensor(x() if callable(x) else x) for x in (learning_rate, *others))
    return rate, *(x if x.dtype is rate.dtype else cast(x, rate.dtype) for x in parameters)


def _require_global_step(global_step: Any, what: str) -> None:
    if global_step is None:
        raise InvalidArgumentError(f"`global_step` is required for {what}: pass the variable of steps.")


@entry
def exponential_decay(
    learning_rate: TensorLike,
    global_step: TensorLike,
    decay_steps: TensorLike,
    decay_rate: TensorLike,
    staircase: bool = False,
    name: str | None = None,
) -> Rate:
    """``learning_rate * decay_rate ** (global_step / decay_steps)``.

    Args:
        learning_rate: the rate of step 0.
        global_step: the number of steps: a variable, a tensor or a number.
        decay_steps: the number of steps after which the rate has been multiplied by ``decay_rate``.
        decay_rate: the factor.
        staircase: whether the exponent is rounded down.
        name: TensorFlow's, and ignored.

    Returns:
        In an explicit graph a scalar tensor; eagerly a function without arguments that returns the rate of
        the current step, which optimizers accept.

    Raises:
        InvalidArgumentError: ``global_step`` is None.

    >>> from dualflow.compat import v1
    >>> step = v1.Variable(0, trainable=False)
    >>> rate = v1.train.exponential_decay(0.5, step, 10, 0.1)
    >>> _ = step.assign(20)
    >>> round(float(rate()), 4)
    0.005
    """
    _require_global_step(global_step, "exponential_decay")

    def compute() -> Any:
        rate, step, steps, decay = _tensors(learning_rate, global_step, decay_steps, decay_rate)
        done = step / steps
        return rate * decay ** (floor(done) if staircase else done)

    return _rate(compute)


@entry
def natural_exp_decay(
    learning_rate: TensorLike,
    global_step: TensorLike,
    decay_steps: TensorLike,
    decay_rate: TensorLike,
    staircase: bool = False,
    name: str | None = None,
) -> Rate:
    """``learning_rate * exp(-decay_rate * global_step / decay_steps)``; see :func:`exponential_decay`.

    >>> from dualflow.compat import v1
    >>> round(float(v1.train.natural_exp_decay(0.5, 20, 10, 1.0)()), 4)
    0.0677
    """
    _require_global_step(global_step, "natural_exp_decay")

    def compute() -> Any:
        rate, step, steps, decay = _tensors(learning_rate, global_step, decay_steps, decay_rate)
        done = step / steps
        return rate * exp(-decay * (floor(done) if staircase else done))

    return _rate(compute)


@entry
def inverse_time_decay(
    learning_rate: TensorLike,
    global_step: TensorLike,
    decay_steps: TensorLike,
    decay_rate: TensorLike,
    staircase: bool = False,
    name: str | None = None,
) -> Rate:
    """``learning_rate / (1 + decay_rate * global_step / decay_steps)``; see :func:`exponential_decay`.

    >>> from dualflow.compat import v1
    >>> round(float(v1.train.inverse_time_decay(0.5, 20, 10, 1.0)()), 4)
    0.1667
    """
    _require_global_step(global_step, "inverse_time_decay")

    def compute() -> Any:
        rate, step, steps, decay = _tensors(learning_rate, global_step, decay_steps, decay_rate)
        done = step / steps
        return rate / (1 + decay * (floor(done) if staircase else done))

    return _rate(compute)


@entry
def polynomial_decay(
    learning_rate: TensorLike,
    global_step: TensorLike,
    decay_steps: TensorLike,
    end_learning_rate: TensorLike = 0.0001,
    power: TensorLike = 1.0,
    cycle: bool = False,
    name: str | None = None,
) -> Rate:
    """Polynomial decay from ``learning_rate`` to ``end_learning_rate``, which step ``decay_steps`` reaches.

    Args:
        learning_rate: the rate of step 0.
        global_step: the number of steps: a variable, a tensor or a number.
        decay_steps: the number of steps of the decay.
        end_learning_rate: the last rate.
        power: the exponent of the remaining fraction of steps.
        cycle: whether the rate then decays again, until the next multiple of ``decay_steps``.
        name: TensorFlow's, and ignored.

    Returns:
        As :func:`exponential_decay`.

    >>> from dualflow.compat import v1
    >>> round(float(v1.train.polynomial_decay(0.5, 5, 10, 0.1)()), 4)
    0.3
    """
    _require_global_step(global_step, "polynomial_decay")

    def compute() -> Any:
        rate, step, steps, last, by = _tensors(
            learning_rate, global_step, decay_steps, end_learning_rate, power
        )
        if cycle:
            steps = steps * where(step > 0, ceil(step / steps), 1.0)
        else:
            step = minimum(step, steps)
        return (rate - last) * (1 - step / steps) ** by + last

    return _rate(compute)


@entry
def cosine_decay(
    learning_rate: TensorLike,
    global_step: TensorLike,
    decay_steps: TensorLike,
    alpha: float = 0.0,
    name: str | None = None,
) -> Rate:
    """Cosine decay from ``learning_rate`` to ``alpha * learning_rate``.

    Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts", 2017. See
    :func:`exponential_decay` for arguments and result.

    >>> from dualflow.compat import v1
    >>> round(float(v1.train.cosine_decay(0.5, 5, 10)()), 4)
    0.25
    """
    _require_global_step(global_step, "cosine_decay")

    def compute() -> Any:
        rate, step, steps = _tensors(learning_rate, global_step, decay_steps)
        fraction = 0.5 * (1 + cos(math.pi * minimum(step, steps) / steps))
        return rate * ((1 - alpha) * fraction + alpha)

    return _rate(compute)


@entry
def cosine_decay_restarts(
    learning_rate: TensorLike,
    global_step: TensorLike,
    first_decay_steps: TensorLike,
    t_mul: float = 2.0,
    m_mul: float = 1.0,
    alpha: float = 0.0,
    name: str | None = None,
) -> Rate:
    """:func:`cosine_decay` with warm restarts.

    Args:
        learning_rate: the rate of step 0.
        global_step: the number of steps.
        first_decay_steps: the number of steps of the first decay.
        t_mul: the factor by which the number of steps grows at a restart.
        m_mul: the factor by which the initial rate changes at a restart.
        alpha: the smallest rate, as a fraction of ``learning_rate``.
        name: TensorFlow's, and ignored.

    Returns:
        As :func:`exponential_decay`.

    >>> from dualflow.compat import v1
    >>> [round(float(v1.train.cosine_decay_restarts(0.5, step, 10)()), 4) for step in (5, 10, 20)]
    [0.25, 0.5, 0.25]
    """
    _require_global_step(global_step, "cosine_decay_restarts")

    def compute() -> Any:
        rate, step, first = _tensors(learning_rate, global_step, first_decay_steps)
        done = step / first
        if t_mul == 1.0:
            restarts = floor(done)
            within = done - restarts
        else:
            restarts = floor(log(1 - done * (1 - t_mul)) / math.log(t_mul))
            within = (done - (1 - t_mul**restarts) / (1 - t_mul)) / t_mul**restarts
        fraction = 0.5 * m_mul**restarts * (1 + cos(math.pi * within))
        return rate * ((1 - alpha) * fraction + alpha)

    return _rate(compute)


@entry
def linear_cosine_decay(
    learning_rate: TensorLike,
    global_step: TensorLike,
    decay_steps: TensorLike,
    num_periods: float = 0.5,
    alpha: float = 0.0,
    beta: float = 0.001,
    name: str | None = None,
) -> Rate:
    """Linear decay to 0 times a cosine: ``rate * ((alpha + linear) * cosine + beta)``.

    Bello et al., "Neural optimizer search with reinforcement learning", 2017.

    Args:
        learning_rate: the rate of step 0.
        global_step: the number of steps.
        decay_steps: the number of steps of the decay.
        num_periods: the number of periods of the cosine.
        alpha, beta: see the formula.
        name: TensorFlow's, and ignored.

    Returns:
        As :func:`exponential_decay`.

    >>> from dualflow.compat import v1
    >>> round(float(v1.train.linear_cosine_decay(0.5, 5, 10)()), 4)
    0.1255
    """
    return noisy_linear_cosine_decay(
        learning_rate, global_step, decay_steps, 0.0, 0.0, num_periods, alpha, beta, name
    )


@entry
def noisy_linear_cosine_decay(
    learning_rate: TensorLike,
    global_step: TensorLike,
    decay_steps: TensorLike,
    initial_variance: float = 1.0,
    variance_decay: float = 0.55,
    num_periods: float = 0.5,
    alpha: float = 0.0,
    beta: float = 0.001,
    name: str | None = None,
) -> Rate:
    """:func:`linear_cosine_decay` with normal noise added to its linear factor.

    Args:
        initial_variance: the variance of the noise at step 0.
        variance_decay: the variance is divided by ``(1 + global_step) ** variance_decay``.

    The other arguments and the result are those of :func:`linear_cosine_decay`.

    >>> from dualflow.compat import v1
    >>> v1.train.noisy_linear_cosine_decay(0.5, 5, 10)().shape
    ()
    """
    _require_global_step(global_step, "a linear cosine decay")

    def compute() -> Any:
        rate, step, steps = _tensors(learning_rate, global_step, decay_steps)
        step = minimum(step, steps)
        linear = (steps - step) / steps
        if initial_variance:
            linear = linear + normal([], dtype=rate.dtype) * sqrt(
                initial_variance / (1 + step) ** variance_decay
            )
        return rate * ((alpha + linear) * (0.5 * (1 + cos(2 * math.pi * num_periods * step / steps))) + beta)

    return _rate(compute)


@entry
def piecewise_constant(
    x: TensorLike, boundaries: Sequence[Any], values: Sequence[Any], name: str | None = None
) -> Rate:
    """A piecewise constant rate: the first value up to and including the first boundary, and so on.

    Args:
        x: the number of steps.
        boundaries: increasing numbers, the last step of each interval except the last interval.
        values: the rate of each interval.
        name: TensorFlow's, and ignored.

    Returns:
        As :func:`exponential_decay`.

    Raises:
        InvalidArgumentError: the number of values is not one more than that of boundaries, or boundaries
            don't increase.

    >>> from dualflow.compat import v1
    >>> [float(v1.train.piecewise_constant(step, [10, 20], [1.0, 0.5, 0.25])()) for step in (10, 11, 21)]
    [1.0, 0.5, 0.25]
    """
    if len(boundaries) != len(values) - 1:
        raise InvalidArgumentError(
            f"The length of boundaries should be 1 less than the length of values, not {len(boundaries)} and "
            f"{len(values)}."
        )
    if not all(a < b for a, b in itertools.pairwise(boundaries)):
        raise InvalidArgumentError(f"boundaries must increase, not {list(boundaries)}.")

    def compute() -> Any:
        step = convert_to_tensor(x() if callable(x) else x)
        rate = convert_to_tensor(values[-1])
        for boundary, value in reversed(list(zip(boundaries, values[:-1], strict=True))):
            rate = where(step <= boundary, convert_to_tensor(value), rate)
        return rate

    return _rate(compute)


piecewise_constant_decay = piecewise_constant
