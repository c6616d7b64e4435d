"""Which registers a statement gives values, and which it needs."""

from __future__ import annotations

from collections.abc import Sequence

from dualflow.schedule.loop_program import (
    BoundsCheck,
    Choose,
    Compute,
    Load,
    MaskedLoad,
    Operand,
    Place,
    ReduceCombine,
    ReduceFinalize,
    ReduceHorizontal,
    ReduceInit,
    ReduceLanes,
    ReduceUpdate,
    Register,
    Repeat,
    Statement,
    Store,
)


def written(statement: Statement) -> tuple[Register, ...]:
    """The registers that a statement gives a value, those inside of it left out."""
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


def read(statement: Statement) -> tuple[Register, ...]:
    """The registers whose values a statement needs, those inside of it left out."""
    needed: Sequence[Operand] = ()
    match statement:
        case Compute():
            needed = statement.operands
        case Choose():
            needed = (statement.selector,)
        case Repeat():
            needed = statement.starts
        case Load(place=Place(gathered=(position, _))):
            needed = (position,)
        case Store():
            needed = (statement.value,)
        case BoundsCheck():
            needed = (statement.position,)
        case MaskedLoad():
            needed = (statement.inside, *read(statement.load))
        case ReduceUpdate():
            needed = (*statement.accumulator, statement.value)
        case ReduceCombine():
            needed = (*statement.accumulator, *statement.other)
        case ReduceHorizontal() | ReduceFinalize():
            needed = statement.accumulator
    return tuple([operand for operand in needed if isinstance(operand, Register)])
