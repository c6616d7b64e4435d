"""Geometric transforms of images, by interpolation at computed coordinates."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

from keras.src.random.seed_generator import draw_seed

import dualflow as df
from keras_dualflow.src.ops.core import cast, convert_to_tensor, shape
from keras_dualflow.src.ops.image.filters import gaussian_blur
from keras_dualflow.src.ops.image.layouts import check_choice, images_of, on_batch, with_channels_last
from keras_dualflow.src.ops.promotion import floats, promote, tensor

_ORDERS = {"nearest": 0, "bilinear": 1}
_FILL_MODES = ("constant", "nearest", "wrap", "mirror", "reflect")


def map_coordinates(
    inputs: Any, coordinates: Any, order: int, fill_mode: str = "constant", fill_value: float = 0.0
) -> Any:
    inputs, coordinates = tensor(inputs), convert_to_tensor(coordinates)
    if coordinates.shape[0] != len(inputs.shape):
        raise ValueError(
            "First dim of `coordinates` must be the same as the rank of `inputs`. Received inputs with "
            f"shape: {inputs.shape} and coordinate leading dim of {coordinates.shape[0]}"
        )
    if len(coordinates.shape) < 2:
        raise ValueError(
            "Invalid coordinates rank: expected at least rank 2. "
            f"Received input with shape: {coordinates.shape}"
        )
    check_choice("fill_mode", fill_mode, _FILL_MODES)
    return _interpolate(inputs, df.unstack(coordinates), order, fill_mode, fill_value, batched=False)


def _interpolate(
    x: Any, coordinates: Sequence[Any], order: int, fill_mode: str, fill_value: float, batched: bool
) -> Any:
    """``x`` interpolated at coordinates along its first axes, or along those after a batch axis."""
    if order not in (0, 1):
        raise NotImplementedError("map_coordinates currently requires order<=1")
    first = 1 if batched else 0
    trailing = len(x.shape) - len(coordinates) - first
    neighbours = [
        _neighbours(coordinate, size, order, fill_mode)
        for coordinate, size in zip(coordinates, shape(x)[first:], strict=False)
    ]
    parts = []
    for corner in itertools.product(*neighbours):
        indices, weights, in_bounds = zip(*corner, strict=True)
        values = df.gather_nd(x, df.stack(indices, axis=-1), batch_dims=first)
        weight = functools.reduce(df.multiply, weights)
        values = cast(values, weight.dtype.name)
        if fill_mode == "constant":
            is_inside = _append_axes(functools.reduce(df.logical_and, in_bounds), trailing)
            values = df.where(is_inside, values, float(fill_value))
        parts.append(values * _append_axes(weight, trailing))
    total = functools.reduce(df.add, parts)
    return cast(df.round(total) if x.dtype.is_integer else total, x.dtype.name)


def _append_axes(x: Any, axes: int) -> Any:
    """``x`` with ``axes`` axes of size 1 appended."""
    for _ in range(axes):
        x = df.expand_dims(x, -1)
    return x


def _neighbours(coordinate: Any, size: Any, order: int, fill_mode: str) -> list[tuple[Any, Any, Any]]:
    """The elements around a coordinate: their indices, their weights, and whether they are in range."""
    if order == 0:
        near = df.round(coordinate) if coordinate.dtype.is_floating else coordinate
        neighbours = [(cast(near, "int32"), df.ones_like(floats(coordinate)))]
    else:
        coordinate = floats(coordinate)
        below = df.floor(coordinate)
        fraction = coordinate - below
        start = cast(below, "int32")
        neighbours = [(start, 1.0 - fraction), (start + 1, fraction)]
    return [
        (_index_in_range(index, size, fill_mode), weight, df.logical_and(index >= 0, index < size))
        for index, weight in neighbours
    ]


def _index_in_range(index: Any, size: Any, fill_mode: str) -> Any:
    """Indices within an axis, whose size may be a tensor, for coordinates beyond its ends too."""
    if fill_mode == "wrap":
        return df.math.floormod(index, size)
    if fill_mode == "mirror":
        return _mirror(index, size)
    if fill_mode == "reflect":
        return df.math.floordiv(_mirror(2 * index + 1, 2 * size + 1) - 1, 2)
    return df.clip_by_value(index, 0, size - 1)


def _mirror(index: Any, size: Any) -> Any:
    """Indices reflected at the centres of the first and last element: 0 1 2 1 0 1 for ``size`` 3."""
    span = max(size - 1, 1) if isinstance(size, int) else df.maximum(size - 1, 1)
    mirrored = df.abs(df.math.floormod(index + span, 2 * span) - span)
    if isinstance(size, int):
        return mirrored if size > 1 else df.zeros_like(index)
    return df.where(size > 1, mirrored, 0)


def affine_transform(
    images: Any,
    transform: Any,
    interpolation: str = "bilinear",
    fill_mode: str = "constant",
    fill_value: float = 0,
    data_format: str | None = None,
) -> Any:
    check_choice("interpolation", interpolation, tuple(_ORDERS))
    check_choice("fill_mode", fill_mode, _FILL_MODES)
    images_of(images)
    transform = floats(transform)
    if len(transform.shape) not in (1, 2):
        raise ValueError(
            "Invalid transform rank: expected rank 1 (single transform) or rank 2 (batch of transforms). "
            f"Received input with shape: transform.shape={transform.shape}"
        )
    return _project(images, transform, interpolation, fill_mode, fill_value, data_format)


def perspective_transform(
    images: Any,
    start_points: Any,
    end_points: Any,
    interpolation: str = "bilinear",
    fill_value: float = 0,
    data_format: str | None = None,
) -> Any:
    check_choice("interpolation", interpolation, tuple(_ORDERS))
    images_of(images)
    start, end = cast(start_points, "float32"), cast(end_points, "float32")
    for name, points in (("start_points", start), ("end_points", end)):
        if len(points.shape) not in (2, 3) or tuple(points.shape[-2:]) != (4, 2):
            raise ValueError(
                f"Invalid {name} shape: expected (4,2) for a single image or (N,4,2) for a batch. "
                f"Received shape: {points.shape}"
            )
    if start.shape != end.shape:
        raise ValueError(
            "start_points and end_points must have the same shape. "
            f"Received start_points.shape={start.shape}, end_points.shape={end.shape}"
        )
    if len(start.shape) == 2:
        start, end = df.expand_dims(start, 0), df.expand_dims(end, 0)
    transform = compute_homography_matrix(start, end)
    return _project(images, transform, interpolation, "constant", fill_value, data_format)


def compute_homography_matrix(start_points: Any, end_points: Any) -> Any:
    """The eight coefficients of the projection that maps each end point to its start point."""
    start, end = promote(start_points, end_points, also=("float32",))
    x, y = end[:, :, 0], end[:, :, 1]
    one, zero = df.ones_like(x), df.zeros_like(x)

    def rows(target: Any, left: list[Any]) -> Any:
        return df.stack([*left, -target * x, -target * y], axis=-1)

    matrix = df.stack(
        [
            rows(start[:, :, 0], [x, y, one, zero, zero, zero]),
            rows(start[:, :, 1], [zero, zero, zero, x, y, one]),
        ],
        axis=2,
    )
    coefficients = df.linalg.solve(df.reshape(matrix, (-1, 8, 8)), df.reshape(start, (-1, 8, 1)))
    return df.reshape(coefficients, (-1, 8))


def _project(
    images: Any,
    transform: Any,
    interpolation: str,
    fill_mode: str,
    fill_value: float,
    data_format: str | None,
) -> Any:
    """Images whose element at (x, y) is read at the projection of (x, y).

    With the coefficients a to h of ``transform``, the projection is
    ((a x + b y + c) / (g x + h y + 1), (d x + e y + f) / (g x + h y + 1)).
    """
    if len(transform.shape) == 1:
        transform = df.expand_dims(transform, 0)

    def warp(x: Any) -> Any:
        batch, height, width = shape(x)[:3]
        rows = df.expand_dims(cast(df.range(height), transform.dtype.name), 1)
        columns = cast(df.range(width), transform.dtype.name)
        a, b, c, d, e, f, g, h = (df.reshape(k, (-1, 1, 1)) for k in df.unstack(transform, axis=1)[:8])
        denominator = g * columns + h * rows + 1.0
        source_x = (a * columns + b * rows + c) / denominator
        source_y = (d * columns + e * rows + f) / denominator
        sizes = (batch, height, width)
        coordinates = [df.broadcast_to(source_y, sizes), df.broadcast_to(source_x, sizes)]
        return _interpolate(x, coordinates, _ORDERS[interpolation], fill_mode, fill_value, batched=True)

    return with_channels_last(images, data_format, lambda x: on_batch(x, warp))


def elastic_transform(
    images: Any,
    alpha: float = 20.0,
    sigma: float = 5.0,
    interpolation: str = "bilinear",
    fill_mode: str = "reflect",
    fill_value: float = 0.0,
    seed: Any = None,
    data_format: str | None = None,
) -> Any:
    """Images whose elements are displaced by smoothed noise (Simard and others, 2003)."""
    check_choice("interpolation", interpolation, tuple(_ORDERS))
    check_choice("fill_mode", fill_mode, _FILL_MODES)
    images = images_of(images)
    dtype = images.dtype if images.dtype.is_floating else df.float32
    size = 6 * int(sigma) | 1

    def warp(x: Any) -> Any:
        batch, height, width = shape(x)[:3]
        noise = df.random.stateless_normal((batch, height, width, 2), draw_seed(seed), dtype=dtype)
        displacement = gaussian_blur(noise * sigma, (size, size), (sigma, sigma), "channels_last") * alpha
        rows = df.expand_dims(cast(df.range(height), dtype.name), 1) + displacement[..., 0]
        columns = cast(df.range(width), dtype.name) + displacement[..., 1]
        return _interpolate(x, [rows, columns], _ORDERS[interpolation], fill_mode, fill_value, batched=True)

    return with_channels_last(images, data_format, lambda x: on_batch(x, warp))
