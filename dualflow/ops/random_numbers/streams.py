"""The streams that stateful functions draw from: a shared one, and one for each seed given to single calls.

Numbers come from the Philox generator as NumPy implements it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from typing import Final

import numpy as np

from dualflow.core import dispatch
from dualflow.ops.random_numbers.draws import Source

_WORD: Final = (1 << 64) - 1


class Stream:
    """A stream of random numbers, whose beginning seeds name, or else the operating system."""

    def __init__(self, seeds: Sequence[int] | None = None) -> None:
        self.begin(seeds)

    def begin(self, seeds: Sequence[int] | None) -> None:
        """Begin the stream of other seeds."""
        entropy = None if seeds is None else [seed & _WORD for seed in seeds]
        self.philox = np.random.Generator(np.random.Philox(np.random.SeedSequence(entropy)))


class Streams:
    """The shared stream, and those of the seeds given to single calls.

    Attributes:
        seed: what all streams begin with; None until it is set.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.seed: int | None = None
        self._seeded: dict[int, Stream] = {}

    @cached_property
    def shared(self) -> Stream:
        """The stream of calls without a seed, made when asked for: NumPy's generators load slowly."""
        return Stream()

    def reset(self, seed: int) -> None:
        """Begin all streams again, as compiled functions that hold them see."""
        with self._lock:
            self.seed = seed
            self.shared.begin([seed])
            for own, stream in self._seeded.items():
                stream.begin([seed, own])

    def of(self, seed: int | None) -> Source:
        """What a call with ``seed`` draws from: one stream for each seed, the shared one for None.

        The ops of an explicit graph have streams of their own.
        """
        own: Source | None = dispatch.current().innermost.stream(seed)
        if own is not None:
            return own
        if seed is None:
            return self.shared
        with self._lock:
            found = self._seeded.get(seed)
            if found is None:
                found = self._seeded[seed] = Stream([0 if self.seed is None else self.seed, seed])
            return found


STREAMS: Final = Streams()


def stream(seed: int | None) -> Source:
    """What a call with ``seed`` draws from; see :func:`dualflow.random.set_seed`."""
    return STREAMS.of(seed)
