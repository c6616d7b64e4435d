"""Symbolic sizes in ONNX: vectors of one int64, computed from the shapes of inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dualflow.backends.onnx.element_types import INT64
from dualflow.backends.onnx.scope import OnnxScope, Operand
from dualflow.core.dtypes import bool_
from dualflow.core.records import NamedTuple
from dualflow.sizes.symbolic_sizes import SizeFactor, SymInt, size_variables


class AxisSize(NamedTuple):
    """The size of an axis of a tensor; a Shape node reads it at its first use."""

    tensor: Operand
    axis: int


class OnnxSizes:
    """The sizes that a graph computes, each once.

    Those of outer graphs are visible, unless they depend on a variable that this graph binds too: the size of
    a carried value differs between iterations.
    """

    def __init__(self, scope: OnnxScope, outer: OnnxSizes | None = None) -> None:
        self.scope = scope
        self._outer = outer
        self._variables: dict[SizeFactor, Operand | AxisSize] = {}
        self._computed: dict[SymInt, Operand] = {}
        self._factors: dict[SizeFactor, Any] = {}

    def bind(self, variable: SizeFactor, size: Operand | AxisSize, *, shadow: bool = False) -> None:
        """Set a size variable in this graph, unless an outer graph has set it; ``shadow`` hides that size."""
        if variable not in self._variables and (shadow or self._bound(variable) is None):
            self._variables[variable] = size

    def _bound(self, variable: SizeFactor) -> Operand | AxisSize | None:
        size = self._variables.get(variable)
        return size if size is not None or self._outer is None else self._outer._bound(variable)

    def _variable(self, variable: SizeFactor) -> Operand:
        size = self._bound(variable)
        assert size is not None, f"{variable.name} is bound"
        if isinstance(size, AxisSize):
            start = size.axis
            size = self.scope.add("Shape", size.tensor, dtype=INT64, start=start, end=start + 1, name="size")
            self._variables[variable] = size
        return size

    def as_vector(self, size: int) -> Operand:
        """A size as a vector of one int64."""
        if not isinstance(size, SymInt):
            return self.scope.ints(size)
        operand = self._cached(size)
        if operand is None:
            value = size.compute(
                lambda factor: _Node(self.scope, self._variable(factor)), _Maths(self.scope), self._factors
            )
            operand = self._computed[size] = value.operand
        return operand

    def _cached(self, size: SymInt) -> Operand | None:
        operand = self._computed.get(size)
        if (
            operand is not None
            or self._outer is None
            or not self._variables.keys().isdisjoint(size_variables(size))
        ):
            return operand
        return self._outer._cached(size)

    def shape_vector(self, sizes: Sequence[int | Operand]) -> Operand:
        """Sizes, each an int or already a vector of one int64, as one vector."""
        if all(type(size) is int for size in sizes):
            return self.scope.ints(*sizes)  # type: ignore[arg-type]  # they are ints
        parts = [size if isinstance(size, Operand) else self.as_vector(size) for size in sizes]
        return parts[0] if len(parts) == 1 else self.scope.add("Concat", *parts, axis=0, name="shape")

    def scalar(self, size: int) -> Operand:
        """A size as an int64 without axes."""
        if not isinstance(size, SymInt):
            return self.scope.constant(size, INT64)
        return self.scope.add("Squeeze", self.as_vector(size), self.scope.ints(0))


class _Node:
    """A size that a node computes; ``+`` and ``*``, which polynomials are evaluated with, add nodes."""

    def __init__(self, scope: OnnxScope, operand: Operand) -> None:
        self.scope, self.operand = scope, operand

    def _with(self, op_type: str, other: Any) -> _Node:
        return _Node(self.scope, self.scope.add(op_type, self.operand, _operand(self.scope, other)))

    def __add__(self, other: Any) -> _Node:
        return self._with("Add", other)

    __radd__ = __add__

    def __mul__(self, other: Any) -> _Node:
        return self._with("Mul", other)

    __rmul__ = __mul__


def _operand(scope: OnnxScope, x: Any) -> Operand:
    return x.operand if isinstance(x, _Node) else scope.ints(x)


class _Maths:
    """Size functions (quotient, minimum, ...) as ONNX nodes."""

    def __init__(self, scope: OnnxScope) -> None:
        self.scope = scope

    def _emit(self, op_type: str, *operands: Any, **attrs: Any) -> Operand:
        return self.scope.add(op_type, *[_operand(self.scope, x) for x in operands], **attrs)

    def _test(self, op_type: str, x: Any, y: Any) -> Operand:
        return self._emit(op_type, x, y, dtype=bool_)

    def _where(self, condition: Operand, x: Any, y: Any) -> _Node:
        selected = self.scope.where(condition, _operand(self.scope, x), _operand(self.scope, y))
        return _Node(self.scope, selected)

    def quotient(self, x: Any, y: Any) -> _Node:
        divisor = self._divisor(y)
        whole = self._emit("Sub", x, _Node(self.scope, self._emit("Mod", x, divisor)))
        quotient = _Node(self.scope, self._emit("Div", _Node(self.scope, whole), divisor))
        return quotient if isinstance(y, int) else self._where(self._test("Equal", y, 0), 0, quotient)

    def remainder(self, x: Any, y: Any) -> _Node:
        remainder = _Node(self.scope, self._emit("Mod", x, self._divisor(y)))
        return remainder if isinstance(y, int) else self._where(self._test("Equal", y, 0), 0, remainder)

    def _divisor(self, y: Any) -> Any:
        """``y``, or 1 where it is 0: division by 0 is undefined."""
        return y if isinstance(y, int) else self._where(self._test("Equal", y, 0), 1, y)

    def largest(self, x: Any, y: Any) -> _Node:
        return _Node(self.scope, self._emit("Max", x, y))

    def smallest(self, x: Any, y: Any) -> _Node:
        return _Node(self.scope, self._emit("Min", x, y))

    def normalized_index(self, x: Any, size: Any) -> _Node:
        from_end = _Node(self.scope, self._emit("Add", x, size))
        return self._where(self._test("Less", x, 0), from_end, x)

    def inferred_size(self, x: Any, remaining: Any) -> _Node:
        return self._where(self._test("Equal", x, -1), remaining, x)

    def broadcast_size(self, x: Any, y: Any) -> _Node:
        return self._where(self._test("Equal", x, 1), y, x)

    def broadcast_stride(self, stride: Any, size: Any) -> _Node:
        return self._where(self._test("Equal", size, 1), 0, stride)
