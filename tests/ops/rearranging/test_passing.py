"""Ops that return their input unchanged."""

from __future__ import annotations

from typing import Any

import dualflow as df


def test_tensors_are_passed_on(mode: Any) -> None:
    x, y = df.constant([1, 2]), df.constant(3.0)
    assert [z.numpy().tolist() for z in mode(df.tuple)([x, y])] == [[1, 2], 3.0]
    assert mode(df.guarantee_const)(x).numpy().tolist() == [1, 2]


def test_none_is_returned_unchanged() -> None:
    assert df.tuple([None, df.constant(1)])[0] is None
