"""Errors of ``vmap``: each states what is wrong and what to do."""

from __future__ import annotations

import re
import traceback
from typing import ClassVar

import pytest
from error_cases import ErrorCases, Frames

import dualflow as df
from dualflow.core.errors import InvalidArgumentError

vmap = df.autodiff.vmap
X = df.constant([[1.0, 2.0], [3.0, 4.0]])
TOTAL = df.Variable([0.0, 0.0])


def mapped_dynamically(fn, *arguments, gradient=False):
    """``vmap(fn)`` of a number of rows that is known only when it runs."""

    def mapped(*rows):
        with df.GradientTape() as tape:
            tape.watch(rows)
            y = vmap(fn)(*rows)
        return tape.gradient(y, rows[0]) if gradient else y

    return df.function(mapped, input_signature=[df.TensorSpec([None, 2])] * len(arguments))(*arguments)


def multiplied(x, rows):
    for row in rows:
        x = df.matmul(x, row)  # a vector
    return x


def of_data_size(row):
    return df.cond(row[0] > 2.0, lambda: df.reduce_sum(df.boolean_mask(row, row > 3.0)), lambda: row[1])


def grown(row):
    """The row with as many more elements as its first one."""
    return df.while_loop(
        lambda i, y: i < row[0],
        lambda i, y: (i + 1.0, df.concat([y, y[:1]], 0)),
        (df.constant(0.0), row),
        shape_invariants=([], [None]),
    )[1]


CASES = {
    "an argument without the axis": (lambda: vmap(df.abs)(1.0), "no axis 0", "give in_axes"),
    "no argument": (lambda: vmap(lambda: 1)(), "no argument has a batch axis", "give axis_size"),
    "all shared": (lambda: vmap(df.abs, None)(X), "no argument has a batch axis", "give axis_size"),
    "counts that differ": (
        lambda: vmap(df.add)(X, df.ones([3, 2])),
        "different sizes: [2, 3]",
        "must be equal",
    ),
    "another axis_size": (lambda: vmap(df.abs, axis_size=5)(X), "different sizes", "must be equal"),
    "dynamic counts that differ": (
        lambda: mapped_dynamically(df.add, X, df.ones([3, 2])),
        "the batch axes have different sizes: [2, 3]",
        "must be equal",
    ),
    "random numbers of a dynamic count with a gradient": (
        lambda: mapped_dynamically(lambda row: row * df.random.normal([2]), X, gradient=True),
        "can't run random_normal again for the gradient",
        "draw random numbers",
    ),
    "an assignment for a dynamic count": (
        lambda: mapped_dynamically(lambda row: TOTAL.assign(df.ones([2])) + row, X),
        "is assigned in vmap over a dynamic size",
        "assign it outside",
    ),
    "too few axes": (lambda: vmap(df.add, [0])(X, X), "1 entries for 2", "one for each"),
    "axes of another structure": (
        lambda: vmap(lambda d: d["a"], [{"b": 0}])({"a": X}),
        "in_axes has the structure",
        "one axis for all",
    ),
    "a result that differs": (lambda: vmap(df.abs, 0, None)(X), "a result is batched", "give it an axis"),
    "a result without the axis": (lambda: vmap(df.abs, 0, 2)(X), "no axis 2", "change out_axes"),
    "sizes that depend on values": (
        lambda: vmap(lambda row: df.unique(row).y)(X),
        "depend on values",
        "map_fn",
    ),
    "sizes that depend on values of a dynamic count": (
        lambda: mapped_dynamically(lambda row: df.reduce_sum(row[row > 1.5]), X),
        "depend on values",
        "map_fn",
    ),
    "sizes in a branch": (lambda: vmap(of_data_size)(X), "depend on values", "map_fn"),
    "a branch of dynamic size": (
        lambda: vmap(lambda row: df.cond(row[0] > 2.0, lambda: df.unique(row).y, lambda: row))(X),
        "results of a branch",
        "map_fn",
    ),
    "a loop variable whose size differs between elements": (
        lambda: vmap(grown)(X),
        "an iteration changes a loop variable of shape (2,) to (3,)",
        "use df.map_fn",
    ),
    "an assignment": (
        lambda: vmap(lambda row: TOTAL.assign(row))(X),
        "assigned a batched value",
        "return the value",
    ),
}


class TestErrorMessages(ErrorCases):
    cases: ClassVar = {
        name: (call, InvalidArgumentError, *map(re.escape, words)) for name, (call, *words) in CASES.items()
    }
    frames = Frames.ENDING_IN_THE_TEST
    raised_in = ("function/batching/*.py",)


def test_a_refusal_names_the_line_of_the_function():
    with pytest.raises(InvalidArgumentError, match=r"test_error_messages\.py"):
        CASES["sizes that depend on values"][0]()


def test_a_refused_assignment_leaves_the_variable():
    with pytest.raises(InvalidArgumentError):
        CASES["an assignment"][0]()
    assert TOTAL.numpy().tolist() == [0.0, 0.0]


def test_converted_code_of_transforms_is_no_frame_of_an_error() -> None:
    """The function that a transform returns is dualflow's own, also where it was converted."""
    with pytest.raises(InvalidArgumentError):
        df.function(df.autodiff.grad(multiplied))(df.ones([2]), df.ones([3, 2]))
    with pytest.raises(InvalidArgumentError) as caught:
        mapped_dynamically(lambda row: TOTAL.assign(df.ones([2])) + row, X)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].filename == __file__


def test_the_error_of_a_size_has_the_op_the_shapes_and_the_line_but_no_graph() -> None:
    def scaled(x, y):
        return df.exp(x) + x * y

    signature = [df.TensorSpec([None, None])] * 2
    mapped = df.function(lambda x, y: vmap(scaled)(x, y), input_signature=signature)
    with pytest.raises(InvalidArgumentError) as info:
        mapped(df.ones([3, 2]), df.ones([3, 5]))
    assert "multiply(float32[2], float32[5])" in str(info.value)
    assert "\n" not in str(info.value)
    assert "in scaled" in info.value.__notes__[0]
