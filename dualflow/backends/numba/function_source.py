"""A branch or loop as one compiled function, with everything inside it.

The function takes the buffers, sizes and numbers that it uses as arguments, so that the source does not
depend on sizes. It sets ``status`` to the number of a check that failed, and stores the values for the
check's error in ``saved`` arrays. The status is -1 if a signal has ended it: loops poll for signals after a
bounded amount of work.

A long function calls others for its parts (``function_parts.py``). These have the same protocol, and the
function returns if one of them has set the status.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, nullcontext
from typing import Any

from dualflow.backends.numba.call_source import CallWriter, ProgramCheck
from dualflow.backends.numba.compilability import work
from dualflow.backends.numba.function_parts import MIN_PART, groups, is_long, length
from dualflow.backends.numba.line_comments import CommentedLines
from dualflow.backends.numba.parameters import Parameter, dtype_name, names
from dualflow.backends.numba.support import Support
from dualflow.core.dtypes import DType, as_dtype
from dualflow.core.records import dataclass
from dualflow.graph.ir import Node, Value
from dualflow.ops.op_kinds import Loop
from dualflow.schedule.kernel import KernelLaunch
from dualflow.schedule.planned import StackRow
from dualflow.schedule.program_statements import (
    ChooseBranch,
    LaunchNest,
    Multiply,
    RunLoop,
    Statement,
    ValueLayout,
    walk_program,
)

POLL_WORK = 2e7
"""Work, in additions, between two polls for signals: about 10 ms."""
_INDEX = as_dtype("int64")
_CONSTANTS = {0: "zero", 1: "one"}

_BEGIN = "zero, one = i64(0), i64(1)"
"""Typed zero and one: Numba specialises a called function for each literal, but not for typed numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class SavedArray:
    """An array in which a function stores a value that the error of a failed check shows."""

    name: str
    check: int
    value: Value


@dataclass(frozen=True, slots=True, eq=False)
class FunctionSource:
    """The source of a compiled function: a branch, a loop, or a part of one.

    Attributes:
        name: its name.
        parameters: its parameters, the status last.
        arguments: the expressions that the program passes.
        lines: its body.
        results: the names of the values that it returns: growable buffers, and trip counts.
        kernels: the names of the kernels that it calls.
        routines: the names of the routines that it calls.
        checks: the checks, by number in the status.
        saved: the arrays for the errors of checks, which the program allocates.
        support: the primitives that it calls.
        parts: the functions that it calls for its parts.
    """

    name: str
    parameters: tuple[Parameter, ...]
    arguments: tuple[str, ...]
    lines: CommentedLines
    results: tuple[str, ...]
    kernels: frozenset[str]
    routines: frozenset[str]
    checks: tuple[ProgramCheck, ...]
    saved: tuple[SavedArray, ...]
    support: Support
    parts: tuple[FunctionSource, ...]

    def walk(self) -> Iterator[FunctionSource]:
        """The direct and indirect callees in topological order, callees first, then the function itself."""
        for part in self.parts:
            yield from part.walk()
        yield self

    def text(self, *, comments: bool = False) -> str:
        """The function's source, with comments or without."""
        head = '@njit(error_model="numpy", nogil=True, cache=True)'
        body = self.lines.with_comments() if comments else self.lines.text
        return "\n".join([head, f"def {self.name}({names(self.parameters)}):", *body, ""])


def function_source(outer: CallWriter, control: ChooseBranch | RunLoop, name: str) -> FunctionSource:
    """A branch or loop as a function ``name``, which ``outer`` calls."""
    return _FunctionWriter(outer, name).function((control,))


class _FunctionWriter(CallWriter):
    """Writes one function.

    Attributes:
        outer: the writer of the calling program or function, which writes the arguments.
        name: the function's name.
        local: the names that the function assigns.
        checks_before: the number of checks of the enclosing functions before its own.
        saved_before: the number of their saved arrays.
    """

    def __init__(
        self, outer: CallWriter, name: str, *, checks_before: int = 0, saved_before: int = 0
    ) -> None:
        super().__init__(outer.context)
        self.outer = outer
        self.name = name
        self.checks_before = checks_before
        self.saved_before = saved_before
        self.parameters: dict[str, tuple[Parameter, str]] = {}
        self.numbers: dict[int, str] = {}
        self.literals: dict[str, str] = {}
        self.most_rows: dict[int, str] = {}
        self.local: set[str] = set()
        self.results: tuple[str, ...] = ()
        self.kernels: set[str] = set()
        self.checks: list[ProgramCheck] = []
        self.saved: list[SavedArray] = []
        self.support = Support()
        self.parts: list[FunctionSource] = []
        self._is_long = False

    def function(self, program: Sequence[Statement]) -> FunctionSource:
        self._is_long = is_long(program)
        self.lines.add(_BEGIN)
        for statement in program:
            self._results(statement)
        self.statements(program)
        self._return()
        self.parameters["status"] = Parameter("status", _INDEX, True), "status"
        parameters, arguments = zip(*self.parameters.values(), strict=True)
        return FunctionSource(
            self.name,
            parameters,
            arguments,
            self.lines,
            self.results,
            frozenset(self.kernels),
            frozenset(self.routines),
            tuple(self.checks),
            tuple(self.saved),
            self.support,
            tuple(self.parts),
        )

    def _results(self, statement: Statement) -> None:
        """Initialise the results that loops assign, so that each ``return`` can return them."""
        for loop in walk_program((statement,)):
            if not isinstance(loop, RunLoop) or not loop.growable:
                continue
            for row in loop.growable:
                if any(row.stack.buffer == x.buffer for x in statement.outputs):
                    self.lines.add(f"{self.declare_stack(row)} = np.empty(0, {dtype_name(row.dtype)})")
                    self.results += (self.declare_stack(row),)
                    self.declare_counter(loop.trip_count.loop)
            if (
                iteration := f"iteration{loop.trip_count.loop}"
            ) in self.local and iteration not in self.results:
                self.lines.add(f"{iteration} = 0")
                self.results += (iteration,)

    def _return(self) -> None:
        self.lines.add(f"return {', '.join(self.results)}".rstrip())

    # Parts

    def statements(self, program: Sequence[Statement]) -> None:
        """Write statements; a long function calls other functions for groups of them."""
        if not self._is_long or (len(program) == 1 and isinstance(program[0], ChooseBranch | RunLoop)):
            super().statements(program)
            return
        for group in groups(program):
            if length(group) < MIN_PART:
                super().statements(group)
            else:
                self._part(group)

    def _part(self, program: Sequence[Statement]) -> None:
        """Move these statements to a new function, and write a call of it."""
        part = _FunctionWriter(
            self,
            f"{self.name}_{len(self.parts)}",
            checks_before=self._checks_so_far,
            saved_before=self.saved_before + len(self.saved),
        ).function(program)
        self.parts.append(part)
        self.local.update(part.results)
        self.checks += part.checks
        for saved in part.saved:
            self._save(saved)
        left = f"{', '.join(part.results)} = " if part.results else ""
        self.lines.add(f"{left}{part.name}({', '.join(part.arguments)})")
        with self.lines.block("if status[0]:"):
            self._return()

    # Operands

    def _parameter(self, name: str, dtype: DType, argument: str, *, array: bool = False) -> str:
        if name not in self.local:
            self.parameters.setdefault(name, (Parameter(name, dtype, array), argument))
        return name

    def buffer(self, buffer: int, dtype: DType) -> str:
        name = self.context.names[buffer]
        if name in self.local:
            return name
        argument = self.outer.buffer(buffer, dtype)
        return self._parameter(argument, dtype, argument, array=True)

    def size(self, size: int) -> str:
        if size in _CONSTANTS:
            return _CONSTANTS[size]
        name = self.numbers.setdefault(size, f"n{len(self.numbers)}")
        return self._parameter(name, _INDEX, self.outer.size(size))

    def literal(self, number: Any) -> str:
        argument = self.outer.literal(number)
        name = self.literals.setdefault(argument, f"c{len(self.literals)}")
        return self._parameter(name, as_dtype(number.dtype), argument)

    def rows_within(self, nbytes: int) -> str:
        name = self.most_rows.setdefault(nbytes, f"most{len(self.most_rows)}")
        return self._parameter(name, _INDEX, self.outer.rows_within(nbytes))

    def iterations_of(self, loop: int) -> str:
        name = f"iteration{loop}"
        if name in self.local:
            return name
        return self._parameter(name, _INDEX, self.outer.iterations_of(loop))

    def declare_counter(self, loop: int) -> str:
        return self._declare(super().declare_counter(loop))

    def declare_stack(self, row: StackRow) -> str:
        return self._declare(super().declare_stack(row))

    def declare_row(self, row: StackRow) -> str:
        return self._declare(super().declare_row(row))

    def _declare(self, name: str) -> str:
        self.local.add(name)
        return name

    # Calls

    @property
    def _checks_so_far(self) -> int:
        """The number of checks so far, with those of enclosing functions."""
        return self.checks_before + len(self.checks)

    def _save(self, saved: SavedArray) -> None:
        self.saved.append(saved)
        self._parameter(saved.name, saved.value.spec.dtype, saved.name, array=True)

    def require(self, condition: str, check: ProgramCheck, reads: Sequence[ValueLayout] = ()) -> None:
        self.checks.append(check)
        with self.lines.block(f"if not {condition}:"):
            for layout, value in reads:
                name = f"saved{self.saved_before + len(self.saved)}"
                self._save(SavedArray(name, self._checks_so_far, value))
                self.lines.add(f"{name}[:] = {self._flat_slice(layout, value)}")
            self.lines.add(f"status[0] = {self._checks_so_far}")
            self._return()

    def launch(self, name: str, launch: KernelLaunch, arguments: str, nodes: Sequence[Node]) -> None:
        self.kernels.add(name)
        self.lines.add(f"{name}(zero, {self.size(launch.total)}, {arguments})", nodes)

    def check_status(self, checks: Sequence[ProgramCheck], nodes: Sequence[Node]) -> None:
        loops = any(isinstance(node.op.kind, Loop) for node in nodes)
        if not checks and not loops:
            return
        with self.lines.block("if status[0]:"):
            if checks and self._checks_so_far:
                with self.lines.block("if status[0] > 0:") if loops else nullcontext():
                    self.lines.add(f"status[0] += {self._checks_so_far}")
            self._return()
        self.checks += checks

    def launch_as_numpy(self, launch: LaunchNest) -> None:
        raise AssertionError(f"{launch.node} can't be part of a compiled function")

    def host(self, statement: Statement) -> None:
        raise AssertionError(f"{statement.node} can't be part of a compiled function")

    def multiply(self, product: Multiply) -> None:
        """Write a product for each matrix of the batch."""
        if product.is_empty:
            return
        self.routines.add("product")
        dtype = product.node.output.spec.dtype
        arguments = []
        for layout in product.matrices:
            *batched, down, across = layout.strides
            begin = [self.size(layout.offset)] if layout.offset != 0 else []
            begin += [f"b{i} * {self.size(stride)}" for i, stride in enumerate(batched) if stride != 0]
            access = [" + ".join(begin) or "zero", self.size(down), self.size(across)]
            arguments += [self.buffer(layout.buffer, dtype), *access]
        scale = self.literal(dtype.dtype.type(product.scale))
        arguments += [*map(self.size, product.shape), scale, self.size(product.accumulate)]
        with ExitStack() as loops:
            for i, size in enumerate(product.batch):
                loops.enter_context(self.lines.block(f"for b{i} in range({self.size(size)}):"))
            self.lines.add(f"product({', '.join(arguments)})", (product.node,))

    def end_iteration(self, loop: RunLoop, iteration: str) -> None:
        work_per_iteration = work(self.context, [*loop.test, *loop.body])
        poll_interval = self.size(max(2, int(POLL_WORK / max(work_per_iteration, 1.0))))
        signalled = self.support.primitive("signalled")
        with self.lines.block(f"if {iteration} % {poll_interval} == 0 and {signalled}():"):
            self.lines.add("status[0] = -1")
            self._return()
