"""The first lines of programs for TensorFlow 1: flags, logs, switches, prints."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import dualflow as df
from dualflow.compat import v1
from tests.harness.required_tools import require_module

PROGRAM = """
from dualflow.compat import v1 as tf
tf.flags.DEFINE_integer("steps", 3, "how many")
tf.logging.set_verbosity(tf.logging.INFO)
def main(argv):
    tf.logging.info("steps %d", tf.flags.FLAGS.steps)
    print(tf.flags.FLAGS.steps, argv[1:])
    return 4
if __name__ == "__main__":
    tf.app.run()
"""


@pytest.fixture
def dimensions() -> Iterator[None]:
    v1.disable_v2_tensorshape()
    yield
    v1.enable_v2_tensorshape()


def test_a_program_parses_its_flags_and_exits_with_its_status(tmp_path: Path) -> None:
    require_module("absl")
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, str(tmp_path / "program.py"), "--steps=5", "more", "--unknown=1"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (4, "5 ['more', '--unknown=1']\n")
    assert "steps 5" in run.stderr


def test_messages_below_the_level_are_not_written(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "tensorflow"):
        v1.logging.info("hidden")
        v1.logging.warn("shown %d", 1)
        v1.logging.log_if(v1.logging.ERROR, "no", False)
        for _ in range(4):
            v1.logging.log_every_n(v1.logging.ERROR, "every second", 2)
            v1.logging.log_first_n(v1.logging.ERROR, "first", 1)
    assert [r.getMessage() for r in caplog.records] == ["shown 1", "every second", "first", "every second"]


def test_sizes_are_dimensions_in_the_program(dimensions: None) -> None:
    with v1.Graph().as_default():
        x = v1.placeholder(v1.float32, [None, 3])
        assert (x.shape[0].value, x.shape[1].value) == (None, 3)
        assert [d.value for d in x.get_shape()] == [d.value for d in x.shape.dims] == [None, 3]
        assert x.shape.as_list() == [None, 3]
        assert v1.reshape(x, [-1, x.shape[1] * 2]).shape[1].value == 6
        assert bool(v1.zeros([]).shape)
        assert not v1.placeholder(v1.float32).shape


def test_dualflow_itself_computes_with_integers(dimensions: None) -> None:
    f = df.function(lambda x: df.nn.softmax(df.reshape(x, [x.shape[0], -1]) @ df.ones([6, 2])))
    assert f(df.ones([4, 2, 3])).numpy().tolist() == [[0.5, 0.5]] * 4
    assert df.data.Dataset.from_tensor_slices(np.ones([4, 3])).batch(2).element_spec.shape.as_list() == [
        None,
        3,
    ]


def test_sizes_are_integers_again_afterwards() -> None:
    v1.disable_v2_tensorshape()
    v1.enable_v2_tensorshape()
    shape = v1.TensorShape([3, None])
    assert (shape[0], list(shape), shape.dims) == (3, [3, None], [3, None])
    assert not v1.TensorShape([])


def test_print_writes_when_its_result_is_computed(capsys: pytest.CaptureFixture[str]) -> None:
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.Print(v1.constant([1.0, 2.0]), [v1.constant([7])], "data: ", first_n=2)
        y = x * 2.0
        assert capsys.readouterr().err == ""
        for _ in range(3):
            assert session.run(y).tolist() == [2.0, 4.0]
        assert capsys.readouterr().err == "data: [[7]]\n" * 2


def test_assertions_take_data_before_their_message() -> None:
    with pytest.raises(ValueError, match="sizes"):
        v1.assert_less_equal(2, 1, ["ignored"], 3, "sizes")
    with pytest.raises(ValueError, match="sizes"):
        v1.assert_positive(0, message="sizes")
    v1.assert_equal([1, 2], [1, 2], name="equal")


def test_sparse_tensors_become_dense_with_a_default() -> None:
    x = df.SparseTensor([[0, 1]], [3], [1, 3])
    assert v1.sparse_tensor_to_dense(x, -1).numpy().tolist() == [[-1, 3, -1]]
