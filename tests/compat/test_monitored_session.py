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


# Scaffolds


def test_a_scaffold_s_operations_prepare_the_session(tmp_path: Path) -> None:
    count, rate = counter(), v1.placeholder(v1.float32, [])
    w, local = v1.Variable(0.0), v1.Variable(0.0, trainable=False, collections=[v1.GraphKeys.LOCAL_VARIABLES])
    loaded: list[float] = []
    scaffold = v1.train.Scaffold(
        init_op=v1.group(v1.global_variables_initializer(), w.assign(rate)),
        init_feed_dict={rate: 2.0},
        init_fn=lambda scaffold, session: loaded.append(float(session.run(w))),
        local_init_op=local.assign(3.0),
        ready_op=v1.report_uninitialized_variables(),
        saver=v1.train.Saver([w, v1.train.get_global_step()]),
    )
    hooks = [v1.train.StopAtStepHook(num_steps=1)]
    for expected in (1, 2):
        with v1.train.MonitoredTrainingSession(
            checkpoint_dir=tmp_path,
            scaffold=scaffold,
            hooks=hooks,
            save_checkpoint_steps=1,
            save_summaries_steps=None,
        ) as session:
            step, *values = session.run([count, w, local])
        assert (step, values) == (expected, [2.0, 3.0])
    assert loaded == [2.0]  # the second session restores a checkpoint


def test_after_a_restore_the_init_op_does_not_run(tmp_path: Path) -> None:
    w = v1.get_variable("w", initializer=1.0)
    with v1.Session() as session:
        session.run(w.assign(5.0))
        path = v1.train.Saver([w]).save(session, str(tmp_path / "model"))
    creator = v1.train.ChiefSessionCreator(checkpoint_filename_with_path=path)
    assert creator.create_session().run(w) == 5.0
    v1.get_variable("later", initializer=1.0)
    saver = v1.train.Saver([w])
    creator = v1.train.ChiefSessionCreator(v1.train.Scaffold(saver=saver), checkpoint_filename_with_path=path)
    with pytest.raises(RuntimeError, match=r"not initialized: later\..* restore a checkpoint that has"):
        creator.create_session()


def test_variables_that_stay_without_a_value_are_an_error() -> None:
    w = v1.Variable(1.0, name="w")
    v1.Variable(1.0, name="forgotten")
    for name in ("ready_op", "ready_for_local_init_op"):
        scaffold = v1.train.Scaffold(
            init_op=w.initializer, **{name: v1.report_uninitialized_variables(v1.global_variables())}
        )
        with pytest.raises(RuntimeError, match=r"Variables not initialized: forgotten\. Initialize them"):
            v1.train.ChiefSessionCreator(scaffold).create_session()


def test_a_session_is_created_from_a_checkpoint_of_a_name(tmp_path: Path) -> None:
    w = v1.Variable(1.0)
    with v1.Session() as session:
        session.run(w.initializer)
        paths = [v1.train.Saver().save(session, str(tmp_path / "model"), step) for step in (1, 2)]
    assert paths[0] != v1.train.latest_checkpoint(tmp_path)
    creator = v1.train.ChiefSessionCreator(checkpoint_filename_with_path=paths[0])
    with v1.train.MonitoredSession(creator) as session:
        assert session.run(w) == 1.0


def test_hooks_feed_each_run_and_run_operations_at_the_end() -> None:
    x, count = v1.placeholder(v1.float32, []), counter()
    last = v1.train.FinalOpsHook({"count": v1.train.get_global_step(), "x": x}, {x: 7.0})
    with v1.train.MonitoredSession(hooks=[v1.train.FeedFnHook(lambda: {x: 4.0}), last]) as session:
        assert session.run([x, count]) == [4.0, 1]
        assert last.final_ops_values is None
    assert last.final_ops_values == {"count": 1, "x": 7.0}
    nothing = v1.train.FinalOpsHook(None)
    with v1.train.MonitoredSession(hooks=[nothing]):
        pass
    assert nothing.final_ops_values is None


def test_a_global_step_is_one_integer() -> None:
    v1.train.assert_global_step(v1.train.get_or_create_global_step())
    with pytest.raises(TypeError, match="must be a variable or tensor of one integer"):
        v1.train.assert_global_step(v1.Variable(1.0))
    with pytest.raises(ValueError, match="is not scalar"):
        v1.train.assert_global_step(v1.Variable([1]))
