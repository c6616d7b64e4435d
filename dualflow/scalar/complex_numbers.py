"""Complex numbers as pairs of real scalars: a function of complex scalars is traced as a function of parts.

The ``code(m, x, ...)`` of an op record is called with :class:`Pair` values and the namespace
:class:`PairMaths`. Both compute with the namespace of the parts. Products and quotients are rounded like
NumPy's, and special values are those of C's functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dualflow.core.dtypes import DType, complex64, complex128, finfo, float32
from dualflow.scalar.tracing import trace


def hypotenuse(m: Any, x: Any, y: Any) -> Any:
    """``sqrt(x**2 + y**2)`` without overflow: ``a * sqrt(1 + (b / a)**2)`` for the larger part ``a``."""
    x, y = m.abs(x), m.abs(y)
    big, small = m.maximum(x, y), m.minimum(x, y)
    ratio = m.where(m.equal(big, small), 1, small / big)
    length = m.where(m.equal(big, 0), big, big * m.sqrt(1 + ratio * ratio))
    return m.where(m.isinf(x) | m.isinf(y), math.inf, length)


def _exact_sum(x: Any, y: Any) -> tuple[Any, Any]:
    """A sum and its rounding error: Knuth, The Art of Computer Programming, volume 2."""
    total = x + y
    second = total - x
    return total, (x - (total - second)) + (y - second)


class Pair:
    """A complex element: its two parts, and operators in terms of the namespace ``m`` of the parts."""

    __slots__ = ("im", "m", "re")

    def __init__(self, m: Any, re: Any, im: Any) -> None:
        self.m, self.re, self.im = m, re, im

    def _with(self, re: Any, im: Any) -> Pair:
        return Pair(self.m, re, im)

    def pair(self, other: Any) -> Pair:
        """``other``, which may be a Python number, as a pair of the same dtype."""
        if isinstance(other, Pair):
            return other
        dtype = self.m.dtype(self.re)
        return self._with(self.m.cast(other, dtype), self.m.cast(0, dtype))

    def __add__(self, other: Any) -> Pair:
        other = self.pair(other)
        return self._with(self.re + other.re, self.im + other.im)

    def __sub__(self, other: Any) -> Pair:
        other = self.pair(other)
        return self._with(self.re - other.re, self.im - other.im)

    def __mul__(self, other: Any) -> Pair:
        if not isinstance(other, Pair):
            return self._with(self.re * other, self.im * other)
        fma = self.m.multiply_add
        return self._with(
            fma(self.re, other.re, -(self.im * other.im)), fma(self.re, other.im, self.im * other.re)
        )

    def __truediv__(self, other: Any) -> Pair:
        """Smith: Algorithm 116, Complex division."""
        m, other = self.m, self.pair(other)
        size, imaginary_size = m.abs(other.re), m.abs(other.im)
        upright = size >= imaginary_size
        long, short = m.where(upright, other.re, other.im), m.where(upright, other.im, other.re)
        first, second = m.where(upright, self.re, self.im), m.where(upright, self.im, self.re)
        ratio = short / long
        scale = 1.0 / (long + short * ratio)
        re = (first + second * ratio) * scale
        across = m.where(upright, self.im - self.re * ratio, self.im * ratio - self.re) * scale
        zero = m.equal(size, 0) & m.equal(imaginary_size, 0)
        return self._with(m.where(zero, self.re / size, re), m.where(zero, self.im / size, across))

    def __rtruediv__(self, number: float) -> Pair:
        """``number / self``, as NumPy's reciprocal."""
        m = self.m
        upright = m.abs(self.im) <= m.abs(self.re)
        long, short = m.where(upright, self.re, self.im), m.where(upright, self.im, self.re)
        ratio = short / long
        scale = long + short * ratio
        return self._with(m.where(upright, number, ratio) / scale, -(m.where(upright, ratio, number) / scale))

    def __neg__(self) -> Pair:
        return self._with(-self.re, -self.im)

    # NumPy's order: by the real parts, and if these are equal by the imaginary parts

    def _ordered(self, other: Pair, before: Any, then: Any) -> Any:
        m = self.m
        ordered = ~(m.isnan(self.im) | m.isnan(other.im))
        return (before & ordered) | (m.equal(self.re, other.re) & then)

    def __lt__(self, other: Any) -> Any:
        other = self.pair(other)
        return self._ordered(other, self.re < other.re, self.im < other.im)

    def __le__(self, other: Any) -> Any:
        other = self.pair(other)
        return self._ordered(other, self.re < other.re, self.im <= other.im)

    def __gt__(self, other: Any) -> Any:
        other = self.pair(other)
        return self._ordered(other, self.re > other.re, self.im > other.im)

    def __ge__(self, other: Any) -> Any:
        other = self.pair(other)
        return self._ordered(other, self.re > other.re, self.im >= other.im)


class PairMaths:
    """The maths namespace of element code with pairs. For real scalars it calls ``m``.

    A function without a method here supports no pairs: it raises :class:`NoPairs`.
    """

    def __init__(self, m: Any) -> None:
        self._m = m

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(self._m, name)

        def of_reals(*operands: Any) -> Any:
            if any(isinstance(x, Pair) for x in operands):
                raise NoPairs(name)
            return function(*operands)

        return of_reals

    def dtype(self, x: Any) -> DType:
        """The dtype of an element."""
        if not isinstance(x, Pair):
            dtype: DType = self._m.dtype(x)
            return dtype
        return complex64 if self._m.dtype(x.re) is float32 else complex128

    def cast(self, x: Any, target: DType) -> Any:
        """The same number in another dtype; the real part if that dtype is real."""
        if isinstance(x, Pair) and not target.is_complex:
            return self._m.cast(x.re, target)
        if not target.is_complex:
            return self._m.cast(x, target)
        parts = (x.re, x.im) if isinstance(x, Pair) else (x, 0)
        return Pair(self._m, *[self._m.cast(part, target.real) for part in parts])

    # Selection and comparison

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        """``x`` where the condition holds, ``y`` elsewhere."""
        pair = x if isinstance(x, Pair) else y
        if not isinstance(pair, Pair):
            return self._m.where(condition, x, y)
        x, y = pair.pair(x), pair.pair(y)
        return Pair(self._m, self._m.where(condition, x.re, y.re), self._m.where(condition, x.im, y.im))

    def equal(self, x: Any, y: Any) -> Any:
        """Whether both parts are equal."""
        if not isinstance(x, Pair):
            return self._m.equal(x, y)
        y = x.pair(y)
        return self._m.equal(x.re, y.re) & self._m.equal(x.im, y.im)

    def not_equal(self, x: Any, y: Any) -> Any:
        """Whether a part is not equal."""
        if not isinstance(x, Pair):
            return self._m.not_equal(x, y)
        y = x.pair(y)
        return self._m.not_equal(x.re, y.re) | self._m.not_equal(x.im, y.im)

    def isnan(self, x: Any) -> Any:
        """Whether a part is nan."""
        return self._m.isnan(x.re) | self._m.isnan(x.im) if isinstance(x, Pair) else self._m.isnan(x)

    def isinf(self, x: Any) -> Any:
        """Whether a part is infinite."""
        return self._m.isinf(x.re) | self._m.isinf(x.im) if isinstance(x, Pair) else self._m.isinf(x)

    def isfinite(self, x: Any) -> Any:
        """Whether both parts are finite."""
        return self._m.isfinite(x.re) & self._m.isfinite(x.im) if isinstance(x, Pair) else self._m.isfinite(x)

    def maximum(self, x: Any, y: Any) -> Any:
        """The larger in NumPy's order; the first that has a nan."""
        return self.where((x >= y) | self.isnan(x), x, y) if isinstance(x, Pair) else self._m.maximum(x, y)

    def minimum(self, x: Any, y: Any) -> Any:
        """The smaller in NumPy's order; the first that has a nan."""
        return self.where((x <= y) | self.isnan(x), x, y) if isinstance(x, Pair) else self._m.minimum(x, y)

    # Parts

    def real(self, x: Pair) -> Any:
        """The real part."""
        return x.re

    def imag(self, x: Pair) -> Any:
        """The imaginary part."""
        return x.im

    def conj(self, x: Pair) -> Pair:
        """The complex conjugate."""
        return Pair(self._m, x.re, -x.im)

    def complex(self, re: Any, im: Any) -> Pair:
        """The number of these parts."""
        return Pair(self._m, re, im)

    # Functions

    def abs(self, x: Any) -> Any:
        """Magnitude, a real number."""
        return hypotenuse(self._m, x.re, x.im) if isinstance(x, Pair) else self._m.abs(x)

    def sign(self, x: Any) -> Any:
        """The number of magnitude 1 in the same direction, or 0."""
        m = self._m
        if not isinstance(x, Pair):
            return m.sign(x)
        size = self.abs(x)
        parts = []
        for part, other in ((x.re, x.im), (x.im, x.re)):
            far = m.where(m.isinf(part), m.copysign(1, part), 0)
            far = m.where(m.isinf(part) & m.isinf(other), math.nan, far)
            small = m.where(m.equal(size, 0), 0, part / size)
            parts.append(m.where(m.isinf(size), far, m.where(m.isnan(size), math.nan, small)))
        return Pair(m, *parts)

    def exp(self, x: Any) -> Any:
        """``e**x``, in two factors if its magnitude overflows before it is multiplied by a small sine."""
        m = self._m
        if not isinstance(x, Pair):
            return m.exp(x)
        limit = float(int(math.log(float(finfo(self.dtype(x).real).max)) - 5))
        large = x.re > limit
        magnitude = m.exp(m.where(large, x.re - limit, x.re))
        second_factor = m.where(large, math.exp(limit), m.cast(1, m.dtype(x.re)))
        flat, far = m.equal(x.im, 0), ~m.isfinite(x.im)
        down, up = far & m.equal(x.re, -math.inf), far & m.equal(x.re, math.inf)
        re = m.where(flat, magnitude * second_factor, magnitude * m.cos(x.im) * second_factor)
        im = m.where(flat, x.im, magnitude * m.sin(x.im) * second_factor)
        return Pair(m, m.where(down, 0, m.where(up, math.inf, re)), m.where(down, 0, im))

    def log(self, x: Any) -> Any:
        """Natural logarithm of the magnitude, exact to all digits near 1, and the angle."""
        m = self._m
        if not isinstance(x, Pair):
            return m.log(x)
        big, small = m.maximum(m.abs(x.re), m.abs(x.im)), m.minimum(m.abs(x.re), m.abs(x.im))
        square, other = big * big, small * small
        above_one = square - 1
        lost = square - (above_one + 1)
        for term in (other, m.fma(big, big, -square), m.fma(small, small, -other)):
            above_one, more = _exact_sum(above_one, term)
            lost = lost + more
        above_one = above_one + lost
        near = (square > 0.5) & (square + other < 2)
        size = m.where(near, m.log1p(m.where(near, above_one, 0)) * 0.5, m.log(hypotenuse(m, x.re, x.im)))
        return Pair(m, size, m.atan2(x.im, x.re))

    def sqrt(self, x: Any) -> Any:
        """The square root with a nonnegative real part."""
        m = self._m
        if not isinstance(x, Pair):
            return m.sqrt(x)
        info = finfo(self.dtype(x).real)
        big = m.maximum(m.abs(x.re), m.abs(x.im))
        large, little = big > float(info.max) / 16, big < float(info.tiny) / float(info.eps)
        one, steps = m.cast(1, m.dtype(x.re)), info.nmant + 5 & -2
        grown = m.where(large, 1 / 16, m.where(little, 2.0 ** (2 * steps), one))
        shrunk = m.where(large, 4, m.where(little, 2.0**-steps, one))
        re, im = x.re * grown, x.im * grown
        root = m.sqrt((hypotenuse(m, re, im) + m.abs(re)) * 0.5)
        other = m.where(m.equal(root, 0), m.abs(im), m.abs(im) / (root * 2))
        left = re < 0
        across = m.copysign(m.where(left, root, other) * shrunk, x.im)
        far = m.isinf(x.im)
        return Pair(
            m, m.where(far, math.inf, m.where(left, other, root) * shrunk), m.where(far, x.im, across)
        )

    def rsqrt(self, x: Any) -> Any:
        """``1 / sqrt(x)``."""
        if not isinstance(x, Pair):
            return self._m.rsqrt(x)
        root = self.sqrt(x)
        return root.pair(1) / root


class NoPairs(TypeError):
    """A function in element code supports no complex numbers."""


def reads_of(
    code: Callable[..., Any], inputs: Sequence[DType], attrs: Mapping[str, Any]
) -> dict[str, tuple[int, ...]] | None:
    """The inputs that each part of a result depends on; None if the element code supports no pairs.

    Args:
        code: the element code of an op.
        inputs: the dtypes of its elements; the parts of a complex one count as inputs of their own.
        attrs: the op's attributes.

    Returns:
        The inputs of "re" and "im", or of "real" if the result is real. A part that depends on no input has
        the first.

    >>> from dualflow.core.dtypes import complex64
    >>> reads_of(lambda m, x, y: x + m.conj(y), (complex64, complex64), {})
    {'re': (0, 2), 'im': (1, 3)}
    >>> reads_of(lambda m, x: m.abs(x), (complex64,), {})
    {'real': (0, 1)}
    """
    dtypes = [part for dtype in inputs for part in [dtype.real] * (1 + dtype.is_complex)]
    names: list[str] = []

    def parted(m: Any, *scalars: Any) -> Any:
        remaining = iter(scalars)
        elements = [
            Pair(m, next(remaining), next(remaining)) if x.is_complex else next(remaining) for x in inputs
        ]
        result = code(PairMaths(m), *elements, **attrs)
        names[:] = ("re", "im") if isinstance(result, Pair) else ("real",)
        return (result.re, result.im) if isinstance(result, Pair) else result

    try:
        function = trace(parted, dtypes)
    except (NoPairs, TypeError):  # a function or an operator that pairs don't support
        return None
    return {name: tuple(sorted(function.returning([i]).reads())) or (0,) for i, name in enumerate(names)}
