"""Writes the nodes of a graph as ONNX nodes, each by the rule for its op record or its op kind."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from dualflow.backends.onnx.element_types import INT64, has_element_type
from dualflow.backends.onnx.scope import OnnxScope, Operand
from dualflow.backends.onnx.sizes import AxisSize, OnnxSizes
from dualflow.backends.onnx.unsupported import unsupported_error
from dualflow.core.dtypes import DType
from dualflow.graph.ir import Graph, Node, Origin, Value
from dualflow.ops.op_kinds import Elementwise
from dualflow.ops.record import Op
from dualflow.sizes.symbolic_sizes import SymInt, variable_of

Rule = Callable[["GraphWriter", Node], "Operand | Sequence[Operand]"]
Rules = Mapping["Op | type", Rule]
"""How a node is written, by its op record, or else by its op kind."""

_MAX_STORED_POSITIONS: Final = 1024
"""Maximum number of positions stored as a constant; a Range node computes more."""


class GraphWriter:
    """The ONNX form of one graph; bodies of branches and loops have a writer each.

    Attributes:
        scope: the nodes that are written.
        sizes: the symbolic sizes.
        rules: how nodes are written.
    """

    def __init__(
        self, rules: Rules, outer: GraphWriter | None = None, scope: OnnxScope | None = None
    ) -> None:
        """Writes into ``scope``, by default a new one nested in that of ``outer``."""
        self.rules = rules
        self.scope: OnnxScope = (
            scope if scope is not None else OnnxScope(None if outer is None else outer.scope)
        )
        self.sizes: OnnxSizes = OnnxSizes(self.scope, None if outer is None else outer.sizes)
        self._operands: dict[Value, Operand] = {}
        self._broadcast: set[Value] = set()
        self._transposes: dict[str, tuple[Operand, tuple[int, ...]]] = {}

    def bind(self, value: Value, operand: Operand, *, shadow: bool = False) -> None:
        """Map a value of the graph to its ONNX tensor, and the size variables of its shape to the axes.

        With ``shadow``, these variables have other values here than in outer graphs.
        """
        self._operands[value] = operand
        for axis, size in enumerate(value.spec.shape):
            variable = None if size is None else variable_of(size)
            if variable is not None:
                self.sizes.bind(variable, AxisSize(operand, axis), shadow=shadow)

    def operand(self, value: Value) -> Operand:
        """The tensor of a value."""
        return self._operands[value]

    def operands(self, node: Node) -> list[Operand]:
        """The tensors that ``node`` reads."""
        return [self._operands[v] for v in node.inputs]

    def write(self, graph: Graph) -> None:
        """Write the nodes of ``graph``, whose inputs are bound.

        Raises:
            InvalidArgumentError: a node has no ONNX form.
        """
        users, results = graph.users(), set(graph.results)
        self._broadcast = {
            value
            for value, nodes in users.items()
            if value not in results and all(isinstance(node.op.kind, Elementwise) for node in nodes)
        }
        for node in graph.nodes:
            self._write_node(node)

    def is_broadcast(self, value: Value) -> bool:
        """Whether all consumers of ``value`` are elementwise, so that ONNX broadcasts it."""
        return value in self._broadcast

    def _write_node(self, node: Node) -> None:
        for value in (*node.inputs, *node.outputs):
            if not has_element_type(value.spec.dtype):
                raise unsupported_error(node, f"ONNX has no ops on {value.spec.dtype.name}")
        rule = self.rules.get(node.op) or self.rules.get(type(node.op.kind))
        if rule is None:
            raise unsupported_error(node, "ONNX has no such op")
        self.scope.label = (_line(node.origin), node.op.name)
        result = rule(self, node)
        operands = [result] if isinstance(result, Operand) else result
        for value, operand in zip(node.outputs, operands, strict=True):
            assert operand.dtype is value.spec.dtype, f"{node} is written as {operand}"
            self.bind(value, operand)

    # Nodes that many rules write

    def reshaped(self, x: Operand, old: Sequence[int], new: Sequence[int]) -> Operand:
        """``x``, of shape ``old``, with the shape ``new``."""
        if tuple(old) == tuple(new):
            return x
        unknown = [i for i, size in enumerate(new) if isinstance(size, SymInt)]
        if len(unknown) == 1 and 0 not in new:
            target = self.scope.ints(*[-1 if i in unknown else size for i, size in enumerate(new)])
        else:
            target = self.sizes.shape_vector(new)
        return self.scope.add("Reshape", x, target, allowzero=int(0 in new))

    def expanded(self, x: Operand, old: Sequence[int], new: Sequence[int]) -> Operand:
        """``x``, of shape ``old``, broadcast to the shape ``new``."""
        # an axis that isn't expanded has target size 1, which needs no symbolic size
        padded = [1] * (len(new) - len(old)) + list(old)
        target = [1 if a == b else b for a, b in zip(padded, new, strict=True)]
        if len(old) == len(new) and all(type(size) is int and size == 1 for size in target):
            return x
        return self.scope.add_with_casts("Expand", x, others=[self.sizes.shape_vector(target)])

    def transposed(self, x: Operand, order: Sequence[int]) -> Operand:
        """``x`` with its axes in another order."""
        source, before = self._transposes.get(x.name, (x, tuple(range(len(order)))))
        perm = tuple([before[axis] for axis in order])
        if perm == tuple(range(len(perm))):
            return source
        result = self.scope.add("Transpose", source, perm=perm)
        self._transposes[result.name] = source, perm
        return result

    def filled(self, shape: Sequence[int], number: Any, dtype: DType) -> Operand:
        """A tensor with one number everywhere."""
        return self.expanded(self.scope.constant(number, dtype), (), shape)

    def arange(self, size: int) -> Operand:
        """The int64 ``0, 1, ..., size - 1``."""
        if type(size) is int and size <= _MAX_STORED_POSITIONS:
            return self.scope.ints(*range(size))
        zero, one = self.scope.constant(0, INT64), self.scope.constant(1, INT64)
        return self.scope.add("Range", zero, self.sizes.scalar(size), one)

    def positions(self, axis: int, shape: Sequence[int]) -> Operand:
        """Each element's position along an axis: int64, of size 1 along other axes."""
        rank, size = len(shape), shape[axis]
        if type(size) is int and size <= _MAX_STORED_POSITIONS:
            return self.scope.shared.constant(np.arange(size).reshape(_along(axis, rank, size)))
        after = range(1, rank - axis)
        indices = self.arange(size)
        return self.scope.add("Unsqueeze", indices, self.scope.ints(*after)) if after else indices


def _along(axis: int, rank: int, size: int) -> tuple[int, ...]:
    return (*(1,) * axis, size, *(1,) * (rank - axis - 1))


def _line(origin: Origin | None) -> str:
    """The user's file and line."""
    return "" if origin is None else f"{os.path.basename(origin.file)}:{origin.line}"


def sizes_of(value: Value) -> tuple[int, ...]:
    """The shape of a value, without dynamic sizes."""
    return tuple(value.spec.shape)  # type: ignore[arg-type]  # the graph has symbolic sizes instead of dynamic ones
