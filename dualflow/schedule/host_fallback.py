"""Host fallbacks: conditionals and loops that can't run natively become host calls, with the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from dualflow.core.dtypes import int64
from dualflow.core.records import replace
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.graph.backward_sizes import bound_and_read_sizes
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.rewrite import Expansion, rebuild, replaced_by
from dualflow.graph.scalars import bodies
from dualflow.graph.symbolic_size_ops import BIND_SIZE, RESULT_SHAPE, RESULT_WITH_SHAPE
from dualflow.graph.views import is_view
from dualflow.ops.op_kinds import Literal, Opaque
from dualflow.schedule.operands import CallKind, is_control, kind_of
from dualflow.sizes.symbolic_sizes import SizeVariable, SymInt, UndecidedSize, size_variables, variable_of


def with_host_fallbacks(graph: Graph, replacements: dict[Value, Value] | None = None) -> Graph:
    """``graph`` in which each conditional or loop that can't run natively is opaque, with the reason.

    The new value of each replaced value is added to ``replacements``.
    """
    reasons = {
        n: reason for n in graph.nodes if is_control(n) and (reason := reason_not_native(n)) is not None
    }
    reasons |= _split_by_host_calls(graph, reasons)
    if not reasons:
        return graph
    computed = _computed_sizes(graph, reasons)

    def opaque(node: Node, current: Node) -> Expansion | None:
        if node not in reasons:
            return None
        op = replace(node.op, kind=Opaque(reasons[node]))
        call = node.like(op, current.inputs, node.attrs, node.specs)
        return _with_results_measured(call, computed[node]) if computed[node] else replaced_by(call)

    return rebuild(graph, opaque, replacements)


def _computed_sizes(graph: Graph, nodes: Iterable[Node]) -> dict[Node, set[SizeVariable]]:
    """The size variables that each of the conditionals or loops binds, and that are read outside of it.

    Raises:
        UndecidedSize: no result has one of them, so its number is lost.
    """
    readers = Counter(size for node in graph.nodes for size in bound_and_read_sizes([node], ())[1])
    computed: dict[Node, set[SizeVariable]] = {}
    for node in nodes:
        sizes = [d for v in node.outputs for d in v.spec.shape]
        bound, _ = bound_and_read_sizes([node], ())
        computed[node] = {n for n in bound if readers[n] > 1 or n in size_variables(sizes)}
        if not computed[node] <= {variable_of(d) for d in sizes if isinstance(d, SymInt)}:
            raise UndecidedSize("NumPy runs a branch or loop that computes a size of other values")
    return computed


def _with_results_measured(call: Node, computed: set[SizeVariable]) -> Expansion:
    """The host call, and nodes that bind the size variables ``computed`` to sizes of its results."""
    specs, origin = call.specs, call.origin
    call = call.like(call.op, call.inputs, call.attrs, [_without(spec, computed) for spec in specs])
    nodes, values, unbound = [call], list(call.outputs), set(computed)
    for value, spec in zip(call.outputs, specs, strict=True):
        axes = {variable_of(d): axis for axis, d in enumerate(spec.shape) if isinstance(d, SymInt)}
        if unbound.isdisjoint(axes):
            continue
        sizes = Node(RESULT_SHAPE, [value], {}, [TensorSpec((spec.rank,), int64)], origin)
        nodes.append(sizes)
        for variable in sorted(unbound & axes.keys()):
            axis = axes[variable]
            attrs = {"size": spec.shape[axis], "index": axis, "least": 0, "needed_by": call.op.name}
            nodes.append(Node(BIND_SIZE, [sizes.output], attrs, (), origin))
            unbound.remove(variable)
    for i, (value, spec) in enumerate(zip(call.outputs, specs, strict=True)):
        if value.spec.shape != spec.shape:
            nodes.append(Node(RESULT_WITH_SHAPE, [value], {"shape": spec.shape}, [spec], origin))
            values[i] = nodes[-1].output
    return Expansion(nodes, values)


def _without(spec: TensorSpec, variables: set[SizeVariable]) -> TensorSpec:
    """``spec`` with None for the sizes that have one of ``variables``."""
    shape = [None if d is not None and size_variables(d) & variables else d for d in spec.shape]
    return TensorSpec.of(Shape(shape), spec.dtype)


def reason_not_native(node: Node) -> str | None:
    """The reason why a conditional or loop can't run natively; None if it can."""
    pending = [node]
    while pending:
        inner = pending.pop()
        if is_control(inner):
            pending += reversed([n for body in bodies(inner) for n in body.nodes])
        elif _is_host(inner):
            kind = inner.op.kind
            return f"it runs {inner.op.name}: {kind.reason if isinstance(kind, Opaque) else 'no native code'}"
    return None


def _is_host(node: Node) -> bool:
    if isinstance(node.op.kind, Literal) or is_view(node):
        return False
    return reason_not_native(node) is not None if is_control(node) else kind_of(node) is CallKind.HOST


def _split_by_host_calls(graph: Graph, hosts: Iterable[Node]) -> dict[Node, str]:
    """Loops on both sides of a host call that share a growable stack, with the reason.

    A growable buffer belongs to one piece of native code: all loops that write or read it run there, or none
    does.
    """
    hosts = set(hosts)
    index_of = {n: i for i, n in enumerate(graph.nodes)}
    barriers = {i for n, i in index_of.items() if n in hosts or (not is_control(n) and _is_host(n))}
    reasons: dict[Node, str] = {}
    for group in _sharing_stacks(graph):
        first, last = min(index_of[n] for n in group), max(index_of[n] for n in group)
        if any(first <= i <= last for i in barriers):
            reason = "a host call is between the loop and another one that shares a stack with it"
            reasons.update((n, reason) for n in group if n not in hosts)
    return reasons


def _sharing_stacks(graph: Graph) -> list[set[Node]]:
    """The groups of loops that share stacks of dynamic length."""
    groups: dict[Node, set[Node]] = {}
    for node in graph.nodes:
        stacks = [v for v in node.inputs if not v.spec.shape.is_static]
        producers = {v.node for v in stacks if v.node is not None and is_control(v.node)}
        if not producers:
            continue
        joined = {id(g): g for m in producers if (g := groups.get(m)) is not None}
        group = max(joined.values(), key=len, default=set())
        for other in joined.values():  # the smaller ones join the largest
            if other is not group:
                group |= other
                groups.update(dict.fromkeys(other, group))
        group |= {node, *producers}
        groups.update(dict.fromkeys((node, *producers), group))
    return list({id(g): g for g in groups.values()}.values())
