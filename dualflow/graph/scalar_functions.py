"""The scalar functions of nodes, which kernels compute for each element; traced from the op records."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Final

from dualflow.core.dtypes import DType, int64
from dualflow.core.exact_equality import exact_attrs
from dualflow.core.records import NamedTuple
from dualflow.graph.fused import reduction_kind_of
from dualflow.graph.ir import Node
from dualflow.ops.op_kinds import Elementwise, Reduce
from dualflow.scalar import ScalarFunction, ScalarOp, trace

_CACHED_FUNCTIONS: Final = 4096
"""The number of scalar functions that are cached, the most recently used ones."""


class ReductionFunctions(NamedTuple):
    """The scalar functions of a reduction, which has an accumulator of one or more scalars.

    Attributes:
        init: the accumulator before the first element.
        update: the accumulator after one more element; its inputs are the accumulator, the element and, if
            ``needs_position``, the element's position along the reduced axes.
        combine: two accumulators combined to one.
        finalize: the result of an accumulator.
        single: the result for one element.
        needs_position: whether ``update`` reads the position.
    """

    init: ScalarFunction
    update: ScalarFunction
    combine: ScalarFunction
    finalize: ScalarFunction
    single: ScalarFunction
    needs_position: bool

    @property
    def dtypes(self) -> tuple[DType, ...]:
        """The dtypes of the accumulator."""
        return self.init.dtypes


def function_of(node: Node) -> ScalarFunction:
    """The scalar function of ``node``, an elementwise op, from the dtypes of its inputs to its output's."""
    inputs = tuple([v.spec.dtype for v in node.inputs])
    if node.attrs:
        return _element_function(_ElementKey(node, inputs))
    return _function_without_attrs(node.op.kind, inputs, node.output.spec.dtype)


def scalar_op_of(node: Node) -> ScalarOp | None:
    """The scalar op that ``node`` applies to its two inputs, in this order; None if it does anything else."""
    if len(node.inputs) != 2 or not isinstance(node.op.kind, Elementwise) or node.attrs:
        return None
    x, y = node.inputs
    return _scalar_op(node.op.kind, x.spec.dtype, y.spec.dtype, node.output.spec.dtype)


@functools.lru_cache(_CACHED_FUNCTIONS)
def _scalar_op(kind: Elementwise, x: DType, y: DType, output: DType) -> ScalarOp | None:
    if x.is_string or y.is_string:
        return None
    function = _function_without_attrs(kind, (x, y), output)
    if len(function.instructions) != 1 or function.results != (2,):
        return None
    (instruction,) = function.instructions
    return instruction.op if instruction.operands == (0, 1) else None


def reduction_of(node: Node) -> ReductionFunctions:
    """The scalar functions of ``node``, a reduction or a scan."""
    return _reduction(reduction_kind_of(node), node.inputs[0].spec.dtype, node.output.spec.dtype)


class _ElementKey:
    """The cache key of a scalar function: op kind, dtypes and attributes, compared bit by bit."""

    __slots__ = ("_hash", "_key", "attrs", "inputs", "kind", "output")

    def __init__(self, node: Node, inputs: tuple[DType, ...]) -> None:
        kind = node.op.kind
        assert isinstance(kind, Elementwise), f"{node} has no element code"
        self.kind, self.inputs, self.output = kind, inputs, node.output.spec.dtype
        self.attrs: Mapping[str, Any] = node.attrs
        self._key = kind, inputs, self.output, exact_attrs(node.attrs)
        self._hash = hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ElementKey) and self._key == other._key

    def __hash__(self) -> int:
        return self._hash


@functools.lru_cache(_CACHED_FUNCTIONS)
def _function_without_attrs(kind: Any, inputs: tuple[DType, ...], output: DType) -> ScalarFunction:
    assert isinstance(kind, Elementwise), f"{kind} has no element code"
    return trace(kind.code, inputs, (output,), {})


@functools.lru_cache(_CACHED_FUNCTIONS)
def _element_function(key: _ElementKey) -> ScalarFunction:
    return trace(key.kind.code, key.inputs, (key.output,), key.attrs)


@functools.lru_cache(_CACHED_FUNCTIONS)
def _reduction(kind: Reduce, element: DType, result: DType) -> ReductionFunctions:
    init = trace(lambda m: kind.start(m, element), ())
    carried = init.dtypes
    count = len(carried)

    def update(m: Any, *scalars: Any) -> Any:
        return kind.step(
            m, scalars[:count], scalars[count], scalars[count + 1] if kind.needs_position else None
        )

    def single(m: Any, x: Any) -> Any:
        first = m.constant(0, int64) if kind.needs_position else None
        return kind.finish(m, kind.step(m, kind.start(m, element), x, first))

    position = (int64,) if kind.needs_position else ()
    return ReductionFunctions(
        init=init,
        update=trace(update, (*carried, element, *position), carried),
        combine=trace(lambda m, *xs: kind.merge(m, xs[:count], xs[count:]), (*carried, *carried), carried),
        finalize=trace(lambda m, *accumulator: kind.finish(m, accumulator), carried, (result,)),
        single=trace(single, (element,), (result,)),
        needs_position=kind.needs_position,
    )
