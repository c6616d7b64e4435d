"""Which registers a statement gives values, and which it needs."""

from __future__ import annotations

from collections.abc import Sequence

from dualflow.schedule.loop_program import (
    Bounds,
    Choose,
    FoldAcross,
    FoldFinish,
    FoldLanes,
    FoldMerge,
    FoldStart,
    FoldStep,
    Guarded,
    Let,
    Load,
    Operand,
    Place,
    Register,
    Repeat,
    Statement,
    Store,
)


def written(statement: Statement) -> tuple[Register, ...]:
    """The registers that a statement gives a value, those inside of it left out."""
    match statement:
        case Let() | Load() | FoldFinish():
            return (statement.register,)
        case Choose() | Repeat():
            return statement.registers
        case Bounds():
            return statement.register, statement.inside
        case Guarded():
            return (statement.load.register,)
        case FoldStart() | FoldStep() | FoldMerge() | FoldAcross() | FoldLanes():
            return statement.accumulator
        case _:
            return ()


def read(statement: Statement) -> tuple[Register, ...]:
    """The registers whose values a statement needs, those inside of it left out."""
    needed: Sequence[Operand] = ()
    match statement:
        case Let():
            needed = statement.operands
        case Choose():
            needed = (statement.choice,)
        case Repeat():
            needed = statement.starts
        case Load(place=Place(picked=(position, _))):
            needed = (position,)
        case Store():
            needed = (statement.value,)
        case Bounds():
            needed = (statement.position,)
        case Guarded():
            needed = (statement.inside, *read(statement.load))
        case FoldStep():
            needed = (*statement.accumulator, statement.value)
        case FoldMerge():
            needed = (*statement.accumulator, *statement.other)
        case FoldAcross() | FoldFinish():
            needed = statement.accumulator
    return tuple([operand for operand in needed if isinstance(operand, Register)])
