"""Floats of 8 bits, for storage: ``df.dtypes.experimental``.

They are cast, reshaped, indexed and joined, and nothing computes with them.

>>> import dualflow as df
>>> stored = df.cast([0.3, 1000.0], df.dtypes.experimental.float8_e5m2)
>>> df.cast(stored, df.float32).numpy().tolist()
[0.3125, 1024.0]
"""

from dualflow.core.namespace import publish as _publish
from dualflow.core.narrow_floats import float8_e4m3fn as float8_e4m3fn
from dualflow.core.narrow_floats import float8_e5m2 as float8_e5m2

_publish(globals())
