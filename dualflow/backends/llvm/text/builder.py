"""The builder of a function: basic blocks, memory accesses and control flow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from dualflow.backends.llvm.text.emitted_values import EmittedValue, Emitter, Symbols
from dualflow.backends.llvm.text.types import BOOL, I32, I64, PTR, VOID, Type
from dualflow.core.errors import DTypeError

ALIGNED_LOOP = ", !llvm.loop !1"
"""The metadata of a branch that ends an innermost loop: LLVM aligns the loop to 32 bytes.

The time of a short loop depends on how many lines of instructions it spans, which would be chance.
"""


class Block:
    """A basic block: a label and lines, the last of which is its terminator."""

    __slots__ = ("label", "lines")

    def __init__(self, label: str) -> None:
        self.label = label
        self.lines: list[str] = []


class Iteration:
    """One iteration of a loop: the values ``carried`` into it, and after the loop its ``results``."""

    def __init__(self, carried: list[EmittedValue]) -> None:
        self.carried = self.results = self.following = carried

    def next(self, *values: EmittedValue) -> None:
        """Set the carried values of the next iteration."""
        if [v.type for v in values] != [v.type for v in self.carried]:
            raise DTypeError(f"the loop carries {self.carried}, but its next iteration gets {list(values)}")
        self.following = list(values)


class CountedIteration(Iteration):
    """One iteration of a counted loop, with its ``index``."""

    def __init__(self, index: EmittedValue, carried: list[EmittedValue]) -> None:
        super().__init__(carried)
        self.index = index


class WhileLoop(Iteration):
    """One iteration of a loop that ends when a condition is false."""

    def __init__(self, carried: list[EmittedValue], test: Callable[[EmittedValue], None]) -> None:
        super().__init__(carried)
        self.test = test


class Builder(Emitter):
    """Appends instructions to the current basic block of a function, and creates blocks.

    The lines of a block are in order of emission; ``blocks`` are the blocks of the function.
    """

    def __init__(self, symbols: Symbols) -> None:
        super().__init__(symbols)
        self.blocks: list[Block] = []
        self._loops = 0
        self.position(self.new_block("entry"))

    def first_lanes(self, count: EmittedValue, lanes: int) -> EmittedValue:
        """A mask of the lanes below ``count`` (an i64, at least 0), for the tail of a loop."""
        return self.iota(I32.vector(lanes)) < (count < lanes).select(count, lanes).cast(I32)

    def alloca(self, type: Type, count: int) -> EmittedValue:
        """Stack memory for ``count`` elements, 64-byte aligned, valid during the call."""
        self._count += 1
        name = f"%v{self._count}"
        self.blocks[0].lines.insert(0, f"  {name} = alloca [{count} x {type.memory}], align 64")
        return EmittedValue(self, PTR, name)

    # Memory

    def offset(self, pointer: EmittedValue, index: EmittedValue | int, type: Type) -> EmittedValue:
        """The address of element ``index`` (a vector of indices gives a vector of addresses)."""
        if isinstance(index, int):
            index = self.constant(I64, index)
        element, result = type.memory.scalar, Type("p", 64, index.type.lanes)
        instruction = f"getelementptr {element}, ptr {pointer.text}, {index.type} {index.text}"
        return self.emit(result, instruction)

    def load(
        self, pointer: EmittedValue, index: EmittedValue | int, type: Type, mask: EmittedValue | None = None
    ) -> EmittedValue:
        """Load ``type.lanes`` contiguous elements from ``index`` on; lanes outside ``mask`` are 0, unread."""
        memory, address = type.memory, self.offset(pointer, index, type)
        if mask is None:
            loaded = self.emit(memory, f"load {memory}, ptr {address.text}, align {type.align}")
        else:
            loaded = self._masked_read("load", address, memory, mask)
        return loaded.ne(0) if type.kind == "b" else loaded

    def store(
        self,
        value: EmittedValue,
        pointer: EmittedValue,
        index: EmittedValue | int,
        mask: EmittedValue | None = None,
        streaming: bool = False,
    ) -> None:
        """Store the lanes of a value that are in ``mask`` to contiguous elements from ``index`` on.

        ``streaming`` bypasses the cache; the address must then be aligned to the size of the vector.
        """
        address, type = self.offset(pointer, index, value.type), value.type.memory
        value = value.cast(type)
        if mask is not None:
            self._masked_write("store", value, address, mask)
            return
        align = type.nbytes * type.lanes if streaming else type.align
        end = ", !nontemporal !0" if streaming else ""
        self.line(f"store {type} {value.text}, ptr {address.text}, align {align}{end}")

    def prefetch(self, pointer: EmittedValue) -> None:
        """Prefetch the cache line at an address, which may be invalid."""
        name = self.symbols.declare("llvm.prefetch.p0", VOID, [PTR, I32, I32, I32], "")
        read, near, data = (self.constant(I32, n) for n in (0, 3, 1))
        self.call(name, [pointer, read, near, data])

    def fence(self) -> None:
        """A fence, after which earlier stores, streaming ones too, are visible to other threads."""
        self.line("fence seq_cst")

    def gather(
        self, pointer: EmittedValue, index: EmittedValue, type: Type, mask: EmittedValue | None = None
    ) -> EmittedValue:
        """Load the elements at a vector of indices; lanes outside ``mask`` are 0 and not read."""
        mask = self._every_lane(type) if mask is None else mask
        if type.kind == "c":
            at = index * 2
            return self.gather(pointer, at, type.part, mask).interleave(
                self.gather(pointer, at + 1, type.part, mask)
            )
        loaded = self._masked_read("gather", self.offset(pointer, index, type), type.memory, mask)
        return loaded.ne(0) if type.kind == "b" else loaded

    def scatter(
        self,
        value: EmittedValue,
        pointer: EmittedValue,
        index: EmittedValue,
        mask: EmittedValue | None = None,
    ) -> None:
        """Store lanes to the elements at a vector of indices; the last lane wins among equal indices."""
        mask = self._every_lane(value.type) if mask is None else mask
        if value.type.kind == "c":
            for i, part in enumerate(value.parts()):
                self.scatter(part, pointer, index * 2 + i, mask)
            return
        address = self.offset(pointer, index, value.type)
        self._masked_write("scatter", value.cast(value.type.memory), address, mask)

    def _every_lane(self, type: Type) -> EmittedValue:
        return self.constant(BOOL.vector(type.lanes), True)

    def _masked_read(self, kind: str, address: EmittedValue, type: Type, mask: EmittedValue) -> EmittedValue:
        """Emit llvm.masked.load or .gather; lanes outside the mask are zero."""
        mask = mask.interleave(mask) if type.kind == "c" else mask
        name = f"llvm.masked.{kind}.{type.suffix}.{address.type.suffix}"
        self.symbols.declare(name, type, [address.type, mask.type, type], "")
        source = f"{address.type} align {type.align} {address.text}"
        mask_and_zeros = f"{mask.type} {mask.text}, {type} zeroinitializer"
        return self.emit(type, f"call {type} @{name}({source}, {mask_and_zeros})")

    def _masked_write(
        self, kind: str, value: EmittedValue, address: EmittedValue, mask: EmittedValue
    ) -> None:
        """Emit llvm.masked.store or .scatter."""
        type = value.type
        mask = mask.interleave(mask) if type.kind == "c" else mask
        name = f"llvm.masked.{kind}.{type.suffix}.{address.type.suffix}"
        self.symbols.declare(name, VOID, [type, address.type, mask.type], "")
        target = f"{address.type} align {type.align} {address.text}"
        self.line(f"call void @{name}({type} {value.text}, {target}, {mask.type} {mask.text})")

    # Control flow

    def new_block(self, hint: str) -> Block:
        """A new block at the end of the function; ``position`` makes it current."""
        block = Block(f"{hint}{len(self.blocks)}")
        self.blocks.append(block)
        return block

    def position(self, block: Block) -> None:
        """Make a block the current one, to which instructions are appended."""
        self.block, self.lines = block, block.lines

    def jump(self, block: Block) -> None:
        """Emit an unconditional branch."""
        self.line(f"br label %{block.label}")

    def branch(self, condition: EmittedValue, then: Block, otherwise: Block, metadata: str = "") -> None:
        """Emit a conditional branch."""
        self.line(f"br i1 {condition.text}, label %{then.label}, label %{otherwise.label}{metadata}")

    def phi(self, incoming: Sequence[tuple[EmittedValue, Block]]) -> EmittedValue:
        """Emit a phi, at the beginning of its block: the value of the preceding block."""
        type = incoming[0][0].type
        pairs = ", ".join([f"[ {value.text}, %{block.label} ]" for value, block in incoming])
        return self.emit(type, f"phi {type} {pairs}")

    def ret(self, value: EmittedValue | None = None) -> None:
        """Emit a return."""
        self.line("ret void" if value is None else f"ret {value.type} {value.text}")

    @contextmanager
    def if_then(self, condition: EmittedValue) -> Iterator[None]:
        """Instructions that run only if a scalar condition is true."""
        then, after = self.new_block("then"), self.new_block("after")
        self.branch(condition, then, after)
        self.position(then)
        yield
        self.jump(after)
        self._resume(after)

    def if_else(
        self,
        condition: EmittedValue,
        then: Callable[[], Sequence[EmittedValue]],
        otherwise: Callable[[], Sequence[EmittedValue]],
    ) -> list[EmittedValue]:
        """Branch to the instructions of one of two emitters; returns their values merged by phis."""
        sides, after = (self.new_block("then"), self.new_block("else")), self.new_block("after")
        self.branch(condition, *sides)
        ends: list[tuple[Sequence[EmittedValue], Block]] = []
        for block, emitter in zip(sides, (then, otherwise), strict=True):
            self.position(block)
            values = emitter()
            ends.append((values, self.block))
            self.jump(after)
        self._resume(after)
        (left, left_end), (right, right_end) = ends
        return [self.phi([(a, left_end), (b, right_end)]) for a, b in zip(left, right, strict=True)]

    @contextmanager
    def two_sides(self, condition: EmittedValue) -> Iterator[Callable[[], None]]:
        """A conditional without values: the block emits the side that runs if ``condition`` holds.

        What it emits after a call of the function that it gets is the other side.
        """
        then, otherwise, after = self.new_block("then"), self.new_block("else"), self.new_block("after")
        self.branch(condition, then, otherwise)
        self.position(then)

        def begin_otherwise() -> None:
            self.jump(after)
            self.position(otherwise)

        yield begin_otherwise
        self.jump(after)
        self._resume(after)

    @contextmanager
    def loop(
        self,
        start: EmittedValue | int,
        stop: EmittedValue | int,
        step: EmittedValue | int = 1,
        carried: Sequence[EmittedValue] = (),
        *,
        frozen: bool = False,
    ) -> Iterator[CountedIteration]:
        """A counted loop from ``start`` while below ``stop`` (i64), with loop-carried values.

        The index of a ``frozen`` loop is no induction variable for LLVM, which then doesn't look for cheaper
        forms of its addresses (loop strength reduction, a quarter of the time of code generation). Use it
        where an address is a pointer from outside the loop plus the index, or an outer loop computes it.

        >>> from dualflow.backends.llvm.text import I64, LlvmModule
        >>> f = LlvmModule().function("count", I64, [("n", I64)])
        >>> b = f.builder
        >>> with b.loop(0, f.args[0], carried=[b.constant(I64, 0)]) as loop:
        ...     loop.next(loop.carried[0] + loop.index)
        >>> b.ret(loop.results[0])
        """
        start, stop, step = [self.constant(I64, v) if isinstance(v, int) else v for v in (start, stop, step)]
        before, body, after = self.block, self.new_block("loop"), self.new_block("done")
        self.branch(start < stop, body, after)
        self.position(body)
        entering = [(start, before), *[(value, before) for value in carried]]
        phis = [self.emit(value.type, "") for value, _ in entering]
        loop = CountedIteration(phis[0], phis[1:])
        inner_loops = self._loops
        yield loop
        next_index = self.emit(I64, f"add nuw nsw i64 {loop.index.text}, {step.text}")
        following = [next_index.frozen() if frozen else next_index, *loop.following]
        is_innermost, self._loops = inner_loops == self._loops, self._loops + 1
        self.branch(following[0] < stop, body, after, ALIGNED_LOOP if is_innermost else "")
        latch = self.block
        self._close(body, phis, entering, [(value, latch) for value in following])
        self._resume(after)
        ends = zip(carried, loop.following, strict=True)
        loop.results = [self.phi([(first, before), (last, latch)]) for first, last in ends]

    @contextmanager
    def at_most_once(
        self, start: EmittedValue, stop: EmittedValue, carried: Sequence[EmittedValue] = ()
    ) -> Iterator[CountedIteration]:
        """A counted loop without a back edge: one iteration, at ``start``, if it is below ``stop``.

        >>> from dualflow.backends.llvm.text import I64, LlvmModule
        >>> f = LlvmModule().function("doubled_above_3", I64, [("n", I64)])
        >>> b, n = f.builder, f.args[0]
        >>> with b.at_most_once(b.constant(I64, 3), n, [n]) as iteration:
        ...     iteration.next(iteration.carried[0] * 2)
        >>> b.ret(iteration.results[0])
        """
        before, body, after = self.block, self.new_block("tail"), self.new_block("done")
        self.branch(start < stop, body, after)
        self.position(body)
        iteration = CountedIteration(start, list(carried))
        yield iteration
        last = self.block
        self.jump(after)
        self._resume(after)
        ends = zip(carried, iteration.following, strict=True)
        iteration.results = [
            old if new.text == old.text else self.phi([(old, before), (new, last)]) for old, new in ends
        ]

    @contextmanager
    def while_loop(self, carried: Sequence[EmittedValue]) -> Iterator[WhileLoop]:
        """A loop that ends when ``loop.test(condition)`` is false, with the values carried into the test.

        >>> from dualflow.backends.llvm.text import I64, U64, LlvmModule
        >>> f = LlvmModule().function("halvings", I64, [("n", U64)])
        >>> b = f.builder
        >>> with b.while_loop([f.args[0], b.constant(I64, 0)]) as loop:
        ...     n, count = loop.carried
        ...     loop.test(n > 1)
        ...     loop.next(n >> 1, count + 1)
        >>> b.ret(loop.results[1])
        """
        before, head, after = self.block, self.new_block("while"), self.new_block("done")
        self.jump(head)
        self.position(head)
        entering = [(value, before) for value in carried]
        phis = [self.emit(value.type, "") for value in carried]

        def test(condition: EmittedValue) -> None:
            body = self.new_block("body")
            self.branch(condition, body, after)
            self.position(body)

        loop = WhileLoop(phis, test)
        yield loop
        self.jump(head)
        self._close(head, phis, entering, [(value, self.block) for value in loop.following])
        self._resume(after)

    def _close(
        self,
        head: Block,
        phis: Sequence[EmittedValue],
        entering: Sequence[tuple[EmittedValue, Block]],
        following: Sequence[tuple[EmittedValue, Block]],
    ) -> None:
        """Write the phis that were reserved at the head of a loop, when its end is emitted."""
        for i, (phi, first, last) in enumerate(zip(phis, entering, following, strict=True)):
            pairs = ", ".join([f"[ {value.text}, %{block.label} ]" for value, block in (first, last)])
            head.lines[i] = f"  {phi.text} = phi {phi.type} {pairs}"

    def _resume(self, block: Block) -> None:
        """Move a block to the end of the function, and make it the current one."""
        self.blocks.remove(block)
        self.blocks.append(block)
        self.position(block)
