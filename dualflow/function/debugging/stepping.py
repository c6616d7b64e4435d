"""Runs a graph op by op, and calls an observer with each op."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from dualflow.core.records import dataclass
from dualflow.eager.tensor import EagerTensor, wrap
from dualflow.graph.interpret import OnGraph, evaluate, observed, run_node
from dualflow.graph.ir import Graph, Node, Origin
from dualflow.ops.conversion import ASSIGNED_VALUE
from dualflow.ops.op_kinds import Literal
from dualflow.ops.record import Effect

Array = np.ndarray[Any, Any]
Outputs = Sequence[Array]
_SHOWN = 4


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One op that has run in :meth:`Function.debug`.

    Attributes:
        op: the name of the op.
        origin: the user's line that called it: ``file``, ``line`` and ``function``; None if there is none.
        inputs: its input tensors.
        outputs: its output tensors.
        attrs: its attributes, such as an axis.
        depth: the number of branches and loop bodies around it.
    """

    op: str
    origin: Origin | None
    inputs: tuple[EagerTensor, ...]
    outputs: tuple[EagerTensor, ...]
    attrs: Mapping[str, Any]
    depth: int

    def __str__(self) -> str:
        results = ", ".join(f"{x.spec} = {_shown(x)}" for x in self.outputs)
        return f"{self.op}({', '.join(str(x.spec) for x in self.inputs)}) -> {results}"


class Observer(Protocol):
    """The callback of :class:`Walk` for each op."""

    def __call__(self, node: Node, arrays: Outputs, depth: int, compute: Callable[[], Outputs]) -> Outputs:
        """Called for each op; returns its outputs, which ``compute()`` computes."""
        ...


class Walk:
    """A run of a graph that calls an observer for each op, except constants and assignments.

    ``begin`` is called at the beginning of each graph and body.
    """

    def __init__(self, observer: Observer, begin: OnGraph | None = None) -> None:
        self._observer = observer
        self._begin = begin
        self._depth = 0

    def evaluate(self, graph: Graph, arrays: Sequence[Array]) -> list[Array]:
        """The results of the graph."""
        with observed(self.run, self._begin):
            return evaluate(graph, arrays)

    def run(self, node: Node, arrays: Outputs) -> Outputs:
        """The outputs of one node of the graph or of a body."""
        if isinstance(node.op.kind, Literal) or node.effect is Effect.ASSIGN or node.op is ASSIGNED_VALUE:
            return run_node(node, arrays)
        with observed(None):  # ops that the observer runs are not observed
            return self._observer(node, arrays, self._depth, lambda: self._compute(node, arrays))

    def _compute(self, node: Node, arrays: Outputs) -> Outputs:
        has_bodies = bool(node.bodies)
        self._depth += has_bodies
        try:
            with observed(self.run, self._begin) if has_bodies else observed(None):
                return run_node(node, arrays)
        finally:
            self._depth -= has_bodies


def step_of(node: Node, arrays: Outputs, outputs: Outputs, depth: int) -> Step:
    """The record of a node that has run."""
    tensors = tuple(map(wrap, arrays)), tuple(map(wrap, outputs))
    return Step(node.op.name, node.origin, *tensors, node.attrs, depth)


def _shown(tensor: EagerTensor) -> str:
    """The value of a tensor in one line."""
    shown = np.array2string(tensor._array, threshold=_SHOWN, edgeitems=2, precision=6, separator=", ")
    return " ".join(shown.split())
