"""``@function``: the decorator that compiles a Python function."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal, Unpack, overload

from dualflow.core.tracebacks import entry, hide_frames
from dualflow.function.bound_method import P, R
from dualflow.function.options import FunctionOptions
from dualflow.function.traced_function import Function
from dualflow.graph.user_rewrites import Rewrite


@overload
def function(func: Callable[P, R], **options: Unpack[FunctionOptions]) -> Function[P, R]: ...
@overload
def function(
    func: None = None, **options: Unpack[FunctionOptions]
) -> Callable[[Callable[P, R]], Function[P, R]]: ...
def function(
    func: Callable[..., Any] | None = None,
    input_signature: Sequence[Any] | None = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool | Literal["batch"] = False,
    experimental_implements: object = None,
    experimental_autograph_options: object = None,
    experimental_attributes: object = None,
    experimental_relax_shapes: bool | None = None,
    experimental_compile: bool | None = None,
    experimental_follow_type_hints: bool | None = None,
    *,
    strict: bool = False,
    backend: str | None = None,
    memory_budget: int | str | None = None,
    first_call: Literal["compile", "interpret"] = "compile",
    sizes: Literal["automatic", "exact"] = "automatic",
    rewrites: Sequence[Rewrite] = (),
    name: str | None = None,
) -> Any:
    """Compile a Python function: it is traced once for each kind of arguments, then runs as native code.

    Tensors and arrays are arguments of the graph: others of the same shape and dtype run the same trace.
    Python numbers, strings and other objects are compiled in: another value is another trace. Tensors and
    globals that the function uses are compiled in too, and calls don't read them again (``explain`` lists
    them, and a CapturedValueWarning reports traces that differ). Each call reads and assigns variables.
    Python's side effects happen only during tracing; those of ops (``df.print``, assignments, random
    numbers) at each call, in program order.

    Args:
        func: the function; without it, a decorator is returned.
        input_signature: for each parameter a :class:`TensorSpec`, or a structure of them, to which arguments
            are converted. Then there is one trace, in which sizes that are None are dynamic; or one for each
            rank if a shape is None.
        autograph: whether ``if``, ``while`` and ``for`` on tensors are converted.
        jit_compile: ignored: every function is compiled.
        reduce_retracing: if True, an axis whose size differs between calls becomes dynamic from the second
            trace on: in the Python function its size is None. Another rank or dtype is still another trace.
            A function that can't be traced without the size is traced for each; ``explain`` has the error.
            ``"batch"`` does so for first axes only, and for other axes after three traces that differ in
            these.
        experimental_relax_shapes: the earlier name of ``reduce_retracing``.
        strict: if True, raise an error if part of a trace would run in NumPy or Python instead of native code
            (see ``status``). The trace raises it; with dynamic sizes, the first call for each shape.
        backend: the backend that runs the graph, ``"llvm"``, ``"numba"``, ``"opencl"`` or ``"numpy"``; by
            default that of :func:`dualflow.config.set_backend`.
        memory_budget: the largest amount of memory that a call may allocate, without arguments, variables and
            constants, in bytes or as text such as ``"2GB"`` or ``"512MiB"``. If the plan of a trace needs
            more, values with long lifetimes, such as those for a gradient, are computed again instead of
            stored: the cheapest work for the most bytes first, until the plan fits. Results are the same to
            the bit. The budget is that of the called trace, including other traced functions that it calls.
            Bodies of loops count, but only complete loops and branches are dropped or computed again (see
            :func:`dualflow.config.set_loop_memory` for the values that loops store for gradients). Under an
            eager tape it applies to the forward and to the backward pass separately.
            ``get_concrete_function(...).memory`` reports the result.
        first_call: with ``"compile"``, the default, the first call of a trace compiles it, and all calls
            return the same digits. With ``"interpret"`` a thread compiles it, and until then calls run
            through NumPy, op by op as eager code does; later calls run compiled code, whose last digits may
            differ. ``explain`` has the last call that NumPy ran, and :meth:`Function.wait_until_compiled`
            waits for the threads. An error of the compiler is raised by the next call. A process that ends
            waits for the trace that is being compiled; a forked child compiles its own.
        sizes: ``"exact"`` makes one trace for each shape. ``"automatic"`` makes sizes dynamic once calls
            differ in them, and the trace serves all sizes. The Python function reads the sizes of that call
            (``x.shape[0]``). Where it compares one, or needs it as an int, the trace serves the sizes for
            which the comparison has the same outcome: ``explain`` lists these guards. Where no guard can be
            recorded, there is a trace for each shape.
        rewrites: rewrites of :mod:`dualflow.rewrite` that are applied to this function's graphs, after the
            registered ones.
        name: the name in errors and graphs; by default that of the function.
        experimental_implements, experimental_autograph_options, experimental_attributes: ignored.
        experimental_compile, experimental_follow_type_hints: ignored.

    Returns:
        A :class:`Function`, called like ``func``.

    Raises:
        DTypeError: an argument without a hash, a result that is no tensor, or an async or generator function.
        InvalidArgumentError: a variable is created after the first call; or ``first_call="interpret"`` is
            set for a function that is strict or has a memory budget.
        OperatorNotAllowedInGraphError: the function needs the value of a tensor while it is traced.
        FailedPreconditionError: the function is strict, and a part of it would not run natively; or it has a
            memory budget, and sizes of tensors depend on data.
        ResourceExhaustedError: at the first call, if no plan keeps the memory budget; with the smallest one
            that can be kept.

    >>> import dualflow as df
    >>> @df.function
    ... def norm(x):
    ...     return df.sqrt(df.reduce_sum(x * x))
    >>> norm(df.constant([3.0, 4.0])).numpy()
    np.float32(5.0)
    """
    decorate = functools.partial(
        _decorate,
        input_signature=input_signature,
        autograph=autograph,
        jit_compile=jit_compile,
        reduce_retracing=reduce_retracing or bool(experimental_relax_shapes),
        strict=strict,
        backend=backend,
        memory_budget=memory_budget,
        first_call=first_call,
        sizes=sizes,
        rewrites=rewrites,
        name=name,
    )
    try:
        return decorate if func is None else decorate(func)
    except Exception as error:
        hide_frames(error)
        raise


@entry
def _decorate(func: Callable[..., Any], **options: Any) -> Function[..., Any]:
    """The traced function of ``func`` with ``options``."""
    return Function(func, **options)
