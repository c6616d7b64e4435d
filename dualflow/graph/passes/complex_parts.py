"""Lowers ops on complex numbers to ops on their parts, so that loops only move complex numbers.

A node whose element code computes with pairs (:mod:`dualflow.scalar.complex_pairs`) becomes one node for
each part of its result. Consumers of the complex result read the joined parts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from dualflow.core.locks import imported
from dualflow.core.spec import TensorSpec
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.passes.constant_folding import fold_constants
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.graph.passes.hoist_invariants import hoist_invariants
from dualflow.graph.passes.over_bodies import inside_out
from dualflow.graph.rewrite import Expansion, rebuild
from dualflow.graph.views import is_view
from dualflow.ops.broadcasting import REDUCE_SUM
from dualflow.ops.complex_numbers import COMPLEX, CONJ, IMAG, REAL, join
from dualflow.ops.op_kinds import Elementwise
from dualflow.ops.record import Op

Parts = tuple[Value, Value]
_ELEMENTS: Final[dict[Op, Callable[..., Any]]] = {
    CONJ: lambda m, x: m.conj(x),
    REAL: lambda m, x: m.real(x),
    IMAG: lambda m, x: m.imag(x),
    COMPLEX: lambda m, re, im: m.complex(re, im),
}
"""The element code of ops that have none in their records."""


def _real_spec(x: TensorSpec) -> TensorSpec:
    return TensorSpec.of(x.shape, x.dtype.real)


def _part_op(name: str, doc: str, infer: Any, kernel: Any, code: Any) -> Op:
    return Op(name=name, doc=doc, infer=infer, kernel=kernel, kind=Elementwise(code, parts=True))


REAL_OF = _part_op("real_of", "The real parts.", _real_spec, REAL.kernel, lambda m, x: m.real(x))
IMAG_OF = _part_op("imag_of", "The imaginary parts.", _real_spec, IMAG.kernel, lambda m, x: m.imag(x))
JOINED = _part_op("joined", "Numbers of these parts.", COMPLEX.infer, join, lambda m, x, y: m.complex(x, y))


def split_complex(graph: Graph) -> Graph:
    """``graph`` with ops on complex numbers lowered to ops on their parts, where loops support these."""
    parted = _part_everywhere(graph)
    return graph if parted is graph else hoist_invariants(parted)


def _part(graph: Graph) -> Graph:
    if not [n for n in graph.nodes for v in (*n.inputs, *n.outputs) if v.spec.dtype.is_complex]:
        return graph
    parted = rebuild(graph, _SplitRule())
    return graph if parted is graph else eliminate_dead_code(fold_constants(parted))


_part_everywhere = inside_out(_part)


class _SplitRule:
    """The rewrite rule: a node on complex numbers becomes nodes on real and imaginary parts."""

    def __init__(self) -> None:
        self._parts_of: dict[Value, Parts] = {}

    def __call__(self, node: Node, current: Node) -> Expansion | None:
        new_nodes: list[Node] = []
        if node.op is REDUCE_SUM and node.output.spec.dtype.is_complex:
            parts = [
                _append_part_node(node, [x], new_nodes)
                for x in self._parts(current.inputs[0], node, new_nodes)
            ]
        else:
            is_complex = tuple([v.spec.dtype.is_complex for v in node.inputs])
            reads = _inputs_of_parts(node)
            if reads is None:
                return None
            inputs = [
                x
                for value, split in zip(current.inputs, is_complex, strict=True)
                for x in (self._parts(value, node, new_nodes) if split else (value,))
            ]
            parts = [
                _append_part_node(
                    node, [inputs[i] for i in read], new_nodes, part_op(node.op, is_complex, part, read)
                )
                for part, read in (
                    (part, _with_result_shape(inputs, read, node)) for part, read in reads.items()
                )
            ]
        return Expansion(new_nodes, [self._joined(parts, node, new_nodes)])

    def _joined(self, parts: Sequence[Value], node: Node, new_nodes: list[Node]) -> Value:
        if len(parts) == 1:
            return parts[0]
        new_nodes.append(Node(JOINED, parts, {}, node.specs, node.origin, node.merged_origins))
        value = new_nodes[-1].output
        self._parts_of[value] = parts[0], parts[1]
        return value

    def _parts(self, value: Value, reader: Node, new_nodes: list[Node]) -> Parts:
        """The real and the imaginary part of a value.

        Of a view, views of the parts of its operand if there are any.
        """
        parts = self._parts_of.get(value)
        if parts is None:
            node, spec = value.node, _real_spec(value.spec)
            if node is not None and is_view(node) and node.inputs[0] in self._parts_of:
                new = [
                    Node(node.op, [x], node.attrs, [spec], node.origin)
                    for x in self._parts_of[node.inputs[0]]
                ]
            else:
                new = [
                    Node(op, [value], {}, [spec], reader.origin, reader.merged_origins)
                    for op in (REAL_OF, IMAG_OF)
                ]
            new_nodes += new
            parts = self._parts_of[value] = new[0].output, new[1].output
        return parts


def _code(op: Op) -> Callable[..., Any] | None:
    kind = op.kind
    if isinstance(kind, Elementwise):
        return None if kind.parts else kind.code
    return _ELEMENTS.get(op)


def _inputs_of_parts(node: Node) -> dict[str, tuple[int, ...]] | None:
    """For each part of the result, the numbers of the inputs that it depends on.

    None if loops can't compute it, or nothing is complex.
    """
    code = _code(node.op)
    if code is None or not any(v.spec.dtype.is_complex for v in (*node.inputs, *node.outputs)):
        return None
    pairs = imported("dualflow.scalar.complex_pairs")  # which graphs without complex numbers don't need
    parts: dict[str, tuple[int, ...]] | None = pairs.part_dependencies(
        code, [v.spec.dtype for v in node.inputs], node.attrs
    )
    return parts


def _with_result_shape(inputs: Sequence[Value], read: tuple[int, ...], node: Node) -> tuple[int, ...]:
    """The input indices ``read``, extended by one whose input has the result's shape if none has it."""
    shape = node.output.spec.shape
    if any(inputs[i].spec.shape == shape for i in read):
        return read
    largest = [i for i, x in enumerate(inputs) if x.spec.shape == shape][:1] or range(len(inputs))
    return tuple(sorted({*read, *largest}))


def _append_part_node(
    node: Node, inputs: Sequence[Value], new_nodes: list[Node], op: Op | None = None
) -> Value:
    """Append a node that applies ``op``, by default that of ``node``, to parts; returns its output."""
    new_nodes.append(
        Node(op or node.op, inputs, node.attrs, [_real(node.output.spec)], node.origin, node.merged_origins)
    )
    return new_nodes[-1].output


def _real(spec: TensorSpec) -> TensorSpec:
    return _real_spec(spec) if spec.dtype.is_complex else spec


@functools.cache
def part_op(op: Op, is_complex: tuple[bool, ...], part: str, read: tuple[int, ...]) -> Op:
    """The op that computes one part of the result of ``op``.

    Args:
        op: an op on complex numbers.
        is_complex: for each of its inputs, whether it is complex.
        part: "re" or "im"; "real" if the result is real.
        read: the inputs that the part depends on; parts of complex ones are counted one by one.
    """
    code, pairs = _code(op), imported("dualflow.scalar.complex_pairs")
    assert code is not None

    def joined(operands: Sequence[Any], join: Callable[[Any, Any], Any]) -> list[Any]:
        """The inputs of ``op``; an arbitrary operand replaces those that the part does not depend on."""
        operand_of, index, inputs = dict(zip(read, operands, strict=True)), 0, []
        for split in is_complex:
            re = operand_of.get(index, operand_of.get(index + split, operands[-1]))
            inputs.append(join(re, operand_of.get(index + 1, re)) if split else re)
            index += 1 + split
        return inputs

    def element(m: Any, *operands: Any, **attrs: Any) -> Any:
        inputs = joined(operands, lambda re, im: pairs.ComplexPair(m, re, im))
        result = code(pairs.ComplexPairMaths(m), *inputs, **attrs)
        return result if part == "real" else getattr(result, part)

    def kernel(*operands: Any, **attrs: Any) -> Any:
        result = op.kernel(*joined(operands, join), **attrs)
        return result if part == "real" else np.array(result.real if part == "re" else result.imag)

    def infer(*operands: TensorSpec, **attrs: Any) -> TensorSpec:
        specs = joined(operands, lambda re, im: JOINED.specs([re, im], {})[0])
        return _real(op.specs(specs, attrs)[0])

    cost = op.kind.cost if isinstance(op.kind, Elementwise) else 1.0
    name = op.name if part == "real" else f"{op.name}_{part}"
    return Op(name=name, doc=op.doc, infer=infer, kernel=kernel, kind=Elementwise(element, cost))
