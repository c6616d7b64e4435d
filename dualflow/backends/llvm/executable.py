"""A compiled graph: its machine code, its parameter table, and its calls."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from dualflow.backends.llvm.check_values import CheckValues
from dualflow.backends.llvm.linked_program import LinkedProgram, Lowered
from dualflow.backends.llvm.program_image import OTHER_SIZES, ProgramImage
from dualflow.backends.llvm.runtime import block_allocator
from dualflow.backends.llvm.runtime.call_memory import CallMemory, GrowingCallMemory, aligned_bytes
from dualflow.backends.llvm.steps import PFOR, POOL, SIZE_CODE
from dualflow.core.array_address import address_of
from dualflow.core.locks import imported
from dualflow.core.memory_errors import out_of_memory
from dualflow.core.records import NamedTuple
from dualflow.core.spans import WATCHED, span
from dualflow.graph.compiled import PartKind, PartReport, count_text
from dualflow.graph.effect_log import EffectLog, Halted
from dualflow.graph.ir import Graph, Node
from dualflow.graph.options import CompileOptions
from dualflow.graph.symbolic_size_ops import REQUIRE_SIZE
from dualflow.ops.op_kinds import CollectiveCall
from dualflow.schedule.call_reports import OutOfMemory, check_error, host_report, ops_of, user_line
from dualflow.sizes.symbolic_sizes import bind_sizes, is_static

if TYPE_CHECKING:
    from dualflow.backends.llvm.host_step import HostStep
    from dualflow.backends.llvm.program import Program
    from dualflow.backends.llvm.runtime.jit import Library
    from dualflow.backends.llvm.sized_call import SizedCall
    from dualflow.schedule.planned import Plan

Array = np.ndarray[Any, Any]
MAX_REUSED_ARENA = 64 << 20
"""The maximum size in bytes of an arena that is reused by later calls, to avoid page faults."""

BY_HOST = (0,)
"""The shape of the array for a result of a host call, before that call has computed it."""
_ENTRY = (None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_light = ctypes.PYFUNCTYPE(*_ENTRY)
heavy_call = ctypes.CFUNCTYPE(*_ENTRY)
"""The ctypes prototype of an entry that releases the GIL."""
_compute_sizes = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class NativePart(NamedTuple):
    """A native part: its entry, and the byte offset of its step list in the parameter table."""

    call: Callable[..., Any]
    offset: int


Calls = Sequence["NativePart | HostStep"]
NewArrays = tuple[tuple[tuple[int, ...], np.dtype[Any]], ...]
"""Shapes and dtypes of the outputs and temporaries of a call."""


class SizedProgram(NamedTuple):
    """A program for all sizes with the sizes of a call's arguments.

    Attributes:
        shapes: the shapes of the arguments.
        params: the parameter table; calls of these sizes share it.
        calls: the parts of the program.
        new_arrays: the arrays that a call allocates.
        arena_bytes: the size of the arena.
    """

    shapes: list[tuple[int, ...]]
    params: Array
    calls: Calls
    new_arrays: NewArrays
    arena_bytes: int


class Executable:
    """A compiled graph.

    Calls read its image alone. The graph after all passes, its plan and its program are for errors, reports
    and host calls: in an executable from the disk, they are computed at their first use.

    Args:
        linked: the program.
        options: the compile options.

    Attributes:
        inputs: the inputs of the graph.
        image: what calls read.
        libraries: the machine code.
        loaded: whether the program is from the disk.
        new_library: the library that was linked for this graph; None if the process had all code already.
        updates_in_place: whether :meth:`run` may write to the buffers of variables, which it does last.
    """

    __slots__ = (
        "__weakref__",
        "_arenas",
        "_call_memory",
        "_calls",
        "_functions",
        "_lower",
        "_new_arrays",
        "_params",
        "_size_function",
        "_sized",
        "image",
        "inputs",
        "libraries",
        "loaded",
        "new_library",
        "options",
        "updates_in_place",
    )

    def __init__(self, linked: LinkedProgram, options: CompileOptions) -> None:
        self.options = options
        self.inputs = linked.inputs
        self.image: ProgramImage = linked.image
        self.libraries, self.new_library = linked.libraries, linked.new_library
        self.loaded = linked.loaded
        self._functions, self._lower = linked.functions, linked.lower
        self._params = self.image.params.copy()
        if linked.pool is not None:
            self._params[POOL], self._params[PFOR] = linked.pool.address, linked.pool.pfor
        for index, name in self.image.functions.items():
            self._params[index] = self._functions[name]
        if self.image.size_code is not None:
            self._params[SIZE_CODE] = address_of(self.image.size_code)
        size_function = self.image.size_function
        self._size_function = None if size_function is None else _compute_sizes(self.entry(size_function))
        prototype = heavy_call if self.image.heavy else _light
        self._calls: Calls = [
            NativePart(prototype(self.entry(part.entry or "")), part.at * self._params.itemsize)
            if part.host is None
            else imported("dualflow.backends.llvm.host_step").HostStep.of(part.host)
            for part in self.image.parts
        ]
        self._arenas: list[Array] = []
        self._call_memory: CallMemory | GrowingCallMemory | None = None
        self._new_arrays = tuple(_new_arrays(self.image, self._calls))
        self._sized: SizedProgram | None = None
        self.updates_in_place = _updates_in_place(self)

    @property
    def lowered(self) -> Lowered:
        """The graph after all passes, its plan and its program."""
        return self._lower()

    @property
    def graph(self) -> Graph:
        """The graph, after all passes."""
        return self.lowered.graph

    @property
    def plan(self) -> Plan:
        """The memory layout of values, and the calls."""
        return self.lowered.plan

    @property
    def program(self) -> Program:
        """The code before compilation, and its parameters."""
        return self.lowered.program

    @property
    def reused(self) -> bool:
        """Whether all machine code was in this process already."""
        return self.new_library is None

    def entry(self, name: str) -> int:
        """The address of a native part."""
        return self._functions[name]

    @property
    def is_one_native_part(self) -> bool:
        """Whether the program is one function of machine code, without host calls."""
        parts = self.image.parts
        return len(parts) == 1 and parts[0].entry is not None and not self.image.temporaries

    def call_memory(self) -> CallMemory | GrowingCallMemory:
        """The arena of C fast calls. Once it exists, other calls don't reuse arenas."""
        if self._call_memory is None:
            static = self.image.size_function is None
            self._call_memory = CallMemory(self.image.arena_bytes) if static else GrowingCallMemory()
            self._arenas.clear()
        return self._call_memory

    @property
    def params(self) -> Array:
        """The parameter table."""
        return self._params

    @property
    def parts(self) -> tuple[PartReport, ...]:
        """A report of each native part and host call."""
        return tuple(_reports(self.image, self.libraries))

    def run(self, arrays: Sequence[Array], effect_log: EffectLog | None = None) -> list[Array]:
        """The graph's outputs.

        Args:
            arrays: one for each input of the graph, C-contiguous, of the input's dtype and shape. Those
                of updated variables are written to.
            effect_log: records host calls, and the error of a failed call. An exception of a signal handler
                after the call is stored in it, for the caller to raise.

        Raises:
            InvalidArgumentError: a check inside the graph failed.
            Halted: the same with an effect log, which creates the error.
            ResourceExhaustedError: memory for outputs or intermediates can't be allocated.

        No variable has been updated if it raises.
        """
        image = self.image
        if effect_log is not None:
            effect_log.records_collectives &= image.records_collectives
        if image.computes_sizes:
            return self._run_sized(arrays, effect_log)
        params, calls = self._params, self._calls
        new_arrays, arena_bytes = self._new_arrays, image.arena_bytes
        if image.sized_by_arguments:
            _, params, calls, new_arrays, arena_bytes = self._with_sizes([x.shape for x in arrays])
        buffers: list[Array] = [*arrays, *image.constants]
        try:
            buffers += [self.empty(shape, dtype) for shape, dtype in new_arrays]
            arena = self._take_arena(arena_bytes)
        except (MemoryError, ValueError) as error:  # ValueError for sizes beyond the address space
            raise out_of_memory(self.inputs.name, error) from None
        buffers.append(arena)
        table: Array | None = None
        for call in calls:
            if not isinstance(call, NativePart):
                if effect_log is not None:
                    effect_log.node = call.node
                    effect_log.end()
                with span("host", call.node.op.name, call.node.origin):
                    self.host(call, buffers, effect_log)
                if table is not None:
                    for output in call.outputs:
                        table[output.buffer] = address_of(buffers[output.buffer])
                continue
            if table is None:
                table, status = np.array([address_of(b) for b in buffers], np.uintp), np.zeros(1, np.int64)
                addresses = [address_of(a) for a in (table, params, status)]
            self._enter_in_span(call, addresses, status, effect_log, params)
        self._give_arena(arena)
        return buffers[image.first_output : image.first_temporary]

    def _with_sizes(self, shapes: list[tuple[int, ...]]) -> SizedProgram:
        """The program for inputs of these shapes; that of the latest ones is kept.

        It is for programs whose sizes follow from those of the inputs.
        """
        latest = self._sized
        if latest is not None and latest.shapes == shapes:
            return latest
        image, params, status = self.image, self._params.copy(), np.zeros(1, np.int64)
        for (number, axis), index in image.input_sizes.items():
            params[index] = shapes[number][axis]
        assert self._size_function is not None, "sizes follow from those of the inputs"
        self._size_function(address_of(params), address_of(status))
        if status[0]:
            assert status[0] != OTHER_SIZES, "the program is that for sizes which are equal"
            raise self.failure(int(status[0]), params)
        arena_bytes = int(params[image.arena_param or 0])
        calls, new_arrays = self._calls_for(params), self._arrays_for(params)
        self._sized = latest = SizedProgram(shapes, params, calls, new_arrays, arena_bytes)
        return latest

    def _calls_for(self, params: Array) -> Calls:
        """The program's calls with the sizes in ``params`` substituted."""
        if all(isinstance(call, NativePart) for call in self._calls):
            return self._calls
        bound = {variable: int(params[index]) for variable, index in self.image.size_params.items()}
        return [call if isinstance(call, NativePart) else call.with_sizes(bound) for call in self._calls]

    def _arrays_for(self, params: Array) -> NewArrays:
        """Shapes and dtypes of the outputs and temporaries of a call with the parameter table ``params``."""
        indices = (*self.image.output_shapes, *self.image.temporary_shapes)
        return tuple(
            [
                (shape if shape == BY_HOST else tuple(params[list(places)].tolist()), dtype)
                for (shape, dtype), places in zip(self._new_arrays, indices, strict=True)
            ]
        )

    def _run_sized(self, arrays: Sequence[Array], effect_log: EffectLog | None) -> list[Array]:
        """The outputs of a program with dynamic sizes; each call has its own parameter table and buffers."""
        try:
            call = self.sized_call(self._params.copy(), arrays)
        except (MemoryError, ValueError) as error:
            raise out_of_memory(self.inputs.name, error) from None
        status = np.zeros(1, np.int64)
        addresses = [address_of(a) for a in (call.table, call.params, status)]
        try:
            for part in self._calls:
                if not isinstance(part, NativePart):
                    if effect_log is not None:
                        effect_log.node = part.node
                        effect_log.end()
                    with span("host", part.node.op.name, part.node.origin):
                        call.host(part.call, effect_log)
                else:
                    self._enter_in_span(part, addresses, status, effect_log, call.params)
            return [self._output(call, i) for i in range(len(self.image.outputs))]
        finally:
            call.release()
            self._give_arena(call.arena)

    def _output(self, call: SizedCall, number: int) -> Array:
        """An output of a call with dynamic sizes."""
        try:
            return call.output(number)
        except (MemoryError, ValueError) as error:
            node = self.graph.results[number].node
            assert node is not None, "inputs of a graph are allocated"
            raise out_of_memory(ops_of(node) or self.inputs.name, error, user_line(node)) from None

    def launch(self, call: Callable[..., Any], arrays: Sequence[Array], result: Array, params: Array) -> None:
        """Run a native part with inputs and one output, with a parameter table of the caller.

        Raises:
            InvalidArgumentError: a check inside it failed.
        """
        table, status = np.array([address_of(a) for a in (*arrays, result)], np.uintp), np.zeros(1, np.int64)
        call(*[address_of(a) for a in (table, params, status)])
        if status[0]:
            raise self.failure(int(status[0]))

    def empty(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        """Memory for an output or an intermediate."""
        return block_allocator.empty(shape, dtype)

    def host(self, step: HostStep, buffers: list[Array], effect_log: EffectLog | None) -> None:
        """Run a host kernel, and store its results in the buffer table."""
        step.run(buffers, effect_log)

    def sized_call(self, params: Array, arrays: Sequence[Array]) -> SizedCall:
        """The state of a call of a program with dynamic sizes."""
        call: SizedCall = imported("dualflow.backends.llvm.sized_call").SizedCall(
            self.image, params, arrays, self._take_arena(self.image.arena_bytes)
        )
        return call

    def failure(self, number: int, params: Array | None = None) -> Exception:
        """The error of a failed check, with the op and the user's line; ``params`` is the call's table."""
        message, node = self.program.messages[number - 1]
        if isinstance(node.op.kind, CollectiveCall):
            return node.op.kind.error()
        if isinstance(message, CheckValues):
            table = self._params if params is None else params
            error: Exception = node.attrs["error"](message.arrays(node, table))
            return error
        if node.op is REQUIRE_SIZE:
            table = self._params if params is None else params
            bound_sizes = {
                variable: int(table[index]) for variable, index in self.program.image.size_params.items()
            }
            message = message.format(*bind_sizes(node.attrs["shapes"], bound_sizes))
        return check_error(node, message)

    def failing(self, number: int) -> Node:
        """The node of a status ``number``; the outermost loop if a signal ended it."""
        return self.program.messages[abs(number) - 1][1]

    def _enter_in_span(
        self,
        part: NativePart,
        addresses: Sequence[int],
        status: Array,
        effect_log: EffectLog | None,
        params: Array,
    ) -> None:
        """:meth:`enter`, in a span of the running profiler; collectives of the part have own spans."""
        watcher = WATCHED.value
        if watcher is None:
            self.enter(part, addresses, status, effect_log, params)
            return
        start = perf_counter_ns()
        with watcher.span("native", self.inputs.name):
            self.enter(part, addresses, status, effect_log, params)
        if not self.image.collectives:
            return
        kinds = [node.op.kind for _, node in self.program.messages]
        collectives = {kind.progress: kind for kind in kinds if isinstance(kind, CollectiveCall)}
        for collective in collectives.values():
            for text, begin, end in collective.spans(start):
                watcher.add("collective", text, begin, end, None)

    def enter(
        self,
        part: NativePart,
        addresses: Sequence[int],
        status: Array,
        effect_log: EffectLog | None,
        params: Array | None = None,
    ) -> None:
        """Run a native part by the addresses of its tables.

        If a signal handler raised, ctypes raises a SystemError with that error as its cause.
        """
        if effect_log is not None:
            effect_log.node = None
        table, param_table, status_address = addresses
        call, addresses = part.call, (table, param_table + part.offset, status_address)
        try:
            call(*addresses)
        except SystemError as error:
            if status[0] >= 0 or error.__cause__ is None:
                raise
            if effect_log is not None:
                effect_log.node = self.failing(int(status[0]))
            raise error.__cause__ from None
        except BaseException as error:  # of a signal handler, which Python runs after the call
            if effect_log is None:
                raise
            effect_log.late = error
        if status[0]:
            self._raise(int(status[0]), effect_log, params)

    def _raise(self, number: int, effect_log: EffectLog | None, params: Array | None) -> NoReturn:
        """Raise the error of the check ``number``, or Halted if an effect log creates the error."""
        if effect_log is None:
            raise self.failure(number, params)
        effect_log.node, effect_log.make = self.failing(number), partial(self.failure, number, params)
        effect_log.of_memory = isinstance(self.program.messages[number - 1][0], OutOfMemory)
        raise Halted

    def _take_arena(self, nbytes: int) -> Array:
        """An arena of at least ``nbytes``: the one of an earlier call if it is large enough."""
        try:
            arena = self._arenas.pop()
        except IndexError:
            return aligned_bytes(nbytes)
        return arena if arena.nbytes >= nbytes else aligned_bytes(nbytes)

    def _give_arena(self, arena: Array) -> None:
        if arena.nbytes <= MAX_REUSED_ARENA and not self._arenas and self._call_memory is None:
            self._arenas.append(arena)


def _updates_in_place(executable: Executable) -> bool:
    inputs = executable.inputs
    specs = (*inputs.arguments, *inputs.capture_specs)
    return (
        executable.is_one_native_part
        and not executable.image.computes_sizes
        and all(is_static(specs[i].shape) for i in inputs.updated)
    )


def _new_arrays(
    image: ProgramImage, calls: Sequence[NativePart | HostStep]
) -> Iterator[tuple[tuple[int, ...], np.dtype[Any]]]:
    """Shapes, which may be symbolic, and dtypes of the outputs and temporaries of a call."""
    by_host = {output.buffer for call in calls if not isinstance(call, NativePart) for output in call.outputs}
    for buffer, spec in enumerate((*image.outputs, *image.temporaries), start=image.first_output):
        shape = BY_HOST if buffer in by_host else tuple([-1 if d is None else d for d in spec.shape])
        yield shape, spec.dtype.dtype


def _reports(image: ProgramImage, libraries: Sequence[Library]) -> list[PartReport]:
    reports: list[PartReport] = []
    what = count_text(image.kernels, "kernel")
    if image.products:
        what += f", {count_text(image.products, 'matrix product routine')}"
    if image.tasks:
        what += f", {count_text(image.tasks, 'concurrent task')}"
    fallbacks = dict.fromkeys(library.fallback for library in libraries if library.fallback)
    fallback = f"LLVM's linker was needed: {', '.join(fallbacks)}" if fallbacks else ""
    for part in image.parts:
        if part.host is None:
            reports.append(PartReport(PartKind.NATIVE, what, fallback))
            continue
        reports.append(host_report(part.host.node))
    return reports
