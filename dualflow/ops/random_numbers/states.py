"""States of draws: a counter and a key, derived from the seeds of stateless functions."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from dualflow.core.dtypes import int64, uint64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.records import NamedTuple
from dualflow.ops.arrangement import reshape
from dualflow.ops.bitwise import bitwise_or, left_shift
from dualflow.ops.conversion import cast
from dualflow.ops.creation import constant, convert_to_tensor
from dualflow.ops.operand_attributes import apply_sized
from dualflow.ops.random_numbers.philox import LONG_PHILOX, PHILOX, few_words
from dualflow.ops.shapes import with_shape
from dualflow.ops.static import static_value

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor

_SCRAMBLER: Final = 0x02461E293EC8F720
"""The key that makes counters and keys of seeds, as TensorFlow's stateless functions do."""


class Algorithm(Enum):
    """The algorithm of random words: there is one, Philox, which ``AUTO_SELECT`` selects.

    >>> import dualflow as df
    >>> df.random.Algorithm.PHILOX.value
    1
    """

    PHILOX = 1
    THREEFRY = 2
    AUTO_SELECT = 3


AlgorithmLike: TypeAlias = "Algorithm | int | str"
"""An algorithm, its number or its name."""


class DrawState(NamedTuple):
    """The state from which numbers are drawn: the two halves of a counter, and a key, integers of 64 bits."""

    low: Any
    high: Any
    key: Any


def check_algorithm(alg: AlgorithmLike) -> int:
    """The number of the algorithm that ``alg`` names: that of Philox.

    Raises:
        InvalidArgumentError: an algorithm that is not here.
    """
    if isinstance(alg, str):
        plain = alg.strip().upper().replace("-", "").replace("_", "")
        named = [a for a in Algorithm if a.name.replace("_", "") == plain]
    else:
        named = [a for a in Algorithm if alg in (a, a.value)]
    if not named or named[0] is Algorithm.THREEFRY:
        raise InvalidArgumentError(
            f"There is no algorithm {alg!r} of random numbers here; use 'philox' or 'auto_select'."
        )
    return Algorithm.PHILOX.value


def state_of(seed: Any, alg: AlgorithmLike = "auto_select") -> DrawState:
    """The state for a seed of two integers, which may be symbolic.

    Raises:
        InvalidArgumentError: not two numbers, or an algorithm that is not here.
        DTypeError: an input does not hold integers.
    """
    check_algorithm(alg)
    static = static_value(seed)
    if static is None:
        return _scrambled(convert_to_tensor(seed))
    _check_seed(static.shape, static.dtype.kind in "iu", seed)
    low, high = static.tolist()
    a, b, c, d = few_words(low, high, _SCRAMBLER, 1)
    return DrawState(*[constant(word, uint64) for word in (0, c | d << 32, a | b << 32)])


def _check_seed(shape: tuple[int | None, ...], integers: bool, seed: Any) -> None:
    if tuple(shape) != (2,):
        raise InvalidArgumentError(f"A seed is two integers, of shape [2], not {seed!r}.")
    if not integers:
        raise DTypeError(f"A seed is two integers, not {seed!r}; convert it with df.cast.")


def _scrambled(seed: Any) -> DrawState:
    if tuple(seed.shape) == (None,):
        seed = with_shape(seed, [2])
    _check_seed(seed.shape, seed.dtype.is_integer, seed)
    words = cast(words_from(DrawState(seed[0], seed[1], constant(_SCRAMBLER, int64)), 4), uint64)
    pairs = joined(reshape(words, [2, 2]))
    return DrawState(constant(0, uint64), pairs[1], pairs[0])


def words_from(state: DrawState, count: Any) -> Tensor:
    """``count`` words of 32 random bits; ``count`` is an int or symbolic."""
    words: Tensor = apply_sized(PHILOX, state, {"count": count})
    return words


def joined(pairs: Any) -> Tensor:
    """64-bit numbers from pairs of words along the last axis, the low word first."""
    return bitwise_or(pairs[..., 0], left_shift(pairs[..., 1], constant(32, uint64)))


def long_words_from(state: DrawState, count: Any) -> Tensor:
    """``count`` numbers of 64 random bits; ``count`` is an int or symbolic."""
    words: Tensor = apply_sized(LONG_PHILOX, state, {"count": count})
    return words
