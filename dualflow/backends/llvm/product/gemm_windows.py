"""Copies windows of a tensor, or the lines that contain them, to contiguous memory."""

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
    """Emit a copy of ``count`` pieces of a tensor from ``first`` on, with ``length`` elements each.

    The elements of a piece are copied from ``low`` on. A piece is a window; ``COPY_ROW`` is the stride of
    pieces in the copy. Elements outside of the tensor are zero.
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
    with b.loop(0, count, carried=unravel_index(first, counts)) as iteration:
        batch, *places = iteration.carried
        begins = [p * s - a for p, s, a in zip(places, strides, before, strict=True)]
        runs.copy(
            b.offset(tensor, batch * image, element),
            begins,
            b.offset(copy, iteration.index * distance, element),
        )
        iteration.next(*next_index([batch, *places], counts))
    b.ret()


class _Runs:
    """Copies elements ``low`` to ``high`` of a piece, run by run."""

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
        self.distances = [field(b, table, WindowField.AXIS_STRIDE, i) for i in axes]
        self.lengths = [field(b, table, WindowField.LENGTH, i) for i in axes]
        self.dilations = [field(b, table, WindowField.DILATION, i) for i in axes]
        self.run = larger(self.span * self.channels, 1)
        self.first, self.end = low.quotient(self.run), (high + self.run - 1).quotient(self.run)
        _, *self.taps = unravel_index(self.first, self.lengths)

    def copy(self, image: EmittedValue, begins: Sequence[EmittedValue], line: EmittedValue) -> None:
        """Copy a part of the piece whose first element has the indices ``begins`` in ``image``."""
        b = self.b
        zero, fully_inside = b.constant(I64, 0), self._inside(begins)
        with b.loop(self.first, self.end, carried=self.taps) as iteration:
            base = iteration.index * self.run
            begin, end = larger(base, self.low), smaller(base + self.run, self.high)
            skipped, length = begin - base, end - begin
            positions = [p + t * d for p, t, d in zip(begins, iteration.carried, self.dilations, strict=True)]
            between = partial(self._valid_range, positions, skipped, length)
            data_begin, data_end = b.if_else(fully_inside, partial(list, (zero, length)), between)
            source = b.offset(image, linear_offset(positions, self.distances) + skipped, self.element)
            self._copy_run(
                b.offset(line, begin - self.low, self.element), source, length, data_begin, data_end
            )
            _, *following = next_index([zero, *iteration.carried], self.lengths)
            iteration.next(*following)

    def _inside(self, begins: Sequence[EmittedValue]) -> EmittedValue:
        """Whether a piece is completely inside of the tensor."""
        *outer, last = [(n - 1) * d + 1 for n, d in zip(self.lengths, self.dilations, strict=True)]
        inside = self.b.constant(BOOL, True)
        for begin, reach, size in zip(begins, (*outer, last + self.span - 1), self.sizes, strict=True):
            inside = inside & (begin >= 0) & (begin + reach <= size)
        return inside

    def _valid_range(
        self, positions: Sequence[EmittedValue], skipped: EmittedValue, length: EmittedValue
    ) -> list[EmittedValue]:
        """The part of a run, after its skipped elements, that is inside of the tensor: begin and end."""
        *outer, last = positions
        inside = self.b.constant(BOOL, True)
        for position, size in zip(outer, self.sizes, strict=False):
            inside = inside & (position >= 0) & (position < size)
        data_begin = larger(-last, 0) * self.channels - skipped
        data_end = smaller(self.sizes[-1] - last, self.span) * self.channels - skipped
        data_begin = smaller(larger(data_begin, 0), length)
        return [data_begin, inside.select(larger(smaller(data_end, length), data_begin), data_begin)]

    def _copy_run(
        self,
        target: EmittedValue,
        source: EmittedValue,
        length: EmittedValue,
        data_begin: EmittedValue,
        data_end: EmittedValue,
    ) -> None:
        """Copy elements ``data_begin`` to ``data_end`` of a run; the others become zero."""
        b, lanes, vector = self.b, self.lanes, self.element.vector(self.lanes)
        with b.if_then((data_begin > 0) | (data_end < length)):
            for low, high in ((b.constant(I64, 0), data_begin), (data_end, length)):
                with b.loop(low, high, lanes) as step:
                    live = b.first_lanes(high - step.index, lanes)
                    b.store(b.constant(vector, 0.0), target, step.index, live)
        full = data_begin + ((data_end - data_begin) & -lanes)
        with b.loop(data_begin, full, lanes) as step:
            b.store(b.load(source, step.index, vector), target, step.index)
        with b.if_then(full < data_end):
            live = b.first_lanes(data_end - full, lanes)
            b.store(b.load(source, full, vector, live), target, full, live)


def linear_offset(index: Sequence[EmittedValue], strides: Sequence[EmittedValue]) -> EmittedValue:
    """The offset of an index: the dot product with the strides."""
    offset = index[0] * strides[0]
    for i, stride in zip(index[1:], strides[1:], strict=True):
        offset = offset + i * stride
    return offset


def unravel_index(first: EmittedValue, sizes: Sequence[EmittedValue]) -> list[EmittedValue]:
    """The index of element number ``first`` on axes of ``sizes``, preceded by the number of passes."""
    index: list[EmittedValue] = []
    for size in reversed(sizes):
        divisor = larger(size, 1)
        quotient = first.quotient(divisor)
        index.insert(0, first - quotient * divisor)
        first = quotient
    return [first, *index]


def next_index(index: Sequence[EmittedValue], sizes: Sequence[EmittedValue]) -> list[EmittedValue]:
    """The index after ``index`` on axes of ``sizes``; the first number counts passes over all axes."""
    first, *inner = index
    following: list[EmittedValue] = []
    carry = inner[-1] + 1
    for i, size in zip(reversed([first, *inner[:-1]]), reversed(sizes), strict=True):
        over = carry >= size
        following.insert(0, over.select(0, carry))
        carry = over.select(i + 1, i)
    return [carry, *following]


def larger(left: EmittedValue, right: EmittedValue | int) -> EmittedValue:
    """The larger of two integers."""
    return (left > right).select(left, right)
