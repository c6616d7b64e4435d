"""Strip mining of lane loops, for compilers that vectorise only innermost loops of simple statements.

A strip is a block of consecutive iterations of a lane loop. Values that cross inner loops are in stack
scratch, with an element for each iteration of the strip. Four kinds of lane loops are rewritten:

* A loop around other loops, as in a sum of columns: each inner loop runs once for the whole strip, and the
  statements between inner loops become lane loops over the strip. So rows of the operand are read in memory
  order.
* A reduction into several registers, such as an argmax: each iteration of the strip has an accumulator in
  scratch, and these are combined after the loop in a fixed order.
* A loop with guarded code: the strip is computed, and recomputed by exact code if an iteration needs it.
  Stores and reductions come afterwards.
* A loop with stores, and with reductions that the compiler reorders: these run after the stores, in a loop
  that stores nothing. It reads what the first loop has stored, strip by strip only if this does not contain
  all that is reduced. A compiler vectorises a loop with stores for buffers that don't overlap, which it tests
  at run time, sometimes only by the distance of two addresses. So addresses would decide the order of a sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from dualflow.core.records import dataclass
from dualflow.schedule import kernel_statements as ks
from dualflow.schedule.kernel import Kernel
from dualflow.schedule.kernel_statements import ElementAccess, KernelStatement, LoopKind, Register
from dualflow.schedule.loop_ids import BlockLevel, KernelLoop, LoopId
from dualflow.schedule.registers import read, written

STRIP_WIDTH = 128
"""The largest number of iterations of a strip."""
STRIP_ACCUMULATORS = 32
"""The iterations of a strip with an accumulator each, a power of two: each is initialised and combined."""

_SIMPLE = (
    ks.Compute,
    ks.Load,
    ks.Store,
    ks.BoundsCheck,
    ks.MaskedLoad,
    ks.ReduceInit,
    ks.ReduceUpdate,
    ks.ReduceCombine,
    ks.ReduceFinalize,
)


def _is_in_order(_: ks.ReduceUpdate) -> bool:
    return False


def in_strips(
    kernel: Kernel,
    is_guarded: Callable[[ks.Compute], bool],
    is_reordered: Callable[[ks.ReduceUpdate], bool] = _is_in_order,
) -> Kernel:
    """``kernel`` with strip-mined lane loops.

    Args:
        kernel: the kernel.
        is_guarded: whether exact code may have to run after a statement.
        is_reordered: whether the compiler may reorder the iterations of a reduction; none by default.
    """
    writer = _Strips(kernel, is_guarded, is_reordered)
    body = writer.statements(kernel.body)
    return kernel._replace(body=(*writer.memory, *body))


@dataclass(slots=True)
class _SimpleStatements:
    """Consecutive statements without loops, which become one lane loop over the strip."""

    kind: LoopKind
    body: Sequence[KernelStatement]


@dataclass(slots=True)
class _InnerLoop:
    """A loop inside the lane loop, with the parts of its body."""

    loop: ks.For | ks.Blocks
    parts: list[Part]


Part = _SimpleStatements | _InnerLoop


class _Strips:
    """Strip-mines the lane loops of one kernel.

    Attributes:
        memory: the allocations of stack scratch.
    """

    def __init__(
        self,
        kernel: Kernel,
        is_guarded: Callable[[ks.Compute], bool],
        is_reordered: Callable[[ks.ReduceUpdate], bool],
    ) -> None:
        self.is_guarded, self.is_reordered = is_guarded, is_reordered
        self.memory: list[ks.StackScratch] = []
        nested = list(ks.walk_kernel(kernel.body))
        self.dtypes = dict(enumerate(kernel.buffers))
        self.dtypes |= {s.buffer: s.dtype for s in nested if isinstance(s, ks.ScratchBuffer)}
        self.buffers = len(kernel.buffers) + sum(isinstance(s, ks.ScratchBuffer) for s in nested)
        self.registers = 1 + max((r.number for s in nested for r in written(s)), default=-1)

    def statements(self, body: Iterable[KernelStatement]) -> tuple[KernelStatement, ...]:
        return tuple([rewritten for statement in body for rewritten in self._statement(statement)])

    def _statement(self, statement: KernelStatement) -> Iterator[KernelStatement]:
        if isinstance(statement, ks.For) and statement.kind is LoopKind.LANES:
            yield from self._lanes(statement)
        elif isinstance(statement, ks.For | ks.Blocks | ks.Chunks):
            yield statement._replace(body=self.statements(statement.body))
        else:
            yield statement

    def _lanes(self, loop: ks.For) -> Iterator[KernelStatement]:
        inside = list(ks.walk_kernel(loop.body))
        nested = any(isinstance(s, ks.For | ks.Blocks) for s in inside)
        wide = [s for s in loop.body if isinstance(s, ks.ReduceUpdate) and len(s.accumulator) > 1]
        supported = all(isinstance(s, (*_SIMPLE, ks.For, ks.Blocks)) for s in inside)
        if supported and wide:
            yield from self._per_lane_accumulators(loop, wide)
        elif supported and (nested or any(map(self._is_guarded_code, inside))):
            yield self._strip(loop, loop.body, {}, STRIP_WIDTH)
        elif supported and self._is_split(inside):
            yield from self._separated(loop)
        else:
            yield loop

    def _is_guarded_code(self, statement: KernelStatement) -> bool:
        return isinstance(statement, ks.Compute) and self.is_guarded(statement)

    def _is_reordered_update(self, statement: KernelStatement) -> bool:
        return isinstance(statement, ks.ReduceUpdate) and self.is_reordered(statement)

    def _is_split(self, statements: Sequence[KernelStatement]) -> bool:
        """Whether reductions are separated from stores."""
        stores = any(isinstance(s, ks.Store) for s in statements)
        return stores and any(map(self._is_reordered_update, statements))

    # Stores, then reductions

    def _separated(self, loop: ks.For) -> Iterator[KernelStatement]:
        """A loop with the stores and one with the reductions; if this can't load its operands, in strips."""
        groups = self._groups(loop.body)
        stored = {s.value: s.access for s in loop.body if isinstance(s, ks.Store) and self._is_exact(s, loop)}
        crossing = list(_crossing(groups))
        if stored.keys() >= set(crossing):
            first, last = (group.body for group in groups)
            yield loop._replace(body=tuple(first))
            yield loop._replace(body=(*[ks.Load(r, stored[r]) for r in crossing], *last))
        else:
            yield self._strip(loop, loop.body, {}, STRIP_WIDTH)

    def _is_exact(self, store: ks.Store, loop: ks.For) -> bool:
        """Whether each iteration of ``loop`` stores the unchanged value of a register in its own element."""
        is_contiguous = (loop.loop, None) in store.access.terms and store.access.gather_index is None
        value = store.value
        return (
            is_contiguous and isinstance(value, Register) and value.dtype == self.dtypes[store.access.buffer]
        )

    # Several accumulators side by side

    def _per_lane_accumulators(
        self, loop: ks.For, updates: Sequence[ks.ReduceUpdate]
    ) -> Iterator[KernelStatement]:
        """The strip-mined loop with an accumulator for each iteration, and their combination."""
        lanes = {step.node: tuple(map(self._register, step.accumulator)) for step in updates}
        scratch = {
            r: self._allocate(r, STRIP_ACCUMULATORS) for accumulator in lanes.values() for r in accumulator
        }
        starts = [ks.ReduceInit(lanes[step.node], step.reduction, step.node) for step in updates]
        stores = [ks.Store(ElementAccess(scratch[r], terms=((KernelLoop.LANES, None),)), r) for r in scratch]
        yield ks.Lanes(STRIP_ACCUMULATORS, (*starts, *stores))
        body = [
            s._replace(accumulator=lanes[s.node]) if isinstance(s, ks.ReduceUpdate) and s.node in lanes else s
            for s in loop.body
        ]
        yield self._strip(loop, body, scratch, STRIP_ACCUMULATORS)
        for step in updates:
            accumulator = lanes[step.node]
            yield ks.ReduceLanes(
                accumulator,
                step.reduction,
                tuple([scratch[r] for r in accumulator]),
                STRIP_ACCUMULATORS,
                step.node,
            )
            yield ks.ReduceCombine(step.accumulator, step.reduction, accumulator, step.node)

    # One strip

    def _strip(
        self, loop: ks.For, body: Sequence[KernelStatement], scratch: dict[Register, int], width: int
    ) -> ks.StripMinedLoop:
        """The strip-mined loop; the registers in ``scratch`` are live across it."""
        parts = self._parts(body)
        scratch = scratch | {r: self._allocate(r, width) for r in _crossing(parts) if r not in scratch}
        iterations = tuple(_loops(loop.loop, parts, scratch))
        return ks.StripMinedLoop(loop.loop, loop.begin, loop.end, width, iterations)

    def _parts(self, body: Sequence[KernelStatement]) -> list[Part]:
        """The statements without loops, in groups, and the loops between these."""
        parts: list[Part] = []
        simple: list[KernelStatement] = []
        for statement in body:
            if isinstance(statement, ks.For | ks.Blocks):
                parts += [*self._groups(simple), _InnerLoop(statement, self._parts(statement.body))]
                simple = []
            else:
                simple.append(statement)
        return [*parts, *self._groups(simple)]

    def _groups(self, statements: Sequence[KernelStatement]) -> list[_SimpleStatements]:
        """The groups of ``statements``, each a loop.

        Stores and reductions, which run once, come after guarded code, and reordered reductions after stores.
        """
        groups: list[_SimpleStatements] = []
        if any(map(self._is_guarded_code, statements)):
            first, statements = _postponed(statements, _runs_once)
            groups.append(_SimpleStatements(LoopKind.GUARDED, first))
        if self._is_split(statements):
            first, statements = _postponed(statements, self._is_reordered_update)
            groups.append(_SimpleStatements(LoopKind.LANES, first))
        return [*groups, _SimpleStatements(LoopKind.LANES, statements)] if statements else groups

    def _register(self, like: Register) -> Register:
        self.registers += 1
        return Register(self.registers - 1, like.dtype)

    def _allocate(self, register: Register, width: int) -> int:
        """Allocate an element for each iteration of a strip; returns the buffer."""
        self.buffers += 1
        self.memory.append(ks.StackScratch(self.buffers - 1, register.dtype, width))
        return self.buffers - 1


def _runs_once(statement: KernelStatement) -> bool:
    """Whether a second run of ``statement`` in an iteration would change its result."""
    return isinstance(statement, ks.Store | ks.ReduceUpdate | ks.ReduceCombine)


def _postponed(
    statements: Sequence[KernelStatement], is_late: Callable[[KernelStatement], bool]
) -> tuple[list[KernelStatement], list[KernelStatement]]:
    """``statements`` without the late ones and those that read their results; and these."""
    first: list[KernelStatement] = []
    after: list[KernelStatement] = []
    late: set[Register] = set()
    for statement in statements:
        if is_late(statement) or not late.isdisjoint(read(statement)):
            after.append(statement)
            late.update(written(statement))
        else:
            first.append(statement)
    return first, after


def _all_groups(parts: Iterable[Part]) -> Iterator[_SimpleStatements]:
    for part in parts:
        if isinstance(part, _SimpleStatements):
            yield part
        else:
            yield from _all_groups(part.parts)


def _crossing(parts: Sequence[Part]) -> Iterator[Register]:
    """The registers that are written in one group of statements and read in another."""
    groups: dict[Register, set[int]] = {}
    defined: dict[Register, None] = {}
    for number, group in enumerate(_all_groups(parts)):
        for statement in group.body:
            defined.update(dict.fromkeys(written(statement)))
            for register in (*read(statement), *written(statement)):
                groups.setdefault(register, set()).add(number)
    yield from (register for register in defined if len(groups[register]) > 1)


def _loops(loop: LoopId, parts: Iterable[Part], scratch: dict[Register, int]) -> Iterator[KernelStatement]:
    """Each group of statements as a lane loop over the strip, and the loops between these."""
    for part in parts:
        if isinstance(part, _SimpleStatements):
            yield _lane_loop(loop, part, scratch)
        else:
            yield part.loop._replace(body=tuple(_loops(loop, part.parts, scratch)))


def _lane_loop(loop: LoopId, group: _SimpleStatements, scratch: dict[Register, int]) -> ks.For:
    """A lane loop over one strip: it loads the registers of earlier loops from memory, and stores its own."""
    begin, end = ks.edges_of(loop, BlockLevel.STRIP)
    needed: dict[Register, None] = {}
    defined: dict[Register, None] = {}
    for statement in group.body:
        needed.update({r: None for r in read(statement) if r not in defined})
        defined.update(dict.fromkeys(written(statement)))
    accesses = {
        r: ElementAccess(buffer, terms=((loop, None),), block_starts=(begin,))
        for r, buffer in scratch.items()
    }
    loads = [ks.Load(r, accesses[r]) for r in needed if r in accesses]
    stores = [ks.Store(accesses[r], r) for r in defined if r in accesses]
    return ks.For(loop, begin, end, group.kind, (*loads, *group.body, *stores))
