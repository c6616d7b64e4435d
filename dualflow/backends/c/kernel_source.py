"""A kernel's statements as a C function, line by line.

Lane loops are plain loops, which compilers vectorise. If a reduction runs by lanes, each accumulator is an
array with an element for each lane, as in the machine code of the default backend, so sums have its bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from dualflow.backends.c.kernel_names import (
    accumulators,
    reassigned_registers,
    register_names,
)
from dualflow.backends.c.source_maths import CMaths
from dualflow.backends.c.support import CSupport
from dualflow.backends.c.values import WORD, CLines, CValue, c_type, without_unused
from dualflow.core.dtypes import as_dtype, bool_, int64
from dualflow.core.records import dataclass
from dualflow.graph.ir import Node
from dualflow.scalar import ScalarFunction, evaluate
from dualflow.scalar.maths import is_guarded
from dualflow.schedule import kernel_statements as ks
from dualflow.schedule.kernel import Kernel
from dualflow.schedule.kernel_statements import (
    ElementAccess,
    KernelStatement,
    LaunchParameter,
    LoopKind,
    Register,
)
from dualflow.schedule.loop_ids import BlockLevel
from dualflow.schedule.loop_names import block_suffix, bound_text, index_name, index_text
from dualflow.schedule.registers import written
from dualflow.schedule.strip_mining import in_strips

LANES_PRAGMA = "DF_INDEPENDENT"
"""The pragma before a loop whose iterations are independent."""


@dataclass(frozen=True, slots=True)
class CKernel:
    """A kernel as C source.

    Attributes:
        kernel: its statements, rewritten for C compilers.
        lines: the lines of its body.
        parameters: the declarations of the parameters that its lines read, by name.
        checks: the message and node of each check, by number in the result, from 1 on.
    """

    kernel: Kernel
    lines: tuple[str, ...]
    parameters: dict[str, str]
    checks: tuple[tuple[str, Node], ...]

    def function(self, name: str) -> str:
        """The kernel as the function ``name``, which returns the number of a failed check or 0."""
        parameters = ", ".join(self.parameters.values()) or "void"
        result = "int" if self.checks else "void"
        return "\n".join([f"static {result} {name}({parameters})", "{", *self.lines, "}", ""])


def source(kernel: Kernel, lanes: int, support: CSupport) -> CKernel:
    """``kernel``, whose lane loop has ``lanes`` lanes, as C; ``support`` gets the functions that it calls."""
    if not kernel.reduces_lanes:
        kernel = in_strips(kernel, lambda compute: is_guarded(compute.function))
    return CKernelWriter(kernel, lanes, support).source()


class CKernelMaths(CMaths):
    """The scalar ops of a kernel, with positions and checks.

    Attributes:
        node: the node whose scalar function is evaluated.
        positions: the loop along each axis of its output, None for an axis of size 1.
    """

    node: Node
    positions: tuple[int | None, ...]

    def __init__(self, writer: CKernelWriter) -> None:
        super().__init__(writer.lines, writer.support)
        self._writer = writer

    def index(self, axis: int) -> CValue:
        """The element's position along an axis of the output, an int64."""
        loop = self.positions[axis]
        return self.constant(0, int64) if loop is None else CValue(index_name(loop), int64)

    def check(self, ok: CValue, message: str) -> None:
        """Stop the graph with ``message`` unless ``ok`` holds."""
        self._writer.fail_unless(ok.text, message, self.node)


class CKernelWriter:
    """Writes the statements of one kernel as lines of C; dialects of C extend it.

    Attributes:
        wide: the accumulators that are arrays with an element for each lane.
        lane: the lane that the current statements compute, as an expression; None outside of lanes.
        vectors: the number of loops over vectors of lanes so far.
        reassigned: the registers that are declared as variables, since they are assigned again.
        exact: the registers that a fallback loop computes again, under other names.
    """

    def __init__(self, kernel: Kernel, lanes: int, support: CSupport) -> None:
        self.kernel, self.support = kernel, support
        self.lines = CLines()
        self.maths = self._maths()
        self.checks: dict[tuple[str, Node], int] = {}
        self.dtypes = dict(enumerate(kernel.buffers))
        self.stored = {s.access.buffer for s in ks.walk_kernel(kernel.body) if isinstance(s, ks.Store)}
        self.num_lanes = lanes
        self.reassigned = reassigned_registers(kernel)
        self.wide = accumulators(kernel) if kernel.reduces_lanes else frozenset()
        self.lane: str | None = None
        self.vectors = 0
        self.exact: frozenset[Register] = frozenset()
        self.names = register_names(kernel)

    def _maths(self) -> CKernelMaths:
        """The namespace of scalar ops."""
        return CKernelMaths(self)

    def source(self) -> CKernel:
        kernel = self.kernel
        self._statements(kernel.body)
        if self.checks:
            self.lines.text.insert(0, "    int failed = 0;")
            self.lines.add("return failed;")
        lines = without_unused(self.lines.text)
        used = set(WORD.findall("\n".join(lines)))
        parameters = {name: text for name, text in self._parameters() if name in used}
        return CKernel(kernel, tuple(lines), parameters, tuple(self.checks))

    def _parameters(self) -> Iterator[tuple[str, str]]:
        yield from (("lo", "int64_t lo"), ("hi", "int64_t hi"))
        own = [s for s in self.kernel.body if isinstance(s, ks.ScratchBuffer)]
        for i, dtype in enumerate(self.kernel.buffers):
            const = "" if i in self.stored else "const "
            yield f"x{i}", f"{const}{c_type(dtype)} *x{i}"
        yield from ((f"x{s.buffer}", f"{c_type(s.dtype)} *x{s.buffer}") for s in own)
        yield from ((f"c{i}", f"{c_type(dtype)} c{i}") for i, dtype in enumerate(self.kernel.scalars))
        yield from ((f"n{i}", f"int64_t n{i}") for i in range(self.kernel.parameters))

    def fail_unless(self, ok: str, message: str, node: Node) -> None:
        """Record that a check failed; the first failed check determines the result."""
        if ok == "true":
            return
        number = self.checks.setdefault((message, node), len(self.checks) + 1)
        self.lines.add(f"failed = failed == 0 && !{ok} ? {number} : failed;")

    # Loops

    def _statements(self, statements: Sequence[KernelStatement]) -> None:
        for statement in statements:
            getattr(self, _WRITERS[type(statement)])(statement)  # by name: dialects override methods

    def _for(self, loop: ks.For) -> None:
        if loop.kind is LoopKind.GUARDED:
            self._guarded(loop)
        elif loop.kind is LoopKind.LANES and self.kernel.reduces_lanes:
            self._vector_loop(loop)
        else:
            innermost = not any(
                isinstance(s, ks.For | ks.Blocks | ks.Repeat) for s in ks.walk_kernel(loop.body)
            )
            if loop.kind is LoopKind.LANES and innermost:
                self.lines.add(LANES_PRAGMA)
            with self._each(loop):
                self._statements(loop.body)

    @contextmanager
    def _each(self, loop: ks.For) -> Iterator[None]:
        index, begin, end = index_name(loop.loop), bound_text(loop.begin), bound_text(loop.end)
        with self.lines.block(f"for (int64_t {index} = {begin}; {index} < {end}; {index}++)"):
            yield

    def _vector_loop(self, loop: ks.For) -> None:
        """Write a reduction: a loop over whole vectors of lanes, then the last, shorter vector."""
        index = index_name(loop.loop)
        begin = bound_text(loop.begin)
        end = bound_text(loop.end)
        lanes = self.num_lanes
        self.vectors += 1
        vector = f"vector{self.vectors}"
        self.lines.add(f"int64_t {vector} = {begin};")
        with self.lines.block(f"for (; {vector} + {lanes} <= {end}; {vector} += {lanes})"):
            self.lines.add(LANES_PRAGMA)
            with self.lines.block(f"for (int64_t lane = 0; lane < {lanes}; lane++)"):
                self._lane_body(loop, index, f"{vector} + lane")
        with self.lines.block(f"for (int64_t lane = 0; {vector} + lane < {end}; lane++)"):
            self._lane_body(loop, index, f"{vector} + lane")

    def _lane_body(self, loop: ks.For, index: str, text: str) -> None:
        """Write the body of a loop for one lane."""
        self.lines.add(f"const int64_t {index} = {text};")
        self.lane = "lane"
        self._statements(loop.body)
        self.lane = None

    def _guarded(self, loop: ks.For) -> None:
        """Write a loop without fallbacks, then a loop with fallbacks if some lane needs one."""
        guard = self.lines.name()
        self.lines.add(f"int {guard} = 0;")
        self.lines.add(LANES_PRAGMA)
        with self._each(loop):
            self.maths.fallback_conditions = []
            self._statements(loop.body)
            self.lines.add(f"{guard} |= {' | '.join(w.text for w in self.maths.fallback_conditions)};")
            self.maths.fallback_conditions = None
        self.exact = frozenset(r for statement in loop.body for r in written(statement))
        with self.lines.block(f"if ({guard})"), self._each(loop):
            self._statements(loop.body)
        self.exact = frozenset()

    def _blocks(self, blocks: ks.Blocks) -> None:
        self._chunked_loop(blocks, block_suffix(blocks.loop, blocks.level), f"n{blocks.size.number}")

    def _strips(self, strips: ks.StripMinedLoop) -> None:
        self._chunked_loop(strips, block_suffix(strips.loop, BlockLevel.STRIP), str(strips.width))

    def _chunked_loop(self, loop: ks.Blocks | ks.StripMinedLoop, suffix: str, size: str) -> None:
        begin, end = bound_text(loop.begin), bound_text(loop.end)
        head = f"for (int64_t begin{suffix} = {begin}; begin{suffix} < {end}; begin{suffix} += {size})"
        with self.lines.block(head):
            self._write_end(suffix, size, end)
            self._statements(loop.body)

    def _write_end(self, suffix: str, size: str, limit: str) -> None:
        """Write the end of a chunk: the smaller of its full length and the loop's end."""
        end = f"begin{suffix} + {size}"
        self.lines.add(f"const int64_t end{suffix} = {end} < {limit} ? {end} : {limit};")

    def _lane_loop(self, lanes: ks.Lanes) -> None:
        with self.lines.block(f"for (int64_t lane = 0; lane < {lanes.width}; lane++)"):
            self._statements(lanes.body)

    def _chunks(self, chunks: ks.Chunks) -> None:
        with self.lines.block("for (int64_t chunk = lo; chunk < hi; chunk++)"):
            self._chunk(chunks)

    def _chunk(self, chunks: ks.Chunks) -> None:
        """Write the bounds and the body of the chunk with the number ``chunk``."""
        suffix, size = block_suffix(chunks.loop, BlockLevel.CHUNK), f"n{chunks.size.number}"
        self.lines.add(f"const int64_t begin{suffix} = chunk * {size};")
        self._write_end(suffix, size, bound_text(chunks.extent))
        self._statements(chunks.body)

    # Values

    def _compute(self, compute: ks.Compute) -> None:
        self.maths.node, self.maths.positions = compute.node, compute.positions
        (value,) = self._results(compute.function, [self._operand(o) for o in compute.operands])
        self._bind(compute.register, value)

    def _results(self, function: ScalarFunction, operands: Sequence[CValue]) -> list[CValue]:
        return evaluate(function, self.maths, operands)

    def _bind(self, register: Register, value: CValue) -> None:
        """Declare a register; if the last line declares the value, it declares the register instead."""
        name = self._name(register)
        if not self.lines.rename(value, name):
            self.lines.add(f"const {c_type(register.dtype)} {name} = {value.text};")

    def _load(self, load: ks.Load) -> None:
        register = load.register
        const = "" if register in self.reassigned else "const "
        c, name = c_type(register.dtype), self._name(register)
        self.lines.add(f"{const}{c} {name} = {self._element(load.access)};")

    def _store(self, store: ks.Store) -> None:
        value = self.maths.cast(self._operand(store.value), self.dtypes[store.access.buffer])
        self.lines.add(f"{self._element(store.access)} = {value.text};")

    def _bounds(self, bounds: ks.BoundsCheck) -> None:
        index, inside = self._name(bounds.register), self._name(bounds.inside)
        self.lines.add(f"const int64_t {index} = (int64_t){self._operand(bounds.position).text};")
        self.lines.add(f"const bool {inside} = {index} >= 0 && {index} < {bound_text(bounds.extent)};")
        self.fail_unless(inside, ks.OUT_OF_RANGE, bounds.node)

    def _masked_load(self, masked: ks.MaskedLoad) -> None:
        register = masked.load.register
        zero, element = self.maths.constant(0, register.dtype).text, self._element(masked.load.access)
        name, inside = self._name(register), self._name(masked.inside)
        self.lines.add(f"const {c_type(register.dtype)} {name} = {inside} ? {element} : {zero};")

    def _transposed_tile(self, tile: ks.TransposedTile) -> None:
        """Write the copy of a tile, element by element, in the order of the tile's memory."""
        (across, end), (down, last) = tile.across, tile.down
        target = ElementAccess(
            tile.tile, ((down.loop, tile.side), (across.loop, None)), block_starts=(down, across)
        )
        heads = [
            f"for (int64_t {i} = {bound_text(edge)}; {i} < {bound_text(stop)}; {i}++)"
            for i, edge, stop in ((index_name(across.loop), across, end), (index_name(down.loop), down, last))
        ]
        with self.lines.block(heads[0]), self.lines.block(heads[1]):
            self.lines.add(f"{self._element(target)} = {self._element(tile.access)};")

    def _scratch(self, scratch: ks.ScratchBuffer) -> None:
        """Record the dtype of a scratch buffer, which is a parameter of the C function."""
        self.dtypes[scratch.buffer] = scratch.dtype

    def _stack_scratch(self, scratch: ks.StackScratch) -> None:
        self.dtypes[scratch.buffer] = scratch.dtype
        self.lines.add(f"{c_type(scratch.dtype)} x{scratch.buffer}[{scratch.width}];")

    # Reductions

    def _reduce_init(self, statement: ks.ReduceInit) -> None:
        values = self._results(statement.reduction.init, ())
        for register, value in zip(statement.accumulator, values, strict=True):
            name, c = self._name(register), c_type(register.dtype)
            if register in self.wide:
                self.lines.add(f"{c} {name}[{self.num_lanes}];")
                with self._for_all_lanes():
                    self.lines.add(f"{name}[lane] = {value.text};")
            else:
                self.lines.add(f"{c} {name} = {value.text};")

    @contextmanager
    def _for_all_lanes(self) -> Iterator[None]:
        """A context that writes a loop over all lanes."""
        with self.lines.block(f"for (int64_t lane = 0; lane < {self.num_lanes}; lane++)"):
            outer, self.lane = self.lane, "lane"
            yield
            self.lane = outer

    def _reduce_update(self, statement: ks.ReduceUpdate) -> None:
        with self._for_each_lane_if_wide(statement.accumulator):
            accumulator = [self._register(r) for r in statement.accumulator]
            position = [self._linear_index(statement.reduced)] if statement.reduction.needs_position else []
            operands = [*accumulator, self._operand(statement.value), *position]
            self._assign(statement.accumulator, self._results(statement.reduction.update, operands))

    @contextmanager
    def _for_each_lane_if_wide(self, accumulator: Sequence[Register]) -> Iterator[None]:
        """A context that writes a loop over lanes, unless one is open or the accumulator is a scalar."""
        if self.lane is None and not self.wide.isdisjoint(accumulator):
            with self._for_all_lanes():
                yield
        else:
            yield

    def _linear_index(self, index: Sequence[tuple[int, LaunchParameter]]) -> CValue:
        """The linear index of the element over the reduced loops."""
        (loop, _), *inner_loops = index
        text = index_name(loop)
        for inner, size in inner_loops:
            text = f"({text}) * n{size.number} + {index_name(inner)}"
        return self.lines.declare(int64, text)

    def _assign(self, registers: Sequence[Register], values: Sequence[CValue]) -> None:
        for register, value in zip(registers, values, strict=True):
            self.lines.add(f"{self._register(register).text} = {value.text};")

    def _reduce_combine(self, statement: ks.ReduceCombine) -> None:
        with self._for_each_lane_if_wide(statement.accumulator):
            both = [self._register(r) for r in (*statement.accumulator, *statement.other)]
            self._assign(statement.accumulator, self._results(statement.reduction.combine, both))

    def _reduce_horizontal(self, statement: ks.ReduceHorizontal) -> None:
        """Combine halves of the lanes until one is left."""
        names = [self._name(r) for r in statement.accumulator]
        head = f"for (int64_t pairs = {self.num_lanes // 2}; pairs > 0; pairs /= 2)"
        with self.lines.block(head), self.lines.block("for (int64_t lane = 0; lane < pairs; lane++)"):
            both = [
                CValue(f"{name}[{at}]", register.dtype)
                for at in ("lane", "lane + pairs")
                for name, register in zip(names, statement.accumulator, strict=True)
            ]
            combined = self._results(statement.reduction.combine, both)
            for name, value in zip(names, combined, strict=True):
                self.lines.add(f"{name}[lane] = {value.text};")

    def _reduce_finalize(self, statement: ks.ReduceFinalize) -> None:
        accumulator = [self._register(r) for r in statement.accumulator]
        (value,) = self._results(statement.reduction.finalize, accumulator)
        self._bind(statement.register, value)

    # Conditionals and loops over scalars

    def _choose(self, choose: ks.Choose) -> None:
        for register in choose.registers:
            self.lines.add(f"{c_type(register.dtype)} {self._name(register)};")
        self._write_branches(choose.registers, self._operand(choose.selector), choose.branches)

    def _write_branches(
        self, registers: Sequence[Register], selector: CValue, branches: Sequence[ks.Branch]
    ) -> None:
        for number, branch in enumerate(branches):
            test = f"!{selector.text}" if selector.dtype is bool_ else f"{selector.text} == {number}"
            last = number + 1 == len(branches)
            head = (
                "" if last and not number else "else" if last else f"{'else ' if number else ''}if ({test})"
            )
            with self.lines.block(head):
                self._assign(registers, self._branch(branch))

    def _branch(self, branch: ks.Branch) -> list[CValue]:
        self._statements(branch.body)
        return [self._operand(o) for o in branch.results]

    def _repeat(self, repeat: ks.Repeat) -> None:
        for register, start in zip(repeat.registers, repeat.starts, strict=True):
            value = self._operand(start).text
            self.lines.add(f"{c_type(register.dtype)} {self._name(register)} = {value};")
        count = self.lines.name()
        limit = "" if repeat.limit is None else f"{count} < n{repeat.limit.number}"
        with self.lines.block(f"for (int64_t {count} = 0; {limit}; {count}++)"):
            (proceed,) = self._branch(repeat.condition)
            self.lines.add(f"if (!{proceed.text}) break;")
            following = [self.lines.declare(value.dtype, value.text) for value in self._branch(repeat.body)]
            self._assign(repeat.registers, following)

    # Operands and memory

    def _name(self, register: Register) -> str:
        name = self.names.get(register.number, f"r{register.number}")
        return f"exact_{name}" if register in self.exact else name

    def _register(self, register: Register) -> CValue:
        lane = f"[{self.lane or 0}]" if register in self.wide else ""
        return CValue(f"{self._name(register)}{lane}", register.dtype)

    def _operand(self, operand: ks.Operand) -> CValue:
        if isinstance(operand, Register):
            return self._register(operand)
        if isinstance(operand, ks.Scalar):
            return CValue(f"c{operand.number}", operand.dtype)
        return self.maths.constant(operand.value.item(), as_dtype(operand.value.dtype))

    def _element(self, access: ElementAccess) -> str:
        return f"x{access.buffer}[{index_text(access, self._name)}]"


_WRITERS: dict[type, str] = {
    ks.For: "_for",
    ks.Blocks: "_blocks",
    ks.StripMinedLoop: "_strips",
    ks.Lanes: "_lane_loop",
    ks.Chunks: "_chunks",
    ks.Compute: "_compute",
    ks.Choose: "_choose",
    ks.Repeat: "_repeat",
    ks.Load: "_load",
    ks.Store: "_store",
    ks.BoundsCheck: "_bounds",
    ks.MaskedLoad: "_masked_load",
    ks.TransposedTile: "_transposed_tile",
    ks.ReduceInit: "_reduce_init",
    ks.ReduceUpdate: "_reduce_update",
    ks.ReduceCombine: "_reduce_combine",
    ks.ReduceHorizontal: "_reduce_horizontal",
    ks.ReduceFinalize: "_reduce_finalize",
    ks.ScratchBuffer: "_scratch",
    ks.StackScratch: "_stack_scratch",
}
