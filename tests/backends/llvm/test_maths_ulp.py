"""Errors of the emitted maths functions in ulps, over the whole range of arguments.

The reference is NumPy in a wider float: float64 for float32, and 80-bit long double for float64. Where the
platform has no such long double, float64 is held to its special values only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from dualflow.backends.llvm.maths import Maths
from dualflow.backends.llvm.text import F32, I32, LlvmModule
from dualflow.core.errors import DTypeError
from dualflow.ops import maths_reference
from dualflow.scalar.tracing import ScalarTracer

Array = np.ndarray[Any, Any]
Float = type[np.floating[Any]]
WIDER: dict[Float, Float] = {np.float32: np.float64, np.float64: np.longdouble}
HAS_LONG_DOUBLE = np.finfo(np.longdouble).nmant >= 63
PI = np.longdouble("3.14159265358979323846264338327950288")
LANES = {np.float32: 16, np.float64: 8}
KINDS = [np.float32, np.float64]


# References that NumPy lacks


def sigmoid(x: Array) -> Array:
    decay = np.exp(-np.abs(x))
    return np.where(x < 0, decay, 1) / (1 + decay)


def gauss(x: Array) -> Array:
    """``exp(-x**2)``; the square in two parts, the first exact."""
    head = x.astype(np.float32).astype(x.dtype)
    return np.exp(-head * head) * np.exp(-(x - head) * (x + head))


def erf_series(x: Array) -> Array:
    """DLMF 7.6.2, up to 1.5."""
    x = np.clip(x, -1.5, 1.5)
    total = term = x
    for n in range(1, 50):
        term = term * (2 * x * x / (2 * n + 1))
        total = total + term
    return 2 / np.sqrt(PI.astype(x.dtype)) * gauss(x) * total


def erfcx_fraction(x: Array) -> Array:
    """``exp(x**2) erfc(x)`` by DLMF 7.9.1, from 1.4 on."""
    fraction = np.zeros_like(x)
    for k in range(150, 0, -1):
        fraction = (k / 2) / (x + fraction)
    return 1 / (np.sqrt(PI.astype(x.dtype)) * (x + fraction))


def erfc_fraction(x: Array) -> Array:
    """erfc from 1.5 on."""
    x = np.clip(x, 1.5, 30)
    return gauss(x) * erfcx_fraction(x)


def erf(x: Array) -> Array:
    return np.where(np.abs(x) > 1.5, np.copysign(1 - erfc_fraction(np.abs(x)), x), erf_series(x))


def erfc(x: Array) -> Array:
    tail = np.where(x > 1.5, erfc_fraction(x), 2 - erfc_fraction(-x))
    return np.where(np.abs(x) > 1.5, tail, 1 - erf_series(x))


def ndtr(x: Array) -> Array:
    """By the tail's fraction from 2 on, whose exponential takes the exact square; else by erf's series."""
    root = np.sqrt(x.dtype.type(2))
    size = np.clip(np.abs(x), 2, 45)
    head = size.astype(np.float32).astype(x.dtype)
    density = np.exp(-head * head / 2) * np.exp(-(size - head) * (size + head) / 2)
    tail = density * erfcx_fraction(size / root) / 2
    far = np.where(x < 0, tail, 1 - tail)
    return np.where(np.abs(x) > 2, far, (1 + erf_series(x / root)) / 2)


# The table


@dataclass(frozen=True)
class Case:
    """A function's reference, its largest error in units in the last place for float32 and float64, and the
    interval where something happens; `edges` are where its code changes branch."""

    reference: Callable[..., Array]
    bounds: tuple[float, float]
    interval: tuple[float, float]
    edges: tuple[float, ...] = ()


CASES = {
    "exp": Case(np.exp, (1.0, 1.0), (-105, 90), (88.72, -87.3, -103.9, 709.78, -708.4, -745.1)),
    "exp2": Case(np.exp2, (0.9, 0.9), (-151, 129), (128, -126, -149, 1024, -1022, -1074)),
    "expm1": Case(np.expm1, (1.45, 1.2), (-20, 40), (0.5, -0.5, 2**-25, 2**-54, -17.3, 88.72, 709.78)),
    "sigmoid": Case(sigmoid, (2.3, 2.3), (-110, 20), (0,)),
    "sinh": Case(np.sinh, (1.65, 1.65), (-10, 10), (1, 89.4, 710.47)),
    "cosh": Case(np.cosh, (1.5, 1.5), (-10, 10), (89.4, 710.47)),
    "tanh": Case(np.tanh, (1.35, 1.35), (-10, 10), (0.66, 9.01, 19.06)),
    "log": Case(np.log, (0.9, 0.9), (0, 4), (1, 0.5**0.5, 2**0.5)),
    "log2": Case(np.log2, (1.7, 1.6), (0, 4), (1, 0.5**0.5, 2**0.5)),
    "log10": Case(np.log10, (1.7, 1.6), (0, 4), (1, 0.5**0.5, 2**0.5)),
    "log1p": Case(np.log1p, (1.5, 1.4), (-1, 3), (-1, 0.5**0.5 - 1, 2**0.5 - 1, 2**-25, 2**-54)),
    "asinh": Case(np.arcsinh, (1.85, 1.75), (-5, 5), (2**30, 2**60)),
    "acosh": Case(np.arccosh, (2.3, 2.0), (1, 5), (1, 2**30, 2**60)),
    "atanh": Case(np.arctanh, (2.2, 2.0), (-1, 1), (1,)),
    "sin": Case(np.sin, (1.2, 1.2), (-1e4, 1e4), (np.pi, np.pi / 4, 65536, 2**30)),
    "cos": Case(np.cos, (1.2, 1.2), (-1e4, 1e4), (np.pi / 2, np.pi / 4, 65536, 2**30)),
    "tan": Case(np.tan, (2.1, 2.5), (-1e4, 1e4), (np.pi / 2, np.pi / 4, 65536, 2**30)),
    "asin": Case(np.arcsin, (2.0, 2.0), (-1, 1), (0.5, 1)),
    "acos": Case(np.arccos, (1.1, 1.15), (-1, 1), (0.5, 1)),
    "atan": Case(np.arctan, (1.2, 1.4), (-4, 4), (0.5, 1, 2)),
    "erf": Case(erf, (1.05, 1.05), (-6, 6), (0.9, 1, 3.92, 5.93)),
    "erfc": Case(erfc, (4.0, 3.6), (-6, 28), (0.5, 10.1, 27.3)),
    "ndtr": Case(ndtr, (3.2, 3.1), (-39, 9), (2, 14.5, 38.7)),
    "sqrt": Case(np.sqrt, (0.5, 0.5), (0, 4)),
    "rsqrt": Case(lambda x: 1 / np.sqrt(x), (1.5, 1.5), (0, 4)),
}
BINARY = {
    "pow": Case(np.power, (0.51, 1.15), (-20, 20)),
    "atan2": Case(np.arctan2, (1.5, 1.5), (-4, 4)),
}
SPECIAL = [
    0.0,
    1.0,
    0.5,
    2.0,
    3.0,
    1 / 3,
    101.0,
    2.0**53,
    1e10,
    1e-40,
    1e-310,
    5e-324,
    1.7e308,
    np.inf,
    np.nan,
]


def specials(dtype: Float) -> Array:
    info = np.finfo(dtype)
    values = [*SPECIAL, float(info.tiny), float(info.smallest_subnormal), float(info.max)]
    with np.errstate(over="ignore"):
        return np.array([*values, *[-v for v in values]]).astype(dtype)


def arguments(dtype: Float, case: Case, count: int = 12000, seed: int = 1) -> Array:
    """Random bit patterns, the interval, numbers of every size, and the neighbours of the edges."""
    random = np.random.default_rng(seed)
    bits = np.dtype(f"u{np.dtype(dtype).itemsize}")
    patterns = random.integers(0, np.iinfo(bits).max, count, bits, endpoint=True).view(dtype)
    sizes = 2.0 ** random.uniform(-60, 8, count) * random.choice([-1, 1], count)
    near = np.array(case.edges)[:, None] * (1 + np.arange(-64, 64) * np.finfo(dtype).epsneg)
    interval = random.uniform(*case.interval, 3 * count)
    drawn = np.concatenate([interval, sizes, near.ravel(), -near.ravel()])
    with np.errstate(over="ignore"):
        return np.concatenate([patterns, drawn.astype(dtype), specials(dtype)])


@np.errstate(all="ignore")
def error_in_ulp(got: Array, exact: Array) -> Array:
    """The distance to the exact value, in units in the last place; infinite for a wrong NaN or infinity."""
    info = np.finfo(got.dtype)
    rounded = exact.astype(got.dtype)
    exponent = np.frexp(np.maximum(np.abs(exact), info.tiny))[1] - 1
    error = np.abs(got.astype(exact.dtype) - exact) / np.ldexp(exact.dtype.type(1), exponent - info.nmant)
    right = (got == rounded) & ((got != 0) | (np.signbit(got) == np.signbit(rounded)))
    no_number = ~np.isfinite(got) | ~np.isfinite(rounded)
    # Past the largest number, the next would-be float counts as one unit.
    top = (np.abs(exact) >= info.max) & (np.isinf(got) != np.isinf(rounded)) & (np.abs(exact) < 2 * info.max)
    error = np.where(no_number, np.where(top, 1.0, np.inf), error)
    wrong_zero = (got == 0) & (rounded == 0) & ~right
    error = np.where(wrong_zero, np.inf, error)
    return np.where((right & no_number) | (np.isnan(got) & np.isnan(rounded)), 0, error)


def named(name: str) -> Callable[[LlvmModule], Callable[..., Any]]:
    """Element code that is one function of the namespace."""
    return lambda module: getattr(Maths(module), name)


def assert_within(bound: float, got: Array, exact: Array, *xs: Array) -> None:
    error = error_in_ulp(got, exact)
    worst = int(np.argmax(error))
    where = [x[worst] for x in xs]
    assert error[worst] <= bound, (
        f"{error[worst]:.3f} ulp at {where}: {got[worst]!r}, exactly {exact[worst]!r}"
    )


def skip_without_reference(dtype: Float) -> None:
    if dtype is np.float64 and not HAS_LONG_DOUBLE:
        pytest.skip("no float wider than float64 here")


# Accuracy


@pytest.mark.parametrize("dtype", KINDS, ids=lambda d: d.__name__)
@pytest.mark.parametrize("name", CASES)
def test_error_is_within_its_bound(name, dtype, elementwise):
    skip_without_reference(dtype)
    case, x = CASES[name], arguments(dtype, CASES[name])
    with np.errstate(all="ignore"):
        exact = case.reference(x.astype(WIDER[dtype]))
    got = elementwise(named(name), [dtype], dtype, LANES[dtype])(x)
    assert_within(case.bounds[KINDS.index(dtype)], got, exact, x)


@pytest.mark.parametrize("dtype", KINDS, ids=lambda d: d.__name__)
@pytest.mark.parametrize("name", BINARY)
def test_error_of_two_arguments_is_within_its_bound(name, dtype, elementwise):
    skip_without_reference(dtype)
    case = BINARY[name]
    x, y = arguments(dtype, case, seed=2), arguments(dtype, case, seed=3)
    random = np.random.default_rng(4)
    random.shuffle(y)
    # Powers of every size: y is a share of the largest logarithm.
    base = np.exp(random.uniform(-80, 80, 20000)).astype(dtype)
    exponent = (random.uniform(-1, 1, 20000) * np.log(np.finfo(dtype).max) / np.log(base)).astype(dtype)
    x, y = np.concatenate([x, base]), np.concatenate([y, exponent])
    with np.errstate(all="ignore"):
        exact = case.reference(x.astype(WIDER[dtype]), y.astype(WIDER[dtype]))
    got = elementwise(named(name), [dtype, dtype], dtype, LANES[dtype])(x, y)
    assert_within(case.bounds[KINDS.index(dtype)], got, exact, x, y)


@pytest.mark.parametrize("dtype", KINDS, ids=lambda d: d.__name__)
def test_logaddexp_is_right_next_to_its_larger_argument(dtype, elementwise):
    skip_without_reference(dtype)
    random = np.random.default_rng(5)
    x, y = random.uniform(-100, 100, (2, 20000)).astype(dtype)
    exact = np.logaddexp(x.astype(WIDER[dtype]), y.astype(WIDER[dtype]))
    got = elementwise(named("logaddexp"), [dtype, dtype], dtype, LANES[dtype])(x, y)
    scale = np.maximum(np.maximum(abs(x), abs(y)), 1) * np.finfo(dtype).eps
    assert (abs(got - exact) <= 1.5 * scale).all()


@pytest.mark.parametrize("name", [*CASES, *BINARY])
def test_half_precision_is_float32_rounded(name, elementwise):
    case = {**CASES, **BINARY}[name]
    count = 1 if name in CASES else 2
    random = np.random.default_rng(6)
    xs = [random.integers(0, 2**16, 5000, np.uint16).view(np.float16) for _ in range(count)]
    with np.errstate(all="ignore"):
        exact = case.reference(*[x.astype(np.float64) for x in xs])
    got = elementwise(named(name), [np.float16] * count, np.float16, 16)(*xs)
    assert_within(0.51, got, exact, *xs)


# Special values


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("dtype", KINDS, ids=lambda d: d.__name__)
@pytest.mark.parametrize(
    "name", ["pow", "atan2", "logaddexp", "fmod", "mod", "floor_divide", "maximum", "minimum"]
)
def test_special_pairs_are_numpys(name, dtype, lanes, elementwise):
    x, y = (grid.ravel() for grid in np.meshgrid(specials(dtype), specials(dtype)))
    with np.errstate(all="ignore"):
        expected = getattr(maths_reference, name)(x, y)
    got = elementwise(named(name), [dtype, dtype], dtype, lanes)(x, y)
    exactly = ~np.isfinite(expected) | (expected == 0)
    np.testing.assert_array_equal(got[exactly], expected[exactly])
    np.testing.assert_array_equal(np.signbit(got) | np.isnan(got), np.signbit(expected) | np.isnan(expected))
    np.testing.assert_allclose(got, expected, rtol=2 * np.finfo(dtype).eps, atol=0)


@pytest.mark.parametrize("dtype", KINDS, ids=lambda d: d.__name__)
@pytest.mark.parametrize("name", CASES)
def test_infinities_nan_and_zeros_are_numpys(name, dtype, elementwise):
    x = specials(dtype)
    with np.errstate(all="ignore"):
        expected = CASES[name].reference(x.astype(np.float64)).astype(dtype)
    got = elementwise(named(name), [dtype], dtype, LANES[dtype])(x)
    exactly = ~np.isfinite(expected) | (expected == 0)
    np.testing.assert_array_equal(got[exactly], expected[exactly])
    np.testing.assert_array_equal(np.signbit(got[expected == 0]), np.signbit(expected[expected == 0]))


# One code for every width


@pytest.mark.parametrize("dtype", KINDS, ids=lambda d: d.__name__)
@pytest.mark.parametrize("name", CASES)
def test_scalar_and_vector_code_agree_to_the_bit(name, dtype, elementwise):
    x = arguments(dtype, CASES[name], 500)
    vector = elementwise(named(name), [dtype], dtype, LANES[dtype])(x)
    np.testing.assert_array_equal(elementwise(named(name), [dtype], dtype, 1)(x), vector)


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_neighbours_of_a_huge_angle_keep_their_bits(name, elementwise):
    f = elementwise(named(name), [np.float32], np.float32, 16)
    x = np.linspace(-5, 5, 16).astype(np.float32)
    alone = f(x)
    x[3] = 1e30
    together = f(x)
    assert_within(1.5, together[3:4], getattr(np, name)(x[3:4].astype(np.float64)), x[3:4])
    np.testing.assert_array_equal(np.delete(together, 3), np.delete(alone, 3))


@pytest.mark.parametrize("name", ["exp", "tanh", "sin", "erf"])
def test_outlined_functions_give_the_same_bits(name, elementwise):
    x = arguments(np.float32, CASES[name], 500)
    outlined = elementwise(
        lambda module: getattr(Maths(module, inline=False), name), [np.float32], np.float32, 16
    )
    inlined = elementwise(named(name), [np.float32], np.float32, 16)
    np.testing.assert_array_equal(outlined(x), inlined(x))


def test_a_function_is_emitted_once_for_each_type():
    module = LlvmModule()
    m = Maths(module)
    x, y = module.function("f", F32, [("x", F32), ("y", F32.vector(8))]).args
    for value in (x, y, x, y):
        m.exp(m.log(value))
    assert sorted(module.functions) == ["df.exp.f32", "df.exp.v8f32", "df.log.f32", "df.log.v8f32", "f"]


# Exact functions


def floats(dtype: Float, seed: int) -> Array:
    whole = np.random.default_rng(seed).integers(-50, 50, 5000).astype(dtype)
    return np.concatenate([arguments(dtype, Case(np.exp, (0, 0), (-100, 100)), 5000, seed), whole])


@pytest.mark.parametrize("dtype", [np.float16, *KINDS], ids=lambda d: d.__name__)
@pytest.mark.parametrize("name", ["fmod", "mod", "floor_divide", "copysign", "equal", "not_equal"])
def test_exact_functions_of_two_floats_are_numpys(name, dtype, elementwise):
    x, y = floats(dtype, 7), floats(dtype, 8)
    np.random.default_rng(9).shuffle(y)
    with np.errstate(all="ignore"):
        expected = getattr(maths_reference, name)(x, y)
    same(elementwise(named(name), [dtype, dtype], expected.dtype, 8)(x, y), expected)


@pytest.mark.parametrize("dtype", [np.float16, *KINDS], ids=lambda d: d.__name__)
@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_larger_and_smaller_pass_nan_on(name, dtype, elementwise):
    x, y = floats(dtype, 7), floats(dtype, 8)
    # Of 0 and -0 either may be chosen: NumPy's loops for different dtypes differ too.
    got = elementwise(named(name), [dtype, dtype], dtype, 8)(x, y)
    np.testing.assert_array_equal(got, getattr(np, name)(x, y))


@pytest.mark.parametrize("dtype", [np.float16, *KINDS], ids=lambda d: d.__name__)
@pytest.mark.parametrize(
    "name", ["abs", "sign", "floor", "ceil", "trunc", "round", "isnan", "isinf", "isfinite"]
)
def test_exact_functions_of_a_float_are_numpys(name, dtype, elementwise):
    x = floats(dtype, 7)
    with np.errstate(all="ignore"):
        expected = getattr(maths_reference, name)(x)
    same(elementwise(named(name), [dtype], expected.dtype, 8)(x), expected)


INTEGERS = [np.dtype(c) for c in "bBhHiIqQ"]


def integers(dtype: np.dtype[Any], seed: int) -> Array:
    """Every bit pattern, small numbers, and the ends of the range."""
    random = np.random.default_rng(seed)
    patterns = random.integers(0, 256, 2000 * dtype.itemsize, np.uint8).view(dtype)
    ends = np.array([0, 1, 2, np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
    x = np.concatenate(
        [patterns, random.integers(0, 7, 2000).astype(dtype), np.repeat(ends, 50), ends - ends - 1]
    )
    random.shuffle(x)
    return x


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("name", ["mod", "floor_divide", "maximum", "minimum", "equal"])
def test_functions_of_integers_are_numpys(name, dtype, elementwise):
    x, y = integers(dtype, 1), integers(dtype, 2)
    with np.errstate(all="ignore"):
        expected = getattr(maths_reference, name)(x, y)
    for lanes in (1, 8):
        same(elementwise(named(name), [dtype, dtype], expected.dtype, lanes)(x, y), expected)


def test_division_of_the_smallest_integer_by_minus_one_wraps(elementwise):
    for dtype in (np.int32, np.int64):
        x, y = np.array([np.iinfo(dtype).min], dtype), np.array([-1], dtype)
        same(elementwise(named("floor_divide"), [dtype, dtype], dtype, 1)(x, y), x)
        same(elementwise(named("mod"), [dtype, dtype], dtype, 1)(x, y), x - x)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integer_powers_wrap_as_numpys(dtype, elementwise):
    x, y = integers(dtype, 1), np.abs(integers(dtype, 2) % 70)
    same(elementwise(named("pow"), [dtype, dtype], dtype, 8)(x, y), np.power(x, y))


# The namespace


def test_every_function_of_the_reference_namespace_can_be_emitted():
    reference = {
        name for name in vars(maths_reference) if name[0] != "_" and callable(getattr(maths_reference, name))
    }
    of_the_kernel = {"index", "check"}
    of_the_tracer = {"dtype"}  # a trace has read it
    imported = {"DType", "as_dtype", "is_narrow", "InternalError", "InvalidArgumentError", "Any", "NoReturn"}
    assert reference - of_the_kernel - of_the_tracer - imported <= set(dir(Maths))
    assert reference - imported <= set(dir(ScalarTracer))


def test_numbers_become_constants_of_the_other_operand(elementwise):
    def code(module):
        m = Maths(module)
        return lambda x: m.where(m.equal(x, 0), 1, m.pow(x, 2)) + m.maximum(0.5, x)

    x = np.linspace(-1, 1, 9)
    same(elementwise(code, [float], float, 8)(x), np.where(x == 0, 1, x**2) + np.maximum(0.5, x))


def test_float_functions_refuse_integers():
    module = LlvmModule()
    x = module.function("f", I32, [("x", I32)]).args[0]
    with pytest.raises(DTypeError, match="got i32: cast it to a float dtype"):
        Maths(module).exp(x)


def same(got: Array, expected: Array) -> None:
    """Equal, NaN and the sign of zero included."""
    np.testing.assert_array_equal(got, expected, strict=True)
    if got.dtype.kind == "f":
        np.testing.assert_array_equal(
            np.signbit(got) | np.isnan(got), np.signbit(expected) | np.isnan(expected)
        )
