"""Productions of transforms along an axis, and of windows over images."""

from __future__ import annotations

from .elementary import has_axes, is_matrix, is_wide_float, production
from .records import Step
from .values import Size, Value, max_size_of
from .writer import Writer

__all__ = ["transform"]

MAX_LENGTH = 4100
COMPLEX_OF = {"float32": "complex64", "float64": "complex128"}


@production
def transform(w: Writer, s: Step) -> Value | None:
    """A Fourier or cosine transform of the last axis."""
    a = w.pick(s.i, is_wide_float, has_axes)
    if a is None or w.domain == "whole":
        return None
    dtype = COMPLEX_OF[a.dtype]
    signal = f"{a.name}[..., :{MAX_LENGTH}]" if max_size_of(a.sizes[-1]) > MAX_LENGTH else a.name
    last = a.sizes[-1]
    size: Size = min(last, MAX_LENGTH) if isinstance(last, int) else w.size(min(last.maximum, MAX_LENGTH))
    half: Size = size // 2 + 1 if isinstance(size, int) else w.size(size.maximum // 2 + 1)
    real = (*a.sizes[:-1], size)
    cases: tuple[tuple[str, tuple[Size, ...]], ...] = (
        (f"df.math.real(df.signal.fft(df.cast({signal}, df.{dtype})))", real),
        (f"df.math.imag(df.signal.rfft({signal}))", (*a.sizes[:-1], half)),
        (f"df.signal.irfft(df.signal.rfft({signal}), [df.shape({signal})[-1]])", real),
        (f"df.math.imag(df.signal.ifft(df.complex({signal}, 0.5 * {signal})))", real),
        (f"df.signal.dct({signal})", real),
        (f"df.math.real(df.signal.rfft({signal}, [9]))", (*a.sizes[:-1], 5)),
        (f"df.math.real(df.signal.fftshift(df.signal.fft(df.complex({signal}, {signal})), [-1]))", real),
        (f"df.math.real(df.signal.stft({signal}, 6, 3, 8, pad_end=True))[..., 1, :]", (*a.sizes[:-1], 5)),
    )
    text, sizes = cases[s.k % (len(cases) if max_size_of(last) and isinstance(last, int) else 7)]
    return w.assign(w.bound_values(f"0.3 * {text}", a.dtype), a.dtype, sizes) if w.is_small(sizes) else None


@production
def image(w: Writer, s: Step) -> Value | None:
    """A convolution, pooling or resizing of one image of one channel, of dynamic height and width."""
    a = w.pick(s.i, is_wide_float, is_matrix)
    if a is None or w.in_vmap or w.domain == "whole" or max_size_of(a.sizes[1]) > 300:
        return None
    tall, wide = (max_size_of(n) for n in a.sizes)
    x, filters = f"{a.name}[None, :, :, None]", f"df.constant([0.5, -1.0, 0.25, 0.75], df.{a.dtype})"
    square = f"df.reshape({filters}, [2, 2, 1, 1])"
    stride = 1 + s.j % 2
    halves = a.sizes if stride == 1 else tuple([half_of(w, n) for n in a.sizes])
    cases: tuple[tuple[str, tuple[Size, ...]], ...] = (
        (f"df.nn.conv2d({x}, {square}, {stride}, 'SAME')[0, :, :, 0]", halves),
        (f"df.nn.depthwise_conv2d({x}, {square}, [1, {stride}, {stride}, 1], 'SAME')[0, :, :, 0]", halves),
        (f"df.nn.avg_pool2d({x}, 3, {stride}, 'SAME')[0, :, :, 0]", halves),
        (f"df.nn.max_pool2d({x}, 2, {stride}, 'SAME')[0, :, :, 0]", halves),
        (f"df.nn.conv2d({x}, {square}, 1, 'SAME', dilations=2)[0, :, :, 0]", a.sizes),
        (
            f"df.nn.conv2d(df.stack([{a.name}] * 2, 2)[None], df.tile({square}, [1, 1, 2, 3]), 1, 'SAME')"
            "[0, :, :, 1]",
            a.sizes,
        ),
        (f"df.image.resize({x}, [5, 3])[0, :, :, 0]", (5, 3)),
        (f"df.nn.conv2d({x}, {square}, {stride}, 'VALID')[0, :, :, 0]", (w.size(tall), w.size(wide))),
        (
            f"df.nn.separable_conv2d({x}, {square}, df.constant([[[[0.5]]]], df.{a.dtype}), "
            f"[1, {stride}, {stride}, 1], 'SAME')[0, :, :, 0]",
            halves,
        ),
    )
    text, sizes = cases[s.k % len(cases)]
    return w.assign(w.bound_values(text, a.dtype), a.dtype, sizes)


def half_of(w: Writer, size: Size) -> Size:
    """The size of an axis that a stride of two divides."""
    return -(-size // 2) if isinstance(size, int) else w.size(-(-size.maximum // 2))


@production
def batch_windows(w: Writer, s: Step) -> Value | None:
    """Convolutions and normalisation of a dynamic number of small images."""
    a = w.pick(s.i, is_wide_float, is_matrix, lambda v: isinstance(v.sizes[1], int) and v.sizes[1] > 0)
    if a is None or w.in_vmap or w.domain == "whole" or not w.is_small((*a.sizes, 8)):
        return None
    x = f"{a.name}[:, :, None, None]"
    filters = f"df.reshape(df.constant([0.5, -1.0, 0.25, 0.75], df.{a.dtype}), [2, 1, 1, 2])"
    cases = (
        f"df.nn.conv2d({x}, {filters}, 1, 'SAME')[:, :, 0, 1]",
        f"df.nn.max_pool2d({x}, [2, 1], 1, 'SAME')[:, :, 0, 0]",
        f"df.nn.lrn({x}, 2)[:, :, 0, 0]",
        f"df.nn.batch_normalization({a.name}, *df.nn.moments({a.name}, [0]), None, None, 0.1)",
        f"df.nn.depthwise_conv2d({x}, {filters}, [1, 1, 1, 1], 'SAME')[:, :, 0, 0]",
        f"df.nn.conv1d({a.name}[:, :, None], {filters}[:, 0], 1, 'SAME')[:, :, 0]",
    )
    return w.assign(w.bound_values(cases[s.k % len(cases)], a.dtype), a.dtype, a.sizes)
