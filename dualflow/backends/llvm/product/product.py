"""Matrix products called from machine code: our own, or those of the BLAS that NumPy brings.

Our own share the threads of the kernels, read operands as they lie, and start faster. They need wide vectors:
on processors without them, NumPy's BLAS is called, if it can be found.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from dualflow.backends.llvm.product.gemm import ELEMENTS, Gemm, MatrixStrides, bits_of, gemm
from dualflow.backends.llvm.runtime.source import IrSource
from dualflow.backends.llvm.text import I32, I64, PTR, VOID, LlvmModule, Type
from dualflow.core import blas
from dualflow.core.records import NamedTuple
from dualflow.core.size_functions import largest
from dualflow.schedule.nest import Layout
from dualflow.schedule.sliding import SlidingWindows

ROW_MAJOR, AS_IS, TRANSPOSED = 101, 111, 112
_BLAS = {"f": "cblas_sgemm", "d": "cblas_dgemm"}


def blas_function(char: str) -> IrSource:
    """A call of BLAS for matrices of a type, by the character of its dtype; it takes what our own takes."""
    return _blas_call(char, _int_bits())


def blas_symbols() -> dict[str, int]:
    """The addresses of what :func:`blas_function` calls."""
    found = blas.find()
    return {} if found is None else dict(found.symbols)


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

    def blas_table(self) -> list[int]:
        """What describes one to :func:`blas_function`."""
        rows, columns, inner = self.sizes
        readings = Matrix.of(self.layouts[0], rows, inner), Matrix.of(self.layouts[1], inner, columns)
        distances = *[r.leading for r in readings], largest(columns, 1)
        factors = [bits_of(self.char, x) for x in (self.scale, float(self.keep))]
        return [*[r.order for r in readings], *self.sizes, *distances, *factors]

    def step(self, scratch: tuple[int, int], table: Sequence[int]) -> list[int]:
        """The numbers of a step but for the function's address; see ``runtime/steps.ll``."""
        nbytes = self.element.nbytes
        places = [n for layout in self.layouts for n in (layout.buffer, layout.offset * nbytes)]
        axes = [
            n
            for axis, extent in enumerate(self.axes)
            for n in (extent, *[layout.strides[axis] * nbytes for layout in self.layouts])
        ]
        return [*places, *scratch, len(self.axes), *axes, *table]


def _int_bits() -> int:
    """The width of the integers that this BLAS takes."""
    found = blas.find()
    return 64 if found is None else found.int_bits


@functools.cache
def _blas_call(char: str, int_bits: int) -> IrSource:
    """A function that is called as our own is, and calls BLAS; the operands are in order for it.

    See :func:`dualflow.schedule.operands.readable_by_blas`.
    """
    module, name = LlvmModule(), f"{_BLAS[char]}_{int_bits}"
    element, integer = ELEMENTS[char], I64 if int_bits == 64 else I32
    arguments = [(a, PTR) for a in ("table", "x", "y", "out", "scratch", "pool", "pfor")]
    made = module.function(name, VOID, arguments)
    b, (table, x, y, out, *_) = made.builder, made.args
    words = [b.load(table, i, I64) for i in range(8)]
    orders = [word.cast(I32) for word in words[:2]]
    rows, columns, inner, of_x, of_y, of_out = [word.cast(integer) for word in words[2:]]
    each = 8 // element.nbytes
    scale, keep = [b.load(table, i * each, element) for i in (8, 9)]
    head = [b.constant(I32, ROW_MAJOR), *orders, rows, columns, inner, scale]
    given = [*head, x, of_x, y, of_y, keep, out, of_out]
    module.declare(_BLAS[char], VOID, [value.type for value in given])
    b.call(_BLAS[char], given)
    b.ret()
    return IrSource(module.text(), (name,))
