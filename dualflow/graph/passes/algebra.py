"""Algebraic simplification: identities that give every element the same value, to the bit.

Identities that hold only for real numbers are not applied. ``x + 0.0`` stays, since -0.0 becomes 0.0; ``x *
0`` stays, since inf becomes nan; ``pow(x, 0.5)`` stays, since the root of -inf is nan. (The payloads of nans
may change.)
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dualflow.core.dtypes import DType, finfo
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.passes.constant_folding import fold
from dualflow.graph.rewrite import Make, Replacement, Rule, first_of, producer, rewrite
from dualflow.ops.arithmetic import add, divide, multiply, negative, subtract
from dualflow.ops.arrangement import EXPAND_DIMS, RESHAPE, SQUEEZE, TRANSPOSE
from dualflow.ops.broadcasting import BROADCAST_TO, REDUCE_SUM, broadcast_like
from dualflow.ops.conversion import CAST, identity, stop_gradient
from dualflow.ops.creation import CONSTANT
from dualflow.ops.custom_vjp import CUSTOM
from dualflow.ops.powers import pow
from dualflow.ops.record import Op
from dualflow.ops.reduction import REDUCE_ALL, REDUCE_ANY, REDUCE_MAX, REDUCE_MIN, REDUCE_PROD
from dualflow.ops.taking import SCATTER_ADD, SCATTER_ONTO

_MAX_COMPARED = 4096
_ROW_MAJOR: Final = (RESHAPE, EXPAND_DIMS, SQUEEZE)
_KEEP_UNIFORM: Final = (BROADCAST_TO, *_ROW_MAJOR)


def simplify_algebra(graph: Graph) -> Graph:
    """``graph`` after the identities of :data:`RULES`."""
    return rewrite(graph, _rule)


def _rule(node: Node, make: Make) -> Replacement:
    folded = fold(node, make)
    if folded is not None:
        return folded
    simpler = _BY_OP.get(node.op)
    return simpler(node, make) if simpler is not None else None


def uniform(value: Value) -> Any:
    """The number that all elements of a constant have; None if they differ or ``value`` is no constant."""
    node = value.node
    while node is not None and node.op in _KEEP_UNIFORM:
        node = node.inputs[0].node
    if node is None or node.op is not CONSTANT:
        return None
    array = node.attrs["value"]
    if not 0 < array.size <= _MAX_COMPARED:
        return None
    first = array.flat[0]
    same = array.size == 1 or array.tobytes() == first.tobytes() * array.size
    return first if same else None


def _is(value: Value, number: float, *, negative_zero: bool = False) -> bool:
    """Whether every element of ``value`` is ``number``. Floating zeros are distinguished by their sign.

    A complex zero has a sign in each of its parts.
    """
    element = uniform(value)
    if element is None or element != number:
        return False
    if number != 0 or not value.spec.dtype.is_inexact:
        return True
    parts = (element.real, element.imag) if value.spec.dtype.is_complex else (element,)
    return all(bool(np.signbit(part)) is negative_zero for part in parts)


def _real(value: Value) -> bool:
    """Whether ``value`` is not complex: complex products mix parts, and (inf + 0j) * 1 has a nan part."""
    return not value.spec.dtype.is_complex


def _spread(value: Value, node: Node, make: Make) -> Replacement:
    """The replacement of ``node`` by ``value``, broadcast to the shape of the node's output."""
    shape = node.output.spec.shape
    if value.spec.shape == shape:
        return (value,)
    return (make(BROADCAST_TO, (value,), {"shape": shape}),) if shape.is_static else None


def _other_operand(node: Node, number: float, *, negative_zero: bool = False) -> Value | None:
    """The other input of a commutative node, if one of its inputs is ``number``, as for :func:`_is`."""
    x, y = node.inputs
    if _is(y, number, negative_zero=negative_zero):
        return x
    return y if _is(x, number, negative_zero=negative_zero) else None


def times_one(node: Node, make: Make) -> Replacement:
    """x * 1 = x"""
    x = _other_operand(node, 1)
    return _spread(x, node, make) if x is not None and _real(x) else None


def times_minus_one(node: Node, make: Make) -> Replacement:
    """x * -1 = -x"""
    x = _other_operand(node, -1)
    if x is None or x.spec.dtype.kind not in "if":
        return None
    return _spread(make(negative.op, (x,)), node, make)


def product_of_negatives(node: Node, make: Make) -> Replacement:
    """-x * -y = x * y"""
    x = producer(node.inputs[0], negative.op)
    y = producer(node.inputs[1], negative.op) if x else None
    return (make(node.op, (x.inputs[0], y.inputs[0])),) if x and y else None


def quotient_of_negatives(node: Node, make: Make) -> Replacement:
    """-x / -y = x / y for real numbers; sums in a complex quotient may be zeros of another sign"""
    return product_of_negatives(node, make) if _real(node.output) else None


def over_one(node: Node, make: Make) -> Replacement:
    """x / 1 = x"""
    x, y = node.inputs
    return _spread(x, node, make) if _is(y, 1) and _real(x) else None


def plus_zero(node: Node, make: Make) -> Replacement:
    """x + -0.0 = x, and n + 0 = n for integers; x + 0.0 is 0.0 for -0.0"""
    x = _other_operand(node, 0, negative_zero=True)
    return _spread(x, node, make) if x is not None else None


def plus_negative(node: Node, make: Make) -> Replacement:
    """x + -y = x - y"""
    x, y = node.inputs
    if minus := producer(y, negative.op):
        return (make(subtract.op, (x, minus.inputs[0])),)
    minus = producer(x, negative.op)
    return (make(subtract.op, (y, minus.inputs[0])),) if minus else None


def minus_zero(node: Node, make: Make) -> Replacement:
    """x - 0.0 = x, with either sign of x"""
    x, y = node.inputs
    return _spread(x, node, make) if _is(y, 0) else None


def minus_negative(node: Node, make: Make) -> Replacement:
    """x - -y = x + y"""
    minus = producer(node.inputs[1], negative.op)
    return (make(add.op, (node.inputs[0], minus.inputs[0])),) if minus else None


def double_negation(node: Node, make: Make) -> Replacement:
    """--x = x"""
    inner = producer(node.inputs[0], negative.op)
    return inner.inputs if inner else None


def negated_broadcast(node: Node, make: Make) -> Replacement:
    """-broadcast(x) = broadcast(-x), which computes fewer elements"""
    inner = producer(node.inputs[0], BROADCAST_TO)
    return (make(BROADCAST_TO, (make(negative.op, inner.inputs),), inner.attrs),) if inner else None


def integer_chain(node: Node, make: Make) -> Replacement:
    """(n + a) + b = n + (a + b) for integers, which wrap; the same for their products"""
    op, (x, y) = node.op, node.inputs
    inner = producer(x, op) if y.spec.dtype.is_integer else None
    if inner is None or producer(y, CONSTANT) is None:
        return None
    n, a = inner.inputs
    if producer(a, CONSTANT) is None or inner.output.spec.shape != node.output.spec.shape:
        return None
    constant = make(op, (a, y))
    regrouped = producer(constant, CONSTANT) is not None
    return (make(op, (n, constant)),) if regrouped and n.spec.shape == node.output.spec.shape else None


def small_power(node: Node, make: Make) -> Replacement:
    """pow(x, 1) = x and pow(x, 2) = x * x"""
    x, y = node.inputs
    if not _real(x) or x.spec.shape != node.output.spec.shape:
        return None
    if _is(y, 1):
        return (x,)
    return (make(multiply.op, (x, x)),) if _is(y, 2) else None


def same_value(node: Node, make: Make) -> Replacement:
    """identity(x) = stop_gradient(x) = x, after gradients have been computed"""
    return node.inputs


def custom_gradient_values(node: Node, make: Make) -> Replacement:
    """custom_gradient(*values, *inputs) = values, after gradients have been computed"""
    return node.inputs[: len(node.outputs)]


def cast_chain(node: Node, make: Make) -> Replacement:
    """cast(x, own dtype) = x; cast(cast(x, wider), t) = cast(x, t) if every x is exact in ``wider``

    Casts of floats to integers saturate, and casts between integers wrap. So if ``wider`` is a float dtype
    and t an integer one, every x must be exact in t, too.
    """
    x, target = node.inputs[0], node.attrs["dtype"]
    if x.spec.dtype is target:
        return (x,)
    inner = producer(x, CAST)
    if inner is None:
        return None
    source = inner.inputs[0]
    own = source.spec.dtype
    if not _holds(x.spec.dtype, own) or (own.is_inexact and not target.is_inexact):
        return None
    if x.spec.dtype.is_inexact and target.is_integer and not _holds(target, own):
        return None
    return (source,) if own is target else (make(CAST, (source,), {"dtype": target}),)


def _holds(wide: DType, narrow: DType) -> bool:
    """Whether every value of ``narrow`` is a value of ``wide``."""
    if wide.is_inexact and narrow.is_integer:
        bits = 8 * narrow.size - (not narrow.is_unsigned)
        return bool(bits <= finfo(wide).nmant + 1)
    return bool(np.can_cast(narrow.dtype, wide.dtype, "safe"))


def reshape_chain(node: Node, make: Make) -> Replacement:
    """reshape(x, own shape) = x; reshape(reshape(x, s), t) = reshape(x, t); also for expand_dims, squeeze"""
    x, shape = node.inputs[0], node.output.spec.shape
    if not shape.is_static:
        return None
    inner = x.node if x.node is not None and x.node.op in _ROW_MAJOR else None
    source = inner.inputs[0] if inner else x
    if source.spec.shape == shape:
        return (source,)
    return (make(RESHAPE, (source,), {"shape": shape}),) if inner else None


def broadcast_chain(node: Node, make: Make) -> Replacement:
    """broadcast(x, own shape) = x; broadcast(broadcast(x, s), t) = broadcast(x, t)"""
    x = node.inputs[0]
    if x.spec.shape == node.output.spec.shape and x.spec.shape.is_static:
        return (x,)
    inner = producer(x, BROADCAST_TO)
    return (make(BROADCAST_TO, inner.inputs, node.attrs),) if inner else None


def broadcast_to_shape(node: Node, make: Make) -> Replacement:
    """broadcast_like(x, like) = broadcast_to(x, shape), without an operand of which only the shape is used"""
    x, shape = node.inputs[0], node.output.spec.shape
    if not shape.is_static or not x.spec.shape.is_static:
        return None
    new_axes = len(shape) - len(x.spec.shape)
    decided = all(size in (1, full) for size, full in zip(x.spec.shape, shape[new_axes:], strict=True))
    return _spread(x, node, make) if decided else None


def transpose_chain(node: Node, make: Make) -> Replacement:
    """transpose(x, 0 1 2...) = x; transpose(transpose(x, p), q) = transpose(x, p[q])"""
    x, perm = node.inputs[0], node.attrs["perm"]
    if perm == tuple(range(len(perm))):
        return (x,)
    inner = producer(x, TRANSPOSE)
    if inner is None:
        return None
    first = inner.attrs["perm"]
    return (make(TRANSPOSE, inner.inputs, {"perm": tuple([first[axis] for axis in perm])}),)


def reduction_of_one(node: Node, make: Make) -> Replacement:
    """min(x) = max(x) = any(x) = all(x) = reshape(x) over axes of size 1, or over no axes"""
    x = node.inputs[0]
    sizes = [x.spec.shape[axis] for axis in node.attrs["axis"]]
    if any(size != 1 for size in sizes) or x.spec.dtype is not node.output.spec.dtype:
        return None
    shape = node.output.spec.shape
    return (make(RESHAPE, (x,), {"shape": shape}),) if shape.is_static else None


def product_of_one(node: Node, make: Make) -> Replacement:
    """prod(x) = reshape(x) over axes of size 1 for real x; complex x is multiplied by 1, which mixes parts"""
    return reduction_of_one(node, make) if _real(node.output) else None


def sum_of_one(node: Node, make: Make) -> Replacement:
    """sum(x) = 0.0 + x over axes of size 1, or over no axes: NumPy's sum of -0.0 is 0.0"""
    reshaped = reduction_of_one(node, make)
    dtype = node.output.spec.dtype
    if reshaped is None or not dtype.is_inexact:
        return reshaped
    return (make(add.op, (reshaped[0], make(CONSTANT, (), {"value": np.zeros((), dtype.dtype)}))),)


def scatter_onto_zeros(node: Node, make: Make) -> Replacement:
    """zeros + scatter(i, rows) = scatter(i, rows), which begins with zeros of its own"""
    zeros, indices, rows = node.inputs
    axis = node.attrs["axis"]
    size = node.output.spec.shape[axis]
    if size is None or not _is(zeros, 0):
        return None
    return (make(SCATTER_ADD, (indices, rows), {"axis": axis, "size": size}),)


RULES: Final[dict[Op, tuple[Rule, ...]]] = {
    add.op: (plus_zero, plus_negative, integer_chain),
    subtract.op: (minus_zero, minus_negative),
    multiply.op: (times_one, times_minus_one, product_of_negatives, integer_chain),
    divide.op: (over_one, quotient_of_negatives),
    negative.op: (double_negation, negated_broadcast),
    pow.op: (small_power,),
    identity.op: (same_value,),
    stop_gradient.op: (same_value,),
    CUSTOM: (custom_gradient_values,),
    CAST: (cast_chain,),
    RESHAPE: (reshape_chain,),
    EXPAND_DIMS: (reshape_chain,),
    SQUEEZE: (reshape_chain,),
    BROADCAST_TO: (broadcast_chain,),
    broadcast_like.op: (broadcast_to_shape,),
    TRANSPOSE: (transpose_chain,),
    REDUCE_SUM: (sum_of_one,),
    REDUCE_PROD: (product_of_one,),
    REDUCE_MAX: (reduction_of_one,),
    REDUCE_MIN: (reduction_of_one,),
    REDUCE_ANY: (reduction_of_one,),
    REDUCE_ALL: (reduction_of_one,),
    SCATTER_ONTO: (scatter_onto_zeros,),
}
_BY_OP: Final = {op: first_of(rules) for op, rules in RULES.items()}
