"""Dtypes: conversion, promotion, kinds and ranges."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.array_api.array import Array, tensor_of
from dualflow.core.device_names import check_device
from dualflow.core.dispatch import AbstractComposite, AbstractTensor, AbstractVariable
from dualflow.core.dtypes import ALL, DType, as_dtype, complex64, complex128, float64, int64, promote
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.tracebacks import make_entries
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.ops.conversion import cast
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import AnyArray, DTypeLike

_ARRAYS: Final = (AbstractComposite, AbstractTensor, AbstractVariable, np.ndarray, np.generic)
_SCALARS: Final = {bool: "b", int: "i", float: "f", complex: "c"}
_RANK: Final = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
KINDS: Final = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}
"""The standard's names of kinds of dtypes, each with NumPy's letters."""


@dataclass(frozen=True, slots=True)
class FloatRange:
    """The result of :func:`finfo`: the limits of a floating dtype; of a complex one, of its parts.

    Attributes:
        bits: of one number.
        eps: the distance from 1 to the next number.
        max: the largest number.
        min: the smallest number.
        smallest_normal: the smallest positive number of full precision.
        dtype: the real dtype.
    """

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


@dataclass(frozen=True, slots=True)
class IntegerRange:
    """The result of :func:`iinfo`: the limits of an integer dtype.

    Attributes:
        bits: of one number.
        max: the largest number.
        min: the smallest number.
        dtype: the dtype.
    """

    bits: int
    max: int
    min: int
    dtype: DType


def astype(x: AnyArray, dtype: DTypeLike, /, *, copy: bool = True, device: str | None = None) -> Array:
    """``x`` in another dtype.

    Floats become integers by rounding to zero; nan becomes 0, and a number out of range the nearest
    integer that the dtype holds.

    Args:
        x: an array.
        dtype: the dtype to convert to.
        copy: False to return ``x`` itself where it has the dtype.
        device: the CPU, which is the only device.

    Returns:
        An array with the shape of ``x``, and the dtype.

    Raises:
        DTypeError: complex numbers that would lose their imaginary part; take :func:`real` first.
        InvalidArgumentError: the device is not the CPU.

    >>> import dualflow.array_api as xp
    >>> xp.astype(xp.asarray([1.7, -1.7]), xp.int32).tolist()
    [1, -1]
    """
    check_device(device)
    target, tensor = as_dtype(dtype), tensor_of(x)
    if tensor.dtype is target:
        return x if type(x) is Array and not copy else Array(tensor)
    if tensor.dtype.is_complex and not (target.is_complex or target.is_bool):
        raise DTypeError(
            f"{tensor.dtype.name} becomes {target.name} only without its imaginary part; use real(x)."
        )
    return Array(cast(tensor, target))


def can_cast(from_: AnyArray | DTypeLike, to: DTypeLike, /) -> bool:
    """Whether numbers of dtype ``from_`` (or of an array) promote to dtype ``to``.

    Args:
        from_: a dtype or an array.
        to: a dtype.

    Returns:
        A Python bool.

    Raises:
        DTypeError: an argument is no dtype.

    >>> import dualflow.array_api as xp
    >>> xp.can_cast(xp.int8, xp.int16), xp.can_cast(xp.float64, xp.float32)
    (True, False)
    """
    source, target = _dtype(from_), as_dtype(to)
    if source.is_integer and target.is_inexact:
        return True  # can_cast agrees with promotion: integers with floats give floats
    return bool(np.can_cast(source.dtype, target.dtype))


def _dtype(x: Any) -> DType:
    return as_dtype(x.dtype) if isinstance(x, _ARRAYS) else as_dtype(x)


def finfo(type: AnyArray | DTypeLike, /) -> FloatRange:
    """The limits of a floating dtype, or of an array's.

    Args:
        type: a floating or complex dtype, or an array of one.

    Returns:
        A :class:`FloatRange`.

    Raises:
        DTypeError: a dtype that is not floating.

    >>> import dualflow.array_api as xp
    >>> xp.finfo(xp.float32).bits, xp.finfo(xp.float64).eps
    (32, 2.220446049250313e-16)
    """
    dtype = _dtype(type)
    if not dtype.is_inexact:
        raise DTypeError(f"finfo takes floating dtypes, not {dtype.name}; use iinfo for integers.")
    info = np.finfo(dtype.dtype)
    eps, largest, lowest, normal = (float(x) for x in (info.eps, info.max, info.min, info.smallest_normal))
    return FloatRange(info.bits, eps, largest, lowest, normal, dtype.real)


def iinfo(type: AnyArray | DTypeLike, /) -> IntegerRange:
    """The limits of an integer dtype, or of an array's.

    Args:
        type: an integer dtype, or an array of one.

    Returns:
        An :class:`IntegerRange`.

    Raises:
        DTypeError: a dtype that is not of integers.

    >>> import dualflow.array_api as xp
    >>> xp.iinfo(xp.int8).min, xp.iinfo(xp.int8).max
    (-128, 127)
    """
    dtype = _dtype(type)
    if not dtype.is_integer:
        raise DTypeError(f"iinfo takes integer dtypes, not {dtype.name}; use finfo for floats.")
    return IntegerRange(8 * dtype.size, int(dtype.max), int(dtype.min), dtype)


def isdtype(dtype: DTypeLike, kind: DTypeLike | tuple[DTypeLike, ...]) -> bool:
    """Whether a dtype is of a kind.

    Args:
        dtype: the dtype.
        kind: a dtype, which it must be; the name of a kind: "bool", "signed integer", "unsigned integer",
            "integral", "real floating", "complex floating" or "numeric"; or a tuple of these, one of which
            must hold.

    Returns:
        A Python bool.

    Raises:
        InvalidArgumentError: the name is unknown.

    >>> import dualflow.array_api as xp
    >>> xp.isdtype(xp.int8, "integral"), xp.isdtype(xp.int8, (xp.bool, "real floating"))
    (True, False)
    """
    compared = as_dtype(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(compared, k) for k in kind)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise InvalidArgumentError(f"{kind!r} is no kind of dtypes; use one of {', '.join(KINDS)}.")
        return compared.kind in KINDS[kind]
    return compared is as_dtype(kind)


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The common dtype of arrays, dtypes and Python numbers.

    Python numbers adapt to dtypes of their own kind or a higher one. With dtypes of lower kinds they have the
    default dtypes int64, float64 and complex128; a complex number with real floats is complex of their
    precision.

    Args:
        *arrays_and_dtypes: arrays, dtypes and Python numbers, one at least.

    Returns:
        A dtype.

    Raises:
        InvalidArgumentError: there are no arguments.
        DTypeError: uint64 with a signed integer, which no integer dtype holds both of.

    >>> import dualflow.array_api as xp
    >>> xp.result_type(xp.int8, xp.uint8), xp.result_type(xp.float32, 1.5), xp.result_type(xp.float32, 1j)
    (tf.int16, tf.float32, tf.complex64)
    """
    if not arrays_and_dtypes:
        raise InvalidArgumentError("result_type takes one array or dtype, or more.")
    strong = [_dtype(x) for x in arrays_and_dtypes if type(x) not in _SCALARS]
    common = functools.reduce(promote, strong) if strong else None
    for kind in [_SCALARS[type(x)] for x in arrays_and_dtypes if type(x) in _SCALARS]:
        if common is None or _RANK[kind] > _RANK[common.kind]:
            common = _with_number(kind, common)
    assert common is not None, "there is an argument"
    return common


def promote_all(*arrays: Any) -> list[Tensor]:
    """The tensors of arrays, of which there are one or more, in their common dtype.

    Raises:
        InvalidArgumentError: there are no arrays.
    """
    tensors = [tensor_of(x) for x in arrays]
    if not tensors:
        raise InvalidArgumentError("A common dtype needs one array or more, but the list is empty.")
    dtype = functools.reduce(promote, [x.dtype for x in tensors])
    return [x if x.dtype is dtype else cast(x, dtype) for x in tensors]


def _with_number(kind: str, dtype: DType | None) -> DType:
    """The common dtype of a Python number and a dtype of a lower kind, or of the number alone."""
    if kind == "c" and dtype is not None and dtype.is_floating:
        return promote(dtype, complex64)
    return {"b": as_dtype(bool), "i": int64, "f": float64, "c": complex128}[kind]


DTYPES: Final = {t.name: t for t in ALL if t.name != "float16"}
"""The standard's dtypes by name."""


complete_docstrings(
    globals(),
    "is no array",
    x="an array of any shape.",
    device="the CPU, which is the only device; None by default.",
)
make_entries(globals())
