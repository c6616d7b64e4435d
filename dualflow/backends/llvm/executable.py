"""A graph that runs: machine code, its tables, and the calls between native parts.

The code is shared: graphs that differ only in sizes have one text, so one library in this process and one
object on disk. What differs is a table of integers.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from dualflow.backends.llvm.capabilities import capabilities
from dualflow.backends.llvm.check_values import CheckValues
from dualflow.backends.llvm.host_step import HostStep
from dualflow.backends.llvm.program import Program, write
from dualflow.backends.llvm.runtime import interrupts, jit, threads
from dualflow.backends.llvm.runtime.call_memory import CallMemory, aligned_bytes
from dualflow.backends.llvm.runtime.source import IrSource
from dualflow.backends.llvm.sized_call import SizedCall
from dualflow.backends.llvm.steps import PFOR, POOL
from dualflow.backends.runtime import switches
from dualflow.core.locks import imported, unforkable
from dualflow.core.memory_errors import out_of_memory
from dualflow.core.records import NamedTuple
from dualflow.core.spans import span
from dualflow.core.symbolic_sizes import bind_sizes
from dualflow.graph.compiled import PartKind, PartReport, counted
from dualflow.graph.effect_log import EffectLog, Halted
from dualflow.graph.ir import Graph, Node
from dualflow.graph.options import CompileOptions
from dualflow.graph.run_time_sizes import REQUIRE_SIZE
from dualflow.schedule.call_reports import OutOfMemory, check_error, host_report, ops_of, user_line
from dualflow.schedule.host_fallback import with_host_fallbacks
from dualflow.schedule.plan import plan
from dualflow.schedule.planned import Plan

Array = np.ndarray[Any, Any]
KEPT_ARENA = 64 << 20
"""An arena of up to so many bytes is kept between calls: the system need not zero its pages again."""

_ENTRY = (None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_light = ctypes.PYFUNCTYPE(*_ENTRY)
heavy_call = ctypes.CFUNCTYPE(*_ENTRY)
"""An entry by its address, as a function that lets other threads run meanwhile."""
_libraries: weakref.WeakValueDictionary[IrSource, jit.Library] = weakref.WeakValueDictionary()


class NativePart(NamedTuple):
    """A native part: its entry, and the byte of the table of integers that it is called with."""

    call: Callable[..., Any]
    offset: int


def planned(graph: Graph, options: CompileOptions) -> Plan:
    """The plan of an executable of ``graph``, where loops and conditions around host calls are host calls."""
    own, separate = options.capabilities & capabilities(), bool(switches.checked_side())
    return plan(with_host_fallbacks(graph), own, separate=separate, costs=options.cost_model)


class Executable:
    """A compiled graph.

    Attributes:
        graph: what it computes, after all passes.
        options: what it is compiled for.
        plan: where values live.
        program: the code before compilation, and its parameters.
        libraries: the machine code.
        made: that of it which this process did not have already; None if it had all.
    """

    __slots__ = (
        "__weakref__",
        "_arenas",
        "_call_memory",
        "_calls",
        "_fresh",
        "_functions",
        "_params",
        "graph",
        "libraries",
        "made",
        "options",
        "plan",
        "program",
    )

    def __init__(self, graph: Graph, options: CompileOptions) -> None:
        self.graph = graph
        self.options = options
        self.plan: Plan = planned(graph, options)
        with jit.BackgroundCompilation() as background:

            def begin(source: IrSource) -> None:
                if source not in _libraries:
                    background.begin(source)

            self.program: Program = write(self.plan, options, begin)
            found, self.made = _libraries_of(self.program, background)
        self.libraries = tuple(dict.fromkeys(found[source] for source in self.program.sources))
        self._functions = {
            name: library.address(name) for source, library in found.items() for name in source.exports
        }
        self._params = np.array(self.program.params, np.int64)
        if self.program.parallel:
            pool = threads.pool()
            self._params[POOL], self._params[PFOR] = pool.address, pool.pfor
        for place, name in self.program.functions.items():
            self._params[place] = self._functions[name]
        prototype = heavy_call if self.program.heavy else _light
        self._calls: list[NativePart | HostStep] = [
            HostStep.of(part.host)
            if part.host is not None
            else NativePart(prototype(self.entry(part.entry or "")), part.at * self._params.itemsize)
            for part in self.program.parts
        ]
        self._arenas: list[Array] = []
        self._call_memory: CallMemory | None = None
        self._fresh = tuple(_fresh(self.plan, self._calls))

    @property
    def reused(self) -> bool:
        """Whether this process had all of the machine code already."""
        return self.made is None

    def entry(self, name: str) -> int:
        """The address of a native part."""
        return self._functions[name]

    def call_memory(self) -> CallMemory:
        """The arena of built-in calls. Other calls keep none between them once there is one."""
        if self._call_memory is None:
            self._call_memory = CallMemory(self.program.arena_bytes)
            self._arenas.clear()
        return self._call_memory

    @property
    def params(self) -> Array:
        """The table of integers that the code reads."""
        return self._params

    @property
    def parts(self) -> tuple[PartReport, ...]:
        """How each part of the graph runs."""
        return tuple(_reports(self.program, self.libraries))

    def run(self, arrays: Sequence[Array], effect_log: EffectLog | None = None) -> list[Array]:
        """The graph's outputs.

        Args:
            arrays: one for each input of the graph, C-contiguous, of the input's dtype and shape. Those
                of updated variables are written to.
            effect_log: learns what runs outside of machine code, and what ended the call if it fails. What
                came too late for that is for the caller to raise.

        Raises:
            InvalidArgumentError: a check inside the graph failed.
            Halted: the same, where an effect log makes the error.
            ResourceExhaustedError: there is no memory for the outputs, or for what is computed on the way.

        Whatever is raised, no variable has been written to.
        """
        layout = self.plan
        if layout.sized:
            return self._run_sized(arrays, effect_log)
        buffers: list[Array] = [*arrays, *layout.constants]
        try:
            buffers += [self.empty(shape, dtype) for shape, dtype in self._fresh]
            arena = self._take_arena()
        except (MemoryError, ValueError) as error:  # the latter for more than an address can tell
            raise out_of_memory(self.graph.name, error) from None
        buffers.append(arena)
        table: Array | None = None
        for call in self._calls:
            if isinstance(call, HostStep):
                if effect_log is not None:
                    effect_log.node = call.node
                    effect_log.end()
                with span("host", call.node.op.name, call.node.origin):
                    self.host(call, buffers, effect_log)
                if table is not None:
                    for made in call.made:
                        table[made.buffer] = address_of(buffers[made.buffer])
                continue
            if table is None:
                table, status = np.array([address_of(b) for b in buffers], np.uintp), np.zeros(1, np.int64)
                addresses = [address_of(a) for a in (table, self._params, status)]
            with span("native", self.graph.name):
                self.enter(call, addresses, status, effect_log)
        self._give_arena(arena)
        return buffers[layout.first_output : layout.first_temporary]

    def _run_sized(self, arrays: Sequence[Array], effect_log: EffectLog | None) -> list[Array]:
        """The outputs of a program that learns sizes: it has numbers and memory of each call."""
        layout = self.plan
        try:
            call = self.sized_call(self._params.copy(), arrays)
        except (MemoryError, ValueError) as error:
            raise out_of_memory(self.graph.name, error) from None
        status = np.zeros(1, np.int64)
        addresses = [address_of(a) for a in (call.table, call.params, status)]
        try:
            for part in self._calls:
                if isinstance(part, HostStep):
                    if effect_log is not None:
                        effect_log.node = part.node
                        effect_log.end()
                    with span("host", part.node.op.name, part.node.origin):
                        call.host(part.call, effect_log)
                else:
                    with span("native", self.graph.name):
                        self.enter(part, addresses, status, effect_log, call.params)
            return [self._output(call, i) for i in range(len(layout.outputs))]
        finally:
            call.release()
            self._give_arena(call.arena)

    def _output(self, call: SizedCall, number: int) -> Array:
        """An output of a call that learns sizes."""
        try:
            return call.output(number)
        except (MemoryError, ValueError) as error:
            node = self.graph.results[number].node
            assert node is not None, "inputs of a graph have memory"
            raise out_of_memory(ops_of(node) or self.graph.name, error, user_line(node)) from None

    def launch(self, call: Callable[..., Any], arrays: Sequence[Array], result: Array, params: Array) -> None:
        """Run a native part that has inputs and one output, with integers of the caller.

        Raises:
            InvalidArgumentError: a check inside it failed.
        """
        table, status = np.array([address_of(a) for a in (*arrays, result)], np.uintp), np.zeros(1, np.int64)
        call(*[address_of(a) for a in (table, params, status)])
        if status[0]:
            raise self.failure(int(status[0]))

    def empty(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        """Memory of an output or an intermediate."""
        return np.empty(shape, dtype)

    def host(self, step: HostStep, buffers: list[Array], effect_log: EffectLog | None) -> None:
        """Run a node's own kernel; its results become the buffers of their places."""
        step.run(buffers, effect_log)

    def sized_call(self, params: Array, arrays: Sequence[Array]) -> SizedCall:
        """A call of a program that learns sizes."""
        return SizedCall(self.plan, self.program, params, arrays, self._take_arena())

    def failure(self, number: int, params: Array | None = None) -> Exception:
        """The error for a check that failed, naming the op and the user's line; ``params`` are the call's."""
        message, node = self.program.messages[number - 1]
        if isinstance(message, CheckValues):
            kept = self._params if params is None else params
            made: Exception = node.attrs["error"](message.arrays(node, kept))
            return made
        if node.op is REQUIRE_SIZE:
            numbers = self._params if params is None else params
            known = {
                variable: int(numbers[place]) for variable, place in self.program.variable_places.items()
            }
            message = message.format(*bind_sizes(node.attrs["shapes"], known))
        return check_error(node, message)

    def failing(self, number: int) -> Node:
        """The node that left ``number`` in the status; the outermost loop where a signal ended one."""
        return self.program.messages[abs(number) - 1][1]

    def enter(
        self,
        part: NativePart,
        addresses: Sequence[int],
        status: Array,
        effect_log: EffectLog | None,
        params: Array | None = None,
    ) -> None:
        """Run a native part by the addresses of its tables.

        Where a signal's handler raised, ctypes finds that error in the way.
        """
        if effect_log is not None:
            effect_log.node = None
        table, integers, noted = addresses
        call, addresses = part.call, (table, integers + part.offset, noted)
        try:
            call(*addresses)
        except SystemError as error:
            if status[0] >= 0 or error.__cause__ is None:
                raise
            if effect_log is not None:
                effect_log.node = self.failing(int(status[0]))
            raise error.__cause__ from None
        except BaseException as error:  # of a signal's handler: Python looks for signals after the call
            if effect_log is None:
                raise
            effect_log.late = error
        if status[0]:
            number = int(status[0])
            if effect_log is None:
                raise self.failure(number, params)
            effect_log.node, effect_log.make = self.failing(number), partial(self.failure, number, params)
            effect_log.of_memory = isinstance(self.program.messages[number - 1][0], OutOfMemory)
            raise Halted

    def _take_arena(self) -> Array:
        try:
            return self._arenas.pop()
        except IndexError:
            return aligned_bytes(self.program.arena_bytes)

    def _give_arena(self, arena: Array) -> None:
        if arena.nbytes <= KEPT_ARENA and not self._arenas and self._call_memory is None:
            self._arenas.append(arena)


def _libraries_of(
    program: Program, background: jit.BackgroundCompilation
) -> tuple[dict[IrSource, jit.Library], jit.Library | None]:
    """The machine code of each of a program's sources, and what of it has been made for that."""
    made = None
    with unforkable():
        found = {source: library for source in program.sources if (library := _libraries.get(source))}
        missing = [source for source in program.sources if source not in found]
        if missing:
            symbols = {**interrupts.addresses(), **program.addresses}
            if switches.checked_side():
                symbols |= imported("dualflow.backends.llvm.runtime.checked_memory").symbols()
            symbols |= {name: library.address(name) for s, library in found.items() for name in s.exports}
            made = jit.compile_sources(missing, symbols, background)
            found |= dict.fromkeys(missing, made)
            _libraries.update(dict.fromkeys(missing, made))
        return found, made


def _fresh(
    layout: Plan, calls: Sequence[NativePart | HostStep]
) -> Iterator[tuple[tuple[int, ...], np.dtype[Any]]]:
    """Shapes and dtypes of the outputs and temporaries of a call; nothing where a host call puts its own."""
    by_host = {made.buffer for call in calls if isinstance(call, HostStep) for made in call.made}
    for place, spec in enumerate((*layout.outputs, *layout.temporaries), start=layout.first_output):
        shape = (0,) if place in by_host or layout.sized else tuple([d or 0 for d in spec.shape])
        yield shape, spec.dtype.dtype


def address_of(array: Array) -> int:
    found: int = array.__array_interface__["data"][0]
    return found


def _reports(program: Program, libraries: Sequence[jit.Library]) -> list[PartReport]:
    reports: list[PartReport] = []
    what = counted(len(program.kernels), "kernel")
    if program.products:
        what += f", {counted(program.products, 'matrix product routine')}"
    fallbacks = dict.fromkeys(library.fallback for library in libraries if library.fallback)
    fallback = f"LLVM's linker was needed: {', '.join(fallbacks)}" if fallbacks else ""
    for part in program.parts:
        if part.host is None:
            reports.append(PartReport(PartKind.NATIVE, what, fallback))
            continue
        reports.append(host_report(part.host.node))
    return reports
