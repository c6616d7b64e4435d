"""Graphs with open sizes become graphs whose sizes are extents: expressions in what the program reads.

Each node is recorded anew for inputs whose sizes are numbers or extents. What decides a size is an element of
a tensor of integers: a symbol, which a ``measure`` node reads where it is first needed. Small integers that
are computed from sizes (``df.shape(x)[0] * 2``) are followed as expressions, so that sizes that are equal for
what they are made of are one extent.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.extent import Atom, Extent, UndecidedSize, bounds, symbol, symbol_of, symbols
from dualflow.core.shape import Shape
from dualflow.core.size_functions import substituted
from dualflow.core.spec import TensorSpec
from dualflow.function.calling.small_integers import SmallIntegers
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.graph import origin
from dualflow.graph.exact_equality import exact_attrs
from dualflow.graph.ir import Graph, Node, Update, Value
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.graph.run_time_sizes import MEASURE, NAMED, REQUIRE
from dualflow.ops.arrangement import RESHAPE
from dualflow.ops.forms import Element, Sized


def with_extents(graph: Graph, options: CompileOptions) -> Graph:
    """``graph`` with extents for its open sizes.

    Raises:
        UndecidedSize: some size, or what an op does with one, can't be told before the run.
    """
    return _Sizing(graph, options).graph()


class _Sizing:
    """Records a graph anew.

    Attributes:
        now: the new value of each old one.
        known: integers as expressions.
        measured: the symbols that a measure node has given their numbers.
        sizes_of: the sizes that a measure node has checked, by the expression that they are of.
        same: for a value that is computed as an earlier one is, that one; of the first ``compared`` nodes.
    """

    def __init__(self, graph: Graph, options: CompileOptions) -> None:
        self.old = graph
        self.tracer = Tracer(graph.name, options=options)
        self.now: dict[Value, Value] = {}
        self.known = SmallIntegers()
        self.measured: set[Atom] = set()
        self.sizes_of: dict[Extent, int] = {}
        self.compared = 0
        self.first: dict[Hashable, Node] = {}
        self.same: dict[Value, Value] = {}

    def graph(self) -> Graph:
        old, builder = self.old, self.tracer.builder
        with tracing(self.tracer):
            for i, value in enumerate(old.inputs):
                self.now[value] = builder.argument(self._known_spec(i, value.spec))
            for node in old.nodes:
                with origin.forced(node.origin):
                    self._record(node)
        outputs = [self.now[v] for v in old.outputs]
        updates = [Update(self.now[u.input], self.now[u.value]) for u in old.updates]
        if any(u.input.spec != u.value.spec for u in updates):
            raise UndecidedSize("a variable is given a value whose size depends on data")
        made = builder.finish(outputs)
        return eliminate_dead_code(
            Graph(old.name, made.inputs, made.nodes, made.outputs, old.captures, tuple(updates))
        )

    def _known_spec(self, place: int, spec: TensorSpec) -> TensorSpec:
        """The spec of an input, symbols in the place of open sizes."""
        shape = list(spec.shape)
        for axis, size in enumerate(spec.shape):
            if size is None:
                shape[axis] = extent = symbol(least=0)
                attrs = {"extent": extent, "given": (place, axis)}
                self.tracer.builder.add(MEASURE, [], attrs)
                self.measured |= symbols(extent)
        return TensorSpec(Shape(shape), spec.dtype, spec.name)

    def _record(self, node: Node) -> None:
        inputs = [self.now[v] for v in node.inputs]
        form = node.op.form
        if node.bodies:
            raise UndecidedSize("a size inside a branch or loop depends on data")
        if isinstance(form, Sized):
            given = [self.tracer.symbol(v) for v in inputs]
            found = form.resolve(self, *given, **node.attrs)
            made_of = found if isinstance(found, tuple) else (found,)
            self.now.update(zip(node.outputs, [self.tracer.adopt(x)._value for x in made_of], strict=True))
            return
        try:
            made = self.tracer.builder.add(node.op, inputs, node.attrs, node.origin)
        except (InvalidArgumentError, UndecidedSize):
            if not isinstance(form, Element):
                raise UndecidedSize("whether sizes fit together depends on data") from None
            made = self.tracer.builder.add(node.op, self._agreeing(inputs), node.attrs, node.origin)
        if not all(spec.shape.is_static for spec in made.specs):
            raise UndecidedSize("a size is known only when NumPy has computed the result")
        self.now.update(zip(node.outputs, made.outputs, strict=True))

    # what ops ask

    def __call__(self, tensor: Any, least: int | None = None) -> list[int]:
        """The elements of a tensor of integers, none of which may be below ``least``."""
        value = self._first_equal(self.tracer.adopt(tensor)._value)
        found = [substituted(x, self.known.replaced) for x in self.known.of(value).reshape(-1).tolist()]
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
        self._require(wanted, size, "the numbers of elements of a tensor and of its new shape differ")
        return self.tracer.run(NAMED, (flat,), {"shape": Shape((wanted,))})

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
        if not isinstance(value, Extent):
            if value < 0:
                raise UndecidedSize("a size is negative")
            return value
        least, _ = bounds(value)
        if least is not None and least >= 0:
            self._measure_symbols(value)
            return value
        known = self.sizes_of.get(value)
        if known is None:
            known = self.sizes_of[value] = symbol(least=0)
            own = symbol_of(value)
            if own is not None and own not in self.measured:
                self._measure(known, *self.known.places[own], least=0)
                self.known.replaced[own] = known
            else:
                self._measure_symbols(value)
                self._measure(known, None, 0, value=value, least=0)
        return known

    def _measure_symbols(self, value: int) -> None:
        """Read the symbols in ``value`` that nothing has read yet."""
        for atom in sorted(symbols(value) - self.measured):
            if atom in self.known.places:
                self._measure(Extent({(atom,): 1}), *self.known.places[atom])

    def _measure(
        self,
        extent: int,
        source: Value | None,
        index: int,
        *,
        value: int | None = None,
        least: int | None = None,
    ) -> None:
        attrs: dict[str, Any] = {"extent": extent, "least": least}
        attrs |= {"value": value} if source is None else {"index": index}
        self.tracer.builder.add(MEASURE, [] if source is None else [source], attrs, origin.caller())
        self.measured |= symbols(extent)

    def _require(self, x: int, y: int, message: str) -> None:
        self.tracer.builder.add(REQUIRE, [], {"x": x, "y": y, "message": message}, origin.caller())

    def _agreeing(self, inputs: Sequence[Value]) -> list[Value]:
        """``inputs`` of an elementwise op, whose sizes the program checks to be equal where they differ."""
        rank = max(v.spec.rank for v in inputs)
        target: list[int] = [1] * rank
        for value in inputs:
            for i, size in enumerate(value.spec.shape, start=rank - value.spec.rank):
                if target[i] == 1 or (type(size) is int and size != 1):
                    target[i] = size  # type: ignore[assignment]  # extents take the place of None
        found = []
        for value in inputs:
            own = target[rank - value.spec.rank :]
            shape = [d if d == 1 else t for d, t in zip(value.spec.shape, own, strict=True)]
            if tuple(shape) != tuple(value.spec.shape):
                for size, wanted in zip(value.spec.shape, shape, strict=True):
                    if size != wanted:
                        if type(size) is int and type(wanted) is int:
                            raise UndecidedSize("sizes differ")
                        self._require(size, wanted, "sizes that only the run tells are not equal")  # type: ignore[arg-type]
                attrs = {"shape": Shape(shape)}
                value = self.tracer.builder.add(NAMED, [value], attrs, origin.caller()).output
            found.append(value)
        return found
