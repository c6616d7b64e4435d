"""Python variables that a loop of the graph assigns: reading one that no turn has assigned is an error."""

from __future__ import annotations

from typing import Any, Final

from dualflow.core import dispatch
from dualflow.core.errors import UnassignedError
from dualflow.core.spec import TensorSpec
from dualflow.ops.forms import Element
from dualflow.ops.record import Op, register
from dualflow.ops.samples import Domain, Sample


def _message(name: str) -> str:
    return f"{name!r} has no value: no turn of the loop that assigns it has run. Assign it before the loop."


def _code(m: Any, x: Any, ran: Any, name: str) -> Any:
    m.check(ran, _message(name))
    return x


def _kernel(x: Any, ran: Any, name: str) -> Any:
    if not ran:
        raise UnassignedError(_message(name))
    return x


ASSIGNED: Final[Op] = register(
    Op(
        name="assigned",
        doc="``x``, the value of the variable ``name``; an error unless the bool ``ran`` holds.",
        infer=lambda x, ran, name: TensorSpec.of(x.shape, x.dtype),
        kernel=_kernel,
        form=Element(_code, error=UnassignedError),
        vjp=(lambda g, out, x, ran, name: assigned(g, ran, name), None),
        samples=(
            Sample((Domain(-50, 50, "fib", (3, 4)), Domain(0, 2, "b", (), values=True)), {"name": "x"}),
        ),
    )
)


def assigned(x: Any, ran: Any, name: str) -> Any:
    """``x``, an UnassignedError about the variable ``name`` unless the bool scalar ``ran`` holds.

    Like any op without an effect it fails only where its result is used.
    """
    return dispatch.current().apply(ASSIGNED, (x, ran), {"name": name})
