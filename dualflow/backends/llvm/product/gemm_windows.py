"""Emits the copy of windows of a tensor, or of the lines that contain them, to contiguous memory (im2col).

A *piece* is a window, or a line that contains several. A *run* is a part of a piece that is contiguous in the
tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from dualflow.backends.llvm.product.gemm_kernel import Field, WindowField, field, has_mask_registers, minimum
from dualflow.backends.llvm.text import BOOL, I64, PTR, VOID, Builder, EmittedValue, LlvmModule, Type
from dualflow.schedule.sliding import MAX_AXES

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
    """Emit the copy of ``count`` pieces, from number ``first`` on.

    Of each piece, ``length`` elements from ``low`` on are copied. ``COPY_STRIDE`` is the stride of pieces in
    the copy. Elements outside of the tensor are zero.
    """
    function = module.function(name, VOID, ARGUMENTS, internal=True)
    builder = function.builder
    table, tensor, copy, first, count, low, length = function.args
    axes = range(MAX_AXES)
    counts = [field(builder, table, WindowField.COUNT, i) for i in axes]
    strides = [field(builder, table, WindowField.STRIDE, i) for i in axes]
    before = [field(builder, table, WindowField.BEFORE, i) for i in axes]
    image = field(builder, table, WindowField.IMAGE)
    piece_copy = _PieceCopy(builder, table, element, lanes, low, low + length)
    copy_stride = field(builder, table, Field.COPY_STRIDE)
    with builder.loop(0, count, carried=unravel_index(first, counts), frozen=True) as iteration:
        batch, *window = iteration.carried
        begins = [i * s - pad for i, s, pad in zip(window, strides, before, strict=True)]
        piece_copy.emit(
            builder.offset(tensor, batch * image, element),
            begins,
            builder.offset(copy, iteration.index * copy_stride, element),
        )
        iteration.next(*next_index([batch, *window], counts))
    builder.ret()


class _PieceCopy:
    """Emits the copy of the elements ``low`` to ``high`` of a piece, run by run."""

    def __init__(
        self,
        builder: Builder,
        table: EmittedValue,
        element: Type,
        lanes: int,
        low: EmittedValue,
        high: EmittedValue,
    ) -> None:
        self.builder = builder
        self.element, self.lanes, self.low, self.high = element, lanes, low, high
        axes = range(MAX_AXES)
        self.channels, self.span = (
            field(builder, table, w) for w in (WindowField.CHANNELS, WindowField.SPAN)
        )
        self.sizes = [field(builder, table, WindowField.SIZE, i) for i in axes]
        self.strides = [field(builder, table, WindowField.AXIS_STRIDE, i) for i in axes]
        self.lengths = [field(builder, table, WindowField.LENGTH, i) for i in axes]
        self.dilations = [field(builder, table, WindowField.DILATION, i) for i in axes]
        self.run = larger(self.span * self.channels, 1)
        self.first, self.end = low.quotient(self.run), (high + self.run - 1).quotient(self.run)
        _, *self.first_element = unravel_index(self.first, self.lengths)

    def emit(self, image: EmittedValue, begins: Sequence[EmittedValue], target: EmittedValue) -> None:
        """Emit the copy for the piece whose first element has the indices ``begins`` in ``image``."""
        builder = self.builder
        zero, fully_inside = builder.constant(I64, 0), self._inside(begins)
        with builder.loop(self.first, self.end, carried=self.first_element, frozen=True) as iteration:
            base = iteration.index * self.run
            begin, end = larger(base, self.low), minimum(base + self.run, self.high)
            skipped, length = begin - base, end - begin
            positions = [p + t * d for p, t, d in zip(begins, iteration.carried, self.dilations, strict=True)]
            valid_range = partial(self._valid_range, positions, skipped, length)
            data_begin, data_end = builder.if_else(fully_inside, partial(list, (zero, length)), valid_range)
            source = builder.offset(image, linear_offset(positions, self.strides) + skipped, self.element)
            self._copy_run(
                builder.offset(target, begin - self.low, self.element), source, length, data_begin, data_end
            )
            _, *following = next_index([zero, *iteration.carried], self.lengths)
            iteration.next(*following)

    def _inside(self, begins: Sequence[EmittedValue]) -> EmittedValue:
        """Whether a piece is completely inside of the tensor, without padding."""
        *outer, last = [(n - 1) * d + 1 for n, d in zip(self.lengths, self.dilations, strict=True)]
        inside = self.builder.constant(BOOL, True)
        for begin, reach, size in zip(begins, (*outer, last + self.span - 1), self.sizes, strict=True):
            inside = inside & (begin >= 0) & (begin + reach <= size)
        return inside

    def _valid_range(
        self, positions: Sequence[EmittedValue], skipped: EmittedValue, length: EmittedValue
    ) -> list[EmittedValue]:
        """The begin and end of the part of a run that is inside of the tensor, after its skipped elements."""
        *outer, last = positions
        inside = self.builder.constant(BOOL, True)
        for position, size in zip(outer, self.sizes, strict=False):
            inside = inside & (position >= 0) & (position < size)
        data_begin = larger(-last, 0) * self.channels - skipped
        data_end = minimum(self.sizes[-1] - last, self.span) * self.channels - skipped
        data_begin = minimum(larger(data_begin, 0), length)
        return [data_begin, inside.select(larger(minimum(data_end, length), data_begin), data_begin)]

    def _copy_run(
        self,
        target: EmittedValue,
        source: EmittedValue,
        length: EmittedValue,
        data_begin: EmittedValue,
        data_end: EmittedValue,
    ) -> None:
        """Emit the copy of the elements ``data_begin`` to ``data_end`` of a run; the others become zero."""
        builder = self.builder

        def clear(index: EmittedValue, part: Type, mask: EmittedValue | None) -> None:
            builder.store(builder.constant(part, 0.0), target, index, mask)

        def copy(index: EmittedValue, part: Type, mask: EmittedValue | None) -> None:
            builder.store(builder.load(source, index, part, mask), target, index, mask)

        with builder.if_then((data_begin > 0) | (data_end < length)):
            self._write(builder.constant(I64, 0), data_begin, clear)
            self._write(data_end, length, clear)
        self._write(data_begin, data_end, copy)

    def _write(
        self,
        begin: EmittedValue,
        end: EmittedValue,
        write: Callable[[EmittedValue, Type, EmittedValue | None], None],
    ) -> None:
        """Emit ``write(index, type, mask)`` for the elements ``begin`` to ``end``, in vectors.

        The remainder is a masked vector, or single elements where masked stores are slow.
        """
        builder, lanes, vector = self.builder, self.lanes, self.element.vector(self.lanes)
        full = begin + ((end - begin) & -lanes)
        with builder.loop(begin, full, lanes, frozen=True) as step:
            write(step.index, vector, None)
        if has_mask_registers(vector):
            with builder.if_then(full < end):
                write(full, vector, builder.first_lanes(end - full, lanes))
        else:
            with builder.loop(full, end) as step:
                write(step.index, self.element, None)


def linear_offset(index: Sequence[EmittedValue], strides: Sequence[EmittedValue]) -> EmittedValue:
    """The offset of an index: the dot product with the strides."""
    offset = index[0] * strides[0]
    for i, stride in zip(index[1:], strides[1:], strict=True):
        offset = offset + i * stride
    return offset


def unravel_index(first: EmittedValue, sizes: Sequence[EmittedValue]) -> list[EmittedValue]:
    """The position of element number ``first``: its batch, then its index on each axis of ``sizes``."""
    index: list[EmittedValue] = []
    for size in reversed(sizes):
        divisor = larger(size, 1)
        quotient = first.quotient(divisor)
        index.insert(0, first - quotient * divisor)
        first = quotient
    return [first, *index]


def next_index(index: Sequence[EmittedValue], sizes: Sequence[EmittedValue]) -> list[EmittedValue]:
    """The position after ``index``, which is a batch followed by an index on each axis of ``sizes``."""
    batch, *inner = index
    following: list[EmittedValue] = []
    carry = inner[-1] + 1
    for i, size in zip(reversed([batch, *inner[:-1]]), reversed(sizes), strict=True):
        over = carry >= size
        following.insert(0, over.select(0, carry))
        carry = over.select(i + 1, i)
    return [carry, *following]


def larger(left: EmittedValue, right: EmittedValue | int) -> EmittedValue:
    """The larger of two integers."""
    return (left > right).select(left, right)
