"""A graph with its optimised form, executable and fast paths, each created when first needed.

The stages are attributes of :class:`CompiledGraph`; each is computed once, from those above it::

    graph                          before any pass
    -> graph_with_symbolic_sizes   if sizes vary; None if no expression describes one of them
    -> _symbolic_program           one program for all sizes; None if no program serves all of them
    -> _after_passes               the program's graph, or ``graph`` after all passes
    -> _rematerialised             the graph within the memory budget; None without a budget
    -> optimised                   the last of these graphs
    -> executable                  the program's, or ``optimised`` compiled by the backend
    -> fast_path(form)             a function for the calls of one form

If sizes vary and no program serves all of them, the caller creates a CompiledGraph for the shapes of each
call; if data decide the sizes, NumPy runs the graph as one node.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.device_names import GPU
from dualflow.core.errors import InvalidArgumentError, ResourceExhaustedError
from dualflow.core.garbage_collection import collection_paused
from dualflow.core.locks import SharedLock, computed_once, imported
from dualflow.core.progress import progress
from dualflow.core.records import replace
from dualflow.core.spans import WATCHED, span
from dualflow.eager.placement import BLOCK_DEVICE
from dualflow.function.calls.array_ownership import array_of
from dualflow.function.calls.built_program import built_program
from dualflow.function.calls.call_form import REFUSED, CallForm
from dualflow.function.calls.checked_call import checked_call, read_only_call
from dualflow.function.calls.compile_log import log_compile
from dualflow.function.calls.data_dependent_sizes import as_one_node, sized_by_data
from dualflow.function.calls.execute import Sources, execute, is_placed_on_device
from dualflow.function.calls.failed_calls import AssignmentHistory
from dualflow.function.calls.fast_paths import FastPaths
from dualflow.function.calls.first_calls import BackgroundCompile
from dualflow.function.calls.lazy_backends import backend_of, c_call, capabilities_of, kernel_listing
from dualflow.function.calls.size_decisions import CallSizes
from dualflow.function.calls.size_inference import EqualAxes
from dualflow.function.calls.symbolic_graph import SymbolicProgram, is_for_other_calls, with_symbolic_sizes
from dualflow.function.options import DEVICE_CODE, MACHINE_CODE, REFERENCE, compile_options
from dualflow.graph.effect_log import EffectLog, Halted
from dualflow.graph.ir import Graph, Node
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.assignments import drop_assignments
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.graph.size_guards import NO_GUARDS, SizeGuards, guards_of
from dualflow.graph.string_graphs import holds_strings
from dualflow.graph.symbolic_size_ops import (
    REQUIRE_SIZE,
    argument_sizes,
    computes_sizes,
    first_axes,
    has_symbolic_sizes,
)
from dualflow.graph.user_rewrites import REWRITES, Match, Rewrite
from dualflow.sizes.symbolic_sizes import UndecidedSize

if TYPE_CHECKING:
    from dualflow.function.arguments.results import Packer
    from dualflow.function.calls.memory_budget import MemoryReport
    from dualflow.graph.compiled import Backend, Compiled
    from dualflow.schedule.rematerialisation import WithinBudget

Array = np.ndarray[Any, Any]
_compiling = SharedLock()
_MAX_VARIANTS = 8


class CompiledGraph:
    """A graph that is optimised and compiled when it is first called.

    Args:
        graph: a trace, or a part of one.
        options: how it is compiled; by default the process's settings.
        history: replays the assignments before a failure; None if the caller handles failures.
        pack: puts the outputs into the structure of the result; without it they are a tuple.
        equal_axes: groups of dynamic axes of arguments that have one size in all calls.
        guards: comparisons of dynamic sizes that have one outcome in all calls.
        call_sizes: the sizes of a call, which decide the comparisons that ops make of sizes.

    Attributes:
        graph: the graph before any pass.
        called: whether the graph has run.
        matches: where rewrites of users have changed the graph.
        check_shapes: for a graph with dynamic input sizes, raises the error of the first op that rejects the
            shapes of a call's arguments, if there is one; None for a graph with static ones.
    """

    def __init__(
        self,
        graph: Graph,
        options: CompileOptions | None = None,
        *,
        history: AssignmentHistory | None = None,
        pack: Packer | None = None,
        equal_axes: EqualAxes = (),
        guards: SizeGuards = NO_GUARDS,
        call_sizes: CallSizes | None = None,
    ) -> None:
        self.graph = graph
        self._call_sizes = call_sizes
        self._equal_axes = equal_axes
        self._guards = guards
        self._strings = holds_strings(graph)
        options = options or compile_options()
        self._requested = replace(options, backend=REFERENCE) if self._strings else options
        self._history = history
        in_background = self._requested.interpret_first and self._requested.backend != REFERENCE
        self._background = BackgroundCompile(graph, self._compile) if in_background else None
        self._packer = pack
        self._pack: Callable[[Sequence[Any]], Any] = pack.make if pack is not None else tuple
        self._fast_paths = FastPaths(self._requested.backend)
        self._variants: dict[tuple[Rewrite, ...], CompiledGraph] = {}
        self._is_on_device = False
        self.called = False
        self.matches: list[Match] = []
        self.check_shapes: Callable[[Sequence[Any]], object] | None = None

    @property
    def current(self) -> CompiledGraph:
        """This graph, compiled with the rewrites of users that are active now.

        It is this one if only the function's own rewrites are active. The latest 8 others are kept.
        """
        rewrites = REWRITES.active(self._requested.rewrites)
        if rewrites == self._requested.rewrites:
            return self
        variant = self._variants.get(rewrites)
        if variant is None:
            with _compiling.lock:
                variant = self._variants.get(rewrites) or self._with_options(
                    replace(self._requested, rewrites=rewrites)
                )
                self._variants[rewrites] = variant
                while len(self._variants) > _MAX_VARIANTS:
                    del self._variants[next(iter(self._variants))]
        return variant

    def _with_options(self, options: CompileOptions) -> CompiledGraph:
        graph = CompiledGraph(
            self.graph,
            options,
            history=self._history,
            pack=self._packer,
            equal_axes=self._equal_axes,
            guards=self._guards,
            call_sizes=self._call_sizes,
        )
        graph.check_shapes = self.check_shapes
        return graph

    @computed_once(_compiling)
    def options(self) -> CompileOptions:
        """How the graph is compiled, with the capabilities that the backend has on this machine."""
        stated = capabilities_of(self._requested.backend)
        return replace(self._requested, capabilities=self._requested.capabilities & stated)

    @computed_once(_compiling)
    def optimised(self) -> Graph:
        """The graph after all passes, and within the memory budget if there is one.

        Raises:
            InternalError: the options enable checks, and a pass has broken a rule of the IR or of kernels.
            FailedPreconditionError: there is a memory budget, and sizes that depend on data.
            ResourceExhaustedError: no plan keeps the memory budget.
        """
        return self._after_passes if self._rematerialised is None else self._rematerialised.graph

    @computed_once(_compiling)
    def _rematerialised(self) -> WithinBudget | None:
        """The graph within the memory budget; None without one."""
        if self._requested.memory_budget is None:
            return None
        if self.serves_all_sizes and not self._strings:
            assert self._symbolic_program is not None, "it is one program for all sizes"
            return self._symbolic_program.rematerialised
        plan: WithinBudget = self._memory_planner.keep_budget(
            self._after_passes, self.options, self.backend, {}
        )
        return plan

    @property
    def _memory_planner(self) -> Any:
        """The module ``memory_budget``; raises an error if the graph can't be planned."""
        budgets = imported("dualflow.function.calls.memory_budget")
        sized = self.graph_with_symbolic_sizes if self._first_data_dependent_node is not None else self.graph
        if self._strings or sized is None or computes_sizes(sized):
            budgets.reject_unknown(self.graph, self._first_data_dependent_node)
        return budgets

    def memory(self, inputs: Sequence[Any] = ()) -> MemoryReport:
        """The memory of a call; ``inputs`` have its shapes if the graph serves all sizes.

        Raises:
            FailedPreconditionError: sizes depend on data, or there are strings.
        """
        axes = first_axes(argument_sizes(self.optimised)) if inputs else {}
        numbers = {
            variable: inputs[input_index].shape[axis] for variable, (input_index, axis) in axes.items()
        }
        report: MemoryReport = self._memory_planner.memory_report(
            self.optimised, self._rematerialised, self.options.memory_budget, self.backend, numbers
        )
        return report

    @computed_once(_compiling)
    def _after_passes(self) -> Graph:
        """The graph after all passes, before rematerialisation.

        It is one node, which NumPy runs, if sizes depend on data and no native code serves all sizes. For a
        graph with strings only dead code is eliminated.
        """
        if "executable" in vars(self):  # loaded from the disk: the passes have not run in this process
            return self.executable.graph
        graph, cause = self.graph, self._first_data_dependent_node
        if self._strings:
            return eliminate_dead_code(drop_assignments(graph))
        if self._sizes_vary and self._symbolic_program is not None:
            return self._symbolic_program.executable.graph
        if cause is not None:
            if self.graph_with_symbolic_sizes is None or has_symbolic_sizes(self.graph_with_symbolic_sizes):
                return as_one_node(graph, cause)
            graph = self.graph_with_symbolic_sizes
        if self.options.checking:
            check = imported("dualflow.graph.passes.fusion_check")
            check.require_legal_kernels(graph, self.options)
        return self._optimise(graph)

    def _optimise(self, graph: Graph) -> Graph:
        """``graph`` after all passes; the changes by rewrites are stored."""
        self.matches = []
        pipeline = imported("dualflow.graph.passes.pipeline")  # not needed for a program on disk
        passes = pipeline.with_rewrites(pipeline.PASSES, self.options.rewrites, self.matches.append)
        optimised: Graph = pipeline.optimise(graph, self.options, passes=passes)
        return optimised

    @computed_once(_compiling)
    def _first_data_dependent_node(self) -> Node | None:
        """The first node of which a size depends on data; None if there is none."""
        return sized_by_data(self.graph)

    @computed_once(_compiling)
    def _sizes_vary(self) -> bool:
        """Whether a size depends on data, or on the arguments of a call."""
        if not all(v.spec.shape.is_static for v in self.graph.inputs):
            return True
        return self._first_data_dependent_node is not None or has_symbolic_sizes(self.graph)

    @computed_once(_compiling)
    def graph_with_symbolic_sizes(self) -> Graph | None:
        """The graph with symbolic sizes instead of dynamic ones.

        None if no expression describes one of the sizes.
        """
        if has_symbolic_sizes(self.graph):
            return self.graph
        try:
            return with_symbolic_sizes(
                self.graph, self._requested, self._equal_axes, self._guards, call_sizes=self._call_sizes
            )
        except UndecidedSize:
            return None

    @computed_once(_compiling)
    def _symbolic_program(self) -> SymbolicProgram | None:
        """The graph with symbolic sizes, optimised and compiled; None if no one program serves all sizes."""
        sized = self.graph_with_symbolic_sizes if self.options.capabilities.symbolic_sizes else None
        if sized is None or not is_for_other_calls(sized, self.graph):
            return None
        try:
            with collection_paused():
                plan = self._guarded_budget(sized) if self._requested.memory_budget is not None else None
                optimise = partial(self._optimise, sized) if plan is None else lambda: plan.graph
                executable = built_program(sized, self.options, optimise)
                return SymbolicProgram(executable, plan, guards_of(sized if plan is None else plan.graph))
        except (UndecidedSize, InvalidArgumentError):
            return None  # InvalidArgumentError: sizes whose expressions differ are equal by a guard
        except ResourceExhaustedError:
            return None  # rematerialisation for the concrete sizes of a call may still fit the budget

    def _guarded_budget(self, sized: Graph) -> WithinBudget:
        """The graph with symbolic sizes within the memory budget, for sizes up to a guard."""
        guarded: Callable[..., WithinBudget] = self._memory_planner.guarded_budget
        return guarded(self._optimise(sized), self.options, self.backend, self._call_sizes)

    @computed_once(_compiling)
    def serves_all_sizes(self) -> bool:
        """Whether sizes are dynamic or symbolic, and the graph is compiled as one program for all of them.

        Otherwise it is recorded and compiled anew for the sizes of each call.
        """
        return self._sizes_vary and (self._strings or self._symbolic_program is not None)

    @property
    def backend(self) -> Backend:
        """The backend that compiles the graph."""
        return backend_of(self._requested.backend)

    @property
    def text(self) -> str:
        """The program as the Python source that the Numba backend generates."""
        return kernel_listing(self.without_symbolic_sizes)

    @property
    def without_symbolic_sizes(self) -> Graph:
        """The graph after all passes; if it has symbolic sizes, the trace as one node that NumPy runs."""
        if self._first_data_dependent_node is not None and self._symbolic_program is not None:
            return as_one_node(self.graph, self._first_data_dependent_node)
        return self.optimised

    @computed_once(_compiling)
    def executable(self) -> Compiled:
        """The compiled graph.

        Raises:
            NotNativeError: the options are strict, and a part of the graph would not run natively.
        """
        began, name = time.perf_counter(), self.graph.name
        with span("compile", name), progress(f"compile {name}"), collection_paused():
            program = self._symbolic_program if self._sizes_vary else None
            may_load = not ("_after_passes" in vars(self) or self._sizes_vary or self._strings)
            executable = (
                built_program(self.graph, self.options, lambda: self.optimised, may_load=may_load)
                if program is None
                else program.executable
            )
        if self.options.strict:
            imported("dualflow.function.calls.strict").require_native(executable)
        log_compile(self._requested.backend, executable, time.perf_counter() - began)
        return executable

    @property
    def recomputation_ratio(self) -> float:
        """Executed work divided by the work of the ops: above 1 with recomputation, 1 before compiling."""
        if "executable" not in vars(self):
            return 1.0
        return self.backend.compile_stats(self.executable).recomputation_ratio

    @computed_once(_compiling)
    def machine_code(self) -> Compiled:
        """The graph compiled by the default backend, even if another backend runs it."""
        if self._requested.backend == MACHINE_CODE:
            return self.executable
        options = replace(self._requested, backend=MACHINE_CODE)
        return built_program(self.graph, options, lambda: self.without_symbolic_sizes, may_load=False)

    @computed_once(_compiling)
    def sources(self) -> Sources:
        """The sources of the captures, and which of the inputs are updated."""
        return Sources.of(self.executable.inputs)

    @property
    def only_reads(self) -> bool:
        """Whether a call assigns no variable, even if it fails."""
        return not self.sources.written and (self._history is None or not self._history.is_needed)

    def __call__(self, *arguments: Any) -> Any:
        """The result as tensors, for a tensor or variable for each argument; variables are updated.

        The first call builds no fast path, which costs more than it saves in one call.
        """
        if self._background is not None and (interpreted := self._interpreted()) is not None:
            return self._run(interpreted, Sources.of(interpreted.inputs), arguments)
        in_block = BLOCK_DEVICE.get() == GPU
        if not self.called or self._is_on_device or in_block or WATCHED.value is not None:
            self.called = True
            return self.execute(*arguments)
        result = self.fast_path()(*arguments)
        return self.execute(*arguments) if result is REFUSED else result

    def execute(self, *arguments: Any) -> Any:
        """The result of a call, without a fast path."""
        on_device = self._is_on_device = self.is_placed_on_device(arguments)
        compiled = self.for_device if on_device else self
        return compiled._run(compiled.executable, compiled.sources, arguments, device=on_device)

    @property
    def latest(self) -> CompiledGraph:
        """The graph that the latest call without a fast path has run: this one, or that for the GPU."""
        return self.for_device if self._is_on_device else self

    def is_placed_on_device(self, arguments: Sequence[Any]) -> bool:
        """Whether a call with these arguments runs on the GPU; all do of a graph with a block of the GPU."""
        if self._strings:
            return False
        return self._requested.on_device or is_placed_on_device((*arguments, *self._captured))

    @computed_once(_compiling)
    def _captured(self) -> tuple[Any, ...]:
        """The source of each capture."""
        return tuple([c.source for c in self.graph.captures])

    @computed_once(_compiling)
    def for_device(self) -> CompiledGraph:
        """This graph, compiled for the GPU."""
        if self._requested.backend == DEVICE_CODE:
            return self
        return self._with_options(replace(self._requested, backend=DEVICE_CODE, interpret_first=False))

    def _run(
        self, executable: Compiled, sources: Sources, arguments: Sequence[Any], *, device: bool = False
    ) -> Any:
        try:
            return self._pack(execute(executable, sources, self._history, arguments, device=device))
        except InvalidArgumentError:
            if self.check_shapes is not None:
                self.check_shapes(arguments)
            raise

    def may_use_fast_path(self) -> bool:
        """Whether calls may take a fast path: the graph has run on the CPU, and no thread is compiling it."""
        return self.called and not self._is_on_device and not self.is_interpreted()

    def fast_path(self, form: CallForm | None = None) -> Callable[..., Any]:
        """The fast path for calls of ``form``: a function of the values of a call.

        It returns REFUSED for values that it doesn't serve.
        """
        return self._fast_paths.find(form, self._new_fast_path)

    def _new_fast_path(self, form: CallForm | None, temporary: bool) -> Callable[..., Any]:
        finish = self.finish_failed_call
        if not temporary and (call := c_call(self.executable, form, self._packer, finish)) is not None:
            return call
        # with dynamic sizes an error goes through ``check_shapes``, which ``execute`` calls
        reads = self.only_reads and not self._sizes_vary
        run = read_only_call(self.executable, self.sources.captured, self._pack) if reads else self.execute
        program = self._symbolic_program if self._sizes_vary else None
        guards = NO_GUARDS if program is None else program.guards
        return checked_call(self.executable.inputs.arguments, form, run, guards)

    def finish_failed_call(
        self, node: Node, make: Callable[[], BaseException] | None, arguments: Sequence[Any], recorded: bool
    ) -> None:
        """Replay the assignments before ``node``, at which a C fast call failed, and raise the error.

        Args:
            node: the node that failed, or the outermost loop that a signal interrupted.
            make: returns the error to raise; None if Python's error indicator is set.
            arguments: the tensors and variables of the call.
            recorded: whether the call needs no results of its collectives: see ``EffectLog``.
        """
        if node.op is REQUIRE_SIZE and make is not None and self.check_shapes is not None:
            self.check_shapes(arguments)
            raise make()
        history = self._history
        effect_log = history.effect_log() if history is not None else None
        error: BaseException
        if history is None or effect_log is None:
            error = KeyboardInterrupt() if make is None else make()
        else:
            effect_log.node, effect_log.make, effect_log.records_collectives = node, make, recorded
            error = history.recover(KeyboardInterrupt() if make is None else Halted(), effect_log, arguments)
        if make is not None:
            raise error

    def run(self, arguments: list[Array], effect_log: EffectLog | None = None) -> list[Array]:
        """The outputs for one array per argument; the arrays of updated variables are written to."""
        executable = self._interpreted() or self.executable
        captured = [capture.source for capture in executable.inputs.captures]
        return executable.run(arguments + [array_of(x) for x in captured], effect_log)

    # before it is compiled

    def is_interpreted(self) -> bool:
        """Whether NumPy runs a call that begins now.

        Starts the thread that compiles the graph, if there is none.
        """
        return self._background is not None and not self._is_compiled and self._background.start()

    @property
    def interpreted_calls(self) -> int:
        """The number of calls that NumPy has run while a thread compiled the graph."""
        return 0 if self._background is None else self._background.count

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the thread that compiles the graph, if there is one; returns whether it has ended."""
        return self._background is None or self._background.wait(timeout)

    def _interpreted(self) -> Compiled | None:
        """The interpreter's executable for a call that begins now; None if the compiled one is required."""
        background = None if self._is_compiled else self._background
        return None if background is None else background.executable_for_call()

    @property
    def _is_compiled(self) -> bool:
        return "executable" in self.__dict__

    def _compile(self) -> None:
        _ = self.executable
