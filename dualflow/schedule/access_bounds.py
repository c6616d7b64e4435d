"""Bounds of memory accesses: the smallest and the largest index of every load and store of a kernel.

An index is affine in the indices of loops: an offset, and for each loop that the access follows ``stride *
index``. Each loop's index is between 0 and some number, so that the extremes of an index are at the corners
of the iteration space:

    Store buffer 1 [loop0 * number 4 + loop1]        0 to (total - 1) * number 4 + (number 3 - 1)

Which numbers those are depends on the statements alone. :func:`access_bounds` derives it once for each kernel
that is written, and :meth:`AccessBounds.check` evaluates it for the numbers of each launch. A position that
is itself loaded from memory (a gather) is bounded by its ``BoundsCheck``, which guards the load. What can't
be proved so is refused: no kernel runs whose accesses are not inside its buffers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from dualflow.core.errors import InternalError
from dualflow.core.records import NamedTuple
from dualflow.graph.ir import Node
from dualflow.schedule import loop_program as lp
from dualflow.schedule.loop_ids import BlockId, BlockLevel, KernelLoop, Level, LoopId
from dualflow.schedule.loop_program import (
    Edge,
    End,
    Kernel,
    Place,
    Register,
    Run,
    Statement,
)
from dualflow.schedule.refused_accesses import refused, shown
from dualflow.schedule.registers import written

SQUARE = 16
"""Tiles are transposed by squares whose sides divide so many elements, and end with whole squares."""

Region = tuple[int, int]
"""The first and the last element that may be accessed, from where the kernel sees the buffer begin."""
NOTHING: Region = (0, -1)
"""The region of a buffer without elements."""


class Index(NamedTuple):
    """The index of one access.

    All fields but the first and the last are places in the list of numbers of :meth:`AccessBounds.numbers`.

    Attributes:
        buffer: the kernel's buffer.
        terms: for each loop a stride, and the number of the loop's iterations.
        offset: the number that is added; None for 0.
        loops: the numbers of iterations of all loops around the access: where one is 0, there is none.
        statement: which of the kernel's statements, in the order of ``walk``.
    """

    buffer: int
    terms: tuple[tuple[int, int], ...]
    offset: int | None
    loops: tuple[int, ...]
    statement: int


class Rule(Enum):
    """What has to hold of two numbers."""

    EQUAL = "is"
    AT_LEAST = "is at least"
    MULTIPLE = "is a multiple of"
    ROWS_WITHIN = "as the size of a chunk, begins the last one before"
    """All chunks of a size, as many as the kernel's range has, begin before the end of the loop."""


class Condition(NamedTuple):
    """A rule of two numbers, by their places, for the statement of that number."""

    rule: Rule
    left: int
    right: int
    statement: int


class AccessBounds(NamedTuple):
    """The indices of all accesses of a kernel, as functions of a launch's numbers.

    Attributes:
        constants: numbers that the statements themselves have.
        indices: of the accesses, different ones.
        conditions: what the numbers have to satisfy for the indices to be right.
        own: the kernel's own buffers, with the factors of the number of their elements.
        from_start: the buffers that the kernel sees from their first element on: some loop walks backwards.
    """

    constants: tuple[int, ...]
    indices: tuple[Index, ...]
    conditions: tuple[Condition, ...]
    own: Mapping[int, tuple[int, ...]]
    from_start: frozenset[int]

    def numbers(self, run: Run) -> tuple[int, ...]:
        """The numbers that places stand for: the launch's, the size of its range, 1, and constants."""
        return *run.parameters, run.total, 1, *self.constants

    def check(self, run: Run, regions: Sequence[Region], node: Node) -> None:
        """Raise unless every access of ``run`` is inside.

        Args:
            run: the launch, whose numbers are ints.
            regions: for each of the kernel's buffers that are not its own.
            node: what the kernel computes.

        Raises:
            InternalError: an access is outside, or a number isn't what the accesses rest on.
        """
        self.check_reach(self.reach(run, node), run, regions, node)

    def reach(self, run: Run, node: Node) -> dict[int, Region]:
        """The smallest and the largest index that ``run`` accesses, of each buffer but the kernel's own.

        Raises:
            InternalError: an access is outside of the kernel's own memory, or a number isn't what the
                accesses rest on.
        """
        numbers = self.numbers(run)
        for condition in self.conditions:
            if not _holds(condition, numbers, run.total):
                raise refused(run, condition.statement, node, _unmet(condition, numbers))
        own = {buffer: (0, _product(numbers, factors) - 1) for buffer, factors in self.own.items()}
        reach: dict[int, Region] = {}
        for index in self.indices:
            region = _extremes(index, numbers)
            if region is None:
                continue
            buffer, (least, most) = index.buffer, region
            if buffer in own:
                _compare(region, own[buffer], run, index, node)
            elif buffer in reach:
                first, last = reach[buffer]
                reach[buffer] = (min(first, least), max(last, most))
            else:
                reach[buffer] = region
        return reach

    def check_reach(
        self, reach: Mapping[int, Region], run: Run, regions: Sequence[Region], node: Node
    ) -> None:
        """Raise unless ``reach``, a result of :meth:`reach`, is inside of ``regions``; see :meth:`check`."""
        for buffer, (least, most) in reach.items():
            first, last = regions[buffer]
            if least < first or most > last:
                break
        else:
            return
        numbers = self.numbers(run)
        for index in self.indices:
            region = None if index.buffer in self.own else _extremes(index, numbers)
            if region is not None:
                _compare(region, regions[index.buffer], run, index, node)


def _extremes(index: Index, numbers: Sequence[int]) -> Region | None:
    """The smallest and the largest value of an index; None where a loop around it has no iterations."""
    least = most = 0 if index.offset is None else numbers[index.offset]
    for loop in index.loops:
        if numbers[loop] < 1:
            return None
    for stride, count in index.terms:
        distance = numbers[stride] * (numbers[count] - 1)
        if distance < 0:
            least += distance
        else:
            most += distance
    return least, most


def _compare(accessed: Region, region: Region, run: Run, index: Index, node: Node) -> None:
    """Raise unless the accessed elements are inside of a region."""
    (least, most), (first, last) = accessed, region
    if least < first or most > last:
        why = f"it accesses elements {least} to {most} of a buffer that has {first} to {last}"
        raise refused(run, index.statement, node, why)


def access_bounds(kernel: Kernel) -> AccessBounds:
    """The indices of all accesses of ``kernel``.

    Raises:
        InternalError: the index of some access has no bounds.
    """
    return _Analysis(kernel).result()


class _OpenBlock(NamedTuple):
    """The chunk of a loop between two edges: the loop's iterations, and its own at most."""

    iterations: int
    size: int
    around: frozenset[BlockId]


class _OpenLoop(NamedTuple):
    """An open loop: the number of its iterations, and the chunks that it lies in."""

    iterations: int
    blocks: frozenset[BlockId]


class _Analysis:
    """Walks the statements of one kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.total, self.one = kernel.parameters, kernel.parameters + 1
        self.constants: dict[int, int] = {}
        self.indices: dict[tuple[object, ...], Index] = {}
        self.conditions: dict[tuple[object, ...], Condition] = {}
        self.own: dict[int, tuple[int, ...]] = {}
        self.statement = -1
        self._positions: dict[int, tuple[int, int]] | None = None

    def result(self) -> AccessBounds:
        self._statements(self.kernel.body, {}, {}, ())
        indices = tuple(self.indices.values())
        return AccessBounds(
            tuple(self.constants),
            indices,
            tuple(self.conditions.values()),
            self.own,
            frozenset(index.buffer for index in indices if index.offset is not None),
        )

    def _constant(self, number: int) -> int:
        """The place of a number that the statements have."""
        return self.one + 1 + self.constants.setdefault(number, len(self.constants))

    def _refuse(self, why: str) -> InternalError:
        statement = list(lp.walk(self.kernel.body))[self.statement]
        return InternalError(f"a kernel is refused: {why}:\n    {shown(statement)}\nPlease report this.")

    def _require(self, rule: Rule, left: int, right: int) -> None:
        if (rule, left, right) not in self.conditions:
            self.conditions[rule, left, right] = Condition(rule, left, right, self.statement)

    # Statements

    def _statements(
        self,
        body: Sequence[Statement],
        loops: dict[LoopId, _OpenLoop],
        blocks: dict[BlockId, _OpenBlock],
        around: tuple[int, ...],
    ) -> None:
        for statement in body:
            self.statement += 1
            match statement:
                case lp.For(loop, begin, end) | lp.RowGroups(loop, begin, end):
                    inner = self._range(begin, end, blocks)
                    self._statements(
                        statement.body, {**loops, loop: inner}, blocks, (*around, inner.iterations)
                    )
                case lp.Once(loop, extent):
                    inner = _OpenLoop(extent.number, frozenset())
                    self._statements(
                        statement.body, {**loops, loop: inner}, blocks, (*around, inner.iterations)
                    )
                case lp.Blocks(loop, level, begin, end, size):
                    self._require(Rule.AT_LEAST, size.number, self.one)
                    whole = self._range(begin, end, blocks)
                    block = self._block(whole, loop, level, size.number)
                    self._statements(statement.body, loops, {**blocks, **block}, (*around, whole.iterations))
                case lp.StripMinedLoop(loop, begin, end, width):
                    whole = self._range(begin, end, blocks)
                    block = self._block(whole, loop, BlockLevel.STRIP, self._constant(width))
                    self._statements(statement.body, loops, {**blocks, **block}, (*around, whole.iterations))
                case lp.Lanes(width):
                    lanes = _OpenLoop(self._constant(width), frozenset())
                    self._statements(statement.body, {**loops, KernelLoop.LANES: lanes}, blocks, around)
                case lp.Chunks(loop, size, extent):
                    self._require(Rule.AT_LEAST, size.number, self.one)
                    self._require(Rule.ROWS_WITHIN, size.number, extent.number)
                    chunks, whole = _OpenLoop(self.total, frozenset()), _OpenLoop(extent.number, frozenset())
                    block = self._block(whole, loop, BlockLevel.CHUNK, size.number)
                    inside = (*around, self.total, extent.number)
                    self._statements(
                        statement.body, {**loops, KernelLoop.CHUNKS: chunks}, {**blocks, **block}, inside
                    )
                case lp.Choose():
                    for branch in statement.branches:
                        self._statements(branch.body, loops, blocks, around)
                case lp.Repeat():
                    self._statements(statement.condition.body, loops, blocks, around)
                    self._statements(statement.body.body, loops, blocks, around)
                case _:
                    self._access(statement, loops, blocks, around)

    def _block(self, whole: _OpenLoop, loop: LoopId, level: Level, size: int) -> dict[BlockId, _OpenBlock]:
        return {(loop, level): _OpenBlock(whole.iterations, size, whole.blocks | {(loop, level)})}

    def _range(self, begin: lp.Bound, end: lp.Bound, blocks: Mapping[BlockId, _OpenBlock]) -> _OpenLoop:
        """A loop between two bounds: its index is at least 0 and less than some number."""
        if begin is End.LOW and end is End.HIGH:
            return _OpenLoop(self.total, frozenset())
        if begin is End.ZERO and isinstance(end, lp.LaunchParameter):
            return _OpenLoop(end.number, frozenset())
        if isinstance(begin, Edge) and end == begin._replace(end=True) and not begin.end:
            block = blocks.get((begin.loop, begin.level))
            if block is not None:
                return _OpenLoop(block.iterations, block.around)
        raise self._refuse("the bounds of a loop have no number")

    def _access(
        self,
        statement: Statement,
        loops: Mapping[LoopId, _OpenLoop],
        blocks: Mapping[BlockId, _OpenBlock],
        around: tuple[int, ...],
    ) -> None:
        match statement:
            case lp.Load(_, place) | lp.Store(place):
                if place.gathered is not None:
                    raise self._refuse("nothing checks the position that it reads at")
                self._index(place, loops, blocks, around)
            case lp.MaskedLoad(load, inside):
                self._guarded(load.place, inside, loops, blocks, around)
            case lp.ScratchBuffer(buffer, _, length):
                self.own[buffer] = tuple([n.number for n in length])
            case lp.StackScratch(buffer, _, width):
                self.own[buffer] = (self._constant(width),)
            case lp.TransposedTile():
                self._tile(statement, loops, blocks, around)
            case lp.ReduceLanes(slots=slots, width=width):
                for slot in slots:
                    place = Place(slot, ((KernelLoop.LANES, None),))
                    lanes = _OpenLoop(self._constant(width), frozenset())
                    self._index(place, {KernelLoop.LANES: lanes}, blocks, around)

    # Accesses

    def _index(
        self,
        place: Place,
        loops: Mapping[LoopId, _OpenLoop],
        blocks: Mapping[BlockId, _OpenBlock],
        around: tuple[int, ...],
        gathered: tuple[tuple[int, int], ...] = (),
    ) -> None:
        if place.buffer >= len(self.kernel.buffers) and place.buffer not in self.own:
            raise self._refuse("the kernel has no such buffer")
        begins = {edge.loop: (edge.loop, edge.level) for edge in place.begins}
        terms = list(gathered)
        for loop, stride in place.terms:
            if loop not in loops:
                raise self._refuse("it follows a loop that it isn't inside of")
            count, chunks = loops[loop]
            if loop in begins:
                if begins[loop] not in chunks:
                    raise self._refuse("it counts from a chunk that its loop isn't inside of")
                count = blocks[begins[loop]].size
            terms.append((self.one if stride is None else stride.number, count))
        offset = None if place.offset is None else place.offset.number
        needed = (*dict.fromkeys(around), *[n for _, n in gathered])
        key = place.buffer, tuple(terms), offset, needed
        if key not in self.indices:
            self.indices[key] = Index(place.buffer, tuple(terms), offset, needed, self.statement)

    def _guarded(
        self,
        place: Place,
        inside: Register,
        loops: Mapping[LoopId, _OpenLoop],
        blocks: Mapping[BlockId, _OpenBlock],
        around: tuple[int, ...],
    ) -> None:
        """A load at a position that a check has looked at."""
        gathered: tuple[tuple[int, int], ...] = ()
        if place.gathered is not None:
            register, stride = place.gathered
            checked = self._checked(register)
            if checked is None or checked[1] != inside.number:
                raise self._refuse("its guard isn't the check of the position that it reads at")
            gathered = ((stride.number, checked[0]),)
        self._index(place, loops, blocks, around, gathered)

    def _checked(self, register: Register) -> tuple[int, int] | None:
        """The size of the axis that a position is checked for, and the register that tells it is inside."""
        if self._positions is None:
            self._positions = _checked_positions(self.kernel)
        return self._positions.get(register.number)

    def _tile(
        self,
        tile: lp.TransposedTile,
        loops: Mapping[LoopId, _OpenLoop],
        blocks: Mapping[BlockId, _OpenBlock],
        around: tuple[int, ...],
    ) -> None:
        """A tile is read by rows along ``down``, and written by squares of rows along ``across``."""
        down, across = (self._range(*edges, blocks) for edges in (tile.down, tile.across))
        loop = tile.down[0].loop
        opened = {**loops, loop: down, tile.across[0].loop: across}
        self._index(tile.place, opened, blocks, (*around, down.iterations, across.iterations))
        strides = [stride for at, stride in tile.place.terms if at == loop]
        if len(strides) != 1:
            raise self._refuse("it doesn't follow the loop along which neighbours are read")
        if strides[0] is not None:
            self._require(Rule.EQUAL, strides[0].number, self.one)
        side = tile.side.number
        for edge in (tile.down[0], tile.across[0]):
            self._require(Rule.AT_LEAST, side, blocks[edge.loop, edge.level].size)
        self._require(Rule.MULTIPLE, side, self._constant(SQUARE))
        written_terms = ((side, side), (self.one, side))
        key = tile.row, written_terms, None, tuple(dict.fromkeys(around))
        if tile.row not in self.own:
            raise self._refuse("the kernel has no such buffer")
        self.indices.setdefault(key, Index(*key, self.statement))


def _checked_positions(kernel: Kernel) -> dict[int, tuple[int, int]]:
    """The positions that a ``BoundsCheck`` has tested: for each register the axis' size, and what tells it.

    A register has the checked position everywhere if nothing else is written to it; loads from slots of the
    kernel's own, to which nothing but that register is stored, bring it back.
    """
    checked: dict[int, tuple[int, int]] = {}
    stored: dict[int, set[int | None]] = {}
    writers: dict[int, list[Statement]] = {}
    for statement in lp.walk(kernel.body):
        if isinstance(statement, lp.BoundsCheck):
            checked[statement.register.number] = statement.extent.number, statement.inside.number
        if isinstance(statement, lp.Store):
            value = statement.value
            number = value.number if isinstance(value, Register) else None
            stored.setdefault(statement.place.buffer, set()).add(number)
        for register in written(statement):
            writers.setdefault(register.number, []).append(statement)

    def brings_back(statement: Statement, register: int) -> bool:
        if isinstance(statement, lp.BoundsCheck):
            return True
        if not isinstance(statement, lp.Load) or statement.place.buffer < len(kernel.buffers):
            return False
        return stored.get(statement.place.buffer) == {register}

    return {
        register: (extent, inside)
        for register, (extent, inside) in checked.items()
        if all(brings_back(s, r) for r in (register, inside) for s in writers[r])
        and sum(isinstance(s, lp.BoundsCheck) for s in writers[register]) == 1
    }


def _holds(condition: Condition, numbers: Sequence[int], total: int) -> bool:
    left, right = numbers[condition.left], numbers[condition.right]
    match condition.rule:
        case Rule.EQUAL:
            return left == right
        case Rule.AT_LEAST:
            return left >= right
        case Rule.MULTIPLE:
            return left % right == 0
        case Rule.ROWS_WITHIN:
            return total <= 0 or (total - 1) * left < right


def _unmet(condition: Condition, numbers: Sequence[int]) -> str:
    left, right = numbers[condition.left], numbers[condition.right]
    return f"its number {left} is not one that {condition.rule.value} {right}"


def _product(numbers: Sequence[int], factors: Sequence[int]) -> int:
    product = 1
    for factor in factors:
        product *= numbers[factor]
    return product
