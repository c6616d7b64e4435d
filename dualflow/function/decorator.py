"""``@function``: the same Python, traced once for each kind of arguments and run compiled."""

from __future__ import annotations

import functools
import inspect
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Literal, ParamSpec, TypedDict, Unpack, overload

import numpy as np

from dualflow.core import dispatch
from dualflow.core.locks import imported
from dualflow.core.spans import span
from dualflow.core.tracebacks import entry, hide_frames
from dualflow.eager.engine import EAGER
from dualflow.eager.tensor import EagerTensor
from dualflow.function.arguments.open_sizes import BATCH, relaxed
from dualflow.function.arguments.retracing import TraceHistory
from dualflow.function.arguments.signature import CallArguments, Key, Signature
from dualflow.function.bound_method import BoundFunction, MethodTable, P, R, WeakMethod
from dualflow.function.calls.call_cache import CachedCall, Names, kind_of_call
from dualflow.function.calls.call_form import REFUSED, form_of, refuse
from dualflow.function.calls.status import status
from dualflow.function.concrete import ConcreteFunction
from dualflow.function.options import bytes_of, known_backend, known_first_call
from dualflow.function.pickling import Copied
from dualflow.function.run_eagerly import FALLBACKS
from dualflow.function.trace_cache import MAX_TRACES, CacheInfo, TraceCache
from dualflow.function.trace_function import FunctionTracer
from dualflow.function.tracing.captured_values import CapturedValues
from dualflow.function.tracing.python_draws import PythonDraws
from dualflow.function.tracing.traceable import refuse_suspended
from dualflow.function.tracing.tracer import tracing_lock

if TYPE_CHECKING:
    from dualflow.function.debugging.stepping import Step

Q = ParamSpec("Q")
"""The parameters of a method, without self."""


class Function(Copied, Generic[P, R]):
    """A Python function that runs compiled. Made by :func:`function`, which says more."""

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
        name: str | None = None,
        signature: Signature | None = None,
    ) -> None:
        refuse_suspended(python_function)
        self.python_function = python_function
        self.input_signature = None if input_signature is None else tuple(input_signature)
        self._signature = signature or Signature(python_function, self.input_signature)
        self._name = name or self._signature.name
        self._options: dict[str, Any] = {
            "autograph": autograph,
            "reduce_retracing": reduce_retracing,
            "jit_compile": jit_compile,
            "strict": strict,
            "backend": None if backend is None else known_backend(backend),
            "memory_budget": None if memory_budget is None else bytes_of(memory_budget),
            "first_call": known_first_call(first_call, strict=strict, memory_budget=memory_budget),
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
            interpret_first=first_call == "interpret",
            draws=PythonDraws(self._name, self._captured),
        )
        self._methods: MethodTable[Function[..., Any]] = MethodTable()
        self._calls = 0
        self._history = TraceHistory(self._name)
        self._cache = TraceCache()
        self._recent = self._cache.recent
        functools.update_wrapper(self, python_function, updated=())

    # calling

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The function's result, from the trace that fits the arguments."""
        try:
            self._calls += 1
            if FALLBACKS.on:
                return self._in_mode(args, kwargs)
            if kwargs:
                return self._named(args, kwargs)
            if dispatch.current() is EAGER and (result := self._recent.fast(*args)) is not REFUSED:
                return result
            return self._slow(args)
        except Exception as error:
            hide_frames(error)
            raise

    def _in_mode(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """A call as Python, inlined into its caller, or profiled."""
        if FALLBACKS.python:
            return self.python_function(*args, **kwargs)
        if threading.get_ident() in FALLBACKS.inlining:
            return self._tracer.inline(self._signature.bind(args, kwargs))
        with span("call", self.name):
            return self._slow((*args, *kwargs.values()), tuple(kwargs))

    def _named(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """A call with keywords."""
        names = tuple(kwargs)
        values = (*args, *kwargs.values())
        fast: Callable[..., Any] = self._recent.named.get((len(args), names), refuse)
        if dispatch.current() is EAGER and (result := fast(*values)) is not REFUSED:
            return result
        return self._slow(values, names)

    def _slow(self, values: Sequence[Any], names: Names = ()) -> Any:
        """A call that no fast path served; the last values are keyword arguments of these names."""
        kind = kind_of_call(values, names)
        known = self._recent.find(kind)
        if known is None:
            return self._bound(values, names, kind)
        known.trace.used = self._calls
        return self._run(known, known.inputs(values), names)

    def _bound(self, values: Sequence[Any], names: Names, kind: Hashable | None) -> Any:
        """Any call; ``kind`` is how to find the trace faster next time, None if there is no such way."""
        count = len(values) - len(names)
        call = self._signature.bind(values[:count], dict(zip(names, values[count:], strict=True)))
        inputs = call.inputs
        concrete = self._concrete(call, inputs)
        tensors = (EagerTensor,) if self.input_signature is not None else (EagerTensor, np.ndarray)
        if kind is None or len(inputs) != sum(type(x) in tensors for x in values):
            return concrete.run(inputs)
        places = [i for i in self._signature.places(count, names) if type(values[i]) in tensors]
        return self._run(self._recent.keep(kind, concrete, form_of(places, values)), inputs, names)

    def _run(self, known: CachedCall[ConcreteFunction], inputs: Sequence[Any], names: Names) -> Any:
        """The result of a trace; the next call tries its fast path first, from the second call on."""
        trace = known.trace
        compiled = trace.for_shapes(inputs).compiled
        if dispatch.current() is not EAGER or FALLBACKS.watched or not compiled.is_ready:
            return trace.run(inputs)
        values = known.values(inputs)
        fast = compiled.fast_path(known.form)
        self._recent.try_first(fast, trace, len(values), names)
        result = fast(*values)
        return compiled.execute(*inputs) if result is REFUSED else result

    @entry
    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The trace for these arguments, made if need be; nothing runs.

        Args:
            args: as for a call, where a TensorSpec may stand for any tensor; none with an input signature.
            kwargs: likewise.
        """
        if self.input_signature is not None and not args and not kwargs:
            args = self.input_signature
        call = self._signature.bind(args, kwargs)
        return self._concrete(call, call.inputs)

    @entry
    def debug(self, *args: Any, step: Callable[[Step], object] | None = None, **kwargs: Any) -> Any:
        """Run the trace for these arguments op by op, with real values, on the lines that asked for the ops.

        It opens Python's debugger, pdb, at the first op. Each prompt stands on your own line. Your arguments
        and local names have the values that they had there as the line began, or say so where the trace keeps
        none; the op that has just run is ``op``, ``inputs``, ``outputs`` and ``attrs``, or, where you have
        such names yourself, ``__step__`` with these attributes. ``s`` goes to the next op,
        ``n`` likewise but not into branches and loop bodies, ``r`` leaves one, ``b 12`` and ``c`` run to a
        line, ``q`` ends the call with an error that is a ``bdb.BdbQuit``, and no variable has changed. An op
        that fails is stopped at, before its error goes on.

        The ops are those of the trace before any pass, run by their NumPy kernels; Python values that were
        compiled in are constants here too. The Python function runs if the arguments need a new trace, and
        before the prompt opens once more, to see what its names stand for; with ``step`` it does not.

        Args:
            args: as for a call; likewise the keywords.
            step: called after each op with a :class:`df.debugging.Step`, in place of pdb. (A parameter of the
                function's own that has this name is given by its place.)

        Returns:
            What the function returns; variables are assigned as by a call.

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
        return debugging.debug(concrete.for_shapes(inputs), inputs, step, again, self.python_function)

    # traces

    def _concrete(self, call: CallArguments, inputs: Sequence[Any]) -> ConcreteFunction:
        """The trace for ``call``; a new one if there is none."""
        now = self._calls
        concrete = self._cache.find(call, inputs, now)
        if concrete is not None:
            return concrete
        with tracing_lock.lock:
            concrete = self._cache.find(call, inputs, now)  # another thread may have added it
            if concrete is None:
                earlier = self._cache.keys
                concrete = self._relaxed(call, earlier)
                if self._options["strict"] and concrete.sized:
                    _ = concrete.parts  # compiles it, which raises for an op without native code
                self._history.add(
                    self._signature, call.key, concrete.key, earlier, now, nested=self._tracer.busy
                )
                self._cache.add(concrete, now)
                self._captured.note(self._history.count)
            return concrete

    def _relaxed(self, call: CallArguments, earlier: Sequence[Key]) -> ConcreteFunction:
        """A new trace for ``call``, with open sizes where earlier calls had others, if that can be traced."""
        reduce = self._options["reduce_retracing"]
        open_call = relaxed(call, earlier, reduce == BATCH) if reduce else call
        if open_call.key == call.key or self._history.sizes_needed:
            return self._tracer.new(call)
        try:
            return self._tracer.new(open_call)
        except Exception as error:
            concrete = self._tracer.new(call)
            self._history.sizes_needed = f"{type(error).__name__}: {error}"
            return concrete

    def traced(self, call: CallArguments) -> ConcreteFunction:
        """A new trace for ``call``, which nothing keeps."""
        return self._tracer.record(call)

    # looking

    def explain(self) -> str:
        """What was traced, at which call, and why: the argument that differed from the nearest earlier trace.

        Where ``first_call`` is ``"interpret"``, up to which call NumPy ran each. Where kernels compute values
        again, how much work they execute compared with that of their ops. Then the Python values that the
        traces keep, of globals and closures that the function's own code reads, and whether they have changed
        since.

        >>> import dualflow as df
        >>> f = df.function(lambda x, n: x * n, name="scale")
        >>> _ = f(df.constant(1.0), 2), f(df.constant(1.0), 3)
        >>> print(f.explain())
        scale was traced 2 times.
        1. at call 1: x: float32[], n: 2
        2. at call 2: x: float32[], n: 3  because n went from 2 to 3 (Python numbers are compiled in: ...)
        """
        first_calls = [c.first_calls for c in self.concrete_functions if c.first_calls]
        executed = [c.executed for c in self.concrete_functions if c.executed]
        return "\n".join([self._history.explain(), *first_calls, *executed, *self._captured.explain()])

    @entry
    def wait_until_compiled(self, timeout: float | None = None) -> bool:
        """Wait for the threads that compile its traces; calls from then on run compiled code.

        Only a function with ``first_call="interpret"`` has such threads. They are started by calls, so one
        that has not been called is not waited for, and neither is a trace that is made meanwhile.

        Args:
            timeout: the most seconds to wait; None for any.

        Returns:
            Whether nothing is being compiled any more.

        >>> import dualflow as df
        >>> f = df.function(lambda x: df.exp(x) - 1.0, first_call="interpret")
        >>> f(df.constant(0.0)).numpy(), f.wait_until_compiled(), f(df.constant(0.0)).numpy()
        (np.float32(0.0), True, np.float32(0.0))
        """
        end = None if timeout is None else time.monotonic() + timeout
        traces = self.concrete_functions
        return all(c.wait(None if end is None else max(0.0, end - time.monotonic())) for c in traces)

    def status(self) -> str:
        """How the parts of each trace run: natively, through NumPy or in Python, and why not natively.

        Then what works in this process: the builtin call, the linker, threads, our own matrix product, the
        disk cache; with the reason where one is off. Compiles the traces that have not run yet, except those
        that leave sizes open.
        """
        traces = self.concrete_functions
        return status(traces) if traces else f"{self._name} has not been traced yet"

    @property
    def concrete_functions(self) -> list[ConcreteFunction]:
        """The traces that are kept, in the order they were made."""
        return self._cache.traces

    def cache_info(self) -> CacheInfo:
        """Hits, misses, and how many traces there may be and are."""
        misses = self._tracer.attempts
        return CacheInfo(self._calls - misses, misses, MAX_TRACES, len(self.concrete_functions))

    def clear_cache(self) -> None:
        """Forget all traces and free what they hold."""
        self._cache.clear()

    def experimental_get_tracing_count(self) -> int:
        """How many times the function was traced."""
        return self._history.count

    def pretty_printed_concrete_signatures(self, verbose: bool = True) -> str:
        """The arguments of each trace that is kept; ``verbose`` is ignored."""
        return "\n".join(map(repr, self.concrete_functions))

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


class _FunctionOptions(TypedDict, total=False):
    """The options of :func:`function`, which don't decide the type of its result."""

    input_signature: Sequence[Any] | None
    autograph: bool
    jit_compile: bool | None
    reduce_retracing: bool | Literal["batch"]
    experimental_relax_shapes: bool
    strict: bool
    memory_budget: int | str | None
    first_call: Literal["compile", "interpret"]
    name: str | None


@overload
def function(func: Callable[P, R], **options: Unpack[_FunctionOptions]) -> Function[P, R]: ...
@overload
def function(
    func: None = None, **options: Unpack[_FunctionOptions]
) -> Callable[[Callable[P, R]], Function[P, R]]: ...
def function(
    func: Callable[..., Any] | None = None,
    input_signature: Sequence[Any] | None = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool | Literal["batch"] = False,
    experimental_implements: Any = None,
    experimental_autograph_options: Any = None,
    experimental_attributes: Any = None,
    experimental_relax_shapes: bool | None = None,
    experimental_compile: bool | None = None,
    experimental_follow_type_hints: bool | None = None,
    *,
    strict: bool = False,
    backend: str | None = None,
    memory_budget: int | str | None = None,
    first_call: Literal["compile", "interpret"] = "compile",
    name: str | None = None,
) -> Any:
    """Compile a Python function: traced once for each kind of arguments, it then runs as native code.

    Tensors and arrays are arguments of the graph: others of the same shape and dtype run the same trace.
    Python numbers, strings and other objects are compiled in: another value is another trace. So are the
    tensors and globals that the function uses, which calls don't look at again (``explain`` lists them, and
    a CapturedValueWarning tells of traces that differ); variables are read and assigned anew by each call.
    Python's side effects happen while tracing only; those of ops (``df.print``, assignments, random numbers)
    at each call, in program order.

    Args:
        func: the function; without it, a decorator is returned.
        input_signature: for each parameter a :class:`TensorSpec`, or a structure of them, that arguments are
            converted to; then there is one trace, also for sizes left open by None, or one for each rank
            where the shape itself is None.
        autograph: whether ``if``, ``while`` and ``for`` on tensors are converted.
        jit_compile: ignored: every function is compiled.
        reduce_retracing: whether a size in which calls differ is left open by the second trace, which then
            serves all sizes: the Python function sees None for it. Another rank or dtype is still another
            trace. A function that can't be traced without the size is traced for each; ``explain`` tells.
            ``"batch"`` leaves open the first sizes only, unless calls have differed in others thrice.
        experimental_relax_shapes: the earlier name of ``reduce_retracing``.
        strict: whether a trace of which a part would run through NumPy or in Python (``status`` names those)
            is an error, when it is made; for open sizes, when it is first called with some.
        backend: what runs the graph, ``"llvm"``, ``"numba"`` or ``"numpy"``; by default what
            :func:`dualflow.config.set_backend` has chosen.
        memory_budget: the most memory that a call may take beside its arguments, variables and constants, in
            bytes or as text such as ``"2GB"`` or ``"512MiB"``. Where the plan of a trace takes more, values
            that wait long for a reader, such as those that a gradient needs, are computed again in the place
            of being kept: the cheapest work for the most bytes first, until the plan fits. Results are the
            same to the bit. It holds for the trace that is called, and what other traced functions add to
            it; bodies of loops count, but only whole loops and branches are left out or computed again (see
            :func:`dualflow.config.set_loop_memory` for what loops keep of their iterations). Where an eager
            tape watches, it holds for the way forward and for the way back, each by itself.
            ``get_concrete_function(...).memory`` tells what was done.
        first_call: ``"compile"``, the default: the first call of a trace compiles it, and all calls give the
            same digits. ``"interpret"``: a thread compiles it, and calls run through NumPy meanwhile, op by
            op as eager code does; calls that begin after that run compiled code, whose last digits may
            differ. ``explain`` tells up to which call NumPy ran, and :meth:`Function.wait_until_compiled`
            waits for the threads. What the compile raises is raised by the call that comes next. A process
            that ends waits for the trace that is being compiled, a forked child compiles for itself.
        name: shown in errors and graphs; by default the function's.
        experimental_implements, experimental_autograph_options, experimental_attributes: ignored.
        experimental_compile, experimental_follow_type_hints: ignored.

    Returns:
        A :class:`Function`, called like ``func``.

    Raises:
        DTypeError: an argument without a hash, a result that is no tensor, or an async or generator function.
        InvalidArgumentError: a variable is created after the first call; or ``first_call="interpret"`` is
            asked of a function that is strict or has a memory budget.
        OperatorNotAllowedInGraphError: the function asks for the value of a tensor while it is traced.
        FailedPreconditionError: the function is strict, and a part of it would not run natively; or it has a
            memory budget, and sizes of tensors that its data decide.
        ResourceExhaustedError: at the first call: no plan keeps the memory budget; it says the smallest one.

    >>> import dualflow as df
    >>> @df.function
    ... def norm(x):
    ...     return df.sqrt(df.reduce_sum(x * x))
    >>> norm(df.constant([3.0, 4.0])).numpy()
    np.float32(5.0)
    """
    make = functools.partial(
        _make,
        input_signature=input_signature,
        autograph=autograph,
        jit_compile=jit_compile,
        reduce_retracing=reduce_retracing or bool(experimental_relax_shapes),
        strict=strict,
        backend=backend,
        memory_budget=memory_budget,
        first_call=first_call,
        name=name,
    )
    try:
        return make if func is None else make(func)
    except Exception as error:
        hide_frames(error)
        raise


@entry
def _make(func: Callable[..., Any], **options: Any) -> Function[..., Any]:
    """What the decorator with arguments calls."""
    return Function(func, **options)
