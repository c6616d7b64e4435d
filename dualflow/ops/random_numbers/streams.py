"""The streams of random numbers that stateful functions draw from.

There is a shared one, one for each op seed, and one for each op with a seed in a traced function.
Numbers come from the Philox generator as NumPy implements it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dispatch import Engine
from dualflow.core.locks import cached_attribute, imported
from dualflow.ops.attribute_values import AttributeSyntax, declare
from dualflow.ops.random_numbers.draws import Source
from dualflow.ops.static import static_int

_WORD: Final = (1 << 64) - 1


class Stream:
    """A stream of random numbers, from a sequence of seeds or, without seeds, from the operating system."""

    def __init__(self, seeds: Sequence[int] | None = None) -> None:
        self.begin(seeds)

    def begin(self, seeds: Sequence[int] | None) -> None:
        """Restart the stream with ``seeds``."""
        entropy = None if seeds is None else [seed & _WORD for seed in seeds]
        random = imported("numpy.random")
        self.philox = random.Generator(random.Philox(random.SeedSequence(entropy)))

    def for_copied_op(self, engine: Engine) -> Source:
        return self


class Streams:
    """The eager streams: the shared one, and one for each op seed.

    Attributes:
        seed: the global seed, with which all streams begin; None until it is set.
        resets: how often it has been set.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.seed: int | None = None
        self.resets = 0
        self._seeded: dict[int, Stream] = {}

    @cached_attribute
    def shared(self) -> Stream:
        """The stream of calls without a seed; created at the first use: NumPy's generators load slowly."""
        return Stream()

    def reset(self, seed: int | None) -> None:
        """Restart all streams, also in compiled functions that hold them; None removes the global seed."""
        with self._lock:
            self.seed = seed
            self.resets += 1
            self.shared.begin(None if seed is None else [seed])
            for op_seed, stream in self._seeded.items():
                stream.begin(self.seeds_with(op_seed))

    def of(self, seed: int | None) -> Source:
        """The stream of a new op with ``seed``: its own stream if the op is recorded in a trace or graph."""
        if seed is not None and type(seed) is not int:
            number: Any = seed
            is_whole = isinstance(number, float) and number.is_integer()
            seed = int(number) if is_whole else static_int(number, "seed")
        recorded = _recorded(dispatch.current().innermost, seed)
        return self.eager(seed) if recorded is None else recorded

    def eager(self, seed: int | None) -> Stream:
        """The stream of eager ops with ``seed``: the shared one for None."""
        if seed is None:
            return self.shared
        with self._lock:
            stream = self._seeded.get(seed)
            if stream is None:
                stream = self._seeded[seed] = Stream(self.seeds_with(seed))
            return stream

    def op_seed(self, stream: Stream) -> int | None:
        """The op seed of an eager stream; None for one that belongs to no op seed."""
        with self._lock:
            return next((seed for seed, own in self._seeded.items() if own is stream), None)

    def seeds_with(self, op_seed: int) -> tuple[int, ...]:
        """The seeds that a stream of ``op_seed`` begins with.

        NumPy takes zeros at the end for nothing: the 1 keeps the op seed 0 from the shared stream.
        """
        return (self.seed or 0, op_seed) if op_seed else (self.seed or 0, 0, 1)


STREAMS: Final = Streams()


def _fields_of(stream: Stream) -> dict[str, int] | None:
    """The op seed of a stream as a field for the text of graphs; no field for the shared stream."""
    if stream is STREAMS.shared:
        return {}
    seed = STREAMS.op_seed(stream)
    return None if seed is None else {"seed": seed}


def _stream_of(seed: int | None = None) -> Stream:
    return STREAMS.eager(None if seed is None else static_int(seed, "seed"))


declare(Stream, AttributeSyntax("stream", _fields_of, _stream_of))


class TracedStream:
    """The stream of one op with a seed in a traced function, as TensorFlow's random ops have it.

    It begins at the first draw, and again after each ``set_seed``, with the number at which the eager stream
    of the seed begins.
    """

    __slots__ = ("_begun", "_generator", "_seed")

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._begun: int | None = None

    @property
    def philox(self) -> np.random.Generator:
        """The NumPy generator of the stream, in its state after the last draw."""
        if _this_thread.draws_as_eager:
            return STREAMS.eager(self._seed).philox
        if self._begun != STREAMS.resets:
            self._begin()
        return self._generator

    def for_copied_op(self, engine: Engine) -> Source:
        """As :meth:`Source.for_copied_op`: a copy in a trace has a stream of its own."""
        return _recorded(engine, self._seed) or self

    def _begin(self) -> None:
        with _beginning:
            resets = STREAMS.resets
            if self._begun != resets:
                self._generator = Stream(STREAMS.seeds_with(self._seed)).philox
                self._begun = resets


declare(
    TracedStream,
    AttributeSyntax(
        "traced_stream",
        lambda stream: {"seed": stream._seed},
        lambda seed: TracedStream(static_int(seed, "seed")),
    ),
)


class drawing_as_eager:
    """``with drawing_as_eager():`` in this thread, traced ops draw from the streams of eager ones.

    So a function draws the same numbers eagerly and compiled, where it draws in the same order.
    """

    __slots__ = ("_outer",)

    def __enter__(self) -> None:
        self._outer = _this_thread.draws_as_eager
        _this_thread.draws_as_eager = True

    def __exit__(self, *exc: object) -> None:
        _this_thread.draws_as_eager = self._outer


class _ThisThread(threading.local):
    """Whether this thread compares eager and compiled runs."""

    draws_as_eager = False


def _recorded(engine: Engine, seed: int | None) -> Source | None:
    """The stream of an op that ``engine`` records for later runs; None for an eager stream."""
    recorded: Source | None = engine.stream(seed)
    if recorded is not None or seed is None or not engine.seeds_begin_anew:
        return recorded
    return TracedStream(seed)


_this_thread: Final = _ThisThread()
_beginning: Final = threading.Lock()


def stream(seed: int | None) -> Source:
    """The stream of calls with ``seed``; see :func:`dualflow.random.set_seed`."""
    return STREAMS.of(seed)
