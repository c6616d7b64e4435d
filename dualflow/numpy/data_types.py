"""Dtypes: their names, limits and promotion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from dualflow.core.dispatch import TENSORS
from dualflow.core.dtypes import DType, as_dtype
from dualflow.core.dtypes import bool_ as bool_
from dualflow.core.dtypes import complex64 as complex64
from dualflow.core.dtypes import complex128 as complex128
from dualflow.core.dtypes import float16 as float16
from dualflow.core.dtypes import float32 as float32
from dualflow.core.dtypes import float64 as float64
from dualflow.core.dtypes import int8 as int8
from dualflow.core.dtypes import int16 as int16
from dualflow.core.dtypes import int32 as int32
from dualflow.core.dtypes import int64 as int64
from dualflow.core.dtypes import uint8 as uint8
from dualflow.core.dtypes import uint16 as uint16
from dualflow.core.dtypes import uint32 as uint32
from dualflow.core.dtypes import uint64 as uint64
from dualflow.core.tracebacks import make_entries
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.operands import numpy_dtype, tensor
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, TensorLike

bool: Final = bool_
int_, uint, float_, complex_ = int64, uint64, float64, complex128
half, single, double, csingle, cdouble = float16, float32, float64, complex64, complex128
ndarray = Tensor


def dtype(dtype: DTypeLike) -> DType:
    """The dtype of a name, a NumPy dtype or a Python type; Python's types have 64 bits.

    Args:
        dtype: a dtype, its name, or ``bool``, ``int``, ``float`` or ``complex``.

    Returns:
        A :class:`dualflow.DType`.

    >>> import dualflow as df
    >>> df.numpy.dtype(float), df.numpy.dtype("int8")
    (tf.float64, tf.int8)
    """
    return as_dtype(numpy_dtype(dtype))


def finfo(dtype: DTypeLike) -> Any:
    """The limits of a floating dtype, as ``numpy.finfo``.

    Args:
        dtype: a floating or complex dtype, or a tensor of one.

    Returns:
        A ``numpy.finfo``, with ``bits``, ``eps``, ``max``, ``min``, ``tiny`` and others.

    Raises:
        ValueError: the dtype is neither floating nor complex.

    >>> import dualflow as df
    >>> df.numpy.finfo(df.float32).bits
    32
    """
    return np.finfo(_dtype_of(dtype))


def iinfo(type: object) -> Any:
    """The limits of an integer dtype, as ``numpy.iinfo``.

    Args:
        type: an integer dtype, or a tensor of one.

    Returns:
        A ``numpy.iinfo``, with ``bits``, ``max`` and ``min``.

    Raises:
        ValueError: the dtype is not one of integers.
        DTypeError: ``type`` is no dtype that tensors have.

    >>> import dualflow as df
    >>> df.numpy.iinfo(df.int8).max
    127
    """
    return np.iinfo(_dtype_of(type))


def _dtype_of(value: Any) -> np.dtype[Any]:
    """The dtype of a tensor or array, or the dtype that ``value`` names."""
    if isinstance(value, (*TENSORS, list)):
        return tensor(value).dtype.dtype
    return numpy_dtype(value if isinstance(value, type) else getattr(value, "dtype", value))


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The common dtype of tensors, dtypes and Python numbers, as NumPy 2 promotes them.

    Args:
        *arrays_and_dtypes: tensors, arrays, dtypes, their names, or Python numbers, which adapt.

    Returns:
        A :class:`dualflow.DType`.

    Raises:
        DTypeError: an argument is no dtype that tensors have.
        ValueError: there are no arguments.

    >>> import dualflow as df
    >>> df.numpy.result_type(df.float32, 3.0), df.numpy.result_type("int8", "uint8")
    (tf.float32, tf.int16)
    """
    weak = (int, float, complex)
    return as_dtype(np.result_type(*[x if type(x) in weak else _dtype_of(x) for x in arrays_and_dtypes]))


def promote_types(type1: object, type2: object, /) -> DType:
    """The smallest dtype to which both dtypes can be cast safely.

    Args:
        type1: a dtype or its name.
        type2: another one.

    Returns:
        A :class:`dualflow.DType`.

    Raises:
        DTypeError: an argument is no dtype that tensors have.

    >>> import dualflow as df
    >>> df.numpy.promote_types("int8", "uint8")
    tf.int16
    """
    return as_dtype(np.promote_types(_dtype_of(type1), _dtype_of(type2)))


def can_cast(
    from_: object, to: object, casting: Literal["no", "equiv", "safe", "same_kind", "unsafe"] = "safe"
) -> Any:
    """Whether a dtype can be cast to another by NumPy's rule ``casting``.

    Args:
        from_: a dtype, its name, or a tensor.
        to: the dtype to cast to.
        casting: "no", "equiv", "safe", "same_kind" or "unsafe".

    Returns:
        A Python bool.

    Raises:
        ValueError: ``casting`` is unknown.
        DTypeError: an argument is no dtype that tensors have.

    >>> import dualflow as df
    >>> df.numpy.can_cast("int8", "int16"), df.numpy.can_cast("float64", "float32")
    (True, False)
    """
    return np.can_cast(_dtype_of(from_), _dtype_of(to), casting)


def common_type(*arrays: Any) -> DType:
    """The common floating or complex dtype of tensors; integers count as float64.

    Args:
        *arrays: tensors, arrays or lists of numbers.

    Returns:
        A :class:`dualflow.DType`.

    Raises:
        TypeError: a tensor is of bools.

    >>> import dualflow as df
    >>> df.numpy.common_type([1, 2])
    tf.float64
    """
    return as_dtype(np.common_type(*[np.zeros(0, _dtype_of(x)) for x in arrays]))


def min_scalar_type(a: TensorLike, /) -> DType:
    """The smallest dtype that holds a number; of a tensor with axes, its dtype.

    Args:
        a: a number, a tensor or an array.

    Returns:
        A :class:`dualflow.DType`.

    >>> import dualflow as df
    >>> df.numpy.min_scalar_type(300)
    tf.uint16
    """
    shape = getattr(a, "shape", ())
    return as_dtype(_dtype_of(a) if shape else np.min_scalar_type(np.asarray(a)))


def issubdtype(arg1: object, arg2: object) -> Any:
    """Whether a dtype is of a kind.

    Args:
        arg1: a dtype, its name, or a tensor.
        arg2: a kind of NumPy's, such as ``numpy.floating``, or a dtype.

    Returns:
        A Python bool.

    Raises:
        DTypeError: an argument is no dtype that tensors have.

    >>> import dualflow as df
    >>> import numpy
    >>> df.numpy.issubdtype(df.float32, numpy.floating)
    True
    """
    kind = arg2 if isinstance(arg2, type) and issubclass(arg2, np.generic) else _dtype_of(arg2)
    return np.issubdtype(_dtype_of(arg1), kind)


def isdtype(dtype: DTypeLike, kind: str) -> Any:
    """Whether a dtype is of a kind, by the Array API's names of kinds.

    Args:
        dtype: a dtype, its name, or a tensor.
        kind: "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating",
            "numeric", a dtype, or a tuple of these.

    Returns:
        A Python bool.

    Raises:
        ValueError: ``kind`` is unknown.

    >>> import dualflow as df
    >>> df.numpy.isdtype(df.float32, "real floating")
    True
    """
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return np.isdtype(
        _dtype_of(dtype),
        tuple(k if isinstance(k, str) and k not in np.sctypeDict else _dtype_of(k) for k in kinds),
    )


complete_docstrings(globals())
make_entries(globals())
