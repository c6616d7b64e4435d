"""What a pipeline is made of: stages, which describe it and never change, and cursors, which run through it.

A cursor hands out elements in blocks. Its state is JSON: numbers that say how far it is, not what it holds;
where a stage keeps elements, it makes them again when it is set to a state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, TypeAlias

from dualflow.core.convert import Array
from dualflow.core.errors import InvalidArgumentError
from dualflow.data.element import ElementLayout, Item
from dualflow.data.states import number, parts
from dualflow.graph.ir import Origin

State: TypeAlias = Any
"""What ``json`` writes and reads."""

INFINITE: Final = -1
UNKNOWN: Final = -2
INFINITE_CARDINALITY: Final = INFINITE
UNKNOWN_CARDINALITY: Final = UNKNOWN
AUTOTUNE: Final = -1
"""The number of threads, or the size of a buffer, that is found while the pipeline runs."""
LOOK: Final = 0.1
"""Seconds after which a wait looks for signals: Python misses one that comes just before the wait begins."""


class Cursor(ABC):
    """A run through a stage, up to its end. Used by one thread at a time, with the iterator's lock.

    Attributes:
        upstreams: the runs that it reads from.
    """

    upstreams: Sequence[Cursor] = ()

    @abstractmethod
    def pull(self, count: int) -> Sequence[Any]:
        """The next ``count`` elements; fewer only where the stage ends, and then none."""

    @abstractmethod
    def get_state(self) -> State:
        """Where the run is, cheaply."""

    @abstractmethod
    def set_state(self, state: State) -> None:
        """Go to where a run was, also back.

        Raises:
            InvalidArgumentError: no run through such a stage returns the state; this one is of no use then.
        """

    def close(self) -> None:
        """Let threads go that work ahead."""
        for upstream in self.upstreams:
            upstream.close()


class IndexedRows(Protocol):
    """Elements that are found by their number, and so can be taken in any order."""

    def row(self, index: int) -> Item:
        """One element."""
        ...

    def gather(self, indices: Sequence[int]) -> list[Array]:
        """Several, stacked along a new first axis."""
        ...


@dataclass(frozen=True, eq=False, kw_only=True)
class Stage(ABC):
    """One step of a pipeline.

    Attributes:
        origin: the user's line that asked for it, once it is a dataset's.
    """

    origin: Origin | None = None

    @property
    @abstractmethod
    def layout(self) -> ElementLayout:
        """Of its elements."""

    @property
    @abstractmethod
    def cardinality(self) -> int:
        """How many elements it has, or ``INFINITE`` or ``UNKNOWN``."""

    @property
    def sources(self) -> tuple[Stage, ...]:
        """What it reads from."""
        return ()

    def over(self, sources: Sequence[Stage]) -> Stage:
        """The same step over other sources."""
        return self

    @abstractmethod
    def start(self) -> Cursor:
        """A new run through it."""

    def indexed(self) -> tuple[IndexedRows, Stage] | None:
        """The same elements as rows and a stage of their numbers, where that is possible."""
        return None

    def describe(self) -> str:
        """Its kind and those of its sources, which states are valid for."""
        name = type(self).__name__.removesuffix("Stage")
        return f"{name}({', '.join(s.describe() for s in self.sources)})"

    @property
    def where(self) -> str:
        """The user's line, as the end of an error's message."""
        return "" if self.origin is None else f"\n  {self.origin}"


@dataclass(frozen=True, eq=False, kw_only=True)
class OverOne(Stage):
    """A stage that reads from one other, whose elements are like its own unless it says otherwise."""

    source: Stage

    @property
    def sources(self) -> tuple[Stage, ...]:
        return (self.source,)

    def over(self, sources: Sequence[Stage]) -> Stage:
        return replace(self, source=sources[0])

    @property
    def layout(self) -> ElementLayout:
        return self.source.layout

    @property
    def cardinality(self) -> int:
        return self.source.cardinality


class OneToOne(Cursor):
    """A run that keeps nothing: it is where the run through its source is."""

    def __init__(self, upstream: Cursor) -> None:
        self._upstream = upstream
        self.upstreams = (upstream,)

    def get_state(self) -> State:
        return self._upstream.get_state()

    def set_state(self, state: State) -> None:
        self._upstream.set_state(state)


class Replayed(Cursor):
    """A run through a stage that keeps elements: set to a state, it makes again all since the beginning.

    Args:
        upstream: the run through the source, at its beginning.
    """

    def __init__(self, upstream: Cursor) -> None:
        self._upstream = upstream
        self.upstreams = (upstream,)
        self._begun: State = upstream.get_state()
        self._count = 0
        self._errors = 0

    def pull(self, count: int) -> Sequence[Any]:
        try:
            elements = self.make(count)
        except Exception:
            self._errors += 1
            raise
        self._count += len(elements)
        return elements

    @abstractmethod
    def make(self, count: int) -> Sequence[Any]:
        """The next elements."""

    @abstractmethod
    def restart(self) -> None:
        """Forget all elements: the source is at its beginning."""

    def get_state(self) -> State:
        return [self._begun, self._count] + [self._errors] * (self._errors > 0)

    def set_state(self, state: State) -> None:
        self._begun, count, *errors = parts(state, 3 if isinstance(state, list) and len(state) == 3 else 2)
        number(count)
        failures = number(errors[0]) if errors else 0
        self._upstream.set_state(self._begun)
        self.restart()
        self._count = self._errors = 0
        while self._count < count:
            try:
                elements = self.pull(1 if failures else min(count - self._count, 256))
            except Exception:
                if self._errors > failures:
                    raise
                continue  # it was raised before the state was taken
            if not len(elements):
                raise InvalidArgumentError(
                    f"The state is {count} elements into a dataset that has {self._count}; give the state of "
                    "an iterator over the same data."
                )
