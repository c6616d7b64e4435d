"""Optimizer state that is divided among the replicas: each has, and updates, its part of every slot.

Reduce-scatters add the gradients, so a replica gets the sums of its own parts; the optimizer updates these
parts of the variables, and the updated parts of all replicas are gathered. This is the first stage of ZeRO:
S. Rajbhandari, J. Rasley, O. Ruwase and Y. He, "ZeRO: Memory Optimizations Toward Training Trillion Parameter
Models", SC 2020.

The part of a variable is a vector of its elements in a row (``ops/collectives``). A checkpoint has whole
slots, as without the division, so it can be restored by any number of replicas.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

from keras.src import backend

import dualflow as df
from dualflow.core.convert import Array
from dualflow.core.errors import InvalidArgumentError
from dualflow.distribute.strategy import get_strategy
from dualflow.eager.replicas import WholeValue, declare_part
from dualflow.ops.collectives.collective_ops import block_sums_over, blocks_joined_over, own_part, part_size
from keras_dualflow.replicas import PART_UPDATES, PartUpdates
from keras_dualflow.src.core.conversion import cast
from keras_dualflow.src.core.variable import Variable

_OF_WHOLE_VARIABLES: Final = frozenset(
    {"Adafactor", "Lamb", "LossScaleOptimizer", "MultiOptimizer", "Muon", "ScheduleFreeAdamW"}
)
"""Optimizers of Keras that need more than a part of a variable or gradient."""
_parts: Final[ContextVar[dict[int, VariablePart]]] = ContextVar("dualflow_variable_parts")
"""This replica's parts of the variables that an optimizer is updating, by the ``id`` of the variable."""


class VariablePart(Variable):
    """This replica's part of a variable, for an optimizer that updates it.

    Args:
        whole: the variable of which it is a part.
        value: the part, a vector; assignments replace it.
    """

    def __init__(self, whole: Any, value: Any) -> None:
        super().__init__(value, dtype=backend.standardize_dtype(whole.dtype), autocast=False, name="part")
        self.whole = whole
        self._name, self._path = whole.name, getattr(whole, "path", whole.name)
        self._overwrite_with_gradient = getattr(whole, "overwrite_with_gradient", False)

    def _initialize(self, value: Any) -> None:
        self._value = value

    def _direct_assign(self, value: Any) -> None:
        self._value = cast(value, self._dtype)


@dataclass(frozen=True)
class PartReference:
    """Describes a slot of a part of a variable to ``add_variable_from_reference`` of an optimizer."""

    path: str
    shape: tuple[int, ...]
    dtype: str


def add_part(add: Callable[..., Any], optimizer: Any, variable: Any, name: Any, initializer: Any) -> Any:
    """A slot of this replica's part of ``variable``, which a checkpoint saves as a whole one."""
    group = get_strategy()._group
    shape = df.TensorShape(variable.shape)
    path = getattr(variable, "path", None) or variable.name
    size = part_size(shape, group.size)
    reference = PartReference(path, (size,), backend.standardize_dtype(variable.dtype))
    slot = add(optimizer, reference, name, initializer)

    def gather(part: Array) -> Array:
        with df.init_scope():
            (whole,) = blocks_joined_over([df.constant(part)], [shape], group, part.nbytes)
        array: Array = whole.numpy()
        return array

    def own(whole: Array) -> Array:
        with df.init_scope():
            array: Array = own_part(whole, group).numpy()
        return array

    declare_part(slot._value, WholeValue(shape, gather, own))
    return slot


def apply_to_parts(
    apply: Callable[..., Any], optimizer: Any, grads: Sequence[Any], variables: Sequence[Any] | None
) -> None:
    """The optimizer's ``apply`` to this replica's parts of variables, and a gather of the updated ones."""
    _require_elementwise(optimizer)
    strategy = get_strategy()
    group, nbytes = strategy._group, strategy._bucket_bytes
    if variables is None:
        variables = optimizer._trainable_variables
    variables = list(variables)
    if not optimizer.built:
        with backend.name_scope(optimizer.name, caller=optimizer):
            optimizer.build(variables)
        optimizer.built = True
    pairs = [(g, v) for g, v in zip(grads, variables, strict=True) if g is not None]
    sums = block_sums_over([df.convert_to_tensor(g) for g, _ in pairs], group, nbytes)
    parts = {id(v): VariablePart(v, own_part(_stored(v), group)) for _, v in pairs}
    token = _parts.set(parts)
    try:
        apply(optimizer, sums, [parts[id(v)] for _, v in pairs])
    finally:
        _parts.reset(token)
    shapes = [df.TensorShape(part.whole.shape) for part in parts.values()]
    wholes = blocks_joined_over([part._value for part in parts.values()], shapes, group, nbytes)
    for part, whole in zip(parts.values(), wholes, strict=True):
        part.whole.assign(whole)
    for _, variable in pairs:
        if getattr(variable, "constraint", None) is not None:
            variable.assign(variable.constraint(variable))


def average_parts(update: Callable[..., None], optimizer: Any, variables: Sequence[Any]) -> None:
    """Update an optimizer's moving averages, of which there are parts, with the parts of ``variables``.

    In steps in which averages replace variables, they replace the parts. Variables without gradients have
    averages, too.
    """
    group, parts = get_strategy()._group, _parts.get()
    others = {id(v): VariablePart(v, own_part(_stored(v), group)) for v in variables if id(v) not in parts}
    every = parts | others
    own = [every[id(v)] for v in variables]
    update(optimizer, own)
    if not optimizer.ema_overwrite_frequency:
        return
    replaces = (df.convert_to_tensor(optimizer.iterations) + 1) % optimizer.ema_overwrite_frequency == 0
    for part, average in zip(own, optimizer._model_variables_moving_average, strict=True):
        if average is not None:
            part.assign(df.where(replaces, df.convert_to_tensor(average), part._value))
    parts |= others


def clipped_parts(clip: Callable[..., Any], optimizer: Any, grads: Sequence[Any]) -> Any:
    """The optimizer's clipped gradients, of which there are parts: norms are those of whole gradients."""
    if not (optimizer.clipnorm or optimizer.global_clipnorm):
        return clip(optimizer, grads)
    own = df.stack([df.reduce_sum(df.square(df.cast(g, df.float32))) for g in grads])
    squares = get_strategy().reduce("SUM", own)
    if optimizer.clipnorm:
        limit, norms = optimizer.clipnorm, list(df.unstack(df.sqrt(squares)))
    else:
        limit, norms = optimizer.global_clipnorm, [df.sqrt(df.reduce_sum(squares))] * len(grads)
    return [g * df.cast(limit / df.maximum(n, limit), g.dtype) for g, n in zip(grads, norms, strict=True)]


def _stored(variable: Any) -> Any:
    """The variable of dualflow that a variable of Keras wraps: its value without autocasts."""
    return variable._value if isinstance(variable, Variable) else variable


def _require_elementwise(optimizer: Any) -> None:
    """Raise an error for an optimizer that can't update parts of variables.

    Raises:
        InvalidArgumentError: it needs whole variables or gradients, or updates in a branch.
    """
    name = next((c.__name__ for c in type(optimizer).__mro__ if c.__name__ in _OF_WHOLE_VARIABLES), None)
    accumulates = getattr(optimizer, "gradient_accumulation_steps", None)
    if name or accumulates:
        option = "gradient_accumulation_steps needs whole gradients and variables"
        reason = f"{name} needs whole variables" if name else option
        raise InvalidArgumentError(
            f"shard_optimizer_state gives each replica a part of every variable to update, and {reason}. Use "
            "another optimizer, such as Adam, without this option; or leave out shard_optimizer_state."
        )


PART_UPDATES.fill(PartUpdates(apply_to_parts, add_part, clipped_parts, average_parts))
