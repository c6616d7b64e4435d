"""The array of the standard: a mutable reference to a tensor, which item assignment replaces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self

import numpy as np

from dualflow.array_api.arithmetic import floor_quotient
from dualflow.core.dispatch import (
    AbstractComposite,
    AbstractTensor,
    AbstractVariable,
    DifferentiableComposite,
)
from dualflow.core.dtypes import DType, float64
from dualflow.core.errors import DTypeError
from dualflow.core.shape import Shape
from dualflow.core.tracebacks import entry, hide_frames
from dualflow.numpy.products import matrix_product
from dualflow.ops import arithmetic, bitwise, comparison, powers
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.item_assignment import assign_item, read_item
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import AnyArray

_SCALARS: Final = (bool, int, float, complex)
_ARRAYS: Final = (AbstractComposite, AbstractTensor, AbstractVariable)
_NUMPY: Final = (np.ndarray, np.generic)
_OPERANDS: Final = (*_ARRAYS, *_NUMPY, *_SCALARS)


def _operator(
    function: Callable[[Any, Any], Any], *, reflected: bool = False
) -> Callable[[Array, AnyArray | complex], Array]:
    """The method of an operator, which applies ``function`` to the tensors of both operands."""

    def method(self: Array, other: Any, /) -> Any:
        if not isinstance(other, _OPERANDS):
            return NotImplemented
        try:
            x, y = operands(self, other)
            return Array(function(y, x) if reflected else function(x, y))
        except Exception as error:
            hide_frames(error)
            raise

    return method


def _in_place(function: Callable[[Any, Any], Any]) -> Callable[[Array, AnyArray | complex], Array]:
    """The method of an operator such as ``+=``, which puts the result of ``function`` into the array."""

    def method(self: Array, other: Any, /) -> Any:
        if not isinstance(other, _OPERANDS):
            return NotImplemented
        try:
            self._replace_tensor(function(*operands(self, other)))
        except Exception as error:
            hide_frames(error)
            raise
        return self

    return method


class Array(DifferentiableComposite):
    """An array of the Array API standard, as all functions of :mod:`dualflow.array_api` return it.

    It holds a tensor: one with its value, or inside a traced function one without. ``x[key] = value`` and
    ``x += y`` compute a new tensor, which the array holds from then on. Other arrays don't see it, also those
    that were made by indexing or reshaping this one; nor do tapes and compiled functions, which have recorded
    the tensor that was there before.

    All functions of dualflow take arrays as they take tensors. In arguments and results of compiled
    functions, and as targets and sources of gradients, an array is a structure of one tensor: it comes back
    as an array.

    Args:
        tensor: the initial tensor. ``Array(x)`` returns anything else as it is, so that the gradient of an
            array that nothing depends on is None.

    >>> import dualflow.array_api as xp
    >>> x = xp.zeros(3)
    >>> x[1:] = 5.0
    >>> x
    Array([0., 5., 5.], dtype=float64)
    """

    __slots__ = ("__weakref__", "tensor")
    __array_priority__ = 200  # above tensors' and NumPy's, so that an operator with either gives an array
    __pandas_priority__ = 5000
    tensor: Tensor

    def __new__(cls, tensor: Any) -> Self:
        if not isinstance(tensor, AbstractTensor):
            return tensor  # type: ignore[no-any-return]  # see Args: anything else is returned as it is
        self = object.__new__(cls)
        self.tensor = tensor  # type: ignore[assignment]  # every tensor is a Tensor
        return self

    def __tree__(self) -> tuple[type[Array], tuple[str, ...], list[Any]]:
        return Array, ("tensor",), [self.tensor]

    @property
    def values(self) -> Tensor:
        """The tensor that holds the elements; gradients flow to it."""
        return self.tensor

    def with_values(self, new_values: AbstractTensor) -> Any:
        """An array of the tensor ``new_values``; anything else is returned as it is.

        Args:
            new_values: a tensor.
        """
        return Array(new_values)

    def __as_tensor__(self) -> Tensor:
        """The tensor that holds the elements, for ops to read."""
        return self.tensor

    # Properties

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return self.tensor.dtype

    @property
    def device(self) -> str:
        """The device that holds the elements: the CPU, by the name that tensors report."""
        return self.tensor.device

    @property
    def shape(self) -> Shape:
        """The size of each axis; None for one that is dynamic in a traced function."""
        return self.tensor.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.tensor.shape)

    @property
    def size(self) -> int | None:
        """The number of elements; None where a size is dynamic."""
        return self.tensor.shape.num_elements()

    @property
    @entry
    def T(self) -> Array:
        """The transpose of a matrix.

        Raises:
            InvalidArgumentError: an input is not a matrix.
        """
        return Array(self.tensor.T)

    @property
    @entry
    def mT(self) -> Array:
        """The array with its last two axes swapped.

        Raises:
            InvalidArgumentError: fewer than two axes.
        """
        return Array(self.tensor.mT)

    # Operators

    __add__ = _operator(arithmetic.add)
    __radd__ = _operator(arithmetic.add, reflected=True)
    __iadd__ = _in_place(arithmetic.add)
    __sub__ = _operator(arithmetic.subtract)
    __rsub__ = _operator(arithmetic.subtract, reflected=True)
    __isub__ = _in_place(arithmetic.subtract)
    __mul__ = _operator(arithmetic.multiply)
    __rmul__ = _operator(arithmetic.multiply, reflected=True)
    __imul__ = _in_place(arithmetic.multiply)
    __truediv__ = _operator(arithmetic.divide)
    __rtruediv__ = _operator(arithmetic.divide, reflected=True)
    __itruediv__ = _in_place(arithmetic.divide)
    __floordiv__ = _operator(floor_quotient)
    __rfloordiv__ = _operator(floor_quotient, reflected=True)
    __ifloordiv__ = _in_place(floor_quotient)
    __mod__ = _operator(arithmetic.mod)
    __rmod__ = _operator(arithmetic.mod, reflected=True)
    __imod__ = _in_place(arithmetic.mod)
    __pow__ = _operator(powers.pow)
    __rpow__ = _operator(powers.pow, reflected=True)
    __ipow__ = _in_place(powers.pow)
    __matmul__ = _operator(matrix_product)
    __rmatmul__ = _operator(matrix_product, reflected=True)
    __imatmul__ = _in_place(matrix_product)
    __and__ = _operator(bitwise.bitwise_and)
    __rand__ = _operator(bitwise.bitwise_and, reflected=True)
    __iand__ = _in_place(bitwise.bitwise_and)
    __or__ = _operator(bitwise.bitwise_or)
    __ror__ = _operator(bitwise.bitwise_or, reflected=True)
    __ior__ = _in_place(bitwise.bitwise_or)
    __xor__ = _operator(bitwise.bitwise_xor)
    __rxor__ = _operator(bitwise.bitwise_xor, reflected=True)
    __ixor__ = _in_place(bitwise.bitwise_xor)
    __lshift__ = _operator(bitwise.left_shift)
    __rlshift__ = _operator(bitwise.left_shift, reflected=True)
    __ilshift__ = _in_place(bitwise.left_shift)
    __rshift__ = _operator(bitwise.right_shift)
    __rrshift__ = _operator(bitwise.right_shift, reflected=True)
    __irshift__ = _in_place(bitwise.right_shift)
    __lt__ = _operator(comparison.less)
    __le__ = _operator(comparison.less_equal)
    __gt__ = _operator(comparison.greater)
    __ge__ = _operator(comparison.greater_equal)
    __eq__ = _operator(comparison.equal)  # type: ignore[assignment]  # elementwise
    __ne__ = _operator(comparison.not_equal)  # type: ignore[assignment]  # elementwise

    def __pos__(self, /) -> Array:
        return Array(self.tensor)

    def __neg__(self, /) -> Array:
        return Array(arithmetic.negative(self.tensor))

    def __abs__(self, /) -> Array:
        return Array(arithmetic.abs(self.tensor))

    def __invert__(self, /) -> Array:
        return Array(bitwise.invert(self.tensor))

    # Items

    @entry
    def __getitem__(self, key: Any, /) -> Array:
        return Array(read_item(self.tensor, key))

    @entry
    def __setitem__(self, key: Any, value: Any, /) -> None:
        self.tensor = assign_item(self.tensor, key, value)

    def _replace_tensor(self, tensor: Any) -> None:
        """Replace the tensor by another one of the same dtype and shape."""
        if tensor.shape != self.tensor.shape or tensor.dtype is not self.tensor.dtype:
            raise DTypeError(
                f"An array of {self.tensor.spec} stays so: an operator such as += can't put {tensor.spec} in "
                "its place. Write x = x + y, or convert the right side with astype."
            )
        self.tensor = tensor

    def __len__(self) -> int:
        return len(self.tensor)

    @entry
    def __iter__(self) -> Iterator[Array]:
        if not self.tensor.shape:
            raise DTypeError("An array without axes can't be iterated over; reshape it to (1,) first.")
        return (self[i] for i in range(len(self)))

    # Protocols of Python, NumPy and other libraries

    def __bool__(self, /) -> bool:
        return bool(self.tensor)

    def __int__(self, /) -> int:
        return int(self.tensor)

    def __float__(self, /) -> float:
        return float(self.tensor)

    def __complex__(self, /) -> complex:
        return complex(self.tensor)

    def __index__(self, /) -> int:
        return self.tensor.__index__()

    @entry
    def __hash__(self) -> NoReturn:
        raise DTypeError("Arrays compare elementwise and have no hash; use id(x) as the key.")

    def numpy(self) -> Any:
        """A copy of the value as a NumPy array, or as a NumPy scalar: ``x.tensor.numpy()``."""
        return self.tensor.numpy()

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        return self.tensor.tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return self.tensor.__array__(dtype, copy)

    @entry
    def __array_namespace__(self, /, *, api_version: str | None = None) -> ModuleType:
        return self.tensor.__array_namespace__(api_version=api_version)

    @entry
    def to_device(self, device: str, /, *, stream: object = None) -> Array:
        """The array on ``device``, which can only be the CPU, where it is.

        Args:
            device: "cpu" or the name of :attr:`device`.
            stream: None: the CPU has no streams.

        Raises:
            InvalidArgumentError: another device, or a stream, which the CPU has none of.
        """
        return Array(self.tensor.to_device(device, stream=stream))

    @entry
    def __dlpack__(
        self,
        /,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        return self.tensor.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    @entry
    def __dlpack_device__(self, /) -> tuple[Any, int]:
        return self.tensor.__dlpack_device__()

    def __copy__(self) -> Array:
        return Array(self.tensor)

    def __deepcopy__(self, memo: Any) -> Array:
        return Array(self.tensor)

    def __reduce__(self) -> tuple[Any, ...]:
        return Array, (self.tensor,)

    def __repr__(self) -> str:
        value = self.tensor.static_value()
        if value is None:
            return f"Array(shape={self.shape}, dtype={self.dtype.name})"
        return f"Array({np.array2string(value, separator=', ', prefix='Array(')}, dtype={self.dtype.name})"


def tensor_of(x: Any) -> Tensor:
    """The tensor of an array, a tensor, a variable, or an array or number of NumPy's.

    Raises:
        DTypeError: anything else, such as a list, which ``asarray`` takes.
    """
    if type(x) is Array:
        return x.tensor
    if isinstance(x, (*_ARRAYS, *_NUMPY)):
        return convert_to_tensor(x)
    raise DTypeError(
        f"The functions of the Array API take arrays, not {type(x).__name__}; convert it with asarray first."
    )


def as_floating_tensor(x: Any) -> Tensor:
    """:func:`tensor_of`, with integers and bools in the default floating dtype, float64."""
    tensor = tensor_of(x)
    return tensor if tensor.dtype.is_inexact else cast(tensor, float64)


def operands(x1: Any, x2: Any) -> tuple[Any, Any]:
    """The tensors of two operands; a Python number or a NumPy array adapts to the dtype of the other.

    With integers, Python's floats and complex numbers have the default dtypes, float64 and complex128.

    Raises:
        DTypeError: neither is an array.
    """
    if isinstance(x1, _ARRAYS):
        x = tensor_of(x1)
        return x, _other_operand(x2, x)
    y = tensor_of(x2)
    return _other_operand(x1, y), y


def _other_operand(value: Any, tensor: Tensor) -> Any:
    """``value`` as the other operand of an operator on ``tensor``; Python numbers adapt to its dtype."""
    if isinstance(value, _NUMPY):
        return value
    if isinstance(value, _SCALARS):
        adapts = tensor.dtype.is_inexact or not isinstance(value, float | complex)
        return value if adapts else np.asarray(value)
    return tensor_of(value)
