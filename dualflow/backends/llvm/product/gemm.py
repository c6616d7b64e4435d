"""Matrix products in machine code of our own, for any sizes and strides, on the threads that kernels share.

C is cut into blocks, each computed by one thread, which takes K in stretches of at most ``DEPTH`` and B in
panels as wide as a tile: the first rows of the block pack the panel while they use it, and the other rows go
over the packed copy. An element of C is a chain of multiply-adds in order of K, and the sums of the stretches
are added in order (for a single column: a chain for each lane, added in pairs). No block changes that, so
results are the same bits on any number of threads.

The scheme is that of Goto and van de Geijn, "Anatomy of high-performance matrix multiplication" (2008), with
A left where it lies: to spread an element over a vector costs the same wherever it comes from.
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
from dualflow.backends.llvm.product.window_places import emit_places, emit_windows, list_lengths
from dualflow.backends.llvm.runtime.source import IrSource
from dualflow.backends.llvm.runtime.target import vector_bits
from dualflow.backends.llvm.text import F32, F64, LlvmModule, Type
from dualflow.core.records import NamedTuple
from dualflow.core.size_functions import largest, smallest
from dualflow.core.symbolic_sizes import typical
from dualflow.schedule.sliding import SlidingWindows

ELEMENTS = {"f": F32, "d": F64}
"""Element types by the character of their dtype."""
DEPTH = 512
"""The longest stretch of K: a packed panel of it, 128 KiB, leaves most of a second-level cache to A."""
MOST_ROWS = 512
"""The most rows of a block, so that A's stretch of it can stay near while panel after panel goes by."""
MOST_COPIED_ROWS = 256
"""The same where A is copied first: B's panel, what is copied and the copy share a second-level cache."""
GRAIN = 2_400_000
"""Multiply-adds, each counted as the bytes of an element, that are worth handing to a thread: some 5 us."""
NARROW = Tile(8, 1)
"""The tile for the last columns, and for matrices of few columns."""
DOTS = 4
"""Rows at once of a product with one column."""
DOT_BITS = 512
"""The width of the sums of such a product on every processor: it fixes the order in which they are taken."""
PAGE = 4096
"""Columns of A whose distance is a multiple of so many bytes meet in the same places of a cache."""


class MatrixStrides(NamedTuple):
    """Distances, in elements, between the rows and between the columns of a matrix."""

    row: int
    column: int

    @property
    def swapped(self) -> MatrixStrides:
        """The same matrix transposed."""
        return MatrixStrides(self.column, self.row)


class GemmBlocking(NamedTuple):
    """Rows and columns of the blocks that threads share out, and the length of a stretch of K."""

    rows: int
    columns: int
    depth: int


class Gemm(NamedTuple):
    """Products of matrices of one type, 'f' for float32 or 'd' for float64, with vectors of so many bits.

    The machine code is one function, the same for all sizes::

        void df_gemm_f(ptr table, ptr a, ptr b, ptr c, ptr scratch, ptr pool, ptr pfor)

    It writes ``c = scale * (a @ b) + keep * c``. The table is what :meth:`table` lists; ``scratch`` is
    aligned to 64 bytes and has :meth:`scratch_bytes`; where ``pfor`` is null the caller does all the work.

    Where the matrix ``a`` is ``windows`` of a tensor, it is given the tensor, and each block copies its
    windows, or the lines on which they lie, into scratch memory.

    >>> float32 = Gemm("f", 512)
    >>> rows = MatrixStrides(3, 1), MatrixStrides(4, 1), MatrixStrides(4, 1)
    >>> float32.table((2, 4, 3), rows, scale=1.0, keep=False, threads=1)[:3]
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
        """The tile whose sums, row of B and element of A fit the registers."""
        return Tile(6, 2) if self.bits == 256 else Tile(4, 4)

    @property
    def medium(self) -> Tile | None:
        """A tile of half that width, for windows: convolutions of 32 channels are many."""
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
        keep: bool,
        threads: int,
    ) -> list[int]:
        """The integers that describe one product of sizes (rows, columns, inner) to the machine code.

        ``operands`` tell how a, b and c lie, of which c has neighbouring columns. ``keep`` adds to what c
        holds. The blocks are cut for so many threads.
        """
        rows, columns, inner = sizes
        a, b, c = operands
        exchanged = _better_exchanged(rows, columns, a, b, c)
        if exchanged:
            rows, columns = columns, rows
            a, b, c = b.swapped, a.swapped, c.swapped
        if columns == 1:
            b = MatrixStrides(b.row, 1)
        copies = self._copies(a, inner)
        cut = self.blocks((typical(rows), typical(columns), typical(inner)), threads, copies)
        copy_row = self._copy_row(cut.rows) if copies else 0
        slot = cut.depth * (self.wide.vectors * self.lanes + copy_row)
        if columns == a.column == b.row == 1:
            cut, slot = GemmBlocking(cut.rows, cut.columns, largest(inner, 1)), 0
        below, beside = -(-rows // cut.rows), -(-columns // cut.columns)
        numbers = [rows, columns, inner, a.row, a.column, b.row, b.column, c.row, int(keep)]
        numbers += [bits_of(self.char, scale), int(exchanged), cut.rows, cut.columns, cut.depth]
        return [*numbers, below, below * beside, copy_row, slot]

    def window_table(
        self,
        sizes: tuple[int, int, int],
        operands: tuple[MatrixStrides, MatrixStrides],
        lie: SlidingWindows,
        *,
        by_window: bool,
        scale: float,
        keep: bool,
        threads: int,
    ) -> list[int]:
        """The same where the first factor is windows of a tensor, its rows or, transposed, its columns.

        ``operands`` are b and c; the tensor's elements lie in order.
        """
        rows, columns, inner = sizes
        b, c = operands
        if columns == 1:
            b = MatrixStrides(b.row, 1)
        cut = self.window_blocks((typical(rows), typical(columns), typical(inner)), threads, by_window)
        length, count = (cut.depth, cut.rows) if by_window else (cut.rows, cut.depth)
        parts = -(-typical(inner) // cut.depth) if by_window else 1
        copied = copied_windows(
            lie, (count, length), parts, self._copy_row, whole_lines=columns != 1 or not by_window
        )
        slot = cut.depth * self.wide.vectors * self.lanes + copied.room
        below, beside = -(-rows // cut.rows), -(-columns // cut.columns)
        numbers = [rows, columns, inner, 0, 0, b.row, b.column, c.row, int(keep)]
        numbers += [bits_of(self.char, scale), 0, cut.rows, cut.columns, cut.depth]
        numbers += [below, below * beside, copied.apart, slot, int(by_window), *copied.numbers()]
        return numbers

    def window_blocks(self, sizes: tuple[int, int, int], threads: int, by_window: bool) -> GemmBlocking:
        """How a product of windows is cut: never by columns, for every block copies windows.

        Where windows are columns of A, each block reads the whole tensor: there are no more than keep every
        thread busy.
        """
        rows, columns, inner = (max(size, 1) for size in sizes)
        width = self.wide.vectors * self.lanes
        worth = max(rows * columns * inner * self.element.nbytes // GRAIN, 1) if threads > 1 else 1
        cuts = max(-(-rows // MOST_COPIED_ROWS), min(worth, 4 * threads if by_window else threads))
        block_rows = -(-rows // cuts)
        block_rows += -block_rows % NARROW.rows
        return GemmBlocking(block_rows, -(-columns // width) * width, -(-inner // -(-inner // DEPTH)))

    def blocks(self, sizes: tuple[int, int, int], threads: int, copies: bool = False) -> GemmBlocking:
        """How a product of sizes (rows, columns, inner) is cut for so many threads.

        Cutting columns is free, unless every block ``copies`` its rows of A. Cutting rows packs B more often,
        so it only serves to keep every thread busy.
        """
        rows, columns, inner = (max(size, 1) for size in sizes)
        width = self.wide.vectors * self.lanes
        panels = -(-columns // width)
        # A tile that is not full takes as long as one that is.
        tiled = (rows + -rows % self.wide.rows) * (columns + -columns % self.lanes)
        worth = tiled * inner * self.element.nbytes // GRAIN
        at_most = MOST_COPIED_ROWS if copies else MOST_ROWS
        worth = max(worth, 1) if threads > 1 else 1
        fewest, most = min(worth, 4 * threads), min(worth, (4 if copies else 16) * threads)
        cuts = max(-(-rows // at_most), -(-fewest // panels))
        block_rows = -(-rows // cuts)
        block_rows += -block_rows % NARROW.rows
        merged = max(1, -(-rows // block_rows) * panels // most)
        return GemmBlocking(block_rows, width * merged, -(-inner // -(-inner // DEPTH)))

    def scratch_bytes(self, table: Sequence[int], threads: int) -> int:
        """The memory that a product needs beside its operands."""
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
            emit_places(module, "places")
            emit_windows(module, "windows")
        else:
            emit_copy(module, "copy", element, lanes)
        lists = list_lengths(MOST_COPIED_ROWS, DEPTH) if windows else None
        emit_blocks(module, "blocks", (self.wide, self.medium), element, lanes, windows=lists)
        emit_entry(module, self.routine, "blocks")
        return module.text()

    def source(self) -> IrSource:
        """The module that defines the routine."""
        return _source(self)

    def _copies(self, a: MatrixStrides, inner: int) -> bool:
        """Whether blocks copy their rows of A, for want of places in a cache where A lies."""
        apart = a.column * self.element.nbytes
        return a.row == 1 and apart != 0 and apart % PAGE == 0 and typical(inner) > PAGE // 16

    def _copy_row(self, rows: int) -> int:
        """The distance of a copy's rows: an odd number of vectors, which spreads them over a cache."""
        return (-(-rows // self.lanes) // 2 * 2 + 1) * self.lanes


def gemm(char: str, *, windows: bool = False) -> Gemm:
    """Products of matrices of a type on this processor."""
    return Gemm(char, vector_bits(), windows)


@functools.cache
def _source(which: Gemm) -> IrSource:
    return IrSource(which.text(), (which.routine,))


def bits_of(char: str, number: float) -> int:
    """A float of a type as the integer that has its bits.

    >>> bits_of("f", 1.0)
    1065353216
    """
    return int.from_bytes(struct.pack("<" + char, number), "little", signed=True)


def _better_exchanged(rows: int, columns: int, a: MatrixStrides, b: MatrixStrides, c: MatrixStrides) -> bool:
    """Whether to compute the transpose; C, which is one row or one column then, lies in memory as before."""
    if columns == 1 and c.row == 1:
        return a.row == 1 != a.column
    return rows == 1 and b.column != 1
