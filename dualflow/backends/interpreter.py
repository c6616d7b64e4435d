"""The reference backend: runs each node of a graph by its op's NumPy kernel, in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from dualflow.core.errors import ResourceExhaustedError
from dualflow.core.locks import imported
from dualflow.core.memory_errors import graph_out_of_memory
from dualflow.graph.capabilities import Capabilities
from dualflow.graph.compiled import (
    CodeSource,
    CompileCosts,
    Compiled,
    CompileStats,
    Footprint,
    GraphInputs,
    PartKind,
    PartReport,
    StepTime,
    StepTimer,
    TimedKind,
)
from dualflow.graph.effect_log import EffectLog
from dualflow.graph.interpret import evaluate, observed, run_node
from dualflow.graph.ir import Graph, Node
from dualflow.graph.options import CompileOptions
from dualflow.graph.step_recorder import StepRecorder
from dualflow.graph.string_graphs import REASON, holds_strings, with_strings
from dualflow.graph.symbolic_evaluation import evaluated_with
from dualflow.graph.symbolic_size_ops import has_symbolic_sizes
from dualflow.ops.op_kinds import CONTROL, Loop

Array = np.ndarray[Any, Any]


CAPABILITIES = Capabilities(
    dtypes="",
    integer_matrices=False,
    windows=False,
    fourier=False,
    collectives=False,
    symbolic_sizes=False,
    size_scalars=False,
)


class Interpreted:
    """A graph that the interpreter runs.

    Attributes:
        graph: what it computes, after all passes.
        inputs: the inputs of the graph.
    """

    __slots__ = ("__weakref__", "_has_symbolic_sizes", "graph", "inputs")

    updates_in_place = False

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.inputs = GraphInputs.of(graph)
        self._has_symbolic_sizes = has_symbolic_sizes(graph)

    @property
    def parts(self) -> tuple[PartReport, ...]:
        """How each part of the graph runs: all of it through NumPy."""
        what = f"{len(self.graph.nodes)} nodes, one by one"
        if not holds_strings(self.graph):
            return (PartReport(PartKind.NUMPY, what, "the backend is numpy"),)
        return (PartReport(PartKind.NUMPY, what, REASON, with_strings(self.graph)),)

    def run(self, arrays: Sequence[Array], effect_log: EffectLog | None = None) -> list[Array]:
        """The graph's outputs; variables are written after all nodes have run.

        ``effect_log`` records the nodes with effects.

        Raises:
            ResourceExhaustedError: a node is out of memory.
        """
        try:
            with evaluated_with({}) if self._has_symbolic_sizes else nullcontext():
                results = (
                    evaluate(self.graph, arrays)
                    if effect_log is None
                    else _evaluate_observed(self.graph, arrays, effect_log)
                )
        except ResourceExhaustedError:  # of an op, which it names
            raise
        except MemoryError as error:
            raise graph_out_of_memory(self.graph.name, error) from None
        count = len(self.graph.outputs)
        outputs = [_own(x, arrays) for x in results[:count]]
        updates = [np.array(x) for x in results[count:]]  # one may be the variable that another replaces
        for i, value in zip(self.inputs.updated, updates, strict=True):
            arrays[i][...] = value
        return outputs


def capabilities() -> Capabilities:
    """The capabilities: no kernels and no routines."""
    return CAPABILITIES


def build(graph: Graph, options: CompileOptions) -> Compiled:
    """``graph`` as an executable of this backend."""
    return Interpreted(graph)


def footprint(graph: Graph, *, in_order: bool = True) -> Footprint:
    """The memory of the values of ``graph``, without the intermediates inside kernels."""
    planning = imported("dualflow.schedule.plan")
    memory: Footprint = planning.footprint(graph, CAPABILITIES)
    return memory


def compile_stats(compiled: Interpreted) -> CompileStats:
    """The counts of a graph whose nodes are all calls of NumPy."""
    return CompileStats(
        kernels=(), products=0, host_calls=len(compiled.graph.nodes), arena_bytes=0, keeps_arena=False
    )


def costs(compiled: Interpreted) -> CompileCosts:
    """The costs of compiling: 0."""
    return CompileCosts(emission=0.0, compilation=0.0, linking=0.0, paid=0.0, source=CodeSource.NONE)


def step_timer(compiled: Interpreted) -> StepTimer:
    """A function that runs a call, and times each node, those of branches and loops too."""
    bodies = set(_bodies_of_loops(compiled.graph))

    def timed(arrays: Sequence[Array]) -> list[StepTime]:
        recorder = StepRecorder()

        def run(node: Node, inputs: Sequence[Array]) -> Sequence[Array]:
            is_control = isinstance(node.op.kind, CONTROL)
            with recorder.step(node, TimedKind.CONTROL if is_control else TimedKind.HOST, node):
                if is_control:
                    return run_node(node, inputs)
                with observed(None):
                    return run_node(node, inputs)

        def count(graph: Graph, _: Sequence[Array]) -> None:
            if graph in bodies:
                recorder.count_iteration()

        with observed(run, count):
            compiled.run(arrays)
        return recorder.times()

    return timed


def _bodies_of_loops(graph: Graph) -> Iterator[Graph]:
    """The bodies of the loops of a graph, at all depths."""
    for node in graph.nodes:
        for name, body in node.bodies:
            if name == "body" and isinstance(node.op.kind, Loop):
                yield body
            yield from _bodies_of_loops(body)


def _evaluate_observed(graph: Graph, arrays: Sequence[Array], effect_log: EffectLog) -> list[Array]:
    with observed(effect_log.follow):
        return evaluate(graph, arrays)


def _own(result: Array, inputs: Sequence[Array]) -> Array:
    """A C-contiguous result that shares no memory with ``inputs``: kernels may return views of them."""
    array = np.ascontiguousarray(result).reshape(np.shape(result))
    if any(np.may_share_memory(array, x) for x in inputs) or array.base is not None:
        return array.copy()
    return array
