"""A long conditional or loop is several functions, which give what one function gives."""

from __future__ import annotations

import ast
import builtins
import re
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.backends.numba import function_parts

pytestmark = pytest.mark.exhaustive

PAIR = df.TensorSpec([2])


def steps(x: Any) -> Any:
    """A loop of unknown length with a loop, a conditional and a check inside."""
    while df.reduce_sum(x) < 60.0:
        df.debugging.assert_less(df.reduce_max(x), 50.0, message="too large")
        for row in df.constant([[1.0, 2.0], [3.0, 1.0]]):
            x = x * row + df.reverse(x, [0])
        x = x + 1.0 if x[0] > x[1] else df.reverse(x, [0])
    return x


def slopes(x: Any) -> Any:
    """A stack that grows in a part, and the loop that reads it backwards."""
    with df.GradientTape() as tape:
        tape.watch(x)
        y = x
        if y[0] < 10.0:
            while df.reduce_sum(y) < 60.0:
                df.debugging.assert_less(y[0], 20.0, message="too large")
                y = y * df.reverse(y, [0]) + 1.0
    return y, tape.gradient(y, x)


@pytest.fixture
def split_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lowers the limits above which functions are split."""
    monkeypatch.setattr(function_parts, "MAX_STATEMENTS", 8)
    monkeypatch.setattr(function_parts, "MAX_PART", 4)


def source(function: Any) -> str:
    text: str = df.function(function, backend="numba").get_concrete_function(PAIR).source("numba")
    return text


def lengths(text: str) -> dict[str, int]:
    """The lines of each conditional and loop."""
    bodies = re.findall(r"^def ((?:loop|conditional)\w+)\(.*\n((?:    .*\n)+)", text, re.M)
    return {name: body.count("\n") for name, body in bodies}


def test_a_short_function_is_one() -> None:
    assert list(lengths(source(steps))) == ["loop0"]


@pytest.mark.usefixtures("split_early")
def test_parts_are_shorter_than_the_whole(request: pytest.FixtureRequest) -> None:
    parts = lengths(source(steps))
    request.getfixturevalue("monkeypatch").undo()
    whole = lengths(source(steps))
    assert len(parts) > 2 * len(whole)
    assert max(parts.values()) < max(whole.values())


@pytest.mark.usefixtures("split_early")
def test_parts_are_defined_before_their_callers() -> None:
    text = source(steps)
    for name in lengths(text):
        assert text.index(f"def {name}(") == text.index(f"{name}(") - len("def ")


@pytest.mark.usefixtures("split_early")
@pytest.mark.parametrize("most", [4, 8, 13, 16])
def test_every_name_is_defined_where_it_is_read(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function_parts, "MAX_STATEMENTS", most)
    monkeypatch.setattr(function_parts, "MAX_PART", most)
    text = source(slopes)
    tree, names = ast.parse(text), {*lengths(text), "_program"}
    defined = {*dir(builtins), *bound_names(tree)}
    for function in (f for f in tree.body if isinstance(f, ast.FunctionDef) and f.name in names):
        own = {*bound_names(function), *(a.arg for a in function.args.args)}
        read = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        assert not read - own - defined, function.name


def bound_names(tree: ast.Module | ast.FunctionDef) -> set[str]:
    """The names that a module or function assigns, except in nested functions."""
    names, pending = set(), list(ast.iter_child_nodes(tree))
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name)
        pending += ast.iter_child_nodes(node)
    return names


@pytest.mark.usefixtures("split_early")
def test_parts_compute_what_python_does() -> None:
    """Integers, so that any way to compute them gives the same bits."""
    function = df.function(slopes, backend="numba")
    for x in (df.constant([1.0, 2.0]), df.constant([20.0, 0.0])):
        for result, expected in zip(function(x), slopes(x), strict=True):
            np.testing.assert_array_equal(result, expected)
    with pytest.raises(df.errors.InvalidArgumentError, match="too large"):
        function(df.constant([3.0, 8.0]))
