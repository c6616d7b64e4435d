"""Dtypes: their names, limits and promotion."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dualflow.core.dispatch import AbstractTensor, AbstractVariable
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
from dualflow.numpy.operands import numpy_dtype, tensor
from dualflow.ops.tensor import Tensor

bool: Final = bool_
int_, uint, float_, complex_ = int64, uint64, float64, complex128
half, single, double, csingle, cdouble = float16, float32, float64, complex64, complex128
ndarray = Tensor
_TENSORS = (AbstractTensor, AbstractVariable)


def dtype(dtype: Any) -> DType:
    """The dtype that a name, a NumPy dtype or a Python type stands for; Python's types are of 64 bits.

    >>> import dualflow as df
    >>> df.numpy.dtype(float), df.numpy.dtype("int8")
    (dualflow.float64, dualflow.int8)
    """
    return as_dtype(numpy_dtype(dtype))


def finfo(dtype: Any) -> Any:
    """The limits of a dtype of floats, as NumPy describes them."""
    return np.finfo(_of(dtype))


def iinfo(type: Any) -> Any:
    """The limits of a dtype of integers, as NumPy describes them."""
    return np.iinfo(_of(type))


def _of(value: Any) -> np.dtype[Any]:
    """The dtype of a tensor, or the one that is named."""
    if isinstance(value, (*_TENSORS, list)):
        return tensor(value).dtype.dtype
    return numpy_dtype(value if isinstance(value, type) else getattr(value, "dtype", value))


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype in which tensors, dtypes and Python numbers meet.

    >>> import dualflow as df
    >>> df.numpy.result_type(df.float32, 3.0), df.numpy.result_type("int8", "uint8")
    (dualflow.float32, dualflow.int16)
    """
    weak = (int, float, complex)
    return as_dtype(np.result_type(*[x if type(x) in weak else _of(x) for x in arrays_and_dtypes]))


def promote_types(type1: Any, type2: Any, /) -> DType:
    """The smallest dtype to which both can be cast safely."""
    return as_dtype(np.promote_types(_of(type1), _of(type2)))


def can_cast(from_: Any, to: Any, casting: Any = "safe") -> Any:
    """Whether NumPy's rule ``casting`` lets one dtype become another."""
    return np.can_cast(_of(from_), _of(to), casting)


def common_type(*arrays: Any) -> DType:
    """The inexact dtype that holds all tensors: float64 for integers."""
    return as_dtype(np.common_type(*[np.zeros(0, _of(x)) for x in arrays]))


def min_scalar_type(a: Any, /) -> DType:
    """The dtype of a tensor with axes; of a number the smallest that holds it."""
    shape = getattr(a, "shape", ())
    return as_dtype(_of(a) if shape else np.min_scalar_type(np.asarray(a)))


def issubdtype(arg1: Any, arg2: Any) -> Any:
    """Whether a dtype is of a kind, such as ``np.floating``, or another dtype."""
    kind = arg2 if isinstance(arg2, type) and issubclass(arg2, np.generic) else _of(arg2)
    return np.issubdtype(_of(arg1), kind)


def isdtype(dtype: Any, kind: Any) -> Any:
    """Whether a dtype is of a kind by the Array API's names, such as "real floating"."""
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return np.isdtype(
        _of(dtype), tuple(k if isinstance(k, str) and k not in np.sctypeDict else _of(k) for k in kinds)
    )


make_entries(globals())
