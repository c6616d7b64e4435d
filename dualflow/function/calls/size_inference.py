"""Shape inference with symbolic sizes, for graphs whose sizes are known only at run time.

Each node is recorded again, for inputs whose sizes are numbers or expressions in size variables. Where an
element of an integer tensor becomes a size, a ``bind_size`` node before its first use binds a size variable
to it. Small integer tensors that are computed from sizes (``df.shape(x)[0] * 2``) are evaluated
symbolically, so that sizes with equal expressions are known to be equal.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from dualflow.core.dtypes import int32
from dualflow.core.errors import DualflowError, InvalidArgumentError
from dualflow.core.exact_equality import exact_attrs
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.function.calls.control_flow_inference import (
    cond_outputs,
    loop_outputs,
    over_rows,
)
from dualflow.function.calls.integer_values import IntegerValues
from dualflow.function.calls.ragged_stacks import RaggedStack, refuse_ragged
from dualflow.function.calls.recorded_body import RecordedBody, recorded_graph
from dualflow.function.calls.required_sizes import broadcast_shapes, required_shapes, with_shapes
from dualflow.function.calls.size_decisions import GuardedDecisions, compare_sizes, deciding
from dualflow.function.calls.size_requirements import SizeRequirements
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.graph import origin
from dualflow.graph.error_notes import note_place
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.symbolic_size_ops import (
    BIND_SIZE,
    RESULT_SHAPE,
    RESULT_WITH_SHAPE,
    WITH_SHAPE,
    Axis,
)
from dualflow.graph.views import sizes as sizes_of
from dualflow.ops.arrangement import RESHAPE, reshaped_by
from dualflow.ops.equal_sizes import WITH_ROWS_OF
from dualflow.ops.indexing import REPLACE, part_shape
from dualflow.ops.op_kinds import CONTROL, Cond, Decompose, Elementwise, Loop, Opaque, View
from dualflow.ops.shapes import ENSURED
from dualflow.schedule.call_reports import user_line
from dualflow.sizes.size_functions import largest, smallest, substitute
from dualflow.sizes.symbolic_sizes import (
    SizeVariable,
    SymInt,
    UndecidedSize,
    bounds,
    size_variable,
    size_variables,
    variable_of,
)

EqualAxes = tuple[tuple[Axis, ...], ...]
"""Groups of axes of arguments that have one size."""
_WITH_RULES: Final = (*CONTROL, Decompose)
"""The kinds of ops whose nodes are not copied: rules record their bodies, or other ops."""
_NO_VALUES: Final[Mapping[Value, Value]] = {}
_NOT_FIXED: Final[Mapping[Axis, int]] = {}
_NOT_BROADCASTABLE: Final = "shape {0} does not broadcast to {1}: sizes must be equal or 1"


class SizeInference:
    """Records the nodes of a graph, or of the body of a conditional or loop, with symbolic sizes.

    It is the :class:`~dualflow.ops.op_kinds.SizeReader` of ops that read sizes from tensors. ``fixed_sizes``
    has the sizes of axes of arguments that are numbers.

    Attributes:
        tracer: records the nodes.
        integers: the elements of integer tensors, as expressions.
        bound: the size variables that a ``bind_size`` node has bound.
        ragged_stacks: the stacks of rows that differ in size, by the vector of their elements.
        iterates: whether it records the body of a loop.
        checked_sizes: for each expression that was checked not to be negative, the size variable for it.
        op_name: the name of the op that is being recorded; "" if it is no op of the user's.
        argument_sizes: for each group of axes of the graph's inputs, the size variable of these axes.
        most: the upper bound of the size variables of arguments; None for none.
        decisions: decides comparisons that ops make of sizes.
    """

    def __init__(
        self,
        tracer: Tracer,
        outer: SizeInference | None = None,
        fixed_sizes: Mapping[Axis, int] = _NOT_FIXED,
    ) -> None:
        self.tracer = tracer
        self.integers = IntegerValues()
        self.bound: set[SizeVariable] = set() if outer is None else set(outer.bound)
        self.ragged_stacks: dict[Value, RaggedStack] = {}
        self.iterates = False
        self._requirements = SizeRequirements(tracer.builder)
        self._fixed_sizes = fixed_sizes
        self._outer = outer
        self.checked_sizes: dict[SymInt, int] = {} if outer is None else dict(outer.checked_sizes)
        self.op_name = ""
        self._numbered_nodes = 0
        self._first_equal_node: dict[Hashable, Node] = {}
        self._first_equal_value: dict[Value, Value] = {}
        self.most: int | None = None
        self.argument_sizes: dict[tuple[Axis, ...], int] = {}
        self.decisions: GuardedDecisions = GuardedDecisions() if outer is None else outer.decisions

    def input_of(self, input_index: int, spec: TensorSpec, groups: Mapping[Axis, tuple[Axis, ...]]) -> Value:
        """Input number ``input_index``, with the size variable of its group for each dynamic axis.

        Without groups any sizes may be equal.
        """
        shape = list(spec.shape)
        for axis, size in enumerate(spec.shape):
            if (input_index, axis) in self._fixed_sizes:
                shape[axis] = self._fixed_sizes[input_index, axis]
            elif size is None:
                axes = groups.get((input_index, axis), ((input_index, axis),))
                if axes[0] == (input_index, axis):
                    self.argument_sizes[axes] = variable = size_variable(0, self.most)
                    attrs = {"size": variable, "argument_axes": axes, "distinct": bool(groups)}
                    self.tracer.builder.add(BIND_SIZE, [], attrs)
                    self.bound |= size_variables(variable)
                shape[axis] = self.argument_sizes[axes]
        sized = spec if spec.shape == shape else TensorSpec(Shape(shape), spec.dtype, spec.name)
        return self.tracer.builder.argument(sized)

    def finished(self, name: str, inputs: Sequence[Value], outputs: Sequence[Value]) -> Graph:
        """The graph of the nodes recorded so far."""
        return recorded_graph(self.tracer.builder, name, inputs, outputs)

    def record(
        self, nodes: Sequence[Node], inputs: Mapping[Value, Value], later: Mapping[Value, Value] = _NO_VALUES
    ) -> dict[Value, Value]:
        """Record copies of ``nodes`` that compute from ``inputs``; returns the copy of each value.

        ``later`` are inputs whose shape is only known when another value is recorded, as a cotangent has the
        shape of an output: for each, that value.
        """
        recorded, nodes_so_far = dict(inputs), self.tracer.builder.nodes
        for node in nodes:
            for value in later:
                if value in node.inputs and value not in recorded:
                    recorded[value] = self._input_like(recorded, later[value])
            node_inputs = [recorded[v] for v in node.inputs]
            if node.effect is not None:
                self._requirements.keep_before_effect()
            if self._keeps_specs(node, node_inputs):
                copy = node.with_inputs(node_inputs)
                nodes_so_far.append(copy)
                recorded.update(zip(node.outputs, copy.outputs, strict=True))
                continue
            with origin.recorded_as(node):
                self.op_name = "" if node.op is WITH_ROWS_OF else node.op.name
                try:
                    outputs = self.record_node(node, node_inputs)
                except DualflowError as error:
                    note_place(error, node)
                    raise
                except UndecidedSize as error:
                    error.location = error.location or f"{node.op.name}{user_line(node)}"
                    raise
            recorded.update(zip(node.outputs, outputs, strict=True))
        for value in later:
            if value not in recorded:
                recorded[value] = self._input_like(recorded, later[value])
        return recorded

    def _keeps_specs(self, node: Node, inputs: Sequence[Value]) -> bool:
        """Whether ``node`` has static sizes, and the specs of its results are the same for ``inputs``."""
        if isinstance(node.op.kind, _WITH_RULES):
            return False
        for old, new in zip(node.inputs, inputs, strict=True):
            if new.spec is not old.spec and new.spec != old.spec:
                return False
        if self.ragged_stacks and not self.ragged_stacks.keys().isdisjoint(inputs):
            return False
        return _has_sizes(node)

    def _input_like(self, recorded: Mapping[Value, Value], value: Value) -> Value:
        """A new input with the shape of ``value``."""
        if value not in recorded:
            raise UndecidedSize("an input is read before the output whose shape it has")
        return self.tracer.builder.argument(recorded[value].spec)

    def record_node(self, node: Node, inputs: Sequence[Value]) -> Sequence[Value]:
        """Record ``node`` for other inputs; returns the values of its results."""
        kind, add = node.op.kind, self.tracer.builder.add
        if self.ragged_stacks and not isinstance(kind, Loop) and any(v in self.ragged_stacks for v in inputs):
            return over_rows(self, node, inputs)
        if isinstance(kind, _WITH_RULES):
            if isinstance(kind, Decompose):
                return self._decomposed(node, kind, inputs)
            return (cond_outputs if isinstance(kind, Cond) else loop_outputs)(self, node, inputs)
        if isinstance(kind, Opaque):
            compare_sizes(kind, node, inputs, self.decisions, self.tracer.options.capabilities)
        shapes = required_shapes(node, inputs, self._require_outside)
        try:
            recorded = add(node.op, inputs, node.attrs, node.origin)
        except (InvalidArgumentError, UndecidedSize):
            if node.op is RESHAPE:
                reshaped = reshaped_by(self, self.tracer.tensor_of(inputs[0]), node.attrs["shape"])
                return [self.tracer.lift(reshaped)._value]
            if node.op is ENSURED:
                return [self._ensured(inputs[0], node.attrs["sizes"])]
            if node.op is REPLACE:
                part_sizes = part_shape(inputs[0].spec, node.attrs["key"])
                part = self._with_shape(inputs[1], part_sizes[len(part_sizes) - inputs[1].spec.rank :])
                recorded = add(node.op, [inputs[0], part], node.attrs, node.origin)
            elif shapes is not None:
                recorded = with_shapes(self.tracer.builder, node, inputs, shapes)
            else:
                recorded = add(node.op, self._fitting(node, inputs), node.attrs, node.origin)
        if isinstance(kind, Elementwise) or _has_sizes(recorded):
            return recorded.outputs
        if not isinstance(kind, Opaque):
            raise UndecidedSize("a size is known only when NumPy has computed the result")
        return [self._with_result_sizes(v) for v in recorded.outputs]

    def _decomposed(self, node: Node, kind: Decompose, inputs: Sequence[Value]) -> Sequence[Value]:
        """The results of an op that is other ops once its sizes are known."""
        operands = [self.tracer.tensor_of(v) for v in inputs]
        nodes = self.tracer.builder.nodes
        before = len(nodes)
        try:
            resolved = kind.resolve(self, *operands, **node.attrs)
        except InvalidArgumentError:
            if self._has_dynamic_sizes(inputs):  # a size that is known at run time may fit
                raise UndecidedSize(f"whether the sizes of {node.op.name} fit depends on data") from None
            raise
        results = resolved if isinstance(resolved, tuple) else (resolved,)
        if any(not isinstance(n.op.kind, Loop) and not _has_sizes(n) for n in nodes[before:]):
            raise UndecidedSize(f"a size in {node.op.name} depends on data")
        return [self.tracer.lift(x)._value for x in results]

    def _with_result_sizes(self, result: Value) -> Value:
        """``result`` of a host call, with a size variable for each size that the call computes."""
        if result.spec.shape.is_static:
            return result
        add = self.tracer.builder.add
        sizes = add(RESULT_SHAPE, [result], {}, origin.caller()).output
        shape: list[Any] = list(result.spec.shape)
        for axis, size in enumerate(shape):
            if size is None:
                shape[axis] = size_variable(least=0)
                self._bind(shape[axis], sizes, axis, least=0)
        return add(RESULT_WITH_SHAPE, [result], {"shape": Shape(shape)}, origin.caller()).output

    def _has_dynamic_sizes(self, inputs: Sequence[Value]) -> bool:
        """Whether a size of an input, or an element of a small integer input, is known only at run time."""
        for value in inputs:
            try:
                elements = self.integers.of(value).reshape(-1).tolist() if value.spec.dtype.is_integer else []
            except UndecidedSize:
                return True
            if size_variables((*value.spec.shape, *elements)):
                return True
        return False

    def _ensured(self, value: Value, sizes: Shape) -> Value:
        """``value`` with the required ``sizes``, which an :data:`ENSURED` node checks at run time."""
        pairs = zip(sizes_of(value), sizes, strict=True)
        shape = [current if size is None else size for current, size in pairs]
        message = f"the shape of a tensor and {sizes} are incompatible; reshape it"
        return self.tracer.lift(self.require_shape(self.tracer.tensor_of(value), shape, message))._value

    def recorded_body(
        self,
        graph: Graph,
        specs: Sequence[TensorSpec],
        sources: Sequence[Value | None],
        stacks: Mapping[int, Value] | None = None,
    ) -> RecordedBody:
        """The body ``graph`` of a node, recorded for inputs of ``specs``.

        ``sources`` has, for each input that is the same in all iterations, the value outside of the body;
        None for others. ``stacks``, in a loop, has the stacks of the inputs that are rows, by the index of
        the input.
        """
        inner = SizeInference(Tracer(graph.name), self)
        inner.iterates = stacks is not None
        with tracing(inner.tracer):
            inputs = [inner.tracer.builder.argument(spec) for spec in specs]
            for value, source in zip(inputs, sources, strict=True):
                if source is not None:
                    inner.integers.copy_elements(value, self.integers, source, self.bound)
            for i, stack in (stacks or {}).items():
                inner.integers.read_row(inputs[i], self.integers, stack)
            recorded = inner.record(graph.nodes, dict(zip(graph.inputs, inputs, strict=True)))
        outputs = [recorded[v] for v in graph.outputs]
        refuse_ragged(inner.ragged_stacks, outputs)
        return RecordedBody(inner.tracer.builder, inner.bound, graph.name, inputs, outputs, inner.integers)

    # the SizeReader of ops that the trace replaces

    def infer_body(self, graph: Graph, specs: Sequence[TensorSpec], sources: Sequence[Value | None]) -> Graph:
        """``graph`` with symbolic sizes, for inputs of ``specs``; its nodes may be recorded in this graph.

        ``sources`` has the value of this graph for the inputs that are equal to one.
        """
        body = self.recorded_body(graph, specs, sources)
        self.bound |= body.bound
        return body.graph()

    def __call__(self, tensor: Any, least: int | None = None) -> list[int]:
        """The elements of an integer tensor, as expressions; with ``least`` as sizes."""
        value = self._first_equal(self.tracer.lift(tensor)._value)
        integers = self.integers
        elements = [substitute(x, integers.replaced) for x in integers.of(value).reshape(-1).tolist()]
        if value.spec.dtype is int32:
            for element in elements:
                self._require_int32(element)
        if least is None:
            for element in elements:
                self._bind_variables(element)
            return elements
        return self.sizes(elements)

    def deciding(self) -> AbstractContextManager[None]:
        """A context whose code may compare sizes.

        For a program of no particular call, only comparisons that have one outcome for all sizes are decided.
        """
        return deciding(self.decisions)

    def computed_size(self, scalar: Any) -> int:
        """The value of an integer scalar as a size, which equals only itself; also in :meth:`deciding`."""
        (size,) = self(scalar, 0)
        self.decisions.computed |= size_variables(size)
        return size

    def sizes(self, values: Sequence[int]) -> list[int]:
        """``values`` as sizes; the program checks that none is negative."""
        return [self._size(x) for x in values]

    def require_size(self, x: Any, new_size: int, size: int) -> Any:
        """``x``, a vector of ``size`` elements, with size ``new_size``; a check at run time compares them."""
        if new_size == size:
            return x
        flat = self.tracer.run(RESHAPE, (x,), {"shape": Shape((size,))})
        return self.require_shape(flat, (new_size,), "{0[0]} elements are not the {1[0]} of the new shape")

    def require_shape(self, x: Any, shape: Sequence[Any], message: str, *, repeats: bool = False) -> Any:
        """``x`` with ``shape``, checked at run time; with ``repeats`` a size of ``x`` may be 1.

        ``message`` is that of the error, in which {0} and {1} are replaced by the shapes.
        """
        current = tuple(x.shape)
        if current == tuple(shape):
            return x
        for size, target in zip(current, shape, strict=True):
            if size != target:
                self._require(size, target, message, (current, tuple(shape)), repeats=repeats)
        return self.tracer.run(WITH_SHAPE, (x,), {"shape": Shape(shape), "repeats": repeats})

    def require_first(self, x: Any, shape: Sequence[int], message: str) -> Any:
        """The first element of ``x`` along each axis of size 1 in ``shape``; other sizes must be equal.

        The program checks them: the message of the error is as in :meth:`require_shape`.
        """
        for size, target in zip(x.shape, shape, strict=True):
            if size != target:
                self._require(target, size, message, (tuple(x.shape), tuple(shape)), repeats=True)
        return self.tracer.run(WITH_SHAPE, (x,), {"shape": Shape(shape), "repeats": False})

    # private

    def _first_equal(self, value: Value) -> Value:
        """The first value with the same computation as ``value``; both share one size variable.

        This is value numbering, as in common subexpression elimination.
        """
        nodes, first_equal = self.tracer.builder.nodes, self._first_equal_value
        for node in nodes[self._numbered_nodes :]:
            inputs = tuple([first_equal.get(v, v) for v in node.inputs])
            key = (node.op, inputs, exact_attrs(node.attrs)) if node.effect is None else node
            first = self._first_equal_node.setdefault(key, node)
            if first is not node:
                first_equal.update(zip(node.outputs, first.outputs, strict=True))
        self._numbered_nodes = len(nodes)
        return first_equal.get(value, value)

    def _size(self, value: int) -> int:
        """``value`` as a size: itself if it can't be negative, else a variable that the program checks."""
        if not isinstance(value, SymInt):
            if value < 0:
                raise UndecidedSize("a size is negative")
            return value
        least, _ = bounds(value)
        if least is not None and least >= 0:
            self._bind_variables(value)
            return value
        size = self.checked_sizes.get(value)
        if size is None:
            size = self.checked_sizes[value] = size_variable(least=0)
            variable = variable_of(value)
            if variable is not None and variable not in self.bound:
                self._bind(size, *self.integers.sources[variable], least=0)
                self.integers.replaced[variable] = size
            else:
                self._bind_variables(value)
                self._bind(size, None, 0, value=value, least=0)
        return size

    def _bind_variables(self, value: int) -> None:
        """Bind the size variables in ``value`` that are not bound yet."""
        for variable in sorted(size_variables(value) - self.bound):
            if variable in self.integers.sources:
                self._bind(SymInt({(variable,): 1}), *self.integers.sources[variable])

    def _bind(
        self,
        size: int,
        source: Value | None,
        index: int,
        *,
        value: int | None = None,
        least: int | None = None,
    ) -> None:
        attrs: dict[str, Any] = {"size": size, "least": least, "needed_by": self.op_name}
        attrs |= {"value": value} if source is None else {"index": index}
        self.tracer.builder.add(BIND_SIZE, [] if source is None else [source], attrs, origin.caller())
        self.bound |= size_variables(size)

    def _require_int32(self, value: int) -> None:
        """Let the program check that int32 holds ``value``, if it is computed from numbers of tensors.

        Int32 arithmetic wraps around, but expressions don't.
        """
        variables = size_variables(value)
        if variable_of(value) is None and not variables.isdisjoint(self.integers.sources):
            self._bind_variables(value)
            nearest = smallest(largest(value, int32.min), int32.max)
            self._require(nearest, value, "int32 does not hold {1[0]}; use int64", ((nearest,), (value,)))

    def _require(
        self, x: int, y: int, message: str, shapes: tuple[Any, Any], *, repeats: bool = False
    ) -> None:
        if type(x) is int and type(y) is int and x != y:
            raise UndecidedSize("sizes differ")
        self.decisions.fix_required(x, y, repeats=repeats, in_body=self._outer is not None)
        attrs = {"x": x, "y": y, "message": message, "shapes": shapes, "repeats": repeats}
        attrs["needed_by"] = self.op_name
        self._requirements.add(attrs, size_variables(tuple(self.argument_sizes.values())))

    def _require_outside(self, x: int, y: int, message: str, shapes: tuple[Any, Any]) -> None:
        # A branch that isn't taken must not fail: accesses are compared with buffers where sizes are bound.
        if self._outer is not None and not (self.iterates and size_variables((x, y)) - self._outer.bound):
            raise UndecidedSize("whether sizes fit is known only at run time, inside a branch or loop")
        self._require(x, y, message, shapes)

    def _fitting(self, node: Node, inputs: Sequence[Value]) -> list[Value]:
        """``inputs`` with sizes that ``node`` accepts, which the program checks to be their own."""
        shape = node.attrs.get("shape")
        if isinstance(node.op.kind, Elementwise):
            return self._agreeing(inputs)
        if isinstance(node.op.kind, View) and shape is not None and len(inputs) == 1:
            value, rank = inputs[0], inputs[0].spec.rank
            if rank <= len(shape):
                target = [
                    d if d == 1 else t
                    for d, t in zip(value.spec.shape, shape[len(shape) - rank :], strict=True)
                ]
                return [self._with_shape(value, target)]
        raise UndecidedSize(f"whether the sizes of {node.op.name} fit depends on data")

    def _with_shape(self, value: Value, shape: Sequence[Any]) -> Value:
        """``value`` with ``shape``; the program checks that its own sizes are equal to these, or 1."""
        if tuple(shape) == tuple(value.spec.shape):
            return value
        for size, target in zip(value.spec.shape, shape, strict=True):
            if size != target:
                assert size is not None, "no size is dynamic"
                self._require(
                    size, target, _NOT_BROADCASTABLE, (tuple(value.spec.shape), tuple(shape)), repeats=True
                )
        attrs = {"shape": Shape(shape), "repeats": True}
        return self.tracer.builder.add(WITH_SHAPE, [value], attrs, origin.caller()).output

    def _agreeing(self, inputs: Sequence[Value]) -> list[Value]:
        """``inputs`` of an elementwise op, with sizes that broadcast; the program checks that they do."""
        shapes = broadcast_shapes([v.spec.shape for v in inputs])
        return [self._with_shape(v, shape) for v, shape in zip(inputs, shapes, strict=True)]


def _has_sizes(node: Node) -> bool:
    """Whether all sizes of the results are numbers or expressions."""
    return not [v for v in node.outputs if not v.spec.shape.is_static]
