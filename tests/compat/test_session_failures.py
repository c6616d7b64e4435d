"""After a run has failed, a session's variables have the updates that precede the failing operation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from dualflow.compat import v1
from dualflow.core.errors import FailedPreconditionError, OutOfRangeError

Session = Any


@pytest.fixture
def session() -> Iterator[Session]:
    with v1.Graph().as_default(), v1.Session() as session:
        yield session


def rows() -> Any:
    return v1.constant([10.0, 20.0, 30.0])


def assigned_before(v: Any, w: Any, x: Any) -> Any:
    with v1.control_dependencies([v.assign(v * 2.0)]):
        y = v1.gather(rows(), x)
    return w.assign(w * y)


def assigned_in_a_branch(v: Any, w: Any, x: Any) -> Any:
    def taken() -> Any:
        with v1.control_dependencies([v.assign(v * 2.0)]):
            return v1.gather(rows(), x)

    return w.assign(w * v1.cond(x > 0, taken, lambda: v1.constant(1.0)))


def assigned_in_a_loop(v: Any, w: Any, x: Any) -> Any:
    def iteration(i: Any, last: Any) -> Any:
        with v1.control_dependencies([v.assign(v * 2.0)]):
            y = v1.gather(rows(), i)
        return i + 1, y

    loop = v1.while_loop(lambda i, last: i <= x, iteration, [v1.constant(0), v1.constant(0.0)])
    return w.assign(w * loop[1])


def python_after_it(v: Any, w: Any, x: Any) -> Any:
    def refuse(n: Any) -> Any:
        if n > 2:
            raise OutOfRangeError("no")
        return n

    with v1.control_dependencies([v.assign(v * 2.0)]):
        y = v1.py_func(refuse, [x], v1.int32)
    return w.assign(w * v1.cast(y, v1.float32))


@pytest.mark.parametrize("program", [assigned_before, assigned_in_a_branch, python_after_it])
def test_assignments_before_the_failing_operation_stay(session: Session, program: Callable[..., Any]) -> None:
    v, w, x = v1.Variable(1.0), v1.Variable(1.0), v1.placeholder(v1.int32, [])
    step = program(v, w, x)
    session.run(v1.global_variables_initializer())
    for expected in (2.0, 4.0, 8.0):
        with pytest.raises(OutOfRangeError):
            session.run(step, {x: 9})
        assert session.run([v, w]) == [expected, 1.0]
    session.run(step, {x: 1})
    assert session.run(v) == 16.0


def test_iterations_before_the_failing_one_stay(session: Session) -> None:
    v, w, x = v1.Variable(1.0), v1.Variable(1.0), v1.placeholder(v1.int32, [])
    step = assigned_in_a_loop(v, w, x)
    session.run(v1.global_variables_initializer())
    with pytest.raises(OutOfRangeError):
        session.run(step, {x: 9})
    assert session.run([v, w]) == [16.0, 1.0]


def test_a_variable_that_a_failed_run_has_begun_has_its_value(session: Session) -> None:
    v, w, x = v1.Variable(5.0), v1.Variable(1.0), v1.placeholder(v1.int32, [])
    with v1.control_dependencies([v.initializer]):
        y = v1.gather(rows(), x)
    with v1.control_dependencies([y]):
        begun = w.assign(y)
    with pytest.raises(OutOfRangeError):
        session.run(begun, {x: 9})
    assert session.run(v) == 5.0
    with pytest.raises(FailedPreconditionError, match="uninitialized"):
        session.run(w)


def test_feeds_are_copied(session: Session) -> None:
    """After a failed run, variables don't share memory with the caller's arrays."""
    v, x, i = v1.Variable([1.0, 1.0]), v1.placeholder(v1.float32, [2]), v1.placeholder(v1.int32, [])
    with v1.control_dependencies([v.assign(x)]):
        y = v1.gather(rows(), i)
    fed = np.array([3.0, 3.0], np.float32)
    session.run(v1.global_variables_initializer())
    with pytest.raises(OutOfRangeError):
        session.run(y, {x: fed, i: 9})
    fed[:] = 7.0
    assert session.run(v).tolist() == [3.0, 3.0]
