"""``df.verify``: compares a function, eager and compiled, and finds the first op that differs.

It compares three runs of one call: the Python function, its trace evaluated node by node with NumPy, and the
compiled trace. If the last two differ, it compiles the trace up to one op, in a binary search for the first
op whose compiled code is wrong. Rewrites of users are applied one by one, to find the first that changes the
values of the trace. If only the first run differs, it compares the ops that the Python function ran
with those of the trace, in the order of execution. It also checks the partition of the graph into kernels.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.progress import progress
from dualflow.core.records import NamedTuple
from dualflow.core.tracebacks import entry
from dualflow.function.calls.array_ownership import array_of
from dualflow.function.calls.compiled_graph import CompiledGraph
from dualflow.function.calls.data_dependent_sizes import sized_by_data
from dualflow.function.inspect.agreement import Difference, agree, compared, distance, first_mismatch
from dualflow.function.inspect.inspected import InspectedCall, inspect_call
from dualflow.function.inspect.measure import CountingEngine
from dualflow.function.inspect.verify_report import COMPILE, TRACE, Culprit, Verification
from dualflow.graph.extract import ancestors, extract
from dualflow.graph.interpret import evaluate, observed, run_node
from dualflow.graph.ir import Graph, Node, Origin, Value
from dualflow.graph.origin import caller
from dualflow.graph.passes.pipeline import SIMPLIFICATIONS, optimise, with_rewrites
from dualflow.ops.op_kinds import Literal
from dualflow.ops.record import Op

Array = np.ndarray[Any, Any]


@entry
def verify(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Verification:
    """Run ``f(*args, **kwargs)`` eagerly and compiled, and find the first op at which they differ.

    Results and variables may differ by rounding, within the tolerance of :func:`dualflow.compare`. If they
    differ by more, the report has the op, the line that called it, and the first element that differs. The
    report also lists kernels that depend on each other in a cycle, which would be a bug of fusion, and values
    that the trace has frozen although they differ between calls: random numbers of Python and NumPy, and
    clocks. Variables and random generators are restored; other side effects of Python code happen again. It
    stores all values of the call in memory, and compiles about log2(ops) parts of the graph.

    Args:
        f: a :func:`dualflow.function`, or a plain function, which is converted to one.
        args: the positional arguments of ``f``.
        kwargs: the keyword arguments of ``f``.

    Returns:
        The report; ``agrees`` is true without differences. A difference is no error.

    Raises:
        DTypeError: ``f`` is not callable.
        FailedPreconditionError: called while a function is traced or a tape records.

    >>> import dualflow as df
    >>> print(verify(lambda x: df.sqrt(x) * 3.0, df.constant([4.0, 9.0])))
    <lambda>(x: float32[2]) agrees: eager and compiled are equal
    >>> calls = []
    >>> def scale(x):
    ...     calls.append(x)
    ...     return x * len(calls)
    >>> report = verify(scale, df.ones([2]))
    >>> report.agrees, report.culprit.op, report.culprit.stage
    (False, 'multiply', 'trace')
    """
    with inspect_call("verify", f, args, kwargs) as call, progress(f"verify {call.concrete.name}"):
        return _VerificationRun(call).report()


class _ExecutedOp(NamedTuple):
    """An op that ran, and its outputs."""

    op: Op
    origin: Origin | None
    outputs: Sequence[Array]

    @property
    def key(self) -> tuple[Any, ...]:
        """The op and its line, which are equal in other runs."""
        return (self.op, *self.origin[:2]) if self.origin is not None else (self.op,)


class _OutputRecorder(CountingEngine):
    """The eager engine, which also records each op with its outputs."""

    __slots__ = ("executed",)

    def __init__(self) -> None:
        super().__init__()
        self.executed: list[_ExecutedOp] = []

    def run(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        result = super().run(op, inputs, attrs)
        tensors = result if isinstance(result, tuple) else (result,)
        self.executed.append(_ExecutedOp(op, caller(), [t._array for t in tensors]))
        return result


class _VerificationRun:
    """One verification: the call, and the state that is reset before each run."""

    def __init__(self, call: InspectedCall) -> None:
        self._call, self._state, self._inputs = call, call.state, call.inputs
        self._specialised = call.concrete.with_static_shapes(call.inputs)
        self._trace = self._specialised.trace
        self._steps: list[_ExecutedOp] = []

    def report(self) -> Verification:
        recorder = _OutputRecorder()
        with dispatch.using(recorder):
            eager = self._call.outcome(eagerly=True)
        difference = compared(eager, self._call.outcome(eagerly=False))
        culprit, rewrite = None, ""
        if not difference.agrees:
            reference = self._reference()
            results = [reference[v] for v in self._trace.graph.results]
            culprit = self._miscompiled(reference, results)
            rewrite = "" if culprit is None else self._wrong_rewrite(results)
            culprit = culprit or _mistraced(recorder.executed, self._steps, difference)
        faults = _fusion_faults(self._specialised.compiled)
        frozen = tuple(map(str, self._call.frozen_reads()))
        name, arguments = self._call.concrete.name, self._call.arguments()
        return Verification(name, arguments, difference, culprit, faults, frozen, rewrite)

    def _reference(self) -> dict[Value, Array]:
        """The values of the trace, evaluated with NumPy; records the ops, also of bodies, in ``_steps``."""
        self._state.reset()
        graph = self._trace.graph
        arrays = [array_of(x).copy() for x in (*self._inputs, *self._trace.captured)]
        values = dict(zip(graph.inputs, arrays, strict=True))

        def run(node: Node, inputs: Sequence[Array]) -> Sequence[Array]:
            outputs = run_node(node, inputs)
            values.update(zip(node.outputs, outputs, strict=True))  # values of bodies are other keys
            if not node.bodies and not isinstance(node.op.kind, Literal):
                self._steps.append(_ExecutedOp(node.op, node.origin, outputs))
            return outputs

        with observed(run):
            evaluate(graph, arrays)
        return values

    def _miscompiled(self, reference: dict[Value, Array], results: Sequence[Array]) -> Culprit | None:
        """The op whose compiled code differs from ``reference``; None if the compiled results agree."""
        graph = self._trace.graph
        actual = self._compiled_results()
        wrong = [i for i, (a, b) in enumerate(zip(results, actual, strict=True)) if not agree(a, b)]
        if not wrong:
            return None
        search = _Search(graph, reference, self._specialised.compiled)
        value = graph.results[wrong[0]]
        node = search.first_to_differ(value)
        if node is None:
            return _culprit(COMPILE, None, [results[wrong[0]]], [actual[wrong[0]]])
        outputs = [reference[v] for v in node.outputs]
        executed = _ExecutedOp(node.op, node.origin, outputs)
        return _culprit(COMPILE, executed, outputs, search.compiled(node), alone=search.differs_alone(node))

    def _wrong_rewrite(self, results: Sequence[Array]) -> str:
        """The first user-defined rewrite after which NumPy computes others than ``results``; "" for none."""
        compiled: CompiledGraph = self._specialised.compiled
        rewrites = compiled.options.rewrites
        for count, rewrite in enumerate(rewrites, start=1):
            passes = with_rewrites(SIMPLIFICATIONS, rewrites[:count])
            graph = optimise(self._trace.graph, compiled.options, passes=passes)
            self._state.reset()
            sources = (*self._inputs, *[c.source for c in graph.captures])
            actual = evaluate(graph, [array_of(x).copy() for x in sources])
            if not all(map(agree, results, actual)):
                return f"{rewrite.name} ({rewrite.algebra}), defined at {rewrite.origin}"
        return ""

    def _compiled_results(self) -> list[Array]:
        """The outputs and updates of the compiled call."""
        self._state.reset()
        compiled: CompiledGraph = self._specialised.compiled
        arrays = [np.array(array_of(x), order="C") for x in (*self._inputs, *compiled.sources.captured)]
        outputs = compiled.executable.run(arrays)
        return [*outputs, *(arrays[i] for i in compiled.sources.written)]


class _Search:
    """A search for the op of a graph whose compiled results differ from ``reference``, the correct values."""

    def __init__(self, graph: Graph, reference: dict[Value, Array], compiled: CompiledGraph) -> None:
        self._graph = graph
        self._compiled_graph = compiled
        self._reference = reference
        effects = [v for n in graph.nodes if n.effect is not None for v in n.outputs]
        self._inputs = [*graph.inputs, *effects]  # the outputs of random and Python ops can't be recomputed
        self._compiled: dict[Node, list[Array]] = {}

    def first_to_differ(self, value: Value) -> Node | None:
        """The op among the ancestors of ``value`` whose results differ though its inputs agree; None if none.

        Bisection finds an op that differs next to one that agrees. An input of the former may still differ,
        if later ops hide the difference: then the search continues from that input.
        """
        suspect: Value | None = value
        culprit: Node | None = None
        while suspect is not None:
            nodes = self._ancestors(suspect)
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
        outputs = self._compiled.get(node)
        if outputs is None:
            outputs = self._compiled[node] = self._run(self._inputs, node)
        return outputs

    def differs_alone(self, node: Node) -> bool:
        """Whether ``node`` also differs if it is compiled by itself."""
        return self._is_wrong(node, self._run(list(dict.fromkeys(node.inputs)), node))

    def _run(self, inputs: Sequence[Value], node: Node) -> list[Array]:
        """The outputs of ``node``, compiled, for the reference values of ``inputs``."""
        options, backend = self._compiled_graph.options, self._compiled_graph.backend
        part = optimise(extract(self._graph, inputs, node.outputs), options)
        compiled = backend.build(part, options)
        return compiled.run([np.array(self._reference[v], order="C") for v in inputs])

    def _ancestors(self, value: Value) -> list[Node]:
        """The nodes that ``value`` depends on, in program order, without constants."""
        needed, _ = ancestors([value], self._inputs)
        return [n for n in self._graph.nodes if n in needed and not isinstance(n.op.kind, Literal)]

    def _may_differ(self, value: Value) -> bool:
        node = value.node
        if node is None or value in self._inputs or isinstance(node.op.kind, Literal):
            return False
        return self._differs(node)

    def _differs(self, node: Node) -> bool:
        return self._is_wrong(node, self.compiled(node))

    def _is_wrong(self, node: Node, outputs: Sequence[Array]) -> bool:
        return not all(agree(self._reference[v], x) for v, x in zip(node.outputs, outputs, strict=True))


def _fusion_faults(compiled: CompiledGraph) -> tuple[str, ...]:
    """The violations of the rules of fusion; none for a graph with sizes that depend on data."""
    if sized_by_data(compiled.graph) is not None:
        return ()
    check = import_module("dualflow.graph.passes.fusion_check")
    return tuple(check.check_fusion(compiled.graph, compiled.options))


def _mistraced(eager: Iterable[_ExecutedOp], graph: Iterable[_ExecutedOp], difference: Difference) -> Culprit:
    """The first op whose results in the trace differ from its eager results."""
    pending: defaultdict[tuple[Any, ...], deque[_ExecutedOp]] = defaultdict(deque)
    for executed in eager:
        pending[executed.key].append(executed)
    for executed in graph:
        same_op = pending[executed.key]
        if same_op:
            expected = same_op.popleft().outputs
            if not all(map(agree, expected, executed.outputs)):
                return _culprit(TRACE, executed, expected, executed.outputs)
    return Culprit(TRACE, "", None, difference, None, None, None, alone=False)


def _culprit(
    stage: str,
    executed: _ExecutedOp | None,
    expected: Sequence[Array],
    actual: Sequence[Array],
    *,
    alone: bool = False,
) -> Culprit:
    op, origin = (executed.op.name, executed.origin) if executed is not None else ("", None)
    a, b = next((a, b) for a, b in zip(expected, actual, strict=True) if not agree(a, b))
    if a.shape != b.shape or a.dtype != b.dtype:
        reason = f"{a.dtype}{list(a.shape)} expected, {b.dtype}{list(b.shape)} computed"
        return Culprit(stage, op, origin, Difference(np.inf, np.inf, reason), None, None, None, alone)
    index = first_mismatch(a, b)
    assert index is not None, "arrays that don't agree have such an element"
    difference = Difference(*distance(a, b), "too far apart")
    return Culprit(stage, op, origin, difference, index, a[index], b[index], alone)
