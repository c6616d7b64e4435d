"""The epilogue of a product as lines of OpenCL C, for the kernel of the product.

A work-item runs them for each element of its part of the product. The loops of the nest are over the
elements, in order, so their indices follow from the position of the element::

    const float r0 = sum[j];                          the element of the product
    const int64_t grid1 = column;                     the inner loop, if it is as long as a row
    const int64_t lo = batch * rows + row;
    x1[lo * n2 + grid1] = fmax(r0 + x0[grid1], 0);    the nest
"""

from __future__ import annotations

from collections.abc import Sequence

from dualflow.backends.c.source_lines import CLines, without_unused
from dualflow.backends.opencl.kernel_source import OpenCLWriter
from dualflow.core.records import NamedTuple
from dualflow.schedule import kernel_statements as ks
from dualflow.schedule.epilogue_kernels import EpilogueLaunch
from dualflow.schedule.kernel_statements import LaunchParameter


class EpilogueSource(NamedTuple):
    """The parts of an epilogue as source.

    Attributes:
        functions: the functions that it calls.
        parameters: the declarations of its parameters.
        pointers: the lines that declare its buffers.
        lines: the lines for an element; they read ``column`` and ``row_of_all``, the number of the row among
            those of all matrices.
        element: the name of the product's element, which they read.
        stored: the numbers of the buffers that it writes.
    """

    functions: tuple[str, ...]
    parameters: tuple[str, ...]
    pointers: tuple[str, ...]
    lines: tuple[str, ...]
    element: str
    stored: frozenset[int]


def epilogue_source(epilogue: EpilogueLaunch, columns: int) -> EpilogueSource:
    """The source of an epilogue of a product with ``columns``, which may be symbolic."""
    return _EpilogueSourceWriter(epilogue, columns).epilogue_source()


class _EpilogueSourceWriter(OpenCLWriter):
    """Writes the kernel of an epilogue, whose loops are all part of the grid."""

    def __init__(self, epilogue: EpilogueLaunch, columns: int) -> None:
        kernel = epilogue.launch.kernel
        super().__init__(kernel, lanes=1, num_parallel=0)
        self.epilogue, self.columns = epilogue, columns
        self.grid = [s for s in ks.walk_kernel(kernel.body) if isinstance(s, ks.For)]

    def epilogue_source(self) -> EpilogueSource:
        """The parts of the epilogue's source, which the source of the product's kernel contains."""
        self._write_body()
        lines = without_unused([*self._indices(self._inner_sizes()), *self.lines.text])
        return EpilogueSource(
            tuple(self.support.pieces()),
            tuple(self._arguments(())),
            tuple(self._pointers(())),
            tuple(lines),
            self._name(self.epilogue.element),
            frozenset(self.stored),
        )

    def _indices(self, inner: Sequence[LaunchParameter]) -> list[str]:
        """The lines that compute the indices of the loops; no division if the inner one is over columns."""
        lines = CLines(2)
        parameters = self.epilogue.launch.parameters
        if inner and parameters[inner[-1].number] == self.columns:
            lines.add(f"const int64_t grid{len(inner)} = column;")
            lines.add("const int64_t item = row_of_all;")
            return [*lines.text, *super()._indices(inner[:-1])]
        lines.add("const int64_t item = row_of_all * columns + column;")
        return [*lines.text, *super()._indices(inner)]
