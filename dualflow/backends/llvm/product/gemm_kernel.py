"""The micro-kernels of a matrix product: loops over K with a tile of C (mr x nr) in registers.

The names are those of BLIS (Van Zee and van de Geijn, "BLIS: A Framework for Rapidly Instantiating BLAS
Functionality", 2015): C has M rows and N columns, and the inner size is K. A block of C has mc rows and nc
columns, a block of K has depth kc.

Elements of A are loaded with their strides and broadcast to all lanes; rows of B are loaded as vectors,
masked beyond the last column. Beyond the last row of C a tile repeats that row, and stores the same values
twice. Indices are frozen, which keeps LLVM from long searches for induction variables.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from enum import IntEnum, auto
from functools import partial

from dualflow.backends.llvm.product.multiply_add import FLOATS, MultiplyAdd, multiply_add
from dualflow.backends.llvm.text import BOOL, I32, I64, PTR, VOID, Builder, EmittedValue, LlvmModule, Type
from dualflow.core.records import NamedTuple, dataclass


class Field(IntEnum):
    """The index of each parameter in the table of a product; strides are in elements."""

    M = 0
    N = auto()
    K = auto()
    A_ROW_STRIDE = auto()
    A_COLUMN_STRIDE = auto()
    B_ROW_STRIDE = auto()
    B_COLUMN_STRIDE = auto()
    C_ROW_STRIDE = auto()
    ACCUMULATE = auto()  # 1 to add to C
    SCALE = auto()  # the bits of a float
    SWAPPED = auto()  # 1 if A is the caller's b, and B its a, both transposed
    MC = auto()
    NC = auto()
    KC = auto()
    M_BLOCKS = auto()  # the number of blocks along M
    BLOCKS = auto()
    COPY_STRIDE = auto()  # the stride of columns in a copy of A's block, or of copied windows; 0 without copy
    THREAD_SCRATCH = auto()  # the scratch memory of one thread, in elements
    # The addresses of routines with modules of their own, 0 for those that the product doesn't call.
    NARROW = auto()  # the micro-kernel for the last columns of a block
    DOT = auto()  # the micro-kernel for one column
    PACK = auto()  # packs a panel of B
    COPY = auto()  # copies a block of A, which may be windows
    WIDE = auto()  # the micro-kernel of the widest tile
    MEDIUM = auto()  # the micro-kernel of a tile of half the width, for windows
    ALONE = auto()  # the micro-kernel that computes the whole product in one call


class WindowField(IntEnum):
    """The parameters after those of :class:`Field` if A is windows of a tensor; strides are in elements.

    Pieces of the tensor are copied: windows, or whole lines. Each of the fields from ``COUNT`` on has three
    numbers, for the axes from the outermost in; a grid of offsets has four strides too.
    """

    BY_WINDOW = len(Field)  # 1 if windows are rows of A, 0 if they are columns
    LINES = BY_WINDOW + 1  # the number of lines of a window; 0 if each window is copied separately
    IMAGE = BY_WINDOW + 2  # the stride of the batch
    CHANNELS = BY_WINDOW + 3
    SPAN = BY_WINDOW + 4  # contiguous positions on the last axis in a run of a piece
    COUNT = BY_WINDOW + 5
    SIZE = BY_WINDOW + 8
    AXIS_STRIDE = BY_WINDOW + 11
    STRIDE = BY_WINDOW + 14
    BEFORE = BY_WINDOW + 17
    LENGTH = BY_WINDOW + 20  # of a piece, counted in runs
    DILATION = BY_WINDOW + 23
    WINDOW_OFFSETS = BY_WINDOW + 26  # offsets of windows in the copy: three sizes, four strides
    ELEMENT_OFFSETS = BY_WINDOW + 33  # offsets of elements from the beginning of their window


class ColumnRun(IntEnum):
    """The layout of the list of A's columns if A is windows: they are grouped in runs of equal stride.

    The offsets of the runs' first columns are in the list from ``OFFSETS`` on.
    """

    FIRST = 0  # columns of the first run
    EACH = auto()  # columns of the other runs
    STEP = auto()  # the stride of a run's columns
    OFFSETS = auto()


class Tile(NamedTuple):
    """A register tile of C: mr = ``rows``, nr = ``vectors`` times the lanes of a vector."""

    rows: int
    vectors: int


ARGUMENTS = (
    ("table", PTR),
    ("depth", I64),
    ("a", PTR),
    ("a_row_stride", I64),
    ("a_column_stride", I64),
    ("b", PTR),
    ("b_row_stride", I64),
    ("packed", PTR),
    ("c", PTR),
    ("rows", I64),
    ("columns", I64),
    ("accumulate", I64),
)
"""The arguments of every micro-kernel: pointers to the first elements, and the rows and columns of C."""


class KernelArgs(NamedTuple):
    """The values of :data:`ARGUMENTS` in a micro-kernel."""

    table: EmittedValue
    depth: EmittedValue
    a: EmittedValue
    a_row_stride: EmittedValue
    a_column_stride: EmittedValue
    b: EmittedValue
    b_row_stride: EmittedValue
    packed: EmittedValue
    c: EmittedValue
    rows: EmittedValue
    columns: EmittedValue
    accumulate: EmittedValue


ROUTINE = tuple([(name, PTR) for name in ("table", "x", "y", "out", "scratch", "pool", "pfor")])
"""The arguments of a routine for ``out = x @ y``; ``pool`` and ``pfor`` are null if it runs on one thread."""
LOOP_BODY = (("context", PTR), ("low", I64), ("high", I64), ("thread", I64))
"""The arguments of the body of a parallel loop: see ``runtime/pool.ll``."""
LISTS = (("row_offsets", PTR), ("runs", PTR))
"""More arguments if A is windows: offsets of rows, and of columns as :class:`ColumnRun`."""


def field(builder: Builder, table: EmittedValue, which: Field | WindowField, axis: int = 0) -> EmittedValue:
    """Load a parameter of the table; ``axis`` selects a number of a field that has one for each axis."""
    return builder.load(table, int(which) + axis, I64)


def routine(builder: Builder, table: EmittedValue, which: Field) -> EmittedValue:
    """Load the address of a routine from the table."""
    return builder.load(table, int(which), PTR)


def scale(builder: Builder, table: EmittedValue, element: Type) -> EmittedValue:
    """Load the factor of the product."""
    return builder.load(table, Field.SCALE * 64 // element.bits, element)


def minimum(left: EmittedValue, right: EmittedValue | int) -> EmittedValue:
    """The smaller of two integers."""
    return (left < right).select(left, right)


def has_mask_registers(vector: Type) -> bool:
    """Whether vectors of this width have masks in registers; stores with other masks take tens of cycles."""
    return vector.bits * vector.lanes >= 512


def emit_tiles(
    module: LlvmModule,
    name: str,
    tile: Tile,
    element: Type,
    lanes: int,
    *,
    products: MultiplyAdd = FLOATS,
    packing: bool = False,
    windows: bool = False,
) -> None:
    """Emit a micro-kernel: ``c = scale * (a @ b) + accumulate * c`` for a panel of at most nr columns::

        for i in 0, mr, 2 mr, ... below rows:
            tile = 0                                     # mr x nr sums, in registers
            for p in 0 .. depth:
                row = b[p, 0 : nr]                       # in vectors
                for r in 0 .. mr:
                    tile[r] += broadcast(a[i + r, p]) * row
            c[i : i + mr, 0 : nr] = scale * tile + accumulate * c[i : i + mr, 0 : nr]

    With ``packing``, the first tile also copies the rows of B to ``packed``, contiguously and as wide as the
    tile, and the other tiles read the copy; if ``b`` is ``packed``, B is packed already. If A is ``windows``
    of a tensor, lists have the offsets of its rows and columns.
    """
    arguments = (*ARGUMENTS, *(LISTS if windows else ()))
    function = module.function(name, VOID, arguments)
    builder = function.builder
    args = KernelArgs(*function.args[: len(ARGUMENTS)])
    lists = function.args[len(ARGUMENTS) :]
    runs = lists[1] if windows else None
    a_step = args.a_column_stride if runs is None else builder.load(runs, ColumnRun.STEP, I64)
    c_row_stride = field(builder, args.table, Field.C_ROW_STRIDE)
    factor = scale(builder, args.table, element).splat(lanes)
    vectors = _row_vectors(builder, args, tile, lanes)
    nr = builder.constant(I64, tile.vectors * lanes)
    loop = _DepthLoop(builder, element, products, tile, vectors, args.depth, a_step, args.packed, nr, runs)
    with builder.loop(0, args.rows, tile.rows, frozen=True) as iteration:
        i = iteration.index
        rows_in_tile = [minimum(args.rows - i - 1, r) for r in range(tile.rows)]
        a_offsets = _a_offsets(builder, args, i, rows_in_tile, lists)
        c_rows = [builder.offset(args.c, ((i + r) * c_row_stride).frozen(), element) for r in rows_in_tile]
        addresses = [builder.offset(c_row, start, element) for c_row in c_rows for start in vectors.starts]
        for address in addresses:  # loaded by the time that the sums are computed
            builder.prefetch(address)
        a_start = args.a if windows else builder.offset(args.a, (i * args.a_row_stride).frozen(), element)
        sums = _tile_sums(loop, args, _ARows(a_start, a_offsets), i, packing=packing)
        _update_tile(loop, args, addresses, sums, factor)
    builder.ret()


class _RowVectors(NamedTuple):
    """The vectors that hold a row of the tile.

    Attributes:
        starts: the first column of each.
        masks: the lanes of each that are columns of C.
        accumulate_masks: the lanes of each that are added to C; none if the product assigns C.
    """

    starts: list[int]
    masks: list[EmittedValue]
    accumulate_masks: list[EmittedValue]


def _row_vectors(builder: Builder, args: KernelArgs, tile: Tile, lanes: int) -> _RowVectors:
    """Emit the masks of the vectors of a row."""
    starts = [v * lanes for v in range(tile.vectors)]
    masks = [builder.iota(I32.vector(lanes)) < args.columns.cast(I32) - start for start in starts]
    none = builder.constant(BOOL.vector(lanes), False)
    return _RowVectors(starts, masks, [args.accumulate.ne(0).select(mask, none) for mask in masks])


def _a_offsets(
    builder: Builder,
    args: KernelArgs,
    i: EmittedValue,
    rows_in_tile: list[EmittedValue],
    lists: Sequence[EmittedValue],
) -> list[EmittedValue]:
    """The offsets of a tile's rows of A: from its first row, or those that ``lists`` has for windows."""
    if lists:
        return [builder.load(lists[0], i + r, I64).frozen() for r in rows_in_tile]
    return [(r * args.a_row_stride).frozen() for r in rows_in_tile]


def _tile_sums(
    loop: _DepthLoop, args: KernelArgs, a_rows: _ARows, i: EmittedValue, *, packing: bool
) -> list[EmittedValue]:
    """Emit the sums of the tile whose first row is ``i``; with ``packing`` the first tile packs B."""
    if not packing:
        return loop.emit(a_rows, args.b, args.b_row_stride, copy=False)
    return loop.builder.if_else(
        i.eq(0) & args.b.cast(I64).ne(args.packed.cast(I64)),
        partial(loop.emit, a_rows, args.b, args.b_row_stride, copy=True),
        partial(loop.emit, a_rows, args.packed, loop.nr, copy=False),
    )


def _update_tile(
    loop: _DepthLoop,
    args: KernelArgs,
    addresses: list[EmittedValue],
    sums: list[EmittedValue],
    factor: EmittedValue,
) -> None:
    """Emit ``c = factor * sums + accumulate * c`` for the vectors of C at ``addresses``.

    All of them are read before one is written, since a row may be repeated.
    """
    builder, tile, vectors = loop.builder, loop.tile, loop.vectors
    vector = factor.type
    old = [
        builder.load(address, 0, vector, mask)
        for address, mask in zip(addresses, vectors.accumulate_masks * tile.rows, strict=True)
    ]
    new = [multiply_add(total, factor, before) for total, before in zip(sums, old, strict=True)]
    stores = list(zip(new, addresses, vectors.masks * tile.rows, strict=True))
    if has_mask_registers(vector):
        _store_all(builder, stores)
        return
    builder.if_else(
        args.columns < tile.vectors * vector.lanes,
        partial(_store_all, builder, stores),
        partial(_store_all, builder, [(value, address, None) for value, address, _ in stores]),
    )


def _store_all(
    builder: Builder, stores: Sequence[tuple[EmittedValue, EmittedValue, EmittedValue | None]]
) -> list[EmittedValue]:
    """Emit stores of values to addresses, with masks; returns no values."""
    for value, address, mask in stores:
        builder.store(value, address, 0, mask)
    return []


_ColumnLoop = Callable[[EmittedValue, EmittedValue, list[EmittedValue]], list[EmittedValue]]
"""Emits the loop over columns of A, from an address on; the arguments: address, length, carried values."""


class _ARows(NamedTuple):
    """The rows of A of one tile: the address of the first element, and the offset of each row from it."""

    start: EmittedValue
    offsets: list[EmittedValue]


@dataclass(frozen=True, slots=True)
class _DepthLoop:
    """Emits the loop of a micro-kernel over the depth of a K block.

    Attributes:
        products: the multiply-add of elements.
        vectors: the vectors of a row of the tile.
        depth: the number of iterations.
        a_step: the stride from a column of A to the next.
        packed: the memory for a packed panel of B.
        nr: the width of a packed row.
        runs: the list of A's columns as :class:`ColumnRun`, if A is windows; else None.
    """

    builder: Builder
    element: Type
    products: MultiplyAdd
    tile: Tile
    vectors: _RowVectors
    depth: EmittedValue
    a_step: EmittedValue
    packed: EmittedValue
    nr: EmittedValue
    runs: EmittedValue | None

    def emit(
        self, a_rows: _ARows, b: EmittedValue, b_row_stride: EmittedValue, *, copy: bool
    ) -> list[EmittedValue]:
        """Emit the loop; returns the sums of the tile, row by row. ``copy`` also packs the rows of B."""
        builder, tile = self.builder, self.tile
        vector = self.element.vector(self.vectors.masks[0].type.lanes)

        def add_columns(
            a: EmittedValue, length: EmittedValue, carried: list[EmittedValue]
        ) -> list[EmittedValue]:
            """Emit the loop over ``length`` columns of A of equal stride, from the address ``a`` on."""
            with builder.loop(0, length, carried=[a, *carried], frozen=True) as step:
                a_column, b_row, target, *sums = step.carried
                row_vectors = [
                    builder.load(b_row, start, vector, mask)
                    for start, mask in zip(self.vectors.starts, self.vectors.masks, strict=True)
                ]
                if copy:
                    for value, start in zip(row_vectors, self.vectors.starts, strict=True):
                        builder.store(value, target, start)
                    target = builder.offset(target, self.nr, self.element).frozen()
                broadcast = [
                    builder.load(a_column, offset, self.element).splat(vector.lanes)
                    for offset in a_rows.offsets
                ]
                products = self.products
                lefts, rights = map(products.left, broadcast), list(map(products.right, row_vectors))
                factors = [(x, y) for x in lefts for y in rights]
                sums = [products.add(x, y, total) for (x, y), total in zip(factors, sums, strict=True)]
                next_column = builder.offset(a_column, self.a_step, self.element).frozen()
                next_row = builder.offset(b_row, b_row_stride, self.element).frozen()
                step.next(next_column, next_row, target, *sums)
            _, *after = step.results
            return after

        zeros = [builder.constant(vector, 0.0)] * (tile.rows * tile.vectors)
        initial = [b, self.packed, *zeros]
        if self.runs is None:
            _, _, *sums = add_columns(a_rows.start, self.depth, initial)
        else:
            _, _, *sums = _over_runs(
                builder, a_rows.start, self.depth, self.runs, self.element, initial, add_columns
            )
        return sums


def _over_runs(
    builder: Builder,
    a: EmittedValue,
    depth: EmittedValue,
    runs: EmittedValue,
    element: Type,
    initial: list[EmittedValue],
    add_columns: _ColumnLoop,
) -> list[EmittedValue]:
    """Emit a loop over the runs of A's columns: calls ``add_columns(address, length, carried)`` for each."""
    other_length = builder.load(runs, ColumnRun.EACH, I64)
    first_length = builder.load(runs, ColumnRun.FIRST, I64)
    with builder.while_loop([builder.constant(I64, 0), first_length, runs, *initial]) as iteration:
        done, run_length, run, *carried = iteration.carried
        iteration.test(done < depth)
        length = minimum(depth - done, run_length)
        start = builder.offset(a, builder.load(run, ColumnRun.OFFSETS, I64), element)
        results = add_columns(start, length, carried)
        iteration.next(done + length, other_length, builder.offset(run, 1, I64), *results)
    _, _, _, *after = iteration.results
    return after


def emit_dot(
    module: LlvmModule,
    name: str,
    rows_at_once: int,
    element: Type,
    lanes: int,
    *,
    products: MultiplyAdd,
    windows: bool,
) -> None:
    """Emit the micro-kernel for one column of C, where rows of A and the column of B are contiguous.

    Each of ``rows_at_once`` dot products has a vector of sums, which are added in pairs at the end.
    """
    function = module.function(name, VOID, (*ARGUMENTS, *(LISTS if windows else ())))
    builder = function.builder
    args = KernelArgs(*function.args[: len(ARGUMENTS)])
    depth, rows, c = args.depth, args.rows, args.c
    c_row_stride = field(builder, args.table, Field.C_ROW_STRIDE)
    factor = scale(builder, args.table, element)
    vector = element.vector(lanes)
    zeros = [builder.constant(vector, 0.0)] * rows_at_once
    with builder.loop(0, rows, rows_at_once, frozen=True) as iteration:
        i = iteration.index
        row_indices = [(i + minimum(rows - i - 1, r)).frozen() for r in range(rows_at_once)]
        a_rows = [builder.offset(args.a, row * args.a_row_stride, element) for row in row_indices]
        with builder.loop(0, depth, lanes, carried=zeros, frozen=True) as step:
            mask = builder.first_lanes(depth - step.index, lanes)
            b_part = builder.load(args.b, step.index, vector, mask)
            a_parts = [builder.load(a_row, step.index, vector, mask) for a_row in a_rows]
            lefts, right = map(products.left, a_parts), products.right(b_part)
            step.next(*[products.add(x, right, total) for x, total in zip(lefts, step.carried, strict=True)])
        old = [
            args.accumulate.ne(0).select(builder.load(c, row * c_row_stride, element), 0.0)
            for row in row_indices
        ]
        sums = [total.reduce(operator.add) for total in step.results]
        new = [multiply_add(total, factor, before) for total, before in zip(sums, old, strict=True)]
        for value, row in zip(new, row_indices, strict=True):
            builder.store(value, c, row * c_row_stride)
    builder.ret()
