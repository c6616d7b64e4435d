"""Reshapes, transposes, concatenations and other rearrangements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keras.src.backend.common.backend_utils import standardize_axis_for_numpy

import dualflow as df
import dualflow.numpy as dnp
from keras_dualflow.src.ops.promotion import of_one_dtype, promote, tensor


def reshape(x: Any, newshape: Any) -> Any:
    return df.reshape(tensor(x), newshape)


def ravel(x: Any) -> Any:
    return df.reshape(tensor(x), (-1,))


def transpose(x: Any, axes: Any = None) -> Any:
    return df.transpose(tensor(x), axes)


def swapaxes(x: Any, axis1: int, axis2: int) -> Any:
    return dnp.swapaxes(tensor(x), axis1, axis2)


def moveaxis(x: Any, source: Any, destination: Any) -> Any:
    return dnp.moveaxis(tensor(x), source, destination)


def expand_dims(x: Any, axis: Any) -> Any:
    return dnp.expand_dims(tensor(x), standardize_axis_for_numpy(axis))


def squeeze(x: Any, axis: Any = None) -> Any:
    return dnp.squeeze(tensor(x), standardize_axis_for_numpy(axis))


def broadcast_to(x: Any, shape: Any) -> Any:
    return df.broadcast_to(tensor(x), shape)


def flip(x: Any, axis: Any = None) -> Any:
    return dnp.flip(tensor(x), standardize_axis_for_numpy(axis))


def fliplr(x: Any) -> Any:
    return dnp.fliplr(tensor(x))


def flipud(x: Any) -> Any:
    return dnp.flipud(tensor(x))


def rot90(array: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> Any:
    array = tensor(array)
    if len(array.shape) < 2:
        raise ValueError(f"Input array must have at least 2 dimensions. Received: shape={array.shape}")
    if len(axes) != 2 or axes[0] == axes[1]:
        raise ValueError(f"Invalid axes: {axes}. Axes must be a tuple of two different dimensions.")
    return dnp.rot90(array, k, tuple(axes))


def roll(x: Any, shift: Any, axis: Any = None) -> Any:
    return dnp.roll(tensor(x), shift, axis)


def tile(x: Any, repeats: Any) -> Any:
    return dnp.tile(tensor(x), repeats)


def repeat(x: Any, repeats: Any, axis: int | None = None) -> Any:
    return df.repeat(tensor(x), repeats, axis)


def pad(x: Any, pad_width: Any, mode: str = "constant", constant_values: Any = None) -> Any:
    if constant_values is None:
        return dnp.pad(tensor(x), pad_width, mode)
    if mode != "constant":
        raise ValueError(
            "Argument `constant_values` can only be provided when `mode == 'constant'`. "
            f"Received: mode={mode}"
        )
    return dnp.pad(tensor(x), pad_width, mode, constant_values=constant_values)


def append(x1: Any, x2: Any, axis: int | None = None) -> Any:
    x1, x2 = promote(x1, x2)
    return dnp.append(x1, x2, axis)


def concatenate(xs: Any, axis: int | None = 0) -> Any:
    xs = of_one_dtype(xs)
    return dnp.concatenate(xs, axis) if axis is None else df.concat(xs, axis)


def stack(x: Any, axis: int = 0) -> Any:
    return df.stack(of_one_dtype(x), axis)


def hstack(xs: Any) -> Any:
    return dnp.hstack(of_one_dtype(xs))


def vstack(xs: Any) -> Any:
    return dnp.vstack(of_one_dtype(xs))


def dstack(xs: Any) -> Any:
    return dnp.dstack(of_one_dtype(xs))


def split(x: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    return dnp.split(tensor(x), indices_or_sections, axis)


def array_split(x: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    return dnp.array_split(tensor(x), indices_or_sections, axis)


def hsplit(x: Any, indices_or_sections: Any) -> Any:
    return dnp.hsplit(tensor(x), indices_or_sections)


def vsplit(x: Any, indices_or_sections: Any) -> Any:
    return dnp.vsplit(tensor(x), indices_or_sections)


def dsplit(x: Any, indices_or_sections: Any) -> Any:
    return dnp.dsplit(tensor(x), indices_or_sections)


def ndim(x: Any) -> int:
    return len(tensor(x).shape)


def size(x: Any) -> Any:
    x = tensor(x)
    return df.size(x) if x.size is None else x.size
