"""Lowers a plan's statements to a program: a kernel for each loop nest, and an entry that calls them.

    void entry(ptr buffers, ptr params, ptr status)

Kernels are modules of LLVM IR, which don't depend on sizes; they read sizes from the parameter table
``params``. The entry is the driver of steps; with conditionals, loops or dynamic sizes it is a function of
another module. A plan with host calls has an entry for each native part between them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from dualflow.backends.llvm.capabilities import vector_bits
from dualflow.backends.llvm.check_values import CheckValues
from dualflow.backends.llvm.entry import Unit
from dualflow.backends.llvm.entry_control import write_entry
from dualflow.backends.llvm.launches import EmittedKernel, LaunchEmitter
from dualflow.backends.llvm.program_image import ProgramImage, ProgramPart
from dualflow.backends.llvm.runtime import interrupts, threads
from dualflow.backends.llvm.runtime.ir_source import IrSource
from dualflow.backends.llvm.scratch_memory import ScratchAllocator
from dualflow.backends.llvm.steps import COMPUTE_SIZES, RUN_STEPS, StepRecord, driver
from dualflow.backends.llvm.text import LlvmModule
from dualflow.backends.runtime import switches
from dualflow.core.locks import imported
from dualflow.core.records import NamedTuple
from dualflow.core.spec import TensorSpec
from dualflow.graph.ir import Node
from dualflow.graph.options import CompileOptions
from dualflow.graph.symbolic_size_ops import (
    GUARD_SIZES,
    REQUIRE_SIZE,
    Axis,
    binds_or_checks_size,
    is_argument_size,
)
from dualflow.ops.op_kinds import CollectiveCall
from dualflow.schedule.memory_bounds import MemoryBounds
from dualflow.schedule.operands import CallKind
from dualflow.schedule.planned import Plan, symbolic_shapes
from dualflow.schedule.program_statements import (
    CallRoutine,
    Multiply,
    RunTasks,
    Statement,
    statements,
    walk_program,
)
from dualflow.sizes.size_scalars import SizeScalar
from dualflow.sizes.symbolic_sizes import SymInt, size_variables, variable_of

if TYPE_CHECKING:
    from dualflow.backends.llvm.argument_sizes import ArgumentSizes
    from dualflow.backends.llvm.interval_clock import IntervalClock
    from dualflow.backends.llvm.runtime.checked_memory import Workspace

_BY_SIZES: Final = frozenset({SymInt, SizeScalar})
"""The types of parameters that a call computes from sizes."""


class Program(NamedTuple):
    """The code of a graph, and its run-time data.

    Attributes:
        image: what calls read.
        sources: the modules of LLVM IR: kernels, routines, entries that are functions, the driver of steps.
        addresses: the external symbols of the sources, besides functions of C.
        messages: the error message and the node of each check, by number.
        kernels: the loop nests, for listings.
        steps: the records of the steps, in the order of the parameter table.
        workspace: scratch memory in the checked mode.
        depends_on_memory: whether parameters besides :attr:`ProgramImage.memory_params` depend on the memory
            of the process.
    """

    image: ProgramImage
    sources: tuple[IrSource, ...]
    addresses: Mapping[str, int]
    messages: tuple[tuple[str | CheckValues, Node], ...]
    kernels: tuple[EmittedKernel, ...]
    steps: tuple[StepRecord, ...]
    workspace: Workspace | None
    depends_on_memory: bool


def write(
    plan: Plan,
    options: CompileOptions,
    begin: Callable[[IrSource], None] = lambda _: None,
    clock: IntervalClock | None = None,
) -> Program:
    """The program of ``plan``.

    Args:
        plan: the plan.
        options: the compile options.
        begin: called with each emitted source, so that it is compiled early.
        clock: times the steps of each call; None for a program without a clock.
    """
    every_statement = statements(plan)
    program, size_checks = _split_size_checks(plan, every_statement)
    if options.checking:
        imported("dualflow.schedule.race_check").require_no_races(program, plan.workspace)
    unit = _unit(plan, MemoryBounds(plan, every_statement), options, begin, clock)
    if not plan.has_dynamic_sizes:  # which compares where it runs what it can't decide before
        unit.range_checks += unit.memory_bounds.check(program)
    _begin_routines(unit, program)
    parts = _parts(unit, program)
    sized = _write_sizes(unit, parts, size_checks)
    entries = [part.entry for part in parts if part.entry is not None]
    return Program(
        image=_image(unit, program, parts, sized),
        sources=tuple(_sources(unit, entries, sized.standalone)),
        addresses=dict(unit.addresses),
        messages=tuple(unit.messages),
        kernels=tuple(unit.kernels),
        steps=tuple(unit.steps),
        workspace=unit.scratch.checked,
        depends_on_memory=unit.depends_on_memory,
    )


def _begin_routines(unit: Unit, program: Sequence[Statement]) -> None:
    """Start to compile the routines of all products, so that LLVM has work before the kernels are written."""
    for statement in walk_program(program):
        if isinstance(statement, Multiply):
            called = imported("dualflow.backends.llvm.product_calls").called_routines
            for source in called(statement, unit.threads):
                unit.compile_in_background(source)


class _SizeChecks(NamedTuple):
    """The nodes that compare sizes of arguments, which size code does before a call.

    Attributes:
        required: without their comparison the call fails.
        guards: unless their comparison has its outcome, another program serves the call.
        distinct: their sizes differ from each other, unless another program serves the call.
    """

    required: Sequence[Node] = ()
    guards: Sequence[Node] = ()
    distinct: Sequence[Node] = ()


def _split_size_checks(plan: Plan, program: Sequence[Statement]) -> tuple[tuple[Statement, ...], _SizeChecks]:
    """The statements that run, and the nodes that size code replaces."""
    if not plan.argument_sizes:
        # no C fast call calls a program that reads sizes while it runs, and others have compared guards
        return tuple([s for s in program if s.node.op is not GUARD_SIZES]), _SizeChecks()
    size_checks = _SizeChecks(
        required=[s.node for s in program if s.node.op is REQUIRE_SIZE],
        guards=[s.node for s in program if s.node.op is GUARD_SIZES],
        distinct=[s.node for s in program if is_argument_size(s.node) and s.node.attrs.get("distinct")],
    )
    return tuple([s for s in program if not binds_or_checks_size(s.node)]), size_checks


def _unit(
    plan: Plan,
    bounds: MemoryBounds,
    options: CompileOptions,
    begin: Callable[[IrSource], None],
    clock: IntervalClock | None,
) -> Unit:
    """The unit of compilation, to which no statement is written yet."""
    module = LlvmModule(vector_bits(options))
    unit = Unit(
        plan,
        threads.num_thread_indices(options.capabilities.threads),
        options.memory,
        module,
        bounds,
        begin,
        LaunchEmitter(plan, module.vector_bits),
        ScratchAllocator(plan),
        clock=clock,
    )
    if switches.checked_side():
        unit.scratch.checked = imported("dualflow.backends.llvm.runtime.checked_memory").Workspace()
    return unit


class _Sized(NamedTuple):
    """What follows from sizes that are known only at run time.

    Attributes:
        arena_bytes: the size of the arena, an expression.
        arena_param: the index of the parameter with it; None unless size code computes it.
        output_shapes: for each output, the indices of the parameters with its sizes.
        temporary_shapes: the same for temporaries.
        code: the size code; None if no size is that of an argument.
        standalone: the name of the standalone entry; None for none.
    """

    arena_bytes: int
    arena_param: int | None
    output_shapes: tuple[tuple[int, ...], ...]
    temporary_shapes: tuple[tuple[int, ...], ...]
    code: np.ndarray[tuple[int], np.dtype[np.int64]] | None
    standalone: str | None


def _write_sizes(unit: Unit, parts: Sequence[ProgramPart], size_checks: _SizeChecks) -> _Sized:
    """Append the parameters of sizes to the table, and write what computes them: size code, or setters."""
    plan = unit.plan
    arena_bytes = plan.arena_bytes + unit.scratch.bytes_in_arena
    argument_sizes = _argument_sizes(unit, size_checks) if plan.argument_sizes else None
    has_outputs = plan.has_dynamic_sizes or plan.argument_sizes
    output_shapes = [_size_indices(unit, spec) for spec in plan.outputs if has_outputs]
    temporary_shapes = [_size_indices(unit, spec) for spec in plan.temporaries if plan.argument_sizes]
    arena_param = code = standalone = None
    if argument_sizes is not None:
        arena_param = unit.table.append(arena_bytes)
        write_size_code = imported("dualflow.backends.llvm.argument_sizes").write_size_code
        code = write_size_code(unit, argument_sizes, symbolic_shapes(plan), arena_bytes).array()
    if plan.has_dynamic_sizes:
        imported("dualflow.backends.llvm.size_binding").write_setters(unit)
        standalone = _standalone(unit, parts)
    return _Sized(arena_bytes, arena_param, tuple(output_shapes), tuple(temporary_shapes), code, standalone)


def _argument_sizes(unit: Unit, size_checks: _SizeChecks) -> ArgumentSizes:
    """The comparisons of sizes of arguments; appends the parameters that a call stores these sizes in."""
    table, equal = unit.table, []
    for variable, axes in unit.plan.argument_sizes.items():
        table.input_sizes[axes[0]] = table.size_param(variable)
        equal += [(table.input_sizes[axes[0]], table.input_size_param(axis)) for axis in axes[1:]]
    equal_to = [(table.input_size_param(axis), size) for axis, size in _computed_sizes(unit.plan)]
    distinct = [table.input_sizes[node.attrs["argument_axes"][0]] for node in size_checks.distinct]
    different = list(itertools.combinations(distinct, 2))
    sizes: ArgumentSizes = imported("dualflow.backends.llvm.argument_sizes").ArgumentSizes(
        equal, different, equal_to, size_checks.guards, size_checks.required
    )
    return sizes


def _image(
    unit: Unit, program: Sequence[Statement], parts: Sequence[ProgramPart], sized: _Sized
) -> ProgramImage:
    """What calls read of the program."""
    plan, table = unit.plan, unit.table
    return ProgramImage(
        inputs=plan.inputs,
        constants=plan.constants,
        outputs=plan.outputs,
        temporaries=plan.temporaries,
        table_size=plan.workspace + 1,
        computes_sizes=plan.has_dynamic_sizes,
        sized_by_arguments=bool(plan.argument_sizes),
        parts=tuple(parts),
        params=np.array([0 if type(x) in _BY_SIZES else x for x in table.params], np.int64),
        functions={index: source.name for index, source in table.functions.items()},
        arena_bytes=sized.arena_bytes,
        arena_param=sized.arena_param,
        size_function=None if sized.code is None else COMPUTE_SIZES,
        size_code=sized.code,
        heavy=_is_heavy(unit),
        output_shapes=sized.output_shapes,
        temporary_shapes=sized.temporary_shapes,
        standalone=sized.standalone,
        size_params=dict(table.size_params),
        input_sizes=dict(table.input_sizes),
        block_sizes=dict(table.block_sizes),
        memory_params=dict(unit.memory_params),
        uses_pool=unit.parallel,
        collectives=any(isinstance(node.op.kind, CollectiveCall) for _, node in unit.messages),
        records_collectives=unit.records_collectives,
        kernels=len(unit.kernels),
        products=len({table.functions[index] for index in unit.routines}),
        tasks=sum(len(s.tasks) for s in walk_program(program) if isinstance(s, RunTasks)),
    )


def _is_heavy(unit: Unit) -> bool:
    """Whether a call is, or may be, so long that it releases the GIL; also if it waits for workers."""
    is_long = unit.work_ns > unit.costs.long_call_ns
    return is_long or unit.polls_signals or unit.waits or unit.module.has(interrupts.ROUTINE)


def _computed_sizes(plan: Plan) -> Iterator[tuple[Axis, int]]:
    """The axes of arguments whose sizes are computed from those of others, as in a backward graph."""
    for place, spec in enumerate(plan.arguments):
        for axis, size in enumerate(spec.shape):
            if isinstance(size, SymInt) and variable_of(size) is None:
                yield (place, axis), size


def _sources(unit: Unit, entries: Sequence[str], standalone: str | None) -> list[IrSource]:
    """The modules of a program, without duplicates."""
    sources = dict.fromkeys(unit.table.functions.values())
    if entries or unit.plan.argument_sizes:
        sources[driver()] = None
    functions = [name for name in (*entries, standalone) if name is not None and name != RUN_STEPS]
    if functions:
        sources[IrSource(unit.module.text(), tuple(functions))] = None
    return list(sources)


def _standalone(unit: Unit, parts: Sequence[ProgramPart]) -> str | None:
    """The standalone entry, if callers need not set sizes or read sizes of outputs and values of checks."""
    has_size_arguments = unit.table.input_sizes or any(
        size_variables(tuple(spec.shape)) for spec in unit.plan.outputs
    )
    stores_values = any(isinstance(message, CheckValues) for message, _ in unit.messages)
    if has_size_arguments or stores_values or len(parts) != 1 or parts[0].entry is None:
        return None
    name: str = imported("dualflow.backends.llvm.size_binding").write_standalone(unit, parts[0].entry)
    return name


def _size_indices(unit: Unit, spec: TensorSpec) -> tuple[int, ...]:
    """The parameter indices of the sizes of a tensor; a size that a host call computes is 0."""
    return tuple([unit.table.append(0 if size is None else size) for size in spec.shape])


def _parts(unit: Unit, program: Sequence[Statement]) -> list[ProgramPart]:
    """The program's parts: sequences of native statements as entries, and the host calls between them."""
    parts: list[ProgramPart] = []
    native: list[Statement] = []

    def flush() -> None:
        if native:
            name = f"entry{len(parts)}"
            entry = write_entry(unit, name, native)
            steps_only = entry.function is None
            parts.append(ProgramPart(RUN_STEPS, entry.first_list or 0) if steps_only else ProgramPart(name))
            native.clear()

    for statement in program:
        if isinstance(statement, CallRoutine) and statement.kind is CallKind.HOST:
            flush()
            parts.append(ProgramPart(None, host=statement))
        else:
            native.append(statement)
    flush()
    return parts
