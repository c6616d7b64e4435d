"""Total work and critical path of a graph.

For users and tools: no compile imports networkx.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import networkx as nx

from dualflow.core.records import dataclass
from dualflow.graph.fused import computed_op_names
from dualflow.graph.ir import Graph, Node
from dualflow.graph.list_schedule import useful_workers
from dualflow.graph.work import bytes_moved, computes, iterations, work
from dualflow.ops.op_kinds import Loop
from dualflow.sizes.symbolic_sizes import is_static

MAX_CORES = 256
"""The largest number of cores that a workload is reported for."""


@dataclass(frozen=True, slots=True)
class Workload:
    """The work, memory traffic and critical path of a graph.

    A step is a node that computes: a kernel, a matrix product, an op that NumPy runs. Steps inside branches
    and loops are part of the step around them.

    Attributes:
        operations: the work of all steps, in additions of two numbers, by the costs of the op records: a
            matrix product counts two for each product of two numbers, a moved element one.
        bytes_moved: the bytes that the steps read and write, each value once per step.
        steps: the number of steps.
        span: the operations of the steps of ``path``, in additions.
        path: the critical path, the most expensive chain of dependent steps, in order: the ops of each step,
            joined by ``+``.
        complete: whether everything is counted. If not, a loop with a dynamic trip count counts as one
            iteration, or a value of dynamic size as empty.
        cores: the number of cores that can run steps of this graph at the same time to some use, each step on
            one core; at most :data:`MAX_CORES`.
    """

    operations: float
    bytes_moved: int
    steps: int
    span: float
    path: tuple[str, ...]
    complete: bool
    cores: int = 1

    @property
    def parallelism(self) -> float:
        """The average number of steps that could run at the same time: work divided by span."""
        return self.operations / self.span if self.span else 1.0


def workload(graph: Graph) -> Workload:
    """The work and the span of ``graph``.

    >>> import dualflow as df
    >>> two = df.function(lambda x: (df.sort(x + 1.0), df.sort(x - 1.0)))
    >>> total = workload(two.get_concrete_function(df.TensorSpec([10])).graph)
    >>> total.operations, total.span, total.parallelism, total.cores
    (40.0, 20.0, 2.0, 2)
    """
    path = critical_path(graph)
    steps = [node for node in graph.nodes if computes(node)]
    return Workload(
        operations=sum(map(work, steps)),
        bytes_moved=sum(map(bytes_moved, steps)),
        steps=len(steps),
        span=sum(map(work, path)),
        path=tuple([computed_op_names(node) for node in path]),
        complete=_is_static(graph),
        cores=_cores(graph),
    )


def critical_path(graph: Graph, cost: Callable[[Node], float] = work) -> list[Node]:
    """The most expensive chain of dependent steps, in order.

    It bounds the time of the graph however many steps run at once. A node with an effect depends on the
    previous one.
    """
    weighted = nx.DiGraph()
    for node in graph.nodes:
        node_cost = cost(node)
        weighted.add_edge(node, _END, weight=node_cost)
        weighted.add_weighted_edges_from(
            (v.node, node, weighted.edges[v.node, _END]["weight"]) for v in node.inputs if v.node is not None
        )
    for earlier, later in pairwise([node for node in graph.nodes if node.effect is not None]):
        weighted.add_edge(earlier, later, weight=weighted.edges[earlier, _END]["weight"])
    path = nx.dag_longest_path(weighted)
    return [node for node in path if node is not _END and computes(node)]


def _cores(graph: Graph) -> int:
    """The smallest number of cores on which a list schedule of the steps takes as long as on any number."""
    number = {node: i for i, node in enumerate(graph.nodes)}
    before = [{number[v.node] for v in node.inputs if v.node is not None} for node in graph.nodes]
    for earlier, later in pairwise([i for i, node in enumerate(graph.nodes) if node.effect is not None]):
        before[later].add(earlier)
    costs = [work(node) for node in graph.nodes]
    return useful_workers(costs, [tuple(sources) for sources in before], MAX_CORES) if costs else 1


def _is_static(graph: Graph) -> bool:
    """Whether all sizes and trip counts are static, so that the work is known."""
    for node in graph.nodes:
        if not all(spec.shape.is_static and is_static(spec.shape) for spec in node.specs):
            return False
        if isinstance(node.op.kind, Loop) and iterations(node) is None:
            return False
        if not all(_is_static(body) for _, body in node.bodies):
            return False
    return True


_END = object()
