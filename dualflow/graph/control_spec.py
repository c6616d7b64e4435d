"""``CondSpec`` and ``LoopSpec``: the attribute of a cond or loop, with the graphs inside it.

The graphs have no captures: all values that they read are among the node's inputs, so that passes see all
data flow.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

from dualflow.core.records import NamedTuple, dataclass, field, replace
from dualflow.core.shape import Shape
from dualflow.core.spec import HasSpec, TensorSpec
from dualflow.graph.ir import BodySpec, Graph, Node, Value
from dualflow.ops.record import Effect

T = TypeVar("T")
_numbers: Final = itertools.count()
_STRONGEST_FIRST: Final = (Effect.PYTHON, Effect.PRINT, Effect.COLLECTIVE, Effect.RANDOM, Effect.CHECK)


def effect_of(graphs: Iterable[Graph]) -> Effect | None:
    """The effect of a node that runs ``graphs``: the strongest effect of their nodes."""
    effects = {node.effect for graph in graphs for node in graph.nodes}
    return next((effect for effect in _STRONGEST_FIRST if effect in effects), None)


@dataclass(frozen=True, slots=True)
class CondSpec(BodySpec):
    """A cond: one of several branches runs, by index.

    Attributes:
        branches: graphs whose inputs are the node's inputs without the first, the index (an index out of
            range selects the last branch). Their outputs have the same specs.
        effect: the strongest effect of the branches.
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
        branches = tuple(map(change, self.branches))
        return self if _same(branches, self.branches) else CondSpec(branches)


def new_derivation() -> tuple[int, ...]:
    """A new id for a loop; loops derived from it by adding stacks extend the tuple."""
    return (next(_numbers),)


class LoopInputs(NamedTuple, Generic[T]):
    """The inputs of a loop, or of its body, where a row takes the place of each scanned input."""

    carried: Sequence[T]
    scanned: Sequence[T]
    invariants: Sequence[T]


class LoopResults(NamedTuple, Generic[T]):
    """The outputs of a loop, or of its body, where a row takes the place of each stack."""

    carried: Sequence[T]
    stacked: Sequence[T]


@dataclass(frozen=True, slots=True)
class LoopSpec(BodySpec):
    """A scan or a while loop: the body runs for each row of the scanned inputs, or while a condition holds.

    The node's inputs are the initial carried values, the scanned inputs (each iteration reads one row of
    them) and the loop invariants. Its outputs are the final carried values and the stacked outputs, which
    have one row per iteration. The number of rows is dynamic if ``condition`` ends the loop; only other loops
    read such stacks.

    Attributes:
        body: maps (carried values, one row of each scanned input, invariants) to (carried values, one row of
            each stacked output).
        carried: the number of carried values.
        scanned: the number of scanned inputs; 0 if there is a condition.
        length: the number of iterations; None for the number of rows of the scanned inputs. With a
            condition: the largest number of iterations, or None for no limit.
        condition: maps (carried values, invariants) to whether another iteration runs; None if the number of
            iterations is known before the loop.
        reverse: the rows are scanned and stacked from the last to the first.
        recompute: the gradient stores the carried values of each iteration and computes the iteration again.
        derivation: the ids of the loops from which this one was made by adding stacked outputs, in order,
            then its own id. Over the same inputs, its first outputs are the outputs of these loops.
        effect: the effects of an iteration, other than its results.
    """

    body: Graph
    carried: int
    scanned: int
    length: int | None
    condition: Graph | None = None
    reverse: bool = False
    recompute: bool = False
    derivation: tuple[int, ...] = field(default_factory=new_derivation)
    effect: Effect | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "effect", effect_of(self.graphs))

    @property
    def graphs(self) -> tuple[Graph, ...]:
        """The graphs that an iteration runs, in order: the condition, if there is one, and the body."""
        return (self.body,) if self.condition is None else (self.condition, self.body)

    @property
    def end(self) -> int:
        """The number of inputs before the loop invariants."""
        return self.carried + self.scanned

    @property
    def iterations(self) -> int | None:
        """The number of iterations if it is known before the loop runs, else None."""
        return self.length if self.condition is None else None

    @property
    def stacked(self) -> tuple[Value, ...]:
        """The outputs of the body that are stacked."""
        return self.body.outputs[self.carried :]

    @property
    def carried_values(self) -> list[tuple[Value, Value]]:
        """The loop-carried values of the body: each before an iteration, and after it."""
        body = self.body
        return list(zip(body.inputs[: self.carried], body.outputs[: self.carried], strict=True))

    def split_inputs(self, inputs: Sequence[T]) -> LoopInputs[T]:
        """The inputs of the node or of its body by role."""
        return LoopInputs(inputs[: self.carried], inputs[self.carried : self.end], inputs[self.end :])

    def split_results(self, results: Sequence[T]) -> LoopResults[T]:
        """The outputs of the node or of its body by role."""
        return LoopResults(results[: self.carried], results[self.carried :])

    @property
    def bodies(self) -> tuple[tuple[str, Graph], ...]:
        body = ("body", self.body)
        return (body,) if self.condition is None else (body, ("condition", self.condition))

    @property
    def settings(self) -> Mapping[str, Any]:
        names = ("carried", "scanned", "length", "reverse", "derivation", "recompute")
        return {name: getattr(self, name) for name in names}

    def with_bodies(self, change: Callable[[Graph], Graph]) -> LoopSpec:
        graphs = tuple(map(change, self.graphs))
        if _same(graphs, self.graphs):
            return self
        return replace(self, body=graphs[-1], condition=graphs[0] if self.condition is not None else None)

    def as_new_loop(self, **changes: Any) -> LoopSpec:
        """This loop with ``changes`` that alter its results; :meth:`has_outputs_of` is false for the two."""
        return replace(self, derivation=new_derivation(), **changes)

    def with_more_stacks(self, body: Graph) -> LoopSpec:
        """This loop with ``body``, which has further stacked outputs after those of this one."""
        return replace(self, body=body, recompute=False, derivation=(*self.derivation, *new_derivation()))

    def has_outputs_of(self, other: LoopSpec) -> bool:
        """Whether the first outputs of this loop are those of ``other``, for the same inputs."""
        return self.derivation[: len(other.derivation)] == other.derivation


def row_spec(stack: HasSpec) -> TensorSpec:
    """The spec of what an iteration reads of a scanned input, or adds to a stacked output."""
    return TensorSpec.of(Shape(tuple(stack.shape)[1:]), stack.dtype)


def branches_of(cond: Node) -> tuple[Graph, ...]:
    """The branches of a cond."""
    spec: CondSpec = cond.attrs["cond"]
    return spec.branches


def loop_of(loop: Node) -> LoopSpec:
    """The spec of a loop."""
    spec: LoopSpec = loop.attrs["loop"]
    return spec


def _same(changed: Sequence[Graph], graphs: Sequence[Graph]) -> bool:
    return all(new is old for new, old in zip(changed, graphs, strict=True))
