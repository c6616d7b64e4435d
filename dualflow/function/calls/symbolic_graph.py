"""A trace with dynamic sizes as a graph with symbolic ones, which one program computes for all sizes."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from dualflow.core.garbage_collection import collection_paused
from dualflow.core.locks import imported
from dualflow.core.records import NamedTuple, replace
from dualflow.function.calls.ragged_stacks import refuse_ragged
from dualflow.function.calls.size_decisions import CallSizes, FixedSize, GuardedDecisions
from dualflow.function.calls.size_inference import EqualAxes, SizeInference
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.graph.ir import Graph, GraphBuilder, Update, Value
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.graph.passes.merge_loops import merge_loops
from dualflow.graph.size_guards import NO_GUARDS, SizeGuard, SizeGuards
from dualflow.graph.symbolic_size_ops import GUARD_SIZES, Axis, has_symbolic_sizes
from dualflow.ops.op_kinds import Scatter
from dualflow.sizes.size_functions import largest, substitute
from dualflow.sizes.symbolic_sizes import SizeVariable, SymInt, UndecidedSize, size_variables, variable_of

if TYPE_CHECKING:
    from dualflow.graph.compiled import Compiled
    from dualflow.schedule.rematerialisation import WithinBudget

SMALL_SIZES: Final = 256
"""The largest size in a program for small sizes, whose reductions along an axis have no blocks."""
_NO_INPUTS: Final[Mapping[int, int]] = {}


class SymbolicProgram(NamedTuple):
    """One program for all sizes.

    Attributes:
        executable: the compiled graph.
        rematerialised: the graph within the memory budget; None without one.
        guards: the comparisons of sizes that have one outcome in all calls of the program.
    """

    executable: Compiled
    rematerialised: WithinBudget | None
    guards: SizeGuards


def with_symbolic_sizes(
    graph: Graph,
    options: CompileOptions,
    equal_axes: EqualAxes = (),
    guards: SizeGuards = NO_GUARDS,
    shaped_as: Mapping[int, int] = _NO_INPUTS,
    call_sizes: CallSizes | None = None,
) -> Graph:
    """``graph`` with symbolic sizes instead of dynamic ones.

    Args:
        graph: what a function was traced to.
        options: how it is compiled.
        equal_axes: groups of dynamic axes of arguments that have one size in all calls of the program.
        guards: comparisons of sizes of arguments that have one outcome in all calls of the program.
        shaped_as: the inputs that have the shape of an output, as cotangents do: the number of the output.
            Nodes that read them come after those that compute the output.
        call_sizes: the sizes of a call, which decide the comparisons that ops make of sizes; gets the guards.

    Sizes of arguments that guards or ops compare with equal numbers are these numbers.

    Raises:
        UndecidedSize: no expression describes a size, or an op needs its number.
    """
    graph = merge_loops(graph)  # by their inputs, while these are those of the trace
    fixed_sizes = _fixed_sizes(guards, equal_axes)
    while True:
        inference = SizeInference(Tracer(graph.name, options=options), fixed_sizes=fixed_sizes)
        inference.most = _bound_of(guards, call_sizes)
        try:
            with collection_paused():
                return _recorded(inference, graph, equal_axes, guards, shaped_as, call_sizes)
        except FixedSize as error:
            axes = [
                axes for axes, size in inference.argument_sizes.items() if variable_of(size) == error.variable
            ]
            if not axes:
                raise
            fixed_sizes |= dict.fromkeys(axes[0], error.number)


def is_for_other_calls(sized: Graph, graph: Graph) -> bool:
    """Whether a program of ``sized``, the result for ``graph``, serves calls that guards select.

    It has symbolic sizes, or numbers that its ops require of the dynamic sizes of arguments.
    """
    return has_symbolic_sizes(sized) or not all(v.spec.shape.is_static for v in graph.inputs)


def _fixed_sizes(guards: SizeGuards, equal_axes: EqualAxes) -> dict[Axis, int]:
    """The sizes of the axes of arguments that are a number in all calls for which ``guards`` hold."""
    groups = {axis: group for group in equal_axes for axis in group}
    fixed: dict[Axis, int] = {}
    for guard in guards.guards:
        variable = variable_of(guard.x)
        if guard.equality and guard.outcome and variable is not None and type(guard.y) is int:
            axis = guards.axes[variable]
            fixed |= dict.fromkeys(groups.get(axis, (axis,)), guard.y)
    return fixed


def _recorded(
    inference: SizeInference,
    graph: Graph,
    equal_axes: EqualAxes,
    guards: SizeGuards,
    shaped_as: Mapping[int, int],
    call_sizes: CallSizes | None,
) -> Graph:
    groups = {axis: group for group in equal_axes for axis in group}
    with tracing(inference.tracer):
        inputs = {
            v: inference.input_of(i, v.spec, groups) for i, v in enumerate(graph.inputs) if i not in shaped_as
        }
        _record_guards(guards, list(inputs.values()), inference.tracer.builder)
        later = {graph.inputs[i]: graph.outputs[output] for i, output in shaped_as.items()}
        with _deciding(inference, call_sizes):
            if guards.axes and call_sizes is not None:
                _guard_class(inference)
            recorded = inference.record(graph.nodes, inputs, later)
            outputs = [recorded[v] for v in graph.outputs]
            updates = tuple([Update(recorded[u.input], recorded[u.value]) for u in graph.updates])

            def finished() -> Graph:
                sized = inference.finished(graph.name, [recorded[v] for v in graph.inputs], outputs)
                return replace(sized, captures=graph.captures, updates=updates)

            if call_sizes is not None and any(isinstance(n.op.kind, Scatter) for n in graph.nodes):
                sparse_updates = imported("dualflow.graph.passes.sparse_updates")
                _decide(
                    inference, sparse_updates.compared_sizes(finished(), inference.tracer.options.cost_model)
                )
    refuse_ragged(inference.ragged_stacks, outputs)
    if any(u.input.spec != u.value.spec for u in updates):
        raise UndecidedSize("a variable is assigned a value whose size depends on data")
    return eliminate_dead_code(finished())


def _decide(inference: SizeInference, pairs: Iterable[tuple[int, int]]) -> None:
    """Add guards for the pairs of sizes whose order passes read, where sizes of arguments decide it."""
    variables = _axes(inference).keys()
    for x, y in pairs:
        if size_variables((x, y)) <= variables:
            inference.decisions.less(x, y)


def _bound_of(guards: SizeGuards, call_sizes: CallSizes | None) -> int | None:
    """The upper bound of the sizes of a program for a call with automatic sizes: None for large ones.

    Reductions of few elements have other kernels than long ones: those of the program of static sizes that
    served the call before. What sizes a program serves doesn't depend on the order of calls.
    """
    if call_sizes is None or not guards.axes or max(call_sizes.sizes.values()) > SMALL_SIZES:
        return None
    return SMALL_SIZES


def _guard_class(inference: SizeInference) -> None:
    """Add the guard that all sizes are small, or that one is not."""
    sizes: list[int] = [x for x in inference.argument_sizes.values() if isinstance(x, SymInt)]
    if sizes:
        inference.decisions.guard_less(functools.reduce(largest, sizes), SMALL_SIZES + 1)


def _axes(inference: SizeInference) -> dict[SizeVariable, Axis]:
    """An axis of an argument for each size variable of the arguments."""
    sizes = ((variable_of(size), axes[0]) for axes, size in inference.argument_sizes.items())
    return {variable: axis for variable, axis in sizes if variable is not None}


@contextmanager
def _deciding(inference: SizeInference, call_sizes: CallSizes | None) -> Iterator[None]:
    """Let the sizes of a call decide the comparisons of ops; the guards become nodes of the graph.

    The call gets the guards even if the inference fails: it fails for all calls that are decided alike.
    """
    if call_sizes is None:
        yield
        return
    axes, builder = _axes(inference), inference.tracer.builder

    def record(guard: SizeGuard) -> None:
        builder.add(GUARD_SIZES, [], _attrs(guard.x, guard.y, guard))

    numbers = {variable: call_sizes.sizes[axis] for variable, axis in axes.items()}
    inference.decisions = decisions = GuardedDecisions(numbers, record)
    try:
        yield
    finally:
        if decisions.guards:
            call_sizes.add(SizeGuards(axes, tuple(decisions.guards.values())))


def _attrs(x: int, y: int, guard: SizeGuard) -> dict[str, Any]:
    return {"x": x, "y": y, "equality": guard.equality, "outcome": guard.outcome}


def _record_guards(guards: SizeGuards, inputs: Sequence[Value], builder: GraphBuilder) -> None:
    """Add a run-time check for each guard whose outcome doesn't follow from the axes of equal size."""
    sizes: dict[SizeVariable, Any] = {
        variable: inputs[input_index].spec.shape[axis]
        for variable, (input_index, axis) in guards.axes.items()
    }
    for guard in guards.guards:
        x, y = substitute(guard.x, sizes), substitute(guard.y, sizes)
        if isinstance(x - y, SymInt):
            builder.add(GUARD_SIZES, [], _attrs(x, y, guard))
