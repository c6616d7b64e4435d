"""Reading, writing and matching files, as string tensors."""

import os
import signal
import stat
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dualflow as df

gfile = df.io.gfile


def test_a_file_holds_what_was_written(tmp_path, mode):
    path = str(tmp_path / "new" / "folder" / "x")

    def through(contents):
        df.io.write_file(path, contents)
        return df.io.read_file(path)

    for contents in (b"", b"\xff\x00a", b"x" * 100_000):
        assert mode(through)(df.constant(contents)).numpy() == contents


def test_a_traced_function_reads_at_each_call(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"one")
    read = df.function(df.io.read_file)
    assert read(df.constant(str(path))).numpy() == b"one"
    path.write_bytes(b"two")
    assert read(df.constant(str(path))).numpy() == b"two"


def test_writing_keeps_permissions_and_links(tmp_path):
    path, link = tmp_path / "x", tmp_path / "link"
    path.write_text("old")
    path.chmod(0o600)
    link.symlink_to(path)
    df.io.write_file(str(link), "new")
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path):
    df.io.write_file(str(tmp_path / "x"), "a")
    (tmp_path / "y").write_text("a")
    assert (tmp_path / "x").stat().st_mode == (tmp_path / "y").stat().st_mode


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "x"
    path.write_text("old")
    program = f"""
import os, signal, dualflow as df
os.fsync = lambda number: os.kill(os.getpid(), signal.SIGKILL)
df.io.write_file({str(path)!r}, "new")
"""
    ended = subprocess.run([sys.executable, "-c", program], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert path.read_text() == "old"


def test_an_error_while_writing_leaves_no_file(tmp_path, monkeypatch):
    path = tmp_path / "x"
    path.write_text("old")

    def full(number):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(df.errors.ResourceExhaustedError, match="No space left"):
        df.io.write_file(str(path), "new")
    assert [p.name for p in tmp_path.iterdir()] == ["x"]
    assert path.read_text() == "old"


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    df.io.write_file(str(pipe), "through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_names_are_found_by_patterns(tmp_path, mode):
    for name in ("a.txt", "b.txt", ".c.txt", "d.csv"):
        (tmp_path / name).write_text("")
    (tmp_path / "e").mkdir()
    (tmp_path / "e" / "f.txt").write_text("")
    find = mode(lambda p: df.io.matching_files(df.strings.join([str(tmp_path), "/", p])))

    def matching(*patterns):
        names = find(df.constant(list(patterns))).numpy()
        return [os.path.relpath(os.fsdecode(n), tmp_path) for n in names]

    assert matching("*.txt") == [".c.txt", "a.txt", "b.txt"]
    assert matching("?.txt", "[ab].txt") == ["a.txt", "b.txt"]
    assert matching("*") == [".c.txt", "a.txt", "b.txt", "d.csv", "e"]
    assert matching("*/*") == ["e/f.txt"]
    assert matching("none") == []


def test_gfile_makes_moves_and_removes(tmp_path):
    folder = gfile.join(str(tmp_path), "a", "b")
    gfile.makedirs(folder)
    gfile.makedirs(folder)
    gfile.mkdir(folder)
    path = gfile.join(folder, "x")
    with gfile.GFile(path, "w") as file:
        file.write("one\ntwo\n")
        assert file.size() == 8
    assert gfile.exists(path)
    assert not gfile.isdir(path)
    assert gfile.isdir(folder)
    assert gfile.stat(path).length == 8
    assert gfile.stat(folder).is_directory
    gfile.copy(path, path + "2")
    gfile.rename(path + "2", path + "3")
    assert sorted(gfile.listdir(folder)) == ["x", "x3"]
    assert gfile.glob(gfile.join(folder, "*")) == [path, path + "3"]
    assert gfile.glob([path, gfile.join(folder, "*3")]) == [path, path + "3"]
    assert list(gfile.walk(folder)) == [(folder, [], ["x", "x3"])] or gfile.listdir(folder)[0] == "x3"
    gfile.copy(path, path + "3", overwrite=True)
    gfile.rename(path, path + "3", overwrite=True)
    gfile.remove(path + "3")
    assert gfile.listdir(folder) == []
    gfile.rmtree(str(tmp_path / "a"))
    assert not gfile.exists(folder)


def test_a_gfile_reads_as_a_file_does(tmp_path):
    path = tmp_path / "x"
    path.write_bytes("one\ntwö\n".encode())
    assert list(gfile.GFile(path)) == ["one\n", "twö\n"]
    with gfile.GFile(path) as file:
        assert (file.readline(), file.tell(), file.seekable()) == ("one\n", 4, True)
        file.seek(0)
        assert (file.read(3), file.readlines()) == ("one", ["\n", "twö\n"])
    with gfile.GFile(path, "rb") as file:
        assert file.read() == "one\ntwö\n".encode()
    with gfile.GFile(path, "a") as file:
        file.write("three")
        file.flush()
        assert path.read_text(encoding="utf-8") == "one\ntwö\nthree"
    assert (file.name, file.mode) == (str(path), "a")


@given(st.lists(st.binary(max_size=9), max_size=4), st.booleans())
def test_base64_goes_there_and_back(values, pad):
    x = df.constant(values, df.string)
    assert df.io.decode_base64(df.io.encode_base64(x, pad=pad)).numpy().tolist() == values
