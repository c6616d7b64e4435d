"""Ops that return their input if a condition is true, and raise an error otherwise.

As ops without an effect, they fail only where their results are used.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.errors import InvalidArgumentError, UnassignedError
from dualflow.core.spec import TensorSpec
from dualflow.ops.batching_rules import LEADING
from dualflow.ops.comparison import greater_equal
from dualflow.ops.op_kinds import Elementwise
from dualflow.ops.record import Op, register
from dualflow.ops.samples import Domain, Sample


def _message(name: str) -> str:
    return (
        f"'{name}' has no value: the loop must iterate at least once to initialize {name}. Assign it before "
        "the loop."
    )


def _code(m: Any, x: Any, ran: Any, name: str) -> Any:
    m.check(ran, _message(name))
    return x


def _kernel(x: Any, ran: Any, name: str) -> Any:
    if not np.all(ran):
        raise UnassignedError(_message(name))
    return x


ASSIGNED: Final[Op] = register(
    Op(
        name="assigned",
        doc="``x``, the value of the variable ``name``; an error unless the bool ``ran`` holds.",
        infer=lambda x, ran, name: TensorSpec.of(x.shape, x.dtype),
        kernel=_kernel,
        kind=Elementwise(_code, error=UnassignedError),
        batching_rule=LEADING,
        vjp=(lambda g, out, x, ran, name: assigned(g, ran, name), None),
        strings=True,
        samples=(
            Sample((Domain(-50, 50, "fib", (3, 4)), Domain(0, 2, "b", (), values=True)), {"name": "x"}),
        ),
    )
)


def assigned(x: Any, ran: Any, name: str) -> Any:
    """``x``; raises an UnassignedError for the variable ``name`` unless the bool scalar ``ran`` is true."""
    return dispatch.current().apply(ASSIGNED, (x, ran), {"name": name})


def _required(x: Any, ok: Any, message: str) -> Any:
    if not np.all(ok):
        raise InvalidArgumentError(message)
    return x


def _required_code(m: Any, x: Any, ok: Any, message: str) -> Any:
    m.check(ok, message)
    return x


REQUIRED: Final[Op] = register(
    Op(
        name="required",
        doc="``x``; an error with ``message`` unless the bool ``ok`` holds.",
        infer=lambda x, ok, message: TensorSpec.of(x.shape, x.dtype),
        kernel=_required,
        kind=Elementwise(_required_code, error=InvalidArgumentError),
        batching_rule=LEADING,
        vjp=(lambda g, out, x, ok, message: required(g, ok, message), None),
        strings=True,
        samples=(
            Sample((Domain(-50, 50, "fib", (3, 4)), Domain(0, 2, "b", (), values=True)), {"message": "no"}),
        ),
    )
)


def required(x: Any, ok: Any, message: str) -> Any:
    """``x``; raises an InvalidArgumentError with ``message`` unless the bool scalar ``ok`` is true."""
    return dispatch.current().apply(REQUIRED, (x, ok), {"message": message})


def required_size(x: Any, message: str = "a shape has no negative sizes.") -> Any:
    """The symbolic scalar ``x``; raises an InvalidArgumentError at run time if it is negative."""
    return required(x, greater_equal(x, 0), message)
