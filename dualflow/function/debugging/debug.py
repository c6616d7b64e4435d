"""``f.debug``: runs the trace of a call op by op, with a debugger prompt or a callback after each op.

It runs the graph as traced, before any pass, with the NumPy kernels of the ops. The bodies of conditionals
and loops are entered: the graph interpreter calls an observer for each node.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from dualflow.core import dispatch
from dualflow.core.errors import DTypeError, FailedPreconditionError
from dualflow.core.locks import imported
from dualflow.eager.engine import EAGER
from dualflow.eager.tensor import wrap
from dualflow.function.calls.array_ownership import array_of
from dualflow.function.calls.recorded_trace import RecordedTrace
from dualflow.function.debugging.local_names import LocalNames, Names, NamingBuilder
from dualflow.function.debugging.stepping import Observer, Outputs, Step, Walk, step_of
from dualflow.function.tracing.tracer import tracing_lock
from dualflow.graph.ir import Graph, GraphBuilder, Node


class HasGraph(Protocol):
    """The interface of an object with a traced graph."""

    @property
    def graph(self) -> Graph: ...


def debug(
    trace: RecordedTrace,
    inputs: Sequence[Any],
    step: Callable[[Step], object] | None,
    retrace: Callable[[GraphBuilder], HasGraph],
    function: Callable[..., Any],
) -> Any:
    """The results of a trace, run op by op on ``inputs``; see :meth:`Function.debug`.

    Args:
        trace: the trace, for the sizes of the inputs.
        inputs: the tensors and variables among the arguments.
        step: called after each op; None for a pdb prompt.
        retrace: traces the function again, into a builder that records the local names.
        function: the user's function, whose globals the prompt has on lines of unknown modules.
    """
    if step is not None and not callable(step):
        raise DTypeError(
            f"step= is an argument of debug and takes a function, not {step!r}; pass a parameter of that "
            "name by position."
        )
    if dispatch.current() is not EAGER:
        raise FailedPreconditionError(
            "debug runs a function by itself, which can't be traced, recorded or checked: call it outside of "
            "functions and tapes, and without df.debugging.enable_check_numerics."
        )
    graph, sources = trace.graph, [*inputs, *trace.captured]
    walk = Walk(_callback_observer(step)) if step is not None else _prompt_walk(graph, retrace, function)
    results = walk.evaluate(graph, [array_of(x) for x in sources])
    count = len(graph.outputs)
    for i, array in zip(graph.updated_inputs, results[count:], strict=True):
        EAGER.assign(sources[i], wrap(array))
    return trace.packed([wrap(array) for array in results[:count]])


def _callback_observer(step: Callable[[Step], object]) -> Observer:
    def observer(node: Node, arrays: Outputs, depth: int, compute: Callable[[], Outputs]) -> Outputs:
        outputs = compute()
        step(step_of(node, arrays, outputs, depth))
        return outputs

    return observer


def _prompt_walk(
    graph: Graph, retrace: Callable[[GraphBuilder], HasGraph], function: Callable[..., Any]
) -> Walk:
    local_names = LocalNames()
    try:
        with tracing_lock.lock:
            other = retrace(NamingBuilder(graph.name, local_names)).graph
    except Exception:
        other = None  # a function that can't be traced twice: its names have no values
    local_names.end()
    names = Names(graph, function, None if other is None else (other, local_names))
    module = getattr(inspect.unwrap(getattr(function, "__func__", function)), "__globals__", {})
    prompt = imported("dualflow.function.debugging.pdb_prompt").Prompt(module, names)
    return Walk(prompt, prompt.begin)
