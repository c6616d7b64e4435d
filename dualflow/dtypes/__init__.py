"""Element types of tensors, and casts: ``df.dtypes``."""

from typing import TYPE_CHECKING

from dualflow.core.dtypes import DType as DType
from dualflow.core.dtypes import as_dtype as as_dtype
from dualflow.core.dtypes import bool_
from dualflow.core.dtypes import complex64 as complex64
from dualflow.core.dtypes import complex128 as complex128
from dualflow.core.dtypes import float16 as float16
from dualflow.core.dtypes import float32 as float32
from dualflow.core.dtypes import float64 as float64
from dualflow.core.dtypes import int8 as int8
from dualflow.core.dtypes import int16 as int16
from dualflow.core.dtypes import int32 as int32
from dualflow.core.dtypes import int64 as int64
from dualflow.core.dtypes import uint8 as uint8
from dualflow.core.dtypes import uint16 as uint16
from dualflow.core.dtypes import uint32 as uint32
from dualflow.core.dtypes import uint64 as uint64
from dualflow.core.namespace import publish as _publish
from dualflow.ops.complex_numbers import complex as complex
from dualflow.ops.conversion import cast as cast

if TYPE_CHECKING:
    from dualflow.core.narrow_floats import bfloat16 as bfloat16
    from dualflow.core.string_arrays import string as string
    from dualflow.dtypes import experimental as experimental
    from dualflow.ops.elementary.values import saturate_cast as saturate_cast

bool, double, half = bool_, float64, float16

_publish(
    globals(),
    internal=("bool_",),
    lazy={
        "dualflow.core.narrow_floats": "bfloat16",
        "dualflow.core.string_arrays": "string",
        "dualflow.dtypes": "experimental",
        "dualflow.ops.elementary.values": "saturate_cast",
    },
)
