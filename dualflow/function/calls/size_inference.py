"""Graphs with open sizes become graphs whose sizes are extents: expressions in what the program reads.

Each node is recorded anew for inputs whose sizes are numbers or extents. What decides a size is an element of
a tensor of integers: a symbol, which a ``measure`` node reads where it is first needed. Small integers that
are computed from sizes (``df.shape(x)[0] * 2``) are followed as expressions, so that sizes that are equal for
what they are made of are one extent.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final

from dualflow.core.errors import DualflowError, InvalidArgumentError
from dualflow.core.records import replace
from dualflow.core.shape import Shape
from dualflow.core.size_functions import broadcast_size, substitute
from dualflow.core.spec import TensorSpec
from dualflow.core.symbolic_sizes import (
    SizeVariable,
    SymInt,
    UndecidedSize,
    bounds,
    is_static,
    size_variable,
    size_variables,
    variable_of,
)
from dualflow.function.calls.integer_values import IntegerValues
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.graph import origin
from dualflow.graph.axes import sizes as sizes_of
from dualflow.graph.control_spec import CondSpec, branches_of, loop_of
from dualflow.graph.deferred_errors import deferrable, failing_branch, failing_loop_body
from dualflow.graph.error_notes import note_place
from dualflow.graph.exact_equality import exact_attrs
from dualflow.graph.ir import Graph, Node, Update, Value
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.graph.passes.loops import merge_loops
from dualflow.graph.run_time_sizes import BIND_SIZE, REQUIRE_SIZE, WITH_SHAPE
from dualflow.ops.arrangement import RESHAPE, reshaped_by
from dualflow.ops.op_kinds import Cond, Decompose, Elementwise, Loop, View
from dualflow.ops.shapes import ENSURED

_NO_MEETING: Final = "shape {0} does not broadcast to {1}: sizes must be equal or 1"


def with_symbolic_sizes(graph: Graph, options: CompileOptions) -> Graph:
    """``graph`` with extents for its open sizes.

    Raises:
        UndecidedSize: some size, or what an op does with one, can't be told before the run.
    """
    graph = merge_loops(graph)  # by their inputs, while these are those of the trace
    sizing = _Sizing(Tracer(graph.name, options=options))
    with tracing(sizing.tracer):
        inputs = [sizing.input_of(i, v.spec) for i, v in enumerate(graph.inputs)]
        now = sizing.record(graph, inputs)
    outputs = [now[v] for v in graph.outputs]
    updates = [Update(now[u.input], now[u.value]) for u in graph.updates]
    if any(u.input.spec != u.value.spec for u in updates):
        raise UndecidedSize("a variable is given a value whose size depends on data")
    made = sizing.finished(graph.name, inputs, outputs)
    return eliminate_dead_code(replace(made, captures=graph.captures, updates=tuple(updates)))


class _Sizing:
    """Records a graph, or a body, anew.

    Attributes:
        tracer: what records.
        known: integers as expressions.
        measured: the symbols that a measure node has given their numbers.
        sizes_of: the sizes that a measure node has checked, by the expression that they are of.
        same: for a value that is computed as an earlier one is, that one; of the first ``compared`` nodes.
        recording: the name of the op that is recorded.
    """

    def __init__(self, tracer: Tracer, outer: _Sizing | None = None) -> None:
        self.tracer = tracer
        self.known = IntegerValues()
        self.measured: set[SizeVariable] = set() if outer is None else set(outer.measured)
        self.sizes_of: dict[SymInt, int] = {} if outer is None else dict(outer.sizes_of)
        self.compared = 0
        self.recording = ""
        self.first: dict[Hashable, Node] = {}
        self.same: dict[Value, Value] = {}

    def input_of(self, place: int, spec: TensorSpec) -> Value:
        """An input of the whole graph, whose open sizes are those that a call gives."""
        shape = list(spec.shape)
        for axis, size in enumerate(spec.shape):
            if size is None:
                shape[axis] = extent = size_variable(least=0)
                self.tracer.builder.add(BIND_SIZE, [], {"size": extent, "argument_axis": (place, axis)})
                self.measured |= size_variables(extent)
        return self.tracer.builder.argument(TensorSpec(Shape(shape), spec.dtype, spec.name))

    def finished(self, name: str, inputs: Sequence[Value], outputs: Sequence[Value]) -> Graph:
        """What has been recorded."""
        if self.tracer.builder.captures:
            raise UndecidedSize("an op reads a tensor that the trace has not captured")
        return Graph(name, tuple(inputs), tuple(self.tracer.builder.nodes), tuple(outputs))

    def record(self, graph: Graph, inputs: Sequence[Value]) -> dict[Value, Value]:
        """Record the nodes of ``graph`` for other inputs; returns the new value of each old one."""
        now = dict(zip(graph.inputs, inputs, strict=True))
        for node in graph.nodes:
            with origin.forced(node.origin):
                self.recording = node.op.name
                try:
                    outputs = self._recorded(node, [now[v] for v in node.inputs])
                except DualflowError as error:
                    note_place(error, node)
                    raise
            now.update(zip(node.outputs, outputs, strict=True))
        return now

    def _recorded(self, node: Node, inputs: Sequence[Value]) -> Sequence[Value]:
        kind, add = node.op.kind, self.tracer.builder.add
        if isinstance(kind, Decompose):
            given = [self.tracer.tensor_of(v) for v in inputs]
            try:
                found = kind.resolve(self, *given, **node.attrs)
            except InvalidArgumentError:
                if self._reads_symbols(inputs):  # a size that the run tells may fit
                    raise UndecidedSize(f"whether the sizes of {node.op.name} fit depends on data") from None
                raise
            results = found if isinstance(found, tuple) else (found,)
            return [self.tracer.lift(x)._value for x in results]
        if isinstance(kind, Cond):
            return self._cond(node, inputs)
        if isinstance(kind, Loop):
            return self._loop(node, inputs)
        try:
            made = add(node.op, inputs, node.attrs, node.origin)
        except (InvalidArgumentError, UndecidedSize):
            if node.op is RESHAPE:
                found = reshaped_by(self, self.tracer.tensor_of(inputs[0]), node.attrs["shape"])
                return [self.tracer.lift(found)._value]
            if node.op is ENSURED:
                return [self._ensured(inputs[0], node.attrs["sizes"])]
            made = add(node.op, self._fitting(node, inputs), node.attrs, node.origin)
        if not isinstance(kind, Elementwise) and not all(spec.shape.is_static for spec in made.specs):
            raise UndecidedSize("a size is known only when NumPy has computed the result")
        return made.outputs

    def _reads_symbols(self, inputs: Sequence[Value]) -> bool:
        """Whether a size of an input, or an integer of a small one, is known only when the program runs."""
        for value in inputs:
            try:
                elements = self.known.of(value).reshape(-1).tolist() if value.spec.dtype.is_integer else []
            except UndecidedSize:
                return True
            if size_variables((*value.spec.shape, *elements)):
                return True
        return False

    def _ensured(self, value: Value, sizes: Shape) -> Value:
        """``value`` by the sizes of :data:`ENSURED`, which the program checks."""
        pairs = zip(sizes_of(value), sizes, strict=True)
        shape = [own if size is None else size for own, size in pairs]
        message = f"the shape of a tensor and {sizes} are incompatible; reshape it"
        return self.tracer.lift(self.of_shape(self.tracer.tensor_of(value), shape, message))._value

    # conditionals and loops

    def _body(
        self, graph: Graph, specs: Sequence[TensorSpec], sources: Sequence[Value | None]
    ) -> _RecordedBody:
        """``graph`` inside a node, for inputs of ``specs``; ``sources`` are those that no iteration
        changes."""

        inner = _Sizing(Tracer(graph.name), self)
        with tracing(inner.tracer):
            inputs = [inner.tracer.builder.argument(spec) for spec in specs]
            for value, source in zip(inputs, sources, strict=True):
                if source is not None:
                    inner.known.follow(value, self.known, source, self.measured)
            now = inner.record(graph, inputs)
        return _RecordedBody(inner, graph.name, inputs, [now[v] for v in graph.outputs])

    def _branches(
        self, branches: Sequence[Graph], specs: Sequence[TensorSpec], operands: Sequence[Value]
    ) -> list[_RecordedBody]:
        """The branches of a conditional; one that refuses the sizes fails where it is taken.

        Raises:
            DualflowError: all refuse them.
        """
        bodies: list[_RecordedBody | DualflowError] = []
        for branch in branches:
            try:
                bodies.append(self._body(branch, specs, operands))
            except DualflowError as error:
                bodies.append(deferrable(error))
        possible = next((b for b in bodies if isinstance(b, _RecordedBody)), None)
        if possible is None:
            raise next(error for error in bodies if isinstance(error, DualflowError))
        results = [_fixed(v.spec) for v in possible.outputs]
        return [
            body
            if isinstance(body, _RecordedBody)
            else self._body(failing_branch(branch, specs, results, body), specs, operands)
            for branch, body in zip(branches, bodies, strict=True)
        ]

    def _cond(self, node: Node, inputs: Sequence[Value]) -> Sequence[Value]:
        """A conditional; sizes in which its branches differ are symbols that each branch gives a number."""
        operands = inputs[1:]
        specs = [v.spec for v in operands]
        bodies = self._branches(branches_of(node), specs, operands)
        for place in range(len(bodies[0].outputs)):
            shapes = [tuple(b.outputs[place].spec.shape) for b in bodies]
            for axis, sizes in enumerate(zip(*shapes, strict=True)):
                if any(d != sizes[0] for d in sizes) or not size_variables(sizes[0]) <= self.measured:
                    merged = size_variable(least=0)
                    for body in bodies:
                        body.name_size(place, axis, merged)
        for body in bodies:
            self.measured |= body.merged
        spec = CondSpec(tuple([b.graph() for b in bodies]))
        return self.tracer.builder.add(node.op, inputs, {"cond": spec}, node.origin).outputs

    def _loop(self, node: Node, inputs: Sequence[Value]) -> Sequence[Value]:
        """A loop; a size that iterations change is a symbol, which has another number in each iteration."""
        loop = loop_of(node)
        carried, stacks, rest = loop.parts(list(inputs))
        if loop.scanned and loop.length is None and stacks[0].spec.shape[0] is not None:
            loop = replace(loop, length=stacks[0].spec.shape[0])
        carry = [v.spec for v in carried]
        rows = [TensorSpec.of(Shape(tuple(v.spec.shape)[1:]), v.spec.dtype) for v in stacks]
        known: list[Value | None] = [*([None] * loop.end), *rest]
        changing: set[SizeVariable] = set()
        while True:
            specs = [*carry, *rows, *[v.spec for v in rest]]
            try:
                body = self._body(loop.body, specs, known)
            except DualflowError as error:
                failing = failing_loop_body(loop.body, specs, loop.carried, deferrable(error))
                body = self._body(failing, specs, known)
            differing = _differing(carry, body.outputs, changing)
            if not differing:
                break
            for place, axis in differing:
                fresh = size_variable(least=0)
                changing |= size_variables(fresh)
                shape = list(carry[place].shape)
                shape[axis] = fresh
                carry[place] = TensorSpec.of(Shape(shape), carry[place].dtype)
        for place, spec in enumerate(carry):
            for axis, size in enumerate(spec.shape):
                if size_variables((size,)) & changing:
                    body.name_size(place, axis, size_variable(least=0))
        local = body.sizing.measured | changing
        if any(
            size_variables(tuple(v.spec.shape)) & (local - self.measured) for v in body.outputs[len(carry) :]
        ):
            raise UndecidedSize("the rows that a loop stacks differ in size")
        test = None
        if loop.condition is not None:
            seen = [*carry, *[v.spec for v in rest]]
            test = self._body(loop.condition, seen, [*([None] * len(carry)), *rest]).graph()
        self.measured |= changing
        made = replace(loop, body=body.graph(), condition=test)
        return self.tracer.builder.add(node.op, inputs, {"loop": made}, node.origin).outputs

    # what ops ask

    def __call__(self, tensor: Any, least: int | None = None) -> list[int]:
        """The elements of a tensor of integers, none of which may be below ``least``."""
        value = self._first_equal(self.tracer.lift(tensor)._value)
        found = [substitute(x, self.known.replaced) for x in self.known.of(value).reshape(-1).tolist()]
        if least is None:
            for extent in found:
                self._measure_symbols(extent)
            return found
        return self.sizes(found)

    def sizes(self, values: Sequence[int]) -> list[int]:
        """``values`` as sizes, which the program checks not to be negative."""
        return [self._size(x) for x in values]

    def of_size(self, x: Any, wanted: int, size: int) -> Any:
        """``x``, of ``size`` elements, as one axis of ``wanted``, which the program checks to be equal."""
        if wanted == size:
            return x
        flat = self.tracer.run(RESHAPE, (x,), {"shape": Shape((size,))})
        return self.of_shape(flat, (wanted,), "{0[0]} elements are not the {1[0]} of the new shape")

    def of_shape(self, x: Any, shape: Sequence[int], message: str, *, repeats: bool = False) -> Any:
        """``x`` by sizes that the program checks to be its own; its own may be 1 if it ``repeats``.

        ``message`` is that of the error, with {0} and {1} in the place of the shapes.
        """
        own = tuple(x.shape)
        if own == tuple(shape):
            return x
        for size, wanted in zip(own, shape, strict=True):
            if size != wanted:
                self._require(size, wanted, message, (own, tuple(shape)), repeats=repeats)
        return self.tracer.run(WITH_SHAPE, (x,), {"shape": Shape(shape), "repeats": repeats})

    def first_of(self, x: Any, shape: Sequence[int], message: str) -> Any:
        """The elements of ``x`` that have places in ``shape``, whose sizes are checked to be its own or 1."""
        for size, wanted in zip(x.shape, shape, strict=True):
            if size != wanted:
                self._require(wanted, size, message, (tuple(x.shape), tuple(shape)), repeats=True)
        return self.tracer.run(WITH_SHAPE, (x,), {"shape": Shape(shape), "repeats": False})

    # inside

    def _first_equal(self, value: Value) -> Value:
        """The first value that is computed as ``value`` is, so that both are read as one size."""
        nodes = self.tracer.builder.nodes
        for node in nodes[self.compared :]:
            inputs = tuple([self.same.get(v, v) for v in node.inputs])
            key = (node.op, inputs, exact_attrs(node.attrs)) if node.effect is None else node
            first = self.first.setdefault(key, node)
            if first is not node:
                self.same.update(zip(node.outputs, first.outputs, strict=True))
        self.compared = len(nodes)
        return self.same.get(value, value)

    def _size(self, value: int) -> int:
        if not isinstance(value, SymInt):
            if value < 0:
                raise UndecidedSize("a size is negative")
            return value
        least, _ = bounds(value)
        if least is not None and least >= 0:
            self._measure_symbols(value)
            return value
        known = self.sizes_of.get(value)
        if known is None:
            known = self.sizes_of[value] = size_variable(least=0)
            own = variable_of(value)
            if own is not None and own not in self.measured:
                self._measure(known, *self.known.places[own], least=0)
                self.known.replaced[own] = known
            else:
                self._measure_symbols(value)
                self._measure(known, None, 0, value=value, least=0)
        return known

    def _measure_symbols(self, value: int) -> None:
        """Read the symbols in ``value`` that nothing has read yet."""
        for variable in sorted(size_variables(value) - self.measured):
            if variable in self.known.places:
                self._measure(SymInt({(variable,): 1}), *self.known.places[variable])

    def _measure(
        self,
        extent: int,
        source: Value | None,
        index: int,
        *,
        value: int | None = None,
        least: int | None = None,
    ) -> None:
        attrs: dict[str, Any] = {"size": extent, "least": least, "needed_by": self.recording}
        attrs |= {"value": value} if source is None else {"index": index}
        self.tracer.builder.add(BIND_SIZE, [] if source is None else [source], attrs, origin.caller())
        self.measured |= size_variables(extent)

    def _require(
        self, x: int, y: int, message: str, shapes: tuple[Any, Any], *, repeats: bool = False
    ) -> None:
        if type(x) is int and type(y) is int and x != y:
            raise UndecidedSize("sizes differ")
        attrs = {"x": x, "y": y, "message": message, "shapes": shapes, "repeats": repeats}
        attrs["needed_by"] = self.recording
        self.tracer.builder.add(REQUIRE_SIZE, [], attrs, origin.caller())

    def _fitting(self, node: Node, inputs: Sequence[Value]) -> list[Value]:
        """``inputs`` by sizes that ``node`` can take, which the program checks to be equal to their own."""
        shape = node.attrs.get("shape")
        if isinstance(node.op.kind, Elementwise):
            return self._agreeing(inputs)
        if isinstance(node.op.kind, View) and shape is not None and len(inputs) == 1:
            value, rank = inputs[0], inputs[0].spec.rank
            if rank <= len(shape):
                wanted = [
                    d if d == 1 else t
                    for d, t in zip(value.spec.shape, shape[len(shape) - rank :], strict=True)
                ]
                return [self._named(value, wanted)]
        raise UndecidedSize(f"whether the sizes of {node.op.name} fit depends on data")

    def _named(self, value: Value, shape: Sequence[Any]) -> Value:
        """``value`` by other sizes, which the program checks to be equal, unless its own are 1."""
        if tuple(shape) == tuple(value.spec.shape):
            return value
        for size, wanted in zip(value.spec.shape, shape, strict=True):
            if size != wanted:
                assert size is not None, "no size is open"
                self._require(
                    size, wanted, _NO_MEETING, (tuple(value.spec.shape), tuple(shape)), repeats=True
                )
        attrs = {"shape": Shape(shape), "repeats": True}
        return self.tracer.builder.add(WITH_SHAPE, [value], attrs, origin.caller()).output

    def _agreeing(self, inputs: Sequence[Value]) -> list[Value]:
        """``inputs`` of an elementwise op, whose sizes the program checks to be equal where they differ."""
        rank = max(v.spec.rank for v in inputs)
        target: list[int] = [1] * rank
        for value in inputs:
            for i, size in enumerate(value.spec.shape, start=rank - value.spec.rank):
                assert size is not None, "no size is open"
                target[i] = broadcast_size(target[i], size)
        found = []
        for value in inputs:
            own = target[rank - value.spec.rank :]
            shape = [d if d == 1 else t for d, t in zip(value.spec.shape, own, strict=True)]
            found.append(self._named(value, shape))
        return found


def _fixed(spec: TensorSpec) -> TensorSpec:
    """``spec`` with 0 for the sizes that the run tells."""
    return TensorSpec.of(Shape([n if is_static((n,)) else 0 for n in spec.shape]), spec.dtype)


class _RecordedBody:
    """A graph inside a conditional or loop, recorded.

    Attributes:
        outputs: its results.
        merged: symbols of results that it gives their numbers.
    """

    def __init__(self, sizing: _Sizing, name: str, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
        self.sizing = sizing
        self.outputs = list(outputs)
        self.merged: set[SizeVariable] = set()
        self._name = name
        self._inputs = inputs

    def name_size(self, place: int, axis: int, extent: int) -> None:
        """Give ``extent`` the size of an axis of a result, which then has that size by name."""
        builder, value = self.sizing.tracer.builder, self.outputs[place]
        shape = list(value.spec.shape)
        attrs = {"size": extent, "value": shape[axis], "least": None}
        builder.add(BIND_SIZE, [], attrs)
        self.merged |= size_variables(extent)
        shape[axis] = extent
        self.outputs[place] = builder.add(
            WITH_SHAPE, [value], {"shape": Shape(shape), "repeats": False}
        ).output

    def graph(self) -> Graph:
        """The graph, without what nothing needs."""
        return eliminate_dead_code(self.sizing.finished(self._name, self._inputs, self.outputs))


def _differing(
    carry: Sequence[TensorSpec], results: Sequence[Value], changing: set[SizeVariable]
) -> list[tuple[int, int]]:
    """The axes of carried values, by place, whose sizes an iteration changes, those of ``changing`` left
    out."""

    found = []
    for place, spec in enumerate(carry):
        for axis, (before, after) in enumerate(zip(spec.shape, results[place].spec.shape, strict=True)):
            if before != after and not size_variables((before,)) & changing:
                found.append((place, axis))
    return found
