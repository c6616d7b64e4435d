"""Generators of random numbers, and the streams that seeds name.

Numbers come from the counter-based Philox generator (Salmon et al., "Parallel random numbers: as easy as 1,
2, 3", 2011) as NumPy implements it. The functions of ``df.random`` share one generator, which
:func:`set_seed` sets back to its start; a compiled function draws from it anew at each call.
:class:`Generator` objects are independent of it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import as_dtype, float32, uint64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import entries, entry
from dualflow.ops.random_numbers import draws
from dualflow.ops.static import known_value

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor

Seed = int | Sequence[int] | None
_WORD: Final = (1 << 64) - 1


@entries
class Generator:
    """A stream of random numbers with a state of its own.

    Args:
        seed: an integer or several: equal seeds give equal streams. By default the operating system chooses.

    >>> import dualflow as df
    >>> g, h = df.random.Generator.from_seed(3), df.random.Generator.from_seed(3)
    >>> bool(df.reduce_all(g.normal([5]) == h.normal([5])))
    True
    """

    def __init__(self, seed: Seed = None) -> None:
        self.philox = np.random.Generator(np.random.Philox(_key(seed)))

    @classmethod
    def from_seed(cls, seed: Seed, alg: str | None = None) -> Generator:
        """The generator of an integer seed; ``alg`` is ignored, for there is one algorithm."""
        return cls(seed)

    @classmethod
    def from_non_deterministic_state(cls, alg: str | None = None) -> Generator:
        """A generator that the operating system seeds."""
        return cls()

    def reset_from_seed(self, seed: Seed) -> None:
        """Begin the stream of another seed."""
        self.philox = np.random.Generator(np.random.Philox(_key(seed)))

    reset = reset_from_seed

    def split(self, count: int = 1) -> list[Generator]:
        """``count`` new generators, whose streams differ from each other's and from this one's."""
        children = []
        for bits in self.philox.bit_generator.spawn(count):
            child = Generator(0)
            child.philox = np.random.Generator(bits)
            children.append(child)
        return children

    def normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = float32, name: Any = None
    ) -> Tensor:
        """Normal numbers; see :func:`dualflow.random.normal`."""
        return draws.normal(self, shape, mean, stddev, dtype)

    def truncated_normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = float32, name: Any = None
    ) -> Tensor:
        """Normal numbers within two standard deviations; see :func:`dualflow.random.truncated_normal`."""
        return draws.truncated_normal(self, shape, mean, stddev, dtype)

    def uniform(
        self, shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = float32, name: Any = None
    ) -> Tensor:
        """Numbers of equal chance; see :func:`dualflow.random.uniform`."""
        return draws.uniform(self, shape, minval, maxval, dtype)

    def uniform_full_int(self, shape: Any, dtype: Any = uint64, name: Any = None) -> Tensor:
        """Integers of equal chance from the whole range of ``dtype``."""
        kind = as_dtype(dtype)
        return draws.uniform(self, shape, int(kind.min), int(kind.max) + 1, kind)


class Stateless:
    """A generator that begins again at each draw."""

    def __init__(self, seed: Seed) -> None:
        self._key = _key(seed)

    @property
    def philox(self) -> np.random.Generator:
        """A new generator each time."""
        return np.random.Generator(np.random.Philox(self._key))


def _key(seed: Any) -> np.random.SeedSequence:
    if seed is None:
        return np.random.SeedSequence()
    value = known_value(seed)
    if value is None or value.dtype.kind not in "iu":
        raise InvalidArgumentError(
            f"A seed is a Python integer or an array of some, known now, not {seed!r}."
        )
    return np.random.SeedSequence([int(v) & _WORD for v in value.reshape(-1)])


class _Streams:
    """The shared generator, and those of the seeds given to single calls."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seed: int | None = None
        self._seeded: dict[int, Generator] = {}

    @cached_property
    def shared(self) -> Generator:
        """The generator of calls without a seed, made when asked for: NumPy's generators load slowly."""
        return Generator()

    def reset(self, seed: int) -> None:
        """Begin all streams again, as compiled functions that hold them see."""
        with self._lock:
            self._seed = seed
            self.shared.reset_from_seed(seed)
            for own, generator in self._seeded.items():
                generator.reset_from_seed([seed, own])

    def of(self, seed: int | None) -> draws.Source:
        """What a call with ``seed`` draws from: one stream for each seed, the shared one for None.

        The ops of an explicit graph have streams of their own.
        """
        own: draws.Source | None = dispatch.current().unrecorded.stream(seed)
        if own is not None:
            return own
        if seed is None:
            return self.shared
        with self._lock:
            found = self._seeded.get(seed)
            if found is None:
                found = self._seeded[seed] = Generator([0 if self._seed is None else self._seed, seed])
            return found


_streams: Final = _Streams()


@entry
def set_seed(seed: int) -> None:
    """Set all streams of this module's functions to the beginning that ``seed`` names.

    In the block of an explicit graph it is that graph's seed, for the ops that are added from then on.

    >>> import dualflow as df
    >>> df.random.set_seed(7)
    >>> a = df.random.normal([3])
    >>> df.random.set_seed(7)
    >>> bool(df.reduce_all(a == df.random.normal([3])))
    True
    """
    if not dispatch.current().unrecorded.take_seed(seed):
        _streams.reset(seed)


def get_global_generator() -> Generator:
    """The generator that the functions of this module draw from."""
    return _streams.shared


def stream(seed: int | None) -> draws.Source:
    """What a call with ``seed`` draws from; see :func:`set_seed`."""
    return _streams.of(seed)
