"""Copies of windows of a tensor as blocks of a matrix: each window a row, or each a column."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dualflow.backends.llvm.product.gemm_kernel import Field, WindowField, field, smaller
from dualflow.backends.llvm.text import BOOL, I64, PTR, VOID, Builder, EmittedValue, LlvmModule, Type
from dualflow.schedule.sliding import MOST_AXES, SlidingAxis, SlidingWindows

ARGUMENTS = (
    ("table", PTR),
    ("tensor", PTR),
    ("copy", PTR),
    ("depth", I64),
    ("rows", I64),
    ("start", I64),
    ("top", I64),
)
_ALONE = SlidingAxis(1, 0, 1, 1, 1, 1)
MOST_RUNS = 520
"""A block has no more elements of a window than :data:`dualflow.backends.llvm.product.gemm.DEPTH`."""


def window_numbers(lie: SlidingWindows, by_window: bool) -> list[int]:
    """What the table of a product says of windows, in the order of :class:`WindowField`.

    Elements of a window that are neighbours in the tensor are one run.
    """
    *outer, last = lie.axes
    axes = [_ALONE] * (MOST_AXES - len(lie.axes)) + [*outer, last]
    distances = [math.prod([a.size for a in axes[i + 1 :]]) * lie.channels for i in range(MOST_AXES)]
    span = last.length if last.dilation == 1 else 1
    axes[-1] = last._replace(length=last.length if span == 1 else 1)
    numbers = [int(by_window), axes[0].size * distances[0], lie.channels, span]
    numbers += [a.windows for a in axes] + [a.size for a in axes] + distances + [a.stride for a in axes]
    return numbers + [a.before for a in axes] + [a.length for a in axes] + [a.dilation for a in axes]


def emit_windows(module: LlvmModule, name: str, element: Type, lanes: int) -> None:
    """Write a block of A, rows from ``top`` and columns from ``start`` on, windows one behind another.

    In the copy, window ``i`` of the block begins at element ``i * COPY_ROW``; what lies around the tensor is
    zero.
    """
    function = module.function(name, VOID, ARGUMENTS, internal=True)
    b = function.builder
    table, tensor, copy, depth, rows, start, top = function.args
    by_window = field(b, table, WindowField.BY_WINDOW).ne(0)
    first, count = by_window.select(top, start), by_window.select(rows, depth)
    low, length = by_window.select(start, top), by_window.select(depth, rows)
    axes = range(MOST_AXES)
    counts = [field(b, table, WindowField.COUNT, i) for i in axes]
    strides = [field(b, table, WindowField.STRIDE, i) for i in axes]
    before = [field(b, table, WindowField.BEFORE, i) for i in axes]
    image = field(b, table, WindowField.IMAGE)
    runs = _Runs(b, table, element, lanes, low, low + length)
    distance = field(b, table, Field.COPY_ROW)
    with b.loop(0, count, carried=_places(first, counts)) as turn:
        batch, *places = turn.carried
        begins = [p * s - a for p, s, a in zip(places, strides, before, strict=True)]
        runs.copy(
            b.offset(tensor, batch * image, element), begins, b.offset(copy, turn.index * distance, element)
        )
        turn.next(*_following([batch, *places], counts))
    b.ret()


class _Runs:
    """Copies what lies from element ``low`` to ``high`` of a window, run by run."""

    def __init__(
        self,
        builder: Builder,
        table: EmittedValue,
        element: Type,
        lanes: int,
        low: EmittedValue,
        high: EmittedValue,
    ) -> None:
        b = self.b = builder
        self.element, self.lanes = element, lanes
        axes = range(MOST_AXES)
        self.channels, self.span = (field(b, table, w) for w in (WindowField.CHANNELS, WindowField.SPAN))
        self.sizes = [field(b, table, WindowField.SIZE, i) for i in axes]
        self.distances = [field(b, table, WindowField.DISTANCE, i) for i in axes]
        self.lengths = [field(b, table, WindowField.LENGTH, i) for i in axes]
        self.dilations = [field(b, table, WindowField.DILATION, i) for i in axes]
        self.run = _larger(self.span * self.channels, 1)
        self.first, self.end = low.quotient(self.run), (high + self.run - 1).quotient(self.run)
        _, *self.taps = _places(self.first, self.lengths)
        self.listed = b.alloca(I64, 3 * MOST_RUNS)
        self._list(low, high)

    def _list(self, low: EmittedValue, high: EmittedValue) -> None:
        """Note where each run lies, from the window's first element and in the copy, and how long it is."""
        b = self.b
        with b.loop(self.first, self.end, carried=self.taps) as turn:
            base = turn.index * self.run
            begin, end = _larger(base, low), smaller(base + self.run, high)
            steps = [t * d for t, d in zip(turn.carried, self.dilations, strict=True)]
            place = (turn.index - self.first) * 3
            numbers = (_inner(steps, self.distances) + begin - base, begin - low, end - begin)
            for i, number in enumerate(numbers):
                b.store(number, self.listed, place + i)
            _, *following = _following([b.constant(I64, 0), *turn.carried], self.lengths)
            turn.next(*following)

    def copy(self, image: EmittedValue, begins: Sequence[EmittedValue], line: EmittedValue) -> None:
        """Copy a part of the window whose first element is at ``begins`` of an element of the batch."""
        b = self.b
        origin = b.offset(image, _inner(begins, self.distances), self.element)
        inside = b.constant(BOOL, True)
        for begin, size, reach in zip(begins, self.sizes, self._reaches(), strict=True):
            inside = inside & (begin >= 0) & (begin + reach <= size)

        def every() -> list[EmittedValue]:
            self._inside(origin, line)
            return []

        def some() -> list[EmittedValue]:
            self._across(origin, begins, line)
            return []

        b.if_else(inside, every, some)

    def _reaches(self) -> list[EmittedValue]:
        """How many positions a window spans on each axis."""
        *outer, last = [(n - 1) * d + 1 for n, d in zip(self.lengths, self.dilations, strict=True)]
        return [*outer, last + self.span - 1]

    def _listed(self, index: EmittedValue) -> list[EmittedValue]:
        return [self.b.load(self.listed, index * 3 + i, I64) for i in range(3)]

    def _inside(self, origin: EmittedValue, line: EmittedValue) -> None:
        """Copy a window that lies inside of the tensor."""
        b, lanes, vector = self.b, self.lanes, self.element.vector(self.lanes)
        with b.loop(0, self.end - self.first) as turn:
            place, at, length = self._listed(turn.index)
            source, target = b.offset(origin, place, self.element), b.offset(line, at, self.element)
            full = length & -lanes
            with b.loop(0, full, lanes) as step:
                b.store(b.load(source, step.index, vector), target, step.index)
            with b.if_then(full < length):
                live = b.first_lanes(length - full, lanes)
                b.store(b.load(source, full, vector, live), target, full, live)

    def _across(self, origin: EmittedValue, begins: Sequence[EmittedValue], line: EmittedValue) -> None:
        """Copy a window that reaches beyond the tensor, where it has zeros."""
        b, zero = self.b, self.b.constant(I64, 0)
        with b.loop(self.first, self.end, carried=self.taps) as turn:
            place, at, length = self._listed(turn.index - self.first)
            *outer, last = [p + t * d for p, t, d in zip(begins, turn.carried, self.dilations, strict=True)]
            inside = b.constant(BOOL, True)
            for position, size in zip(outer, self.sizes, strict=False):
                inside = inside & (position >= 0) & (position < size)
            # A window's part may begin within a run: so many elements of it come before.
            skipped = place - _inner(
                [t * d for t, d in zip(turn.carried, self.dilations, strict=True)], self.distances
            )
            since = _larger(-last, 0) * self.channels - skipped
            until = smaller(self.sizes[-1] - last, self.span) * self.channels - skipped
            source, target = b.offset(origin, place, self.element), b.offset(line, at, self.element)
            self._part(source, target, length, since, inside.select(until, 0))
            _, *following = _following([zero, *turn.carried], self.lengths)
            turn.next(*following)

    def _part(
        self,
        source: EmittedValue,
        target: EmittedValue,
        length: EmittedValue,
        since: EmittedValue,
        until: EmittedValue,
    ) -> None:
        """Copy the elements from ``since`` to ``until`` of a run, and zeros for the others."""
        b, lanes, vector = self.b, self.lanes, self.element.vector(self.lanes)
        with b.loop(0, length, lanes) as step:
            live = b.first_lanes(length - step.index, lanes)
            before = b.first_lanes(_larger(since - step.index, 0), lanes)
            upto = b.first_lanes(_larger(until - step.index, 0), lanes)
            b.store(b.load(source, step.index, vector, live & upto & ~before), target, step.index, live)


def _inner(places: Sequence[EmittedValue], distances: Sequence[EmittedValue]) -> EmittedValue:
    """How far from the first element a place is."""
    found = places[0] * distances[0]
    for place, distance in zip(places[1:], distances[1:], strict=True):
        found = found + place * distance
    return found


def _places(first: EmittedValue, sizes: Sequence[EmittedValue]) -> list[EmittedValue]:
    """The number ``first`` as a place on axes, and before that how often it goes through them all."""
    found: list[EmittedValue] = []
    for size in reversed(sizes):
        divisor = _larger(size, 1)
        quotient = first.quotient(divisor)
        found.insert(0, first - quotient * divisor)
        first = quotient
    return [first, *found]


def _following(places: Sequence[EmittedValue], sizes: Sequence[EmittedValue]) -> list[EmittedValue]:
    """The place behind one on axes of ``sizes``, whose first number counts how often it went through all."""
    first, *rest = places
    found: list[EmittedValue] = []
    more = rest[-1] + 1
    for place, size in zip(reversed([first, *rest[:-1]]), reversed(sizes), strict=True):
        over = more >= size
        found.insert(0, over.select(0, more))
        more = over.select(place + 1, place)
    return [more, *found]


def _larger(left: EmittedValue, right: EmittedValue | int) -> EmittedValue:
    """The larger of two integers."""
    return (left > right).select(left, right)
