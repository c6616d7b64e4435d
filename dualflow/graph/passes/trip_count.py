"""The number of iterations of a loop, where its inputs tell."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from dualflow.core.records import NamedTuple
from dualflow.graph.control_spec import LoopSpec
from dualflow.graph.extract import ancestors
from dualflow.graph.interpret import evaluate
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.rewrite import producer
from dualflow.graph.scalar_functions import scalar_op_of
from dualflow.ops.conversion import CAST
from dualflow.scalar import ScalarOp

Array = np.ndarray[Any, Any]

_TESTS: Final[dict[ScalarOp, Callable[[int, int], bool]]] = {
    ScalarOp.LESS: operator.lt,
    ScalarOp.LESS_EQUAL: operator.le,
    ScalarOp.GREATER: operator.gt,
    ScalarOp.GREATER_EQUAL: operator.ge,
    ScalarOp.NOT_EQUAL: operator.ne,
}
_MIRRORED: Final = {
    ScalarOp.LESS: ScalarOp.GREATER,
    ScalarOp.LESS_EQUAL: ScalarOp.GREATER_EQUAL,
    ScalarOp.GREATER: ScalarOp.LESS,
    ScalarOp.GREATER_EQUAL: ScalarOp.LESS_EQUAL,
    ScalarOp.NOT_EQUAL: ScalarOp.NOT_EQUAL,
}
_RISES: Final = {
    ScalarOp.LESS: True,
    ScalarOp.LESS_EQUAL: True,
    ScalarOp.GREATER: False,
    ScalarOp.GREATER_EQUAL: False,
}


def trip_count(loop: LoopSpec, initial: Sequence[Array | None]) -> int | None:
    """The number of iterations of a loop; None where only the run tells.

    A condition is understood if it is false at the start, or compares a counter (int32 or int64, to which
    each iteration adds one number, without overflow) with a bound, in the condition or at the end of each
    iteration.

    Args:
        loop: what its iterations are.
        initial: the values of its inputs, None for those that are not known.
    """
    test, most = loop.condition, loop.length
    if test is None or most == 0:
        return most
    if any(n.effect is not None for n in test.nodes):
        return None
    known = _Known(loop.body, test, loop.carried, initial)
    starts = known.value(test, test.outputs[0], first=True)
    count = 0 if starts is not None and not starts.any() else known.iterations()
    return count if count is None or most is None else min(count, most)


class _Comparison(NamedTuple):
    """A counter, ``begin + k * step`` in iteration ``k``, that is compared, ``more`` added, with
    ``bound``."""

    test: ScalarOp
    begin: int
    more: int
    step: int
    bound: int
    dtype: np.dtype[Any]

    def iterations(self) -> int | None:
        """How often the comparison holds before it doesn't; None for ever, or where the counter wraps."""
        test, start, step, bound = self.test, self.begin + self.more, self.step, self.bound
        limits = np.iinfo(self.dtype)
        if not limits.min <= start <= limits.max:
            return None
        if not _TESTS[test](start, bound):
            return 0
        if step == 0 or (step > 0) is not _RISES.get(test, bound > start):
            return None
        count, rest = divmod(bound - start, step)
        if test == ScalarOp.NOT_EQUAL and rest:
            return None
        while _TESTS[test](start + count * step, bound):  # once at most
            count += 1
        last = self.begin + count * step
        return count if all(limits.min <= x <= limits.max for x in (last, last + self.more)) else None


class _Known(NamedTuple):
    """A loop with a condition, and those of its inputs that are known."""

    body: Graph
    test: Graph
    carried: int
    initial: Sequence[Array | None]

    def value(self, graph: Graph, wanted: Value, *, first: bool) -> Array | None:
        """``wanted`` in every iteration, or in the first; None where it differs or is not known.

        ``graph`` is the body or the condition.
        """
        needed, sources = ancestors([wanted], ())
        if any(n.effect is not None for n in needed):
            return None
        arrays = []
        for i, v in enumerate(graph.inputs):
            steady = first or i >= self.carried or self.body.outputs[i] is self.body.inputs[i]
            known = self.initial[i] if steady else None
            if known is None and v in sources:
                return None
            arrays.append(_NOTHING if known is None else known)
        part = Graph(graph.name, graph.inputs, tuple([n for n in graph.nodes if n in needed]), (wanted,))
        try:
            return evaluate(part, arrays)[0]
        except Exception:  # what fails, fails again when it runs
            return None

    def iterations(self) -> int | None:
        """The number of iterations, if a counter tells it."""
        asked = _uncast(self.test.outputs[0])
        if asked.node is not None:
            found = self._compared(self.test, asked.node)
            return None if found is None else found.iterations()
        flag = self.test.inputs.index(asked)
        going = self.initial[flag] if flag < self.carried else None
        if going is None or not going.any():
            return None
        after = _uncast(self.body.outputs[flag]).node
        found = None if after is None else self._compared(self.body, after)
        more = None if found is None else found.iterations()
        return None if more is None else 1 + more

    def _compared(self, graph: Graph, node: Node) -> _Comparison | None:
        """The comparison that ``node`` of the condition, or of the body, is."""
        comparison = scalar_op_of(node)
        if comparison not in _TESTS:
            return None
        mirrored = _MIRRORED[comparison]
        for (counter, other), test in ((node.inputs, comparison), (node.inputs[::-1], mirrored)):
            bound = self.value(graph, other, first=False)
            counted = self._counter(graph, counter)
            if bound is not None and bound.size == 1 and counted is not None:
                return _Comparison(test, *counted, int(bound.item()), counter.spec.dtype.dtype)
        return None

    def _counter(self, graph: Graph, value: Value) -> tuple[int, int, int] | None:
        """Where a counter begins, what ``value`` of ``graph`` is more than it, and what an iteration adds."""
        place, more = self._sum(graph, value)
        if place is None or value.spec.dtype.name not in ("int32", "int64"):
            return None
        start = self.initial[place]
        again, step = self._sum(self.body, self.body.outputs[place])
        return (int(start.item()), more, step) if again == place and start is not None else None

    def _sum(self, graph: Graph, value: Value) -> tuple[int | None, int]:
        """The carried scalar to which ``graph`` adds a known number to get ``value``, and that number."""
        more, node = 0, value.node
        op = None if node is None else scalar_op_of(node)
        if node is not None and op in (ScalarOp.ADD, ScalarOp.SUBTRACT):
            x, y = node.inputs
            if op is ScalarOp.ADD and x.node is not None:
                x, y = y, x
            known = self.value(graph, y, first=False)
            if known is None or known.size != 1:
                return None, 0
            value, more = x, int(known.item()) * (1 if op is ScalarOp.ADD else -1)
        places = [i for i in range(self.carried) if graph.inputs[i] is value]
        return (places[0], more) if places and value.spec.shape.num_elements() == 1 else (None, 0)


def _uncast(value: Value) -> Value:
    """``value`` as it was before casts to its own dtype, which bodies have until they are simplified."""
    while (node := producer(value, CAST)) is not None and node.inputs[0].spec == value.spec:
        value = node.inputs[0]
    return value


_NOTHING: Final = np.zeros(())
"""Stands for inputs that nothing asked for reads."""
