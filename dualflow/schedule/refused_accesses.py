"""Errors for memory accesses that are not proved to be inside their buffers."""

from __future__ import annotations

from dualflow.core.errors import InternalError
from dualflow.graph.ir import Node
from dualflow.schedule import kernel_statements as ks
from dualflow.schedule.kernel import KernelLaunch
from dualflow.schedule.kernel_statements import ElementAccess, KernelStatement


def refused(launch: KernelLaunch, statement: int, node: Node, why: str) -> InternalError:
    """The error for a statement of a kernel with an access that is not proved to be inside its buffer."""
    return unsafe(node, f"{why}:\n    {shown(list(ks.walk_kernel(launch.kernel.body))[statement], launch)}")


def unsafe(node: Node, why: str) -> InternalError:
    """The error for code of ``node`` that would access memory outside its buffers."""
    where = f"\n{node.origin}" if node.origin else ""
    name = "+".join(n.op.name for n in node.attrs["body"].nodes) if "body" in node.attrs else node.op.name
    return InternalError(
        f"the compiled {name} is refused: {why}\n"
        f"Please report this. Until it is fixed, df.config.set_backend('numpy') runs the program.{where}"
    )


def shown(statement: KernelStatement, launch: KernelLaunch | None = None) -> str:
    """An access as text, with the values of launch parameters if ``launch`` is set."""

    def parameter(n: ks.LaunchParameter | None) -> str:
        if n is None:
            return "1"
        if launch is None:
            return f"parameter {n.number}"
        return str(launch.parameters[n.number])

    def element(access: ElementAccess) -> str:
        begins = {edge.loop for edge in access.block_starts}
        parts = [] if access.offset is None else [parameter(access.offset)]
        parts += [
            f"(loop {loop} - begin of its block) * {parameter(n)}"
            if loop in begins
            else f"loop {loop} * {parameter(n)}"
            for loop, n in access.terms
        ]
        if access.gather_index is not None:
            parts.append(f"register {access.gather_index[0].number} * {parameter(access.gather_index[1])}")
        return f"buffer {access.buffer} [{' + '.join(parts) or '0'}]"

    match statement:
        case ks.Load(register, access):
            return f"Load register {register.number} = {element(access)}"
        case ks.Store(access):
            return f"Store {element(access)}"
        case ks.MaskedLoad(load, inside):
            return f"{shown(load, launch)} where register {inside.number}"
        case ks.TransposedTile(tile, access):
            return f"Transpose a tile of {element(access)} to buffer {tile}"
        case ks.For(loop, begin, end) | ks.RowGroups(loop, begin, end):
            return f"For loop {loop} from {begin} to {end}"
    return f"{type(statement).__name__} {getattr(statement, 'loop', '')}".rstrip()
