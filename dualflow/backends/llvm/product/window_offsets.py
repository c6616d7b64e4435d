"""Emits the preparation of a block of windows: their copy, and lists of the offsets of rows and columns."""

from __future__ import annotations

from dualflow.backends.llvm.product.gemm_kernel import LISTS, ColumnRun, Field, WindowField, field, minimum
from dualflow.backends.llvm.product.gemm_windows import linear_offset, next_index, unravel_index
from dualflow.backends.llvm.text import I64, PTR, VOID, Builder, EmittedValue, LlvmModule
from dualflow.core.records import NamedTuple

ARGUMENTS = (
    ("table", PTR),
    ("tensor", PTR),
    ("copy", PTR),
    ("depth", I64),
    ("rows", I64),
    ("start", I64),
    ("top", I64),
    *LISTS,
)
_OFFSETS_ARGUMENTS = (
    ("table", PTR),
    ("grid", I64),
    ("first", I64),
    ("count", I64),
    ("base", I64),
    ("list_all", I64),
    ("target", PTR),
)
STORE_LANES = 8
"""The number of offsets in a store; the last store may write beyond the list."""


def list_lengths(rows: int, depth: int) -> tuple[int, int]:
    """The lengths of the lists of row and of column offsets of a block of at most ``rows`` by ``depth``."""
    return rows + STORE_LANES, ColumnRun.OFFSETS + depth + STORE_LANES


def emit_windows(module: LlvmModule, name: str, copy_pieces: str, list_offsets: str) -> None:
    """Emit the function that packs a block of A, the matrix of windows, and writes its elements' offsets.

    It calls ``copy_pieces`` and ``list_offsets``, functions of the module. The block begins at row ``top``
    and column ``start``.
    If windows are the rows of A and lines are copied, the first block of columns is copied with all columns.
    """
    function = module.function(name, VOID, ARGUMENTS)
    builder = function.builder
    table, tensor, copy, depth, rows, start, top, row_offsets, runs = function.args
    by_window = field(builder, table, WindowField.BY_WINDOW).ne(0)
    lines_per_window = field(builder, table, WindowField.LINES)
    copy_stride = field(builder, table, Field.COPY_STRIDE)
    copies_lines = lines_per_window.ne(0)
    block_rows, block_columns = _EmittedRange(top, rows), _EmittedRange(start, depth)
    windows = _select_range(by_window, block_rows, block_columns)
    elements = _select_range(by_window, block_columns, block_rows)
    windows_field, elements_field = (
        builder.constant(I64, WindowField[f"{n}_OFFSETS"]) for n in ("WINDOW", "ELEMENT")
    )
    first_line, last_line = (
        _EmittedGrid(builder, table, windows_field).run(number)
        for number in (windows.first, windows.first + windows.size - 1)
    )
    with builder.if_then(~(copies_lines & by_window & (start > 0)) & (windows.size > 0)):
        line_length = field(builder, table, WindowField.SPAN) * field(builder, table, WindowField.CHANNELS)
        pairs = (  # of lines and of windows: the first piece, the number, the first element, the length
            (first_line.quotient(copy_stride), windows.first),
            ((last_line - first_line).quotient(copy_stride) + lines_per_window, windows.size),
            (builder.constant(I64, 0), elements.first),
            (line_length, elements.size),
        )
        builder.call(copy_pieces, [table, tensor, copy, *[copies_lines.select(*pair) for pair in pairs]])
    base = copies_lines.select(first_line, windows.first * copy_stride + elements.first)
    one, zero = builder.constant(I64, 1), builder.constant(I64, 0)
    rows_field = by_window.select(windows_field, elements_field)
    columns_field = by_window.select(elements_field, windows_field)
    builder.call(list_offsets, [table, rows_field, top, rows, base, one, row_offsets])
    columns = _EmittedGrid(builder, table, columns_field)
    for index, number in (
        (ColumnRun.FIRST, columns.run_length - unravel_index(start, columns.sizes)[-1]),
        (ColumnRun.EACH, columns.run_length),
        (ColumnRun.STEP, columns.step),
    ):
        builder.store(number, runs, index)
    builder.call(
        list_offsets,
        [table, columns_field, start, depth, zero, zero, builder.offset(runs, ColumnRun.OFFSETS, I64)],
    )
    builder.ret()


def emit_offsets(module: LlvmModule, name: str) -> None:
    """Emit a list of the offsets of windows or elements ``first`` to ``first + count``, relative to ``base``.

    If ``list_all`` is 1, all are listed; else only the first of each run.
    """
    function = module.function(name, VOID, _OFFSETS_ARGUMENTS, internal=True)
    builder = function.builder
    table, grid_field, first, count, base, list_all, target = function.args
    grid = _EmittedGrid(builder, table, grid_field)
    steps = builder.iota(I64.vector(STORE_LANES)) * grid.step.splat(STORE_LANES)
    zero = builder.constant(I64, 0)
    *outer, within = unravel_index(first, grid.sizes)
    with builder.while_loop([zero, zero, within, *outer]) as run:
        index, done, skipped, *outer_index = run.carried
        run.test(done < count)
        length = minimum(grid.run_length - skipped, count - done)
        begin = linear_offset([*outer_index, skipped], grid.strides) - base
        listed = list_all.ne(0).select(length, 1)
        with builder.loop(0, listed, STORE_LANES) as iteration:
            offset = begin + iteration.index * grid.step
            builder.store(offset.splat(STORE_LANES) + steps, target, index + iteration.index)
        run.next(index + listed, done + length, zero, *next_index(outer_index, grid.sizes[:-1]))
    builder.ret()


class _EmittedRange(NamedTuple):
    """Consecutive numbers of windows, or of elements of a window."""

    first: EmittedValue
    size: EmittedValue


def _select_range(condition: EmittedValue, x: _EmittedRange, y: _EmittedRange) -> _EmittedRange:
    """``x`` if the condition holds, else ``y``."""
    return _EmittedRange(condition.select(x.first, y.first), condition.select(x.size, y.size))


class _EmittedGrid:
    """The sizes and strides of an :class:`OffsetGrid`, loaded from the table at index ``field_index``."""

    def __init__(self, builder: Builder, table: EmittedValue, field_index: EmittedValue) -> None:
        parameters = [builder.load(table, field_index + i, I64) for i in range(7)]
        self.sizes, self.strides = parameters[:3], parameters[3:]

    @property
    def step(self) -> EmittedValue:
        """The stride in a run."""
        return self.strides[-1]

    @property
    def run_length(self) -> EmittedValue:
        """The length of a run."""
        return self.sizes[-1]

    def run(self, number: EmittedValue) -> EmittedValue:
        """The offset of the first element of the run that contains a number."""
        return linear_offset(unravel_index(number, self.sizes)[:-1], self.strides[:-1])
