"""Emits calls of the Fourier transforms of long rows in an entry."""

from __future__ import annotations

import math

from dualflow.backends.llvm.entry import Entry
from dualflow.backends.llvm.fourier_kernels import columns_routine, rows_routine
from dualflow.graph.passes import fourier_tables
from dualflow.schedule.nest import Layout
from dualflow.schedule.program_statements import CallRoutine


def write_fourier(entry: Entry, call: CallRoutine) -> None:
    """Emit two parallel kernel calls: for the columns of each row as a matrix, then for its rows."""
    unit, node = entry.unit, call.node
    source, (out,) = call.inputs[0], call.outputs
    part = node.output.spec.dtype.real
    count, columns, rows = fourier_tables.shape_of(node)
    lanes, inverse, bits = (
        fourier_tables.lanes_of(part),
        fourier_tables.inverse(node),
        unit.module.vector_bits,
    )
    middle_bytes = count * columns * rows * 2 * part.size
    strip_bytes = max(columns, rows) * 2 * lanes * part.size
    buffer, start = entry.scratch(middle_bytes + strip_bytes * unit.threads, node)
    middle, scratch = Layout(buffer, start // part.size, ()), (buffer, strip_bytes, start + middle_bytes)
    near, far = call.inputs[1:5], call.inputs[5:]
    unit.work_ns += unit.costs.addition_ns * 5 * middle_bytes / part.size * math.log2(columns * rows)
    if unit.threads > 1:
        unit.use_threads()
    for routine, strips, length, others, layouts in (
        (columns_routine, rows, columns, rows, (_in_parts(source), *near, middle)),
        (rows_routine, columns, rows, columns, (middle, *far, _in_parts(out))),
    ):
        total = count * strips // lanes
        buffers = [number for x in layouts for number in (x.buffer, x.offset)]
        parameters = [strips // lanes, length, others, *buffers, *scratch, 0]
        chunk = total if unit.threads == 1 else 1
        entry.call_kernel(routine(part, lanes, inverse, bits), total, chunk, parameters)


def _in_parts(layout: Layout) -> Layout:
    """The layout of complex numbers, with an offset in real parts."""
    return Layout(layout.buffer, layout.offset * 2, ())
