"""The errors of graphs and sessions: each states what is wrong, where, why, and what to do."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from dualflow.compat import v1


@pytest.fixture
def graph() -> Iterator[v1.Graph]:
    with v1.Graph().as_default() as default:
        yield default


@pytest.fixture
def session(graph: v1.Graph) -> v1.Session:
    return v1.Session()


def made_here(session: v1.Session) -> dict[str, Callable[[], Any]]:
    """Misuses by name."""
    x = v1.placeholder(v1.float32, [None], name="x")
    n = v1.placeholder(v1.int32, [], name="n")
    w = v1.Variable([1.0], name="w")
    with v1.Graph().as_default():
        strange = v1.constant(1.0, name="strange") + 1.0
        foreign = v1.Variable(1.0, name="foreign")
    closed = v1.Session()
    closed.close()
    return {
        "not fed": lambda: session.run(x * 2.0),
        "shape": lambda: session.run(x, {x: [[1.0]]}),
        "kind": lambda: session.run(n, {n: 2.5}),
        "ragged": lambda: session.run(x, {x: [[1.0], [1.0, 2.0]]}),
        "text": lambda: session.run(x, {x: "one"}),
        "twice": lambda: session.run(x, {x: [1.0], "x:0": [2.0]}),
        "strange": lambda: session.run(strange),
        "strange feed": lambda: session.run(x, {strange: 1.0}),
        "strange input": lambda: strange * x,
        "strange variable": lambda: foreign * 2.0,
        "strange initializer": lambda: v1.variables_initializer([foreign]),
        "uninitialised": lambda: session.run(w * 2.0),
        "closed": lambda: closed.run(w),
        "bool": lambda: "positive" if x[0] > 0.0 else "negative",
        "float": lambda: float(x[0]),
        "numpy": lambda: x.numpy(),
        "np": lambda: np.asarray(x),
        "pickled graph": lambda: pickle.dumps(session.graph),
        "pickled session": lambda: copy.deepcopy(session),
    }


@pytest.mark.parametrize(
    ("misuse", "kind", "words"),
    [
        (
            "not fed",
            ValueError,
            ["must feed a value for placeholder tensor 'x:0'", "(None,)", "feed_dict={x:"],
        ),
        (
            "shape",
            ValueError,
            ["Cannot feed value of shape (1, 1) for Tensor x:0", "has shape (None,)", "Feed an"],
        ),
        ("kind", TypeError, ["Cannot feed Tensor n:0", "int32 from 2.5", "cast"]),
        ("ragged", ValueError, ["Cannot feed Tensor x:0", "different lengths"]),
        ("text", TypeError, ["Cannot feed Tensor x:0", "Cannot convert 'one' to a tensor of dtype float32"]),
        ("strange", ValueError, ["is not an element of this graph", "Session(graph=g)"]),
        ("strange feed", TypeError, ["Cannot interpret feed_dict key", "is not an element of this graph"]),
        ("strange input", ValueError, ["is not an element of this graph", "feed that"]),
        ("uninitialised", RuntimeError, ["resource variable w", "global_variables_initializer()"]),
        ("bool", TypeError, ["as a Python `bool` is not allowed", "df.cond", "session.run(x)"]),
        ("float", TypeError, ["as a Python `float` is not allowed", "session.run(x)"]),
        ("numpy", AttributeError, ["has no .numpy() before a session runs the graph", "session.run(x)"]),
        ("np", NotImplementedError, ["Cannot convert a symbolic df.Tensor (x:0)", "session.run(x)"]),
    ],
)
def test_an_error_reports_what_and_where_and_what_to_do(
    session: v1.Session, misuse: str, kind: type[Exception], words: list[str]
) -> None:
    with pytest.raises(kind) as caught:
        made_here(session)[misuse]()
    message = str(caught.value)
    assert all(word in message for word in words), message
    assert f'File "{__file__}", line ' in message, "the line of the program"


@pytest.mark.parametrize(
    ("misuse", "kind", "words"),
    [
        ("twice", ValueError, ["A tensor is fed twice", "'x:0'"]),
        ("strange variable", ValueError, ["foreign:0", "another graph holds it", "Create it in the block"]),
        ("strange initializer", ValueError, ["foreign:0", "is not a variable of this graph"]),
        ("closed", RuntimeError, ["Attempted to use a closed Session", "make a new session"]),
        ("pickled graph", TypeError, ["A tf.Graph can't be pickled", "Pickle the function that builds it"]),
        ("pickled session", TypeError, ["A session can't be pickled", "Pickle the values of its variables"]),
    ],
)
def test_an_error_about_no_line_reports_what_to_do(
    session: v1.Session, misuse: str, kind: type[Exception], words: list[str]
) -> None:
    with pytest.raises(kind) as caught:
        made_here(session)[misuse]()
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_a_finalized_graph_names_the_line_that_would_add(graph: v1.Graph) -> None:
    x = v1.constant(1.0)
    graph.finalize()
    for add in (lambda: x * 2.0, lambda: v1.placeholder(v1.float32, []), lambda: v1.Variable(1.0), v1.no_op):
        with pytest.raises(
            RuntimeError, match=r"Graph is finalized and cannot be modified(.|\n)*test_session_errors"
        ):
            add()
