"""New arrays: from values, from a shape, from a range, from other libraries' memory."""

from __future__ import annotations

import array
import operator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.array_api.array import Array, tensor_of
from dualflow.core import dispatch
from dualflow.core.convert import as_array
from dualflow.core.device_names import check_device
from dualflow.core.dispatch import AbstractComposite, AbstractTensor, AbstractVariable
from dualflow.core.dtypes import DType, as_dtype, complex128, float64, int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.tracebacks import make_entries
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.ops.broadcasting import broadcast_like, broadcast_to
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.positions import range as positions
from dualflow.ops.record import holds_tensors
from dualflow.ops.static import static_shape, static_value
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import AnyArray, DTypeLike, ShapeLike, SupportsDLPack, TensorLike

_ARRAYS: Final = (AbstractComposite, AbstractTensor, AbstractVariable)


def asarray(
    obj: TensorLike, /, *, dtype: DTypeLike | None = None, device: str | None = None, copy: bool | None = None
) -> Array:
    """``obj`` as an array.

    Args:
        obj: an array, a tensor, a variable (whose value is read), an array of NumPy's or another library's, a
            Python number, or nested lists of these.
        dtype: by default an array's own; int64, float64 and complex128 for Python's numbers.
        device: the CPU, which is the only device.
        copy: True for a result whose assignments don't change ``obj``; False for one that shares them.
            By default an array of the right dtype is returned as it is. The elements themselves are never
            written to, so that copies of arrays and tensors cost nothing.

    Returns:
        An array with the shape of ``obj``, and the dtype.

    Raises:
        InvalidArgumentError: ``copy=False`` where there must be a copy, rows of different lengths, an integer
            that the dtype can't hold, or another device.
        DTypeError: an element is no number, or is of a higher kind than ``dtype``.

    >>> import dualflow.array_api as xp
    >>> xp.asarray([[1, 2], [3, 4]])
    Array([[1, 2],
           [3, 4]], dtype=int64)
    """
    check_device(device)
    target = None if dtype is None else as_dtype(dtype)
    if type(obj) is Array and (target is None or target is obj.dtype):
        return Array(obj.tensor) if copy else obj
    if copy is False and not isinstance(obj, AbstractTensor):
        raise InvalidArgumentError(
            f"A value of type {type(obj).__name__} becomes an array only by a copy; leave copy=False out."
        )
    if isinstance(obj, _ARRAYS):
        return Array(_converted(convert_to_tensor(obj), target))
    if isinstance(obj, list | tuple) and holds_tensors(obj):
        return Array(_converted(convert_to_tensor(_tensors_in_lists(obj)), target))
    return Array(dispatch.current().constant(_values(obj, target)))


def _converted(tensor: Tensor, dtype: DType | None) -> Tensor:
    return tensor if dtype is None or tensor.dtype is dtype else cast(tensor, dtype)


def _tensors_in_lists(rows: Any) -> Any:
    """Nested lists with tensors for arrays and Python numbers; numbers get the default dtypes."""
    if isinstance(rows, list | tuple):
        return [_tensors_in_lists(row) for row in rows]
    return asarray(rows).tensor


def _values(obj: Any, dtype: DType | None) -> np.ndarray[Any, Any]:
    """``obj``, which holds no tensors, as a NumPy array of ``dtype``, or of the default dtype of its kind."""
    if isinstance(obj, memoryview | bytearray | array.array):
        obj = np.asarray(obj)  # whose elements have a dtype
    if dtype is not None:
        return as_array(obj, dtype)
    values = as_array(obj)
    if isinstance(obj, np.ndarray | np.generic) or hasattr(obj, "__array__"):
        return values
    default = _DEFAULTS.get(values.dtype.kind)
    return values if default is None else as_array(obj, default)


_DEFAULTS = {"i": int64, "u": int64, "f": float64, "c": complex128}


def from_dlpack(x: SupportsDLPack, /, *, device: str | None = None, copy: bool | None = None) -> Array:
    """The elements of another library's array, by the DLPack protocol.

    Args:
        x: an object with ``__dlpack__`` and ``__dlpack_device__``.
        device: the CPU, which is the only device.
        copy: True for memory of its own; False to share the memory with ``x``, which must not be written to
            afterwards. By default a copy is made where the memory can be written to.

    Returns:
        An array with the shape and dtype of ``x``.

    Raises:
        BufferError: ``copy=False`` where ``x`` has to be copied.
        InvalidArgumentError: the device is not the CPU.

    >>> import dualflow.array_api as xp, numpy as np
    >>> xp.from_dlpack(np.arange(3.0))
    Array([0., 1., 2.], dtype=float64)
    """
    check_device(device)
    if type(x) is Array and not copy:
        return Array(x.tensor)
    values = np.from_dlpack(x, device="cpu" if device is not None else None, copy=copy)
    if copy is None and values.flags.writeable:
        values = values.copy()
    return Array(dispatch.current().constant(values))


# Of one value


def _filled(shape: Any, value: Any, dtype: DType) -> Array:
    sizes = static_shape(shape)
    return Array(broadcast_to(dispatch.current().constant(np.array(value, dtype.dtype)), sizes))


def _filled_like(x: Any, value: Any, dtype: Any, device: Any) -> Array:
    check_device(device)
    tensor = tensor_of(x)
    target = dtype_or_default(dtype, tensor.dtype)
    if tensor.shape.is_static:
        return _filled(tensor.shape, value, target)
    return Array(broadcast_like(dispatch.current().constant(np.array(value, target.dtype)), tensor))


def _number_tensor(value: Any, dtype: Any, device: Any, function: str) -> Tensor:
    """The scalar tensor with which :func:`full` and :func:`full_like` fill their results."""
    tensor = asarray(value, dtype=dtype, device=device).tensor
    if tensor.shape:
        raise InvalidArgumentError(
            f"{function} takes one number, not a value of shape {tensor.shape}; use broadcast_to."
        )
    return tensor


def dtype_or_default(dtype: DTypeLike | None, default: DType) -> DType:
    return default if dtype is None else as_dtype(dtype)


def zeros(shape: ShapeLike, *, dtype: DTypeLike | None = None, device: str | None = None) -> Array:
    """Zeros of a shape, float64 by default.

    Args:
        shape: the sizes, an integer or a tuple of them.
        dtype: the dtype; float64 by default.

    Returns:
        An array of the shape and dtype.

    Raises:
        InvalidArgumentError: a size is negative.

    >>> import dualflow.array_api as xp
    >>> xp.zeros((2, 2), dtype=xp.int8).tolist()
    [[0, 0], [0, 0]]
    """
    check_device(device)
    return _filled(shape, 0, dtype_or_default(dtype, float64))


def ones(shape: ShapeLike, *, dtype: DTypeLike | None = None, device: str | None = None) -> Array:
    """Ones of a shape, float64 by default.

    Args:
        shape: the sizes, an integer or a tuple of them.
        dtype: the dtype; float64 by default.

    Returns:
        An array of the shape and dtype.

    Raises:
        InvalidArgumentError: a size is negative.

    >>> import dualflow.array_api as xp
    >>> xp.ones(3).tolist()
    [1.0, 1.0, 1.0]
    """
    check_device(device)
    return _filled(shape, 1, dtype_or_default(dtype, float64))


def empty(shape: ShapeLike, *, dtype: DTypeLike | None = None, device: str | None = None) -> Array:
    """Zeros: arrays have no uninitialized elements.

    Args:
        shape: the sizes, an integer or a tuple of them.
        dtype: the dtype; float64 by default.

    Returns:
        An array of the shape and dtype.

    Raises:
        InvalidArgumentError: a size is negative.

    >>> import dualflow.array_api as xp
    >>> xp.empty((2, 3)).shape
    (2, 3)
    """
    return zeros(shape, dtype=dtype, device=device)


def full(
    shape: ShapeLike,
    fill_value: AnyArray | complex,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Array:
    """An array of a shape whose every element is ``fill_value``.

    Args:
        shape: the sizes, or one of them.
        fill_value: a Python number, or an array without axes.
        dtype: by default that of :func:`asarray` of the value.
        device: the CPU, which is the only device.

    Returns:
        An array of the shape and dtype.

    Raises:
        InvalidArgumentError: a size is negative, the value has axes, or the device is not the CPU.
        DTypeError: a value that ``dtype`` can't hold.

    >>> import dualflow.array_api as xp
    >>> xp.full(2, 7).tolist()
    [7, 7]
    """
    return Array(broadcast_to(_number_tensor(fill_value, dtype, device, "full"), static_shape(shape)))


def zeros_like(x: AnyArray, /, *, dtype: DTypeLike | None = None, device: str | None = None) -> Array:
    """Zeros of the shape and dtype of ``x``.

    Args:
        dtype: the dtype; that of ``x`` by default.

    Returns:
        An array of the shape and dtype.

    Raises:
        InvalidArgumentError: the device is not the CPU.

    >>> import dualflow.array_api as xp
    >>> xp.zeros_like(xp.asarray([1, 2])).tolist()
    [0, 0]
    """
    return _filled_like(x, 0, dtype, device)


def ones_like(x: AnyArray, /, *, dtype: DTypeLike | None = None, device: str | None = None) -> Array:
    """Ones of the shape and dtype of ``x``.

    Args:
        dtype: the dtype; that of ``x`` by default.

    Returns:
        An array of the shape and dtype.

    Raises:
        InvalidArgumentError: the device is not the CPU.

    >>> import dualflow.array_api as xp
    >>> xp.ones_like(xp.asarray([5, 6]), dtype=xp.float32).tolist()
    [1.0, 1.0]
    """
    return _filled_like(x, 1, dtype, device)


def empty_like(x: AnyArray, /, *, dtype: DTypeLike | None = None, device: str | None = None) -> Array:
    """Zeros of the shape and dtype of ``x``: arrays have no uninitialized elements.

    Args:
        dtype: the dtype; that of ``x`` by default.

    Returns:
        An array of the shape and dtype.

    Raises:
        InvalidArgumentError: the device is not the CPU.

    >>> import dualflow.array_api as xp
    >>> xp.empty_like(xp.ones((2, 3))).shape
    (2, 3)
    """
    return _filled_like(x, 0, dtype, device)


def full_like(
    x: AnyArray,
    /,
    fill_value: AnyArray | complex,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Array:
    """An array of the shape and dtype of ``x``, filled with a number.

    Args:
        fill_value: a number, or an array without axes.
        dtype: the dtype; that of ``x`` by default.

    Returns:
        An array of the shape and dtype.

    Raises:
        DTypeError: the dtype can't hold the number.
        InvalidArgumentError: the device is not the CPU, or a value with axes.

    >>> import dualflow.array_api as xp
    >>> xp.full_like(xp.asarray([1, 2]), 9).tolist()
    [9, 9]
    """
    tensor = tensor_of(x)
    value = _number_tensor(fill_value, dtype_or_default(dtype, tensor.dtype), device, "full_like")
    return Array(broadcast_like(value, tensor))


# Of positions


def arange(
    start: AnyArray | float,
    /,
    stop: AnyArray | float | None = None,
    step: AnyArray | float = 1,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Array:
    """``start``, ``start + step``, ... up to and without ``stop``; ``arange(n)`` starts at 0.

    Args:
        start: the first number, or ``stop`` if that is not given; inside a traced function these may be
            arrays whose value is known at run time only.
        stop: where to end.
        step: the distance of two numbers; 1 by default.
        dtype: int64, or float64 if one of the three is a float.
        device: the CPU, which is the only device.

    Returns:
        A vector of ``ceil((stop - start) / step)`` elements, of the dtype.

    Raises:
        InvalidArgumentError: ``step`` is 0, or the device is not the CPU.

    >>> import dualflow.array_api as xp
    >>> xp.arange(1, 10, 3).tolist()
    [1, 4, 7]
    """
    check_device(device)
    first, last = (0, start) if stop is None else (start, stop)
    if any(isinstance(x, _ARRAYS) and static_value(x) is None for x in (first, last, step)):
        begin, end, increment = (x if isinstance(x, _ARRAYS) else asarray(x) for x in (first, last, step))
        return Array(_converted(positions(begin, end, increment), None if dtype is None else as_dtype(dtype)))
    numbers = [_number(x) for x in (first, last, step)]
    if numbers[2] == 0:
        raise InvalidArgumentError("arange's step can't be 0.")
    default = float64 if any(isinstance(x, float) for x in numbers) else int64
    return Array(
        dispatch.current().constant(np.arange(*numbers, dtype=dtype_or_default(dtype, default).dtype))
    )


def _number(x: Any) -> Any:
    """``x`` as a Python number: itself, or the only element of an array."""
    if isinstance(x, (*_ARRAYS, np.ndarray, np.generic)):
        return tensor_of(x).item()
    return x


def linspace(
    start: AnyArray | complex,
    stop: AnyArray | complex,
    /,
    num: int,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    endpoint: bool = True,
) -> Array:
    """``num`` numbers at equal distances from ``start`` to ``stop``.

    Args:
        start: the first number.
        stop: the last number, or the one that would follow it.
        num: how many numbers, 0 or more.
        dtype: float64 by default, complex128 for complex numbers.
        device: the CPU, which is the only device.
        endpoint: whether ``stop`` is the last number.

    Returns:
        A vector of ``num`` elements, of the dtype.

    Raises:
        InvalidArgumentError: ``num`` is negative, or the device is not the CPU.
        DTypeError: a dtype of integers.

    >>> import dualflow.array_api as xp
    >>> xp.linspace(0, 1, 5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    check_device(device)
    first, last, count = _number(start), _number(stop), operator.index(num)
    if count < 0:
        raise InvalidArgumentError(f"linspace makes 0 numbers or more, not {count}.")
    is_complex = isinstance(first, complex) or isinstance(last, complex)
    target = dtype_or_default(dtype, complex128 if is_complex else float64)
    if not target.is_inexact:
        raise DTypeError(f"linspace makes floats, not {target.name}; convert its result with astype.")
    numbers = np.linspace(first, last, count, endpoint=endpoint, dtype=target.dtype)
    return Array(dispatch.current().constant(numbers))


complete_docstrings(
    globals(),
    "is no array",
    x="an array of any shape.",
    device="the CPU, which is the only device; None by default.",
)
make_entries(globals())
