"""NumPy's values as tensors: dtypes are NumPy's defaults, and promote as in NumPy 2.

A Python number takes the dtype of the tensor or array that it is combined with, unless its kind is a higher
one; a NumPy scalar promotes as an array does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Final, TypeVar

import numpy as np

from dualflow.core.convert import as_array
from dualflow.core.dispatch import AbstractTensor, AbstractVariable
from dualflow.core.dtypes import DType, as_dtype, int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import broadcast, normalize_axes, normalize_axis
from dualflow.ops.arithmetic import maximum
from dualflow.ops.arrangement import reshape
from dualflow.ops.broadcasting import broadcast_like, broadcast_to
from dualflow.ops.checks import required
from dualflow.ops.comparison import not_equal
from dualflow.ops.complex_numbers import conj
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.joining import stack
from dualflow.ops.record import holds_tensors
from dualflow.ops.shapes import size as count
from dualflow.ops.static import ints
from dualflow.ops.tensor import Tensor
from dualflow.ops.tensor_sizes import axis_sizes

Value = TypeVar("Value")
"""The type of the items of a named tuple of results: tensors here, arrays in the Array API."""
_WEAK: Final = (int, float, complex)
_LISTS: Final = (list, tuple)
_DEFAULTS: Final[dict[Any, str]] = {int: "int64", float: "float64", complex: "complex128", bool: "bool"}


def numpy_dtype(dtype: Any) -> np.dtype[Any]:
    """The NumPy dtype of ``dtype``; Python's types and names such as "float" are 64 bits wide.

    Raises:
        DTypeError: it is no dtype that tensors can have.
    """
    if isinstance(dtype, DType):
        return dtype.dtype
    if isinstance(dtype, type) and dtype in _DEFAULTS:
        return np.dtype(_DEFAULTS[dtype])
    try:
        return as_dtype(np.dtype(dtype)).dtype
    except TypeError as error:
        raise DTypeError(f"{dtype!r} is not a dtype that tensors can have: {error}.") from None


def tensor(x: Any, dtype: Any = None) -> Tensor:
    """``x`` as a tensor of ``dtype``; of NumPy's dtype for it by default."""
    result: Any
    if isinstance(x, AbstractTensor):
        result = x
    elif isinstance(x, AbstractVariable):
        result = convert_to_tensor(x)
    elif isinstance(x, _LISTS) and holds_tensors(list(x)):
        result = stack(promote_together(*x))
    else:
        result = convert_to_tensor(_array(x))
    return result if dtype is None else to(result, dtype)


def _array(x: Any) -> np.ndarray[Any, Any]:
    """``x``, which holds no tensor, in NumPy's dtype."""
    try:
        array = np.asarray(x)
    except ValueError:
        return as_array(x)  # raises an error with the reason
    return as_array(x if array.dtype.kind not in "biufc" else array)


def to(x: Any, dtype: Any) -> Tensor:
    """``x`` cast to ``dtype``; ``x`` itself if it has that dtype."""
    target = dtype if isinstance(dtype, DType) else as_dtype(numpy_dtype(dtype))
    if x.dtype is target:
        return x
    if target.is_bool and x.dtype.is_complex:
        return not_equal(x, 0)  # a cast keeps the real part
    return cast(x, target)


def result_type(*values: Any) -> np.dtype[Any]:
    """The common dtype of values."""
    return np.result_type(*[x if type(x) in _WEAK else tensor(x).dtype.dtype for x in values])


def promote_together(*values: Any, dtype: Any = None) -> list[Tensor]:
    """The values as tensors of ``dtype``, or of their common dtype.

    Raises:
        InvalidArgumentError: a Python integer is outside of the dtype.
    """
    tensors = [x if type(x) in _WEAK else tensor(x) for x in values]
    dtypes = {None if type(x) in _WEAK else x.dtype for x in tensors}
    if not values or (dtype is None and len(dtypes) == 1 and None not in dtypes):
        return tensors
    target = numpy_dtype(dtype) if dtype is not None else result_type(*tensors)
    return [number(x, target) if type(x) in _WEAK else to(x, target) for x in tensors]


def number(x: Any, dtype: np.dtype[Any]) -> Tensor:
    """A Python number as a tensor of ``dtype``.

    Raises:
        InvalidArgumentError: an integer that is outside of it.
    """
    try:
        return convert_to_tensor(np.asarray(x, dtype))
    except OverflowError:
        raise InvalidArgumentError(
            f"{x} is outside of {dtype.name}, the dtype of the other operand; cast that first."
        ) from None


def numpy_result(call: Callable[[], Any], remedy: str) -> Any:
    """The result of ``call``, a call of NumPy; its errors are raised as dualflow's, followed by ``remedy``.

    Raises:
        InvalidArgumentError: NumPy refuses a value.
        DTypeError: NumPy refuses the kind of object.
    """
    try:
        return call()
    except (ValueError, ArithmeticError, BufferError, RuntimeError) as error:
        raise InvalidArgumentError(f"{str(error).rstrip('.')}; {remedy}.") from error
    except TypeError as error:
        raise DTypeError(f"{str(error).rstrip('.')}; {remedy}.") from error


def inexact(x: Any, dtype: Any = None) -> Tensor:
    """``x`` as floats or complex numbers: in ``dtype``, in its own, or in float64 for integers and bools."""
    result = tensor(x, dtype)
    return result if result.dtype.is_inexact else to(result, np.float64)


def as_matrices(a: Any, square: bool = False) -> Any:
    """``a`` as matrices of floats or complex numbers.

    Raises:
        InvalidArgumentError: fewer than two axes, or matrices that are not square where they have to be.
        DTypeError: float16, for which there is no LAPACK.
    """
    x = inexact(a)
    if x.dtype.is_floating and x.dtype.size == 2:
        raise DTypeError("Matrices are decomposed in float32 or more, not float16; convert them with astype.")
    if len(x.shape) < 2 or (square and x.shape[-1] != x.shape[-2]):
        kind = "square matrices" if square else "matrices"
        raise InvalidArgumentError(f"{kind} are required, not shape {x.shape}.")
    return x


def adjoint(x: Any) -> Any:
    """The conjugate transposes of matrices."""
    return conj(x.mT) if x.dtype.is_complex else x.mT


def with_rank(ary: Any, rank: int, name: str) -> Tensor:
    """``ary`` as a tensor of ``rank`` axes or more, for the function ``name``.

    Raises:
        InvalidArgumentError: it has fewer axes.
    """
    x = tensor(ary)
    if len(x.shape) < rank:
        raise InvalidArgumentError(f"{name} takes {rank} axes or more, not shape {x.shape}.")
    return x


def default_rtol(x: Any) -> Any:
    """The larger size of the matrices ``x`` times the ``eps`` of their dtype: a float, or a scalar tensor."""
    rows, columns = sizes(x)[-2:]
    eps = float(np.finfo(x.dtype.dtype).eps)
    if type(rows) is type(columns) is int:
        return max(rows, columns) * eps
    return to(maximum(rows, columns), x.dtype.real_dtype) * eps


def axes_in_order(axis: Any, rank: int, what: str = "axis") -> tuple[int, ...]:
    """The axes of ``axis``, counted from 0, in the same order.

    Raises:
        InvalidArgumentError: an axis occurs twice, or is out of range.
    """
    axes = ints(axis, what)
    normalize_axes(axes, rank)
    return tuple(normalize_axis(a, rank) for a in axes)


def sizes(x: Any) -> tuple[Any, ...]:
    """The sizes of a tensor: Python ints, and scalar tensors where they are known at run time only."""
    return tuple(axis_sizes(x, int64))


def with_required_size(x: Any, axes: Sequence[int], ok: Any, message: str) -> Any:
    """``x``, which has one size along ``axes``, as required, if the bool scalar ``ok`` is true.

    The size is checked, not the elements: of an empty tensor none would be read.

    Raises:
        InvalidArgumentError: ``ok`` is false when the result is computed.
    """
    new_sizes = list(sizes(x))
    size = required(new_sizes[axes[0]], ok, message)
    for axis in axes:
        new_sizes[axis] = size
    return reshape(x, new_sizes)


def has_axes(x: Any) -> bool:
    """Whether ``x`` is an array or a tensor of one axis or more."""
    return hasattr(x, "shape") and len(x.shape) > 0


def length(x: Any) -> Any:
    """The number of elements: a Python int, or a scalar tensor where it is known at run time only."""
    return x.size if x.size is not None else count(x, np.int64)


def flat(x: Any) -> Tensor:
    """The elements of ``x`` in one axis."""
    return x if len(x.shape) == 1 else reshape(x, [-1])


def broadcast_together(*values: Any) -> list[Tensor]:
    """Tensors broadcast to their common shape."""
    target = broadcast([x.shape for x in values])
    if target.is_static:
        return [x if x.shape == target else broadcast_to(x, target) for x in values]
    return [reduce(broadcast_like, [y for y in values if y is not x], x) for x in values]


def reject_unsupported(name: str, **options: Any) -> None:
    """Raise an error for options of ``name`` that tensors have no equivalent of.

    Raises:
        DTypeError: an option is neither None nor False.
    """
    for option, value in options.items():
        if value is not None and value is not False:
            raise DTypeError(f"df.numpy.{name} takes no {option}=: {_WHY.get(option, 'leave it out')}.")


_WHY: Final = {
    "out": "tensors don't change; assign the result to a name",
    "order": "tensors have rows in C's order; leave it out",
    "subok": "there are no subclasses; leave it out",
    "like": "results are tensors; leave it out",
    "overwrite_input": "tensors don't change; leave it out",
}
