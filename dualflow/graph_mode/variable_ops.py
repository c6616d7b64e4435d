"""The ops of an explicit graph that no run executes: a plan resolves them to inputs, updates and values."""

from __future__ import annotations

from typing import Any, Final, NoReturn

from dualflow.core.errors import InternalError, InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Effect, Op


def variable_spec(variable: Any) -> TensorSpec:
    """What every value of the variable is.

    Raises:
        InvalidArgumentError: values of the variable may differ in shape.
    """
    if not variable.shape.is_static:
        raise InvalidArgumentError(
            f"{variable!r} may hold tensors of other shapes, and a session keeps values of known "
            "sizes. Give the variable a full shape."
        )
    return TensorSpec.of(variable.shape, variable.dtype)


def planned(*arrays: Any, **attrs: Any) -> NoReturn:
    """The kernel of an op that plans resolve, which never runs."""
    raise InternalError(f"an op that plans resolve ran outside of a session's run, with {attrs}")


_KIND: Final = Opaque("a run resolves it before it compiles, so no compiled graph has this op")

READ: Final = Op(
    name="read_variable",
    doc="The value of ``variable`` at this point of the program.",
    infer=lambda variable: variable_spec(variable),
    kernel=planned,
    kind=_KIND,
    effect=Effect.PYTHON,
)

ASSIGN: Final = Op(
    name="assign_variable",
    doc="Gives ``variable`` the value ``x``, and returns it.",
    infer=lambda x, variable: variable_spec(variable),
    kernel=planned,
    kind=_KIND,
    effect=Effect.PYTHON,
)

DEFAULT: Final = Op(
    name="placeholder_with_default",
    doc="``x``, in whose place other values of ``shape`` may be fed.",
    infer=lambda x, shape: TensorSpec.of(shape, x.dtype),
    kernel=planned,
    kind=_KIND,
    vjp=(lambda g, out, x, shape: g,),
    effect=Effect.PYTHON,
)
