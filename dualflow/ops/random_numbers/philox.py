"""Random words of the counter-based generator Philox 4x32-10, which depend on a counter and a key alone.

After Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011). The 128 bits of a counter and the
64 of a key give four words of 32 bits; the next group of four is that of the counter plus 1. TensorFlow's
stateless functions and generators draw the same words.
"""

from __future__ import annotations

import sys
from typing import Any, Final

import numpy as np

from dualflow.core.dtypes import uint32, uint64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Shape, check_size
from dualflow.core.spec import TensorSpec
from dualflow.ops.batching_rules import PER_ELEMENT
from dualflow.ops.op_kinds import Elementwise, OperandAttributes
from dualflow.ops.record import Op, register
from dualflow.ops.samples import Domain, Sample

Array = np.ndarray[Any, Any]
_ROUNDS: Final = 10
_FACTORS: Final = (0xD2511F53, 0xCD9E8D57)
_STEPS: Final = (0x9E3779B9, 0xBB67AE85)
_WORD: Final = 0xFFFFFFFF
_FULL: Final = 0xFFFFFFFFFFFFFFFF
_MAX_PYTHON_GROUPS: Final = 4
"""The number of groups up to which Python's integers compute them faster than NumPy's calls."""
_GROUP_BLOCK: Final = 4096
"""The number of groups computed at a time, whose words fit into a processor's caches."""


def _group(m: Any, index: Any, low: Any, high: Any, key: Any) -> tuple[Any, Any, Any, Any]:
    """The four words of the group at counter ``(low, high) + index``, each in a 64-bit integer."""
    word, half = m.cast(_WORD, uint64), m.cast(32, uint64)
    factors, steps = [[m.cast(x, uint64) for x in pair] for pair in (_FACTORS, _STEPS)]
    low, high, key = m.cast(low, uint64), m.cast(high, uint64), m.cast(key, uint64)
    counter_low = (low + index) & m.cast(_FULL, uint64)
    counter_high = high + m.cast(counter_low < index, uint64)
    a, b = counter_low & word, counter_low >> half
    c, d = counter_high & word, (counter_high >> half) & word
    key_low, key_high = key & word, key >> half
    for round_number in range(_ROUNDS):
        if round_number:
            key_low, key_high = (key_low + steps[0]) & word, (key_high + steps[1]) & word
        left, right = a * factors[0], c * factors[1]
        a, b, c, d = (right >> half) ^ b ^ key_low, right & word, (left >> half) ^ d ^ key_high, left & word
    return a, b, c, d


def _code(m: Any, low: Any, high: Any, key: Any, count: int) -> Any:
    index = m.cast(m.index(0), uint64)
    a, b, c, d = _group(m, index >> m.cast(2, uint64), low, high, key)
    which = index & m.cast(3, uint64)
    return m.cast(m.where(which < 2, m.where(which < 1, a, b), m.where(which < 3, c, d)), uint32)


def _long_code(m: Any, low: Any, high: Any, key: Any, count: int) -> Any:
    index, half = m.cast(m.index(0), uint64), m.cast(32, uint64)
    a, b, c, d = _group(m, index >> m.cast(1, uint64), low, high, key)
    first = m.cast(index & m.cast(1, uint64), uint64) < 1
    return m.where(first, a, c) | (m.where(first, b, d) << half)


class _Integers:
    """Python's integers as the maths namespace of :func:`_group`, wrapped to unsigned 64 bits."""

    @staticmethod
    def cast(x: int, dtype: Any) -> int:
        return x & _FULL


def few_words(low: int, high: int, key: int, groups: int) -> list[int]:
    """The words of ``groups`` consecutive groups, the first at the counter ``(low, high)``."""
    return [word for index in range(groups) for word in _group(_Integers, index, low, high, key)]


def words_at(indices: Array, low: Any, high: Any, key: Any) -> Array:
    """The words, ``[groups, 4]``, of the groups whose counters are ``(low, high) + indices``, in NumPy.

    Args:
        indices: uint64.
    """
    low, high, key = (np.asarray(x).astype(np.uint64) for x in (low, high, key))
    out = np.empty((len(indices), 4), np.uint32)
    keys = _ROUND_KEYS + key.reshape(1).view(np.uint32)[_PARTS].reshape(2, 1)
    for start in range(0, len(indices), _GROUP_BLOCK):
        block = slice(start, start + _GROUP_BLOCK)
        counters = np.empty((len(indices[block]), 2), np.uint64)
        np.add(indices[block], low, out=counters[:, 0])
        np.add(high, counters[:, 0] < low, out=counters[:, 1], dtype=np.uint64, casting="unsafe")
        words = counters.view(np.uint32).reshape(-1, 2, 2)[..., _PARTS].transpose(2, 1, 0)
        even_words, odd_words = np.ascontiguousarray(words)
        for round_key in keys:
            products = np.multiply(even_words, _MULTIPLIERS).view(np.uint32).reshape(2, -1, 2)[::-1]
            even_words = products[..., _PARTS[1]] ^ odd_words
            even_words ^= round_key
            odd_words = products[..., _PARTS[0]]
        out[block, ::2], out[block, 1::2] = even_words.T, odd_words.T
    return out


_PARTS: Final = [0, 1] if sys.byteorder == "little" else [1, 0]
"""The positions of the low and the high word of 64 bits."""
_MULTIPLIERS: Final = np.array(_FACTORS, np.uint64).reshape(2, 1)
_ROUND_KEYS: Final = (
    np.arange(_ROUNDS, dtype=np.uint64).reshape(-1, 1, 1) * np.array(_STEPS, np.uint64).reshape(2, 1)
).astype(np.uint32)
"""The constants that each round adds to the two words of the key."""


def _kernel(low: Any, high: Any, key: Any, count: int) -> Any:
    if any(x.dtype.kind not in "iu" for x in (low, high, key)):
        raise TypeError("philox takes integers")
    groups = -(-count // 4)
    if groups <= _MAX_PYTHON_GROUPS:
        return np.array(few_words(int(low), int(high), int(key), groups)[:count], np.uint32)
    return words_at(np.arange(groups, dtype=np.uint64), low, high, key).reshape(-1)[:count]


def _long_kernel(low: Any, high: Any, key: Any, count: int) -> Any:
    words = _kernel(low, high, key, 2 * count).astype(np.uint64)
    return words[::2] | words[1::2] << np.uint64(32)


def check_state(low: TensorSpec, high: TensorSpec, key: TensorSpec) -> None:
    """Raise an error for a counter or key that is not one integer."""
    for part in (low, high, key):
        if not part.dtype.is_integer:
            raise DTypeError(f"takes a counter and a key of integers, not {part.dtype.name}; use df.cast.")
        if part.shape:
            raise InvalidArgumentError(f"takes a counter and a key of one number each, not of {part.shape}.")


def _infer(low: TensorSpec, high: TensorSpec, key: TensorSpec, count: int) -> TensorSpec:
    check_state(low, high, key)
    check_size([count])
    return TensorSpec.of(Shape([count]), uint32)


def state_sample(low: int, high: int, key: int) -> tuple[Domain, ...]:
    """A counter and a key as the inputs of a sample."""
    return tuple(Domain(kinds="i", shape=(), values=value) for value in (low, high, key))


PHILOX: Final = register(
    Op(
        name="philox",
        doc="""Words of 32 random bits, determined by a counter's two halves and a key.""",
        infer=_infer,
        kernel=_kernel,
        kind=Elementwise(_code, cost=90),
        batching_rule=PER_ELEMENT,
        operand_attributes=OperandAttributes(sizes=("count",)),
        samples=(
            Sample(state_sample(7, 0, 1 << 30), {"count": 6}),
            Sample(state_sample(-2, 3, -1), {"count": 21}),
            Sample(state_sample(0, 0, 0), {"count": 0}),
        ),
    )
)


def _long_infer(low: TensorSpec, high: TensorSpec, key: TensorSpec, count: int) -> TensorSpec:
    check_state(low, high, key)
    check_size([count])
    return TensorSpec.of(Shape([count]), uint64)


LONG_PHILOX: Final = register(
    Op(
        name="long_philox",
        doc="""The words of "philox" as numbers of 64 bits, two in each, the low one first.""",
        infer=_long_infer,
        kernel=_long_kernel,
        kind=Elementwise(_long_code, cost=90),
        batching_rule=PER_ELEMENT,
        operand_attributes=OperandAttributes(sizes=("count",)),
        samples=(
            Sample(state_sample(7, 0, 1 << 30), {"count": 3}),
            Sample(state_sample(-2, 3, -1), {"count": 21}),
            Sample(state_sample(0, 0, 0), {"count": 0}),
        ),
    )
)
