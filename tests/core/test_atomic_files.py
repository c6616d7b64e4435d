"""Files that are replaced atomically, and what is left if their writer fails."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import dualflow as df
from dualflow.core.atomic_files import AtomicFile, remove_leftovers
from dualflow.core.errors import FailedPreconditionError

needs_locks = pytest.mark.skipif(sys.platform == "win32", reason="there are no such locks")


def test_a_file_has_the_old_content_until_the_new_one_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "letter"
    path.write_text("old")
    with AtomicFile(str(path)) as file:
        file.write(b"n" * 3_000_000)
        file.write(memoryview(b"ew"))
        assert path.read_text() == "old"
        assert file.size == 3_000_002
    assert path.read_bytes() == b"n" * 3_000_000 + b"ew"
    assert os.listdir(tmp_path) == ["letter"]


def test_a_block_that_fails_leaves_the_old_content(tmp_path: Path) -> None:
    path = tmp_path / "letter"
    path.write_text("old")
    file = AtomicFile(str(path))

    def fail() -> None:
        with file:
            file.write(b"new")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    file.discard()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["letter"]
    with pytest.raises(FailedPreconditionError, match="complete"):
        file.commit()


def test_a_file_that_is_dropped_is_removed(tmp_path: Path) -> None:
    AtomicFile(str(tmp_path / "letter")).write(b"new")
    assert os.listdir(tmp_path) == []


def test_a_long_name_and_a_mode_are_kept(tmp_path: Path) -> None:
    path = tmp_path / ("\u00e9" * 120)
    with AtomicFile(str(path), mode=0o640) as file:
        file.write(b"x")
    assert path.read_bytes() == b"x"
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o640


@needs_locks
def test_leftovers_of_living_writers_and_other_files_stay(tmp_path: Path) -> None:
    others = [".letter.tmp", ".letter.0123.tmp", "letter.0123456789abcdef.tmp"]
    for name in others:
        (tmp_path / name).write_text("not ours")
    (tmp_path / ".letter.0123456789abcdef.tmp").write_text("a dead writer's")
    os.mkdir(tmp_path / ".folder.0123456789abcdef.tmp")
    alive = AtomicFile(str(tmp_path / "letter"))
    remove_leftovers(str(tmp_path))
    assert set(others) < set(os.listdir(tmp_path))
    assert len(os.listdir(tmp_path)) == len(others) + 2
    alive.write(b"new")
    alive.commit()
    assert (tmp_path / "letter").read_text() == "new"


def test_concurrent_writers_of_one_file_do_not_conflict(tmp_path: Path) -> None:
    path, failures = tmp_path / "letter", []

    def write(number: int) -> None:
        try:
            for _ in range(20):
                with AtomicFile(str(path)) as file:
                    file.write(bytes([number]) * 1000)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(set(path.read_bytes())) == 1
    assert os.listdir(tmp_path) == ["letter"]


WRITERS = {
    "cache": "[0 for _ in D.range(50).map(stop).cache(folder + '/c')]",
    "save": "D.range(50).map(stop).save(folder + '/c')",
}
PROGRAM = """
import os, sys, dualflow as df
D, folder = df.data.Dataset, sys.argv[1]
def die(x):
    if int(x) == 40: os.kill(os.getpid(), 9)
    return x
def stop(x): return df.py_function(die, [x], df.int64)
"""


@needs_locks
@pytest.mark.parametrize("name", WRITERS)
def test_the_next_writer_removes_what_a_killed_one_has_left(tmp_path: Path, name: str) -> None:
    command = [sys.executable, "-c", PROGRAM + WRITERS[name], str(tmp_path)]
    assert subprocess.run(command, timeout=100).returncode == -signal.SIGKILL
    (leftover,) = os.listdir(tmp_path)
    assert leftover.startswith(".c.")
    df.io.write_file(str(tmp_path / "other"), "a letter")
    assert os.listdir(tmp_path) == ["other"]
