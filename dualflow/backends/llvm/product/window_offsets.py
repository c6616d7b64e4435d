"""Code for a block of windows: copies them, and lists the offsets of rows and columns in the copy."""

from __future__ import annotations

from dualflow.backends.llvm.product.gemm_kernel import LISTS, ColumnRun, Field, WindowField, field, smaller
from dualflow.backends.llvm.product.gemm_windows import linear_offset, next_index, unravel_index
from dualflow.backends.llvm.text import I64, PTR, VOID, Builder, EmittedValue, LlvmModule

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
    ("which", I64),
    ("first", I64),
    ("count", I64),
    ("base", I64),
    ("every", I64),
    ("target", PTR),
)
_AT_ONCE = 8
"""The number of offsets in a store; the last store may write beyond the list."""


def list_lengths(rows: int, depth: int) -> tuple[int, int]:
    """The lengths of the two lists, for blocks of at most ``rows`` rows and ``depth`` columns."""
    return rows + _AT_ONCE, ColumnRun.OFFSETS + depth + _AT_ONCE


def emit_windows(module: LlvmModule, name: str) -> None:
    """Emit the copy of a block of A, from row ``top`` and column ``start`` on, and its lists of offsets.

    Lines have all elements of their windows: if rows are windows, one copy is used for all columns.
    """
    function = module.function(name, VOID, ARGUMENTS, internal=True)
    b = function.builder
    table, tensor, copy, depth, rows, start, top, row_offsets, runs = function.args
    by_window = field(b, table, WindowField.BY_WINDOW).ne(0)
    lines_per_window, distance = field(b, table, WindowField.LINES), field(b, table, Field.COPY_ROW)
    lines = lines_per_window.ne(0)
    first, count = by_window.select(top, start), by_window.select(rows, depth)
    low, length = by_window.select(start, top), by_window.select(depth, rows)
    of_windows, of_elements = (b.constant(I64, WindowField[f"{n}_OFFSETS"]) for n in ("WINDOW", "ELEMENT"))
    line, last = (_EmittedGrid(b, table, of_windows).run(number) for number in (first, first + count - 1))
    with b.if_then(~(lines & by_window & (start > 0)) & (count > 0)):
        line_length = field(b, table, WindowField.SPAN) * field(b, table, WindowField.CHANNELS)
        pairs = (
            (line.quotient(distance), first),
            ((last - line).quotient(distance) + lines_per_window, count),
            (b.constant(I64, 0), low),
            (line_length, length),
        )
        b.call("pieces", [table, tensor, copy, *[lines.select(*pair) for pair in pairs]])
    base = lines.select(line, first * distance + low)
    one, zero = b.constant(I64, 1), b.constant(I64, 0)
    of_rows, of_columns = by_window.select(of_windows, of_elements), by_window.select(of_elements, of_windows)
    b.call("places", [table, of_rows, top, rows, base, one, row_offsets])
    columns = _EmittedGrid(b, table, of_columns)
    for which, number in (
        (ColumnRun.FIRST, columns.run_length - unravel_index(start, columns.sizes)[-1]),
        (ColumnRun.EACH, columns.run_length),
        (ColumnRun.STEP, columns.step),
    ):
        b.store(number, runs, which)
    b.call("places", [table, of_columns, start, depth, zero, zero, b.offset(runs, ColumnRun.OFFSETS, I64)])
    b.ret()


def emit_offsets(module: LlvmModule, name: str) -> None:
    """Emit a list of the offsets of windows or elements ``first`` to ``first + count``, relative to ``base``.

    If ``every`` is 1 all are listed, else the first of each run.
    """
    function = module.function(name, VOID, _OFFSETS_ARGUMENTS, internal=True)
    b = function.builder
    table, which, first, count, base, every, target = function.args
    grid = _EmittedGrid(b, table, which)
    onward = b.iota(I64.vector(_AT_ONCE)) * grid.step.splat(_AT_ONCE)
    zero = b.constant(I64, 0)
    *outer, within = unravel_index(first, grid.sizes)
    with b.while_loop([zero, zero, within, *outer]) as run:
        index, done, skipped, *at = run.carried
        run.test(done < count)
        length = smaller(grid.run_length - skipped, count - done)
        begin = linear_offset([*at, skipped], grid.strides) - base
        listed = every.ne(0).select(length, 1)
        with b.loop(0, listed, _AT_ONCE) as iteration:
            here = begin + iteration.index * grid.step
            b.store(here.splat(_AT_ONCE) + onward, target, index + iteration.index)
        run.next(index + listed, done + length, zero, *next_index(at, grid.sizes[:-1]))
    b.ret()


class _EmittedGrid:
    """The loaded parameters of an :class:`OffsetGrid`."""

    def __init__(self, builder: Builder, table: EmittedValue, which: EmittedValue) -> None:
        b = self.builder = builder
        parameters = [b.load(table, which + i, I64) for i in range(7)]
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
        """The offset of the run that contains a number."""
        return linear_offset(unravel_index(number, self.sizes)[:-1], self.strides[:-1])
