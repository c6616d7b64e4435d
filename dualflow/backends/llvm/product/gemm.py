"""Matrix products C = A @ B in machine code, for any sizes and strides, on the thread pool of kernels.

The algorithm is that of Goto and van de Geijn, "Anatomy of high-performance matrix multiplication" (2008),
with the names of BLIS. C has M rows and N columns, and the inner size is K. C is split into blocks of mc rows
and nc columns, each computed by one thread. A block splits K into K blocks of depth kc, and its part of B
into panels of nr columns. The micro-kernel computes tiles of mr rows and nr columns, in registers.

    for each block of C, mc x nc, in parallel                      gemm_blocks.emit_blocks
        for each K block, of depth kc
            for each panel of B, kc x nr                           packed by the first tile, or by gemm_pack
                for each tile of C, mr x nr: a loop over kc        gemm_kernel.emit_tiles

A small product, of one block, K block and panel, is one call of a micro-kernel.

A is not packed, since broadcasting an element costs the same for any stride; it is copied only if its columns
conflict in a cache.

An element of C is a chain of multiply-adds in order of K, and the sums of K blocks are added in order (for a
single column: a chain for each lane, added in pairs). This does not depend on mc and nc, so results are the
same bits on any number of threads.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Mapping, Sequence
from functools import partial

from dualflow.backends.llvm.product.gemm_blocks import emit_blocks, emit_entry
from dualflow.backends.llvm.product.gemm_kernel import Field, Tile, emit_dot, emit_tiles
from dualflow.backends.llvm.product.gemm_pack import emit_copy, emit_pack
from dualflow.backends.llvm.product.multiply_add import FLOATS, MultiplyAdd, integer_multiply_add
from dualflow.backends.llvm.runtime.ir_source import QUICKLY_COMPILED, IrSource
from dualflow.backends.llvm.runtime.target import vector_bits
from dualflow.backends.llvm.text import F32, F64, I32, LlvmModule, Type
from dualflow.core.locks import imported
from dualflow.core.records import NamedTuple
from dualflow.schedule.sliding import SlidingWindows
from dualflow.sizes.size_functions import largest, smallest
from dualflow.sizes.symbolic_sizes import is_static, typical

ELEMENTS = {"f": F32, "d": F64, "i": I32}
"""Element types by the character of the result's dtype; an integer is a group of four bytes of A and of B."""
MAX_KC = 512
"""The maximum depth of a K block: its packed panel of B, 128 KiB, leaves most of a second-level cache."""
MAX_MC = 512
"""The maximum number of rows of a block, so that its mc x kc elements of A stay in a cache for all panels."""
MAX_COPIED_MC = 256
"""The same if A is copied: the panel of B, A and its copy share a second-level cache."""
MIN_THREAD_WORK = 2_400_000
"""The minimum work of a block for a thread, in multiply-adds times bytes of an element: about 5 us."""
_WIDE, _WIDE_OF_FLOATS, _WIDE_OF_INTEGERS = Tile(4, 4), Tile(6, 2), Tile(4, 2)
"""The widest tiles: of 32 registers, and of 16. A group of B of integers takes two registers."""
NARROW = Tile(8, 1)
"""The tile for the last columns of a block, and for matrices of few columns."""
DOTS = 4
"""The number of rows that are computed together in a product with one column."""
DOT_BITS = 512
"""The vector width of products with one column on every processor: it determines the order of sums."""
CONFLICT_BYTES = 4096
"""Columns of A whose stride is a multiple of this conflict in a set-associative cache."""


_NO_ADDRESSES = (0,) * (Field.ALONE + 1 - Field.NARROW)
"""The addresses of other routines in a table until the program is linked; see :meth:`Gemm.routines`."""


class MatrixStrides(NamedTuple):
    """The strides, in elements, of the rows and of the columns of a matrix."""

    row: int
    column: int

    @property
    def transposed(self) -> MatrixStrides:
        """The strides of the transposed matrix."""
        return MatrixStrides(self.column, self.row)


class GemmBlocking(NamedTuple):
    """The rows (mc) and columns (nc) of a block of C, the unit of parallel work; the depth of a K block."""

    mc: int
    nc: int
    kc: int


class Gemm(NamedTuple):
    """The matrix product for one dtype and vector width: writes its code, and the parameters of each product.

    ``char`` is "f" for float32, "d" for float64, or "i" for 32-bit sums of 8-bit integers; ``bits``
    is the width of a vector. The machine code is one function, the same for all sizes::

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
        """The IR type of an element."""
        return ELEMENTS[self.char]

    @property
    def lanes(self) -> int:
        """The number of elements of a vector."""
        return self.bits // self.element.bits

    @property
    def products(self) -> MultiplyAdd:
        """The multiply-add of elements."""
        return integer_multiply_add(self.bits) if self.char == "i" else FLOATS

    @property
    def dot_lanes(self) -> int:
        """The lanes of the micro-kernel for one column; integers have no order of sums to keep."""
        return (self.bits if self.char == "i" else DOT_BITS) // self.element.bits

    @property
    def wide(self) -> Tile:
        """The widest register tile: its sums, a row of B and an element of A fit the registers."""
        if self.bits > 256:
            return _WIDE
        return _WIDE_OF_INTEGERS if self.char == "i" else _WIDE_OF_FLOATS

    @property
    def medium(self) -> Tile | None:
        """A tile of half the width of :attr:`wide`, for windows: convolutions of 32 channels are common."""
        return Tile(8, 2) if self.windows and self.bits == 512 else None

    @property
    def nr(self) -> int:
        """The number of columns of the widest tile, which is the width of a packed panel."""
        return self.wide.vectors * self.lanes

    @property
    def routine(self) -> str:
        """The name of the function in machine code."""
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
        """The parameters of one product of sizes (M, N, K), in the order of :class:`Field`.

        ``operands`` are the strides of a, b and c; c has contiguous rows. ``accumulate`` adds to c. The
        blocking is for the number of ``threads``.
        """
        return [*self._table(sizes, operands, bits_of(self.char, scale), accumulate, threads)]

    @functools.lru_cache(256)  # noqa: B019 - it is a record
    def _table(
        self,
        sizes: tuple[int, int, int],
        operands: tuple[MatrixStrides, MatrixStrides, MatrixStrides],
        scale_bits: int,
        accumulate: bool,
        threads: int,
    ) -> tuple[int, ...]:
        m, n, k = sizes
        a, b, c = operands
        swapped = _should_swap(m, n, a, b, c)
        if swapped:
            m, n = n, m
            a, b, c = b.transposed, a.transposed, c.transposed
        if n == 1:
            b = MatrixStrides(b.row, 1)
        copies = self._copies(a, k)
        blocking = self.blocks((typical(m), typical(n), typical(k)), threads, copies)
        copy_stride = self._copy_stride(blocking.mc) if copies else 0
        thread_scratch = blocking.kc * (self.nr + copy_stride)
        if n == a.column == b.row == 1:
            blocking, thread_scratch = GemmBlocking(blocking.mc, blocking.nc, largest(k, 1)), 0
        if threads > 1 and not copies and not is_static(sizes):
            blocking = self._with_larger_blocks((m, n, k), blocking)
        m_blocks, n_blocks = -(-m // blocking.mc), -(-n // blocking.nc)
        parameters = [m, n, k, a.row, a.column, b.row, b.column, c.row, int(accumulate)]
        parameters += [scale_bits, int(swapped), blocking.mc, blocking.nc, blocking.kc]
        return (*parameters, m_blocks, m_blocks * n_blocks, copy_stride, thread_scratch, *_NO_ADDRESSES)

    def window_tables(
        self,
        sizes: tuple[int, int, int],
        operands: tuple[MatrixStrides, MatrixStrides],
        sliding: SlidingWindows,
        *,
        by_window: bool,
        scale: float,
        accumulate: bool,
        threads: int,
    ) -> list[tuple[int, list[int]]]:
        """The parameters of one product whose first factor is windows of a contiguous tensor.

        There are several if the sizes of a call select the layout of copied windows: each comes with 1 if the
        call uses it, 0 if not.

        ``operands`` are the strides of b and c. Windows are the rows of the factor if ``by_window``, else its
        columns. The other arguments are those of :meth:`table`.
        """
        m, n, k = sizes
        b, c = operands
        if n == 1:
            b = MatrixStrides(b.row, 1)
        blocking = self.window_blocks((typical(m), typical(n), typical(k)), threads, by_window)
        piece_length, count = (blocking.kc, blocking.mc) if by_window else (blocking.mc, blocking.kc)
        reuses = -(-typical(k) // blocking.kc) if by_window else 1
        copies = imported("dualflow.backends.llvm.product.window_layout").copied_windows(
            sliding, (count, piece_length), reuses, self._copy_stride, copy_lines=n != 1 or not by_window
        )
        thread_scratch = blocking.kc * self.nr + copies.scratch
        m_blocks, n_blocks = -(-m // blocking.mc), -(-n // blocking.nc)
        parameters = [m, n, k, 0, 0, b.row, b.column, c.row, int(accumulate)]
        parameters += [bits_of(self.char, scale), 0, blocking.mc, blocking.nc, blocking.kc]
        parameters += [m_blocks, m_blocks * n_blocks]
        return [
            (
                used,
                [
                    *(*parameters, layout.pitch, thread_scratch, *_NO_ADDRESSES),
                    *(int(by_window), *layout.parameters()),
                ],
            )
            for used, layout in copies.layouts
        ]

    def window_blocks(self, sizes: tuple[int, int, int], threads: int, by_window: bool) -> GemmBlocking:
        """The blocking of a product of windows. N is not split, since every block copies its windows.

        If windows are columns of A, each block reads the whole tensor: there is one block for each thread at
        most.
        """
        m, n, k = (max(size, 1) for size in sizes)
        nr = self.nr
        max_blocks = max(m * n * k * self.element.nbytes // MIN_THREAD_WORK, 1) if threads > 1 else 1
        m_blocks = max(-(-m // MAX_COPIED_MC), min(max_blocks, 4 * threads if by_window else threads))
        mc = -(-m // m_blocks)
        mc += -mc % NARROW.rows
        return GemmBlocking(mc, -(-n // nr) * nr, -(-k // -(-k // MAX_KC)))

    def blocks(self, sizes: tuple[int, int, int], threads: int, copies: bool = False) -> GemmBlocking:
        """The blocking of a product of sizes (M, N, K) for a number of threads.

        Splitting N has no overhead, unless every block ``copies`` its part of A. Splitting M packs B more
        often, so M is split only if there are too few blocks for the threads.
        """
        m, n, k = (max(size, 1) for size in sizes)
        nr = self.nr
        panels = -(-n // nr)
        # A partial tile takes as long as a full one.
        tiled = (m + -m % self.wide.rows) * (n + -n % self.lanes)
        max_blocks = tiled * k * self.element.nbytes // MIN_THREAD_WORK
        at_most = MAX_COPIED_MC if copies else MAX_MC
        max_blocks = max(max_blocks, 1) if threads > 1 else 1
        fewest, most = min(max_blocks, 4 * threads), min(max_blocks, (4 if copies else 16) * threads)
        m_blocks = max(-(-m // at_most), -(-fewest // panels))
        mc = -(-m // m_blocks)
        mc += -mc % NARROW.rows
        merged = max(1, -(-m // mc) * panels // most)
        return GemmBlocking(mc, nr * merged, -(-k // -(-k // MAX_KC)))

    def _with_larger_blocks(self, sizes: tuple[int, int, int], assumed: GemmBlocking) -> GemmBlocking:
        """``assumed``, the blocking for typical sizes, with larger blocks in a call with smaller sizes.

        A product without enough work for several threads is one block, or few. The order of sums stays. A
        static size whose number of blocks can't be smaller has the assumed blocks.
        """
        m, n, k = sizes
        max_blocks = _max_blocks(m * n * k * self.element.nbytes)
        mc, nc, kc = assumed
        if not is_static((m,)) or -(-m // mc) > -(-m // MAX_MC):
            rows = NARROW.rows
            mc = largest(mc, smallest(-(-m // (rows * max_blocks)) * rows, MAX_MC))
        if not is_static((n,)) or n > nc:
            merged = -(-(-(-m // mc) * -(-n // self.nr)) // max_blocks)
            nc = largest(nc, self.nr * merged)
        return GemmBlocking(mc, nc, kc)

    def scratch_bytes(self, table: Sequence[int], threads: int) -> int:
        """The bytes of scratch memory of a product with the parameters ``table``.

        Several blocks may be computed by any of the threads: an idle worker claims one, whatever its number.
        """
        indices = 1 if table[Field.BLOCKS] == 1 else threads
        return indices * table[Field.THREAD_SCRATCH] * self.element.nbytes

    def text(self) -> str:
        """The module of LLVM IR with the function, without micro-kernels."""
        module, lists = LlvmModule(self.bits), None
        if self.windows:
            offsets = imported("dualflow.backends.llvm.product.window_offsets")
            lists = offsets.list_lengths(MAX_COPIED_MC, MAX_KC)
        emit_blocks(module, "blocks", (self.wide, self.medium), self.element, self.lanes, windows=lists)
        emit_entry(module, self.routine, "blocks", windows=self.windows)
        return QUICKLY_COMPILED + module.text(scalar=True)

    def source(self) -> IrSource:
        """The module that defines the routine."""
        return _source(self)

    def routines(self, table: Sequence[int]) -> Mapping[Field, IrSource]:
        """The modules of the other routines that a product with the parameters ``table`` may call.

        Each has the field of ``table`` that is its address, which the caller stores.
        """
        return self._routines(tuple(table[: Field.NARROW]))

    @functools.lru_cache(256)  # noqa: B019 - it is a record
    def _routines(self, table: tuple[int, ...]) -> Mapping[Field, IrSource]:
        n, b_column_stride, copy_stride = (
            table[which] for which in (Field.N, Field.B_COLUMN_STRIDE, Field.COPY_STRIDE)
        )
        last_columns = n % self.nr
        medium_nr = self.medium.vectors * self.lanes if self.medium else 0
        calls = {
            Field.WIDE: self.calls_wide(n),
            Field.MEDIUM: medium_nr > 0 and (not is_static((n,)) or medium_nr < 2 * last_columns <= self.nr),
            Field.NARROW: not is_static((n,)) or 0 < last_columns <= self.nr // 2,
            Field.DOT: not is_static((n,)) or n == 1,
            Field.PACK: not is_static((n, b_column_stride)) or b_column_stride != 1 != n,
            Field.COPY: self.windows or not is_static((copy_stride,)) or copy_stride != 0,
        }
        alone = self._micro_kernel_alone(table)
        routines = {which: _routine(self, which) for which, called in calls.items() if called}
        return routines if alone is None else {**routines, Field.ALONE: _routine(self, alone)}

    def _micro_kernel_alone(self, table: Sequence[int]) -> Field | None:
        """The micro-kernel that computes a small product in one call, on B in place; None for other products.

        It is the one that the loops would call, with the same arguments. The product calls it if K and the
        number of blocks are small, which may be known only at run time.
        """
        n, k, blocks = (table[which] for which in (Field.N, Field.K, Field.BLOCKS))
        strides = table[Field.A_COLUMN_STRIDE], table[Field.B_ROW_STRIDE]
        copy_stride, b_column_stride = table[Field.COPY_STRIDE], table[Field.B_COLUMN_STRIDE]
        if self.windows or not is_static((n, b_column_stride, copy_stride)):
            return None
        if is_static((blocks,)) and blocks != 1:
            return None
        if is_static((k, table[Field.KC])) and k > table[Field.KC]:
            return None
        if copy_stride or not (n == 1 or b_column_stride == 1):
            return None
        if n == 1 and not is_static(strides):
            return None
        if n == 1 and strides == (1, 1):
            return Field.DOT
        if self.calls_wide(n):
            return Field.WIDE if n <= self.nr else None
        return Field.NARROW if n <= self.lanes else None

    def calls_wide(self, n: int) -> bool:
        """Whether products with ``n`` columns may call the micro-kernel of the widest tile."""
        return not is_static((n,)) or n > self.nr // 2

    def wide_source(self) -> IrSource:
        """The module of the micro-kernel of the widest tile."""
        return _routine(self, Field.WIDE)

    def copy_source(self) -> IrSource:
        """The module of the routine that copies a block of A."""
        return _routine(self, Field.COPY)

    def routine_text(self, which: Field, name: str) -> str:
        """The module of LLVM IR of another routine, whose function has this name."""
        element, lanes, products = self.element, self.lanes, self.products
        module = LlvmModule(self.bits)
        tiles = partial(
            emit_tiles, module, name, element=element, lanes=lanes, products=products, windows=self.windows
        )
        if which is Field.WIDE:
            tiles(self.wide, packing=True)
        elif which is Field.MEDIUM:
            assert self.medium is not None, "only products with such a tile call it"
            tiles(self.medium)
        elif which is Field.NARROW:
            tiles(NARROW)
        elif which is Field.DOT:
            emit_dot(module, name, DOTS, element, self.dot_lanes, products=products, windows=self.windows)
        elif which is Field.PACK:
            emit_pack(module, name, element, lanes)
        elif self.windows:
            imported("dualflow.backends.llvm.product.gemm_windows").emit_pieces(
                module, "copy_pieces", element, lanes
            )
            offsets = imported("dualflow.backends.llvm.product.window_offsets")
            offsets.emit_offsets(module, "list_offsets")
            offsets.emit_windows(module, name, "copy_pieces", "list_offsets")
        else:
            emit_copy(module, name, element, lanes)
        return module.text()

    def _copies(self, a: MatrixStrides, inner: int) -> bool:
        """Whether blocks copy their rows of A, whose columns would conflict in a cache."""
        column_bytes = a.column * self.element.nbytes
        return (
            a.row == 1
            and column_bytes != 0
            and column_bytes % CONFLICT_BYTES == 0
            and typical(inner) > CONFLICT_BYTES // 16
        )

    def _copy_stride(self, length: int) -> int:
        """The stride of copies of ``length`` elements: an odd number of vectors, to avoid cache conflicts."""
        return (-(-length // self.lanes) // 2 * 2 + 1) * self.lanes


def gemm(char: str, *, windows: bool = False) -> Gemm:
    """The matrix product of a dtype, by its character, for this processor."""
    return Gemm(char, vector_bits(), windows)


@functools.lru_cache(64)
def _max_blocks(work: int) -> int:
    """The largest number of blocks, of a product of this work, that are worth a thread each."""
    return largest(work // MIN_THREAD_WORK, 1)


@functools.cache
def _routine(gemm: Gemm, which: Field) -> IrSource:
    if which is Field.PACK:  # it reads B, which is no windows
        gemm = gemm._replace(windows=False)
    name = f"{gemm.routine}_{which.name.lower()}"
    return IrSource(gemm.routine_text(which, name), (name,))


@functools.cache
def _source(gemm: Gemm) -> IrSource:
    return IrSource(gemm.text(), (gemm.routine,))


def bits_of(char: str, number: float) -> int:
    """The bits of a number as an integer; ``char`` is "f" for float32, "d" for float64, "i" for integers.

    >>> bits_of("f", 1.0)
    1065353216
    """
    if char == "i":
        return int(number)
    return int.from_bytes(struct.pack("<" + char, number), "little", signed=True)


def _should_swap(m: int, n: int, a: MatrixStrides, b: MatrixStrides, c: MatrixStrides) -> bool:
    """Whether to compute the transposed product: C has one row or column, and loads become vector loads."""
    if n == 1 and c.row == 1:
        return a.row == 1 != a.column
    return m == 1 and b.column != 1
