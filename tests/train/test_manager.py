"""Checkpoint managers keep the last checkpoints of a folder, and continue where another manager stopped."""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import dualflow as df


def managed(folder: Path, **options: Any) -> tuple[Any, Any]:
    v = df.Variable(0)
    settings = {"max_to_keep": 2, **options}
    return v, df.train.CheckpointManager(df.train.Checkpoint(v=v), folder, **settings)


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_the_last_ones_are_kept(tmp_path: Path) -> None:
    v, manager = managed(tmp_path)
    paths = []
    for i in range(4):
        v.assign(i)
        paths.append(manager.save())
    assert paths == [str(tmp_path / f"ckpt-{i}") for i in (1, 2, 3, 4)]
    assert manager.checkpoints == paths[2:]
    assert manager.latest_checkpoint == paths[3] == df.train.latest_checkpoint(tmp_path)
    assert names(tmp_path) == ["checkpoint", "ckpt-3", "ckpt-4"]


def test_all_are_kept_if_requested(tmp_path: Path) -> None:
    _, manager = managed(tmp_path, max_to_keep=None, checkpoint_name="zz")
    for _ in range(4):
        manager.save()
    assert names(tmp_path) == ["checkpoint", "zz-1", "zz-2", "zz-3", "zz-4"]


def test_a_number_may_be_given(tmp_path: Path) -> None:
    """As in TensorFlow the number of saves counts on."""
    _, manager = managed(tmp_path)
    assert [manager.save(), manager.save(checkpoint_number=df.constant(10)), manager.save()] == [
        str(tmp_path / f"ckpt-{i}") for i in (1, 10, 3)
    ]
    assert manager.checkpoints == [str(tmp_path / "ckpt-10"), str(tmp_path / "ckpt-3")]


def test_another_manager_goes_on(tmp_path: Path) -> None:
    v, manager = managed(tmp_path)
    for i in range(3):
        v.assign(i)
        manager.save()
    w, other = managed(tmp_path)
    assert other.checkpoints == manager.checkpoints
    assert other.restore_or_initialize() == manager.latest_checkpoint
    assert int(w) == 2
    assert other.save() == str(tmp_path / "ckpt-4")
    assert names(tmp_path) == ["checkpoint", "ckpt-3", "ckpt-4"]


def test_a_folder_may_be_moved(tmp_path: Path) -> None:
    _, manager = managed(tmp_path / "a")
    manager.save()
    shutil.move(tmp_path / "a", tmp_path / "b")
    assert df.train.latest_checkpoint(tmp_path / "b") == str(tmp_path / "b" / "ckpt-1")
    _, other = managed(tmp_path / "b")
    assert other.restore_or_initialize() == str(tmp_path / "b" / "ckpt-1")


def test_checkpoints_that_other_code_has_removed_are_forgotten(tmp_path: Path) -> None:
    _, manager = managed(tmp_path, max_to_keep=3)
    for _ in range(3):
        manager.save()
    shutil.rmtree(tmp_path / "ckpt-2")
    _, other = managed(tmp_path, max_to_keep=3)
    assert [Path(p).name for p in other.checkpoints] == ["ckpt-1", "ckpt-3"]
    shutil.rmtree(tmp_path / "ckpt-3")
    assert df.train.latest_checkpoint(tmp_path) is None


def test_files_of_others_in_a_checkpoints_folder_stay(tmp_path: Path) -> None:
    _, manager = managed(tmp_path, max_to_keep=1)
    path = manager.save()
    (Path(path) / "notes.txt").write_text("mine")
    manager.save()
    assert names(Path(path)) == ["notes.txt"]


def test_where_there_is_nothing_to_restore_a_function_begins(tmp_path: Path) -> None:
    begun = []
    _, manager = managed(tmp_path, init_fn=lambda: begun.append(1))
    assert manager.restore_or_initialize() is None
    manager.save()
    manager.restore_or_initialize()
    assert begun == [1]


def test_a_save_may_be_too_soon(tmp_path: Path) -> None:
    step = df.Variable(0, dtype=df.int64)
    _, manager = managed(tmp_path, step_counter=step, checkpoint_interval=3)
    saved = []
    for i in range(7):
        step.assign(i)
        if manager.save() is not None:
            saved.append(i)
    assert saved == [0, 3, 6]
    assert manager.save(check_interval=False) is not None
    _, other = managed(tmp_path, step_counter=step, checkpoint_interval=3)
    other.restore_or_initialize()
    assert other.save() is None


def test_keep_checkpoint_every_n_hours_keeps_checkpoints(tmp_path: Path) -> None:
    _, manager = managed(tmp_path, max_to_keep=1, keep_checkpoint_every_n_hours=1e-9)
    for _ in range(3):
        manager.save()
    assert names(tmp_path) == ["checkpoint", "ckpt-1", "ckpt-2", "ckpt-3"]
    assert len(manager.checkpoints) == 1
    state = df.train.get_checkpoint_state(tmp_path)
    assert state.last_preserved_timestamp in [os.stat(tmp_path).st_mtime, state.last_preserved_timestamp]
    assert 0 < state.last_preserved_timestamp <= time.time()


def test_the_managers_arguments_are_its_properties(tmp_path: Path) -> None:
    checkpoint = df.train.Checkpoint(v=df.Variable(0))
    step = df.Variable(0)
    manager = df.train.CheckpointManager(
        checkpoint, str(tmp_path), 3, step_counter=step, checkpoint_interval=5
    )
    assert manager.checkpoint is checkpoint
    assert (manager.directory, manager.checkpoint_interval) == (str(tmp_path), 5)
    manager.sync()


def test_the_state_of_a_folder(tmp_path: Path) -> None:
    assert df.train.get_checkpoint_state(tmp_path) is None
    assert df.train.latest_checkpoint(tmp_path / "nothing") is None
    _, manager = managed(tmp_path)
    for _ in range(3):
        manager.save()
    state = df.train.get_checkpoint_state(tmp_path)
    assert state.model_checkpoint_path == manager.latest_checkpoint
    assert list(state.all_model_checkpoint_paths) == manager.checkpoints
    first, second = state.all_model_checkpoint_timestamps
    assert first <= second <= time.time()


def test_an_evaluation_follows_a_training(tmp_path: Path) -> None:
    _, manager = managed(tmp_path)
    evaluated = []
    manager.save()
    for path in df.train.checkpoints_iterator(tmp_path, timeout=0):
        evaluated.append(Path(path).name)
        if len(evaluated) < 3:
            manager.save()
    assert evaluated == ["ckpt-1", "ckpt-2", "ckpt-3"]


def test_an_evaluation_waits_for_the_first_checkpoint(tmp_path: Path) -> None:
    _, manager = managed(tmp_path)
    asked = threading.Event()

    def save() -> None:
        asked.wait()
        manager.save()

    saver = threading.Thread(target=save)
    saver.start()
    ended = [False]

    def stop() -> bool:
        """Whether the iterator has looked once more since the checkpoint was there."""
        asked.set()
        ended.append(not saver.is_alive())
        return ended[-2]

    checkpoints = list(df.train.checkpoints_iterator(tmp_path, timeout=0, timeout_fn=stop))
    saver.join()
    assert checkpoints == [str(tmp_path / "ckpt-1")]
