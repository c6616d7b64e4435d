"""Structural equality of kernels: their statements and scalar functions are equal."""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum
from typing import Any

import numpy as np

from dualflow.core.dtypes import DType
from dualflow.core.exact_equality import exact
from dualflow.graph.scalar_functions import ReductionFunctions
from dualflow.scalar import ScalarFunction
from dualflow.schedule import kernel_statements
from dualflow.schedule.kernel import Kernel
from dualflow.schedule.kernel_statements import LaunchParameter, Register

_KINDS = {Kernel} | {
    kind for kind in vars(kernel_statements).values() if isinstance(kind, type) and issubclass(kind, tuple)
}
_SOURCED = {kind for kind in _KINDS if list(kind.__annotations__)[-1:] == ["node"]}
"""Statements whose last field is their source node, which only errors and listings name."""
_LEAVES = {bool, int, type(None), ScalarFunction, ReductionFunctions}
"""Types whose values are part of the key as they are."""


def structure(kernel: Kernel) -> Hashable:
    """A key that is equal to another kernel's exactly if the kernels are equal."""
    return _key(kernel)


def _key(value: Any) -> Hashable:
    kind = type(value)
    if kind in _LEAVES:
        return value  # type: ignore[no-any-return]  # one of those types
    if kind is Register:  # most of the values
        return Register, value[0], value[1].char
    if kind is LaunchParameter:
        return LaunchParameter, value[0]
    if kind is tuple:
        return tuple([x if type(x) in _LEAVES else _key(x) for x in value])
    if kind is DType:
        return value.char  # type: ignore[no-any-return]  # a str
    if kind in _KINDS:
        fields = value[:-1] if kind in _SOURCED else value
        return kind, *[x if type(x) in _LEAVES else _key(x) for x in fields]
    if isinstance(value, Enum):
        return value._value_  # type: ignore[no-any-return]  # an int or a str
    assert isinstance(value, np.generic), f"a kernel has a field {value!r}"
    return exact(value)
