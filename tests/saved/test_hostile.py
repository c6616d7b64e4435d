"""Damaged and hostile saved models: each gives an error of ours, without a crash, and stays in its folder."""

from __future__ import annotations

import json
import os
import random
import shutil
import tracemalloc
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.core.errors import InvalidArgumentError, NotFoundError
from dualflow.core.status_errors import DataLossError

OURS = (DataLossError, InvalidArgumentError, NotFoundError)
MANY = 1000
FEW = 120
HOSTILE: list[Any] = [
    -1, 0, 1, 7, 10**6, 10**30, 1.5, True, None, "", "../../etc/passwd", "/etc/passwd", ".", "..", "x\0y",
    "float32[99999999999]", "float32[?]", "float32[...]", "nothing", "constants/0", "variables/1", [], {},
    [[]], {"node": 0}, {"value": 1}, {"tensor": "int64[2]"}, {"tuple": [{"node": 0}]}, "__class__",
    {"ragged": []}, {"shape": [-1]}, {"extension_type": None, "fields": []}, "a" * 5000,
]  # fmt: skip


@df.custom_gradient
def bent(x: Any) -> Any:
    y = df.exp(x)
    return y, lambda dy: dy * y * 2.0


class Tagged(df.experimental.ExtensionType):
    __name__ = "test_hostile.Tagged"
    rows: df.RaggedTensor
    table: Mapping[str, df.Tensor]
    size: df.TensorShape
    tag: tuple[str, int] = ("a", 1)


class Net(df.Module):
    """A model with something of everything that a saved model has."""

    def __init__(self) -> None:
        super().__init__()
        self.w = df.Variable(np.arange(6, dtype=np.float32).reshape(2, 3), name="w")
        self.names = df.Variable(["a", "bc"], trainable=False)
        self.parts = [self.w, (df.constant([1.0, 2.0]), 3), {"n": df.Variable(1)}]
        self.table = df.constant(np.arange(40.0))
        self.tagged = Tagged(df.ragged.constant([[1.0], [2.0, 3.0]]), {"t": [1, 2]}, [None, 3])
        self.tag.get_concrete_function(self.tagged, df.SparseTensor([[0, 1]], [1.0], [2, 2]))

    @df.function(input_signature=[df.TensorSpec([None, 2], name="x")])
    def __call__(self, x: Any) -> Any:
        self.parts[2]["n"].assign_add(1)
        y = df.cond(df.reduce_sum(x) > 0.0, lambda: x @ self.w, lambda: df.exp(x) @ self.w)
        (y,) = df.while_loop(lambda y: df.reduce_sum(y) < 100.0, lambda y: (y * 2.0 + 1.0,), (y,))
        if df.reduce_sum(y) < 0.0:
            raise ValueError("negative")
        y = bent(y * 1e-3)
        return {"y": y + np.arange(30, dtype=np.float32).reshape(10, 3)[:1], "t": self.table[:2]}

    @df.function
    def tag(self, x: Any, y: Any) -> Any:
        return Tagged(x.rows * 2.0, x.table, x.size), y * 3.0

    @df.function(input_signature=[df.TensorSpec([None, None, None, 1])])
    def windows(self, x: Any) -> Any:
        x = df.nn.conv2d(x, df.ones([2, 2, 1, 3]), 2, "SAME")
        return df.nn.dropout(df.nn.max_pool2d(x, 2, 2, "VALID"), 0.5, seed=1)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "model"
    df.saved_model.save(Net(), folder)
    return folder


@pytest.fixture
def copy(model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(model, tmp_path / "model"))


def files_of(folder: Path) -> dict[str, Path]:
    return {path.name.partition("-")[0].partition(".")[0]: path for path in folder.iterdir()}


def content_of(folder: Path) -> Any:
    return json.loads((folder / "saved_model.json").read_text())["content"]


def write_manifest(folder: Path, content: Any) -> None:
    """Replace the content of the manifest, with a right checksum."""
    content["graphs"]["crc32"] = zlib.crc32((folder / content["graphs"]["file"]).read_bytes())
    write_content(folder, content)


def write_content(folder: Path, content: Any) -> None:
    manifest = json.loads((folder / "saved_model.json").read_text())
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    manifest |= {"content": content, "checksum": zlib.crc32(canonical.encode())}
    (folder / "saved_model.json").write_text(json.dumps(manifest))


def places_in(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each container inside of JSON, with each of its keys."""
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from places_in(value[key])


def flip_bytes(folder: Path, rng: random.Random) -> None:
    path = rng.choice(sorted(folder.iterdir()))
    data = bytearray(path.read_bytes())
    for _ in range(rng.randint(1, 4)):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(bytes(data))


def truncate(folder: Path, rng: random.Random) -> None:
    path = rng.choice(sorted(folder.iterdir()))
    path.write_bytes(path.read_bytes()[: rng.randrange(path.stat().st_size)])


def change_text(folder: Path, rng: random.Random) -> None:
    """Change the graphs, with right checksums."""
    path = files_of(folder)["graphs"]
    lines = path.read_text().split("\n")
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(lines))
        change = rng.randrange(5)
        if change == 0:
            del lines[at]
        elif change == 1:
            lines.insert(at, rng.choice(lines))
        elif change == 2:
            words = lines[at].split(" ")
            words[rng.randrange(len(words))] = rng.choice(" ".join(lines).split(" "))
            lines[at] = " ".join(words)
        elif change == 3:
            digits = [i for i, c in enumerate(lines[at]) if c.isdigit()]
            if digits:
                i = rng.choice(digits)
                lines[at] = lines[at][:i] + rng.choice(["9" * 12, "-1", "0", "?", "3"]) + lines[at][i + 1 :]
        elif lines[at]:
            i = rng.randrange(len(lines[at]))
            lines[at] = lines[at][:i] + rng.choice("()[]%@#=,: \"'x0\\\u00e9") + lines[at][i + 1 :]
    path.write_text("\n".join(lines))
    write_manifest(folder, content_of(folder))


def change_manifest(folder: Path, rng: random.Random) -> None:
    """Change values of the manifest, with a right checksum."""
    content = content_of(folder)
    for _ in range(rng.randint(1, 2)):
        container, key = rng.choice(list(places_in(content)))
        if rng.random() < 0.2:
            del container[key]
        else:
            container[key] = rng.choice(HOSTILE)
    write_content(folder, content)


def change_arrays(folder: Path, rng: random.Random) -> None:
    """Change the header of the arrays."""
    path = files_of(folder)["arrays"]
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    container, key = rng.choice(list(places_in(header)))
    container[key] = rng.choice(HOSTILE)
    text = json.dumps(header).encode()
    length = rng.choice([len(text), len(text), 1 << 60, 0])
    path.write_bytes(length.to_bytes(8, "little") + text + data[8 + size :])


CHANGES: list[Callable[[Path, random.Random], None]] = [
    flip_bytes, truncate, change_text, change_text, change_manifest, change_manifest, change_arrays,
]  # fmt: skip


def error_of(folder: Path, what: str) -> str | None:
    """The message of the error that loading gives, one of ours; None if the model is loaded."""
    try:
        df.saved_model.load(folder)
    except OURS as error:
        return str(error)
    except BaseException as error:
        error.add_note(what)
        raise
    return None


def check_changed(model: Path, folder: Path, seeds: range) -> None:
    """Load changed models: each is loaded, where the change has no meaning, or gives an error of ours."""
    before = sorted(os.listdir(folder))
    for seed in seeds:
        rng = random.Random(seed)
        changed = Path(shutil.copytree(model, folder / "changed"))
        change = rng.choice(CHANGES)
        change(changed, rng)
        message = error_of(changed, f"seed {seed}, {change.__name__}")
        assert message is None or str(changed) in message or "graphs-" in message, (seed, message)
        shutil.rmtree(changed)
    assert sorted(os.listdir(folder)) == before


def test_changed_models_give_errors(model, tmp_path):
    check_changed(model, tmp_path, range(FEW))


@pytest.mark.exhaustive
def test_many_changed_models_give_errors(model, tmp_path):
    check_changed(model, tmp_path, range(FEW, FEW + MANY))


def test_any_flipped_byte_is_detected_by_a_checksum(model, tmp_path):
    for seed in range(40):
        changed = Path(shutil.copytree(model, tmp_path / str(seed)))
        path = files_of(changed)["graphs"]
        data = bytearray(path.read_bytes())
        data[random.Random(seed).randrange(len(data))] ^= 1
        path.write_bytes(bytes(data))
        with pytest.raises(DataLossError, match="wrong checksum"):
            df.saved_model.load(changed)


@pytest.mark.parametrize("name", ["../graphs-00000000.txt", "/etc/passwd", "graphs-00000000.txt/x", "", 3])
@pytest.mark.parametrize("part", ["graphs", "arrays", "assets"])
def test_no_file_outside_of_the_folder_is_read(copy, part, name):
    content = content_of(copy)
    content[part]["folder" if part == "assets" else "file"] = name
    write_content(copy, content)
    with pytest.raises(DataLossError, match=r"names the file|lacks the name"):
        df.saved_model.load(copy)


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "..", "a/b", "a\0b", 3])
def test_no_asset_outside_of_the_folder_is_used(copy, name):
    content = content_of(copy)
    content["assets"]["files"] = [name]
    write_content(copy, content)
    with pytest.raises(DataLossError, match="names the asset"):
        df.saved_model.load(copy)


@pytest.mark.parametrize("part", ["graphs", "arrays", "saved_model"])
def test_links_are_refused(copy, tmp_path, part):
    path = files_of(copy)[part]
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataLossError, match="is a link"):
        df.saved_model.load(copy)


def test_duplicate_names_in_the_manifest_are_refused(copy):
    path = copy / "saved_model.json"
    path.write_text(path.read_text().replace('"version": 1', '"version": 1, "version": 1'))
    with pytest.raises(DataLossError, match="occurs twice"):
        df.saved_model.load(copy)


@pytest.mark.parametrize("shape", [[10**12], [10**6, 10**6], [-1], [2**62, 2**62, 2**62], "x", [0, 10**30]])
def test_declared_sizes_take_no_memory(copy, shape):
    content = content_of(copy)
    for entry in content["arrays"]["entries"].values():
        entry["shape"] = shape
    write_content(copy, content)
    tracemalloc.start()
    with pytest.raises(DataLossError):
        df.saved_model.load(copy)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20_000_000


@pytest.mark.parametrize(
    "line",
    [
        "    %90: float32[1000000000000] = constant(value=0.)",
        "    %90: float32[1000000000000, 1000] = zeros(shape=(1000000000000, 1000), dtype=float32)",
        f"    %90: float32[] = constant(value={'[' * 3000}0.{']' * 3000})",
        f"    %90: float32[] = cast(%x, dtype={'(' * 3000})",
        f"    %90: float32[{', '.join(['2'] * 900)}] = exp(%x)",
    ],
)
def test_large_or_deep_texts_take_no_memory(copy, line):
    path = files_of(copy)["graphs"]
    first, _, others = path.read_text().partition("\n")
    path.write_text(f"{first}\n{line}\n{others}")
    write_manifest(copy, content_of(copy))
    tracemalloc.start()
    with pytest.raises(InvalidArgumentError, match=r"graphs-.*, line 2"):
        df.saved_model.load(copy)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20_000_000


def test_deep_json_is_refused(copy):
    (copy / "saved_model.json").write_text("[" * 200_000)
    with pytest.raises(DataLossError, match="is not JSON"):
        df.saved_model.load(copy)


def test_tuples_that_contain_themselves_are_refused(copy):
    content = content_of(copy)
    number = next(i for i, entry in enumerate(content["objects"]) if entry["kind"] == "tuple")
    content["objects"][number]["items"] = [{"node": number}]
    write_content(copy, content)
    with pytest.raises(DataLossError, match="contains itself"):
        df.saved_model.load(copy)


def test_a_later_version_is_refused_with_the_remedy(copy):
    path = copy / "saved_model.json"
    path.write_text(path.read_text().replace('"version": 1', '"version": 2'))
    with pytest.raises(InvalidArgumentError, match="load it with the version that saved it"):
        df.saved_model.load(copy)


def test_loading_executes_no_code(copy, tmp_path):
    """Names from the files reach no import, attribute of a module, or file."""
    content = content_of(copy)
    content["objects"][0]["children"] = {"__class__": 0, "__init__": 1, "__reduce__": 0, "__del__": 1}
    content["objects"][0]["class"] = "os.system"
    write_content(copy, content)
    loaded = df.saved_model.load(copy)
    assert type(loaded).__module__ == "dualflow.saved.loaded"
