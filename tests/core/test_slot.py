"""Slots: values that packages above provide."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

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


def test_first_call_imports_the_module_that_provides_a_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "late_provider.py").write_text(
        "from dualflow.core.tree import LATE_SLOT\n\n@LATE_SLOT.fill\ndef double(x):\n    return 2 * x\n"
    )
    (tmp_path / "late_idler.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    slot: Slot[Callable[[int], int]] = Slot("an example", lambda x: x)
    monkeypatch.setattr("dualflow.core.tree.LATE_SLOT", slot, raising=False)
    slot.fill_from("late_idler")
    with pytest.raises(InternalError, match="late_idler does not provide an example"):
        slot.value(3)
    slot.fill_from("late_provider")
    assert "late_provider" not in sys.modules
    assert slot.value(3) == 6
    assert slot.value.__name__ == "double"
