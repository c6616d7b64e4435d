"""Stages over several sources: zipped or concatenated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dualflow.core.convert import Array
from dualflow.core.tree import Structure
from dualflow.data.check_state import flag, number, parts
from dualflow.data.element import ElementLayout, Item, covering_spec
from dualflow.data.sources import NumbersStage
from dualflow.data.stage import INFINITE, UNKNOWN, IndexedRows, Stage, StageIterator, State


@dataclass(frozen=True, eq=False, kw_only=True)
class ZipStage(Stage):
    """Elements that combine one element of each part.

    Attributes:
        parts: the sources.
        structure: the structure whose leaves are the parts' elements.
    """

    parts: tuple[Stage, ...]
    structure: Structure

    @property
    def sources(self) -> tuple[Stage, ...]:
        return self.parts

    def with_sources(self, sources: Sequence[Stage]) -> Stage:
        return replace(self, parts=tuple(sources))

    @property
    def layout(self) -> ElementLayout:
        layouts = [p.layout for p in self.parts]
        structure = _nested_structure(self.structure, iter([x.structure for x in layouts]))
        return ElementLayout(structure, tuple([spec for x in layouts for spec in x.specs]))

    @property
    def cardinality(self) -> int:
        counts = [p.cardinality for p in self.parts]
        if UNKNOWN in counts:
            return UNKNOWN
        return min([n for n in counts if n != INFINITE], default=INFINITE)

    def start(self) -> StageIterator:
        return ZipIterator([p.start() for p in self.parts])

    def indexed(self) -> tuple[IndexedRows, Stage] | None:
        indexed = [p.indexed() for p in self.parts]
        rows = [x[0] for x in indexed if x is not None and isinstance(x[1], NumbersStage)]
        if len(rows) < len(indexed):
            return None
        return ZippedRows(tuple(rows)), NumbersStage(count=self.cardinality, origin=self.origin)


def _nested_structure(structure: Structure, parts: Iterator[Structure]) -> Structure:
    if structure.kind is None:
        return next(parts)
    return Structure(
        structure.kind, structure.keys, tuple([_nested_structure(c, parts) for c in structure.children])
    )


@dataclass(frozen=True, slots=True, eq=False)
class ZippedRows:
    """Several :class:`IndexedRows` as one: a row consists of the leaves of the row of each."""

    parts: tuple[IndexedRows, ...]

    def row(self, index: int) -> Item:
        return tuple([x for p in self.parts for x in p.row(index)])

    def gather(self, indices: Sequence[int]) -> list[Array]:
        return [x for p in self.parts for x in p.gather(indices)]


class ZipIterator(StageIterator):
    """Iterates over several iterators in parallel."""

    def __init__(self, parts: Sequence[StageIterator]) -> None:
        self.upstreams = parts
        self._ended = False

    def next(self, count: int) -> Sequence[Item]:
        rows: list[Item] = []
        while len(rows) < count and not self._ended:
            row = self._row()
            if row is None:
                self._ended = True
            else:
                rows.append(row)
        return rows

    def _row(self) -> Item | None:
        """The next element of each part; None at the end.

        If one fails, the others are still read, so that the parts stay aligned.
        """
        leaves: list[Any] = []
        errors: list[Exception] = []
        for part in self.upstreams:
            try:
                items = part.next(1)
            except Exception as error:
                errors.append(error)
                continue
            if not len(items):
                return None
            leaves += items[0]
        if errors:
            raise errors[0]
        return tuple(leaves)

    def get_state(self) -> State:
        return [self._ended, *[p.get_state() for p in self.upstreams]]

    def set_state(self, state: State) -> None:
        ended, *part_states = parts(state, 1 + len(self.upstreams))
        self._ended = flag(ended)
        for part, place in zip(self.upstreams, part_states, strict=True):
            part.set_state(place)


@dataclass(frozen=True, eq=False, kw_only=True)
class ConcatenateStage(Stage):
    """The elements of one source after those of another."""

    first: Stage
    second: Stage

    @property
    def sources(self) -> tuple[Stage, ...]:
        return self.first, self.second

    def with_sources(self, sources: Sequence[Stage]) -> Stage:
        return replace(self, first=sources[0], second=sources[1])

    @property
    def layout(self) -> ElementLayout:
        a, b = self.first.layout, self.second.layout
        return ElementLayout(a.structure, tuple(map(covering_spec, a.specs, b.specs)))

    @property
    def cardinality(self) -> int:
        counts = self.first.cardinality, self.second.cardinality
        if INFINITE in counts:
            return INFINITE
        return UNKNOWN if UNKNOWN in counts else sum(counts)

    def start(self) -> StageIterator:
        return ConcatenateIterator(self)


class ConcatenateIterator(StageIterator):
    """Iterates over one stage after the other."""

    def __init__(self, stage: ConcatenateStage) -> None:
        self._stages = stage.sources
        self._stage_index = 0
        self._current = self._stages[0].start()

    def next(self, count: int) -> Sequence[Any]:
        elements = self._current.next(count)
        while len(elements) < count and self._stage_index + 1 < len(self._stages):
            self._switch_to(self._stage_index + 1)
            elements = [*elements, *self._current.next(count - len(elements))]
        return elements

    def _switch_to(self, at: int) -> None:
        self._current.close()
        self._stage_index = at
        self._current = self._stages[at].start()

    def get_state(self) -> State:
        return [self._stage_index, self._current.get_state()]

    def set_state(self, state: State) -> None:
        at, current = parts(state, 2)
        self._switch_to(number(at, len(self._stages) - 1))
        self._current.set_state(current)

    def close(self) -> None:
        self._current.close()
