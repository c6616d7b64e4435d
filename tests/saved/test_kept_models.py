"""A model saved by each version of the format is kept here, and loaded by all later versions of dualflow."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualflow as df


@pytest.fixture(params=["version_1"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    folder = Path(__file__).parent / request.param
    return df.saved_model.load(shutil.copytree(folder, tmp_path / "model"))


def test_its_convolution_gives_the_same_digits_and_gradients(kept):
    image = df.constant(np.linspace(0, 1, 16, dtype=np.float32).reshape(1, 4, 4, 1))
    with df.GradientTape() as tape:
        y = kept.part(image)
    expected = [
        [[1.9111111, 2.0777779], [2.1777778, 2.3777778]],
        [[2.977778, 3.2777777], [3.2444444, 3.5777776]],
    ]
    np.testing.assert_allclose(y[0], expected, rtol=1e-6)
    assert float(df.reduce_sum(tape.gradient(y, kept.part.kernel))) == pytest.approx(36.0)
    (result,) = kept.signatures["serving_default"](image=image).values()
    np.testing.assert_array_equal(result, y)


def test_its_step_has_control_flow_assignments_and_a_custom_gradient(kept):
    x = df.constant([1.0, 2.0])
    with df.GradientTape() as tape:
        tape.watch(x)
        result = kept.step(x)
    np.testing.assert_allclose(result["x"], 2.0 * np.exp([1.0, 2.0]), rtol=1e-6)
    np.testing.assert_array_equal(tape.gradient(result["x"], x), [1.0, 1.0])
    assert int(result["count"][0]) == int(kept.count) == 1
    with pytest.raises(ValueError, match="negative"):
        kept.step(df.constant([-1.0, 0.0]))


def test_its_objects_are_shared_and_its_file_is_read(kept):
    assert kept.parts[0] is kept.parts[1][1]["part"] is kept.part
    assert (kept.name, kept.rate, kept.words.numpy().tolist()) == ("model", 0.5, [b"a", b"b"])
    assert kept.read().numpy() == b"a file of the model\n"
    assert not np.array_equal(kept.draw(df.zeros([2])), kept.draw(df.zeros([2])))


def test_it_is_saved_again(kept, tmp_path):
    df.saved_model.save(kept, tmp_path / "again", kept.signatures)
    again = df.saved_model.load(tmp_path / "again")
    assert again.read().numpy() == b"a file of the model\n"
    assert list(again.signatures) == ["serving_default"]
