"""Sizes that an entry learns on its way: how it reads them, what it derives, and memory of such sizes.

The table of integers has a place for each size variable. Where a variable is bound, a function of its own
computes all numbers of the table that depend on it, so that kernels read sizes as if they were static.
"""

from __future__ import annotations

from contextlib import nullcontext

from dualflow.backends.llvm.entry import Entry, Unit
from dualflow.backends.llvm.maths.instructions import Instructions
from dualflow.backends.llvm.maths.integers import divide_by_constant, is_constant_divisor, mod_by_constant
from dualflow.backends.llvm.text import I64, PTR, VOID, Builder, EmittedValue, Type
from dualflow.core.dtypes import DType, int64
from dualflow.core.records import dataclass
from dualflow.core.shape import MOST_ELEMENTS
from dualflow.core.symbolic_sizes import SymInt, size_variables, variable_of
from dualflow.graph.axes import sizes
from dualflow.graph.run_time_sizes import REQUIRE_SIZE
from dualflow.scalar import ScalarOp, evaluate
from dualflow.scalar.maths import definition
from dualflow.schedule.call_reports import OUT_OF_BOUNDS, OutOfMemory
from dualflow.schedule.statements import CallRoutine

NEGATIVE = "a size is negative"
WHOLE = "whole"
"""The name of the function that :func:`write_whole` writes."""
TOO_LARGE = OutOfMemory("a size is larger than memory can hold. Compute in parts.")


@dataclass(frozen=True, slots=True)
class EmittedSizes:
    """Arithmetic on symbolic sizes as instructions."""

    b: Builder

    def quotient(self, x: EmittedValue | int, y: EmittedValue | int) -> EmittedValue:
        size, by = self._value(x), self._value(y)
        return (
            divide_by_constant(size, by)
            if is_constant_divisor(by)
            else self._defined(ScalarOp.FLOOR_DIVIDE, size, by)
        )

    def remainder(self, x: EmittedValue | int, y: EmittedValue | int) -> EmittedValue:
        size, by = self._value(x), self._value(y)
        return mod_by_constant(size, by) if is_constant_divisor(by) else self._defined(ScalarOp.MOD, size, by)

    def _defined(self, op: ScalarOp, *operands: EmittedValue) -> EmittedValue:
        return evaluate(definition(op, int64).function, Instructions(self.b), operands)[0]

    def largest(self, x: EmittedValue | int, y: EmittedValue | int) -> EmittedValue:
        first, second = self._value(x), self._value(y)
        return (first > second).select(first, second)

    def smallest(self, x: EmittedValue | int, y: EmittedValue | int) -> EmittedValue:
        first, second = self._value(x), self._value(y)
        return (first < second).select(first, second)

    def normalized_index(self, x: EmittedValue | int, size: EmittedValue | int) -> EmittedValue:
        place = self._value(x)
        return (place < 0).select(place + size, place)

    def inferred_size(self, x: EmittedValue | int, rest: EmittedValue | int) -> EmittedValue:
        size = self._value(x)
        return size.eq(-1).select(self._value(rest), size)

    def broadcast_size(self, x: EmittedValue | int, y: EmittedValue | int) -> EmittedValue:
        size = self._value(x)
        return size.eq(1).select(self._value(y), size)

    def broadcast_stride(self, stride: EmittedValue | int, size: EmittedValue | int) -> EmittedValue:
        step = self._value(stride)
        return self._value(size).eq(1).select(self._value(0), step)

    def _value(self, x: EmittedValue | int) -> EmittedValue:
        return self.b.constant(I64, x) if isinstance(x, int) else x


def computed(b: Builder, unit: Unit, params: EmittedValue, size: int) -> EmittedValue:
    """The value of a size whose variables are all bound."""
    if not isinstance(size, SymInt):
        return b.constant(I64, size)
    found = size.compute(lambda variable: b.load(params, unit.variable_place(variable), I64), EmittedSizes(b))
    assert isinstance(found, EmittedValue)
    return found


def write_setters(unit: Unit) -> None:
    """Write the functions that entries call where a variable is bound: ``void sizes<place>(params)``."""
    numbers = [(i, x, size_variables(x)) for i, x in enumerate(unit.params) if isinstance(x, SymInt)]
    for variable, place in unit.variable_places.items():
        function = unit.module.functions[_setter(place)]
        (params,) = function.args
        for i, extent, parts in numbers:
            if variable in parts:
                function.builder.store(computed(function.builder, unit, params, extent), params, i)
        function.builder.ret()


def write_whole(unit: Unit, entry: str) -> str:
    """Write a function that is called as ``entry`` is, with numbers and memory of each call: its name."""
    function = unit.module.function(WHOLE, VOID, [("buffers", PTR), ("params", PTR), ("status", PTR)])
    b, (buffers, params, status) = function.builder, function.args
    shared, count, numbers = unit.plan.arena + 1, unit.plan.workspace + 1, len(unit.params)
    own, integers = b.alloca(PTR, count), b.alloca(I64, numbers)
    copy = b.symbols.declare("memcpy", PTR, [PTR, PTR, I64])
    b.call(copy, [own, buffers, b.constant(I64, 8 * shared)])
    b.call(copy, [integers, params, b.constant(I64, 8 * numbers)])
    nothing = b.constant(I64, 0).cast(PTR)
    for place in range(shared, count):
        b.store(nothing, own, place)
    b.call(entry, [own, integers, status])
    free = b.symbols.declare("free", VOID, [PTR])
    for buffer in unit.rooms:
        b.call(free, [b.load(own, buffer, PTR)])
    b.ret()
    return WHOLE


def _setter(place: int) -> str:
    return f"sizes{place}"


def measure(entry: Entry, call: CallRoutine) -> None:
    """Bind a size variable, and compute all that depends on it; or compare two sizes."""
    node, b, unit = call.node, entry.b, entry.unit
    attrs = node.attrs
    if node.op is REQUIRE_SIZE:
        first, second = (computed(b, unit, entry.params, attrs[name]) for name in ("x", "y"))
        fits = first.eq(second) | first.eq(1) if attrs["repeats"] else first.eq(second)
        entry.fail_if(~fits, attrs["message"], node)
        return
    if "argument_axis" in attrs:
        give(entry, attrs["size"], b.load(entry.params, unit.given_place(attrs["argument_axis"]), I64))
        return
    if node.inputs:
        (layout,), (value,) = call.inputs, node.inputs
        pointer = entry.pointer(value, layout)
        number = b.load(pointer, attrs["index"], Type.of_dtype(value.spec.dtype.dtype)).cast(I64)
    else:
        number = computed(b, unit, entry.params, attrs["value"])
    if attrs["least"] is not None:
        entry.fail_if(number < attrs["least"], NEGATIVE, node)
        entry.fail_if(number > MOST_ELEMENTS, TOO_LARGE, node)
    with b.if_then(b.load(entry.status, 0, I64).eq(0)):
        give(entry, attrs["size"], number)


def give(entry: Entry, extent: int, number: EmittedValue) -> None:
    """Bind the size variable ``extent``, and compute all that depends on it."""
    variable = variable_of(extent)
    assert variable is not None, "a measured size is a size variable"
    b, place = entry.b, entry.unit.variable_place(variable)
    b.store(number, entry.params, place)
    name = _setter(place)
    if name not in entry.unit.module.functions:
        entry.unit.module.function(name, VOID, [("params", PTR)], internal=True)
    b.call(name, [entry.params])


def write_sizes(entry: Entry, call: CallRoutine) -> None:
    """Write sizes to memory as integers."""
    b, dtype = entry.b, call.node.output.spec.dtype
    pointer = entry.pointer(call.node.output, call.outputs[0])
    for i, size in enumerate(call.node.attrs["values"]):
        b.store(entry.param(size).cast(Type.of_dtype(dtype.dtype)), pointer, i)


def write_positions(entry: Entry, call: CallRoutine) -> None:
    """The places of elements, each as often as the element counts."""
    node, b = call.node, entry.b
    (counts,) = node.inputs
    count = 1
    for size in sizes(counts):
        count *= size
    name = _positions(entry, counts.spec.dtype, padded=isinstance(node.attrs["size"], SymInt))
    given, most = entry.pointer(counts, call.inputs[0]), entry.param(node.attrs["size"])
    out = entry.pointer(node.output, call.outputs[0])
    number = b.call(name, [given, entry.param(count), out, most])
    assert number is not None, "the function returns how many there are"
    entry.fail_if(~number.eq(most), OUT_OF_BOUNDS, node)


def _positions(entry: Entry, dtype: DType, *, padded: bool) -> str:
    """The name of ``i64 f(counts, n, out, size)``, which returns how many places there are.

    It writes ``size`` of them at most; where ``out`` is padded, one behind these may be written.
    """
    name = f"positions_{dtype.name}{'_padded' * padded}"
    if name in entry.unit.module.functions:
        return name
    arguments = [("counts", PTR), ("n", I64), ("out", PTR), ("size", I64)]
    function = entry.unit.module.function(name, I64, arguments, internal=True)
    b = function.builder
    counts, n, out, size = function.args
    element = Type.of_dtype(dtype.dtype)
    with b.loop(0, n, carried=[b.constant(I64, 0)]) as iteration:
        times = b.load(counts, iteration.index, element)
        (at,) = iteration.carried
        if dtype.is_bool:
            full = at >= size
            with b.if_then(times & ~full) if not padded else nullcontext():  # a branch can't be foreseen
                b.store(iteration.index, out, full.select(size, at))
            iteration.next(at + times.cast(I64))
        else:
            stop = at + times.cast(I64)
            with b.loop(at, (stop < size).select(stop, size)) as again:
                b.store(iteration.index, out, again.index)
            iteration.next((stop > at).select(stop, at))
    b.ret(iteration.results[0])
    return name
