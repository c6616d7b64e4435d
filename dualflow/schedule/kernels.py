"""A loop nest becomes a kernel: loads, elements, folds and stores as statements, in the order they run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from dualflow.core.dtypes import DType, as_dtype
from dualflow.core.records import dataclass, field
from dualflow.core.symbolic_sizes import may_be_negative, typical
from dualflow.graph.control_spec import branches_of, loop_of
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.scalar_functions import function_of, reduction_of
from dualflow.ops.op_kinds import Cond, Gather, Literal, Loop, Reduce, View
from dualflow.schedule.blocking import block_sizes, chunks, rounds
from dualflow.schedule.loop_ids import BlockLevel, KernelLoop, LoopId
from dualflow.schedule.loop_program import (
    Argument,
    Blocks,
    Bound,
    BoundsCheck,
    Branch,
    Choose,
    Chunks,
    Compute,
    Edge,
    End,
    For,
    Kernel,
    LaunchParameter,
    LiteralScalar,
    Load,
    LoopKind,
    MaskedLoad,
    Operand,
    Place,
    ReduceCombine,
    ReduceFinalize,
    ReduceHorizontal,
    ReduceInit,
    ReduceUpdate,
    Register,
    Repeat,
    Run,
    Scalar,
    ScratchBuffer,
    Statement,
    Store,
)
from dualflow.schedule.lower import stage_steps
from dualflow.schedule.nest import Access, GatherAxis, Nest, NestOperand, NestStep, NestStore

Accumulator = tuple[Register, ...]
"""What a fold carries."""


@dataclass(slots=True)
class _Given:
    """What the caller gives a kernel: each different buffer and number has one place."""

    buffers: dict[Argument, int] = field(default_factory=dict)
    numbers: dict[tuple[object, int], LaunchParameter] = field(default_factory=dict)
    scalars: dict[object, tuple[Scalar, np.generic]] = field(default_factory=dict)

    def buffer(self, argument: Argument) -> int:
        return self.buffers.setdefault(argument, len(self.buffers))

    def number(self, key: object, value: int) -> LaunchParameter:
        return self.numbers.setdefault((key, value), LaunchParameter(len(self.numbers)))

    def scalar(self, operand: NestOperand) -> Scalar:
        literal: Any = operand.literal
        found = self.scalars.get(operand)
        if found is None:
            found = Scalar(len(self.scalars), as_dtype(literal.dtype)), literal
            self.scalars[operand] = found
        return found[0]


class KernelWriter:
    """Writes one nest.

    Attributes:
        known: the registers of values and loads at this point; a loop's body forgets what it has made.
    """

    def __init__(self, nest: Nest, lanes: int) -> None:
        self.nest, self.lanes = nest, lanes
        self.given = _Given()
        self.known: dict[object, Operand] = {}
        self.registers = 0
        self.rows: dict[Value, int] = {}
        self.blocks = block_sizes(nest, lanes)

    def run(self) -> Run:
        nest = self.nest
        if nest.is_full_reduction:
            return self._whole()
        body = (*self._rows(), *self._steps_at(0), *self._kept(0))
        total = nest.loops[0].extent if nest.loops else 1
        if self._by_vectors and nest.vector == 0:
            total = -(-total // self.lanes)
        if any(loop.extent == 0 for loop in nest.loops[: nest.num_parallel]):
            total = 0
        return self._made(body, total)

    def _made(
        self,
        body: Sequence[Statement],
        total: int,
        partials: Sequence[DType] = (),
        join: Run | None = None,
        each: int = 1,
    ) -> Run:
        given = self.given
        work = typical(math.prod(loop.extent for loop in self.nest.loops)) * self.nest.cost
        scalars = [value for _, value in given.scalars.values()]
        kernel = Kernel(
            buffers=(*(argument.dtype for argument in given.buffers), *partials),
            scalars=tuple([as_dtype(x.dtype) for x in scalars]),
            parameters=len(given.numbers),
            is_long=len(self.nest.steps) > self.nest.costs.long_kernel,
            body=tuple(body),
        )
        parameters = tuple([value for _, value in given.numbers])
        return Run(
            kernel, tuple(given.buffers), tuple(scalars), parameters, total, work, tuple(partials), join, each
        )

    # Loops

    def _kept(
        self, at: int, inside: Callable[[], Iterable[Statement]] | None = None
    ) -> tuple[Statement, ...]:
        """The kept loops from ``at`` inwards."""
        if at == self.nest.num_parallel:
            return tuple((inside or self._inside)())
        if self._by_vectors and at == self.nest.vector:
            return self._vectors(at)
        begin, end = (End.LOW, End.HIGH) if at == 0 else (End.ZERO, self._extent(at))
        return (self._loop(at, begin, end, lambda: (*self._steps_at(at + 1), *self._kept(at + 1, inside))),)

    @property
    def _by_vectors(self) -> bool:
        """Whether the lane loop is a kept one and has scratch rows: it runs vector by vector."""
        return bool(self.nest.cached) and not self.nest.has_scratch_per_iteration

    def _vectors(self, at: int) -> tuple[Statement, ...]:
        """The lane loop, a kept one, in blocks of one vector, each of which has its own scratch rows."""
        edges = self._vector_edge(False), self._vector_edge(True)
        body = (self._loop(at, *edges, lambda: (*self._steps_at(at + 1), *self._kept(at + 1))),)
        if at == 0:
            return (Chunks(at, self._lanes(), self._extent(at), body),)
        return (Blocks(at, 0, End.ZERO, self._extent(at), self._lanes(), body),)

    def _vector_edge(self, end: bool) -> Edge:
        vector = self.nest.vector
        assert vector is not None, "a nest with scratch rows has loops"
        return Edge(vector, BlockLevel.CHUNK if vector == 0 else 0, end)

    def _lanes(self) -> LaunchParameter:
        return self.given.number("lanes", self.lanes)

    def _loop(self, at: LoopId, begin: Bound, end: Bound, body: Any) -> For:
        known = dict(self.known)
        kind = LoopKind.LANES if at == self.nest.vector else LoopKind.SERIAL
        made = For(at, begin, end, kind, tuple(body()))
        self.known = known
        return made

    def _extent(self, loop: int) -> LaunchParameter:
        return self.given.number(("extent", loop), self.nest.loops[loop].extent)

    def _inside(self) -> Iterator[Statement]:
        """All stages of the reduced loops for one iteration of the kept ones, and the stores of both."""
        nest = self.nest
        yield from self._stores(self._kept_stores(0))
        if len(nest.loops) == nest.num_parallel:
            return
        for stage in range(nest.stages):
            accumulators = [self._accumulator(s) for s in self._folds(stage)]
            yield from self._starts(stage, accumulators)
            yield from self._reduced(
                nest.num_parallel, End.ZERO, self._extent(nest.num_parallel), stage, accumulators
            )
            yield from self._across(stage, accumulators)
            yield from self._finish(stage, accumulators)

    def _reduced(
        self, at: int, begin: Bound, end: Bound, stage: int, accumulators: Sequence[Accumulator]
    ) -> tuple[Statement, ...]:
        """Loop ``at`` of the reduced ones, and those inside it, of one stage."""
        nest, iteration = self.nest, stage_steps(self.nest, stage)
        innermost = at + 1 == len(nest.loops)

        def inside(accumulators: Sequence[Accumulator]) -> Iterator[Statement]:
            pending = iter(accumulators)
            for step in iteration:
                if innermost and step.reduces:
                    yield from self._taken(step, next(pending))
                elif step.level == at + 1:
                    yield from self._step(step, stage)
            if innermost:
                inner = [s for s in nest.stores if s.level > nest.num_parallel and s.stage == stage]
                yield from self._stores(inner)
            else:
                yield from self._reduced(at + 1, End.ZERO, self._extent(at + 1), stage, accumulators)

        def run(begin: Bound, end: Bound, accumulators: Sequence[Accumulator]) -> tuple[Statement, ...]:
            return (self._loop(at, begin, end, lambda: inside(accumulators)),)

        return self._by_blocks(at, begin, end, stage, accumulators, run)

    def _by_blocks(
        self,
        at: LoopId,
        begin: Bound,
        end: Bound,
        stage: int,
        accumulators: Sequence[Accumulator],
        run: Callable[[Bound, Bound, Sequence[Accumulator]], tuple[Statement, ...]],
        level: int = 0,
    ) -> tuple[Statement, ...]:
        """``run`` for each block of loop ``at``, whose accumulators begin anew and are merged in order."""
        folds, sizes = self._folds(stage), self.blocks.get(at, ())
        if level == len(sizes) or not any(map(rounds, folds)):
            return run(begin, end, accumulators)
        part = [self._accumulator(s) for s in folds]
        inner = self._by_blocks(
            at, Edge(at, level, False), Edge(at, level, True), stage, part, run, level + 1
        )
        merges = [merge(s, a, b) for s, a, b in zip(folds, accumulators, part, strict=True)]
        size = self.given.number(("block", at, level), sizes[level])
        return (Blocks(at, level, begin, end, size, (*self._starts(stage, part), *inner, *merges)),)

    # Folds

    def _folds(self, stage: int) -> list[NestStep]:
        return [s for s in self.nest.steps if s.reduces and s.stage == stage]

    def _accumulator(self, step: NestStep) -> Accumulator:
        return tuple([self._register(dtype) for dtype in carried_dtypes(step)])

    def _starts(self, stage: int, accumulators: Sequence[Accumulator]) -> Iterator[Statement]:
        for step, accumulator in zip(self._folds(stage), accumulators, strict=True):
            yield ReduceInit(accumulator, reduction_of(step.node), step.node)

    def _taken(self, step: NestStep, accumulator: Accumulator) -> Iterator[Statement]:
        loads, value = self._operand(step.operands[0])
        yield from loads
        index = tuple([(i, self._extent(i)) for i in range(self.nest.num_parallel, len(self.nest.loops))])
        yield ReduceUpdate(accumulator, reduction_of(step.node), value, index, step.node)

    def _across(self, stage: int, accumulators: Sequence[Accumulator]) -> Iterator[Statement]:
        """One element of each accumulator that has one for each lane of a folded loop."""
        if self.nest.vector is None or self.nest.vector < self.nest.num_parallel:
            return
        for step, accumulator in zip(self._folds(stage), accumulators, strict=True):
            yield ReduceHorizontal(accumulator, reduction_of(step.node), step.node)

    def _finish(self, stage: int, accumulators: Sequence[Accumulator]) -> Iterator[Statement]:
        """The results of the folds of ``stage``, then what waited for them."""
        for step, accumulator in zip(self._folds(stage), accumulators, strict=True):
            register = self._bind(step.node.output)
            yield ReduceFinalize(register, reduction_of(step.node), accumulator, step.node)
        for step in self.nest.steps:
            if step.level <= self.nest.num_parallel and step.stage == stage + 1:
                yield from self._step(step, stage + 1)
        yield from self._stores(self._kept_stores(stage + 1))

    # One whole reduction, by blocks

    def _whole(self) -> Run:
        """Stretches of the first loop give partial results, which are joined in order."""
        dtypes = [dtype for step in self._folds(0) for dtype in carried_dtypes(step)]
        before = tuple(self._steps_at(0))
        accumulators = [self._accumulator(s) for s in self._folds(0)]
        iterations, count = chunks(self.nest, self.lanes)
        size, extent = self.given.number("chunk", iterations), self._extent(0)
        iteration = [*self._starts(0, accumulators)]
        iteration += self._reduced(
            0, Edge(0, BlockLevel.CHUNK, False), Edge(0, BlockLevel.CHUNK, True), 0, accumulators
        )
        iteration += self._across(0, accumulators)
        first = len(self.given.buffers)
        registers = [r for accumulator in accumulators for r in accumulator]
        iteration += [Store(_partial(first + i), r) for i, r in enumerate(registers)]
        join = KernelWriter(self.nest, self.lanes)._join(dtypes)
        return self._made((*before, Chunks(0, size, extent, tuple(iteration))), count, dtypes, join)

    def _buffers_used(self) -> int:
        """How many buffers of the program the nest touches: partial results come after them."""
        for step in self.nest.steps:
            for number, operand in enumerate(step.operands):
                if operand.access is not None:
                    self.given.buffer(_argument(operand.access, None if number else step.gather_axis))
        for store in self.nest.stores:
            self.given.buffer(_argument(store.access))
        return len(self.given.buffers)

    def _join(self, dtypes: Sequence[DType]) -> Run:
        """Join the partial results in order, finish the folds, and store what belongs to no chunk."""
        first, folds = self._buffers_used(), self._folds(0)
        accumulators = [self._accumulator(s) for s in folds]

        def run(begin: Bound, end: Bound, accumulators: Sequence[Accumulator]) -> tuple[Statement, ...]:
            parts = [self._accumulator(s) for s in folds]
            loads = [Load(r, _partial(first + i)) for i, r in enumerate(r for part in parts for r in part)]
            merges = [merge(s, a, b) for s, a, b in zip(folds, accumulators, parts, strict=True)]
            return (For(KernelLoop.CHUNKS, begin, end, LoopKind.SERIAL, (*loads, *merges)),)

        body = [*self._steps_at(0), *self._stores(self._kept_stores(0)), *self._starts(0, accumulators)]
        _, chunk_count = chunks(self.nest, self.lanes)
        count = self.given.number("chunks", chunk_count)
        body += self._by_blocks(KernelLoop.CHUNKS, End.ZERO, count, 0, accumulators, run)
        body += self._finish(0, accumulators)
        return self._made(body, 1, dtypes)

    # Steps

    def _steps_at(self, level: int) -> Iterator[Statement]:
        for step in self.nest.steps:
            if step.level == level and step.stage == 0 and level <= self.nest.num_parallel:
                yield from self._step(step, 0)

    def _step(self, step: NestStep, stage: int) -> Iterator[Statement]:
        """The value of a step, or its row read back where an earlier stage has kept it."""
        value, kind = step.node.output, step.node.op.kind
        if value in self.nest.cached and step.stage < stage:
            yield Load(self._bind(value), self._row(value))
            return
        yield from self._take(step) if isinstance(kind, Gather) else self._computed(step)
        if value in self.nest.cached and step.level > self.nest.num_parallel:
            yield Store(self._row(value), self.known[value])

    def _computed(self, step: NestStep) -> Iterator[Statement]:
        """The loads of a step's operands, and its result."""
        operand_loads = [self._operand(o) for o in step.operands]
        for loads, _ in operand_loads:
            yield from loads
        operands, value = tuple([operand for _, operand in operand_loads]), step.node.output
        kind = step.node.op.kind
        if isinstance(kind, Reduce):
            yield Compute(self._bind(value), reduction_of(step.node).single, operands, (), step.node)
        elif isinstance(kind, Cond | Loop):
            yield from self._scalars(step.node, operands, self.known)
        else:
            yield Compute(self._bind(value), function_of(step.node), operands, step.own, step.node)

    def _take(self, step: NestStep) -> Iterator[Statement]:
        """An element of the first operand, looked up along the gathered axis."""
        params, indices = step.operands
        assert params.access is not None
        assert step.gather_axis is not None
        loads, position = self._operand(indices)
        yield from loads
        index, inside = self._register(as_dtype("int64")), self._register(as_dtype("bool"))
        yield BoundsCheck(
            index, inside, position, self.given.number(("gather", step), step.gather_axis.extent), step.node
        )
        place = self._place(params.access, step.gather_axis)
        gathered = index, self._stride(("gather", step), step.gather_axis.stride)
        yield MaskedLoad(Load(self._bind(step.node.output), place._replace(gathered=gathered)), inside)

    # Conditionals and loops over scalars

    def _scalars(
        self, node: Node, operands: Sequence[Operand], known: dict[Any, Operand]
    ) -> Iterator[Statement]:
        """The statements of a node on scalars, whose results are then known."""
        kind = node.op.kind
        if isinstance(kind, Literal):
            known[node.output] = LiteralScalar(node.attrs["value"].reshape(-1)[0])
        elif isinstance(kind, View):
            known[node.output] = operands[0]
        else:
            registers = tuple([self._register(v.spec.dtype) for v in node.outputs])
            known.update(zip(node.outputs, registers, strict=True))
            if isinstance(kind, Cond):
                index, *rest = operands
                branches = tuple([self._branch(graph, rest) for graph in branches_of(node)])
                yield Choose(registers, index, branches)
            elif isinstance(kind, Loop):
                yield self._repeat(node, registers, operands)
            else:
                yield Compute(registers[0], function_of(node), tuple(operands), (), node)

    def _branch(self, graph: Graph, operands: Sequence[Operand]) -> Branch:
        """A graph of scalars as statements."""
        known: dict[Any, Operand] = dict(zip(graph.inputs, operands, strict=True))
        body: list[Statement] = []
        for node in graph.nodes:
            body += self._scalars(node, [known[v] for v in node.inputs], known)
        return Branch(tuple(body), tuple([known[v] for v in graph.outputs]))

    def _repeat(self, node: Node, registers: tuple[Register, ...], operands: Sequence[Operand]) -> Repeat:
        loop, count = loop_of(node), len(registers)
        given = (*registers, *operands[count:])
        condition, body = (self._branch(graph, given) for graph in loop.graphs)
        limit = None if loop.length is None else self.given.number(("limit", node), loop.length)
        return Repeat(registers, tuple(operands[:count]), condition, body, limit, node)

    # Operands

    def _operand(self, operand: NestOperand) -> tuple[list[Statement], Operand]:
        """An operand, and the load before its first use."""
        if operand.value is not None:
            return [], self.known[operand.value]
        if operand.access is None:
            literal: Any = operand.literal
            return [], LiteralScalar(literal) if literal.dtype.kind in "bc" else self.given.scalar(operand)
        if operand.access in self.known:
            return [], self.known[operand.access]
        register = self._register(operand.access.dtype)
        self.known[operand.access] = register
        return [Load(register, self._place(operand.access))], register

    def _register(self, dtype: DType) -> Register:
        self.registers += 1
        return Register(self.registers - 1, dtype)

    def _bind(self, value: Value) -> Register:
        register = self._register(value.spec.dtype)
        self.known[value] = register
        return register

    # Memory

    def _rows(self) -> Iterator[Statement]:
        """Memory for the values that later stages load, of one iteration, or vector, of the kept loops."""
        nest = self.nest
        length = tuple([self._extent(i) for i in range(nest.num_parallel, len(nest.loops))])
        if self._by_vectors:
            length = (*length, self._lanes())
        first = self._buffers_used()
        for i, value in enumerate(nest.cached):
            self.rows[value] = first + i
            yield ScratchBuffer(first + i, value.spec.dtype, length)

    def _row(self, value: Value) -> Place:
        """A stored value of this iteration of the reduced loops."""
        nest, width = self.nest, self.lanes if self._by_vectors else 1
        loops = range(nest.num_parallel, len(nest.loops))
        inner = [width * math.prod(nest.loops[k].extent for k in loops if k > i) for i in loops]
        terms: tuple[tuple[int, LaunchParameter | None], ...] = tuple(
            [(i, None if n == 1 else self._stride(("row", i), n)) for i, n in zip(loops, inner, strict=True)]
        )
        if not self._by_vectors:
            return Place(self.rows[value], terms)
        begin = self._vector_edge(False)
        return Place(self.rows[value], (*terms, (begin.loop, None)), begins=(begin,))

    def _kept_stores(self, stage: int) -> list[NestStore]:
        return [s for s in self.nest.stores if s.level <= self.nest.num_parallel and s.stage == stage]

    def _stores(self, stores: Sequence[NestStore]) -> Iterator[Statement]:
        for store in stores:
            yield Store(self._place(store.access), self.known[store.value])

    def _place(self, access: Access, gather_axis: GatherAxis | None = None) -> Place:
        """The element of ``access``, along whose axis ``gather_axis`` another position may be gathered."""
        vector, argument = self.nest.vector, _argument(access, gather_axis)
        terms = tuple(
            [
                (i, None if i == vector and stride == 1 else self._stride((access, i), stride))
                for i, stride in enumerate(access.strides)
                if stride != 0
            ]
        )
        rest = access.offset - argument.offset
        offset = self.given.number(("offset", access), rest) if _walks_back(access, gather_axis) else None
        return Place(self.given.buffer(argument), terms, offset=offset)

    def _stride(self, key: object, stride: int) -> LaunchParameter:
        return self.given.number(("stride", key), stride)


def _walks_back(access: Access, gather_axis: GatherAxis | None) -> bool:
    return any(map(may_be_negative, (*access.strides, 0 if gather_axis is None else gather_axis.stride)))


def _argument(access: Access, gather_axis: GatherAxis | None = None) -> Argument:
    """The buffer as the kernel is given it: from its first element on, unless some loop walks backwards."""
    return Argument(access.buffer, 0 if _walks_back(access, gather_axis) else access.offset, access.dtype)


def _partial(buffer: int) -> Place:
    """The partial result of a chunk."""
    return Place(buffer, ((KernelLoop.CHUNKS, None),))


def merge(step: NestStep, accumulator: Accumulator, other: Accumulator) -> ReduceCombine:
    """The statement that joins another accumulator of a fold to the first."""
    return ReduceCombine(accumulator, reduction_of(step.node), other, step.node)


def carried_dtypes(step: NestStep) -> tuple[DType, ...]:
    """The dtypes of what a fold carries."""
    return reduction_of(step.node).dtypes
