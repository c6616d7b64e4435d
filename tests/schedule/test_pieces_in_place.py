"""Concatenated pieces that are computed in their final buffer, and those that are copied there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualflow as df
from dualflow.schedule.plan import plan
from dualflow.schedule.planned import Plan
from dualflow.schedule.program_statements import LaunchPieces, statements, walk_program

Function = Callable[..., Any]


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def planned(f: Function, *shapes: list[int]) -> Plan:
    graph = df.function(f).get_concrete_function(*map(df.TensorSpec, shapes)).optimised_graph
    return plan(graph)


def copies(f: Function, *shapes: list[int]) -> list[int]:
    """The number of copies that put each output together."""
    return [
        len(s.pieces) for s in walk_program(statements(planned(f, *shapes))) if isinstance(s, LaunchPieces)
    ]


CASES: dict[str, tuple[Function, list[int]]] = {
    "rows": (lambda x: df.concat([x[1:] * 2.0, x[:1] + 1.0], 0), [0]),
    "a stack": (lambda x: df.stack([df.exp(x), df.sin(x)]), [0]),
    "columns lie apart": (lambda x: df.concat([x[:, 1:] * 2.0, x[:, :1] + 1.0], 1), [2]),
    "a part of an input is copied": (lambda x: df.concat([x[1:] * 2.0, x[:1]], 0), [1]),
    "in each other": (
        lambda x: df.concat([df.concat([df.exp(x), x * 2.0], 0) * 1.0, df.sin(x)], 0),
        [0, 0],
    ),
    "a result that is read elsewhere": (lambda x: [y := df.exp(x), df.concat([y, x * 2.0], 0)], [1]),
    "twice": (lambda x: df.concat([y := df.exp(x), y], 0), [2]),
    "folds": (lambda x: df.stack([df.reduce_sum(x, 1), df.reduce_max(x, 1)]), [0]),
    "a product": (lambda x: df.concat([df.matmul(x, x, transpose_b=True), x @ df.transpose(x)], 0), [2]),
    "zeros between": (lambda x: df.concat([df.exp(x), df.zeros([2, 3]), df.sin(x)], 0), [1]),
}


@pytest.mark.parametrize("name", CASES)
def test_values_read_by_one_graph_are_computed_in_it(name: str) -> None:
    f, expected = CASES[name]
    assert copies(f, [4, 3]) == expected
    x = df.constant(numbers(4, 3))
    for compiled, eager in zip(df.nest.flatten(df.function(f)(x)), df.nest.flatten(f(x)), strict=True):
        np.testing.assert_allclose(compiled, eager, rtol=1e-5, atol=1e-6, strict=True)


def test_a_variable_is_written_when_all_is_computed() -> None:
    """What fails between the pieces leaves the variable as it was."""
    v = df.Variable(numbers(4, 3))
    before = v.numpy()

    @df.function
    def assigned(x: Any, at: Any) -> None:
        v.assign(df.concat([df.exp(x), df.gather(x, at) + df.zeros([2, 1])], 0))

    x = df.constant(numbers(2, 3))
    with pytest.raises(IndexError):
        assigned(x, df.constant([0, 7]))
    np.testing.assert_array_equal(v, before)
    assigned(x, df.constant([1, 0]))
    np.testing.assert_allclose(v, np.concatenate([np.exp(x), x.numpy()[::-1]]), rtol=1e-6)


def test_pieces_take_no_more_memory_than_their_copies() -> None:
    """Both halves and the whole would be there at once."""
    whole = 4 * 2 * 1000 * 30
    arena = planned(lambda x: df.reduce_sum(df.concat([df.exp(x), df.sin(x)], 0) ** 2.0, 0), [1000, 30])
    assert whole <= arena.arena_bytes < 1.1 * whole


def test_pieces_in_bodies_of_loops_and_branches() -> None:
    def f(x: Any) -> Any:
        def body(i: Any, y: Any) -> Any:
            z = df.cond(
                df.reduce_sum(y) > 0,
                lambda: df.concat([y[1:] * 0.5, y[:1] + 1.0], 0),
                lambda: df.concat([y[3:] - 1.0, y[:3] * 0.25], 0),
            )
            return i + 1, df.concat([z[2:] + 0.5, z[:2] * 0.5], 0)

        rows = df.map_fn(lambda row: df.stack([df.exp(row), df.sin(row)]), x)
        return df.while_loop(lambda i, y: i < 5, body, [0, x])[1], rows

    x = df.constant(numbers(6, 3))
    for compiled, eager in zip(df.function(f)(x), f(x), strict=True):
        np.testing.assert_allclose(compiled, eager, rtol=1e-5, atol=1e-6)


@given(st.data(), st.integers(2, 12))
@settings(deadline=None, max_examples=40)
def test_programs_of_pieces(data: st.DataObject, count: int) -> None:
    """Results are those of eager code, whatever is put together and taken apart."""
    steps = [
        (data.draw(st.integers(0, 4)), data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3)))
        for _ in range(count)
    ]

    def f(x: Any) -> Any:
        values = [x]
        for kind, one, other in steps:
            a, b = values[-min(one, len(values))], values[-min(other, len(values))]
            values.append(
                [
                    lambda a=a, b=b: df.concat([a[1:] * 0.5, b[:1] + 1.0], 0),
                    lambda a=a, b=b: df.concat([a[2:], b[:2] * 0.5], 0),
                    lambda a=a, b=b: a * 0.5 + b,
                    lambda a=a, b=b: df.reshape(df.stack([a[:2] + 1.0, b[2:] * 0.5]), [4, 3]),
                    lambda a=a, b=b: df.pad(a[1:3] * b[:2], [[1, 1], [0, 0]], constant_values=0.5),
                ][kind]()
            )
        return values[-1], values[-2]

    x = df.constant(numbers(4, 3))
    for compiled, eager in zip(df.function(f)(x), f(x), strict=True):
        np.testing.assert_allclose(compiled, eager, rtol=1e-5, atol=1e-6)
