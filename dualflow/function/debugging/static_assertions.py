"""``df.debugging.assert_*`` on dtypes, ranks and shapes, which are checked while tracing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dispatch import TENSORS
from dualflow.core.dtypes import DType, as_dtype, float32
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import UNKNOWN_RANK
from dualflow.core.tracebacks import entry
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.static import dtype_of, ints, python_shape, shape_of, static_int

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, IntLike, TensorLike
    from dualflow.ops.tensor import Tensor

_ANY_AXES: Final = (..., "...", "*")
_ANY_SIZE: Final = (None, ".")


@entry
def assert_rank(x: TensorLike, rank: IntLike, message: str | None = None, name: str | None = None) -> Any:
    """Raise an error unless ``x`` has ``rank`` axes.

    Returns:
        None; in an explicit graph, for a tensor of unknown rank, the operation that checks.

    Raises:
        InvalidArgumentError: the rank differs.

    >>> import dualflow as df
    >>> df.debugging.assert_rank(df.ones([2, 3]), 1, message="rows")
    Traceback (most recent call last):
    ...
    dualflow.core.errors.InvalidArgumentError: rows. Expected a tensor of rank 1, but the shape is (2, 3).
    """
    expected = static_int(rank, "rank")
    return _check_rank(x, lambda actual: actual == expected, f"rank {expected}", message)


@entry
def assert_rank_at_least(
    x: TensorLike, rank: IntLike, message: str | None = None, name: str | None = None
) -> Any:
    """Raise InvalidArgumentError unless ``x`` has ``rank`` axes or more; as :func:`assert_rank`."""
    least = static_int(rank, "rank")
    return _check_rank(x, lambda actual: actual >= least, f"rank {least} or more", message)


@entry
def assert_rank_in(
    x: TensorLike, ranks: TensorLike, message: str | None = None, name: str | None = None
) -> Any:
    """Raise InvalidArgumentError unless the number of axes is one of ``ranks``; as :func:`assert_rank`."""
    expected = ints(ranks, "ranks")
    return _check_rank(
        x, lambda actual: actual in expected, f"rank {' or '.join(map(str, expected))}", message
    )


@entry
def assert_scalar(tensor: TensorLike, message: str | None = None, name: str | None = None) -> Tensor:
    """``tensor`` as a tensor; an error unless it is a scalar.

    Raises:
        InvalidArgumentError: the rank is not 0.
    """
    _check_rank(tensor, lambda actual: actual == 0, "rank 0", message)
    return convert_to_tensor(tensor)


@entry
def assert_type(
    tensor: TensorLike, tf_type: DTypeLike, message: str | None = None, name: str | None = None
) -> None:
    """Raise an error unless ``tensor`` has the dtype ``tf_type``.

    Raises:
        DTypeError: the dtype differs.
    """
    expected, actual = as_dtype(tf_type), dtype_of(tensor)
    if actual is not expected:
        raise DTypeError(
            f"{_start(message)}Expected a tensor of dtype {expected.name}, not {actual.name}; cast it with "
            "df.cast."
        )


@entry
def assert_integer(x: TensorLike, message: str | None = None, name: str | None = None) -> None:
    """Raise an error unless ``x`` is a tensor of integers.

    Raises:
        DTypeError: it has another dtype.
    """
    dtype = dtype_of(x)
    if not dtype.is_integer:
        raise DTypeError(
            f"{_start(message)}Expected a tensor of integers, not {dtype.name}; cast it with df.cast."
        )


@entry
def assert_same_float_dtype(
    tensors: Sequence[TensorLike | None] | None = None, dtype: DTypeLike | None = None
) -> DType:
    """The float dtype that all ``tensors`` have.

    Args:
        tensors: tensors, of which some may be None.
        dtype: the expected dtype; by default that of the first tensor, and float32 without tensors.

    Raises:
        InvalidArgumentError: the dtypes differ, or are not of floats.

    >>> import dualflow as df
    >>> df.debugging.assert_same_float_dtype([df.ones([2]), df.ones([])])
    tf.float32
    """
    dtypes = [dtype_of(x) for x in tensors or () if x is not None]
    expected = as_dtype(dtype) if dtype is not None else dtypes[0] if dtypes else float32
    for actual in (expected, *dtypes):
        if actual is not expected or not actual.is_floating:
            raise InvalidArgumentError(
                f"Expected tensors of one floating dtype, {expected.name}, not {actual.name}; cast them with "
                "df.cast."
            )
    return expected


@entry
def assert_proper_iterable(values: TensorLike) -> None:
    """Raise an error unless ``values`` is an iterable of values, such as a list, and no tensor or string.

    Raises:
        DTypeError: it is a tensor, an array, a string, or can't be iterated over.
    """
    single = isinstance(values, (*TENSORS, np.ndarray, str, bytes))
    if single or not isinstance(values, Iterable):
        raise DTypeError(
            f"Expected a list or another iterable of values, not one of type {type(values).__name__}; put it "
            "into a list."
        )


@entry
def is_numeric_tensor(tensor: TensorLike) -> bool:
    """Whether ``tensor`` is a tensor or variable of numbers, which bools are not.

    >>> import dualflow as df
    >>> df.debugging.is_numeric_tensor(df.ones([2])), df.debugging.is_numeric_tensor(3)
    (True, False)
    """
    return isinstance(tensor, TENSORS) and not tensor.dtype.is_bool


@entry
def assert_shapes(
    shapes: Mapping[Any, Any] | Sequence[tuple[Any, Any]],
    data: TensorLike | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> None:
    """Raise an error unless tensors have the specified shapes.

    Args:
        shapes: pairs of a tensor and its shape, or a dict. Each size is an integer; or a string, a size
            variable that has one value in all shapes; or None or ``"."`` for any size. A first entry ``...``
            or ``"*"`` matches any number of axes. ``()`` and ``(1,)`` both match a scalar or a vector of one
            element. The shape ``"NM"`` is ``("N", "M")``.
        data: ignored: the error shows the shapes.
        summarize: ignored.
        message: the beginning of the error.
        name: ignored; as in TensorFlow.

    Raises:
        InvalidArgumentError: a tensor has another rank or size, or a specified shape is invalid.

    >>> import dualflow as df
    >>> x, y = df.ones([5, 3]), df.ones([4])
    >>> df.debugging.assert_shapes([(x, ("rows", 3)), (y, ("rows",))])
    Traceback (most recent call last):
    ...
    dualflow.core.errors.InvalidArgumentError: Axis 0 of a tensor of shape (4,) should have size 5, as ...
    """
    pairs = shapes.items() if isinstance(shapes, Mapping) else shapes
    bound: dict[Any, tuple[int, Sequence[Any] | None]] = {}
    for tensor, pattern in pairs:
        if pattern is not None and shape_of(tensor) is not UNKNOWN_RANK:
            _check_shape(python_shape(tensor), pattern, bound, message)


def _check_shape(
    shape: Sequence[Any],
    pattern: Any,
    bound: dict[Any, tuple[int, Sequence[Any] | None]],
    message: str | None,
) -> None:
    """Match a shape with a pattern; ``bound`` has the values of size variables, each with its source."""
    if not isinstance(pattern, Iterable):
        raise InvalidArgumentError(f"{_start(message)}A shape is a sequence of sizes, not {pattern!r}.")
    sizes = list(pattern)
    any_leading = bool(sizes) and sizes[0] in _ANY_AXES
    sizes = sizes[1:] if any_leading else sizes
    if any(size in _ANY_AXES for size in sizes):
        raise InvalidArgumentError(
            f"{_start(message)}'...' and '*' must be at the beginning of a shape, unlike in {tuple(pattern)}."
        )
    if not any_leading and len(sizes) <= 1 and len(shape) <= 1:  # a scalar matches a vector of one
        shape, sizes = shape or (1,), sizes or [1]
    if len(shape) < len(sizes) or (len(shape) > len(sizes) and not any_leading):
        axes = f"{len(sizes)} axes" + (" or more" if any_leading else "")
        raise InvalidArgumentError(
            f"{_start(message)}A tensor of shape {tuple(shape)} should have {axes}, for {tuple(pattern)}."
        )
    first = len(shape) - len(sizes)
    for axis, size in enumerate(sizes, first):
        if size in _ANY_SIZE or shape[axis] is None:
            continue
        if not isinstance(size, str):
            bound[size] = static_int(size, "a size"), None
        expected, other = bound.setdefault(size, (shape[axis], shape))
        if shape[axis] != expected:
            source = "as specified" if other is None else f"as {size!r} has in {tuple(other)}"
            raise InvalidArgumentError(
                f"{_start(message)}Axis {axis} of a tensor of shape {tuple(shape)} should have size "
                f"{expected}, {source}."
            )


def _check_rank(x: Any, fits: Callable[[int], bool], expected: str, message: str | None) -> Any:
    def assert_rank(tensor: Any) -> None:
        shape = shape_of(tensor)
        if not fits(len(shape)):
            raise InvalidArgumentError(
                f"{_start(message)}Expected a tensor of {expected}, but the shape is {shape}."
            )

    if shape_of(x) is UNKNOWN_RANK:
        return dispatch.current().postponed(assert_rank, (x,), {})
    return assert_rank(x)


def _start(message: str | None) -> str:
    return f"{message}. " if message else ""
