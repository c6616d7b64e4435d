"""Files of elements (caches, saved datasets): damage is an error, and failed writers leave no files."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow import errors

Dataset = df.data.Dataset
ROWS = {"b": np.array([[1.0, 2.0], [3.0, 4.0]], np.float32), "a": np.array([7, 8], np.uint8)}


def elements(dataset: Any) -> list[Any]:
    return [df.nest.map_structure(lambda x: np.asarray(x.numpy()).tolist(), x) for x in dataset]


def cached(path: Path) -> Any:
    return Dataset.from_tensor_slices(ROWS).cache(path)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rows"
    elements(cached(path))
    return path


@pytest.mark.parametrize("read", [cached, Dataset.load], ids=["cache", "load"])
def test_each_flipped_bit_is_an_error_that_names_the_file(file: Path, read: Callable[[Path], Any]) -> None:
    content = file.read_bytes()
    for place in range(len(content)):
        for bit in (1, 0x40):
            damaged = bytearray(content)
            damaged[place] ^= bit
            file.write_bytes(damaged)
            with pytest.raises(errors.DataLossError, match=rf"'{file}' is damaged.*byte|line|no file"):
                elements(read(file))


def test_a_damaged_element_is_named_with_its_place(file: Path) -> None:
    content = bytearray(file.read_bytes())
    place = content.index(np.float32(3).tobytes())
    content[place] ^= 1
    file.write_bytes(content)
    with pytest.raises(errors.DataLossError, match=r"element 1, at byte \d+, has a wrong checksum"):
        elements(Dataset.load(file))
    assert elements(Dataset.load(file).take(1)) == elements(Dataset.from_tensor_slices(ROWS).take(1))


def test_a_file_that_is_cut_off_anywhere_is_refused(file: Path) -> None:
    content = file.read_bytes()
    for length in range(len(content)):
        file.write_bytes(content[:length])
        with pytest.raises(errors.DataLossError, match=str(file)):
            elements(Dataset.load(file))
        file.write_bytes(content[length + 1 :])
        with pytest.raises(errors.DataLossError, match=str(file)):
            elements(Dataset.load(file))


def test_a_file_that_is_cut_off_while_it_is_read_is_an_error(file: Path) -> None:
    dataset = Dataset.load(file)
    os.truncate(file, 30)
    with pytest.raises(errors.DataLossError, match="truncated after it was opened"):
        elements(dataset)


@pytest.mark.parametrize("version", [b"1", b"3"])
def test_a_file_of_another_version_is_refused(file: Path, version: bytes) -> None:
    word = b"dualflow elements "
    file.write_bytes(file.read_bytes().replace(word + b"2", word + version))
    with pytest.raises(
        errors.InvalidArgumentError, match=f"rows' has version {version.decode()} of.*remove it"
    ):
        elements(cached(file))


@pytest.mark.parametrize("path", ["", "nowhere/rows", "\0"])
def test_a_file_that_cant_be_written_is_named(tmp_path: Path, path: str) -> None:
    name = str(tmp_path / path)
    with pytest.raises(errors.DualflowError) as caught:
        Dataset.range(3).save(name)
    assert repr(name)[1:-1] in str(caught.value)
    assert os.listdir(tmp_path) == []


LIMITED = """
import os, resource, sys
import dualflow as df
elements = []
iterator = iter(df.data.Dataset.range(200_000).batch(1000).cache(sys.argv[1] + "/c"))
resource.setrlimit(resource.RLIMIT_FSIZE, (1_100_000, resource.RLIM_INFINITY))
while True:
    try:
        elements += next(iterator).numpy().tolist()
    except df.errors.ResourceExhaustedError as error:
        print(sys.argv[1] + "/c" in str(error), os.listdir(sys.argv[1]))
    except StopIteration:
        break
print(elements == list(range(200_000)), os.listdir(sys.argv[1]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no limits")
def test_a_cache_without_space_is_removed_and_the_elements_come(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LIMITED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    assert done.stdout == "True []\nTrue []\n"


FORKED = """
import os, sys
import dualflow as df
path = sys.argv[1] + "/c"
iterator = iter(df.data.Dataset.range(6).cache(path))
first = [int(next(iterator)) for _ in range(2)]
child = os.fork()
others = [int(x) for x in iterator]
if not child:
    assert others == [2, 3, 4, 5], others
    sys.exit()  # its finalizers run
assert os.waitpid(child, 0)[1] == 0
assert os.listdir(sys.argv[1]) == ["c"]
print([int(x) for x in df.data.Dataset.load(path)])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_leaves_the_cache_to_its_parent(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FORKED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert (done.stdout, done.stderr) == ("[0, 1, 2, 3, 4, 5]\n", "")
