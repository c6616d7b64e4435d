"""Parameter tables of matrix products with the addresses of the routines that they call."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from dualflow.backends.llvm.product.gemm import Gemm
from dualflow.backends.llvm.runtime import jit
from dualflow.backends.llvm.runtime.ir_source import IrSource


def linked(product: Gemm, table: Sequence[int], written: Sequence[int] = ()) -> np.ndarray[Any, Any]:
    """``table`` with the addresses of the routines that the product calls.

    They are those of the table ``written``, whose sizes may be symbolic; without it, of ``table``.
    """
    integers = np.array(table, np.int64)
    for which, source in product.routines(written or table).items():
        integers[which] = machine_code(source).address(source.name)
    return integers


@functools.cache
def machine_code(source: IrSource) -> jit.Library:
    return jit.compile_sources([source], {})
