"""The operators and methods of tensors, each of them an op."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self

import numpy as np

from dualflow.core import dispatch
from dualflow.core.device_names import CPU, check_device
from dualflow.core.dispatch import AbstractTensor
from dualflow.core.dtypes import DType
from dualflow.core.errors import DTypeError, InvalidArgumentError, MissingAttributeError
from dualflow.core.numpy_protocols import NumPyProtocol, array_function, array_ufunc
from dualflow.core.reference import Reference
from dualflow.core.shape import Shape, as_shape, broadcast
from dualflow.core.tracebacks import entry, hide_frames
from dualflow.ops import arithmetic, bitwise, comparison, powers
from dualflow.ops.arrangement import swapped_matrix_axes, transpose
from dualflow.ops.contraction import matmul
from dualflow.ops.elementwise import OpFunction
from dualflow.ops.indexing import getitem
from dualflow.ops.static import never_equal, shape_of

if TYPE_CHECKING:
    from dualflow.core.argument_types import ShapeLike, TensorLike

_PACKAGE: Final = __name__.partition(".")[0]
API_VERSIONS: Final = ("2021.12", "2022.12", "2023.12", "2024.12")
"""The versions of the Array API standard that the namespace supports; each holds those before it."""

_OPERATORS: Final = (
    "abs add and eq floordiv ge getitem gt invert le lt matmul mod mul ne neg or pow radd rand rfloordiv "
    "rmatmul rmod rmul ror rpow rsub rtruediv rxor sub truediv xor"
)


class NumPyName:
    """A descriptor for an attribute of NumPy's arrays that tensors lack: reading it raises an error.

    A class with ``__getattr__`` could do that too, but reads of all its attributes would be slower: of a
    variable's value by 60 %.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    @entry
    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise MissingAttributeError(
            f"{owner.__name__!r} object has no attribute {self._name!r}. NumPy's methods are functions of "
            "df.numpy; tensors have them after df.numpy.experimental_enable_numpy_behavior()."
        )


def _reflected(function: OpFunction) -> Callable[[Any, Any], Any]:
    """The method that Python calls if the tensor is the right operand."""
    op = function.op

    def reflected(self: Any, other: Any) -> Any:
        try:
            return dispatch.current().binary(op, other, self)
        except Exception as error:
            hide_frames(error)
            raise

    return reflected


def _broadcast(x: Any, y: Any) -> bool:
    """Whether two values have shapes in which they can be compared; others are not equal."""
    try:
        broadcast([x.shape, shape_of(y)])
    except ValueError:
        return False
    return True


class Operators:
    """Python's operators for tensors, and for variables, which an op reads.

    They broadcast, and an array or a Python number on either side becomes a tensor.
    """

    __slots__ = ()
    __array_priority__ = 100
    __array_ufunc__ = NumPyProtocol(array_ufunc)
    __array_function__ = NumPyProtocol(array_function)
    __pandas_priority__ = (
        5000  # above that of pandas' classes, so that an operator gives a tensor, as array's do
    )
    shape: Shape
    dtype: DType

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int | None:
        """The number of elements; None inside a traced function if a size is unknown."""
        return self.shape.num_elements()

    def get_shape(self) -> Shape:
        """The static shape: TensorFlow's other name of ``shape``.

        Raises nothing.

        Returns:
            A :class:`dualflow.TensorShape`, with None for sizes that are known at run time only.

        >>> import dualflow as df
        >>> df.constant([1, 2]).get_shape()
        (2,)
        """
        return self.shape

    def ref(self) -> Reference:
        """A hashable reference for dicts and sets; equal to references to the same tensor or variable only.

        Raises nothing.

        Returns:
            A :class:`Reference`, whose ``deref()`` is the tensor or variable.

        >>> import dualflow as df
        >>> x = df.constant([1, 2])
        >>> x.ref() == x.ref(), x.ref().deref() is x
        (True, True)
        """
        return Reference(self)

    @property
    def device(self) -> str:
        """TensorFlow's full name of the device that holds the elements: the CPU."""
        return CPU

    @entry
    def to_device(self, device: object, /, *, stream: object = None) -> Self:
        """The tensor itself: the CPU is the only device.

        Args:
            device: "cpu" or TensorFlow's full name of it.
            stream: None.

        Returns:
            The tensor itself.

        Raises:
            InvalidArgumentError: another device, or a stream.

        >>> import dualflow as df
        >>> x = df.constant([1, 2])
        >>> x.to_device("cpu") is x
        True
        """
        check_device(device, stream)
        return self

    @entry
    def __array_namespace__(self, /, *, api_version: str | None = None) -> ModuleType:
        """:mod:`dualflow.array_api`, the functions of the Array API standard, in which tensors are arrays.

        Raises:
            InvalidArgumentError: ``api_version`` names a version that they don't have.
        """
        if api_version is not None and api_version not in API_VERSIONS:
            raise InvalidArgumentError(
                f"dualflow has not version {api_version!r} of the Array API; leave it out, or take one of "
                f"{', '.join(API_VERSIONS)}."
            )
        namespace: ModuleType = sys.modules[_PACKAGE].array_api
        return namespace

    @property
    @entry
    def T(self) -> Tensor:
        """The transpose of a matrix.

        Returns:
            A matrix with the rows and columns exchanged, and the same dtype.

        Raises:
            InvalidArgumentError: not a matrix; :attr:`mT` swaps the last two axes of any rank.

        >>> import dualflow as df
        >>> df.constant([[1, 2], [3, 4]]).T.numpy().tolist()
        [[1, 3], [2, 4]]
        """
        if len(self.shape) != 2:
            raise InvalidArgumentError(
                f".T is for matrices, but the shape is {self.shape}; use .mT or df.transpose."
            )
        return transpose(self)

    @property
    @entry
    def mT(self) -> Tensor:
        """The tensor with its last two axes swapped.

        Returns:
            A tensor with the last two sizes exchanged, and the same dtype.

        Raises:
            InvalidArgumentError: fewer than two axes.

        >>> import dualflow as df
        >>> df.constant([[1, 2], [3, 4]]).mT.numpy().tolist()
        [[1, 3], [2, 4]]
        """
        rank = len(self.shape)
        if rank < 2:
            raise InvalidArgumentError(
                f".mT swaps the last two axes, but the shape is {self.shape}; df.expand_dims adds one."
            )
        return transpose(self, swapped_matrix_axes(rank))

    if TYPE_CHECKING:

        def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]: ...

        def __add__(self, other: TensorLike) -> Tensor: ...
        def __sub__(self, other: TensorLike) -> Tensor: ...
        def __rsub__(self, other: TensorLike) -> Tensor: ...
        def __mul__(self, other: TensorLike) -> Tensor: ...
        def __rmul__(self, other: TensorLike) -> Tensor: ...
        def __truediv__(self, other: TensorLike) -> Tensor: ...
        def __rtruediv__(self, other: TensorLike) -> Tensor: ...
        def __floordiv__(self, other: TensorLike) -> Tensor: ...
        def __rfloordiv__(self, other: TensorLike) -> Tensor: ...
        def __mod__(self, other: TensorLike) -> Tensor: ...
        def __rmod__(self, other: TensorLike) -> Tensor: ...
        def __matmul__(self, other: TensorLike) -> Tensor: ...
        def __rpow__(self, other: TensorLike) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __lt__(self, other: TensorLike) -> Tensor: ...
        def __le__(self, other: TensorLike) -> Tensor: ...
        def __gt__(self, other: TensorLike) -> Tensor: ...
        def __ge__(self, other: TensorLike) -> Tensor: ...
        def __and__(self, other: TensorLike) -> Tensor: ...
        def __rand__(self, other: TensorLike) -> Tensor: ...
        def __or__(self, other: TensorLike) -> Tensor: ...
        def __ror__(self, other: TensorLike) -> Tensor: ...
        def __xor__(self, other: TensorLike) -> Tensor: ...
        def __rxor__(self, other: TensorLike) -> Tensor: ...
        def __lshift__(self, other: TensorLike) -> Tensor: ...
        def __rlshift__(self, other: TensorLike) -> Tensor: ...
        def __rshift__(self, other: TensorLike) -> Tensor: ...
        def __rrshift__(self, other: TensorLike) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __getitem__(self, key: Any) -> Tensor: ...

    else:  # an op's function is the method itself, which saves a call
        __add__ = arithmetic.add
        __sub__ = arithmetic.subtract
        __mul__ = __rmul__ = arithmetic.multiply
        __truediv__ = arithmetic.divide
        __floordiv__ = arithmetic.floordiv
        __mod__ = arithmetic.mod
        __matmul__ = matmul
        __neg__ = arithmetic.negative
        __abs__ = arithmetic.abs
        __lt__ = comparison.less
        __le__ = comparison.less_equal
        __gt__ = comparison.greater
        __ge__ = comparison.greater_equal
        __and__ = __rand__ = bitwise.bitwise_and
        __or__ = __ror__ = bitwise.bitwise_or
        __xor__ = __rxor__ = bitwise.bitwise_xor
        __lshift__ = bitwise.left_shift
        __rshift__ = bitwise.right_shift
        __invert__ = bitwise.invert
        __getitem__ = getitem
        __rsub__ = _reflected(arithmetic.subtract)
        __rtruediv__ = _reflected(arithmetic.divide)
        __rfloordiv__ = _reflected(arithmetic.floordiv)
        __rmod__ = _reflected(arithmetic.mod)
        __rlshift__ = _reflected(bitwise.left_shift)
        __rrshift__ = _reflected(bitwise.right_shift)
        __rpow__ = _reflected(powers.pow)

    def __radd__(self, other: TensorLike) -> Tensor:
        try:
            engine = dispatch.current()
            if type(other) is float or type(other) is int:
                return engine.binary(arithmetic.add.op, self, other)
            return engine.binary(arithmetic.add.op, other, self)  # in this order strings are joined
        except Exception as error:
            hide_frames(error)
            raise

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if type(vars(Operators).get(name)) is not NumPyName]

    def __pos__(self) -> Tensor | Self:
        return self

    def __rmatmul__(self, other: TensorLike) -> Tensor:
        try:
            return matmul(other, self)
        except Exception as error:
            hide_frames(error)
            raise

    def __pow__(self, other: TensorLike) -> Tensor:
        try:
            if (type(other) is int and other == 2) or (
                type(other) is float and other == 2.0 and self.dtype.is_inexact
            ):
                return dispatch.current().unary(arithmetic.square.op, self)
            return dispatch.current().binary(powers.pow.op, self, other)
        except Exception as error:
            hide_frames(error)
            raise

    def __eq__(self, other: object) -> Any:
        if other is None or (isinstance(other, str) and not self.dtype.is_string):
            return False
        try:
            engine = dispatch.current()
            if not engine.eager and never_equal(self, other):
                return engine.constant(np.array(False))
            return engine.binary(comparison.equal.op, self, other)
        except InvalidArgumentError as error:
            if _broadcast(self, other):
                hide_frames(error)
                raise
            return dispatch.current().constant(np.array(False))

    def __ne__(self, other: object) -> Any:
        if other is None or (isinstance(other, str) and not self.dtype.is_string):
            return True
        try:
            engine = dispatch.current()
            if not engine.eager and never_equal(self, other):
                return engine.constant(np.array(True))
            return engine.binary(comparison.not_equal.op, self, other)
        except InvalidArgumentError as error:
            if _broadcast(self, other):
                hide_frames(error)
                raise
            return dispatch.current().constant(np.array(True))

    @entry
    def __hash__(self) -> NoReturn:
        raise DTypeError("Tensors compare elementwise and have no hash; use x.ref() as the key.")

    @entry
    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise DTypeError(
            "Tensors do not change; use df.tensor_scatter_nd_update for a changed copy, or a df.Variable."
        )


class Tensor(Operators, AbstractTensor):
    """An array of one dtype and any rank, whose values never change.

    Results of ops and of ``df.constant`` are tensors. They have Python's operators, which broadcast as
    NumPy's, and convert to arrays by ``numpy()``. Inside a traced function a tensor is symbolic: it has a
    shape and a dtype, and a value only when the function runs; conversions to Python values raise.

    >>> import dualflow as df
    >>> x = df.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> x.shape, x.dtype, (x @ x + 1).numpy().tolist()
    ((2, 2), tf.float32, [[8.0, 11.0], [16.0, 23.0]])
    """

    OVERLOADABLE_OPERATORS: Final = frozenset(f"__{name}__" for name in _OPERATORS.split())
    """The methods of Python's operators: a class that stands for a tensor can define all of them."""
    __slots__ = ("_part_of",)  # the variable and the key that this tensor was read with, where that was so
    _part_of: tuple[Any, Any]

    if TYPE_CHECKING:  # attributes of both kinds, and of one, which type checkers can't distinguish

        @property
        def name(self) -> str: ...
        @property
        def op(self) -> Any: ...
        @property
        def graph(self) -> Any: ...
        def cpu(self) -> Tensor: ...
        def gpu(self, gpu_index: int = 0) -> Tensor: ...
        def numpy(self) -> Any: ...
        def item(self) -> Any: ...
        def tolist(self) -> Any: ...
        def eval(self, feed_dict: Any = None, session: Any = None) -> Any: ...
        def __int__(self) -> int: ...
        def __float__(self) -> float: ...
        def __complex__(self) -> complex: ...
        def __index__(self) -> int: ...
        def __len__(self) -> int: ...
        def __iter__(self) -> Iterator[Tensor]: ...
        def __contains__(self, value: Any) -> bool: ...
        def __dlpack__(self, **options: Any) -> Any: ...
        def __dlpack_device__(self) -> tuple[int, int]: ...

    def __bool__(self) -> bool:
        """Whether a scalar is not 0, also for a class that takes over the methods of tensors."""
        return bool(comparison.not_equal(self, 0))

    __nonzero__ = __bool__

    @entry
    def set_shape(self, shape: ShapeLike) -> None:
        """Check the static shape against ``shape``; the tensor stays as it is.

        Args:
            shape: the sizes; None for any size.

        Returns:
            None.

        Raises:
            InvalidArgumentError: the tensor has another shape, or ``shape`` has sizes that are unknown in the
                tensor, which :func:`dualflow.ensure_shape` checks at run time.

        >>> import dualflow as df
        >>> df.constant([1, 2]).set_shape([None])
        """
        new_shape = as_shape(shape)
        if self.shape.merge_with(new_shape) != self.shape:
            raise InvalidArgumentError(
                f"set_shape can't change shape {self.shape} to {new_shape}; "
                "use x = df.ensure_shape(x, shape)."
            )

    def static_value(self) -> np.ndarray[Any, Any] | None:
        """The value as an array, if it is known while tracing; None for symbolic tensors.

        Raises nothing.

        Returns:
            An array with the shape and dtype of the tensor, or None.

        >>> import dualflow as df
        >>> df.constant([1, 2]).static_value()
        array([1, 2], dtype=int32)
        """
        return np.asarray(self)

    def static_elements(self) -> np.ndarray[Any, Any] | None:
        """The elements as objects, with None for symbolic ones; None if all are symbolic.

        Raises nothing.

        Returns:
            An array of objects with the shape of the tensor, or None.

        >>> import dualflow as df
        >>> df.constant([1, 2]).static_elements()
        array([1, 2], dtype=object)
        """
        value = self.static_value()
        return None if value is None else value.astype(object)

    @property
    @entry
    def assign(self) -> Callable[[Any], Any]:
        """``v[key].assign(value)``: sets the part ``v[key]`` of a variable."""
        return self._assigning(lambda part, value: value)

    @property
    @entry
    def assign_add(self) -> Callable[[Any], Any]:
        """``v[key].assign_add(value)``: adds ``value`` to the part ``v[key]`` of a variable."""
        return self._assigning(arithmetic.add)

    @property
    @entry
    def assign_sub(self) -> Callable[[Any], Any]:
        """``v[key].assign_sub(value)``: subtracts ``value`` from the part ``v[key]`` of a variable."""
        return self._assigning(arithmetic.subtract)

    def _assigning(self, change: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
        try:
            variable, key = self._part_of
        except AttributeError:
            raise MissingAttributeError(
                "A tensor does not change; variables, and their parts v[key], have assign."
            ) from None
        return entry(lambda value: variable.assign_part(key, value, change))


_OF_ARRAYS: Final = {name for name in dir(np.ndarray) if not name.startswith("_")}
for _name in _OF_ARRAYS - {"dtype", "shape"} - set(dir(Operators)):
    setattr(Operators, _name, NumPyName(_name))
