"""Matrix products in machine code, for any sizes and strides, on the thread pool of kernels.

C is split into blocks, each computed by one thread. A block splits K into K blocks of at most ``MAX_DEPTH``,
and B into panels as wide as a register tile: the first tile of rows packs the panel while it uses it, and the
other rows read the packed copy. An element of C is a chain of multiply-adds in order of K, and the sums of K
blocks are added in order (for a single column: a chain for each lane, added in pairs). This does not depend
on the blocks, so results are the same bits on any number of threads.

The algorithm is that of Goto and van de Geijn, "Anatomy of high-performance matrix multiplication" (2008),
without packing A: broadcasting an element costs the same for any stride.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Sequence

from dualflow.backends.llvm.product.gemm_blocks import emit_blocks, emit_entry
from dualflow.backends.llvm.product.gemm_kernel import Field, Tile, emit_dot, emit_tiles
from dualflow.backends.llvm.product.gemm_pack import emit_copy, emit_pack
from dualflow.backends.llvm.product.gemm_windows import emit_pieces
from dualflow.backends.llvm.product.window_layout import copied_windows
from dualflow.backends.llvm.product.window_offsets import emit_offsets, emit_windows, list_lengths
from dualflow.backends.llvm.runtime.ir_source import IrSource
from dualflow.backends.llvm.runtime.target import vector_bits
from dualflow.backends.llvm.text import F32, F64, LlvmModule, Type
from dualflow.core.records import NamedTuple
from dualflow.core.size_functions import largest, smallest
from dualflow.core.symbolic_sizes import typical
from dualflow.schedule.sliding import SlidingWindows

ELEMENTS = {"f": F32, "d": F64}
"""Element types by the character of their dtype."""
MAX_DEPTH = 512
"""The maximum depth of a K block: its packed panel, 128 KiB, leaves most of a second-level cache to A."""
MAX_ROWS = 512
"""The maximum number of rows of a block, so that its K block of A stays in a cache for all panels."""
MAX_COPIED_ROWS = 256
"""The same if A is copied: B's panel, the source and the copy share a second-level cache."""
MIN_THREAD_WORK = 2_400_000
"""The minimum work of a block for a thread, in multiply-adds times bytes of an element: about 5 us."""
NARROW = Tile(8, 1)
"""The tile for the last columns, and for matrices of few columns."""
DOTS = 4
"""The number of rows that are computed together in a product with one column."""
DOT_BITS = 512
"""The vector width of such a product's sums on every processor: it determines the order of additions."""
CONFLICT_BYTES = 4096
"""Columns of A whose stride is a multiple of this conflict in a set-associative cache."""


class MatrixStrides(NamedTuple):
    """The strides, in elements, of the rows and of the columns of a matrix."""

    row: int
    column: int

    @property
    def transposed(self) -> MatrixStrides:
        """The strides of the transposed matrix."""
        return MatrixStrides(self.column, self.row)


class GemmBlocking(NamedTuple):
    """The rows and columns of a block of C, the unit of parallel work, and the depth of a K block."""

    rows: int
    columns: int
    depth: int


class Gemm(NamedTuple):
    """Products of matrices of one type, 'f' for float32 or 'd' for float64, with vectors of ``bits``.

    The machine code is one function, the same for all sizes::

        void df_gemm_f(ptr table, ptr a, ptr b, ptr c, ptr scratch, ptr pool, ptr pfor)

    It computes ``c = scale * (a @ b) + accumulate * c``. :meth:`table` returns the table; ``scratch`` is
    aligned to 64 bytes and has :meth:`scratch_bytes`; if ``pfor`` is null all blocks run on the caller.

    With ``windows``, the matrix ``a`` consists of sliding windows of a tensor: ``a`` is the tensor, and each
    block copies its windows, or the lines that contain them, to scratch memory (as im2col, for one block).

    >>> float32 = Gemm("f", 512)
    >>> rows = MatrixStrides(3, 1), MatrixStrides(4, 1), MatrixStrides(4, 1)
    >>> float32.table((2, 4, 3), rows, scale=1.0, accumulate=False, threads=1)[:3]
    [2, 4, 3]
    """

    char: str
    bits: int
    windows: bool = False

    @property
    def element(self) -> Type:
        """The type of one element."""
        return ELEMENTS[self.char]

    @property
    def lanes(self) -> int:
        """Elements of a vector."""
        return self.bits // self.element.bits

    @property
    def wide(self) -> Tile:
        """The register tile: its sums, a row of B and an element of A fit the registers."""
        return Tile(6, 2) if self.bits == 256 else Tile(4, 4)

    @property
    def medium(self) -> Tile | None:
        """A tile of half that width, for windows: convolutions of 32 channels are common."""
        return Tile(8, 2) if self.windows and self.bits == 512 else None

    @property
    def routine(self) -> str:
        """The name of the function."""
        return f"df_gemm_{'windows_' if self.windows else ''}{self.char}"

    def table(
        self,
        sizes: tuple[int, int, int],
        operands: tuple[MatrixStrides, MatrixStrides, MatrixStrides],
        *,
        scale: float,
        accumulate: bool,
        threads: int,
    ) -> list[int]:
        """The parameters of one product of sizes (rows, columns, inner), in the order of :class:`Field`.

        ``operands`` are the strides of a, b and c; c has contiguous rows. ``accumulate`` adds to c. The
        blocking is for the number of ``threads``.
        """
        rows, columns, inner = sizes
        a, b, c = operands
        swapped = _should_swap(rows, columns, a, b, c)
        if swapped:
            rows, columns = columns, rows
            a, b, c = b.transposed, a.transposed, c.transposed
        if columns == 1:
            b = MatrixStrides(b.row, 1)
        copies = self._copies(a, inner)
        blocking = self.blocks((typical(rows), typical(columns), typical(inner)), threads, copies)
        copy_row = self._copy_row(blocking.rows) if copies else 0
        slot = blocking.depth * (self.wide.vectors * self.lanes + copy_row)
        if columns == a.column == b.row == 1:
            blocking, slot = GemmBlocking(blocking.rows, blocking.columns, largest(inner, 1)), 0
        row_blocks, column_blocks = -(-rows // blocking.rows), -(-columns // blocking.columns)
        parameters = [rows, columns, inner, a.row, a.column, b.row, b.column, c.row, int(accumulate)]
        parameters += [
            bits_of(self.char, scale),
            int(swapped),
            blocking.rows,
            blocking.columns,
            blocking.depth,
        ]
        return [*parameters, row_blocks, row_blocks * column_blocks, copy_row, slot]

    def window_table(
        self,
        sizes: tuple[int, int, int],
        operands: tuple[MatrixStrides, MatrixStrides],
        sliding: SlidingWindows,
        *,
        by_window: bool,
        scale: float,
        accumulate: bool,
        threads: int,
    ) -> list[int]:
        """The parameters if the first factor is windows of a tensor, as its rows or as its columns.

        ``operands`` are the strides of b and c; the tensor is contiguous.
        """
        rows, columns, inner = sizes
        b, c = operands
        if columns == 1:
            b = MatrixStrides(b.row, 1)
        blocking = self.window_blocks((typical(rows), typical(columns), typical(inner)), threads, by_window)
        piece_length, count = (
            (blocking.depth, blocking.rows) if by_window else (blocking.rows, blocking.depth)
        )
        reuses = -(-typical(inner) // blocking.depth) if by_window else 1
        copies = copied_windows(
            sliding, (count, piece_length), reuses, self._copy_row, copy_lines=columns != 1 or not by_window
        )
        slot = blocking.depth * self.wide.vectors * self.lanes + copies.size
        row_blocks, column_blocks = -(-rows // blocking.rows), -(-columns // blocking.columns)
        parameters = [rows, columns, inner, 0, 0, b.row, b.column, c.row, int(accumulate)]
        parameters += [bits_of(self.char, scale), 0, blocking.rows, blocking.columns, blocking.depth]
        parameters += [
            row_blocks,
            row_blocks * column_blocks,
            copies.pitch,
            slot,
            int(by_window),
            *copies.parameters(),
        ]
        return parameters

    def window_blocks(self, sizes: tuple[int, int, int], threads: int, by_window: bool) -> GemmBlocking:
        """The blocking of a product of windows: never by columns, since every block copies windows.

        If windows are columns of A, each block reads the whole tensor: there is one block for each thread at
        most.
        """
        rows, columns, inner = (max(size, 1) for size in sizes)
        width = self.wide.vectors * self.lanes
        max_blocks = (
            max(rows * columns * inner * self.element.nbytes // MIN_THREAD_WORK, 1) if threads > 1 else 1
        )
        row_blocks = max(-(-rows // MAX_COPIED_ROWS), min(max_blocks, 4 * threads if by_window else threads))
        block_rows = -(-rows // row_blocks)
        block_rows += -block_rows % NARROW.rows
        return GemmBlocking(block_rows, -(-columns // width) * width, -(-inner // -(-inner // MAX_DEPTH)))

    def blocks(self, sizes: tuple[int, int, int], threads: int, copies: bool = False) -> GemmBlocking:
        """The blocking of a product of sizes (rows, columns, inner) for a number of threads.

        Splitting columns has no overhead, unless every block ``copies`` its rows of A. Splitting rows packs B
        more often, so rows are split only if there are too few blocks for the threads.
        """
        rows, columns, inner = (max(size, 1) for size in sizes)
        width = self.wide.vectors * self.lanes
        panels = -(-columns // width)
        # A partial tile takes as long as a full one.
        tiled = (rows + -rows % self.wide.rows) * (columns + -columns % self.lanes)
        max_blocks = tiled * inner * self.element.nbytes // MIN_THREAD_WORK
        at_most = MAX_COPIED_ROWS if copies else MAX_ROWS
        max_blocks = max(max_blocks, 1) if threads > 1 else 1
        fewest, most = min(max_blocks, 4 * threads), min(max_blocks, (4 if copies else 16) * threads)
        row_blocks = max(-(-rows // at_most), -(-fewest // panels))
        block_rows = -(-rows // row_blocks)
        block_rows += -block_rows % NARROW.rows
        merged = max(1, -(-rows // block_rows) * panels // most)
        return GemmBlocking(block_rows, width * merged, -(-inner // -(-inner // MAX_DEPTH)))

    def scratch_bytes(self, table: Sequence[int], threads: int) -> int:
        """The bytes of scratch memory of a product."""
        return smallest(threads, table[Field.BLOCKS]) * table[Field.SLOT] * self.element.nbytes

    def text(self) -> str:
        """The module of LLVM IR."""
        element, lanes = self.element, self.lanes
        module = LlvmModule(self.bits)
        windows = self.windows
        emit_tiles(module, "wide", self.wide, element, lanes, packing=True, windows=windows)
        if self.medium:
            emit_tiles(module, "medium", self.medium, element, lanes, windows=windows)
        emit_tiles(module, "narrow", NARROW, element, lanes, windows=windows)
        emit_dot(module, "dot", DOTS, element, DOT_BITS // element.bits, windows=windows)
        emit_pack(module, "pack", element, lanes)
        if windows:
            emit_pieces(module, "pieces", element, lanes)
            emit_offsets(module, "places")
            emit_windows(module, "windows")
        else:
            emit_copy(module, "copy", element, lanes)
        lists = list_lengths(MAX_COPIED_ROWS, MAX_DEPTH) if windows else None
        emit_blocks(module, "blocks", (self.wide, self.medium), element, lanes, windows=lists)
        emit_entry(module, self.routine, "blocks")
        return module.text()

    def source(self) -> IrSource:
        """The module that defines the routine."""
        return _source(self)

    def _copies(self, a: MatrixStrides, inner: int) -> bool:
        """Whether blocks copy their rows of A, whose columns would conflict in a cache."""
        column_bytes = a.column * self.element.nbytes
        return (
            a.row == 1
            and column_bytes != 0
            and column_bytes % CONFLICT_BYTES == 0
            and typical(inner) > CONFLICT_BYTES // 16
        )

    def _copy_row(self, rows: int) -> int:
        """The row stride of a copy: an odd number of vectors, which avoids conflicts in a cache."""
        return (-(-rows // self.lanes) // 2 * 2 + 1) * self.lanes


def gemm(char: str, *, windows: bool = False) -> Gemm:
    """The implementation of products of a type for this processor."""
    return Gemm(char, vector_bits(), windows)


@functools.cache
def _source(gemm: Gemm) -> IrSource:
    return IrSource(gemm.text(), (gemm.routine,))


def bits_of(char: str, number: float) -> int:
    """The bits of a float of a type as an integer.

    >>> bits_of("f", 1.0)
    1065353216
    """
    return int.from_bytes(struct.pack("<" + char, number), "little", signed=True)


def _should_swap(rows: int, columns: int, a: MatrixStrides, b: MatrixStrides, c: MatrixStrides) -> bool:
    """Whether to compute the transpose, for a product with one row or one column."""
    if columns == 1 and c.row == 1:
        return a.row == 1 != a.column
    return rows == 1 and b.column != 1
