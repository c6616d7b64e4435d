"""Generators: random numbers whose counter and key are a variable, which drawing advances."""

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
"""So many counters are set aside for each number that is drawn, as in TensorFlow."""


@entry
def create_rng_state(seed: Any, alg: Any = "philox") -> Tensor:
    """The state of a generator that an integer, or several, name: of shape [3], two of a counter and a key.

    An integer fills it from the front, 64 bits each; of several, at most three, the last one is the key.

    Raises:
        DTypeError: a seed that is not of integers.
        InvalidArgumentError: an algorithm that is not here.

    >>> import dualflow as df
    >>> df.random.create_rng_state([12, 34], "philox").numpy()
    array([ 0, 12, 34])
    """
    check_algorithm(alg)
    if isinstance(seed, int):
        parts = [(seed >> 64 * i) & 0xFFFFFFFFFFFFFFFF for i in range(_SIZE)]
        return cast(constant(parts, uint64), int64)
    known = known_value(seed)
    if known is not None and known.dtype.kind not in "iu":
        raise DTypeError(f"A seed is an integer or several, not {seed!r}.")
    given = reshape(cast(convert_to_tensor(seed), int64), [-1])[:_SIZE]
    padded = concat([constant([0] * _SIZE, int64), given], 0)
    return reshape(padded[-_SIZE:], [_SIZE])


@entry
class Generator:
    """A stream of random numbers whose state is a variable; in compiled functions, drawing is machine code.

    Equal states give equal numbers: those that TensorFlow's generators draw, to the bit where they are
    uniform or integers, and within the rounding of ``log``, ``sin`` and ``cos`` where they are normal.
    Binomial numbers are others.

    Args:
        copy_from: a generator to begin at the state of.
        state: or three integers, a counter of two and a key; a variable is used as it is.
        alg: "philox", the one algorithm.

    >>> import dualflow as df
    >>> g, h = df.random.Generator.from_seed(3), df.random.Generator.from_seed(3)
    >>> bool(df.reduce_all(g.normal([5]) == h.normal([5])))
    True
    """

    @entry
    def __init__(self, copy_from: Generator | None = None, state: Any = None, alg: Any = None) -> None:
        if (copy_from is None) == (state is None):
            raise InvalidArgumentError(
                "A generator begins at a state or copies another one: give copy_from or state, or use "
                "Generator.from_seed."
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
        """The generator that begins at ``state``, as :attr:`state` shows it."""
        return cls(state=state, alg=alg)

    @classmethod
    @entry
    def from_seed(cls, seed: Any, alg: Any = None) -> Generator:
        """The generator of an integer, or of several; see :func:`create_rng_state`."""
        return cls(state=create_rng_state(seed), alg=alg)

    @classmethod
    @entry
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        """A generator that the operating system seeds."""
        return cls(state=create_rng_state(secrets.randbits(64 * _SIZE)), alg=alg)

    @classmethod
    @entry
    def from_key_counter(cls, key: Any, counter: Any, alg: Any = "philox") -> Generator:
        """The generator of a key and of a counter of two integers."""
        return cls(state=_from_parts(key, counter), alg=alg)

    @property
    def state(self) -> Variable:
        """The counter's two numbers and the key, a variable of shape [3] and dtype int64."""
        return self._state

    def _trackable_children(self) -> dict[str, Variable]:
        """What a checkpoint finds in the generator."""
        return {"_state_var": self._state}

    @property
    def key(self) -> Tensor:
        """The key, the state's last number: streams of different keys have nothing in common."""
        return self._state[-1]

    @property
    def algorithm(self) -> int:
        """The number of the algorithm: that of :attr:`dualflow.random.Algorithm.PHILOX`."""
        return self._algorithm

    def reset(self, state: Any) -> None:
        """Go on at another state."""
        self._state.assign(_as_state(state))

    def reset_from_seed(self, seed: Any) -> None:
        """Begin the stream of another seed."""
        self._state.assign(create_rng_state(seed))

    def reset_from_key_counter(self, key: Any, counter: Any) -> None:
        """Go on at another key and a counter of two integers."""
        self._state.assign(_from_parts(key, counter))

    def skip(self, delta: Any) -> Tensor:
        """Advance the state as drawing ``delta`` numbers does, and return the state before."""
        before: Any = None

        def advanced(state: Any) -> Any:
            nonlocal before
            before = state
            return _moved(state, delta, back=False)

        with dispatch.using(dispatch.current().unrecorded) as engine:
            done = engine.change(self._state, advanced)
        if done is not None:  # in an explicit graph, what is fetched must need the change
            before = _moved(done, delta, back=True)
        return before  # type: ignore[no-any-return]  # the rule has run

    def _next(self, shape: Any) -> DrawState:
        """The state that numbers of ``shape`` are drawn at."""
        known = Shape(open_shape(shape))
        check_size(known)
        count = known.num_elements() if known.is_static else reduce_prod(convert_to_tensor(shape))
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
        """Numbers of equal chance in ``[minval, maxval)``; see :func:`dualflow.random.stateless_uniform`."""
        return uniform(lambda: self._next(shape), shape, minval, maxval, dtype)

    def uniform_full_int(self, shape: Any, dtype: Any = uint64, name: str | None = None) -> Tensor:
        """Integers of equal chance from the whole range of ``dtype``."""
        return self.uniform(shape, None, None, dtype)

    def binomial(
        self, shape: Any, counts: Any, probs: Any, dtype: Any = int32, name: str | None = None
    ) -> Tensor:
        """How many of ``counts`` tries with a chance of ``probs`` succeed, which broadcast to ``shape``."""
        return binomials(self._next(shape), shape, counts, probs, as_dtype(dtype))

    def make_seeds(self, count: Any = 1) -> Tensor:
        """Seeds for the stateless functions, of shape [2, count]: one in each column."""
        keys = self.uniform_full_int([count], int64)
        return stack([keys, zeros_like(keys)])

    def split(self, count: int = 1) -> list[Generator]:
        """``count`` new generators, whose streams differ from each other's and from this one's."""
        keys = unstack(self.uniform_full_int([count], int64))
        return [Generator(state=stack([0 * key, 0 * key, key]), alg="philox") for key in keys]


def _moved(state: Any, delta: Any, back: bool) -> Any:
    """A state so many draws later, or earlier; the counter's first number carries into the second."""
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
            f"A generator's state is three integers, a counter of two and a key, not of shape {state.shape} "
            f"and dtype {state.dtype.name}; Generator.from_seed takes others."
        )


def _from_parts(key: Any, counter: Any) -> Any:
    low, high = unstack(cast(convert_to_tensor(counter), int64), 2)
    return stack([low, high, cast(key, int64)])


class _Global:
    """The global generator, and whether it is the one made here, which :func:`set_seed` sets back."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.generator: Generator | None = None
        self.own = True


_global: Final = _Global()


@entry
def get_global_generator() -> Generator:
    """The generator that all of a program may share; :func:`set_seed` sets it to its beginning."""
    with _global.lock:
        if _global.generator is None:
            with dispatch.using(EAGER):
                seed = STREAMS.seed
                made = Generator.from_non_deterministic_state() if seed is None else Generator.from_seed(seed)
            _global.generator = made
        return _global.generator


@entry
def set_global_generator(generator: Generator) -> None:
    """Give :func:`get_global_generator` another generator to return, which only its own seed sets back."""
    with _global.lock:
        _global.generator, _global.own = generator, False


@entry
def set_seed(seed: int | None) -> None:
    """Set all streams of the functions of ``df.random`` to the beginning that ``seed`` names.

    In the block of an explicit graph it is that graph's seed, for the ops that are added from then on. None
    takes the seed away: the operating system names the beginning of draws without a ``seed=``.

    Eager calls with one ``seed=`` share a stream. In a compiled function each op with a ``seed=`` has its own
    stream, which begins with the number that the first eager call draws and goes on from call to call; a new
    trace, and a call in another traced function, begins anew. Ops without a ``seed=`` draw from the shared
    stream, eagerly and compiled.

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
