"""``f.debug``: the trace of a call, run op by op with real values, for a debugger or a function of one's own.

What runs is the graph as it was traced, before any pass, by the ops' NumPy kernels: each op on the line that
asked for it. The bodies of conditionals and loops are entered: the graph interpreter tells an observer of
every node that it comes to.
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
from dualflow.function.calls.traced_graph import TracedGraph
from dualflow.function.debugging.local_names import LocalNames, Names, NamingBuilder
from dualflow.function.debugging.stepping import Observer, Outputs, Step, Walk, step_of
from dualflow.function.tracing.tracer import tracing_lock
from dualflow.graph.ir import Graph, GraphBuilder, Node


class HasGraph(Protocol):
    """A trace, as :meth:`Function.debug` needs it."""

    @property
    def graph(self) -> Graph: ...


def debug(
    trace: TracedGraph,
    inputs: Sequence[Any],
    step: Callable[[Step], object] | None,
    again: Callable[[GraphBuilder], HasGraph],
    function: Callable[..., Any],
) -> Any:
    """Run a trace op by op on ``inputs``; see :meth:`Function.debug`.

    Args:
        trace: the trace, for the sizes of the inputs.
        inputs: the tensors and variables among the arguments.
        step: called after each op; without it, pdb's prompt.
        again: traces the function once more, into a builder, to see what its local names stand for.
        function: the user's, whose globals the prompt sees on lines of unknown modules.
    """
    if step is not None and not callable(step):
        raise DTypeError(
            f"step= is debug's own and takes a function, not {step!r}; a parameter of that name is given "
            "by its place."
        )
    if dispatch.current() is not EAGER:
        raise FailedPreconditionError(
            "debug runs a function by itself, which can't be traced, recorded or checked: call it outside of "
            "functions and tapes, and without df.debugging.enable_check_numerics."
        )
    graph, sources = trace.graph, [*inputs, *trace.captured]
    walk = Walk(_telling(step)) if step is not None else _prompting(graph, again, function)
    results = walk.evaluate(graph, [array_of(x) for x in sources])
    count = len(graph.outputs)
    for update, array in zip(graph.updates, results[count:], strict=True):
        EAGER.assign(sources[graph.inputs.index(update.input)], wrap(array))
    return trace.packed([wrap(array) for array in results[:count]])


def _telling(step: Callable[[Step], object]) -> Observer:
    def observer(node: Node, arrays: Outputs, depth: int, compute: Callable[[], Outputs]) -> Outputs:
        outputs = compute()
        step(step_of(node, arrays, outputs, depth))
        return outputs

    return observer


def _prompting(graph: Graph, again: Callable[[GraphBuilder], HasGraph], function: Callable[..., Any]) -> Walk:
    names = LocalNames()
    try:
        with tracing_lock.lock:
            other = again(NamingBuilder(graph.name, names)).graph
    except Exception:
        other = None  # a function that can't be traced twice: its names have no values
    names.end()
    found = Names(graph, function, None if other is None else (other, names))
    home = getattr(inspect.unwrap(getattr(function, "__func__", function)), "__globals__", {})
    prompt = imported("dualflow.function.debugging.pdb_prompt").Prompt(home, found)
    return Walk(prompt, prompt.begin)
