"""The outer loops of a matrix product: over blocks of C, in parallel, and over the panels of B in a block."""

from __future__ import annotations

from dualflow.backends.llvm.product.gemm_kernel import Field, Tile, WindowField, field, opaque, smaller
from dualflow.backends.llvm.text import I64, PTR, VOID, Builder, EmittedValue, LlvmModule, Type
from dualflow.core.records import dataclass


def emit_entry(module: LlvmModule, name: str, body: str) -> None:
    """Emit the entry function: a parallel loop over blocks, or a serial one without a thread pool."""
    arguments = ("table", "a", "b", "c", "scratch", "pool", "pfor")
    function = module.function(name, VOID, [(argument, PTR) for argument in arguments])
    b = function.builder
    table, x, y, c, scratch, pool, pfor = function.args
    swapped = field(b, table, Field.SWAPPED).ne(0)
    operands = (table, swapped.select(y, x), swapped.select(x, y), c, scratch)
    context = b.alloca(PTR, len(operands))
    for i, operand in enumerate(operands):
        b.store(operand, context, i)
    blocks, zero, one = field(b, table, Field.BLOCKS), b.constant(I64, 0), b.constant(I64, 1)

    def serial() -> list[EmittedValue]:
        b.call(body, [context, zero, blocks, zero])
        return []

    def parallel() -> list[EmittedValue]:
        b.call_pointer(pfor, VOID, [pool, b.address(body), context, blocks, one])
        return []

    b.if_else(pfor.cast(I64).eq(0) | (blocks < 2), serial, parallel)
    b.ret()


def emit_blocks(
    module: LlvmModule,
    name: str,
    tiles: tuple[Tile, Tile | None],
    element: Type,
    lanes: int,
    *,
    windows: tuple[int, int] | None,
) -> None:
    """Emit the body of the parallel loop: blocks ``low`` to ``high`` of C, by the wide tile and smaller ones.

    If A is windows of a tensor, every block copies its windows; ``windows`` are the lengths of the lists of
    their offsets.
    """
    arguments = [("context", PTR), ("low", I64), ("high", I64), ("slot", I64)]
    function = module.function(name, VOID, arguments, internal=True)
    b = function.builder
    context, low, high, slot = function.args
    table, a, source, c, scratch = (b.load(context, i, PTR) for i in range(5))
    size = {which: field(b, table, which) for which in Field}
    panel_width = tiles[0].vectors * lanes
    packed = b.offset(scratch, slot * size[Field.SLOT], element)
    copy = b.offset(packed, size[Field.BLOCK_DEPTH] * panel_width, element)
    lists = [b.alloca(I64, length) for length in windows or ()]
    with b.loop(low, high) as iteration:
        block = opaque(iteration.index)
        across = block.quotient(size[Field.ROW_BLOCKS])
        top = (block - across * size[Field.ROW_BLOCKS]) * size[Field.BLOCK_ROWS]
        left = across * size[Field.BLOCK_COLUMNS]
        right = smaller(left + size[Field.BLOCK_COLUMNS], size[Field.COLUMNS])
        rows = smaller(size[Field.BLOCK_ROWS], size[Field.ROWS] - top)
        # An empty K has one K block too, which writes the zeros.
        k_end = (size[Field.DEPTH] < 1).select(1, size[Field.DEPTH])
        with b.loop(0, k_end, size[Field.BLOCK_DEPTH]) as part:
            start = opaque(part.index)
            depth = smaller(size[Field.DEPTH] - start, size[Field.BLOCK_DEPTH])
            accumulate = (start > 0).select(1, size[Field.ACCUMULATE])
            if windows:
                b.call("windows", [table, a, copy, depth, rows, start, top, *lists])
                at_a, a_row, a_column = _windows(b, table, size, copy)
            else:
                at_a = b.offset(a, top * size[Field.A_ROW] + start * size[Field.A_COLUMN], element)
                at_a, a_row, a_column = _copied(b, table, size, at_a, copy, (depth, rows))
            with b.while_loop([left]) as panel:
                column = opaque(panel.carried[0])
                panel.test(column < right)
                start_of_b = start * size[Field.B_ROW] + column * size[Field.B_COLUMN]
                at_b = b.offset(source, start_of_b, element)
                at_c = b.offset(c, top * size[Field.C_ROW] + column, element)
                piece = _Panel(
                    builder=b,
                    table=table,
                    size=size,
                    element=element,
                    a=at_a,
                    a_row=a_row,
                    a_column=a_column,
                    b=at_b,
                    packed=packed,
                    c=at_c,
                    depth=depth,
                    rows=rows,
                    columns=right - column,
                    accumulate=accumulate,
                    lists=lists,
                )
                panel.next(column + piece.emit(*tiles, lanes))
    b.ret()


def _copied(
    b: Builder,
    table: EmittedValue,
    size: dict[Field, EmittedValue],
    a: EmittedValue,
    copy: EmittedValue,
    counts: tuple[EmittedValue, EmittedValue],
) -> list[EmittedValue]:
    """A block of A, copied if the table requires it: its address, and its strides."""

    def copied() -> list[EmittedValue]:
        depth, rows = counts
        b.call("copy", [table, depth, a, copy, rows])
        return [copy, b.constant(I64, 1), size[Field.COPY_ROW]]

    in_place = [a, size[Field.A_ROW], size[Field.A_COLUMN]]
    return b.if_else(size[Field.COPY_ROW].ne(0), copied, lambda: in_place)


def _windows(
    b: Builder, table: EmittedValue, size: dict[Field, EmittedValue], copy: EmittedValue
) -> list[EmittedValue]:
    """The same for a block of windows; the strides are 0 for lines."""
    by_window, one = field(b, table, WindowField.BY_WINDOW).ne(0), b.constant(I64, 1)
    distance, lines = size[Field.COPY_ROW], field(b, table, WindowField.LINES).ne(0)
    distances = by_window.select(distance, one), by_window.select(one, distance)
    return [copy, *[lines.select(0, n) for n in distances]]


@dataclass(frozen=True, slots=True)
class _Panel:
    """The product of a block's rows of A and a panel of B; ``columns`` are those left in the block."""

    builder: Builder
    table: EmittedValue
    size: dict[Field, EmittedValue]
    element: Type
    a: EmittedValue
    a_row: EmittedValue
    a_column: EmittedValue
    b: EmittedValue
    packed: EmittedValue
    c: EmittedValue
    depth: EmittedValue
    rows: EmittedValue
    columns: EmittedValue
    accumulate: EmittedValue
    lists: list[EmittedValue]

    def emit(self, wide: Tile, medium: Tile | None, lanes: int) -> EmittedValue:
        """Call the widest tile that columns fill by more than half; returns its width."""
        b = self.builder
        width, other = b.constant(I64, lanes), b.address("narrow")
        for tile, name in ((medium, "medium"), (wide, "wide")):
            if tile is not None:
                full = tile.vectors * lanes
                fits = self.columns > full // 2
                width, other = fits.select(full, width), fits.select(b.address(name), other)
        columns = smaller(self.columns, width)
        b_row = self.size[Field.B_ROW]

        def pack() -> list[EmittedValue]:
            b.call("pack", [self.table, self.depth, self.b, self.packed, width, columns])
            return [self.packed, width]

        single = self.size[Field.COLUMNS].eq(1)
        panel = b.if_else(self.size[Field.B_COLUMN].eq(1) | single, lambda: [self.b, b_row], pack)
        contiguous = single & self.a_column.eq(1) & b_row.eq(1)
        kernel = contiguous.select(b.address("dot"), other)
        operands = [self.a, self.a_row, self.a_column, *panel, self.packed, self.c]
        b.call_pointer(
            kernel,
            VOID,
            [self.table, self.depth, *operands, self.rows, columns, self.accumulate, *self.lists],
        )
        return width
