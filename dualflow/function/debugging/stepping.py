"""A graph run op by op while somebody watches: what is told of an op, and where an observer stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from dualflow.core.records import dataclass
from dualflow.eager.tensor import EagerTensor, wrap
from dualflow.graph.interpret import Begin, evaluate, observed, run_node
from dualflow.graph.ir import Graph, Node, Origin
from dualflow.ops.op_kinds import Literal
from dualflow.ops.record import Effect

Array = np.ndarray[Any, Any]
Outputs = Sequence[Array]
_SHOWN = 4


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One op that has run in :meth:`Function.debug`.

    Attributes:
        op: its name.
        origin: the user's line that asked for it: ``file``, ``line`` and ``function``; None where none did.
        inputs: the tensors that it read.
        outputs: those that it made.
        attrs: its attributes, such as an axis.
        depth: in how many branches and loop bodies it stands.
    """

    op: str
    origin: Origin | None
    inputs: tuple[EagerTensor, ...]
    outputs: tuple[EagerTensor, ...]
    attrs: Mapping[str, Any]
    depth: int

    def __str__(self) -> str:
        made = ", ".join(f"{x.spec} = {_shown(x)}" for x in self.outputs)
        return f"{self.op}({', '.join(str(x.spec) for x in self.inputs)}) -> {made}"


class Observer(Protocol):
    """What :class:`Walk` tells of each op."""

    def __call__(self, node: Node, arrays: Outputs, depth: int, compute: Callable[[], Outputs]) -> Outputs:
        """Return what ``compute()`` returns: the outputs of ``node`` for these arrays."""
        ...


class Walk:
    """A run of a graph in which an observer stands between every two ops.

    Constants and assignments are no ops. ``begin`` is told of each graph and body that begins.
    """

    def __init__(self, observer: Observer, begin: Begin | None = None) -> None:
        self._observer = observer
        self._begin = begin
        self._depth = 0

    def evaluate(self, graph: Graph, arrays: Sequence[Array]) -> list[Array]:
        """The results of the graph."""
        with observed(self.run, self._begin):
            return evaluate(graph, arrays)

    def run(self, node: Node, arrays: Outputs) -> Outputs:
        """One node of the graph or of a body."""
        if isinstance(node.op.kind, Literal) or node.effect is Effect.ASSIGN:
            return run_node(node, arrays)
        with observed(None):  # what the observer runs is no part of the walk
            return self._observer(node, arrays, self._depth, lambda: self._compute(node, arrays))

    def _compute(self, node: Node, arrays: Outputs) -> Outputs:
        inside = bool(node.bodies)
        self._depth += inside
        try:
            with observed(self.run, self._begin) if inside else observed(None):
                return run_node(node, arrays)
        finally:
            self._depth -= inside


def step_of(node: Node, arrays: Outputs, outputs: Outputs, depth: int) -> Step:
    """The record of a node that has run."""
    tensors = tuple(map(wrap, arrays)), tuple(map(wrap, outputs))
    return Step(node.op.name, node.origin, *tensors, node.attrs, depth)


def _shown(tensor: EagerTensor) -> str:
    """The value in one line."""
    shown = np.array2string(tensor._array, threshold=_SHOWN, edgeitems=2, precision=6, separator=", ")
    return " ".join(shown.split())
