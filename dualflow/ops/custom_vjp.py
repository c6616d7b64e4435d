"""Functions of ops with a custom vjp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from dualflow.core import dispatch
from dualflow.ops.attribute_values import in_text
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Op

GradientRule = Callable[..., Sequence[Any]]
"""``rule(needed, g, out, *inputs)`` returns one cotangent for each input, as :attr:`Op.joint_vjp` does."""


def _joint_vjp(
    needed: Sequence[bool], g: Any, out: Any, *inputs: Any, grad: GradientRule, outputs: int
) -> list[Any]:
    return [None] * outputs + list(grad(needed[outputs:], g, out, *inputs[outputs:]))


CUSTOM: Final = in_text(
    Op(
        name="custom_gradient",
        doc="""The first ``outputs`` of the inputs; ``grad`` returns the gradients of the others.""",
        infer=lambda *specs, grad, outputs: specs[:outputs],
        kernel=lambda *arrays, grad, outputs: arrays[:outputs],
        kind=Opaque("it is gone from a graph as soon as gradients have been taken"),
        joint_vjp=_joint_vjp,
        outputs=None,
    )
)


def custom_vjp(rule: GradientRule, function: Callable[..., Any], *inputs: Any) -> Any:
    """``function(*inputs)``, one tensor, whose gradient ``rule`` computes.

    The rule is written in ops, so that there are gradients of any order. It and the function capture nothing
    but their arguments and plain data: a graph evaluates the rule with other tensors.

    Args:
        rule: returns the cotangent of each input; see :data:`GradientRule`. Rules that compare equal compute
            the same.
        function: computes the value; tapes don't record its ops.
        inputs: tensors of the engine that is current.
    """
    engine = dispatch.current()
    with dispatch.using(engine.unrecorded):
        value = function(*inputs)
    (result,) = engine.apply(CUSTOM, (value, *inputs), {"grad": rule, "outputs": 1})
    return result
