"""``LookupTable``: what the tables have in common: dtypes, and lookups of dense, ragged and sparse keys."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any

from dualflow.core.dispatch import TENSORS
from dualflow.core.dtypes import DType, as_dtype
from dualflow.core.errors import DTypeError
from dualflow.core.tracebacks import entry
from dualflow.ops.arrangement import expand_dims
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.joining import concat
from dualflow.ops.ragged.flat_values import map_values
from dualflow.ops.ragged.ragged_rows import RaggedRows
from dualflow.ops.sparse.sparse_tensor import SparseTensor
from dualflow.ops.static import dtype_of

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, TensorLike


class LookupTable(abc.ABC):
    """The base of tables: maps keys to values, and all other keys to a default.

    Args:
        key_dtype, value_dtype: the dtypes of keys and values.
        name: the table's name.
    """

    def __init__(self, key_dtype: DTypeLike, value_dtype: DTypeLike, name: str) -> None:
        self._key_dtype, self._value_dtype = as_dtype(key_dtype), as_dtype(value_dtype)
        self._name = name
        if not (self._key_dtype.is_string or self._key_dtype.kind in "iu"):
            raise DTypeError(
                f"The keys of a table are integers or strings, not {self._key_dtype.name}; number them, or "
                "make strings of them with df.as_string."
            )

    @property
    def key_dtype(self) -> DType:
        """The dtype of the keys."""
        return self._key_dtype

    @property
    def value_dtype(self) -> DType:
        """The dtype of the values."""
        return self._value_dtype

    @property
    def name(self) -> str:
        """The name that the table was created with."""
        return self._name

    @entry
    def __getitem__(self, keys: TensorLike) -> Any:
        """The values of ``keys``, as by ``lookup``."""
        return self.lookup(keys)

    @abc.abstractmethod
    def lookup(self, keys: TensorLike) -> Any:
        """The values of ``keys``."""

    def _keys(self, keys: Any) -> Any:
        """``keys`` as a tensor of the table's dtype.

        Raises:
            DTypeError: a tensor of another dtype.
        """
        if isinstance(keys, TENSORS) and dtype_of(keys) is not self._key_dtype:
            raise DTypeError(
                f"The table {self._name} has keys of dtype {self._key_dtype.name}, not {dtype_of(keys).name}"
                "; convert them with df.cast, or df.as_string."
            )
        return convert_to_tensor(keys, self._key_dtype)


def map_keys(function: Any, keys: Any) -> Any:
    """``function`` of dense keys, or of the values of ragged or sparse keys, in the same structure."""
    if isinstance(keys, RaggedRows):
        return map_values(function, keys)
    if isinstance(keys, SparseTensor):
        return SparseTensor(keys.indices, function(keys.values), keys.dense_shape)
    return function(keys)


def with_default(values: Any, default: Any) -> Any:
    """The values of a table, and the default as one more row, at the position of all other keys."""
    return concat([values, expand_dims(default, 0)], 0)
