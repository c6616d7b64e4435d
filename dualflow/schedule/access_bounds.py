"""Bounds of memory accesses: the smallest and the largest index of every load and store of a kernel.

An index is affine in the indices of loops: an offset, and for each loop around it ``stride * index``. The
index of a loop is between 0 and its trip count, so the extremes of an access are at the corners of the
iteration space:

    Store buffer 1 [loop0 * parameter 4 + loop1]     0 to (total - 1) * parameter 4 + (parameter 3 - 1)

The expressions depend on the statements alone. :func:`access_bounds` derives them once per kernel, and
:meth:`AccessBounds.check` evaluates them for the launch parameters of each launch. An index that is itself
loaded from memory (a gather) is bounded by its ``BoundsCheck``, which guards the load. A kernel with an
access that is not proved to be inside its buffer is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from dualflow.core.errors import InternalError
from dualflow.core.records import NamedTuple
from dualflow.graph.ir import Node
from dualflow.schedule import kernel_statements as ks
from dualflow.schedule.kernel import Kernel, KernelLaunch
from dualflow.schedule.kernel_statements import Edge, ElementAccess, End, KernelStatement, Register
from dualflow.schedule.loop_ids import BlockId, BlockLevel, KernelLoop, LoopId
from dualflow.schedule.refused_accesses import refused, shown
from dualflow.schedule.registers import written

TILE_SQUARE = 16
"""Tiles are transposed in squares of at most 16 x 16 elements; the side of a tile is a multiple of 16."""

IndexRange = tuple[int, int]
"""The first and the last element that may be accessed, relative to the kernel's argument."""
NOTHING: IndexRange = (0, -1)
"""The range of a buffer without elements."""


class Index(NamedTuple):
    """The affine index of one access: an offset plus ``stride * index`` for each loop.

    Its numbers are positions in :meth:`AccessBounds.values`.

    Attributes:
        buffer: the kernel's buffer.
        terms: for each loop a stride and the trip count.
        offset: the offset that is added; None for 0.
        loops: the trip counts of all loops around the access: if one is 0, nothing is accessed.
        statement: the number of the statement, in program order.
    """

    buffer: int
    terms: tuple[tuple[int, int], ...]
    offset: int | None
    loops: tuple[int, ...]
    statement: int


class Rule(Enum):
    """A relation of two values."""

    EQUAL = "equal to"
    AT_LEAST = "at least"
    MULTIPLE = "a multiple of"
    ROWS_WITHIN = "a chunk size for which the last chunk begins before"
    """All chunks of this size in the kernel's range begin before the end of the loop."""


class Condition(NamedTuple):
    """A rule for two of :meth:`AccessBounds.values`, and the number of the statement that requires it."""

    rule: Rule
    left: int
    right: int
    statement: int


class AccessBounds(NamedTuple):
    """The index expressions of all accesses of a kernel, as functions of launch parameters.

    Attributes:
        constants: integers of the statements.
        indices: the different index expressions of the accesses.
        conditions: the conditions under which the indices are right.
        scratch: for each scratch buffer of the kernel, the factors of its number of elements.
        from_start: the buffers that are passed from their first element on, since a stride may be negative.
    """

    constants: tuple[int, ...]
    indices: tuple[Index, ...]
    conditions: tuple[Condition, ...]
    scratch: Mapping[int, tuple[int, ...]]
    from_start: frozenset[int]

    def values(self, launch: KernelLaunch) -> tuple[int, ...]:
        """The numbers in index bounds: launch parameters, the kernel's range, 1, and constants."""
        return *launch.parameters, launch.total, 1, *self.constants

    def check(self, launch: KernelLaunch, regions: Sequence[IndexRange], node: Node) -> None:
        """Raise unless every access of ``launch`` is inside its buffer.

        Args:
            launch: the launch, whose parameters are ints.
            regions: of each buffer but the kernel's scratch buffers.
            node: the node that the kernel computes.

        Raises:
            InternalError: an access is outside its buffer, or a condition of the accesses doesn't hold.
        """
        self.check_reach(self.reach(launch, node), launch, regions, node)

    def reach(self, launch: KernelLaunch, node: Node) -> dict[int, IndexRange]:
        """The smallest and the largest index that ``launch`` accesses in each buffer, except scratch buffers.

        Raises:
            InternalError: an access is outside its scratch buffer, or a condition of the accesses doesn't
                hold.
        """
        values = self.values(launch)
        for condition in self.conditions:
            if not _holds(condition, values, launch.total):
                raise refused(launch, condition.statement, node, _unmet(condition, values))
        scratch = {buffer: (0, _product(values, factors) - 1) for buffer, factors in self.scratch.items()}
        reach: dict[int, IndexRange] = {}
        for index in self.indices:
            region = _extremes(index, values)
            if region is None:
                continue
            buffer, (lower, upper) = index.buffer, region
            if buffer in scratch:
                _compare(region, scratch[buffer], launch, index, node)
            elif buffer in reach:
                first, last = reach[buffer]
                reach[buffer] = (min(first, lower), max(last, upper))
            else:
                reach[buffer] = region
        return reach

    def check_reach(
        self, reach: Mapping[int, IndexRange], launch: KernelLaunch, regions: Sequence[IndexRange], node: Node
    ) -> None:
        """Raise InternalError if an accessed index range ``reach`` is outside its buffer's ``regions``."""
        for buffer, (lower, upper) in reach.items():
            first, last = regions[buffer]
            if lower < first or upper > last:
                break
        else:
            return
        values = self.values(launch)
        for index in self.indices:
            region = None if index.buffer in self.scratch else _extremes(index, values)
            if region is not None:
                _compare(region, regions[index.buffer], launch, index, node)


def _extremes(index: Index, values: Sequence[int]) -> IndexRange | None:
    """The smallest and the largest value of an index; None if a loop around it has no iterations."""
    lower = upper = 0 if index.offset is None else values[index.offset]
    for loop in index.loops:
        if values[loop] < 1:
            return None
    for stride, count in index.terms:
        distance = values[stride] * (values[count] - 1)
        if distance < 0:
            lower += distance
        else:
            upper += distance
    return lower, upper


def _compare(
    accessed: IndexRange, region: IndexRange, launch: KernelLaunch, index: Index, node: Node
) -> None:
    """Raise unless the accessed elements are inside a region."""
    (lower, upper), (first, last) = accessed, region
    if lower < first or upper > last:
        why = f"it accesses elements {lower} to {upper} of a buffer that has {first} to {last}"
        raise refused(launch, index.statement, node, why)


def access_bounds(kernel: Kernel) -> AccessBounds:
    """The index expressions of all accesses of ``kernel``.

    Raises:
        InternalError: the index of an access has no bounds.
    """
    return _Analysis(kernel).result()


class _OpenBlock(NamedTuple):
    """A block of loop iterations that contains the statement under analysis.

    Attributes:
        iterations: the trip count of the loop.
        size: the number of iterations in a block.
        around: the blocks that contain this one.
    """

    iterations: int
    size: int
    around: frozenset[BlockId]


class _OpenLoop(NamedTuple):
    """A loop that contains the statement under analysis: its trip count, and the blocks around it."""

    iterations: int
    blocks: frozenset[BlockId]


def _whole_loop(iterations: int) -> _OpenLoop:
    """A loop that is not inside of blocks of its iterations."""
    return _OpenLoop(iterations, frozenset())


class _Surroundings(NamedTuple):
    """The loops and blocks that contain the statement under analysis.

    Attributes:
        loops: the loops.
        blocks: the blocks of loop iterations.
        trip_counts: the trip counts without which the statement isn't executed.
    """

    loops: Mapping[LoopId, _OpenLoop]
    blocks: Mapping[BlockId, _OpenBlock]
    trip_counts: tuple[int, ...]

    def in_loop(self, loop: LoopId, opened: _OpenLoop) -> _Surroundings:
        """The surroundings of the body of a loop."""
        trip_counts = *self.trip_counts, opened.iterations
        return _Surroundings({**self.loops, loop: opened}, self.blocks, trip_counts)

    def in_block(self, block: BlockId, loop: _OpenLoop, size: int) -> _Surroundings:
        """The surroundings of the body of a loop over blocks of ``size`` iterations of ``loop``."""
        opened = _OpenBlock(loop.iterations, size, loop.blocks | {block})
        trip_counts = *self.trip_counts, loop.iterations
        return _Surroundings(self.loops, {**self.blocks, block: opened}, trip_counts)

    def in_lanes(self, lanes: _OpenLoop) -> _Surroundings:
        """The surroundings of a body that runs for each vector lane."""
        return self._replace(loops={**self.loops, KernelLoop.LANES: lanes})


class _Analysis:
    """Derives the bounds of one kernel's accesses."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.total, self.one = kernel.parameters, kernel.parameters + 1
        self.constants: dict[int, int] = {}
        self.indices: dict[tuple[object, ...], Index] = {}
        self.conditions: dict[tuple[object, ...], Condition] = {}
        self.scratch: dict[int, tuple[int, ...]] = {}
        self.statement = -1
        self._positions: dict[int, tuple[int, int]] | None = None

    def result(self) -> AccessBounds:
        self._statements(self.kernel.body, _Surroundings({}, {}, ()))
        indices = tuple(self.indices.values())
        return AccessBounds(
            tuple(self.constants),
            indices,
            tuple(self.conditions.values()),
            self.scratch,
            frozenset(index.buffer for index in indices if index.offset is not None),
        )

    def _constant(self, number: int) -> int:
        """The position of the constant ``number`` among the numbers of :meth:`AccessBounds.values`."""
        return self.one + 1 + self.constants.setdefault(number, len(self.constants))

    def _refuse(self, why: str) -> InternalError:
        statement = list(ks.walk_kernel(self.kernel.body))[self.statement]
        return InternalError(f"a kernel is refused: {why}:\n    {shown(statement)}\nPlease report this.")

    def _require(self, rule: Rule, left: int, right: int) -> None:
        if (rule, left, right) not in self.conditions:
            self.conditions[rule, left, right] = Condition(rule, left, right, self.statement)

    # Statements

    def _statements(
        self,
        body: Sequence[KernelStatement],
        around: _Surroundings,
    ) -> None:
        for statement in body:
            self.statement += 1
            match statement:
                case ks.For(loop, begin, end) | ks.RowGroups(loop, begin, end):
                    self._statements(statement.body, around.in_loop(loop, self._range(begin, end, around)))
                case ks.Once(loop, extent):
                    self._statements(statement.body, around.in_loop(loop, _whole_loop(extent.number)))
                case ks.Blocks(loop, level, begin, end, size):
                    self._require(Rule.AT_LEAST, size.number, self.one)
                    range_ = self._range(begin, end, around)
                    self._statements(statement.body, around.in_block((loop, level), range_, size.number))
                case ks.StripMinedLoop(loop, begin, end, width):
                    block, range_ = (loop, BlockLevel.STRIP), self._range(begin, end, around)
                    self._statements(statement.body, around.in_block(block, range_, self._constant(width)))
                case ks.Lanes(width):
                    lanes = _whole_loop(self._constant(width))
                    self._statements(statement.body, around.in_lanes(lanes))
                case ks.Chunks():
                    self._statements(statement.body, self._in_chunks(statement, around))
                case ks.Choose():
                    for branch in statement.branches:
                        self._statements(branch.body, around)
                case ks.Repeat():
                    self._statements(statement.condition.body, around)
                    self._statements(statement.body.body, around)
                case _:
                    self._access(statement, around)

    def _in_chunks(self, chunks: ks.Chunks, around: _Surroundings) -> _Surroundings:
        """The surroundings of the body of a loop over chunks."""
        size, extent = chunks.size.number, chunks.extent.number
        self._require(Rule.AT_LEAST, size, self.one)
        self._require(Rule.ROWS_WITHIN, size, extent)
        inside = around.in_loop(KernelLoop.CHUNKS, _whole_loop(self.total))
        return inside.in_block((chunks.loop, BlockLevel.CHUNK), _whole_loop(extent), size)

    def _range(self, begin: ks.Bound, end: ks.Bound, around: _Surroundings) -> _OpenLoop:
        """The loop between two bounds, whose indices are at least 0 and below its largest trip count."""
        if begin is End.LOW and end is End.HIGH:
            return _whole_loop(self.total)
        if begin is End.ZERO and isinstance(end, ks.LaunchParameter):
            return _whole_loop(end.number)
        if isinstance(begin, Edge) and end == begin._replace(end=True) and not begin.end:
            block = around.blocks.get((begin.loop, begin.level))
            if block is not None:
                return _OpenLoop(block.iterations, block.around)
        raise self._refuse("the bounds of a loop are not a range or a block")

    def _access(
        self,
        statement: KernelStatement,
        around: _Surroundings,
    ) -> None:
        match statement:
            case ks.Load(_, access) | ks.Store(access):
                if access.gather_index is not None:
                    raise self._refuse("the index that it reads at is not checked")
                self._index(access, around)
            case ks.MaskedLoad(load, inside):
                self._masked_load(load.access, inside, around)
            case ks.ScratchBuffer(buffer, _, length):
                self.scratch[buffer] = tuple([n.number for n in length])
            case ks.StackScratch(buffer, _, width):
                self.scratch[buffer] = (self._constant(width),)
            case ks.TransposedTile():
                self._tile(statement, around)
            case ks.ReduceLanes(buffers=buffers, width=width):
                for buffer in buffers:
                    access = ElementAccess(buffer, ((KernelLoop.LANES, None),))
                    lanes = _whole_loop(self._constant(width))
                    self._index(access, around._replace(loops={KernelLoop.LANES: lanes}))

    # Accesses

    def _index(
        self,
        access: ElementAccess,
        around: _Surroundings,
        gathered: tuple[tuple[int, int], ...] = (),
    ) -> None:
        if access.buffer >= len(self.kernel.buffers) and access.buffer not in self.scratch:
            raise self._refuse("the kernel has no such buffer")
        begins = {edge.loop: (edge.loop, edge.level) for edge in access.block_starts}
        terms = list(gathered)
        for loop, stride in access.terms:
            if loop not in around.loops:
                raise self._refuse("its index has a loop that is not around it")
            count, chunks = around.loops[loop]
            if loop in begins:
                if begins[loop] not in chunks:
                    raise self._refuse("its index is relative to a block that is not around it")
                count = around.blocks[begins[loop]].size
            terms.append((self.one if stride is None else stride.number, count))
        offset = None if access.offset is None else access.offset.number
        needed = (*dict.fromkeys(around.trip_counts), *[n for _, n in gathered])
        key = access.buffer, tuple(terms), offset, needed
        if key not in self.indices:
            self.indices[key] = Index(access.buffer, tuple(terms), offset, needed, self.statement)

    def _masked_load(
        self,
        access: ElementAccess,
        inside: Register,
        around: _Surroundings,
    ) -> None:
        """Record the access of a load whose index a ``BoundsCheck`` has checked."""
        gathered: tuple[tuple[int, int], ...] = ()
        if access.gather_index is not None:
            register, stride = access.gather_index
            checked = self._checked(register)
            if checked is None or checked[1] != inside.number:
                raise self._refuse("its mask is not the check of the index that it reads at")
            gathered = ((stride.number, checked[0]),)
        self._index(access, around, gathered)

    def _checked(self, register: Register) -> tuple[int, int] | None:
        """The size that the index in ``register`` is checked against, and the register of the result."""
        if self._positions is None:
            self._positions = _checked_positions(self.kernel)
        return self._positions.get(register.number)

    def _tile(
        self,
        tile: ks.TransposedTile,
        around: _Surroundings,
    ) -> None:
        """The accesses of a tile: it is read along ``down``, and written in squares along ``across``."""
        down, across = (self._range(*edges, around) for edges in (tile.down, tile.across))
        loop = tile.down[0].loop
        self._index(tile.access, around.in_loop(loop, down).in_loop(tile.across[0].loop, across))
        strides = [stride for term_loop, stride in tile.access.terms if term_loop == loop]
        if len(strides) != 1:
            raise self._refuse("its index doesn't have the loop along which the tile is contiguous")
        if strides[0] is not None:
            self._require(Rule.EQUAL, strides[0].number, self.one)
        side = tile.side.number
        for edge in (tile.down[0], tile.across[0]):
            self._require(Rule.AT_LEAST, side, around.blocks[edge.loop, edge.level].size)
        self._require(Rule.MULTIPLE, side, self._constant(TILE_SQUARE))
        written_terms = ((side, side), (self.one, side))
        key = tile.tile, written_terms, None, tuple(dict.fromkeys(around.trip_counts))
        if tile.tile not in self.scratch:
            raise self._refuse("the kernel has no such buffer")
        self.indices.setdefault(key, Index(*key, self.statement))


def _checked_positions(kernel: Kernel) -> dict[int, tuple[int, int]]:
    """For each register with a checked index: the axis size, and the register with the outcome.

    A register holds the checked index everywhere if nothing else is written to it. A load from a scratch
    buffer to which only that register is stored restores it.
    """
    checked: dict[int, tuple[int, int]] = {}
    stored: dict[int, set[int | None]] = {}
    writers: dict[int, list[KernelStatement]] = {}
    for statement in ks.walk_kernel(kernel.body):
        if isinstance(statement, ks.BoundsCheck):
            checked[statement.register.number] = statement.extent.number, statement.inside.number
        if isinstance(statement, ks.Store):
            value = statement.value
            number = value.number if isinstance(value, Register) else None
            stored.setdefault(statement.access.buffer, set()).add(number)
        for register in written(statement):
            writers.setdefault(register.number, []).append(statement)

    def restores(statement: KernelStatement, register: int) -> bool:
        if isinstance(statement, ks.BoundsCheck):
            return True
        if not isinstance(statement, ks.Load) or statement.access.buffer < len(kernel.buffers):
            return False
        return stored.get(statement.access.buffer) == {register}

    return {
        register: (extent, inside)
        for register, (extent, inside) in checked.items()
        if all(restores(s, r) for r in (register, inside) for s in writers[r])
        and sum(isinstance(s, ks.BoundsCheck) for s in writers[register]) == 1
    }


def _holds(condition: Condition, values: Sequence[int], total: int) -> bool:
    left, right = values[condition.left], values[condition.right]
    match condition.rule:
        case Rule.EQUAL:
            return left == right
        case Rule.AT_LEAST:
            return left >= right
        case Rule.MULTIPLE:
            return left % right == 0
        case Rule.ROWS_WITHIN:
            return total <= 0 or (total - 1) * left < right


def _unmet(condition: Condition, values: Sequence[int]) -> str:
    left, right = values[condition.left], values[condition.right]
    return f"its parameter {left} is not {condition.rule.value} {right}"


def _product(values: Sequence[int], factors: Sequence[int]) -> int:
    product = 1
    for factor in factors:
        product *= values[factor]
    return product
