"""The kernel of a product's epilogue, which runs once for each element of the product.

It is the kernel of the nest without a load of the product: that is in a register before the kernel begins.
"""

from __future__ import annotations

from dualflow.core.records import NamedTuple, replace
from dualflow.graph.ir import Value
from dualflow.schedule.kernel import KernelLaunch
from dualflow.schedule.kernel_statements import Register
from dualflow.schedule.kernel_writer import KernelWriter
from dualflow.schedule.nest import Nest, NestOperand
from dualflow.schedule.program_statements import PRODUCT_IN_REGISTERS, LaunchNest


class EpilogueLaunch(NamedTuple):
    """The kernel of an epilogue with its arguments, and the register that holds the product's element."""

    launch: KernelLaunch
    element: Register


class EpilogueWriter(KernelWriter):
    """Writes the kernel of an epilogue."""

    def write_epilogue(self, element: Value) -> EpilogueLaunch:
        """The kernel; ``element`` is the product in the body of the epilogue."""
        register = self._bind(element)
        return EpilogueLaunch(self.write(), register)


def epilogue_launch(epilogue: LaunchNest, nest: Nest) -> EpilogueLaunch:
    """The kernel of an epilogue, whose ``nest`` reads the product as buffer :data:`PRODUCT_IN_REGISTERS`."""
    element: Value = epilogue.node.attrs["body"].inputs[0]
    in_register = NestOperand(value=element)

    def operand(read: NestOperand) -> NestOperand:
        return in_register if read.access is not None and read.access.buffer == PRODUCT_IN_REGISTERS else read

    steps = tuple([replace(s, operands=tuple(map(operand, s.operands))) for s in nest.steps])
    return EpilogueWriter(replace(nest, steps=steps), lanes=1, by_work_items=True).write_epilogue(element)
