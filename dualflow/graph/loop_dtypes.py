"""Which dtypes the loops of compiled code know: said once, for passes and plans."""

from __future__ import annotations

from typing import Final

from dualflow.core.dtypes import DType

_KINDS: Final = "biuf"


def in_loops(dtype: DType) -> bool:
    """Whether loops can hold and copy elements of ``dtype``: all but complex numbers and 8-bit floats.

    They compute with all of these but floats of 16 bits, which they cast from and to float32.

    >>> from dualflow.core.dtypes import complex64, float16, int8
    >>> in_loops(int8), in_loops(float16), in_loops(complex64)
    (True, True, False)
    """
    return dtype.kind in _KINDS and not (dtype.narrow and dtype.size == 1)
