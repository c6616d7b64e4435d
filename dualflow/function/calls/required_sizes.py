"""Shapes that ops require of their inputs, where sizes are known only at run time."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.graph.ir import GraphBuilder, Node, Value
from dualflow.graph.symbolic_size_ops import WITH_SHAPE
from dualflow.sizes.size_functions import broadcast_size
from dualflow.sizes.symbolic_sizes import UndecidedSize, is_static

_MESSAGE: Final = "an argument of shape {0} should have shape {1}"


def required_shapes(
    node: Node, inputs: Sequence[Value], require: Callable[..., object]
) -> Sequence[Sequence[int]] | None:
    """The shapes that ``node`` requires of ``inputs``; None if its op has no rule for them.

    ``require(size, target, message, shapes)`` is called for each size that differs from the required one.
    """
    if node.op.required_shapes is None:
        return None
    own: list[Any] = [tuple(v.spec.shape) for v in inputs]
    if is_static(itertools.chain.from_iterable(own)):
        return None
    shapes = node.op.required_shapes(*own, **node.attrs)
    for sizes, required in zip(own, shapes, strict=True):
        for size, target in zip(sizes, required, strict=True):
            if size != target:
                require(size, target, _MESSAGE, (sizes, tuple(required)))
    return shapes


def with_shapes(
    builder: GraphBuilder, node: Node, inputs: Sequence[Value], shapes: Sequence[Sequence[int]]
) -> Node:
    """``node``, recorded for ``inputs`` with ``shapes``, which the program has compared with their own.

    Raises:
        UndecidedSize: whether the op takes inputs of these shapes is known only at run time.
    """
    fitting = [
        v
        if tuple(v.spec.shape) == tuple(shape)
        else builder.add(WITH_SHAPE, [v], {"shape": Shape(shape), "repeats": False}).output
        for v, shape in zip(inputs, shapes, strict=True)
    ]
    try:
        return builder.add(node.op, fitting, node.attrs, node.origin)
    except InvalidArgumentError:
        raise UndecidedSize(f"whether the sizes of {node.op.name} fit depends on data") from None


def broadcast_shapes(shapes: Sequence[Sequence[Any]]) -> list[list[int]]:
    """Each of ``shapes`` with its sizes replaced by those of the broadcast result, or 1."""
    rank = max(map(len, shapes))
    target: list[int] = [1] * rank
    for shape in shapes:
        for i, size in enumerate(shape, start=rank - len(shape)):
            target[i] = broadcast_size(target[i], size)
    ends = [target[rank - len(shape) :] for shape in shapes]
    return [
        [1 if size == 1 else t for size, t in zip(shape, end, strict=True)]
        for shape, end in zip(shapes, ends, strict=True)
    ]
