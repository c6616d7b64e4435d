"""Sizes of values of a trace in progress, as expressions in the dynamic sizes of its arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import Context

from dualflow.core.errors import DualflowError
from dualflow.function.calls.size_inference import SizeInference
from dualflow.function.tracing.size_scope import ExactSizesRequired, SizeScope
from dualflow.function.tracing.symbolic_tensor import SymbolicEngine, SymbolicTensor
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.graph.ir import Value
from dualflow.graph.symbolic_size_ops import BIND_SIZE, Axis
from dualflow.sizes.size_functions import substitute
from dualflow.sizes.symbolic_sizes import SizeVariable, UndecidedSize, size_variables, variable_of


class TraceSizes:
    """Infers the sizes of values of a trace while it is recorded.

    A value is inferred when its shape is first read. The nodes that compute it are recorded again, by a
    tracer of its own, for arguments with symbolic sizes.

    Args:
        tracer: what records the trace; its inputs so far are the arguments.
    """

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        builder = tracer.builder
        self._context = Context()  # neither the trace nor its tapes see the nodes
        self._inference: SizeInference = self._context.run(lambda: SizeInference(Tracer(builder.name)))
        self._recorded: dict[Value, Value] = {}
        self._size_values: dict[SizeVariable, int] = {}
        self._bindings_read = 0
        for place, value in enumerate(builder.inputs):
            self._recorded[value] = self._context.run(self._input, place, value)
        self.axes: dict[SizeVariable, Axis] = {}
        for (axis,), size in self._inference.argument_sizes.items():
            variable = variable_of(size)
            assert variable is not None, "each dynamic axis of an argument has a size variable"
            self.axes[variable] = axis

    def scope(self, inputs: Sequence[object]) -> SizeScope:
        """The scope of a trace for a call with ``inputs``."""
        shapes = [x.shape for x in inputs]  # type: ignore[attr-defined]  # tensors and variables
        numbers = {variable: shapes[place][axis] for variable, (place, axis) in self.axes.items()}
        tracer = self._tracer
        arguments = [tracer.tensor_of(value) for value in tracer.builder.inputs]
        return SizeScope(tracer, arguments, numbers, self.axes, self.shape_of)

    def shape_of(self, tensor: SymbolicTensor) -> list[int | None]:
        """The shape of ``tensor``, with expressions for its dynamic sizes; None for data-dependent ones.

        The tensor belongs to the trace, or to a trace inside it that computes it from tensors of this one.

        Raises:
            ExactSizesRequired: it has no such expressions.
        """
        try:
            recorded = self._context.run(self._record, tensor._value, _captured(tensor._tracer))
        except (DualflowError, UndecidedSize) as error:
            raise ExactSizesRequired(
                f"The shape of {tensor.name!r} is no expression in the sizes of the arguments: {error}"
            ) from None
        return [None if size is None else self._in_arguments(size) for size in recorded.spec.shape]

    def _input(self, place: int, value: Value) -> Value:
        with tracing(self._inference.tracer):
            return self._inference.input_of(place, value.spec, {})

    def _record(self, value: Value, captured: Mapping[Value, Value]) -> Value:
        """The inference's record of ``value``; values it is computed from are recorded first.

        ``captured`` has the value of an outer trace for those that an inner one captures.
        """
        recorded, pending = self._recorded, [value]
        with tracing(self._inference.tracer):
            while pending:
                at = pending[-1]
                if at in recorded:
                    pending.pop()
                elif at in captured and captured[at] not in recorded:
                    pending.append(captured[at])
                elif at.node is None:
                    recorded[pending.pop()] = recorded[captured[at]] if at in captured else self._capture(at)
                elif missing := [v for v in at.node.inputs if v not in recorded]:
                    pending += missing
                else:
                    outputs = self._inference.record_node(at.node, [recorded[v] for v in at.node.inputs])
                    recorded.update(zip(at.node.outputs, outputs, strict=True))
        return recorded[value]

    def _capture(self, value: Value) -> Value:
        """An input for a tensor or variable from outside of the trace."""
        if not value.spec.shape.is_static:
            raise UndecidedSize("it depends on a value that differs between iterations")
        return self._inference.tracer.builder.argument(value.spec)

    def _in_arguments(self, size: int) -> int | None:
        """``size`` as an expression of the arguments' sizes; None if it depends on other values."""
        nodes = self._inference.tracer.builder.nodes
        for node in nodes[self._bindings_read :]:
            if node.op is BIND_SIZE and "value" in node.attrs:
                variable = variable_of(node.attrs["size"])
                assert variable is not None, "a bound size is a size variable"
                self._size_values[variable] = substitute(node.attrs["value"], self._size_values)
        self._bindings_read = len(nodes)
        expression = substitute(size, self._size_values)
        return expression if size_variables(expression) <= self.axes.keys() else None


def _captured(tracer: SymbolicEngine) -> dict[Value, Value]:
    """The value of an outer trace for each value that ``tracer``, or a trace around it, captures."""
    captured: dict[Value, Value] = {}
    inner: SymbolicEngine | None = tracer
    while isinstance(inner, Tracer):
        for value, capture in inner.builder.captures:
            if type(capture.source) is SymbolicTensor:
                captured[value] = capture.source._value
        inner = inner.outer
    return captured
