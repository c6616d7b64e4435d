"""Learning rates that fall with the count of steps.

In an explicit graph a rate is a tensor; where ops run now it is a function without arguments, which
optimizers call in each step.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.graph_mode import graph_recording
from dualflow.ops.arithmetic import minimum
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.exponential import exp
from dualflow.ops.powers import log, sqrt
from dualflow.ops.random_numbers.functions import normal
from dualflow.ops.rounding import ceil, floor
from dualflow.ops.selection import where
from dualflow.ops.trigonometric import cos

Rate = Any
"""A scalar tensor, or a function without arguments that returns one."""


def _rate(compute: Callable[[], Any]) -> Rate:
    """A graph's tensor now, or else the function that computes the rate of the step that it is called in."""
    return compute if graph_recording() is None else compute()


def _tensors(learning_rate: Any, *others: Any) -> tuple[Any, ...]:
    """The rate as a tensor, and the others as tensors of its dtype; functions are called."""
    rate, *rest = (convert_to_tensor(x() if callable(x) else x) for x in (learning_rate, *others))
    return rate, *(x if x.dtype is rate.dtype else cast(x, rate.dtype) for x in rest)


def _required(global_step: Any, what: str) -> None:
    if global_step is None:
        raise InvalidArgumentError(f"`global_step` is required for {what}: give the variable of the count.")


@entry
def exponential_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Rate:
    """``learning_rate * decay_rate ** (global_step / decay_steps)``.

    Args:
        learning_rate: the rate of step 0.
        global_step: the count of steps: a variable, a tensor or a number.
        decay_steps: after how many steps the rate has been multiplied by
        decay_rate: once.
        staircase: whether the exponent is rounded down.
        name: ignored; as in TensorFlow.

    Returns:
        In an explicit graph a scalar tensor; elsewhere a function without arguments that returns the rate of
        the present step, which optimizers take.

    Raises:
        InvalidArgumentError: ``global_step`` is None.

    >>> from dualflow.compat import v1
    >>> step = v1.Variable(0, trainable=False)
    >>> rate = v1.train.exponential_decay(0.5, step, 10, 0.1)
    >>> _ = step.assign(20)
    >>> round(float(rate()), 4)
    0.005
    """
    _required(global_step, "exponential_decay")

    def compute() -> Any:
        rate, step, steps, by = _tensors(learning_rate, global_step, decay_steps, decay_rate)
        done = step / steps
        return rate * by ** (floor(done) if staircase else done)

    return _rate(compute)


@entry
def natural_exp_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Rate:
    """``learning_rate * exp(-decay_rate * global_step / decay_steps)``; see :func:`exponential_decay`.

    >>> from dualflow.compat import v1
    >>> round(float(v1.train.natural_exp_decay(0.5, 20, 10, 1.0)()), 4)
    0.0677
    """
    _required(global_step, "natural_exp_decay")

    def compute() -> Any:
        rate, step, steps, by = _tensors(learning_rate, global_step, decay_steps, decay_rate)
        done = step / steps
        return rate * exp(-by * (floor(done) if staircase else done))

    return _rate(compute)


@entry
def inverse_time_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Rate:
    """``learning_rate / (1 + decay_rate * global_step / decay_steps)``; see :func:`exponential_decay`.

    >>> from dualflow.compat import v1
    >>> round(float(v1.train.inverse_time_decay(0.5, 20, 10, 1.0)()), 4)
    0.1667
    """
    _required(global_step, "inverse_time_decay")

    def compute() -> Any:
        rate, step, steps, by = _tensors(learning_rate, global_step, decay_steps, decay_rate)
        done = step / steps
        return rate / (1 + by * (floor(done) if staircase else done))

    return _rate(compute)


@entry
def polynomial_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    end_learning_rate: Any = 0.0001,
    power: Any = 1.0,
    cycle: bool = False,
    name: str | None = None,
) -> Rate:
    """From ``learning_rate`` down to ``end_learning_rate``, where ``decay_steps`` are done.

    Args:
        learning_rate: the rate of step 0.
        global_step: the count of steps: a variable, a tensor or a number.
        decay_steps: how long the way down is.
        end_learning_rate: the last rate.
        power: of the share of the way that is left.
        cycle: whether the rate goes up again beyond, with a way down to the next multiple of
            ``decay_steps``.
        name: ignored; as in TensorFlow.

    Returns:
        As :func:`exponential_decay`.

    >>> from dualflow.compat import v1
    >>> round(float(v1.train.polynomial_decay(0.5, 5, 10, 0.1)()), 4)
    0.3
    """
    _required(global_step, "polynomial_decay")

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
    learning_rate: Any, global_step: Any, decay_steps: Any, alpha: float = 0.0, name: str | None = None
) -> Rate:
    """From ``learning_rate`` down to ``alpha * learning_rate`` along half a cosine.

    Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts", 2017. See
    :func:`exponential_decay` for arguments and result.

    >>> from dualflow.compat import v1
    >>> round(float(v1.train.cosine_decay(0.5, 5, 10)()), 4)
    0.25
    """
    _required(global_step, "cosine_decay")

    def compute() -> Any:
        rate, step, steps = _tensors(learning_rate, global_step, decay_steps)
        share = 0.5 * (1 + cos(math.pi * minimum(step, steps) / steps))
        return rate * ((1 - alpha) * share + alpha)

    return _rate(compute)


@entry
def cosine_decay_restarts(
    learning_rate: Any,
    global_step: Any,
    first_decay_steps: Any,
    t_mul: float = 2.0,
    m_mul: float = 1.0,
    alpha: float = 0.0,
    name: str | None = None,
) -> Rate:
    """:func:`cosine_decay` again and again.

    Args:
        learning_rate: the rate of step 0.
        global_step: the count of steps.
        first_decay_steps: how long the first way down is.
        t_mul: how many times as long as the one before each is.
        m_mul: how many times as high it begins.
        alpha: the least rate, as a share of ``learning_rate``.
        name: ignored; as in TensorFlow.

    Returns:
        As :func:`exponential_decay`.

    >>> from dualflow.compat import v1
    >>> [round(float(v1.train.cosine_decay_restarts(0.5, step, 10)()), 4) for step in (5, 10, 20)]
    [0.25, 0.5, 0.25]
    """
    _required(global_step, "cosine_decay_restarts")

    def compute() -> Any:
        rate, step, first = _tensors(learning_rate, global_step, first_decay_steps)
        done = step / first
        if t_mul == 1.0:
            restarts = floor(done)
            within = done - restarts
        else:
            restarts = floor(log(1 - done * (1 - t_mul)) / math.log(t_mul))
            within = (done - (1 - t_mul**restarts) / (1 - t_mul)) / t_mul**restarts
        share = 0.5 * m_mul**restarts * (1 + cos(math.pi * within))
        return rate * ((1 - alpha) * share + alpha)

    return _rate(compute)


@entry
def linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    num_periods: float = 0.5,
    alpha: float = 0.0,
    beta: float = 0.001,
    name: str | None = None,
) -> Rate:
    """A line that falls to 0, times a cosine: ``rate * ((alpha + line) * cosine + beta)``.

    Bello et al., "Neural optimizer search with reinforcement learning", 2017.

    Args:
        learning_rate: the rate of step 0.
        global_step: the count of steps.
        decay_steps: how long the way down is.
        num_periods: how many periods the cosine has.
        alpha, beta: see the formula.
        name: ignored; as in TensorFlow.

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
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    initial_variance: float = 1.0,
    variance_decay: float = 0.55,
    num_periods: float = 0.5,
    alpha: float = 0.0,
    beta: float = 0.001,
    name: str | None = None,
) -> Rate:
    """:func:`linear_cosine_decay` with noise on the line.

    Args:
        initial_variance: of the noise at step 0.
        variance_decay: the power of ``1 + global_step`` that the variance is divided by.

    The other arguments and the result are as there.

    >>> from dualflow.compat import v1
    >>> v1.train.noisy_linear_cosine_decay(0.5, 5, 10)().shape
    ()
    """
    _required(global_step, "a linear cosine decay")

    def compute() -> Any:
        rate, step, steps = _tensors(learning_rate, global_step, decay_steps)
        step = minimum(step, steps)
        line = (steps - step) / steps
        if initial_variance:
            line = line + normal([], dtype=rate.dtype) * sqrt(initial_variance / (1 + step) ** variance_decay)
        return rate * ((alpha + line) * (0.5 * (1 + cos(2 * math.pi * num_periods * step / steps))) + beta)

    return _rate(compute)


@entry
def piecewise_constant(
    x: Any, boundaries: Sequence[Any], values: Sequence[Any], name: str | None = None
) -> Rate:
    """The value of the stretch that ``x`` lies in: the first up to the first boundary, and so on.

    Args:
        x: the count of steps.
        boundaries: increasing numbers, the last of each stretch but the last.
        values: one for each stretch.
        name: ignored; as in TensorFlow.

    Returns:
        As :func:`exponential_decay`.

    Raises:
        InvalidArgumentError: not one value more than boundaries, or boundaries that don't increase.

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
        found = convert_to_tensor(values[-1])
        for boundary, value in reversed(list(zip(boundaries, values[:-1], strict=True))):
            found = where(step <= boundary, convert_to_tensor(value), found)
        return found

    return _rate(compute)


piecewise_constant_decay = piecewise_constant
