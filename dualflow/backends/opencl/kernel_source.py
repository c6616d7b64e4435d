"""A kernel's statements as an OpenCL kernel: the grid, the arguments, and the failed checks.

The body is the C renderer's. What differs is how its outer loops run: the parallel loops that are nested
directly become the grid, one work-item for each iteration of all of them together::

    const int64_t item = get_global_id(0);
    if (item < items) {
        const int64_t i1 = item % n0;              the innermost loop: neighbours access neighbouring elements
        const int64_t i0 = item / n0;
        ...
    }

If each work-item has scratch memory, there are fewer of them, and each takes several iterations.

A short reduction runs in one work-item, a long one in a group
(:mod:`dualflow.backends.opencl.group_kernels`), in the order of the default backend: so its bits are the same
in each run, and on each device with the same functions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dualflow.backends.c.kernel_source import CKernelMaths, CKernelRenderer
from dualflow.backends.c.source_lines import CLines, CValue, without_unused
from dualflow.backends.opencl.dialect import OpenCLSupport, buffer_type, program
from dualflow.core.dtypes import DType, float16, float32
from dualflow.core.records import dataclass
from dualflow.graph.ir import Node
from dualflow.schedule import kernel_statements as ks
from dualflow.schedule.kernel import Kernel
from dualflow.schedule.kernel_statements import KernelStatement, LaunchParameter

KERNEL = "df_kernel"
"""The name of each kernel in its program."""
_ONE_ITERATION = ("    const int64_t item = get_global_id(0);", "    if (item < items) {")
_SEVERAL_ITERATIONS = (
    "    for (int64_t item = get_global_id(0); item < items; item += get_global_size(0)) {",
)


@dataclass(frozen=True, slots=True)
class OpenCLKernel:
    """A kernel as source.

    Attributes:
        text: the program with this one kernel, :data:`KERNEL`.
        scratch: the scratch buffers, of which each work-item has its own.
        grid: the launch parameters whose product with the launch's total is the number of iterations.
        stored: the numbers of the buffers that it writes.
        checks: the message and node of each check, by number, from 1 on.
        group_size: the work-items that compute each iteration together; 0 for one work-item alone.
    """

    text: str
    scratch: tuple[ks.ScratchBuffer, ...]
    grid: tuple[LaunchParameter, ...]
    stored: frozenset[int]
    checks: tuple[tuple[str, Node], ...]
    group_size: int


class _OpenCLMaths(CKernelMaths):
    """The scalar ops of a kernel; a float16 is its bits, which only casts read."""

    support: OpenCLSupport

    def constant(self, number: float, dtype: DType) -> CValue:
        if dtype is float16:
            return CValue(str(np.float16(number).view(np.uint16)), dtype)
        return super().constant(number, dtype)

    def cast(self, x: CValue, dtype: DType) -> CValue:
        """The same number in another dtype; it is rounded to float16 once."""
        if x.dtype is dtype:
            return x
        if x.dtype is float16:
            return self.cast(self.called(self.support.from_float16(), x, dtype=float32), dtype)
        if dtype is not float16:
            return super().cast(x, dtype)
        wide = x if x.dtype.is_floating else self.cast(x, float32)  # exact, or infinite in float16
        return self.called(self.support.to_float16(wide.dtype), wide, dtype=float16)


class OpenCLWriter(CKernelRenderer):
    """Writes one kernel as OpenCL C.

    Args:
        kernel: the kernel.
        lanes: the number of lanes of its lane loop, if that is a reduction loop.
        num_parallel: the number of parallel loops of its nest; their ids are smaller than it.

    Attributes:
        grid: the loops that the grid runs, outermost first.
        num_parallel: as the argument.
        group_size: the work-items of the group that computes each iteration; 0 for one work-item alone.
    """

    support: OpenCLSupport
    group_size = 0

    def _maths(self) -> CKernelMaths:
        return _OpenCLMaths(self.lines, self.support)

    def __init__(self, kernel: Kernel, lanes: int, num_parallel: int) -> None:
        super().__init__(kernel, lanes, OpenCLSupport())
        self.lines.depth = 2
        self.num_parallel = num_parallel
        self.grid = grid_loops(kernel, num_parallel)

    def program(self) -> OpenCLKernel:
        """The source of the kernel, with what its launches have to pass and check."""
        kernel = self.kernel
        self._write_body()
        scratch = tuple([s for s in kernel.body if isinstance(s, ks.ScratchBuffer)])
        inner = self._inner_sizes()
        lines = without_unused([*self._indices(inner), *self.lines.text])
        if self.checks:
            lines = ["        int failed = 0;", *lines]
            lines.append("        if (failed != 0) atomic_min(status, first_check + failed);")
        text = program(
            *[
                *self.support.pieces(),
                f"__kernel {self._attributes()}void {KERNEL}({', '.join(self._declared(scratch))})",
                "{",
                *self._pointers(scratch),
                *self._iterations(),
                *lines,
                "    }",
                "}",
                "",
            ]
        )
        stored, checks = frozenset(self.stored), tuple(self.checks)
        return OpenCLKernel(text, scratch, inner, stored, checks, self.group_size)

    def _write_body(self) -> None:
        self._statements(self.kernel.body)

    def _attributes(self) -> str:
        """The attributes of the kernel."""
        return ""

    def _iterations(self) -> tuple[str, ...]:
        """The lines before the body, which run it for the iterations of a work-item."""
        has_scratch = any(isinstance(s, ks.ScratchBuffer) for s in self.kernel.body)
        return _SEVERAL_ITERATIONS if has_scratch else _ONE_ITERATION

    @property
    def _scratch_index(self) -> str:
        """The OpenCL expression for the index of the work-item or group that owns scratch memory."""
        return "get_global_id(0)"

    def _declared(self, scratch: Sequence[ks.ScratchBuffer]) -> list[str]:
        """The declarations of all parameters."""
        return [
            *self._arguments(scratch),
            "const long items",
            *(["__global int *status", "const int first_check"] if self.checks else []),
        ]

    def _arguments(self, scratch: Sequence[ks.ScratchBuffer]) -> list[str]:
        """The declarations of the parameters for :attr:`Launch.arguments`, in their order."""
        kernel = self.kernel
        return [
            *(f"__global uchar *b{i}, const long at{i}" for i in range(len(kernel.buffers))),
            *(f"__global uchar *b{s.buffer}" for s in scratch),
            *(f"const {buffer_type(dtype)} c{i}" for i, dtype in enumerate(kernel.scalars)),
            *(f"const long n{i}" for i in range(kernel.parameters)),
        ]

    def _pointers(self, scratch: Sequence[ks.ScratchBuffer]) -> list[str]:
        """The lines that declare each buffer as a pointer to its first element."""
        lines = []
        for i, dtype in enumerate(self.kernel.buffers):
            pointer = f"__global {'' if i in self.stored else 'const '}{buffer_type(dtype)} *"
            lines.append(f"    {pointer}x{i} = ({pointer})b{i} + at{i};")
        for own in scratch:
            pointer = f"__global {buffer_type(own.dtype)} *"
            length = " * ".join([f"(long){self._scratch_index}", *(f"n{p.number}" for p in own.length)])
            lines.append(f"    {pointer}x{own.buffer} = ({pointer})b{own.buffer} + {length};")
        return lines

    def _inner_sizes(self) -> tuple[LaunchParameter, ...]:
        """The sizes of the grid's loops inside the outermost one."""
        ends = [loop.end for loop in self.grid[1:] if isinstance(loop, ks.For)]
        return tuple([end for end in ends if isinstance(end, LaunchParameter)])

    def _indices(self, inner: Sequence[LaunchParameter]) -> list[str]:
        """The lines that compute, from ``item``, the indices of the grid's loops and the kernel's range."""
        lines, remaining = CLines(2), "item"
        for number, size in reversed(list(enumerate(inner, start=1))):
            lines.add(f"const int64_t grid{number} = {remaining} % n{size.number};")
            lines.add(f"const int64_t outer{number} = {remaining} / n{size.number};")
            remaining = f"outer{number}"
        lines.add(f"const int64_t lo = {remaining};")
        lines.add("const int64_t hi = lo + 1;")
        return lines.text

    def _statements(self, statements: Sequence[KernelStatement]) -> None:
        for statement in statements:
            number = next((i for i, loop in enumerate(self.grid) if loop is statement), None)
            if isinstance(statement, ks.For) and number is not None:
                self.lines.add(f"const int64_t i{statement.loop} = {f'grid{number}' if number else 'lo'};")
                self._statements(statement.body)
            elif isinstance(statement, ks.Chunks) and number is not None:
                self.lines.add("const int64_t chunk = lo;")
                self._chunk(statement)
            else:
                super()._statements((statement,))


def grid_loops(kernel: Kernel, num_parallel: int) -> list[ks.For | ks.Chunks]:
    """The loops of ``kernel`` that the grid runs: the outermost one, and parallel loops directly inside.

    The outermost one may run over chunks of a reduction.
    """
    outermost = kernel.outermost
    if not isinstance(outermost, ks.For | ks.Chunks):
        return []
    if isinstance(outermost, ks.For) and not is_parallel(outermost, num_parallel):
        return []
    loops: list[ks.For | ks.Chunks] = [outermost]
    while len(loops[-1].body) == 1:
        (inner,) = loops[-1].body
        if not isinstance(inner, ks.For) or not is_parallel(inner, num_parallel):
            break
        if not isinstance(inner.end, LaunchParameter):
            break
        loops.append(inner)
    return loops


def is_parallel(loop: ks.For, num_parallel: int) -> bool:
    """Whether ``loop`` is one of the parallel loops of the nest."""
    return type(loop.loop) is int and loop.loop < num_parallel
