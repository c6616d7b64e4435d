"""Kernels of which a group of work-items computes each iteration: long reductions, in local memory.

The order of additions is that of the default backend, and so are the bits: a reduction loop has lanes, and
long loops have blocks (:mod:`dualflow.schedule.blocking`). In a group, each lane is a work-item, and several
*teams* of lanes compute a block each::

    member 0 ... 31 | 32 ... 63 | ...          lane = member % lanes, team = member / lanes
    team 0            team 1                   of the kernel of a sum with 32 lanes: 8 teams

    for each round of as many blocks as teams
        part = 0; for (i = begin + lane; i < end; i += lanes) part += x[i]      the team's block
        shared[member] = part; barrier
        team 0: sum += shared[lane], sum += shared[lanes + lane], ...           the blocks in order
        barrier
    shared[lane] = sum; barrier
    shared[0] += shared[16]; ...; shared[0] += shared[1]                        halves first
    sum = shared[0]                                                             in each member

What is outside of these loops is computed by each member, and stored by the first. A reduction that doesn't
round has no blocks: all members take part, and the result is the same in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dualflow.backends.c.source_lines import CValue
from dualflow.backends.opencl.dialect import LARGEST_GROUP, buffer_type
from dualflow.backends.opencl.kernel_source import OpenCLKernel, OpenCLWriter, is_parallel
from dualflow.core.dtypes import DType
from dualflow.graph.scalar_functions import ReductionFunctions
from dualflow.ops.op_kinds import Reduce
from dualflow.schedule import kernel_statements as ks
from dualflow.schedule.kernel import Kernel
from dualflow.schedule.kernel_statements import KernelStatement, Register
from dualflow.schedule.loop_ids import KernelLoop
from dualflow.schedule.loop_names import block_suffix, bound_text, index_name

MOST_TEAMS: Final = 64
"""The most teams of a group, whose results the first team combines one after another."""
MIN_ELEMENTS: Final = 32
"""The smallest number of elements of a reduction that a group computes."""
MIN_STEPS: Final = 4
"""The fewest elements of a reduction in any order for each member of a group."""
_BARRIER: Final = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"


def source(kernel: Kernel, lanes: int, num_parallel: int, elements: int) -> OpenCLKernel:
    """``kernel`` as OpenCL C, computed by groups if it reduces many elements.

    Args:
        kernel: the kernel.
        lanes: the number of lanes of its lane loop, if that is a reduction loop.
        num_parallel: the number of parallel loops of its nest; their ids are smaller than it.
        elements: the number of elements, or of partial results, that an iteration reduces.
    """
    if _needs_group(kernel, elements):
        return GroupWriter(kernel, lanes, num_parallel, elements).program()
    return OpenCLWriter(kernel, lanes, num_parallel).program()


def _needs_group(kernel: Kernel, elements: int) -> bool:
    """Whether a group computes each iteration of ``kernel``, which reduces ``elements`` elements.

    A kernel that combines partial results has no lanes; its one iteration is worth a group if it is long. One
    that scans them does so in order.
    """
    if kernel.reduces_lanes:
        return elements >= MIN_ELEMENTS
    statements = list(ks.walk_kernel(kernel.body))
    is_join = any(isinstance(s, ks.For) and s.loop is KernelLoop.CHUNKS for s in statements)
    is_join = is_join and any(isinstance(s, ks.ReduceFinalize) for s in statements)
    return is_join and kernel.outermost is None and elements >= MIN_ELEMENTS


class GroupWriter(OpenCLWriter):
    """Writes a kernel whose iterations are computed by a group each.

    Attributes:
        teams: the number of teams of a group.
        group_size: the number of work-items of a group.
        shared: the arrays in local memory, by name, with their types.
        in_any_order: the accumulators of which each member has its part.
        in_block: whether the current statements are those of a team's block.
        in_lanes: whether the current statements are those of one lane.
    """

    def __init__(self, kernel: Kernel, lanes: int, num_parallel: int, elements: int) -> None:
        super().__init__(kernel, lanes if kernel.reduces_lanes else 1, num_parallel)
        self.wide = frozenset()  # each work-item has one lane
        self.teams = _teams(kernel, self.num_lanes, elements)
        self.group_size = self.num_lanes * self.teams
        self.shared: dict[str, str] = {}
        self.in_any_order: set[Register] = set()
        self.in_block = self.in_lanes = False

    # The program

    def _attributes(self) -> str:
        return f"__attribute__((reqd_work_group_size({self.group_size}, 1, 1))) "

    def _iterations(self) -> tuple[str, ...]:
        """The lines before the body, which each group runs for its iterations."""
        return (
            *(f"    __local {c} {name}[{self.group_size}];" for name, c in self.shared.items()),
            f"    const int member = get_local_id(0), lane = member % {self.num_lanes}, "
            f"team = member / {self.num_lanes};",
            "    for (int64_t item = get_group_id(0); item < items; item += get_num_groups(0)) {",
        )

    @property
    def _scratch_index(self) -> str:
        return "get_group_id(0)"

    def _write_body(self) -> None:
        super()._write_body()
        self._write_scratch_barrier()

    # Loops

    def _for(self, loop: ks.For) -> None:
        if loop.loop is KernelLoop.CHUNKS and not self.in_block:
            self._member_loop(loop)
            return
        if is_parallel(loop, self.num_parallel):
            with self._each(loop):
                self._statements(loop.body)
                self._write_scratch_barrier()
            return
        super()._for(loop)

    def _vector_loop(self, loop: ks.For) -> None:
        self._member_loop(loop)

    def _member_loop(self, loop: ks.For) -> None:
        """Write a loop that the lanes of a team share in its block, else all members of the group."""
        index, begin, end = index_name(loop.loop), bound_text(loop.begin), bound_text(loop.end)
        first, step = ("lane", self.num_lanes) if self.in_block else ("member", self.group_size)
        if not self.in_block:
            self.in_any_order.update(_accumulators((loop,)))
        head = f"for (int64_t {index} = {begin} + {first}; {index} < {end}; {index} += {step})"
        with self.lines.block(head):
            outer, self.in_lanes = self.in_lanes, True
            self._statements(loop.body)
            self.in_lanes = outer

    def _blocks(self, blocks: ks.Blocks) -> None:
        """Write the innermost blocks of a loop: each round is a block for each team."""
        if any(isinstance(s, ks.Blocks) for s in ks.walk_kernel(blocks.body)):
            super()._blocks(blocks)
            return
        suffix, size = block_suffix(blocks.loop, blocks.level), f"n{blocks.size.number}"
        begin, end, first = bound_text(blocks.begin), bound_text(blocks.end), f"first{suffix}"
        combined = [s for s in blocks.body if isinstance(s, ks.ReduceCombine)]
        body = [s for s in blocks.body if not isinstance(s, ks.ReduceCombine)]
        head = f"for (int64_t {first} = {begin}; {first} < {end}; {first} += {self.teams} * {size})"
        with self.lines.block(head):
            self.lines.add(f"const int64_t begin{suffix} = {first} + team * {size};")
            self._write_end(suffix, size, end)
            self.in_block = True
            self._statements(body)
            self.in_block = False
            self._combine_teams(combined, f"{first} + t * {size} < {end}")

    def _combine_teams(self, combined: Sequence[ks.ReduceCombine], in_range: str) -> None:
        """Write the combination of the teams' accumulators, in the order of their blocks, by team 0."""
        parts = [r for statement in combined for r in statement.other]
        arrays = self._share(parts)
        self.lines.add(_BARRIER)
        with self.lines.block(f"for (int t = 0; team == 0 && t < {self.teams} && {in_range}; t++)"):
            elements = [f"{array}[t * {self.num_lanes} + lane]" for array in arrays]
            values = iter(
                [self.lines.declare(r.dtype, text) for r, text in zip(parts, elements, strict=True)]
            )
            for statement in combined:
                others = [next(values) for _ in statement.other]
                both = [*map(self._register, statement.accumulator), *others]
                self._assign(statement.accumulator, self._results(statement.reduction.combine, both))
        self.lines.add(_BARRIER)

    # Reductions

    def _reduce_horizontal(self, statement: ks.ReduceHorizontal) -> None:
        self._combine_members(statement.accumulator, statement.reduction)

    def _reduce_finalize(self, statement: ks.ReduceFinalize) -> None:
        if not self.kernel.reduces_lanes:
            self._combine_members(statement.accumulator, statement.reduction)
        super()._reduce_finalize(statement)

    def _combine_members(self, accumulator: Sequence[Register], reduction: ReductionFunctions) -> None:
        """Write the combination of the lanes, halves first; then each member has the result.

        These are the lanes of team 0, or all members if each of them has its part.
        """
        width = self.group_size if self.in_any_order.issuperset(accumulator) else self.num_lanes
        arrays = self._share(accumulator)
        self.lines.add(_BARRIER)
        if width > 1:
            with self.lines.block(f"for (int pairs = {width // 2}; pairs > 0; pairs /= 2)"):
                with self.lines.block("if (member < pairs)"):
                    both = [
                        self.lines.declare(register.dtype, f"{array}[{at}]")
                        for at in ("member", "member + pairs")
                        for array, register in zip(arrays, accumulator, strict=True)
                    ]
                    for array, value in zip(arrays, self._results(reduction.combine, both), strict=True):
                        self.lines.add(f"{array}[member] = {value.text};")
                self.lines.add(_BARRIER)
        elements = [CValue(f"{a}[0]", r.dtype) for a, r in zip(arrays, accumulator, strict=True)]
        self._assign(accumulator, elements)
        self.lines.add(_BARRIER)

    def _share(self, registers: Sequence[Register]) -> list[str]:
        """Write each member's registers to arrays in local memory; returns their names."""
        arrays = [self._shared_array(i, register.dtype) for i, register in enumerate(registers)]
        for array, register in zip(arrays, registers, strict=True):
            self.lines.add(f"{array}[member] = {self._register(register).text};")
        return arrays

    def _shared_array(self, number: int, dtype: DType) -> str:
        """The array number ``number`` of those in use together, of a dtype."""
        c = buffer_type(dtype)
        name = f"shared{number}_{c}"
        self.shared[name] = c
        return name

    # Memory

    def _store(self, store: ks.Store) -> None:
        """Write a store: outside of lanes one member stores, after all have read what it overwrites.

        PoCL 3.1 loses a conditional store which a loop follows, unless there is a barrier between them.
        """
        if self.in_lanes:
            super()._store(store)
            return
        if not self.in_block:
            self.lines.add(_BARRIER)
        with self.lines.block(f"if ({'lane' if self.in_block else 'member'} == 0)"):
            super()._store(store)
        if not self.in_block:
            self.lines.add(_BARRIER)

    def _write_scratch_barrier(self) -> None:
        """Write the barrier after which the group's scratch memory may be overwritten."""
        if any(isinstance(s, ks.ScratchBuffer) for s in self.kernel.body):
            self.lines.add(_BARRIER)


def _teams(kernel: Kernel, lanes: int, elements: int) -> int:
    """The number of teams of a group, a power of two.

    A kernel with rounding reductions has several teams if it has blocks, which these share.
    """
    most = min(LARGEST_GROUP // lanes, MOST_TEAMS)
    statements = list(ks.walk_kernel(kernel.body))
    if any(isinstance(s, ks.Blocks) for s in statements):
        return most
    if any(isinstance(s, ks.ReduceInit) and _rounds(s) for s in statements):
        return 1
    teams = 1
    while teams < most and 2 * teams * lanes * MIN_STEPS <= elements:
        teams *= 2
    return teams


def _rounds(statement: ks.ReduceInit) -> bool:
    kind = statement.node.op.kind
    return isinstance(kind, Reduce) and kind.rounds and statement.node.inputs[0].spec.dtype.is_inexact


def _accumulators(statements: Sequence[KernelStatement]) -> list[Register]:
    """The accumulators that statements update."""
    return [
        register
        for statement in ks.walk_kernel(statements)
        if isinstance(statement, ks.ReduceUpdate | ks.ReduceCombine)
        for register in statement.accumulator
    ]
