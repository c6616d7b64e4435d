"""The canonical encoding of a graph: bytes that are equal for graphs that compile to the same program.

A cache of compiled programs on disk has it in its keys, so it contains everything that passes, plans and
backends read of a graph:

=====================  =====================================================================================
part                   encoding
=====================  =====================================================================================
inputs                 the spec of each, and of captures whether they are variables
nodes                  in order: the op, the numbers of the values that it reads, the attributes, the specs
op                     its name; only ops that this package has under that name, whose code is in the key
constant               dtype, shape, memory order and bytes
static and dynamic     ints and None; size variables, with their lower bounds, by the order in which
sizes                  passes sort them
number of a loop       by the order in which they occur in the derivations of loops
variable               the number of its input if it is captured, else its number among the others
body                   a digest of its encoding, in which values are numbered anew
results, updates       the numbers of their values: so aliases differ from copies
=====================  =====================================================================================

Left out are the lines of the user's program, which errors read of the graph itself, and the values of
captures, which each call reads. An object of any other type raises :class:`NotEncodable`: a Python function,
an object array, an op of the user's.
"""

from __future__ import annotations

import marshal
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Final

import numpy as np

from dualflow.core.digest import digest
from dualflow.core.dispatch import AbstractVariable
from dualflow.core.dtypes import DType
from dualflow.core.records import compared_fields
from dualflow.core.shape import UNKNOWN_RANK, Shape
from dualflow.core.spec import TensorSpec
from dualflow.graph.control_spec import LoopSpec
from dualflow.graph.ir import BodySpec, Graph, Node, Value
from dualflow.graph.nested_bodies import innermost_first
from dualflow.graph.symbolic_size_ops import BIND_SIZE, GUARD_SIZES, REQUIRE_SIZE, WITH_SHAPE
from dualflow.ops.attribute_values import TEXT_OPS, syntax_of
from dualflow.ops.operand_attributes import OperandForm, operand_form
from dualflow.ops.record import REGISTRY, Op
from dualflow.sizes.symbolic_sizes import SizeFactor, SizeVariable, SymInt, size_variables

MAX_CONSTANT_BYTES: Final = 16 << 20
"""The largest constant that is encoded: hashing more takes longer than compiling a small graph."""

_PACKAGE: Final = __name__.partition(".")[0] + "."
_PLAIN: Final = frozenset({bool, int, str, bytes, type(None)})
_SIZE_OPS: Final = {op.name: op for op in (BIND_SIZE, REQUIRE_SIZE, GUARD_SIZES, WITH_SHAPE)}
_FORMAT: Final = 0
"""The oldest format of ``marshal``: equal values have equal bytes, whichever of them are one object."""


class NotEncodable(Exception):
    """Raised for a graph that has no canonical encoding; the text is the reason."""


def encoded_graph(graph: Graph) -> bytes:
    """The canonical encoding of ``graph``.

    Raises:
        NotEncodable: an attribute is an object without an encoding.

    >>> import dualflow as df
    >>> one, same, other = (
    ...     df.function(lambda x, c=c: x * c).get_concrete_function(df.TensorSpec([3])).graph
    ...     for c in (2.0, 2.0, 3.0)
    ... )
    >>> encoded_graph(one) == encoded_graph(same), encoded_graph(one) == encoded_graph(other)
    (True, False)
    """
    sources = {id(c.source): i for i, c in enumerate(graph.captures)}
    graphs = innermost_first(graph)
    encoder = _Encoder(sources, _size_numbers(graphs))
    for body in graphs[:-1]:
        encoder.body(body)
    return marshal.dumps(encoder.graph(graph), _FORMAT)


def encoded_value(value: Any) -> bytes:
    """The canonical encoding of a setting: of numbers, texts, dtypes, tuples and frozen dataclasses of these.

    Raises:
        NotEncodable: it contains another object.

    >>> encoded_value((1, 0.5)) == encoded_value((True, 0.5)), encoded_value(0.0) == encoded_value(-0.0)
    (False, False)
    """
    return marshal.dumps(_Encoder({}, {}).value(value), _FORMAT)


class _Encoder:
    """Encodes the values of one graph as nested tuples of numbers, texts and bytes.

    Args:
        sources: the number of each capture, by the id of its source.
        sizes: the number of each size variable, by its name.
    """

    def __init__(self, sources: Mapping[int, int], sizes: Mapping[str, int]) -> None:
        self._sources = sources
        self._sizes = sizes
        self._loops: dict[int, int] = {}
        self._variables: dict[int, int] = {}
        self._specs: dict[int, tuple[TensorSpec, Any]] = {}
        self._factors: dict[SizeFactor, Any] = {}
        self._bodies: dict[Graph, tuple[str, bytes]] = {}

    def body(self, graph: Graph) -> tuple[str, bytes]:
        """The encoding of a body in a node: a digest, computed once."""
        cached = self._bodies.get(graph)
        if cached is None:
            cached = self._bodies[graph] = "graph", digest(marshal.dumps(self.graph(graph), _FORMAT))
        return cached

    def graph(self, graph: Graph) -> tuple[Any, ...]:
        """The encoding of a graph, or of a body."""
        number: dict[Value, int] = {v: i for i, v in enumerate(graph.inputs)}
        nodes = []
        for node in graph.nodes:
            read = tuple([number[v] for v in node.inputs])
            for v in node.outputs:
                number[v] = len(number)
            nodes.append(self._node(node, read))
        return (
            graph.name,
            tuple([(self._spec(v.spec), v.spec.name) for v in graph.inputs]),
            tuple([c.variable for c in graph.captures]),
            tuple(nodes),
            tuple([number[v] for v in graph.outputs]),
            tuple([(number[u.input], number[u.value]) for u in graph.updates]),
        )

    def _node(self, node: Node, read: tuple[int, ...]) -> tuple[Any, ...]:
        attrs = node.attrs
        encoded = (
            tuple([(name, self._attribute(node, attrs[name])) for name in sorted(attrs)]) if attrs else ()
        )
        return _op(node.op), read, encoded, tuple([self._spec(v.spec) for v in node.outputs])

    def _attribute(self, node: Node, value: Any) -> Any:
        try:
            return self.value(value)
        except NotEncodable as error:
            raise NotEncodable(f"{node.op.name} has {error}") from None

    def _spec(self, spec: TensorSpec) -> Any:
        """The encoding of dtype and shape, computed once for each object."""
        cached = self._specs.get(id(spec))
        if cached is None:
            cached = self._specs[id(spec)] = spec, (spec.dtype.name, self.value(spec.shape))
        return cached[1]

    def value(self, value: Any) -> Any:
        """The encoding of an attribute or setting."""
        kind = type(value)
        if kind in _PLAIN:
            return value
        encode = _BY_TYPE.get(kind)
        if encode is not None:
            return encode(self, value)
        return kind.__module__, kind.__qualname__, self._fields(value)

    def _fields(self, value: Any) -> Any:
        """The encoding of a record, an enum, a NumPy scalar, or another value that saved graphs may hold."""
        kind = type(value)
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            return tuple([self.value(x) for x in value])
        if isinstance(value, np.generic) and not value.dtype.hasobject:
            return value.dtype.str, value.tobytes()
        if isinstance(value, Enum):
            return value.name
        if isinstance(value, np.dtype):
            return value.str, value.name
        names = compared_fields(kind)
        if names is not None:
            return tuple([(name, self.value(getattr(value, name))) for name in names])
        syntax = syntax_of(value)
        if syntax is not None and syntax.identity is not None:
            return syntax.name, self.value(syntax.identity(value))
        fields = None if syntax is None else syntax.fields(value)
        if syntax is not None and fields is not None:
            return syntax.name, tuple([(name, self.value(field)) for name, field in fields.items()])
        return self._source(value)

    def _source(self, value: Any) -> tuple[str, int]:
        """The encoding of a variable that a node refers to."""
        number = self._sources.get(id(value))
        if number is not None:
            return "capture", number
        if not isinstance(value, AbstractVariable):
            raise NotEncodable(f"an attribute of the type {type(value).__name__}")
        return "variable", self._variables.setdefault(id(value), len(self._variables))

    def items(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """The encodings of the items of a tuple or list."""
        return tuple([x if type(x) in _PLAIN else self.value(x) for x in values])

    def loop(self, spec: LoopSpec) -> tuple[Any, ...]:
        """The encoding of a loop; the ids of its source loops are renumbered by first occurrence."""
        derivation = tuple([self._loops.setdefault(number, len(self._loops)) for number in spec.derivation])
        names = [name for name in compared_fields(LoopSpec) or () if name != "derivation"]
        return "loop", derivation, tuple([(name, self.value(getattr(spec, name))) for name in names])

    def size(self, size: SymInt) -> tuple[Any, ...]:
        """The encoding of a symbolic size, as a polynomial; functions in it are digests."""
        for factor in size.new_factors(self._factors):
            self._factors[factor] = self._factor(factor)
        terms = [
            (tuple([self._factors[factor] for factor in monomial]), coefficient)
            for monomial, coefficient in size.terms.items()
        ]
        return "size", tuple(sorted(terms, key=marshal.dumps))

    def _factor(self, factor: SizeFactor) -> Any:
        if factor.kind == "variable":
            return factor.kind, self._sizes[factor.name], factor.least, factor.most
        return digest(marshal.dumps((factor.kind, self.items(factor.parts)), _FORMAT))


def _op(op: Op) -> tuple[str, bool]:
    """The name of an op of this package, and whether it is the form that reads integers from operands."""
    reads_operands = type(op) is OperandForm
    base = REGISTRY.get(op.name) or TEXT_OPS.get(op.name) or _SIZE_OPS.get(op.name)
    named = operand_form(base) if reads_operands and base is not None else base
    module = getattr(op.infer, "__module__", None) or ""
    if op is not named or not module.startswith(_PACKAGE):
        raise NotEncodable(f"the op {op.name}, which is not an op of this package with that name")
    return op.name, reads_operands


def _array(_: _Encoder, array: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    if array.dtype.hasobject or array.nbytes > MAX_CONSTANT_BYTES:
        what = "of objects" if array.dtype.hasobject else f"of {array.nbytes} bytes"
        raise NotEncodable(f"an array {what}")
    return "array", array.dtype.str, array.dtype.name, array.shape, array.flags.c_contiguous, array.tobytes()


def _shape(encoder: _Encoder, shape: Shape) -> Any:
    return "shape", None if shape is UNKNOWN_RANK else encoder.items(shape)


_BY_TYPE: Final[dict[type, Callable[[_Encoder, Any], Any]]] = {
    float: lambda _, x: ("float", struct.pack("<d", x)),
    complex: lambda _, x: ("complex", struct.pack("<dd", x.real, x.imag)),
    tuple: lambda encoder, x: ("tuple", encoder.items(x)),
    list: lambda encoder, x: ("list", encoder.items(x)),
    frozenset: lambda encoder, x: ("set", tuple(sorted(map(marshal.dumps, encoder.items(tuple(x)))))),
    dict: lambda encoder, x: ("dict", tuple([(encoder.value(k), encoder.value(x[k])) for k in x])),
    DType: lambda _, x: ("dtype", x.name),
    Shape: _shape,
    TensorSpec: lambda encoder, x: ("spec", encoder._spec(x), x.name),
    np.ndarray: _array,
    Graph: _Encoder.body,
    LoopSpec: _Encoder.loop,
    SymInt: _Encoder.size,
}


def _size_numbers(graphs: Iterable[Graph]) -> dict[str, int]:
    """A number for each size variable in ``graphs``, in the order in which passes sort them."""
    variables: set[SizeVariable] = set()
    for graph in graphs:
        _collect_sizes(graph, variables)
    return {variable.name: i for i, variable in enumerate(sorted(variables))}


def _collect_sizes(graph: Graph, variables: set[SizeVariable]) -> None:
    """Add the size variables of specs and attributes, without those of bodies."""
    specs = {id(v.spec): v.spec for node in graph.nodes for v in node.outputs}
    specs |= {id(v.spec): v.spec for v in graph.inputs}
    for spec in specs.values():
        variables.update(size_variables(spec.shape))
    for node in graph.nodes:
        for value in node.attrs.values():
            if not isinstance(value, Graph | BodySpec):
                variables.update(size_variables(value))
