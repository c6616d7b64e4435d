"""A plan's statements become a program: a kernel for each different loop nest, and an entry that calls them.

    void entry(ptr buffers, ptr params, ptr status)

Kernels are modules of LLVM IR, the same for all sizes and graphs; the integers they read from ``params`` are
listed beside them. The entry is the driver of steps, or, where there are conditionals, loops or sizes that
the run tells, a module too. A plan with host calls has an entry for each native part between them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from dualflow.backends.llvm.capabilities import vector_bits
from dualflow.backends.llvm.check_values import CheckValues
from dualflow.backends.llvm.entry import EmittedKernel, Unit
from dualflow.backends.llvm.entry_control import write_entry
from dualflow.backends.llvm.run_time_sizes import write_setters, write_whole
from dualflow.backends.llvm.runtime import interrupts, threads
from dualflow.backends.llvm.runtime.source import IrSource
from dualflow.backends.llvm.steps import WALK, StepRecord, driver
from dualflow.backends.llvm.text import LlvmModule
from dualflow.backends.runtime import switches
from dualflow.core.locks import imported
from dualflow.core.records import NamedTuple
from dualflow.core.symbolic_sizes import SizeVariable, SymInt, size_variables
from dualflow.graph.ir import Node
from dualflow.graph.options import CompileOptions
from dualflow.schedule.memory_bounds import MemoryBounds
from dualflow.schedule.operands import CallKind
from dualflow.schedule.planned import Plan
from dualflow.schedule.statements import CallRoutine, Statement, statements

if TYPE_CHECKING:
    from dualflow.backends.llvm.runtime.checked_memory import Workspace


class ProgramPart(NamedTuple):
    """A run of statements: one host call, or an entry, which is called with the integers from ``at`` on."""

    entry: str | None
    at: int = 0
    host: CallRoutine | None = None


class Program(NamedTuple):
    """The code of a graph and what it needs at run time.

    Attributes:
        sources: LLVM IR, different modules: kernels, routines, the entries' own, the driver of steps.
        parts: what to call, in order.
        params: the integers that the code reads; see ``runtime/steps.ll`` for the first of them.
        functions: the places among them of functions' addresses, with their names.
        addresses: what sources call beside each other and C's functions.
        messages: what each check number means, with the node it belongs to.
        products: how many different functions multiply matrices.
        arena_bytes: the size of the arena, workspaces included.
        kernels: the loop nests, for readers.
        parallel: whether some loop is long enough to share between threads.
        heavy: whether a call is long enough, or may be, to let other Python threads run meanwhile.
        output_shapes: for each output the places of its sizes among the parameters, where runs tell sizes.
        whole: the entry that takes numbers and memory of each call itself; None for a program that knows its
            sizes, and where the caller has to tell sizes or to learn them.
        variable_places: the place of each size variable in the table of integers.
        given: the places of the sizes that calls give axes of inputs.
        rooms: the buffers whose memory the code takes itself, with the places of their bytes.
        steps: the steps, in the order of their places among the parameters.
        workspace: scratch memory, where memory is checked.
    """

    sources: tuple[IrSource, ...]
    parts: tuple[ProgramPart, ...]
    params: tuple[int, ...]
    functions: Mapping[int, str]
    addresses: Mapping[str, int]
    messages: tuple[tuple[str | CheckValues, Node], ...]
    products: int
    arena_bytes: int
    kernels: tuple[EmittedKernel, ...]
    parallel: bool
    heavy: bool
    output_shapes: tuple[tuple[int, ...], ...]
    whole: str | None
    variable_places: Mapping[SizeVariable, int]
    given: Mapping[tuple[int, int], int]
    rooms: Mapping[int, int]
    steps: tuple[StepRecord, ...]
    workspace: Workspace | None


def write(plan: Plan, options: CompileOptions, begin: Callable[[IrSource], None] = lambda _: None) -> Program:
    """The program of ``plan``; ``begin`` is told sources as they are written, some of them more than once."""
    module = LlvmModule(vector_bits(options))
    program = statements(plan)
    bounds = MemoryBounds(plan, program)
    if not plan.sized:  # which compares where it runs what it can't decide before
        bounds.check(program)
    unit = Unit(
        plan,
        threads.num_slots(options.capabilities.threads),
        options.memory,
        module,
        bounds,
        begin,
        sized=plan.sized,
    )
    if switches.checked_side():
        unit.workspace = imported("dualflow.backends.llvm.runtime.checked_memory").Workspace()
    if any(call.kind is not CallKind.HOST for call in plan.calls):
        begin(driver())
    parts = _parts(unit, program)
    shapes = [tuple([_place(unit, d) for d in spec.shape]) for spec in plan.outputs] if plan.sized else []
    whole = None
    if plan.sized:
        write_setters(unit)
        whole = _whole(unit, parts)
    return Program(
        sources=tuple(_sources(unit, [part.entry for part in parts if part.entry is not None], whole)),
        parts=tuple(parts),
        params=tuple([0 if isinstance(x, SymInt) else x for x in unit.params]),
        output_shapes=tuple(shapes),
        whole=whole,
        variable_places=dict(unit.variable_places),
        given=dict(unit.given),
        rooms=dict(unit.rooms),
        steps=tuple(unit.steps),
        workspace=unit.workspace,
        messages=tuple(unit.messages),
        functions={place: source.name for place, source in unit.functions.items()},
        addresses=dict(unit.addresses),
        products=len({unit.functions[place] for place in unit.products}),
        arena_bytes=plan.arena_bytes + _workspace_bytes(unit),
        kernels=tuple(unit.kernels),
        parallel=unit.parallel,
        heavy=unit.work_ns > unit.costs.long_call_ns or unit.asks or unit.module.has(interrupts.ROUTINE),
    )


def _sources(unit: Unit, entries: Sequence[str], whole: str | None) -> list[IrSource]:
    """All modules, each once; calls are resolved whatever their order."""
    found = dict.fromkeys(unit.functions.values())
    if entries:
        found[driver()] = None
    own = [name for name in (*entries, whole) if name is not None and name != WALK]
    if own:
        found[IrSource(unit.module.text(), tuple(own))] = None
    return list(found)


def _whole(unit: Unit, parts: Sequence[ProgramPart]) -> str | None:
    """The entry for calls from machine code, which make the outputs and read no values of checks."""
    told = unit.given or any(size_variables(tuple(spec.shape)) for spec in unit.plan.outputs)
    kept = any(isinstance(message, CheckValues) for message, _ in unit.messages)
    if told or kept or len(parts) != 1 or parts[0].entry is None:
        return None
    return write_whole(unit, parts[0].entry)


def _workspace_bytes(unit: Unit) -> int:
    """The bytes of scratch memory behind the arena's values."""
    if unit.sized:
        return 0
    return unit.workspace_bytes if unit.workspace is None else unit.workspace.nbytes


def _place(unit: Unit, size: int | None) -> int:
    """The place of a size among the parameters."""
    assert size is not None, "no size is open"
    return unit.param(size)


def _parts(unit: Unit, program: Sequence[Statement]) -> list[ProgramPart]:
    """Runs of native calls as entries, and the host calls between them."""
    parts: list[ProgramPart] = []
    run: list[Statement] = []

    def flush() -> None:
        if run:
            name = f"entry{len(parts)}"
            entry = write_entry(unit, name, run)
            steps_only = entry.function is None
            parts.append(ProgramPart(WALK, entry.first or 0) if steps_only else ProgramPart(name))
            run.clear()

    for statement in program:
        if isinstance(statement, CallRoutine) and statement.kind is CallKind.HOST:
            flush()
            parts.append(ProgramPart(None, host=statement))
        else:
            run.append(statement)
    flush()
    return parts
