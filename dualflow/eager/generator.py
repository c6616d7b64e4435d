"""Generators of random numbers, whose state (a counter and a key) is a variable."""

from __future__ import annotations

import secrets
import threading
from typing import TYPE_CHECKING, Any, Final

from dualflow.core import dispatch
from dualflow.core.dtypes import as_dtype, float32, int32, int64, uint64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Shape, check_size
from dualflow.core.tracebacks import entry
from dualflow.eager.engine import EAGER
from dualflow.eager.variable import Variable
from dualflow.ops.arrangement import reshape
from dualflow.ops.conversion import cast
from dualflow.ops.creation import constant, convert_to_tensor, zeros_like
from dualflow.ops.joining import concat, stack, unstack
from dualflow.ops.random_numbers.distributions import floating, normals, placed, uniform
from dualflow.ops.random_numbers.rejection import binomials, truncated_normals
from dualflow.ops.random_numbers.states import DrawState, check_algorithm
from dualflow.ops.random_numbers.streams import STREAMS
from dualflow.ops.reduction import reduce_prod
from dualflow.ops.static import known_value, open_shape

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor

_SIZE: Final = 3
_RESERVED: Final = 256
"""The number of counters reserved for each drawn number, as in TensorFlow."""


@entry
def create_rng_state(seed: Any, alg: Any = "philox") -> Tensor:
    """The generator state for a seed: an int64 tensor of shape [3], a counter of two numbers and a key.

    An integer fills it from the front, 64 bits each; of several integers, at most three, the last one is the
    key.

    Raises:
        DTypeError: ``seed`` is not integer.
        InvalidArgumentError: the algorithm is not supported.

    >>> import dualflow as df
    >>> df.random.create_rng_state([12, 34], "philox").numpy()
    array([ 0, 12, 34])
    """
    check_algorithm(alg)
    if isinstance(seed, int):
        parts = [(seed >> 64 * i) & 0xFFFFFFFFFFFFFFFF for i in range(_SIZE)]
        return cast(constant(parts, uint64), int64)
    static_value = known_value(seed)
    if static_value is not None and static_value.dtype.kind not in "iu":
        raise DTypeError(f"A seed must be one or more integers, not {seed!r}.")
    seed_values = reshape(cast(convert_to_tensor(seed), int64), [-1])[:_SIZE]
    padded = concat([constant([0] * _SIZE, int64), seed_values], 0)
    return reshape(padded[-_SIZE:], [_SIZE])


@entry
class Generator:
    """A stream of random numbers whose state is a variable; compiled functions draw in machine code.

    Equal states give equal numbers, as from TensorFlow's generators: bitwise for uniform numbers and
    integers, up to rounding of ``log``, ``sin`` and ``cos`` for normal ones. Binomial numbers differ from
    TensorFlow's.

    Args:
        copy_from: a generator whose state is copied.
        state: the initial state, instead: three integers, a counter of two and a key; a variable is used
            itself.
        alg: "philox", the only algorithm.

    >>> import dualflow as df
    >>> g, h = df.random.Generator.from_seed(3), df.random.Generator.from_seed(3)
    >>> bool(df.reduce_all(g.normal([5]) == h.normal([5])))
    True
    """

    @entry
    def __init__(self, copy_from: Generator | None = None, state: Any = None, alg: Any = None) -> None:
        if (copy_from is None) == (state is None):
            raise InvalidArgumentError(
                "A generator needs exactly one of copy_from and state; or use Generator.from_seed."
            )
        self._algorithm = check_algorithm("philox" if alg is None else alg)
        if isinstance(state, Variable):
            _check_state(state)
            self._state = state
        else:
            start = copy_from.state if copy_from is not None else state
            self._state = Variable(_as_state(start), trainable=False, name="StateVar")

    @classmethod
    @entry
    def from_state(cls, state: Any, alg: Any = "philox") -> Generator:
        """A generator with the initial state ``state``, as of :attr:`state`."""
        return cls(state=state, alg=alg)

    @classmethod
    @entry
    def from_seed(cls, seed: Any, alg: Any = None) -> Generator:
        """A generator seeded with one or more integers; see :func:`create_rng_state`."""
        return cls(state=create_rng_state(seed), alg=alg)

    @classmethod
    @entry
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        """A generator seeded by the operating system."""
        return cls(state=create_rng_state(secrets.randbits(64 * _SIZE)), alg=alg)

    @classmethod
    @entry
    def from_key_counter(cls, key: Any, counter: Any, alg: Any = "philox") -> Generator:
        """A generator with a key and a counter of two integers."""
        return cls(state=_from_parts(key, counter), alg=alg)

    @property
    def state(self) -> Variable:
        """The counter's two numbers and the key, a variable of shape [3] and dtype int64."""
        return self._state

    def _trackable_children(self) -> dict[str, Variable]:
        """The state, for checkpoints."""
        return {"_state_var": self._state}

    @property
    def key(self) -> Tensor:
        """The key, the state's last number: streams of different keys are independent."""
        return self._state[-1]

    @property
    def algorithm(self) -> int:
        """The number of the algorithm: that of :attr:`dualflow.random.Algorithm.PHILOX`."""
        return self._algorithm

    def reset(self, state: Any) -> None:
        """Set the state."""
        self._state.assign(_as_state(state))

    def reset_from_seed(self, seed: Any) -> None:
        """Set the state to that of a seed."""
        self._state.assign(create_rng_state(seed))

    def reset_from_key_counter(self, key: Any, counter: Any) -> None:
        """Set the key, and the counter of two integers."""
        self._state.assign(_from_parts(key, counter))

    def skip(self, delta: Any) -> Tensor:
        """Advance the state as if ``delta`` numbers were drawn, and return the previous state."""
        before: Any = None

        def advanced(state: Any) -> Any:
            nonlocal before
            before = state
            return _moved(state, delta, back=False)

        with dispatch.using(dispatch.current().unrecorded) as engine:
            done = engine.change(self._state, advanced)
        if done is not None:  # in an explicit graph, the fetched tensor must depend on the change
            before = _moved(done, delta, back=True)
        return before  # type: ignore[no-any-return]  # the rule has run

    def _next(self, shape: Any) -> DrawState:
        """The state to draw numbers of ``shape`` from."""
        static_shape = Shape(open_shape(shape))
        check_size(static_shape)
        count = (
            static_shape.num_elements() if static_shape.is_static else reduce_prod(convert_to_tensor(shape))
        )
        low, high, key = unstack(self.skip(count))
        return DrawState(low, high, key)

    def normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = float32, name: str | None = None
    ) -> Tensor:
        """Normal numbers; see :func:`dualflow.random.normal`."""
        kind = floating(dtype)
        return placed(normals(self._next(shape), shape, kind), mean, stddev)

    def truncated_normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = float32, name: str | None = None
    ) -> Tensor:
        """Normal numbers within two standard deviations; see :func:`dualflow.random.truncated_normal`."""
        kind = floating(dtype)
        return placed(truncated_normals(self._next(shape), shape, kind), mean, stddev)

    def uniform(
        self, shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = float32, name: str | None = None
    ) -> Tensor:
        """Uniform numbers in ``[minval, maxval)``; see :func:`dualflow.random.stateless_uniform`."""
        return uniform(lambda: self._next(shape), shape, minval, maxval, dtype)

    def uniform_full_int(self, shape: Any, dtype: Any = uint64, name: str | None = None) -> Tensor:
        """Uniform integers from the whole range of ``dtype``."""
        return self.uniform(shape, None, None, dtype)

    def binomial(
        self, shape: Any, counts: Any, probs: Any, dtype: Any = int32, name: str | None = None
    ) -> Tensor:
        """Binomial numbers of ``counts`` trials and probability ``probs``, which broadcast to ``shape``."""
        return binomials(self._next(shape), shape, counts, probs, as_dtype(dtype))

    def make_seeds(self, count: Any = 1) -> Tensor:
        """Seeds for the stateless functions, of shape [2, count]: one per column."""
        keys = self.uniform_full_int([count], int64)
        return stack([keys, zeros_like(keys)])

    def split(self, count: int = 1) -> list[Generator]:
        """``count`` new generators, with streams independent of each other and of this one."""
        keys = unstack(self.uniform_full_int([count], int64))
        return [Generator(state=stack([0 * key, 0 * key, key]), alg="philox") for key in keys]


def _moved(state: Any, delta: Any, back: bool) -> Any:
    """The state ``delta`` draws later, or earlier; the counter's first number carries into the second."""
    low, step = cast(state[0], uint64), cast(delta, uint64) * constant(_RESERVED, uint64)
    if back:
        return stack([cast(low - step, int64), state[1] - cast(low < step, int64), state[2]])
    return stack([cast(low + step, int64), state[1] + cast(low + step < low, int64), state[2]])


def _as_state(state: Any) -> Any:
    value = cast(convert_to_tensor(state), int64)
    _check_state(value)
    return value


def _check_state(state: Any) -> None:
    if tuple(state.shape) != (_SIZE,) or state.dtype is not int64:
        raise InvalidArgumentError(
            f"A generator's state must be three int64 numbers, a counter of two and a key, not of shape "
            f"{state.shape} and dtype {state.dtype.name}; Generator.from_seed takes other integers."
        )


def _from_parts(key: Any, counter: Any) -> Any:
    low, high = unstack(cast(convert_to_tensor(counter), int64), 2)
    return stack([low, high, cast(key, int64)])


class _Global:
    """The global generator, and whether it was created here, so that :func:`set_seed` resets it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.generator: Generator | None = None
        self.own = True


_global: Final = _Global()


@entry
def get_global_generator() -> Generator:
    """The global generator; :func:`set_seed` resets it."""
    with _global.lock:
        if _global.generator is None:
            with dispatch.using(EAGER):
                seed = STREAMS.seed
                generator = (
                    Generator.from_non_deterministic_state() if seed is None else Generator.from_seed(seed)
                )
            _global.generator = generator
        return _global.generator


@entry
def set_global_generator(generator: Generator) -> None:
    """Replace the global generator; :func:`set_seed` doesn't reset the new one."""
    with _global.lock:
        _global.generator, _global.own = generator, False


@entry
def set_seed(seed: int | None) -> None:
    """Reset all random streams of ``df.random`` to those of ``seed``.

    In the block of an explicit graph it sets the graph's seed, for ops that are added later. None removes the
    seed: the operating system seeds the stream of ops without a ``seed=``.

    Eager calls with the same ``seed=`` share a stream. In a compiled function each op with a ``seed=`` has
    its own stream, which begins with the number of the first eager call and continues from call to call; a
    new trace, and a call in another traced function, restarts it. Ops without a ``seed=`` draw from the
    shared stream, both eagerly and compiled.

    >>> import dualflow as df
    >>> df.random.set_seed(7)
    >>> a = df.random.normal([3])
    >>> df.random.set_seed(7)
    >>> bool(df.reduce_all(a == df.random.normal([3])))
    True
    >>> same = df.function(lambda: [df.random.uniform([3], seed=1) for _ in range(2)])
    >>> bool(df.reduce_all(same()[0] == df.random.uniform([3], seed=1)))
    True
    """
    if dispatch.current().innermost.set_own_seed(seed):
        return
    STREAMS.reset(seed)
    if seed is None:
        return
    with _global.lock:
        if _global.generator is not None and _global.own:
            with dispatch.using(EAGER):
                _global.generator.reset_from_seed(seed)
