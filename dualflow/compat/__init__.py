"""Names of earlier TensorFlow versions."""

from dualflow.compat import v1 as v1
from dualflow.core.namespace import publish as _publish

_publish(globals(), modules=("v1",))
