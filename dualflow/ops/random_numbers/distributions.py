"""Uniform and normal numbers from random words, the same as TensorFlow's for the same state.

Uniform numbers are equal to the bit; normal numbers within the rounding of ``log``, ``sin`` and ``cos``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import DType, as_dtype, float32, float64, uint32, uint64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import check_size
from dualflow.ops.arithmetic import maximum, mod, multiply
from dualflow.ops.arrangement import reshape
from dualflow.ops.bitwise import bitwise_and, bitwise_xor, right_shift
from dualflow.ops.checks import required, required_size
from dualflow.ops.comparison import less
from dualflow.ops.conversion import cast
from dualflow.ops.creation import constant, convert_to_tensor
from dualflow.ops.joining import stack
from dualflow.ops.powers import log, sqrt
from dualflow.ops.random_numbers.states import DrawState, long_words_from, words_from
from dualflow.ops.static import ints_or_symbolic, partial_shape, static_shape, static_value
from dualflow.ops.trigonometric import cos, sin

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor

_MANTISSAS: Final = {"float16": 10, "bfloat16": 7, "float32": 23}
"""The bits of a word that make a uniform number of this dtype."""
_HALF: Final = np.uint64(32)
_MIN_UNIFORM: Final = 1e-7
"""The lower bound of the uniform numbers whose logarithm the Box-Muller transform takes."""


def floating(dtype: Any) -> DType:
    """``dtype`` as a DType, checked to be a float that random numbers can have.

    Raises:
        DTypeError: another one.
    """
    float_dtype = as_dtype(dtype)
    if float_dtype is not float64 and float_dtype.name not in _MANTISSAS:
        raise DTypeError(
            f"such random numbers are floats, not {float_dtype.name}; df.random.uniform draws integers."
        )
    return float_dtype


def _fractions(words: Any, dtype: DType) -> Any:
    """Words as uniform numbers in [0, 1): of float64, pairs of words along the last axis."""
    if dtype is float64:
        upper = cast(bitwise_and(words[..., 0], constant(0xFFFFF, uint32)), float64)
        return upper * 2.0**-20 + cast(words[..., 1], float64) * 2.0**-52
    bits = _MANTISSAS[dtype.name]
    part = cast(bitwise_and(words, constant((1 << bits) - 1, uint32)), float32) * 2.0**-bits
    return part if dtype is float32 else cast(part, dtype)


def _counted(shape: Any) -> tuple[Any, Any]:
    """A shape, and the number of its elements: ints, or symbolic sizes."""
    if None not in partial_shape(shape):
        sizes = static_shape(shape)
        return sizes, math.prod(sizes)
    entries = ints_or_symbolic(shape, "shape")
    check_size(entries)
    checked = [d if type(d) is int else required_size(d) for d in entries]
    return checked, functools.reduce(multiply, checked)


def fractions(state: DrawState, shape: Any, dtype: DType) -> Tensor:
    """Uniform numbers in [0, 1)."""
    sizes, count = _counted(shape)
    if isinstance(count, int):
        numbers = dispatch.current().generated(_fraction_row, state, count, {"dtype": dtype})
    elif dtype is float64:
        numbers = _fractions(reshape(words_from(state, 2 * count), [count, 2]), dtype)
    else:
        numbers = _fractions(words_from(state, count), dtype)
    return reshape(numbers, sizes)


def _fraction_row(low: Any, high: Any, key: Any, count: int, dtype: DType) -> Any:
    state = DrawState(low, high, key)
    if dtype is not float64:
        return _fractions(words_from(state, count), dtype)
    return _long_fractions(long_words_from(state, count))


def _long_fractions(words: Any) -> Any:
    """Words of 64 bits as uniform numbers of float64 in [0, 1)."""
    upper = cast(bitwise_and(words, constant(0xFFFFF, uint64)), float64)
    return upper * 2.0**-20 + cast(right_shift(words, _HALF), float64) * 2.0**-52


def normals(state: DrawState, shape: Any, dtype: DType) -> Tensor:
    """Normal numbers of mean 0 and variance 1, by the transform of Box and Muller (1958)."""
    sizes, count = _counted(shape)
    pairs = (count + 1) // 2
    inner = float64 if dtype is float64 else float32
    width = [2, 2] if dtype is float64 else [2]
    drawn = _fractions(reshape(words_from(state, pairs * math.prod(width)), [pairs, *width]), inner)
    radius = sqrt(-2.0 * log(maximum(drawn[:, 0], _MIN_UNIFORM)))
    angle = cast(cast(drawn[:, 1], float64) * (2.0 * math.pi), inner)
    numbers = reshape(stack([sin(angle) * radius, cos(angle) * radius], axis=1), [2 * pairs])
    even = isinstance(count, int) and count == 2 * pairs
    return cast(reshape(numbers if even else numbers[:count], sizes), dtype)


def tailed_normals(state: DrawState, shape: Sequence[int], dtype: DType) -> Tensor:
    """Normal numbers of mean 0 and variance 1 as far as 6.7 in float32, and 9.4 in float64.

    By the same transform, of 64 bits for each number of float32 and 128 for one of float64: every number is
    computed by itself. TensorFlow's, :func:`normals`, reach 5.7.
    """
    inner = float64 if dtype is float64 else float32
    numbers = dispatch.current().generated(_normal_row, state, math.prod(shape), {"dtype": inner})
    return cast(reshape(numbers, shape), dtype)


def _normal_row(low: Any, high: Any, key: Any, count: int, dtype: DType) -> Any:
    words = long_words_from(DrawState(low, high, key), count)
    if dtype is float64:
        far = bitwise_xor(cast(low, uint64), constant(1 << 63, uint64))  # no counter comes twice
        turn = _long_fractions(long_words_from(DrawState(far, high, key), count))
        low_words = cast(bitwise_and(words, constant(0xFFFFFFFF, uint64)), float64)
        probability = cast(right_shift(words, _HALF), float64) * 2.0**-32 + (low_words + 0.5) * 2.0**-64
    else:
        turn = cast(right_shift(words, _HALF), float64) * 2.0**-32
        probability = (cast(cast(words, uint32), float32) + 0.5) * 2.0**-32
    return sqrt(-2.0 * log(probability)) * cos(cast(turn * (2.0 * math.pi), dtype))


def full_integers(state: DrawState, shape: Any, dtype: DType) -> Tensor:
    """Uniformly distributed integers from the whole range of their dtype."""
    return cast(_integers(state, shape, dtype), dtype)


def _integers(state: DrawState, shape: Any, dtype: DType) -> Any:
    sizes, count = _counted(shape)
    draw = long_words_from if dtype.size == 8 else words_from
    return reshape(draw(state, count), sizes)


def integers_between(state: DrawState, shape: Any, low: Tensor, high: Tensor) -> Tensor:
    """Nearly uniformly distributed integers in [low, high): remainders of random bits."""
    wide = uint64 if low.dtype.size == 8 else uint32
    if static_value(low) is None or static_value(high) is None:
        high = required(high, less(low, high), "uniform takes minval < maxval, and the run has others.")
    count = cast(high, wide) - cast(low, wide)
    drawn = mod(_integers(state, shape, low.dtype), count)
    return cast(drawn + cast(low, wide), low.dtype)


def check_ends(low: Tensor, high: Tensor) -> None:
    """Raise an error for bounds that are not scalars, or are known to bound an empty interval."""
    if low.shape or high.shape:
        raise InvalidArgumentError(
            f"the ends of random integers are one number each, not of shapes {low.shape} and {high.shape}."
        )
    ends = static_value(low), static_value(high)
    if ends[0] is not None and ends[1] is not None and ends[0] >= ends[1]:
        raise InvalidArgumentError(f"uniform takes minval < maxval, not {ends[0]} and {ends[1]}.")


def uniform(begin: Callable[[], DrawState], shape: Any, minval: Any, maxval: Any, dtype: Any) -> Tensor:
    """Uniform numbers of any dtype; integers without bounds cover the whole range of the dtype.

    ``begin`` makes the state, once it is sure that the dtype and the ends fit together.

    Raises:
        InvalidArgumentError: one end of integers, or an empty range.
        DTypeError: neither a float nor an integer dtype.
    """
    kind = as_dtype(dtype)
    if kind.is_integer:
        if (minval is None) != (maxval is None):
            raise InvalidArgumentError(
                f"uniform of {kind.name} needs maxval, or minval=None too for the whole range of integers; "
                f"not minval={minval} and maxval={maxval}."
            )
        if minval is None:
            return full_integers(begin(), shape, kind)
        ends = convert_to_tensor(minval, kind), convert_to_tensor(maxval, kind)
        check_ends(*ends)
        return integers_between(begin(), shape, *ends)
    floating(kind)
    numbers = fractions(begin(), shape, kind)
    if _is(minval, 0.0) and (maxval is None or _is(maxval, 1.0)):
        return numbers
    low = convert_to_tensor(0 if minval is None else minval, kind)
    return numbers * (convert_to_tensor(1 if maxval is None else maxval, kind) - low) + low


def _is(value: Any, number: float) -> bool:
    return type(value) in (int, float) and value == number


def placed(x: Any, mean: Any, stddev: Any) -> Tensor:
    """Standard numbers with another mean and deviation."""
    x = x if _is(stddev, 1.0) else multiply(x, convert_to_tensor(stddev, x.dtype))
    return x if _is(mean, 0.0) else x + convert_to_tensor(mean, x.dtype)
