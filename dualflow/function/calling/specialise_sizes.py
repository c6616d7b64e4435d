"""A trace that leaves sizes open is recorded anew for the sizes of a call, by replaying its graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dualflow.core.errors import FailedPreconditionError
from dualflow.core.spec import TensorSpec
from dualflow.function.calling.subtrace import Subtrace
from dualflow.function.tracing.tracer import Tracer, tracing, tracing_lock
from dualflow.graph.interpret import replay
from dualflow.graph.ir import Update
from dualflow.graph.passes.assignments import acting
from dualflow.graph.passes.dead_code import eliminate_dead_code

MAX_SHAPES: Final = 256


class SpecialisedSizes:
    """A trace with open sizes, recorded anew for each combination of sizes that it was called with.

    Args:
        subtrace: the trace, with open sizes.
    """

    def __init__(self, subtrace: Subtrace) -> None:
        self._open = subtrace
        self._specialised: dict[tuple[Any, ...], Subtrace] = {}

    def subtrace_for(self, inputs: Sequence[Any]) -> Subtrace:
        """The trace for the sizes of ``inputs``, tensors and variables."""
        key = tuple([x.shape for x in inputs])
        found = self._specialised.get(key)
        if found is None:
            with tracing_lock.lock:
                found = self._specialised.get(key) or specialise(self._open, inputs)
                self._specialised[key] = found
                while len(self._specialised) > MAX_SHAPES:
                    del self._specialised[next(iter(self._specialised))]
        return found

    @property
    def called(self) -> bool:
        """Whether the trace was called, so that sizes are known."""
        return bool(self._specialised)

    def all(self) -> list[Subtrace]:
        """The traces for all sizes that it was called with."""
        return list(self._specialised.values())

    def latest(self) -> Subtrace:
        """The trace for the sizes that were new last.

        Raises:
            FailedPreconditionError: the trace has not been called yet, so that no size is known.
        """
        if not self._specialised:
            raise FailedPreconditionError(
                f"{self._open.graph.name!r} leaves sizes open and is compiled for those of a call; call it."
            )
        return next(reversed(self._specialised.values()))


def specialise(subtrace: Subtrace, inputs: Sequence[Any]) -> Subtrace:
    """``subtrace`` recorded anew, with the shapes of ``inputs`` for its arguments."""
    graph = subtrace.graph
    tracer = Tracer(graph.name, options=subtrace.options)
    with tracing(tracer):
        arguments = [
            tracer.argument(TensorSpec(x.shape, v.spec.dtype, v.spec.name))
            for x, v in zip(inputs, graph.arguments, strict=True)
        ]
        captured = [tracer.read(c.source) if c.variable else tracer.lift(c.source) for c in graph.captures]
        results = replay(graph, [*arguments, *captured], tracer.record_assignment)
        count = len(graph.outputs)
        place = {v: i for i, v in enumerate(graph.inputs)}
        bound: list[Update] = []
        for update, value in zip(graph.updates, results[count:], strict=True):
            at = place[update.input]
            if at < len(arguments):
                bound.append(Update(arguments[at]._value, value._value))
            else:
                tracer.assign(graph.captures[at - len(arguments)].source, value)
    outputs = [tracer.lift(x)._value for x in results[:count]]
    made = eliminate_dead_code(tracer.builder.finish(outputs, [*bound, *tracer.updates()]))
    return Subtrace(
        tracer,
        made,
        made.inputs,
        made.outputs,
        acting(made.nodes),
        options=subtrace.options,
        bound=subtrace.bound,
    )
