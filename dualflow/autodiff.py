"""Differentiation: ``df.autodiff``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.eager.accumulator import ForwardAccumulator as ForwardAccumulator
    from dualflow.eager.derivatives import grad as grad
    from dualflow.eager.derivatives import hessian as hessian
    from dualflow.eager.derivatives import hvp as hvp
    from dualflow.eager.derivatives import jacobian as jacobian
    from dualflow.eager.derivatives import jvp as jvp
    from dualflow.eager.derivatives import value_and_grad as value_and_grad
    from dualflow.eager.derivatives import vjp as vjp
    from dualflow.eager.tape import GradientTape as GradientTape
    from dualflow.function.batching.vmap import vmap as vmap
    from dualflow.function.sparse_jacobian import sparse_jacobian as sparse_jacobian

_publish(
    globals(),
    lazy={
        "dualflow.eager.accumulator": "ForwardAccumulator",
        "dualflow.eager.derivatives": "grad hessian hvp jacobian jvp value_and_grad vjp",
        "dualflow.eager.tape": "GradientTape",
        "dualflow.function.batching.vmap": "vmap",
        "dualflow.function.sparse_jacobian": "sparse_jacobian",
    },
)
