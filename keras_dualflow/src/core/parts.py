"""Slices and scatters of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import dualflow as df
from keras_dualflow.src.core.conversion import convert_to_tensor

_REDUCTIONS: Final[dict[str | None, Callable[..., Any]]] = {
    None: df.tensor_scatter_nd_update,
    "add": df.tensor_scatter_nd_add,
    "max": df.tensor_scatter_nd_max,
    "min": df.tensor_scatter_nd_min,
}


def scatter(indices: Any, values: Any, shape: Any) -> Any:
    """Zeros of ``shape``, with the values added at ``indices``."""
    return df.scatter_nd(convert_to_tensor(indices), convert_to_tensor(values), shape)


def scatter_update(inputs: Any, indices: Any, updates: Any, reduction: str | None = None) -> Any:
    """``inputs`` with ``updates`` at ``indices``, combined with the old values by ``reduction``.

    Raises:
        ValueError: ``reduction`` is none of "add", "max", "min", "mul".
    """
    inputs, indices = convert_to_tensor(inputs), convert_to_tensor(indices)
    updates = convert_to_tensor(updates, inputs.dtype)
    if reduction in _REDUCTIONS:
        return _REDUCTIONS[reduction](inputs, indices, updates)
    if reduction != "mul":
        raise ValueError(f"Unsupported reduction: {reduction}")
    for i in range(indices.shape[0]):
        index = indices[i : i + 1]
        product = df.gather_nd(inputs, index) * updates[i : i + 1]
        inputs = df.tensor_scatter_nd_update(inputs, index, product)
    return inputs


def slice(inputs: Any, start_indices: Any, shape: Any) -> Any:
    """The slice of ``inputs`` that begins at ``start_indices`` and has ``shape``."""
    return df.slice(convert_to_tensor(inputs), start_indices, shape)


def slice_update(inputs: Any, start_indices: Any, updates: Any) -> Any:
    """``inputs`` with ``updates`` at ``start_indices``, which are clipped so that the updates fit."""
    inputs = convert_to_tensor(inputs)
    updates = convert_to_tensor(updates, inputs.dtype)
    starts = convert_to_tensor(start_indices, "int32")
    last = [size - part for size, part in zip(inputs.shape, updates.shape, strict=True)]
    starts = df.clip_by_value(starts, 0, last)
    indices = df.stack(
        df.meshgrid(*[df.range(n) + starts[i] for i, n in enumerate(updates.shape)], indexing="ij"), axis=-1
    )
    return df.tensor_scatter_nd_update(inputs, indices, updates)


def unstack(x: Any, num: int | None = None, axis: int = 0) -> list[Any]:
    """The slices of ``x`` along an axis, without that axis."""
    slices: list[Any] = df.unstack(convert_to_tensor(x), num, axis)
    return slices
