"""Names of TensorFlow's versions: ``v1``, and ``v2``, which is dualflow itself."""

import dualflow
from dualflow.compat import v1 as v1
from dualflow.core.namespace import publish as _publish

v2 = dualflow

_publish(globals(), modules=("v1", "v2"))
