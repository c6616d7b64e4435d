"""The loops of a matrix product around the micro-kernel: blocks of C in parallel, K blocks, panels of B."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from dualflow.backends.llvm.product.gemm_kernel import (
    LOOP_BODY,
    Field,
    Tile,
    WindowField,
    field,
    minimum,
    routine,
)
from dualflow.backends.llvm.text import I64, PTR, VOID, Builder, EmittedValue, LlvmModule, Type
from dualflow.core.records import NamedTuple, dataclass

_SIZES: Final = (
    *(Field.M, Field.N, Field.K, Field.A_ROW_STRIDE, Field.A_COLUMN_STRIDE, Field.B_ROW_STRIDE),
    *(Field.B_COLUMN_STRIDE, Field.C_ROW_STRIDE, Field.ACCUMULATE, Field.MC, Field.NC, Field.KC),
    *(Field.M_BLOCKS, Field.COPY_STRIDE, Field.THREAD_SCRATCH),
)
"""The parameters that the loops over blocks and panels read."""


def emit_entry(module: LlvmModule, name: str, body: str, *, windows: bool) -> None:
    """Emit the entry function: a parallel loop over blocks, or a serial one without a thread pool.

    If a micro-kernel computes the product alone, there is no loop; it never does if A is ``windows``. The
    table has its address if it does for some sizes: then the product is one block, in K too.
    """
    arguments = ("table", "a", "b", "c", "scratch", "pool", "pfor")
    function = module.function(name, VOID, [(argument, PTR) for argument in arguments])
    builder = function.builder
    table, a, b, c, scratch, pool, pfor = function.args
    swapped = field(builder, table, Field.SWAPPED).ne(0)
    operands = (table, swapped.select(b, a), swapped.select(a, b), c, scratch)
    context = builder.alloca(PTR, len(operands))
    zero = builder.constant(I64, 0)
    one = builder.constant(I64, 1)

    def in_blocks() -> list[EmittedValue]:
        for i, operand in enumerate(operands):
            builder.store(operand, context, i)
        blocks = field(builder, table, Field.BLOCKS)

        def serial() -> list[EmittedValue]:
            builder.call(body, [context, zero, blocks, zero])
            return []

        def parallel() -> list[EmittedValue]:
            builder.call_pointer(pfor, VOID, [pool, builder.address(body), context, blocks, one])
            return []

        return builder.if_else(pfor.cast(I64).eq(0) | (blocks < 2), serial, parallel)

    if windows:
        in_blocks()
    else:
        alone = routine(builder, table, Field.ALONE)
        size = partial(field, builder, table)
        has_loops = alone.cast(I64).eq(0) | size(Field.BLOCKS).ne(1) | (size(Field.K) > size(Field.KC))
        builder.if_else(has_loops, in_blocks, partial(_call_alone, builder, alone, operands))
    builder.ret()


def _call_alone(
    builder: Builder, kernel: EmittedValue, operands: Sequence[EmittedValue]
) -> list[EmittedValue]:
    """Emit the call of a micro-kernel for the whole product, with the arguments that the loops would pass."""
    table, a, b, c, scratch = operands
    size = partial(field, builder, table)
    a_block = [a, size(Field.A_ROW_STRIDE), size(Field.A_COLUMN_STRIDE)]
    counts = [size(Field.M), size(Field.N), size(Field.ACCUMULATE)]
    arguments = [table, size(Field.K), *a_block, b, size(Field.B_ROW_STRIDE), scratch, c, *counts]
    builder.call_pointer(kernel, VOID, arguments)
    return []


def emit_blocks(
    module: LlvmModule,
    name: str,
    tiles: tuple[Tile, Tile | None],
    element: Type,
    lanes: int,
    *,
    windows: tuple[int, int] | None,
) -> None:
    """Emit the body of the parallel loop: the blocks ``low`` to ``high`` of C, on one thread::

        for block in low .. high:                 # rows i .. i + mc and columns j .. j + nc of C
            for p in 0, kc, 2 kc, ... below K:    # K blocks
                copy A[i : i + mc, p : p + kc]    # if A is windows, or its columns conflict in a cache
                for q in j, j + nr, ... below j + nc:
                    pack B[p : p + kc, q : q + nr]                        # unless the micro-kernel packs it
                    C[i : i + mc, q : q + nr] += A[i : i + mc, p : p + kc] @ packed        # micro-kernel

    The first K block assigns C, or adds to it if the product accumulates. ``windows`` are the lengths of the
    lists of offsets if A is windows of a tensor; else None.
    """
    function = module.function(name, VOID, LOOP_BODY, internal=True)
    builder = function.builder
    context, low, high, thread = function.args
    operands = _Operands(*[builder.load(context, i, PTR) for i in range(5)])
    size = {which: field(builder, operands.table, which) for which in _SIZES}
    nr = tiles[0].vectors * lanes
    packed = builder.offset(operands.scratch, thread * size[Field.THREAD_SCRATCH], element)
    copy = builder.offset(packed, size[Field.KC] * nr, element)
    lists = [builder.alloca(I64, length) for length in windows or ()]
    with builder.loop(low, high, frozen=True) as iteration:
        block = _block_of_c(iteration.index.frozen(), size)
        # An empty K has one K block too, which writes the zeros.
        k_end = (size[Field.K] < 1).select(1, size[Field.K])
        with builder.loop(0, k_end, size[Field.KC], frozen=True) as k_block:
            p = k_block.index.frozen()
            depth = minimum(size[Field.K] - p, size[Field.KC])
            accumulate = (p > 0).select(1, size[Field.ACCUMULATE])
            a_block = _a_block(
                builder, operands, size, copy, (block.i, p), (depth, block.rows), element, lists
            )
            with builder.while_loop([block.j]) as panel:
                q = panel.carried[0].frozen()
                panel.test(q < block.j_end)
                b_start = p * size[Field.B_ROW_STRIDE] + q * size[Field.B_COLUMN_STRIDE]
                b_panel = builder.offset(operands.b, b_start, element)
                c_panel = builder.offset(operands.c, block.i * size[Field.C_ROW_STRIDE] + q, element)
                product = _PanelProduct(
                    builder=builder,
                    table=operands.table,
                    size=size,
                    a_block=a_block,
                    b_panel=b_panel,
                    packed=packed,
                    c_panel=c_panel,
                    depth=depth,
                    rows=block.rows,
                    columns=block.j_end - q,
                    accumulate=accumulate,
                    lists=lists,
                )
                panel.next(q + product.emit(*tiles, lanes))
    builder.ret()


class _Operands(NamedTuple):
    """The pointers of the context: the parameters, the matrices, and the scratch memory of all threads."""

    table: EmittedValue
    a: EmittedValue
    b: EmittedValue
    c: EmittedValue
    scratch: EmittedValue


class _BlockOfC(NamedTuple):
    """A block of C: its first row and column, the column after its last, and the number of its rows."""

    i: EmittedValue
    j: EmittedValue
    j_end: EmittedValue
    rows: EmittedValue


def _block_of_c(block: EmittedValue, size: dict[Field, EmittedValue]) -> _BlockOfC:
    """The block of C with a number; numbers go down the columns."""
    column_block = block.quotient(size[Field.M_BLOCKS])
    i = (block - column_block * size[Field.M_BLOCKS]) * size[Field.MC]
    j = column_block * size[Field.NC]
    j_end = minimum(j + size[Field.NC], size[Field.N])
    return _BlockOfC(i, j, j_end, minimum(size[Field.MC], size[Field.M] - i))


def _a_block(
    builder: Builder,
    operands: _Operands,
    size: dict[Field, EmittedValue],
    copy: EmittedValue,
    first: tuple[EmittedValue, EmittedValue],
    counts: tuple[EmittedValue, EmittedValue],
    element: Type,
    lists: Sequence[EmittedValue],
) -> list[EmittedValue]:
    """The address and strides of the block of A from row and column ``first`` on, copied where required.

    ``counts`` are its columns and rows; ``lists`` are those of offsets if A is windows of a tensor.
    """
    (i, p), (depth, rows) = first, counts
    if lists:
        arguments = [operands.table, operands.a, copy, depth, rows, p, i, *lists]
        builder.call_pointer(routine(builder, operands.table, Field.COPY), VOID, arguments)
        return _copied_windows(builder, operands.table, size, copy)
    offset = i * size[Field.A_ROW_STRIDE] + p * size[Field.A_COLUMN_STRIDE]
    start = builder.offset(operands.a, offset, element)
    return _copied_if_required(builder, operands.table, size, start, copy, counts)


def _copied_if_required(
    builder: Builder,
    table: EmittedValue,
    size: dict[Field, EmittedValue],
    a_block: EmittedValue,
    copy: EmittedValue,
    counts: tuple[EmittedValue, EmittedValue],
) -> list[EmittedValue]:
    """The address and strides of a block of A, which is packed first if a copy stride is set."""

    def copied() -> list[EmittedValue]:
        depth, rows = counts
        builder.call_pointer(routine(builder, table, Field.COPY), VOID, [table, depth, a_block, copy, rows])
        return [copy, builder.constant(I64, 1), size[Field.COPY_STRIDE]]

    in_place = [a_block, size[Field.A_ROW_STRIDE], size[Field.A_COLUMN_STRIDE]]
    return builder.if_else(size[Field.COPY_STRIDE].ne(0), copied, lambda: in_place)


def _copied_windows(
    builder: Builder, table: EmittedValue, size: dict[Field, EmittedValue], copy: EmittedValue
) -> list[EmittedValue]:
    """The address and strides of the copy of windows (im2col); strides of 0 if whole lines were copied."""
    by_window, one = field(builder, table, WindowField.BY_WINDOW).ne(0), builder.constant(I64, 1)
    stride, lines = size[Field.COPY_STRIDE], field(builder, table, WindowField.LINES).ne(0)
    strides = by_window.select(stride, one), by_window.select(one, stride)
    return [copy, *[lines.select(0, n) for n in strides]]


@dataclass(frozen=True, slots=True)
class _PanelProduct:
    """The product of a block of A and a panel of B, which the micro-kernel computes.

    Attributes:
        a_block: the address, row stride and column stride of the block of A.
        b_panel: the address of the first element of the panel in B.
        packed: the memory for the packed panel.
        c_panel: the address of the first element of the result in C.
        depth: the rows of the panel, at most kc.
        rows: the rows of the block of A, at most mc.
        columns: the columns from the panel on that the block of C has left.
        accumulate: 1 to add to C, 0 to assign it.
        lists: the lists of offsets if A is windows of a tensor; else empty.
    """

    builder: Builder
    table: EmittedValue
    size: dict[Field, EmittedValue]
    a_block: list[EmittedValue]
    b_panel: EmittedValue
    packed: EmittedValue
    c_panel: EmittedValue
    depth: EmittedValue
    rows: EmittedValue
    columns: EmittedValue
    accumulate: EmittedValue
    lists: list[EmittedValue]

    def emit(self, wide: Tile, medium: Tile | None, lanes: int) -> EmittedValue:
        """Call the micro-kernel whose tile is the widest that is more than half full; returns its width."""
        builder = self.builder
        width, kernel = builder.constant(I64, lanes), routine(builder, self.table, Field.NARROW)
        for tile, which in ((medium, Field.MEDIUM), (wide, Field.WIDE)):
            if tile is not None:
                nr = tile.vectors * lanes
                fits = self.columns > nr // 2
                width, kernel = (
                    fits.select(nr, width),
                    fits.select(routine(builder, self.table, which), kernel),
                )
        columns = minimum(self.columns, width)
        row_stride = self.size[Field.B_ROW_STRIDE]

        def pack() -> list[EmittedValue]:
            operands = [self.table, self.depth, self.b_panel, self.packed, width, columns]
            builder.call_pointer(routine(builder, self.table, Field.PACK), VOID, operands)
            return [self.packed, width]

        single_column = self.size[Field.N].eq(1)
        has_contiguous_rows = self.size[Field.B_COLUMN_STRIDE].eq(1) | single_column
        panel = builder.if_else(has_contiguous_rows, lambda: [self.b_panel, row_stride], pack)
        _, _, a_column_stride = self.a_block
        is_dot = single_column & a_column_stride.eq(1) & row_stride.eq(1)
        kernel = is_dot.select(routine(builder, self.table, Field.DOT), kernel)
        operands = [*self.a_block, *panel, self.packed, self.c_panel]
        builder.call_pointer(
            kernel,
            VOID,
            [self.table, self.depth, *operands, self.rows, columns, self.accumulate, *self.lists],
        )
        return width
