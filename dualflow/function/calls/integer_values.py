"""Small tensors of integers as numbers and extents: what is computed from sizes, followed while compiling."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dualflow.core.dtypes import DType, int64
from dualflow.core.size_functions import largest, smallest, substitute
from dualflow.core.symbolic_sizes import (
    SizeVariable,
    SymInt,
    UndecidedSize,
    is_static,
    size_variable,
    size_variables,
    variable_of,
)
from dualflow.graph.ir import Node, Value
from dualflow.ops.op_kinds import CopyPieces, Elementwise, Literal, Reduce, SizeVector, View

Array = np.ndarray[Any, Any]
_ANYTHING: Any = object
_FOLLOWED = 64
"""Tensors of at most so many integers are followed."""


class IntegerValues:
    """The elements of small tensors of integers.

    Attributes:
        places: where a symbol is read: the value, and which of its elements.
        replaced: what has taken the place of symbols: the same integers, once they are known to be sizes.
    """

    def __init__(self) -> None:
        self.places: dict[SizeVariable, tuple[Value, int]] = {}
        self.replaced: dict[SizeVariable, int] = {}
        self._known: dict[Value, Array] = {}

    def of(self, value: Value) -> Array:
        """The elements of ``value``, symbols where they are computed from data.

        Raises:
            UndecidedSize: there are too many elements.
        """
        pending = [value]
        while pending:
            at = pending[-1]
            if at in self._known:
                pending.pop()
                continue
            waiting = [v for v in self._followed(at) if v not in self._known]
            if waiting:
                pending += waiting
                continue
            self._known[at] = self._elements(at)
        return self._known[value]

    def follow(self, value: Value, outer: IntegerValues, source: Value, measured: set[SizeVariable]) -> None:
        """Take the elements of ``value`` for those of ``source``, if ``measured`` symbols make them all."""
        if _is_small(source):
            elements = [substitute(x, outer.replaced) for x in outer.of(source).reshape(-1).tolist()]
            if size_variables(elements) <= measured:
                found = np.empty(len(elements), _ANYTHING)
                found[:] = elements
                self._known[value] = found.reshape(source.spec.shape)

    def _followed(self, value: Value) -> tuple[Value, ...]:
        """What the elements of ``value`` are computed from, if expressions can say how."""
        node = value.node
        if node is None or node.effect is not None or not all(map(_is_small, (*node.inputs, value))):
            return ()
        return node.inputs if isinstance(node.op.kind, View | CopyPieces | Elementwise | Reduce) else ()

    def _elements(self, value: Value) -> Array:
        shape, node = value.spec.shape, value.node
        if not _is_small(value):
            raise UndecidedSize(f"{value} has too many elements to be sizes")
        if node is not None and (isinstance(node.op.kind, Literal | SizeVector) or self._followed(value)):
            try:
                found = _computed(node, [self._known[v] for v in self._followed(value)])
                if found is not None and found.shape == tuple(shape):
                    return found
            except (UndecidedSize, TypeError, ValueError, AttributeError):
                pass  # no expression says it: its elements are symbols
        made: Array = np.empty(math.prod(shape), _ANYTHING)  # type: ignore[arg-type]  # small, so the sizes are numbers
        for i in range(made.size):
            made[i] = new_variable = size_variable()
            variable = variable_of(new_variable)
            assert variable is not None
            self.places[variable] = value, i
        return made.reshape(shape)


def _is_small(value: Value) -> bool:
    shape = value.spec.shape
    return value.spec.dtype.is_integer and is_static(shape) and math.prod(shape) <= _FOLLOWED  # type: ignore[arg-type]


def _computed(node: Node, inputs: list[Array]) -> Array | None:
    """What ``node`` makes of integers and extents."""
    kind, shape = node.op.kind, _shape(node)
    if isinstance(kind, Literal):
        return np.array(node.attrs["value"].tolist(), object).reshape(shape)
    if isinstance(kind, SizeVector):
        return np.array([*node.attrs["values"], None], object)[:-1]
    if isinstance(kind, View):
        found: Array = kind.view(inputs[0], **node.attrs)
        return found
    out: Array = np.empty(shape, _ANYTHING)
    if isinstance(kind, CopyPieces):
        for target, source in kind.pieces(out, *inputs, **node.attrs):
            target[...] = source
        return out
    if isinstance(kind, Reduce):
        return _folded(node, kind, inputs[0])
    assert isinstance(kind, Elementwise)
    rows = np.broadcast_arrays(*inputs)
    for place in np.ndindex(shape):
        out[place] = _checked(kind.code(_MATHS, *[x[place] for x in rows], **node.attrs))
    return out


def _folded(node: Node, kind: Reduce, x: Array) -> Array | None:
    if len(node.attrs["axis"]) != x.ndim:
        return None
    total = kind.start(_MATHS, node.inputs[0].spec.dtype)
    for i, element in enumerate(x.reshape(-1).tolist()):
        total = kind.step(_MATHS, total, element, i)
    out: Array = np.empty(_shape(node), _ANYTHING)
    out[...] = _checked(kind.finish(_MATHS, total))
    return out


def _shape(node: Node) -> tuple[int, ...]:
    return tuple(node.output.spec.shape)  # type: ignore[arg-type]  # small: the sizes are numbers


def _checked(x: object) -> Any:
    if not isinstance(x, SymInt) and type(x) is not int:
        raise TypeError("no integer")
    return x


class _Maths:
    """The maths namespace of element code, as far as it is about integers."""

    maximum = staticmethod(largest)
    minimum = staticmethod(smallest)

    def cast(self, x: Any, dtype: DType) -> Any:
        if not dtype.is_integer:
            raise TypeError("no integer")
        return x

    def dtype(self, x: Any) -> DType:
        return int64

    def not_equal(self, x: int, y: int) -> bool:
        return bool(x - y)

    def check(self, ok: bool, message: str) -> None:
        if not ok:
            raise TypeError(message)

    def floor_divide(self, x: int, y: int) -> int:
        return x // y

    def mod(self, x: int, y: int) -> int:
        return x % y


_MATHS = _Maths()
