"""The registers that a statement writes and reads."""

from __future__ import annotations

from collections.abc import Sequence

from dualflow.schedule.kernel_statements import (
    BoundsCheck,
    Choose,
    Compute,
    ElementAccess,
    KernelStatement,
    Load,
    MaskedLoad,
    Operand,
    ReduceCombine,
    ReduceFinalize,
    ReduceHorizontal,
    ReduceInit,
    ReduceLanes,
    ReduceUpdate,
    Register,
    Repeat,
    Store,
)


def written(statement: KernelStatement) -> tuple[Register, ...]:
    """The registers that a statement writes itself, without those in its body."""
    match statement:
        case Compute() | Load() | ReduceFinalize():
            return (statement.register,)
        case Choose() | Repeat():
            return statement.registers
        case BoundsCheck():
            return statement.register, statement.inside
        case MaskedLoad():
            return (statement.load.register,)
        case ReduceInit() | ReduceUpdate() | ReduceCombine() | ReduceHorizontal() | ReduceLanes():
            return statement.accumulator
        case _:
            return ()


def read(statement: KernelStatement) -> tuple[Register, ...]:
    """The registers that a statement reads itself, without those in its body."""
    operands: Sequence[Operand] = ()
    match statement:
        case Compute():
            operands = statement.operands
        case Choose():
            operands = (statement.selector,)
        case Repeat():
            operands = statement.starts
        case Load(access=ElementAccess(gather_index=(position, _))):
            operands = (position,)
        case Store():
            operands = (statement.value,)
        case BoundsCheck():
            operands = (statement.position,)
        case MaskedLoad():
            operands = (statement.inside, *read(statement.load))
        case ReduceUpdate():
            operands = (*statement.accumulator, statement.value)
        case ReduceCombine():
            operands = (*statement.accumulator, *statement.other)
        case ReduceHorizontal() | ReduceFinalize():
            operands = statement.accumulator
    return tuple([operand for operand in operands if isinstance(operand, Register)])
