"""Types of the arguments of public functions, such as ``df.types.experimental.TensorLike``, for annotations.

Functions convert their arguments, so each type lists what the conversion accepts. Type checkers alone read
these: at run time they are strings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from dualflow.core.dtypes import DTypeLike as DTypeLike

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from dualflow.core.dispatch import AbstractComposite, AbstractTensor, AbstractVariable
    from dualflow.core.shape import Shape


class SupportsArray(Protocol):
    """An object that NumPy can convert: arrays and scalars of NumPy, and objects of other libraries."""

    def __array__(self) -> np.ndarray[Any, Any]:
        """The values as an array."""
        ...


class SupportsDLPack(Protocol):
    """An object whose memory other libraries can read by the DLPack protocol."""

    def __dlpack__(self, *, stream: None = None) -> Any:
        """The memory, as a capsule."""
        ...

    def __dlpack_device__(self) -> tuple[Any, Any]:
        """The kind and the number of the device that holds it."""
        ...


_Tensors: TypeAlias = "AbstractTensor | AbstractVariable | AbstractComposite"

TensorLike: TypeAlias = "_Tensors | SupportsArray | Shape | complex | str | Sequence[TensorLike]"
"""A value that ops convert to a tensor."""

IntLike: TypeAlias = "int | np.integer[Any] | np.ndarray[Any, Any] | AbstractTensor | AbstractVariable"
"""An integer, or a tensor of one."""

IntsLike: TypeAlias = "IntLike | SupportsArray | Sequence[IntLike]"
"""One or several integers: sizes of windows, strides, paddings."""

AxisLike: TypeAlias = "IntLike | SupportsArray | Sequence[IntLike]"
"""One or several axes; negative ones count from the last."""

ShapeLike: TypeAlias = "IntLike | SupportsArray | Sequence[IntLike | None]"
"""A shape, whose unknown sizes are None; one integer is the shape of a vector."""

AnyArray: TypeAlias = "_Tensors | np.ndarray[Any, Any] | np.generic"
"""What the functions of the Array API take as an array: arrays, tensors and variables, but no lists."""

PaddingLike: TypeAlias = "str | Sequence[Sequence[int]]"
"""The padding of windows: "SAME", "VALID", or numbers of zeros before and after each axis."""
