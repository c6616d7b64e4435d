"""Ops of explicit graphs without a kernel: a run plan replaces them before the graph is compiled.

Reads become inputs, assignments become updates, and placeholders with a default become values.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

from dualflow.core.errors import InternalError, InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Effect, Op


def variable_spec(variable: Any) -> TensorSpec:
    """The spec of the variable's values, which all have one shape.

    Raises:
        InvalidArgumentError: values of the variable may differ in shape.
    """
    if not variable.shape.is_static:
        raise InvalidArgumentError(
            f"{variable!r} may have values of several shapes, but variables of a session have static shapes. "
            "Give the variable a full shape."
        )
    return TensorSpec.of(variable.shape, variable.dtype)


def reject_execution(*arrays: Any, **attrs: Any) -> NoReturn:
    """The kernel of an op that run plans replace: raises an error."""
    raise InternalError(f"an op that run plans replace was executed, with {attrs}")


_REPLACED: Final = Opaque("run plans replace it before the graph is compiled")

READ: Final = Op(
    name="read_variable",
    doc="The value of ``variable`` at this point of the program.",
    infer=lambda variable: variable_spec(variable),
    kernel=reject_execution,
    kind=_REPLACED,
    effect=Effect.PYTHON,
)

ASSIGN: Final = Op(
    name="assign_variable",
    doc="Assigns ``x`` to ``variable``, and returns it.",
    infer=lambda x, variable: variable_spec(variable),
    kernel=reject_execution,
    kind=_REPLACED,
    effect=Effect.PYTHON,
)

DEFAULT: Final = Op(
    name="placeholder_with_default",
    doc="``x``, or a value of ``shape`` that is fed instead.",
    infer=lambda x, shape: TensorSpec.of(shape, x.dtype),
    kernel=reject_execution,
    kind=_REPLACED,
    vjp=(lambda g, out, x, shape: g,),
    effect=Effect.PYTHON,
)
