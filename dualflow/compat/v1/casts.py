"""TensorFlow 1's functions that cast to one dtype each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualflow.core.dtypes import complex64, complex128, float32, float64, int32, int64
from dualflow.core.narrow_floats import bfloat16
from dualflow.ops.conversion import cast

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor


def to_float(x: TensorLike, name: str | None = "ToFloat") -> Tensor:
    """``x`` as float32.

    >>> from dualflow.compat import v1
    >>> v1.to_float([1, 2]).numpy().tolist()
    [1.0, 2.0]
    """
    return cast(x, float32)


def to_double(x: TensorLike, name: str | None = "ToDouble") -> Tensor:
    """``x`` as float64.

    >>> from dualflow.compat import v1
    >>> v1.to_double(1).dtype
    tf.float64
    """
    return cast(x, float64)


def to_int32(x: TensorLike, name: str | None = "ToInt32") -> Tensor:
    """``x`` as int32, truncated.

    >>> from dualflow.compat import v1
    >>> int(v1.to_int32(2.7))
    2
    """
    return cast(x, int32)


def to_int64(x: TensorLike, name: str | None = "ToInt64") -> Tensor:
    """``x`` as int64, truncated.

    >>> from dualflow.compat import v1
    >>> v1.to_int64(2.7).dtype
    tf.int64
    """
    return cast(x, int64)


def to_bfloat16(x: TensorLike, name: str | None = "ToBFloat16") -> Tensor:
    """``x`` as bfloat16.

    >>> from dualflow.compat import v1
    >>> v1.to_bfloat16(1.5).dtype
    tf.bfloat16
    """
    return cast(x, bfloat16)


def to_complex64(x: TensorLike, name: str | None = "ToComplex64") -> Tensor:
    """``x`` as complex64.

    >>> from dualflow.compat import v1
    >>> v1.to_complex64(1.5).dtype
    tf.complex64
    """
    return cast(x, complex64)


def to_complex128(x: TensorLike, name: str | None = "ToComplex128") -> Tensor:
    """``x`` as complex128.

    >>> from dualflow.compat import v1
    >>> v1.to_complex128(1.5).dtype
    tf.complex128
    """
    return cast(x, complex128)
