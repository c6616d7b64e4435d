"""Random numbers of explicit graphs: each random op has a stream, which starts anew in each session.

As in TensorFlow 1, a stream is identified by two seeds: the graph's and the op's. In a graph with a seed, the
number of an op is its default seed; a graph's default seed is a constant. Only ops with neither seed differ
from session to session.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dualflow.core.dispatch import Engine
from dualflow.core.locks import imported
from dualflow.graph_mode.running_session import running_state
from dualflow.ops.attribute_values import AttributeSyntax, declare
from dualflow.ops.static import static_int

_NO_GRAPH_SEED: Final = 87654321
_WORD: Final = (1 << 64) - 1
Streams = dict["OpStream", np.random.Generator]


class OpStream:
    """The random stream of an op: in a session's run that session's stream, else the op's own.

    Attributes:
        seeds: the graph's and the op's; None if neither has one.
    """

    __slots__ = ("_own_streams", "seeds")

    def __init__(self, seeds: tuple[int, int] | None) -> None:
        self.seeds = seeds
        self._own_streams: Streams = {}

    @property
    def philox(self) -> np.random.Generator:
        """The generator, in the state after the last draw."""
        state = running_state()
        streams = self._own_streams if state is None else state.streams
        generator = streams.get(self)
        if generator is None:
            entropy = None if self.seeds is None else [seed & _WORD for seed in self.seeds]
            random = imported("numpy.random")
            generator = random.Generator(random.Philox(random.SeedSequence(entropy)))
            generator = streams.setdefault(self, generator)
        return generator

    def for_copied_op(self, engine: Engine) -> OpStream:
        """A new stream for a copy of the op: each call of a function copies the function's random ops."""
        return OpStream(self.seeds)


def _stream_of(seeds: tuple[Any, ...] | None) -> OpStream:
    if seeds is None:
        return OpStream(None)
    graph, op = seeds
    return OpStream((static_int(graph, "the graph's seed"), static_int(op, "the seed")))


declare(OpStream, AttributeSyntax("graph_stream", lambda stream: {"seeds": stream.seeds}, _stream_of))


class OpSeeds:
    """The seeds of a graph's random ops.

    Attributes:
        graph: the graph's seed; None until it is set.
    """

    __slots__ = ("_unseeded", "graph")

    def __init__(self) -> None:
        self.graph: int | None = None
        self._unseeded = 0

    def stream(self, op: int | None) -> OpStream:
        """The stream of a new op with the seed ``op``."""
        graph = self.graph
        if op is None and graph is None:
            return OpStream(None)
        if op is None:
            op = self._unseeded
            self._unseeded += 1
        return OpStream((_NO_GRAPH_SEED if graph is None else graph, op))
