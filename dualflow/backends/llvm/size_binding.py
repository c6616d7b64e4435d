"""Dynamic sizes in an entry: binds size variables, and updates the parameters that depend on them.

The parameter table has an entry for each size variable. For each variable, a function computes all parameters
that depend on it; it is called when the variable is bound. So kernels read sizes as if they were static.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from dualflow.backends.llvm.entry import TOO_LARGE, Entry, Unit
from dualflow.backends.llvm.maths.instructions import Instructions
from dualflow.backends.llvm.maths.integers import divide_by_constant, is_constant_divisor, mod_by_constant
from dualflow.backends.llvm.text import I64, PTR, VOID, Builder, EmittedValue, Type
from dualflow.core.dtypes import int64
from dualflow.core.records import dataclass
from dualflow.core.shape import MAX_ELEMENTS
from dualflow.graph.ir import Node
from dualflow.graph.symbolic_size_ops import REQUIRE_SIZE
from dualflow.scalar import ScalarOp, evaluate
from dualflow.scalar.maths import definition
from dualflow.schedule.program_statements import CallRoutine
from dualflow.sizes.size_scalars import SizeScalar
from dualflow.sizes.symbolic_sizes import SizeFactor, SymInt, size_variables, variable_of

NEGATIVE = "a size is negative"
STANDALONE = "standalone"
"""The name of the function that :func:`write_standalone` emits."""


@dataclass(frozen=True, slots=True)
class EmittedSizes:
    """Emits the arithmetic of symbolic sizes."""

    builder: Builder

    def quotient(self, x: EmittedValue | int, y: EmittedValue | int) -> EmittedValue:
        size, by = self._value(x), self._value(y)
        if is_constant_divisor(by):
            return divide_by_constant(size, by)
        return self._defined(ScalarOp.FLOOR_DIVIDE, size, by)

    def remainder(self, x: EmittedValue | int, y: EmittedValue | int) -> EmittedValue:
        size, by = self._value(x), self._value(y)
        return mod_by_constant(size, by) if is_constant_divisor(by) else self._defined(ScalarOp.MOD, size, by)

    def _defined(self, op: ScalarOp, *operands: EmittedValue) -> EmittedValue:
        return evaluate(definition(op, int64).function, Instructions(self.builder), operands)[0]

    def largest(self, x: EmittedValue | int, y: EmittedValue | int) -> EmittedValue:
        first, second = self._value(x), self._value(y)
        return (first > second).select(first, second)

    def smallest(self, x: EmittedValue | int, y: EmittedValue | int) -> EmittedValue:
        first, second = self._value(x), self._value(y)
        return (first < second).select(first, second)

    def normalized_index(self, x: EmittedValue | int, size: EmittedValue | int) -> EmittedValue:
        index = self._value(x)
        return (index < 0).select(index + size, index)

    def inferred_size(self, x: EmittedValue | int, inferred: EmittedValue | int) -> EmittedValue:
        size = self._value(x)
        return size.eq(-1).select(self._value(inferred), size)

    def broadcast_size(self, x: EmittedValue | int, y: EmittedValue | int) -> EmittedValue:
        size = self._value(x)
        return size.eq(1).select(self._value(y), size)

    def broadcast_stride(self, stride: EmittedValue | int, size: EmittedValue | int) -> EmittedValue:
        step = self._value(stride)
        return self._value(size).eq(1).select(self._value(0), step)

    def _value(self, x: EmittedValue | int) -> EmittedValue:
        return self.builder.constant(I64, x) if isinstance(x, int) else x


def emitted_size(
    b: Builder,
    unit: Unit,
    params: EmittedValue,
    size: int,
    factors: dict[SizeFactor, EmittedValue] | None = None,
) -> EmittedValue:
    """Emit a size whose variables are bound; ``factors`` caches the values of its factors."""
    if not isinstance(size, SymInt):
        return b.constant(I64, size)
    value = size.compute(lambda v: b.load(params, unit.table.size_param(v), I64), EmittedSizes(b), factors)
    assert isinstance(value, EmittedValue)
    return value


def _emitted_scalar(b: Builder, scalar: SizeScalar, size: Callable[[int], EmittedValue]) -> EmittedValue:
    """Emit a scalar of sizes; ``size`` emits a size."""
    operation, dtype, operands = scalar
    element = Type.of_dtype(dtype.dtype)
    if operation is None:
        (number,) = operands
        return b.constant(element, number) if isinstance(number, float) else size(number).cast(element)
    values = [_emitted_scalar(b, x, size) for x in operands]
    if operation is np.negative:
        return -values[0]
    return _SCALAR_OPERATIONS[operation](*values)


_SCALAR_OPERATIONS: Final[Mapping[np.ufunc, Callable[..., EmittedValue]]] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.divide: operator.truediv,
}


def write_setters(unit: Unit) -> None:
    """Emit the functions that are called when a variable is bound: ``void sizes<index>(params)``."""
    numbers: dict[SizeFactor, list[tuple[int, int | SizeScalar]]] = {}
    for i, x in enumerate(unit.table.params):
        for variable in size_variables(x):
            numbers.setdefault(variable, []).append((i, x))
    for variable, index in unit.table.size_params.items():
        _write_setter(unit, index, numbers.get(variable, ()))


def _write_setter(unit: Unit, index: int, numbers: Sequence[tuple[int, int | SizeScalar]]) -> None:
    """Emit the function that stores ``numbers``, each a size or a scalar of sizes, at their indices."""
    function = unit.module.functions[_setter(index)]
    b, (params,) = function.builder, function.args
    factors: dict[SizeFactor, EmittedValue] = {}
    values: dict[int, EmittedValue] = {}

    def size(number: int) -> EmittedValue:
        value = values.get(number)
        if value is None:
            value = values[number] = emitted_size(b, unit, params, number, factors)
        return value

    for i, number in numbers:
        value = _emitted_scalar(b, number, size) if isinstance(number, SizeScalar) else size(number)
        b.store(value, params, i * (8 // value.type.nbytes))
    b.ret()


def _require(entry: Entry, node: Node) -> None:
    """Emit the comparison of two sizes; the program fails if they differ."""
    attrs, b = node.attrs, entry.builder
    first, second = (emitted_size(b, entry.unit, entry.params, attrs[name]) for name in ("x", "y"))
    fits = first.eq(second) | first.eq(1) if attrs["repeats"] else first.eq(second)
    entry.fail_if(~fits, attrs["message"], node)


def write_standalone(unit: Unit, entry: str) -> str:
    """Emit a function that calls ``entry`` with its own parameter table and buffers; returns its name.

    Concurrent calls then share no state.
    """
    function = unit.module.function(STANDALONE, VOID, [("buffers", PTR), ("params", PTR), ("status", PTR)])
    b, (buffers, params, status) = function.builder, function.args
    shared, count, num_params = unit.plan.arena + 1, unit.plan.workspace + 1, len(unit.table.params)
    table, integers = b.alloca(PTR, count), b.alloca(I64, num_params)
    copy = b.symbols.declare("memcpy", PTR, [PTR, PTR, I64])
    b.call(copy, [table, buffers, b.constant(I64, 8 * shared)])
    b.call(copy, [integers, params, b.constant(I64, 8 * num_params)])
    null = b.constant(I64, 0).cast(PTR)
    for index in range(shared, count):
        b.store(null, table, index)
    b.call(entry, [table, integers, status])
    free = b.symbols.declare("free", VOID, [PTR])
    for buffer in unit.table.block_sizes:
        b.call(free, [b.load(table, buffer, PTR)])
    b.ret()
    return STANDALONE


def _setter(place: int) -> str:
    return f"sizes{place}"


def write_bind_size(entry: Entry, call: CallRoutine) -> None:
    """Emit the binding of a size variable; or a check that compares two sizes."""
    node, b, unit = call.node, entry.builder, entry.unit
    attrs = node.attrs
    if node.op is REQUIRE_SIZE:
        _require(entry, node)
        return
    if attrs.get("argument_axes"):
        axis = attrs["argument_axes"][0]
        bind_size(entry, attrs["size"], b.load(entry.params, unit.table.input_size_param(axis), I64))
        return
    if node.inputs:
        (layout,), (value,) = call.inputs, node.inputs
        pointer = entry.pointer(value, layout)
        number = b.load(pointer, attrs["index"], Type.of_dtype(value.spec.dtype.dtype)).cast(I64)
    else:
        number = emitted_size(b, unit, entry.params, attrs["value"])
    if attrs["least"] is not None:
        entry.fail_if(number < attrs["least"], NEGATIVE, node)
        entry.fail_if(number > MAX_ELEMENTS, TOO_LARGE, node)
    with b.if_then(b.load(entry.status, 0, I64).eq(0)):
        bind_size(entry, attrs["size"], number)


def bind_size(entry: Entry, size: int, value: EmittedValue) -> None:
    """Emit the binding of the size variable ``size`` and the update of parameters that depend on it."""
    variable = variable_of(size)
    assert variable is not None, "a bound size is a size variable"
    b, index = entry.builder, entry.unit.table.size_param(variable)
    b.store(value, entry.params, index)
    name = _setter(index)
    if name not in entry.unit.module.functions:
        entry.unit.module.function(name, VOID, [("params", PTR)], internal=True)
    b.call(name, [entry.params])


def write_sizes(entry: Entry, call: CallRoutine) -> None:
    """Emit stores of sizes to a tensor of integers."""
    b, dtype = entry.builder, call.node.output.spec.dtype
    pointer = entry.pointer(call.node.output, call.outputs[0])
    for i, size in enumerate(call.node.attrs["values"]):
        b.store(_element(entry, size, Type.of_dtype(dtype.dtype)), pointer, i)


def _element(entry: Entry, size: int | SizeScalar, element: Type) -> EmittedValue:
    """A size, or a scalar of sizes, as an element of a tensor."""
    if not isinstance(size, SizeScalar):
        return entry.param(size).cast(element)
    index = entry.unit.table.append(size)
    return entry.builder.load(entry.params, index * (8 // element.nbytes), element)
