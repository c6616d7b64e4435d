"""Deferred errors: a branch or loop body that is invalid for some sizes raises its error when it runs.

A branch that isn't taken, or a loop without iterations, raises nothing, whatever the sizes of its inputs.
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
    """A function that returns a copy of the error of a body that could not be traced for certain sizes."""

    __slots__ = ("_error",)

    def __init__(self, error: DualflowError) -> None:
        self._error = error.with_traceback(None)

    def __call__(self, arrays: Sequence[Any] = ()) -> DualflowError:
        return copy.copy(self._error)

    @property
    def static_message(self) -> str:
        """The message of the error."""
        return str(self._error)

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


def _check_value(holds: Any, error: DeferredError) -> tuple[()]:
    if not holds:
        raise error()
    return ()


CHECK_VALUE: Final = Op(
    name="check_value",
    doc="Raises ``error`` if its input, a bool scalar, is False.",
    infer=lambda holds, error: (),
    kernel=_check_value,
    kind=Check(),
    outputs=None,
    effect=Effect.CHECK,
)


def deferrable(error: DualflowError) -> DualflowError:
    """``error`` itself, if it may be raised when the body runs instead of now.

    Raises:
        InternalError: if ``error`` is one.
    """
    if isinstance(error, InternalError):
        raise error
    return error


def failing_loop_body(graph: Graph, specs: Sequence[TensorSpec], carried: int, error: DualflowError) -> Graph:
    """A loop body for inputs of ``specs`` that raises ``error``. Carried values keep their sizes."""
    rows = [v.spec for v in graph.outputs[carried:]]
    branch = failing_branch(graph, specs, rows, error)
    inputs = branch.inputs
    return Graph(graph.name, inputs, branch.nodes, (*inputs[:carried], *branch.outputs))


def failing_branch(
    graph: Graph, specs: Sequence[TensorSpec], results: Sequence[TensorSpec], error: DualflowError
) -> Graph:
    """A branch with the name of ``graph`` that raises ``error``.

    Its outputs, which are never computed, have the specs ``results``, with 0 for dynamic sizes.
    """
    named = zip(graph.inputs, specs, strict=True)
    inputs = tuple([Value(TensorSpec(spec.shape, spec.dtype, v.spec.name)) for v, spec in named])
    false = _constant(np.array(False))
    origin = next((n.origin for n in graph.nodes if n.origin is not None), None)
    stop = Node(RAISE_DEFERRED, [false.output], {"error": DeferredError(error)}, [], origin)
    nodes, outputs = [false, stop], []
    for spec in results:
        zero = _constant(np.zeros((), spec.dtype.dtype))
        shape = Shape([0 if n is None else n for n in spec.shape])
        broadcast = Node(BROADCAST_TO, [zero.output], {"shape": shape}, [TensorSpec.of(shape, spec.dtype)])
        nodes += [zero, broadcast]
        outputs.append(broadcast.output)
    return Graph(graph.name, inputs, tuple(nodes), tuple(outputs))


def _constant(array: Any) -> Node:
    attrs = {"value": array}
    return Node(CONSTANT, [], attrs, CONSTANT.specs([], attrs))
