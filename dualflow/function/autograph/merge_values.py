"""The values of Python variables as outputs of branches and loop bodies."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import as_array, zero_array
from dualflow.core.dispatch import AbstractComposite, AbstractTensor, AbstractVariable
from dualflow.core.dtypes import DType, bool_, int32
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import UNKNOWN_RANK
from dualflow.core.spec import TensorSpec
from dualflow.function.autograph.assigned_variables import UNRETURNED, Unassigned
from dualflow.function.errors import here
from dualflow.function.tracing.symbolic_tensor import SymbolicTensor
from dualflow.function.tracing.tracer import Tracer
from dualflow.graph.ir import Value
from dualflow.ops.arrangement import reshape
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.static import python_shape

_NUMBERS: Final = (bool, int, float, complex)
_VALUES: Final = (AbstractTensor, AbstractVariable, *_NUMBERS, str, bytes, np.generic, np.ndarray)
_PLAIN: Final = frozenset({bool, int, str, bytes, type(None)})


def symbolic(x: Any) -> SymbolicTensor | None:
    """``x`` as a symbolic tensor: itself, or the value of a variable that a trace reads; None otherwise."""
    if type(x) is SymbolicTensor:
        return x
    if isinstance(x, AbstractVariable) and not dispatch.current().eager:
        tensor = dispatch.current().read(x)
        return tensor if type(tensor) is SymbolicTensor else None
    return None


def condition_value(x: Any) -> Any:
    """The value whose truth a condition tests: the tensor of a composite array, else ``x``."""
    return x.__as_tensor__() if isinstance(x, AbstractComposite) else x


def truth(x: Any, what: str) -> Any:
    """``x``, a scalar or of one element, as a scalar bool tensor; ``what`` names the statement in the error.

    Raises:
        InvalidArgumentError: an input has a size other than 1.
    """
    if isinstance(x, AbstractTensor) and x.shape and all(n is None or n == 1 for n in python_shape(x)):
        x = reshape(x, [])  # as TensorFlow; a dynamic size is checked at run time
    if isinstance(x, AbstractTensor) and x.shape:
        raise InvalidArgumentError(
            f"The condition of {what} has shape {python_shape(x)}, but must be a scalar; use "
            f"df.reduce_all or df.reduce_any.{here()}"
        )
    if not isinstance(x, AbstractTensor):
        return convert_to_tensor(bool(x))
    return x if x.dtype.is_bool else cast(x, bool_)


def as_index(condition: Any) -> Any:
    """A bool scalar as the index of a branch."""
    return cast(condition, int32)


def is_undefined(x: Any) -> bool:
    """Whether ``x`` is the placeholder of an unassigned variable."""
    return isinstance(x, Unassigned)


def is_unreturned(x: Any) -> bool:
    """Whether ``x`` is the placeholder for the result of a function that has not returned yet."""
    return x is UNRETURNED


def is_value(x: Any) -> bool:
    """Whether ``x`` can be a tensor."""
    return isinstance(x, _VALUES)


def is_same(a: Any, b: Any) -> bool:
    """Whether two values of a Python variable are the same, so that it need not be an output."""
    return a is b or (is_undefined(a) and is_undefined(b)) or (type(a) is type(b) and _equal(a, b))


def _equal(a: Any, b: Any) -> bool:
    if type(a) in (list, tuple):
        return len(a) == len(b) and all(map(is_same, a, b))
    return type(a) in _PLAIN and bool(a == b)


def spec_of(x: Any) -> TensorSpec:
    """The shape and dtype that ``x`` has as a tensor."""
    if not isinstance(x, AbstractTensor | AbstractVariable):
        x = as_array(x)
    return TensorSpec(x.shape, x.dtype)


def zeros(spec: TensorSpec) -> np.ndarray[Any, Any]:
    """An array of zeros, the value of a variable that is not assigned.

    Dynamic sizes are 1 in it: the check that the variable is assigned runs for each element.

    Raises:
        InvalidArgumentError: the rank is unknown.
    """
    if spec.shape is UNKNOWN_RANK:
        raise InvalidArgumentError(
            "A variable of unknown rank is assigned on some paths only; assign it before the loop or on all "
            f"paths.{here()}"
        )
    return zero_array(tuple([1 if d is None else d for d in spec.shape]), spec.dtype.dtype)


def adapts(x: Any, dtype: DType) -> bool:
    """Whether ``x`` is a Python number that can become a tensor of ``dtype``, without truncation."""
    if type(x) not in _NUMBERS or dtype.is_bool != (type(x) is bool):
        return False
    return type(x) in (bool, int) or dtype.is_complex or (type(x) is float and dtype.is_inexact)


def value_of(x: Any, dtype: DType | None, tracer: Tracer) -> Value:
    """``x`` as a value of the graph that ``tracer`` records; a Python number gets ``dtype``."""
    if isinstance(x, AbstractVariable):
        return tracer.read(x)._value
    if isinstance(x, AbstractTensor):
        return tracer.lift(x)._value
    return tracer.constant(as_array(x, dtype))._value
