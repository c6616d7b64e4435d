"""Windows of a tensor times a filter, summed channel by channel: a kernel for each type and row of a filter.

A vector holds channels of one position. Sums of windows beside each other are in registers while a row of
the filter goes by, so a column that several of them see is read once, and so is an element of the filter.
Zeros stand in the place of rows and columns beyond the tensor. Each sum is taken in order, so its bits are
those of the loop nest.

Most of the time goes into waiting for memory. So the rows that only the next row of windows sees are asked
for in advance, and a result of :data:`STREAM_BYTES` and more is written past the caches, where its memory
need not be read first.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from enum import IntEnum

from dualflow.backends.llvm.entry import Entry, shared_chunk
from dualflow.backends.llvm.kernel_table import KERNEL_ARGS, read
from dualflow.backends.llvm.runtime.source import IrSource, named_by_content
from dualflow.backends.llvm.text import I64, VOID, Builder, EmittedValue, LlvmModule, Type
from dualflow.core.dtypes import DType
from dualflow.core.records import NamedTuple
from dualflow.graph.axes import sizes
from dualflow.schedule.loop_program import Argument, Kernel, Run
from dualflow.schedule.sliding import SlidingAxis, SlidingWindows
from dualflow.schedule.statements import CallRoutine

SIDE_BY_SIDE = (7, 8, 4)
"""How many windows may have their sums computed side by side."""
STREAM_BYTES = 16 << 20
"""Results of so many bytes are written past the caches.

Measured with a last-level cache of 32 MiB: from here on that is no slower even if what comes next reads them.
"""
MOST_AT_ONCE = 9
"""Rows of a filter that are longer go by element by element, since their code would be long."""
_NAME = "window_sum"
_ALONE = SlidingAxis(1, 0, 1, 1, 1, 1)
"""The row in which windows along one axis lie."""


class SumField(IntEnum):
    """The numbers that the kernel is given; of two, the first is that of rows, the next that of columns."""

    CHANNELS = 0
    SIZE = 1
    BEFORE = 3
    WINDOWS = 5
    LENGTH = 7
    STRIDE = 9
    """Of rows, as is DILATION; those of columns are part of the code."""
    DILATION = 10
    STREAMED = 11
    """Whether the result is written past the caches."""
    COUNT = 12


class FilterRow(NamedTuple):
    """What the code depends on.

    Attributes:
        windows: how many are summed side by side.
        stride: columns from one to the next.
        length: the elements of a row of the filter that go by at once.
        dilation: columns between these.
    """

    windows: int
    stride: int
    length: int
    dilation: int

    def seen(self) -> dict[int, list[tuple[int, int]]]:
        """The columns that the windows see, in order: for each of these, its place in the row of the filter.

        >>> FilterRow(2, 1, 3, 1).seen()
        {0: [(0, 0)], 1: [(0, 1), (1, 0)], 2: [(0, 2), (1, 1)], 3: [(1, 2)]}
        """
        columns: dict[int, list[tuple[int, int]]] = {}
        for window in range(self.windows):
            for place in range(self.length):
                column = window * self.stride + place * self.dilation
                columns.setdefault(column, []).append((window, place))
        return dict(sorted(columns.items()))


def numbers_of(lie: SlidingWindows, nbytes: int) -> list[int]:
    """What describes windows and a result of so many bytes, in the order of :class:`SumField`.

    >>> numbers_of(SlidingWindows((SlidingAxis(9, 1, 9, 1, 3, 1), SlidingAxis(7, 1, 7, 1, 3, 1)), 16), 4032)
    [16, 9, 7, 1, 1, 9, 7, 3, 3, 1, 1, 0]
    """
    *others, columns = lie.axes
    (rows,) = others or [_ALONE]
    return [
        lie.channels,
        *(rows.size, columns.size),
        *(rows.before, columns.before),
        *(rows.windows, columns.windows),
        *(rows.length, columns.length),
        *(rows.stride, rows.dilation),
        int(nbytes >= STREAM_BYTES),
    ]


def filter_row(lie: SlidingWindows) -> FilterRow:
    """The code for windows: so many side by side that few are computed twice, since rows end there.

    >>> [filter_row(SlidingWindows((SlidingAxis(n, 1, n, 1, 3, 1),), 16)).windows for n in (56, 32, 10, 3)]
    [7, 8, 4, 1]
    """
    columns = lie.axes[-1]
    fitting = [n for n in SIDE_BY_SIDE if n <= columns.windows]
    windows = min(fitting, key=lambda n: -(-columns.windows // n) * n, default=1)
    length = columns.length if columns.length <= MOST_AT_ONCE else 1
    return FilterRow(windows, columns.stride, length, columns.dilation)


def write_window_sum(entry: Entry, call: CallRoutine) -> None:
    """Call the kernel over the rows of all images, shared between threads where that pays."""
    node, unit = call.node, entry.unit
    lie: SlidingWindows = node.attrs["windows"]
    spec, shape = node.output.spec, sizes(node.output)
    if 0 in shape:
        return
    rows = math.prod(shape[: len(lie.axes)])
    chunk = shared_chunk(unit, rows, math.prod([*shape, *[a.length for a in lie.axes]]))
    places = [n for layout in (*call.inputs, *call.outputs) for n in (layout.buffer, layout.offset)]
    function = routine(spec.dtype, unit.module.vector_bits, filter_row(lie))
    numbers = [*numbers_of(lie, spec.nbytes), *places, len(unit.messages) + 1]
    unit.products.append(entry.call_kernel(function, rows, chunk, numbers))


@functools.cache
def routine(element: DType, bits: int, row: FilterRow) -> IrSource:
    """The kernel for tensors of ``element``, with registers of ``bits``."""
    module = LlvmModule(bits)
    function = module.function(_NAME, VOID, KERNEL_ARGS)
    context, low, high, slot = function.args
    arguments = (Argument(0, 0, element),) * 3
    kernel = Kernel((element,) * 3, (), SumField.COUNT, False, ())
    given = read(function.builder, context, slot, Run(kernel, arguments, (), (), 1, 0.0))
    rows = _Rows(function.builder, given.numbers, given.pointers, element, bits, row)
    rows.run(low, high)
    function.builder.ret()
    return named_by_content(module.text(), _NAME)


class _Block(NamedTuple):
    """Windows side by side, for a vector of channels.

    Attributes:
        image: where the image begins.
        top: the first row of it that the windows see.
        left: the first column.
        channel: the first channel.
        live: the lanes that are channels; None for all.
    """

    image: EmittedValue
    top: EmittedValue
    left: EmittedValue
    channel: EmittedValue
    live: EmittedValue | None = None


class _Rows:
    """Writes the loops over rows of windows."""

    def __init__(
        self,
        builder: Builder,
        numbers: Sequence[EmittedValue],
        pointers: Sequence[EmittedValue],
        element: DType,
        bits: int,
        row: FilterRow,
    ) -> None:
        self.b, self.row, self.lanes = builder, row, bits // 8 // element.size
        self.element = Type.of_dtype(element.dtype)
        self.vector = self.element.vector(self.lanes)
        self.tensor, self.weights, self.out = pointers
        self.channels, self.stride, self.dilation = [
            numbers[i] for i in (SumField.CHANNELS, SumField.STRIDE, SumField.DILATION)
        ]
        self.size, self.before, self.windows, self.length = [
            numbers[i : i + 2] for i in range(SumField.SIZE, SumField.STRIDE, 2)
        ]
        self.full = self.channels & -self.lanes
        aligned = (self.out.cast(I64) & (bits // 8 - 1)).eq(0) & self.full.eq(self.channels)
        self.streamed = numbers[SumField.STREAMED].ne(0) & aligned
        self.zeros = builder.alloca(self.element.vector(self.lanes), 1)
        builder.store(self._none(), self.zeros, 0)

    def run(self, low: EmittedValue, high: EmittedValue) -> None:
        """Let the rows of windows from ``low`` to ``high``, of all images."""
        b = self.b
        with b.loop(low, high) as line:
            image = line.index.quotient(self.windows[0])
            top = (line.index - image * self.windows[0]) * self.stride - self.before[0]
            size = self.size[0] * self.size[1] * self.channels
            start = b.offset(self.tensor, image * size, self.element)
            with b.loop(0, self.windows[1], self.row.windows) as iteration:
                last = self.windows[1] - self.row.windows
                column = (iteration.index < last).select(iteration.index, last)
                place = (line.index * self.windows[1] + column) * self.channels
                out = b.offset(self.out, place, self.element)
                left = column * self.row.stride - self.before[1]
                with b.loop(0, self.full, self.lanes) as channel:
                    self._whole(_Block(start, top, left, channel.index), out)
                with b.if_then(self.full < self.channels):
                    live = b.first_lanes(self.channels - self.full, self.lanes)
                    block = _Block(start, top, left, self.full, live)
                    self._store(self._sums(block), block, out)
        with b.if_then(self.streamed):
            b.fence()

    def _whole(self, block: _Block, out: EmittedValue) -> None:
        """Compute a whole vector of channels."""
        self._ask_for_next(block)
        sums = self._sums(block)

        def store(streaming: bool) -> list[EmittedValue]:
            self._store(sums, block, out, streaming=streaming)
            return []

        self.b.if_else(self.streamed, lambda: store(True), lambda: store(False))

    def _store(
        self, sums: Sequence[EmittedValue], block: _Block, out: EmittedValue, *, streaming: bool = False
    ) -> None:
        for k, total in enumerate(sums):
            self.b.store(total, out, block.channel + self.channels * k, block.live, streaming)

    def _ask_for_next(self, block: _Block) -> None:
        """Prefetch the rows that the windows below see and these don't."""
        b, row = self.b, self.row
        fresh = row.windows * min(row.stride, row.length)
        columns = list(row.seen())[-fresh:]
        last = block.top + self.stride + (self.length[0] - 1) * self.dilation
        some = (self.stride < self.length[0]).select(self.stride, self.length[0])
        with b.loop(0, some) as above:
            start = self._place(block, last - above.index * self.dilation)
            for column in columns:
                b.prefetch(b.offset(start, self.channels * column, self.element))

    def _sums(self, block: _Block) -> list[EmittedValue]:
        b, row = self.b, self.row
        with b.loop(0, self.length[0], carried=[self._none()] * row.windows) as i:
            down = block.top + i.index * self.dilation
            there = (down >= 0) & (down < self.size[0])
            start = there.select(self._place(block, down), self.zeros)
            apart = there.select(self.channels, 0)
            with b.loop(0, self.length[1], row.length, carried=i.carried) as j:
                at = (i.index * self.length[1] + j.index) * self.channels + block.channel
                filters = b.offset(self.weights, at, self.element)
                places = [self.channels * place for place in range(row.length)]
                weights = [b.load(filters, place, self.vector, block.live) for place in places]
                sums, along = list(j.carried), j.index * row.dilation
                for column, users in row.seen().items():
                    across = block.left + along + column
                    within = (across >= 0) & (across < self.size[1])
                    where = b.offset(start, (along + column) * apart, self.element)
                    seen = b.load(within.select(where, self.zeros), 0, self.vector, block.live)
                    for window, place in users:
                        sums[window] = sums[window] + seen * weights[place]
                j.next(*sums)
            i.next(*j.results)
        return i.results

    def _place(self, block: _Block, down: EmittedValue) -> EmittedValue:
        """The address of a row of the image, at the block's first column and channel."""
        where = (down * self.size[1] + block.left) * self.channels + block.channel
        return self.b.offset(block.image, where, self.element)

    def _none(self) -> EmittedValue:
        return self.b.constant(self.element, 0.0).splat(self.lanes)
