"""``Strategy`` and ``ReplicaContext``: how replicas of a computation, one in each process, work together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, Final

from dualflow.core.errors import FailedPreconditionError
from dualflow.core.records import NamedTuple
from dualflow.core.tracebacks import entry
from dualflow.distribute.combining import all_reduce, gather, reduce_along
from dualflow.distribute.datasets import InputContext, distribute, from_function
from dualflow.distribute.distributed_values import DistributedValues, own_values
from dualflow.distribute.extended import StrategyExtended, ValueContext
from dualflow.distribute.group import OneWorker, WorkerGroup
from dualflow.distribute.options import BUCKET_BYTES
from dualflow.distribute.reduce_op import ReduceOp, as_reduce_op
from dualflow.eager.devices import LOGICAL_CPU
from dualflow.eager.replicas import INITIAL_VALUE

Group = OneWorker | WorkerGroup
"""The workers of a strategy."""


class Strategy:
    """The distribution of a computation over replicas; this one, the default, has a single replica.

    Each worker, a process, has one replica: its variables, its part of each batch. Between them values are
    exchanged where the program combines them: by :meth:`reduce`, :meth:`gather`, by
    :meth:`ReplicaContext.all_reduce`, and by optimizers and metrics of Keras.

    Args:
        extended: ignored; subclasses set it.

    >>> import dualflow as df
    >>> strategy = df.distribute.get_strategy()
    >>> strategy.num_replicas_in_sync
    1
    >>> strategy.run(lambda x: x + 1, args=(2,))
    3
    """

    def __init__(self, extended: object = None) -> None:
        self._group: Group = OneWorker()
        self._bucket_bytes = BUCKET_BYTES
        self._shards_optimizer_state = False

    @property
    def shards_optimizer_state(self) -> bool:
        """Whether each of several replicas has a part of the state of Keras's optimizers."""
        return self._shards_optimizer_state and self._group.size > 1

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas whose gradients are combined."""
        return self._group.size

    @property
    def extended(self) -> StrategyExtended:
        """More methods, for libraries."""
        return StrategyExtended(self.reduce, self._group.rank == 0)

    @property
    def cluster_resolver(self) -> Any:
        """The :class:`ClusterResolver` of a strategy with several workers, else None."""
        return None

    @entry
    def scope(self) -> AbstractContextManager[Strategy]:
        """A context in which the strategy is current: variables created there are equal on all workers.

        Returns:
            A context manager.

        >>> import dualflow as df
        >>> with df.distribute.OneDeviceStrategy("/cpu:0").scope():
        ...     df.distribute.in_cross_replica_context()
        True
        """
        return self._current(None)

    @entry
    def run(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        options: object = None,
    ) -> Any:
        """Call ``fn`` on each replica, with the replica's own values among its arguments.

        Args:
            fn: a function of tensors, traced or not.
            args: its arguments; of a :class:`DistributedValues` it gets the replica's value.
            kwargs: its arguments by name.
            options: ignored; a :class:`RunOptions`.

        Returns:
            What ``fn`` returns on this worker's replica.

        Raises:
            FailedPreconditionError: called inside of ``fn``, on a replica.

        >>> import dualflow as df
        >>> df.distribute.get_strategy().run(lambda x, scale: x * scale, args=(2,), kwargs={"scale": 3})
        6
        """
        replica = _context.get().replica
        if replica is not None and replica.strategy is self and self is not DEFAULT:
            raise FailedPreconditionError(
                "strategy.run is called inside of strategy.run; call the function itself there."
            )
        with self._current(ReplicaContext(self)):
            return fn(*own_values(tuple(args)), **own_values(dict(kwargs or {})))

    @entry
    def reduce(self, reduce_op: ReduceOp | str, value: object, axis: int | None = None) -> Any:
        """The values of all replicas, combined; every worker gets the result.

        Args:
            reduce_op: :class:`ReduceOp`, or its name.
            value: a tensor of numbers, or a structure of them: this worker's, as :meth:`run` returns it.
            axis: an axis that is reduced first, with sizes that may differ between the workers; None to
                combine elements of equal positions.

        Returns:
            A tensor, or a structure of them, as ``value``.

        Raises:
            InvalidArgumentError: ``reduce_op`` is something else.
            DTypeError: bools or strings.

        >>> import dualflow as df
        >>> df.distribute.get_strategy().reduce("MEAN", df.constant([1.0, 3.0]), axis=0).numpy()
        np.float32(2.0)
        """
        return reduce_along(as_reduce_op(reduce_op), value, axis, self._group, self._bucket_bytes)

    @entry
    def gather(self, value: object, axis: int) -> Any:
        """The tensors of all replicas, concatenated in the order of the replicas.

        Args:
            value: this worker's tensor, of one axis or more, or a structure of them.
            axis: the axis along which sizes may differ.

        Returns:
            A tensor, or a structure of them, as ``value``.

        Raises:
            InvalidArgumentError: a tensor has no axes.

        >>> import dualflow as df
        >>> df.distribute.get_strategy().gather(df.constant([1, 2]), axis=0).numpy()
        array([1, 2], dtype=int32)
        """
        return gather(value, axis, self._group)

    @entry
    def experimental_distribute_dataset(self, dataset: object, options: object = None) -> Any:
        """The part of a dataset of batches that belongs to this worker: its files, or its rows of each batch.

        A dataset that reads files is divided by files: worker i of n reads files i, i + n and so on, and
        divides each of their batches into n, so that a step takes as many rows as a batch has. A worker whose
        files have ended has batches without rows until those of all have. Of other datasets all workers
        iterate over the same batches, in the same random order; over a source with random access each reads
        only its own rows.
        The option ``experimental_distribute.auto_shard_policy`` chooses.

        Args:
            dataset: a :class:`dualflow.data.Dataset` of batches of all replicas together.
            options: ignored; an :class:`InputOptions`.

        Returns:
            A :class:`dualflow.data.Dataset`.

        Raises:
            DTypeError: ``dataset`` is something else.
            InvalidArgumentError: its elements have no rows; or its options divide files, and it reads
                none, or fewer than there are workers.

        >>> import dualflow as df
        >>> batches = df.data.Dataset.range(4).batch(2)
        >>> [x.numpy() for x in df.distribute.get_strategy().experimental_distribute_dataset(batches)]
        [array([0, 1]), array([2, 3])]
        """
        return distribute(dataset, self._group)

    @entry
    def distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], Any], options: object = None
    ) -> Any:
        """The dataset that ``dataset_fn`` makes for this worker, of batches of one replica.

        Args:
            dataset_fn: takes an :class:`InputContext`, by which it selects files or elements, and returns a
                :class:`dualflow.data.Dataset`.
            options: ignored; an :class:`InputOptions`.

        Returns:
            A :class:`dualflow.data.Dataset`.

        Raises:
            DTypeError: ``dataset_fn`` returns something else.

        >>> import dualflow as df
        >>> def own_part(context):
        ...     whole = df.data.Dataset.range(4)
        ...     return whole.shard(context.num_input_pipelines, context.input_pipeline_id).batch(2)
        >>> dataset = df.distribute.get_strategy().distribute_datasets_from_function(own_part)
        >>> [x.numpy() for x in dataset]
        [array([0, 1]), array([2, 3])]
        """
        group = self._group
        return from_function(dataset_fn, InputContext(group.size, group.rank, group.size))

    def experimental_local_results(self, value: object) -> tuple[Any, ...]:
        """The values of the replicas of this process: a tuple of one.

        Args:
            value: what :meth:`run` returned, or a :class:`DistributedValues`.

        Returns:
            A tuple.

        >>> import dualflow as df
        >>> df.distribute.get_strategy().experimental_local_results(5)
        (5,)
        """
        return value.values if isinstance(value, DistributedValues) else (value,)

    @entry
    def experimental_distribute_values_from_function(
        self, value_fn: Callable[[ValueContext], Any]
    ) -> DistributedValues:
        """The values that ``value_fn`` returns for the replicas.

        Args:
            value_fn: takes a :class:`ValueContext`, and returns the replica's value.

        Returns:
            A :class:`DistributedValues`, for :meth:`run`.

        >>> import dualflow as df
        >>> strategy = df.distribute.get_strategy()
        >>> number = lambda context: context.replica_id_in_sync_group
        >>> strategy.experimental_distribute_values_from_function(number).values
        (0,)
        """
        context = ValueContext(self._group.rank, self._group.size)
        return DistributedValues((value_fn(context),))

    @contextmanager
    def _current(self, replica: ReplicaContext | None) -> Iterator[Strategy]:
        """A context in which this strategy is current, and ``replica`` is the replica context."""
        token = _context.set(_Current(self, replica))
        initial = INITIAL_VALUE.set(self._group.broadcast if self._group.size > 1 else None)
        try:
            yield self
        finally:
            INITIAL_VALUE.reset(initial)
            _context.reset(token)


class ReplicaContext:
    """The context of a function that :meth:`Strategy.run` calls on a replica.

    Args:
        strategy: the strategy.
        replica_id_in_sync_group: ignored; the number of the replica is the worker's.

    >>> import dualflow as df
    >>> df.distribute.get_replica_context().replica_id_in_sync_group
    0
    """

    def __init__(self, strategy: Strategy, replica_id_in_sync_group: object = None) -> None:
        self._strategy = strategy

    @property
    def strategy(self) -> Strategy:
        """The strategy that runs the function."""
        return self._strategy

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas."""
        return self._strategy.num_replicas_in_sync

    @property
    def replica_id_in_sync_group(self) -> int:
        """The number of this replica, from 0."""
        return self._strategy._group.rank

    @property
    def devices(self) -> list[str]:
        """The devices of the replica: the CPU."""
        return [LOGICAL_CPU.name]

    @entry
    def all_reduce(self, reduce_op: ReduceOp | str, value: object, options: object = None) -> Any:
        """The values of all replicas, combined; differentiable.

        Args:
            reduce_op: :class:`ReduceOp`, or its name.
            value: a tensor of numbers, of a shape that is the same on all replicas; an
                :class:`dualflow.IndexedSlices`; or a structure of these.
            options: ignored; the strategy's are used.

        Returns:
            A tensor, or a structure of them, as ``value``: the same on all replicas.

        Raises:
            InvalidArgumentError: ``reduce_op`` is something else.
            DTypeError: bools or strings.

        >>> import dualflow as df
        >>> df.distribute.get_replica_context().all_reduce("SUM", df.constant(2.0)).numpy()
        np.float32(2.0)
        """
        strategy = self._strategy
        return all_reduce(as_reduce_op(reduce_op), value, strategy._group, strategy._bucket_bytes)

    @entry
    def all_gather(self, value: object, axis: int, options: object = None) -> Any:
        """The tensors of all replicas, concatenated in the order of the replicas; differentiable.

        Args:
            value: a tensor of one axis or more, or a structure of them.
            axis: the axis along which sizes may differ.
            options: ignored.

        Returns:
            A tensor, or a structure of them, as ``value``: the same on all replicas.

        Raises:
            InvalidArgumentError: a tensor has no axes.

        >>> import dualflow as df
        >>> df.distribute.get_replica_context().all_gather(df.constant([2.0]), axis=0).numpy()
        array([2.], dtype=float32)
        """
        return gather(value, axis, self._strategy._group)

    @entry
    def merge_call(
        self, merge_fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call ``merge_fn`` with the strategy, in the context of all replicas.

        Args:
            merge_fn: a function of the strategy and of ``args``.
            args: its arguments after the strategy.
            kwargs: its arguments by name.

        Returns:
            What ``merge_fn`` returns.

        >>> import dualflow as df
        >>> df.distribute.get_replica_context().merge_call(lambda strategy, x: x + 1, args=(1,))
        2
        """
        with self._strategy._current(None):
            return merge_fn(self._strategy, *args, **(kwargs or {}))


class _Current(NamedTuple):
    """The current strategy; the replica context is None in its scope, outside of ``run``."""

    strategy: Strategy
    replica: ReplicaContext | None


DEFAULT: Final = Strategy()
"""The strategy outside of all scopes."""
_OUTSIDE: Final = _Current(DEFAULT, ReplicaContext(DEFAULT))
_context: Final[ContextVar[_Current]] = ContextVar("dualflow_strategy", default=_OUTSIDE)


def get_strategy() -> Strategy:
    """The current strategy: that of the innermost ``scope()`` or ``run``, or the default one.

    Raises nothing.

    Returns:
        A :class:`Strategy`.

    >>> import dualflow as df
    >>> df.distribute.get_strategy().num_replicas_in_sync
    1
    """
    return _context.get().strategy


def has_strategy() -> bool:
    """Whether another strategy than the default one is current.

    Raises nothing.

    Returns:
        A bool.

    >>> import dualflow as df
    >>> df.distribute.has_strategy()
    False
    """
    return get_strategy() is not DEFAULT


def get_replica_context() -> ReplicaContext | None:
    """The context of the replica whose function runs.

    Raises nothing.

    Returns:
        A :class:`ReplicaContext`; None in a ``scope()``, outside of ``run``.

    >>> import dualflow as df
    >>> df.distribute.get_replica_context().num_replicas_in_sync
    1
    """
    return _context.get().replica


def in_cross_replica_context() -> bool:
    """Whether the program is in a ``scope()``, outside of ``run``.

    Raises nothing.

    Returns:
        A bool.

    >>> import dualflow as df
    >>> df.distribute.in_cross_replica_context()
    False
    """
    return get_replica_context() is None
