"""Checkpoints: ``df.train``."""

from typing import TYPE_CHECKING

from dualflow.core.deferred import NamePlace
from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.train import experimental as experimental
    from dualflow.train.checkpoint import Checkpoint as Checkpoint
    from dualflow.train.manager import CheckpointManager as CheckpointManager
    from dualflow.train.readers import checkpoints_iterator as checkpoints_iterator
    from dualflow.train.readers import list_variables as list_variables
    from dualflow.train.readers import load_checkpoint as load_checkpoint
    from dualflow.train.readers import load_variable as load_variable
    from dualflow.train.state_file import get_checkpoint_state as get_checkpoint_state
    from dualflow.train.state_file import latest_checkpoint as latest_checkpoint

_publish(
    globals(),
    internal=("TYPE_CHECKING",),
    deferred=True,
    later={
        "ExponentialMovingAverage": NamePlace("dualflow.compat.v1.moving_average", "ExponentialMovingAverage")
    },
)
