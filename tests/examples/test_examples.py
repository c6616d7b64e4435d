"""Each example runs in a process of its own, and does what its text promises."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import dualflow as df
from dualflow.train.state_file import update_checkpoint_state

ROOT = Path(__file__).parents[2]


RUNNER = ROOT / "tests" / "harness" / "run_example.py"
UNTRACED = {"eager_basics.py", "explicit_graph.py", "resnet_benchmark.py"}
"""The examples that trace no function in their own process."""


def run_example(name: str, *options: str) -> str:
    """What an example prints; it must end well, warn of nothing, and trace graphs that are read back."""
    command = [sys.executable, "-W", "error", str(RUNNER), str(ROOT / "examples" / name), *options]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    output, _, graphs = done.stdout.rpartition("graphs read back: ")
    assert (int(graphs) > 0) is (name not in UNTRACED)
    return output


def refused(name: str, *options: str) -> object:
    """The exit status of an example that refuses its options, or its message; it runs in this process.

    A process of its own would import Keras, for seconds.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [name, *options])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
    return ended.value.code


def number(pattern: str, text: str) -> float:
    """The number that the group of ``pattern`` matches in ``text``."""
    match = re.search(pattern, text)
    assert match is not None, f"nothing looks like {pattern!r} in:\n{text}"
    return float(match[1])


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The output of the digit classifier's training, and the folder of its picture."""
    folder = tmp_path_factory.mktemp("digits")
    options = ["--out", str(folder / "losses.png"), "--checkpoints", str(folder)]
    options += ["--summaries", str(folder / "events")]
    return run_example("train_digits.py", *options), folder / "losses.png"


def test_digits_reach_the_promised_accuracy_both_ways(digits: tuple[str, Path]) -> None:
    assert number(r"held-out accuracy +([\d.]+)%", digits[0]) >= 96
    assert number(r"held-out accuracy +[\d.]+% +([\d.]+)%", digits[0]) >= 96


def test_digits_losses_agree_step_by_step(digits: tuple[str, Path]) -> None:
    assert number(r"losses agree within ([\de.+-]+) relative", digits[0]) <= 1e-4
    assert number(r"at each of (\d+) steps", digits[0]) == 25 * 44


def test_digits_end_with_the_figures_that_decide(digits: tuple[str, Path]) -> None:
    eager = number(r"time per step +(\d+) us", digits[0])
    graph = number(r"time per step +\d+ us +(\d+) us", digits[0])
    assert number(r"eager time / graph time +([\d.]+)", digits[0]) == pytest.approx(eager / graph, rel=0.1)
    assert number(r"trace \+ compile +- +(\d+) ms", digits[0]) > 0
    assert number(r"graph pays after +(\d+) steps", digits[0]) > 0


def test_digits_show_progress_in_plain_lines_where_there_is_no_terminal(digits: tuple[str, Path]) -> None:
    assert "\r" not in digits[0]
    for name in ("eager", "graph"):
        assert len(re.findall(rf"^{name}  epoch +\d+/25  loss [\d.]+", digits[0], re.MULTILINE)) == 25


def test_digits_save_a_picture_where_they_report(digits: tuple[str, Path]) -> None:
    output, picture = digits
    assert f"saved both loss curves to {picture}" in output
    header = picture.read_bytes()[:24]
    width, height = struct.unpack(">II", header[16:])
    assert header.startswith(b"\x89PNG")
    assert width > 1000
    assert height > 500


class History:
    """What the example's checkpoints keep of a training."""

    state: Any = None

    def get_state(self) -> Any:
        return self.state

    def set_state(self, state: Any) -> None:
        self.state = state


def losses_in(folder: Path) -> list[float]:
    """The losses that the last checkpoint of a training has."""
    history = History()
    df.train.Checkpoint(run=history).restore(df.train.latest_checkpoint(folder)).expect_partial()
    losses: list[float] = history.state["losses"]
    return losses


@pytest.mark.exhaustive
def test_digits_go_on_to_the_same_losses_and_fail_when_a_promise_is_broken(tmp_path: Path) -> None:
    """One epoch of training is too little, and so are two, in one process or in two."""

    def trained(folder: Path, epochs: int) -> str:
        """What a training that goes on from the checkpoints of a folder prints."""
        command = [sys.executable, str(ROOT / "examples" / "train_digits.py"), "--epochs", str(epochs)]
        command += ["--out", str(tmp_path / "losses.png"), "--checkpoints", str(folder)]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
        assert done.returncode == 1
        assert "promise broken: the held-out accuracy is below 96%" in done.stderr
        return done.stdout

    whole, parts = tmp_path / "whole", tmp_path / "parts"
    trained(whole, 2)
    trained(parts, 1)
    output = trained(parts, 2)
    for name in ("eager", "graph"):
        assert f"{name}  goes on after epoch 1, from {parts / name / 'ckpt-1'}" in output
        losses = losses_in(parts / name)
        assert len(losses) == 2 * 44
        assert losses == losses_in(whole / name)


def test_digits_losses_are_summaries(digits: tuple[str, Path]) -> None:
    for name in ("eager", "graph"):
        events = EventAccumulator(str(digits[1].parent / "events" / name))
        events.Reload()
        summaries = [(e.step, e.value) for e in events.Scalars("loss")]
        losses = losses_in(digits[1].parent / name)
        assert summaries == [(step, np.float32(loss)) for step, loss in enumerate(losses, 1)]


def test_quantized_digits_keep_their_accuracy_in_a_quarter_of_the_bytes() -> None:
    output = run_example("quantise_digits.py", "--epochs", "4")
    pattern = r"{} +held-out accuracy +([\d.]+)%"
    before, after = (number(pattern.format(name), output) for name in ("float32", "int8"))
    assert before >= 94
    assert after >= before - 0.5
    sizes = (number(rf"{name} .* weights +(\d+) bytes", output) for name in ("float32", "int8"))
    assert next(sizes) * 0.3 >= next(sizes)


@pytest.fixture(scope="module")
def mnist(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The output of the convolutional network's trainings, and their folder."""
    folder = tmp_path_factory.mktemp("mnist")
    options = ["--examples", "320", "--epochs", "3", "--out", str(folder / "curves.png")]
    return run_example("mnist.py", *options, "--checkpoints", str(folder)), folder


@pytest.mark.exhaustive
def test_a_convolutional_network_learns_the_same_in_three_ways(mnist: tuple[str, Path]) -> None:
    cells = re.search(r"^held-out accuracy +([\d.]+)% +([\d.]+)% +([\d.]+)%$", mnist[0], re.MULTILINE)
    assert cells is not None
    assert min(map(float, cells.groups())) > 80
    assert number(r"losses of the first epoch agree within ([\de.+-]+) relative", mnist[0]) < 1e-4
    steps = [number(rf"time per step{' +[0-9.]+ ms' * way} +([\d.]+) ms", mnist[0]) for way in range(3)]
    ratio = number(r"eager time / time +1.00 +([\d.]+)", mnist[0])
    assert ratio == pytest.approx(steps[0] / steps[1], rel=0.1)
    assert (mnist[1] / "curves.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.exhaustive
def test_a_convolutional_network_goes_on_to_the_same_losses(mnist: tuple[str, Path], tmp_path: Path) -> None:
    """As if the process had died in the third epoch."""
    for way in ("eager", "graph", "fit"):
        shutil.copytree(mnist[1] / way, tmp_path / way)
        shutil.rmtree(tmp_path / way / "ckpt-3")
        update_checkpoint_state(tmp_path / way, str(tmp_path / way / "ckpt-2"))
    options = ["--examples", "320", "--epochs", "3", "--out", str(tmp_path / "curves.png")]
    output = run_example("mnist.py", *options, "--checkpoints", str(tmp_path))
    for way in ("eager", "graph", "fit"):
        assert f"{way}  goes on after epoch 2, from {tmp_path / way / 'ckpt-2'}" in output
        assert losses_in(tmp_path / way) == losses_in(mnist[1] / way)


@pytest.mark.exhaustive
def test_mnist_is_read_from_its_file(tmp_path: Path) -> None:
    path, random = tmp_path / "mnist.npz", np.random.default_rng(0)
    images, digits = random.integers(0, 256, (40, 12, 12), np.uint8), random.integers(0, 10, 40)
    np.savez(path, x_train=images, y_train=digits, x_test=images[:7], y_test=digits[:7])
    options = ["--data", str(path), "--ways", "fit", "--epochs", "1", "--out", str(tmp_path / "curves.png")]
    output = run_example("mnist.py", *options)
    assert "1 batch of 32 digits, 12 x 12, to train on; 7 held out" in output


@pytest.mark.exhaustive
def test_a_file_that_is_not_mnist_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "images.npz"
    np.savez(path, x_train=np.zeros([32, 8, 8]))
    reason = str(refused("mnist.py", "--data", str(path)))
    assert f"--data {path} is not an mnist.npz, with the arrays x_train, y_train" in reason
    assert "y_train is not a file in the archive" in reason


@pytest.mark.exhaustive
def test_colours_are_guessed_from_their_names_the_same_both_ways() -> None:
    options = ["--letters", "11", "--epochs", "2", "--words", "light green,dark red"]
    output = run_example("rnn_colorbot.py", *options)
    losses = re.findall(r"^(?:eager|graph)  epoch +\d/2  loss ([\d.]+)$", output, re.MULTILINE)
    assert len(losses) == 4
    assert [float(x) for x in losses[:2]] == pytest.approx([float(x) for x in losses[2:]], rel=1e-2)
    average = number(r"where the average colour has ([\d.]+):", output)
    for name in ("eager", "graph"):
        assert number(rf"(?m)^{name}  held-out error ([\d.]+)", output) < 0.9 * average
    assert re.search(r"^light green +eager #[0-9a-f]{6}  graph #[0-9a-f]{6}$", output, re.MULTILINE)


@pytest.mark.exhaustive
def test_names_of_too_few_letters_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert refused("rnn_colorbot.py", "--letters", "3") == 2
    reason = "--letters must be at least 4: fewer than a batch of names have at most 3"
    assert reason in capsys.readouterr().err


@pytest.mark.exhaustive
def test_a_residual_network_is_measured_in_every_mode() -> None:
    sizes = ["--size", "8", "--batch", "2", "--steps", "1", "--blocks", "1"]
    output = run_example("resnet_benchmark.py", *sizes, "--backends", "dualflow")
    convolutions = [(7 * 7 * 3, 64), (64, 64), (3 * 3 * 64, 64), (64, 256), (64, 256)]
    parameters = sum(inputs * filters + 5 * filters for inputs, filters in convolutions) + 257 * 1000
    for mode in ("eager", "graph"):
        row = rf"^dualflow {mode}(?: +[\d.]+ +[\d.]+ s){{2}} +{parameters:,}$"
        assert re.search(row, output, re.MULTILINE)


def test_eager_basics_behave_as_in_the_guides() -> None:
    output = run_example("eager_basics.py")
    assert "[[ 8. 11.]\n [16. 23.]], shape=(2, 2), dtype=float32)" in output
    assert "x ** 3 at 3: value 27.0, slope 27.0, curvature 18.0" in output
    assert "weight 3.00, bias 2.00" in output
    assert "27 takes 111 Collatz steps to 1" in output
    assert "the slope of log(1 + exp(x)) at 100: 1.0" in output
    assert "transpose one of them" in output
    assert output.count("Error: ") == 4


def test_an_op_is_added_in_one_place() -> None:
    output = run_example("add_an_op.py")
    assert "hypot(3, [4, 0]) = [5. 3.]" in output
    assert "hypot(float32[2], float32[3]): shapes (2,) and (3,) do not broadcast" in output
    assert "curvature along x: 0.1280" in output
    assert re.search(r"mean length ([\d.]+), by NumPy \1", output)
    assert re.search(r"native: [12] kernels?", output)  # on Numba a long sum is one of parts, and their sum
    assert "numpy:" not in output
    assert number(r"(\d+) cases agree", output) >= 20


def test_an_explicit_graph_is_built_once_and_run_often() -> None:
    output = run_example("explicit_graph.py")
    assert "variables: net/dense/kernel:0, net/dense/bias:0, net/dense_1/kernel:0" in output
    assert number(r"accuracy ([\d.]+)", output) > 0.95
    assert "operations added by 602 runs: 0" in output
    assert "eagerly: (3,) 6 variables" in output
    assert "one draw in one run: True" in output
    assert "another in the next: True" in output
    assert "fed instead of a draw: [2. 4. 6.]" in output
    assert "counted: [1, 2, 3]" in output
    assert re.search(r'Warning: The graph grows at each run: File ".*explicit_graph\.py", line \d+', output)


def test_control_flow_is_the_same_both_ways() -> None:
    output = run_example("control_flow.py")
    assert "bounces of a lively ball: 73\n" in output
    assert "never rests: AssertionError: a ball that keeps its height never comes to rest" in output
    assert number(r"x with x exp\(x\) = 1: ([\d.]+)", output) == pytest.approx(0.567143, abs=1e-5)
    assert "ValueError: -1.0 is left of the interval, which begins at 0.0" in output
    assert "ArithmeticError: sixty halvings were not enough" in output
    assert "before a leap: 6.0" in output
    assert "the whole path: 13.0" in output
    assert "the sign of -7: -1" in output
    assert number(r"compiled: (\d+) times as fast", output) >= 10


def test_debugging_shows_graph_values_nan_difference_and_refusal(tmp_path: Path) -> None:
    picture = tmp_path / "newton.png"
    output = run_example("debugging.py", "--out", str(picture))
    source = (ROOT / "examples" / "debugging.py").read_text(encoding="utf-8").splitlines()

    def line(part: str) -> int:
        return 1 + next(i for i, text in enumerate(source) if part in text)

    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "body: graph loop_body" in output
    assert re.search(rf"divide\(.*# debugging.py:{line('root = 0.5')}$", output, re.MULTILINE)
    assert f"iteration 5, line {line('root = 0.5')}: divide(float32[2], float32[2])" in output
    assert "answer [1.4142135 3.       ]" in output
    assert "entropy nan\nbecause log(float32[3]) computed -inf at [1] of float32[3], from 0.0" in output
    assert f"line {line('-df.reduce_sum(weights')}, in " in output
    assert "newton(x: float32[2]) agrees" in output
    assert (
        "the first op to differ is multiply: its values in the trace are not those of another run" in output
    )
    assert "'noisy' is strict" in output
    assert "draw the numbers outside of the function" in output


def test_every_example_is_run_here() -> None:
    run = set(re.findall(r"\b\w+\.py\b", Path(__file__).read_text(encoding="utf-8")))
    assert {path.name for path in (ROOT / "examples").glob("*.py")} <= run
