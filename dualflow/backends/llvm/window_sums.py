"""Windows of a tensor times a filter, summed channel by channel: one kernel for each type, for any sizes.

A vector holds channels of one position. Sums of :data:`COLUMNS` windows beside each other are in registers
while the elements of the window go by, so an element of the filter is read once for all of them. Windows that
reach beyond the tensor are computed one by one, with zeros in the place of what is not there. Each sum is
taken in order, so its bits are those of the loop nest.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from dualflow.backends.llvm.entry import Entry, shared_chunk
from dualflow.backends.llvm.kernel_table import KERNEL_ARGS, read
from dualflow.backends.llvm.runtime.source import IrSource, named_by_content
from dualflow.backends.llvm.text import I64, VOID, Builder, EmittedValue, LlvmModule, Type
from dualflow.core.dtypes import DType
from dualflow.graph.axes import sizes
from dualflow.schedule.loop_program import Argument, Kernel, Run
from dualflow.schedule.sliding import SlidingAxis, SlidingWindows
from dualflow.schedule.statements import CallRoutine
from dualflow.schedule.window_sums import AXES

COLUMNS = 6
"""Windows whose sums are computed side by side."""
_NAME = "window_sum"
_ALONE = SlidingAxis(1, 0, 1, 1, 1, 1)


class SumField(IntEnum):
    """The numbers that the kernel is given; of two, the first is that of rows, the next that of columns."""

    CHANNELS = 0
    SIZE = 1
    BEFORE = 3
    WINDOWS = 5
    STRIDE = 7
    LENGTH = 9
    DILATION = 11
    FIRST = 13
    """The first column whose window lies inside of the tensor,"""
    END = 14
    """and the one behind the last."""
    COUNT = 15


def numbers_of(lie: SlidingWindows) -> list[int]:
    """What describes windows, in the order of :class:`SumField`.

    >>> numbers_of(SlidingWindows((SlidingAxis(9, 1, 9, 1, 3, 1), SlidingAxis(7, 1, 7, 1, 3, 1)), 16))
    [16, 9, 7, 1, 1, 9, 7, 1, 1, 3, 3, 1, 1, 1, 6]
    """
    axes = [*[_ALONE] * (AXES - len(lie.axes)), *lie.axes]
    last = axes[-1]
    room = last.size - 1 + last.before - (last.length - 1) * last.dilation
    first = max(0, -(-last.before // last.stride))
    end = min(last.windows, room // last.stride + 1)
    by_axis = zip(*[(a.size, a.before, a.windows, a.stride, a.length, a.dilation) for a in axes], strict=True)
    return [lie.channels, *(n for numbers in by_axis for n in numbers), first, end]


def write_window_sum(entry: Entry, call: CallRoutine) -> None:
    """Call the kernel over the rows of all images, shared between threads where that pays."""
    node, unit = call.node, entry.unit
    lie: SlidingWindows = node.attrs["windows"]
    shape = sizes(node.output)
    if 0 in shape:
        return
    rows = math.prod(shape[: len(lie.axes)])
    chunk = shared_chunk(unit, rows, math.prod([*shape, *[a.length for a in lie.axes]]))
    places = [n for layout in (*call.inputs, *call.outputs) for n in (layout.buffer, layout.offset)]
    function = routine(node.output.spec.dtype, unit.module.vector_bits)
    numbers = [*numbers_of(lie), *places, len(unit.messages) + 1]
    unit.products.append(entry.call_kernel(function, rows, chunk, numbers))


@functools.cache
def routine(element: DType, bits: int) -> IrSource:
    """The kernel for tensors of ``element``, with registers of ``bits``."""
    module = LlvmModule(bits)
    function = module.function(_NAME, VOID, KERNEL_ARGS)
    context, low, high, slot = function.args
    arguments = (Argument(0, 0, element),) * 3
    kernel = Kernel((element,) * 3, (), SumField.COUNT, 1, ())
    given = read(function.builder, context, slot, Run(kernel, arguments, (), (), 1, 0.0))
    rows = _Rows(function.builder, given.numbers, given.pointers, Type.of_dtype(element.dtype))
    rows.run(low, high, bits // 8 // element.size)
    function.builder.ret()
    return named_by_content(module.text(), _NAME)


class _Line(NamedTuple):
    """A row of windows: the image, where the row's sums go, and the first row of the image that it reads.

    What lies beyond the image is read as ``zeros``, a vector.
    """

    image: EmittedValue
    out: EmittedValue
    top: EmittedValue
    zeros: EmittedValue


class _Rows:
    """Writes the loops over rows of windows."""

    def __init__(
        self,
        builder: Builder,
        numbers: Sequence[EmittedValue],
        pointers: Sequence[EmittedValue],
        element: Type,
    ) -> None:
        self.b, self.element = builder, element
        self.tensor, self.weights, self.out = pointers
        self.channels, self.first, self.end = [
            numbers[i] for i in (SumField.CHANNELS, SumField.FIRST, SumField.END)
        ]
        self.size, self.before, self.windows, self.stride, self.length, self.dilation = [
            numbers[i : i + 2] for i in range(SumField.SIZE, SumField.FIRST, 2)
        ]

    def run(self, low: EmittedValue, high: EmittedValue, lanes: int) -> None:
        """Compute the rows from ``low`` to ``high`` of all images, so many channels at once."""
        b = self.b
        zeros = b.alloca(self.element.vector(lanes), 1)
        b.store(b.constant(self.element, 0.0).splat(lanes), zeros, 0)
        with b.loop(low, high) as row:
            image = row.index.quotient(self.windows[0])
            top = (row.index - image * self.windows[0]) * self.stride[0] - self.before[0]
            line = _Line(
                b.offset(self.tensor, image * self.size[0] * self.size[1] * self.channels, self.element),
                b.offset(self.out, row.index * self.windows[1] * self.channels, self.element),
                top,
                zeros,
            )
            with b.while_loop([b.constant(I64, 0)]) as turn:
                (column,) = turn.carried
                turn.test(column < self.windows[1])
                many = (column >= self.first) & (column + COLUMNS <= self.end)
                turn.next(*self._columns(line, column, many, lanes))

    def _columns(
        self, line: _Line, column: EmittedValue, many: EmittedValue, lanes: int
    ) -> list[EmittedValue]:
        """The sums of windows side by side, or of one; returns the column that comes next."""
        b, full = self.b, self.channels & -lanes

        def side_by_side() -> list[EmittedValue]:
            with b.loop(0, full, lanes) as channel:
                self._many(line, column, channel.index, lanes)
            with b.if_then(full < self.channels), b.loop(0, COLUMNS) as one:
                self._one(line, column + one.index, full, lanes)
            return [column + COLUMNS]

        def alone() -> list[EmittedValue]:
            self._one(line, column, b.constant(I64, 0), lanes)
            return [column + 1]

        return b.if_else(many, side_by_side, alone)

    def _many(self, line: _Line, column: EmittedValue, channel: EmittedValue, lanes: int) -> None:
        """The sums of windows whose columns lie inside of the tensor, for a vector of channels."""
        b, vector = self.b, self.element.vector(lanes)
        left = column * self.stride[1] - self.before[1]
        sums = [b.constant(self.element, 0.0).splat(lanes)] * COLUMNS
        with b.loop(0, self.length[0], carried=sums) as i:
            down = line.top + i.index * self.dilation[0]
            inside = (down >= 0) & (down < self.size[0])
            begin = (down * self.size[1] + left) * self.channels + channel
            start = inside.select(b.offset(line.image, begin, self.element), line.zeros)
            distance = inside.select(self.channels, 0)
            with b.loop(0, self.length[1], carried=i.carried) as j:
                weight = b.load(self.weights, self._weight(i.index, j.index) + channel, vector)
                at = j.index * self.dilation[1] * distance
                sums = []
                for total in j.carried:
                    sums.append(total + b.load(start, at, vector) * weight)
                    at = at + self.stride[1] * distance
                j.next(*sums)
            i.next(*j.results)
        for k, total in enumerate(i.results):
            b.store(total, line.out, (column + k) * self.channels + channel)

    def _one(self, line: _Line, column: EmittedValue, since: EmittedValue, lanes: int) -> None:
        """The sums of one window, for the channels from ``since`` on."""
        b, vector = self.b, self.element.vector(lanes)
        left, zero = column * self.stride[1] - self.before[1], b.constant(self.element, 0.0).splat(lanes)
        with b.loop(since, self.channels, lanes) as channel:
            live = b.first_lanes(self.channels - channel.index, lanes)
            with b.loop(0, self.length[0], carried=[zero]) as i:
                down = line.top + i.index * self.dilation[0]
                with b.loop(0, self.length[1], carried=i.carried) as j:
                    across = left + j.index * self.dilation[1]
                    inside = (down >= 0) & (down < self.size[0]) & (across >= 0) & (across < self.size[1])
                    weight_at = self._weight(i.index, j.index) + channel.index
                    weight = b.load(self.weights, weight_at, vector, live)
                    at = (down * self.size[1] + across) * self.channels + channel.index
                    place = inside.select(b.offset(line.image, at, self.element), line.zeros)
                    j.next(j.carried[0] + b.load(place, 0, vector, live) * weight)
                i.next(*j.results)
            b.store(i.results[0], line.out, column * self.channels + channel.index, live)

    def _weight(self, i: EmittedValue, j: EmittedValue) -> EmittedValue:
        """Where the element of the filter lies."""
        return (i * self.length[1] + j) * self.channels
