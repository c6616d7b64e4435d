"""Initializers without random numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dualflow.core.dtypes import float32
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.ops import creation
from dualflow.ops.initializers.base import Initializer
from dualflow.ops.positions import eye

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, TensorLike


@entry
@dataclass(frozen=True)
class Zeros(Initializer):
    """All zeros.

    Args:
        dtype: the dtype of values for which none is requested; float32 by default.

    >>> import dualflow as df
    >>> df.zeros_initializer()([2]).numpy().tolist()
    [0.0, 0.0]
    """

    dtype: DTypeLike | None = float32

    def _value(self, sizes: tuple[int, ...], dtype: Any) -> Any:
        return creation.zeros(sizes, dtype)


@entry
@dataclass(frozen=True)
class Ones(Initializer):
    """All ones.

    Args:
        dtype: the dtype of values for which none is requested; float32 by default.

    >>> import dualflow as df
    >>> df.ones_initializer()([2]).numpy().tolist()
    [1.0, 1.0]
    """

    dtype: DTypeLike | None = float32

    def _value(self, sizes: tuple[int, ...], dtype: Any) -> Any:
        return creation.ones(sizes, dtype)


@entry
@dataclass(frozen=True)
class Constant(Initializer):
    """A value, or one number everywhere.

    Args:
        value: a number for all elements, or as many numbers as the shape has elements.
        dtype: the dtype of values for which none is requested; float32 by default.

    >>> import dualflow as df
    >>> df.initializers.Constant(3)([2]).numpy().tolist()
    [3.0, 3.0]
    """

    value: TensorLike = 0.0
    dtype: DTypeLike | None = float32

    def _value(self, sizes: tuple[int, ...], dtype: Any) -> Any:
        return creation.constant(self.value, dtype, sizes)


@entry
@dataclass(frozen=True)
class TypedConstant(Constant):
    """A value, or one number for all elements, with its own dtype.

    Args:
        value: a number for all elements, or as many numbers as the shape has elements.
        dtype: the dtype of values for which none is requested; None for that of ``value``.
        support_partition: ignored.

    >>> import dualflow as df
    >>> df.constant_initializer([1, 2])([2]).numpy()
    array([1, 2], dtype=int32)
    """

    value: TensorLike = 0
    dtype: DTypeLike | None = None
    support_partition: bool = False

    def _value(self, sizes: tuple[int, ...], dtype: Any) -> Any:
        return creation.constant(self.value, dtype, sizes)


@entry
@dataclass(frozen=True)
class Identity(Initializer):
    """A matrix with ``gain`` on its diagonal.

    Args:
        gain: the number.
        dtype: the dtype of values for which none is requested; float32 by default.

    >>> import dualflow as df
    >>> df.initializers.Identity(2.0)([2, 3]).numpy().tolist()
    [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]]
    """

    gain: float = 1.0
    dtype: DTypeLike | None = float32

    def _value(self, sizes: tuple[int, ...], dtype: Any) -> Any:
        if len(sizes) != 2:
            raise InvalidArgumentError(f"Identity makes matrices, not shape {sizes}; give two sizes.")
        return eye(*sizes, dtype=dtype) * self.gain
