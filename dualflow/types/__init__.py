"""Types for annotations: ``df.types``."""

from dualflow.core.namespace import publish as _publish
from dualflow.types import experimental as experimental

_publish(globals(), modules=("experimental",))
