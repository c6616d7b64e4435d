"""TensorFlow 1's Saver: saves variables by name, from sessions and eagerly."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualflow as df
import dualflow.eager as tfe
from dualflow.compat import v1


@pytest.fixture
def graph() -> Any:
    """A graph with two variables, their initializer, and a session."""
    with v1.Graph().as_default(), v1.Session() as session:
        a = v1.get_variable("a", initializer=1.0)
        b = v1.get_variable("b", initializer=[2, 3])
        session.run(v1.global_variables_initializer())
        yield session, a, b


def test_a_session_is_saved_and_restored(graph: Any, tmp_path: Path) -> None:
    session, a, b = graph
    saver = v1.train.Saver()
    path = saver.save(session, tmp_path / "g" / "m", global_step=7)
    assert path == str(tmp_path / "g" / "m-7")
    assert df.train.list_variables(path) == [("a", []), ("b", [2])]
    with v1.Session() as other:  # nothing is initialized there
        count = len(v1.get_default_graph().get_operations())
        saver.restore(other, path)
        assert float(other.run(a)) == 1.0
        assert other.run(b).tolist() == [2, 3]
        assert len(v1.get_default_graph().get_operations()) == count


def test_a_session_without_values_is_not_saved(graph: Any, tmp_path: Path) -> None:
    with v1.Session() as other, pytest.raises(RuntimeError, match="uninitialized"):
        v1.train.Saver().save(other, tmp_path / "m")
    assert os.listdir(tmp_path) == []


def test_a_training_in_a_graph_goes_on(tmp_path: Path) -> None:
    def losses(restore: str | None, steps: int, save: bool = False) -> list[float]:
        with v1.Graph().as_default(), v1.Session() as session:
            w = v1.get_variable("w", initializer=[3.0, -2.0])
            step = v1.train.get_or_create_global_step()
            loss = df.reduce_sum(w * w)
            train = v1.train.AdamOptimizer(0.1).minimize(loss, global_step=step)
            session.run(v1.global_variables_initializer())
            saver = v1.train.Saver()
            if restore:
                saver.restore(session, restore)
            history = []
            for _ in range(steps):
                session.run(train)
                history.append(float(session.run(loss)))
            if save:
                saver.save(session, tmp_path / "m", global_step=step)
            return history

    whole = losses(None, 6)
    assert losses(None, 3, save=True) == whole[:3]
    assert losses(df.train.latest_checkpoint(tmp_path), 3) == whole[3:]


def test_the_last_ones_are_kept(graph: Any, tmp_path: Path) -> None:
    session, *_ = graph
    saver = v1.train.Saver(max_to_keep=2)
    for i in range(4):
        saver.save(session, tmp_path / "m", global_step=np.int64(i))
    assert sorted(os.listdir(tmp_path)) == ["checkpoint", "m-2", "m-3"]
    assert saver.last_checkpoints == [str(tmp_path / f"m-{i}") for i in (2, 3)]
    assert v1.train.latest_checkpoint(tmp_path) == str(tmp_path / "m-3")
    other = v1.train.Saver(max_to_keep=2)
    other.recover_last_checkpoints([*saver.last_checkpoints, str(tmp_path / "m-9")])
    assert other.last_checkpoints == saver.last_checkpoints
    other.save(session, tmp_path / "m", global_step=4)
    assert sorted(os.listdir(tmp_path)) == ["checkpoint", "m-3", "m-4"]
    other.set_last_checkpoints_with_time([(str(tmp_path / "m-3"), 5.0)])
    assert other.last_checkpoints == [str(tmp_path / "m-3")]


def test_all_are_kept_if_requested(graph: Any, tmp_path: Path) -> None:
    session, *_ = graph
    saver = v1.train.Saver(max_to_keep=0, pad_step_number=True)
    for i in range(7):
        saver.save(session, tmp_path / "m", global_step=i)
    assert len(os.listdir(tmp_path)) == 8
    assert (tmp_path / "m-00000003").is_dir()


def test_the_state_file_is_written_as_requested(graph: Any, tmp_path: Path) -> None:
    session, *_ = graph
    saver = v1.train.Saver()
    saver.save(session, tmp_path / "m", write_state=False)
    assert os.listdir(tmp_path) == ["m"]
    saver.save(session, tmp_path / "n", latest_filename="other")
    assert v1.train.latest_checkpoint(tmp_path) is None
    assert v1.train.latest_checkpoint(tmp_path, "other") == str(tmp_path / "n")


def test_a_saver_has_the_variables_of_the_time_it_was_made(graph: Any, tmp_path: Path) -> None:
    session, *_ = graph
    saver = v1.train.Saver()
    v1.get_variable("later", initializer=5.0)
    assert [name for name, _ in df.train.list_variables(saver.save(session, tmp_path / "m"))] == ["a", "b"]
    assert v1.train.Saver([], allow_empty=True).save(session, tmp_path / "k") is None


def test_names_may_be_given(graph: Any, tmp_path: Path) -> None:
    session, a, b = graph
    path = v1.train.Saver({"x": a, "y": b}).save(session, tmp_path / "m")
    session.run([a.assign(0.0), b.assign([0, 0])])
    v1.train.Saver({"y": b}).restore(session, path)
    assert (float(session.run(a)), session.run(b).tolist()) == (0.0, [2, 3])


def test_eager_variables_by_their_names(tmp_path: Path) -> None:
    v, w = tfe.Variable([1.0, 2.0], name="v"), tfe.Variable(3, name="w")
    path = tfe.Saver([v, w]).save(tmp_path / "m", global_step=df.Variable(5))
    assert path == str(tmp_path / "m-5")
    v.assign([0.0, 0.0])
    w.assign(0)
    tfe.Saver([v, w]).restore(path)
    assert (v.numpy().tolist(), int(w)) == ([1.0, 2.0], 3)
    other = df.Variable(0, name="w")
    v1.train.Saver([other]).restore(None, path)
    assert int(other) == 3


def test_a_checkpoint_restores_what_a_saver_has_saved(tmp_path: Path) -> None:
    path = tfe.Saver([tfe.Variable(1.0, name="a"), tfe.Variable(2.0, name="b")]).save(tmp_path / "m")
    b, c = df.Variable(0.0, name="b"), df.Variable(0.0, name="c")
    status = df.train.Checkpoint(x=[b], y=c).read(path)
    assert float(b) == 2.0
    assert (status.restored, status.unused, status.pending, status.missing) == (["b"], ["a"], [], ["y"])


def test_a_saver_restores_what_a_checkpoint_has_saved(tmp_path: Path) -> None:
    first, second = df.Variable([1.0, 2.0], name="first"), df.Variable(2.0, name="twice")
    path = df.train.Checkpoint(a=first, b=second, c=df.Variable(3.0, name="twice")).write(tmp_path / "c")
    with v1.Graph().as_default(), v1.Session() as session:
        v = v1.get_variable("first", [2])
        v1.train.Saver().restore(session, path)
        assert session.run(v).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match=r"2 variables of the checkpoint .* are called twice"):
        v1.train.Saver([second]).restore(None, path)


def test_helpers_of_the_first_version(graph: Any, tmp_path: Path) -> None:
    session, *_ = graph
    path = v1.train.Saver().save(session, tmp_path / "m")
    assert v1.train.checkpoint_exists(path)
    assert not v1.train.checkpoint_exists(tmp_path / "n")
    assert len(v1.train.get_checkpoint_mtimes([path, str(tmp_path / "n")])) == 1
    v1.train.update_checkpoint_state(tmp_path, str(tmp_path / "other"), [path])
    assert v1.train.get_checkpoint_state(tmp_path).all_model_checkpoint_paths == (
        path,
        str(tmp_path / "other"),
    )
    v1.train.remove_checkpoint(path)
    assert os.listdir(tmp_path) == ["checkpoint"]
