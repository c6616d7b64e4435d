"""When two kernels are the same: equal statements over equal ops, whatever graphs they come from."""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum
from typing import Any

import numpy as np

from dualflow.core.dtypes import DType
from dualflow.graph.exact_equality import exact
from dualflow.graph.ir import Node
from dualflow.schedule import loop_program
from dualflow.schedule.loop_program import Bounds, Kernel, Let, LiteralScalar, Repeat

_KINDS = {kind for kind in vars(loop_program).values() if isinstance(kind, type) and issubclass(kind, tuple)}
_BLAMING = {kind for kind in _KINDS if list(kind.__annotations__)[-1:] == ["blamed"]}
"""Statements whose last field is a node that only an error names."""


def structure(kernel: Kernel) -> Hashable:
    """A key equal to another kernel's exactly when the two are the same.

    None where an attribute of an op can't be compared: such a kernel is the same as no other.
    """
    try:
        return _key(kernel)
    except _Incomparable:
        return None


def structure_of_code(let: Let) -> Hashable:
    """A key equal to that of another statement exactly when the two have the same element code to write.

    None where an attribute of the op can't be compared. Registers are the same if their dtypes are.
    """
    try:
        operands = [_key(x) if isinstance(x, LiteralScalar) else x.dtype.char for x in let.operands]
        return _code(let.node), *operands
    except _Incomparable:
        return None


def blamed(statement: Let | Bounds | Repeat) -> Node:
    """The node that an error names where ``statement`` fails."""
    if isinstance(statement, Let):
        return statement.node
    return statement.blamed


class _Incomparable(Exception):
    """An attribute can't be compared."""


def _key(value: Any) -> Hashable:
    kind = type(value)
    if value is None or kind is int:
        return value  # type: ignore[no-any-return]  # None or an int
    if kind is tuple:
        return tuple([_key(x) for x in value])
    if kind is DType:
        return value.char  # type: ignore[no-any-return]  # a str
    if kind in _KINDS:
        return kind, *[_key(x) for x in (value[:-1] if kind in _BLAMING else value)]
    if kind is Node:
        return _code(value)
    return value.value if isinstance(value, Enum) else _attribute(value)


def _code(node: Node) -> Hashable:
    """All that element code and folds may read of a node."""
    attrs = [(name, _attribute(value)) for name, value in sorted(node.attrs.items())]
    dtypes = [v.spec.dtype.char for v in (*node.inputs, *node.outputs)]
    return node.op, *dtypes, *attrs


def _attribute(value: Any) -> Hashable:
    if isinstance(value, tuple):
        return tuple([_attribute(x) for x in value])
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic | DType):
        return exact(value)
    raise _Incomparable
