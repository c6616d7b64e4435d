"""Sums, products, quotients, remainders and magnitudes."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.errors import InvalidArgumentError
from dualflow.ops.comparison import equal
from dualflow.ops.complex_numbers import conj
from dualflow.ops.complex_numbers import real as real_part
from dualflow.ops.conversion import cast
from dualflow.ops.elementwise import (
    BinaryFunction,
    as_float,
    as_quotient,
    elementwise,
    magnitude,
    number,
    real,
    signed,
    sum_or_join,
)
from dualflow.ops.record import promote_together
from dualflow.ops.samples import Domain, numbers, reals
from dualflow.ops.selection import masked, unmasked, where
from dualflow.ops.static import tensor_list

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor

add = elementwise(
    "add",
    """The sum; for bools whether either is true, for strings the concatenation.""",
    example=("df.add([1, 2], 10)", "[11, 12]"),
    dtype=sum_or_join,
    eager=np.add,
    code=lambda m, x, y: x | y if m.dtype(x).is_bool else x + y,
    vjp=(lambda g, out, x, y: g, lambda g, out, x, y: g),
    samples=(numbers(-50, 50), numbers(-50, 50)),
)

subtract = elementwise(
    "subtract",
    """The difference.""",
    example=("df.subtract([1, 2], 10)", "[-9, -8]"),
    dtype=signed,
    eager=np.subtract,
    code=lambda m, x, y: x - y,
    vjp=(lambda g, out, x, y: g, lambda g, out, x, y: -g),
    samples=(numbers(-50, 50), numbers(-50, 50)),
)

multiply = elementwise(
    "multiply",
    """The product; for bools whether both are true.""",
    example=("df.multiply([1, 2], 10)", "[10, 20]"),
    dtype=number,
    eager=np.multiply,
    code=lambda m, x, y: x & y if m.dtype(x).is_bool else x * y,
    vjp=(lambda g, out, x, y: g * y, lambda g, out, x, y: g * x),
    samples=(numbers(-50, 50), numbers(-50, 50)),
)

divide = elementwise(
    "divide",
    """The quotient; integers are divided in float64 (float32 for those of up to 16 bits).""",
    example=("df.divide([1, 2], 4)", "[0.25, 0.5]"),
    dtype=as_quotient,
    eager=np.divide,
    code=lambda m, x, y: x / y,
    vjp=(lambda g, out, x, y: g / y, lambda g, out, x, y: -g * out / y),
    samples=(numbers(-50, 50), numbers(1, 50)),
    cost=4,
)

negative = elementwise(
    "negative",
    """``-x``.""",
    example=("df.negative([1, -2])", "[-1, 2]"),
    dtype=signed,
    eager=np.negative,
    code=lambda m, x: -x,
    vjp=lambda g, out, x: -g,
    samples=numbers(-50, 50),
)

_BY_ZERO = "integer division by zero. Replace the zeros, or divide floats, which give inf and nan."


def _dividing(ufunc: np.ufunc) -> Any:
    def kernel(x: Any, y: Any) -> Any:
        if y.dtype.kind in "iu" and x.size and not y.all():
            raise InvalidArgumentError(_BY_ZERO)
        return ufunc(x, y)

    return kernel


def _floordiv(m: Any, x: Any, y: Any) -> Any:
    if m.dtype(y).is_integer:
        m.check(m.not_equal(y, 0), _BY_ZERO)
    return m.floor_divide(x, y)


def _mod(m: Any, x: Any, y: Any) -> Any:
    if m.dtype(y).is_integer:
        m.check(m.not_equal(y, 0), _BY_ZERO)
    return m.mod(x, y)


floordiv = elementwise(
    "floordiv",
    """The quotient ``x / y`` rounded down, as Python's ``x // y``.""",
    raises="an integer divided by zero",
    example=("df.floordiv([7, -7], 2)", "[3, -4]"),
    dtype=real,
    eager=_dividing(np.floor_divide),
    code=_floordiv,
    samples=(numbers(-50, 50), numbers(1, 50)),
    cost=8,
)

mod = elementwise(
    "mod",
    """The remainder of ``x // y``, as Python's ``x % y``: it has the sign of ``y``.""",
    raises="an integer divided by zero",
    example=("df.mod([7, -7], 2)", "[1, 1]"),
    dtype=real,
    eager=_dividing(np.remainder),
    code=_mod,
    vjp=(lambda g, out, x, y: g, lambda g, out, x, y: -g * floordiv(x, y)),
    samples=(numbers(-50, 50), Domain(3, 50, "fi")),
    cost=8,
)


def _truncatemod(m: Any, x: Any, y: Any) -> Any:
    if not m.dtype(y).is_integer:
        return m.fmod(x, y)
    m.check(m.not_equal(y, 0), _BY_ZERO)
    remainder = m.mod(x, y)
    return m.where(m.not_equal(remainder, 0) & ((x < 0) ^ (y < 0)), remainder - y, remainder)


truncatemod = elementwise(
    "truncatemod",
    """The remainder of the quotient rounded towards zero, as C's ``fmod``: it has the sign of ``x``.""",
    raises="an integer divided by zero",
    example=("df.truncatemod([7, -7], 2)", "[1, -1]"),
    dtype=real,
    eager=_dividing(np.fmod),
    code=_truncatemod,
    vjp=(lambda g, out, x, y: g, lambda g, out, x, y: g * ((out - x) / y)),
    samples=(numbers(-50, 50), Domain(3, 50, "fi")),
    cost=8,
)

multiply_no_nan: BinaryFunction = elementwise(
    "multiply_no_nan",
    """``x * y``, and 0 where ``y`` is 0 even if ``x`` is inf or nan there.""",
    example=('df.math.multiply_no_nan([2.0, float("nan")], [3.0, 0.0])', "[6.0, 0.0]"),
    dtype=as_float,
    eager=lambda x, y: np.where(y == 0, y.dtype.type(0), x * y),
    code=lambda m, x, y: m.where(m.equal(y, 0), 0, x * y),
    vjp=(lambda g, out, x, y: multiply_no_nan(g, y), lambda g, out, x, y: g * x),
    samples=(reals(-50, 50), reals(-50, 50)),
)


def _sign_vjp(g: Any, out: Any, x: Any) -> Any:
    """0; for a complex number, the part of ``g`` along the unit circle."""
    if not x.dtype.is_complex:
        return g * 0
    along = cast(real_part(g * out), x.dtype)
    return divide_no_nan(g - conj(out) * along, cast(abs(x), x.dtype))


sign = elementwise(
    "sign",
    """-1, 0 or 1, as ``x`` is negative, zero or positive.""",
    example=("df.sign([-3, 0, 5])", "[-1, 0, 1]"),
    dtype=signed,
    eager=np.sign,
    code=lambda m, x: m.sign(x),
    vjp=_sign_vjp,
    samples=Domain(-50, 50, "fi", kinks=(0.0,)),
)


def _abs_vjp(g: Any, out: Any, x: Any) -> Any:
    return conj(x) * divide_no_nan(g, out) if x.dtype.is_complex else g * sign(x)


abs = elementwise(
    "abs",
    """The magnitude, which is real for complex numbers too.""",
    example=("df.abs([-3, 4])", "[3, 4]"),
    dtype=magnitude,
    eager=np.absolute,
    code=lambda m, x: m.abs(x),
    vjp=_abs_vjp,
    samples=Domain(-50, 50, "fi", kinks=(0.0,)),
)

maximum = elementwise(
    "maximum",
    """The larger of ``x`` and ``y``; nan if either is nan. A tie's gradient goes to ``x``.""",
    example=("df.maximum([1, 5], 3)", "[3, 5]"),
    dtype=number,
    eager=np.maximum,
    code=lambda m, x, y: x | y if m.dtype(x).is_bool else m.maximum(x, y),
    vjp=(lambda g, out, x, y: masked(x >= y, g), lambda g, out, x, y: unmasked(x >= y, g)),
    samples=(numbers(-50, 50), numbers(-50, 50)),
)

minimum = elementwise(
    "minimum",
    """The smaller of ``x`` and ``y``; nan if either is nan. A tie's gradient goes to ``x``.""",
    example=("df.minimum([1, 5], 3)", "[1, 3]"),
    dtype=number,
    eager=np.minimum,
    code=lambda m, x, y: x & y if m.dtype(x).is_bool else m.minimum(x, y),
    vjp=(lambda g, out, x, y: masked(x <= y, g), lambda g, out, x, y: unmasked(x <= y, g)),
    samples=(numbers(-50, 50), numbers(-50, 50)),
)


square = elementwise(
    "square",
    """``x * x``.""",
    example=("df.square([-3, 4])", "[9, 16]"),
    dtype=number,
    eager=lambda x: x * x,
    code=lambda m, x: x if m.dtype(x).is_bool else x * x,
    vjp=lambda g, out, x: g * x * 2,
    samples=numbers(-50, 50),
)


def divide_no_nan(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """``x / y``, and 0 where ``y`` is 0.

    Args:
        x: numbers other than bools, of any shape.
        y: numbers; the shapes broadcast, and the dtypes promote to a common one.

    Returns:
        A tensor of the broadcast shape with the dtype of ``x / y``: float64 for integers.

    Raises:
        InvalidArgumentError: the shapes do not broadcast.
        DTypeError: an input doesn't hold numbers.

    >>> import dualflow as df
    >>> df.math.divide_no_nan([1.0, 2.0], [2.0, 0.0]).numpy().tolist()
    [0.5, 0.0]
    """
    x, y = promote_together(x, y)
    zero = equal(y, 0)
    return where(zero, 0, x / where(zero, 1, y))


def squared_difference(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """``(x - y) ** 2``; for complex numbers ``(x - y) * conj(x - y)``.

    Args:
        x: numbers other than bools, of any shape.
        y: numbers; the shapes broadcast, and the dtypes promote to a common one.

    Returns:
        A tensor of the broadcast shape with the common dtype.

    Raises:
        InvalidArgumentError: the shapes do not broadcast.
        DTypeError: an input holds bools or strings.

    >>> import dualflow as df
    >>> df.math.squared_difference([1.0, 5.0], 3.0).numpy().tolist()
    [4.0, 4.0]
    """
    difference = subtract(x, y)
    if not difference.dtype.is_complex:
        return square(difference)
    square_magnitude = real_part(
        multiply(difference, conj(difference))
    )  # rounding may leave an imaginary part
    return cast(square_magnitude, difference.dtype)


def add_n(inputs: TensorLike, name: str | None = None) -> Tensor:
    """The sum of a list of tensors, added from the first to the last.

    Args:
        inputs: a list of tensors of one shape; their dtypes promote to a common one.

    Returns:
        A tensor of that shape with the common dtype.

    Raises:
        InvalidArgumentError: the list is empty, or the shapes do not broadcast.
        DTypeError: ``inputs`` is not a list of tensors.

    >>> import dualflow as df
    >>> df.add_n([[1, 2], [10, 20]]).numpy().tolist()
    [11, 22]
    """
    terms = list(tensor_list(inputs, "inputs"))
    if not terms:
        raise InvalidArgumentError("add_n takes one tensor or more, but the list is empty.")
    return functools.reduce(add, terms)
