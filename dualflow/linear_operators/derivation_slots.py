"""Slots for the functions by which the base class creates operators of its subclasses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dualflow.core.slot import Slot, unfilled

_MODULE: Final = "dualflow.linear_operators.derivations"


def _slot(purpose: str) -> Slot[Callable[..., Any]]:
    slot: Slot[Callable[..., Any]] = Slot(purpose, unfilled(purpose))
    slot.fill_from(_MODULE)
    return slot


ADJOINT: Final = _slot("the adjoint of a linear operator")
INVERSE: Final = _slot("the inverse of a linear operator")
CHOLESKY: Final = _slot("the Cholesky factor of a linear operator")
PRODUCT: Final = _slot("the product of two linear operators")
SOLUTION: Final = _slot("the product of the inverse of a linear operator with another operator")
