"""Functions with another backward pass: ``recompute_grad`` and ``grad_pass_through``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dualflow.core import tree
from dualflow.core.tracebacks import entry
from dualflow.eager.tape import GradientTape
from dualflow.gradient.custom import custom_gradient


@entry
def recompute_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """Gradient checkpointing: ``f`` without residuals; the backward pass computes them again.

    Gradients are the same as those of ``f``, also for variables. It takes the time of one more call, and only
    the memory of the arguments.

    >>> import dualflow as df
    >>> block = df.recompute_grad(lambda x: df.exp(df.sin(x)))
    >>> x = df.constant(0.0)
    >>> with df.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = block(x)
    >>> tape.gradient(y, x).numpy()
    np.float32(1.0)
    """

    @entry
    @functools.wraps(f)
    def called(*args: Any, **kwargs: Any) -> Any:
        @custom_gradient
        def forward(*arguments: Any) -> Any:
            def backward(*cotangents: Any, variables: list[Any] | None = None) -> Any:
                with GradientTape() as tape:
                    tape.watch([x for x in tree.leaves(arguments) if _watchable(x)])
                    results = tree.leaves(f(*arguments, **kwargs))
                sources = tree.leaves(arguments)
                differentiable = [x for x in sources if _watchable(x)]
                gradients = tape.gradient(
                    results, [differentiable, variables or []], output_gradients=list(cotangents)
                )
                flows = iter(gradients[0])
                of_arguments = [next(flows) if _watchable(x) else None for x in sources]
                return (of_arguments, gradients[1]) if variables is not None else of_arguments

            return f(*arguments, **kwargs), backward

        return forward(*args)

    return called


@entry
def grad_pass_through(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f`` with the gradient of the identity (the straight-through estimator).

    >>> import dualflow as df
    >>> x = df.constant(2.7)
    >>> with df.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = df.grad_pass_through(df.floor)(x) * 3.0
    >>> y.numpy(), tape.gradient(y, x).numpy()
    (np.float32(6.0), np.float32(3.0))
    """

    @custom_gradient
    def forward(*args: Any, **kwargs: Any) -> Any:
        def backward(*cotangents: Any, variables: list[Any] | None = None) -> Any:
            flows = list(cotangents)
            return (flows, [None] * len(variables)) if variables is not None else flows

        return f(*args, **kwargs), backward

    return functools.wraps(f)(forward)


def _watchable(x: Any) -> bool:
    return hasattr(x, "dtype") and hasattr(x, "spec") and x.dtype.is_inexact
