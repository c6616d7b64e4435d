"""Names at the root of ``compat.v1`` for functions of version 2's namespaces."""

from __future__ import annotations

import inspect
from operator import attrgetter

import numpy as np
import pytest

import dualflow as df
from dualflow.compat import v1
from dualflow.compat.v1.moved_functions import MOVED


@pytest.mark.parametrize("name", MOVED)
def test_a_name_is_the_function_that_its_row_names(name: str) -> None:
    function = attrgetter(MOVED[name][0])(df)
    assert inspect.unwrap(getattr(v1, name)) is inspect.unwrap(function)
    assert name in dir(v1)


def test_arguments_have_tensorflow_1_s_order() -> None:
    x = np.arange(16.0, dtype=np.float32).reshape(1, 2, 2, 4)
    expected = df.nn.depth_to_space(x, 2, data_format="NHWC").numpy()
    np.testing.assert_array_equal(v1.depth_to_space(x, 2, "blocks", "NHWC"), expected)
    counts = v1.confusion_matrix([0, 1], [1, 1], 2, v1.float32, "counts", [0.5, 2.0])
    assert counts.numpy().tolist() == [[0.0, 0.5], [0.0, 2.0]]
    means = v1.sparse_segment_mean(v1.constant([1.0, 3.0, 5.0]), [0, 2], [0, 0], "means", 2)
    assert means.numpy().tolist() == [3.0, 0.0]


def test_in_a_graph_the_name_is_that_of_the_operation() -> None:
    with v1.Graph().as_default(), v1.Session() as session:
        total = v1.cumprod(v1.constant([2.0, 3.0]), name="products")
        assert (total.name, session.run(total).tolist()) == ("products:0", [2.0, 6.0])


def test_rank_assertions_take_data_before_their_message() -> None:
    v1.assert_rank_at_least(v1.ones([2, 3]), 1, ["ignored"], 3, "rank")
    for check in (
        lambda: v1.assert_rank(1.0, 2, ["ignored"], 3, "of the image"),
        lambda: v1.assert_rank_at_least(1.0, 1, message="of the image"),
        lambda: v1.assert_rank_in(1.0, [1, 2], ["ignored"], None, "of the image"),
    ):
        with pytest.raises(ValueError, match="of the image"):
            check()


def test_a_tensor_of_a_tuple_is_computed_after_the_control_inputs_and_the_other_tensors() -> None:
    with v1.Graph().as_default(), v1.Session() as session:
        count, other = v1.Variable(0), v1.Variable(0)
        (total,) = v1.tuple([v1.constant(1)], "first", [v1.assign_add(count, 5)])
        one, _ = df.tuple([v1.constant(1), v1.assign(other, 7)])
        session.run(v1.global_variables_initializer())
        session.run([total, one])
        assert session.run([count, other]) == [5, 7]
