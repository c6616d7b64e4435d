"""The number of traversals of the arguments, and of the leaves of their key, in the first three calls."""

import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

import dualflow as df


def function_calls(call: Callable[[], Any]) -> Counter[str]:
    """The number of calls of each Python function of dualflow in one call, by qualified name."""
    counts: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and "dualflow" in frame.f_code.co_filename:
            counts[frame.f_code.co_qualname] += 1

    outer = sys.getprofile()
    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(outer)
    return counts


@pytest.fixture
def walks() -> list[Counter[str]]:
    """The counts of the first three calls of a function of a nested structure of four tensors."""
    x = df.constant([1.0, 2.0])
    f = df.function(lambda a, b: a["u"] * b[0] + b[1][0] * a["v"], sizes="exact")
    return [function_calls(lambda: f({"u": x, "v": x}, [x, (x, 2)])) for _ in range(3)]


def test_the_first_call_walks_the_arguments_once_for_each_purpose(walks: list[Counter[str]]) -> None:
    first = walks[0]
    assert first["flatten"] == 2  # the arguments for the key, and the result
    assert first["unflatten"] == 1  # the arguments of the Python function
    assert first["Signature.leaf_names"] == 1
    assert first["Signature.check_unmodified"] == 1
    assert first["TraceCache.find"] == 1


def test_the_key_is_hashed_when_it_is_looked_up_and_when_it_is_stored(walks: list[Counter[str]]) -> None:
    key_tensors, specs_of_ops = 4, 4
    assert walks[0]["TensorSpec.__hash__"] <= 2 * key_tensors + specs_of_ops


def test_later_calls_walk_the_arguments_once(walks: list[Counter[str]]) -> None:
    for call in walks[1:]:
        assert call["flatten"] == 1
        assert call["TensorSpec.__hash__"] == 4
        assert not call["unflatten"] + call["Signature.leaf_names"] + call["Signature.check_unmodified"]
