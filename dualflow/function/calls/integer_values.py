"""Symbolic evaluation of small integer tensors: their elements as numbers and expressions of sizes.

Comparisons of such elements are evaluated too, where they have one outcome for all sizes: an op that requires
a size not to be negative returns the size that it checks.
"""

from __future__ import annotations

import math
import operator
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from dualflow.core.dtypes import DType, int32, int64, uint32, uint64
from dualflow.graph.ir import Node, Value
from dualflow.graph.scalar_functions import function_of, reduction_of
from dualflow.ops.op_kinds import CopyPieces, Elementwise, Literal, Reduce, SizeVector, View
from dualflow.scalar import evaluate
from dualflow.sizes.size_functions import largest, less_for_all, smallest, substitute
from dualflow.sizes.symbolic_sizes import (
    SizeVariable,
    SymInt,
    UndecidedSize,
    is_static,
    size_variable,
    size_variables,
    variable_of,
)

Array = np.ndarray[Any, Any]
_OBJECT: Any = object
_WIDE: Final = frozenset({int32, int64})
_UNSIGNED: Final = frozenset({uint32, uint64})
_MAX_ELEMENTS = 64
"""The number of elements of the largest tensor that is evaluated."""
_MAX_REDUCED_VARIABLES: Final = 8
"""The number of size variables up to which a reduction is an expression of them: a program binds each."""


class IntegerValues:
    """The elements of small integer tensors of a graph.

    Attributes:
        sources: for each size variable, the tensor and the index of the element whose value it is.
        replaced: for size variables that have been checked to be sizes, the variables that replace them.
        rows: for stacks whose rows are equal in all iterations, the elements of a row.
    """

    def __init__(self) -> None:
        self.sources: dict[SizeVariable, tuple[Value, int]] = {}
        self.replaced: dict[SizeVariable, int] = {}
        self.rows: dict[Value, Array] = {}
        self._evaluated: dict[Value, Array] = {}

    def of(self, value: Value) -> Array:
        """The elements of ``value``; new size variables where they are computed from data.

        Raises:
            UndecidedSize: there are too many elements.
        """
        pending = [value]
        while pending:
            at = pending[-1]
            if at in self._evaluated:
                pending.pop()
                continue
            missing = [v for v in self._operands(at) if v not in self._evaluated]
            if missing:
                pending += missing
                continue
            self._evaluated[at] = self._elements(at)
        return self._evaluated[value]

    def copy_elements(
        self, value: Value, outer: IntegerValues, source: Value, bound: set[SizeVariable]
    ) -> None:
        """Copy the elements of ``source`` in ``outer`` to ``value``, if all their variables are ``bound``."""
        elements = outer.bound_elements(source, bound)
        if elements is not None:
            self._evaluated[value] = elements

    def bound_elements(self, value: Value, bound: set[SizeVariable]) -> Array | None:
        """The elements of ``value``, a small integer tensor whose variables are all ``bound``; else None."""
        if not _is_small(value):
            return None
        elements = [substitute(x, self.replaced) for x in self.of(value).reshape(-1).tolist()]
        if not size_variables(elements) <= bound:
            return None
        array = np.empty(len(elements), _OBJECT)
        array[:] = elements
        return array.reshape(value.spec.shape)

    def read_row(self, value: Value, outer: IntegerValues, stack: Value) -> None:
        """``value`` is a row of ``stack``, a value of ``outer``: it has the elements of all rows."""
        if stack in outer.rows:
            self._evaluated[value] = outer.rows[stack]

    def _operands(self, value: Value) -> tuple[Value, ...]:
        """The inputs of the node that computes ``value``.

        None if the node can't be evaluated symbolically.
        """
        node = value.node
        if node is None or node.effect is not None or not all(map(_is_small, (*node.inputs, value))):
            return ()
        return node.inputs if isinstance(node.op.kind, View | CopyPieces) or _is_exact(node) else ()

    def _elements(self, value: Value) -> Array:
        shape, node = value.spec.shape, value.node
        if not _is_small(value):
            raise UndecidedSize(f"{value} has too many elements to be sizes")
        if node is not None and (isinstance(node.op.kind, Literal | SizeVector) or self._operands(value)):
            try:
                elements = _computed(node, [self._evaluated[v] for v in self._operands(value)])
                if elements is not None and elements.shape == tuple(shape):
                    return elements
            except (UndecidedSize, TypeError, ValueError, AttributeError):
                pass  # no expression describes it: its elements are size variables
        variables: Array = np.empty(math.prod(shape), _OBJECT)  # type: ignore[arg-type]  # small, so the sizes are numbers
        if value.spec.dtype.is_bool:
            return variables.reshape(shape)  # of None: no outcome for all sizes
        for i in range(variables.size):
            variables[i] = new_variable = size_variable()
            variable = variable_of(new_variable)
            assert variable is not None
            self.sources[variable] = value, i
        return variables.reshape(shape)


def _is_exact(node: Node) -> bool:
    """Whether a node computes sizes as integers do: results of other dtypes, and huge ones, wrap around."""
    to_wide = {v.spec.dtype for v in node.outputs} <= _WIDE or _compares(node)
    fits = not any(v.spec.dtype in _UNSIGNED for v in node.inputs)
    return isinstance(node.op.kind, Elementwise | Reduce) and to_wide and fits


def _compares(node: Node) -> bool:
    """Whether a node compares integers, in a dtype in which sizes don't wrap around."""
    of_wide = {v.spec.dtype for v in node.inputs} <= _WIDE
    to_bool = all(v.spec.dtype.is_bool for v in node.outputs)
    return isinstance(node.op.kind, Elementwise) and of_wide and to_bool


def _is_small(value: Value) -> bool:
    shape, dtype = value.spec.shape, value.spec.dtype
    return (dtype.is_integer or dtype.is_bool) and is_static(shape) and math.prod(shape) <= _MAX_ELEMENTS  # type: ignore[arg-type]


def _computed(node: Node, inputs: list[Array]) -> Array | None:
    """The elements of the result of ``node``, for those of its inputs; None if there is no expression."""
    kind, shape = node.op.kind, _shape(node)
    if isinstance(kind, Literal):
        return np.array(node.attrs["value"].tolist(), object).reshape(shape)
    if isinstance(kind, SizeVector):
        return np.array([*node.attrs["values"], None], object)[:-1]
    if isinstance(kind, View):
        viewed: Array = kind.view(inputs[0], **node.attrs)
        return viewed
    out: Array = np.empty(shape, _OBJECT)
    if isinstance(kind, CopyPieces):
        for target, source in kind.pieces(out, *inputs, **node.attrs):
            target[...] = source
        return out
    if isinstance(kind, Reduce):
        return _reduced(node, inputs[0])
    function, operands = function_of(node), np.broadcast_arrays(*inputs)
    if operands[0].shape != shape:
        return None  # its elements depend on their positions too, as those of a random op do
    for position in np.ndindex(shape):
        element: Any = evaluate(function, _SYMBOLIC_INTEGERS, [x[position] for x in operands])[0]
        out[position] = element if _compares(node) and type(element) is bool else _require_integer(element)
    return out


def _reduced(node: Node, x: Array) -> Array | None:
    """The result of a reduction over all axes of ``x``; None for other reductions, or of many variables."""
    if (
        len(node.attrs["axis"]) != x.ndim
        or len(size_variables(x.reshape(-1).tolist())) > _MAX_REDUCED_VARIABLES
    ):
        return None
    steps = reduction_of(node)
    accumulator: list[Any] = evaluate(steps.init, _SYMBOLIC_INTEGERS, [])
    for i, element in enumerate(x.reshape(-1).tolist()):
        operands = [*accumulator, element, i] if steps.needs_position else [*accumulator, element]
        accumulator = evaluate(steps.update, _SYMBOLIC_INTEGERS, operands)
    out: Array = np.empty(_shape(node), _OBJECT)
    (out[...],) = map(_require_integer, evaluate(steps.finalize, _SYMBOLIC_INTEGERS, accumulator))
    return out


def _shape(node: Node) -> tuple[int, ...]:
    return tuple(node.output.spec.shape)  # type: ignore[arg-type]  # small: the sizes are numbers


def _require_integer(x: object) -> Any:
    if not isinstance(x, SymInt) and type(x) is not int:
        raise TypeError("no integer")
    return x


def _cast(x: Any, dtype: DType) -> Any:
    if not dtype.is_integer:
        raise TypeError("no integer")
    return x


def _check(ok: bool, message: str) -> None:
    if not ok:
        raise TypeError(message)


def _less(x: int, y: int) -> bool:
    """Whether ``x < y``, for all sizes or for none."""
    outcome = less_for_all(x, y)
    if outcome is None:
        raise UndecidedSize("a comparison depends on the sizes")
    return outcome


_SYMBOLIC_INTEGERS: Final = SimpleNamespace(
    constant=_cast,
    cast=_cast,
    check=_check,
    not_equal=lambda x, y: bool(x - y),
    less=_less,
    less_equal=lambda x, y: not _less(y, x),
    greater=lambda x, y: _less(y, x),
    greater_equal=lambda x, y: not _less(x, y),
    maximum=largest,
    minimum=smallest,
    add=operator.add,
    subtract=operator.sub,
    multiply=operator.mul,
    negative=operator.neg,
    floor_divide=operator.floordiv,
    mod=operator.mod,
    bitwise_and=operator.and_,
    bitwise_or=operator.or_,
    bitwise_xor=operator.xor,
    invert=operator.invert,
)
"""The scalar ops that expressions of symbolic sizes support."""
