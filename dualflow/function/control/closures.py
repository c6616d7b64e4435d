"""Closure conversion: captured tensors and assigned variables become inputs and outputs of the bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dualflow.core import dispatch
from dualflow.core.records import NamedTuple
from dualflow.core.spec import TensorSpec
from dualflow.function.control.trace_bodies import Body, operands
from dualflow.graph.ir import Graph, Value


class Closure(NamedTuple):
    """The bodies of a conditional or loop after closure conversion: captured values are explicit inputs.

    Attributes:
        graphs: one for each body. The inputs are the leading arguments, the values of the assigned variables,
            the other arguments, and the captured values; the outputs are the leading outputs, the new values
            of the assigned variables, and the other outputs.
        leading: the number of leading outputs.
        written: the variables that some body assigns.
        read: the captured tensors and the other captured variables.
    """

    graphs: tuple[Graph, ...]
    leading: int
    written: tuple[Any, ...]
    read: tuple[Any, ...]

    def operands(self) -> tuple[list[Any], list[Any]]:
        """The current values of ``written`` and of ``read``, as tensors of the current engine."""
        return operands(self.written), operands(self.read)

    def assign(self, results: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Assign the variables their values in ``results``; returns the leading and the other results."""
        end = self.leading + len(self.written)
        engine = dispatch.current().innermost
        for variable, value in zip(self.written, results[self.leading : end], strict=True):
            engine.update(variable, value, results)
        return [*results[: self.leading]], [*results[end:]]


def close_over(bodies: Sequence[Body], leading: int, *, test: Body | None = None) -> Closure:
    """The graphs of ``bodies`` with captures as inputs; each returns the variables that any of them assigns.

    Args:
        bodies: bodies with the same arguments and outputs.
        leading: the number of arguments, and of outputs, before the variables.
        test: the loop condition, appended as the last graph; it returns no variables.
    """
    bodies = [body.with_gradients() for body in bodies]
    all_bodies = [*bodies] if test is None else [*bodies, test]
    written = {key: variable for body in bodies for key, (variable, _) in body.writes.items()}
    reads = {key: source for body in all_bodies for key, (source, _) in body.reads.items()}
    read = {key: source for key, source in reads.items() if key not in written}
    graphs = []
    for body in all_bodies:
        captures = body.reads
        inputs = {
            key: captures[key][1] if key in captures else Value(TensorSpec.of(source.shape, source.dtype))
            for key, source in (written | read).items()
        }
        writes = body.writes
        new_values = (
            [] if body is test else [writes[key][1] if key in writes else inputs[key] for key in written]
        )
        graphs.append(
            body.graph(
                [
                    *body.arguments[:leading],
                    *[inputs[key] for key in written],
                    *body.arguments[leading:],
                    *[inputs[key] for key in read],
                ],
                [*body.outputs[:leading], *new_values, *body.outputs[leading:]],
            )
        )
    return Closure(tuple(graphs), leading, tuple(written.values()), tuple(read.values()))
