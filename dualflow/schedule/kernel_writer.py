"""Lowers a loop nest to a kernel: its loops, and in them loads, scalar functions, reductions and stores.

The kernel of softmax over rows, with two stages of reductions (``exp`` is stored in scratch memory)::

    ScratchBuffer exp
    For row in lo .. hi                           the parallel loops: ``_parallel``
        ReduceInit r0                             stage 0: ``_stages``, ``_reduction``
        For column
            Load x; ReduceUpdate r0               the maximum
        ReduceHorizontal r0; ReduceFinalize r1 = r0
        ReduceInit r2                             stage 1
        For column
            Load x; Compute r3 = exp(x - r1); Store exp; ReduceUpdate r2
        ReduceHorizontal r2; ReduceFinalize r4 = r2
        For column                                stage 2
            Load exp; Compute r5 = exp / r4; Store out
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from dualflow.core.dtypes import DType, as_dtype
from dualflow.graph.control_spec import branches_of, loop_of
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.scalar_functions import function_of, reduction_of
from dualflow.ops.op_kinds import CONTROL, Cond, Gather, Literal, Loop, Reduce, View
from dualflow.schedule.blocking import accumulates_rounding_error, block_sizes
from dualflow.schedule.kernel import Argument, Kernel, KernelLaunch
from dualflow.schedule.kernel_statements import (
    Blocks,
    Bound,
    BoundsCheck,
    Branch,
    Choose,
    Chunks,
    Compute,
    Edge,
    ElementAccess,
    End,
    For,
    KernelStatement,
    LaunchParameter,
    LiteralScalar,
    Load,
    LoopKind,
    MaskedLoad,
    Operand,
    ReduceCombine,
    ReduceFinalize,
    ReduceHorizontal,
    ReduceInit,
    ReduceUpdate,
    Register,
    Repeat,
    ScratchBuffer,
    Store,
    edges_of,
)
from dualflow.schedule.launch_arguments import LaunchArguments
from dualflow.schedule.loop_ids import BlockLevel, KernelLoop, LoopId
from dualflow.schedule.lower import stage_steps
from dualflow.schedule.nest import Access, GatherAxis, Nest, NestOperand, NestStep, NestStore
from dualflow.sizes.size_functions import may_be_negative
from dualflow.sizes.symbolic_sizes import typical

Accumulator = tuple[Register, ...]
"""The registers that a reduction carries between iterations."""


class KernelWriter:
    """Writes the kernel of one nest.

    Attributes:
        env: the register or scalar of each value, and of each loaded access, in the current loop body.
        by_work_items: whether each iteration of the parallel loops runs in a work-item of a device.
    """

    def __init__(self, nest: Nest, lanes: int, by_work_items: bool = False) -> None:
        self.nest, self.lanes, self.by_work_items = nest, lanes, by_work_items
        self.arguments = LaunchArguments()
        self.env: dict[object, Operand] = {}
        self.registers = 0
        self.scratch: dict[Value, int] = {}
        self.blocks = block_sizes(nest, lanes)

    def write(self) -> KernelLaunch:
        """The kernel, with its arguments."""
        nest = self.nest
        body = (*self._scratch(), *self._steps_at(0), *self._parallel(0))
        total = nest.loops[0].extent if nest.loops else 1
        if self._by_vectors and nest.vector == 0:
            total = -(-total // self.lanes)
        if any(loop.extent == 0 for loop in nest.loops[: nest.num_parallel]):
            total = 0
        return self._launch_of(body, total)

    def _launch_of(
        self,
        body: Sequence[KernelStatement],
        total: int,
        partials: Sequence[DType] = (),
        join: KernelLaunch | None = None,
        partial_size: int = 1,
    ) -> KernelLaunch:
        arguments = self.arguments
        work = typical(math.prod(loop.extent for loop in self.nest.loops)) * self.nest.cost
        scalars = [value for _, value in arguments.scalars.values()]
        kernel = Kernel(
            buffers=(*(buffer.dtype for buffer in arguments.buffers), *partials),
            scalars=tuple([as_dtype(x.dtype) for x in scalars]),
            parameters=len(arguments.parameters),
            is_long=len(self.nest.steps) > self.nest.costs.long_kernel,
            body=tuple(body),
        )
        buffers, parameters = tuple(arguments.buffers), tuple([value for _, value in arguments.parameters])
        return KernelLaunch(
            kernel, buffers, tuple(scalars), parameters, total, work, tuple(partials), join, partial_size
        )

    # Loops

    def _parallel(
        self, loop: int, inside: Callable[[], Iterable[KernelStatement]] | None = None
    ) -> tuple[KernelStatement, ...]:
        """The parallel loops from ``loop`` inwards."""
        if loop == self.nest.num_parallel:
            return tuple((inside or self._stages)())
        if self._by_vectors and loop == self.nest.vector:
            return self._vectors(loop)
        begin, end = (End.LOW, End.HIGH) if loop == 0 else (End.ZERO, self._extent(loop))
        inner = loop + 1
        body = self._loop(loop, begin, end, lambda: (*self._steps_at(inner), *self._parallel(inner, inside)))
        return (body,)

    @property
    def _by_vectors(self) -> bool:
        """Whether scratch memory is allocated for each vector of a parallel lane loop."""
        if self.by_work_items or self.nest.has_scratch_per_iteration:
            return False
        return bool(self.nest.scratch_values)

    def _vectors(self, loop: int) -> tuple[KernelStatement, ...]:
        """Write the parallel loop over vectors of lanes, each iteration a block of one vector."""
        inner = loop + 1
        body = (
            self._loop(loop, *self._vector_edges, lambda: (*self._steps_at(inner), *self._parallel(inner))),
        )
        if loop == 0:
            return (Chunks(loop, self._lanes(), self._extent(loop), body),)
        return (Blocks(loop, 0, End.ZERO, self._extent(loop), self._lanes(), body),)

    @property
    def _vector_edges(self) -> tuple[Edge, Edge]:
        """The edges of the current vector of lanes."""
        vector = self.nest.vector
        assert vector is not None, "a nest with scratch memory has loops"
        return edges_of(vector, BlockLevel.CHUNK if vector == 0 else 0)

    def _lanes(self) -> LaunchParameter:
        return self.arguments.parameter("lanes", self.lanes)

    def _loop(self, loop: LoopId, begin: Bound, end: Bound, body: Any) -> For:
        outer_env = dict(self.env)
        kind = LoopKind.LANES if loop == self.nest.vector else LoopKind.SERIAL
        statement = For(loop, begin, end, kind, tuple(body()))
        self.env = outer_env
        return statement

    def _extent(self, loop: int) -> LaunchParameter:
        return self.arguments.parameter(("extent", loop), self.nest.loops[loop].extent)

    def _stages(self) -> Iterator[KernelStatement]:
        """The body of the parallel loops: all stages of the reduction loops, and the stores after each."""
        nest = self.nest
        yield from self._stores(self._outer_stores(0))
        first = nest.num_parallel
        if len(nest.loops) == first:
            return
        for stage in range(nest.stages):
            accumulators = [self._accumulator(s) for s in self._reductions(stage)]
            yield from self._inits(stage, accumulators)
            yield from self._reduction(first, End.ZERO, self._extent(first), stage, accumulators)
            yield from self._horizontal(stage, accumulators)
            yield from self._finalize(stage, accumulators)

    def _reduction(
        self, loop: int, begin: Bound, end: Bound, stage: int, accumulators: Sequence[Accumulator]
    ) -> tuple[KernelStatement, ...]:
        """Reduction loop ``loop``, and those inside it, of one stage."""
        nest, iteration = self.nest, stage_steps(self.nest, stage)
        innermost = loop + 1 == len(nest.loops)

        def inside(accumulators: Sequence[Accumulator]) -> Iterator[KernelStatement]:
            unused = iter(accumulators)
            for step in iteration:
                if innermost and step.reduces:
                    yield from self._update(step, next(unused))
                elif step.depth == loop + 1:
                    yield from self._step(step, stage)
            if innermost:
                inner = [s for s in nest.stores if s.depth > nest.num_parallel and s.stage == stage]
                yield from self._stores(inner)
            else:
                yield from self._reduction(loop + 1, End.ZERO, self._extent(loop + 1), stage, accumulators)

        def one_loop(
            begin: Bound, end: Bound, accumulators: Sequence[Accumulator]
        ) -> tuple[KernelStatement, ...]:
            return (self._loop(loop, begin, end, lambda: inside(accumulators)),)

        return self._by_blocks(loop, begin, end, stage, accumulators, one_loop)

    def _by_blocks(
        self,
        loop: LoopId,
        begin: Bound,
        end: Bound,
        stage: int,
        accumulators: Sequence[Accumulator],
        write_loop: Callable[[Bound, Bound, Sequence[Accumulator]], tuple[KernelStatement, ...]],
        level: int = 0,
    ) -> tuple[KernelStatement, ...]:
        """Reduction loop ``loop`` between two bounds, with an accumulator for each block of a long loop.

        For a loop with two levels of blocks, the statements are::

            Blocks level 0, from begin to end             each block of size 0
                ReduceInit a0
                Blocks level 1, over the block            each block of size 1
                    ReduceInit a1
                    write_loop(the block, a1)             For ... ReduceUpdate a1
                    ReduceCombine a0, a1
                ReduceCombine accumulators, a0

        Args:
            loop: the loop.
            begin: its lower bound.
            end: its upper bound.
            stage: the stage whose reductions run.
            accumulators: of these reductions; they are initialised before.
            write_loop: returns the loop between two bounds, which updates the accumulators that it is passed.
            level: the level of blocks to write; the levels before it are around the result.
        """
        reductions, sizes = self._reductions(stage), self.blocks.get(loop, ())
        if level == len(sizes) or not any(map(accumulates_rounding_error, reductions)):
            return write_loop(begin, end, accumulators)
        part = [self._accumulator(s) for s in reductions]
        inner = self._by_blocks(loop, *edges_of(loop, level), stage, part, write_loop, level + 1)
        combined = [combine(s, a, b) for s, a, b in zip(reductions, accumulators, part, strict=True)]
        size = self.arguments.parameter(("block", loop, level), sizes[level])
        return (Blocks(loop, level, begin, end, size, (*self._inits(stage, part), *inner, *combined)),)

    # Reductions

    def _reductions(self, stage: int) -> list[NestStep]:
        return [s for s in self.nest.steps if s.reduces and s.stage == stage]

    def _accumulator(self, step: NestStep) -> Accumulator:
        return tuple([self._register(dtype) for dtype in carried_dtypes(step)])

    def _inits(self, stage: int, accumulators: Sequence[Accumulator]) -> Iterator[KernelStatement]:
        for step, accumulator in zip(self._reductions(stage), accumulators, strict=True):
            yield ReduceInit(accumulator, reduction_of(step.node), step.node)

    def _update(self, step: NestStep, accumulator: Accumulator) -> Iterator[KernelStatement]:
        loads, value = self._operand(step.operands[0])
        yield from loads
        index = tuple([(i, self._extent(i)) for i in range(self.nest.num_parallel, len(self.nest.loops))])
        yield ReduceUpdate(accumulator, reduction_of(step.node), value, index, step.node)

    def _horizontal(self, stage: int, accumulators: Sequence[Accumulator]) -> Iterator[KernelStatement]:
        """Combine the lanes of each accumulator, if the lane loop is a reduction loop."""
        if self.nest.vector is None or self.nest.vector < self.nest.num_parallel:
            return
        for step, accumulator in zip(self._reductions(stage), accumulators, strict=True):
            yield ReduceHorizontal(accumulator, reduction_of(step.node), step.node)

    def _finalize(self, stage: int, accumulators: Sequence[Accumulator]) -> Iterator[KernelStatement]:
        """The results of the reductions of ``stage``, then the steps of the next stage that read them."""
        for step, accumulator in zip(self._reductions(stage), accumulators, strict=True):
            register = self._bind(step.node.output)
            yield ReduceFinalize(register, reduction_of(step.node), accumulator, step.node)
        for step in self.nest.steps:
            if step.depth <= self.nest.num_parallel and step.stage == stage + 1:
                yield from self._step(step, stage + 1)
        yield from self._stores(self._outer_stores(stage + 1))

    # Steps

    def _steps_at(self, depth: int) -> Iterator[KernelStatement]:
        for step in self.nest.steps:
            if step.depth == depth and step.stage == 0 and depth <= self.nest.num_parallel:
                yield from self._step(step, 0)

    def _step(self, step: NestStep, stage: int) -> Iterator[KernelStatement]:
        """The value of a step: loaded from scratch memory if an earlier stage stored it, else computed."""
        value, kind = step.node.output, step.node.op.kind
        if value in self.nest.scratch_values and step.stage < stage:
            yield Load(self._bind(value), self._scratch_element(value))
            return
        yield from self._gather(step) if isinstance(kind, Gather) else self._computed(step)
        if value in self.nest.scratch_values and step.depth > self.nest.num_parallel:
            yield Store(self._scratch_element(value), self.env[value])

    def _computed(self, step: NestStep) -> Iterator[KernelStatement]:
        """The loads of a step's operands, and its result."""
        operand_loads = [self._operand(o) for o in step.operands]
        for loads, _ in operand_loads:
            yield from loads
        operands, value = tuple([operand for _, operand in operand_loads]), step.node.output
        kind = step.node.op.kind
        if isinstance(kind, Reduce):
            yield Compute(self._bind(value), reduction_of(step.node).single, operands, (), step.node)
        elif isinstance(kind, CONTROL):
            yield from self._scalars(step.node, operands, self.env)
        else:
            yield Compute(self._bind(value), function_of(step.node), operands, step.axis_loops, step.node)

    def _gather(self, step: NestStep) -> Iterator[KernelStatement]:
        """The element of the first operand at an index that is loaded; 0 if the index is out of bounds."""
        params, indices = step.operands
        assert params.access is not None
        axis = step.gather_axis
        assert axis is not None
        loads, position = self._operand(indices)
        yield from loads
        index, inside = self._register(as_dtype("int64")), self._register(as_dtype("bool"))
        extent = self.arguments.parameter(("gathered axis", step), axis.extent)
        yield BoundsCheck(index, inside, position, extent, step.node)
        element = self._element(params.access, axis)
        gathered = index, self._stride(("gathered axis", step), axis.stride)
        yield MaskedLoad(Load(self._bind(step.node.output), element._replace(gather_index=gathered)), inside)

    # Conditionals and loops over scalars

    def _scalars(
        self, node: Node, operands: Sequence[Operand], env: dict[Any, Operand]
    ) -> Iterator[KernelStatement]:
        """The statements of a node in the body of a scalar branch or loop.

        Its results are added to ``env``.
        """
        kind = node.op.kind
        if isinstance(kind, Literal):
            env[node.output] = LiteralScalar(node.attrs["value"].reshape(-1)[0])
        elif isinstance(kind, View):
            env[node.output] = operands[0]
        else:
            registers = tuple([self._register(v.spec.dtype) for v in node.outputs])
            env.update(zip(node.outputs, registers, strict=True))
            if isinstance(kind, Cond):
                index, *arguments = operands
                branches = tuple([self._branch(graph, arguments) for graph in branches_of(node)])
                yield Choose(registers, index, branches)
            elif isinstance(kind, Loop):
                yield self._repeat(node, registers, operands)
            else:
                yield Compute(registers[0], function_of(node), tuple(operands), (), node)

    def _branch(self, graph: Graph, operands: Sequence[Operand]) -> Branch:
        """The statements of a graph of scalars."""
        env: dict[Any, Operand] = dict(zip(graph.inputs, operands, strict=True))
        body: list[KernelStatement] = []
        for node in graph.nodes:
            body += self._scalars(node, [env[v] for v in node.inputs], env)
        return Branch(tuple(body), tuple([env[v] for v in graph.outputs]))

    def _repeat(self, node: Node, registers: tuple[Register, ...], operands: Sequence[Operand]) -> Repeat:
        loop, count = loop_of(node), len(registers)
        arguments = (*registers, *operands[count:])
        condition, body = (self._branch(graph, arguments) for graph in loop.graphs)
        limit = None if loop.length is None else self.arguments.parameter(("limit", node), loop.length)
        return Repeat(registers, tuple(operands[:count]), condition, body, limit, node)

    # Operands

    def _operand(self, operand: NestOperand) -> tuple[list[KernelStatement], Operand]:
        """The register or scalar of an operand, and the load that its first use needs."""
        if operand.value is not None:
            return [], self.env[operand.value]
        if operand.access is None:
            literal: Any = operand.literal
            is_constant = literal.dtype.kind in "bc"
            return [], LiteralScalar(literal) if is_constant else self.arguments.scalar(operand)
        if operand.access in self.env:
            return [], self.env[operand.access]
        register = self._register(operand.access.dtype)
        self.env[operand.access] = register
        return [Load(register, self._element(operand.access))], register

    def _register(self, dtype: DType) -> Register:
        self.registers += 1
        return Register(self.registers - 1, dtype)

    def _bind(self, value: Value) -> Register:
        register = self._register(value.spec.dtype)
        self.env[value] = register
        return register

    # Memory

    def _buffers_used(self) -> int:
        """Make arguments of all buffers that the nest accesses; returns their number.

        Scratch buffers and partial results are numbered after them.
        """
        for step in self.nest.steps:
            for number, operand in enumerate(step.operands):
                if operand.access is not None:
                    self._buffer(operand.access, None if number else step.gather_axis)
        for store in self.nest.stores:
            self._buffer(store.access)
        return len(self.arguments.buffers)

    def _scratch(self) -> Iterator[KernelStatement]:
        """The allocations of scratch memory for values that later stages load.

        Each is for one iteration of the parallel loops, or for one vector of them.
        """
        nest = self.nest
        length = tuple([self._extent(i) for i in range(nest.num_parallel, len(nest.loops))])
        if self._by_vectors:
            length = (*length, self._lanes())
        first = self._buffers_used()
        for i, value in enumerate(nest.scratch_values):
            self.scratch[value] = first + i
            yield ScratchBuffer(first + i, value.spec.dtype, length)

    def _scratch_element(self, value: Value) -> ElementAccess:
        """The element of scratch memory for ``value`` in the current iteration of the reduction loops."""
        nest, width = self.nest, self.lanes if self._by_vectors else 1
        loops = range(nest.num_parallel, len(nest.loops))
        inner = [width * math.prod(nest.loops[k].extent for k in loops if k > i) for i in loops]
        terms: tuple[tuple[int, LaunchParameter | None], ...] = tuple(
            [
                (i, None if n == 1 else self._stride(("scratch", i), n))
                for i, n in zip(loops, inner, strict=True)
            ]
        )
        if not self._by_vectors:
            return ElementAccess(self.scratch[value], terms)
        begin, _ = self._vector_edges
        return ElementAccess(self.scratch[value], (*terms, (begin.loop, None)), block_starts=(begin,))

    def _partial(self, buffer: int) -> ElementAccess:
        """The element of a buffer of partial results for the current chunk and parallel iteration."""
        extents = [loop.extent for loop in self.nest.loops[: self.nest.num_parallel]]
        strides: dict[LoopId, int] = {KernelLoop.CHUNKS: math.prod(extents)}
        strides |= {i: math.prod(extents[i + 1 :]) for i in range(len(extents))}
        terms = [(i, None if n == 1 else self._stride(("partial", i), n)) for i, n in strides.items()]
        return ElementAccess(buffer, tuple(terms))

    def _outer_stores(self, stage: int) -> list[NestStore]:
        return [s for s in self.nest.stores if s.depth <= self.nest.num_parallel and s.stage == stage]

    def _stores(self, stores: Sequence[NestStore]) -> Iterator[KernelStatement]:
        for store in stores:
            yield Store(self._element(store.access), self.env[store.value])

    def _element(self, access: Access, gather_axis: GatherAxis | None = None) -> ElementAccess:
        """The element that ``access`` accesses, without the index along ``gather_axis``, which is loaded."""
        vector = self.nest.vector
        terms = tuple(
            [
                (i, None if i == vector and stride == 1 else self._stride((access, i), stride))
                for i, stride in enumerate(access.strides)
                if stride != 0
            ]
        )
        offset = None
        if self._may_be_reversed(access, gather_axis):
            offset = self.arguments.parameter(("offset", access), access.offset)
        return ElementAccess(self._buffer(access, gather_axis), terms, offset=offset)

    def _buffer(self, access: Access, gather_axis: GatherAxis | None = None) -> int:
        """The buffer of ``access`` from its offset on; the whole buffer if a stride may be negative."""
        offset = 0 if self._may_be_reversed(access, gather_axis) else access.offset
        return self.arguments.buffer(Argument(access.buffer, offset, access.dtype))

    def _may_be_reversed(self, access: Access, gather_axis: GatherAxis | None) -> bool:
        strides = (*access.strides, 0 if gather_axis is None else gather_axis.stride)
        return not self.nest.forwards and any(map(may_be_negative, strides))

    def _stride(self, key: object, stride: int) -> LaunchParameter:
        return self.arguments.parameter(("stride", key), stride)


def combine(step: NestStep, accumulator: Accumulator, other: Accumulator) -> ReduceCombine:
    """The statement that combines accumulator ``other`` of a reduction into ``accumulator``."""
    return ReduceCombine(accumulator, reduction_of(step.node), other, step.node)


def carried_dtypes(step: NestStep) -> tuple[DType, ...]:
    """The dtypes of the accumulator of a reduction."""
    return reduction_of(step.node).dtypes
