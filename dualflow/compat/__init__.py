"""Names of TensorFlow's versions: ``v1``, and ``v2``, which is dualflow itself; and conversions for both."""

import dualflow
from dualflow.compat import v1 as v1
from dualflow.compat.conversions import as_bytes as as_bytes
from dualflow.compat.conversions import as_str as as_str
from dualflow.compat.conversions import as_str_any as as_str_any
from dualflow.compat.conversions import as_text as as_text
from dualflow.compat.conversions import bytes_or_text_types as bytes_or_text_types
from dualflow.compat.conversions import complex_types as complex_types
from dualflow.compat.conversions import dimension_at_index as dimension_at_index
from dualflow.compat.conversions import dimension_value as dimension_value
from dualflow.compat.conversions import forward_compatible as forward_compatible
from dualflow.compat.conversions import integral_types as integral_types
from dualflow.compat.conversions import path_to_bytes as path_to_bytes
from dualflow.compat.conversions import path_to_str as path_to_str
from dualflow.compat.conversions import real_types as real_types
from dualflow.core.namespace import publish as _publish

v2 = dualflow

_publish(globals(), modules=("v1", "v2"))
