"""What must hold of dtypes, ranks and shapes, which are known before there are values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core.dispatch import TENSORS
from dualflow.core.dtypes import DType, as_dtype, float32
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import UNKNOWN_RANK
from dualflow.core.tracebacks import entry
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.static import dtype_of, ints, shape_of, static_int

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor

_ANY_AXES: Final = (..., "...", "*")
_ANY_SIZE: Final = (None, ".")


@entry
def assert_rank(x: Any, rank: Any, message: str | None = None, name: str | None = None) -> None:
    """Raise unless ``x`` has ``rank`` axes.

    Raises:
        InvalidArgumentError: it has more or fewer.

    >>> import dualflow as df
    >>> df.debugging.assert_rank(df.ones([2, 3]), 1, message="rows")
    Traceback (most recent call last):
    ...
    dualflow.core.errors.InvalidArgumentError: rows. A tensor of rank 1 is wanted, but the shape is (2, 3).
    """
    wanted = static_int(rank, "rank")
    _check_rank(x, lambda found: found == wanted, f"rank {wanted}", message)


@entry
def assert_rank_at_least(x: Any, rank: Any, message: str | None = None, name: str | None = None) -> None:
    """Raise InvalidArgumentError unless ``x`` has ``rank`` axes or more; as :func:`assert_rank`."""
    wanted = static_int(rank, "rank")
    _check_rank(x, lambda found: found >= wanted, f"rank {wanted} or more", message)


@entry
def assert_rank_in(x: Any, ranks: Any, message: str | None = None, name: str | None = None) -> None:
    """Raise InvalidArgumentError unless the number of axes is one of ``ranks``; as :func:`assert_rank`."""
    wanted = ints(ranks, "ranks")
    _check_rank(x, lambda found: found in wanted, f"rank {' or '.join(map(str, wanted))}", message)


@entry
def assert_scalar(tensor: Any, message: str | None = None, name: str | None = None) -> Tensor:
    """``tensor``, which must have no axes.

    Raises:
        InvalidArgumentError: it has some.
    """
    _check_rank(tensor, lambda found: found == 0, "rank 0", message)
    return convert_to_tensor(tensor)


@entry
def assert_type(tensor: Any, tf_type: Any, message: str | None = None, name: str | None = None) -> None:
    """Raise unless ``tensor`` has the dtype ``tf_type``.

    Raises:
        DTypeError: it has another one.
    """
    wanted, found = as_dtype(tf_type), dtype_of(tensor)
    if found is not wanted:
        raise DTypeError(
            f"{_start(message)}A tensor of dtype {wanted.name} is wanted, not {found.name}; cast it with "
            "df.cast."
        )


@entry
def assert_integer(x: Any, message: str | None = None, name: str | None = None) -> None:
    """Raise unless ``x`` is of integers.

    Raises:
        DTypeError: it has another dtype.
    """
    found = dtype_of(x)
    if not found.is_integer:
        raise DTypeError(
            f"{_start(message)}A tensor of integers is wanted, not {found.name}; cast it with df.cast."
        )


@entry
def assert_same_float_dtype(tensors: Any = None, dtype: Any = None) -> DType:
    """The one dtype of floats that all ``tensors`` have.

    Args:
        tensors: tensors, of which some may be None.
        dtype: the dtype they should have; that of the first by default, and float32 where there is none.

    Raises:
        InvalidArgumentError: they have several, or one that is not of floats.

    >>> import dualflow as df
    >>> df.debugging.assert_same_float_dtype([df.ones([2]), df.ones([])])
    dualflow.float32
    """
    given = [dtype_of(x) for x in tensors or () if x is not None]
    wanted = as_dtype(dtype) if dtype is not None else given[0] if given else float32
    for found in (wanted, *given):
        if found is not wanted or not found.is_floating:
            raise InvalidArgumentError(
                f"Tensors of one floating dtype are wanted, {wanted.name}, not {found.name}; cast them with "
                "df.cast."
            )
    return wanted


@entry
def assert_proper_iterable(values: Any) -> None:
    """Raise unless ``values`` is an iterable of values, such as a list, and no tensor or string.

    Raises:
        DTypeError: it is a tensor, an array, a string, or can't be iterated over.
    """
    single = isinstance(values, (*TENSORS, np.ndarray, str, bytes))
    if single or not isinstance(values, Iterable):
        raise DTypeError(
            f"A list or another iterable of values is wanted, not one of type {type(values).__name__}; put "
            "it into a list."
        )


@entry
def is_numeric_tensor(tensor: Any) -> bool:
    """Whether ``tensor`` is a tensor or variable of numbers, which bools are not.

    >>> import dualflow as df
    >>> df.debugging.is_numeric_tensor(df.ones([2])), df.debugging.is_numeric_tensor(3)
    (True, False)
    """
    return isinstance(tensor, TENSORS) and not tensor.dtype.is_bool


@entry
def assert_shapes(
    shapes: Any,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> None:
    """Raise unless tensors have the shapes that are written for them.

    Args:
        shapes: pairs of a tensor and its shape, or a dict. Each size is an integer; or a string, which
            stands for the same size wherever it is written; or None or ``"."`` for any size. A first entry
            ``...`` or ``"*"`` stands for any number of axes. ``()`` is a scalar or a vector of one element,
            and so is ``(1,)``. The shape ``"NM"`` is ``("N", "M")``.
        data: ignored: the error tells the shapes.
        summarize: ignored.
        message: what the error begins with.
        name: ignored; as in TensorFlow.

    Raises:
        InvalidArgumentError: a tensor has another rank or size, or a shape is written in another way.

    >>> import dualflow as df
    >>> x, y = df.ones([5, 3]), df.ones([4])
    >>> df.debugging.assert_shapes([(x, ("rows", 3)), (y, ("rows",))])
    Traceback (most recent call last):
    ...
    dualflow.core.errors.InvalidArgumentError: Axis 0 of a tensor of shape (4,) should have size 5, as ...
    """
    pairs = shapes.items() if isinstance(shapes, Mapping) else shapes
    known: dict[Any, tuple[int, str]] = {}
    for tensor, written in pairs:
        if written is not None and shape_of(tensor) is not UNKNOWN_RANK:
            _check_shape(shape_of(tensor), written, known, message)


def _check_shape(
    found: Sequence[Any], written: Any, known: dict[Any, tuple[int, str]], message: str | None
) -> None:
    """Refuse a shape that is not as written; ``known`` has the sizes of symbols, and where they are from."""
    if not isinstance(written, Iterable):
        raise InvalidArgumentError(f"{_start(message)}A shape is a sequence of sizes, not {written!r}.")
    sizes = list(written)
    anywhere = bool(sizes) and sizes[0] in _ANY_AXES
    sizes = sizes[1:] if anywhere else sizes
    if any(size in _ANY_AXES for size in sizes):
        raise InvalidArgumentError(
            f"{_start(message)}'...' and '*' stand at the beginning of a shape only, not in {tuple(written)}."
        )
    if not anywhere and len(sizes) <= 1 and len(found) <= 1:  # a scalar is as good as a vector of one
        found, sizes = found or (1,), sizes or [1]
    if len(found) < len(sizes) or (len(found) > len(sizes) and not anywhere):
        axes = f"{len(sizes)} axes" + (" or more" if anywhere else "")
        raise InvalidArgumentError(
            f"{_start(message)}A tensor of shape {tuple(found)} should have {axes}, for {tuple(written)}."
        )
    first = len(found) - len(sizes)
    for axis, size in enumerate(sizes, first):
        if size in _ANY_SIZE or found[axis] is None:
            continue
        if not isinstance(size, str):
            known[size] = static_int(size, "a size"), "as is written"
        wanted, why = known.setdefault(size, (found[axis], f"as {size!r} has in {tuple(found)}"))
        if found[axis] != wanted:
            raise InvalidArgumentError(
                f"{_start(message)}Axis {axis} of a tensor of shape {tuple(found)} should have size "
                f"{wanted}, {why}."
            )


def _check_rank(x: Any, fits: Any, wanted: str, message: str | None) -> None:
    shape = shape_of(x)
    if shape is not UNKNOWN_RANK and not fits(len(shape)):
        raise InvalidArgumentError(
            f"{_start(message)}A tensor of {wanted} is wanted, but the shape is {shape}."
        )


def _start(message: str | None) -> str:
    return f"{message}. " if message else ""
