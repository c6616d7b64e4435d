"""Conversion of Python values and NumPy arrays to arrays of tensors' dtypes.

Python numbers have default dtypes (int32, float32; int64 if int32 is too narrow), NumPy's keep their own.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from dualflow.core.dtypes import DType, as_dtype, complex128, float32, holds_text, int32, int64, is_narrow
from dualflow.core.errors import (
    DTypeError,
    InvalidArgumentError,
    ResourceExhaustedError,
    UnsupportedValueError,
)
from dualflow.core.locks import imported
from dualflow.core.shape import Shape

Array = np.ndarray[Any, Any]
_INT32: Final = np.iinfo(np.int32)
_SCALARS: Final = (bool, int, float, complex)
_STRINGS: Final = "dualflow.core.string_arrays"
_NO_STRINGS: Final = "Cannot convert {} to a tensor of dtype string; df.as_string makes strings of numbers."


def as_array(value: Any, dtype: DType | None = None) -> Array:
    """``value`` as an array that shares no memory with it.

    Args:
        value: a Python number or string, a NumPy array or scalar, an object that NumPy converts to an array,
            or lists, ranges and other sequences of numbers or strings.
        dtype: the dtype of the result; Python's numbers must fit its kind, arrays are converted by
            ``astype``.

    Raises:
        DTypeError: None, sets, other objects, or numbers of another kind than ``dtype``; strings for a dtype
            of numbers, and numbers for strings.
        InvalidArgumentError: ragged lists, Python's integers outside ``dtype`` (outside int64 where none is
            given), or an array with masked elements.

    >>> as_array([1, 2]).dtype, as_array([1.5]).dtype, as_array(np.float64(1)).dtype
    (dtype('int32'), dtype('float32'), dtype('float64'))
    """
    if isinstance(value, np.ndarray | np.generic):
        return _from_numpy(value, dtype)
    if type(value) in _SCALARS:
        array = np.array(value)
        return _from_python(_of_integers(value) if array.dtype == object else array, value, [value], dtype)
    if not isinstance(value, list | tuple):
        if hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
            return _from_numpy(np.asarray(value), dtype)
        value = _listed(value)
    if isinstance(_first_element(value), str | bytes):
        return _of_strings(value, dtype, imported(_STRINGS).from_list)
    if not isinstance(value, list | tuple | numbers.Number):
        raise UnsupportedValueError(_unsuitable(value))
    return _from_list(value, dtype)


def as_result(value: Any) -> Array:
    """A kernel's result as an array: NumPy's functions return scalars for arrays without axes."""
    return np.asarray(value, object if type(value) is bytes else None)


def zero_array(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An array of zeros, or of empty strings for the dtype of strings."""
    return np.full(shape, b"", object) if dtype.kind == "O" else np.zeros(shape, dtype)


def _first_element(value: Any) -> Any:
    """The first element of nested lists, which decides whether they are lists of strings."""
    while isinstance(value, list | tuple) and value:
        value = value[0]
    return value


def _of_strings(value: Any, dtype: DType | None, convert: Callable[[Any], Array]) -> Array:
    """Strings as an array of bytes; an error if ``dtype`` is numeric."""
    if dtype is not None and not dtype.is_string:
        raise DTypeError(
            f"Cannot convert {short_repr(value)} to a tensor of dtype {dtype.name}; df.strings.to_number "
            "makes numbers of strings."
        )
    return convert(value)


def _listed(value: Any) -> Any:
    """A sequence other than text as a list; other values unchanged."""
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        return value
    return value.tolist() if hasattr(value, "tolist") else list(value)


def reject_mask(value: Any) -> None:
    """Raise for an array with masked elements: NumPy would drop the mask silently.

    Raises:
        InvalidArgumentError: ``value`` is an array with masked elements.
    """
    if type(value) is np.ndarray or not isinstance(value, np.ndarray):
        return
    if np.any(getattr(value, "mask", False)):
        raise InvalidArgumentError(
            "A masked array has no values at its masked elements, and tensors have no mask: "
            f"{short_repr(value)}. Give x.filled(value), and the mask as a tensor of its own, "
            "df.constant(np.ma.getmaskarray(x))."
        )


def _from_numpy(value: Any, dtype: DType | None) -> Array:
    reject_mask(value)
    array = np.asarray(value)
    if array.dtype.kind not in "biufc" and not is_narrow(array.dtype):
        if holds_text(array.dtype):
            return _of_strings(array, dtype, imported(_STRINGS).from_numpy)
        raise DTypeError(
            f"NumPy arrays of dtype {array.dtype} can't become tensors; convert them to numbers first."
        )
    target = dtype.dtype if dtype is not None else as_dtype(array.dtype).dtype
    if array.dtype is target:
        return np.array(array)
    if dtype is not None and dtype.is_string:
        raise DTypeError(_NO_STRINGS.format(short_repr(value)))
    with np.errstate(all="ignore"):
        return np.array(array, dtype=target)


def _from_list(value: Any, dtype: DType | None) -> Array:
    try:
        array = np.array(value)
    except ValueError as error:
        if "inhomogeneous" in str(error):
            raise InvalidArgumentError(
                f"Rows of different lengths can't make one tensor: {short_repr(value)}."
            ) from None
        raise InvalidArgumentError(
            f"{short_repr(value)} can't become a tensor: {error}; give numbers."
        ) from None
    except MemoryError:
        raise ResourceExhaustedError(
            f"{short_repr(value)} is too large for memory; make tensors of its parts."
        ) from None
    leaves = _leaves(value)
    if holds_text(array.dtype) and leaves and isinstance(leaves[0], np.generic):  # arrays of strings
        return _of_strings(value, dtype, imported(_STRINGS).from_list)
    if leaves and array.dtype.kind in "fO" and all(isinstance(x, int) for x in leaves):
        array = _of_integers(value)
    if array.dtype.kind not in "biufc":
        odd = next((x for x in leaves if not isinstance(x, numbers.Number | np.generic)), value)
        raise UnsupportedValueError(_unsuitable(odd))
    return _from_python(array, value, leaves, dtype)


def _of_integers(value: Any) -> Array:
    """An array of integers of which some are outside int64."""
    try:
        return np.array(value, np.uint64)
    except OverflowError:
        raise InvalidArgumentError(
            f"An integer in {short_repr(value)} is outside int64 and uint64; give floats."
        ) from None


def _leaves(value: Any) -> list[Any]:
    leaves, pending = [], [value]
    while pending:
        item = pending.pop()
        if isinstance(item, list | tuple):
            pending.extend(reversed(item))
        elif isinstance(item, np.ndarray):
            reject_mask(item)
            leaves.extend([item.dtype.type(0)] if item.size else [])
        else:
            leaves.append(item)
    return leaves


def _from_python(array: Array, value: Any, leaves: list[Any], dtype: DType | None) -> Array:
    if dtype is not None and dtype.is_string:
        if leaves:
            raise DTypeError(_NO_STRINGS.format(short_repr(value)))
        return array.astype(object)
    if dtype is None:
        default = int32 if isinstance(value, Shape) and not value else _default(array, leaves)
        return array if default is None else array.astype(default.dtype)
    kinds = {"b": "b", "i": "iufcb", "u": "iufcb", "f": "fc", "c": "c"}
    numpy_leaf = any(isinstance(x, np.generic) for x in leaves)
    allowed = dtype.kind in kinds[array.dtype.kind] or (array.dtype.kind == "b" and dtype.kind in "iuf")
    if leaves and not allowed and not numpy_leaf:
        raise DTypeError(
            f"Can't make a tensor of dtype {dtype.name} from {short_repr(value)}; cast it with df.cast."
        )
    if array.size and array.dtype.kind in "iu" and dtype.kind in "iu" and not numpy_leaf:
        _check_range(array, dtype)
    with np.errstate(all="ignore"):
        return array.astype(dtype.dtype)


def _check_range(array: Array, dtype: DType) -> None:
    """Raise if Python integers don't fit ``dtype``."""
    limits = np.iinfo(dtype.dtype)
    for number in (int(array.min()), int(array.max())):
        if not limits.min <= number <= limits.max:
            raise InvalidArgumentError(
                f"The integer {number} is outside {dtype.name}, which holds {limits.min} to {limits.max}; "
                "name a wider dtype, or wrap it around with df.cast."
            )


def _default(array: Array, leaves: list[Any]) -> DType | None:
    """The default dtype for Python numbers; None to keep the array's own."""
    kind = array.dtype.kind
    if not leaves:
        return float32
    if kind == "f":
        floats = (
            x for x in leaves if isinstance(x, np.floating) and not isinstance(x, np.float16 | np.float32)
        )
        wide = any(type(x) is np.float64 for x in floats)
        return None if wide or all(isinstance(x, np.generic) for x in leaves) else float32
    if kind in "iu":
        if all(isinstance(x, np.generic) for x in leaves) and array.dtype != np.int64:
            return None
        if kind == "u":
            raise InvalidArgumentError("An integer is outside int64; name its dtype, uint64.")
        small = array.size == 0 or (array.min() >= _INT32.min and array.max() <= _INT32.max)
        return int32 if small else int64
    return complex128 if kind == "c" and not any(isinstance(x, np.generic) for x in leaves) else None


def _unsuitable(value: Any) -> str:
    if value is None:
        return "None can't become a tensor; give a number or a tensor."
    if isinstance(value, str | bytes):
        return f"Numbers and strings can't make one tensor: {short_repr(value)} stands among numbers."
    return f"An object of type {type(value).__name__} can't become a tensor: {short_repr(value)}."


def short_repr(value: Any) -> str:
    """The ``repr`` of a value for an error, cut to 80 characters."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
