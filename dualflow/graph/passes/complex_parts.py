"""Ops on complex numbers become ops on their parts, so that loops know complex numbers only as what is moved.

A node whose element code computes with pairs (:mod:`dualflow.scalar.complex_numbers`) becomes one for each
part of its result. What reads the result as a whole reads the parts joined.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from dualflow.core.spec import TensorSpec
from dualflow.graph.axes import is_view
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.passes.bodies import inside_out
from dualflow.graph.passes.constant_folding import fold_constants
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.graph.passes.invariants import hoist_invariants
from dualflow.graph.rewrite import Expansion, rebuild
from dualflow.ops.broadcasting import REDUCE_SUM
from dualflow.ops.complex_numbers import COMPLEX, CONJ, IMAG, REAL, join
from dualflow.ops.op_kinds import Elementwise
from dualflow.ops.record import Op
from dualflow.scalar.complex_numbers import Pair, PairMaths, reads_of

Parts = tuple[Value, Value]
_ELEMENTS: Final[dict[Op, Callable[..., Any]]] = {
    CONJ: lambda m, x: m.conj(x),
    REAL: lambda m, x: m.real(x),
    IMAG: lambda m, x: m.imag(x),
    COMPLEX: lambda m, re, im: m.complex(re, im),
}
"""The element code of ops that only loops over parts compute."""


def _real_spec(x: TensorSpec) -> TensorSpec:
    return TensorSpec.of(x.shape, x.dtype.real)


def _held(name: str, doc: str, infer: Any, kernel: Any, code: Any) -> Op:
    return Op(name=name, doc=doc, infer=infer, kernel=kernel, kind=Elementwise(code, parts=True))


REAL_OF = _held("real_of", "The real parts.", _real_spec, REAL.kernel, lambda m, x: m.real(x))
IMAG_OF = _held("imag_of", "The imaginary parts.", _real_spec, IMAG.kernel, lambda m, x: m.imag(x))
JOINED = _held("joined", "Numbers of these parts.", COMPLEX.infer, join, lambda m, x, y: m.complex(x, y))


def part_complex(graph: Graph) -> Graph:
    """``graph`` where real numbers are computed with in the place of complex ones, as far as loops can."""
    parted = _part_everywhere(graph)
    return graph if parted is graph else hoist_invariants(parted)


def _part(graph: Graph) -> Graph:
    if not any(v.spec.dtype.is_complex for n in graph.nodes for v in (*n.inputs, *n.outputs)):
        return graph
    parted = rebuild(graph, _Parted())
    return graph if parted is graph else eliminate_dead_code(fold_constants(parted))


_part_everywhere = inside_out(_part)


class _Parted:
    """The rule of :func:`rebuild`; it remembers the parts of values."""

    def __init__(self) -> None:
        self._known: dict[Value, Parts] = {}

    def __call__(self, node: Node, current: Node) -> Expansion | None:
        made: list[Node] = []
        if node.op is REDUCE_SUM and node.output.spec.dtype.is_complex:
            parts = [_again(node, [x], made) for x in self._parts(current.inputs[0], node, made)]
        else:
            which = tuple([v.spec.dtype.is_complex for v in node.inputs])
            reads = _reads(node)
            if reads is None:
                return None
            inputs = [
                x
                for value, parted in zip(current.inputs, which, strict=True)
                for x in (self._parts(value, node, made) if parted else (value,))
            ]
            parts = [
                _again(node, [inputs[i] for i in read], made, part_op(node.op, which, part, read))
                for part, read in ((part, _of_shape(inputs, read, node)) for part, read in reads.items())
            ]
        return Expansion(made, [self._joined(parts, node, made)])

    def _joined(self, parts: Sequence[Value], node: Node, made: list[Node]) -> Value:
        if len(parts) == 1:
            return parts[0]
        made.append(Node(JOINED, parts, {}, node.specs, node.origin, node.also))
        value = made[-1].output
        self._known[value] = parts[0], parts[1]
        return value

    def _parts(self, value: Value, reader: Node, made: list[Node]) -> Parts:
        """The parts of a value; those of a view are views of the parts where these are known."""
        found = self._known.get(value)
        if found is None:
            node, spec = value.node, _real_spec(value.spec)
            if node is not None and is_view(node) and node.inputs[0] in self._known:
                new = [
                    Node(node.op, [x], node.attrs, [spec], node.origin) for x in self._known[node.inputs[0]]
                ]
            else:
                new = [Node(op, [value], {}, [spec], reader.origin, reader.also) for op in (REAL_OF, IMAG_OF)]
            made += new
            found = self._known[value] = new[0].output, new[1].output
        return found


def _code(op: Op) -> Callable[..., Any] | None:
    kind = op.kind
    if isinstance(kind, Elementwise):
        return None if kind.parts else kind.code
    return _ELEMENTS.get(op)


def _reads(node: Node) -> dict[str, tuple[int, ...]] | None:
    """What each part of the result is made of; None where loops can't compute it, or have nothing to part."""
    code = _code(node.op)
    if code is None or not any(v.spec.dtype.is_complex for v in (*node.inputs, *node.outputs)):
        return None
    return reads_of(code, [v.spec.dtype for v in node.inputs], node.attrs)


def _of_shape(inputs: Sequence[Value], read: tuple[int, ...], node: Node) -> tuple[int, ...]:
    """``read``, and the inputs that a part does not depend on where only they have the result's shape."""
    shape = node.output.spec.shape
    if any(inputs[i].spec.shape == shape for i in read):
        return read
    whole = [i for i, x in enumerate(inputs) if x.spec.shape == shape][:1] or range(len(inputs))
    return tuple(sorted({*read, *whole}))


def _again(node: Node, inputs: Sequence[Value], made: list[Node], op: Op | None = None) -> Value:
    """The node's op, or another, for parts of its inputs."""
    made.append(Node(op or node.op, inputs, node.attrs, [_real(node.output.spec)], node.origin, node.also))
    return made[-1].output


def _real(spec: TensorSpec) -> TensorSpec:
    return _real_spec(spec) if spec.dtype.is_complex else spec


@functools.cache
def part_op(op: Op, which: tuple[bool, ...], part: str, read: tuple[int, ...]) -> Op:
    """The op that computes one part of the result of ``op``.

    Args:
        op: an op on complex numbers.
        which: which of its inputs are complex.
        part: "re" or "im"; "real" where the result has no parts.
        read: the inputs that the part is made of, those of parts counted one by one.
    """
    code = _code(op)
    assert code is not None

    def joined(given: Sequence[Any], join: Callable[[Any, Any], Any]) -> list[Any]:
        """The inputs of ``op``; what the part does not depend on is something else of its dtype."""
        known, count, found = dict(zip(read, given, strict=True)), 0, []
        for parted in which:
            re = known.get(count, known.get(count + parted, given[-1]))
            found.append(join(re, known.get(count + 1, re)) if parted else re)
            count += 1 + parted
        return found

    def element(m: Any, *given: Any, **attrs: Any) -> Any:
        found = code(PairMaths(m), *joined(given, lambda re, im: Pair(m, re, im)), **attrs)
        return found if part == "real" else getattr(found, part)

    def kernel(*given: Any, **attrs: Any) -> Any:
        found = op.kernel(*joined(given, join), **attrs)
        return found if part == "real" else np.array(found.real if part == "re" else found.imag)

    def infer(*given: TensorSpec, **attrs: Any) -> TensorSpec:
        specs = joined(given, lambda re, im: JOINED.specs([re, im], {})[0])
        return _real(op.specs(specs, attrs)[0])

    cost = op.kind.cost if isinstance(op.kind, Elementwise) else 1.0
    name = op.name if part == "real" else f"{op.name}_{part}"
    return Op(name=name, doc=op.doc, infer=infer, kernel=kernel, kind=Elementwise(element, cost))
