"""``rule`` and ``graph_pass``: decorators that make rewrites from Python functions."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Protocol, overload

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.graph.error_notes import note_place
from dualflow.graph.ir import Graph, Node, Origin, Value
from dualflow.graph.rewrite import Expansion, rebuild
from dualflow.graph.user_rewrites import REWRITES, Match, Report, Rewrite
from dualflow.rewrites.tracing import inlined, trace


class AddOps(Protocol):
    """Adds the nodes of a function of tensors to the graph; the second argument of a rule."""

    def __call__(self, function: Callable[..., Any], *inputs: Value) -> Any:
        """The value, or the tuple of values, that ``function`` returns for ``inputs``."""
        ...


Rule = Callable[[Node, AddOps], "Value | Sequence[Value] | None"]
Pass = Callable[[Graph], Graph]


def new_rewrite(
    function: Callable[..., Any],
    transform: Callable[[Graph, Report, Rewrite], Graph],
    *,
    name: str | None,
    in_bodies: bool,
) -> Rewrite:
    """A new rewrite that runs ``transform``; its name, line and description come from ``function``.

    Raises:
        InvalidArgumentError: ``function`` has no docstring.
    """
    algebra = inspect.getdoc(function)
    name = name or function.__name__
    if not algebra:
        raise InvalidArgumentError(
            f"The rewrite {name!r} has no docstring; write there what it replaces by what, such as "
            "'''log(exp(x)) = x'''."
        )
    code = function.__code__
    rewrite = Rewrite(
        name,
        algebra,
        Origin(code.co_filename, code.co_firstlineno, function.__name__),
        lambda graph, report: transform(graph, report, rewrite),
        in_bodies,
        (function.__module__, function.__qualname__),
    )
    REWRITES.declare(rewrite)
    return rewrite


@overload
def rule(function: Rule, *, name: str | None = None, in_bodies: bool = True) -> Rewrite: ...
@overload
def rule(
    function: None = None, *, name: str | None = None, in_bodies: bool = True
) -> Callable[[Rule], Rewrite]: ...
@entry
def rule(function: Rule | None = None, *, name: str | None = None, in_bodies: bool = True) -> Any:
    """A rewrite that replaces nodes: the decorator of a function ``rule(node, make)``.

    The function gets each node of a graph once, in program order; its inputs have been rewritten. It returns
    what replaces the node's outputs, with the same dtypes and shapes, or None to keep the node. It isn't
    applied to the nodes that it has added.

    Args:
        function: the function, whose docstring is the algebra. ``node`` has ``op.name``, ``inputs``,
            ``attrs``, ``outputs`` and ``origin``; the producer of an input is ``value.node``, None for an
            input of the graph. ``make(f, *values)`` adds the ops of ``f``, a function of tensors, and returns
            its value, or a tuple of values. Without it, a decorator is returned.
        name: the name in reports, by which it is disabled; by default that of the function.
        in_bodies: whether it is applied in branches and loops, too.

    Returns:
        The rewrite: register it, or pass it to ``df.function(rewrites=[...])``.

    Raises:
        InvalidArgumentError: the function has no docstring.

    >>> import dualflow as df
    >>> @df.rewrite.rule
    ... def largest_of_itself(node, make):
    ...     '''max(x, x) = x'''
    ...     same = node.op is df.maximum.op and node.inputs[0] is node.inputs[1]
    ...     return node.inputs[0] if same else None
    >>> f = df.function(lambda x: df.maximum(x, x) * 2.0, rewrites=[largest_of_itself])
    >>> _ = f(df.constant([1.0]))
    >>> print(f.explain())
    <lambda> was traced 1 time...
    <ConcreteFunction <lambda>(x: ...)>: rewritten by largest_of_itself (max(x, x) = x) at ...
    """
    if function is None:
        return functools.partial(rule, name=name, in_bodies=in_bodies)
    apply = function

    def transform(graph: Graph, report: Report, rewrite: Rewrite) -> Graph:
        return rebuild(graph, lambda _, current: _replacement(apply, current, report, rewrite))

    return new_rewrite(function, transform, name=name, in_bodies=in_bodies)


def _replacement(apply: Rule, node: Node, report: Report, rewrite: Rewrite) -> Expansion | None:
    new_nodes: list[Node] = []

    def make(function: Callable[..., Any], *inputs: Value) -> Any:
        graph, several = trace(function, [v.spec for v in inputs], rewrite.name)
        producers = [v.node for v in node.inputs if v.node is not None and v not in inputs]
        nodes, values = inlined(graph, inputs, node, producers, rewrite.origin)
        new_nodes.extend(nodes)
        return tuple(values) if several else values[0]

    try:
        result = apply(node, make)
    except Exception as error:
        note_place(error, node)
        error.add_note(f"in the rewrite {rewrite.name!r}, defined at {rewrite.origin}")
        raise
    if result is None:
        return None
    return checked_replacement(node, new_nodes, result, report, rewrite)


def checked_replacement(
    node: Node, new_nodes: Sequence[Node], result: Value | Sequence[Value], report: Report, rewrite: Rewrite
) -> Expansion:
    """The replacement of a node by ``result``, and its report.

    Raises:
        InvalidArgumentError: it has other dtypes or shapes, or is no value.
    """
    values = [result] if isinstance(result, Value) else result
    if not isinstance(values, list | tuple) or not all(isinstance(v, Value) for v in values):
        raise rewrite.error(f"has returned {result!r} for {node.op.name}, not a value", node.origin)
    new, old = [v.spec for v in values], list(node.specs)
    if new != old:
        raise rewrite.error(
            f"has replaced {node.op.name}, which returns {_shown(old)}, by {_shown(new)}", node.origin
        )
    report(Match(rewrite.name, node.origin))
    return Expansion(new_nodes, values)


def _shown(specs: Sequence[object]) -> str:
    return ", ".join(map(str, specs))


@overload
def graph_pass(function: Pass, *, name: str | None = None, in_bodies: bool = True) -> Rewrite: ...
@overload
def graph_pass(
    function: None = None, *, name: str | None = None, in_bodies: bool = True
) -> Callable[[Pass], Rewrite]: ...
@entry
def graph_pass(function: Pass | None = None, *, name: str | None = None, in_bodies: bool = True) -> Any:
    """A rewrite that is a whole pass: the decorator of a function from a graph to a graph.

    Args:
        function: the function, whose docstring is the algebra. It returns the graph itself if nothing
            changes. A new graph has the same inputs, captures, results and effects.
        name: the name in reports, by which it is disabled; by default that of the function.
        in_bodies: whether it is also called with the bodies of branches and loops, each a graph of its own.

    Returns:
        The rewrite: register it, or pass it to ``df.function(rewrites=[...])``.

    Raises:
        InvalidArgumentError: the function has no docstring.

    >>> import dualflow as df
    >>> counts = []
    >>> @df.rewrite.graph_pass
    ... def count_nodes(graph):
    ...     '''graph = graph'''
    ...     counts.append(len(graph.nodes))
    ...     return graph
    >>> df.function(lambda x: df.exp(x) + x, rewrites=[count_nodes])(df.constant(0.0)).numpy()
    np.float32(1.0)
    >>> counts
    [2]
    """
    if function is None:
        return functools.partial(graph_pass, name=name, in_bodies=in_bodies)
    apply = function

    def transform(graph: Graph, report: Report, rewrite: Rewrite) -> Graph:
        try:
            changed = apply(graph)
        except Exception as error:
            error.add_note(f"in the rewrite {rewrite.name!r}, defined at {rewrite.origin}")
            raise
        if changed is not graph:
            report(Match(rewrite.name, None))
        return changed

    return new_rewrite(function, transform, name=name, in_bodies=in_bodies)
