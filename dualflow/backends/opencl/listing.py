"""The kernels of a device program as text, with the names that the steps of a timed call have."""

from __future__ import annotations

from collections.abc import Iterator

from dualflow.backends.opencl.dialect import PREAMBLE
from dualflow.backends.opencl.program import DeviceProgram
from dualflow.backends.opencl.steps import Launch, walk_steps
from dualflow.graph.fused import body_of, computed_op_names
from dualflow.graph.origin import line_label, origins_of


def kernel_names(program: DeviceProgram) -> dict[str, str]:
    """The name of each kernel by its text, ``g0``, ``g1`` and so on: kernels of the CPU are ``k0``, ``k1``.

    Kernels of equal text are compiled once, and have one name.
    """
    texts = dict.fromkeys(launch.kernel.text for launch in _launches(program))
    return {text: f"g{number}" for number, text in enumerate(texts)}


def listing(program: DeviceProgram) -> str:
    """The kernels as OpenCL C without their preamble, each after its name, its ops and the user's lines."""
    first_launches: dict[str, Launch] = {}
    for launch in _launches(program):
        first_launches.setdefault(launch.kernel.text, launch)
    return "\n".join(
        f"// {name}: {_description(first_launches[text])}\n{text.removeprefix(PREAMBLE).lstrip()}"
        for text, name in kernel_names(program).items()
    )


def _launches(program: DeviceProgram) -> Iterator[Launch]:
    return (step for step in walk_steps(program.steps) if isinstance(step, Launch))


def _description(launch: Launch) -> str:
    """The ops of a launch and the user's lines."""
    name = computed_op_names(launch.node)
    ops = name if launch.nodes else f"partial results of {name}"
    body = body_of(launch.node)
    nodes = (launch.node, *(() if body is None else body.nodes))
    lines = ", ".join(dict.fromkeys(map(line_label, origins_of(nodes))))
    return f"{ops} ({lines})" if lines else ops
