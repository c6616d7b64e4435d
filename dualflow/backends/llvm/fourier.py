"""Fourier transforms of long rows in four steps: kernels over registers with an element of many transforms.

A row of ``length * width`` numbers, a power of two, is seen as a matrix. Its columns are transformed (1) and
multiplied by roots of unity (2), which leaves transforms of the matrix's rows (3); these are written down the
columns of the result (4). (Bailey, "FFTs in external or hierarchical memory", 1990.) Each lane has a
transform of its own, so nothing moves between lanes but where columns turn to rows, by squares. Within a
transform butterflies have four legs, and the last ones two where the length asks for that.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Final

from dualflow.backends.llvm.kernel_table import KERNEL_ARGS, Given, read
from dualflow.backends.llvm.runtime.source import IrSource, named_by_content
from dualflow.backends.llvm.text import I64, VOID, Builder, EmittedValue, LlvmModule, Type
from dualflow.core.dtypes import DType, int64
from dualflow.core.records import NamedTuple
from dualflow.schedule.loop_program import Argument, Kernel, LaunchParameter, Run, ScratchBuffer

Complex = tuple[EmittedValue, EmittedValue]
"""The real and the imaginary parts of the numbers in a register."""
NUMBERS: Final = 3
"""So many sizes both kernels are given."""
FUSED_BITS: Final = 256
"""Processors with registers of so many bits multiply and add at once."""
_NAME = "fourier"


@functools.cache
def columns_routine(part: DType, lanes: int, inverse: bool, bits: int) -> IrSource:
    """The kernel of the first two steps, over strips of as many columns as there are lanes.

    It is given the strips of a row of numbers, and the length and number of columns. It reads numbers and the
    tables of :mod:`dualflow.graph.passes.fourier`, and writes strips of rows: the parts of all their first
    elements, of all their second ones and so on.
    """
    module, b, (lo, hi), given = _begun((part, part, int64, part, part, part), part, bits)
    source, roots, places, near, far, out, memory = given.pointers
    strips, length, width = given.numbers
    work = _Work(b, memory, Type.of_dtype(part.dtype).vector(lanes))
    with b.loop(lo, hi) as iteration:
        batch, strip = iteration.index.quotient(strips), iteration.index.remainder(strips)
        row = batch * length * width
        start = row + strip * lanes
        size = _begin(work, roots, length, lambda i: _numbers(work, source, start + i * width, inverse))
        _end(work, length, size, lambda legs, at, found: work.put_all(at, found))
        first = (row + strip * lanes * lanes) * 2
        with b.loop(0, length, lanes) as group:
            found: list[Complex] = []
            for i in range(lanes):
                k = group.index + i
                own = work.pair(near, k)
                factor = _product(own, _spread(work, far, k * strip))
                found.append(_product(work.take(b.load(places, k, I64)), factor))
            to = first + group.index * width * 2
            for p in range(2):
                for i, column in enumerate(_square([pair[p] for pair in found])):
                    b.store(column, out, to + (2 * i + p) * lanes)
    b.ret()
    return named_by_content(module.text(), _NAME)


@functools.cache
def rows_routine(part: DType, lanes: int, inverse: bool, bits: int) -> IrSource:
    """The kernel of the last two steps, over strips of as many rows as there are lanes.

    It is given the strips of a matrix, and the length and number of rows. It reads what the first kernel has
    written, roots, and the frequencies of places.
    """
    module, b, (lo, hi), given = _begun((part, part, int64, part), part, bits)
    source, roots, frequencies, out, memory = given.pointers
    strips, length, rows = given.numbers
    work = _Work(b, memory, Type.of_dtype(part.dtype).vector(lanes))
    with b.loop(lo, hi) as iteration:
        batch, strip = iteration.index.quotient(strips), iteration.index.remainder(strips)
        start = iteration.index * length
        size = _begin(work, roots, length, lambda i: work.pair(source, start + i))
        first = batch * length * rows + strip * lanes

        def write(legs: int, at: EmittedValue, found: Sequence[Complex]) -> None:
            frequency = b.load(frequencies, at, I64)
            for i, (re, im) in enumerate(found):
                whole = im.interleave(re) if inverse else re.interleave(im)
                to = first + (frequency + i * length.quotient(legs)) * rows
                b.store(whole.bitcast(work.type.vector(2 * lanes)), out, to * 2)

        _end(work, length, size, write)
    b.ret()
    return named_by_content(module.text(), _NAME)


class _Work(NamedTuple):
    """Where a strip is transformed: for each element of the transforms two registers of ``type``."""

    b: Builder
    memory: EmittedValue
    type: Type

    def pair(self, pointer: EmittedValue, index: EmittedValue) -> Complex:
        """The two registers of an element anywhere."""
        at = index * (2 * self.type.lanes)
        return self.b.load(pointer, at, self.type), self.b.load(pointer, at + self.type.lanes, self.type)

    def take(self, index: EmittedValue) -> Complex:
        """An element."""
        return self.pair(self.memory, index)

    def put(self, index: EmittedValue, number: Complex) -> None:
        """Change an element."""
        for i, part in enumerate(number):
            self.b.store(part, self.memory, index * (2 * self.type.lanes) + i * self.type.lanes)

    def put_all(self, index: EmittedValue, numbers: Sequence[Complex]) -> None:
        """Change elements from ``index`` on."""
        for i, number in enumerate(numbers):
            self.put(index + i, number)


def _begun(
    buffers: Sequence[DType], part: DType, bits: int
) -> tuple[LlvmModule, Builder, tuple[EmittedValue, EmittedValue], Given]:
    """A kernel with these buffers and memory of its own for a strip."""
    module = LlvmModule(bits)
    function = module.function(_NAME, VOID, KERNEL_ARGS)
    context, lo, hi, slot = function.args
    own = ScratchBuffer(len(buffers), part, (LaunchParameter(0),))
    arguments = tuple([Argument(0, 0, dtype) for dtype in buffers])
    given = Run(Kernel(tuple(buffers), (), NUMBERS, False, (own,)), arguments, (), (), 1, 0.0)
    return module, function.builder, (lo, hi), read(function.builder, context, slot, given)


def _numbers(work: _Work, source: EmittedValue, index: EmittedValue, swapped: bool) -> Complex:
    """The numbers from ``index`` on; with parts exchanged, forth is back."""
    lanes = work.type.lanes
    both = work.b.load(source, index * 2, work.type.vector(2 * lanes))
    re, im = both.shuffle(range(0, 2 * lanes, 2)), both.shuffle(range(1, 2 * lanes, 2))
    return (im, re) if swapped else (re, im)


def _begin(
    work: _Work, roots: EmittedValue, length: EmittedValue, given: Callable[[EmittedValue], Complex]
) -> EmittedValue:
    """All butterflies but the last, of blocks that halve twice: the size of the last blocks, 4 or 2.

    Frequencies are decimated (Gentleman and Sande, 1966): results lie in the order of reversed digits.
    """
    b = work.b
    quarter = length.quotient(4)
    with b.loop(0, quarter) as leg:
        places = [leg.index + quarter * i for i in range(4)]
        turned = _turned(work, roots, leg.index, _butterfly(*map(given, places)))
        for place, number in zip(places, turned, strict=True):
            work.put(place, number)
    with b.while_loop([quarter]) as loop:
        (size,) = loop.carried
        loop.test(size > 4)
        part, step = size.quotient(4), length.quotient(size)
        with b.loop(0, part) as leg:
            factors = [_spread(work, roots, leg.index * step * i) for i in (1, 2, 3)]
            with b.loop(leg.index, length, size) as block:
                places = [block.index + part * i for i in range(4)]
                first, *others = _butterfly(*map(work.take, places))
                turned = [first, *map(_product, others, factors)]
                for place, number in zip(places, turned, strict=True):
                    work.put(place, number)
        loop.next(part)
    return loop.results[0]


def _end(
    work: _Work,
    length: EmittedValue,
    size: EmittedValue,
    write: Callable[[int, EmittedValue, Sequence[Complex]], None],
) -> None:
    """The last butterflies, over blocks of ``size`` elements, 4 or 2; ``write(size, place, results)``."""
    b = work.b
    with b.if_then(size.eq(4)), b.loop(0, length, 4) as block:
        write(4, block.index, _butterfly(*[work.take(block.index + i) for i in range(4)]))
    with b.if_then(size.eq(2)), b.loop(0, length, 2) as block:
        x, y = work.take(block.index), work.take(block.index + 1)
        write(2, block.index, [_sum(x, y), _difference(x, y)])


def _turned(work: _Work, roots: EmittedValue, leg: EmittedValue, numbers: Sequence[Complex]) -> list[Complex]:
    """The results of a butterfly over the whole length, times their roots."""
    first, *others = numbers
    return [first, *[_product(x, _spread(work, roots, leg * i)) for i, x in enumerate(others, 1)]]


def _spread(work: _Work, roots: EmittedValue, index: EmittedValue) -> Complex:
    """One root in all lanes."""
    scalar, lanes = work.type.vector(1), work.type.lanes
    re, im = (work.b.load(roots, index * 2 + i, scalar) for i in range(2))
    return re.splat(lanes), im.splat(lanes)


def _butterfly(x: Complex, y: Complex, z: Complex, w: Complex) -> list[Complex]:
    """The transform of four numbers."""
    even, odd = _sum(x, z), _sum(y, w)
    (re, im), (right, up) = _difference(x, z), _difference(y, w)
    return [_sum(even, odd), (re + up, im - right), _difference(even, odd), (re - up, im + right)]


def _sum(x: Complex, y: Complex) -> Complex:
    return x[0] + y[0], x[1] + y[1]


def _difference(x: Complex, y: Complex) -> Complex:
    return x[0] - y[0], x[1] - y[1]


def _product(x: Complex, y: Complex) -> Complex:
    """A product, by instructions that multiply and add where all processors with such registers have them."""
    (re, im), (right, up) = x, y
    module = re.emitter.symbols
    assert isinstance(module, LlvmModule), "kernels are written into modules"
    if module.vector_bits < FUSED_BITS:
        return re * right - im * up, re * up + im * right
    return re.fma(right, -(im * up)), re.fma(up, im * right)


def _square(rows: Sequence[EmittedValue]) -> list[EmittedValue]:
    """The columns of a square given by its rows: halves are exchanged, then quarters and so on."""
    found, lanes = list(rows), len(rows)
    half = lanes // 2
    while half:
        low = [i + (lanes - half if i & half else 0) for i in range(lanes)]
        high = [i + (lanes if i & half else half) for i in range(lanes)]
        for i in range(lanes):
            if not i & half:
                upper, lower = found[i], found[i + half]
                found[i], found[i + half] = upper.shuffle(low, lower), upper.shuffle(high, lower)
        half //= 2
    return found
