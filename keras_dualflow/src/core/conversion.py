"""Values as tensors, arrays and shapes, in Keras's dtypes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from keras.src import tree
from keras.src.backend.common import standardize_dtype
from keras.src.backend.common.dtypes import result_type
from keras.src.backend.common.keras_tensor import KerasTensor
from keras.src.backend.config import floatx

import dualflow as df
from dualflow.core.dispatch import AbstractComposite, AbstractTensor, AbstractVariable
from dualflow.core.dtypes import DType, as_dtype

SUPPORTS_SPARSE_TENSORS: Final = False
SUPPORTS_RAGGED_TENSORS: Final = False
SUPPORTS_COMPLEX_DTYPES: Final = True
IS_THREAD_SAFE: Final = False  # worker threads of fit would wait for callbacks that use the model
_TENSORS: Final = (AbstractTensor, AbstractVariable, AbstractComposite)


def dtype_named(dtype: Any) -> DType:
    """The dtype of dualflow for Keras's name of a dtype, or any other dtype."""
    return dtype if type(dtype) is DType else as_dtype(standardize_dtype(dtype))


def convert_to_tensor(
    x: Any, dtype: Any = None, sparse: bool | None = None, ragged: bool | None = None
) -> Any:
    """``x`` as a tensor, cast to ``dtype`` unless it is None; Python's floats get Keras's ``floatx``.

    Raises:
        ValueError: ``sparse`` or ``ragged`` is true.
    """
    if sparse or ragged:
        kind = "sparse" if sparse else "ragged"
        raise ValueError(f"`{kind}=True` is not supported with the dualflow backend.")
    tensor = df.convert_to_tensor(x if isinstance(x, _TENSORS) else _as_value(x, dtype))
    return tensor if dtype is None else cast(tensor, dtype)


def _as_value(x: Any, dtype: Any) -> Any:
    """A Python value as an array of its final dtype, without intermediate rounding."""
    if isinstance(x, np.ndarray | np.generic):
        return x
    if (dtype is None and floatx() == "float32") or not isinstance(
        x, bool | int | float | complex | list | tuple
    ):
        return x
    leaves = tree.flatten(x)
    if not leaves or any(isinstance(leaf, _TENSORS) for leaf in leaves):
        return x
    if dtype is None and {type(leaf) for leaf in leaves} <= {bool, int, float}:
        dtype = floatx() if any(type(leaf) is float for leaf in leaves) else None
    if dtype is None:
        dtype = result_type(*[getattr(leaf, "dtype", type(leaf)) for leaf in leaves])
    return np.array(x).astype(dtype_named(dtype).dtype)


def convert_to_numpy(x: Any) -> Any:
    """``x`` as a writable array."""
    return np.array(x)


def is_tensor(x: Any) -> bool:
    """Whether ``x`` is a tensor or a variable."""
    return isinstance(x, _TENSORS)


def shape(x: Any) -> tuple[Any, ...]:
    """The sizes of ``x``: ints for static sizes, scalar tensors for dynamic ones."""
    if isinstance(x, KerasTensor):
        return tuple(x.shape)
    sizes = tuple(x.shape) if isinstance(x, _TENSORS) else tuple(df.convert_to_tensor(x).shape)
    if None not in sizes:
        return sizes
    dynamic = df.shape(x)
    return tuple([dynamic[i] if size is None else size for i, size in enumerate(sizes)])


def cast(x: Any, dtype: Any) -> Any:
    """``x`` converted to ``dtype``."""
    target = dtype_named(dtype)
    if isinstance(x, AbstractTensor) and x.dtype is target:
        return x
    return df.cast(x if isinstance(x, _TENSORS) else _as_value(x, None), target)


def random_seed_dtype() -> str:
    """The dtype of the state of random numbers."""
    return "uint32"
