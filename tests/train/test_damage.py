"""Damaged and hostile checkpoints: a clear error, and nothing is assigned."""

from __future__ import annotations

import json
import os
import shutil
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualflow as df
from dualflow.train.folder import INDEX


class Iterator:
    at = 5

    def get_state(self) -> Any:
        return {"at": self.at}

    def set_state(self, state: Any) -> None:
        self.at = state["at"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "c"
    df.train.Checkpoint(a=df.Variable([1.0, 2.0]), b=[df.Variable(3)], i=Iterator()).write(path)
    return path


def files_of(path: Path) -> list[Path]:
    return sorted(path.iterdir(), key=lambda file: file.suffix)


def read(path: Path) -> tuple[Any, Exception | None]:
    """What variables and an iterator hold after a restore, and its error."""
    a, b, i = df.Variable([-1.0, -1.0]), df.Variable(-1), Iterator()
    i.at = -1
    try:
        df.train.Checkpoint(a=a, b=[b], i=i).read(path)
        error = None
    except Exception as raised:
        error = raised
    return (a.numpy().tolist(), int(b), i.at), error


RIGHT, UNTOUCHED = ([1.0, 2.0], 3, 5), ([-1.0, -1.0], -1, -1)
LOST = (df.errors.DataLossError, df.errors.NotFoundError)


def test_an_intact_checkpoint_is_restored(whole: Path) -> None:
    assert read(whole) == (RIGHT, None)


@given(data=st.data())
@settings(max_examples=60)
def test_any_flipped_bit_is_detected_or_harmless(data: st.DataObject, whole: Path) -> None:
    file = data.draw(st.sampled_from(files_of(whole)))
    content = file.read_bytes()
    flipped = bytearray(content)
    place = data.draw(st.integers(0, 8 * len(content) - 1))
    flipped[place // 8] ^= 1 << place % 8
    file.write_bytes(flipped)
    try:
        result, error = read(whole)
    finally:
        file.write_bytes(content)
    if error is None:
        assert result == RIGHT
    else:
        assert isinstance(error, (*LOST, df.errors.InvalidArgumentError)), error
        assert result == UNTOUCHED


@pytest.mark.parametrize("which", [0, 1], ids=["index", "arrays"])
@pytest.mark.parametrize("fraction", [0.0, 0.1, 0.5, 0.9, 0.99])
def test_a_file_that_is_cut_short(which: int, fraction: float, whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "c")
    file = files_of(tmp_path / "c")[which]
    file.write_bytes(file.read_bytes()[: int(fraction * file.stat().st_size)])
    result, error = read(tmp_path / "c")
    assert isinstance(error, df.errors.DataLossError)
    assert "is damaged" in str(error)
    assert result == UNTOUCHED


def test_a_file_of_arrays_that_is_missing(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "c")
    os.unlink(files_of(tmp_path / "c")[1])
    result, error = read(tmp_path / "c")
    assert isinstance(error, df.errors.DataLossError)
    assert "is missing" in str(error)
    assert result == UNTOUCHED


def with_index(whole: Path, path: Path, change: Any) -> Path:
    """A copy of the checkpoint with a changed index and a valid checksum."""
    shutil.copytree(whole, path)
    index = json.loads((path / INDEX).read_text())
    change(index)
    text = json.dumps(index["content"], sort_keys=True, separators=(",", ":"))
    index["checksum"] = zlib.crc32(text.encode())
    (path / INDEX).write_text(json.dumps(index))
    return path


def set_at(*keys: Any) -> Any:
    """A change of an index: the value at keys."""
    *way, last, value = keys

    def change(index: Any) -> None:
        for key in way:
            index = index[key]
        index[last] = value

    return change


A = ("content", "arrays", "a/.ATTRIBUTES/VARIABLE_VALUE")
HOSTILE = {
    "a path out of the folder": set_at("content", "file", "../../../etc/passwd"),
    "an absolute path": set_at("content", "file", "/etc/passwd"),
    "another file next to it": set_at("content", "file", INDEX),
    "no name": set_at("content", "file", None),
    "a huge shape": set_at(*A, "shape", [2**62, 2**62]),
    "a negative size": set_at(*A, "shape", [-2]),
    "another dtype": set_at(*A, "dtype", "uint8"),
    "an unknown dtype": set_at(*A, "dtype", "object"),
    "a dtype that is none": set_at(*A, "dtype", {"a": []}),
    "another checksum": set_at(*A, "crc32", 1),
    "an array that is none": set_at(*A, 3),
    "arrays that are none": set_at("content", "arrays", []),
    "a child that is not there": set_at("content", "nodes", 0, "children", "a", 99),
    "a child before the first": set_at("content", "nodes", 0, "children", "a", -1),
    "a child that is no number": set_at("content", "nodes", 0, "children", "a", "x"),
    "children that are none": set_at("content", "nodes", 0, "children", [1]),
    "an array that the index lacks": set_at("content", "nodes", 1, "key", "other"),
    "nodes that are none": set_at("content", "nodes", 3),
    "no nodes": set_at("content", "nodes", []),
    "slots that are none": set_at("content", "nodes", 0, "slots", [[1, 2]]),
    "no content": set_at("content", None),
    "another format": set_at("format", "zip"),
    "no version": set_at("version", None),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_an_index_that_other_code_has_changed(change: Any, whole: Path, tmp_path: Path) -> None:
    result, error = read(with_index(whole, tmp_path / "c", change))
    assert isinstance(error, (df.errors.DataLossError, df.errors.InvalidArgumentError)), error
    assert result == UNTOUCHED


def test_an_index_that_nests_without_end(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "c")
    (tmp_path / "c" / INDEX).write_text("[" * 100_000)
    result, error = read(tmp_path / "c")
    assert isinstance(error, df.errors.DataLossError)
    assert result == UNTOUCHED


def test_a_cyclic_object_graph(whole: Path, tmp_path: Path) -> None:
    change = set_at("content", "nodes", 0, "children", {"a": 1, "b": 0})
    result, error = read(with_index(whole, tmp_path / "c", change))
    assert error is None
    assert result == ([1.0, 2.0], -1, -1)


def test_a_format_of_later_years(whole: Path, tmp_path: Path) -> None:
    result, error = read(with_index(whole, tmp_path / "c", set_at("version", 2)))
    assert isinstance(error, df.errors.InvalidArgumentError)
    assert "format version 2, and this version of dualflow reads up to 1" in str(error)
    assert result == UNTOUCHED


def test_an_iterator_that_refuses_its_state_stops_the_restore(whole: Path) -> None:
    class Strict(Iterator):
        def set_state(self, state: Any) -> None:
            if state["at"] == 5:
                raise KeyError("another dataset")
            super().set_state(state)

    a, first, second = df.Variable([-1.0, -1.0]), Iterator(), Strict()
    path = df.train.Checkpoint(a=df.Variable([1.0, 2.0]), first=Iterator(), i=Iterator()).write(
        whole.parent / "s"
    )
    first.at = second.at = -1
    with pytest.raises(KeyError, match="another dataset"):
        df.train.Checkpoint(a=a, first=first, i=second).read(path)
    assert (a.numpy().tolist(), first.at, second.at) == ([-1.0, -1.0], -1, -1)


def test_a_damaged_state_file(tmp_path: Path) -> None:
    df.train.Checkpoint(v=df.Variable(1.0)).save(tmp_path / "c")
    for content in ("", "{}", '{"format": "other"}', "[" * 50_000, '{"format": "dualflow checkpoint state"}'):
        (tmp_path / "checkpoint").write_text(content)
        with pytest.raises(df.errors.DataLossError, match=r"The state file .* is damaged"):
            df.train.latest_checkpoint(tmp_path)


def test_a_checkpoint_of_tensorflow_is_named(tmp_path: Path) -> None:
    (tmp_path / "ckpt-1.index").write_bytes(b"x")
    with pytest.raises(LookupError, match="is a checkpoint of TensorFlow"):
        df.train.Checkpoint(v=df.Variable(1.0)).restore(tmp_path / "ckpt-1")
