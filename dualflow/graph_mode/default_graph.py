"""The default graph, to which ops are added outside the block of any other graph, unless they run eagerly."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from dualflow.core import dispatch
from dualflow.core.errors import FailedPreconditionError
from dualflow.eager.engine import EAGER
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.graph_mode.graph import ExplicitGraph, innermost_graph


class _Root:
    """The default graph outside of all blocks, and whether ops are added to it there."""

    graph = ExplicitGraph()
    builds = False


def get_default_graph() -> ExplicitGraph:
    """The graph of the innermost ``as_default`` block; outside of all, one that all threads share.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default() as graph:
    ...     v1.get_default_graph() is graph
    True
    """
    return innermost_graph.get() or _Root.graph


def reset_default_graph() -> None:
    """Replace the shared default graph by an empty one.

    Raises:
        FailedPreconditionError: inside an ``as_default`` block.

    >>> from dualflow.compat import v1
    >>> before = v1.get_default_graph()
    >>> v1.reset_default_graph()
    >>> v1.get_default_graph() is before
    False
    """
    if innermost_graph.get() is not None:
        raise FailedPreconditionError(
            "Do not use reset_default_graph() to clear nested graphs: leave the as_default block first."
        )
    _Root.graph = ExplicitGraph()
    if _Root.builds:
        dispatch.install(_Root.graph.engine)


def recording_graph() -> ExplicitGraph | None:
    """The graph that ops are added to; None if they run eagerly or are traced for a function."""
    graph = innermost_graph.get()
    if graph is None:
        if not _Root.builds:
            return None
        graph = _Root.graph
    return graph if dispatch.current().innermost is graph.engine else None


def enclosing_graph() -> ExplicitGraph | None:
    """The graph that ops are added to, or of which a branch or loop body is being traced; else None."""
    graph = innermost_graph.get() or (_Root.graph if _Root.builds else None)
    if graph is None:
        return None
    tracer: Any = dispatch.current().innermost
    while isinstance(tracer, Tracer) and tracer is not graph.engine and tracer.creation is None:
        tracer = tracer.outer
    return graph if tracer is graph.engine else None


@contextmanager
def outside_of_bodies() -> Iterator[None]:
    """A context whose ops are added to the graph itself, even if a body of it is being traced."""
    graph = enclosing_graph()
    in_body = graph is not None and graph is not recording_graph()
    with tracing(graph.engine) if graph is not None and in_body else nullcontext():
        yield


def graph_being_built(what: str) -> ExplicitGraph:
    """The graph that ops are added to; ``what`` is the function that needs one.

    Raises:
        FailedPreconditionError: ops run eagerly here.
    """
    graph = innermost_graph.get() or (_Root.graph if _Root.builds else None)
    if graph is None:
        raise FailedPreconditionError(
            f"{what} is not compatible with eager execution: call it in a block `with "
            "Graph().as_default():`, or begin the program with disable_eager_execution()."
        )
    return graph


def disable_eager_execution() -> None:
    """Add ops outside of all blocks to the shared default graph, in all threads, instead of running them.

    Programs that use graphs throughout call it at their start.

    Raises:
        FailedPreconditionError: inside a graph's block, a tape or a traced function.
    """
    _require_outside("disable_eager_execution")
    _Root.builds = True
    dispatch.install(_Root.graph.engine)


def enable_eager_execution(
    config: object = None, device_policy: object = None, execution_mode: object = None
) -> None:
    """Run ops outside of all blocks eagerly again, after :func:`disable_eager_execution`.

    The arguments are TensorFlow's, and ignored.

    Raises:
        FailedPreconditionError: inside a graph's block, a tape or a traced function.
    """
    _require_outside("enable_eager_execution")
    _Root.builds = False
    dispatch.install(EAGER)


def _require_outside(what: str) -> None:
    if dispatch.current() is not (_Root.graph.engine if _Root.builds else EAGER):
        raise FailedPreconditionError(
            f"{what}() must be called at program startup, outside of graphs, tapes and functions."
        )
