"""A graph that runs: machine code, its tables, and the calls between native parts.

The code is shared: graphs that differ only in sizes have one text, so one library in this process and one
object on disk. What differs is a table of integers.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from dualflow.backends.llvm.check_values import CheckValues
from dualflow.backends.llvm.product import choice
from dualflow.backends.llvm.program import Program, write
from dualflow.backends.llvm.runtime import interrupts, jit, threads
from dualflow.backends.llvm.sized_call import SizedCall, run_host_kernel
from dualflow.core.errors import ResourceExhaustedError
from dualflow.core.locks import imported, unforkable
from dualflow.core.spans import span
from dualflow.core.spec import TensorSpec
from dualflow.core.strided import strided
from dualflow.graph.compiled import CompiledPart, PartKind
from dualflow.graph.ir import Graph, Node
from dualflow.graph.options import CompileOptions
from dualflow.graph.trail import Halted, Trail
from dualflow.schedule.call_reports import OutOfMemory, check_error, host_report
from dualflow.schedule.host_fallback import with_host_fallbacks
from dualflow.schedule.nest import Layout
from dualflow.schedule.plan import Plan, PlannedCall, plan

Array = np.ndarray[Any, Any]
KEPT_ARENA = 64 << 20
"""An arena of up to so many bytes is kept between calls: the system need not zero its pages again."""

_ENTRY = (None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_light = ctypes.PYFUNCTYPE(*_ENTRY)
_heavy = ctypes.CFUNCTYPE(*_ENTRY)
_libraries: weakref.WeakValueDictionary[str, jit.Library] = weakref.WeakValueDictionary()


class Executable:
    """A compiled graph.

    Attributes:
        graph: what it computes, after all passes.
        options: what it is compiled for.
        plan: where values live.
        program: the code before compilation, and its parameters.
        library: the machine code; None for a graph without native parts.
    """

    __slots__ = (
        "__weakref__",
        "_arenas",
        "_calls",
        "_params",
        "graph",
        "library",
        "options",
        "plan",
        "program",
        "reused",
    )

    def __init__(self, graph: Graph, options: CompileOptions) -> None:
        self.graph = graph
        self.options = options
        own = choice.own()
        native = with_host_fallbacks(graph)
        self.plan: Plan = plan(native, strided_products=own, window_products=own)
        self.program: Program = write(self.plan, options)
        self.library, self.reused = _library(self.program)
        self._params = np.array(self.program.params, np.int64)
        if self.program.parallel:
            pool = threads.pool()
            self._params[:2] = pool.address, pool.pfor
        prototype = _heavy if self.program.heavy else _light
        self._calls: list[Callable[..., Any] | PlannedCall] = [
            part.host if part.host is not None else prototype(self.entry(part.entry or ""))
            for part in self.program.parts
        ]
        self._arenas: list[Array] = []

    def entry(self, name: str) -> int:
        """The address of a native part."""
        assert self.library is not None
        return self.library.address(name)

    @property
    def params(self) -> Array:
        """The table of integers that the code reads."""
        return self._params

    @property
    def parts(self) -> tuple[CompiledPart, ...]:
        """How each part of the graph runs."""
        return tuple(_reports(self.program, self.library))

    def run(self, arrays: Sequence[Array], trail: Trail | None = None) -> list[Array]:
        """The graph's outputs.

        Args:
            arrays: one for each input of the graph, C-contiguous, of the input's dtype and shape. Those
                of updated variables are written to.
            trail: learns what runs outside of machine code, and what ended the call if it fails. What came
                too late for that is for the caller to raise.

        Raises:
            InvalidArgumentError: a check inside the graph failed.
            Halted: the same, where a trail makes the error.
            ResourceExhaustedError: there is no memory for the outputs, or for what is computed on the way.

        Whatever is raised, no variable has been written to.
        """
        layout = self.plan
        if layout.sized:
            return self._run_sized(arrays, trail)
        buffers: list[Array] = [*arrays, *layout.constants]
        try:
            buffers += [np.empty(_known(s), s.dtype.dtype) for s in (*layout.outputs, *layout.temporaries)]
            arena = self._take_arena()
        except (MemoryError, ValueError) as error:  # the latter for more than an address can tell
            raise ResourceExhaustedError(
                f"{self.graph.name} needs more memory than there is: {error}. Compute it in parts."
            ) from None
        buffers.append(arena)
        table = np.array([b.__array_interface__["data"][0] for b in buffers], np.uintp)
        status = np.zeros(1, np.int64)
        addresses = [a.__array_interface__["data"][0] for a in (table, self._params, status)]
        for call in self._calls:
            if isinstance(call, PlannedCall):
                if trail is not None:
                    trail.node = call.node
                    trail.end()
                with span("host", call.node.op.name, call.node.origin):
                    _call_host(call, buffers, table, trail)
            else:
                with span("native", self.graph.name):
                    self._enter(call, addresses, status, trail)
        self._give_arena(arena)
        return buffers[layout.first_output : layout.first_temporary]

    def _run_sized(self, arrays: Sequence[Array], trail: Trail | None) -> list[Array]:
        """The outputs of a program that learns sizes: it has numbers and memory of each call."""
        call = SizedCall(self.plan, self.program, self._params.copy(), arrays, self._take_arena())
        status = np.zeros(1, np.int64)
        addresses = [a.__array_interface__["data"][0] for a in (call.table, call.params, status)]
        try:
            for part in self._calls:
                if isinstance(part, PlannedCall):
                    if trail is not None:
                        trail.node = part.node
                        trail.end()
                    with span("host", part.node.op.name, part.node.origin):
                        call.host(part, trail)
                else:
                    with span("native", self.graph.name):
                        self._enter(part, addresses, status, trail, call.params)
            return call.outputs()
        finally:
            call.release()
            self._give_arena(call.arena)

    def failure(self, number: int, params: Array | None = None) -> Exception:
        """The error for a check that failed, naming the op and the user's line; ``params`` are the call's."""
        message, node = self.program.messages[number - 1]
        if isinstance(message, CheckValues):
            kept = self._params if params is None else params
            made: Exception = node.attrs["error"](message.arrays(node, kept))
            return made
        return check_error(node, message)

    def failing(self, number: int) -> Node:
        """The node that left ``number`` in the status; the outermost loop where a signal ended one."""
        return self.program.messages[abs(number) - 1][1]

    def _enter(
        self,
        call: Callable[..., Any],
        addresses: Sequence[int],
        status: Array,
        trail: Trail | None,
        params: Array | None = None,
    ) -> None:
        """Run a native part; where a signal's handler raised, ctypes finds that error in the way."""
        if trail is not None:
            trail.node = None
        try:
            call(*addresses)
        except SystemError as error:
            if status[0] >= 0 or error.__cause__ is None:
                raise
            if trail is not None:
                trail.node = self.failing(int(status[0]))
            raise error.__cause__ from None
        except BaseException as error:  # of a signal's handler: Python looks for signals after the call
            if trail is None:
                raise
            trail.late = error
        if status[0]:
            number = int(status[0])
            if trail is None:
                raise self.failure(number, params)
            trail.node, trail.make = self.failing(number), partial(self.failure, number, params)
            trail.of_memory = isinstance(self.program.messages[number - 1][0], OutOfMemory)
            raise Halted

    def _take_arena(self) -> Array:
        try:
            return self._arenas.pop()
        except IndexError:
            return _aligned(self.program.arena_bytes)

    def _give_arena(self, arena: Array) -> None:
        if arena.nbytes <= KEPT_ARENA and not self._arenas:
            self._arenas.append(arena)


def _library(program: Program) -> tuple[jit.Library | None, bool]:
    """The machine code of a program, and whether this process had it already."""
    exports = [p.entry for p in program.parts if p.entry is not None]
    exports += [program.whole] if program.whole is not None else []
    if not exports:
        return None, False
    with unforkable():
        found = _libraries.get(program.text)
        if found is not None:
            return found, True
        symbols = {}
        if program.routines:
            product = imported("dualflow.backends.llvm.product.product")
            symbols = {name: product.address(name) for name in program.routines}
        symbols.update(interrupts.addresses())
        library = jit.compile_text(program.text, exports, symbols)
        _libraries[program.text] = library
        return library, False


def _known(spec: TensorSpec) -> tuple[int, ...]:
    """The shape, 0 where a host call is to tell the size."""
    return tuple([d or 0 for d in spec.shape])


def _aligned(nbytes: int) -> Array:
    raw = np.empty(nbytes + 64, np.uint8)
    start = -raw.__array_interface__["data"][0] % 64
    return raw[start : start + nbytes]


def _call_host(call: PlannedCall, buffers: list[Array], table: Array, trail: Trail | None) -> None:
    """Run a node's own kernel on views of the buffers; its results become the buffers of their places."""
    node = call.node
    given = [_view(buffers, layout, v.spec.shape) for layout, v in zip(call.inputs, node.inputs, strict=True)]
    results = run_host_kernel(node, given, trail)
    for layout, value, result in zip(call.outputs, node.outputs, results, strict=True):
        made = np.ascontiguousarray(result, value.spec.dtype.dtype).reshape(np.shape(result))
        if any(np.may_share_memory(made, x) for x in given):  # a kernel may return what it was given
            made = made.copy()
        buffers[layout.buffer] = made
        table[layout.buffer] = made.__array_interface__["data"][0]


def _view(buffers: list[Array], layout: Layout, shape: Sequence[int | None]) -> Array:
    if None in shape:  # a host call made it, and told the size
        return buffers[layout.buffer]
    flat = buffers[layout.buffer].reshape(-1)[layout.offset :]
    return strided(flat, shape, layout.strides)  # type: ignore[arg-type]  # no size is open


def _reports(program: Program, library: jit.Library | None) -> list[CompiledPart]:
    reports: list[CompiledPart] = []
    kernels = len(program.kernels)
    detour = f"LLVM's linker was needed: {library.detour}" if library is not None and library.detour else ""
    for part in program.parts:
        if part.host is None:
            reports.append(
                CompiledPart(PartKind.NATIVE, f"{kernels} kernels, {len(program.routines)} routines", detour)
            )
            continue
        reports.append(host_report(part.host))
    return reports
