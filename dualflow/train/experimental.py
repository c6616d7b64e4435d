"""Checkpoints of states other than variables: ``df.train.experimental``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.train.trackable import PythonState as PythonState

_publish(globals(), lazy={"dualflow.train.trackable": "PythonState"})
