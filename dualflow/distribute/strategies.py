"""The strategies that programs create: one device, the workers of one machine, or all workers of a job."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Final

from dualflow.core.device_names import is_device
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.locks import SharedLock, imported
from dualflow.core.tracebacks import entry
from dualflow.distribute.cluster import (
    ClusterResolver,
    TFConfigClusterResolver,
    WorkerResolver,
    check_cluster,
)
from dualflow.distribute.group import OneWorker, WorkerGroup
from dualflow.distribute.monitor import Monitor, end_process
from dualflow.distribute.options import CommunicationOptions, CrossDeviceOps
from dualflow.distribute.strategy import Group, Strategy
from dualflow.distribute.world import World, check_versions, join
from dualflow.ops.random_numbers.streams import STREAMS
from dualflow.train.shared_files import WRITE_ONCE

_groups: Final[dict[str, Group]] = {}
"""The groups of this process: all workers, and those of its machine. Each has one communicator."""
_monitors: Final[dict[str, Monitor]] = {}
"""The monitor of the job, if it has several workers."""
_lock: Final = SharedLock()
TIMEOUT: Final = 600.0
"""The seconds for which a worker waits for others by default."""
MIN_JOIN_SECONDS: Final = 60.0
"""The minimum number of seconds within which all workers must have created their strategy."""


class OneDeviceStrategy(Strategy):
    """A strategy with one replica, on one device.

    Args:
        device: the name of the device, a CPU.

    Raises:
        InvalidArgumentError: there is no such device.

    >>> import dualflow as df
    >>> df.distribute.OneDeviceStrategy("/cpu:0").num_replicas_in_sync
    1
    """

    @entry
    def __init__(self, device: str) -> None:
        super().__init__()
        _check_device(device)


class CentralStorageStrategy(Strategy):
    """A strategy whose variables are on one device, and whose replicas are on several; here there is one.

    Args:
        compute_devices: the device of the replica, a CPU; None for it.
        parameter_device: the device of the variables, a CPU; None for it.

    Raises:
        InvalidArgumentError: there is no such device, or there are several replicas.

    >>> import dualflow as df
    >>> df.distribute.experimental.CentralStorageStrategy().num_replicas_in_sync
    1
    """

    @entry
    def __init__(
        self, compute_devices: Sequence[str] | None = None, parameter_device: str | None = None
    ) -> None:
        super().__init__()
        for device in [*(compute_devices or ()), *([parameter_device] if parameter_device else [])]:
            _check_device(device)
        if len(compute_devices or ()) > 1:
            raise InvalidArgumentError(
                f"{len(compute_devices or ())} compute_devices are listed, and one process has one CPU: use "
                "MirroredStrategy, with a replica in each worker of this machine."
            )


class TPUStrategy(Strategy):
    """TensorFlow's strategy for TPUs, for tests of a strategy's class; this machine has none to use.

    Args:
        tpu_cluster_resolver: TensorFlow's.
        kwargs: TensorFlow's other arguments.

    Raises:
        InvalidArgumentError: always, when it is created.

    >>> import dualflow as df
    >>> isinstance(df.distribute.get_strategy(), df.distribute.TPUStrategy)
    False
    """

    @entry
    def __init__(self, tpu_cluster_resolver: object = None, **kwargs: object) -> None:
        raise InvalidArgumentError(
            "There are no TPUs here: use MirroredStrategy, with a replica in each worker of this machine."
        )


class MirroredStrategy(Strategy):
    """A strategy with a replica in each worker of this machine; without a launcher there is one.

    The workers are processes of one job: ``python -m dualflow launch -n 4 train.py`` starts four. Variables
    that are created in ``scope()`` are equal on all; Keras's optimizers add the gradients of all replicas.

    Args:
        devices: the devices of the replicas, as many as there are workers; None for all.
        cross_device_ops: ignored, as MPI exchanges the tensors.
        shard_optimizer_state: as in :class:`MultiWorkerMirroredStrategy`.

    Raises:
        InvalidArgumentError: there is no such device, or another number of workers.
        NotFoundError: there are several workers, and mpi4py is not installed.

    >>> import dualflow as df
    >>> df.distribute.MirroredStrategy().num_replicas_in_sync
    1
    """

    @entry
    def __init__(
        self,
        devices: Sequence[str] | None = None,
        cross_device_ops: CrossDeviceOps | None = None,
        *,
        shard_optimizer_state: bool = False,
    ) -> None:
        super().__init__()
        self._shards_optimizer_state = shard_optimizer_state
        for device in devices or ():
            _check_device(device)
        if devices is not None and len(devices) == 1:
            return
        self._group = _group_of_machine()
        if devices is not None and len(devices) != self._group.size:
            raise InvalidArgumentError(
                f"{len(devices)} devices are listed, and this machine has {self._group.size} "
                f"worker{'s' * (self._group.size != 1)}: each replica is a process. Start them with "
                f"python -m dualflow launch -n {len(devices)}, or leave out the devices."
            )


class MultiWorkerMirroredStrategy(Strategy):
    """A strategy with a replica in each worker of the job; without a launcher there is one.

    ``python -m dualflow launch -n 4 train.py`` starts four workers on this machine; ``mpiexec`` and ``srun``
    start them on several. Variables that are created in ``scope()`` are equal on all workers; Keras's
    optimizers add the gradients of all replicas. All workers must run the same collectives.

    Args:
        cluster_resolver: describes the job that MPI has started; by default that of ``TF_CONFIG``, if the
            program has this variable.
        communication_options: the size of shared collectives, and a timeout that replaces ``timeout``.
        timeout: the seconds for which a worker waits for others, before all end with an error that names
            them.
        shard_optimizer_state: whether each worker has, and updates, only its part of the state of Keras's
            optimizers, such as the moments of Adam. Checkpoints and saved models have the whole state.

    Raises:
        NotFoundError: there are several workers, and mpi4py is not installed.
        FailedPreconditionError: mpi4py belongs to another MPI than the launcher; or the cluster is another
            one than MPI's.

    >>> import dualflow as df
    >>> strategy = df.distribute.MultiWorkerMirroredStrategy(timeout=60.0)
    >>> with strategy.scope():
    ...     v = df.Variable(1.0)
    >>> strategy.num_replicas_in_sync
    1
    """

    @entry
    def __init__(
        self,
        cluster_resolver: ClusterResolver | None = None,
        communication_options: CommunicationOptions | None = None,
        *,
        timeout: float = TIMEOUT,
        shard_optimizer_state: bool = False,
    ) -> None:
        super().__init__()
        self._shards_optimizer_state = shard_optimizer_state
        options = communication_options or CommunicationOptions()
        timeout = options.timeout_seconds or timeout
        self._group = _group_of_job(timeout)
        self._bucket_bytes = options.bytes_per_pack or self._bucket_bytes
        self._resolver = cluster_resolver
        check_cluster(cluster_resolver or TFConfigClusterResolver(), self._group.rank, self._group.size)

    @property
    def cluster_resolver(self) -> ClusterResolver:
        """Which of the workers this one is."""
        return self._resolver or WorkerResolver(self._group.rank, join().hosts)


def _check_device(name: Any) -> None:
    if not isinstance(name, str) or not is_device(name):
        raise InvalidArgumentError(f"{name!r} is no name of a device, such as '/cpu:0'.")
    if "cpu" not in name.lower():
        raise InvalidArgumentError(f"{name} unknown device: there are only CPUs; leave out the devices.")


def _group_of_job(timeout: float | None = None) -> Group:
    """The group of all workers of the job, which a monitor watches from its first use on.

    Args:
        timeout: the seconds for which a worker waits for others; None for those of an earlier strategy.
    """
    with _lock.lock:
        if "job" not in _groups:
            _groups["job"] = _join_job(TIMEOUT if timeout is None else timeout)
        if timeout is not None and "job" in _monitors:
            _monitors["job"].timeout = timeout
        return _groups["job"]


def _join_job(timeout: float) -> Group:
    limit = max(timeout, MIN_JOIN_SECONDS)
    waiting = threading.Timer(limit, end_process, [f"Not all workers have joined the job in {limit:g} s."])
    waiting.daemon = True
    waiting.start()
    try:
        world = join()
        if world.size == 1:
            return OneWorker()
        check_versions(world)
        group = WorkerGroup(world.communicator, on_one_machine=world.on_one_machine)
        _monitors["job"] = Monitor(world, group.progress)
        _share_random_stream(world)
        WRITE_ONCE.fill(group.write_once)
        return group
    finally:
        waiting.cancel()


def _group_of_machine() -> Group:
    """The group of the workers of this machine."""
    job_group, world = _group_of_job(), join()
    with _lock.lock:
        if "machine" not in _groups:
            _groups["machine"] = job_group
            if not world.on_one_machine:
                local = world.communicator.Split_type(imported("mpi4py.MPI").COMM_TYPE_SHARED)
                _groups["machine"] = (
                    OneWorker() if local.size == 1 else WorkerGroup(local, on_one_machine=True)
                )
        return _groups["machine"]


def _share_random_stream(world: World) -> None:
    """Let all workers draw the first worker's numbers, so that they shuffle data alike."""
    bits = STREAMS.shared.philox.bit_generator
    bits.state = world.communicator.bcast(bits.state)
