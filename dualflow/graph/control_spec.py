"""What a conditional or a loop does with its inputs: the graphs inside it, and which of them runs how often.

The graphs capture nothing: whatever they read is among the node's inputs, so that a pass sees all that flows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from dualflow.core.records import dataclass, field, replace
from dualflow.graph.ir import BodySpec, Graph, Node, Value
from dualflow.ops.record import Effect

T = TypeVar("T")
_numbers: Final = itertools.count()
_STRONGEST_FIRST: Final = (Effect.PYTHON, Effect.PRINT, Effect.RANDOM, Effect.CHECK)


def effect_of(graphs: Iterable[Graph]) -> Effect | None:
    """The effect of a node that runs ``graphs``: of several the one that asks most of whoever runs it."""
    found = {node.effect for graph in graphs for node in graph.nodes}
    return next((effect for effect in _STRONGEST_FIRST if effect in found), None)


@dataclass(frozen=True, slots=True)
class CondSpec(BodySpec):
    """One of several graphs runs, chosen by a number.

    Attributes:
        branches: they take the node's inputs but the first, which is the number (out of range it means the
            last branch), and have outputs of the same specs.
        effect: what running one of them does beside its results.
    """

    branches: tuple[Graph, ...]
    effect: Effect | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "effect", effect_of(self.branches))

    @property
    def bodies(self) -> tuple[tuple[str, Graph], ...]:
        return tuple([(f"branches[{i}]", branch) for i, branch in enumerate(self.branches)])

    @property
    def settings(self) -> Mapping[str, Any]:
        return {}

    def with_bodies(self, change: Callable[[Graph], Graph]) -> CondSpec:
        made = tuple(map(change, self.branches))
        return self if _same(made, self.branches) else CondSpec(made)


def _new_lineage() -> tuple[int, ...]:
    return (next(_numbers),)


@dataclass(frozen=True, slots=True)
class LoopSpec(BodySpec):
    """A graph runs once for each row of some inputs, or while a condition holds.

    The node's inputs are what is carried between iterations, then the stacks of which each iteration takes a
    row, then the rest, which no iteration changes. Its outputs are what is carried in the end, then the rows
    that the iterations gave, stacked. Where ``condition`` ends the loop, the first size of these stacks is
    open: only the run knows it, and loops alone read such stacks.

    Attributes:
        body: takes what is carried, a row of each stack, and the rest; its outputs are what is carried on,
            and rows.
        carried: how many inputs are carried.
        mapped: how many are stacks.
        length: the number of iterations; None for that of the rows of the stacks. With a condition: the
            largest number of iterations, None for any.
        condition: takes what is carried and the rest, and tells whether there is another iteration; nothing
            is mapped then. None where the number of iterations is known before the loop.
        reverse: from the last row to the first; what is stacked stays beside its row.
        recompute: the gradient keeps what each iteration begins with, and computes the iteration again from
        it.
        lineage: numbers that tell loops apart. A loop whose lineage begins with another's, over the same
            inputs, has the other's results first among its own.
        effect: what an iteration does beside its results.
    """

    body: Graph
    carried: int
    mapped: int
    length: int | None
    condition: Graph | None = None
    reverse: bool = False
    recompute: bool = False
    lineage: tuple[int, ...] = field(default_factory=_new_lineage)
    effect: Effect | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "effect", effect_of(self.graphs))

    @property
    def graphs(self) -> tuple[Graph, ...]:
        """What each iteration runs, in order: the condition, if there is one, and the body."""
        return (self.body,) if self.condition is None else (self.condition, self.body)

    @property
    def end(self) -> int:
        """How many inputs stand before the rest."""
        return self.carried + self.mapped

    @property
    def iterations(self) -> int | None:
        """The number of iterations, if the loop itself tells it before it runs."""
        return self.length if self.condition is None else None

    @property
    def rows(self) -> tuple[Value, ...]:
        """The outputs of the body that are stacked."""
        return self.body.outputs[self.carried :]

    def parts(self, inputs: Sequence[T]) -> tuple[Sequence[T], Sequence[T], Sequence[T]]:
        """What belongs to the inputs that are carried, to those that are stacks, and to the rest."""
        return inputs[: self.carried], inputs[self.carried : self.end], inputs[self.end :]

    @property
    def bodies(self) -> tuple[tuple[str, Graph], ...]:
        body = ("body", self.body)
        return (body,) if self.condition is None else (body, ("condition", self.condition))

    @property
    def settings(self) -> Mapping[str, Any]:
        names = ("carried", "mapped", "length", "reverse", "lineage", "recompute")
        return {name: getattr(self, name) for name in names}

    def with_bodies(self, change: Callable[[Graph], Graph]) -> LoopSpec:
        made = tuple(map(change, self.graphs))
        if _same(made, self.graphs):
            return self
        return replace(self, body=made[-1], condition=made[0] if self.condition is not None else None)

    def another(self, **changes: Any) -> LoopSpec:
        """A loop like this one but for ``changes``, whose results are others."""
        return replace(self, lineage=_new_lineage(), **changes)

    def extended(self, body: Graph) -> LoopSpec:
        """The loop that gives what this one gives and, behind it, the further rows of ``body``."""
        return replace(self, body=body, recompute=False, lineage=(*self.lineage, *_new_lineage()))

    def extends(self, other: LoopSpec) -> bool:
        """Whether its results begin with those of ``other`` over the same inputs."""
        return self.lineage[: len(other.lineage)] == other.lineage


def branches_of(cond: Node) -> tuple[Graph, ...]:
    """The graphs that a conditional chooses from."""
    spec: CondSpec = cond.attrs["cond"]
    return spec.branches


def loop_of(loop: Node) -> LoopSpec:
    """What the iterations of a loop are."""
    spec: LoopSpec = loop.attrs["loop"]
    return spec


def _same(made: Sequence[Graph], graphs: Sequence[Graph]) -> bool:
    return all(new is old for new, old in zip(made, graphs, strict=True))
