"""The object cache runs only objects of the same user, from a folder that no other user may write to."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from dualflow.backends.llvm.runtime import jit
from dualflow.backends.runtime import object_cache

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs owners and modes of files")
ROOT_ONLY = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files to others"
)

KEY = "ab" * 32
SOURCE_ROOT = Path(object_cache.__file__).parents[3]
OTHER_USER = 12345


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an entry of the user's own."""
    where = tmp_path / "cache"
    monkeypatch.setenv("DUALFLOW_CACHE_DIR", str(where))
    object_cache.store(KEY, b"ours")
    assert object_cache.load(KEY) == b"ours"
    return where


def give_the_folder_away(where: Path) -> None:
    os.chown(where, OTHER_USER, -1)


def let_the_group_write(where: Path) -> None:
    where.chmod(0o770)


def let_others_write(where: Path) -> None:
    where.chmod(0o707)


def let_others_replace_it(where: Path) -> None:
    where.parent.chmod(0o777)


def put_a_link_of_somebodys_there(where: Path) -> None:
    where.rename(where.with_name("elsewhere"))
    where.symlink_to(where.with_name("elsewhere"))
    os.chown(where, OTHER_USER, -1, follow_symlinks=False)


def link_to_a_folder_of_somebodys(where: Path) -> None:
    os.chown(where, OTHER_USER, -1)
    where.rename(where.with_name("elsewhere"))
    where.symlink_to(where.with_name("elsewhere"))


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        pytest.param(give_the_folder_away, f"belongs to user {OTHER_USER}, and this", marks=ROOT_ONLY),
        (let_the_group_write, "other users may write to"),
        (let_others_write, "other users may write to"),
        (let_others_replace_it, "other users may replace"),
        pytest.param(put_a_link_of_somebodys_there, f"belongs to user {OTHER_USER}", marks=ROOT_ONLY),
        pytest.param(link_to_a_folder_of_somebodys, f"belongs to user {OTHER_USER}", marks=ROOT_ONLY),
    ],
)
def test_a_folder_that_others_control_is_not_used(
    folder: Path, spoil: Callable[[Path], None], reason: str
) -> None:
    spoil(folder)
    with pytest.warns(UserWarning, match=reason) as warned:
        assert object_cache.load(KEY) is None
    assert "Set DUALFLOW_CACHE_DIR to a folder of your own" in str(warned[0].message)
    assert reason in object_cache.unavailable_reason()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it warns once
        object_cache.store("cd" * 32, b"more")
        assert object_cache.load(KEY) is None
    assert [path.name for path in folder.iterdir()] == [KEY + ".dfo"]


def test_kernels_are_compiled_all_the_same(folder: Path) -> None:
    folder.chmod(0o777)
    with pytest.warns(UserWarning, match="not kept on disk"):
        library = jit.compile_text("define void @f() { ret void }", ["f"], {})
    assert library.address("f")
    assert not library.report.from_cache


@ROOT_ONLY
def test_an_entry_of_another_user_is_a_miss_and_replaced(folder: Path) -> None:
    entry = folder / (KEY + ".dfo")
    os.chown(entry, OTHER_USER, -1)
    assert object_cache.load(KEY) is None
    object_cache.store(KEY, b"ours")
    assert object_cache.load(KEY) == b"ours"


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_an_entry_that_others_may_write_to_is_a_miss_and_replaced(folder: Path, mode: int) -> None:
    (folder / (KEY + ".dfo")).chmod(mode)
    assert object_cache.load(KEY) is None
    object_cache.store(KEY, b"ours")
    assert object_cache.load(KEY) == b"ours"


@ROOT_ONLY
def test_a_link_to_a_file_of_another_user_is_a_miss(folder: Path) -> None:
    entry = folder / (KEY + ".dfo")
    theirs = folder.with_name("theirs")
    entry.rename(theirs)
    os.chown(theirs, OTHER_USER, -1)
    entry.symlink_to(theirs)
    assert object_cache.load(KEY) is None


# What is fine.


def test_a_generous_umask_makes_no_generous_cache(folder: Path) -> None:
    program = """
import os, sys
os.umask(0)
from dualflow.backends.runtime import object_cache
object_cache.store(sys.argv[1], b"ours")
sys.exit(object_cache.load(sys.argv[1]) != b"ours")
"""
    environment = os.environ | {
        "PYTHONPATH": str(SOURCE_ROOT),
        "DUALFLOW_CACHE_DIR": str(folder.with_name("new")),
    }
    command = [sys.executable, "-W", "error", "-c", program, KEY]
    assert subprocess.run(command, env=environment, check=False).returncode == 0


def test_a_folder_of_our_own_within_tmp_is_used(folder: Path) -> None:
    folder.parent.chmod(0o1777)
    assert object_cache.load(KEY) == b"ours"


def test_a_link_of_our_own_is_followed(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to(folder.with_name("elsewhere"))
    assert object_cache.load(KEY) == b"ours"
    assert object_cache.unavailable_reason() == ""


def test_a_folder_that_may_only_be_read_still_serves(folder: Path) -> None:
    folder.chmod(0o555)
    assert object_cache.load(KEY) == b"ours"


@ROOT_ONLY
def test_users_of_a_folder_that_is_not_theirs_run_nothing_of_it(folder: Path) -> None:
    """Also a user who is not root, and to whom root's folder belongs to another."""
    program = f"""
import os, sys, warnings
from dualflow.backends.runtime import object_cache
os.setuid({OTHER_USER})
warnings.simplefilter("ignore")
sys.exit(object_cache.load(sys.argv[1]) is not None)
"""
    for part in (folder, *folder.parents):
        if part.stat().st_uid == os.geteuid() and part.stat().st_mode & 0o777 == 0o700:
            part.chmod(0o755)
    environment = os.environ | {"PYTHONPATH": str(SOURCE_ROOT)}
    assert subprocess.run([sys.executable, "-c", program, KEY], env=environment, check=False).returncode == 0
