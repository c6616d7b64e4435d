"""The trip count of a loop, if constants determine it."""

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
    """The trip count of a loop; None if it is dynamic.

    A condition is analysed if it is false at the start, or compares a counter (int32 or int64, with a
    constant step and without overflow) with a bound, in the condition or at the end of each iteration.

    Args:
        loop: the spec of the loop.
        initial: the values of its inputs; None for those that are not constant.
    """
    test, most = loop.condition, loop.length
    if test is None or most == 0:
        return most
    if any(n.effect is not None for n in test.nodes):
        return None
    analysis = _LoopConstants(loop.body, test, loop.carried, initial)
    starts = analysis.value(test, test.outputs[0], first=True)
    count = 0 if starts is not None and not starts.any() else analysis.iterations()
    return count if count is None or most is None else min(count, most)


class _Comparison(NamedTuple):
    """The test of ``begin + k * step + offset`` against ``bound`` in iteration ``k``."""

    test: ScalarOp
    begin: int
    offset: int
    step: int
    bound: int
    dtype: np.dtype[Any]

    def iterations(self) -> int | None:
        """The number of iterations before the test fails; None if it never fails, or the counter wraps."""
        test, start, step, bound = self.test, self.begin + self.offset, self.step, self.bound
        limits = np.iinfo(self.dtype)
        if not limits.min <= start <= limits.max:
            return None
        if not _TESTS[test](start, bound):
            return 0
        if step == 0 or (step > 0) is not _RISES.get(test, bound > start):
            return None
        count, remainder = divmod(bound - start, step)
        if test == ScalarOp.NOT_EQUAL and remainder:
            return None
        while _TESTS[test](start + count * step, bound):  # once at most
            count += 1
        last = self.begin + count * step
        return count if all(limits.min <= x <= limits.max for x in (last, last + self.offset)) else None


class _LoopConstants(NamedTuple):
    """The values of a loop with a condition that are the same constants in all iterations."""

    body: Graph
    test: Graph
    carried: int
    initial: Sequence[Array | None]

    def value(self, graph: Graph, target: Value, *, first: bool) -> Array | None:
        """The constant that ``target`` is in every iteration, or in the first; None if it is not constant.

        ``graph`` is the body or the condition.
        """
        needed, sources = ancestors([target], ())
        if any(n.effect is not None for n in needed):
            return None
        arrays = []
        for i, v in enumerate(graph.inputs):
            unchanged = first or i >= self.carried or self.body.outputs[i] is self.body.inputs[i]
            array = self.initial[i] if unchanged else None
            if array is None and v in sources:
                return None
            arrays.append(_UNUSED if array is None else array)
        part = Graph(graph.name, graph.inputs, tuple([n for n in graph.nodes if n in needed]), (target,))
        try:
            return evaluate(part, arrays)[0]
        except Exception:  # it fails again at run time
            return None

    def iterations(self) -> int | None:
        """The trip count, if a counter determines it."""
        result = _uncast(self.test.outputs[0])
        if result.node is not None:
            comparison = self._compared(self.test, result.node)
            return None if comparison is None else comparison.iterations()
        flag = self.test.inputs.index(result)
        first = self.initial[flag] if flag < self.carried else None
        if first is None or not first.any():
            return None
        next_flag = _uncast(self.body.outputs[flag]).node
        comparison = None if next_flag is None else self._compared(self.body, next_flag)
        further = None if comparison is None else comparison.iterations()
        return None if further is None else 1 + further

    def _compared(self, graph: Graph, node: Node) -> _Comparison | None:
        """``node`` as a comparison of a counter with a bound; None if it is none."""
        comparison = scalar_op_of(node)
        if comparison not in _TESTS:
            return None
        mirrored = _MIRRORED[comparison]
        for (counter, other), test in ((node.inputs, comparison), (node.inputs[::-1], mirrored)):
            bound = self.value(graph, other, first=False)
            begin_offset_step = self._counter(graph, counter)
            if bound is not None and bound.size == 1 and begin_offset_step is not None:
                return _Comparison(test, *begin_offset_step, int(bound.item()), counter.spec.dtype.dtype)
        return None

    def _counter(self, graph: Graph, value: Value) -> tuple[int, int, int] | None:
        """If ``value`` is ``counter + offset``: the first value of the counter, the offset and the step."""
        index, offset = self._sum(graph, value)
        if index is None or value.spec.dtype.name not in ("int32", "int64"):
            return None
        start = self.initial[index]
        next_place, step = self._sum(self.body, self.body.outputs[index])
        return (int(start.item()), offset, step) if next_place == index and start is not None else None

    def _sum(self, graph: Graph, value: Value) -> tuple[int | None, int]:
        """If ``value`` is ``carried scalar + constant``: the index of the carried value, and the constant."""
        offset, node = 0, value.node
        op = None if node is None else scalar_op_of(node)
        if node is not None and op in (ScalarOp.ADD, ScalarOp.SUBTRACT):
            x, y = node.inputs
            if op is ScalarOp.ADD and x.node is not None:
                x, y = y, x
            constant = self.value(graph, y, first=False)
            if constant is None or constant.size != 1:
                return None, 0
            value, offset = x, int(constant.item()) * (1 if op is ScalarOp.ADD else -1)
        indices = [i for i in range(self.carried) if graph.inputs[i] is value]
        return (indices[0], offset) if indices and value.spec.shape.num_elements() == 1 else (None, 0)


def _uncast(value: Value) -> Value:
    """``value`` without casts to its own dtype, which bodies have before simplification."""
    while (node := producer(value, CAST)) is not None and node.inputs[0].spec == value.spec:
        value = node.inputs[0]
    return value


_UNUSED: Final = np.zeros(())
"""A placeholder for inputs that are not read."""
