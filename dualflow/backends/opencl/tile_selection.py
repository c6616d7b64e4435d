"""Selects the tile of large matrix products for a device: by a short measurement, which is kept on disk.

The bits of a product don't depend on its tile. So the entry on disk may be removed or damaged at any time:
then the tiles are measured again.
"""

from __future__ import annotations

import time
from typing import Final

import numpy as np
import pyopencl as cl

from dualflow.backends.opencl.devices import OpenCLDevice
from dualflow.backends.opencl.products import LARGE, NARROW, SMALL, ProductForm, ProductTile, product
from dualflow.backends.runtime import object_cache
from dualflow.core.digest import digest
from dualflow.core.dtypes import DType
from dualflow.sizes.symbolic_sizes import typical

LARGE_SIDE: Final = 256
"""A product with at least this many rows and columns is large.

One with fewer of either is narrow if it has ``LARGE_SIDE**2`` elements.
"""
MEASURED_SIDE: Final = 512
"""The rows, columns and inner size of the measured product."""
_RUNS: Final = 2
"""The measured runs of each tile, after one that warms up; the fastest counts."""


def tile_for(device: OpenCLDevice, dtype: DType, rows: int, columns: int) -> ProductTile:
    """The tile of a product with ``rows`` and ``columns``, which may be symbolic."""
    shorter, longer = sorted(map(typical, (rows, columns)))
    if shorter * longer < LARGE_SIDE**2 or shorter < NARROW.width:
        return SMALL
    if shorter < LARGE_SIDE:
        return NARROW if is_supported(device, NARROW, dtype) else SMALL
    tile = device.tiles.get(dtype.char)
    if tile is None:
        tile = device.tiles.setdefault(dtype.char, select_tile(device, dtype))
    return tile


def select_tile(device: OpenCLDevice, dtype: DType) -> ProductTile:
    """The tile of large products of ``dtype``, from disk; or else the fastest, which is then stored."""
    candidates = [tile for tile in LARGE if is_supported(device, tile, dtype)]
    if not candidates:
        return SMALL
    about, texts = device.device, [_text(dtype, tile) for tile in candidates]
    key = digest("\0".join([about.name, about.version, about.driver_version, *texts]).encode()).hex()
    stored = object_cache.load(key)
    if stored is not None and stored.isdigit() and int(stored) < len(candidates):
        return candidates[int(stored)]
    fastest = int(np.argmin([_seconds(device, dtype, tile) for tile in candidates]))
    object_cache.store(key, str(fastest).encode())
    return candidates[fastest]


def is_supported(device: OpenCLDevice, tile: ProductTile, dtype: DType) -> bool:
    """Whether the device has the local memory and the work-items for a tile."""
    fits = tile.local_bytes(dtype.size) <= device.device.local_mem_size
    return bool(fits and tile.group_size <= device.device.max_work_group_size)


def _seconds(device: OpenCLDevice, dtype: DType, tile: ProductTile) -> float:
    """The seconds of the measured product with ``tile``."""
    side = MEASURED_SIDE
    nbytes, zero = side * side * dtype.size, dtype.dtype.type(0)
    buffers = [device.memory.allocate(nbytes, "measuring matrix products") for _ in range(3)]
    tiles = (side // tile.height) * (side // tile.width)
    arguments = [value for buffer in buffers for value in (buffer, np.int64(0))]
    arguments += [np.int64(n) for n in (side, side, side, side, 1, side, 1, side, 1)]
    arguments += [dtype.dtype.type(1), np.int64(tiles)]
    try:
        kernel = device.kernel(_text(dtype, tile))
        for buffer in buffers[:2]:
            cl.enqueue_fill_buffer(device.queue, buffer, zero, 0, nbytes)
        seconds = []
        for _ in range(1 + _RUNS):
            device.queue.finish()
            begin = time.perf_counter()
            device.enqueue(kernel, tiles * tile.group_size, tile.group_size, arguments)
            device.queue.finish()
            seconds.append(time.perf_counter() - begin)
    finally:
        for buffer in buffers:
            device.memory.release(buffer)
    return min(seconds[1:])


def _text(dtype: DType, tile: ProductTile) -> str:
    """The program of the measured product."""
    return product(ProductForm(dtype, 0, tile, adds=False))
