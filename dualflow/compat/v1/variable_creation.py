"""The variables of ``get_variable``: a new one, or an existing one if it may be reused."""

from __future__ import annotations

from typing import Any, Protocol

from dualflow.compat.v1.initializers import GlorotUniform, Zeros
from dualflow.core import dispatch
from dualflow.core.dtypes import DType, as_dtype
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import as_shape
from dualflow.graph.ir import Origin
from dualflow.graph_mode import VariableV1, name_scope


class VariableDefaults(Protocol):
    """The defaults of a variable scope."""

    initializer: Any
    constraint: Any
    dtype: DType


def existing_variable(
    variable: Any, line: Origin | None, full: str, reuse: object, shape: Any, dtype: Any
) -> Any:
    """The variable ``full`` of a store, which ``line`` has created.

    Raises:
        InvalidArgumentError: it may not be reused, or has another shape or dtype.
    """
    if not reuse:
        raise InvalidArgumentError(
            f"Variable {full} already exists, disallowed. Did you mean to set reuse=True or "
            f"reuse=df.compat.v1.AUTO_REUSE in VarScope? Originally defined at:\n  {line}"
        )
    if shape is not None and as_shape(shape) != variable.shape:
        raise InvalidArgumentError(
            f"Trying to share variable {full}, but specified shape {as_shape(shape)} and found shape "
            f"{variable.shape}. Originally defined at:\n  {line}"
        )
    if dtype is not None and as_dtype(dtype) is not variable.dtype:
        raise InvalidArgumentError(
            f"Trying to share variable {full}, but specified dtype {as_dtype(dtype).name} and found dtype "
            f"{variable.dtype.name}. Originally defined at:\n  {line}"
        )
    return variable


def create_variable(
    full: str,
    defaults: VariableDefaults,
    shape: Any,
    dtype: Any,
    initializer: Any,
    trainable: bool | None,
    collections: Any,
    constraint: Any,
) -> Any:
    """A new variable of the full name ``full``; see :func:`get_variable` for the arguments.

    Raises:
        InvalidArgumentError: it has no static shape, or a constant as its initializer and a shape.
    """
    value_dtype = defaults.dtype if dtype is None else as_dtype(dtype)
    first = defaults.initializer if initializer is None else initializer
    if first is None:
        first = GlorotUniform() if value_dtype.is_inexact and not value_dtype.is_complex else Zeros()
    if isinstance(first, type):
        first = first()
    sizes = None if shape is None else as_shape(shape)
    if not callable(first):
        if sizes is not None:
            raise InvalidArgumentError(
                f"If initializer is a constant, do not specify shape: variable {full}."
            )
        value, value_dtype = first, dtype
    elif sizes is None or not sizes.is_static:
        raise InvalidArgumentError(
            f"Shape of a new variable ({full}) must be fully defined, but instead was "
            f"{'not given' if sizes is None else sizes}."
        )
    else:
        free_block = dispatch.current().no_control_dependencies()
        with free_block, name_scope(""), name_scope(f"{full}/Initializer"):
            value = first(tuple(sizes), dtype=value_dtype)

    with name_scope(""):
        return VariableV1(
            value,
            trainable,
            collections,
            name=full,
            dtype=value_dtype,
            constraint=defaults.constraint if constraint is None else constraint,
        )
