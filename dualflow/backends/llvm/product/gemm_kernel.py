"""The micro-kernels of a matrix product: loops over K with a tile of C in registers.

Elements of A are loaded with their strides and broadcast to all lanes; rows of B are loaded as vectors,
masked beyond the last column. Beyond the last row of C a tile repeats that row, and stores the same values
twice.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from enum import IntEnum, auto

from dualflow.backends.llvm.text import BOOL, I32, I64, PTR, VOID, Builder, EmittedValue, LlvmModule, Type
from dualflow.core.records import NamedTuple


class Field(IntEnum):
    """The index of each parameter in the table of a product; strides are in elements."""

    ROWS = 0
    COLUMNS = auto()
    DEPTH = auto()
    A_ROW = auto()
    A_COLUMN = auto()
    B_ROW = auto()
    B_COLUMN = auto()
    C_ROW = auto()
    ACCUMULATE = auto()  # 1 to add to C
    SCALE = auto()  # the bits of a float
    SWAPPED = auto()  # 1 if A is the caller's b, and B its a, both transposed
    BLOCK_ROWS = auto()
    BLOCK_COLUMNS = auto()
    BLOCK_DEPTH = auto()
    ROW_BLOCKS = auto()  # the number of blocks in a column of blocks
    BLOCKS = auto()
    COPY_ROW = auto()  # row stride of a transposed copy of A's block; 0 to read A in place
    SLOT = auto()  # scratch elements of one thread


class WindowField(IntEnum):
    """The parameters after these if A is windows of a tensor; strides are in elements.

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
    """The layout of the list of A's columns, which are grouped in runs of equally spaced columns.

    The offsets of the runs' first columns are in the list from ``OFFSETS`` on.
    """

    FIRST = 0  # columns of the first run
    EACH = auto()  # columns of the other runs
    STEP = auto()  # the stride of a run's columns
    OFFSETS = auto()


class Tile(NamedTuple):
    """A register tile of C: ``rows`` rows of ``vectors`` vectors."""

    rows: int
    vectors: int


ARGUMENTS = (
    ("table", PTR),
    ("depth", I64),
    ("a", PTR),
    ("a_row", I64),
    ("a_column", I64),
    ("b", PTR),
    ("b_row", I64),
    ("packed", PTR),
    ("c", PTR),
    ("rows", I64),
    ("columns", I64),
    ("accumulate", I64),
)
"""The arguments of every micro-kernel: pointers to the first elements, and the rows and columns of C."""
LISTS = (("places", PTR), ("runs", PTR))
"""More arguments if A is windows: offsets of rows, and of columns as :class:`ColumnRun`."""


def field(b: Builder, table: EmittedValue, which: Field | WindowField, axis: int = 0) -> EmittedValue:
    """Load a parameter of the table."""
    return b.load(table, int(which) + axis, I64)


def scale(b: Builder, table: EmittedValue, element: Type) -> EmittedValue:
    """Load the scale of the product."""
    return b.load(table, Field.SCALE * 64 // element.bits, element)


def smaller(left: EmittedValue, right: EmittedValue | int) -> EmittedValue:
    """The smaller of two integers."""
    return (left < right).select(left, right)


def multiply_add(left: EmittedValue, right: EmittedValue, term: EmittedValue) -> EmittedValue:
    """``left * right + term``: one instruction if the processor has FMA, else two; never a call."""
    return left.emitter.intrinsic("llvm.fmuladd", left, right, term)


def opaque(value: EmittedValue) -> EmittedValue:
    """The same integer, frozen: keeps LLVM from long searches for induction variables."""
    return value.emitter.emit(value.type, f"freeze {value.type} {value.text}")


def emit_tiles(
    module: LlvmModule,
    name: str,
    tile: Tile,
    element: Type,
    lanes: int,
    *,
    packing: bool = False,
    windows: bool = False,
) -> None:
    """Emit ``c[:rows, :columns] = scale * (a @ b) + accumulate * c``, for at most a tile's columns.

    With ``packing``, the first tile of rows also copies the rows of B to ``packed``, contiguously and as wide
    as the tile, and the other rows read the copy; if ``b`` is ``packed``, B is packed already. If A is
    ``windows``, lists have the offsets of its rows and columns.
    """
    function = module.function(name, VOID, (*ARGUMENTS, *(LISTS if windows else ())), internal=True)
    b = function.builder
    table, depth, a, a_row, a_column, source, b_row, packed, c, rows, columns, accumulate, *lists = (
        function.args
    )
    onward = b.load(lists[1], ColumnRun.STEP, I64) if windows else a_column
    c_row, factor = field(b, table, Field.C_ROW), scale(b, table, element).splat(lanes)
    vector = element.vector(lanes)
    spans = [j * lanes for j in range(tile.vectors)]
    masks = [b.iota(I32.vector(lanes)) < columns.cast(I32) - span for span in spans]
    masks_of_old = [accumulate.ne(0).select(mask, b.constant(BOOL.vector(lanes), False)) for mask in masks]
    width = b.constant(I64, tile.vectors * lanes)

    def sums(
        at_a: EmittedValue,
        across: list[EmittedValue],
        line: EmittedValue,
        distance: EmittedValue,
        *,
        copy: bool,
    ) -> list[EmittedValue]:
        """The sums of a tile, for rows of B from ``line`` on with a stride of ``distance``."""

        def run(first: EmittedValue, length: EmittedValue, initial: list[EmittedValue]) -> list[EmittedValue]:
            """Accumulate over equally spaced columns of A."""
            with b.loop(0, length, carried=[first, *initial]) as step:
                left, right, target, *terms = step.carried
                parts = [b.load(right, span, vector, mask) for span, mask in zip(spans, masks, strict=True)]
                if copy:
                    for part, span in zip(parts, spans, strict=True):
                        b.store(part, target, span)
                    target = b.offset(target, width, element)
                spread = [b.load(left, offset, element).splat(lanes) for offset in across]
                pairs = [(x, y) for x in spread for y in parts]
                terms = [multiply_add(*pair, term) for pair, term in zip(pairs, terms, strict=True)]
                step.next(b.offset(left, onward, element), b.offset(right, distance, element), target, *terms)
            return step.results[1:]

        begin = [line, packed, *[b.constant(vector, 0.0)] * (tile.rows * tile.vectors)]
        _, _, *totals = (
            _over_runs(b, at_a, depth, lists[1], element, begin, run) if windows else run(at_a, depth, begin)
        )
        return totals

    with b.loop(0, rows, tile.rows) as iteration:
        row_offsets = [smaller(rows - iteration.index - 1, i) for i in range(tile.rows)]
        if windows:
            across = [opaque(b.load(lists[0], iteration.index + offset, I64)) for offset in row_offsets]
        else:
            across = [opaque(offset * a_row) for offset in row_offsets]
        down = [b.offset(c, opaque((iteration.index + offset) * c_row), element) for offset in row_offsets]
        targets = [b.offset(row, span, element) for row in down for span in spans]
        for target in targets:  # loaded by the time that the sums are computed
            b.prefetch(target)
        at_a = a if windows else b.offset(a, opaque(iteration.index * a_row), element)
        if packing:
            totals = b.if_else(
                iteration.index.eq(0) & source.cast(I64).ne(packed.cast(I64)),
                lambda: sums(at_a, across, source, b_row, copy=True),
                lambda: sums(at_a, across, packed, width, copy=False),
            )
        else:
            totals = sums(at_a, across, source, b_row, copy=False)
        # All of C is read before it is written, since a row may be repeated.
        before = [b.load(*at, vector, mask) for at, mask in _with_masks(targets, masks_of_old)]
        after = [multiply_add(total, factor, old) for total, old in zip(totals, before, strict=True)]
        for value, (at, mask) in zip(after, _with_masks(targets, masks), strict=True):
            b.store(value, *at, mask)
    b.ret()


def _over_runs(
    b: Builder,
    at_a: EmittedValue,
    depth: EmittedValue,
    runs: EmittedValue,
    element: Type,
    begin: list[EmittedValue],
    run: Callable[[EmittedValue, EmittedValue, list[EmittedValue]], list[EmittedValue]],
) -> list[EmittedValue]:
    """Call ``run(first, length, carried)`` for each run of A's columns."""
    each = b.load(runs, ColumnRun.EACH, I64)
    with b.while_loop([b.constant(I64, 0), b.load(runs, ColumnRun.FIRST, I64), runs, *begin]) as iteration:
        done, most, at, *carried = iteration.carried
        iteration.test(done < depth)
        length = smaller(depth - done, most)
        first = b.offset(at_a, b.load(at, ColumnRun.OFFSETS, I64), element)
        following = run(first, length, carried)
        iteration.next(done + length, each, b.offset(at, 1, I64), *following)
    return iteration.results[3:]


def emit_dot(
    module: LlvmModule, name: str, rows_at_once: int, element: Type, lanes: int, *, windows: bool = False
) -> None:
    """Emit the same for one column, where A and B are contiguous along K."""
    function = module.function(name, VOID, (*ARGUMENTS, *(LISTS if windows else ())), internal=True)
    b = function.builder
    table, depth, a, a_row, _, source, _, _, c, rows, _, accumulate, *_ = function.args
    c_row, factor = field(b, table, Field.C_ROW), scale(b, table, element)
    vector = element.vector(lanes)
    zeros = [b.constant(vector, 0.0)] * rows_at_once
    with b.loop(0, rows, rows_at_once) as iteration:
        row_indices = [
            opaque(iteration.index + smaller(rows - iteration.index - 1, i)) for i in range(rows_at_once)
        ]
        lines = [b.offset(a, row * a_row, element) for row in row_indices]
        with b.loop(0, depth, lanes, carried=zeros) as step:
            mask = b.first_lanes(depth - step.index, lanes)
            right = b.load(source, step.index, vector, mask)
            left = [b.load(line, step.index, vector, mask) for line in lines]
            step.next(*[multiply_add(x, right, total) for x, total in zip(left, step.carried, strict=True)])
        before = [accumulate.ne(0).select(b.load(c, row * c_row, element), 0.0) for row in row_indices]
        sums = [total.reduce(operator.add) for total in step.results]
        after = [multiply_add(total, factor, old) for total, old in zip(sums, before, strict=True)]
        for value, row in zip(after, row_indices, strict=True):
            b.store(value, c, row * c_row)
    b.ret()


def _with_masks(
    addresses: list[EmittedValue], masks: list[EmittedValue]
) -> list[tuple[tuple[EmittedValue, int], EmittedValue]]:
    """The addresses of vectors, row by row, each with the mask of its columns."""
    return [((address, 0), masks[i % len(masks)]) for i, address in enumerate(addresses)]
