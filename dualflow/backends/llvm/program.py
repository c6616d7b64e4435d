"""A plan becomes one module of LLVM IR: a kernel for each loop nest, and an entry that calls them in order.

    void entry(ptr buffers, ptr params, ptr status)

The text is the same for all sizes; the integers it reads from ``params`` are listed beside it. A plan with
host calls has an entry for each native part between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dualflow.backends.llvm.check_values import CheckValues
from dualflow.backends.llvm.entry import EmittedKernel, Unit
from dualflow.backends.llvm.entry_control import write_calls
from dualflow.backends.llvm.run_time_sizes import write_setters, write_whole
from dualflow.backends.llvm.runtime import interrupts, target, threads
from dualflow.backends.llvm.text import LlvmModule
from dualflow.core.extent import Atom, Extent, symbols
from dualflow.graph.ir import Node
from dualflow.graph.options import CompileOptions
from dualflow.schedule.operands import CallKind
from dualflow.schedule.plan import Plan, PlannedCall

LONG_CALL_NS = 20_000
"""Nanoseconds of work from which on a call lets other Python threads run meanwhile."""


class ProgramPart(NamedTuple):
    """A run of the plan: an entry of the module, or one host call."""

    entry: str | None
    host: PlannedCall | None = None


class Program(NamedTuple):
    """The emitted module and what it needs at run time.

    Attributes:
        text: LLVM IR.
        parts: what to call, in order.
        params: the integers that the code reads; the first is the address of the thread pool, the second that
            of its parallel for (0 and 0 where no loop is long enough to share).
        messages: what each check number means, with the node it belongs to.
        routines: what the text calls to multiply matrices.
        arena_bytes: the size of the arena, workspaces included.
        kernels: the loop nests, for readers.
        parallel: whether some loop is long enough to share between threads.
        heavy: whether a call is long enough, or may be, to let other Python threads run meanwhile.
        output_shapes: for each output the places of its sizes among the parameters, where runs tell sizes.
        whole: the entry that takes numbers and memory of each call itself; None for a program that knows its
            sizes, and where the caller has to tell sizes or to learn them.
        symbols: the places of the numbers that runs give symbols.
        given: the places of the sizes that calls give axes of inputs.
        rooms: the buffers whose memory the code takes itself.
    """

    text: str
    parts: tuple[ProgramPart, ...]
    params: tuple[int, ...]
    messages: tuple[tuple[str | CheckValues, Node], ...]
    routines: tuple[str, ...]
    arena_bytes: int
    kernels: tuple[EmittedKernel, ...]
    parallel: bool
    heavy: bool
    output_shapes: tuple[tuple[int, ...], ...]
    whole: str | None
    symbols: Mapping[Atom, int]
    given: Mapping[tuple[int, int], int]
    rooms: tuple[int, ...]


def write(plan: Plan, options: CompileOptions) -> Program:
    """The program of ``plan``."""
    module = LlvmModule(options.vector_bits or target.vector_bits())
    unit = Unit(plan, threads.seats(options.threads), options.memory, module, sized=plan.sized)
    parts = _parts(unit)
    shapes = [tuple([_place(unit, d) for d in spec.shape]) for spec in plan.outputs] if plan.sized else []
    whole = None
    if plan.sized:
        write_setters(unit)
        whole = _whole(unit, parts)
    return Program(
        text=unit.module.text(),
        parts=tuple(parts),
        params=tuple([0 if isinstance(x, Extent) else x for x in unit.code.params]),
        output_shapes=tuple(shapes),
        whole=whole,
        symbols=dict(unit.symbols),
        given=dict(unit.given),
        rooms=tuple(unit.rooms),
        messages=tuple(unit.code.messages),
        routines=tuple(dict.fromkeys(unit.routines)),
        arena_bytes=plan.arena_bytes + (0 if plan.sized else unit.workspace_bytes),
        kernels=tuple(unit.kernels),
        parallel=unit.parallel,
        heavy=unit.work_ns > LONG_CALL_NS or unit.module.has(interrupts.ROUTINE),
    )


def _whole(unit: Unit, parts: Sequence[ProgramPart]) -> str | None:
    """The entry for calls from machine code, which make the outputs and read no values of checks."""
    told = unit.given or any(symbols(tuple(spec.shape)) for spec in unit.plan.outputs)
    kept = any(isinstance(message, CheckValues) for message, _ in unit.code.messages)
    if told or kept or len(parts) != 1 or parts[0].entry is None:
        return None
    return write_whole(unit, parts[0].entry)


def _place(unit: Unit, size: int | None) -> int:
    """The place of a size among the parameters."""
    assert size is not None, "no size is open"
    return unit.param(size)


def _parts(unit: Unit) -> list[ProgramPart]:
    """Runs of native calls as entries, and the host calls between them."""
    parts: list[ProgramPart] = []
    run: list[PlannedCall] = []

    def flush() -> None:
        if run:
            name = f"entry{len(parts)}"
            write_calls(unit, name, run)
            parts.append(ProgramPart(name))
            run.clear()

    for call in unit.plan.calls:
        if call.kind is CallKind.HOST:
            flush()
            parts.append(ProgramPart(None, call))
        else:
            run.append(call)
    flush()
    return parts
