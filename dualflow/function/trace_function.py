"""Traces a Python function for the arguments of a call: runs it once, with symbolic tensors for tensors.

Its control flow is converted first.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import zero_array
from dualflow.core.dispatch import AbstractVariable
from dualflow.core.garbage_collection import collections_delayed
from dualflow.core.locks import cached_attribute
from dualflow.core.records import replace
from dualflow.core.spans import span
from dualflow.core.spec import TensorSpec
from dualflow.core.traced_device import traced_on
from dualflow.core.tree import unflatten
from dualflow.eager.engine import EAGER, EagerEngine
from dualflow.eager.tensor import wrap
from dualflow.function.arguments.results import Packer
from dualflow.function.arguments.signature import CallArguments, Key, Signature
from dualflow.function.arguments.trace_key import TensorLeaf, VariableLeaf
from dualflow.function.autograph.conversion import converted
from dualflow.function.calls.recorded_trace import RecordedTrace
from dualflow.function.calls.trace_sizes import TraceSizes
from dualflow.function.concrete import ConcreteFunction
from dualflow.function.errors import RecursiveTraceError
from dualflow.function.options import DEVICE_CODE, compile_options
from dualflow.function.tracing.collect_results import collect
from dualflow.function.tracing.dynamic_axes import named_dynamic_axes
from dualflow.function.tracing.numpy_writes import named_numpy_writes
from dualflow.function.tracing.python_draws import FrozenRead, PythonDraws, recorded_clocks
from dualflow.function.tracing.size_scope import guarded_sizes
from dualflow.function.tracing.tracer import Tracer, tracing, tracing_lock
from dualflow.function.tracing.variable_creation import VariableCreation
from dualflow.graph.ir import GraphBuilder
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.graph.size_guards import NO_GUARDS
from dualflow.graph.user_rewrites import Rewrite

_NO_IDS: Final[frozenset[int]] = frozenset()
TRACE_LISTENERS: Final[list[Callable[[ConcreteFunction], None]]] = []
"""Functions that are called with each new trace."""


class FunctionTracer:
    """Creates the traces of one function.

    Args:
        function: the user's function.
        signature: its signature.
        name: the name of its traces.
        autograph: whether its control flow is converted.
        backend: the backend of its traces; None for the process's setting at each trace.
        strict: whether all of a trace must run natively.
        memory_budget: the largest number of bytes that a call may allocate; None without a limit.
        rewrites: the function's own rewrites.
        interpret_first: whether NumPy runs calls while a thread compiles.
        draws: finds random numbers that Python and NumPy draw during a trace.

    Attributes:
        function: the user's function.
        attempts: the number of traces, those that failed included.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        signature: Signature,
        name: str,
        *,
        autograph: bool,
        backend: str | None,
        strict: bool,
        memory_budget: int | None,
        rewrites: tuple[Rewrite, ...],
        interpret_first: bool,
        draws: PythonDraws,
    ) -> None:
        self.attempts = 0
        self.function = function
        self._signature = signature
        self._name = name
        self._autograph = autograph
        self._backend = backend
        self._strict = strict
        self._memory_budget = memory_budget
        self._rewrites = rewrites
        self._interpret_first = interpret_first
        self._draws = draws
        self._creation = VariableCreation(name)
        self._tracing: list[Key] = []  # a set would hash each key, which reads all its leaves

    @property
    def busy(self) -> bool:
        """Whether the function is being traced now."""
        return bool(self._tracing)

    def new(self, call: CallArguments, *, guards_sizes: bool = False) -> ConcreteFunction:
        """A new trace for ``call``.

        A function that creates variables is traced a second time, after these exist. With
        ``guards_sizes``, Python code reads dynamic sizes as the numbers of ``call``, and the trace has guards
        for its decisions; else it reads None.

        Raises:
            RecursiveTraceError: the function is already being traced for such a call.
        """
        if call.key in self._tracing:
            raise RecursiveTraceError(
                f"{self._name!r} called itself with arguments of the same shapes and dtypes while it was "
                "traced, which would never end. Count down a Python argument, or write the recursion as a "
                "loop."
            )
        self._tracing.append(call.key)
        try:
            with span("trace", self._name), collections_delayed():
                concrete = self._new(call, guards_sizes)
            for listener in tuple(TRACE_LISTENERS):
                listener(concrete)
            return concrete
        finally:
            self._tracing.pop()

    def _new(self, call: CallArguments, guards_sizes: bool) -> ConcreteFunction:
        created = len(self._creation.sites)
        self.attempts += 1
        warnings, states = PythonDraws.warnings, self._draws.states()
        concrete = self.record(call, guards_sizes=guards_sizes)
        self._creation.allowed = False
        if len(self._creation.sites) > created:  # in this trace the variables exist
            warnings, states = PythonDraws.warnings, self._draws.states()
            concrete = self.record(call, guards_sizes=guards_sizes)
        if PythonDraws.warnings == warnings:  # else a function that was traced inside has warned
            self._draws.warn(self._draws.drawn_since(states))
        return concrete

    def frozen_reads(self, call: CallArguments) -> list[FrozenRead]:
        """The generators and clocks of Python and NumPy that a new trace for ``call`` reads."""
        with tracing_lock.lock:
            states = self._draws.states()
            with recorded_clocks() as called:
                self.record(call)
            return [*self._draws.drawn_since(states), *self._draws.clocks(called)]

    def inline(self, call: CallArguments) -> Any:
        """The result of the function for ``call``, run in the enclosing trace, or eagerly."""
        args, kwargs = self._signature.spread(unflatten(call.structure, call.leaves))
        if isinstance(dispatch.current(), EagerEngine):
            return self.function(*args, **kwargs)
        return self._traceable(*args, **kwargs)

    def record(
        self, call: CallArguments, builder: GraphBuilder | None = None, *, guards_sizes: bool = False
    ) -> ConcreteFunction:
        """A new trace for ``call``; nodes are added to ``builder``, by default to a new one."""
        return self._recorded(self._traceable, call, builder, guards_sizes)

    @cached_attribute
    def _traceable(self) -> Callable[..., Any]:
        """The function, with its control flow over tensors converted if ``autograph`` is set."""
        return converted(self.function) if self._autograph else self.function

    def _recorded(
        self,
        function: Callable[..., Any],
        call: CallArguments,
        builder: GraphBuilder | None,
        guards_sizes: bool,
    ) -> ConcreteFunction:
        """The trace of ``function``, the user's or the converted one.

        It runs twice if it captures a variable that is an argument too: both must be one input of the graph,
        and only the first run shows which variables these are.
        """
        options = compile_options(
            self._backend,
            self._strict,
            self._memory_budget,
            interpret_first=self._interpret_first,
            rewrites=self._rewrites,
        )
        concrete = self._run(function, call, options, _NO_IDS, builder, guards_sizes)
        captured = {id(source) for source in concrete.captured}
        variables = [x for x in call.inputs if isinstance(x, AbstractVariable)]
        captured_arguments = frozenset(id(v) for v in variables if id(v) in captured)
        if not captured_arguments:
            return concrete
        again = None if builder is None else builder.inner(self._name)
        return self._run(function, call, options, captured_arguments, again, guards_sizes)

    def _run(
        self,
        function: Callable[..., Any],
        call: CallArguments,
        options: CompileOptions,
        captured_arguments: frozenset[int],
        builder: GraphBuilder | None,
        guards_sizes: bool,
    ) -> ConcreteFunction:
        """The trace of one run; ``captured_arguments`` are the ids of arguments that are captured too."""
        signature = self._signature
        tracer = Tracer(self._name, self._creation, options, seeds_begin_anew=True)
        tracer.builder = builder or tracer.builder
        names = signature.leaf_names(call.structure)
        leaves = _symbolic(tracer, call, names, captured_arguments)
        scope = TraceSizes(tracer).scope(call.inputs) if guards_sizes else None
        with (
            tracing(tracer),
            traced_on(None),
            named_numpy_writes(),
            named_dynamic_axes(tracer),
            guarded_sizes(tracer, scope),
        ):
            values = unflatten(call.structure, leaves)  # constructors of composites may run ops
            args, kwargs = signature.spread(values)
            result = function(*args, **kwargs)
            structure, outputs = collect(result, tracer)  # sizes among them are scalars of the trace
        signature.check_unmodified(values, call.structure, leaves)
        graph = eliminate_dead_code(tracer.builder.finish(outputs, tracer.updates()))
        variables = [x for x in call.inputs if isinstance(x, AbstractVariable)]
        trace = RecordedTrace(
            tracer,
            graph,
            replace(options, backend=DEVICE_CODE, on_device=True) if tracer.on_device else options,
            variable_arguments=tracer.variable_arguments,
            pack=Packer(structure),
            guards=NO_GUARDS if scope is None else scope.finish(),
        )
        return ConcreteFunction(
            trace,
            signature=signature,
            names=names,
            key=call.key,
            structure=structure,
            captured_arguments=[v if id(v) in captured_arguments else None for v in variables],
        )


def _symbolic(
    tracer: Tracer, call: CallArguments, names: Sequence[str], captured_arguments: frozenset[int]
) -> list[Any]:
    """The arguments of the traced function: symbolic tensors, stand-ins for variables, Python values."""
    bound: dict[int, Any] = {}
    leaves: list[Any] = []
    for leaf, value, name in zip(call.key.leaves, call.leaves, names, strict=True):
        if isinstance(leaf, TensorLeaf):
            leaves.append(
                tracer.argument(TensorSpec(leaf.spec.shape, leaf.spec.dtype, leaf.spec.name or name))
            )
        elif isinstance(leaf, VariableLeaf):
            if id(value) not in bound:
                bound[id(value)] = value if id(value) in captured_arguments else _stand_in(value)
                tracer.bind(bound[id(value)])
            leaves.append(bound[id(value)])
        else:
            leaves.append(value)
    return leaves


def _stand_in(variable: Any) -> Any:
    """A copy of a variable for the trace, with a value of zeros: each call passes its own variable."""
    stand_in = copy.copy(variable)
    shape = variable.shape if variable.shape.is_static else EAGER.read(variable)._array.shape
    stand_in._tensor = wrap(np.broadcast_to(zero_array((), variable.dtype.dtype), shape))
    return stand_in
