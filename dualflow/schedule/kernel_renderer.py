"""Renders the statements of a kernel as lines of source: what Python and C write alike.

A language is a :class:`Syntax`, and a class that extends :class:`KernelRenderer` by branches and by the
accumulators of reductions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import ClassVar, Final, Generic

from dualflow.core.dtypes import DType, as_dtype, int64
from dualflow.core.records import NamedTuple
from dualflow.graph.ir import Node
from dualflow.scalar import ScalarFunction, evaluate
from dualflow.scalar.text_maths import SourceLines, TextMaths, V
from dualflow.schedule import kernel_statements as ks
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


class Syntax(NamedTuple):
    """Templates of what languages write differently; ``{0}`` is the first operand.

    Attributes:
        loop: the head of a loop: index, begin, end.
        strided_loop: the head of a loop: index, begin, end, step.
        condition: the head of a conditional: condition.
        flag: the lines before a guarded loop, which define its flag as false: name.
        raised_flag: makes a flag true if a condition holds: name, condition.
        assignment: assigns to an element: element, expression.
        integer: defines an int64: name, expression.
        cast_index: an index that was read from memory as an int64: expression.
        inside: whether an index is in bounds: index, size.
        conditional: evaluates one of two expressions: condition, expression if it holds, other expression.
    """

    loop: str
    strided_loop: str
    condition: str
    flag: tuple[str, ...]
    raised_flag: str
    assignment: str
    integer: str
    cast_index: str
    inside: str
    conditional: str


class KernelMaths(TextMaths[V]):
    """The scalar ops of a kernel that other scalar functions lack: positions and checks.

    Attributes:
        node: the node whose scalar function is evaluated.
        positions: the loop along each axis of its output, None for an axis of size 1.
        fail_unless: records a check, by its condition, message and node.
    """

    node: Node
    positions: tuple[int | None, ...]
    fail_unless: Callable[[str, str, Node], None]

    @abstractmethod
    def named(self, name: str, dtype: DType) -> V:
        """A name as a value of a dtype."""

    @abstractmethod
    def loop_index(self, text: str) -> V:
        """A sum of indices of loops, an int64."""

    def index(self, axis: int) -> V:
        """The element's position along an axis of the output, an int64."""
        loop = self.positions[axis]
        return self.constant(0, int64) if loop is None else self.loop_index(index_name(loop))

    def check(self, ok: V, message: str) -> None:
        """Stop the graph with ``message`` unless ``ok`` holds."""
        self.fail_unless(ok.text, message, self.node)


class KernelRenderer(ABC, Generic[V]):
    """Renders one kernel.

    Attributes:
        kernel: the kernel.
        lines: the lines of its body.
        maths: the scalar ops, whose results are such lines.
        dtypes: the dtype of each buffer's elements.
        exact: the registers that a fallback loop computes again, under other names.
    """

    syntax: ClassVar[Syntax]
    lines: SourceLines
    maths: KernelMaths[V]

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.dtypes = dict(enumerate(kernel.buffers))
        self.exact: frozenset[Register] = frozenset()

    # The language

    @abstractmethod
    def fail_unless(self, ok: str, message: str, node: Node) -> None:
        """Record that a check failed; the first failed check determines the result of the kernel."""

    @abstractmethod
    def _unguarded(self, loop: ks.For) -> None:
        """Write a loop that needs no fallback."""

    @abstractmethod
    def _write_end(self, suffix: str, size: str, limit: str) -> None:
        """Write the end of a chunk: the smaller of its full length and the loop's end."""

    @abstractmethod
    def _declare(self, register: Register, text: str) -> None:
        """Write the definition of a register."""

    @abstractmethod
    def _assign(self, registers: Sequence[Register], values: Sequence[V]) -> None:
        """Write the assignment of values to registers that are defined already."""

    @abstractmethod
    def _name(self, register: Register) -> str:
        """The name of a register."""

    # Loops

    def _statements(self, statements: Sequence[KernelStatement]) -> None:
        for statement in statements:
            getattr(self, _METHODS[type(statement)])(statement)  # by name: languages override methods

    def _for(self, loop: ks.For) -> None:
        if loop.kind is LoopKind.GUARDED:
            self._guarded(loop)
        else:
            self._unguarded(loop)

    @contextmanager
    def _each(self, loop: ks.For) -> Iterator[None]:
        """A context that writes the head of a loop."""
        with self._range(index_name(loop.loop), bound_text(loop.begin), bound_text(loop.end)):
            yield

    def _range(self, index: str, begin: str, end: str) -> AbstractContextManager[None]:
        return self.lines.block(self.syntax.loop.format(index, begin, end))

    def _guarded(self, loop: ks.For) -> None:
        """Write a loop without fallbacks, then a loop with fallbacks if some lane needs one."""
        guard = self.lines.name()
        for line in self.syntax.flag:
            self.lines.add(line.format(guard))
        with self._each(loop):
            self.maths.fallback_conditions = []
            self._statements(loop.body)
            condition = " | ".join([c.text for c in self.maths.fallback_conditions])
            self.lines.add(self.syntax.raised_flag.format(guard, condition))
            self.maths.fallback_conditions = None
        self.exact = frozenset(r for statement in loop.body for r in written(statement))
        with self.lines.block(self.syntax.condition.format(guard)), self._each(loop):
            self._statements(loop.body)
        self.exact = frozenset()

    def _blocks(self, blocks: ks.Blocks) -> None:
        self._chunked_loop(blocks, block_suffix(blocks.loop, blocks.level), f"n{blocks.size.number}")

    def _strips(self, strips: ks.StripMinedLoop) -> None:
        self._chunked_loop(strips, block_suffix(strips.loop, BlockLevel.STRIP), str(strips.width))

    def _chunked_loop(self, loop: ks.Blocks | ks.StripMinedLoop, suffix: str, size: str) -> None:
        begin, end = bound_text(loop.begin), bound_text(loop.end)
        with self.lines.block(self.syntax.strided_loop.format(f"begin{suffix}", begin, end, size)):
            self._write_end(suffix, size, end)
            self._statements(loop.body)

    def _lanes(self, lanes: ks.Lanes) -> None:
        with self._range(index_name(KernelLoop.LANES), "0", str(lanes.width)):
            self._statements(lanes.body)

    def _chunks(self, chunks: ks.Chunks) -> None:
        with self._range(index_name(KernelLoop.CHUNKS), "lo", "hi"):
            self._chunk(chunks)

    def _chunk(self, chunks: ks.Chunks) -> None:
        """Write the bounds and the body of the chunk whose number is the index of the loop over chunks."""
        suffix, size = block_suffix(chunks.loop, BlockLevel.CHUNK), f"n{chunks.size.number}"
        begin = f"{index_name(KernelLoop.CHUNKS)} * {size}"
        self.lines.add(self.syntax.integer.format(f"begin{suffix}", begin))
        self._write_end(suffix, size, bound_text(chunks.extent))
        self._statements(chunks.body)

    # Values

    def _compute(self, compute: ks.Compute) -> None:
        self.maths.node, self.maths.positions = compute.node, compute.positions
        (value,) = self._results(compute.function, [self._operand(o) for o in compute.operands])
        self._bind(compute.register, value)

    def _results(self, function: ScalarFunction, operands: Sequence[V]) -> list[V]:
        return evaluate(function, self.maths, operands)

    def _bind(self, register: Register, value: V) -> None:
        """Define a register; if the last line defines the value, it defines the register instead."""
        if not self.lines.rename(value, self._name(register)):
            self._declare(register, value.text)

    def _load(self, load: ks.Load) -> None:
        self._declare(load.register, self._element(load.access))

    def _store(self, store: ks.Store) -> None:
        value = self.maths.cast(self._operand(store.value), self.dtypes[store.access.buffer])
        self._set(self._element(store.access), value.text)

    def _set(self, target: str, text: str) -> None:
        """Write an assignment."""
        self.lines.add(self.syntax.assignment.format(target, text))

    def _bounds(self, bounds: ks.BoundsCheck) -> None:
        index, position = self._name(bounds.register), self._operand(bounds.position)
        self._declare(bounds.register, self.syntax.cast_index.format(position.text))
        self._declare(bounds.inside, self.syntax.inside.format(index, bound_text(bounds.extent)))
        self.fail_unless(self._name(bounds.inside), ks.OUT_OF_RANGE, bounds.node)

    def _masked_load(self, masked: ks.MaskedLoad) -> None:
        register, access = masked.load.register, masked.load.access
        zero, element = self.maths.constant(0, register.dtype).text, self._element(access)
        self._declare(register, self.syntax.conditional.format(self._name(masked.inside), element, zero))

    def _transposed_tile(self, tile: ks.TransposedTile) -> None:
        """Write the copy of a tile, element by element, in the order of the tile's memory."""
        (across, end), (down, last) = tile.across, tile.down
        target = ElementAccess(
            tile.tile, ((down.loop, tile.side), (across.loop, None)), block_starts=(down, across)
        )
        outer, inner = [
            self._range(index_name(edge.loop), bound_text(edge), bound_text(stop))
            for edge, stop in ((across, end), (down, last))
        ]
        with outer, inner:
            self._set(self._element(target), self._element(tile.access))

    # Reductions

    def _across_lanes(self, accumulator: Sequence[Register]) -> AbstractContextManager[None]:
        """A context that writes a loop over lanes if the accumulator has an element for each."""
        return nullcontext()

    def _accumulator(self, register: Register) -> V:
        """A register that a reduction carries through the current loop."""
        return self._register(register)

    def _reduce_update(self, statement: ks.ReduceUpdate) -> None:
        with self._across_lanes(statement.accumulator):
            operands = [*map(self._accumulator, statement.accumulator), self._operand(statement.value)]
            if statement.reduction.needs_position:
                operands.append(self._linear_index(statement.reduced))
            self._assign(statement.accumulator, self._results(statement.reduction.update, operands))

    def _linear_index(self, loops: Sequence[tuple[int, LaunchParameter]]) -> V:
        """The linear index of the element over the reduced loops."""
        (loop, _), *inner_loops = loops
        text = index_name(loop)
        for inner, size in inner_loops:
            text = f"({text}) * n{size.number} + {index_name(inner)}"
        return self.maths.loop_index(text)

    def _reduce_combine(self, statement: ks.ReduceCombine) -> None:
        with self._across_lanes(statement.accumulator):
            both = [self._register(r) for r in (*statement.accumulator, *statement.other)]
            self._assign(statement.accumulator, self._results(statement.reduction.combine, both))

    def _reduce_finalize(self, statement: ks.ReduceFinalize) -> None:
        accumulator = [self._register(r) for r in statement.accumulator]
        (value,) = self._results(statement.reduction.finalize, accumulator)
        self._bind(statement.register, value)

    # Operands and memory

    def _branch(self, branch: ks.Branch) -> list[V]:
        """Write a branch or the body of a scalar loop; returns its results."""
        self._statements(branch.body)
        return [self._operand(o) for o in branch.results]

    def _register(self, register: Register) -> V:
        return self.maths.named(self._name(register), register.dtype)

    def _operand(self, operand: ks.Operand) -> V:
        if isinstance(operand, Register):
            return self._register(operand)
        if isinstance(operand, ks.Scalar):
            return self.maths.named(f"c{operand.number}", operand.dtype)
        return self.maths.constant(operand.value.item(), as_dtype(operand.value.dtype))

    def _element(self, access: ElementAccess) -> str:
        return f"x{access.buffer}[{self._index(access)}]"

    def _index(self, access: ElementAccess) -> str:
        return index_text(access, self._name)


_METHODS: Final = {
    ks.For: "_for",
    ks.Blocks: "_blocks",
    ks.StripMinedLoop: "_strips",
    ks.Lanes: "_lanes",
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
    ks.ReduceLanes: "_reduce_lanes",
    ks.ReduceHorizontal: "_reduce_horizontal",
    ks.ReduceFinalize: "_reduce_finalize",
    ks.ScratchBuffer: "_scratch_buffer",
    ks.StackScratch: "_stack_scratch",
}
"""The method that writes each kind of statement; a language has the methods that this class lacks."""
