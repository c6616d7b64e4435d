"""``DeviceTensor``: an eager tensor whose elements are in the memory of a GPU.

It is a class of its own, so that the fast paths for host tensors, which compare the exact class, have no
further check. Code that reads ``_array`` gets a copy on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

import numpy as np

from dualflow.core.convert import Array
from dualflow.core.device_names import GPU
from dualflow.core.dtypes import DType, of_array
from dualflow.core.shape import Shape
from dualflow.core.slot import Slot, unfilled
from dualflow.core.spec import TensorSpec
from dualflow.eager.tensor import EagerTensor, interned_shape, wrap


class DeviceStorage(Protocol):
    """A row-major array in the memory of a device, which nothing writes to.

    Attributes:
        shape: the shape.
        dtype: the dtype, the interned object of :mod:`dualflow.core.dtypes`.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def to_host(self) -> Array:
        """A copy on the host, after everything that computes the elements has run."""
        ...


UPLOAD: Final[Slot[Callable[[Array], DeviceStorage]]] = Slot(
    "copies of arrays on a device", unfilled("copies of arrays on a device")
)
"""Copies an array of numbers to the device of this process."""


class DeviceTensor(EagerTensor):
    """A tensor on a GPU. Python code that reads its elements transfers them to the host each time.

    So the methods of the base read ``_array`` once.

    Attributes:
        storage: the elements.
    """

    __slots__ = ("storage",)
    storage: DeviceStorage

    @property
    def _array(self) -> Array:  # type: ignore[override]  # a slot of the base
        return self.storage.to_host()

    @property
    def shape(self) -> Shape:  # type: ignore[override]  # as in the base
        return interned_shape(self.storage.shape)

    @property
    def dtype(self) -> DType:  # type: ignore[override]  # as in the base
        return of_array(self.storage.dtype)

    @property
    def spec(self) -> TensorSpec:  # type: ignore[override]  # as in the base
        return TensorSpec.of(self.shape, self.dtype)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.storage.shape)

    @property
    def device(self) -> str:
        """TensorFlow's full name of the GPU that holds the elements."""
        return GPU

    def __dlpack__(self, *, copy: bool | None = None, **options: Any) -> Any:
        """A copy of the elements on the host, for another library.

        Raises:
            BufferError: ``copy=False``, as only a copy can leave the device.
        """
        if copy is False:
            raise BufferError(f"A tensor on {GPU} can't be exported without a copy; leave out copy=False.")
        return to_host(self).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The CPU: other libraries get a copy on the host."""
        return wrap(np.empty(0)).__dlpack_device__()

    def __copy__(self) -> EagerTensor:
        return on_device(self.storage)

    def __deepcopy__(self, memo: Any) -> EagerTensor:
        return on_device(self.storage)


def on_device(storage: DeviceStorage) -> DeviceTensor:
    """A tensor of the elements in ``storage``."""
    tensor = object.__new__(DeviceTensor)
    tensor.storage = storage
    return tensor


def tensor_of(element: Any) -> EagerTensor:
    """The tensor of an array, or the tensor itself, which may be on the GPU."""
    return element if isinstance(element, EagerTensor) else wrap(element)


def to_device(tensor: EagerTensor) -> EagerTensor:
    """The tensor on the GPU: itself if it is there, or if its elements are strings."""
    if type(tensor) is DeviceTensor or tensor._array.dtype.hasobject:
        return tensor
    return on_device(UPLOAD.value(tensor._array))


def to_host(tensor: EagerTensor) -> EagerTensor:
    """The tensor on the host: itself if it is there."""
    return wrap(tensor._array) if type(tensor) is DeviceTensor else tensor


def placed_like(tensor: EagerTensor, other: EagerTensor) -> EagerTensor:
    """The tensor on the device of ``other``."""
    return to_device(tensor) if type(other) is DeviceTensor else to_host(tensor)
