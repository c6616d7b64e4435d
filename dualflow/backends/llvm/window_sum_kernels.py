"""Depthwise convolutions: a kernel for each type and row length of a filter.

A vector holds adjacent channels of one position. The sums of adjacent windows are in registers during a loop
over a row of the filter, so a column that several windows contain is loaded once, and so is an element of the
filter. Rows and columns outside of the tensor are read as zeros. Each sum is computed in order, so its bits
are those of the loop nest.

The kernel is limited by memory bandwidth. So rows that only the next row of windows contains are prefetched,
and a result that is larger than half of the last-level cache is stored with streaming stores, which don't
load its cache lines: from this size on they are not slower even if the next kernel reads the result.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from enum import IntEnum

from dualflow.backends.llvm.entry import Entry, chunk_size
from dualflow.backends.llvm.kernel_table import KERNEL_ARGS, load_arguments
from dualflow.backends.llvm.runtime.ir_source import IrSource, named_by_content
from dualflow.backends.llvm.text import I64, VOID, Builder, EmittedValue, LlvmModule, Type
from dualflow.core.dtypes import DType
from dualflow.core.records import NamedTuple
from dualflow.graph.views import sizes
from dualflow.schedule.kernel import Argument, Kernel, KernelLaunch
from dualflow.schedule.program_statements import CallRoutine
from dualflow.schedule.sliding import SlidingAxis, SlidingWindows
from dualflow.sizes.size_functions import smallest
from dualflow.sizes.symbolic_sizes import typical

WINDOW_COUNTS = (7, 8, 4)
"""The possible numbers of adjacent windows whose sums are in registers."""
MAX_UNROLLED = 9
"""The maximum length of a filter row that is unrolled; longer ones are looped over."""
_NAME = "window_sum"
_SINGLE = SlidingAxis(1, 0, 1, 1, 1, 1)
"""The outer axis of windows along one axis only."""


class SumField(IntEnum):
    """The launch parameters of the kernel; of pairs, the first is for rows, the second for columns."""

    CHANNELS = 0
    SIZE = 1
    BEFORE = 3
    WINDOWS = 5
    LENGTH = 7
    STRIDE = 9
    """The stride along rows, one number like DILATION; those along columns are constants of the code."""
    DILATION = 10
    STREAMED = 11
    """Whether the result is stored with streaming stores."""
    COUNT = 12


class FilterRow(NamedTuple):
    """The compile-time constants of a kernel for sums of windows; each record has a kernel of its own.

    Attributes:
        windows: the number of adjacent windows whose sums are in registers.
        stride: the stride of windows in columns.
        length: the number of unrolled elements of a filter row.
        dilation: the stride of these elements in columns.
    """

    windows: int
    stride: int
    length: int
    dilation: int

    def columns(self) -> dict[int, list[tuple[int, int]]]:
        """The columns that windows contain, in order, with (window, filter element) pairs for each.

        >>> FilterRow(2, 1, 3, 1).columns()
        {0: [(0, 0)], 1: [(0, 1), (1, 0)], 2: [(0, 2), (1, 1)], 3: [(1, 2)]}
        """
        columns: dict[int, list[tuple[int, int]]] = {}
        for window in range(self.windows):
            for element in range(self.length):
                column = window * self.stride + element * self.dilation
                columns.setdefault(column, []).append((window, element))
        return dict(sorted(columns.items()))


def launch_parameters(sliding: SlidingWindows, streamed: int) -> list[int]:
    """The launch parameters for windows, in the order of :class:`SumField`.

    ``streamed`` is 1 if the result is stored with streaming stores, else 0.

    >>> sliding = SlidingWindows((SlidingAxis(9, 1, 9, 1, 3, 1), SlidingAxis(7, 1, 7, 1, 3, 1)), 16)
    >>> launch_parameters(sliding, streamed=0)
    [16, 9, 7, 1, 1, 9, 7, 3, 3, 1, 1, 0]
    """
    *others, columns = sliding.axes
    (rows,) = others or [_SINGLE]
    return [
        sliding.channels,
        *(rows.size, columns.size),
        *(rows.before, columns.before),
        *(rows.windows, columns.windows),
        *(rows.length, columns.length),
        *(rows.stride, rows.dilation),
        streamed,
    ]


def filter_row(sliding: SlidingWindows) -> FilterRow:
    """The constants of the kernel for ``sliding``; the number of adjacent windows pads rows least.

    >>> [filter_row(SlidingWindows((SlidingAxis(n, 1, n, 1, 3, 1),), 16)).windows for n in (56, 32, 10, 3)]
    [7, 8, 4, 1]
    """
    columns = sliding.axes[-1]
    fitting = [n for n in WINDOW_COUNTS if n <= columns.windows]
    windows = min(fitting, key=lambda n: -(-columns.windows // n) * n, default=1)
    length = columns.length if columns.length <= MAX_UNROLLED else 1
    return FilterRow(windows, columns.stride, length, columns.dilation)


def write_window_sum(entry: Entry, call: CallRoutine) -> None:
    """Emit the kernel call over the rows of all images, parallel if that is faster."""
    node, unit = call.node, entry.unit
    sliding: SlidingWindows = node.attrs["windows"]
    spec, shape = node.output.spec, sizes(node.output)
    if 0 in shape:
        return
    rows = math.prod(shape[: len(sliding.axes)])
    additions = math.prod([*shape, *[a.length for a in sliding.axes]])
    work_ns = unit.costs.addition_ns * typical(additions)
    unit.work_ns += work_ns
    chunk = chunk_size(rows, work_ns, unit.threads, unit.costs)
    if chunk != rows:
        unit.use_threads()
    buffers = [n for layout in (*call.inputs, *call.outputs) for n in (layout.buffer, layout.offset)]
    function = routine(spec.dtype, unit.module.vector_bits, filter_row(sliding))
    streamed = smallest(1, math.prod(shape) * spec.dtype.size // max(1, unit.plan.caches.last // 2))
    parameters = [*launch_parameters(sliding, streamed), *buffers, len(unit.messages) + 1]
    unit.routines.append(entry.call_kernel(function, rows, chunk, parameters))


@functools.cache
def routine(element: DType, bits: int, row: FilterRow) -> IrSource:
    """The kernel for tensors of ``element``, with vectors of ``bits``."""
    module = LlvmModule(bits)
    function = module.function(_NAME, VOID, KERNEL_ARGS)
    context, low, high, thread = function.args
    arguments = (Argument(0, 0, element),) * 3
    kernel = Kernel((element,) * 3, (), SumField.COUNT, is_long=False, body=())
    loaded = load_arguments(
        function.builder, context, thread, KernelLaunch(kernel, arguments, (), (), 1, 0.0)
    )
    rows = _Rows(function.builder, loaded.parameters, loaded.pointers, element, bits, row)
    rows.run(low, high)
    function.builder.ret()
    return named_by_content(module.text(), _NAME)


class _Block(NamedTuple):
    """A block of adjacent windows, computed for one vector of channels.

    Attributes:
        image: the address of the image.
        top: the first row that the windows contain.
        left: the first column.
        channel: the first channel.
        live: the mask of lanes that are channels; None for all.
    """

    image: EmittedValue
    top: EmittedValue
    left: EmittedValue
    channel: EmittedValue
    live: EmittedValue | None = None


class _Rows:
    """Emits the loops over rows of windows."""

    def __init__(
        self,
        builder: Builder,
        parameters: Sequence[EmittedValue],
        pointers: Sequence[EmittedValue],
        element: DType,
        bits: int,
        row: FilterRow,
    ) -> None:
        self.builder, self.row, self.lanes = builder, row, bits // 8 // element.size
        self.element = Type.of_dtype(element.dtype)
        self.vector = self.element.vector(self.lanes)
        self.tensor, self.weights, self.out = pointers
        self.channels, self.stride, self.dilation = [
            parameters[i] for i in (SumField.CHANNELS, SumField.STRIDE, SumField.DILATION)
        ]
        self.size, self.before, self.windows, self.length = [
            parameters[i : i + 2] for i in range(SumField.SIZE, SumField.STRIDE, 2)
        ]
        self.full = self.channels & -self.lanes
        aligned = (self.out.cast(I64) & (bits // 8 - 1)).eq(0) & self.full.eq(self.channels)
        self.streamed = parameters[SumField.STREAMED].ne(0) & aligned
        self.zeros = builder.alloca(self.element.vector(self.lanes), 1)
        builder.store(self._zeros(), self.zeros, 0)

    def run(self, low: EmittedValue, high: EmittedValue) -> None:
        """Emit the loop over rows of windows from ``low`` to ``high``, of all images."""
        b = self.builder
        with b.loop(low, high) as row:
            image = row.index.quotient(self.windows[0])
            top = (row.index - image * self.windows[0]) * self.stride - self.before[0]
            size = self.size[0] * self.size[1] * self.channels
            start = b.offset(self.tensor, image * size, self.element)
            with b.loop(0, self.windows[1], self.row.windows) as iteration:
                last = self.windows[1] - self.row.windows
                column = (iteration.index < last).select(iteration.index, last)
                offset = (row.index * self.windows[1] + column) * self.channels
                out = b.offset(self.out, offset, self.element)
                left = column * self.row.stride - self.before[1]
                with b.loop(0, self.full, self.lanes) as channel:
                    self._full_vector(_Block(start, top, left, channel.index), out)
                with b.if_then(self.full < self.channels):
                    live = b.first_lanes(self.channels - self.full, self.lanes)
                    block = _Block(start, top, left, self.full, live)
                    self._store(self._sums(block), block, out)
        with b.if_then(self.streamed):
            b.fence()

    def _full_vector(self, block: _Block, out: EmittedValue) -> None:
        """Emit the sums of a full vector of channels."""
        self._prefetch_next(block)
        sums = self._sums(block)

        def store(streaming: bool) -> list[EmittedValue]:
            self._store(sums, block, out, streaming=streaming)
            return []

        self.builder.if_else(self.streamed, lambda: store(True), lambda: store(False))

    def _store(
        self, sums: Sequence[EmittedValue], block: _Block, out: EmittedValue, *, streaming: bool = False
    ) -> None:
        for k, total in enumerate(sums):
            self.builder.store(total, out, block.channel + self.channels * k, block.live, streaming)

    def _prefetch_next(self, block: _Block) -> None:
        """Emit prefetches of the rows that only the next row of windows contains."""
        b, row = self.builder, self.row
        new_columns = row.windows * min(row.stride, row.length)
        columns = list(row.columns())[-new_columns:]
        last = block.top + self.stride + (self.length[0] - 1) * self.dilation
        new_rows = (self.stride < self.length[0]).select(self.stride, self.length[0])
        with b.loop(0, new_rows) as back:
            start = self._row_address(block, last - back.index * self.dilation)
            for column in columns:
                b.prefetch(b.offset(start, self.channels * column, self.element))

    def _sums(self, block: _Block) -> list[EmittedValue]:
        """Emit the loops over the filter; returns the sums of the block's windows."""
        b, row = self.builder, self.row
        with b.loop(0, self.length[0], carried=[self._zeros()] * row.windows) as i:
            image_row = block.top + i.index * self.dilation
            row_inside = (image_row >= 0) & (image_row < self.size[0])
            start = row_inside.select(self._row_address(block, image_row), self.zeros)
            column_stride = row_inside.select(self.channels, 0)
            with b.loop(0, self.length[1], row.length, carried=i.carried) as j:
                filter_offset = (i.index * self.length[1] + j.index) * self.channels + block.channel
                filters = b.offset(self.weights, filter_offset, self.element)
                offsets = [self.channels * element for element in range(row.length)]
                weights = [b.load(filters, element, self.vector, block.live) for element in offsets]
                sums, begin = list(j.carried), j.index * row.dilation
                for column, users in row.columns().items():
                    image_column = block.left + begin + column
                    inside = (image_column >= 0) & (image_column < self.size[1])
                    address = b.offset(start, (begin + column) * column_stride, self.element)
                    loaded = b.load(inside.select(address, self.zeros), 0, self.vector, block.live)
                    for window, element in users:
                        sums[window] = sums[window] + loaded * weights[element]
                j.next(*sums)
            i.next(*j.results)
        return i.results

    def _row_address(self, block: _Block, image_row: EmittedValue) -> EmittedValue:
        """The address of an image row at the block's first column and channel."""
        offset = (image_row * self.size[1] + block.left) * self.channels + block.channel
        return self.builder.offset(block.image, offset, self.element)

    def _zeros(self) -> EmittedValue:
        return self.builder.constant(self.element, 0.0).splat(self.lanes)
