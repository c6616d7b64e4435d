"""Windows that slide over the axes between the first and the last: a view, and the sum that undoes it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from dualflow.core import dispatch
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Dim, Shape
from dualflow.core.spec import TensorSpec
from dualflow.ops.forms import Opaque, View
from dualflow.ops.record import Op, register
from dualflow.ops.samples import Domain, Sample

Sizes = tuple[int, ...]


def window_count(size: Dim, window: int, stride: int, dilation: int) -> Dim:
    """How many windows fit on an axis."""
    if size is None:
        return None
    return max(0, (size - (window - 1) * dilation - 1) // stride + 1)


def _counts(spatial: Any, size: Sizes, strides: Sizes, dilations: Sizes) -> list[Dim]:
    return [window_count(*axis) for axis in zip(spatial, size, strides, dilations, strict=True)]


def _infer(x: TensorSpec, size: Sizes, strides: Sizes, dilations: Sizes) -> TensorSpec:
    if len(x.shape) != len(size) + 2:
        raise InvalidArgumentError(
            f"windows over {len(size)} axes take a tensor of rank {len(size) + 2} (batch, axes, channels), "
            f"not of shape {x.shape}."
        )
    counts = _counts(x.shape[1:-1], size, strides, dilations)
    return TensorSpec.of(Shape([x.shape[0], *counts, *size, x.shape[-1]]), x.dtype)


def _view(x: Any, size: Sizes, strides: Sizes, dilations: Sizes) -> Any:
    counts = _counts(x.shape[1:-1], size, strides, dilations)
    over = x.strides[1:-1]
    steps = [s * by for s, by in zip(over, strides, strict=True)]
    inner = [s * by for s, by in zip(over, dilations, strict=True)]
    shape = (x.shape[0], *counts, *size, x.shape[-1])
    return as_strided(x, shape, (x.strides[0], *steps, *inner, x.strides[-1]), writeable=False)


def _sum_infer(g: TensorSpec, size: Sizes, strides: Sizes, dilations: Sizes, shape: Shape) -> TensorSpec:
    """The batch and the channels are those of the windows, also where ``shape`` was not known."""
    return TensorSpec.of(Shape([g.shape[0], *shape[1:-1], g.shape[-1]]), g.dtype)


def _sum_windows(g: Any, size: Sizes, strides: Sizes, dilations: Sizes, shape: tuple[int, ...]) -> Any:
    out = np.zeros((g.shape[0], *shape[1:-1], g.shape[-1]), g.dtype)
    counts = g.shape[1 : 1 + len(size)]
    every = (slice(None),) * len(counts)
    for offset in itertools.product(*map(range, size)):
        place = tuple(
            slice(i * dilation, i * dilation + (count - 1) * stride + 1, stride) if count else slice(0, 0)
            for i, count, stride, dilation in zip(offset, counts, strides, dilations, strict=True)
        )
        out[(slice(None), *place)] += g[(slice(None), *every, *offset)]
    return out


_ATTRS: dict[str, Any] = {"size": (2, 3), "strides": (2, 1), "dilations": (1, 1)}
_SPREAD: dict[str, Any] = {"size": (2,), "strides": (1,), "dilations": (3,)}

WINDOWS = register(
    Op(
        name="windows",
        doc="""Every window of ``size`` at distances ``strides``, its elements ``dilations`` apart.""",
        infer=_infer,
        kernel=_view,
        form=View(_view),
        vjp=(
            lambda g, out, x, **attrs: dispatch.current().apply(
                SUM_WINDOWS, (g,), {**attrs, "shape": x.shape}
            ),
        ),
        samples=(
            Sample((Domain(-50, 50, "fi", (2, 6, 5, 3)),), _ATTRS),
            Sample((Domain(-50, 50, "fi", (2, 7, 1)),), _SPREAD),
        ),
    )
)

SUM_WINDOWS: Op = register(
    Op(
        name="sum_windows",
        doc="""The windows added up in a tensor of ``shape`` at the places they were taken from.""",
        infer=_sum_infer,
        kernel=_sum_windows,
        form=Opaque("windows overlap, so that several elements meet in one place"),
        vjp=(lambda g, out, x, shape, **attrs: dispatch.current().apply(WINDOWS, (g,), attrs),),
        samples=(
            Sample((Domain(-50, 50, "fi", (2, 3, 3, 2, 3, 3)),), {**_ATTRS, "shape": Shape((2, 6, 5, 3))}),
            Sample((Domain(-50, 50, "fi", (2, 4, 2, 1)),), {**_SPREAD, "shape": Shape((2, 7, 1))}),
        ),
    )
)


def windows(x: Any, size: Sizes, strides: Sizes, dilations: Sizes) -> Any:
    """Every window of ``size`` of ``(batch, *axes, channels)``: ``(batch, *windows, *size, channels)``."""
    return dispatch.current().apply(WINDOWS, (x,), {"size": size, "strides": strides, "dilations": dilations})


def sum_windows(x: Any, size: Sizes, strides: Sizes, dilations: Sizes, shape: tuple[int, ...]) -> Any:
    """The windows ``x`` added up in a tensor of ``shape``, where :func:`windows` takes them from."""
    attrs = {"size": size, "strides": strides, "dilations": dilations, "shape": Shape(shape)}
    return dispatch.current().apply(SUM_WINDOWS, (x,), attrs)
