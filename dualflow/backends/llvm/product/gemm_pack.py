"""Packing: copies of blocks of A and B in the layout of the micro-kernels."""

from __future__ import annotations

from dualflow.backends.llvm.product.gemm_kernel import Field, field, minimum
from dualflow.backends.llvm.text import I64, PTR, VOID, LlvmModule, Type
from dualflow.backends.llvm.text.tile_transpose import transposed

PANEL = (("table", PTR), ("depth", I64), ("b", PTR), ("packed", PTR), ("width", I64), ("columns", I64))
COPY = (("table", PTR), ("depth", I64), ("a", PTR), ("copy", PTR), ("rows", I64))


def emit_pack(module: LlvmModule, name: str, element: Type, lanes: int) -> None:
    """Emit the packing of a panel of B: ``packed[p * width + j] = b[p, j]``.

    Values beyond the last column are arbitrary. If B is contiguous along K, square tiles are transposed in
    registers; the remaining elements are copied one by one.
    """
    function = module.function(name, VOID, PANEL)
    builder = function.builder
    table, depth, b, packed, width, columns = function.args
    row_stride = field(builder, table, Field.B_ROW_STRIDE)
    column_stride = field(builder, table, Field.B_COLUMN_STRIDE)
    side = 128 // element.bits
    transposed_depth = row_stride.eq(1).select(depth & -side, 0)
    with builder.loop(0, columns, lanes, frozen=True) as group:
        offsets = [(minimum(columns - 1, group.index + i) * column_stride).frozen() for i in range(lanes)]
        b_columns = [builder.offset(b, offset, element) for offset in offsets]
        first = builder.offset(packed, group.index, element)
        with builder.loop(0, transposed_depth, side, carried=[first], frozen=True) as step:
            (target,) = step.carried
            parts = [builder.load(column, step.index, element.vector(side)) for column in b_columns]
            for row in transposed(parts):
                builder.store(row, target, 0)
                target = builder.offset(target, width, element)
            step.next(target.frozen())
    with builder.loop(transposed_depth, depth) as step, builder.loop(0, columns) as column:
        p, j = step.index.frozen(), column.index.frozen()
        builder.store(builder.load(b, p * row_stride + j * column_stride, element), packed, p * width + j)
    builder.ret()


def emit_copy(module: LlvmModule, name: str, element: Type, lanes: int) -> None:
    """Emit the copy of a block of A with contiguous columns: ``copy[p * COPY_STRIDE + i] = a[i, p]``.

    Columns whose stride is a large power of two conflict in a cache; those of the copy do not.
    """
    function = module.function(name, VOID, COPY)
    builder = function.builder
    table, depth, a, copy, rows = function.args
    column_stride = field(builder, table, Field.A_COLUMN_STRIDE)
    copy_stride = field(builder, table, Field.COPY_STRIDE)
    with builder.loop(0, depth) as step, builder.loop(0, rows, lanes) as group:
        p, i = step.index.frozen(), group.index.frozen()
        value = builder.load(
            a, p * column_stride + i, element.vector(lanes), builder.first_lanes(rows - i, lanes)
        )
        builder.store(value, copy, p * copy_stride + i)
    builder.ret()
