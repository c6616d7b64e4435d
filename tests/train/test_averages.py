"""Moving averages, by TensorFlow's values, of both kinds of variables."""

from __future__ import annotations

from pathlib import Path

import pytest

import dualflow as df
from dualflow.compat import v1


def test_averages_follow_their_variables() -> None:
    x, averages = df.Variable([1.0, 2.0], name="x"), df.train.ExponentialMovingAverage(0.9)
    averages.apply([x])
    x.assign([3.0, 4.0])
    averages.apply([x])
    average = averages.average(x)
    assert average is not None
    assert average.numpy() == pytest.approx([1.2, 2.2])
    assert (average.name, averages.name) == ("x/ExponentialMovingAverage:0", "ExponentialMovingAverage")
    assert averages.average(df.Variable(1.0)) is None
    assert averages.variables_to_restore() == {"x/ExponentialMovingAverage": x}


def test_the_first_averages_follow_faster() -> None:
    x, averages = df.Variable([1.0, 2.0]), df.train.ExponentialMovingAverage(0.9, num_updates=3)
    found = []
    for start in (1.0, 2.0, 3.0):
        x.assign([start, 2.0])
        averages.apply([x])
        found.append(float(averages.average(x)[0]))
    assert found == pytest.approx([1.0, 1.6923077, 2.5976331])  # TensorFlow's


def test_a_compiled_step_keeps_them() -> None:
    x, averages = df.Variable(1.0), df.train.ExponentialMovingAverage(0.5)
    averages.apply([x])

    @df.function
    def step() -> None:
        x.assign_add(1.0)
        averages.apply([x])

    step()
    step()
    assert float(averages.average(x)) == 2.25


def test_a_graph_gets_an_operation() -> None:
    with v1.Graph().as_default(), v1.Session() as session:
        w = v1.get_variable("w", initializer=4.0)
        averages = v1.train.ExponentialMovingAverage(0.5)
        with df.control_dependencies([w.assign(8.0)]):
            step = averages.apply()
        assert [v.name for v in v1.global_variables()] == ["w:0", "w/ExponentialMovingAverage:0"]
        session.run(v1.global_variables_initializer())
        assert session.run(averages.average(w)) == 4.0
        session.run(step)
        assert (session.run(w), session.run(averages.average(w))) == (8.0, 6.0)


def test_a_checkpoint_keeps_them(tmp_path: Path) -> None:
    x, averages = df.Variable(1.0), df.train.ExponentialMovingAverage(0.5)
    averages.apply([x])
    x.assign(3.0)
    averages.apply([x])
    df.train.Checkpoint(x=x, averages=averages).write(tmp_path / "c")
    y, others = df.Variable(0.0), df.train.ExponentialMovingAverage(0.5)
    status = df.train.Checkpoint(x=y, averages=others).read(tmp_path / "c")
    others.apply([y])
    assert float(others.average(y)) == 2.5
    status.assert_consumed()


def test_only_variables_of_floats_have_one() -> None:
    averages = df.train.ExponentialMovingAverage(0.5)
    with pytest.raises(df.errors.DTypeError, match="Averages are kept of variables of floats"):
        averages.apply([df.Variable(1)])
    with pytest.raises(df.errors.InvalidArgumentError, match="Only a graph knows its variables"):
        averages.apply()
