"""Fusion: nodes that one loop nest can compute become one ``fused`` node, whose body is a graph.

A group of nodes has an iteration space: the axes that its loops run over. A value of the group has all of
these axes or, after a reduction, those that are not reduced. All reductions of a group have the same axes.
Groups are ordered by position: a group has a larger position than the producers of its operands, and a
smaller one than the consumers of its results. So the groups form no cycle. A group that may fail keeps its
place among the effects. The walk is linear in the number of operands.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Mapping, Sequence

from dualflow.core.symbolic_sizes import typical
from dualflow.graph.axes import base_of, dims_of_base, is_generated, is_view, sizes
from dualflow.graph.column_folds import folds_columns
from dualflow.graph.cost_model import CPU, CostModel
from dualflow.graph.failing import may_fail
from dualflow.graph.fused import Axes, axis_set, index_shape, input_axes, output_axes, reduced_axes
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.loop_dtypes import computed_in_loops
from dualflow.graph.passes.build_fused import FIRST, Group, Staged, regroup
from dualflow.graph.run_time_sizes import binds_sizes
from dualflow.graph.scalars import is_scalar_control
from dualflow.ops.op_kinds import Elementwise, Gather, Reduce, Scan


def fuse(graph: Graph, costs: CostModel = CPU) -> Graph:
    """The graph with its loop nests as fused nodes.

    Fusing fewer, larger loops keeps intermediate values in registers instead of memory.
    """
    return regroup(graph, partition(graph, costs), costs)


def partition(graph: Graph, costs: CostModel = CPU) -> list[Group]:
    """The groups of nodes that become the loop nests of ``graph``; other nodes stand alone."""
    return _Partition(graph, costs).groups()


def fusable(node: Node) -> bool:
    """Whether a loop nest can compute ``node``, by its form and dtypes."""
    if not isinstance(node.op.kind, Elementwise | Reduce | Scan | Gather) or node.effect is not None:
        return is_scalar_control(node)
    return computed_in_loops(node)


class _Partition:
    """The groups of one graph, found in one walk."""

    def __init__(self, graph: Graph, costs: CostModel) -> None:
        self.graph, self.costs = graph, costs
        self.users = graph.users()
        self.results = set(graph.results)
        self.bases = _bases(graph)
        self.group_of: dict[Node | None, Group] = {}
        self.index: dict[Node, int] = {}
        self.readers: dict[Value, list[Node]] = {}
        self.effects = [i for i, n in enumerate(graph.nodes) if n.effect is not None]
        self.failing = {n for n in graph.nodes if self.effects and may_fail(n)}
        self.too_long: set[tuple[Group, Group]] = set()
        self.measures = [i for i, n in enumerate(graph.nodes) if binds_sizes(n)]

    def groups(self) -> list[Group]:
        for index, node in enumerate(self.graph.nodes):
            self.index[node] = index
            if fusable(node) and (not is_generated(node.output) or self._needs_memory(node)):
                self._place(node, index)
            elif not is_view(node):
                self._note_reads(node, index)
        found = list(dict.fromkeys(self.group_of.values()))
        for group in found:
            group.nodes.sort(key=self.index.__getitem__)
        return found

    def _needs_memory(self, node: Node) -> bool:
        """Whether a generated value is read by something that can't make its own."""
        users = self.users.get(node.output, ())
        return node.output in self.results or any(
            not fusable(u) or is_view(u) or isinstance(u.op.kind, Scan | Gather) for u in users
        )

    def _maker(self, value: Value) -> Group | None:
        return self.group_of.get(self.bases[value])

    def _note_reads(self, node: Node, position: int, home: Group | None = None) -> None:
        for value in node.inputs:
            maker = self._maker(value)
            if maker is not None and maker is not home:
                maker.reader = min(maker.reader, position)
            elif maker is None and home is not None:
                self.readers.setdefault(value, []).append(node)

    def _place(self, node: Node, index: int) -> None:
        home = self._home(node, index)
        if home is None:
            home = _new_group(node, index)
        self.group_of[node] = home
        if node in self.failing:  # what is printed before it, or not any more, stays so
            home.reader = min([home.reader, *self.effects[bisect(self.effects, index) :][:1]])
        for other in dict.fromkeys(map(self._maker, node.inputs)):
            if other is not None and other is not home:
                self._merge(home, other, node, index)
        self._note_reads(node, home.position, home)

    def _home(self, node: Node, index: int) -> Group | None:
        """The group that takes ``node``: one that it reads from, else one that reads what it reads."""
        makers = dict.fromkeys(g for g in map(self._maker, node.inputs) if g is not None)
        for group in sorted(makers, key=lambda g: -len(g.nodes)):
            if self._join(group, node, index):
                return group
        if makers:
            return None
        for value in () if _grows(node) else node.inputs:
            for reader in self.readers.get(value, ())[-2:]:
                group = self.group_of[reader]
                if not self._folded_apart(group, node) and self._join(group, node, index):
                    return group
        return None

    def _folded_apart(self, group: Group, node: Node) -> bool:
        """Whether a fold reads ``node`` that ``group`` can't take, for its own are over other axes."""
        folds = [n for n in self.users.get(node.output, ()) if isinstance(n.op.kind, Reduce)]
        own = self._embed(group, node) if folds and group.reduced else None
        if own is None or isinstance(node.op.kind, Reduce):
            return False
        reduced = [reduced_axes(fold, own) for fold in folds]
        return any(axes and axes != group.reduced for axes in reduced)

    def _join(self, group: Group, node: Node, index: int) -> bool:
        if group.alone or isinstance(node.op.kind, Scan):
            return False
        slot = self._slot([group], node, index)
        own = (
            self._embed(group, node) if slot is not None and len(group.nodes) < self.costs.most_ops else None
        )
        if slot is None or own is None or not self._fits(group, node, own):
            return False
        reduced = group.reduced | reduced_axes(node, own)
        staged = self._staged(node, own, group.everything - reduced, group.stage)
        if staged.runs > self.costs.most_stages:
            return False
        group.position = slot
        group.add(node, own, staged)
        return True

    def _staged(self, node: Node, own: Axes, kept: frozenset[int], stage: Mapping[Node, int]) -> Staged:
        """The stages of ``node`` in a group whose other nodes are available from ``stage`` on."""
        ready = max([stage.get(base, 0) for v in node.inputs if (base := self.bases[v])], default=0)
        if reduced_axes(node, own):
            return Staged(ready + 1, ready + 1)
        return Staged(ready, ready + (not axis_set(own) <= kept))

    def _slot(self, groups: Sequence[Group], node: Node, index: int) -> int | None:
        """A position at which ``groups`` and ``node`` can run as one, or None."""
        top = max(g.position for g in groups)
        if self._source(node, groups) < top and all(g.reader > top for g in groups):
            return top
        return index if all(g.reader > index for g in groups) else None

    def _source(self, node: Node, inside: Sequence[Group]) -> int:
        """The largest position of what ``node`` reads from outside ``inside``, or has to come after."""
        found = -1
        if self.measures:  # its sizes, or those of views it reads, may be told there
            found = max([found, *self.measures[: bisect(self.measures, self.index[node])][-1:]])
        if node in self.failing:
            found = max([found, *self.effects[: bisect(self.effects, self.index[node])][-1:]])
        for value in node.inputs:
            base, maker = self.bases[value], self._maker(value)
            if maker is None:
                found = max(found, -1 if base is None else self.index[base])
            elif maker not in inside:
                found = max(found, maker.position)
        return found

    def _embed(self, group: Group, node: Node) -> Axes | None:
        """The axes of ``group`` on which the index of ``node`` lies; None where it lies on no such."""
        shape = index_shape(node)
        own: list[int | None] = [None] * len(shape)
        made = [(v, self._made_axes(group, v)) for v in node.inputs if self._maker(v) is group]
        if any(axes is None for _, axes in made) or self._looks_into(group, node):
            return None
        if not isinstance(node.op.kind, Gather):
            known = [axes for _, axes in made if axes is not None]
            hints = [group.read[v] for v in node.inputs if v in group.read and self._maker(v) is not group]
            if not all(_name(own, axes) for axes in known):
                return None
            for axes in hints:
                _name(own, axes)
        if not _complete(group, own, shape):
            return None
        placed = tuple(own)
        laid = dict(zip(node.inputs, input_axes(node, placed), strict=True))
        return placed if all(_agree(axes, laid[v]) for v, axes in made if axes is not None) else None

    def _looks_into(self, group: Group, node: Node) -> bool:
        """Whether ``node`` picks elements of a value that ``group`` makes.

        Anywhere, so it must be whole first.
        """
        return isinstance(node.op.kind, Gather) and self._maker(node.inputs[0]) is group

    def _made_axes(self, group: Group, value: Value) -> Axes | None:
        """The axes of a value that ``group`` makes, seen through views; None where a view hides them."""
        dims = dims_of_base(value)
        if dims is None:
            return None
        axes = group.made[base_of(value)]
        return tuple(None if d is None else axes[d] for d in dims)

    def _fits(self, group: Group, node: Node, own: Axes) -> bool:
        """Whether ``group`` with ``node`` is still one loop nest."""
        output = axis_set(output_axes(node, own))
        reduced = reduced_axes(node, own)
        if reduced:
            same = not group.reduced or group.reduced == reduced
            apart = _apart(group.shape, reduced) and self._waits(group, node)
            return axis_set(own) == group.everything and same and not apart
        if not group.reduced or output != group.kept:
            apart = _apart(group.shape, group.reduced) and self._waits(group, node)
            return output == group.everything and not apart
        return True

    def _waits(self, group: Group, node: Node) -> bool:
        """Whether ``node`` reads a value that ``group`` knows only when its reductions are done."""
        made = (group.made[b] for b in map(base_of, node.inputs) if b in group.made)
        return bool(group.reduced) and any(axis_set(axes) <= group.kept for axes in made)

    def _merge(self, home: Group, other: Group, node: Node, index: int) -> None:
        """Move the nodes of ``other``, which ``node`` of ``home`` reads from, into ``home`` if legal."""
        slot = self._slot([home, other], node, index)
        if (
            slot is None
            or home.alone
            or other.alone
            or len(home.nodes) + len(other.nodes) > self.costs.most_ops
        ):
            return
        mapping = self._match(home, other, node)
        if mapping is None:
            return
        moved = {n: tuple(None if a is None else mapping[a] for a in own) for n, own in other.own.items()}
        staged = self._staged_together(home, other, moved)
        if staged is None:
            return
        home.position, home.reader = slot, min(home.reader, other.reader)
        home.stage.update({n: staged[n].ready for n in home.nodes})
        for node_of_other, own in moved.items():
            home.add(node_of_other, own, staged[node_of_other])
            self.group_of[node_of_other] = home
        home.runs = max(s.runs for s in staged.values())

    def _staged_together(
        self, home: Group, other: Group, moved: dict[Node, Axes]
    ) -> dict[Node, Staged] | None:
        """The stages of all nodes once ``other`` is part of ``home``; None where they are too many.

        Groups only grow, so two that have been too long for one kernel stay so.
        """
        if (home, other) in self.too_long:
            return None
        own = home.own | moved
        reduced = home.reduced.union(*[reduced_axes(n, axes) for n, axes in moved.items()])
        stage: dict[Node, int] = {}
        staged: dict[Node, Staged] = {}
        for node in sorted(own, key=self.index.__getitem__):
            staged[node] = self._staged(node, own[node], home.everything - reduced, stage)
            stage[node] = staged[node].ready
            if staged[node].runs > self.costs.most_stages:
                self.too_long.add((home, other))
                return None
        return staged

    def _match(self, home: Group, other: Group, node: Node) -> dict[int, int] | None:
        """For each axis of ``other`` the axis of ``home`` that it is; None where they can't be one nest."""
        if sorted(home.shape, key=hash) != sorted(other.shape, key=hash) or self._looks_into(other, node):
            return None
        laid = zip(node.inputs, input_axes(node, home.own[node]), strict=True)
        pairs = [(self._made_axes(other, v), axes) for v, axes in laid if self._maker(v) is other]
        fewer, more = sorted((home.read, other.read), key=len)
        pairs += [(other.read[v], home.read[v]) for v in fewer if v in more]
        mapping: dict[int, int] = {}
        for theirs, ours in pairs:
            if theirs is None or not _pair(mapping, theirs, ours):
                return None
        mapping = _fill(mapping, other.shape, home.shape)
        moved = frozenset(mapping[a] for a in other.reduced) if mapping or not other.shape else None
        if moved is None or any(other.shape[a] != home.shape[b] for a, b in mapping.items()):
            return None
        one_reduction = not moved or not home.reduced or moved == home.reduced
        return (
            mapping
            if one_reduction and (not other.shape or not _apart(home.shape, moved | home.reduced))
            else None
        )


def _bases(graph: Graph) -> dict[Value, Node | None]:
    """For each value the node whose elements it shows, itself or through views; None for those of inputs."""
    found: dict[Value, Node | None] = dict.fromkeys(graph.inputs)
    for node in graph.nodes:
        base = found[node.inputs[0]] if is_view(node) else node
        for value in node.outputs:
            found[value] = base
    return found


def _apart(shape: Sequence[int], reduced: frozenset[int]) -> bool:
    """Whether what waits for a reduction over these axes is another loop nest."""
    axes = range(len(shape))
    return reduced == frozenset(axes) or folds_columns(shape, axes, reduced)


def _new_group(node: Node, index: int) -> Group:
    shape = index_shape(node)
    space_shape = tuple(d for d in shape if d != 1)
    axes = iter(range(len(space_shape)))
    group = Group(index, space_shape)
    own = tuple(None if d == 1 else next(axes) for d in shape)
    group.add(node, own, Staged(1, 1) if reduced_axes(node, own) else FIRST)
    return group


def _grows(node: Node) -> bool:
    """Whether a node has more elements than all it reads, which who folds them need not write to memory."""
    bases = {base_of(v) for v in node.inputs}
    read = sum(typical(math.prod(sizes(v))) for v in bases)
    return typical(math.prod(sizes(node.output))) > max(read, 1)


def _name(own: list[int | None], axes: Axes) -> bool:
    """Name the dims of ``own``, counted from the last, by ``axes``; False where two names meet."""
    for i, axis in enumerate(axes, start=len(own) - len(axes)):
        if axis is not None:
            if own[i] not in (None, axis) or (own[i] is None and axis in own):
                return False
            own[i] = axis
    return True


def _complete(group: Group, own: list[int | None], shape: Sequence[int]) -> bool:
    """Name the dims that are left after free axes of their size; False where there is none."""
    free = [a for a in range(len(group.shape)) if a not in own]
    for i, size in enumerate(shape):
        if size == 1:
            own[i] = None
        elif own[i] is None:
            axis = next((a for a in free if group.shape[a] == size), None)
            if axis is None:
                return False
            free.remove(axis)
            own[i] = axis
        elif group.shape[own[i]] != size:  # type: ignore[index]  # not None: tested above
            return False
    return True


def _agree(made: Axes, laid: Axes) -> bool:
    return all(a is None or a == b for a, b in zip(made, laid, strict=True))


def _pair(mapping: dict[int, int], theirs: Axes, ours: Axes) -> bool:
    for a, b in zip(theirs, ours, strict=True):
        if a is not None and b is not None and (mapping.setdefault(a, b) != b):
            return False
    return len(set(mapping.values())) == len(mapping)


def _fill(mapping: dict[int, int], theirs: Sequence[int], ours: Sequence[int]) -> dict[int, int]:
    """``mapping`` with the axes that nothing relates paired in order, by size where sizes agree."""
    free = [b for b in range(len(ours)) if b not in mapping.values()]
    for a in range(len(theirs)):
        if a not in mapping:
            b = next((b for b in free if ours[b] == theirs[a]), free[0])
            free.remove(b)
            mapping[a] = b
    return mapping
