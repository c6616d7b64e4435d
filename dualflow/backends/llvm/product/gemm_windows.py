"""Copies of windows of a tensor, or of the lines that they lie on, one behind another."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from dualflow.backends.llvm.product.gemm_kernel import Field, WindowField, field, smaller
from dualflow.backends.llvm.text import BOOL, I64, PTR, VOID, Builder, EmittedValue, LlvmModule, Type
from dualflow.schedule.sliding import MOST_AXES

ARGUMENTS = (
    ("table", PTR),
    ("tensor", PTR),
    ("copy", PTR),
    ("first", I64),
    ("count", I64),
    ("low", I64),
    ("length", I64),
)


def emit_pieces(module: LlvmModule, name: str, element: Type, lanes: int) -> None:
    """Copy ``count`` pieces of a tensor from ``first`` on; of each, ``length`` elements from ``low`` on.

    A piece is a window, and begins in the copy ``COPY_ROW`` behind the one before. What lies around the
    tensor is zero.
    """
    function = module.function(name, VOID, ARGUMENTS, internal=True)
    b = function.builder
    table, tensor, copy, first, count, low, length = function.args
    axes = range(MOST_AXES)
    counts = [field(b, table, WindowField.COUNT, i) for i in axes]
    strides = [field(b, table, WindowField.STRIDE, i) for i in axes]
    before = [field(b, table, WindowField.BEFORE, i) for i in axes]
    image = field(b, table, WindowField.IMAGE)
    runs = _Runs(b, table, element, lanes, low, low + length)
    distance = field(b, table, Field.COPY_ROW)
    with b.loop(0, count, carried=places_of(first, counts)) as iteration:
        batch, *places = iteration.carried
        begins = [p * s - a for p, s, a in zip(places, strides, before, strict=True)]
        runs.copy(
            b.offset(tensor, batch * image, element),
            begins,
            b.offset(copy, iteration.index * distance, element),
        )
        iteration.next(*following_places([batch, *places], counts))
    b.ret()


class _Runs:
    """Copies what lies from element ``low`` to ``high`` of a piece, run by run."""

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
        self.element, self.lanes, self.low, self.high = element, lanes, low, high
        axes = range(MOST_AXES)
        self.channels, self.span = (field(b, table, w) for w in (WindowField.CHANNELS, WindowField.SPAN))
        self.sizes = [field(b, table, WindowField.SIZE, i) for i in axes]
        self.distances = [field(b, table, WindowField.DISTANCE, i) for i in axes]
        self.lengths = [field(b, table, WindowField.LENGTH, i) for i in axes]
        self.dilations = [field(b, table, WindowField.DILATION, i) for i in axes]
        self.run = larger(self.span * self.channels, 1)
        self.first, self.end = low.quotient(self.run), (high + self.run - 1).quotient(self.run)
        _, *self.taps = places_of(self.first, self.lengths)

    def copy(self, image: EmittedValue, begins: Sequence[EmittedValue], line: EmittedValue) -> None:
        """Copy a part of the piece whose first element is at ``begins`` of an element of the batch."""
        b = self.b
        zero, whole = b.constant(I64, 0), self._inside(begins)
        with b.loop(self.first, self.end, carried=self.taps) as iteration:
            base = iteration.index * self.run
            begin, end = larger(base, self.low), smaller(base + self.run, self.high)
            skipped, length = begin - base, end - begin
            positions = [p + t * d for p, t, d in zip(begins, iteration.carried, self.dilations, strict=True)]
            between = partial(self._between, positions, skipped, length)
            since, until = b.if_else(whole, partial(list, (zero, length)), between)
            source = b.offset(image, place_inside(positions, self.distances) + skipped, self.element)
            self._write(b.offset(line, begin - self.low, self.element), source, length, since, until)
            _, *following = following_places([zero, *iteration.carried], self.lengths)
            iteration.next(*following)

    def _inside(self, begins: Sequence[EmittedValue]) -> EmittedValue:
        """Whether a piece lies inside of the tensor."""
        *outer, last = [(n - 1) * d + 1 for n, d in zip(self.lengths, self.dilations, strict=True)]
        found = self.b.constant(BOOL, True)
        for begin, reach, size in zip(begins, (*outer, last + self.span - 1), self.sizes, strict=True):
            found = found & (begin >= 0) & (begin + reach <= size)
        return found

    def _between(
        self, positions: Sequence[EmittedValue], skipped: EmittedValue, length: EmittedValue
    ) -> list[EmittedValue]:
        """From where to where a run, whose first elements are skipped, lies inside of the tensor."""
        *outer, last = positions
        inside = self.b.constant(BOOL, True)
        for position, size in zip(outer, self.sizes, strict=False):
            inside = inside & (position >= 0) & (position < size)
        since = larger(-last, 0) * self.channels - skipped
        until = smaller(self.sizes[-1] - last, self.span) * self.channels - skipped
        since = smaller(larger(since, 0), length)
        return [since, inside.select(larger(smaller(until, length), since), since)]

    def _write(
        self,
        target: EmittedValue,
        source: EmittedValue,
        length: EmittedValue,
        since: EmittedValue,
        until: EmittedValue,
    ) -> None:
        """Copy the elements from ``since`` to ``until`` of a run, between zeros."""
        b, lanes, vector = self.b, self.lanes, self.element.vector(self.lanes)
        with b.if_then((since > 0) | (until < length)):
            for low, high in ((b.constant(I64, 0), since), (until, length)):
                with b.loop(low, high, lanes) as step:
                    live = b.first_lanes(high - step.index, lanes)
                    b.store(b.constant(vector, 0.0), target, step.index, live)
        full = since + ((until - since) & -lanes)
        with b.loop(since, full, lanes) as step:
            b.store(b.load(source, step.index, vector), target, step.index)
        with b.if_then(full < until):
            live = b.first_lanes(until - full, lanes)
            b.store(b.load(source, full, vector, live), target, full, live)


def place_inside(places: Sequence[EmittedValue], distances: Sequence[EmittedValue]) -> EmittedValue:
    """How far from the first element a place is."""
    found = places[0] * distances[0]
    for place, distance in zip(places[1:], distances[1:], strict=True):
        found = found + place * distance
    return found


def places_of(first: EmittedValue, sizes: Sequence[EmittedValue]) -> list[EmittedValue]:
    """The number ``first`` as a place on axes, and before that how often it goes through them all."""
    found: list[EmittedValue] = []
    for size in reversed(sizes):
        divisor = larger(size, 1)
        quotient = first.quotient(divisor)
        found.insert(0, first - quotient * divisor)
        first = quotient
    return [first, *found]


def following_places(places: Sequence[EmittedValue], sizes: Sequence[EmittedValue]) -> list[EmittedValue]:
    """The place behind one on axes of ``sizes``, whose first number counts how often it went through all."""
    first, *rest = places
    found: list[EmittedValue] = []
    more = rest[-1] + 1
    for place, size in zip(reversed([first, *rest[:-1]]), reversed(sizes), strict=True):
        over = more >= size
        found.insert(0, over.select(0, more))
        more = over.select(place + 1, place)
    return [more, *found]


def larger(left: EmittedValue, right: EmittedValue | int) -> EmittedValue:
    """The larger of two integers."""
    return (left > right).select(left, right)
