"""Stages and stage iterators, the parts of an input pipeline.

A stage is a source or a transformation; it is immutable. A stage iterator returns its elements in blocks.
The state of an iterator is JSON: counts that give its position, not its elements; an iterator that buffers
elements recomputes them when a state is restored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, TypeAlias

from dualflow.core.convert import Array
from dualflow.core.errors import InvalidArgumentError
from dualflow.data.check_state import number, parts
from dualflow.data.element import ElementLayout, Item
from dualflow.graph.ir import Origin

State: TypeAlias = Any
"""An object that ``json`` can serialize."""

INFINITE: Final = -1
UNKNOWN: Final = -2
INFINITE_CARDINALITY: Final = INFINITE
UNKNOWN_CARDINALITY: Final = UNKNOWN
AUTOTUNE: Final = -1
"""The number of threads, or the size of a buffer, that the pipeline chooses itself."""
SIGNAL_CHECK_SECONDS: Final = 0.1
"""The longest wait: Python handles a signal that arrives just before a wait only after it."""


class StageIterator(ABC):
    """An iterator over a stage. Used by one thread at a time, under the lock of :class:`Iterator`.

    Attributes:
        upstreams: the iterators that it reads from.
    """

    upstreams: Sequence[StageIterator] = ()

    @abstractmethod
    def next(self, count: int) -> Sequence[Any]:
        """The next ``count`` elements; fewer only at the end of the stage, and none after it."""

    @abstractmethod
    def get_state(self) -> State:
        """The iterator's position; cheap."""

    @abstractmethod
    def set_state(self, state: State) -> None:
        """Go to a position, forwards or backwards.

        Raises:
            InvalidArgumentError: the state is not one of such an iterator, which can't be used afterwards.
        """

    def close(self) -> None:
        """End prefetching threads."""
        for upstream in self.upstreams:
            upstream.close()


class IndexedRows(Protocol):
    """Elements with random access."""

    def row(self, index: int) -> Item:
        """One element."""
        ...

    def gather(self, indices: Sequence[int]) -> list[Array]:
        """Several elements, stacked along a new first axis."""
        ...


@dataclass(frozen=True, eq=False, kw_only=True)
class Stage(ABC):
    """One source or transformation of a pipeline.

    Attributes:
        origin: the user's line that created it; None until it belongs to a dataset.
    """

    origin: Origin | None = None

    @property
    @abstractmethod
    def layout(self) -> ElementLayout:
        """The layout of its elements."""

    def check_layout(self) -> None:
        """Raise an error if this stage can't process the elements of its source."""
        _ = self.layout

    @property
    @abstractmethod
    def cardinality(self) -> int:
        """The number of its elements, or ``INFINITE`` or ``UNKNOWN``."""

    @property
    def sources(self) -> tuple[Stage, ...]:
        """The stages that it reads from."""
        return ()

    def with_sources(self, sources: Sequence[Stage]) -> Stage:
        """The same stage with other sources."""
        return self

    @abstractmethod
    def start(self) -> StageIterator:
        """A new iterator over it."""

    @property
    def yields_indices(self) -> bool:
        """Whether its elements are indices of rows, which are read in blocks of any size at no cost."""
        return False

    @property
    def runs_collectives(self) -> bool:
        """Whether reading it exchanges data with other workers, so that no thread may read ahead."""
        return any(source.runs_collectives for source in self.sources)

    def indexed(self) -> tuple[IndexedRows, Stage] | None:
        """Random access: the rows, and a stage of the indices of the elements; None if there is none."""
        return None

    def describe(self) -> str:
        """The kinds of this stage and its sources; a state is valid for stages of the same description."""
        name = type(self).__name__.removesuffix("Stage")
        return f"{name}({', '.join(s.describe() for s in self.sources)})"

    @property
    def where(self) -> str:
        """The user's line, as the end of an error's message."""
        return "" if self.origin is None else f"\n  {self.origin}"


@dataclass(frozen=True, eq=False, kw_only=True)
class UnaryStage(Stage):
    """A stage with one source, whose layout and cardinality it has unless it overrides them."""

    source: Stage

    @property
    def sources(self) -> tuple[Stage, ...]:
        return (self.source,)

    def with_sources(self, sources: Sequence[Stage]) -> Stage:
        return replace(self, source=sources[0])

    @property
    def layout(self) -> ElementLayout:
        return self.source.layout

    @property
    def cardinality(self) -> int:
        return self.source.cardinality


class StatelessIterator(StageIterator):
    """An iterator without a state of its own: its state is its source's."""

    def __init__(self, upstream: StageIterator) -> None:
        self._upstream = upstream
        self.upstreams = (upstream,)

    def get_state(self) -> State:
        return self._upstream.get_state()

    def set_state(self, state: State) -> None:
        self._upstream.set_state(state)


class ReplayedIterator(StageIterator):
    """An iterator that buffers elements: to restore a state it recomputes all elements from the beginning.

    A subclass sets what :meth:`restart` reads before it calls this constructor.
    """

    def __init__(self, stage: UnaryStage) -> None:
        self._stage = stage
        self._upstream = stage.source.start()
        self.upstreams = (self._upstream,)
        self._first_state: State = self._upstream.get_state()
        self._count = 0
        self._errors = 0
        self.restart()

    def next(self, count: int) -> Sequence[Any]:
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
        """Clear all buffers; the source is at its beginning."""

    def get_state(self) -> State:
        return [self._first_state, self._count] + [self._errors] * (self._errors > 0)

    def set_state(self, state: State) -> None:
        size = 3 if isinstance(state, list) and len(state) == 3 else 2
        self._first_state, count, *errors = parts(state, size)
        number(count)
        failures = number(errors[0]) if errors else 0
        self._upstream.set_state(self._first_state)
        self.restart()
        self._count = self._errors = 0
        while self._count < count:
            try:
                elements = self.next(1 if failures else min(count - self._count, 256))
            except Exception:
                if self._errors > failures:
                    raise
                continue  # it was raised before the state was taken
            if not len(elements):
                raise InvalidArgumentError(
                    f"The state is {count} elements into a dataset that has {self._count}; give the state of "
                    "an iterator over the same data."
                )
