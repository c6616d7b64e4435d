"""Shapes and broadcasting."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import FrameType, NoneType
from typing import Any, ClassVar, Final, NoReturn, SupportsIndex, TypeAlias

import numpy as np

from dualflow.core.errors import DTypeError, InvalidArgumentError, ResourceExhaustedError
from dualflow.core.own_files import OWN_FILES

Dim = int | None
Sizes: TypeAlias = Iterable[SupportsIndex | None] | SupportsIndex | None
"""What :func:`as_shape` converts: sizes, the only size, or None for an unknown rank."""


PLAIN_SIZES: Final[set[type]] = {int, NoneType}
"""The types of sizes that a shape keeps as they are; ``sizes`` adds that of symbolic sizes."""
_SEQUENCES: Final = list, tuple
"""The types of sequences of sizes that a shape may be equal to."""


class Shape(tuple[Dim, ...]):
    """A tensor's shape: a tuple of ints; ``None`` is a size that is unknown while tracing.

    ``Shape(None)`` is the shape of unknown rank, and ``Shape(5)`` that of 5 elements in one axis.

    >>> s = Shape([2, 3])
    >>> s.rank, s.as_list(), s.num_elements(), s == [2, 3]
    (2, [2, 3], 6, True)
    """

    __slots__ = ()

    def __new__(cls, dims: Iterable[Dim] | SupportsIndex | None = ()) -> Shape:
        if dims is None or isinstance(dims, _UnknownRank):
            return UNKNOWN_RANK
        kind = type(dims)
        if kind is cls:
            return dims  # type: ignore[return-value]  # a Shape, as its type is
        is_iterable = kind is tuple or kind is list or isinstance(dims, Iterable)
        sizes = tuple(dims) if is_iterable else (operator.index(dims),)  # type: ignore[arg-type]  # tested above
        if not PLAIN_SIZES.issuperset(map(type, sizes)):  # NumPy's integers have a limit, sizes have none
            sizes = tuple([int(d) if isinstance(d, np.integer) else d for d in sizes])
        return super().__new__(cls, sizes)

    @property
    def rank(self) -> int:
        return len(self)

    @property
    def ndims(self) -> int:
        return len(self)

    @property
    def dims(self) -> list[Dim]:
        return list(self)

    @property
    def is_static(self) -> bool:
        """Whether every size is known."""
        return NoneType not in map(type, self)

    def as_list(self) -> list[Dim]:
        return list(self)

    def is_fully_defined(self) -> bool:
        return self.is_static

    def num_elements(self) -> Dim:
        """The number of elements; None if a size is unknown."""
        return math.prod(self) if self.is_static else None  # type: ignore[arg-type]  # static: no None left

    def concatenate(self, other: Sizes) -> Shape:
        """The sizes of this shape followed by those of another one.

        >>> Shape([2, None]).concatenate([3])
        (2, None, 3)
        """
        shape = as_shape(other)
        return UNKNOWN_RANK if UNKNOWN_RANK in (self, shape) else Shape((*self, *shape))

    def is_compatible_with(self, other: Sizes) -> bool:
        """Whether a tensor may have both shapes: their sizes are equal where both are known.

        >>> Shape([2, None]).is_compatible_with([None, 3]), Shape([2]).is_compatible_with([3])
        (True, False)
        """
        shape = as_shape(other)
        if UNKNOWN_RANK in (self, shape):
            return True
        return len(self) == len(shape) and all(
            a == b or a is None or b is None for a, b in zip(self, shape, strict=True)
        )

    def merge_with(self, other: Sizes) -> Shape:
        """The shape with the known sizes of both shapes.

        Raises:
            InvalidArgumentError: the shapes are incompatible.

        >>> Shape([2, None]).merge_with([None, 3])
        (2, 3)
        """
        shape = as_shape(other)
        self.assert_is_compatible_with(shape)
        if self is UNKNOWN_RANK or shape is UNKNOWN_RANK:
            return shape if self is UNKNOWN_RANK else self
        return Shape(b if a is None else a for a, b in zip(self, shape, strict=True))

    def most_specific_compatible_shape(self, other: Sizes) -> Shape:
        """The sizes that both shapes share: other sizes are unknown; of unknown rank if the ranks differ.

        >>> Shape([2, 3]).most_specific_compatible_shape([2, 4])
        (2, None)
        """
        shape = as_shape(other)
        if UNKNOWN_RANK in (self, shape) or len(self) != len(shape):
            return UNKNOWN_RANK
        return Shape(a if a == b else None for a, b in zip(self, shape, strict=True))

    def with_rank(self, rank: int) -> Shape:
        """This shape, which must have ``rank`` axes; an unknown rank becomes ``rank`` unknown sizes.

        Raises:
            InvalidArgumentError: it has more or fewer.
        """
        if self is UNKNOWN_RANK:
            return Shape([None] * rank)
        return self._ranked(len(self) == rank, f"must have rank {rank}")

    def with_rank_at_least(self, rank: int) -> Shape:
        """This shape, unless it has fewer than ``rank`` axes, which is an InvalidArgumentError."""
        return self._ranked(self is UNKNOWN_RANK or len(self) >= rank, f"must have rank at least {rank}")

    def with_rank_at_most(self, rank: int) -> Shape:
        """This shape, unless it has more than ``rank`` axes, which is an InvalidArgumentError."""
        return self._ranked(self is UNKNOWN_RANK or len(self) <= rank, f"must have rank at most {rank}")

    def _ranked(self, right: bool, requirement: str) -> Shape:
        if not right:
            raise InvalidArgumentError(f"Shape {self} {requirement}; reshape the tensor.")
        return self

    def assert_is_compatible_with(self, other: Sizes) -> None:
        """Raise InvalidArgumentError unless a tensor may have both shapes."""
        if not self.is_compatible_with(other):
            raise InvalidArgumentError(
                f"Shapes {self} and {as_shape(other)} are incompatible; reshape one of the tensors."
            )

    def assert_has_rank(self, rank: int) -> None:
        """Raise InvalidArgumentError unless there are ``rank`` axes, or unknown ones."""
        self.with_rank(rank)

    def assert_same_rank(self, other: Sizes) -> None:
        """Raise InvalidArgumentError unless both shapes have as many axes, or unknown ones."""
        shape = as_shape(other)
        if shape is not UNKNOWN_RANK:
            self.with_rank(len(shape))

    def assert_is_fully_defined(self) -> None:
        """Raise InvalidArgumentError unless every size is known."""
        if not self.is_static:
            raise InvalidArgumentError(f"Shape {self} is not fully defined; give each size.")

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return tuple.__eq__(self, tuple(other)) if isinstance(other, _SEQUENCES) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    def __getitem__(self, key: Any) -> Any:
        item = tuple.__getitem__(self, key)
        return Shape(item) if isinstance(key, slice) else item

    def __add__(self, other: Iterable[Dim]) -> Shape:  # type: ignore[override]  # lists join too, as in TensorFlow
        return Shape((*self, *other))

    def __radd__(self, other: Iterable[Dim]) -> Shape:
        return Shape((*other, *self))

    def __repr__(self) -> str:
        return tuple.__repr__(self)


class _UnknownRank(Shape):
    """The shape of a tensor of unknown rank: operations that need the rank raise an error."""

    __slots__ = ()

    rank = ndims = dims = None  # type: ignore[assignment]  # no other shape lacks them
    unknown_size: ClassVar[Any] = None
    """What a program gets for one of its sizes."""

    @property
    def is_static(self) -> bool:
        return False

    def num_elements(self) -> Dim:
        """None: the sizes are unknown."""
        return None

    def _refuse(self, *_: object) -> NoReturn:
        raise InvalidArgumentError(
            "The rank of a tensor is unknown where it is needed. Give the placeholder, or the spec, a "
            "shape: [] for a number, [None, 3] for any number of rows of 3."
        )

    __len__ = __iter__ = __contains__ = _refuse

    def __getitem__(self, key: Any) -> Any:
        """For programs an unknown size, or shape, as in TensorFlow; dualflow itself needs the rank."""
        if _is_own(sys._getframe(1)):
            self._refuse()
        return self if isinstance(key, slice) else self.unknown_size

    def __add__(self, other: Iterable[Dim]) -> Shape:  # type: ignore[override]  # as Shape's
        return self._refuse() if _is_own(sys._getframe(1)) else self

    __radd__ = __add__

    def __bool__(self) -> bool:
        return False

    def as_list(self) -> list[Dim]:
        """Raises: the number of sizes is unknown."""
        return self._refuse()

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return Shape, (None,)

    def __repr__(self) -> str:
        return "<unknown>"


def _is_own(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(OWN_FILES)


def set_size_class(size_class: Callable[[Dim], Any] | None, is_internal: Callable[[FrameType], bool]) -> None:
    """Let ``shape[i]``, ``for size in shape`` and ``shape.dims`` return ``size_class(size)`` in user code.

    TensorFlow 1's shapes have objects as sizes, which the library itself must not see, and are true also
    without sizes. Frames for which ``is_internal`` is true still get integers and None, and a tuple's truth,
    as all do without a class.
    """
    _UnknownRank.unknown_size = None if size_class is None else size_class(None)
    if size_class is None:
        Shape.__getitem__, Shape.dims = _ITEM, _DIMS  # type: ignore[method-assign]  # for the whole process
        if "__iter__" in vars(Shape):
            del Shape.__iter__, Shape.__bool__  # type: ignore[attr-defined]  # set below
        return

    def item(self: Shape, key: Any) -> Any:
        value = _ITEM(self, key)
        return value if isinstance(key, slice) or is_internal(sys._getframe(1)) else size_class(value)

    def sizes(self: Shape) -> Iterator[Any]:
        integers = tuple.__iter__(self)
        return integers if is_internal(sys._getframe(1)) else map(size_class, integers)

    def dims(self: Shape) -> list[Any]:
        integers = list(tuple.__iter__(self))
        return integers if is_internal(sys._getframe(1)) else [size_class(n) for n in integers]

    def truth(self: Shape) -> bool:
        return tuple.__len__(self) > 0 or not is_internal(sys._getframe(1))

    Shape.__bool__ = truth  # type: ignore[attr-defined]  # as above
    Shape.__getitem__, Shape.__iter__ = item, sizes  # type: ignore[method-assign,assignment]  # as above
    Shape.dims = property(dims)  # type: ignore[method-assign,assignment]  # as above


_ITEM: Final = Shape.__getitem__
_DIMS: Final = Shape.dims
UNKNOWN_RANK: Final = _UnknownRank()
MAX_ELEMENTS = 1 << 46
SCALAR = Shape()
_OF_NUMBERS: Final = (Shape, _UnknownRank)
"""The classes of shapes without guarded sizes."""


def as_shape(value: Any) -> Shape:
    """``value`` (an int, or a sequence of ints or None) as a :class:`Shape`; None is an unknown rank.

    Raises:
        DTypeError: an entry is not an integer.
        InvalidArgumentError: an entry is negative.
        ResourceExhaustedError: more elements than any machine holds.
    """
    if isinstance(value, Shape):
        return value if type(value) in _OF_NUMBERS else Shape([d if d is None else int(d) for d in value])
    if value is None:
        return UNKNOWN_RANK
    entries = value if isinstance(value, Iterable) else (value,)
    try:
        shape = Shape(None if d is None else operator.index(d) for d in entries)
    except TypeError:
        raise DTypeError(
            f"A shape is a sequence of integers, or of None for a dynamic size, not {value!r}."
        ) from None
    check_size(shape)
    return shape


def check_size(shape: Sequence[Dim]) -> None:
    """Raise for negative sizes, and for shapes with more elements than an array can have.

    As in NumPy, sizes of 0 are ignored in the number of elements, since strides must be representable.
    """
    static = [d for d in shape if type(d) is int]  # dynamic sizes are checked at run time
    if any(d < 0 for d in static):
        raise InvalidArgumentError(
            f"A shape has no negative sizes, but got {tuple(shape)}; only df.reshape takes a -1."
        )
    if math.prod(filter(None, static)) > MAX_ELEMENTS:
        raise ResourceExhaustedError(
            f"A tensor of shape {tuple(shape)} has more elements than memory can hold; make it smaller."
        )


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """The shape that ``shapes`` broadcast to, by NumPy's rule.

    Raises:
        InvalidArgumentError: two sizes of one axis differ and neither is 1.

    >>> broadcast([Shape([3, 1]), Shape([4])])
    (3, 4)
    """
    first = shapes[0]
    for shape in shapes:  # shapes of one hash are equal without a comparison of symbolic sizes
        if shape is not first and (hash(shape) != hash(first) or shape != first):
            break
    else:
        return first
    rank = max(map(len, shapes))
    aligned = [(*(1,) * (rank - len(s)), *s) for s in shapes]
    return Shape(tuple([_broadcast_axis(dims, shapes) for dims in zip(*aligned, strict=True)]))


def _broadcast_axis(dims: Sequence[Dim], shapes: Sequence[Shape]) -> Dim:
    longer = {d for d in dims if type(d) is not int or d != 1}
    if len(longer) < 2:  # a symbolic size is not compared with 1
        return longer.pop() if longer else 1
    sizes = {d for d in longer if d is not None and d != 1}
    if len(sizes) > 1:
        listed = " and ".join(str(tuple(s)) for s in shapes)
        raise InvalidArgumentError(
            f"shapes {listed} do not broadcast: sizes {' and '.join(map(str, sorted(sizes)))} meet on one "
            "axis. Sizes must be equal or 1, counted from the last axis; reshape or transpose one of them."
        )
    return sizes.pop() if sizes else (None if None in dims else 1)


def normalize_axis(axis: int, rank: int) -> int:
    """``axis`` counted from the front.

    Raises:
        InvalidArgumentError: ``axis`` is outside ``[-rank, rank)``.
    """
    try:
        index = operator.index(axis)
    except TypeError:
        raise DTypeError(f"An axis is a Python integer, such as 0 or -1, not {axis!r}.") from None
    if not -rank <= index < rank:
        raise InvalidArgumentError(
            f"axis {index} is out of range for a tensor of rank {rank}: use {-rank}..{rank - 1}."
        )
    return index % rank


def normalize_axes(axis: Any, rank: int) -> tuple[int, ...]:
    """Every axis for None, else the given axis or axes counted from the front, sorted and distinct."""
    if axis is None:
        return tuple(range(rank))
    entries = axis if isinstance(axis, Iterable) else (axis,)
    axes = [normalize_axis(a, rank) for a in entries]
    if len(set(axes)) != len(axes):
        raise InvalidArgumentError(f"axis {axis} names an axis twice; name each once.")
    return tuple(sorted(axes))
