"""Training with several processes: ``df.distribute``.

A :class:`Strategy` combines the replicas of a computation, one in each process; MPI exchanges their tensors.
"""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.data.dataset import Dataset as _Dataset
    from dualflow.data.iterator import Iterator as _Iterator
    from dualflow.distribute import cluster_resolver as cluster_resolver
    from dualflow.distribute import experimental as experimental
    from dualflow.distribute.datasets import InputContext as InputContext
    from dualflow.distribute.distributed_values import DistributedValues as DistributedValues
    from dualflow.distribute.extended import StrategyExtended as StrategyExtended
    from dualflow.distribute.options import CrossDeviceOps as CrossDeviceOps
    from dualflow.distribute.options import HierarchicalCopyAllReduce as HierarchicalCopyAllReduce
    from dualflow.distribute.options import InputOptions as InputOptions
    from dualflow.distribute.options import InputReplicationMode as InputReplicationMode
    from dualflow.distribute.options import NcclAllReduce as NcclAllReduce
    from dualflow.distribute.options import ReductionToOneDevice as ReductionToOneDevice
    from dualflow.distribute.options import StrategyRunOptions as _StrategyRunOptions
    from dualflow.distribute.reduce_op import ReduceOp as ReduceOp
    from dualflow.distribute.strategies import MirroredStrategy as MirroredStrategy
    from dualflow.distribute.strategies import MultiWorkerMirroredStrategy as MultiWorkerMirroredStrategy
    from dualflow.distribute.strategies import OneDeviceStrategy as OneDeviceStrategy
    from dualflow.distribute.strategies import TPUStrategy as TPUStrategy
    from dualflow.distribute.strategy import ReplicaContext as ReplicaContext
    from dualflow.distribute.strategy import Strategy as Strategy
    from dualflow.distribute.strategy import get_replica_context as get_replica_context
    from dualflow.distribute.strategy import get_strategy as get_strategy
    from dualflow.distribute.strategy import has_strategy as has_strategy
    from dualflow.distribute.strategy import in_cross_replica_context as in_cross_replica_context

    DistributedDataset = _Dataset
    DistributedIterator = _Iterator
    RunOptions = _StrategyRunOptions

_publish(
    globals(),
    modules=("cluster_resolver", "experimental"),
    lazy={
        "dualflow.data.dataset": "DistributedDataset=Dataset",
        "dualflow.data.iterator": "DistributedIterator=Iterator",
        "dualflow.distribute": "cluster_resolver experimental",
        "dualflow.distribute.datasets": "InputContext",
        "dualflow.distribute.extended": "StrategyExtended",
        "dualflow.distribute.options": (
            "CrossDeviceOps HierarchicalCopyAllReduce InputOptions InputReplicationMode NcclAllReduce "
            "ReductionToOneDevice RunOptions=StrategyRunOptions"
        ),
        "dualflow.distribute.reduce_op": "ReduceOp",
        "dualflow.distribute.strategies": (
            "MirroredStrategy MultiWorkerMirroredStrategy OneDeviceStrategy TPUStrategy"
        ),
        "dualflow.distribute.strategy": (
            "ReplicaContext Strategy get_replica_context get_strategy has_strategy in_cross_replica_context"
        ),
        "dualflow.distribute.distributed_values": "DistributedValues",
    },
)
