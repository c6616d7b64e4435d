"""``EagerTensor``: a tensor with a value, an immutable array."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import Array, as_array
from dualflow.core.dtypes import DType, as_dtype, of_array
from dualflow.core.errors import DTypeError, InvalidArgumentError, UnsupportedValueError
from dualflow.core.locks import imported
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry, hide_frames
from dualflow.ops.tensor import Tensor

_DEVICES: Final = "dualflow.eager.devices"
"""The module that copies tensors between devices; it imports this one."""
_shapes: Final[dict[tuple[int, ...], Shape]] = {}
_SHAPES_MAX: Final = 4096


class EagerTensor(Tensor):
    """A tensor with a value, as ops return it outside of traced functions.

    Its elements never change: :meth:`numpy` returns a copy, and ``np.asarray(x)`` a read-only view. It is
    created by :func:`dualflow.constant`, :func:`dualflow.convert_to_tensor` and every op.

    >>> import dualflow as df
    >>> df.matmul([[2.0]], [[2.0]])
    <tf.Tensor: shape=(1, 1), dtype=float32, numpy=array([[4.]], dtype=float32)>
    """

    __slots__ = ("__weakref__", "_array")
    __array_priority__ = 100
    _array: Array

    @property
    def shape(self) -> Shape:  # type: ignore[override]  # the base declares what each kind of tensor computes
        cached = _shapes.get(self._array.shape)
        return cached if cached is not None else interned_shape(self._array.shape)

    @property
    def dtype(self) -> DType:  # type: ignore[override]  # as shape
        return of_array(self._array.dtype)

    @property
    def spec(self) -> TensorSpec:  # type: ignore[override]  # as shape
        return TensorSpec.of(self.shape, self.dtype)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._array.ndim

    def numpy(self) -> Any:
        """A copy of the value as a NumPy array, or as a NumPy scalar for a tensor without axes.

        The array is a copy, which may be written to. ``np.asarray(x)`` is a read-only view of the tensor's
        memory, without a copy.

        Raises nothing.

        Returns:
            An array with the shape and dtype of the tensor.

        >>> import dualflow as df
        >>> df.constant([1, 2]).numpy()
        array([1, 2], dtype=int32)
        """
        array = self._array
        return array.copy() if array.ndim else array[()]

    def static_value(self) -> Array:
        """The static value, which an eager tensor always has.

        Raises nothing.

        Returns:
            An array with the shape and dtype of the tensor, which must not be written to.

        >>> import dualflow as df
        >>> df.constant([1, 2]).static_value()
        array([1, 2], dtype=int32)
        """
        return self._array

    def cpu(self) -> EagerTensor:
        """The tensor with its elements in the CPU's memory.

        Raises nothing.

        Returns:
            The tensor itself if it is there; else a copy, which tapes record.

        >>> import dualflow as df
        >>> x = df.constant([1, 2])
        >>> x.cpu() is x
        True
        """
        copied: EagerTensor = imported(_DEVICES).copy_to_cpu(self)
        return copied

    @entry
    def gpu(self, gpu_index: int = 0) -> EagerTensor:
        """The tensor with its elements in the memory of a GPU.

        Args:
            gpu_index: the number of the GPU; 0 by default, the only one that a process uses.

        Returns:
            The tensor itself if it is there; else a copy, which tapes record.

        Raises:
            FailedPreconditionError: there is no such GPU.

        >>> import dualflow as df
        >>> x = df.constant([1, 2])
        >>> if df.config.list_logical_devices("GPU"):
        ...     x = x.gpu()
        >>> x.cpu().numpy()
        array([1, 2], dtype=int32)
        """
        copied: EagerTensor = imported(_DEVICES).copy_to_gpu(self, gpu_index)
        return copied

    @entry
    def item(self) -> Any:
        """The only element, as a Python number.

        Returns:
            A Python bool, int, float or complex.

        Raises:
            InvalidArgumentError: there isn't exactly one element.

        >>> import dualflow as df
        >>> df.constant([[5]]).item()
        5
        """
        return self._only_element("a Python number").item()

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers.

        Raises nothing.

        Returns:
            Nested lists of the shape of the tensor; a Python number for a tensor without axes.

        >>> import dualflow as df
        >>> df.constant([[1, 2]]).tolist()
        [[1, 2]]
        """
        return self._array.tolist()

    def _only_element(self, target: str) -> Array:
        array = self._array
        if array.size != 1:
            raise UnsupportedValueError(
                f"A tensor of shape {self.shape} has {array.size} elements and can't become {target}; "
                "reduce it or index it to one element first."
            )
        return array

    def __bool__(self) -> bool:
        try:
            array = self._array
            if array.size != 1:
                raise InvalidArgumentError(
                    f"The truth value of a tensor of shape {self.shape} is ambiguous, as it has "
                    f"{array.size} elements; use df.reduce_any or df.reduce_all."
                )
            return bool(array)
        except Exception as error:
            hide_frames(error)
            raise

    @entry
    def __int__(self) -> int:
        return int(self._only_element("an int").item())

    @entry
    def __float__(self) -> float:
        return float(self._only_element("a float").item())

    @entry
    def __complex__(self) -> complex:
        return complex(self._only_element("a complex number").item())

    @entry
    def __index__(self) -> int:
        array = self._array
        if array.ndim or array.dtype.kind not in "iu":
            raise DTypeError(
                f"Only a tensor of one integer can be an index or a size, not {self.spec}; use int(x)."
            )
        return int(array.item())

    @entry
    def __len__(self) -> int:
        if not self.ndim:
            raise DTypeError("A tensor without axes has no len(); df.size(x) is its number of elements.")
        return int(self.shape[0])

    @entry
    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise DTypeError(
                "A tensor without axes can't be iterated over; df.reshape(x, [-1]) has one axis."
            )
        return (self[i] for i in range(self.shape[0]))

    def __contains__(self, value: Any) -> bool:
        array = self._array
        if array.dtype.char == "O":
            value = as_array(value)
        return bool((array == np.asarray(value)).any())

    @entry
    def __format__(self, spec: str) -> str:
        array = self._array
        if not spec:
            return str(array)
        if array.ndim:
            raise DTypeError(
                f"The format {spec!r} is for one number, but the tensor's shape is {self.shape}; index it "
                "first, or use np.array2string(x.numpy(), ...)."
            )
        return format(array.item(), spec)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        engine = dispatch.current()
        if engine.overrides_numpy:
            engine.record_numpy_use(self, sys._getframe(1))
        return np.array(_readonly(self._array), dtype=dtype, copy=copy)

    def __bytes__(self) -> bytes:
        array = self._array
        return bytes(self._only_element("bytes").item()) if array.dtype.char == "O" else array.tobytes()

    def __dlpack__(self, *, copy: bool | None = None, **options: Any) -> Any:
        """The elements for another library: a copy, as not all libraries respect read-only memory.

        ``copy=False`` exports the tensor's own memory, flagged as read-only.

        Raises:
            BufferError: ``copy=False``, and the library's version of DLPack lacks the read-only flag.
        """
        if copy is False:
            return _readonly(self._array).__dlpack__(copy=False, **options)
        return self._array.copy().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def __copy__(self) -> EagerTensor:
        return wrap(self._array)

    def __deepcopy__(self, memo: Any) -> EagerTensor:
        return wrap(self._array)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self._array,)

    def __str__(self) -> str:
        return f"tf.Tensor({_on_own_line(str(self._array))}, shape={self.shape}, dtype={self.dtype.name})"

    def __repr__(self) -> str:
        return f"<tf.Tensor: shape={self.shape}, dtype={self.dtype.name}, numpy={self.shown()}>"

    def shown(self) -> str:
        """The value as ``repr`` shows it.

        Raises nothing.

        Returns:
            A string; values of several lines begin on a line of their own.

        >>> import dualflow as df
        >>> df.constant([1, 2]).shown()
        'array([1, 2], dtype=int32)'
        """
        array = self._array
        return _on_own_line(repr(array) if array.ndim else str(array))


_new: Final = object.__new__


def wrap(array: Array) -> EagerTensor:
    """A tensor of ``array``, which must have a tensor's dtype and must not be written to any more."""
    tensor = _new(EagerTensor)
    tensor._array = array
    return tensor


def _restore(array: Array) -> EagerTensor:
    """An unpickled tensor, with the interned dtype object that fast paths compare by identity."""
    return wrap(array.view(as_dtype(array.dtype).dtype))


def _readonly(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view


def interned_shape(sizes: tuple[int, ...]) -> Shape:
    """The interned shape of these sizes, so that equal shapes of tensors are usually identical."""
    if len(_shapes) >= _SHAPES_MAX:
        _shapes.clear()
    return _shapes.setdefault(sizes, Shape(sizes))


def _on_own_line(text: str) -> str:
    return "\n" + text if "\n" in text else text
