"""Per-replica values: ``df.distribute.DistributedValues``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dualflow.core.tree import flatten, unflatten


@dataclass(frozen=True, slots=True, eq=False)
class DistributedValues:
    """The values of all replicas; a process holds the one of its own replica.

    ``Strategy.run`` passes its replica's value to the function. It is created by
    ``Strategy.experimental_distribute_values_from_function``.

    Args:
        values: the values of the replicas of this process, a tuple.

    >>> import dualflow as df
    >>> strategy = df.distribute.OneDeviceStrategy("/cpu:0")
    >>> strategy.experimental_distribute_values_from_function(lambda context: df.constant(1.0)).values
    (<tf.Tensor: shape=(), dtype=float32, numpy=1.0>,)
    """

    values: tuple[Any, ...]


def own_values(tree: Any) -> Any:
    """A structure with this process's value of each :class:`DistributedValues` in it."""
    leaves, structure = flatten(tree, _is_distributed)
    return unflatten(structure, [own_value(x) for x in leaves]) if any(map(_is_distributed, leaves)) else tree


def own_value(value: Any) -> Any:
    """The value of this process's replica."""
    return value.values[0] if isinstance(value, DistributedValues) else value


def _is_distributed(value: Any) -> bool:
    return isinstance(value, DistributedValues)
