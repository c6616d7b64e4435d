"""Matrix products called from machine code: our own, or those of the BLAS that NumPy brings.

Our own share the threads of the kernels, read operands as they lie, and start faster. They need wide vectors:
on processors without them, NumPy's BLAS is called, if it can be found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from dualflow.backends.llvm.product import blas
from dualflow.backends.llvm.product.choice import own
from dualflow.backends.llvm.product.gemm import ELEMENTS, Gemm, MatrixStrides, gemm
from dualflow.backends.llvm.text import I32, PTR, VOID, Builder, EmittedValue, LlvmModule, Type
from dualflow.core.size_functions import largest
from dualflow.schedule.nest import Layout
from dualflow.schedule.sliding import SlidingWindows

ROW_MAJOR, AS_IS, TRANSPOSED = 101, 111, 112
_BLAS = {"f": "cblas_sgemm", "d": "cblas_dgemm"}


def routine(char: str, *, windows: bool = False) -> str:
    """The name of the function that multiplies matrices of a type, by the character of its dtype.

    The first of them may be ``windows`` of a tensor, for our own function alone.
    """
    return gemm(char, windows=windows).routine if own() else _BLAS[char]


def address(name: str) -> int:
    """Where a function that :func:`routine` names is; our own are compiled on the first call."""
    for made in (gemm(char, windows=windows) for char in ELEMENTS for windows in (False, True)):
        if name == made.routine:
            return made.library().address(name)
    found = blas.find()
    assert found is not None, "only a BLAS that was found is called"
    return found.symbols[name]


class Matrix(NamedTuple):
    """How BLAS reads a matrix: as it is or transposed, and the distance of its rows."""

    order: int
    leading: int

    @classmethod
    def of(cls, layout: Layout, rows: int, columns: int) -> Matrix:
        """The reading of a matrix one of whose dims has neighbouring elements."""
        down, across = layout.strides[-2:]
        if across == 1:
            return cls(AS_IS, largest(down, largest(columns, 1)))
        return cls(TRANSPOSED, largest(across, largest(rows, 1)))


class Batch(NamedTuple):
    """Matrices to multiply: ``out = scale * (x @ y)``, or with ``keep`` ``out += scale * (x @ y)``.

    Attributes:
        char: the character of the dtype.
        sizes: rows, columns and inner size of each product.
        axes: sizes of the batch.
        layouts: those of x, y and out, with a stride for each axis of the batch.
        windows: those that x has in place of a matrix.
        by_window: whether they are rows; else they are columns.
    """

    char: str
    sizes: tuple[int, int, int]
    axes: tuple[int, ...]
    layouts: tuple[Layout, Layout, Layout]
    scale: float
    keep: bool
    windows: SlidingWindows | None = None
    by_window: bool = True

    @property
    def element(self) -> Type:
        """The machine's type of an element."""
        return ELEMENTS[self.char]

    @property
    def gemm(self) -> Gemm:
        """Our own machine code for them."""
        return gemm(self.char, windows=self.windows is not None)

    def table(self, threads: int) -> list[int]:
        """What describes one of the products to our own machine code."""
        x, y, out = (MatrixStrides(*layout.strides[-2:]) for layout in self.layouts)
        made = self.gemm
        if self.windows is not None:
            return made.window_table(
                self.sizes,
                (y, out),
                self.windows,
                by_window=self.by_window,
                scale=self.scale,
                keep=self.keep,
                threads=threads,
            )
        return made.table(self.sizes, (x, y, out), scale=self.scale, keep=self.keep, threads=threads)


@dataclass(frozen=True, slots=True)
class ProductWriter:
    """Writes the calls; ``param`` lists an integer of the parameter table and returns its run-time value."""

    module: LlvmModule
    builder: Builder
    buffers: EmittedValue
    param: Callable[[int], EmittedValue]

    def call_own(
        self, batch: Batch, table: EmittedValue, scratch: EmittedValue, pool: EmittedValue, pfor: EmittedValue
    ) -> None:
        """Call our own routine for each product."""
        name = batch.gemm.routine
        self.module.declare(name, VOID, [PTR] * 7)
        with self._each(batch) as pointers:
            self.builder.call(name, [table, *pointers, scratch, pool, pfor])

    def call_blas(self, batch: Batch) -> None:
        """Call BLAS for each product; the operands are :func:`dualflow.schedule.operands.readable`."""
        b = self.builder
        rows, columns, inner = batch.sizes
        x, y, _ = batch.layouts
        readings = Matrix.of(x, rows, inner), Matrix.of(y, inner, columns)
        orders = [self.param(r.order).cast(I32) for r in readings]
        integers = [self._int(n) for n in batch.sizes]
        distances = [self._int(n) for n in (*[r.leading for r in readings], largest(columns, 1))]
        factors = [b.constant(batch.element, n) for n in (batch.scale, float(batch.keep))]
        with self._each(batch) as pointers:
            operands = [value for pair in zip(pointers, distances, strict=True) for value in pair]
            head = [b.constant(I32, ROW_MAJOR), *orders, *integers, factors[0]]
            arguments = [*head, *operands[:4], factors[1], *operands[4:]]
            self.module.declare(_BLAS[batch.char], VOID, [a.type for a in arguments])
            b.call(_BLAS[batch.char], arguments)

    @contextmanager
    def _each(self, batch: Batch) -> Iterator[list[EmittedValue]]:
        """The loops over a batch: what is written inside runs for each product, whose matrices these are."""
        b, layouts = self.builder, batch.layouts
        places = [self.param(layout.offset) for layout in layouts]
        with ExitStack() as loops:
            for axis, extent in enumerate(batch.axes):
                turn = loops.enter_context(b.loop(0, self.param(extent)))
                strides = [self.param(layout.strides[axis]) for layout in layouts]
                places = [p + turn.index * stride for p, stride in zip(places, strides, strict=True)]
            yield [
                b.offset(b.load(self.buffers, layout.buffer, PTR), place, batch.element)
                for layout, place in zip(layouts, places, strict=True)
            ]

    def _int(self, number: int) -> EmittedValue:
        """A run-time integer of the width that this BLAS takes."""
        found = blas.find()
        value = self.param(number)
        return value if found is None or found.int_bits == 64 else value.cast(I32)
