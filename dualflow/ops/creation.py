"""New tensors: from values, from a shape, from a range."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import as_array
from dualflow.core.dispatch import AbstractComposite, AbstractTensor, AbstractVariable
from dualflow.core.dtypes import DType, as_dtype, float32
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.registered_conversions import CONVERSIONS, registered
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.ops.arrangement import reshape
from dualflow.ops.broadcasting import broadcast_like, broadcast_to
from dualflow.ops.conversion import cast, identity
from dualflow.ops.op_kinds import Literal
from dualflow.ops.record import Op, holds_tensors, register
from dualflow.ops.samples import Sample
from dualflow.ops.static import dtype_of, shape_of, static_shape
from dualflow.sizes.abstract_size import AbstractSize

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, DTypeLike, ShapeLike, TensorLike
    from dualflow.ops.tensor import Tensor

Array = np.ndarray[Any, Any]

CONSTANT = register(
    Op(
        name="constant",
        doc="""The array ``value``.""",
        infer=lambda value: TensorSpec.of(Shape(value.shape), as_dtype(value.dtype)),
        kernel=lambda value: value,
        kind=Literal(),
        samples=(Sample((), {"value": np.arange(6, dtype=np.float32).reshape(2, 3)}),),
    )
)


def constant(
    value: TensorLike, dtype: DTypeLike | None = None, shape: ShapeLike | None = None, name: str | None = None
) -> Tensor:
    """A tensor of ``value``, which is copied.

    Args:
        value: a number, a string, nested lists of them, an array, or lists that hold tensors.
        dtype: the dtype of the result; None for int32, float32 or complex128 of Python's numbers, and an
            array's own.
        shape: the shape of the result, of as many elements as ``value``; one element fills any shape. None
            for the value's own.

    Returns:
        A tensor with the shape of ``value``, or ``shape``.

    Raises:
        DTypeError: an element of ``value`` is neither a number nor a string, or ``dtype`` can't represent it.
        InvalidArgumentError: lists have different lengths, or ``shape`` another number of elements.

    >>> import dualflow as df
    >>> df.constant([1, 2]).dtype, df.constant(0.5, shape=(2, 2)).numpy().tolist()
    (tf.int32, [[0.5, 0.5], [0.5, 0.5]])
    """
    tensor = convert_to_tensor(value, dtype)
    if shape is None:
        return tensor
    target = static_shape(shape)
    return fill(target, reshape(tensor, ())) if tensor.shape.num_elements() == 1 else reshape(tensor, target)


def convert_to_tensor(
    value: TensorLike,
    dtype: DTypeLike | None = None,
    dtype_hint: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """``value`` as a tensor; a tensor, or the value of a variable, is returned as it is.

    Args:
        value: a tensor, a variable, or a value that :func:`constant` takes.
        dtype: the dtype that the result must have; a tensor of another dtype is an error rather than cast,
            while tensors in lists are cast, as in TensorFlow. None for the dtype of ``value``.
        dtype_hint: the dtype to prefer if ``value``, no tensor, can have it.

    Returns:
        A tensor with the shape of ``value``.

    Raises:
        InvalidArgumentError: ``value`` is a tensor of another dtype than ``dtype``, or lists have different
            lengths.
        DTypeError: ``value`` can't become a tensor.

    >>> import dualflow as df
    >>> df.convert_to_tensor([1, 2], dtype=df.float64).numpy()
    array([1., 2.])
    """
    target = None if dtype is None else as_dtype(dtype)
    if CONVERSIONS:
        value = registered(value, target)
    nested = isinstance(value, list | tuple) and holds_tensors(value)
    if not nested and not isinstance(value, AbstractTensor | AbstractVariable | AbstractComposite):
        return dispatch.current().constant(_array(value, target, dtype_hint))
    if target is not None and isinstance(value, AbstractSize):
        adapted: Tensor = value.with_dtype(target)
        return adapted
    if nested and target is not None:
        value = _cast_tensors(value, target)
    tensor: Tensor = identity.op.prepare((value,), dispatch.current())[0]
    if target is not None and tensor.dtype is not target:
        raise InvalidArgumentError(
            f"A tensor of dtype {tensor.dtype.name} was given where {target.name} is required; "
            "convert it with df.cast."
        )
    return tensor


def _cast_tensors(value: Any, dtype: DType) -> Any:
    """Nested lists with their tensors cast; other elements stay as they are."""
    if isinstance(value, list | tuple):
        return [_cast_tensors(x, dtype) for x in value]
    is_tensor = isinstance(value, AbstractTensor | AbstractVariable)
    return cast(value, dtype) if is_tensor and value.dtype is not dtype else value


def _array(value: Any, dtype: DType | None, hint: Any) -> Array:
    if dtype is None and hint is not None:
        try:
            return as_array(value, as_dtype(hint))
        except DTypeError:  # only a hint
            return as_array(value)
    return as_array(value, dtype)


# Of one value


def fill(dims: AxisLike, value: TensorLike, name: str | None = None) -> Tensor:
    """A tensor of shape ``dims`` whose every element is ``value``.

    Args:
        dims: the shape of the result; sizes may be tensors that are known at run time only.
        value: a scalar of any dtype.

    Returns:
        A tensor of shape ``dims`` with the dtype of ``value``.

    Raises:
        InvalidArgumentError: ``value`` is not a scalar, or a size is negative.
        DTypeError: ``dims`` doesn't hold integers.

    >>> import dualflow as df
    >>> df.fill([2, 2], 7).numpy().tolist()
    [[7, 7], [7, 7]]
    """
    if len(shape_of(value)):
        raise InvalidArgumentError(
            f"fill takes one number, not a value of shape {shape_of(value)}; use df.broadcast_to."
        )
    return broadcast_to(value, dims)


def _filled(shape: Any, number: int, dtype: Any) -> Any:
    engine = dispatch.current()
    return broadcast_to(engine.constant(_scalar(number, as_dtype(dtype))), shape)


def _scalar(number: int, dtype: DType) -> Array:
    """0 or 1 in a dtype; for strings, 0 is the empty string."""
    if not dtype.is_string:
        return np.array(number, dtype.dtype)
    if number:
        raise DTypeError("There is no string that stands for 1; df.fill makes a tensor of one string.")
    return np.array(b"", object)


def zeros(shape: ShapeLike, dtype: DTypeLike = float32, name: str | None = None) -> Tensor:
    """A tensor of zeros.

    Args:
        shape: its shape; sizes may be tensors that are known at run time only.
        dtype: its dtype; float32 by default. For strings, the elements are empty.

    Returns:
        A tensor of shape ``shape`` and dtype ``dtype``.

    Raises:
        InvalidArgumentError: a size is negative.
        DTypeError: ``shape`` doesn't hold integers, or tensors can't have ``dtype``.

    >>> import dualflow as df
    >>> df.zeros([2, 3], df.int32).numpy().tolist()
    [[0, 0, 0], [0, 0, 0]]
    """
    return _filled(shape, 0, dtype)


def ones(shape: ShapeLike, dtype: DTypeLike = float32, name: str | None = None) -> Tensor:
    """A tensor of ones.

    Args:
        shape: its shape; sizes may be tensors that are known at run time only.
        dtype: its dtype; float32 by default.

    Returns:
        A tensor of shape ``shape`` and dtype ``dtype``.

    Raises:
        InvalidArgumentError: a size is negative.
        DTypeError: ``shape`` doesn't hold integers, or ``dtype`` is that of strings.

    >>> import dualflow as df
    >>> df.ones([3]).numpy()
    array([1., 1., 1.], dtype=float32)
    """
    return _filled(shape, 1, dtype)


def zeros_like(input: TensorLike, dtype: DTypeLike | None = None, name: str | None = None) -> Tensor:
    """A tensor of zeros with the shape of ``input``.

    Args:
        input: a tensor of any shape and dtype.
        dtype: the dtype of the result; None for that of ``input``.

    Returns:
        A tensor with the shape of ``input``.

    Raises:
        DTypeError: tensors can't have ``dtype``.

    >>> import dualflow as df
    >>> df.zeros_like([[1.5, 2.5]]).numpy()
    array([[0., 0.]], dtype=float32)
    """
    return _filled_like(input, 0, dtype)


def ones_like(input: TensorLike, dtype: DTypeLike | None = None, name: str | None = None) -> Tensor:
    """A tensor of ones with the shape of ``input``.

    Args:
        input: a tensor of any shape and dtype.
        dtype: the dtype of the result; None for that of ``input``.

    Returns:
        A tensor with the shape of ``input``.

    Raises:
        DTypeError: the dtype is that of strings.

    >>> import dualflow as df
    >>> df.ones_like([[1.5, 2.5]], dtype=df.int32).numpy()
    array([[1, 1]], dtype=int32)
    """
    return _filled_like(input, 1, dtype)


def _filled_like(input: Any, number: int, dtype: Any) -> Any:
    shape, kind = shape_of(input), dtype_of(input) if dtype is None else as_dtype(dtype)
    if shape.is_static:
        return _filled(shape, number, kind)
    return broadcast_like(dispatch.current().constant(_scalar(number, kind)), input)
