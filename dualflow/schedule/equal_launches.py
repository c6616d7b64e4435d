"""Equal launches: launches of one kernel with equal arguments, except for the buffers that they access.

The layers of a deep model have equal loop nests, so most launches of its program are equal to an earlier one.
Comparing two launches takes a tenth of the time of writing a kernel.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from dualflow.core.exact_equality import exact_attrs
from dualflow.graph.fused import IterationSpace
from dualflow.graph.ir import Graph
from dualflow.schedule.kernel import Argument, KernelLaunch
from dualflow.schedule.nest import Layout
from dualflow.schedule.program_statements import LaunchNest
from dualflow.sizes.size_functions import may_be_negative


def launch_key(statement: LaunchNest) -> Hashable | None:
    """A key that is equal to another statement's only if the launches are equal; None for negative strides.

    The buffer of an argument with a negative stride begins elsewhere than its layout, so that
    :func:`with_buffers_of` couldn't replace it.
    """
    body: Graph = statement.node.attrs["body"]
    space: IterationSpace = statement.node.attrs["space"]
    layouts = (*statement.inputs, *statement.outputs)
    strides = tuple([layout.strides for layout in layouts])
    if any(map(may_be_negative, [stride for part in strides for stride in part])):
        return None
    number = {value: i for i, value in enumerate(body.inputs)}
    nodes = []
    for node in body.nodes:
        inputs = tuple([number[value] for value in node.inputs])
        nodes.append((node.op, inputs, exact_attrs(node.attrs), space.index_axes.get(node)))
        for value in node.outputs:
            number[value] = len(number)
    places: dict[tuple[int, int], int] = {}
    return (
        tuple([(value.spec.dtype, value.spec.shape) for value in body.inputs]),
        tuple(nodes),
        tuple([number[value] for value in body.outputs]),
        (space.shape, space.reduced),
        strides,
        tuple([places.setdefault(_place(layout), len(places)) for layout in layouts]),
    )


def reads_forwards(launch: KernelLaunch) -> bool:
    """Whether no launch parameter is negative, as strides are in reversed loops.

    A reversed loop begins at an offset inside its buffer. That offset includes the operand's own, so
    :func:`with_buffers_of` can't replace the buffer.
    """
    joined = launch.join is None or reads_forwards(launch.join)
    return joined and not any(map(may_be_negative, launch.parameters))


def with_buffers_of(statement: LaunchNest, other: LaunchNest, launch: KernelLaunch) -> KernelLaunch:
    """``launch``, a launch of ``other``, with the buffers of the equal ``statement``."""
    locations = dict(zip(_places(other), _places(statement), strict=True))
    buffers = tuple([Argument(*locations[x.buffer, x.offset], x.dtype) for x in launch.buffers])
    join = None if launch.join is None else with_buffers_of(statement, other, launch.join)
    return launch._replace(buffers=buffers, join=join)


def _places(statement: LaunchNest) -> Iterator[tuple[int, int]]:
    return map(_place, (*statement.inputs, *statement.outputs))


def _place(layout: Layout) -> tuple[int, int]:
    return layout.buffer, layout.offset
