"""Options of collectives and of input, under TensorFlow's names."""

from __future__ import annotations

import enum
from dataclasses import dataclass

BUCKET_BYTES = 32 << 20
"""The default size of the collectives that tensors share."""


class CommunicationImplementation(enum.Enum):
    """Which library exchanges tensors; without effect, as it is always MPI.

    >>> import dualflow as df
    >>> df.distribute.experimental.CommunicationImplementation.AUTO.value
    'AUTO'
    """

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


@dataclass(frozen=True)
class CommunicationOptions:
    """Options of collectives of tensors between workers.

    Args:
        bytes_per_pack: the bytes of tensors that share a collective; 0 for the default, 32 MB.
        timeout_seconds: how long a worker waits for others before all end with an error; None for the
            strategy's ``timeout``.
        implementation: without effect, as it is always MPI.

    >>> import dualflow as df
    >>> df.distribute.experimental.CommunicationOptions(timeout_seconds=60.0).timeout_seconds
    60.0
    """

    bytes_per_pack: int = 0
    timeout_seconds: float | None = None
    implementation: CommunicationImplementation = CommunicationImplementation.AUTO


class InputReplicationMode(enum.Enum):
    """The modes of input functions: one call per worker.

    >>> import dualflow as df
    >>> df.distribute.InputReplicationMode.PER_WORKER.value
    'PER_WORKER'
    """

    PER_WORKER = "PER_WORKER"
    PER_REPLICA = "PER_REPLICA"


@dataclass
class InputOptions:
    """Options of distributed datasets; they concern devices, and have no effect on the CPU.

    Args:
        experimental_fetch_to_device: ignored.
        experimental_replication_mode: ignored, as each worker has one replica.
        experimental_place_dataset_on_device: ignored.
        experimental_per_replica_buffer_size: ignored.

    >>> import dualflow as df
    >>> df.distribute.InputOptions().experimental_per_replica_buffer_size
    1
    """

    experimental_fetch_to_device: bool | None = None
    experimental_replication_mode: InputReplicationMode = InputReplicationMode.PER_WORKER
    experimental_place_dataset_on_device: bool = False
    experimental_per_replica_buffer_size: int = 1


@dataclass
class StrategyRunOptions:
    """Options of ``Strategy.run``; they concern TPUs, and have no effect on the CPU.

    Args:
        experimental_enable_dynamic_batch_size: ignored.
        experimental_bucketizing_dynamic_shape: ignored.
        experimental_xla_options: ignored.

    >>> import dualflow as df
    >>> df.distribute.RunOptions().experimental_enable_dynamic_batch_size
    True
    """

    experimental_enable_dynamic_batch_size: bool = True
    experimental_bucketizing_dynamic_shape: bool = False
    experimental_xla_options: object = None


class CrossDeviceOps:
    """The base of the classes that choose how devices exchange tensors; without effect, as MPI does.

    Args:
        num_packs: ignored.

    >>> import dualflow as df
    >>> df.distribute.HierarchicalCopyAllReduce(num_packs=2).num_packs
    2
    """

    def __init__(self, num_packs: int = 1) -> None:
        self.num_packs = num_packs


class HierarchicalCopyAllReduce(CrossDeviceOps):
    """A choice of TensorFlow for several GPUs; see :class:`CrossDeviceOps`.

    Args:
        num_packs: ignored.

    >>> import dualflow as df
    >>> df.distribute.HierarchicalCopyAllReduce().num_packs
    1
    """


class NcclAllReduce(CrossDeviceOps):
    """A choice of TensorFlow for several GPUs; see :class:`CrossDeviceOps`.

    Args:
        num_packs: ignored.

    >>> import dualflow as df
    >>> df.distribute.NcclAllReduce().num_packs
    1
    """


class ReductionToOneDevice(CrossDeviceOps):
    """A choice of TensorFlow for several GPUs; see :class:`CrossDeviceOps`.

    Args:
        reduce_to_device: ignored.
        accumulation_fn: ignored.

    >>> import dualflow as df
    >>> df.distribute.ReductionToOneDevice().num_packs
    1
    """

    def __init__(self, reduce_to_device: object = None, accumulation_fn: object = None) -> None:
        super().__init__()
