"""Sizes of values of a trace in progress, as expressions in the dynamic sizes of its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import Context

from dualflow.core.errors import DualflowError
from dualflow.core.records import NamedTuple
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.function.calls.size_inference import SizeInference
from dualflow.function.tracing.size_scope import ExactSizesRequired, SizeScope
from dualflow.function.tracing.symbolic_tensor import SymbolicEngine, SymbolicTensor
from dualflow.function.tracing.tracer import OuterShape, Tracer, tracing
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
        for input_index, value in enumerate(builder.inputs):
            self._recorded[value] = self._context.run(self._input, input_index, value)
        self.axes: dict[SizeVariable, Axis] = {}
        for (axis,), size in self._inference.argument_sizes.items():
            variable = variable_of(size)
            assert variable is not None, "each dynamic axis of an argument has a size variable"
            self.axes[variable] = axis

    def scope(self, inputs: Sequence[object]) -> SizeScope:
        """The scope of a trace for a call with ``inputs``."""
        shapes = [x.shape for x in inputs]  # type: ignore[attr-defined]  # tensors and variables
        numbers = {variable: shapes[input_index][axis] for variable, (input_index, axis) in self.axes.items()}
        tracer = self._tracer
        arguments = [tracer.tensor_of(value) for value in tracer.builder.inputs]
        return SizeScope(tracer, arguments, numbers, self.axes, self.shape_of, self.is_read)

    def shape_of(self, tensor: SymbolicTensor) -> list[int | None]:
        """The shape of ``tensor``, with expressions for its dynamic sizes; None for data-dependent ones.

        The tensor belongs to the trace, or to a trace inside it that computes it from tensors of this one.

        Raises:
            ExactSizesRequired: it has no such expressions.
        """
        try:
            recorded = self._context.run(self._record, tensor._value, _outside(tensor._tracer))
        except (DualflowError, UndecidedSize) as error:
            raise ExactSizesRequired(
                f"The shape of {tensor.name!r} is no expression in the sizes of the arguments: {error}"
            ) from None
        return [None if size is None else self._in_arguments(size) for size in recorded.spec.shape]

    def is_read(self, tensor: SymbolicTensor) -> bool:
        """Whether :meth:`shape_of` has returned sizes of ``tensor``, or of a value computed from it."""
        return tensor._value in self._recorded

    def _input(self, input_index: int, value: Value) -> Value:
        with tracing(self._inference.tracer):
            return self._inference.input_of(input_index, value.spec, {})

    def _record(self, value: Value, outside: _Outside) -> Value:
        """Add ``value``, after the values that it depends on, to the size inference; returns its copy."""
        recorded, pending = self._recorded, [value]
        with tracing(self._inference.tracer):
            while pending:
                at = pending[-1]
                if at in recorded:
                    pending.pop()
                elif (source := outside.source_of(at)) is not None and source not in recorded:
                    pending.append(source)
                elif at in outside.captured:
                    recorded[pending.pop()] = recorded[outside.captured[at]]
                elif at in outside.shapes:
                    recorded[pending.pop()] = self._like(at, outside.shapes[at])
                elif at.node is None:
                    recorded[pending.pop()] = self._capture(at)
                elif missing := [v for v in at.node.inputs if v not in recorded]:
                    pending += missing
                else:
                    outputs = self._inference.record_node(at.node, [recorded[v] for v in at.node.inputs])
                    recorded.update(zip(at.node.outputs, outputs, strict=True))
        return recorded[value]

    def _like(self, value: Value, outer: OuterShape) -> Value:
        """An input for ``value``, an argument of a body, with the sizes of ``outer``."""
        shape = tuple(self._recorded[outer.tensor._value].spec.shape)
        spec = TensorSpec.of(Shape(shape[1:] if outer.is_row else shape), value.spec.dtype)
        return self._inference.tracer.builder.argument(spec)

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


class _Outside(NamedTuple):
    """The values of outer traces that are passed to the inputs of a trace inside them.

    Attributes:
        captured: for each input that captures a value, that value.
        shapes: for arguments of bodies, where their dynamic sizes are from.
    """

    captured: dict[Value, Value]
    shapes: dict[Value, OuterShape]

    def source_of(self, value: Value) -> Value | None:
        """The value outside that ``value`` is equal to, or has its sizes from; None if there is none."""
        outer = self.shapes.get(value)
        source: Value | None = self.captured.get(value) if outer is None else outer.tensor._value
        return source


def _outside(tracer: SymbolicEngine) -> _Outside:
    """The values outside of ``tracer`` and of the traces around it."""
    outside = _Outside({}, {})
    inner: SymbolicEngine | None = tracer
    while isinstance(inner, Tracer):
        outside.shapes.update(inner.outer_shapes)
        for value, capture in inner.builder.captures:
            if type(capture.source) is SymbolicTensor:
                outside.captured[value] = capture.source._value
        inner = inner.outer
    return outside
