"""What a session holds besides values: iterators' positions, which variables are initialised."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from dualflow import errors
from dualflow.compat import v1
from dualflow.core import dispatch
from dualflow.eager.engine import EAGER


@pytest.fixture(autouse=True)
def graph() -> Iterator[v1.Graph]:
    with v1.Graph().as_default() as default:
        yield default


# Iterators


def test_each_session_reads_the_dataset_from_its_beginning() -> None:
    x = v1.data.make_one_shot_iterator(v1.data.Dataset.range(3)).get_next()
    for _ in range(2):
        with v1.Session() as session:
            assert [int(session.run(x)) for _ in range(3)] == [0, 1, 2]
            with pytest.raises(errors.OutOfRangeError, match="End of sequence"):
                session.run(x)


def test_an_initializer_begins_anew_before_the_end() -> None:
    iterator = v1.data.make_initializable_iterator(v1.data.Dataset.range(5).batch(2))
    x = iterator.get_next()
    with v1.Session() as session:
        session.run(iterator.initializer)
        assert session.run(x).tolist() == [0, 1]
        session.run(iterator.initializer)
        assert [session.run(x).tolist() for _ in range(3)] == [[0, 1], [2, 3], [4]]


def test_elements_keep_their_structure_and_a_run_reads_one() -> None:
    dataset = v1.data.Dataset.from_tensor_slices({"x": np.eye(2, dtype=np.float32), "y": [b"a", b"b"]})
    element = v1.data.make_one_shot_iterator(dataset).get_next()
    with v1.Session() as session:
        values, doubled = session.run([element, element["x"] * 2.0])
        assert values["y"] == b"a"
        assert doubled.tolist() == [2.0, 0.0]


def test_an_iterator_that_was_not_initialised_is_an_error() -> None:
    iterator = v1.data.make_initializable_iterator(v1.data.Dataset.range(3))
    x = iterator.get_next()
    with v1.Session() as session, pytest.raises(RuntimeError, match="not been initialized in this session"):
        session.run(x)


def test_a_one_shot_iterator_has_no_initializer() -> None:
    with pytest.raises(RuntimeError, match="begins by itself"):
        v1.data.make_one_shot_iterator(v1.data.Dataset.range(3)).initializer  # noqa: B018  # the property raises


# Variables


def test_variables_without_values_are_reported_by_name() -> None:
    first, second = v1.get_variable("a", []), v1.get_variable("b", [])
    names, ready = v1.report_uninitialized_variables(), v1.is_variable_initialized(first)
    with v1.Session() as session:
        assert session.run(names).tolist() == [b"a", b"b"]
        session.run(first.initializer)
        assert session.run([names, ready])[0].tolist() == [b"b"]
        assert session.run(ready)
        session.run(second.initializer)
        assert session.run(names).shape == (0,)


# Eagerly


def test_eagerly_a_one_shot_iterator_is_an_iterator() -> None:
    with dispatch.using(EAGER):
        assert [int(x) for x in v1.data.make_one_shot_iterator(v1.data.Dataset.range(3))] == [0, 1, 2]


def test_eagerly_every_variable_has_a_value() -> None:
    with dispatch.using(EAGER):
        v = v1.Variable(1.0)
        assert v1.report_uninitialized_variables([v]).shape == (0,)
        assert bool(v1.is_variable_initialized(v))


def test_eagerly_there_is_nothing_to_initialise() -> None:
    with dispatch.using(EAGER), pytest.raises(RuntimeError, match="not supported when eager execution"):
        v1.data.make_initializable_iterator(v1.data.Dataset.range(3))
