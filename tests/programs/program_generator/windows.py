"""Productions of windows along an axis: pooling, convolutions, their transposes, frames, mirrored edges."""

from __future__ import annotations

from .elementary import is_matrix, is_wide_float, production
from .records import Step
from .sized import rows
from .values import Size, Value, max_size_of
from .writer import Writer

__all__ = ["windowed"]


@production
def windowed(w: Writer, s: Step) -> Value | None:
    """Windows over a vector, whose size strides may not divide."""
    a = w.pick(s.i, is_wide_float, lambda v: v.rank == 1)
    if a is None or w.in_vmap:
        return None
    maximum, stride, window = max_size_of(a.sizes[0]), 1 + s.j % 3, 1 + s.j // 3 % 3
    image = f"{a.name}[None, :, None]"
    filters = f"df.constant([1.0, -2.0, 0.0, 1.0][:{window}], df.{a.dtype})[:, None, None]"
    pooling = "avg_pool1d" if w.domain == "smooth" else "max_pool1d"
    wide = f"df.stack([1, {stride} * {rows(a)}, 1])"
    windows = -(-maximum // stride)
    cases = (
        (f"df.nn.{pooling}({image}, {window}, {stride}, 'SAME')[0, :, 0]", windows),
        (f"df.nn.conv1d({image}, {filters}, {stride}, 'SAME')[0, :, 0]", windows),
        (f"df.nn.conv1d({image}, {filters}, {stride}, 'VALID')[0, :, 0]", None),
        (f"df.nn.conv1d_transpose({image}, {filters}, {wide}, {stride})[0, :, 0]", maximum * stride),
        (f"df.signal.frame({a.name}, {window}, {stride}, pad_end=True)[:, {window - 1}]", windows),
        (f"df.pad({a.name}, [[1, 1]], '{('SYMMETRIC', 'REFLECT')[s.k // 8 % 2]}')", maximum + 2),
    )
    text, count = cases[s.k % len(cases)]
    static = isinstance(a.sizes[0], int) and count is not None
    size = count if static and count is not None else w.size(windows if count is None else count)
    return w.assign(w.bound_values(text, a.dtype), a.dtype, (size,)) if w.is_small((size,)) else None


@production
def windowed_image(w: Writer, s: Step) -> Value | None:
    """Windows over a matrix, with strides on one or both axes, or with dilations."""
    a = w.pick(s.i, is_wide_float, is_matrix)
    if a is None or w.in_vmap or not w.is_small(a.sizes):
        return None
    image = f"{a.name}[None, :, :, None]"
    filters = f"df.reshape(df.range(6, dtype=df.{a.dtype}) - 2.0, [{2 + s.j % 2}, {3 - s.j % 2}, 1, 1])"
    rows, columns = ((1, 1), (2, 1), (1, 3), (3, 2))[s.j // 2 % 4]
    strides = f"[1, {rows}, {columns}, 1]"
    pooling = "AVG" if w.domain == "smooth" else "MAX"
    dilated = f"df.nn.conv2d({image}, {filters}, 1, 'SAME', dilations=[1, {rows}, {columns}, 1])"
    text, sizes = {
        0: (f"df.nn.conv2d({image}, {filters}, {strides}, 'SAME')", _windows(w, a, rows, columns)),
        1: (
            f"df.nn.{pooling.lower()}_pool2d({image}, [2, 3], {strides}, 'SAME')",
            _windows(w, a, rows, columns),
        ),
        2: (dilated, a.sizes),
        3: (
            f"df.nn.pool({image}, [2, 2], '{pooling}', padding='SAME', dilations=[{rows}, {columns}])",
            a.sizes,
        ),
    }[s.k % 4]
    return w.assign(w.bound_values(f"{text}[0, :, :, 0]", a.dtype), a.dtype, sizes)


def _windows(w: Writer, a: Value, *strides: int) -> tuple[Size, ...]:
    """The sizes of the value after windows with these strides, of which each axis has one for each start."""
    return tuple([_count(w, size, stride) for size, stride in zip(a.sizes, strides, strict=True)])


def _count(w: Writer, size: Size, stride: int) -> Size:
    windows = -(-max_size_of(size) // stride)
    return size if stride == 1 else windows if isinstance(size, int) else w.size(windows)
