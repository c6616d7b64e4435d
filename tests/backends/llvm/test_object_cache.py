"""The object cache: an entry is read back whole or not at all, and disk errors are not raised."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualflow.backends.runtime import object_cache

KEY = "ab" * 32
PAYLOAD = bytes(range(256))
SOURCE_ROOT = Path(object_cache.__file__).parents[4]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    where = tmp_path / "cache"
    monkeypatch.setenv("DUALFLOW_CACHE_DIR", str(where))
    return where


def the_entry(folder: Path) -> Path:
    (entry,) = folder.iterdir()
    return entry


def python(program: str, *arguments: str) -> subprocess.Popen[bytes]:
    environment = os.environ | {"PYTHONPATH": str(SOURCE_ROOT)}
    return subprocess.Popen([sys.executable, "-c", program, *arguments], env=environment)


# What is stored comes back.


@given(payload=st.binary(max_size=3000))
def test_a_stored_object_comes_back(tmp_path_factory: pytest.TempPathFactory, payload: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DUALFLOW_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        object_cache.store(KEY, payload)
        assert object_cache.load(KEY) == payload


def test_keys_are_apart(folder: Path) -> None:
    object_cache.store(KEY, b"one")
    object_cache.store("cd" * 32, b"two")
    assert (object_cache.load(KEY), object_cache.load("cd" * 32)) == (b"one", b"two")


def test_the_last_store_wins(folder: Path) -> None:
    object_cache.store(KEY, b"one")
    object_cache.store(KEY, b"two")
    assert object_cache.load(KEY) == b"two"


def test_a_store_leaves_only_the_entry(folder: Path) -> None:
    object_cache.store(KEY, PAYLOAD)
    assert the_entry(folder).name == KEY + ".dfo"


def test_another_process_reads_it(folder: Path) -> None:
    object_cache.store(KEY, PAYLOAD)
    program = (
        "import sys; from dualflow.backends.runtime import object_cache;"
        "sys.exit(object_cache.load(sys.argv[1]) != bytes(range(256)))"
    )
    assert python(program, KEY).wait() == 0


# Damage is a miss, and the next store repairs it.


def test_any_changed_byte_is_a_miss(folder: Path) -> None:
    object_cache.store(KEY, PAYLOAD)
    entry = the_entry(folder)
    whole = entry.read_bytes()
    for i in range(len(whole)):
        entry.write_bytes(whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :])
        assert object_cache.load(KEY) is None, f"byte {i}"


def test_any_truncation_is_a_miss(folder: Path) -> None:
    object_cache.store(KEY, PAYLOAD)
    entry = the_entry(folder)
    whole = entry.read_bytes()
    for size in range(len(whole)):
        entry.write_bytes(whole[:size])
        assert object_cache.load(KEY) is None, f"{size} bytes"


@pytest.mark.parametrize("content", [b"", b"\0" * 400, b"\x7fELF" + b"\0" * 400, b"# a text\n" * 50])
def test_a_foreign_file_is_a_miss(folder: Path, content: bytes) -> None:
    folder.mkdir()
    (folder / (KEY + ".dfo")).write_bytes(content)
    assert object_cache.load(KEY) is None


def test_trailing_bytes_are_a_miss(folder: Path) -> None:
    object_cache.store(KEY, PAYLOAD)
    with the_entry(folder).open("ab") as file:
        file.write(b"x")
    assert object_cache.load(KEY) is None


def test_a_damaged_entry_is_rewritten(folder: Path) -> None:
    object_cache.store(KEY, PAYLOAD)
    the_entry(folder).write_bytes(b"damaged")
    object_cache.store(KEY, PAYLOAD)
    assert object_cache.load(KEY) == PAYLOAD


# Whatever the disk does, nothing is raised.


def test_a_folder_in_the_place_of_an_entry(folder: Path) -> None:
    (folder / (KEY + ".dfo") / "inner").mkdir(parents=True)
    object_cache.store(KEY, PAYLOAD)
    assert object_cache.load(KEY) is None
    assert [path.name for path in folder.iterdir()] == [KEY + ".dfo"]


def test_a_pipe_in_the_place_of_an_entry_does_not_block(folder: Path) -> None:
    folder.mkdir()
    os.mkfifo(folder / (KEY + ".dfo"))
    assert object_cache.load(KEY) is None
    object_cache.store(KEY, PAYLOAD)
    assert object_cache.load(KEY) == PAYLOAD


def test_a_file_in_the_place_of_the_folder(folder: Path) -> None:
    folder.write_text("in the way")
    object_cache.store(KEY, PAYLOAD)
    assert object_cache.load(KEY) is None
    assert folder.read_text() == "in the way"


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="needs a folder that even root can't write to")
def test_a_folder_that_takes_no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("/proc", "/proc/dualflow"):
        monkeypatch.setenv("DUALFLOW_CACHE_DIR", folder)
        object_cache.store(KEY, PAYLOAD)
        assert object_cache.load(KEY) is None


@pytest.mark.skipif(sys.platform == "win32", reason="needs resource limits")
def test_a_full_disk_leaves_nothing(folder: Path) -> None:
    program = """
import resource, sys
from dualflow.backends.runtime import object_cache
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
object_cache.store(sys.argv[1], bytes(5000))
sys.exit(object_cache.load(sys.argv[1]) is not None)
"""
    assert python(program, KEY).wait() == 0
    assert list(folder.iterdir()) == []


# Where the folder is.


def test_an_empty_setting_disables_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DUALFLOW_CACHE_DIR", "")
    monkeypatch.chdir(tmp_path)
    object_cache.store(KEY, PAYLOAD)
    assert object_cache.folder() is None
    assert object_cache.load(KEY) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="they have their own cache folders")
def test_the_platform_folder_follows_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DUALFLOW_CACHE_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert object_cache.folder() == str(tmp_path / ".cache" / "dualflow")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert object_cache.folder() == str(tmp_path / "xdg" / "dualflow")


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="they have their own cache folders")
def test_without_an_absolute_home_there_is_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DUALFLOW_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/folder")
    assert object_cache.folder() is None


# The folder stays within its bound.


def aged(folder: Path, name: str, size: int, age: float) -> Path:
    path = folder / name
    path.write_bytes(bytes(size))
    then = time.time() - age
    os.utime(path, (then, then))
    return path


def test_eviction_removes_the_oldest_first(tmp_path: Path) -> None:
    old, middle, young = (aged(tmp_path, f"{age}.dfo", 100, age) for age in (300, 200, 100))
    object_cache.evict(str(tmp_path), 200)
    assert (old.exists(), middle.exists(), young.exists()) == (False, True, True)


def test_eviction_leaves_strangers_alone(tmp_path: Path) -> None:
    stranger = aged(tmp_path, "notes.txt", 1000, 1e6)
    (tmp_path / "folder.dfo").mkdir()
    object_cache.evict(str(tmp_path), 0)
    assert stranger.exists()
    assert (tmp_path / "folder.dfo").is_dir()


def test_eviction_removes_what_a_killed_writer_left(tmp_path: Path) -> None:
    left = aged(tmp_path, "a.1.1.tmp", 10, 2 * 3600)
    in_progress = aged(tmp_path, "b.1.1.tmp", 10, 1)
    object_cache.evict(str(tmp_path), 1 << 20)
    assert (left.exists(), in_progress.exists()) == (False, True)


def test_an_entry_in_use_counts_as_young(folder: Path) -> None:
    object_cache.store(KEY, PAYLOAD)
    entry = the_entry(folder)
    os.utime(entry, (1e9, 1e9))
    object_cache.load(KEY)
    assert entry.stat().st_mtime > 1.5e9


def test_stores_keep_the_folder_within_its_bound(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_cache, "CACHE_BYTES", 10_000)
    for i in range(256):
        object_cache.store(f"{i:02x}" * 32, bytes(1000))
    object_cache.store("00" * 32, bytes(1000))
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 10_000


# Several processes at once.

_HAMMER = """
import sys
from dualflow.backends.runtime import object_cache
for round in range(150):
    for key in ("00" * 32, "ab" * 32, "cd" * 32):  # every store of the first one also evicts
        object_cache.store(key, bytes([round]) * 5000)
        loaded = object_cache.load(key)
        if loaded is not None and (len(loaded) != 5000 or len(set(loaded)) != 1):
            sys.exit(1)
"""


def test_rival_writers_never_show_half_a_file(folder: Path) -> None:
    rivals = [python(_HAMMER) for _ in range(3)]
    assert [rival.wait() for rival in rivals] == [0, 0, 0]
    assert all(path.suffix == ".dfo" for path in folder.iterdir())


def test_a_folder_deleted_again_and_again(folder: Path) -> None:
    writer = python(_HAMMER)
    while writer.poll() is None:
        shutil.rmtree(folder, ignore_errors=True)
    assert writer.returncode == 0
