"""Version numbers of dualflow and of the TensorFlow API that it implements: ``df.version``.

>>> import dualflow as df
>>> df.version.VERSION, df.version.VERSION == df.__version__
('2.21.0', True)
"""

from typing import Final

from dualflow.core.namespace import publish as _publish

VERSION: Final = "2.21.0"
"""The version of TensorFlow whose names and results these are; programs choose their code by it."""
DUALFLOW: Final = "0.2.0"
"""dualflow's own version."""
GIT_VERSION: Final = f"dualflow {DUALFLOW}"
COMPILER_VERSION: Final = "LLVM, through llvmlite"

_publish(globals(), internal=("Final",))
