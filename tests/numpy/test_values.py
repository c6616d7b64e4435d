"""Every function of ``df.numpy`` against NumPy: values, dtypes, shapes, and what is refused.

``calls.txt`` has the calls, in groups. The line above a group has the kinds of dtypes and the shapes from
which its array ``x`` is drawn; ``xp`` is NumPy or ``df.numpy``.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from op_cases import check_each

import dualflow as df
import dualflow.numpy as dnp

DTYPES = {
    "b": ["bool"],
    "i": ["int64", "int32", "int8"],
    "u": ["uint8", "uint64"],
    "f": ["float64", "float32", "float16"],
    "c": ["complex128", "complex64"],
    "r": ["float64", "float32"],
}
"""Dtypes by kind; of "r" the numbers are finite."""


class Group(NamedTuple):
    """Calls whose array is drawn alike."""

    kinds: str
    shapes: list[tuple[int, ...]]
    calls: list[str]


def read_groups() -> dict[str, Group]:
    groups: dict[str, Group] = {}
    name = ""
    for line in Path(__file__).with_name("calls.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):
            groups[name].calls.append(line.strip())
        else:
            name, kinds, shapes = line.split(" | ")
            sizes = [() if s == "()" else tuple(map(int, s.split("x"))) for s in shapes.split()]
            groups[name] = Group(kinds, sizes, [])
    return groups


GROUPS = read_groups()
TOLERANCE = {"e": 5e-3, "f": 1e-5, "F": 1e-5}


@st.composite
def arrays(draw: Any, name: str) -> np.ndarray[Any, Any]:
    """An array of a dtype and shape of the group."""
    group = GROUPS[name]
    kind = draw(st.sampled_from(group.kinds))
    dtype = np.dtype(draw(st.sampled_from(DTYPES[kind])))
    shape = draw(st.sampled_from(group.shapes))
    numbers = np.random.default_rng(draw(st.integers(0, 1000))).integers(
        0 if dtype.kind == "u" else -4, 5, shape
    )
    if dtype.kind in "fc":
        numbers = numbers * 0.75
    if dtype.kind == "c":
        numbers = numbers + 1j * np.flip(numbers)
    array = np.asarray(numbers).astype(dtype)
    if kind == "f" and array.size and draw(st.integers(0, 4)) == 0:
        array.reshape(-1)[draw(st.integers(0, array.size - 1))] = draw(
            st.sampled_from([np.nan, np.inf, -np.inf])
        )
    return array


def run(call: str, xp: Any, x: Any) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return eval(call, {"xp": xp, "x": x})


def plain(value: Any) -> Any:
    """Tensors as arrays, and dtypes as NumPy's."""
    if isinstance(value, tuple | list):
        return [plain(v) for v in value]
    return np.asarray(value.numpy() if isinstance(value, df.Tensor) else value)


def check(result: Any, expected: Any) -> None:
    result, expected = plain(result), plain(expected)
    pairs = zip(result, expected, strict=True) if isinstance(expected, list) else [(result, expected)]
    for mine, theirs in pairs:
        assert mine.dtype == theirs.dtype
        assert mine.shape == theirs.shape
        bound = TOLERANCE.get(theirs.dtype.char, 1e-11)
        np.testing.assert_allclose(mine, theirs, rtol=bound, atol=bound)


def outcome(call: str, xp: Any, x: Any) -> Any:
    try:
        return run(call, xp, x)
    except (TypeError, ValueError, IndexError, ZeroDivisionError, OverflowError) as error:
        return error


@pytest.mark.parametrize("name", GROUPS)
@settings(max_examples=12)
@given(st.data())
def test_calls_give_what_numpy_gives(name: str, data: Any) -> None:
    x = data.draw(arrays(name))
    check_each(GROUPS[name].calls, lambda call: check_call(call, x))


def check_call(call: str, x: np.ndarray[Any, Any]) -> None:
    expected, result = outcome(call, np, x), outcome(call, dnp, df.constant(x))
    if isinstance(expected, Exception) or isinstance(result, Exception):
        assert isinstance(expected, Exception), result
        assert isinstance(result, Exception), "NumPy refuses this"
        return
    check(result, expected)


def sample(name: str, call: str) -> np.ndarray[Any, Any]:
    """An array of the group that NumPy takes: floats where there may be some, of many axes."""
    group = GROUPS[name]
    kind = "f" if "f" in group.kinds else group.kinds[0]
    shapes = sorted(group.shapes, key=lambda s: (min(s, default=0), len(s)), reverse=True)
    drawn = ((np.random.default_rng(0).integers(0, 5, s) * 0.75).astype(DTYPES[kind][0]) for s in shapes)
    return next(x for x in drawn if not isinstance(outcome(call, np, x), Exception))


@pytest.mark.parametrize("name", GROUPS)
def test_calls_compile(name: str) -> None:
    check_each(GROUPS[name].calls, lambda call: check_compiled(name, call))


def check_compiled(name: str, call: str) -> None:
    x = sample(name, call)
    expected = run(call, np, x)
    result = run(call, dnp, df.constant(x))
    parts = result if isinstance(result, tuple | list) else [result]
    if not all(isinstance(part, df.Tensor) for part in parts):
        return  # Python's values, which a function returns as tensors
    compiled = df.function(lambda x: run(call, dnp, x))
    check(compiled(df.constant(x)), expected)
