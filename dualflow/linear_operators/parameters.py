"""Conversion and checks of the arguments of operators; their sizes and batches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dualflow.core.dispatch import TENSORS
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Shape, broadcast
from dualflow.linear_operators.linear_operator_base import LinearOperatorBase
from dualflow.ops.broadcasting import broadcast_to
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.joining import concat
from dualflow.ops.rearranging.shapes import broadcast_dynamic_shape
from dualflow.ops.static import static_value
from dualflow.ops.tensor_sizes import axis_sizes, sizes_of


def as_parameter(value: Any, name: str, least_axes: int) -> Any:
    """A tensor or variable of floats, of a least number of axes.

    Raises:
        DTypeError: integers, bools or strings.
        InvalidArgumentError: it has fewer axes.
    """
    tensor = value if isinstance(value, TENSORS) else convert_to_tensor(value)
    if not tensor.dtype.is_inexact:
        raise DTypeError(
            f"{name} holds floats or complex numbers, not {tensor.dtype.name}; cast it with df.cast."
        )
    if len(tensor.shape) < least_axes:
        raise InvalidArgumentError(
            f"{name} has {least_axes} axes or more, not shape {tensor.shape}; add axes."
        )
    return tensor


def as_size(value: Any, name: str) -> Any:
    """A number of rows or columns: an int, or a scalar tensor if it is dynamic.

    Raises:
        DTypeError: no integer.
        InvalidArgumentError: no scalar, or a negative one.
    """
    tensor = value if isinstance(value, TENSORS) else convert_to_tensor(value)
    if not tensor.dtype.is_integer:
        raise DTypeError(f"{name} is an integer, not {tensor.dtype.name}.")
    if len(tensor.shape):
        raise InvalidArgumentError(f"{name} is a scalar, not of shape {tensor.shape}.")
    static = static_value(tensor)
    if static is None:
        return tensor
    if static < 0:
        raise InvalidArgumentError(f"{name} is not negative, but got {int(static)}.")
    return int(static)


def as_batch_shape(value: Any) -> Any:
    """The shape of a batch: a Shape, or a vector if it is dynamic; None stays None.

    Raises:
        DTypeError: no integers.
        InvalidArgumentError: no vector, or a negative size.
    """
    if value is None:
        return None
    is_list = isinstance(value, list | tuple)
    tensor = (
        value
        if isinstance(value, TENSORS)
        else convert_to_tensor(list(value) if is_list else value, dtype_hint="int32")
    )
    if not tensor.dtype.is_integer and tensor.shape != [0]:
        raise DTypeError(f"batch_shape holds integers, not {tensor.dtype.name}.")
    if len(tensor.shape) != 1:
        raise InvalidArgumentError(f"batch_shape is a vector, not of shape {tensor.shape}.")
    static = static_value(tensor)
    if static is None:
        return tensor
    if (static < 0).any():
        raise InvalidArgumentError(f"batch_shape has no negative sizes, but got {static.tolist()}.")
    return Shape([int(size) for size in static])


def as_operators(operators: Any, what: str) -> list[Any]:
    """A list of one operator or more, of one dtype.

    Raises:
        DTypeError: something else than operators, or several dtypes.
        InvalidArgumentError: an empty list.
    """
    if not isinstance(operators, Iterable) or isinstance(operators, LinearOperatorBase | str):
        raise DTypeError(f"{what} takes a list of operators, not {operators!r}.")
    result = list(operators)
    if not result:
        raise InvalidArgumentError(f"{what} takes one operator or more, but the list is empty.")
    for operator in result:
        if not isinstance(operator, LinearOperatorBase):
            raise DTypeError(
                f"{what} takes linear operators, not {operator!r}; df.linalg.LinearOperatorFullMatrix makes "
                "one of a matrix."
            )
    dtypes = {operator.dtype for operator in result}
    if len(dtypes) > 1:
        listed = ", ".join(f"{operator.name}: {operator.dtype.name}" for operator in result)
        raise DTypeError(f"{what} takes operators of the same dtype, not {listed}; cast their tensors.")
    return result


def common_batch(operators: Sequence[Any]) -> Shape:
    """The static shape to which the batches of operators broadcast."""
    return broadcast([operator.batch_shape for operator in operators])


def common_batch_tensor(operators: Sequence[Any]) -> Any:
    """The shape to which the batches of operators broadcast, as a vector."""
    return broadcast_shapes([operator.batch_shape_tensor() for operator in operators])


def broadcast_shapes(shapes: Sequence[Any]) -> Any:
    """The shape to which shapes broadcast, all of them as vectors."""
    result, *others = shapes
    for shape in others:
        result = broadcast_dynamic_shape(result, shape)
    return result


def shape_vector(batch: Any, *sizes: Any) -> Any:
    """The vector of a batch's shape and the sizes of a matrix, ints or scalar tensors, as int32."""
    return concat([batch, convert_to_tensor(list(sizes), "int32")], 0)


def dimension(operator: Any, axis: int) -> Any:
    """The number of rows (axis -2) or columns (-1) of an operator: an int, or a scalar if dynamic."""
    static = operator.range_dimension if axis == -2 else operator.domain_dimension
    if static is not None:
        return static
    return operator.range_dimension_tensor() if axis == -2 else operator.domain_dimension_tensor()


def with_common_batch(matrices: Sequence[Any]) -> list[Any]:
    """Tensors of matrices, broadcast to one batch."""
    if len({tuple(x.shape[:-2]) for x in matrices}) == 1 and all(None not in x.shape[:-2] for x in matrices):
        return list(matrices)
    if all(x.shape[:-2].is_fully_defined() for x in matrices):
        batch: Any = list(broadcast([x.shape[:-2] for x in matrices]))
        return [broadcast_to(x, [*batch, *axis_sizes(x)[-2:]]) for x in matrices]
    vector = broadcast_shapes([sizes_of(x)[:-2] for x in matrices])
    return [broadcast_to(x, concat([vector, sizes_of(x)[-2:]], 0)) for x in matrices]
