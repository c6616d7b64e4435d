"""Paths and sums over a graph as a graph, computed by networkx.

For people and tools at the edge: compiling never comes here.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import networkx as nx

from dualflow.core.records import dataclass
from dualflow.graph.fused import body_of
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.work import bytes_moved, computes, iterations, work
from dualflow.ops.op_kinds import Loop

Vertex = Node | Value


@dataclass(frozen=True, slots=True)
class Workload:
    """How much a graph computes, and how much of that waits for each other.

    A step is a node that computes: a kernel, a matrix product, an op that NumPy runs. Steps inside of
    conditionals and loops belong to the step around them.

    Attributes:
        operations: the work of all steps in additions of two numbers, by the costs that the ops' records
            state: a product of matrices counts two for each product of two numbers, an element that is only
            moved one.
        bytes_moved: what the steps read and write in bytes, each value once a step.
        steps: how many steps there are.
        span: the operations of the steps of ``path``, in additions.
        path: the steps on the longest chain of steps that wait for each other, by cost, in order: the ops of
            each, joined by ``+``.
        complete: whether all is counted. If not, a loop whose iterations only the run knows counts as one
            iteration, or a value whose size only the run knows as none.
    """

    operations: float
    bytes_moved: int
    steps: int
    span: float
    path: tuple[str, ...]
    complete: bool

    @property
    def parallelism(self) -> float:
        """How many steps could run at the same time on average: work divided by span."""
        return self.operations / self.span if self.span else 1.0


def workload(graph: Graph) -> Workload:
    """The work and the span of ``graph``.

    >>> import dualflow as df
    >>> two = df.function(lambda x: (df.sort(x + 1.0), df.sort(x - 1.0)))
    >>> found = workload(two.get_concrete_function(df.TensorSpec([10])).graph)
    >>> found.operations, found.span, found.parallelism
    (40.0, 20.0, 2.0)
    """
    path = critical_path(graph)
    steps = [node for node in graph.nodes if computes(node)]
    return Workload(
        operations=sum(map(work, steps)),
        bytes_moved=sum(map(bytes_moved, steps)),
        steps=len(steps),
        span=sum(map(work, path)),
        path=tuple([_called(node) for node in path]),
        complete=_complete(graph),
    )


def to_networkx(graph: Graph) -> nx.MultiDiGraph:
    """``graph`` as a directed multigraph.

    Its vertices are the nodes and the input values; an edge runs from each producer to each reader, with
    the value as ``value`` and its place among the reader's inputs as ``slot``.
    """
    found = nx.MultiDiGraph(name=graph.name)
    found.add_nodes_from(graph.inputs)
    found.add_nodes_from(graph.nodes)
    for node in graph.nodes:
        for slot, value in enumerate(node.inputs):
            found.add_edge(value if value.node is None else value.node, node, value=value, slot=slot)
    return found


def critical_path(graph: Graph, cost: Callable[[Node], float] = work) -> list[Node]:
    """The steps that wait for each other and whose costs add up to the most.

    However many steps run at once, the graph takes as long as these. Effects wait for those before them.
    """
    weighted = nx.DiGraph()
    for node in graph.nodes:
        here = cost(node)
        weighted.add_edge(node, _END, weight=here)
        weighted.add_weighted_edges_from(
            (v.node, node, weighted.edges[v.node, _END]["weight"]) for v in node.inputs if v.node is not None
        )
    for one, other in pairwise([node for node in graph.nodes if node.effect is not None]):
        weighted.add_edge(one, other, weight=weighted.edges[one, _END]["weight"])
    path = nx.dag_longest_path(weighted)
    return [node for node in path if node is not _END and computes(node)]


def _called(node: Node) -> str:
    body = body_of(node)
    return node.op.name if body is None else body.name


def _complete(graph: Graph) -> bool:
    """Whether all sizes and numbers of iterations are known."""
    for node in graph.nodes:
        if not all(spec.shape.is_static for spec in node.specs):
            return False
        if isinstance(node.op.kind, Loop) and iterations(node) is None:
            return False
        if not all(_complete(body) for _, body in node.bodies):
            return False
    return True


_END = object()
