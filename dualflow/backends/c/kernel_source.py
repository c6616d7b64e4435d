"""A kernel's statements as a C function, line by line.

Lane loops are plain loops, which compilers vectorise. If a reduction runs by lanes, each accumulator is an
array with an element for each lane, as in the machine code of the default backend, so sums have its bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from dualflow.backends.c.register_names import (
    accumulators,
    reassigned_registers,
    register_names,
)
from dualflow.backends.c.source_lines import WORD, CLines, CValue, c_type, without_unused
from dualflow.backends.c.source_maths import CMaths
from dualflow.backends.c.support import CSupport
from dualflow.core.dtypes import DType, bool_, int64
from dualflow.core.records import dataclass
from dualflow.graph.ir import Node
from dualflow.scalar.maths import is_guarded
from dualflow.schedule import kernel_statements as ks
from dualflow.schedule.kernel import Kernel
from dualflow.schedule.kernel_renderer import KernelMaths, KernelRenderer, Syntax
from dualflow.schedule.kernel_statements import (
    LaunchParameter,
    LoopKind,
    Register,
)
from dualflow.schedule.loop_names import bound_text, index_name
from dualflow.schedule.strip_mining import in_strips

LANES_PRAGMA: Final = "DF_INDEPENDENT"
"""The pragma before a loop whose iterations are independent."""
_SYNTAX: Final = Syntax(
    loop="for (int64_t {0} = {1}; {0} < {2}; {0}++)",
    strided_loop="for (int64_t {0} = {1}; {0} < {2}; {0} += {3})",
    condition="if ({0})",
    flag=("int {0} = 0;", LANES_PRAGMA),
    raised_flag="{0} |= {1};",
    assignment="{0} = {1};",
    integer="const int64_t {0} = {1};",
    cast_index="(int64_t){0}",
    inside="{0} >= 0 && {0} < {1}",
    conditional="{0} ? {1} : {2}",
)


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
    return CKernelRenderer(kernel, lanes, support).source()


class CKernelMaths(CMaths, KernelMaths[CValue]):
    """The scalar ops of a kernel as lines of C."""

    def named(self, name: str, dtype: DType) -> CValue:
        return CValue(name, dtype)

    def loop_index(self, text: str) -> CValue:
        return self.named(text, int64)


class CKernelRenderer(KernelRenderer[CValue]):
    """Renders one kernel as lines of C; dialects of C extend it.

    Attributes:
        wide: the accumulators that are arrays with an element for each lane.
        lane: the lane that the current statements compute, as an expression; None outside of lanes.
        vectors: the number of loops over vectors of lanes so far.
        reassigned: the registers that are declared as variables, since they are assigned again.
    """

    syntax = _SYNTAX
    lines: CLines
    maths: CKernelMaths

    def __init__(self, kernel: Kernel, lanes: int, support: CSupport) -> None:
        super().__init__(kernel)
        self.support, self.lines = support, CLines()
        self.maths = self._maths()
        self.maths.fail_unless = self.fail_unless
        self.checks: dict[tuple[str, Node], int] = {}
        self.stored = {s.access.buffer for s in ks.walk_kernel(kernel.body) if isinstance(s, ks.Store)}
        self.num_lanes = lanes
        self.reassigned = reassigned_registers(kernel)
        self.wide = accumulators(kernel) if kernel.reduces_lanes else frozenset()
        self.lane: str | None = None
        self.vectors = 0
        self.names = register_names(kernel)

    def _maths(self) -> CKernelMaths:
        """The namespace of scalar ops."""
        return CKernelMaths(self.lines, self.support)

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
        if ok == "true":
            return
        number = self.checks.setdefault((message, node), len(self.checks) + 1)
        self.lines.add(f"failed = failed == 0 && !{ok} ? {number} : failed;")

    # Loops

    def _unguarded(self, loop: ks.For) -> None:
        if loop.kind is LoopKind.LANES and self.kernel.reduces_lanes:
            self._vector_loop(loop)
            return
        innermost = not any(isinstance(s, ks.For | ks.Blocks | ks.Repeat) for s in ks.walk_kernel(loop.body))
        if loop.kind is LoopKind.LANES and innermost:
            self.lines.add(LANES_PRAGMA)
        with self._each(loop):
            self._statements(loop.body)

    def _vector_loop(self, loop: ks.For) -> None:
        """Write a reduction: a loop over whole vectors of lanes, then the last, shorter vector."""
        index, end, lanes = index_name(loop.loop), bound_text(loop.end), self.num_lanes
        self.vectors += 1
        vector = f"vector{self.vectors}"
        self.lines.add(f"int64_t {vector} = {bound_text(loop.begin)};")
        with self.lines.block(f"for (; {vector} + {lanes} <= {end}; {vector} += {lanes})"):
            self.lines.add(LANES_PRAGMA)
            with self._range("lane", "0", str(lanes)):
                self._lane_body(loop, index, f"{vector} + lane")
        with self.lines.block(f"for (int64_t lane = 0; {vector} + lane < {end}; lane++)"):
            self._lane_body(loop, index, f"{vector} + lane")

    def _lane_body(self, loop: ks.For, index: str, text: str) -> None:
        """Write the body of a loop for one lane."""
        self.lines.add(f"const int64_t {index} = {text};")
        self.lane = "lane"
        self._statements(loop.body)
        self.lane = None

    def _write_end(self, suffix: str, size: str, limit: str) -> None:
        end = f"begin{suffix} + {size}"
        self.lines.add(f"const int64_t end{suffix} = {end} < {limit} ? {end} : {limit};")

    # Values

    def _declare(self, register: Register, text: str) -> None:
        const = "" if register in self.reassigned else "const "
        self.lines.add(f"{const}{c_type(register.dtype)} {self._name(register)} = {text};")

    def _scratch_buffer(self, scratch: ks.ScratchBuffer) -> None:
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
        with self._range("lane", "0", str(self.num_lanes)):
            outer, self.lane = self.lane, "lane"
            yield
            self.lane = outer

    @contextmanager
    def _across_lanes(self, accumulator: Sequence[Register]) -> Iterator[None]:
        """A context that writes a loop over lanes, unless one is open or the accumulator is a scalar."""
        if self.lane is None and not self.wide.isdisjoint(accumulator):
            with self._for_all_lanes():
                yield
        else:
            yield

    def _assign(self, registers: Sequence[Register], values: Sequence[CValue]) -> None:
        for register, value in zip(registers, values, strict=True):
            self.lines.add(f"{self._register(register).text} = {value.text};")

    def _linear_index(self, loops: Sequence[tuple[int, LaunchParameter]]) -> CValue:
        return self.lines.declare(int64, super()._linear_index(loops).text)

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

    # Registers

    def _name(self, register: Register) -> str:
        name = self.names.get(register.number, f"r{register.number}")
        return f"exact_{name}" if register in self.exact else name

    def _register(self, register: Register) -> CValue:
        lane = f"[{self.lane or 0}]" if register in self.wide else ""
        return CValue(f"{self._name(register)}{lane}", register.dtype)
