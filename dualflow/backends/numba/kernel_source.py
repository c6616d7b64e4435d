"""A kernel's statements as a Python function, line by line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from dualflow.backends.numba.parameters import Parameter, names
from dualflow.backends.numba.source_lines import Lines, SourceValue, type_name
from dualflow.backends.numba.source_maths import SourceMaths
from dualflow.backends.numba.support import HEADER, Support
from dualflow.core.dtypes import DType, int64
from dualflow.core.records import dataclass
from dualflow.graph.ir import Node
from dualflow.scalar import ScalarOp
from dualflow.scalar.maths import is_guarded
from dualflow.schedule import kernel_statements as ks
from dualflow.schedule.invariants import invariants_first
from dualflow.schedule.kernel import Kernel
from dualflow.schedule.kernel_renderer import KernelMaths, KernelRenderer, Syntax
from dualflow.schedule.kernel_statements import (
    ElementAccess,
    KernelStatement,
    LoopKind,
    Register,
)
from dualflow.schedule.loop_names import index_text
from dualflow.schedule.strip_mining import in_strips

MAX_INLINED_MATHS = 32
"""The largest number of maths functions with a fallback that are inlined into a vectorised loop.

Each is some thirty lines, which take 0.2 s to compile; with more of them a kernel calls functions, element by
element.
"""
POLL_INTERVAL = 1 << 16
"""Iterations of a loop over scalars between two checks for a signal."""
_SYNTAX: Final = Syntax(
    loop="for {0} in range({1}, {2}):",
    strided_loop="for {0} in range({1}, {2}, {3}):",
    condition="if {0}:",
    flag=("{0} = False",),
    raised_flag="{0} = {0} | {1}",
    assignment="{0} = {1}",
    integer="{0} = {1}",
    cast_index="i64({0})",
    inside="0 <= {0} < {1}",
    conditional="{1} if {0} else {2}",
)


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
    return _NumbaRenderer(stripped).source()


def _is_reordered(update: ks.ReduceUpdate) -> bool:
    """Whether LLVM may reorder the iterations of a reduction: see :class:`SourceMaths`."""
    reorders = any(i.op in (ScalarOp.ADD, ScalarOp.MULTIPLY) for i in update.reduction.update.instructions)
    return reorders and any(register.dtype.is_floating for register in update.accumulator)


class _NumbaMaths(SourceMaths, KernelMaths[SourceValue]):
    """The scalar ops of a kernel as lines of Python."""

    def named(self, name: str, dtype: DType) -> SourceValue:
        return SourceValue(name, dtype)

    def loop_index(self, text: str) -> SourceValue:
        return SourceValue(f"i64({text})", int64)


class _NumbaRenderer(KernelRenderer[SourceValue]):
    """Renders one kernel as lines of Python.

    Attributes:
        carried: the accumulators that the current lane loop carries between iterations.
        index_names: the names of index expressions in the current scope.
        nodes: the lines at which the code of a node begins.
    """

    syntax = _SYNTAX
    lines: Lines
    maths: _NumbaMaths

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self.support, self.lines = Support(), Lines()
        self.maths = _NumbaMaths(self.lines, self.support)
        self.maths.fail_unless = self.fail_unless
        self.checks: list[tuple[str, Node]] = []
        self.carried: frozenset[Register] = frozenset()
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
            super()._statements((statement,))

    def _range(self, index: str, begin: str, end: str) -> AbstractContextManager[None]:
        if begin == "0":
            return self.lines.block(f"for {index} in range({end}):")
        return super()._range(index, begin, end)

    def _unguarded(self, loop: ks.For) -> None:
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
        outer, self.index_names = self.index_names, dict(self.index_names)
        with super()._each(loop):
            accesses = (s.access for s in loop.body if isinstance(s, ks.Load | ks.Store))
            for text, count in Counter(map(self._index_text, accesses)).items():
                if count > 1 and text not in self.index_names:
                    name = f"at{len(self.index_names)}"
                    self.lines.add(f"{name} = {text}")
                    self.index_names[text] = name
            yield
        self.index_names = outer

    def _write_end(self, suffix: str, size: str, limit: str) -> None:
        """Write the end of a chunk, with an ``if``: ``min`` takes longer to compile."""
        self.lines.add(f"end{suffix} = begin{suffix} + {size}")
        with self.lines.block(f"if end{suffix} > {limit}:"):
            self.lines.add(f"end{suffix} = {limit}")

    # Values

    def _declare(self, register: Register, text: str) -> None:
        self.lines.add(f"{self._name(register)} = {text}")

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

    def _accumulator(self, register: Register) -> SourceValue:
        """A register that a reduction carries through the current loop."""
        return SourceValue(self._name(register), register.dtype, reorderable=register in self.carried)

    def _assign(self, registers: Sequence[Register], values: Sequence[SourceValue]) -> None:
        if len(registers) == 1:
            self._bind(registers[0], values[0])
            return
        left = ", ".join(self._name(r) for r in registers)
        self.lines.add(f"{left} = {', '.join(value.text for value in values)}")

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

    # Registers and memory

    def _name(self, register: Register) -> str:
        """The name of a register; another for an exact one, as names bound twice take longer to compile."""
        return f"{'e' if register in self.exact else 'r'}{register.number}"

    def _index(self, access: ElementAccess) -> str:
        text = self._index_text(access)
        return self.index_names.get(text, text)

    def _index_text(self, access: ElementAccess) -> str:
        """The index of an element as an unsigned integer, for which Numba leaves out the test of its sign."""
        return f"u({index_text(access, self._name)})"
