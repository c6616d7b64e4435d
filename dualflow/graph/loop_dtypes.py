"""Which dtypes the loops of compiled code know: said once, for passes and plans."""

from __future__ import annotations

import functools
from typing import Final

from dualflow.core.dtypes import DType
from dualflow.graph.ir import Node
from dualflow.ops.op_kinds import CopyPieces, Elementwise, Gather, Scan

_KINDS: Final = "biufc"


def in_loops(dtype: DType) -> bool:
    """Whether loops can hold and copy elements of ``dtype``: all but strings and 8-bit floats.

    They compute with all of these but floats of 16 bits, which they cast from and to float32, and complex
    numbers, which they take apart and join.

    >>> from dualflow.core.dtypes import complex64, float16, int8
    >>> in_loops(int8), in_loops(float16), in_loops(complex64)
    (True, True, True)
    """
    return dtype.kind in _KINDS and not (dtype.narrow and dtype.size == 1)


def computed_in_loops(node: Node) -> bool:
    """Whether loops can compute ``node``, an op that has a form for them, by the dtypes of its values.

    A scan rounds after each element, so float32 can't stand in for floats of 16 bits.
    """
    known, halves, complexes = _kinds(tuple([v.spec.dtype for v in (*node.inputs, *node.outputs)]))
    kind = node.op.kind
    if not known or (halves and isinstance(kind, Scan)):
        return False
    moves = isinstance(kind, Gather | CopyPieces) or (isinstance(kind, Elementwise) and kind.parts)
    return moves or not complexes


@functools.lru_cache(1 << 10)
def _kinds(dtypes: tuple[DType, ...]) -> tuple[bool, bool, bool]:
    """Whether loops can hold all of these; whether floats of 16 bits, and complex numbers, are among them."""
    return (
        all(map(in_loops, dtypes)),
        any(dtype.is_floating and dtype.size == 2 for dtype in dtypes),
        any(dtype.is_complex for dtype in dtypes),
    )
