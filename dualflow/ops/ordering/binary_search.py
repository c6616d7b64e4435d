"""Binary search in sorted rows as gathers and elementwise ops, which compile to one kernel.

Each level halves the part of the row in which the position of a value is, without a branch: Knuth, "The Art
of Computer Programming" (1998), volume 3, 6.2.1, program U. All values have the same number of levels, so
that vectors of values are searched for. Only constants depend on the size of a row, so rows with the same
number of levels share a kernel.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from dualflow.core.dtypes import DType, int32
from dualflow.core.shape import Shape, broadcast
from dualflow.core.spec import TensorSpec
from dualflow.ops import maths_reference
from dualflow.ops.arithmetic import add as plus
from dualflow.ops.arithmetic import subtract
from dualflow.ops.arrangement import RESHAPE
from dualflow.ops.conversion import CAST
from dualflow.ops.creation import CONSTANT
from dualflow.ops.op_kinds import AddNode, Elementwise
from dualflow.ops.record import Op
from dualflow.ops.taking import GATHER

_MAX_INDEX: Final = 2**31 - 1


def _level(m: Any, element: Any, value: Any, low: Any, count: Any, *, side: str, floats: bool) -> Any:
    """``low + count`` if ``element`` is before the position of ``value``, else ``low``; nan is largest."""
    if side == "left":
        before = (element < value) | (m.isnan(value) & ~m.isnan(element)) if floats else element < value
    else:
        before = (element <= value) | m.isnan(value) if floats else element <= value
    return m.where(before, low + count, low)


_LEVEL: Final = Op(
    name="search_level",
    doc="""One level of a binary search: the position after comparing ``element`` with ``value``.""",
    infer=lambda element, value, low, count, **attrs: TensorSpec.of(
        broadcast([element.shape, value.shape, low.shape]), low.dtype
    ),
    kernel=lambda *arrays, **attrs: _level(maths_reference, *arrays, **attrs),
    kind=Elementwise(_level),
)


def lower_search(add: AddNode, rows: Any, values: Any, side: str, dtype: DType) -> Any:
    """The positions of ``values`` in ``rows`` of static sizes; None for other rows.

    None, too, for empty rows, and for more elements than int32 counts.
    """
    shape = rows.spec.shape
    elements = math.prod(shape) if all(type(n) is int for n in shape) else 0
    if not 0 < elements <= _MAX_INDEX:
        return None
    *batch, size = shape
    flat = add(RESHAPE, (rows,), {"shape": Shape([elements])}) if batch else rows
    start = _starts(add, batch, size)
    attrs = {"side": side, "floats": rows.spec.dtype.is_floating}
    low, remaining = start, size
    while remaining:
        half = (remaining + 1) // 2
        element = add(GATHER, (flat, add(plus.op, (low, _number(add, half - 1)), {})), {"axis": 0})
        low = add(_LEVEL, (element, values, low, _number(add, half)), attrs)
        remaining //= 2
    positions = add(subtract.op, (low, start), {}) if batch else low
    return positions if dtype is int32 else add(CAST, (positions,), {"dtype": dtype})


def _starts(add: AddNode, batch: list[int], size: int) -> Any:
    """The index of the first element of each row."""
    if not batch:
        return _number(add, 0)
    first = add(CONSTANT, (), {"value": np.arange(0, math.prod(batch) * size, size, dtype=np.int32)})
    return add(RESHAPE, (first,), {"shape": Shape([*batch, 1])})


def _number(add: AddNode, value: int) -> Any:
    return add(CONSTANT, (), {"value": np.array(value, np.int32)})
