"""Exact equality of Python values, by type and by bits, for the keys of traces.

For Python 1 equals True, 0.0 equals -0.0, and no NaN equals another. But a graph computes different results
for them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Mapping
from numbers import Number
from typing import Any, Final

import numpy as np

from dualflow.core.dtypes import DType
from dualflow.core.records import compared_fields
from dualflow.core.shape import Shape

_COMPARED_BYTES: Final = 1 << 16
_SAME_IF_EQUAL: Final = frozenset({bool, int, str, bytes, type(None), DType, Shape})


def exact(value: Any) -> Hashable:
    """A key that is equal to another value's key exactly if both have the same type and bits.

    Arrays over 64 KiB, and objects without a hash, are equal only if they are one object, which the caller
    must keep alive.

    >>> exact(1) == exact(True), exact(0.0) == exact(-0.0), exact(float("nan")) == exact(float("nan"))
    (False, False, True)
    """
    kind = type(value)
    if kind in _SAME_IF_EQUAL:
        return kind, value
    if kind is float:
        return kind, float_bits(value)
    if kind is complex:
        return kind, float_bits(value.real), float_bits(value.imag)
    if kind is tuple or hasattr(kind, "_fields"):
        return kind, *map(exact, value)
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        small = value.nbytes <= _COMPARED_BYTES
        return kind, value.dtype.str, value.shape, value.tobytes() if small else id(value)
    if isinstance(value, np.generic):
        return kind, value.dtype, value.tobytes()
    if isinstance(value, float | complex):
        return kind, exact(complex(value))
    if kind is frozenset:
        return kind, frozenset(map(exact, value))
    if kind is range:
        return kind, value.start, value.stop, value.step
    compared = compared_fields(kind)
    if compared is not None:
        return kind, *[exact(getattr(value, name)) for name in compared]
    try:
        hash(value)
    except TypeError:
        return kind, id(value)
    if isinstance(value, Number):  # Decimal("1.0") equals Decimal("1.00")
        return kind, value, repr(value)
    return kind, value


float_bits: Final[Callable[[float], bytes]] = struct.Struct("<d").pack
"""The bits of a float: equal for NaNs of one sign, and different for 0.0 and -0.0."""


def exact_attrs(attrs: Mapping[str, Any]) -> Hashable:
    """The key of a node's attributes."""
    return tuple([(name, exact(attrs[name])) for name in sorted(attrs)]) if attrs else ()
