"""Emits calls of the Fourier transforms of long rows in an entry."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dualflow.backends.llvm.entry import Entry
from dualflow.backends.llvm.fourier_kernels import columns_routine, rows_routine
from dualflow.backends.llvm.runtime.ir_source import IrSource
from dualflow.graph.passes import fourier_tables
from dualflow.schedule.nest import Layout
from dualflow.schedule.program_statements import CallRoutine
from dualflow.sizes.symbolic_sizes import typical

_ADDITIONS_PER_PART = 5
"""The estimated time per real or imaginary part and level of butterflies, in additions."""
_COLUMN_TABLES = slice(1, 5)
"""The inputs of a call with the tables of the column transforms; those of the row transforms follow."""


def write_fourier(entry: Entry, call: CallRoutine) -> None:
    """Emit two parallel kernel calls: for the columns of each row as a matrix, then for its rows."""
    unit, node = entry.unit, call.node
    source, (out,) = call.inputs[0], call.outputs
    column_tables, row_tables = call.inputs[_COLUMN_TABLES], call.inputs[_COLUMN_TABLES.stop :]
    part = node.output.spec.dtype.real
    count, columns, rows = fourier_tables.shape_of(node)
    lanes, inverse = fourier_tables.lanes_of(part), fourier_tables.inverse(node)
    bits = unit.module.vector_bits
    middle_bytes = count * columns * rows * 2 * part.size
    strip_bytes = max(columns, rows) * 2 * lanes * part.size
    parts, levels = typical(middle_bytes) / part.size, math.log2(columns * rows)
    unit.work_ns += unit.costs.addition_ns * _ADDITIONS_PER_PART * parts * levels
    if unit.threads > 1:
        unit.use_threads()

    def transform(routine: IrSource, length: int, transforms: int, layouts: Sequence[Layout]) -> None:
        """Emit the call that computes ``transforms`` transforms of ``length`` in each matrix."""
        strips = transforms // lanes
        total = count * strips
        buffers = [number for x in layouts for number in (x.buffer, x.offset)]
        chunk = total if unit.threads == 1 else 1
        entry.call_kernel(routine, total, chunk, [strips, length, transforms, *buffers, *scratch, 0])

    of_columns, of_rows = (f(part, lanes, inverse, bits) for f in (columns_routine, rows_routine))
    with entry.scratch(middle_bytes + strip_bytes * unit.threads, node) as (buffer, start):
        middle, scratch = Layout(buffer, start // part.size, ()), (buffer, strip_bytes, start + middle_bytes)
        transform(of_columns, columns, rows, (_in_parts(source), *column_tables, middle))
        transform(of_rows, rows, columns, (middle, *row_tables, _in_parts(out)))


def _in_parts(layout: Layout) -> Layout:
    """The layout of complex numbers, with an offset in real parts."""
    return Layout(layout.buffer, layout.offset * 2, ())
