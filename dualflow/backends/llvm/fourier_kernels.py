"""Fourier transforms of long rows by the four-step algorithm, vectorized over transforms.

A row of ``length * width`` numbers, a power of two, is viewed as a matrix. Its columns are transformed (1)
and multiplied by twiddle factors (2), then the matrix's rows are transformed (3) and written to the columns
of the result (4). (Bailey, "FFTs in external or hierarchical memory", 1990.) Each lane computes a separate
transform; lanes are exchanged only to transpose square tiles between steps 2 and 3. A transform uses radix-4
butterflies, and radix 2 in the last stage if the length requires it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Final

from dualflow.backends.llvm.kernel_table import KERNEL_ARGS, KernelArguments, load_arguments
from dualflow.backends.llvm.runtime.ir_source import IrSource, named_by_content
from dualflow.backends.llvm.text import I64, VOID, Builder, EmittedValue, LlvmModule, Type
from dualflow.core.dtypes import DType, int64
from dualflow.core.records import NamedTuple
from dualflow.schedule.kernel import Argument, Kernel, KernelLaunch
from dualflow.schedule.kernel_statements import LaunchParameter, ScratchBuffer

Complex = tuple[EmittedValue, EmittedValue]
"""A vector of real parts and one of imaginary parts."""
NUM_PARAMETERS: Final = 3
"""The number of size parameters of both kernels."""
FUSED_BITS: Final = 256
"""The vector width from which processors have FMA instructions."""
_NAME = "fourier"


@functools.cache
def columns_routine(part: DType, lanes: int, inverse: bool, bits: int) -> IrSource:
    """The kernel of the first two steps, over strips of as many columns as there are lanes.

    Its size parameters are the number of strips of a row, and the length and number of columns. It reads the
    input and the tables of :mod:`dualflow.graph.passes.fourier_tables`, and writes strips of rows,
    interleaved: the parts of all their first elements, of all their second ones and so on.
    """
    module, b, (lo, hi), arguments = _new_kernel((part, part, int64, part, part, part), part, bits)
    source, twiddles, order, near, far, out, memory = arguments.pointers
    strips, length, width = arguments.parameters
    scratch = _Strip(b, memory, Type.of_dtype(part.dtype).vector(lanes))
    with b.loop(lo, hi) as iteration:
        batch, strip = iteration.index.quotient(strips), iteration.index.remainder(strips)
        row = batch * length * width
        start = row + strip * lanes
        size = _first_stages(
            scratch, twiddles, length, lambda i: _load_numbers(scratch, source, start + i * width, inverse)
        )
        _last_stage(scratch, length, size, lambda radix, at, numbers: scratch.store_all(at, numbers))
        first = (row + strip * lanes * lanes) * 2
        with b.loop(0, length, lanes) as group:
            numbers: list[Complex] = []
            for i in range(lanes):
                k = group.index + i
                factor_near = scratch.pair(near, k)
                factor = _product(factor_near, _broadcast(scratch, far, k * strip))
                numbers.append(_product(scratch.load(b.load(order, k, I64)), factor))
            to = first + group.index * width * 2
            for p in range(2):
                for i, column in enumerate(_transpose([pair[p] for pair in numbers])):
                    b.store(column, out, to + (2 * i + p) * lanes)
    b.ret()
    return named_by_content(module.text(), _NAME)


@functools.cache
def rows_routine(part: DType, lanes: int, inverse: bool, bits: int) -> IrSource:
    """The kernel of the last two steps, over strips of as many rows as there are lanes.

    Its size parameters are the number of strips of a matrix, and the length and number of rows. It reads the
    first kernel's result, twiddle factors, and the frequency of each index.
    """
    module, b, (lo, hi), arguments = _new_kernel((part, part, int64, part), part, bits)
    source, twiddles, frequencies, out, memory = arguments.pointers
    strips, length, rows = arguments.parameters
    scratch = _Strip(b, memory, Type.of_dtype(part.dtype).vector(lanes))
    with b.loop(lo, hi) as iteration:
        batch, strip = iteration.index.quotient(strips), iteration.index.remainder(strips)
        start = iteration.index * length
        size = _first_stages(scratch, twiddles, length, lambda i: scratch.pair(source, start + i))
        first = batch * length * rows + strip * lanes

        def write(radix: int, at: EmittedValue, numbers: Sequence[Complex]) -> None:
            frequency = b.load(frequencies, at, I64)
            for i, (re, im) in enumerate(numbers):
                pairs = im.interleave(re) if inverse else re.interleave(im)
                to = first + (frequency + i * length.quotient(radix)) * rows
                b.store(pairs.bitcast(scratch.type.vector(2 * lanes)), out, to * 2)

        _last_stage(scratch, length, size, write)
    b.ret()
    return named_by_content(module.text(), _NAME)


class _Strip(NamedTuple):
    """The memory of a strip: for each element of the transforms two vectors of ``type``."""

    builder: Builder
    memory: EmittedValue
    type: Type

    def pair(self, pointer: EmittedValue, index: EmittedValue) -> Complex:
        """Load an element at ``pointer``: the vectors of its real and imaginary parts."""
        at = index * (2 * self.type.lanes)
        return self.builder.load(pointer, at, self.type), self.builder.load(
            pointer, at + self.type.lanes, self.type
        )

    def load(self, index: EmittedValue) -> Complex:
        """Load an element of the strip."""
        return self.pair(self.memory, index)

    def store(self, index: EmittedValue, number: Complex) -> None:
        """Store an element of the strip."""
        for i, part in enumerate(number):
            self.builder.store(part, self.memory, index * (2 * self.type.lanes) + i * self.type.lanes)

    def store_all(self, index: EmittedValue, numbers: Sequence[Complex]) -> None:
        """Store elements from ``index`` on."""
        for i, number in enumerate(numbers):
            self.store(index + i, number)


def _new_kernel(
    buffers: Sequence[DType], part: DType, bits: int
) -> tuple[LlvmModule, Builder, tuple[EmittedValue, EmittedValue], KernelArguments]:
    """A new kernel with these buffers, and scratch memory for a strip."""
    module = LlvmModule(bits)
    function = module.function(_NAME, VOID, KERNEL_ARGS)
    context, lo, hi, thread = function.args
    scratch = ScratchBuffer(len(buffers), part, (LaunchParameter(0),))
    arguments = tuple([Argument(0, 0, dtype) for dtype in buffers])
    launch = KernelLaunch(
        Kernel(tuple(buffers), (), NUM_PARAMETERS, is_long=False, body=(scratch,)), arguments, (), (), 1, 0.0
    )
    return module, function.builder, (lo, hi), load_arguments(function.builder, context, thread, launch)


def _load_numbers(scratch: _Strip, source: EmittedValue, index: EmittedValue, swapped: bool) -> Complex:
    """Load numbers from ``index`` on, with their parts swapped for an inverse transform."""
    lanes = scratch.type.lanes
    pairs = scratch.builder.load(source, index * 2, scratch.type.vector(2 * lanes))
    re, im = pairs.shuffle(range(0, 2 * lanes, 2)), pairs.shuffle(range(1, 2 * lanes, 2))
    return (im, re) if swapped else (re, im)


def _first_stages(
    scratch: _Strip, twiddles: EmittedValue, length: EmittedValue, load: Callable[[EmittedValue], Complex]
) -> EmittedValue:
    """Emit all stages but the last; returns the block size of the last one, 4 or 2.

    This is decimation in frequency (Gentleman and Sande, 1966): results are in digit-reversed order.
    """
    b = scratch.builder
    quarter = length.quotient(4)
    with b.loop(0, quarter) as offset:
        indices = [offset.index + quarter * i for i in range(4)]
        rotated = _twiddled(scratch, twiddles, offset.index, _butterfly(*map(load, indices)))
        for i, number in zip(indices, rotated, strict=True):
            scratch.store(i, number)
    with b.while_loop([quarter]) as loop:
        (size,) = loop.carried
        loop.test(size > 4)
        part, step = size.quotient(4), length.quotient(size)
        with b.loop(0, part) as offset:
            factors = [_broadcast(scratch, twiddles, offset.index * step * i) for i in (1, 2, 3)]
            with b.loop(offset.index, length, size) as block:
                indices = [block.index + part * i for i in range(4)]
                first, *others = _butterfly(*map(scratch.load, indices))
                rotated = [first, *map(_product, others, factors)]
                for i, number in zip(indices, rotated, strict=True):
                    scratch.store(i, number)
        loop.next(part)
    return loop.results[0]


def _last_stage(
    scratch: _Strip,
    length: EmittedValue,
    size: EmittedValue,
    write: Callable[[int, EmittedValue, Sequence[Complex]], None],
) -> None:
    """Emit the last stage, of blocks of ``size`` elements, 4 or 2; calls ``write(radix, at, results)``."""
    b = scratch.builder
    with b.if_then(size.eq(4)), b.loop(0, length, 4) as block:
        write(4, block.index, _butterfly(*[scratch.load(block.index + i) for i in range(4)]))
    with b.if_then(size.eq(2)), b.loop(0, length, 2) as block:
        x, y = scratch.load(block.index), scratch.load(block.index + 1)
        write(2, block.index, [_sum(x, y), _difference(x, y)])


def _twiddled(
    scratch: _Strip, twiddles: EmittedValue, index: EmittedValue, numbers: Sequence[Complex]
) -> list[Complex]:
    """The results of a butterfly of the first stage, times their twiddle factors."""
    first, *others = numbers
    return [first, *[_product(x, _broadcast(scratch, twiddles, index * i)) for i, x in enumerate(others, 1)]]


def _broadcast(scratch: _Strip, twiddles: EmittedValue, index: EmittedValue) -> Complex:
    """A twiddle factor in all lanes."""
    scalar, lanes = scratch.type.vector(1), scratch.type.lanes
    re, im = (scratch.builder.load(twiddles, index * 2 + i, scalar) for i in range(2))
    return re.splat(lanes), im.splat(lanes)


def _butterfly(x: Complex, y: Complex, z: Complex, w: Complex) -> list[Complex]:
    """The radix-4 butterfly: the transform of four numbers."""
    even, odd = _sum(x, z), _sum(y, w)
    (re, im), (odd_re, odd_im) = _difference(x, z), _difference(y, w)
    return [
        _sum(even, odd),
        (re + odd_im, im - odd_re),
        _difference(even, odd),
        (re - odd_im, im + odd_re),
    ]


def _sum(x: Complex, y: Complex) -> Complex:
    return x[0] + y[0], x[1] + y[1]


def _difference(x: Complex, y: Complex) -> Complex:
    return x[0] - y[0], x[1] - y[1]


def _product(x: Complex, y: Complex) -> Complex:
    """A complex product, with FMA instructions if all processors of this vector width have them."""
    (x_re, x_im), (y_re, y_im) = x, y
    module = x_re.emitter.symbols
    assert isinstance(module, LlvmModule), "kernels are written into modules"
    if module.vector_bits < FUSED_BITS:
        return x_re * y_re - x_im * y_im, x_re * y_im + x_im * y_re
    return x_re.fma(y_re, -(x_im * y_im)), x_re.fma(y_im, x_im * y_re)


def _transpose(rows: Sequence[EmittedValue]) -> list[EmittedValue]:
    """The transpose of a square tile: exchanges halves of rows, then quarters and so on."""
    columns, lanes = list(rows), len(rows)
    half = lanes // 2
    while half:
        low = [i + (lanes - half if i & half else 0) for i in range(lanes)]
        high = [i + (lanes if i & half else half) for i in range(lanes)]
        for i in range(lanes):
            if not i & half:
                upper, lower = columns[i], columns[i + half]
                columns[i], columns[i + half] = upper.shuffle(low, lower), upper.shuffle(high, lower)
        half //= 2
    return columns
