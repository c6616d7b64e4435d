"""Losses, optimizers and variables of Keras on one of several replicas of ``df.distribute``.

Each replica has its part of a batch. Its loss is scaled by that part, so that the sum of all replicas'
gradients is the gradient for the whole batch. Optimizers add the gradients before they use them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from dualflow.core.records import NamedTuple
from dualflow.core.slot import Slot
from dualflow.distribute.strategy import Strategy, get_replica_context, get_strategy
from dualflow.eager.replicas import INITIAL_VALUE, whole_arrays, whole_value
from dualflow.ops.arithmetic import divide_no_nan, multiply
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.conversion import cast
from dualflow.ops.creation import zeros_like

_fraction: Final[ContextVar[Any]] = ContextVar("dualflow_keras_fraction", default=None)
"""The replica's part of the rows of the batch, a scalar tensor; None for an equal part."""
_summing: Final[ContextVar[bool]] = ContextVar("dualflow_keras_summing", default=False)
"""Whether an optimizer is using gradients that are sums over the replicas already."""
_totals: Final[ContextVar[Mapping[int, Any]]] = ContextVar("dualflow_keras_totals", default={})  # noqa: B039
"""The sums over the replicas of variables, by ``id``, which is never written to."""


class PartUpdates(NamedTuple):
    """How optimizers update the replica's parts of variables, by ``src/training/sharded_state.py``.

    Each function takes the method of Keras's optimizers that it replaces, and this method's arguments.
    """

    apply: Callable[..., None]
    add: Callable[..., Any]
    clip: Callable[..., Any]
    average: Callable[..., None]


PART_UPDATES: Final[Slot[Any]] = Slot("updates of parts of variables", None)
"""The :class:`PartUpdates`."""


def in_replicas() -> bool:
    """Whether a strategy with several replicas is current."""
    return INITIAL_VALUE.get() is not None


@contextmanager
def fraction_of_batch(fraction: Any) -> Iterator[None]:
    """A block whose losses are of that part of the rows of a batch."""
    token = _fraction.set(fraction)
    try:
        yield
    finally:
        _fraction.reset(token)


def scaled_loss(loss: Any) -> Any:
    """The part of the loss of the whole batch that is this replica's."""
    return multiply(loss, _part(loss))


def unscaled_loss(loss: Any) -> Any:
    """The mean over this replica's rows; 0 without rows."""
    if len(loss.shape) and loss.shape[0] == 0:  # Keras doesn't reduce losses without rows
        loss = reduce_sum(loss)
    return divide_no_nan(loss, _part(loss))


def _part(loss: Any) -> Any:
    fraction = _fraction.get()
    equal = 1.0 / get_strategy().num_replicas_in_sync
    return cast(equal if fraction is None else fraction, loss.dtype)


def apply_to_sums(apply: Callable[..., Any], optimizer: Any, grads: Sequence[Any], variables: Any) -> Any:
    """The optimizer's ``apply``, with gradients that are sums over the replicas."""
    context = get_replica_context()
    if context is None or _summing.get():
        return apply(optimizer, grads, variables)
    if get_strategy().shards_optimizer_state:
        with _sums():
            PART_UPDATES.value.apply(apply, optimizer, grads, variables)
        return None
    grads = list(grads)
    existing = [g for g in grads if g is not None]
    sums = iter(context.all_reduce("SUM", existing))
    with _sums():
        return apply(optimizer, [g if g is None else next(sums) for g in grads], variables)


@contextmanager
def _sums() -> Iterator[None]:
    """A block in which gradients are sums over the replicas."""
    token = _summing.set(True)
    try:
        yield
    finally:
        _summing.reset(token)


def in_part_updates() -> bool:
    """Whether an optimizer is updating this replica's parts of variables."""
    return _summing.get() and get_strategy().shards_optimizer_state


def update_averages(update: Callable[..., None], optimizer: Any, variables: Sequence[Any]) -> None:
    """The optimizer's update of its moving averages of variables; of parts, if it updates parts."""
    if in_part_updates():
        PART_UPDATES.value.average(update, optimizer, variables)
    else:
        update(optimizer, variables)


def overwrite_with_averages(overwrite: Callable[..., None], optimizer: Any, variables: Sequence[Any]) -> None:
    """Assign an optimizer's moving averages to variables: whole ones, which all replicas gather together.

    An update of parts has replaced these itself.
    """
    if in_part_updates():
        return
    averages = optimizer._model_variables_moving_average
    if not any(a is not None and whole_value(a._value) for a in averages):
        overwrite(optimizer, variables)
        return
    pairs = [(v, a) for v, a in zip(variables, averages, strict=True) if a is not None]
    arrays = whole_arrays([a._value for _, a in pairs], [a.numpy() for _, a in pairs])
    for (variable, _), array in zip(pairs, arrays, strict=True):
        variable.assign(array)


def clipped(clip: Callable[..., Any], optimizer: Any, grads: Sequence[Any]) -> Any:
    """The optimizer's clipped gradients; of parts, by the norms of whole gradients."""
    if not in_part_updates():
        return clip(optimizer, grads)
    return PART_UPDATES.value.clip(clip, optimizer, grads)


def add_slot(add: Callable[..., Any], optimizer: Any, variable: Any, name: Any, initializer: Any) -> Any:
    """An optimizer's slot for a variable; for this replica's part of it, if the strategy divides states."""
    if not get_strategy().shards_optimizer_state:
        return add(optimizer, variable, name, initializer)
    return PART_UPDATES.value.add(add, optimizer, variable, name, initializer)


def total(variable: Any, strategy: Strategy) -> Any:
    """The value of a metric's variable: the replica's own while the replica runs, else the sum of all."""
    context = get_replica_context()
    if context is not None and context.strategy is strategy:
        return variable
    summed = _totals.get().get(id(variable))
    return strategy.reduce("SUM", variable) if summed is None else summed


def split_total(value: Any, strategy: Strategy) -> Any:
    """The replica's own value, for a variable whose sum over all replicas is to be ``value``."""
    context = get_replica_context()
    is_first = strategy.extended.should_checkpoint
    if is_first or (context is not None and context.strategy is strategy):
        return value
    return zeros_like(value)


@contextmanager
def totals_of(variables: Sequence[Any], strategy: Strategy) -> Iterator[None]:
    """A block in which these variables have the sums over all replicas, which share a collective."""
    sums = strategy.reduce("SUM", list(variables))
    token = _totals.set({id(v): s for v, s in zip(variables, sums, strict=True)})
    try:
        yield
    finally:
        _totals.reset(token)
