"""The trace for batches of all sizes, which runs the first call of a function in place of the static trace.

A function is traced for the sizes of its first call. If its ops run as fast when first axes are dynamic, and
a second run of its Python code has no effects, it is traced once more with these axes dynamic. That trace is
compiled, and serves calls with other batches, which trace and compile nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Container

from dualflow.core.garbage_collection import collections_delayed
from dualflow.core.warning import silenced
from dualflow.function.arguments.dynamic_sizes import Axis, with_dynamic_first_axes
from dualflow.function.arguments.signature import CallArguments, Key
from dualflow.function.arguments.trace_key import ObjectLeaf
from dualflow.function.autograph.repeatable import is_repeatable
from dualflow.function.calls.execute import is_placed_on_device
from dualflow.function.calls.lazy_backends import capabilities_of
from dualflow.function.calls.static_size_gain import gains_from_static_sizes
from dualflow.function.concrete import ConcreteFunction
from dualflow.function.trace_function import FunctionTracer

_PLAIN_STRUCTURES = (None, type(None), list, tuple, dict)


def trace_for_all_batches(
    tracer: FunctionTracer, static: ConcreteFunction, call: CallArguments, fixed: Container[Axis]
) -> ConcreteFunction | None:
    """A trace for ``call`` and calls with other first sizes; None if the static trace has to run.

    Args:
        tracer: traces the function.
        static: the trace for the sizes of ``call``.
        call: the arguments.
        fixed: the axes of leaves whose sizes Python code needs as numbers.
    """
    dynamic_call = with_dynamic_first_axes(call, fixed)
    if dynamic_call.key == call.key or is_placed_on_device(call.inputs) or not _runs_as_fast(static):
        return None
    if _is_debugged() or not (_is_plain(call.key) and is_repeatable(tracer.function)):
        return None
    try:
        with collections_delayed(), silenced():  # the first trace has given the warnings
            concrete = tracer.record(dynamic_call, guards_sizes=True)
    except Exception:  # an op, or Python code, refuses dynamic sizes: the static trace has succeeded
        return None
    return None if concrete.guards.fix_all_axes else concrete


def _is_debugged() -> bool:
    """Whether a debugger, or another trace function, would notice that Python code runs again."""
    if sys.gettrace() is not None:
        return True
    if sys.version_info < (3, 12):
        return False
    return sys.monitoring.get_tool(sys.monitoring.DEBUGGER_ID) is not None


def _runs_as_fast(static: ConcreteFunction) -> bool:
    """Whether a program for all sizes runs as fast as ``static``; checks, budgets and devices need sizes."""
    options = static.options
    if options.strict or options.interpret_first or options.memory_budget is not None:
        return False
    capabilities = capabilities_of(options.backend)
    if not capabilities.symbolic_sizes or capabilities.device is not None:
        return False
    return not gains_from_static_sizes(static.graph) and _fits_into_memory(static)


def _fits_into_memory(static: ConcreteFunction) -> bool:
    """Whether each value fits: the error of a program for static sizes has the size of the value."""
    values = (value for node in static.graph.nodes for value in node.outputs)
    return all(value.spec.nbytes <= static.options.memory for value in values)


def _is_plain(key: Key) -> bool:
    """Whether arguments are tensors, variables and plain values, in Python's own containers."""
    if any(isinstance(leaf, ObjectLeaf) for leaf in key.leaves):
        return False
    pending = [key.structure]
    while pending:
        structure = pending.pop()
        if structure.kind not in _PLAIN_STRUCTURES:
            return False
        pending += structure.children
    return True
