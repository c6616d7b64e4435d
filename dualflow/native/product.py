"""Matrix products by the BLAS that NumPy brings, called from machine code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from dualflow.native import blas
from dualflow.native.llvm import F32, F64, I32, PTR, VOID, Builder, Module, Value
from dualflow.native.nest import Layout

ROW_MAJOR, AS_IS, TRANSPOSED = 101, 111, 112
ROUTINES = {"f": ("cblas_sgemm", F32), "d": ("cblas_dgemm", F64)}


@dataclass(frozen=True, slots=True)
class Matrix:
    """How BLAS reads a matrix: as it is or transposed, and the distance of its rows."""

    order: int
    leading: int

    @classmethod
    def of(cls, layout: Layout, rows: int, columns: int) -> Matrix:
        """The reading of a matrix one of whose dims has neighbouring elements."""
        down, across = layout.strides[-2:]
        if across == 1:
            return cls(AS_IS, max(down, columns, 1))
        return cls(TRANSPOSED, max(across, rows, 1))


def readable(strides: Sequence[int], rows: int, columns: int) -> bool:
    """Whether BLAS can read a matrix: rows, or columns, of neighbouring elements, one after another."""
    down, across = strides[-2:]
    by_rows = across == 1 and (down >= columns or rows == 1)
    return by_rows or (down == 1 and (across >= rows or columns == 1))


@dataclass(frozen=True, slots=True)
class Product:
    """One call of a routine for each matrix of a batch; ``param`` lists an integer of the parameter table."""

    module: Module
    builder: Builder
    buffers: Value
    param: Callable[[int], Value]

    def emit(
        self,
        char: str,
        sizes: tuple[int, int, int],
        batch: Sequence[int],
        layouts: Sequence[Layout],
        scales: tuple[float, float],
    ) -> str:
        """Write ``out = scales[0] * (x @ y) + scales[1] * out`` for each matrix of a batch.

        Answers the routine. The layouts are those of x, y and out, with a stride for each batch axis.
        """
        b = self.builder
        routine, element = ROUTINES[char]
        rows, columns, inner = sizes
        x, y, _ = layouts
        readings = Matrix.of(x, rows, inner), Matrix.of(y, inner, columns)
        integers = [self._int(n) for n in (rows, columns, inner)]
        places = [self.param(layout.offset) for layout in layouts]
        with ExitStack() as loops:
            for axis, extent in enumerate(batch):
                turn = loops.enter_context(b.loop(0, self.param(extent)))
                places = [
                    p + turn.index * self.param(layout.strides[axis])
                    for p, layout in zip(places, layouts, strict=True)
                ]
            pointers = [
                b.offset(b.load(self.buffers, layout.buffer, PTR), place, element)
                for layout, place in zip(layouts, places, strict=True)
            ]
            orders = [self.param(r.order).cast(I32) for r in readings]
            leading = [self._int(r.leading) for r in readings]
            times, keeping = (b.constant(element, scale) for scale in scales)
            arguments = [b.constant(I32, ROW_MAJOR), *orders, *integers, times]
            arguments += [
                pointers[0],
                leading[0],
                pointers[1],
                leading[1],
                keeping,
                pointers[2],
                self._int(max(columns, 1)),
            ]
            if routine not in self.module.signatures:
                self.module.declare(routine, VOID, [a.type for a in arguments])
            b.call(routine, arguments)
        return routine

    def _int(self, number: int) -> Value:
        """A run-time integer of the width that this BLAS takes."""
        found = blas.find()
        value = self.param(number)
        return value if found is None or found.int_bits == 64 else value.cast(I32)
