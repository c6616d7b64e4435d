"""Emits the positions of elements in an entry; imported only for graphs that select elements by a mask."""

from __future__ import annotations

from contextlib import nullcontext

from dualflow.backends.llvm.entry import Entry
from dualflow.backends.llvm.text import I64, PTR, Type
from dualflow.core.dtypes import DType
from dualflow.graph.views import sizes
from dualflow.schedule.call_reports import OUT_OF_BOUNDS
from dualflow.schedule.program_statements import CallRoutine
from dualflow.sizes.symbolic_sizes import SymInt


def write_positions(entry: Entry, call: CallRoutine) -> None:
    """Emit the positions of elements, each repeated by the element's count."""
    node, b = call.node, entry.builder
    (counts,) = node.inputs
    count = 1
    for size in sizes(counts):
        count *= size
    function = _positions(entry, counts.spec.dtype, padded=isinstance(node.attrs["size"], SymInt))
    source, limit = entry.pointer(counts, call.inputs[0]), entry.param(node.attrs["size"])
    out = entry.pointer(node.output, call.outputs[0])
    number = b.call(function, [source, entry.param(count), out, limit])
    assert number is not None, "the function returns the number of positions"
    entry.fail_if(~number.eq(limit), OUT_OF_BOUNDS, node)


def _positions(entry: Entry, dtype: DType, *, padded: bool) -> str:
    """The name of ``i64 f(counts, n, out, size)``, which returns the number of positions.

    It writes at most ``size`` of them; if ``out`` is padded, it may write one more.
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
        repeats = b.load(counts, iteration.index, element)
        (at,) = iteration.carried
        if dtype.is_bool:
            full = at >= size
            # padded, it needs no branch, which would be mispredicted
            with nullcontext() if padded else b.if_then(repeats & ~full):
                b.store(iteration.index, out, full.select(size, at))
            iteration.next(at + repeats.cast(I64))
        else:
            stop = at + repeats.cast(I64)
            with b.loop(at, (stop < size).select(stop, size)) as repeat:
                b.store(iteration.index, out, repeat.index)
            iteration.next((stop > at).select(stop, at))
    b.ret(iteration.results[0])
    return name
