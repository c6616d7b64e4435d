"""The body of a conditional or loop, recorded with symbolic sizes."""

from __future__ import annotations

from collections.abc import Sequence

from dualflow.core.shape import Shape
from dualflow.function.calls.integer_values import IntegerValues
from dualflow.graph.ir import Graph, GraphBuilder, Value
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.graph.symbolic_size_ops import BIND_SIZE, WITH_SHAPE
from dualflow.sizes.symbolic_sizes import SizeVariable, UndecidedSize, size_variables


def recorded_graph(
    builder: GraphBuilder, name: str, inputs: Sequence[Value], outputs: Sequence[Value]
) -> Graph:
    """The graph of the nodes of ``builder``.

    Raises:
        UndecidedSize: an op reads a tensor from outside that is no input.
    """
    if builder.captures:
        raise UndecidedSize("an op reads a tensor that the trace has not captured")
    return Graph(name, tuple(inputs), tuple(builder.nodes), tuple(outputs))


class RecordedBody:
    """The recorded body of a conditional or loop.

    Args:
        builder: the builder that recorded the nodes.
        bound: the size variables that are bound before the body, or in it.
        name: the name of the body.
        inputs: its inputs.
        outputs: its results.
        integers: the elements of its integer tensors.

    Attributes:
        bound, integers: as the arguments.
        outputs: its results.
        result_variables: size variables of results that the body binds.
    """

    def __init__(
        self,
        builder: GraphBuilder,
        bound: set[SizeVariable],
        name: str,
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        integers: IntegerValues,
    ) -> None:
        self.bound = bound
        self.integers = integers
        self.outputs = list(outputs)
        self.result_variables: set[SizeVariable] = set()
        self._builder = builder
        self._name = name
        self._inputs = inputs

    def bind_result_size(self, output_index: int, axis: int, variable: int) -> None:
        """Bind a size variable to the size of an axis of a result, whose shape then has the variable."""
        size = self.outputs[output_index].spec.shape[axis]
        self._builder.add(BIND_SIZE, [], {"size": variable, "value": size, "least": None})
        self.result_variables |= size_variables(variable)
        self.set_result_size(output_index, axis, variable)

    def set_result_size(self, output_index: int, axis: int, size: int | None) -> None:
        """Let an axis of a result have ``size``, which is equal to its size in all calls of the program."""
        value = self.outputs[output_index]
        shape = list(value.spec.shape)
        shape[axis] = size
        attrs = {"shape": Shape(shape), "repeats": False}
        self.outputs[output_index] = self._builder.add(WITH_SHAPE, [value], attrs).output

    def graph(self) -> Graph:
        """The recorded graph, without dead code."""
        return eliminate_dead_code(recorded_graph(self._builder, self._name, self._inputs, self.outputs))
