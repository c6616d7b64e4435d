"""Packing: copies of blocks of A and B in the layout of the micro-kernels."""

from __future__ import annotations

from dualflow.backends.llvm.product.gemm_kernel import Field, field, opaque, smaller
from dualflow.backends.llvm.text import I64, PTR, VOID, LlvmModule, Type
from dualflow.backends.llvm.text.squares import transposed

PANEL = (("table", PTR), ("depth", I64), ("b", PTR), ("packed", PTR), ("width", I64), ("columns", I64))
COPY = (("table", PTR), ("depth", I64), ("a", PTR), ("copy", PTR), ("rows", I64))


def emit_pack(module: LlvmModule, name: str, element: Type, lanes: int) -> None:
    """Emit ``packed[k * width + j] = b[k, j]``; the values beyond the last column are arbitrary.

    If B is contiguous along K, square tiles are transposed in registers; the remaining elements are copied
    one by one.
    """
    function = module.function(name, VOID, PANEL, internal=True)
    b = function.builder
    table, depth, source, packed, width, columns = function.args
    down, across = field(b, table, Field.B_ROW), field(b, table, Field.B_COLUMN)
    side = 128 // element.bits
    squares = down.eq(1).select(depth & -side, 0)
    with b.loop(0, columns, lanes) as part:
        offsets = [opaque(smaller(columns - 1, part.index + i) * across) for i in range(lanes)]
        lines = [b.offset(source, place, element) for place in offsets]
        with b.loop(0, squares, side) as step:
            k = opaque(step.index)
            pieces = [b.load(line, k, element.vector(side)) for line in lines]
            for i, row in enumerate(transposed(pieces)):
                b.store(row, packed, (k + i) * width + part.index)
    with b.loop(squares, depth) as step, b.loop(0, columns) as column:
        k, j = opaque(step.index), opaque(column.index)
        b.store(b.load(source, k * down + j * across, element), packed, k * width + j)
    b.ret()


def emit_copy(module: LlvmModule, name: str, element: Type, lanes: int) -> None:
    """Emit ``copy[k * COPY_ROW + i] = a[i, k]``, for an A with contiguous columns.

    Columns whose stride is a large power of two conflict in a cache; those of the copy do not.
    """
    function = module.function(name, VOID, COPY, internal=True)
    b = function.builder
    table, depth, source, copy, rows = function.args
    across, distance = field(b, table, Field.A_COLUMN), field(b, table, Field.COPY_ROW)
    with b.loop(0, depth) as step, b.loop(0, rows, lanes) as part:
        k, i = opaque(step.index), opaque(part.index)
        value = b.load(source, k * across + i, element.vector(lanes), b.first_lanes(rows - i, lanes))
        b.store(value, copy, k * distance + i)
    b.ret()
