"""``Function``: a Python function, traced once for each kind of arguments, and run as compiled code."""

from __future__ import annotations

import functools
import inspect
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Literal, ParamSpec, overload

import numpy as np

from dualflow.core import dispatch
from dualflow.core.errors import FailedPreconditionError
from dualflow.core.locks import imported
from dualflow.core.report_text import ReportText
from dualflow.core.spans import span
from dualflow.core.tracebacks import entry, hide_frames
from dualflow.eager.engine import EAGER
from dualflow.eager.tensor import EagerTensor
from dualflow.function.all_batches import trace_for_all_batches
from dualflow.function.arguments.dynamic_sizes import BATCH, count_dynamic_sizes, relaxed
from dualflow.function.arguments.retracing import TraceHistory
from dualflow.function.arguments.signature import CallArguments, Key, Signature, signature_specs
from dualflow.function.bound_method import BoundFunction, MethodTable, P, R, WeakMethod
from dualflow.function.calls.call_cache import CachedCall, Names, kind_of_call
from dualflow.function.calls.call_form import REFUSED, form_of, refuse
from dualflow.function.calls.execute import is_placed_on_device
from dualflow.function.calls.recorded_trace import RecordedTrace
from dualflow.function.calls.status_text import status
from dualflow.function.concrete import ConcreteFunction
from dualflow.function.control.postponed_calls import RANK_ERRORS
from dualflow.function.options import (
    AUTOMATIC,
    bytes_of,
    checked_backend,
    checked_first_call,
    checked_rewrites,
    checked_sizes,
)
from dualflow.function.pickling import PicklableFunction
from dualflow.function.run_eagerly import CALL_MODE
from dualflow.function.trace_cache import MAX_GUARDED_TRACES, MAX_TRACES, CacheInfo, TraceCache
from dualflow.function.trace_function import FunctionTracer
from dualflow.function.tracing.captured_values import CapturedValues
from dualflow.function.tracing.python_draws import PythonDraws
from dualflow.function.tracing.traceable import reject_suspended
from dualflow.function.tracing.tracer import Tracer, tracing_lock
from dualflow.graph.user_rewrites import REWRITES, Rewrite
from dualflow.sizes.abstract_size import AbstractSize, symbolic_sizes_enabled

if TYPE_CHECKING:
    from dualflow.function.debugging.stepping import Step

Q = ParamSpec("Q")
"""The parameters of a method, without self."""


class Function(PicklableFunction, Generic[P, R]):
    """A Python function that runs as compiled code; see :func:`function`, which returns it."""

    __signature__: inspect.Signature  # of bound methods only, which have no self

    def __init__(
        self,
        python_function: Callable[P, R],
        *,
        input_signature: Sequence[Any] | None = None,
        autograph: bool = True,
        reduce_retracing: bool | Literal["batch"] = False,
        jit_compile: bool | None = None,
        strict: bool = False,
        backend: str | None = None,
        memory_budget: int | str | None = None,
        first_call: str = "compile",
        sizes: str = AUTOMATIC,
        rewrites: Sequence[Rewrite] = (),
        name: str | None = None,
        signature: Signature | None = None,
    ) -> None:
        reject_suspended(python_function)
        self.python_function = python_function
        self.input_signature = None if input_signature is None else signature_specs(input_signature)
        self._signature = signature or Signature(python_function, self.input_signature)
        self._name = name or self._signature.name
        self._options: dict[str, Any] = {
            "autograph": autograph,
            "reduce_retracing": reduce_retracing,
            "jit_compile": jit_compile,
            "strict": strict,
            "backend": None if backend is None else checked_backend(backend),
            "memory_budget": None if memory_budget is None else bytes_of(memory_budget),
            "sizes": checked_sizes(sizes),
            "rewrites": checked_rewrites(rewrites),
            "first_call": checked_first_call(first_call, strict=strict, memory_budget=memory_budget),
        }
        self._captured = CapturedValues(self._name, python_function)
        self._tracer = FunctionTracer(
            python_function,
            self._signature,
            self._name,
            autograph=autograph,
            backend=self._options["backend"],
            strict=strict,
            memory_budget=self._options["memory_budget"],
            rewrites=self._options["rewrites"],
            interpret_first=first_call == "interpret",
            draws=PythonDraws(self._name, self._captured),
        )
        self._methods: MethodTable[Function[..., Any]] = MethodTable()
        self._calls = 0
        self._history = TraceHistory(self._name, self._may_relax_sizes)
        self._cache = TraceCache()
        self._recent = self._cache.recent
        functools.update_wrapper(self, python_function, updated=())

    @entry
    def _decorate(self, decorator: Callable[[Callable[P, R]], Callable[P, R]]) -> None:
        """Replace the Python function by ``decorator(function)``, as libraries do for methods of modules.

        Args:
            decorator: returns a function with the parameters of the one that it takes.

        Raises:
            FailedPreconditionError: the function has been traced.
        """
        if self._calls or self._history.count:
            raise FailedPreconditionError(
                f"{self._name!r} has been traced, so it can't be decorated any more; decorate it first."
            )
        options = {**self._all_options(), "signature": self._signature}
        self.__init__(decorator(self.python_function), **options)  # type: ignore[misc]  # it has no traces

    # calling

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The function's result, by the trace for the arguments."""
        try:
            self._calls += 1
            if CALL_MODE.is_slow:
                return self._in_mode(args, kwargs)
            if kwargs:
                return self._named(args, kwargs)
            if dispatch.current() is EAGER and (result := self._recent.fast(*args)) is not REFUSED:
                return result
            return self._slow(args)
        except Exception as error:
            if isinstance(error, RANK_ERRORS):
                postponed = dispatch.current().postponed(self, args, kwargs)  # in graph mode: of unknown rank
                if postponed is not None:
                    return postponed
            hide_frames(error)
            raise

    def _in_mode(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """The result of a call in a special mode: run as Python, inlined into its caller, or profiled."""
        if CALL_MODE.python:
            return self.python_function(*args, **kwargs)
        if threading.get_ident() in CALL_MODE.inlining:
            return self._tracer.inline(self._signature.bind(args, kwargs))
        with span("call", self.name):
            return self._slow((*args, *kwargs.values()), tuple(kwargs))

    def _named(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """The result of a call with keyword arguments."""
        names = tuple(kwargs)
        values = (*args, *kwargs.values())
        fast: Callable[..., Any] = self._recent.named.get((len(args), names), refuse)
        if dispatch.current() is EAGER and (result := fast(*values)) is not REFUSED:
            return result
        return self._slow(values, names)

    def _slow(self, values: Sequence[Any], names: Names = ()) -> Any:
        """The result of a call without a fast path; the last ``values`` are keyword arguments."""
        kind = kind_of_call(values, names)
        cached = self._recent.find(kind)
        if cached is None:
            return self._bound(values, names, kind)
        cached.trace.last_call = self._calls
        return self._run(cached, cached.inputs(values), names)

    def _bound(self, values: Sequence[Any], names: Names, kind: Hashable | None) -> Any:
        """The result of a call that is not in the cache of recent calls.

        It is added with the key ``kind``, if that is not None.
        """
        count = len(values) - len(names)
        call = self._signature.bind(values[:count], dict(zip(names, values[count:], strict=True)))
        inputs = call.inputs
        if symbolic_sizes_enabled and self._is_inside_guarded_trace(call):
            return self._tracer.inline(call)
        concrete = self._concrete(call, inputs)
        tensors = (EagerTensor,) if self.input_signature is not None else (EagerTensor, np.ndarray)
        if kind is None or len(inputs) != sum(type(x) in tensors for x in values):
            return concrete.run(inputs)
        indices = [i for i in self._signature.argument_indices(count, names) if type(values[i]) in tensors]
        return self._run(self._recent.keep(kind, concrete, form_of(indices, values)), inputs, names)

    def _run(self, cached: CachedCall[ConcreteFunction], inputs: Sequence[Any], names: Names) -> Any:
        """The result of a trace; from its second call on, the next call tries its fast path first.

        If it serves all sizes, and the function has been called before, that is from its first call on.
        """
        trace, generation = cached.trace, REWRITES.generation
        if dispatch.current() is not EAGER or CALL_MODE.watched:
            return trace.run(inputs)
        compiled = trace.compiled_for(inputs)
        values = cached.values(inputs)
        if not compiled.may_use_fast_path():
            result = trace.run(inputs)
            if self._calls > 1 and compiled.may_use_fast_path() and compiled.serves_all_sizes:
                fast = compiled.fast_path(cached.form)
                self._recent.try_first(fast, trace, len(values), names, generation)
            return result
        fast = compiled.fast_path(cached.form)
        self._recent.try_first(fast, trace, len(values), names, generation)
        result = fast(*values)
        return compiled.execute(*inputs) if result is REFUSED else result

    @entry
    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The trace for these arguments, a new one if there is none; nothing runs.

        Args:
            args: as for a call, with a TensorSpec instead of any tensor; none with an input signature.
            kwargs: likewise.
        """
        if self.input_signature is not None and not args and not kwargs:
            args = self.input_signature
        call = self._signature.bind(args, kwargs)
        return self._concrete(call, call.inputs, exact=True)

    @entry
    def debug(self, *args: Any, step: Callable[[Step], object] | None = None, **kwargs: Any) -> Any:
        """Run the trace for these arguments op by op in a debugger, at the lines of the Python function.

        It opens Python's debugger, pdb, at the first op. Each prompt is at the op's line in your code. Your
        arguments and local names have the values from the start of that line; a name whose value is not part
        of the trace prints as such. The op that has just run is ``op``, ``inputs``, ``outputs`` and
        ``attrs``, or, if you have such names yourself, ``__step__`` with these attributes. ``s`` goes to the
        next op, ``n`` steps over branches and loop bodies, ``r`` leaves one, ``b 12`` and ``c`` run to a
        line. ``q`` ends the call with an error that is a ``bdb.BdbQuit``; then no variable has changed. If an
        op fails, the debugger stops at it before the error is raised.

        The ops are those of the trace before any pass, run by their NumPy kernels; Python values that were
        compiled in are constants here too. The Python function runs if the arguments need a new trace, and
        once more before the prompt opens, to record the values of its names; with ``step`` it does not.

        Args:
            args: as for a call; likewise the keywords.
            step: called after each op with a :class:`df.debugging.Step`, instead of pdb. (If the function has
                a parameter of this name, pass it by position.)

        Returns:
            The result of the function; variables are assigned as by a call.

        Raises:
            DTypeError: ``step`` is no function.
            FailedPreconditionError: called while a function is traced or a tape records.

        >>> import dualflow as df
        >>> f = df.function(lambda x: df.reduce_sum(x * x))
        >>> f.debug(df.constant([1.0, 2.0]), step=print).numpy()
        multiply(float32[2], float32[2]) -> float32[2] = [1., 4.]
        reduce_sum(float32[2]) -> float32[] = 5.
        np.float32(5.0)
        """
        call = self._signature.bind(args, kwargs)
        inputs = call.inputs
        concrete = self._concrete(call, inputs)
        again = functools.partial(self._tracer.record, call)
        debugging = imported("dualflow.function.debugging.debug")
        trace = concrete.with_static_shapes(inputs).trace
        return debugging.debug(trace, inputs, step, again, self.python_function)

    # traces

    def _is_inside_guarded_trace(self, call: CallArguments) -> bool:
        """Whether the caller's trace has guarded sizes, which this function must read as numbers too."""
        tracer = dispatch.current().innermost
        if not isinstance(tracer, Tracer) or tracer.size_scope is None:
            return False
        return bool(count_dynamic_sizes(call.key)) or any(isinstance(x, AbstractSize) for x in call.leaves)

    def _concrete(
        self, call: CallArguments, inputs: Sequence[Any], *, exact: bool = False
    ) -> ConcreteFunction:
        """The trace for ``call``, or a new one. With ``exact`` it is for the sizes of ``call``."""
        concrete = self._traced(call, inputs, exact)
        replacing = None if exact else concrete.for_all_batches
        if replacing is None or not dispatch.current().innermost.eager or is_placed_on_device(inputs):
            return concrete
        return replacing

    def _traced(self, call: CallArguments, inputs: Sequence[Any], exact: bool) -> ConcreteFunction:
        """The trace with the key of ``call``, or another one that serves it, or a new one."""
        call_number, added = self._calls, self._cache.added
        concrete = self._cache.find(call, inputs, call_number, exact=exact)
        if concrete is not None:
            return concrete
        with tracing_lock.lock:
            if self._cache.added != added:  # by another thread
                concrete = self._cache.find(call, inputs, call_number, exact=exact)
            if concrete is None:
                earlier, began = self._cache.keys, time.perf_counter()
                concrete = self._tracer.new(call) if exact else self._relaxed(call, earlier)
                seconds = time.perf_counter() - began
                if self._options["strict"] and concrete.has_all_sizes:
                    _ = concrete.parts  # compiles it, which raises for an op without native code
                names, parameters = concrete.leaf_names, [p.name for p in self._signature.parameters]
                runs = concrete.for_all_batches or concrete
                keys = call.key, runs.key, earlier
                self._history.add(names, parameters, *keys, call_number, nested=self._tracer.busy)
                self._history.log_latest(seconds)
                self._cache.add(concrete, call_number)
                if runs is not concrete:
                    self._history.add_guards(runs.key, runs.leaf_names, runs.guards)
                    self._cache.add(runs, call_number)
                self._captured.record_trace(self._history.count)
            return concrete

    def _relaxed(self, call: CallArguments, earlier: Sequence[Key]) -> ConcreteFunction:
        """A new trace for ``call``; sizes in which calls differ are dynamic if the function allows it."""
        reduce = self._options["reduce_retracing"]
        if not reduce and not (self._may_relax_sizes and dispatch.current().innermost.eager):
            return self._tracer.new(call)
        relaxed_call = relaxed(call, earlier, reduce == BATCH, {} if reduce else self._history.fixed_axes)
        if relaxed_call.key == call.key and not reduce:
            return self._first(call)
        if (
            relaxed_call.key == call.key
            or self._history.dynamic_sizes_error
            or self._cache.count(relaxed_call.key) >= MAX_GUARDED_TRACES
        ):
            return self._tracer.new(call)
        try:
            concrete = self._tracer.new(relaxed_call, guards_sizes=not reduce)
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
        else:
            self._history.add_guards(concrete.key, concrete.leaf_names, concrete.guards)
            return concrete
        concrete = self._tracer.new(call)  # outside of the handler, so that its errors stand alone
        self._history.dynamic_sizes_error = message
        return concrete

    def _first(self, call: CallArguments) -> ConcreteFunction:
        """A new trace for arguments that differ from those of earlier traces in more than sizes."""
        static = self._tracer.new(call)
        if self.input_signature is None:
            fixed = self._history.fixed_axes
            static.for_all_batches = trace_for_all_batches(self._tracer, static, call, fixed)
        return static

    @property
    def _may_relax_sizes(self) -> bool:
        """Whether sizes that differ between calls are dynamic, with guards for Python's comparisons."""
        return bool(self._options["sizes"] == AUTOMATIC)

    def trace_for(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[RecordedTrace, list[Any]]:
        """The trace for these arguments, and the tensors and variables among them."""
        call = self._signature.bind(args, kwargs)
        inputs = call.inputs
        return self._concrete(call, inputs).with_static_shapes(inputs).trace, inputs

    def traced(self, call: CallArguments) -> ConcreteFunction:
        """A new trace for ``call``, which is not cached."""
        return self._tracer.record(call)

    # inspection

    def explain(self) -> str:
        """A report of the traces: at which call each was traced, and the argument that required it.

        That is the argument that differed from the nearest earlier trace. The report has further lines:

        * with ``first_call="interpret"``, the last call of each trace that NumPy ran;
        * rewrites of users, and the lines of the ops that each has replaced;
        * if kernels compute values again, their work relative to that of the ops;
        * the Python values of globals and closures that the traces have compiled in, and whether they have
          changed since.

        >>> import dualflow as df
        >>> f = df.function(lambda x, n: x * n, name="scale")
        >>> _ = f(df.constant(1.0), 2), f(df.constant(1.0), 3)
        >>> print(f.explain())
        scale was traced 2 times.
        1. at call 1: x: float32[], n: 2
        2. at call 2: x: float32[], n: 3  because n went from 2 to 3 (Python numbers are compiled in: ...)
        """
        interpreted = [c.interpretation_note for c in self.concrete_functions if c.interpretation_note]
        notes = [c.recomputation_note for c in self.concrete_functions if c.recomputation_note]
        rewritten = [f"{c!r}: {line}" for c in self.concrete_functions for line in c.rewrite_report]
        lines = [self._history.explain(), *interpreted, *notes, *rewritten, *self._captured.explain()]
        return ReportText("\n".join(lines))

    @entry
    def wait_until_compiled(self, timeout: float | None = None) -> bool:
        """Wait for the threads that compile its traces; calls from then on run compiled code.

        Only a function with ``first_call="interpret"`` has such threads. Calls start them, so there is none
        for a trace that has not been called. Traces that are created during the wait are not waited for.

        Args:
            timeout: the largest number of seconds to wait; None without a limit.

        Returns:
            Whether all threads have ended.

        >>> import dualflow as df
        >>> f = df.function(lambda x: df.exp(x) - 1.0, first_call="interpret")
        >>> f(df.constant(0.0)).numpy(), f.wait_until_compiled(), f(df.constant(0.0)).numpy()
        (np.float32(0.0), True, np.float32(0.0))
        """
        end = None if timeout is None else time.monotonic() + timeout
        traces = self.concrete_functions
        return all(c.wait(None if end is None else max(0.0, end - time.monotonic())) for c in traces)

    def status(self) -> str:
        """A report of how the parts of each trace run: natively, through NumPy or in Python, and why.

        Then the fast paths of this process: the C fast call, the linker, threads, our own matrix product,
        the disk cache; with the reason if one is unavailable. Traces that have not run yet are compiled,
        except those with dynamic sizes.
        """
        traces = self.concrete_functions
        return status(traces) if traces else ReportText(f"{self._name} has not been traced yet")

    @property
    def concrete_functions(self) -> list[ConcreteFunction]:
        """The cached traces, in the order of their creation."""
        return self._cache.traces

    @property
    def traces_without_guards(self) -> list[ConcreteFunction]:
        """The cached traces that a saved model has."""
        return self._cache.without_guards

    def cache_info(self) -> CacheInfo:
        """The number of hits and misses, the largest and the current number of traces."""
        misses = self._tracer.attempts
        return CacheInfo(self._calls - misses, misses, MAX_TRACES, len(self.concrete_functions))

    def clear_cache(self) -> None:
        """Remove all traces, and free their memory."""
        self._cache.clear()

    def experimental_get_tracing_count(self) -> int:
        """The number of times that the function was traced."""
        return self._history.count

    def pretty_printed_concrete_signatures(self, verbose: bool = True) -> str:
        """The arguments of each cached trace; ``verbose`` is ignored."""
        return ReportText("\n".join(map(repr, self.concrete_functions)))

    @property
    def name(self) -> str:
        return self._name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Function[P, R]: ...
    @overload
    def __get__(
        self: Function[Concatenate[Any, Q], R], instance: object, owner: type | None = None
    ) -> BoundFunction[Q, R]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        try:
            return BoundFunction(self._methods.get(instance, self._method), instance)
        except Exception as error:
            hide_frames(error)
            raise

    def _method(self, instance: Any) -> Function[..., Any]:
        signature = Signature(self.python_function, self.input_signature, skip_first=True)
        bound: Function[..., Any] = Function(
            WeakMethod(self.python_function, instance),
            input_signature=self.input_signature,
            name=self._name,
            signature=signature,
            **self._options,
        )
        functools.update_wrapper(bound, self.python_function, updated=())
        bound.__signature__ = signature.python
        return bound

    def __repr__(self) -> str:
        return f"<dualflow function {self._name}>"
