"""Branches and loop bodies traced as graphs of their own, whose inputs are all that they read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dualflow.core import dispatch
from dualflow.core.dispatch import Engine
from dualflow.core.records import NamedTuple
from dualflow.core.spec import TensorSpec
from dualflow.core.tree import Structure
from dualflow.function.tracing.collect_results import collect
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.graph.extract import ancestors
from dualflow.graph.ir import Graph, Node, Value


class Body(NamedTuple):
    """A Python function traced inside another trace.

    Attributes:
        tracer: its own trace.
        arguments: the inputs that stand for the function's arguments.
        structure: of what it returned.
        outputs: the leaves of that.
    """

    tracer: Tracer
    arguments: tuple[Value, ...]
    structure: Structure
    outputs: tuple[Value, ...]

    @property
    def reads(self) -> dict[int, tuple[Any, Value]]:
        """The tensors and variables that the body reads from outside, by id, each with its input."""
        return {id(c.source): (c.source, v) for v, c in self.tracer.builder.captures}

    @property
    def writes(self) -> dict[int, tuple[Any, Value]]:
        """The variables that the body assigns, by their ids, and their new values."""
        sources = {v: c.source for v, c in self.tracer.builder.captures}
        return {id(sources[u.input]): (sources[u.input], u.value) for u in self.tracer.updates()}

    def graph(self, inputs: Sequence[Value], outputs: Sequence[Value]) -> Graph:
        """The body as a graph; nodes that nothing needs are left out, those with effects stay."""
        nodes = self.tracer.builder.nodes
        effects = [n for n in nodes if n.effect is not None]
        needed, _ = ancestors(outputs, inputs, effects)
        kept: list[Node] = [n for n in nodes if n in needed]
        return Graph(self.tracer.name, tuple(inputs), tuple(kept), tuple(outputs))


def trace_body(
    function: Callable[..., Any], specs: Sequence[TensorSpec], pack: Callable[[list[Any]], Sequence[Any]]
) -> Body:
    """Trace ``function`` of symbols with ``specs``; ``pack`` makes its positional arguments of them."""
    inner = inner_tracer(getattr(function, "__name__", "body"))
    symbols = [inner.argument(spec) for spec in specs]
    with tracing(inner):
        structure, outputs = collect(function(*pack(list(symbols))), inner)
    return Body(inner, tuple(s._value for s in symbols), structure, tuple(outputs))


def traced(function: Callable[..., Any], specs: Sequence[TensorSpec]) -> Graph:
    """``function`` of symbols, which returns a list of them, as a graph that reads nothing but its inputs."""
    body = trace_body(function, specs, lambda symbols: symbols)
    assert not body.reads, "a body reads nothing but its inputs"
    return body.graph(body.arguments, body.outputs)


def inner_tracer(name: str) -> Tracer:
    """A trace for a body inside the current one."""
    return Tracer(name, tracer_of(dispatch.current()).creation)


def tracer_of(engine: Engine) -> Tracer:
    """The trace that an engine records to, behind its tapes and accumulators."""
    found = engine.innermost
    assert isinstance(found, Tracer), "control flow is traced inside a trace"
    return found


def operands(sources: Sequence[Any]) -> list[Any]:
    """The current engine's tensors for what bodies read: a variable's value at this point, or a tensor."""
    engine = dispatch.current()
    return [
        engine.lift(x) if hasattr(x, "spec") and not hasattr(x, "assign") else engine.read(x) for x in sources
    ]
