"""Computations that read sizes, in a trace that leaves some open: held by one op until the sizes are known.

A trace is recorded anew for the sizes of a call, and then the op is what it holds. Where data decide the
sizes, its kernel computes with eager tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.extent import UndecidedSize, is_fixed
from dualflow.eager.engine import EAGER
from dualflow.eager.tape import GradientTape
from dualflow.eager.tensor import wrap
from dualflow.ops.forms import Sized
from dualflow.ops.record import Op

Compute = Callable[..., Any]


def _kernel(*arrays: np.ndarray[Any, Any], compute: Compute, result: Compute) -> np.ndarray[Any, Any]:
    with dispatch.using(EAGER):
        return np.asarray(compute(*map(wrap, arrays)))


def _resolved(read: Any, *inputs: Any, compute: Compute, result: Compute) -> Any:
    if not all(is_fixed(x.shape) for x in inputs):
        raise UndecidedSize("what is computed reads sizes as numbers")
    return compute(*inputs)


def _vjp(i: int, g: Any, out: Any, *inputs: Any, compute: Compute, result: Compute) -> Any:
    if not inputs[i].dtype.is_inexact:
        return None

    def back(g: Any, *inputs: Any) -> Any:
        with GradientTape() as tape:
            tape.watch(inputs[i])
            found = compute(*inputs)
        return tape.gradient(found, inputs[i], output_gradients=g, unconnected_gradients="zero")

    attrs = {"compute": back, "result": lambda g, *specs: specs[i]}
    return dispatch.current().apply(LATE, (g, *inputs), attrs)


LATE: Final = Op(
    name="late_sizes",
    doc="""``compute(*inputs)``, one tensor, of the spec that ``result`` returns for those of the inputs.""",
    infer=lambda *specs, compute, result: result(*specs),
    kernel=_kernel,
    form=Sized(_resolved),
    vjp=_vjp,
)
