"""The loops around the inner ones: blocks of C, which threads share out, and in each the panels of B."""

from __future__ import annotations

from dualflow.backends.llvm.product.gemm_kernel import Field, Tile, WindowField, field, opaque, smaller
from dualflow.backends.llvm.text import I64, PTR, VOID, Builder, EmittedValue, LlvmModule, Type
from dualflow.core.records import dataclass


def emit_entry(module: LlvmModule, name: str, body: str) -> None:
    """The function to call: it shares the blocks out, or computes them all where nobody helps."""
    arguments = ("table", "a", "b", "c", "scratch", "pool", "pfor")
    function = module.function(name, VOID, [(argument, PTR) for argument in arguments])
    b = function.builder
    table, x, y, c, scratch, pool, pfor = function.args
    exchanged = field(b, table, Field.EXCHANGED).ne(0)
    operands = (table, exchanged.select(y, x), exchanged.select(x, y), c, scratch)
    context = b.alloca(PTR, len(operands))
    for i, operand in enumerate(operands):
        b.store(operand, context, i)
    blocks, zero, one = field(b, table, Field.BLOCKS), b.constant(I64, 0), b.constant(I64, 1)

    def alone() -> list[EmittedValue]:
        b.call(body, [context, zero, blocks, zero])
        return []

    def shared() -> list[EmittedValue]:
        b.call_pointer(pfor, VOID, [pool, b.address(body), context, blocks, one])
        return []

    b.if_else(pfor.cast(I64).eq(0) | (blocks < 2), alone, shared)
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
    """The body of the parallel loop: blocks ``low`` to ``high`` of C, by the wide tile and smaller ones.

    Where A is windows of a tensor, every block copies its part of it; ``windows`` are the lengths of the
    lists of where they lie.
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
        # An empty K still has one stretch: it writes the zeros.
        stretches = (size[Field.DEPTH] < 1).select(1, size[Field.DEPTH])
        with b.loop(0, stretches, size[Field.BLOCK_DEPTH]) as part:
            start = opaque(part.index)
            depth = smaller(size[Field.DEPTH] - start, size[Field.BLOCK_DEPTH])
            keep = (start > 0).select(1, size[Field.KEEP])
            if windows:
                b.call("windows", [table, a, copy, depth, rows, start, top, *lists])
                at_a, a_row, a_column = _windows(b, table, size, copy)
            else:
                at_a = b.offset(a, top * size[Field.A_ROW] + start * size[Field.A_COLUMN], element)
                at_a, a_row, a_column = _copied(b, table, size, at_a, copy, (depth, rows))
            with b.while_loop([left]) as panel:
                column = opaque(panel.carried[0])
                panel.test(column < right)
                place = start * size[Field.B_ROW] + column * size[Field.B_COLUMN]
                at_b = b.offset(source, place, element)
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
                    keep=keep,
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
    """A block of A, copied if the table says so: its first element, and distances of rows and columns."""

    def copied() -> list[EmittedValue]:
        depth, rows = counts
        b.call("copy", [table, depth, a, copy, rows])
        return [copy, b.constant(I64, 1), size[Field.COPY_ROW]]

    where_it_lies = [a, size[Field.A_ROW], size[Field.A_COLUMN]]
    return b.if_else(size[Field.COPY_ROW].ne(0), copied, lambda: where_it_lies)


def _windows(
    b: Builder, table: EmittedValue, size: dict[Field, EmittedValue], copy: EmittedValue
) -> list[EmittedValue]:
    """The same for a block of windows; lines have no such distances."""
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
    keep: EmittedValue
    lists: list[EmittedValue]

    def emit(self, wide: Tile, medium: Tile | None, lanes: int) -> EmittedValue:
        """Use the widest tile of which columns fill more than half; returns the width of the tile."""
        b = self.builder
        width, other = b.constant(I64, lanes), b.address("narrow")
        for tile, name in ((medium, "medium"), (wide, "wide")):
            if tile is not None:
                full = tile.vectors * lanes
                fills = self.columns > full // 2
                width, other = fills.select(full, width), fills.select(b.address(name), other)
        columns = smaller(self.columns, width)
        b_row = self.size[Field.B_ROW]

        def pack() -> list[EmittedValue]:
            b.call("pack", [self.table, self.depth, self.b, self.packed, width, columns])
            return [self.packed, width]

        single = self.size[Field.COLUMNS].eq(1)
        panel = b.if_else(self.size[Field.B_COLUMN].eq(1) | single, lambda: [self.b, b_row], pack)
        straight = single & self.a_column.eq(1) & b_row.eq(1)
        kernel = straight.select(b.address("dot"), other)
        lies = [self.a, self.a_row, self.a_column, *panel, self.packed, self.c]
        b.call_pointer(
            kernel, VOID, [self.table, self.depth, *lies, self.rows, columns, self.keep, *self.lists]
        )
        return width
