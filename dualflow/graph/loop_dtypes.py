"""The dtypes that loops of compiled code support, for passes and plans."""

from __future__ import annotations

import functools
from typing import Final

from dualflow.core.dtypes import DType
from dualflow.graph.ir import Node
from dualflow.ops.op_kinds import CopyPieces, Elementwise, Gather, Scan

_KINDS: Final = "biufc"


def in_loops(dtype: DType) -> bool:
    """Whether loops can copy elements of ``dtype``: all but strings and 8-bit floats.

    Loops can compute with all of these dtypes except 16-bit floats, which they cast to float32 and back, and
    complex numbers, which they split into parts and join.

    >>> from dualflow.core.dtypes import complex64, float16, int8
    >>> in_loops(int8), in_loops(float16), in_loops(complex64)
    (True, True, True)
    """
    return dtype.kind in _KINDS and not (dtype.narrow and dtype.size == 1)


def computed_in_loops(node: Node) -> bool:
    """Whether loops support the dtypes of ``node``, an op of a kind that they support.

    A scan rounds after each element, so float32 can't replace floats of 16 bits.
    """
    for value in (*node.inputs, *node.outputs):
        dtype = value.spec.dtype
        if dtype.kind not in "biuf" or (dtype.is_floating and dtype.size < 4):
            break
    else:
        return True
    supported, has_float16, has_complex = _kinds(tuple([v.spec.dtype for v in (*node.inputs, *node.outputs)]))
    kind = node.op.kind
    if not supported or (has_float16 and isinstance(kind, Scan)):
        return False
    only_moves = isinstance(kind, Gather | CopyPieces) or (isinstance(kind, Elementwise) and kind.parts)
    return only_moves or not has_complex


@functools.lru_cache(1 << 10)
def _kinds(dtypes: tuple[DType, ...]) -> tuple[bool, bool, bool]:
    """Three flags: loops support all these dtypes; some are 16-bit floats; some are complex."""
    return (
        all(map(in_loops, dtypes)),
        any(dtype.is_floating and dtype.size == 2 for dtype in dtypes),
        any(dtype.is_complex for dtype in dtypes),
    )
