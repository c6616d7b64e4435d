"""``v1.scatter_add`` and its like: parts of variables change as those of NumPy arrays do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest
from error_cases import ErrorCases
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import dualflow as df
from dualflow.compat import v1

UFUNCS: dict[str, Callable[..., Any]] = {
    "scatter_add": np.add.at,
    "scatter_sub": np.subtract.at,
    "scatter_mul": np.multiply.at,
    "scatter_div": np.divide.at,
    "scatter_min": np.minimum.at,
    "scatter_max": np.maximum.at,
}
NUMBERS = st.sampled_from([-4.0, -1.0, 0.5, 1.0, 2.0])


@pytest.mark.parametrize("name", UFUNCS)
@given(st.data())
def test_rows_are_changed_by_every_update(name: str, data: st.DataObject) -> None:
    before = data.draw(arrays(np.float64, (4, 2), elements=NUMBERS))
    indices = data.draw(arrays(np.int32, (data.draw(st.integers(0, 5)),), elements=st.integers(0, 3)))
    updates = data.draw(arrays(np.float64, (len(indices), 2), elements=NUMBERS))
    expected = before.copy()
    UFUNCS[name](expected, indices, updates)
    variable = v1.Variable(before)
    getattr(v1, name)(variable, indices, updates)
    np.testing.assert_array_equal(variable.numpy(), expected)


@pytest.mark.parametrize(
    ("name", "indices", "expected"),
    [
        ("scatter_update", [1], [1.0, 10.0, 3.0]),
        ("scatter_nd_update", [[1]], [1.0, 10.0, 3.0]),
        ("scatter_nd_add", [[1]], [1.0, 12.0, 3.0]),
        ("scatter_nd_sub", [[1]], [1.0, -8.0, 3.0]),
        ("scatter_add", [1], [1.0, 12.0, 3.0]),
    ],
)
def test_in_a_graph_each_run_makes_the_update(name: str, indices: Any, expected: list[float]) -> None:
    with v1.Graph().as_default(), v1.Session() as session:
        variable = v1.Variable([1.0, 2.0, 3.0])
        updates = v1.placeholder(v1.float32, [1])
        changed = getattr(v1, name)(variable, indices, updates, name="change")
        assert changed.name.startswith("change")
        session.run(variable.initializer)
        assert session.run(changed, {updates: [10.0]}).tolist() == expected
        assert session.run(variable).tolist() == expected


class TestErrorMessages(ErrorCases):
    cases: ClassVar = {
        "a tensor": (
            lambda: v1.scatter_add(df.constant([1.0]), [0], [2.0]),
            TypeError,
            "scatter_add changes a variable, not .*; for a tensor, call df.tensor_scatter_nd",
        )
    }
    raised_in = ("compat/v1/variable_updates.py",)
