"""The standard's elementwise functions: an op each, on the tensors that the arrays hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from dualflow.array_api.arithmetic import exponential_minus_1, floor_quotient
from dualflow.array_api.array import Array, as_floating_tensor, operands, tensor_of
from dualflow.core.errors import DTypeError
from dualflow.core.tracebacks import hide_frames
from dualflow.ops import (
    arithmetic,
    bitwise,
    comparison,
    complex_numbers,
    conversion,
    exponential,
    powers,
    rounding,
    trigonometric,
)
from dualflow.ops.elementary.values import nextafter as nextafter_of
from dualflow.ops.floating_point import logarithms, signs

if TYPE_CHECKING:
    from dualflow.core.argument_types import AnyArray


class UnaryArrayFunction(Protocol):
    """The standard's function of one array."""

    __name__: str

    def __call__(self, x: AnyArray, /) -> Array: ...


class BinaryArrayFunction(Protocol):
    """The standard's function of two arrays, one of which may be a Python number."""

    __name__: str

    def __call__(self, x1: AnyArray | complex, x2: AnyArray | complex, /) -> Array: ...


def _unary(
    name: str,
    function: Callable[[Any], Any],
    doc: str,
    example: tuple[str, str],
    *,
    floats: bool = False,
    dtype: str | None = None,
) -> UnaryArrayFunction:
    """Defines the standard's function ``name`` of one array; with ``floats``, integers become float64."""
    tensor = as_floating_tensor if floats else tensor_of

    def apply(x: AnyArray, /) -> Array:
        try:
            return Array(function(tensor(x)))
        except Exception as error:
            hide_frames(error)
            raise

    operand, result = example
    dtype = dtype or ("its dtype, float64 for integers" if floats else "its dtype")
    _set_name_and_doc(apply, name, f"{doc}\n\n{_CONTRACT.format(dtype=dtype, **_ONE)}")
    _add_example(apply, f"xp.{name}(xp.asarray({operand}))", result)
    return apply


def _binary(
    name: str,
    function: Callable[[Any, Any], Any],
    doc: str,
    example: tuple[str, str, str],
    *,
    dtype: str = "the common dtype",
) -> BinaryArrayFunction:
    """Defines the standard's function ``name`` of two arrays, one of which may be a Python number."""

    def apply(x1: AnyArray | complex, x2: AnyArray | complex, /) -> Array:
        try:
            return Array(function(*operands(x1, x2)))
        except Exception as error:
            hide_frames(error)
            raise

    first, second, result = example
    _set_name_and_doc(apply, name, f"{doc}\n\n{_CONTRACT.format(dtype=dtype, **_TWO)}")
    _add_example(apply, f"xp.{name}(xp.asarray({first}), {second})", result)
    return apply


def _set_name_and_doc(apply: Any, name: str, doc: str) -> None:
    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = doc


def _add_example(apply: Any, call: str, result: str) -> None:
    apply.__doc__ += f"\n>>> import dualflow.array_api as xp\n>>> {call}.tolist()\n{result}\n"


_CONTRACT: Final = """Args:
{arguments}
Returns:
    An array with the shape {shape}, and {dtype}.

Raises:
    DTypeError: a dtype that the function doesn't take, or an argument that is no array.
{reasons}"""
_ONE: Final = {"arguments": "    x: an array of any shape.\n", "shape": "of ``x``", "reasons": ""}
_TWO: Final = {
    "arguments": (
        "    x1: an array of any shape.\n"
        "    x2: an array, or a Python number, which adapts; the shapes broadcast.\n"
    ),
    "shape": "to which the inputs broadcast",
    "reasons": "    InvalidArgumentError: the shapes do not broadcast.\n",
}
_BOOL: Final = "dtype bool"

# Of one array

acos = _unary("acos", trigonometric.acos, "Inverse cosine.", ("[1.0]", "[0.0]"), floats=True)
acosh = _unary("acosh", trigonometric.acosh, "Inverse hyperbolic cosine.", ("[1.0]", "[0.0]"), floats=True)
asin = _unary("asin", trigonometric.asin, "Inverse sine.", ("[0.0]", "[0.0]"), floats=True)
asinh = _unary("asinh", trigonometric.asinh, "Inverse hyperbolic sine.", ("[0.0]", "[0.0]"), floats=True)
atan = _unary("atan", trigonometric.atan, "Inverse tangent.", ("[0.0]", "[0.0]"), floats=True)
atanh = _unary("atanh", trigonometric.atanh, "Inverse hyperbolic tangent.", ("[0.0]", "[0.0]"), floats=True)
cos = _unary("cos", trigonometric.cos, "Cosine.", ("[0.0]", "[1.0]"), floats=True)
cosh = _unary("cosh", trigonometric.cosh, "Hyperbolic cosine.", ("[0.0]", "[1.0]"), floats=True)
sin = _unary("sin", trigonometric.sin, "Sine.", ("[0.0]", "[0.0]"), floats=True)
sinh = _unary("sinh", trigonometric.sinh, "Hyperbolic sine.", ("[0.0]", "[0.0]"), floats=True)
tan = _unary("tan", trigonometric.tan, "Tangent.", ("[0.0]", "[0.0]"), floats=True)
tanh = _unary("tanh", trigonometric.tanh, "Hyperbolic tangent.", ("[0.0]", "[0.0]"), floats=True)

exp = _unary("exp", exponential.exp, "e to the power ``x``.", ("[0.0]", "[1.0]"), floats=True)
expm1 = _unary("expm1", exponential_minus_1, "``exp(x) - 1``, exact near 0.", ("[0.0]", "[0.0]"), floats=True)
log = _unary("log", powers.log, "Natural logarithm.", ("[1.0]", "[0.0]"), floats=True)
log1p = _unary("log1p", exponential.log1p, "``log(1 + x)``, exact near 0.", ("[0.0]", "[0.0]"), floats=True)
log2 = _unary("log2", logarithms.log2, "Logarithm to the base 2.", ("[8.0]", "[3.0]"), floats=True)
log10 = _unary("log10", logarithms.log10, "Logarithm to the base 10.", ("[10.0]", "[1.0]"), floats=True)
reciprocal = _unary("reciprocal", powers.reciprocal, "``1 / x``.", ("[4.0]", "[0.25]"), floats=True)
sqrt = _unary("sqrt", powers.sqrt, "Square root; nan for negative numbers.", ("[9.0]", "[3.0]"), floats=True)
square = _unary("square", arithmetic.square, "``x * x``.", ("[-3]", "[9]"))

abs = _unary(
    "abs",
    arithmetic.abs,
    "The magnitude, which is real for complex numbers too.",
    ("[-3, 4]", "[3, 4]"),
    dtype="its real dtype",
)
negative = _unary("negative", arithmetic.negative, "``-x``.", ("[1, -2]", "[-1, 2]"))
positive = _unary("positive", conversion.identity, "``x`` itself.", ("[1, -2]", "[1, -2]"))
sign = _unary(
    "sign",
    arithmetic.sign,
    "-1, 0 or 1, as ``x`` is negative, zero or positive; ``x / abs(x)`` of complex numbers.",
    ("[-3, 0, 5]", "[-1, 0, 1]"),
)
signbit = _unary(
    "signbit",
    signs.signbit,
    "Whether the sign is minus, also that of zeros and nan.",
    ("[-0.0, 1.0]", "[True, False]"),
    dtype=_BOOL,
)


def _round(x: Any) -> Any:
    if not x.dtype.is_complex:
        return rounding.round(x)
    return complex_numbers.complex(
        rounding.round(complex_numbers.real(x)), rounding.round(complex_numbers.imag(x))
    )


ceil = _unary("ceil", rounding.ceil, "The smallest integer not below ``x``.", ("[1.5]", "[2.0]"))
floor = _unary("floor", rounding.floor, "The largest integer not above ``x``.", ("[-1.5]", "[-2.0]"))
round = _unary(
    "round",
    _round,
    "The nearest integer; halves go to the even one. Of complex numbers both parts.",
    ("[0.5, 1.5, 2.4]", "[0.0, 2.0, 2.0]"),
)
trunc = _unary("trunc", rounding.trunc, "The integer part of ``x``.", ("[-1.5]", "[-1.0]"))

conj = _unary("conj", complex_numbers.conj, "The complex conjugate.", ("[1.0 + 2.0j]", "[(1-2j)]"))
imag = _unary(
    "imag", complex_numbers.imag, "The imaginary part.", ("[1.0 + 2.0j]", "[2.0]"), dtype="its real dtype"
)
real = _unary(
    "real", complex_numbers.real, "The real part.", ("[1.0 + 2.0j]", "[1.0]"), dtype="its real dtype"
)

isfinite = _unary(
    "isfinite",
    comparison.isfinite,
    "Whether ``x`` is neither infinite nor nan.",
    ("[1.0, xp.inf]", "[True, False]"),
    floats=True,
    dtype=_BOOL,
)
isinf = _unary(
    "isinf",
    comparison.isinf,
    "Whether ``x`` is infinite.",
    ("[1.0, xp.inf]", "[False, True]"),
    floats=True,
    dtype=_BOOL,
)
isnan = _unary(
    "isnan",
    comparison.isnan,
    "Whether ``x`` is nan.",
    ("[1.0, xp.nan]", "[False, True]"),
    floats=True,
    dtype=_BOOL,
)
logical_not = _unary(
    "logical_not",
    comparison.logical_not,
    "Whether ``x`` does not hold.",
    ("[True, False]", "[False, True]"),
    dtype=_BOOL,
)
bitwise_invert = _unary(
    "bitwise_invert", bitwise.invert, "Every bit flipped; of bools, the opposite.", ("[6]", "[-7]")
)

# Of two arrays

add = _binary("add", arithmetic.add, "Sum.", ("[1, 2]", "10", "[11, 12]"))
subtract = _binary("subtract", arithmetic.subtract, "Difference.", ("[1, 2]", "10", "[-9, -8]"))
multiply = _binary("multiply", arithmetic.multiply, "Product.", ("[1, 2]", "10", "[10, 20]"))
divide = _binary("divide", arithmetic.divide, "Quotient.", ("[1.0, 2.0]", "4.0", "[0.25, 0.5]"))
floor_divide = _binary(
    "floor_divide",
    floor_quotient,
    "The quotient rounded down; of floats with an infinite operand the quotient itself.",
    ("[7, -7]", "2", "[3, -4]"),
)
remainder = _binary(
    "remainder",
    arithmetic.mod,
    "The remainder of :func:`floor_divide`, with the sign of ``x2``.",
    ("[7, -7]", "2", "[1, 1]"),
)
pow = _binary("pow", powers.pow, "``x1`` to the power ``x2``.", ("[2, 3]", "2", "[4, 9]"))
atan2 = _binary(
    "atan2",
    trigonometric.atan2,
    "The angle of the point ``(x2, x1)``.",
    ("[0.0]", "xp.asarray([1.0])", "[0.0]"),
)
hypot = _binary(
    "hypot",
    logarithms.hypot,
    "``sqrt(x1 ** 2 + x2 ** 2)``, without overflow.",
    ("[3.0]", "xp.asarray([4.0])", "[5.0]"),
)
logaddexp = _binary(
    "logaddexp",
    exponential.logaddexp,
    "``log(exp(x1) + exp(x2))``, without overflow.",
    ("[-1e9]", "3.0", "[3.0]"),
)
copysign = _binary(
    "copysign",
    signs.copysign,
    "The magnitude of ``x1`` with the sign of ``x2``.",
    ("[1.0]", "-0.0", "[-1.0]"),
)
nextafter = _binary(
    "nextafter",
    nextafter_of,
    "The float that follows ``x1`` towards ``x2``.",
    ("[1.0]", "xp.asarray([2.0])", "[1.0000000000000002]"),
)
maximum = _binary("maximum", arithmetic.maximum, "The larger; nan if either is.", ("[1, 5]", "3", "[3, 5]"))
minimum = _binary("minimum", arithmetic.minimum, "The smaller; nan if either is.", ("[1, 5]", "3", "[1, 3]"))

equal = _binary(
    "equal", comparison.equal, "Whether ``x1 == x2``.", ("[1, 2]", "2", "[False, True]"), dtype=_BOOL
)
not_equal = _binary(
    "not_equal", comparison.not_equal, "Whether ``x1 != x2``.", ("[1, 2]", "2", "[True, False]"), dtype=_BOOL
)
less = _binary("less", comparison.less, "Whether ``x1 < x2``.", ("[1, 2]", "2", "[True, False]"), dtype=_BOOL)
less_equal = _binary(
    "less_equal", comparison.less_equal, "Whether ``x1 <= x2``.", ("[1, 2]", "2", "[True, True]"), dtype=_BOOL
)
greater = _binary(
    "greater", comparison.greater, "Whether ``x1 > x2``.", ("[2, 3]", "2", "[False, True]"), dtype=_BOOL
)
greater_equal = _binary(
    "greater_equal",
    comparison.greater_equal,
    "Whether ``x1 >= x2``.",
    ("[1, 2]", "2", "[False, True]"),
    dtype=_BOOL,
)
logical_and = _binary(
    "logical_and",
    comparison.logical_and,
    "Whether both hold.",
    ("[True, False]", "True", "[True, False]"),
    dtype=_BOOL,
)
logical_or = _binary(
    "logical_or",
    comparison.logical_or,
    "Whether either holds.",
    ("[True, False]", "False", "[True, False]"),
    dtype=_BOOL,
)
logical_xor = _binary(
    "logical_xor",
    comparison.logical_xor,
    "Whether exactly one holds.",
    ("[True, False]", "True", "[False, True]"),
    dtype=_BOOL,
)
bitwise_and = _binary("bitwise_and", bitwise.bitwise_and, "Bits set in both.", ("[6]", "3", "[2]"))
bitwise_or = _binary("bitwise_or", bitwise.bitwise_or, "Bits set in either.", ("[6]", "3", "[7]"))
bitwise_xor = _binary("bitwise_xor", bitwise.bitwise_xor, "Bits set in exactly one.", ("[6]", "3", "[5]"))
bitwise_left_shift = _binary(
    "bitwise_left_shift", bitwise.left_shift, "The bits moved up by ``x2`` places.", ("[6]", "1", "[12]")
)
bitwise_right_shift = _binary(
    "bitwise_right_shift", bitwise.right_shift, "The bits moved down by ``x2`` places.", ("[6]", "1", "[3]")
)


def clip(x: AnyArray, /, min: AnyArray | float | None = None, max: AnyArray | float | None = None) -> Array:
    """``x`` limited to the range from ``min`` to ``max``.

    Args:
        x: real numbers, whose dtype the result has.
        min: a number or an array that broadcasts with ``x``; None for no bound.
        max: as ``min``. Where the bounds cross, ``max`` is taken.

    Returns:
        An array with the shape to which the inputs broadcast, and the dtype of ``x``.

    Raises:
        DTypeError: ``x`` is complex, or a bound is of a higher kind than ``x``.

    >>> import dualflow.array_api as xp
    >>> xp.clip(xp.asarray([1, 5, 9]), 2, 7).tolist()
    [2, 5, 7]
    """
    clipped = tensor_of(x)
    if clipped.dtype.is_complex:
        raise DTypeError(
            f"clip needs real numbers, not {clipped.dtype.name}; clip the real and imaginary parts."
        )
    dtype = clipped.dtype
    for bound, choose in ((min, arithmetic.maximum), (max, arithmetic.minimum)):
        if bound is not None:
            first, second = operands(Array(clipped), bound)
            clipped = choose(first, second)
    return Array(conversion.cast(clipped, dtype))
