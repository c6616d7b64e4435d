"""Checkpoints: ``df.train``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.ops.records.example_messages import BytesList as BytesList
    from dualflow.ops.records.example_messages import Example as Example
    from dualflow.ops.records.example_messages import Feature as Feature
    from dualflow.ops.records.example_messages import FeatureList as FeatureList
    from dualflow.ops.records.example_messages import FeatureLists as FeatureLists
    from dualflow.ops.records.example_messages import Features as Features
    from dualflow.ops.records.example_messages import FloatList as FloatList
    from dualflow.ops.records.example_messages import Int64List as Int64List
    from dualflow.ops.records.example_messages import SequenceExample as SequenceExample
    from dualflow.train import experimental as experimental
    from dualflow.train.checkpoint import Checkpoint as Checkpoint
    from dualflow.train.cluster_spec import ClusterSpec as ClusterSpec
    from dualflow.train.manager import CheckpointManager as CheckpointManager
    from dualflow.train.readers import checkpoints_iterator as checkpoints_iterator
    from dualflow.train.readers import list_variables as list_variables
    from dualflow.train.readers import load_checkpoint as load_checkpoint
    from dualflow.train.readers import load_variable as load_variable
    from dualflow.train.state_file import get_checkpoint_state as get_checkpoint_state
    from dualflow.train.state_file import latest_checkpoint as latest_checkpoint

_publish(
    globals(),
    lazy={
        "dualflow.ops.records.example_messages": (
            "BytesList Example Feature FeatureList FeatureLists Features FloatList Int64List SequenceExample"
        ),
        "dualflow.train": "experimental",
        "dualflow.train.checkpoint": "Checkpoint",
        "dualflow.train.cluster_spec": "ClusterSpec",
        "dualflow.train.manager": "CheckpointManager",
        "dualflow.train.readers": "checkpoints_iterator list_variables load_checkpoint load_variable",
        "dualflow.train.state_file": "get_checkpoint_state latest_checkpoint",
    },
    later={"dualflow.compat.v1.moving_average": "ExponentialMovingAverage"},
)
