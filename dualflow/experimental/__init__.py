"""Names that TensorFlow marks as experimental: ``df.experimental``, with NumPy's functions on tensors.

>>> import dualflow.experimental.numpy as tnp
>>> tnp.sum(tnp.ones([2, 3])).numpy()
np.float64(6.0)
"""

import sys as _sys

from dualflow import numpy as numpy
from dualflow.core.namespace import publish as _publish

_sys.modules[f"{__name__}.numpy"] = numpy  # for `import dualflow.experimental.numpy`
_publish(globals(), modules=("numpy",))
