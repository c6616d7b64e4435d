"""Bodies of control flow that the sizes of a call refuse: they raise their error where they are run.

A branch that isn't taken and a loop without iterations have no errors, whatever the sizes that they meet.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dualflow.core.errors import DualflowError, InternalError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.graph.ir import Graph, Node, Value
from dualflow.ops.broadcasting import BROADCAST_TO
from dualflow.ops.creation import CONSTANT
from dualflow.ops.op_kinds import Check
from dualflow.ops.record import Effect, Op


class DeferredError:
    """Returns the error of a body that can't be recorded for the sizes of a call."""

    __slots__ = ("_error",)

    def __init__(self, error: DualflowError) -> None:
        self._error = error.with_traceback(None)

    def __call__(self, arrays: Sequence[Any] = ()) -> DualflowError:
        return copy.copy(self._error)

    def __repr__(self) -> str:
        return type(self._error).__name__


def _raise(holds: Any, error: DeferredError) -> tuple[()]:
    raise error()


RAISE_DEFERRED: Final = Op(
    name="raise_deferred",
    doc="Raises ``error``; its input is False.",
    infer=lambda holds, error: (),
    kernel=_raise,
    kind=Check(),
    outputs=None,
    effect=Effect.CHECK,
)


def deferrable(error: DualflowError) -> DualflowError:
    """``error``, which a body has raised for the sizes of a call.

    Raises:
        InternalError: that is the error.
    """
    if isinstance(error, InternalError):
        raise error
    return error


def failing_loop_body(graph: Graph, specs: Sequence[TensorSpec], carried: int, error: DualflowError) -> Graph:
    """A body for inputs of ``specs`` that raises ``error``; carried values keep their sizes."""
    rows = [v.spec for v in graph.outputs[carried:]]
    made = failing_branch(graph, specs, rows, error)
    inputs = made.inputs
    return Graph(graph.name, inputs, made.nodes, (*inputs[:carried], *made.outputs))


def failing_branch(
    graph: Graph, specs: Sequence[TensorSpec], results: Sequence[TensorSpec], error: DualflowError
) -> Graph:
    """A body in the place of ``graph`` that raises ``error``.

    Its results, which nothing uses, have the specs ``results``, with 0 for open sizes.
    """
    named = zip(graph.inputs, specs, strict=True)
    inputs = tuple([Value(TensorSpec(spec.shape, spec.dtype, v.spec.name)) for v, spec in named])
    false = _constant(np.array(False))
    place = next((n.origin for n in graph.nodes if n.origin is not None), None)
    stop = Node(RAISE_DEFERRED, [false.output], {"error": DeferredError(error)}, [], place)
    nodes, outputs = [false, stop], []
    for spec in results:
        zero = _constant(np.zeros((), spec.dtype.dtype))
        shape = Shape([0 if n is None else n for n in spec.shape])
        whole = Node(BROADCAST_TO, [zero.output], {"shape": shape}, [TensorSpec.of(shape, spec.dtype)])
        nodes += [zero, whole]
        outputs.append(whole.output)
    return Graph(graph.name, inputs, tuple(nodes), tuple(outputs))


def _constant(array: Any) -> Node:
    attrs = {"value": array}
    return Node(CONSTANT, [], attrs, CONSTANT.specs([], attrs))
