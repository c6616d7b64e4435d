"""A kernel's statements as a Python function, line by line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from dualflow.backends.numba.parameters import Parameter, names
from dualflow.backends.numba.source_lines import Lines, SourceValue, type_name
from dualflow.backends.numba.source_maths import SourceMaths
from dualflow.backends.numba.support import HEADER, Support
from dualflow.core.dtypes import as_dtype, int64
from dualflow.core.records import dataclass
from dualflow.graph.ir import Node
from dualflow.scalar import ScalarFunction, ScalarOp, evaluate
from dualflow.scalar.maths import is_guarded
from dualflow.schedule import kernel_statements as ks
from dualflow.schedule.invariants import invariants_first
from dualflow.schedule.kernel import Kernel
from dualflow.schedule.kernel_statements import (
    ElementAccess,
    KernelStatement,
    LaunchParameter,
    LoopKind,
    Register,
)
from dualflow.schedule.loop_ids import BlockLevel, KernelLoop
from dualflow.schedule.loop_names import block_suffix, bound_text, index_name, index_text
from dualflow.schedule.registers import written
from dualflow.schedule.strip_mining import in_strips

MAX_INLINED_MATHS = 32
"""The largest number of maths functions with a fallback that are inlined into a vectorised loop.

Each is some thirty lines, which take 0.2 s to compile; with more of them a kernel calls functions, element by
element.
"""
POLL_INTERVAL = 1 << 16
"""Iterations of a loop over scalars between two checks for a signal."""


@dataclass(frozen=True, slots=True)
class KernelSource:
    """A kernel as Python source.

    Attributes:
        kernel: its statements, rewritten for Numba.
        support: the functions that it calls, as source.
        lines: the lines of its body.
        parameters: its parameters, ``lo`` and ``hi`` first.
        checks: the message and node of each check, by number in ``status``.
        nodes: the lines at which the code of a node begins.
    """

    kernel: Kernel
    support: Support
    lines: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    checks: tuple[tuple[str, Node], ...]
    nodes: tuple[tuple[int, Node], ...]

    def function(self, name: str) -> str:
        """The kernel alone, as a function ``name``."""
        head = f"def {name}({names(self.parameters)}):"
        return "\n".join(['@njit(error_model="numpy", nogil=True, cache=True)', head, *self.lines, ""])

    def shared(self, name: str) -> str:
        """The source of a function that runs the kernel's range in chunks, on Numba's threads."""
        arguments = names(self.parameters[2:])
        return f"""
@njit(parallel=True, error_model="numpy", nogil=True, cache=True)
def {name}_parallel(total, chunk, {arguments}):
    for part in prange((total + chunk - 1) // chunk):
        {name}(part * chunk, min(total, part * chunk + chunk), {arguments})
"""

    def file(self, name: str) -> str:
        """A complete file with the kernel."""
        return "\n".join([HEADER, *self.support.pieces(), self.function(name)])


def source(kernel: Kernel) -> KernelSource:
    """``kernel`` as Python source."""
    guarded = [s for s in ks.walk_kernel(kernel.body) if isinstance(s, ks.Compute) and is_guarded(s.function)]
    are_inlined = len(guarded) <= MAX_INLINED_MATHS
    stripped = in_strips(
        invariants_first(kernel), lambda c: are_inlined and is_guarded(c.function), _is_reordered
    )
    return _Writer(stripped).source()


def _is_reordered(update: ks.ReduceUpdate) -> bool:
    """Whether LLVM may reorder the iterations of a reduction: see :class:`SourceMaths`."""
    reorders = any(i.op in (ScalarOp.ADD, ScalarOp.MULTIPLY) for i in update.reduction.update.instructions)
    return reorders and any(register.dtype.is_floating for register in update.accumulator)


class _KernelMaths(SourceMaths):
    """The scalar ops of a kernel, with positions and checks.

    Attributes:
        node: the node whose scalar function is evaluated.
        positions: the loop along each axis of its output, None for an axis of size 1.
    """

    node: Node
    positions: tuple[int | None, ...]

    def __init__(self, lines: Lines, support: Support, fail_unless: Callable[[str, str, Node], None]) -> None:
        super().__init__(lines, support)
        self._fail_unless = fail_unless

    def index(self, axis: int) -> SourceValue:
        """The element's position along an axis of the output, an int64."""
        loop = self.positions[axis]
        return self.constant(0, int64) if loop is None else SourceValue(f"i64(i{loop})", int64)

    def check(self, ok: SourceValue, message: str) -> None:
        """Stop the graph with ``message`` unless ``ok`` holds."""
        self._fail_unless(ok.text, message, self.node)


class _Writer:
    """Writes one kernel.

    Attributes:
        carried: the accumulators that the current lane loop carries between iterations.
        exact: the registers that a fallback loop computes again, under other names: compile time grows with
            each name that is bound twice.
        index_names: the names of index expressions in the current scope.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.support = Support()
        self.lines = Lines()
        self.maths = _KernelMaths(self.lines, self.support, self.fail_unless)
        self.checks: list[tuple[str, Node]] = []
        self.dtypes = dict(enumerate(kernel.buffers))
        self.carried: frozenset[Register] = frozenset()
        self.exact: frozenset[Register] = frozenset()
        self.index_names: dict[str, str] = {}
        self.nodes: list[tuple[int, Node]] = []

    def source(self) -> KernelSource:
        kernel = self.kernel
        self._statements(kernel.body)
        self._note_failures()
        if not self.lines.text:
            self.lines.add("pass")
        parameters = (
            Parameter("lo", int64),
            Parameter("hi", int64),
            *(Parameter(f"x{i}", dtype, array=True) for i, dtype in enumerate(kernel.buffers)),
            *(Parameter(f"c{i}", dtype) for i, dtype in enumerate(kernel.scalars)),
            *(Parameter(f"n{i}", int64) for i in range(kernel.parameters)),
            Parameter("status", int64, array=True),
        )
        before = len(self.checks)  # the lines that initialise them come first
        nodes = tuple([(line + before, node) for line, node in self.nodes])
        lines, checks = tuple(self.lines.text), tuple(self.checks)
        return KernelSource(kernel, self.support, lines, parameters, checks, nodes)

    def fail_unless(self, ok: str, message: str, node: Node) -> None:
        """Record whether a check failed. The end of the kernel sets the status: lanes can't write to it."""
        if ok == "True":
            return
        self.checks.append((message, node))
        failed = f"failed{len(self.checks)}"
        self.lines.add(f"{failed} = {failed} | (not {ok})")

    def _note_failures(self) -> None:
        """Set the status to the number of the first check that failed, unless it is set."""
        numbers = range(1, len(self.checks) + 1)
        self.lines.text[:0] = [f"    failed{i} = False" for i in numbers]
        for i in numbers:
            with self.lines.block(f"if failed{i} and not status[0]:"):
                self.lines.add(f"status[0] = {i}")

    # Statements

    def _statements(self, statements: Sequence[KernelStatement]) -> None:
        for statement in statements:
            node: Node | None = getattr(statement, "node", None)
            if node is not None:
                self.nodes.append((len(self.lines.text), node))
            _WRITERS[type(statement)](self, statement)

    def _for(self, loop: ks.For) -> None:
        if loop.kind is LoopKind.GUARDED:
            self._guarded(loop)
            return
        outer = self.carried
        if loop.kind is LoopKind.LANES:
            loaded = {s.register for s in loop.body if isinstance(s, ks.Load)}
            updates = [s for s in loop.body if isinstance(s, ks.ReduceUpdate)]
            self.carried = frozenset(r for s in updates for r in s.accumulator if r not in loaded)
        with self._each(loop):
            self._statements(loop.body)
        self.carried = outer

    @contextmanager
    def _each(self, loop: ks.For) -> Iterator[None]:
        """A context that writes the head of a loop, and the indices that several statements in it share."""
        begin, end = (bound_text(x) for x in (loop.begin, loop.end))
        span = end if begin == "0" else f"{begin}, {end}"
        outer, self.index_names = self.index_names, dict(self.index_names)
        with self.lines.block(f"for {index_name(loop.loop)} in range({span}):"):
            accesses = (s.access for s in loop.body if isinstance(s, ks.Load | ks.Store))
            for text, count in Counter(map(self._index_text, accesses)).items():
                if count > 1 and text not in self.index_names:
                    name = f"at{len(self.index_names)}"
                    self.lines.add(f"{name} = {text}")
                    self.index_names[text] = name
            yield
        self.index_names = outer

    def _guarded(self, loop: ks.For) -> None:
        """Write a loop without fallbacks, then a loop with fallbacks if some lane needs one."""
        guard = self.lines.name()
        self.lines.add(f"{guard} = False")
        with self._each(loop):
            self.maths.fallback_conditions = []
            self._statements(loop.body)
            conditions = [w.text for w in self.maths.fallback_conditions]
            self.lines.add(" | ".join([f"{guard} = {guard}", *conditions]))
            self.maths.fallback_conditions = None
        self.exact = frozenset(r for statement in loop.body for r in written(statement))
        with self.lines.block(f"if {guard}:"), self._each(loop):
            self._statements(loop.body)
        self.exact = frozenset()

    def _blocks(self, blocks: ks.Blocks) -> None:
        self._chunked_loop(blocks, block_suffix(blocks.loop, blocks.level), f"n{blocks.size.number}")

    def _strips(self, strips: ks.StripMinedLoop) -> None:
        self._chunked_loop(strips, block_suffix(strips.loop, BlockLevel.STRIP), str(strips.width))

    def _chunked_loop(self, loop: ks.Blocks | ks.StripMinedLoop, suffix: str, size: str) -> None:
        begin, end = bound_text(loop.begin), bound_text(loop.end)
        with self.lines.block(f"for begin{suffix} in range({begin}, {end}, {size}):"):
            self._end(suffix, size, end)
            self._statements(loop.body)

    def _end(self, suffix: str, size: str, limit: str) -> None:
        """Write the computation of the end of a chunk, with an ``if``: ``min`` takes longer to compile."""
        self.lines.add(f"end{suffix} = begin{suffix} + {size}")
        with self.lines.block(f"if end{suffix} > {limit}:"):
            self.lines.add(f"end{suffix} = {limit}")

    def _lanes(self, lanes: ks.Lanes) -> None:
        with self.lines.block(f"for {index_name(KernelLoop.LANES)} in range({lanes.width}):"):
            self._statements(lanes.body)

    def _chunks(self, chunks: ks.Chunks) -> None:
        suffix, size = block_suffix(chunks.loop, BlockLevel.CHUNK), f"n{chunks.size.number}"
        with self.lines.block(f"for {index_name(KernelLoop.CHUNKS)} in range(lo, hi):"):
            self.lines.add(f"begin{suffix} = {index_name(KernelLoop.CHUNKS)} * {size}")
            self._end(suffix, size, bound_text(chunks.extent))
            self._statements(chunks.body)

    def _compute(self, compute: ks.Compute) -> None:
        self.maths.node, self.maths.positions = compute.node, compute.positions
        operands = [self._operand(o) for o in compute.operands]
        self._assign([compute.register], self._results(compute.function, operands))

    def _results(self, function: ScalarFunction, operands: Sequence[SourceValue]) -> list[SourceValue]:
        return evaluate(function, self.maths, operands)

    def _bind(self, register: Register, value: SourceValue) -> None:
        """Bind a register to a value; if the last line assigns the value, it assigns the register instead."""
        name = self._name(register)
        if not self.lines.rename(value.text, name):
            self.lines.add(f"{name} = {value.text}")

    def _load(self, load: ks.Load) -> None:
        self.lines.add(f"{self._name(load.register)} = {self._element(load.access)}")

    def _store(self, store: ks.Store) -> None:
        value = self.maths.cast(self._operand(store.value), self.dtypes[store.access.buffer])
        self.lines.add(f"{self._element(store.access)} = {value.text}")

    def _bounds(self, bounds: ks.BoundsCheck) -> None:
        index, inside = self._name(bounds.register), self._name(bounds.inside)
        self.lines.add(f"{index} = i64({self._operand(bounds.position).text})")
        size = bound_text(bounds.extent)
        self.lines.add(f"{inside} = 0 <= {index} < {size}")
        self.fail_unless(inside, ks.OUT_OF_RANGE, bounds.node)

    def _masked_load(self, masked: ks.MaskedLoad) -> None:
        register = masked.load.register
        zero = self.maths.constant(0, register.dtype).text
        element = self._element(masked.load.access)
        self.lines.add(f"{self._name(register)} = {element} if {self._name(masked.inside)} else {zero}")

    def _transposed_tile(self, tile: ks.TransposedTile) -> None:
        """Write the copy of a tile, element by element, in the order of the tile's memory."""
        (across, end), (down, last) = tile.across, tile.down
        target = ElementAccess(
            tile.tile, ((down.loop, tile.side), (across.loop, None)), block_starts=(down, across)
        )
        heads = [
            f"for {index_name(edge.loop)} in range({bound_text(edge)}, {bound_text(stop)}):"
            for edge, stop in ((across, end), (down, last))
        ]
        with self.lines.block(heads[0]), self.lines.block(heads[1]):
            self.lines.add(f"{self._element(target)} = {self._element(tile.access)}")

    def _scratch_buffer(self, row: ks.ScratchBuffer) -> None:
        length = " * ".join(f"n{n.number}" for n in row.length)
        self.dtypes[row.buffer] = row.dtype
        self.lines.add(f"x{row.buffer} = np.empty({length}, {type_name(row.dtype)})")

    def _stack_scratch(self, scratch: ks.StackScratch) -> None:
        self.dtypes[scratch.buffer] = scratch.dtype
        allocate = self.support.stack_array(scratch.dtype, scratch.width)
        self.lines.add(f"x{scratch.buffer} = {allocate}()")

    # Reductions

    def _reduce_init(self, statement: ks.ReduceInit) -> None:
        for register, value in zip(
            statement.accumulator, self._results(statement.reduction.init, ()), strict=True
        ):
            self._bind(register, value)

    def _reduce_update(self, statement: ks.ReduceUpdate) -> None:
        accumulator = [self._accumulator(r) for r in statement.accumulator]
        position = [self._linear_index(statement.reduced)] if statement.reduction.needs_position else []
        operands = [*accumulator, self._operand(statement.value), *position]
        self._assign(statement.accumulator, self._results(statement.reduction.update, operands))

    def _accumulator(self, register: Register) -> SourceValue:
        """A register that a reduction carries through the current loop."""
        return SourceValue(self._name(register), register.dtype, reorderable=register in self.carried)

    def _linear_index(self, index: Sequence[tuple[int, LaunchParameter]]) -> SourceValue:
        """The linear index of the element over the reduced loops."""
        (loop, _), *inner_loops = index
        text = f"i{loop}"
        for inner, size in inner_loops:
            text = f"({text}) * n{size.number} + i{inner}"
        return SourceValue(f"i64({text})", int64)

    def _assign(self, registers: Sequence[Register], values: Sequence[SourceValue]) -> None:
        if len(registers) == 1:
            self._bind(registers[0], values[0])
            return
        left = ", ".join(self._name(r) for r in registers)
        self.lines.add(f"{left} = {', '.join(value.text for value in values)}")

    def _reduce_combine(self, statement: ks.ReduceCombine) -> None:
        both = [self._register(r) for r in (*statement.accumulator, *statement.other)]
        self._assign(statement.accumulator, self._results(statement.reduction.combine, both))

    def _reduce_lanes(self, statement: ks.ReduceLanes) -> None:
        """Combine halves of the lanes' accumulators until one is left."""
        half = self.lines.name()
        self.lines.add(f"{half} = {statement.width // 2}")
        with self.lines.block(f"while {half}:"):
            with self.lines.block(f"for lane in range({half}):"):
                left, right = (
                    [
                        self.maths.expression(register.dtype, f"x{buffer}[u({at})]")
                        for register, buffer in zip(statement.accumulator, statement.buffers, strict=True)
                    ]
                    for at in ("lane", f"lane + {half}")
                )
                joined = self._results(statement.reduction.combine, [*left, *right])
                for buffer, value in zip(statement.buffers, joined, strict=True):
                    self.lines.add(f"x{buffer}[u(lane)] = {value.text}")
            self.lines.add(f"{half} >>= 1")
        for register, buffer in zip(statement.accumulator, statement.buffers, strict=True):
            self.lines.add(f"{self._name(register)} = x{buffer}[u(0)]")

    def _reduce_horizontal(self, statement: ks.ReduceHorizontal) -> None:
        """Write nothing: Numba vectorises lanes, and an accumulator has one element."""

    def _reduce_finalize(self, statement: ks.ReduceFinalize) -> None:
        accumulator = [self._register(r) for r in statement.accumulator]
        self._assign([statement.register], self._results(statement.reduction.finalize, accumulator))

    # Conditionals and loops over scalars

    def _choose(self, choose: ks.Choose) -> None:
        results = self._chosen(self._operand(choose.selector), choose.branches)
        for register, value in zip(choose.registers, results, strict=True):
            self._bind(register, value)

    def _chosen(self, index: SourceValue, branches: Sequence[ks.Branch]) -> list[SourceValue]:
        first, *others = branches
        if not others:
            return self._branch(first)
        m, is_bool = self.maths, index.dtype.is_bool
        test = m.invert(index) if is_bool else m.equal(index, m.constant(0, index.dtype))
        names: list[str] = []
        with self.lines.block(f"if {test.text}:"):
            values = self._branch(first)
            names += [self.lines.name() for _ in values]
            self._name_values(names, values)
        with self.lines.block("else:"):
            following = m.subtract(m.cast(index, int64), m.constant(1, int64)) if len(others) > 1 else index
            self._name_values(names, self._chosen(following, others))
        return [SourceValue(name, value.dtype) for name, value in zip(names, values, strict=True)]

    def _name_values(self, names: Sequence[str], values: Sequence[SourceValue]) -> None:
        for name, value in zip(names, values, strict=True):
            self.lines.add(f"{name} = {value.text}")

    def _branch(self, branch: ks.Branch) -> list[SourceValue]:
        self._statements(branch.body)
        return [self._operand(o) for o in branch.results]

    def _repeat(self, repeat: ks.Repeat) -> None:
        self._assign(repeat.registers, [self._operand(o) for o in repeat.starts])
        iterations, lines = self.lines.name(), self.lines
        lines.add(f"{iterations} = 0")
        with lines.block(
            "while True:" if repeat.limit is None else f"while {iterations} < n{repeat.limit.number}:"
        ):
            (condition,) = self._branch(repeat.condition)
            with lines.block(f"if not {condition.text}:"):
                lines.add("break")
            signalled = self.support.primitive("signalled")
            with lines.block(f"if {iterations} % {POLL_INTERVAL} == {POLL_INTERVAL - 1} and {signalled}():"):
                lines.add("status[0] = -1")
                lines.add("break")
            self._assign(repeat.registers, self._branch(repeat.body))
            lines.add(f"{iterations} += 1")

    # Operands and memory

    def _name(self, register: Register) -> str:
        return f"{'e' if register in self.exact else 'r'}{register.number}"

    def _register(self, register: Register) -> SourceValue:
        return SourceValue(self._name(register), register.dtype)

    def _operand(self, operand: ks.Operand) -> SourceValue:
        if isinstance(operand, Register):
            return self._register(operand)
        if isinstance(operand, ks.Scalar):
            return SourceValue(f"c{operand.number}", operand.dtype)
        return self.maths.constant(operand.value.item(), as_dtype(operand.value.dtype))

    def _element(self, access: ElementAccess) -> str:
        text = self._index_text(access)
        return f"x{access.buffer}[{self.index_names.get(text, text)}]"

    def _index_text(self, access: ElementAccess) -> str:
        """The index of an element as an unsigned integer, for which Numba leaves out the test of its sign."""
        return f"u({index_text(access, self._name)})"


_WRITERS: dict[type, Callable[[_Writer, Any], None]] = {
    ks.For: _Writer._for,
    ks.Blocks: _Writer._blocks,
    ks.StripMinedLoop: _Writer._strips,
    ks.Lanes: _Writer._lanes,
    ks.Chunks: _Writer._chunks,
    ks.Compute: _Writer._compute,
    ks.Choose: _Writer._choose,
    ks.Repeat: _Writer._repeat,
    ks.Load: _Writer._load,
    ks.Store: _Writer._store,
    ks.BoundsCheck: _Writer._bounds,
    ks.MaskedLoad: _Writer._masked_load,
    ks.TransposedTile: _Writer._transposed_tile,
    ks.ReduceInit: _Writer._reduce_init,
    ks.ReduceUpdate: _Writer._reduce_update,
    ks.ReduceCombine: _Writer._reduce_combine,
    ks.ReduceLanes: _Writer._reduce_lanes,
    ks.ReduceHorizontal: _Writer._reduce_horizontal,
    ks.ReduceFinalize: _Writer._reduce_finalize,
    ks.ScratchBuffer: _Writer._scratch_buffer,
    ks.StackScratch: _Writer._stack_scratch,
}
