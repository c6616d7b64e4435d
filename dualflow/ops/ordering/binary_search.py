"""Binary search in sorted rows as gathers and elementwise ops, which compile to one kernel.

Each level halves the part of the row in which the position of a value is, without a branch: Knuth, "The Art
of Computer Programming" (1998), volume 3, 6.2.1, program U. All values have the same number of levels, so
that vectors of values are searched for. Only constants depend on the size of a row, so rows with the same
number of levels share a kernel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dualflow.core.dtypes import DType, int32
from dualflow.core.shape import Shape, broadcast
from dualflow.core.spec import TensorSpec
from dualflow.ops import maths_reference
from dualflow.ops.arithmetic import add as plus
from dualflow.ops.arithmetic import maximum, multiply, subtract
from dualflow.ops.arrangement import RESHAPE
from dualflow.ops.conversion import CAST
from dualflow.ops.creation import CONSTANT
from dualflow.ops.indexing import GETITEM
from dualflow.ops.op_kinds import AddNode, Elementwise
from dualflow.ops.positions import IOTA
from dualflow.ops.record import Op
from dualflow.ops.taking import GATHER
from dualflow.ops.tensor_sizes import SIZES
from dualflow.sizes.symbolic_sizes import UndecidedSize, is_static

_MAX_INDEX: Final = 2**31 - 1
_CLASSES: Final = (*range(2, 31, 2), 31)
"""The numbers of levels of programs for symbolic sizes. Each serves rows that need at most that many, and
more than the number before."""


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
    """The positions of ``values`` in ``rows``; None for rows of which no guard bounds the size.

    None, too, for empty rows, and for more elements than int32 counts.
    """
    shape = rows.spec.shape
    if None in shape:
        return None
    if not is_static(shape):
        return _search_of_class(add, rows, values, side, dtype)
    elements = math.prod(shape)
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


def compare_sizes(rows: TensorSpec, values: TensorSpec, side: str, dtype: DType) -> None:
    """Compare the sizes of ``rows`` that decide on the number of levels, if they are symbolic."""
    if None not in rows.shape and not is_static(rows.shape):
        _class_of(rows.shape)


def _class_of(shape: Sequence[Any]) -> int | None:
    """The index in :data:`_CLASSES` of rows of symbolic sizes; None if there is none.

    Raises:
        UndecidedSize: no guard decides it.
    """
    elements, size = math.prod(shape), shape[-1]
    if elements <= 0 or elements > _MAX_INDEX:
        return None
    return next(i for i, levels in enumerate(_CLASSES) if size < 1 << levels)


def _search_of_class(add: AddNode, rows: Any, values: Any, side: str, dtype: DType) -> Any:
    """The search in rows of symbolic sizes, with the levels of their class.

    The size ``n`` of a row is halved as in rows of static sizes: ``n // 2**i`` elements remain at level
    ``i``. A level at which none remain changes nothing. ``low`` is the index before the remaining part.
    """
    *batch, size = shape = rows.spec.shape
    try:
        number = _class_of(shape)
    except UndecidedSize:
        return None
    if number is None:
        return None
    levels, certain = _CLASSES[number], _CLASSES[number - 1] if number else 0
    halves = tuple([(size + (1 << i)) // (2 << i) for i in range(levels)])
    numbers = add(SIZES, (), {"values": (*halves, size), "dtype": int32})
    flat = add(RESHAPE, (rows,), {"shape": Shape([math.prod(shape)])}) if batch else rows
    low = start = _before_rows(add, batch, _element(add, numbers, levels))
    attrs = {"side": side, "floats": rows.spec.dtype.is_floating}
    for level in range(levels):
        half = _element(add, numbers, level)
        index = add(plus.op, (low, half), {})
        if level > certain:
            index = add(maximum.op, (index, _number(add, 0)), {})
        low = add(_LEVEL, (add(GATHER, (flat, index), {"axis": 0}), values, low, half), attrs)
    positions = add(subtract.op, (low, start), {})
    return positions if dtype is int32 else add(CAST, (positions,), {"dtype": dtype})


def _before_rows(add: AddNode, batch: Sequence[int], size: Any) -> Any:
    """The index before the first element of each row, for rows of ``size``, a scalar."""
    if not batch:
        return _number(add, -1)
    row = add(IOTA, (), {"shape": (math.prod(batch),), "axis": 0, "dtype": int32})
    before = add(subtract.op, (add(multiply.op, (row, size), {}), _number(add, 1)), {})
    return add(RESHAPE, (before,), {"shape": Shape([*batch, 1])})


def _element(add: AddNode, vector: Any, index: int) -> Any:
    return add(GETITEM, (vector,), {"key": (index,)})


def _starts(add: AddNode, batch: list[int], size: int) -> Any:
    """The index of the first element of each row."""
    if not batch:
        return _number(add, 0)
    first = add(CONSTANT, (), {"value": np.arange(0, math.prod(batch) * size, size, dtype=np.int32)})
    return add(RESHAPE, (first,), {"shape": Shape([*batch, 1])})


def _number(add: AddNode, value: int) -> Any:
    return add(CONSTANT, (), {"value": np.array(value, np.int32)})
