"""``StrategyExtended``, whose methods libraries call, and ``ValueContext``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from dualflow.distribute.distributed_values import own_values
from dualflow.distribute.reduce_op import ReduceOp
from dualflow.eager.devices import LOGICAL_CPU


@dataclass(frozen=True)
class ValueContext:
    """The argument of a function that returns a replica's value: its number, and the number of replicas.

    Args:
        replica_id_in_sync_group: the number of the replica, from 0.
        num_replicas_in_sync: the number of replicas.

    >>> import dualflow as df
    >>> df.distribute.experimental.ValueContext(0, 2)
    ValueContext(replica_id_in_sync_group=0, num_replicas_in_sync=2)
    """

    replica_id_in_sync_group: int
    num_replicas_in_sync: int


@dataclass(frozen=True, slots=True)
class StrategyExtended:
    """Methods of strategies that libraries call.

    Args:
        reduce: the strategy's :meth:`Strategy.reduce`.
        is_first: whether this worker is the first one.

    >>> import dualflow as df
    >>> df.distribute.get_strategy().extended.worker_devices
    ('/device:CPU:0',)
    """

    reduce: Callable[..., Any]
    is_first: bool

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """The devices of the replicas of this process."""
        return (LOGICAL_CPU.name,)

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """The devices of variables."""
        return (LOGICAL_CPU.name,)

    @property
    def should_checkpoint(self) -> bool:
        """Whether this worker writes checkpoints: the first one does."""
        return self.is_first

    @property
    def should_save_summary(self) -> bool:
        """Whether this worker writes summaries: the first one does."""
        return self.is_first

    def colocate_vars_with(self, colocate_with_variable: object) -> AbstractContextManager[None]:
        """A context manager without effect: all variables are on the CPU.

        Args:
            colocate_with_variable: ignored.
        """
        return nullcontext()

    def update(
        self,
        var: object,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        group: bool = True,
    ) -> Any:
        """``fn(var, *args, **kwargs)``, which updates this worker's variable.

        Args:
            var: the variable.
            fn: a function of the variable and of ``args``.
            args: its arguments after the variable.
            kwargs: its arguments by name.
            group: ignored, as each worker has one replica.
        """
        return fn(var, *own_values(tuple(args)), **own_values(dict(kwargs or {})))

    def reduce_to(
        self, reduce_op: ReduceOp | str, value: object, destinations: object, options: object = None
    ) -> Any:
        """The values of all replicas, combined, on every worker.

        Args:
            reduce_op: as in :meth:`Strategy.reduce`.
            value: as in :meth:`Strategy.reduce`.
            destinations: ignored: all workers get the result.
            options: ignored; the strategy's are used.
        """
        return self.reduce(reduce_op, value)

    def batch_reduce_to(
        self,
        reduce_op: ReduceOp | str,
        value_destination_pairs: Sequence[tuple[Any, Any]],
        options: object = None,
    ) -> list[Any]:
        """:meth:`reduce_to` of several values, which share collectives.

        Args:
            reduce_op: as in :meth:`Strategy.reduce`.
            value_destination_pairs: pairs of a value and ignored destinations.
            options: ignored; the strategy's are used.
        """
        combined: list[Any] = self.reduce(reduce_op, [value for value, _ in value_destination_pairs])
        return combined
