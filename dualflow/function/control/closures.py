"""Closure conversion: what bodies read and assign becomes inputs and results of their graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dualflow.core import dispatch
from dualflow.core.records import NamedTuple
from dualflow.core.spec import TensorSpec
from dualflow.function.control.bodies import Body, operands
from dualflow.graph.ir import Graph, Value


class Closure(NamedTuple):
    """Bodies as graphs of their arguments, of the variables that they assign, and of what else they read.

    Attributes:
        graphs: one for each body. Their inputs are the leading arguments, the values of the variables, the
            other arguments, and what else is read; their outputs are the leading outputs, the new values of
            the variables, and the other outputs.
        leading: the number of leading outputs.
        written: the variables.
        read: the tensors, and other variables, that are read.
    """

    graphs: tuple[Graph, ...]
    leading: int
    written: tuple[Any, ...]
    read: tuple[Any, ...]

    def operands(self) -> tuple[list[Any], list[Any]]:
        """The present values of the variables, and of what else is read, as tensors of the current engine."""
        return operands(self.written), operands(self.read)

    def assign(self, results: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Give the variables their values among ``results``; returns the leading and the other results."""
        end = self.leading + len(self.written)
        engine = dispatch.current().innermost
        for variable, value in zip(self.written, results[self.leading : end], strict=True):
            engine.update(variable, value, results)
        return [*results[: self.leading]], [*results[end:]]


def close_over(bodies: Sequence[Body], leading: int, *, test: Body | None = None) -> Closure:
    """Convert ``bodies``, of which each returns the new values of all variables that one of them assigns.

    Args:
        bodies: have equal arguments and outputs.
        leading: the number of arguments, and of outputs, before the variables.
        test: another body of these arguments, which returns its outputs only; its graph is the last one.
    """
    every = [*bodies] if test is None else [*bodies, test]
    written = {key: variable for body in bodies for key, (variable, _) in body.writes.items()}
    reads = {key: source for body in every for key, (source, _) in body.reads.items()}
    read = {key: source for key, source in reads.items() if key not in written}
    graphs = []
    for body in every:
        own = body.reads
        inputs = {
            key: own[key][1] if key in own else Value(TensorSpec.of(source.shape, source.dtype))
            for key, source in (written | read).items()
        }
        writes = body.writes
        news = [] if body is test else [writes[key][1] if key in writes else inputs[key] for key in written]
        graphs.append(
            body.graph(
                [
                    *body.arguments[:leading],
                    *[inputs[key] for key in written],
                    *body.arguments[leading:],
                    *[inputs[key] for key in read],
                ],
                [*body.outputs[:leading], *news, *body.outputs[leading:]],
            )
        )
    return Closure(tuple(graphs), leading, tuple(written.values()), tuple(read.values()))
