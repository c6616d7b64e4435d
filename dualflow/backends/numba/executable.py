"""Executables of the Numba backend: a Python function that calls kernels compiled by Numba."""

from __future__ import annotations

import linecache
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, NoReturn

import numpy as np

from dualflow.backends.numba.call_source import NO_KERNEL, ProgramCheck
from dualflow.backends.numba.files import function_file, kernel_file, routine_file
from dualflow.backends.numba.parallel_for import parallel_for
from dualflow.backends.numba.parameters import Parameter
from dualflow.backends.numba.program_source import ProgramSource, program
from dualflow.backends.numba.signatures import signature
from dualflow.backends.numba.source_files import module_of
from dualflow.core.errors import ResourceExhaustedError
from dualflow.core.memory_errors import graph_out_of_memory, is_out_of_memory
from dualflow.core.records import NamedTuple
from dualflow.core.shape import Shape
from dualflow.core.spans import span
from dualflow.core.tracebacks import PROGRAM
from dualflow.graph.compiled import CodeSource, GraphInputs, PartKind, PartReport, count_text
from dualflow.graph.effect_log import EffectLog, Halted, run_host_kernel
from dualflow.graph.fused import body_of
from dualflow.graph.ir import Graph, Node
from dualflow.graph.options import CompileOptions
from dualflow.graph.symbolic_evaluation import with_numbers
from dualflow.graph.symbolic_size_ops import REQUIRE_SIZE, first_axes
from dualflow.schedule.call_reports import check_error, check_results, host_report, size_error
from dualflow.schedule.planned import Plan
from dualflow.sizes.symbolic_sizes import SizeVariable, bind_sizes

Array = np.ndarray[Any, Any]


class NumbaExecutable:
    """A compiled graph.

    Attributes:
        graph: what it computes, after all passes.
        options: the compile options.
        plan: the plan: calls and buffers.
        source: the program, its kernels, and its functions for branches and loops.
        compile_seconds: the time of Numba to compile or load them.
        origin: where they come from; see :class:`dualflow.graph.compiled.CompileCosts`.
    """

    __slots__ = (
        "__weakref__",
        "_axes",
        "_main",
        "compile_seconds",
        "graph",
        "inputs",
        "options",
        "origin",
        "plan",
        "source",
    )

    updates_in_place = False

    def __init__(self, graph: Graph, options: CompileOptions) -> None:
        self.graph = graph
        self.inputs = GraphInputs.of(graph)
        self.options = options
        self.source: ProgramSource = program(graph, options)
        self.plan: Plan = self.source.plan
        self._axes = tuple(first_axes(self.plan.argument_sizes).items())
        self._main = self._compiled()

    @property
    def parts(self) -> tuple[PartReport, ...]:
        """A report for each part of the graph: how it runs."""
        source = self.source
        what = count_text(len(source.context.kernels), "kernel")
        if source.functions:
            what += (
                f" and {count_text(len(source.functions), 'conditional or loop', 'conditionals and loops')}"
            )
        fallbacks = ", ".join(dict.fromkeys(source.fallbacks))
        reason = f"a conditional or loop is Python's own: {fallbacks}" if fallbacks else ""
        native = PartReport(PartKind.NATIVE, f"{what} through Numba", reason)
        return (native, *(_report(call.node) for call in self.source.host_calls))

    def run(self, arrays: Sequence[Array], effect_log: EffectLog | None = None) -> list[Array]:
        """The graph's outputs.

        Args:
            arrays: one for each input of the graph, C-contiguous, of the input's dtype and shape. Those of
                updated variables are written to.
            effect_log: records what runs outside kernels, and what ended the call if it fails.

        Raises:
            InvalidArgumentError: a check inside the graph failed.
            ResourceExhaustedError: no memory for outputs or intermediates.

        If it raises, no variable has been written to.
        """
        sizes = {variable: arrays[place].shape[axis] for variable, (place, axis) in self._axes}
        token = _call.set(RunningCall(effect_log, sizes))
        try:
            with span("native", self.graph.name):
                outputs: list[Array] = self._main(*arrays)
        except SystemError as error:  # a signal has ended a kernel; its handler's error is the cause
            if error.__cause__ is None:
                raise
            raise error.__cause__ from None
        except ResourceExhaustedError:  # of an op, which it names
            raise
        except (MemoryError, ValueError) as error:
            if not is_out_of_memory(error):
                raise
            raise graph_out_of_memory(self.graph.name, error) from None
        finally:
            _call.reset(token)
        return outputs

    def _fail(self, number: int, *arrays: Array) -> NoReturn:
        """End the call with the error of a check that failed, which names the op and the user's line.

        The message may read variables, so with an effect log the error is created after these are committed.
        """
        check: ProgramCheck = self.source.checks[number - 1]
        effect_log, sizes = _call.get()
        make = partial(_error, check, [a.copy() for a in arrays], sizes)
        if effect_log is None:
            raise make()
        effect_log.node, effect_log.make = check.node, make
        raise Halted

    def _mark(self, number: int) -> None:
        """Record which outermost loop runs, for a signal that ends it; -1 for none."""
        _record_running(self.source.marked_loops[number] if number >= 0 else None)

    def _compiled(self) -> Callable[..., list[Array]]:
        """The program as a Python function, with its kernels compiled by Numba."""
        source = self.source
        routines = module_of(routine_file())
        scope = dict(vars(routines))
        begun, origins = time.perf_counter(), {CodeSource.NONE}
        modules = {name: module_of(kernel_file(kernel)) for name, kernel in source.context.kernels.items()}
        for name in (n for n in modules if n in source.kernels_called):
            kernel, parameters = modules[name], source.context.kernels[name].parameters
            origins.add(_compile(kernel.kernel, parameters))
            scope[name] = kernel.kernel
            scope[f"{name}_parallel"] = parallel_for(kernel.kernel, self.options.capabilities.threads)
        for function in source.functions:
            for part in function.walk():  # a module's imports are loaded before it
                module = module_of(function_file(part, source.context))
            scope[function.name] = getattr(module, function.name)
            origins.add(_compile(scope[function.name], function.parameters))
        self.compile_seconds = time.perf_counter() - begun
        self.origin = max(origins, key=list(CodeSource).index)
        scope |= source.constants
        scope |= {f"host{i}": _host(call.node) for i, call in enumerate(self.source.host_calls)}
        methods = weakref.WeakMethod(self._fail), weakref.WeakMethod(self._mark)
        scope["fail"], scope["mark"] = (_weak_method(method) for method in methods)
        scope["rows_within"] = partial(_rows_within, self.options.memory)
        main_source, path = source.text("main"), f"{PROGRAM} of {self.graph.name}, {id(self):x}>"
        text = "\n".join([*source.context.sizes.functions.values(), main_source])
        linecache.cache[path] = len(text), None, text.splitlines(keepends=True), path
        weakref.finalize(self, linecache.cache.pop, path, None)
        exec(compile(text, path, "exec"), scope)
        main: Callable[..., list[Array]] = scope["main"]
        return main


class RunningCall(NamedTuple):
    """The state of a call that the functions of its program read.

    Attributes:
        effect_log: records what runs outside kernels, if the caller has an effect log.
        sizes: the numbers of the size variables.
    """

    effect_log: EffectLog | None
    sizes: Mapping[SizeVariable, int]


_call: Final[ContextVar[RunningCall]] = ContextVar("dualflow_numba_call")


def _record_running(node: Node | None) -> None:
    """Record the running node in the effect log of this call, if it has one."""
    effect_log = _call.get().effect_log
    if effect_log is not None:
        effect_log.node = node


def _weak_method(method: Callable[[], Any]) -> Callable[..., Any]:
    """A function that calls a weakly referenced method, so that the program doesn't keep its object alive."""

    def call(*args: Any) -> Any:
        bound = method()
        assert bound is not None, "the object is alive while its program runs"
        return bound(*args)

    return call


def _error(check: ProgramCheck, arrays: list[Array], sizes: Mapping[SizeVariable, int]) -> Exception:
    node = check.node
    if node.op is REQUIRE_SIZE:
        return size_error(node, sizes)
    if check.message is not None:
        return check_error(node, check.message)
    error: Exception = node.attrs["error"](arrays)
    return error


def _rows_within(memory: int, nbytes: int) -> int:
    """The number of rows of ``nbytes`` that fit into ``memory``."""
    return memory // max(nbytes, 1)


def _compile(function: Any, parameters: Sequence[Parameter]) -> CodeSource:
    """Compile or load a function with Numba, and return where it came from."""
    types = signature(parameters)
    if types in function.overloads:
        return CodeSource.PROCESS
    misses = sum(function.stats.cache_misses.values())
    function.compile(types)
    hit = function.stats.cache_hits and sum(function.stats.cache_misses.values()) == misses
    return CodeSource.DISK if hit else CodeSource.COMPILED


def _report(node: Node) -> PartReport:
    """The report on a node that has no kernel."""
    body = body_of(node)
    if body is None:
        return host_report(node)
    return PartReport(PartKind.NUMPY, body.name, NO_KERNEL, node)


def _host(node: Node) -> Callable[..., list[Array]]:
    """A function that runs a node's NumPy kernel, with results of the right dtypes in memory of their own."""
    shapes = [tuple(v.spec.shape) if v.spec.shape.is_static else None for v in node.outputs]

    def run(*inputs: Array, **_: Any) -> list[Array]:
        """The results. Attributes with symbolic sizes, which a program passes, are those of the call."""
        effect_log, sizes = _call.get()
        with span("host", node.op.name, node.origin):
            results = run_host_kernel(with_numbers(node, sizes), inputs, effect_log, sizes)
        check_results(node, [None if x is None else Shape(bind_sizes(x, sizes)) for x in shapes], results)
        outputs = []
        for value, result in zip(node.outputs, results, strict=True):
            array = np.ascontiguousarray(result, value.spec.dtype.dtype).reshape(np.shape(result))
            outputs.append(array.copy() if any(np.may_share_memory(array, x) for x in inputs) else array)
        return outputs

    return run
