"""The probe finds the memory layout of this process, or reports that it can't be relied on."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from dualflow.backends.llvm.runtime import fastcall


def test_slots_are_found_where_they_are(fast: Any) -> None:
    variable = fast.variable()
    offset = fastcall.slot_offset(fast.Variable, "_tensor")
    assert offset is not None
    assert ctypes.c_size_t.from_address(id(variable) + offset).value == id(variable._tensor)


@pytest.mark.parametrize("name", ["absent", "__init__", "__doc__"])
def test_attributes_that_are_no_slots_have_no_offset(fast: Any, name: str) -> None:
    assert fastcall.slot_offset(fast.Variable, name) is None


def test_a_class_without_the_slot_has_no_layout() -> None:
    class Plain:
        """Keeps its array in its dictionary."""

    assert fastcall.probe(Plain) is None


def test_a_slot_of_a_base_class_counts(fast: Any) -> None:
    class Derived(fast.Tensor):  # type: ignore[misc]  # the class comes from a fixture
        __slots__ = ("_more",)

    layout = fastcall.probe(Derived)
    assert layout is not None
    assert layout.array_slot == fast.layout.array_slot
