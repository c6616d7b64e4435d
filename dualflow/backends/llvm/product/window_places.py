"""A block of windows of a tensor: the copy that it reads, and lists of where rows and columns lie in it."""

from __future__ import annotations

from dualflow.backends.llvm.product.gemm_kernel import LISTS, ColumnRun, Field, WindowField, field, smaller
from dualflow.backends.llvm.product.gemm_windows import following_places, place_inside, places_of
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
_PLACES_ARGUMENTS = (
    ("table", PTR),
    ("which", I64),
    ("first", I64),
    ("count", I64),
    ("base", I64),
    ("every", I64),
    ("target", PTR),
)
_AT_ONCE = 8
"""Places that are written at once, some of them behind the last."""


def list_lengths(rows: int, depth: int) -> tuple[int, int]:
    """How many integers the two lists have, for blocks of at most so many rows and columns."""
    return rows + _AT_ONCE, ColumnRun.PLACES + depth + _AT_ONCE


def emit_windows(module: LlvmModule, name: str) -> None:
    """Copy what a block of A needs, rows from ``top`` and columns from ``start`` on, and list its places.

    Lines have all elements of their windows: where rows are windows, the copy serves all columns.
    """
    function = module.function(name, VOID, ARGUMENTS, internal=True)
    b = function.builder
    table, tensor, copy, depth, rows, start, top, row_places, runs = function.args
    by_window = field(b, table, WindowField.BY_WINDOW).ne(0)
    under, distance = field(b, table, WindowField.LINES), field(b, table, Field.COPY_ROW)
    lines = under.ne(0)
    first, count = by_window.select(top, start), by_window.select(rows, depth)
    low, length = by_window.select(start, top), by_window.select(depth, rows)
    of_windows, of_elements = (b.constant(I64, WindowField[f"{n}_PLACES"]) for n in ("WINDOW", "ELEMENT"))
    line, last = (_GridNumbers(b, table, of_windows).run(number) for number in (first, first + count - 1))
    with b.if_then(~(lines & by_window & (start > 0)) & (count > 0)):
        whole = field(b, table, WindowField.SPAN) * field(b, table, WindowField.CHANNELS)
        pairs = (
            (line.quotient(distance), first),
            ((last - line).quotient(distance) + under, count),
            (b.constant(I64, 0), low),
            (whole, length),
        )
        b.call("pieces", [table, tensor, copy, *[lines.select(*pair) for pair in pairs]])
    base = lines.select(line, first * distance + low)
    one, zero = b.constant(I64, 1), b.constant(I64, 0)
    of_rows, of_columns = by_window.select(of_windows, of_elements), by_window.select(of_elements, of_windows)
    b.call("places", [table, of_rows, top, rows, base, one, row_places])
    columns = _GridNumbers(b, table, of_columns)
    for which, number in (
        (ColumnRun.FIRST, columns.each - places_of(start, columns.sizes)[-1]),
        (ColumnRun.EACH, columns.each),
        (ColumnRun.STEP, columns.step),
    ):
        b.store(number, runs, which)
    b.call("places", [table, of_columns, start, depth, zero, zero, b.offset(runs, ColumnRun.PLACES, I64)])
    b.ret()


def emit_places(module: LlvmModule, name: str) -> None:
    """List where ``count`` windows or elements lie from number ``first`` on, in distances from ``base``.

    Where ``every`` is 1 all are listed, else the first of each run.
    """
    function = module.function(name, VOID, _PLACES_ARGUMENTS, internal=True)
    b = function.builder
    table, which, first, count, base, every, target = function.args
    places = _GridNumbers(b, table, which)
    onward = b.iota(I64.vector(_AT_ONCE)) * places.step.splat(_AT_ONCE)
    zero = b.constant(I64, 0)
    *outer, within = places_of(first, places.sizes)
    with b.while_loop([zero, zero, within, *outer]) as run:
        index, done, skipped, *at = run.carried
        run.test(done < count)
        length = smaller(places.each - skipped, count - done)
        begin = place_inside([*at, skipped], places.distances) - base
        listed = every.ne(0).select(length, 1)
        with b.loop(0, listed, _AT_ONCE) as iteration:
            here = begin + iteration.index * places.step
            b.store(here.splat(_AT_ONCE) + onward, target, index + iteration.index)
        run.next(index + listed, done + length, zero, *following_places(at, places.sizes[:-1]))
    b.ret()


class _GridNumbers:
    """Where numbered windows, or elements of a window, lie in the copy."""

    def __init__(self, builder: Builder, table: EmittedValue, which: EmittedValue) -> None:
        b = self.builder = builder
        numbers = [b.load(table, which + i, I64) for i in range(7)]
        self.sizes, self.distances = numbers[:3], numbers[3:]

    @property
    def step(self) -> EmittedValue:
        """The distance in a run."""
        return self.distances[-1]

    @property
    def each(self) -> EmittedValue:
        """The length of a run."""
        return self.sizes[-1]

    def run(self, number: EmittedValue) -> EmittedValue:
        """Where the run of a number begins."""
        return place_inside(places_of(number, self.sizes)[:-1], self.distances[:-1])
