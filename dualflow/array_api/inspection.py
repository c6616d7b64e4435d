"""The standard's inspection functions: dtypes, defaults, devices and capabilities."""

from __future__ import annotations

from typing import Any, Final

from dualflow.array_api.data_types import DTYPES, isdtype
from dualflow.core.device_names import CPU, check_device
from dualflow.core.dtypes import DType, complex128, float64, int64
from dualflow.ops.tensor import API_VERSIONS

__array_api_version__: Final = API_VERSIONS[-1]


class Inspection:
    """What :func:`__array_namespace_info__` returns."""

    __slots__ = ()

    def capabilities(self) -> dict[str, Any]:
        """The optional features: indices by masks, shapes that depend on data, and the maximum rank.

        >>> import dualflow.array_api as xp
        >>> xp.__array_namespace_info__().capabilities()["boolean indexing"]
        True
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """The device of new arrays: the CPU.

        >>> import dualflow.array_api as xp
        >>> xp.__array_namespace_info__().default_device() == xp.zeros(1).device
        True
        """
        return CPU

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """The default dtypes by kind: of real and complex floats, of integers, and of indices.

        Raises:
            InvalidArgumentError: the device is not the CPU.

        >>> import dualflow.array_api as xp
        >>> xp.__array_namespace_info__().default_dtypes()["real floating"]
        tf.float64
        """
        check_device(device)
        return {
            "real floating": float64,
            "complex floating": complex128,
            "integral": int64,
            "indexing": int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        """The standard's dtypes by name; only those of a kind, as :func:`isdtype` takes it.

        Raises:
            InvalidArgumentError: the device is not the CPU, or another kind.

        >>> import dualflow.array_api as xp
        >>> list(xp.__array_namespace_info__().dtypes(kind="real floating"))
        ['float32', 'float64']
        """
        check_device(device)
        return {name: dtype for name, dtype in DTYPES.items() if kind is None or isdtype(dtype, kind)}

    def devices(self) -> list[str]:
        """The devices that arrays can be on.

        >>> import dualflow.array_api as xp
        >>> len(xp.__array_namespace_info__().devices())
        1
        """
        return [CPU]


def __array_namespace_info__() -> Inspection:
    """The namespace's dtypes, defaults, devices and capabilities, by the standard's inspection functions.

    Raises nothing.

    Returns:
        An :class:`Inspection`.

    >>> import dualflow.array_api as xp
    >>> xp.__array_namespace_info__().default_dtypes()["integral"]
    tf.int64
    """
    return Inspection()
