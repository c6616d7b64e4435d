"""Slots: values that packages above provide."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dualflow.core.errors import InternalError
from dualflow.core.slot import Slot, unfilled


def test_a_slot_has_its_default_until_it_is_filled() -> None:
    slot = Slot("an example", "default")
    assert slot.value == "default"
    assert slot.fill("value") == "value"
    assert slot.value == "value"


def test_another_value_for_a_filled_slot_is_an_error() -> None:
    slot = Slot("an example", "default")
    slot.fill("value")
    slot.fill("value")
    with pytest.raises(InternalError, match="two values are provided for an example"):
        slot.fill("another")


def test_a_cleared_slot_has_its_default_and_can_be_filled() -> None:
    slot = Slot("an example", "default")
    slot.fill("value")
    slot.clear()
    assert slot.value == "default"
    assert slot.fill("another") == slot.value == "another"


def test_a_function_that_no_package_provides_is_an_error() -> None:
    slot: Slot[Callable[[int], int]] = Slot("an example", unfilled("an example"))
    with pytest.raises(InternalError, match="no package that is imported provides an example"):
        slot.value(3)
    slot.fill(lambda x: 2 * x)
    assert slot.value(3) == 6
