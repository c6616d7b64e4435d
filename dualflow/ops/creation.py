"""New tensors: from values, from a shape, from a range."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import as_array
from dualflow.core.dispatch import AbstractComposite, AbstractTensor, AbstractVariable
from dualflow.core.dtypes import DType, as_dtype, float32
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.ops.arrangement import reshape
from dualflow.ops.broadcasting import broadcast_by, broadcast_like
from dualflow.ops.conversion import identity
from dualflow.ops.op_kinds import Literal
from dualflow.ops.record import Op, holds_tensors, register
from dualflow.ops.samples import Sample
from dualflow.ops.static import dtype_of, shape_of, static_shape

if TYPE_CHECKING:
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


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str | None = None) -> Tensor:
    """A tensor of ``value``, whose memory it does not share.

    Args:
        value: a number, nested lists of numbers, an array, or lists that hold tensors.
        dtype: by default int32 or float32 for Python's numbers, and an array's own.
        shape: the shape to give the elements; one element fills any shape.
        name: ignored; as in TensorFlow.

    Raises:
        DTypeError: what is no number, or numbers that ``dtype`` can't hold.
        InvalidArgumentError: rows of different lengths.

    >>> import dualflow as df
    >>> df.constant([1, 2]).dtype, df.constant(0.5, shape=(2, 2)).numpy().tolist()
    (dualflow.int32, [[0.5, 0.5], [0.5, 0.5]])
    """
    tensor = convert_to_tensor(value, dtype)
    if shape is None:
        return tensor
    target = static_shape(shape)
    return fill(target, reshape(tensor, ())) if tensor.shape.num_elements() == 1 else reshape(tensor, target)


def convert_to_tensor(
    value: Any, dtype: Any = None, dtype_hint: Any = None, name: str | None = None
) -> Tensor:
    """``value`` as a tensor; a tensor or a variable's value is passed on.

    Args:
        value: what :func:`constant` takes, a tensor or a variable.
        dtype: what the result must have; a tensor of another dtype is an error, for casting is to be seen.
        dtype_hint: the dtype to take if ``value`` can have it.
        name: ignored; as in TensorFlow.

    Raises:
        InvalidArgumentError: a tensor of another dtype.
        DTypeError: what can't become a tensor.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    nested = isinstance(value, list | tuple) and holds_tensors(value)
    if not nested and not isinstance(value, AbstractTensor | AbstractVariable | AbstractComposite):
        return dispatch.current().constant(_array(value, wanted, dtype_hint))
    tensor: Tensor = identity.op.prepare((value,), dispatch.current())[0]
    if wanted is not None and tensor.dtype is not wanted:
        raise InvalidArgumentError(
            f"A tensor of dtype {tensor.dtype.name} was given where {wanted.name} is asked for; "
            "convert it with df.cast."
        )
    return tensor


def _array(value: Any, dtype: DType | None, hint: Any) -> Array:
    if dtype is None and hint is not None:
        try:
            return as_array(value, as_dtype(hint))
        except DTypeError:  # only a hint
            return as_array(value)
    return as_array(value, dtype)


# Of one value


def fill(dims: Any, value: Any, name: str | None = None) -> Tensor:
    """A tensor of shape ``dims`` whose every element is the number ``value``.

    Raises:
        InvalidArgumentError: ``value`` is not a scalar.

    >>> import dualflow as df
    >>> df.fill([2, 2], 7).numpy().tolist()
    [[7, 7], [7, 7]]
    """
    if len(shape_of(value)):
        raise InvalidArgumentError(
            f"fill takes one number, not a value of shape {shape_of(value)}; use df.broadcast_to."
        )
    return broadcast_by(value, dims)


def _filled(shape: Any, number: int, dtype: Any) -> Any:
    engine = dispatch.current()
    return broadcast_by(engine.constant(_scalar(number, as_dtype(dtype))), shape)


def _scalar(number: int, dtype: DType) -> Array:
    """0 or 1 in a dtype; the empty string stands for the 0 of strings."""
    if not dtype.is_string:
        return np.array(number, dtype.dtype)
    if number:
        raise DTypeError("There is no string that stands for 1; df.fill makes a tensor of one string.")
    return np.array(b"", object)


def zeros(shape: Any, dtype: Any = float32, name: str | None = None) -> Tensor:
    """Zeros of a shape, float32 by default: ``df.zeros([2, 3])``."""
    return _filled(shape, 0, dtype)


def ones(shape: Any, dtype: Any = float32, name: str | None = None) -> Tensor:
    """Ones of a shape, float32 by default: ``df.ones([2, 3])``."""
    return _filled(shape, 1, dtype)


def zeros_like(input: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Zeros of the input's shape, and of its dtype unless another is given."""
    return _filled_like(input, 0, dtype)


def ones_like(input: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Ones of the input's shape, and of its dtype unless another is given."""
    return _filled_like(input, 1, dtype)


def _filled_like(input: Any, number: int, dtype: Any) -> Any:
    shape, kind = shape_of(input), dtype_of(input) if dtype is None else as_dtype(dtype)
    if shape.is_static:
        return _filled(shape, number, kind)
    return broadcast_like(dispatch.current().constant(_scalar(number, kind)), input)
