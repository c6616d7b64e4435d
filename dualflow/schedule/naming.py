"""Names for the memory of a compiled graph, so that a place in a buffer reads as a value's element."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence

from dualflow.graph.ir import Graph
from dualflow.schedule.nest import Access, Layout
from dualflow.schedule.plan import Call, Plan


class Memory:
    """What lies in each buffer: inputs and variables by their own names, outputs, values in the arena.

    Attributes:
        inputs: a name for each input of the graph.
        outputs: a name for each output.
    """

    def __init__(self, graph: Graph, plan: Plan) -> None:
        self.inputs = list(input_names(graph))
        self.outputs = _numbered("out", len(plan.outputs))
        self._arena = plan.arena
        self._fixed = [
            *self.inputs,
            *(f"c{i}" for i in range(len(plan.constants))),
            *self.outputs,
            *(f"t{i}" for i in range(len(plan.temporaries))),
            "arena",
            *(f"row{i}" for i in range(plan.slots)),
        ]
        self._starts: list[int] = []
        self._held: dict[int, tuple[int, str]] = {}
        self._made = 0

    def define(self, call: Call, again: bool = False) -> None:
        """Name what ``call`` puts into the arena, over what lay there before.

        ``again`` is for calls of a loop, which write what the loop carries: what has a name keeps it.
        """
        for value, layout in zip(call.node.outputs, call.outputs, strict=True):
            if layout.buffer == self._arena and value.spec.nbytes:
                start = layout.offset * value.spec.dtype.size
                end = start + value.spec.nbytes
                if again and self._held.get(start, (0, ""))[0] == end:
                    continue
                self._hold(start, end, f"v{self._made}")
                self._made += 1

    def name(self, buffer: int) -> str:
        """The name of a buffer that is not the arena."""
        return self._fixed[buffer]

    def find(self, place: Layout | Access, itemsize: int) -> tuple[str, int]:
        """The name of the value at ``place``, and which of its elements lies there."""
        if place.buffer != self._arena:
            return self._fixed[place.buffer], place.offset
        at = place.offset * itemsize
        start = self._starts[bisect.bisect_right(self._starts, at) - 1] if self._starts else 0
        end, name = self._held.get(start, (0, ""))
        return (name, (at - start) // itemsize) if start <= at < end else ("arena", place.offset)

    def _hold(self, start: int, end: int, name: str) -> None:
        first = bisect.bisect_left(self._starts, start)
        if first and self._held[self._starts[first - 1]][0] > start:
            first -= 1
        last = bisect.bisect_left(self._starts, end)
        for old in self._starts[first:last]:
            del self._held[old]
        self._starts[first:last] = [start]
        self._held[start] = end, name


def input_names(graph: Graph) -> Iterator[str]:
    """Each input's own name where it has one, made unique."""
    given = [v.spec.name for v in graph.arguments]
    given += [getattr(c.source, "name", None) for c in graph.captures]
    taken: set[str] = set()
    for i, name in enumerate(given):
        short = (name or f"in{i}").removesuffix(":0")
        found = short if short not in taken and not short.isdigit() else f"{short}_{i}"
        taken.add(found)
        yield found


def _numbered(stem: str, count: int) -> list[str]:
    return [stem] if count == 1 else [f"{stem}{i}" for i in range(count)]


def subscript(terms: Sequence[tuple[int, str]], offset: int) -> str:
    """``sum(factor * name) + offset`` as one writes it.

    >>> subscript([(100, "i"), (1, "j"), (-2, "k")], 7), subscript([], 0)
    ('100*i + j - 2*k + 7', '0')
    """
    parts = [(n, name if abs(n) == 1 else f"{abs(n)}*{name}") for n, name in terms if n]
    parts += [(offset, str(abs(offset)))] if offset else []
    text = "".join(f" {'-' if sign < 0 else '+'} {part}" for sign, part in parts)
    return (text[3:] if text.startswith(" + ") else text.replace(" - ", "-", 1)) or "0"
