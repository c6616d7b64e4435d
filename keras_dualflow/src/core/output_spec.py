"""``compute_output_spec``: the specs of a function's results, inferred by tracing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from keras.src import tree
from keras.src.backend.common import standardize_dtype
from keras.src.backend.common.keras_tensor import KerasTensor
from keras.src.backend.common.symbolic_scope import SymbolicScope

from dualflow.core.dispatch import AbstractTensor
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.function.tracing.tracer import Tracer, tracing
from keras_dualflow.src.core.conversion import dtype_named
from keras_dualflow.src.core.stateless import StatelessScope

_SIZES: Final = (83, 89)
"""Two values for dynamic sizes of inputs; a size of the result that differs between them is dynamic."""


def compute_output_spec(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of ``fn`` for arguments with ``KerasTensor`` s, with a ``KerasTensor`` for each tensor.

    The function is traced, and the trace is discarded.
    """
    leaves = tree.flatten((args, kwargs))
    has_dynamic_sizes = any(isinstance(x, KerasTensor) and None in x.shape for x in leaves)
    result = _trace_outputs(fn, args, kwargs, _SIZES[0])
    if not has_dynamic_sizes:
        return tree.map_structure(_keras_tensor, result)
    other_result = _trace_outputs(fn, args, kwargs, _SIZES[1])
    return tree.map_structure(_keras_tensor, result, other_result)


def _trace_outputs(fn: Callable[..., Any], args: Any, kwargs: Any, size: int) -> Any:
    """The symbolic outputs of ``fn``, traced with ``size`` in place of each dynamic size."""
    tracer = Tracer("compute_output_spec")

    def argument(x: Any) -> Any:
        if not isinstance(x, KerasTensor):
            return x
        sizes = Shape([size if n is None else n for n in x.shape])
        return tracer.argument(TensorSpec(sizes, dtype_named(x.dtype)))

    # A scope for each trace, since variables assigned in a trace have values of that trace.
    with StatelessScope(), SymbolicScope(), tracing(tracer):
        args, kwargs = tree.map_structure(argument, (args, kwargs))
        return fn(*args, **kwargs)


def _keras_tensor(x: Any, other: Any = None) -> Any:
    if not isinstance(x, AbstractTensor):
        return x
    sizes = tuple(x.shape)
    if other is not None:
        sizes = tuple([a if a == b else None for a, b in zip(sizes, other.shape, strict=True)])
    return KerasTensor(sizes, standardize_dtype(x.dtype))
