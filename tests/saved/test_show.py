"""``python -m dualflow show``: what a saved model has, and the results of its signatures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.cli import main


@pytest.fixture
def model(tmp_path: Path) -> Path:
    module = df.Module()
    module.w = df.Variable(np.ones((2, 3), np.float32), name="w")
    module.f = df.function(
        lambda x: {"y": x @ module.w}, input_signature=[df.TensorSpec([None, 2], name="x")]
    )
    df.saved_model.save(module, tmp_path / "model")
    return tmp_path / "model"


def shown(capsys: Any, *words: object) -> tuple[int, str]:
    status = main(["show", *map(str, words)])
    captured = capsys.readouterr()
    return status, captured.out + captured.err


def test_signatures_functions_and_variables_are_listed(model, capsys):
    status, text = shown(capsys, model)
    assert status == 0
    assert text == (
        "signatures\n"
        "    serving_default(x: float32[?, 2]) -> {y: float32[?, 3]}\n"
        "functions\n"
        "    f(x: float32[?, 2]) -> {y: float32[?, 3]}\n"
        "variables: 1, 24 bytes\n"
        "    w: float32[2, 3], 24 bytes, trainable\n"
    )


def test_a_signature_runs_on_a_file_of_arrays(model, tmp_path, capsys):
    np.savez(tmp_path / "x.npz", x=np.array([[1.0, 2.0]], np.float32))
    options = ["--run", "serving_default", "--inputs", tmp_path / "x.npz", "--outputs", tmp_path / "y.npz"]
    assert shown(capsys, model, *options) == (0, "y: float32[1, 3]\n[[3. 3. 3.]]\n")
    np.testing.assert_array_equal(np.load(tmp_path / "y.npz")["y"], [[3.0, 3.0, 3.0]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--run", "other"], "there is no signature 'other'; the model has serving_default"),
        (["--run", "serving_default"], "the signature takes x: float32[?, 2]"),
        (["--inputs", "x.npz"], "name it with --run"),
        (["--run", "serving_default", "--inputs", "missing.npz"], "can't be read as an .npz file"),
    ],
)
def test_mistakes_are_explained(model, capsys, options, message):
    status, text = shown(capsys, model, *options)
    assert status == 2
    assert message in " ".join(text.replace("TensorSpec(shape=(None, 2)", "float32[?, 2]").split())


def test_a_folder_without_a_model_is_an_error(tmp_path, capsys):
    status, text = shown(capsys, tmp_path)
    assert status == 2
    assert "has no file saved_model.json" in text
