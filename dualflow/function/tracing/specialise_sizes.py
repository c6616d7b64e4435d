"""A trace that leaves sizes open, recorded anew for the sizes of a call, without the user's Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dualflow.core.errors import FailedPreconditionError
from dualflow.core.spec import TensorSpec
from dualflow.function.tracing.subtrace import Section
from dualflow.function.tracing.tracer import Tracer, tracing, tracing_lock
from dualflow.graph.interpret import replay
from dualflow.graph.ir import Update
from dualflow.graph.passes.assignments import acting
from dualflow.graph.passes.dead_code import eliminate_dead_code

MAX_SHAPES: Final = 256


class Shaped:
    """The sections of a trace for the sizes that it was called with, the latest last.

    Args:
        section: the trace, with open sizes.
    """

    def __init__(self, section: Section) -> None:
        self._open = section
        self._sections: dict[tuple[Any, ...], Section] = {}

    def section(self, inputs: Sequence[Any]) -> Section:
        """The trace for the sizes of ``inputs``, tensors and variables."""
        key = tuple([x.shape for x in inputs])
        found = self._sections.get(key)
        if found is None:
            with tracing_lock.lock:
                found = self._sections.get(key) or specialise(self._open, inputs)
                self._sections[key] = found
                while len(self._sections) > MAX_SHAPES:
                    del self._sections[next(iter(self._sections))]
        return found

    @property
    def called(self) -> bool:
        """Whether there is a section."""
        return bool(self._sections)

    def latest(self) -> Section:
        """The section made last.

        Raises:
            FailedPreconditionError: the trace has not been called yet, so that no size is known.
        """
        if not self._sections:
            raise FailedPreconditionError(
                f"{self._open.graph.name!r} leaves sizes open and is compiled for those of a call; call it."
            )
        return next(reversed(self._sections.values()))


def specialise(section: Section, inputs: Sequence[Any]) -> Section:
    """``section`` recorded anew, with the shapes of ``inputs`` for its arguments."""
    graph = section.graph
    tracer = Tracer(graph.name, options=section.options)
    with tracing(tracer):
        arguments = [
            tracer.argument(TensorSpec(x.shape, v.spec.dtype, v.spec.name))
            for x, v in zip(inputs, graph.arguments, strict=True)
        ]
        captured = [tracer.read(c.source) if c.variable else tracer.adopt(c.source) for c in graph.captures]
        results = replay(graph, [*arguments, *captured], tracer.note)
        count = len(graph.outputs)
        place = {v: i for i, v in enumerate(graph.inputs)}
        bound: list[Update] = []
        for update, value in zip(graph.updates, results[count:], strict=True):
            at = place[update.input]
            if at < len(arguments):
                bound.append(Update(arguments[at]._value, value._value))
            else:
                tracer.assign(graph.captures[at - len(arguments)].source, value)
    outputs = [tracer.adopt(x)._value for x in results[:count]]
    made = eliminate_dead_code(tracer.builder.finish(outputs, [*bound, *tracer.updates()]))
    return Section(
        tracer,
        made,
        made.inputs,
        made.outputs,
        acting(made.nodes),
        options=section.options,
        bound=section.bound,
    )
