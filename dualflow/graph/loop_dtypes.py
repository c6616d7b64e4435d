"""Which dtypes the loops of compiled code know: said once, for passes and plans."""

from __future__ import annotations

from typing import Final

from dualflow.core.dtypes import DType

_KINDS: Final = "biuf"


def in_loops(dtype: DType) -> bool:
    """Whether loops can hold and copy elements of ``dtype``: all but complex numbers and 8-bit floats.

    >>> from dualflow.core.dtypes import complex64, float16, int8
    >>> in_loops(int8), in_loops(float16), in_loops(complex64)
    (True, True, False)
    """
    return dtype.kind in _KINDS and not (dtype.narrow and dtype.size == 1)


def computed_in_loops(dtype: DType) -> bool:
    """Whether loops compute with elements of ``dtype``: float16 is left to NumPy.

    bfloat16 is only cast, from and to float32, and moved.

    >>> from dualflow.core.dtypes import bool_, float16
    >>> computed_in_loops(bool_), computed_in_loops(float16)
    (True, False)
    """
    return in_loops(dtype) and (dtype.narrow or dtype.size > (dtype.kind == "f") * 2)
