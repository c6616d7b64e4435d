"""Names of earlier TensorFlow versions."""

from dualflow.compat import v1 as v1
