"""``verify``: does a function do the same eagerly and compiled? If not, which op is the first that doesn't?

Three runs of one call are held beside each other: the Python function, its trace node by node through NumPy,
and the compiled trace. If the last two differ, the trace is cut short after one op and compiled again, in a
binary search for the first op at which compiled code goes wrong. If only the first differs, the ops that
Python ran are held against those of the trace, in the order in which both ran. The kernels that the graph was
cut into are looked at besides.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.records import NamedTuple
from dualflow.core.tracebacks import entry
from dualflow.function.calls.array_ownership import array_of
from dualflow.function.calls.compiled_graph import CompiledGraph
from dualflow.function.calls.data_dependent_sizes import sized_by_data
from dualflow.function.inspect.agreement import agree, compared, distance, first_apart
from dualflow.function.inspect.compare_report import Difference
from dualflow.function.inspect.inspected import Inspected, inspected
from dualflow.function.inspect.measure import Counting
from dualflow.function.inspect.verify_report import COMPILE, TRACE, Culprit, Verification
from dualflow.graph.extract import ancestors, extract
from dualflow.graph.interpret import evaluate, observed, run_node
from dualflow.graph.ir import Graph, Node, Origin, Value
from dualflow.graph.origin import caller
from dualflow.graph.passes import optimise
from dualflow.ops.op_kinds import Literal
from dualflow.ops.record import Op

Array = np.ndarray[Any, Any]


@entry
def verify(f: Any, *args: Any, **kwargs: Any) -> Verification:
    """Run ``f(*args, **kwargs)`` eagerly and compiled, and find the first op at which they differ.

    Results and variables may differ by rounding, by as much as :func:`dualflow.compare` takes for agreement.
    Where they differ by more, the report names the op, the line that asked for it, and the first element that
    is off. The report also names kernels that wait for each other, which would be a fault of fusion, and what
    the trace keeps though it differs from call to call: random numbers of Python and NumPy, and clocks.
    Variables and random generators are put back; what Python code does besides happens once more. It
    holds all that the call computes in memory, and compiles about log2(ops) parts of the graph.

    Args:
        f: a :func:`dualflow.function`, or a plain function, which is made one.
        args: as for a call of ``f``.
        kwargs: likewise.

    Returns:
        The report; ``agrees`` says whether all is well. A difference is no error.

    Raises:
        DTypeError: ``f`` can't be called.
        FailedPreconditionError: called while a function is traced or a tape records.

    >>> import dualflow as df
    >>> print(verify(lambda x: df.sqrt(x) * 3.0, df.constant([4.0, 9.0])))
    <lambda>(x: float32[2]) agrees: eager and compiled are 0.0e+00 apart at most, ...
    >>> calls = []
    >>> def scale(x):
    ...     calls.append(x)
    ...     return x * len(calls)
    >>> report = verify(scale, df.ones([2]))
    >>> report.agrees, report.culprit.op, report.culprit.stage
    (False, 'multiply', 'trace')
    """
    with inspected("verify", f, args, kwargs) as call:
        return _Verifying(call).report()


class _Ran(NamedTuple):
    """An op that ran, and what it made."""

    op: Op
    origin: Origin | None
    outputs: Sequence[Array]

    @property
    def place(self) -> tuple[Any, ...]:
        """What the same op of another run has in common with it."""
        return (self.op, *self.origin[:2]) if self.origin is not None else (self.op,)


class _Listening(Counting):
    """The eager engine, with a note of each op and what it made."""

    __slots__ = ("ran",)

    def __init__(self) -> None:
        super().__init__()
        self.ran: list[_Ran] = []

    def run(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        made = super().run(op, inputs, attrs)
        tensors = made if isinstance(made, tuple) else (made,)
        self.ran.append(_Ran(op, caller(), [t._array for t in tensors]))
        return made


class _Verifying:
    """One verification under way: the call, and how to put things back before each run of it."""

    def __init__(self, call: Inspected) -> None:
        self._call, self._state, self._inputs = call, call.state, call.inputs
        self._trace = call.concrete.for_shapes(call.inputs)
        self._steps: list[_Ran] = []

    def report(self) -> Verification:
        listening = _Listening()
        with dispatch.using(listening):
            eager = self._call.outcome(eagerly=True)
        difference = compared(eager, self._call.outcome(eagerly=False))
        culprit = None
        if not difference.agrees:
            known = self._reference()
            results = [known[v] for v in self._trace.graph.results]
            culprit = self._miscompiled(known, results) or _mistraced(listening.ran, self._steps, difference)
        faults = _fusion_faults(self._trace.compiled)
        frozen = tuple(map(str, self._call.frozen_reads()))
        name, arguments = self._call.concrete.name, self._call.arguments()
        return Verification(name, arguments, difference, culprit, faults, frozen)

    def _reference(self) -> dict[Value, Array]:
        """All values of the trace, by NumPy, and in ``_steps`` what ran, that inside of bodies included."""
        self._state.renew()
        graph = self._trace.graph
        arrays = [array_of(x).copy() for x in (*self._inputs, *self._trace.captured)]
        known = dict(zip(graph.inputs, arrays, strict=True))

        def run(node: Node, given: Sequence[Array]) -> Sequence[Array]:
            outputs = run_node(node, given)
            known.update(zip(node.outputs, outputs, strict=True))  # a body's values are nobody else's keys
            if not node.bodies and not isinstance(node.op.kind, Literal):
                self._steps.append(_Ran(node.op, node.origin, outputs))
            return outputs

        with observed(run):
            evaluate(graph, arrays)
        return known

    def _miscompiled(self, known: dict[Value, Array], results: Sequence[Array]) -> Culprit | None:
        """The op at which compiled code differs from ``known``; None if its results don't differ."""
        graph = self._trace.graph
        found = self._compiled_results()
        wrong = [i for i, (a, b) in enumerate(zip(results, found, strict=True)) if not agree(a, b)]
        if not wrong:
            return None
        search = _Search(graph, known, self._trace.compiled)
        value = graph.results[wrong[0]]
        node = search.first_to_differ(value)
        if node is None:
            return _culprit(COMPILE, None, [results[wrong[0]]], [found[wrong[0]]])
        outputs = [known[v] for v in node.outputs]
        ran = _Ran(node.op, node.origin, outputs)
        return _culprit(COMPILE, ran, outputs, search.compiled(node), alone=search.differs_alone(node))

    def _compiled_results(self) -> list[Array]:
        """The outputs and updates of the compiled call."""
        self._state.renew()
        compiled: CompiledGraph = self._trace.compiled
        given = [np.array(array_of(x), order="C") for x in (*self._inputs, *compiled.sources.captured)]
        outputs = compiled.executable.run(given)
        return [*outputs, *(given[i] for i in compiled.sources.written)]


class _Search:
    """Which op of a graph differs when compiled, given all values as they should be."""

    def __init__(self, graph: Graph, known: dict[Value, Array], whole: CompiledGraph) -> None:
        self._graph = graph
        self._whole = whole
        self._known = known
        drawn = [v for n in graph.nodes if n.effect is not None for v in n.outputs]
        self._given = [*graph.inputs, *drawn]  # what random and Python ops gave can't be had again
        self._compiled: dict[Node, list[Array]] = {}

    def first_to_differ(self, value: Value) -> Node | None:
        """The op behind ``value`` whose results differ though its inputs don't; None if no op's do.

        Bisection finds an op that differs beside one that doesn't. An input of the former may differ still,
        if what came after hid it: then the search goes on above that input.
        """
        suspect: Value | None = value
        culprit: Node | None = None
        while suspect is not None:
            nodes = self._behind(suspect)
            if not nodes or not self._differs(nodes[-1]):
                break
            low, high = -1, len(nodes) - 1
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if self._differs(nodes[middle]) else (middle, high)
            culprit = nodes[high]
            suspect = next((v for v in culprit.inputs if self._may_differ(v)), None)
        return culprit

    def compiled(self, node: Node) -> list[Array]:
        """The outputs of ``node`` from the graph that ends with it, compiled."""
        found = self._compiled.get(node)
        if found is None:
            found = self._compiled[node] = self._run(self._given, node)
        return found

    def differs_alone(self, node: Node) -> bool:
        """Whether ``node`` differs also when it is compiled by itself."""
        return self._apart(node, self._run(list(dict.fromkeys(node.inputs)), node))

    def _run(self, given: Sequence[Value], node: Node) -> list[Array]:
        """The outputs of ``node``, compiled, for the values ``given`` as they should be."""
        whole = self._whole
        part = optimise(extract(self._graph, given, node.outputs), whole.options)
        compiled = whole.backend.build(part, whole.options)
        return compiled.run([np.array(self._known[v], order="C") for v in given])

    def _behind(self, value: Value) -> list[Node]:
        """The computing nodes that ``value`` depends on, in program order."""
        needed, _ = ancestors([value], self._given)
        return [n for n in self._graph.nodes if n in needed and not isinstance(n.op.kind, Literal)]

    def _may_differ(self, value: Value) -> bool:
        node = value.node
        if node is None or value in self._given or isinstance(node.op.kind, Literal):
            return False
        return self._differs(node)

    def _differs(self, node: Node) -> bool:
        return self._apart(node, self.compiled(node))

    def _apart(self, node: Node, found: Sequence[Array]) -> bool:
        return not all(agree(self._known[v], x) for v, x in zip(node.outputs, found, strict=True))


def _fusion_faults(compiled: CompiledGraph) -> tuple[str, ...]:
    """What is wrong with the kernels of a graph; a graph with sizes that depend on data has none."""
    if sized_by_data(compiled.graph) is not None:
        return ()
    check = import_module("dualflow.graph.passes.fusion_check")
    return tuple(check.check_fusion(compiled.graph, compiled.options))


def _mistraced(eager: Iterable[_Ran], graph: Iterable[_Ran], difference: Difference) -> Culprit:
    """The first op whose results in the trace differ from those that it had when Python ran it."""
    waiting: defaultdict[tuple[Any, ...], deque[_Ran]] = defaultdict(deque)
    for ran in eager:
        waiting[ran.place].append(ran)
    for ran in graph:
        same = waiting[ran.place]
        if same:
            expected = same.popleft().outputs
            if not all(map(agree, expected, ran.outputs)):
                return _culprit(TRACE, ran, expected, ran.outputs)
    return Culprit(TRACE, "", None, difference, None, None, None, alone=False)


def _culprit(
    stage: str, ran: _Ran | None, expected: Sequence[Array], found: Sequence[Array], *, alone: bool = False
) -> Culprit:
    op, origin = (ran.op.name, ran.origin) if ran is not None else ("", None)
    a, b = next((a, b) for a, b in zip(expected, found, strict=True) if not agree(a, b))
    if a.shape != b.shape or a.dtype != b.dtype:
        reason = f"{a.dtype}{list(a.shape)} expected, {b.dtype}{list(b.shape)} found"
        return Culprit(stage, op, origin, Difference(np.inf, np.inf, reason), None, None, None, alone)
    index = first_apart(a, b)
    assert index is not None, "arrays that don't agree have such an element"
    difference = Difference(*distance(a, b), "too far apart")
    return Culprit(stage, op, origin, difference, index, a[index], b[index], alone)
