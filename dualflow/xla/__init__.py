"""TensorFlow's names for its compiler XLA: ``df.xla``. Here every function is compiled, by LLVM."""

from dualflow.core.namespace import publish as _publish
from dualflow.xla import experimental as experimental

_publish(globals(), modules=("experimental",))
