"""Complex scalars as pairs of real scalars, so that a function of complex scalars is traced as one of reals.

The ``code(m, x, ...)`` of an op record is called with :class:`ComplexPair` values and the namespace
:class:`ComplexPairMaths`. Both compute with the maths namespace ``m`` of the parts. Products and quotients
are rounded like NumPy's, and special values are those of C's functions.
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
    larger, smaller = m.maximum(x, y), m.minimum(x, y)
    ratio = m.where(m.equal(larger, smaller), 1, smaller / larger)
    length = m.where(m.equal(larger, 0), larger, larger * m.sqrt(1 + ratio * ratio))
    return m.where(m.isinf(x) | m.isinf(y), math.inf, length)


def _two_sum(x: Any, y: Any) -> tuple[Any, Any]:
    """A sum and its rounding error: TwoSum, of Knuth, The Art of Computer Programming, volume 2."""
    total = x + y
    y_in_total = total - x
    return total, (x - (total - y_in_total)) + (y - y_in_total)


class ComplexPair:
    """A complex scalar: its parts ``re`` and ``im``, which are values of the maths namespace ``m``."""

    __slots__ = ("im", "m", "re")

    def __init__(self, m: Any, re: Any, im: Any) -> None:
        self.m, self.re, self.im = m, re, im

    def _with(self, re: Any, im: Any) -> ComplexPair:
        return ComplexPair(self.m, re, im)

    def pair(self, other: Any) -> ComplexPair:
        """``other``, which may be a Python number, as a pair of the same dtype."""
        if isinstance(other, ComplexPair):
            return other
        dtype = self.m.dtype(self.re)
        return self._with(self.m.cast(other, dtype), self.m.cast(0, dtype))

    def __add__(self, other: Any) -> ComplexPair:
        other = self.pair(other)
        return self._with(self.re + other.re, self.im + other.im)

    def __sub__(self, other: Any) -> ComplexPair:
        other = self.pair(other)
        return self._with(self.re - other.re, self.im - other.im)

    def __mul__(self, other: Any) -> ComplexPair:
        if not isinstance(other, ComplexPair):
            return self._with(self.re * other, self.im * other)
        fma = self.m.multiply_add
        return self._with(
            fma(self.re, other.re, -(self.im * other.im)), fma(self.re, other.im, self.im * other.re)
        )

    def __truediv__(self, other: Any) -> ComplexPair:
        """The quotient, by the algorithm of Smith, "Algorithm 116: Complex division" (1962)."""
        m, other = self.m, self.pair(other)
        re_size, im_size = m.abs(other.re), m.abs(other.im)
        by_re = re_size >= im_size  # the larger part of the divisor is its real part
        larger, smaller = m.where(by_re, other.re, other.im), m.where(by_re, other.im, other.re)
        first, second = m.where(by_re, self.re, self.im), m.where(by_re, self.im, self.re)
        ratio = smaller / larger
        scale = 1.0 / (larger + smaller * ratio)
        re = (first + second * ratio) * scale
        im = m.where(by_re, self.im - self.re * ratio, self.im * ratio - self.re) * scale
        is_zero = m.equal(re_size, 0) & m.equal(im_size, 0)
        return self._with(m.where(is_zero, self.re / re_size, re), m.where(is_zero, self.im / re_size, im))

    def __rtruediv__(self, number: float) -> ComplexPair:
        """``number / self``, with the results of NumPy's reciprocal."""
        m = self.m
        by_re = m.abs(self.im) <= m.abs(self.re)
        larger, smaller = m.where(by_re, self.re, self.im), m.where(by_re, self.im, self.re)
        ratio = smaller / larger
        scale = larger + smaller * ratio
        return self._with(m.where(by_re, number, ratio) / scale, -(m.where(by_re, ratio, number) / scale))

    def __neg__(self) -> ComplexPair:
        return self._with(-self.re, -self.im)

    # NumPy's order: by the real parts, and if these are equal by the imaginary parts

    def _lexicographic(self, other: ComplexPair, by_re: Any, by_im: Any) -> Any:
        """``by_re``, the comparison of the real parts, or ``by_im`` where these are equal; false for NaN."""
        m = self.m
        comparable = ~(m.isnan(self.im) | m.isnan(other.im))
        return (by_re & comparable) | (m.equal(self.re, other.re) & by_im)

    def __lt__(self, other: Any) -> Any:
        other = self.pair(other)
        return self._lexicographic(other, self.re < other.re, self.im < other.im)

    def __le__(self, other: Any) -> Any:
        other = self.pair(other)
        return self._lexicographic(other, self.re < other.re, self.im <= other.im)

    def __gt__(self, other: Any) -> Any:
        other = self.pair(other)
        return self._lexicographic(other, self.re > other.re, self.im > other.im)

    def __ge__(self, other: Any) -> Any:
        other = self.pair(other)
        return self._lexicographic(other, self.re > other.re, self.im >= other.im)


class ComplexPairMaths:
    """The maths namespace for code with complex pairs; for real scalars it calls the namespace ``m``.

    A function without a method here supports no pairs: it raises :class:`UnsupportedForComplex`.
    """

    def __init__(self, m: Any) -> None:
        self._m = m

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(self._m, name)

        def real_function(*operands: Any) -> Any:
            if any(isinstance(x, ComplexPair) for x in operands):
                raise UnsupportedForComplex(name)
            return function(*operands)

        return real_function

    def dtype(self, x: Any) -> DType:
        """The dtype of a real or complex scalar."""
        if not isinstance(x, ComplexPair):
            dtype: DType = self._m.dtype(x)
            return dtype
        return complex64 if self._m.dtype(x.re) is float32 else complex128

    def cast(self, x: Any, target: DType) -> Any:
        """The same number in another dtype; the real part if that dtype is real."""
        if isinstance(x, ComplexPair) and not target.is_complex:
            return self._m.cast(x.re, target)
        if not target.is_complex:
            return self._m.cast(x, target)
        parts = (x.re, x.im) if isinstance(x, ComplexPair) else (x, 0)
        return ComplexPair(self._m, *[self._m.cast(part, target.real) for part in parts])

    # Selection and comparison

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        """``x`` where the condition holds, ``y`` elsewhere."""
        pair = x if isinstance(x, ComplexPair) else y
        if not isinstance(pair, ComplexPair):
            return self._m.where(condition, x, y)
        x, y = pair.pair(x), pair.pair(y)
        m = self._m
        return ComplexPair(m, m.where(condition, x.re, y.re), m.where(condition, x.im, y.im))

    def equal(self, x: Any, y: Any) -> Any:
        """Whether both parts are equal."""
        if not isinstance(x, ComplexPair):
            return self._m.equal(x, y)
        y = x.pair(y)
        return self._m.equal(x.re, y.re) & self._m.equal(x.im, y.im)

    def not_equal(self, x: Any, y: Any) -> Any:
        """Whether a part is not equal."""
        if not isinstance(x, ComplexPair):
            return self._m.not_equal(x, y)
        y = x.pair(y)
        return self._m.not_equal(x.re, y.re) | self._m.not_equal(x.im, y.im)

    def isnan(self, x: Any) -> Any:
        """Whether a part is nan."""
        return self._m.isnan(x.re) | self._m.isnan(x.im) if isinstance(x, ComplexPair) else self._m.isnan(x)

    def isinf(self, x: Any) -> Any:
        """Whether a part is infinite."""
        return self._m.isinf(x.re) | self._m.isinf(x.im) if isinstance(x, ComplexPair) else self._m.isinf(x)

    def isfinite(self, x: Any) -> Any:
        """Whether both parts are finite."""
        if not isinstance(x, ComplexPair):
            return self._m.isfinite(x)
        return self._m.isfinite(x.re) & self._m.isfinite(x.im)

    def maximum(self, x: Any, y: Any) -> Any:
        """The larger, compared by real and then imaginary parts, as in NumPy; the first that has a NaN."""
        if not isinstance(x, ComplexPair):
            return self._m.maximum(x, y)
        return self.where((x >= y) | self.isnan(x), x, y)

    def minimum(self, x: Any, y: Any) -> Any:
        """The smaller, compared by real and then imaginary parts, as in NumPy; the first that has a NaN."""
        if not isinstance(x, ComplexPair):
            return self._m.minimum(x, y)
        return self.where((x <= y) | self.isnan(x), x, y)

    # Parts

    def real(self, x: ComplexPair) -> Any:
        """The real part."""
        return x.re

    def imag(self, x: ComplexPair) -> Any:
        """The imaginary part."""
        return x.im

    def conj(self, x: ComplexPair) -> ComplexPair:
        """The complex conjugate."""
        return ComplexPair(self._m, x.re, -x.im)

    def complex(self, re: Any, im: Any) -> ComplexPair:
        """The complex number of these parts."""
        return ComplexPair(self._m, re, im)

    # Functions

    def abs(self, x: Any) -> Any:
        """Magnitude, a real number."""
        return hypotenuse(self._m, x.re, x.im) if isinstance(x, ComplexPair) else self._m.abs(x)

    def sign(self, x: Any) -> Any:
        """The number of magnitude 1 in the same direction, or 0."""
        m = self._m
        if not isinstance(x, ComplexPair):
            return m.sign(x)
        magnitude = self.abs(x)
        parts = []
        for part, other in ((x.re, x.im), (x.im, x.re)):
            if_infinite = m.where(m.isinf(part), m.copysign(1, part), 0)
            if_infinite = m.where(m.isinf(part) & m.isinf(other), math.nan, if_infinite)
            if_finite = m.where(m.equal(magnitude, 0), 0, part / magnitude)
            is_infinite = m.isinf(magnitude)
            if_finite = m.where(m.isnan(magnitude), math.nan, if_finite)
            parts.append(m.where(is_infinite, if_infinite, if_finite))
        return ComplexPair(m, *parts)

    def exp(self, x: Any) -> Any:
        """``e**x``; a large magnitude is two factors: its product with a sine may not overflow."""
        m = self._m
        if not isinstance(x, ComplexPair):
            return m.exp(x)
        limit = float(int(math.log(float(finfo(self.dtype(x).real).max)) - 5))
        large = x.re > limit
        magnitude = m.exp(m.where(large, x.re - limit, x.re))
        second_factor = m.where(large, math.exp(limit), m.cast(1, m.dtype(x.re)))
        is_real, no_angle = m.equal(x.im, 0), ~m.isfinite(x.im)
        is_zero, is_infinite = no_angle & m.equal(x.re, -math.inf), no_angle & m.equal(x.re, math.inf)
        re = m.where(is_real, magnitude * second_factor, magnitude * m.cos(x.im) * second_factor)
        im = m.where(is_real, x.im, magnitude * m.sin(x.im) * second_factor)
        re = m.where(is_infinite, math.inf, re)
        return ComplexPair(m, m.where(is_zero, 0, re), m.where(is_zero, 0, im))

    def log(self, x: Any) -> Any:
        """The natural logarithm: that of the magnitude, accurate near a magnitude of 1, and the angle."""
        m = self._m
        if not isinstance(x, ComplexPair):
            return m.log(x)
        larger, smaller = m.maximum(m.abs(x.re), m.abs(x.im)), m.minimum(m.abs(x.re), m.abs(x.im))
        square, small_square = larger * larger, smaller * smaller
        # The squared magnitude less 1, and the sum of all rounding errors.
        excess = square - 1
        error = square - (excess + 1)
        square_error = m.fma(larger, larger, -square)
        for term in (small_square, square_error, m.fma(smaller, smaller, -small_square)):
            excess, term_error = _two_sum(excess, term)
            error = error + term_error
        excess = excess + error
        near_one = (square > 0.5) & (square + small_square < 2)
        log_near_one = m.log1p(m.where(near_one, excess, 0)) * 0.5
        re = m.where(near_one, log_near_one, m.log(hypotenuse(m, x.re, x.im)))
        return ComplexPair(m, re, m.atan2(x.im, x.re))

    def sqrt(self, x: Any) -> Any:
        """The square root with a nonnegative real part; huge and tiny operands are scaled."""
        m = self._m
        if not isinstance(x, ComplexPair):
            return m.sqrt(x)
        info = finfo(self.dtype(x).real)
        larger = m.maximum(m.abs(x.re), m.abs(x.im))
        is_huge, is_tiny = larger > float(info.max) / 16, larger < float(info.tiny) / float(info.eps)
        one, exponent = m.cast(1, m.dtype(x.re)), info.nmant + 5 & -2
        scale = m.where(is_huge, 1 / 16, m.where(is_tiny, 2.0 ** (2 * exponent), one))
        root_unscale = m.where(is_huge, 4, m.where(is_tiny, 2.0**-exponent, one))
        re, im = x.re * scale, x.im * scale
        larger_part = m.sqrt((hypotenuse(m, re, im) + m.abs(re)) * 0.5)
        smaller_part = m.where(m.equal(larger_part, 0), m.abs(im), m.abs(im) / (larger_part * 2))
        negative = re < 0
        root_im = m.copysign(m.where(negative, larger_part, smaller_part) * root_unscale, x.im)
        infinite_im = m.isinf(x.im)
        root_re = m.where(negative, smaller_part, larger_part) * root_unscale
        return ComplexPair(m, m.where(infinite_im, math.inf, root_re), m.where(infinite_im, x.im, root_im))

    def rsqrt(self, x: Any) -> Any:
        """``1 / sqrt(x)``."""
        if not isinstance(x, ComplexPair):
            return self._m.rsqrt(x)
        root = self.sqrt(x)
        return root.pair(1) / root


class UnsupportedForComplex(TypeError):
    """A function that a scalar function calls supports no complex numbers."""


def part_dependencies(
    code: Callable[..., Any], inputs: Sequence[DType], attrs: Mapping[str, Any]
) -> dict[str, tuple[int, ...]] | None:
    """The inputs that the real and imaginary parts of a result depend on; None if ``code`` supports no pairs.

    Args:
        code: the scalar code of an op, ``code(m, *scalars, **attrs)``.
        inputs: the dtypes of its operands; each part of a complex one counts as an input.
        attrs: the op's attributes.

    Returns:
        The inputs of "re" and "im", or of "real" if the result is real. A part that depends on no
        input has the first.

    >>> from dualflow.core.dtypes import complex64
    >>> part_dependencies(lambda m, x, y: x + m.conj(y), (complex64, complex64), {})
    {'re': (0, 2), 'im': (1, 3)}
    >>> part_dependencies(lambda m, x: m.abs(x), (complex64,), {})
    {'real': (0, 1)}
    """
    dtypes = [part for dtype in inputs for part in [dtype.real] * (1 + dtype.is_complex)]
    names: list[str] = []

    def code_of_parts(m: Any, *scalars: Any) -> Any:
        parts = iter(scalars)
        elements = [ComplexPair(m, next(parts), next(parts)) if x.is_complex else next(parts) for x in inputs]
        result = code(ComplexPairMaths(m), *elements, **attrs)
        names[:] = ("re", "im") if isinstance(result, ComplexPair) else ("real",)
        return (result.re, result.im) if isinstance(result, ComplexPair) else result

    try:
        function = trace(code_of_parts, dtypes)
    except (UnsupportedForComplex, TypeError):  # a function or an operator that pairs don't support
        return None
    return {name: tuple(sorted(function.returning([i]).reads())) or (0,) for i, name in enumerate(names)}
