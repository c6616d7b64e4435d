"""Tensors from numbers: ``df.numpy``'s creation functions, with NumPy's default dtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualflow.core.dtypes import as_dtype
from dualflow.core.tracebacks import make_entries
from dualflow.numpy.docstrings import complete_docstrings
from dualflow.numpy.operands import numpy_dtype, reject_unsupported, tensor, to
from dualflow.ops.broadcasting import broadcast_to
from dualflow.ops.conversion import identity as same
from dualflow.ops.creation import ones as tensor_ones
from dualflow.ops.creation import ones_like as tensor_ones_like
from dualflow.ops.creation import zeros as tensor_zeros
from dualflow.ops.creation import zeros_like as like_zeros
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, ShapeLike, TensorLike


def array(
    object: TensorLike,
    dtype: DTypeLike | None = None,
    *,
    copy: object = True,
    order: str | None = "K",
    subok: bool = False,
    ndmin: int = 0,
    like: object = None,
) -> Tensor:
    """``object`` as a tensor.

    Args:
        object: a number, an array, a tensor, or nested lists of them.
        dtype: the dtype; NumPy's for ``object`` by default.
        ndmin: the smallest number of axes; new axes of size 1 come first.

    Returns:
        A tensor with the shape of ``object``, and ``dtype``.

    Raises:
        InvalidArgumentError: lists of different lengths.
        DTypeError: ``object`` can't become a tensor.

    >>> import dualflow as df
    >>> df.numpy.array([1, 2]).dtype, df.numpy.array([1.0, df.constant(2.0)]).dtype
    (tf.int64, tf.float32)
    """
    reject_unsupported("array", like=like)
    x = tensor(object, dtype)
    missing = ndmin - len(x.shape)
    return x[(None,) * missing] if missing > 0 else x


def asarray(
    a: TensorLike,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    device: object = None,
    copy: object = None,
    like: object = None,
) -> Tensor:
    """``a`` as a tensor; a tensor that has the dtype is returned itself. See :func:`array`.

    Args:
        a: a number, an array, a tensor, or nested lists of them.
        dtype: the dtype; NumPy's for ``a`` by default.

    Returns:
        A tensor with the shape of ``a``, and ``dtype``.

    Raises:
        InvalidArgumentError: lists of different lengths.

    >>> import dualflow as df
    >>> df.numpy.asarray([1, 2], float).numpy()
    array([1., 2.])
    """
    reject_unsupported("asarray", like=like)
    return tensor(a, dtype)


def asanyarray(
    a: TensorLike,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    device: object = None,
    copy: object = None,
    like: object = None,
) -> Tensor:
    """``a`` as a tensor; the same as :func:`asarray`, as there are no subclasses.

    Args:
        a: a number, an array, a tensor, or nested lists of them.
        dtype: the dtype; NumPy's for ``a`` by default.

    Returns:
        A tensor with the shape of ``a``, and ``dtype``.

    Raises:
        InvalidArgumentError: lists of different lengths.

    >>> import dualflow as df
    >>> df.numpy.asanyarray([1, 2]).dtype
    tf.int64
    """
    return asarray(a, dtype, order, like=like)


def ascontiguousarray(a: TensorLike, dtype: DTypeLike | None = None, *, like: object = None) -> Tensor:
    """``a`` as a tensor of one axis at least.

    Args:
        a: a number, an array, a tensor, or nested lists of them.
        dtype: the dtype; NumPy's for ``a`` by default.

    Returns:
        A tensor with the shape of ``a``, (1,) for a number, and ``dtype``.

    Raises:
        InvalidArgumentError: lists of different lengths.

    >>> import dualflow as df
    >>> df.numpy.ascontiguousarray(5).shape
    (1,)
    """
    reject_unsupported("ascontiguousarray", like=like)
    x = tensor(a, dtype)
    return x if x.shape else x[None]


def copy(a: TensorLike, order: str = "K", subok: bool = False) -> Tensor:
    """A copy of ``a``, a tensor.

    Returns:
        A tensor with the shape and dtype of ``a``.

    >>> import dualflow as df
    >>> df.numpy.copy([1, 2]).numpy()
    array([1, 2])
    """
    return same(tensor(a))


def astype(x: TensorLike, dtype: DTypeLike, /, *, copy: bool = True, device: object = None) -> Tensor:
    """``x`` in another dtype.

    Args:
        dtype: the dtype to cast to; floats become integers by rounding towards zero.

    Returns:
        A tensor with the shape of ``x``, and ``dtype``.

    >>> import dualflow as df
    >>> df.numpy.astype([1.7, -1.7], int).numpy()
    array([ 1, -1])
    """
    return to(tensor(x), dtype)


def zeros(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    order: str = "C",
    *,
    device: object = None,
    like: object = None,
) -> Tensor:
    """Zeros, of float64 by default.

    Args:
        shape: an integer or a list of them.
        dtype: the dtype; float64 by default.

    Returns:
        A tensor of the shape and dtype.

    Raises:
        InvalidArgumentError: a size is negative.
        DTypeError: a size is no integer.

    >>> import dualflow as df
    >>> df.numpy.zeros(2).numpy()
    array([0., 0.])
    """
    reject_unsupported("zeros", like=like)
    return tensor_zeros(_shape(shape), numpy_dtype(dtype or float))


def ones(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    order: str = "C",
    *,
    device: object = None,
    like: object = None,
) -> Tensor:
    """Ones, of float64 by default.

    Args:
        shape: an integer or a list of them.
        dtype: the dtype; float64 by default.

    Returns:
        A tensor of the shape and dtype.

    Raises:
        InvalidArgumentError: a size is negative.
        DTypeError: a size is no integer.

    >>> import dualflow as df
    >>> df.numpy.ones(2, int).numpy()
    array([1, 1])
    """
    reject_unsupported("ones", like=like)
    return tensor_ones(_shape(shape), numpy_dtype(dtype or float))


def empty(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    order: str = "C",
    *,
    device: object = None,
    like: object = None,
) -> Tensor:
    """Zeros: tensors have no uninitialized elements.

    Args:
        shape: an integer or a list of them.
        dtype: the dtype; float64 by default.

    Returns:
        A tensor of the shape and dtype.

    Raises:
        InvalidArgumentError: a size is negative.
        DTypeError: a size is no integer.

    >>> import dualflow as df
    >>> df.numpy.empty((2, 3)).shape
    (2, 3)
    """
    return zeros(shape, dtype, order, like=like)


def full(
    shape: ShapeLike,
    fill_value: TensorLike,
    dtype: DTypeLike | None = None,
    order: str = "C",
    *,
    device: object = None,
    like: object = None,
) -> Tensor:
    """``fill_value`` broadcast to ``shape``.

    Args:
        shape: an integer or a list of them.
        fill_value: a number, or numbers that broadcast to the shape.
        dtype: the dtype; that of ``fill_value`` by default.

    Returns:
        A tensor of the shape and dtype.

    Raises:
        InvalidArgumentError: a size is negative, or ``fill_value`` doesn't broadcast.

    >>> import dualflow as df
    >>> df.numpy.full(2, 7).numpy()
    array([7, 7])
    """
    reject_unsupported("full", like=like)
    return broadcast_to(tensor(fill_value, dtype), _shape(shape))


def _shape(shape: Any) -> Any:
    """``shape`` as a sequence: one integer is the shape of a vector."""
    single = not isinstance(shape, list | tuple) and not getattr(shape, "shape", ())
    return [shape] if single else shape


def zeros_like(
    a: TensorLike,
    dtype: DTypeLike | None = None,
    order: str = "K",
    subok: bool = True,
    shape: ShapeLike | None = None,
    *,
    device: object = None,
) -> Tensor:
    """Zeros of the shape and dtype of ``a``.

    Args:
        dtype: the dtype; that of ``a`` by default.
        shape: the shape; that of ``a`` by default.

    Returns:
        A tensor of zeros with the shape and dtype.

    >>> import dualflow as df
    >>> df.numpy.zeros_like([1.5, 2.5]).numpy()
    array([0., 0.])
    """
    x = tensor(a)
    target = x.dtype if dtype is None else as_dtype(numpy_dtype(dtype))
    return like_zeros(x, target) if shape is None else zeros(shape, target)


def ones_like(
    a: TensorLike,
    dtype: DTypeLike | None = None,
    order: str = "K",
    subok: bool = True,
    shape: ShapeLike | None = None,
    *,
    device: object = None,
) -> Tensor:
    """Ones of the shape and dtype of ``a``.

    Args:
        dtype: the dtype; that of ``a`` by default.
        shape: the shape; that of ``a`` by default.

    Returns:
        A tensor of ones with the shape and dtype.

    >>> import dualflow as df
    >>> df.numpy.ones_like([1.5, 2.5]).numpy()
    array([1., 1.])
    """
    x = tensor(a)
    target = x.dtype if dtype is None else as_dtype(numpy_dtype(dtype))
    return tensor_ones_like(x, target) if shape is None else ones(shape, target)


def empty_like(
    prototype: TensorLike,
    /,
    dtype: DTypeLike | None = None,
    order: str = "K",
    subok: bool = True,
    shape: ShapeLike | None = None,
    *,
    device: object = None,
) -> Tensor:
    """Zeros of the shape and dtype of ``prototype``: tensors have no uninitialized elements.

    Args:
        prototype: a tensor, an array, a number or nested lists of them, of any shape.
        dtype: the dtype; that of ``prototype`` by default.
        shape: the shape; that of ``prototype`` by default.

    Returns:
        A tensor of zeros with the shape and dtype.

    >>> import dualflow as df
    >>> df.numpy.empty_like([[1, 2]]).shape
    (1, 2)
    """
    return zeros_like(prototype, dtype, order, subok, shape)


def full_like(
    a: TensorLike,
    fill_value: TensorLike,
    dtype: DTypeLike | None = None,
    order: str = "K",
    subok: bool = True,
    shape: ShapeLike | None = None,
    *,
    device: object = None,
) -> Tensor:
    """``fill_value`` broadcast to the shape of ``a``, in the dtype of ``a``.

    Args:
        fill_value: a number, or numbers that broadcast to the shape.
        dtype: the dtype; that of ``a`` by default.
        shape: the shape; that of ``a`` by default.

    Returns:
        A tensor with the shape and dtype.

    Raises:
        InvalidArgumentError: ``fill_value`` doesn't broadcast.

    >>> import dualflow as df
    >>> df.numpy.full_like([1, 2], 9).numpy()
    array([9, 9])
    """
    x = tensor(a)
    target = x.dtype if dtype is None else as_dtype(numpy_dtype(dtype))
    value = tensor(fill_value, target)
    if shape is None and not x.shape.is_static:
        return value * tensor_ones_like(x, target)
    return broadcast_to(value, tuple(x.shape) if shape is None else _shape(shape))


complete_docstrings(globals())
make_entries(globals())
