"""Equations: a pattern and its replacement, both written as expressions of tensors.

The pattern is traced twice. A template, traced for matrices of 3 x 3, decides which ops may match, and which
values the variables stand for. Then both sides are traced for the dtypes and shapes of these values, and the
pattern is compared node by node, attributes and constants included. Both traces are simplified as the graph
is, so constants are folded on either side.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, overload

from dualflow.core.dtypes import float32
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.exact_equality import exact_attrs
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.graph.extract import extract
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.passes.pipeline import SIMPLIFICATIONS, optimise
from dualflow.graph.rewrite import Expansion, rebuild
from dualflow.graph.user_rewrites import Report, Rewrite
from dualflow.ops.arithmetic import add, maximum, minimum, multiply
from dualflow.ops.op_kinds import Literal
from dualflow.rewrites.definition import checked_replacement, new_rewrite
from dualflow.rewrites.tracing import OPTIONS, inlined, trace

Sides = Callable[..., tuple[Any, Any]]
_TEMPLATE: Final = TensorSpec([3, 3], float32)
_COMMUTATIVE: Final = (add.op, multiply.op, maximum.op, minimum.op)


@overload
def equation(
    function: Sides,
    *,
    signature: Sequence[TensorSpec] | None = None,
    when: Callable[..., bool] | None = None,
    name: str | None = None,
    in_bodies: bool = True,
) -> Rewrite: ...
@overload
def equation(
    function: None = None,
    *,
    signature: Sequence[TensorSpec] | None = None,
    when: Callable[..., bool] | None = None,
    name: str | None = None,
    in_bodies: bool = True,
) -> Callable[[Sides], Rewrite]: ...
@entry
def equation(
    function: Sides | None = None,
    *,
    signature: Sequence[TensorSpec] | None = None,
    when: Callable[..., bool] | None = None,
    name: str | None = None,
    in_bodies: bool = True,
) -> Any:
    """A rewrite from an equation: the decorator of a function that returns ``(pattern, replacement)``.

    The parameters are variables, which stand for any tensors; one that occurs twice is one tensor. The
    pattern matches the same ops with the same attributes and constants, whatever the shapes and dtypes are.
    The operands of ``+``, ``*``, ``maximum`` and ``minimum`` match in either order. Values inside the pattern
    may have other consumers, for which they are still computed.

    Args:
        function: the function, whose docstring is the algebra. Without it, a decorator is returned.
        signature: a spec for each variable, with which the pattern is first traced; by default 3 x 3 matrices
            of float32. It is needed if the pattern doesn't take these, as a convolution.
        when: a further condition, ``when(*specs)``, with the dtypes and shapes of the variables.
        name: the name in reports, by which it is disabled; by default that of the function.
        in_bodies: whether it is applied in branches and loops, too.

    Returns:
        The rewrite: register it, or pass it to ``df.function(rewrites=[...])``.

    Raises:
        InvalidArgumentError: there is no docstring, or, at the first compile, the pattern is no op of the
            variables.

    >>> import dualflow as df
    >>> @df.rewrite.equation
    ... def log_of_exp(x):
    ...     '''log(exp(x)) = x'''
    ...     return df.math.log(df.exp(x)), x
    >>> f = df.function(lambda x: df.math.log(df.exp(x)), rewrites=[log_of_exp])
    >>> f(df.constant(1000.0)).numpy()
    np.float32(1000.0)
    """
    if function is None:
        return functools.partial(equation, signature=signature, when=when, name=name, in_bodies=in_bodies)
    matcher = _Equation(function, signature, when)
    return new_rewrite(function, matcher.rewritten, name=name, in_bodies=in_bodies)


class _Equation:
    """An equation with its template: finds and replaces the matches in graphs."""

    def __init__(
        self, sides: Sides, signature: Sequence[TensorSpec] | None, when: Callable[..., bool] | None
    ) -> None:
        self._sides = sides
        count = sides.__code__.co_argcount
        self._signature = [_TEMPLATE] * count if signature is None else list(signature)
        if len(self._signature) != count:
            raise InvalidArgumentError(
                f"The signature has {len(self._signature)} specs for {count} variables of the equation."
            )
        self._when = when
        self._template: Graph | None = None

    def rewritten(self, graph: Graph, report: Report, rewrite: Rewrite) -> Graph:
        """``graph`` with each match replaced."""
        template = self._template
        if template is None:
            template = self._template = self._new_template(rewrite)
        root = template.outputs[0].node
        assert root is not None, "a template is an op"
        ops = {n.op for n in graph.nodes}
        if any(n.op not in ops for n in template.nodes):
            return graph
        return rebuild(graph, lambda _, node: self._replacement(node, template, report, rewrite))

    def _new_template(self, rewrite: Rewrite) -> Graph:
        try:
            template, _ = self._traced(self._signature, rewrite)
        except InvalidArgumentError as error:
            error.add_note(
                f"The equation {rewrite.name!r} is traced with {self._signature}; pass signature= with specs "
                "that its ops take."
            )
            raise
        used = {v for node in template.nodes for v in node.inputs}
        if template.outputs[0].node is None or not used.issuperset(template.inputs):
            raise rewrite.error(
                "has a pattern that is simplified to a variable or doesn't contain all variables", None
            )
        if any(node.effect is not None for node in template.nodes):
            raise rewrite.error("has a pattern with an effect, which can't be replaced", None)
        return template

    def _traced(self, specs: Sequence[TensorSpec], rewrite: Rewrite) -> tuple[Graph, Graph]:
        """The two sides for variables of these specs: the simplified pattern, and the replacement."""
        both, several = trace(self._sides, specs, rewrite.name)
        if not several or len(both.outputs) != 2:
            raise rewrite.error("doesn't return (pattern, replacement)", None)
        pattern, replacement = (
            extract(both, both.arguments, [side], name=rewrite.name) for side in both.outputs
        )
        return optimise(pattern, OPTIONS, passes=SIMPLIFICATIONS), replacement

    def _replacement(self, node: Node, template: Graph, report: Report, rewrite: Rewrite) -> Expansion | None:
        if len(node.outputs) != 1:
            return None
        for bound in _matches(template.outputs[0], node.output, {}, exactly=False):
            values = [bound[v] for v in template.inputs]
            specs = [v.spec for v in values]
            if self._when is not None and not self._when(*specs):
                continue
            try:
                pattern, replacement = self._traced(specs, rewrite)
            except InvalidArgumentError:
                continue  # its ops don't take values of such shapes
            start = dict(zip(pattern.inputs, values, strict=True))
            matched = next(_matches(pattern.outputs[0], node.output, start, exactly=True), None)
            if matched is not None:
                inside = [v.node for p, v in matched.items() if p.node is not None and v.node is not None]
                nodes, results = inlined(replacement, values, node, inside, rewrite.origin)
                return checked_replacement(node, nodes, results, report, rewrite)
        return None


def _matches(
    pattern: Value, value: Value, bound: dict[Value, Value], *, exactly: bool
) -> Iterator[dict[Value, Value]]:
    """The ways in which ``pattern`` matches ``value``, as the value for each value of the pattern.

    ``bound`` has the values so far. With ``exactly``, attributes and constants are compared, too.
    """
    if pattern in bound:
        if bound[pattern] is value:
            yield bound
        return
    expected, node = pattern.node, value.node
    if expected is None:
        yield {**bound, pattern: value}
        return
    if node is None or node.op is not expected.op or value.index != pattern.index:
        return
    if exactly and exact_attrs(node.attrs) != exact_attrs(expected.attrs):
        return
    if not exactly and isinstance(expected.op.kind, Literal):
        yield bound
        return
    if len(node.inputs) != len(expected.inputs):
        return
    orders = [expected.inputs]
    if expected.op in _COMMUTATIVE:
        orders.append(expected.inputs[::-1])
    for inputs in orders:
        yield from _all_match(inputs, node.inputs, {**bound, pattern: value}, exactly=exactly)


def _all_match(
    patterns: Sequence[Value], values: Sequence[Value], bound: dict[Value, Value], *, exactly: bool
) -> Iterator[dict[Value, Value]]:
    if not patterns:
        yield bound
        return
    for extended in _matches(patterns[0], values[0], bound, exactly=exactly):
        yield from _all_match(patterns[1:], values[1:], extended, exactly=exactly)
