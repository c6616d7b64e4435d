"""Frozen functions: for inference, with constants for variables, and with rewrites applied."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from dualflow.core.errors import DTypeError, FailedPreconditionError
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.eager.engine import EAGER
from dualflow.eager.tensor import EagerTensor
from dualflow.function.calls.array_ownership import array_of
from dualflow.function.decorator import function
from dualflow.function.options import checked_rewrites
from dualflow.function.traced_function import Function
from dualflow.graph.interpret import replay, run_node
from dualflow.graph.ir import Graph, Node
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.graph.passes.pipeline import SIMPLIFICATIONS, optimise, with_rewrites
from dualflow.graph.rewrite import Expansion, rebuild, replaced_by
from dualflow.graph.user_rewrites import Rewrite
from dualflow.ops.conversion import stop_gradient
from dualflow.ops.creation import CONSTANT
from dualflow.rewrites.tracing import OPTIONS

_STEPS: Final = (
    "assignments",
    "unused",
    "constants",
    "branches",
    "iterations",
    "algebra",
    "common",
    "leftovers",
)
_PASSES: Final = tuple(step for step in SIMPLIFICATIONS if step.name in _STEPS)
"""The simplifications that keep graphs with dynamic sizes as they are."""


@entry
def freeze(f: Callable[..., Any], rewrites: Sequence[Rewrite] = ()) -> Function[..., Any]:
    """A function for inference: variables and captured tensors are constants, and ``rewrites`` are applied.

    What depends on constants alone is computed once, when the function is traced. Unlike a registered
    rewrite, these are part of the trace: it prints with them, a saved model contains it, and a function that
    calls the frozen one has them. Random numbers are drawn at each call.

    Args:
        f: a ``df.function``, a Module with ``__call__``, a Keras model, or a plain function.
        rewrites: what :func:`rule`, :func:`equation` or :func:`graph_pass` returns, in order.

    Returns:
        A ``df.function`` with the parameters of ``f``. It uses the values that variables have when it is
        first traced; its results have no gradients.

    Raises:
        DTypeError: ``f`` is not callable, or an element of ``rewrites`` is no rewrite.
        FailedPreconditionError: when it is called, if ``f`` assigns variables.

    >>> import dualflow as df
    >>> scale, shift = df.Variable([2.0, 3.0]), df.Variable([1.0, 1.0])
    >>> frozen = df.rewrite.freeze(lambda x: x * (scale + 1.0) + shift)
    >>> print(frozen.get_concrete_function(df.TensorSpec([4, 2], name="x")).graph)
    graph <lambda>(%x: float32[4, 2])
        %0: float32[2] = constant(value=[1., 1.])
        %1: float32[2] = constant(value=[3., 4.])
        ...
    """
    traced = as_function(f)
    applied = checked_rewrites(rewrites)

    @functools.wraps(traced.python_function)
    def frozen(*args: Any, **kwargs: Any) -> Any:
        trace, inputs = traced.trace_for(args, kwargs)
        graph = frozen_graph(trace.graph, applied)
        return trace.packed([stop_gradient(x) for x in replay(graph, inputs)])

    return function(frozen, input_signature=traced.input_signature, name=traced.name)


def as_function(f: Any) -> Function[..., Any]:
    """``f`` as a traced function.

    Raises:
        DTypeError: it is not callable.
    """
    if isinstance(f, Function):
        return f
    if not callable(f):
        raise DTypeError(f"A function, a Module or a model is frozen, not {f!r}, which can't be called.")
    name = getattr(f, "__name__", None) or getattr(f, "name", None) or type(f).__name__

    def call(*args: Any, **kwargs: Any) -> Any:
        return f(*args, **kwargs)

    return function(call, name=str(name))


def frozen_graph(graph: Graph, rewrites: Sequence[Rewrite]) -> Graph:
    """``graph`` with constants for captures, simplified, and after ``rewrites``.

    Raises:
        FailedPreconditionError: it updates variables.
    """
    if graph.updates:
        raise FailedPreconditionError(
            f"{graph.name!r} assigns variables, so it can't be frozen. Freeze the function for inference, "
            "such as a model called with training=False."
        )
    graph = fold_all(optimise(_with_constants(graph), OPTIONS, passes=_PASSES))
    if rewrites:
        graph = optimise(graph, OPTIONS, passes=with_rewrites(_PASSES, rewrites))
    return eliminate_dead_code(fold_all(graph))


def _with_constants(graph: Graph) -> Graph:
    """``graph`` with a constant for each capture."""
    arguments = graph.arguments
    captures = zip(graph.inputs[len(arguments) :], graph.captures, strict=True)
    constants = {
        value: Node(CONSTANT, (), {"value": _current(capture.source)}, [value.spec])
        for value, capture in captures
    }
    replaced = {value: node.output for value, node in constants.items()}
    rebuilt = rebuild(graph, lambda node, current: None, replaced)
    return Graph(graph.name, arguments, (*constants.values(), *rebuilt.nodes), rebuilt.outputs)


def _current(source: Any) -> np.ndarray[Any, Any]:
    tensor = source if isinstance(source, EagerTensor) else EAGER.read(source)
    return array_of(tensor).copy()


def fold_all(graph: Graph) -> Graph:
    """``graph`` with a constant for each value that depends on constants alone, whatever its size."""

    def folded(_: Node, node: Node) -> Expansion | None:
        if node.op is CONSTANT or not node.inputs or len(node.outputs) != 1:
            return None
        if node.effect is not None or any(v.node is None or v.node.op is not CONSTANT for v in node.inputs):
            return None
        (array,) = run_node(node, [constant_of(v.node) for v in node.inputs if v.node is not None])
        spec = TensorSpec.of(node.output.spec.shape, node.output.spec.dtype)
        return replaced_by(Node(CONSTANT, (), {"value": np.ascontiguousarray(array)}, [spec], node.origin))

    return eliminate_dead_code(rebuild(graph, folded))


def constant_of(node: Node) -> np.ndarray[Any, Any]:
    """The array of a constant."""
    array: np.ndarray[Any, Any] = node.attrs["value"]
    return array
