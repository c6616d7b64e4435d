"""Batches of matrix products as steps of a program: by the backend's own routine, or by NumPy's BLAS.

The backend's routine uses the thread pool of the kernels, accepts any strides, and has less overhead. It
needs wide vectors: on processors without them, NumPy's BLAS is called, if there is one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from dualflow.backends.llvm.product.gemm import (
    ELEMENTS,
    MIN_THREAD_WORK,
    Gemm,
    MatrixStrides,
    bits_of,
    gemm,
)
from dualflow.backends.llvm.product.gemm_kernel import ROUTINE, Field
from dualflow.backends.llvm.runtime.ir_source import IrSource
from dualflow.backends.llvm.text import I32, I64, VOID, LlvmModule, Type
from dualflow.core.locks import imported
from dualflow.core.records import NamedTuple
from dualflow.schedule.nest import Layout
from dualflow.schedule.sliding import SlidingWindows
from dualflow.sizes.size_functions import largest, smallest
from dualflow.sizes.symbolic_sizes import typical

ROW_MAJOR, NOT_TRANSPOSED, TRANSPOSED = 101, 111, 112
"""The values of CBLAS_LAYOUT and CBLAS_TRANSPOSE."""
_BLAS = {"f": "cblas_sgemm", "d": "cblas_dgemm"}
MIN_PRODUCTS_PER_THREAD = 2
"""Threads compute whole products from this number per thread on: with fewer, some threads would be idle."""
CHUNKS_PER_THREAD = 2, 8
"""The minimum and the maximum number of chunks per thread: several, so that a delayed thread claims fewer."""


def blas_function(char: str) -> IrSource:
    """The module of a function that calls BLAS, with the signature of :class:`Gemm`'s routine."""
    return _blas_module(char, _int_bits())


def blas_symbols() -> dict[str, int]:
    """The addresses of the functions that :func:`blas_function` calls."""
    library = imported("dualflow.core.blas").find()
    return {} if library is None else dict(library.symbols)


class BlasOperand(NamedTuple):
    """A matrix operand of BLAS: whether it is transposed, and its leading dimension."""

    transposition: int
    leading: int

    @classmethod
    def of(cls, layout: Layout, rows: int, columns: int) -> BlasOperand:
        """The operand for a matrix with one contiguous axis."""
        row_stride, column_stride = layout.strides[-2:]
        if column_stride == 1:
            return cls(NOT_TRANSPOSED, largest(row_stride, largest(columns, 1)))
        return cls(TRANSPOSED, largest(column_stride, largest(rows, 1)))


class ProductBatch(NamedTuple):
    """A batch of products ``out = scale * (x @ y)``, or with ``accumulate`` ``out += scale * (x @ y)``.

    The methods ``*_parameters`` return flat lists of integers, which machine code reads from the parameter
    table. Those of a step end with those of the routine that it calls:

    ====================  =========================================================================
    step_parameters       buffer and offset of x, y, out and scratch; number of axes; size and byte
                          strides of each axis; parameters of the routine
    product_parameters    :class:`gemm_kernel.Field`: one product of matrices
    window_parameters     the same, for x as sliding windows
    blas_parameters       transposition of x and y; sizes; leading dimensions of x, y, out; alpha, beta
    split_parameters      :class:`shared_batch.BatchField`, then product_parameters
    ====================  =========================================================================

    Attributes:
        char: the character of the result's dtype. For "i" the strides of the factors count groups of four
            bytes, their offsets bytes.
        sizes: rows, columns and inner size of each product.
        axes: the sizes of the axes of the batch.
        layouts: the layouts of x, y and out, with a stride for each axis of the batch.
        windows: the sliding windows of x, if x is no matrix.
        by_window: whether windows are the rows of the factor; else its columns.
    """

    char: str
    sizes: tuple[int, int, int]
    axes: tuple[int, ...]
    layouts: tuple[Layout, Layout, Layout]
    scale: float
    accumulate: bool
    windows: SlidingWindows | None = None
    by_window: bool = True

    @property
    def element(self) -> Type:
        """The IR type of an element."""
        return ELEMENTS[self.char]

    @property
    def gemm(self) -> Gemm:
        """The backend's own routine for these matrices."""
        return gemm(self.char, windows=self.windows is not None)

    def window_parameters(self, threads: int) -> list[tuple[int, list[int]]]:
        """Parameters of one product with sliding windows, each with whether a call uses them: 1 or 0.

        If the step of the windows is symbolic, there are several: see :meth:`Gemm.window_tables`.
        """
        assert self.windows is not None
        _, y, out = self._matrices()
        return self.gemm.window_tables(
            self.sizes,
            (y, out),
            self.windows,
            by_window=self.by_window,
            scale=self.scale,
            accumulate=self.accumulate,
            threads=threads,
        )

    def product_parameters(self, threads: int) -> list[int]:
        """The parameters of one product of two matrices for the backend's own routine."""
        return self.gemm.table(
            self.sizes, self._matrices(), scale=self.scale, accumulate=self.accumulate, threads=threads
        )

    def _matrices(self) -> tuple[MatrixStrides, MatrixStrides, MatrixStrides]:
        x, y, out = (MatrixStrides(*layout.strides[-2:]) for layout in self.layouts)
        return x, y, out

    def blas_parameters(self) -> list[int]:
        """The parameters of one product for :func:`blas_function`."""
        rows, columns, inner = self.sizes
        operands = (
            BlasOperand.of(self.layouts[0], rows, inner),
            BlasOperand.of(self.layouts[1], inner, columns),
        )
        leading = *[o.leading for o in operands], largest(columns, 1)
        factors = [bits_of(self.char, x) for x in (self.scale, float(self.accumulate))]
        return [*[o.transposition for o in operands], *self.sizes, *leading, *factors]

    def step_parameters(
        self, scratch: tuple[int, int], routine_parameters: Sequence[int], enabled: int = 1
    ) -> list[int]:
        """The parameters of the step of this batch after the function's address; see ``runtime/steps.ll``.

        ``scratch`` is the buffer and the byte offset of scratch memory. ``enabled`` is 1 if a call executes
        the step, and 0 if not. A symbolic one becomes the size of one more axis of the batch, so that the
        step runs once or never.
        """
        nbytes = self.element.nbytes
        operand_bytes = (1, 1, nbytes) if self.char == "i" else (nbytes,) * 3
        sized = zip(self.layouts, operand_bytes, strict=True)
        operands = [n for layout, size in sized for n in (layout.buffer, layout.offset * size)]
        axes = [] if type(enabled) is int else [enabled, 0, 0, 0]
        axes += [
            n
            for axis, size in enumerate(self.axes)
            for n in (size, *[layout.strides[axis] * nbytes for layout in self.layouts])
        ]
        return [*operands, *scratch, len(axes) // 4, *axes, *routine_parameters]

    def splits_whole_products(self, threads: int) -> bool:
        """Whether threads share the batch by whole products: there are several for each thread."""
        if threads == 1 or self.windows is not None or not self.axes:
            return False
        if len(self.axes) > imported("dualflow.backends.llvm.product.shared_batch").MAX_AXES:
            return False
        work = math.prod((*self.axes, *self.sizes)) * self.element.nbytes
        return (
            typical(self.axes[0]) >= MIN_PRODUCTS_PER_THREAD * threads
            and typical(work) >= 2 * MIN_THREAD_WORK
        )

    def split_parameters(self, threads: int) -> list[int]:
        """The parameters of :func:`shared_batch.routine`, with those of one product."""
        shared = imported("dualflow.backends.llvm.product.shared_batch")
        size, nbytes, fields = self.axes[0], self.element.nbytes, shared.BatchField
        # A product runs on one thread; only a batch whose symbolic size is small shares its blocks.
        product = self.product_parameters(1 if type(size) is int else threads)
        axes = [
            (size, *[layout.strides[axis] * nbytes for layout in self.layouts])
            for axis, size in enumerate(self.axes)
        ]
        axes += [(1, 0, 0, 0)] * (shared.MAX_AXES - len(axes))
        header = [0] * fields.SIZE  # the linker writes PRODUCT
        header[fields.THREAD_SCRATCH] = product[Field.THREAD_SCRATCH] * nbytes
        header[fields.CHUNK] = self._chunk(threads)
        header[fields.LEAST] = MIN_PRODUCTS_PER_THREAD * threads
        return [*header, *[n for axis in axes for n in axis], *product]

    def _chunk(self, threads: int) -> int:
        """The number of indices of the first axis that a thread claims: enough work, in several chunks."""
        size = self.axes[0]
        work = typical(math.prod((*self.axes[1:], *self.sizes))) * self.element.nbytes
        least, most = CHUNKS_PER_THREAD
        chunk = largest(-(-MIN_THREAD_WORK // max(work, 1)), -(-size // (most * threads)))
        return smallest(chunk, -(-size // (least * threads)))

    def split_step_parameters(self, scratch: tuple[int, int], split_parameters: Sequence[int]) -> list[int]:
        """The parameters of a step of :func:`shared_batch.routine`: one call, which loops over the batch."""
        return self._replace(axes=()).step_parameters(scratch, split_parameters)


def _int_bits() -> int:
    """The width in bits of the integer arguments of NumPy's BLAS."""
    library = imported("dualflow.core.blas").find()
    return 64 if library is None else library.int_bits


@functools.cache
def _blas_module(char: str, int_bits: int) -> IrSource:
    """The module of a function with the signature of :class:`Gemm`'s that calls BLAS.

    Its operands have strides that BLAS supports: see :func:`dualflow.schedule.operands.readable_by_blas`.
    """
    module, name = LlvmModule(), f"{_BLAS[char]}_{int_bits}"
    element, integer = ELEMENTS[char], I64 if int_bits == 64 else I32
    function = module.function(name, VOID, ROUTINE)
    ir, (table, x, y, out, *_) = function.builder, function.args
    parameters = [ir.load(table, i, I64) for i in range(8)]
    transpositions = [word.cast(I32) for word in parameters[:2]]
    rows, columns, inner, x_leading, y_leading, out_leading = [word.cast(integer) for word in parameters[2:]]
    per_word = 8 // element.nbytes
    scale, accumulate = [ir.load(table, i * per_word, element) for i in (8, 9)]
    leading_arguments = [ir.constant(I32, ROW_MAJOR), *transpositions, rows, columns, inner, scale]
    blas_arguments = [*leading_arguments, x, x_leading, y, y_leading, accumulate, out, out_leading]
    module.declare(_BLAS[char], VOID, [value.type for value in blas_arguments])
    ir.call(_BLAS[char], blas_arguments)
    ir.ret()
    return IrSource(module.text(), (name,))
