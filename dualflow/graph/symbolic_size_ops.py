"""Ops on symbolic sizes: bind a size variable, compare two sizes, replace sizes by equal ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from dualflow.core.dtypes import int64
from dualflow.core.errors import InternalError, InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.graph.ir import Graph, Node
from dualflow.ops.batching_rules import OF_SHAPE
from dualflow.ops.op_kinds import Check, Opaque, View
from dualflow.ops.record import Effect, Op
from dualflow.sizes.symbolic_sizes import SizeFactor, variable_of

Axis = tuple[int, int]
"""The number of an argument, and of one of its axes."""


def _bound_elsewhere(*inputs: Any, **attrs: Any) -> Any:
    raise InternalError("the interpreter binds size variables, without the kernel of an op")


def _bind(
    *inputs: Any,
    size: int,
    value: int | None = None,
    index: int = 0,
    least: int | None = None,
    argument_axes: Any = None,
    distinct: bool = False,
    needed_by: str = "",
) -> tuple[()]:
    return ()


def _guard(x: int, y: int, equality: bool, outcome: bool) -> tuple[()]:
    if (x == y if equality else x < y) is not outcome:
        raise InternalError("a graph was called with sizes that its guards refuse")
    return ()


def _require(
    x: int, y: int, message: str, shapes: tuple[Any, Any], repeats: bool, needed_by: str = ""
) -> tuple[()]:
    if x != y and not (repeats and x == 1):
        text = message.format(*shapes)
        raise InvalidArgumentError(f"{needed_by}: {text}" if needed_by else text)
    return ()


BIND_SIZE: Final = Op(
    name="bind_size",
    doc="""Binds the size variable ``size`` to an integer, which must not be below ``least``.

    The integer is the element ``index`` of the input, the value of the expression ``value``, or the size of
    ``argument_axes``: axes of arguments of the graph (the number of the argument, and of the axis) that have
    equal sizes. If it is ``distinct``, another program serves calls in which another distinct size is equal
    to it. ``needed_by`` is the name of the op that needs the size.
    """,
    infer=_bind,
    kernel=_bound_elsewhere,
    kind=Check(),
    outputs=None,
    effect=Effect.CHECK,
)

REQUIRE_SIZE: Final = Op(
    name="require_size",
    doc="""Stops the program unless ``x`` is ``y``, or (with ``repeats``) 1.

    ``message`` is that of the error, in which {0} and {1} are replaced by the two ``shapes``. These are
    shapes of the op ``needed_by``.
    """,
    infer=lambda x, y, message, shapes, repeats, needed_by="": (),
    kernel=_require,
    kind=Check(),
    outputs=None,
    effect=Effect.CHECK,
)

GUARD_SIZES: Final = Op(
    name="guard_sizes",
    doc="""Refuses the call unless ``x == y`` (if it is an ``equality``), or ``x < y``, has this ``outcome``.

    Another trace serves a call that is refused.
    """,
    infer=lambda x, y, equality, outcome: (),
    kernel=_guard,
    kind=Check(),
    outputs=None,
    effect=Effect.CHECK,
)

WITH_SHAPE: Final = Op(
    name="with_shape",
    doc="The input with ``shape``, whose sizes have been checked to equal its own, or 1 if it ``repeats``.",
    infer=lambda x, shape, repeats: TensorSpec.of(Shape(shape), x.dtype),
    kernel=lambda x, shape, repeats: np.broadcast_to(x, shape),
    kind=View(lambda x, shape, repeats: x.view_with_shape(shape, repeats=repeats)),
    batching_rule=OF_SHAPE,
)


RESULT_SHAPE: Final = Op(
    name="result_shape",
    doc="The sizes of the result of a host call, which are known when the call has run.",
    infer=lambda x: TensorSpec((x.rank,), int64),
    kernel=lambda x: np.array(x.shape, np.int64),
    kind=Opaque("a size of the result of a host call"),
)

RESULT_WITH_SHAPE: Final = Op(
    name="result_with_shape",
    doc="The result of a host call, with the ``shape`` that :data:`RESULT_SHAPE` has read.",
    infer=lambda x, shape: TensorSpec.of(Shape(shape), x.dtype),
    kernel=lambda x, shape: x,
    kind=Opaque("the result of a host call"),
)

SIZE_OPS: Final = (BIND_SIZE, REQUIRE_SIZE, GUARD_SIZES)
"""The ops that bind a size variable or compare sizes."""


def binds_or_checks_size(node: Node) -> bool:
    """Whether ``node`` is one of :data:`SIZE_OPS`."""
    return node.op in SIZE_OPS


def binds_sizes(node: Node) -> bool:
    """Whether ``node``, or a graph inside it, binds a size variable, on which later nodes may depend."""
    if node.effect is None:
        return False
    return binds_or_checks_size(node) or any(has_symbolic_sizes(body) for _, body in node.bodies)


def has_symbolic_sizes(graph: Graph) -> bool:
    """Whether ``graph`` binds a size variable."""
    return any(map(binds_sizes, graph.nodes))


def is_argument_size(node: Node) -> bool:
    """Whether ``node`` binds a size variable to the size of an argument."""
    return node.op is BIND_SIZE and bool(node.attrs.get("argument_axes"))


def argument_sizes(graph: Graph) -> dict[SizeFactor, tuple[Axis, ...]]:
    """For each size variable, the input axes that have this size."""
    nodes = [n for n in graph.nodes if n.effect is not None]  # that of BIND_SIZE
    bound = [n.attrs for n in nodes if is_argument_size(n)]
    axes = {variable_of(attrs["size"]): attrs["argument_axes"] for attrs in bound}
    return {variable: equal for variable, equal in axes.items() if variable is not None}


def first_axes(axes: Mapping[SizeFactor, tuple[Axis, ...]]) -> dict[SizeFactor, Axis]:
    """For each size variable, the first of the input axes that have this size: calls read it there."""
    return {variable: equal[0] for variable, equal in axes.items()}


def computes_sizes(graph: Graph) -> bool:
    """Whether a size is computed from data while the graph runs."""
    return any(
        (n.op is BIND_SIZE and not is_argument_size(n)) or any(computes_sizes(body) for _, body in n.bodies)
        for n in graph.nodes
        if n.effect is not None  # that of BIND_SIZE, or of a body with one
    )
