"""Training with hooks: checkpoints, restarts, stops, logs; and threads that stop together."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dualflow import errors
from dualflow.compat import v1


@pytest.fixture(autouse=True)
def graph() -> Iterator[v1.Graph]:
    with v1.Graph().as_default() as default:
        yield default


def counter() -> Any:
    return v1.assign_add(v1.train.get_or_create_global_step(), 1)


def test_training_ends_at_a_step() -> None:
    count = counter()
    with v1.train.MonitoredTrainingSession(hooks=[v1.train.StopAtStepHook(last_step=3)]) as session:
        steps = []
        while not session.should_stop():
            steps.append(int(session.run(count)))
    assert steps == [1, 2, 3]


def test_training_continues_from_the_last_checkpoint(tmp_path: Path) -> None:
    count = counter()
    for expected in ([1, 2], [3, 4]):
        hooks = [v1.train.StopAtStepHook(num_steps=2)]
        with v1.train.MonitoredTrainingSession(
            checkpoint_dir=tmp_path, hooks=hooks, save_checkpoint_steps=1, save_summaries_steps=None
        ) as session:
            steps = []
            while not session.should_stop():
                steps.append(int(session.run(count)))
        assert steps == expected
    assert v1.train.latest_checkpoint(tmp_path) == str(tmp_path / "model.ckpt-4")


def test_the_end_of_a_dataset_ends_the_block_and_other_errors_do_not(tmp_path: Path) -> None:
    counter()
    x = v1.data.make_one_shot_iterator(v1.data.Dataset.range(2)).get_next()
    values = []
    with v1.train.MonitoredTrainingSession(checkpoint_dir=tmp_path, save_summaries_steps=None) as session:
        while not session.should_stop():
            values.append(int(session.run(x)))
    assert values == [0, 1]
    with pytest.raises(ZeroDivisionError), v1.train.MonitoredTrainingSession() as session:
        raise ZeroDivisionError
    with pytest.raises(RuntimeError, match="after the session was closed"):
        session.run(x)


def test_a_hook_adds_fetches_and_feeds_to_each_run() -> None:
    x = v1.placeholder(v1.float32, [])
    doubles = []

    class Hook(v1.train.SessionRunHook):  # type: ignore[misc,name-defined]  # a lazy name
        def before_run(self, run_context: Any) -> Any:
            return v1.train.SessionRunArgs({"double": x * 2.0}, {x: 3.0})

        def after_run(self, run_context: Any, run_values: Any) -> None:
            doubles.append(float(run_values.results["double"]))

    y = x + 1.0
    with v1.train.MonitoredSession(hooks=[Hook()]) as session:
        assert session.run(y) == 4.0
    assert doubles == [6.0]


def test_values_are_logged_every_second_run(caplog: pytest.LogCaptureFixture) -> None:
    count = counter()
    with (
        caplog.at_level(logging.INFO, "tensorflow"),
        v1.train.MonitoredSession(hooks=[v1.train.LoggingTensorHook({"step": count}, 2)]) as session,
    ):
        for _ in range(3):
            session.run(count)
    assert [r.getMessage() for r in caplog.records] == ["step = 1", "step = 3"]


def test_a_nan_loss_is_an_error_or_a_stop() -> None:
    loss = v1.constant(float("nan")) * 1.0
    with (
        pytest.raises(v1.train.NanLossDuringTrainingError, match="smaller learning rate"),
        v1.train.MonitoredSession(hooks=[v1.train.NanTensorHook(loss)]) as session,
    ):
        session.run(loss)
    with v1.train.MonitoredSession(hooks=[v1.train.NanTensorHook(loss, False)]) as session:
        session.run(loss)
        assert session.should_stop()


def test_hooks_refuse_what_they_can_not_do(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="num_steps or last_step"):
        v1.train.StopAtStepHook()
    with pytest.raises(ValueError, match="Exactly one of save_secs and save_steps"):
        v1.train.CheckpointSaverHook(tmp_path, 1.0, 1)
    with pytest.raises(ValueError, match="every_n_iter, or at_end"):
        v1.train.LoggingTensorHook({"x": v1.constant(1.0)})
    with pytest.raises(RuntimeError, match="needs a global step"):
        v1.train.MonitoredSession(hooks=[v1.train.StopAtStepHook(1)])


# Coordinator


def test_the_first_error_of_a_thread_is_raised_where_all_are_joined() -> None:
    coord = v1.train.Coordinator()

    def work() -> None:
        with coord.stop_on_exception():
            raise ZeroDivisionError

    def wait() -> None:
        coord.wait_for_stop()

    threads = [threading.Thread(target=f) for f in (wait, work, wait)]
    for thread in threads:
        thread.start()
        coord.register_thread(thread)
    with pytest.raises(ZeroDivisionError):
        coord.join()
    assert coord.joined
    coord.clear_stop()
    assert not coord.should_stop()


def test_the_end_of_a_dataset_is_no_error_of_a_thread() -> None:
    coord = v1.train.Coordinator()
    coord.request_stop(errors.OutOfRangeError("End of sequence"))
    coord.join([])
    assert coord.should_stop()


def test_a_thread_that_runs_on_is_an_error() -> None:
    coord, end = v1.train.Coordinator(), threading.Event()
    thread = threading.Thread(target=end.wait, name="stubborn")
    thread.start()
    coord.request_stop()
    try:
        with pytest.raises(RuntimeError, match="threads still running: stubborn"):
            coord.join([thread], stop_grace_period_secs=0)
        coord.join([thread], stop_grace_period_secs=0, ignore_live_threads=True)
    finally:
        end.set()
        thread.join()
