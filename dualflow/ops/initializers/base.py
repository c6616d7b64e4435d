"""The base class of initializers: options, random numbers, and the fans of weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

from dualflow.core import dispatch
from dualflow.core.dtypes import DType, as_dtype, float32
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.ops.random_numbers.draws import Source
from dualflow.ops.random_numbers.streams import STREAMS, Stream
from dualflow.ops.static import static_shape

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, ShapeLike


@entry
@dataclass(frozen=True)
class Initializer:
    """A function of a shape that returns the initial value of a variable.

    A subclass defines ``__call__`` with these arguments.

    >>> import dualflow as df
    >>> class Tens(df.initializers.Initializer):
    ...     def __call__(self, shape, dtype=None, **kwargs):
    ...         return df.fill(shape, 10.0)
    >>> df.Variable(Tens()([2])).numpy()
    array([10., 10.], dtype=float32)
    """

    @entry
    def __call__(self, shape: ShapeLike, dtype: DTypeLike | None = None, **kwargs: Any) -> Any:
        """The initial value.

        Args:
            shape: the sizes, known while tracing.
            dtype: the dtype of the value; None for that of the initializer, or float32.
            **kwargs: the partition of a larger variable; ignored.

        Returns:
            A tensor of shape ``shape``.

        Raises:
            InvalidArgumentError: a size is unknown, or the initializer doesn't support the shape.
            DTypeError: the initializer doesn't support the dtype.
        """
        target = getattr(self, "dtype", float32) if dtype is None else dtype
        return self._value(fully_static_shape(shape), None if target is None else as_dtype(target))

    def _value(self, sizes: tuple[int, ...], dtype: Any) -> Any:
        raise NotImplementedError("An initializer defines __call__(shape, dtype=None, **kwargs).")

    def get_config(self) -> dict[str, Any]:
        """The options, from which :meth:`from_config` constructs an equal initializer."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "dtype"}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """The initializer with these options.

        Args:
            config: as :meth:`get_config` returns it.
        """
        return cls(**config)


def floating(dtype: DType) -> DType:
    """``dtype``, which must be a float dtype."""
    if not dtype.is_floating:
        raise DTypeError(f"the numbers are floats, not {dtype.name}; take another initializer or df.float32.")
    return dtype


def source(seed: int | None) -> Source:
    """The source of an initializer's random numbers: with a seed the same at each call, else a new one.

    The ops of an explicit graph have streams of their own.
    """
    recorded: Source | None = dispatch.current().innermost.stream(seed)
    if recorded is not None:
        return recorded
    if seed is None:
        return STREAMS.of(None)
    return Stream(STREAMS.seeds_with(seed))


def fully_static_shape(shape: Any) -> tuple[int, ...]:
    """``shape`` as a tuple of ints, checked to be static.

    Raises:
        InvalidArgumentError: a size is unknown.
    """
    sizes = list(shape) if isinstance(shape, list | tuple) else shape
    if isinstance(sizes, list) and any(n is None for n in sizes):
        raise InvalidArgumentError(
            f"A variable of shape {sizes} can't be initialized: every size must be known."
        )
    return static_shape(sizes)


def fans(shape: Sequence[int]) -> tuple[int, int]:
    """The numbers of inputs per output and of outputs per input of a layer with weights of this shape.

    >>> fans([3, 4]), fans([5, 5, 3, 4])
    ((3, 4), (75, 100))
    """
    if len(shape) < 2:
        return (shape[0], shape[0]) if shape else (1, 1)
    field = math.prod(shape[:-2])
    return field * shape[-2], field * shape[-1]
