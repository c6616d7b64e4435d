"""Calls of the Fourier transforms of long rows."""

from __future__ import annotations

import math

from dualflow.backends.llvm.entry import Entry
from dualflow.backends.llvm.fourier import columns_routine, rows_routine
from dualflow.graph.passes import fourier
from dualflow.schedule.nest import Layout
from dualflow.schedule.statements import CallRoutine


def write_fourier(entry: Entry, call: CallRoutine) -> None:
    """Transform long rows: the columns of each as a matrix, then its rows. Threads share strips."""
    unit, node = entry.unit, call.node
    source, (out,) = call.inputs[0], call.outputs
    part = node.output.spec.dtype.real
    count, columns, rows = fourier.shape_of(node)
    lanes, inverse, bits = fourier.lanes_of(part), fourier.inverse(node), unit.module.vector_bits
    made = count * columns * rows * 2 * part.size
    row = max(columns, rows) * 2 * lanes * part.size
    buffer, start = entry.scratch(made + row * unit.threads, node)
    middle, own = Layout(buffer, start // part.size, ()), (buffer, row, start + made)
    near, far = call.inputs[1:5], call.inputs[5:]
    unit.work_ns += unit.costs.addition_ns * 5 * made / part.size * math.log2(columns * rows)
    unit.parallel |= unit.threads > 1
    for made_for, strips, length, others, layouts in (
        (columns_routine, rows, columns, rows, (_in_parts(source), *near, middle)),
        (rows_routine, columns, rows, columns, (middle, *far, _in_parts(out))),
    ):
        total = count * strips // lanes
        places = [number for x in layouts for number in (x.buffer, x.offset)]
        numbers = [strips // lanes, length, others, *places, *own, 0]
        chunk = total if unit.threads == 1 else 1
        entry.call_kernel(made_for(part, lanes, inverse, bits), total, chunk, numbers)


def _in_parts(layout: Layout) -> Layout:
    """Where complex numbers lie, counted in parts of them."""
    return Layout(layout.buffer, layout.offset * 2, ())
