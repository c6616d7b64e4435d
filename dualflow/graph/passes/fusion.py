"""Fusion: nodes that one loop nest can compute become one ``fused`` node, whose body is a graph.

A group of nodes has an iteration space: the axes that its loops run over. A value of the group has all of
these axes or, after a reduction, those that are not reduced. All reductions of a group have the same axes.
Groups are ordered by position: a group has a larger position than the producers of its operands, and a
smaller one than the consumers of its results. So the groups form no cycle. A group that may fail keeps its
place among the effects. The walk is linear in the number of operands.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping, Sequence
from typing import Final

from dualflow.graph.column_reductions import is_column_reduction
from dualflow.graph.cost_model import CPU, CostModel
from dualflow.graph.failing import may_fail
from dualflow.graph.fused import Axes, axis_set, index_shape, operands_with_axes, output_axes, reduced_axes
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.loop_dtypes import computed_in_loops
from dualflow.graph.passes.build_fused import FIRST, Group, Stages, regroup
from dualflow.graph.scalars import is_scalar_control
from dualflow.graph.symbolic_size_ops import binds_sizes
from dualflow.graph.views import base_of, dims_of_base, is_generated, is_view
from dualflow.ops.op_kinds import Elementwise, Gather, Reduce, Scan, View
from dualflow.sizes.symbolic_sizes import typical

_LOOP_KINDS: Final = (Elementwise, Reduce, Scan, Gather)
"""The kinds of ops that loop nests compute."""
_WITHOUT_REDUCTIONS: Final = Stages(0, 0)
"""The stages of a node in a group without reductions."""


def fuse(graph: Graph, costs: CostModel = CPU) -> Graph:
    """``graph`` with its loop nests as fused nodes.

    Fewer, larger loops keep intermediate values in registers instead of memory.
    """
    return regroup(graph, partition(graph, costs), costs)


def partition(graph: Graph, costs: CostModel = CPU) -> list[Group]:
    """The groups of nodes of ``graph`` that become its loop nests; other nodes belong to no group."""
    return _Partition(graph, costs).groups()


def fusable(node: Node) -> bool:
    """Whether a loop nest can compute ``node``, by its op kind and dtypes."""
    if not isinstance(node.op.kind, _LOOP_KINDS) or node.effect is not None:
        return is_scalar_control(node)
    return computed_in_loops(node)


class _Partition:
    """Partitions the nodes of one graph into groups, in one walk."""

    def __init__(self, graph: Graph, costs: CostModel) -> None:
        self.graph, self.costs = graph, costs
        self.users = graph.users()
        self.results = set(graph.results)
        self.bases = _bases(graph)
        self.group_of: dict[Node | None, Group] = {}
        self.index: dict[Node, int] = {}
        self.readers_of_input: dict[Value, list[Node]] = {}
        self.effects = [i for i, n in enumerate(graph.nodes) if n.effect is not None]
        self.failing: set[Node] = set()
        self.too_long: set[tuple[Group, Group]] = set()
        self.size_bindings = [i for i in self.effects if binds_sizes(graph.nodes[i])]
        self.reduced_values = {v for n in graph.nodes if isinstance(n.op.kind, Reduce) for v in n.inputs}

    def groups(self) -> list[Group]:
        for index, node in enumerate(self.graph.nodes):
            self.index[node] = index
            if fusable(node) and (not is_generated(node.output) or self._needs_memory(node)):
                self._add_to_group(node, index)
            elif not is_view(node):
                self._record_reads(node, index)
        groups = list(dict.fromkeys(self.group_of.values()))
        for group in groups:
            group.nodes.sort(key=self.index.__getitem__)
        return groups

    def _needs_memory(self, node: Node) -> bool:
        """Whether a generated value has a consumer that can't recompute it."""
        users = self.users.get(node.output, ())
        return node.output in self.results or any(
            not fusable(u) or is_view(u) or isinstance(u.op.kind, Scan | Gather) for u in users
        )

    def _producer_group(self, value: Value) -> Group | None:
        return self.group_of.get(self.bases[value])

    def _producer_groups(self, node: Node) -> list[Group]:
        groups: dict[Group, None] = {}
        for value in node.inputs:
            group = self.group_of.get(self.bases[value])
            if group is not None:
                groups[group] = None
        return list(groups)

    def _record_reads(self, node: Node, position: int, consumer_group: Group | None = None) -> None:
        for value in node.inputs:
            producer_group = self.group_of.get(self.bases[value])
            if producer_group is None:
                if consumer_group is not None:
                    self.readers_of_input.setdefault(value, []).append(node)
            elif producer_group is not consumer_group and position < producer_group.first_consumer:
                producer_group.first_consumer = position

    def _add_to_group(self, node: Node, index: int) -> None:
        if self.effects and may_fail(node):
            self.failing.add(node)
        producer_groups = self._producer_groups(node)
        group = self._group_for(node, index, producer_groups)
        if group is None:
            group = _new_group(node, index)
        self.group_of[node] = group
        if node in self.failing:  # effects before it stay before it
            following = bisect(self.effects, index)
            if following < len(self.effects):
                group.first_consumer = min(group.first_consumer, self.effects[following])
        for producer_group in producer_groups:
            if producer_group is not group and not self._is_summed_elsewhere(producer_group, node):
                self._merge(group, producer_group, node, index)
        self._record_reads(node, group.position, group)

    def _group_for(self, node: Node, index: int, producer_groups: Sequence[Group]) -> Group | None:
        """The group that ``node`` joins: one that computes an operand, or else one that reads it too."""
        if len(producer_groups) > 1:
            producer_groups = sorted(producer_groups, key=lambda g: -len(g.nodes))
        for group in producer_groups:
            if not self._is_summed_elsewhere(group, node) and self._join(group, node, index):
                return group
        if producer_groups:
            return None
        for value in () if self._is_expanding(node) else node.inputs:
            for consumer in self.readers_of_input.get(value, ())[-2:]:
                group = self.group_of[consumer]
                if not self._has_other_reduction(group, node) and self._join(group, node, index):
                    return group
        return None

    def _is_summed_elsewhere(self, group: Group, node: Node) -> bool:
        """Whether ``group`` would store a broadcast for a reduction of another kernel."""
        return self._has_other_reduction(group, node) and self._is_expanding(node)

    def _is_expanding(self, node: Node) -> bool:
        """Whether the result of a node has more elements than its operands, as a broadcast has."""
        read = sum([typical(base.spec.size) for base in set(map(base_of, node.inputs))])
        return typical(node.output.spec.size) > max(read, 1)

    def _has_other_reduction(self, group: Group, node: Node) -> bool:
        """Whether a reduction reads ``node``, and can't join ``group``, whose reductions have other axes."""
        if not group.reduced or node.output not in self.reduced_values or isinstance(node.op.kind, Reduce):
            return False
        index_axes = self._fit_axes(group, node)
        if index_axes is None:
            return False
        reductions = [n for n in self.users[node.output] if isinstance(n.op.kind, Reduce)]
        reduced = [reduced_axes(reduction, index_axes) for reduction in reductions]
        return any(axes and axes != group.reduced for axes in reduced)

    def _join(self, group: Group, node: Node, index: int) -> bool:
        if group.is_scan or isinstance(node.op.kind, Scan):
            return False
        if len(group.nodes) >= self.costs.max_ops:
            return False
        position = self._common_position([group], node, index)
        if position is None:
            return False
        index_axes = self._fit_axes(group, node)
        if index_axes is None:
            return False
        own_reduced = reduced_axes(node, index_axes)
        if not self._fits(group, node, index_axes, own_reduced):
            return False
        reduced = group.reduced | own_reduced
        staged = _WITHOUT_REDUCTIONS
        if reduced:
            staged = self._stages_of(node, index_axes, group.all_axes - reduced, group.stage)
        if staged.number > self.costs.max_stages:
            return False
        group.position = position
        group.add(node, index_axes, staged)
        return True

    def _stages_of(
        self, node: Node, index_axes: Axes, parallel_axes: frozenset[int], stage: Mapping[Node, int]
    ) -> Stages:
        """The stages of ``node`` in a group.

        ``stage`` has the stage from which on each other node is available.
        """
        available_from = 0
        for value in node.inputs:
            base = self.bases[value]
            if base is not None:
                available_from = max(available_from, stage.get(base, 0))
        if reduced_axes(node, index_axes):
            return Stages(available_from + 1, available_from + 1)
        return Stages(available_from, available_from + (not axis_set(index_axes) <= parallel_axes))

    def _common_position(self, groups: Sequence[Group], node: Node, index: int) -> int | None:
        """A position at which ``groups`` and ``node`` can run as one group; None if there is none."""
        top = max([g.position for g in groups])
        first_consumer = min([g.first_consumer for g in groups])
        if first_consumer > top and self._last_dependency(node, groups) < top:
            return top
        return index if first_consumer > index else None

    def _last_dependency(self, node: Node, inside: Sequence[Group]) -> int:
        """The largest position of the nodes and groups that ``node`` depends on, except groups ``inside``."""
        last = -1
        if self.size_bindings:  # its sizes, or those of views it reads, may be bound there
            last = _last_before(self.size_bindings, self.index[node])
        if node in self.failing:
            last = max(last, _last_before(self.effects, self.index[node]))
        for value in node.inputs:
            base = self.bases[value]
            if base is None:
                continue
            producer_group = self.group_of.get(base)
            if producer_group is None:
                last = max(last, self.index[base])
            elif producer_group not in inside:
                last = max(last, producer_group.position)
        return last

    def _fit_axes(self, group: Group, node: Node) -> Axes | None:
        """The loop axes of ``group`` that the axes of ``node`` can run along; None if they don't fit."""
        is_gather = isinstance(node.op.kind, Gather)
        if is_gather and self._gathers_from(group, node):
            return None
        produced: list[tuple[Value, Axes]] = []
        hints: list[Axes] = []
        for value in node.inputs:
            if self.group_of.get(self.bases[value]) is group:
                axes = self._produced_axes(group, value)
                if axes is None:
                    return None
                produced.append((value, axes))
            elif value in group.operand_axes:
                hints.append(group.operand_axes[value])
        shape = index_shape(node)
        if produced and not is_gather and (common := _axes_of_all(produced, shape)) is not None:
            return common
        loops: list[int | None] = [None] * len(shape)
        if not is_gather:
            for _, axes in produced:
                if not _assign_axes(loops, axes):
                    return None
            for axes in hints:
                _assign_axes(loops, axes)
        if not _complete(group, loops, shape):
            return None
        index_axes = tuple(loops)
        if produced:
            read_axes = dict(operands_with_axes(node, index_axes))
            for value, axes in produced:
                if not _agree(axes, read_axes[value]):
                    return None
        return index_axes

    def _gathers_from(self, group: Group, node: Node) -> bool:
        """Whether ``node`` gathers from a value that ``group`` computes, and which must be complete first."""
        return isinstance(node.op.kind, Gather) and self._producer_group(node.inputs[0]) is group

    def _produced_axes(self, group: Group, value: Value) -> Axes | None:
        """The loop axes of a value that ``group`` computes, or a view of one; None if the view mixes axes."""
        axes = group.result_axes.get(value)
        if axes is not None:
            return axes
        dims = dims_of_base(value)
        if dims is None:
            return None
        axes = group.result_axes[base_of(value)]
        return tuple([None if d is None else axes[d] for d in dims])

    def _fits(self, group: Group, node: Node, index_axes: Axes, reduced: frozenset[int]) -> bool:
        """Whether one loop nest can compute ``group`` and ``node``, which reduces these axes."""
        if reduced:
            same = not group.reduced or group.reduced == reduced
            separate = _is_split_after(group.shape, reduced) and self._reads_reduction_result(group, node)
            return axis_set(index_axes) == group.all_axes and same and not separate
        output = axis_set(output_axes(node, index_axes))
        if not group.reduced:
            return output == group.all_axes
        if output != group.parallel_axes:
            separate = _is_split_after(group.shape, group.reduced) and self._reads_reduction_result(
                group, node
            )
            return output == group.all_axes and not separate
        return True

    def _reads_reduction_result(self, group: Group, node: Node) -> bool:
        """Whether ``node`` reads a value of ``group`` that is computed after its reductions."""
        operand_axes = (group.result_axes[b] for b in map(base_of, node.inputs) if b in group.result_axes)
        return bool(group.reduced) and any(axis_set(axes) <= group.parallel_axes for axes in operand_axes)

    def _merge(self, target: Group, other: Group, node: Node, index: int) -> None:
        """Move the nodes of ``other``, which computes an operand of ``node``, into ``target``, if legal."""
        position = self._common_position([target, other], node, index)
        if (
            position is None
            or target.is_scan
            or other.is_scan
            or len(target.nodes) + len(other.nodes) > self.costs.max_ops
        ):
            return
        mapping = self._match(target, other, node)
        if mapping is None:
            return
        new_index_axes = {
            n: tuple([None if a is None else mapping[a] for a in index_axes])
            for n, index_axes in other.index_axes.items()
        }
        staged = self._stages_if_merged(target, other, new_index_axes)
        if staged is None:
            return
        target.position, target.first_consumer = position, min(target.first_consumer, other.first_consumer)
        for node_of_target in target.nodes:
            target.stage[node_of_target] = staged[node_of_target].available_from
        for node_of_other, index_axes in new_index_axes.items():
            target.add(node_of_other, index_axes, staged[node_of_other])
            self.group_of[node_of_other] = target
        target.stages = max([s.number for s in staged.values()])

    def _stages_if_merged(
        self, target: Group, other: Group, new_index_axes: dict[Node, Axes]
    ) -> dict[Node, Stages] | None:
        """The stages of all nodes if ``other`` becomes part of ``target``; None if they are too many.

        Groups only grow, so two groups that were too long for one kernel stay too long.
        """
        if (target, other) in self.too_long:
            return None
        index_axes = target.index_axes | new_index_axes
        if not target.reduced and not other.reduced:
            return dict.fromkeys(index_axes, _WITHOUT_REDUCTIONS)
        reduced = target.reduced.union(*[reduced_axes(n, axes) for n, axes in new_index_axes.items()])
        stage: dict[Node, int] = {}
        staged: dict[Node, Stages] = {}
        for node in sorted(index_axes, key=self.index.__getitem__):
            staged[node] = self._stages_of(node, index_axes[node], target.all_axes - reduced, stage)
            stage[node] = staged[node].available_from
            if staged[node].number > self.costs.max_stages:
                self.too_long.add((target, other))
                return None
        return staged

    def _match(self, target: Group, other: Group, node: Node) -> dict[int, int] | None:
        """The axis of ``target`` that each axis of ``other`` becomes; None if they can't be one nest."""
        if target.shape != other.shape and sorted(target.shape, key=hash) != sorted(other.shape, key=hash):
            return None
        if self._gathers_from(other, node):
            return None
        pairs = [
            (self._produced_axes(other, v), axes)
            for v, axes in operands_with_axes(node, target.index_axes[node])
            if self.group_of.get(self.bases[v]) is other
        ]
        fewer, more = sorted((target.operand_axes, other.operand_axes), key=len)
        pairs += [(other.operand_axes[v], target.operand_axes[v]) for v in fewer if v in more]
        mapping: dict[int, int] = {}
        for theirs, ours in pairs:
            if theirs is None or not _pair(mapping, theirs, ours):
                return None
        mapping = _fill(mapping, other.shape, target.shape)
        reduced = frozenset([mapping[a] for a in other.reduced]) if mapping or not other.shape else None
        if reduced is None or any(other.shape[a] != target.shape[b] for a, b in mapping.items()):
            return None
        one_reduction = not reduced or not target.reduced or reduced == target.reduced
        if one_reduction and (not other.shape or not _is_split_after(target.shape, reduced | target.reduced)):
            return mapping
        return None


def _bases(graph: Graph) -> dict[Value, Node | None]:
    """For each value, the node that computes its elements, through views; None for inputs."""
    bases: dict[Value, Node | None] = dict.fromkeys(graph.inputs)
    for node in graph.nodes:
        base = bases[node.inputs[0]] if isinstance(node.op.kind, View) else node
        for value in node.outputs:
            bases[value] = base
    return bases


def _is_split_after(shape: Sequence[int], reduced: frozenset[int]) -> bool:
    """Whether consumers of a reduction over these axes are in another loop nest."""
    axes = range(len(shape))
    return reduced == frozenset(axes) or is_column_reduction(shape, axes, reduced)


def _new_group(node: Node, index: int) -> Group:
    shape = index_shape(node)
    loops: list[int] = []
    axes: list[int | None] = []
    for size in shape:
        is_loop = size != 1
        axes.append(len(loops) if is_loop else None)
        if is_loop:
            loops.append(size)
    group, index_axes = Group(index, tuple(loops)), tuple(axes)
    group.add(node, index_axes, Stages(1, 1) if reduced_axes(node, index_axes) else FIRST)
    return group


def _last_before(positions: Sequence[int], index: int) -> int:
    """The last of the sorted ``positions`` up to ``index``; -1 if there is none."""
    count = bisect(positions, index)
    return positions[count - 1] if count else -1


def _axes_of_all(operands: Sequence[tuple[Value, Axes]], shape: Sequence[int]) -> Axes | None:
    """The loop axes of operands that have the same ones, one for each axis of ``shape``, which is theirs.

    None if there is another operand.
    """
    axes = operands[0][1]
    for value, others in operands:
        if others != axes or (value.spec.shape is not shape and value.spec.shape != shape):
            return None
    return None if None in axes else axes


def _assign_axes(loops: list[int | None], axes: Axes) -> bool:
    """Set the last entries of ``loops`` to ``axes``; returns False on a conflict."""
    for i, axis in enumerate(axes, start=len(loops) - len(axes)):
        if axis is not None:
            if loops[i] not in (None, axis) or (loops[i] is None and axis in loops):
                return False
            loops[i] = axis
    return True


def _complete(group: Group, loops: list[int | None], shape: Sequence[int]) -> bool:
    """Give each axis in ``loops`` without a loop axis a free one of equal size.

    Returns False if none is left.
    """
    free = [a for a in range(len(group.shape)) if a not in loops]
    for i, size in enumerate(shape):
        if size == 1:
            loops[i] = None
        elif loops[i] is None:
            axes = [a for a in free if group.shape[a] == size]
            if not axes:
                return False
            free.remove(axes[0])
            loops[i] = axes[0]
        elif group.shape[loops[i]] != size:  # type: ignore[index]  # not None: tested above
            return False
    return True


def _agree(axes: Axes, read_axes: Axes) -> bool:
    return axes == read_axes or all(a is None or a == b for a, b in zip(axes, read_axes, strict=True))


def _pair(mapping: dict[int, int], theirs: Axes, ours: Axes) -> bool:
    for a, b in zip(theirs, ours, strict=True):
        if a is not None and b is not None and (mapping.setdefault(a, b) != b):
            return False
    return len(set(mapping.values())) == len(mapping)


def _fill(mapping: dict[int, int], theirs: Sequence[int], ours: Sequence[int]) -> dict[int, int]:
    """``mapping`` from axes to axes, with the other axes mapped to free ones, of equal size if possible."""
    free = [b for b in range(len(ours)) if b not in mapping.values()]
    for a in range(len(theirs)):
        if a not in mapping:
            b = next((b for b in free if ours[b] == theirs[a]), free[0])
            free.remove(b)
            mapping[a] = b
    return mapping
