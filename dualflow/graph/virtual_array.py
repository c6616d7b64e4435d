"""Arrays without memory, for computing strides of views with symbolic sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dualflow.sizes.size_functions import broadcast_stride, symbolic_slice_bounds


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """Element strides of an array in row-major order."""
    return tuple([math.prod(shape[i + 1 :]) for i in range(len(shape))])


class VirtualArray:
    """A shape, strides and an offset in elements, with NumPy's methods and functions for views.

    Attributes:
        owner: the array that it is a view of; itself if it is no view.
    """

    __slots__ = ("offset", "owner", "shape", "strides")

    def __init__(
        self, shape: Sequence[int], strides: Sequence[int], offset: int = 0, owner: VirtualArray | None = None
    ) -> None:
        self.shape = tuple(shape)
        self.strides = tuple(strides)
        self.offset = offset
        self.owner: VirtualArray = owner or self

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def _view(self, shape: Sequence[int], strides: Sequence[int], offset: int | None = None) -> VirtualArray:
        return VirtualArray(shape, strides, self.offset if offset is None else offset, self.owner)

    def transpose(self, perm: Sequence[int]) -> VirtualArray:
        return self._view([self.shape[a] for a in perm], [self.strides[a] for a in perm])

    def reshape(self, shape: Sequence[int], copy: bool | None = None) -> VirtualArray:
        """The view of another shape.

        Raises:
            ValueError: elements would have to be copied.
        """
        new = completed(self.shape, tuple(shape))
        if self.strides == contiguous(self.shape):
            return self._view(new, contiguous(new))
        new_strides: list[int] = []
        for sizes, strides, parts in _groups(self.shape, self.strides, new):
            for (size, stride), outer in zip(zip(sizes[1:], strides[1:], strict=True), strides, strict=False):
                if outer != size * stride:
                    raise ValueError("elements are not contiguous")
            inner_stride = strides[-1] if strides else 0
            new_strides += [n * inner_stride for n in contiguous(parts)]
        return self._view(new, new_strides)

    def strided(self, shape: Sequence[int], strides: Sequence[int]) -> VirtualArray:
        """The view of the same first element with this shape and these strides."""
        return self._view(shape, strides)

    def view_with_shape(self, shape: Sequence[int], *, repeats: bool) -> VirtualArray:
        """The view of ``shape``, whose sizes are equal to the array's.

        With ``repeats`` they may repeat size 1.
        """
        if not repeats:
            return self._view(shape, self.strides)
        axes = zip(shape, self.shape, self.strides, strict=True)
        return self._view(
            shape, [step if new == old else broadcast_stride(step, old) for new, old, step in axes]
        )

    def __getitem__(self, key: Any) -> VirtualArray:
        items = key if isinstance(key, tuple) else (key,)
        used = sum(item is not None and item is not Ellipsis for item in items)
        full_slices = [slice(None)] * (self.ndim - used)
        ellipsis_index = items.index(Ellipsis) if Ellipsis in items else len(items)
        axes = iter(zip(self.shape, self.strides, strict=True))
        shape, strides, offset = [], [], self.offset
        for item in (*items[:ellipsis_index], *full_slices, *items[ellipsis_index + 1 :]):
            if item is None:
                shape.append(1)
                strides.append(0)
                continue
            size, stride = next(axes)
            if isinstance(item, slice):
                begin, count = symbolic_slice_bounds(item.start, item.stop, item.step or 1, size)
                shape.append(count)
                strides.append(stride * (item.step or 1))
                offset += begin * stride
            else:
                offset += (item if item >= 0 else item + size) * stride
        return self._view(shape, strides, offset)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        if function is not np.broadcast_to:
            return NotImplemented
        return spread(*args, **kwargs)


def spread(array: VirtualArray, shape: Sequence[int]) -> VirtualArray:
    """``array`` broadcast to ``shape``: a stride of 0 repeats elements."""
    strides = [0 if size == 1 else stride for size, stride in zip(array.shape, array.strides, strict=True)]
    return array._view(shape, [0] * (len(shape) - array.ndim) + strides)


def completed(old: Sequence[int], new: tuple[int, ...]) -> tuple[int, ...]:
    """``new`` with -1 replaced by the size that gives both shapes the same number of elements."""
    if -1 not in new:
        return new
    inferred = math.prod(old) // math.prod(d for d in new if d != -1)
    return tuple([inferred if d == -1 else d for d in new])


def _groups(
    shape: Sequence[int], strides: Sequence[int], new: Sequence[int]
) -> list[tuple[list[int], list[int], list[int]]]:
    """Groups of neighbouring axes of both shapes with equal numbers of elements, and the old strides."""
    old = [(d, s) for d, s in zip(shape, strides, strict=True) if d != 1]
    groups: list[tuple[list[int], list[int], list[int]]] = []
    parts, i = list(new), 0
    while parts or i < len(old):
        sizes, steps, group = [], [], []
        if i < len(old):
            sizes, steps, i = [old[i][0]], [old[i][1]], i + 1
        if parts:
            group = [parts.pop(0)]
        while math.prod(sizes) != math.prod(group):
            old_count, new_count = math.prod(sizes), math.prod(group)
            if i < len(old) and new_count % old_count == 0:
                sizes.append(old[i][0])
                steps.append(old[i][1])
                i += 1
            elif parts and old_count % new_count == 0:
                group.append(parts.pop(0))
            else:
                raise ValueError("elements are not contiguous")
        while parts and parts[0] == 1:
            group.append(parts.pop(0))
        groups.append((sizes, steps, group))
    return groups
