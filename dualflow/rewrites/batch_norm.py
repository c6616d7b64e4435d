"""The rewrite that folds batch normalisation after a product into the weights of the product."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from dualflow.core.records import NamedTuple
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.rewrite import Expansion, rebuild
from dualflow.ops.arithmetic import add, multiply, subtract
from dualflow.ops.arrangement import RESHAPE, reshape
from dualflow.ops.contraction import MATMUL, matmul
from dualflow.ops.creation import CONSTANT
from dualflow.rewrites.definition import graph_pass
from dualflow.rewrites.tracing import inlined, trace

_DEPTH: Final = 6
"""Maximum number of ops between a literal and a value that counts as constant, in :func:`_is_constant`."""


class _ChainStep(NamedTuple):
    """An op between a product and its factor: a reshape that keeps columns, or a sum with a constant.

    Attributes:
        shape: of a reshape, with -1 for a dynamic size; None for a sum.
        constant: the second operand of a sum.
        subtracts: whether it is subtracted.
    """

    shape: list[int] | None = None
    constant: Value | None = None
    subtracts: bool = False


class _ScaledProduct(NamedTuple):
    """A match of ``(x @ w + ...) * factor``: the product, the steps after it, and the columns' factors."""

    product: Node
    steps: tuple[_ChainStep, ...]
    factor: Value
    nodes: tuple[Node, ...]


@graph_pass
def fold_batch_norm(graph: Graph) -> Graph:
    """(x @ w + b) * s + c = x @ (w * s) + (b * s + c), for constants w, b, c and s, one s for each column"""
    results = set(graph.results)
    users = {value: nodes for value, nodes in graph.users().items() if value not in results}
    replaced: dict[Value, Value] = {}

    def rule(node: Node, current: Node) -> Expansion | None:
        scaled = _match(node, users)
        return _merged_sums(node, current, users) if scaled is None else _expansion(node, scaled, replaced)

    return rebuild(graph, rule, replaced)


def _match(node: Node, users: dict[Value, list[Node]]) -> _ScaledProduct | None:
    if node.op is not multiply.op:
        return None
    for value, factor in (node.inputs, node.inputs[::-1]):
        if _is_constant(factor) and _is_per_column(factor, node.output):
            chain = _chain(value, users)
            if chain is not None:
                product, steps, nodes = chain
                return _ScaledProduct(product, tuple(steps[::-1]), factor, tuple(nodes))
    return None


def _chain(value: Value, users: dict[Value, list[Node]]) -> tuple[Node, list[_ChainStep], list[Node]] | None:
    """The product that ``value`` is computed from, and the steps and nodes after it, the last ones first."""
    steps: list[_ChainStep] = []
    nodes: list[Node] = []
    while (node := value.node) is not None and len(users.get(value, ())) == 1:
        nodes.append(node)
        if node.op is MATMUL:
            w = node.inputs[1]
            return (node, steps, nodes) if _is_constant(w) and len(w.spec.shape) == 2 else None
        if node.op is RESHAPE and node.inputs[0].spec.shape[-1:] == value.spec.shape[-1:]:
            steps.append(_ChainStep(shape=[-1 if n is None else n for n in value.spec.shape]))
            value = node.inputs[0]
        elif node.op in (add.op, subtract.op) and _is_constant(node.inputs[1]):
            if not _is_per_column(node.inputs[1], value):
                return None
            steps.append(_ChainStep(constant=node.inputs[1], subtracts=node.op is subtract.op))
            value = node.inputs[0]
        else:
            return None
    return None


def _expansion(node: Node, scaled: _ScaledProduct, replaced: dict[Value, Value]) -> Expansion:
    constants = [step.constant for step in scaled.steps if step.constant is not None]
    x, w = scaled.product.inputs
    operands = [replaced.get(v, v) for v in (x, w, scaled.factor, *constants)]
    function = _folded_product(scaled)
    graph, _ = trace(function, [v.spec for v in operands], "fold_batch_norm")
    nodes, values = inlined(graph, operands, node, scaled.nodes, fold_batch_norm.origin)
    return Expansion(nodes, values)


def _merged_sums(node: Node, current: Node, users: dict[Value, list[Node]]) -> Expansion | None:
    """(x + b) + c = x + (b + c) for constants b and c, and likewise for differences"""
    inner = current.inputs[0].node if _is_sum(current) else None
    if inner is None or not _is_sum(inner) or len(users.get(node.inputs[0], ())) != 1:
        return None
    if inner.inputs[0].spec != node.output.spec:
        return None
    subtracts = inner.op is subtract.op, current.op is subtract.op

    def total(x: Any, b: Any, c: Any) -> Any:
        b, c = (-y if negative else y for y, negative in zip((b, c), subtracts, strict=True))
        return x + (b + c)

    operands = (*inner.inputs, current.inputs[1])
    graph, _ = trace(total, [v.spec for v in operands], "fold_batch_norm")
    nodes, values = inlined(graph, operands, node, [inner], fold_batch_norm.origin)
    return Expansion(nodes, values)


def _is_sum(node: Node) -> bool:
    """Whether ``node`` adds a constant, or subtracts one."""
    return node.op in (add.op, subtract.op) and _is_constant(node.inputs[1])


def _folded_product(scaled: _ScaledProduct) -> Callable[..., Any]:
    transposes = scaled.product.attrs
    rows = [-1, 1] if transposes.get("transpose_b") else [-1]

    def function(x: Any, w: Any, factor: Any, *constants: Any) -> Any:
        y, remaining = matmul(x, w * reshape(factor, rows), **transposes), list(constants)
        for step in scaled.steps:
            if step.shape is not None:
                y = reshape(y, step.shape)
            else:
                term = remaining.pop(0) * factor
                y = y - term if step.subtracts else y + term
        return y

    return function


def _is_constant(value: Value, depth: int = _DEPTH) -> bool:
    """Whether ``value`` is a literal, or computed from literals alone: replacements compute such values."""
    node = value.node
    if node is None or node.op is CONSTANT or not depth:
        return node is not None and node.op is CONSTANT
    return bool(node.inputs) and all(_is_constant(v, depth - 1) for v in node.inputs)


def _is_per_column(value: Value, of: Value) -> bool:
    """Whether a constant has at most one element for each column of a value."""
    sizes: Sequence[int | None] = value.spec.shape
    return len(sizes) <= len(of.spec.shape) and all(n == 1 for n in sizes[:-1])
