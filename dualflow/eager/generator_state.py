"""The state of a random number generator: a counter of two numbers and a key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dualflow.core.dtypes import int64, uint64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.ops.arrangement import reshape
from dualflow.ops.conversion import cast
from dualflow.ops.creation import constant, convert_to_tensor
from dualflow.ops.joining import concat, stack, unstack
from dualflow.ops.random_numbers.states import check_algorithm
from dualflow.ops.static import static_value

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.random_numbers.states import AlgorithmLike
    from dualflow.ops.tensor import Tensor

SIZE: Final = 3
"""The number of integers in a state."""
_RESERVED: Final = 256
"""The number of counters reserved for each drawn number, as in TensorFlow."""


@entry
def create_rng_state(seed: TensorLike, alg: AlgorithmLike = "philox") -> Tensor:
    """The generator state for a seed: an int64 tensor of shape [3], a counter of two numbers and a key.

    An integer is split into 64-bit words, which fill the state from its first number on. Of several integers,
    at most three, the last one is the key.

    Raises:
        DTypeError: ``seed`` is not integer.
        InvalidArgumentError: the algorithm is not supported.

    >>> import dualflow as df
    >>> df.random.create_rng_state([12, 34], "philox").numpy()
    array([ 0, 12, 34])
    """
    check_algorithm(alg)
    if isinstance(seed, int):
        parts = [(seed >> 64 * i) & 0xFFFFFFFFFFFFFFFF for i in range(SIZE)]
        return cast(constant(parts, uint64), int64)
    array = static_value(seed)
    if array is not None and array.dtype.kind not in "iu":
        raise DTypeError(f"A seed must be one or more integers, not {seed!r}.")
    seed_values = reshape(cast(convert_to_tensor(seed), int64), [-1])[:SIZE]
    padded = concat([constant([0] * SIZE, int64), seed_values], 0)
    return reshape(padded[-SIZE:], [SIZE])


def advanced(state: Any, delta: Any, back: bool) -> Any:
    """The state ``delta`` draws later, or earlier; the counter's first number carries into the second."""
    low, step = cast(state[0], uint64), cast(delta, uint64) * constant(_RESERVED, uint64)
    if back:
        return stack([cast(low - step, int64), state[1] - cast(low < step, int64), state[2]])
    return stack([cast(low + step, int64), state[1] + cast(low + step < low, int64), state[2]])


def as_state(state: Any) -> Any:
    value = cast(convert_to_tensor(state), int64)
    check_state(value)
    return value


def check_state(state: Any) -> None:
    if tuple(state.shape) != (SIZE,) or state.dtype is not int64:
        raise InvalidArgumentError(
            f"A generator's state must be three int64 numbers, a counter of two and a key, not of shape "
            f"{state.shape} and dtype {state.dtype.name}; Generator.from_seed takes other integers."
        )


def state_from_parts(key: Any, counter: Any) -> Any:
    low, high = unstack(cast(convert_to_tensor(counter), int64), 2)
    return stack([low, high, cast(key, int64)])
