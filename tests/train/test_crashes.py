"""Checkpoint writers that crash, fail or race: each checkpoint that can be read is complete.

One process forks a child for each place in which a saver may stop, before each call that changes the disk;
the child is killed there.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.train import array_file

CHANGES = ["mkdir", "open", "fsync", "replace", "unlink", "rmdir"]
"""The functions of ``os`` that a saver calls to change the disk."""

PROGRAM = """
import builtins, io, os, signal, sys
import dualflow as df
from dualflow.train import array_file

directory = sys.argv[1]

def stop_at(count):
    # Let the process die at the call of that number which changes the disk.
    calls = 0
    def counting(function):
        def call(*args, **options):
            nonlocal calls
            calls += 1
            if calls == count:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **options)
        return call
    os.fsync = lambda number: None  # what a killed process has written is the system's
    for name in {changes}:
        setattr(os, name, counting(getattr(os, name)))
    changing = (array_file.save_file, io.open, builtins.open)
    array_file.save_file, io.open, builtins.open = map(counting, changing)

def overwrite(value):
    df.train.Checkpoint(v=df.Variable([value] * 8)).write(directory + "/c")

def manage(value):
    v = df.Variable([value] * 8)
    manager = df.train.CheckpointManager(df.train.Checkpoint(v=v), directory + "/m", max_to_keep=1)
    manager.restore_or_initialize()
    v.assign([value] * 8)
    manager.save()

def value_in(path):
    values = df.train.load_variable(path, "v/.ATTRIBUTES/VARIABLE_VALUE").tolist()
    assert len(set(values)) == 1, values
    return values[0]

def written():
    return directory + "/c"

def managed():
    return df.train.latest_checkpoint(directory + "/m")

for save, path in (overwrite, written), (manage, managed):
    save(0.0)
    last, places = 0.0, 0
    while True:
        child = os.fork()
        if not child:
            stop_at(places + 1)
            save(places + 1.0)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            assert status == 0, status
            break
        places += 1
        now = value_in(path())
        assert now in (last, float(places)), (now, places)
        last = now
    print(save.__name__, places)
print(len(os.listdir(directory + "/c")), *[x.name for x in os.scandir(directory + "/m") if not x.is_dir()])
print(sum(map(os.path.isdir, os.scandir(directory + "/m"))))
"""


def test_a_saver_that_is_killed_anywhere_leaves_the_old_checkpoint_or_the_new_one(tmp_path: Path) -> None:
    """And the next save removes what those have left that were killed."""
    program = PROGRAM.replace("{changes}", repr(CHANGES))
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    places = dict(line.split() for line in done.stdout.splitlines()[:2])
    assert int(places["overwrite"]) >= 10
    assert int(places["manage"]) > int(places["overwrite"])
    assert done.stdout.endswith("\n2 checkpoint\n1\n")  # files of a checkpoint, of a manager, its checkpoints


def in_child(action: Any) -> str:
    """The error of an action in a forked process: the name of its class, and the message."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            action()
            said = "nothing"
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with open(read, encoding="utf-8") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


@pytest.fixture
def saved(tmp_path: Path) -> tuple[Any, Path]:
    """A checkpoint of ones, whose variable then holds twos."""
    v = df.Variable(np.ones(20_000, np.float32))
    checkpoint = df.train.Checkpoint(v=v)
    checkpoint.write(tmp_path / "c")
    v.assign(2.0 * v)
    return checkpoint, tmp_path / "c"


def assert_is_whole(path: Path, value: float) -> None:
    assert set(df.train.load_variable(path, "v/.ATTRIBUTES/VARIABLE_VALUE").tolist()) == {value}
    assert len(os.listdir(path)) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="limits are POSIX's")
def test_a_disk_that_is_full_keeps_the_old_checkpoint(saved: tuple[Any, Path]) -> None:
    checkpoint, path = saved

    def save() -> None:
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
        checkpoint.write(path)

    said = in_child(save)
    assert said.startswith("ResourceExhaustedError: Saving the checkpoint ")
    assert "Earlier checkpoints are unchanged. Free space, or save elsewhere." in said
    assert_is_whole(path, 1.0)


@pytest.mark.skipif(sys.platform == "win32", reason="users are POSIX's")
def test_a_folder_that_may_not_be_written_to(saved: tuple[Any, Path]) -> None:
    checkpoint, path = saved
    path.chmod(0o555)

    def save() -> None:
        if os.getuid() == 0:
            for folder in path.parents:
                if os.stat(folder).st_uid == 0 and folder.name.startswith("pytest"):
                    folder.chmod(0o755)
            os.setuid(65534)
        checkpoint.write(path)

    said = in_child(save)
    path.chmod(0o755)
    assert said.startswith("PermissionDeniedError: Saving the checkpoint ")
    assert_is_whole(path, 1.0)


@pytest.mark.parametrize("place", range(12))
def test_ctrl_c_anywhere_leaves_one_complete_checkpoint_and_no_leftovers(
    place: int, saved: tuple[Any, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint, path = saved
    calls = []

    def interrupted(function: Any, before: bool) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            calls.append(function)
            here = len(calls) == place // 2 + 1
            if here and before:
                raise KeyboardInterrupt
            done = function(*args, **options)
            if here:
                raise KeyboardInterrupt
            return done

        return call

    for name in ("fsync", "replace"):
        monkeypatch.setattr(os, name, interrupted(getattr(os, name), before=place % 2 == 0))
    monkeypatch.setattr(array_file, "save_file", interrupted(array_file.save_file, place % 2 == 0))
    with pytest.raises(KeyboardInterrupt):
        checkpoint.write(path)
    monkeypatch.undo()
    value = df.train.load_variable(path, "v/.ATTRIBUTES/VARIABLE_VALUE")[0]
    assert value in (1.0, 2.0)
    checkpoint.write(path)
    assert_is_whole(path, 2.0)


def test_a_save_that_fails_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = df.train.Checkpoint(v=df.Variable(1.0))
    manager = df.train.CheckpointManager(checkpoint, tmp_path, max_to_keep=1)
    first = manager.save()

    def full(*args: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    for save in (manager.save, lambda: checkpoint.save(tmp_path / "ckpt")):
        with pytest.raises(df.errors.ResourceExhaustedError, match="No space left on device"):
            save()
    monkeypatch.undo()
    assert (int(checkpoint.save_counter), manager.latest_checkpoint, manager.checkpoints) == (
        1,
        first,
        [first],
    )
    assert sorted(os.listdir(tmp_path)) == ["checkpoint", "ckpt-1"]
    assert manager.save() == str(tmp_path / "ckpt-2")


def test_savers_and_readers_of_one_path_at_once(tmp_path: Path) -> None:
    """Each reader sees what one of the savers has written."""
    df.train.Checkpoint(v=[df.Variable([0.0] * 100), df.Variable([0.0] * 100)]).write(tmp_path / "c")
    failures: list[Exception] = []

    def save(number: int) -> None:
        checkpoint = df.train.Checkpoint(v=[df.Variable([float(number)] * 100) for _ in range(2)])
        for _ in range(10):
            checkpoint.write(tmp_path / "c")

    def read() -> None:
        v = [df.Variable([0.0] * 100), df.Variable([0.0] * 100)]
        checkpoint = df.train.Checkpoint(v=v)
        try:
            for _ in range(30):
                checkpoint.read(tmp_path / "c")
                assert len({*v[0].numpy().tolist(), *v[1].numpy().tolist()}) == 1
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=save, args=[i]) for i in (1, 2)] + [threading.Thread(target=read)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_checkpoint_saved_during_training_is_consistent(tmp_path: Path) -> None:
    v, w = df.Variable(df.zeros([50_000])), df.Variable(df.zeros([50_000]))
    ones = df.ones([50_000])

    @df.function
    def step() -> None:
        v.assign_add(ones)
        w.assign_add(ones)

    step()
    ended = threading.Event()

    def train() -> None:
        while not ended.is_set():
            step()

    thread = threading.Thread(target=train)
    thread.start()
    checkpoint = df.train.Checkpoint(v=v, w=w)
    states = []
    for _ in range(8):
        reader = df.train.load_checkpoint(checkpoint.write(tmp_path / "c"))
        states.append({*np.unique([reader.get_tensor(f"{x}/.ATTRIBUTES/VARIABLE_VALUE") for x in "vw"])})
    ended.set()
    thread.join()
    assert [len(values) for values in states] == [1] * 8


def test_threads_that_save_one_checkpoint_use_numbers_of_their_own(tmp_path: Path) -> None:
    checkpoint = df.train.Checkpoint(v=df.Variable(1.0))
    paths: list[str] = []
    threads = [
        threading.Thread(target=lambda: paths.append(checkpoint.save(tmp_path / "c"))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(paths) == [str(tmp_path / f"c-{i}") for i in (1, 2, 3, 4)]
