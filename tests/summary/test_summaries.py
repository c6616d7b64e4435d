"""``df.summary``: files of events, read back by TensorBoard's own reader."""

from __future__ import annotations

import errno
import io
import os
import pickle
import resource
import subprocess
import sys
import threading
import wave
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from required_tools import require_module

import dualflow as df

require_module("tensorboardX")
accumulators = require_module("tensorboard.backend.event_processing.event_accumulator")


@pytest.fixture(autouse=True)
def no_defaults() -> Iterator[None]:
    """Each test begins and ends without a default step."""
    yield
    df.summary.experimental.set_step(None)


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Any]:
    opened = df.summary.create_file_writer(tmp_path)
    yield opened
    opened.close()


def read(folder: Path) -> Any:
    """What TensorBoard reads from a folder."""
    events = accumulators.EventAccumulator(
        str(folder), {"images": 0, "tensors": 0, "audio": 0, "histograms": 0}
    )
    events.Reload()
    return events


def scalars(folder: Path, tag: str = "loss") -> list[tuple[int, float]]:
    events = read(folder)
    return [(e.step, e.value) for e in events.Scalars(tag)] if tag in events.Tags()["scalars"] else []


# What is written


def test_scalars_come_back(tmp_path: Path, writer: Any) -> None:
    with writer.as_default():
        for step in range(3):
            assert df.summary.scalar("loss", 1.0 / (step + 1), step=step)
    assert scalars(tmp_path) == [(0, 1.0), (1, 0.5), (2, pytest.approx(1 / 3))]


@pytest.mark.parametrize("value", [True, 3, np.float64(2.5), np.float16(0.5), float("nan"), float("inf")])
def test_a_scalar_is_any_real_number(tmp_path: Path, writer: Any, value: Any) -> None:
    with writer.as_default(step=0):
        df.summary.scalar("loss", value)
    np.testing.assert_equal(scalars(tmp_path)[0][1], float(value))


def test_a_histogram_summary_counts_values_by_bins(tmp_path: Path, writer: Any) -> None:
    with writer.as_default(step=1):
        df.summary.histogram("h", [0.0, 1.0, 1.5, 4.0, np.nan, np.inf], buckets=4)
        df.summary.histogram("same", [2.0, 2.0])
        df.summary.histogram("empty", np.zeros([0]))
    events = read(tmp_path)
    value = events.Histograms("h")[0].histogram_value
    assert (value.min, value.max, value.num, value.sum, value.sum_squares) == (0, 4, 4, 6.5, 19.25)
    assert list(value.bucket) == [1, 2, 0, 1]
    assert list(value.bucket_limit) == [1, 2, 3, 4]
    same = events.Histograms("same")[0].histogram_value
    assert (list(same.bucket_limit), list(same.bucket)) == ([2.5], [2])
    assert events.Histograms("empty")[0].histogram_value.num == 0


def decoded(data: bytes) -> Any:
    """The pixels of a file of PNG whose rows have no filter, by the format's definition."""
    width, height, depth, colour = (
        int.from_bytes(data[a:b], "big") for a, b in ((16, 20), (20, 24), (24, 25), (25, 26))
    )
    assert depth == 8
    channels = {0: 1, 2: 3, 4: 2, 6: 4}[colour]
    start = data.index(b"IDAT")
    length = int.from_bytes(data[start - 4 : start], "big")
    rows = np.frombuffer(zlib.decompress(data[start + 4 : start + 4 + length]), np.uint8)
    rows = rows.reshape(height, 1 + width * channels)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, channels)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_images_come_back(tmp_path: Path, writer: Any, channels: int) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (4, 5, 6, channels)).astype(np.uint8)
    with writer.as_default(step=0):
        df.summary.image("x", pixels, max_outputs=2)
        df.summary.image("one", pixels[:1])
    events = read(tmp_path)
    assert sorted(events.Tags()["images"]) == ["one/image", "x/image/0", "x/image/1"]
    for i in range(2):
        image = events.Images(f"x/image/{i}")[0]
        assert (image.height, image.width) == (5, 6)
        np.testing.assert_array_equal(decoded(image.encoded_image_string), pixels[i])


def test_floats_of_an_image_are_scaled_and_cut_off(tmp_path: Path, writer: Any) -> None:
    with writer.as_default(step=0):
        df.summary.image("x", np.array([[[[-1.0], [0.0], [0.5], [1.0], [2.0], [np.nan]]]]))
    result = decoded(read(tmp_path).Images("x/image")[0].encoded_image_string)
    assert result.ravel().tolist() == [0, 0, 127, 255, 255, 0]


def test_sounds_come_back(tmp_path: Path, writer: Any) -> None:
    samples = np.float32([[[0.0, 1.0], [0.5, -1.0]]])
    with writer.as_default(step=0):
        df.summary.audio("tone", samples, 8000)
    events = read(tmp_path).Audio("tone/audio")[0]
    with wave.open(io.BytesIO(events.encoded_audio_string)) as sound:
        assert (sound.getframerate(), sound.getnchannels()) == (8000, 2)
        data = np.frombuffer(sound.readframes(9), "<i2")
    np.testing.assert_allclose(data / 32767, samples.ravel(), atol=1e-4)


def test_texts_come_back(tmp_path: Path, writer: Any) -> None:
    with writer.as_default(step=0):
        df.summary.text("note", "rate = **0.1**, größer", description="settings")
        df.summary.text("table", [["a", "b"], ["c", "d"]])
    events = read(tmp_path)
    assert events.Tensors("note")[0].tensor_proto.string_val[0].decode() == "rate = **0.1**, größer"
    table = events.Tensors("table")[0].tensor_proto
    assert [d.size for d in table.tensor_shape.dim] == [2, 2]
    assert events.SummaryMetadata("note").plugin_data.plugin_name == "text"
    assert events.SummaryMetadata("note").summary_description == "settings"


def test_name_scopes_prefix_names(tmp_path: Path, writer: Any) -> None:
    with writer.as_default(step=0), df.name_scope("train"), df.name_scope("inner"):
        df.summary.scalar("loss", 1.0)
    assert read(tmp_path).Tags()["scalars"] == ["train/inner/loss"]


# Defaults


def test_without_a_writer_nothing_is_written() -> None:
    assert not df.summary.scalar("loss", 1.0)
    assert not df.summary.should_record_summaries()
    df.summary.flush()
    with df.summary.create_noop_writer().as_default(step=0):
        assert not df.summary.scalar("loss", 1.0)


def test_a_noop_writer_replaces_the_outer_writer(tmp_path: Path, writer: Any) -> None:
    step = df.function(lambda x: df.summary.scalar("loss", x))
    with writer.as_default(step=0), df.summary.create_noop_writer().as_default():
        df.summary.scalar("loss", 1.0)
        step(df.constant(2.0))
    assert scalars(tmp_path) == []


def test_steps_have_a_default(tmp_path: Path, writer: Any) -> None:
    step = df.Variable(7, dtype=df.int64)
    with writer.as_default(step=1):
        df.summary.scalar("loss", 0.0)
        df.summary.experimental.set_step(step)
        df.summary.scalar("loss", 1.0)
        step.assign_add(2)
        df.summary.scalar("loss", 2.0)
        df.summary.scalar("loss", 3.0, step=df.constant(20))
    assert df.summary.experimental.get_step() is None
    assert [s for s, _ in scalars(tmp_path)] == [1, 7, 9, 20]


def test_conditions_report_what_is_recorded(tmp_path: Path, writer: Any) -> None:
    step = df.Variable(0)
    with writer.as_default(), df.summary.record_if(lambda: step % 2 == 0):
        for _ in range(4):
            assert df.summary.should_record_summaries() == (int(step) % 2 == 0)
            df.summary.scalar("loss", float(step), step=step)
            step.assign_add(1)
        with df.summary.record_if(False):
            assert not df.summary.scalar("loss", 9.0, step=9)
    assert [s for s, _ in scalars(tmp_path)] == [0, 2]


def test_two_writers_and_blocks_within_blocks(tmp_path: Path) -> None:
    one, two = (df.summary.create_file_writer(tmp_path / name) for name in ("one", "two"))
    with one.as_default(step=0):
        df.summary.scalar("loss", 1.0)
        with two.as_default():
            df.summary.scalar("loss", 2.0)
        df.summary.scalar("loss", 3.0, step=1)
    assert [v for _, v in scalars(tmp_path / "one")] == [1.0, 3.0]
    assert [v for _, v in scalars(tmp_path / "two")] == [2.0]


def test_a_thread_has_defaults_of_its_own_and_may_share_a_writer(tmp_path: Path, writer: Any) -> None:
    states: list[bool] = []

    def work(start: int) -> None:
        states.append(df.summary.should_record_summaries())
        with writer.as_default():
            for step in range(start, start + 50):
                df.summary.scalar("loss", float(step), step=step)

    with writer.as_default():
        threads = [threading.Thread(target=work, args=(1000 * i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert states == [False] * 4
    expected = {1000 * i + j for i in range(4) for j in range(50)}
    assert {s for s, _ in scalars(tmp_path)} == expected


# In traced functions


def test_a_traced_function_writes_at_each_run(tmp_path: Path, writer: Any) -> None:
    traces = []

    @df.function
    def step(x: Any, at: Any) -> Any:
        traces.append(1)
        df.summary.scalar("loss", x * 2.0, step=at)
        return x + 1.0

    with writer.as_default():
        for i in range(3):
            step(df.constant(float(i)), df.constant(i))
    step(df.constant(9.0), df.constant(9))  # no writer here
    assert scalars(tmp_path) == [(0, 0.0), (1, 2.0), (2, 4.0)]
    assert len(traces) == 1


def test_a_traced_function_writes_to_the_writer_of_the_run(tmp_path: Path) -> None:
    step = df.function(lambda x: df.summary.scalar("loss", x))
    step(df.constant(0.0))
    for name in ("train", "test"):
        with df.summary.create_file_writer(tmp_path / name).as_default(step=len(name)):
            step(df.constant(float(len(name))))
    assert scalars(tmp_path / "train") == [(5, 5.0)]
    assert scalars(tmp_path / "test") == [(4, 4.0)]


def test_a_function_may_open_the_writer_itself(tmp_path: Path, writer: Any) -> None:
    @df.function
    def step(x: Any, at: Any) -> None:
        with writer.as_default(step=at):
            df.summary.scalar("loss", x)

    for i in range(2):
        step(df.constant(float(i)), df.constant(i))
    assert scalars(tmp_path) == [(0, 0.0), (1, 1.0)]


def test_a_variable_is_a_step_in_its_order(tmp_path: Path, writer: Any) -> None:
    count = df.Variable(0, dtype=df.int64)

    @df.function
    def step() -> None:
        df.summary.scalar("before", 1.0)
        count.assign_add(1)
        df.summary.scalar("after", 1.0)

    with writer.as_default(step=count):
        step(), step()
    assert [[s for s, _ in scalars(tmp_path, tag)] for tag in ("before", "after")] == [[0, 1], [1, 2]]


def test_a_tensor_reports_whether_to_record(tmp_path: Path, writer: Any) -> None:
    @df.function
    def step(x: Any) -> None:
        with df.summary.record_if(x > 1.0):
            df.summary.scalar("loss", x, step=0)

    with writer.as_default():
        for x in (1.0, 2.0):
            step(df.constant(x))
    assert [v for _, v in scalars(tmp_path)] == [2.0]


def test_branches_and_loops_write_what_they_run(tmp_path: Path, writer: Any) -> None:
    @df.function
    def run(n: Any) -> Any:
        i = df.constant(0)
        while i < n:
            if i % 2 == 0:
                df.summary.scalar("loss", i, step=i)
            i += 1
        return i

    with writer.as_default():
        run(df.constant(5))
    assert [s for s, _ in scalars(tmp_path)] == [0, 2, 4]


def test_a_traced_function_writes_texts_histograms_and_images(tmp_path: Path, writer: Any) -> None:
    @df.function
    def run(x: Any) -> None:
        df.summary.text("note", "hello")
        df.summary.histogram("h", x)
        df.summary.image("i", x)

    with writer.as_default(step=0):
        run(df.ones([1, 2, 2, 1]))
    tags = read(tmp_path).Tags()
    assert (tags["tensors"], tags["histograms"], tags["images"]) == (["note"], ["h"], ["i/image"])


def test_a_step_of_training_is_the_same_with_summaries(tmp_path: Path, writer: Any) -> None:
    def train(write: bool) -> Any:
        w = df.Variable([1.0, 2.0])

        @df.function
        def step(x: Any) -> Any:
            with df.GradientTape() as tape:
                loss = df.reduce_sum((w * x - 1.0) ** 2)
            w.assign_sub(0.1 * tape.gradient(loss, w))
            if write:
                df.summary.scalar("loss", loss, step=0)
            return loss

        with writer.as_default():
            return [float(step(df.constant([0.5, 0.25]))) for _ in range(4)]

    assert train(True) == train(False)
    assert [v for _, v in scalars(tmp_path)] == train(False)


# Graphs


def test_the_graph_of_a_function_comes_back(tmp_path: Path, writer: Any) -> None:
    w = df.Variable([[1.0], [2.0]], name="weight")

    @df.function
    def f(x: Any) -> Any:
        return df.cond(df.reduce_sum(x) > 0, lambda: df.nn.relu(x @ w), lambda: x @ w)

    f(df.ones([3, 2]))
    with writer.as_default():
        assert df.summary.graph(f)
    graph = read(tmp_path).Graph()
    nodes = {node.name: node for node in graph.node}
    assert {"x", "weight", "matmul"} <= {name.split("/")[-1] for name in nodes}
    assert all(source.partition(":")[0] in nodes for node in graph.node for source in node.input)
    assert any("/" in name and name.split("/")[-1].startswith("matmul") for name in nodes)
    shapes = nodes["x"].attr["_output_shapes"].list.shape[0]
    assert [d.size for d in shapes.dim] == [3, 2]
    assert any(__file__ in node.attr["line"].s.decode() for node in graph.node)


def test_trace_export_writes_the_function_that_was_traced(tmp_path: Path, writer: Any) -> None:
    df.summary.trace_on()
    df.function(lambda x: df.tanh(x))(df.constant(1.0))
    with writer.as_default():
        df.summary.trace_export("f", step=0)
    assert "tanh" in {node.op for node in read(tmp_path).Graph().node}
    with pytest.raises(RuntimeError, match="Must enable trace"):
        df.summary.trace_export("f", step=0)


def test_trace_off_forgets() -> None:
    df.summary.trace_on()
    df.summary.trace_off()
    df.function(lambda x: x + 1.0)(df.constant(1.0))
    df.summary.trace_on()
    with pytest.raises(RuntimeError, match="No function has been traced since"):
        df.summary.trace_export("f")


def test_an_explicit_graph_is_a_graph(tmp_path: Path, writer: Any) -> None:
    with df.compat.v1.Graph().as_default() as graph:
        df.compat.v1.placeholder(df.float32, [2], name="p") * 2.0  # adds to the graph
    with writer.as_default():
        df.summary.graph(graph)
    assert "multiply" in {node.op for node in read(tmp_path).Graph().node}


# Files


def test_events_wait_until_there_are_enough(tmp_path: Path) -> None:
    writer = df.summary.create_file_writer(tmp_path, max_queue=3, flush_millis=10**9)
    writer.set_as_default(step=0)
    try:
        counts = []
        for _ in range(4):
            df.summary.scalar("loss", 1.0)
            counts.append(len(scalars(tmp_path)))
        assert counts == [0, 0, 3, 3]
        df.summary.flush()
        assert len(scalars(tmp_path)) == 4
    finally:
        df.summary.create_noop_writer().set_as_default()
        writer.close()


def test_a_file_is_named_as_tensorboard_looks_for(tmp_path: Path) -> None:
    for _ in range(2):
        df.summary.create_file_writer(tmp_path / "new" / "folder", filename_suffix=".mine").close()
    names = [p.name for p in (tmp_path / "new" / "folder").iterdir()]
    assert len(names) == 2
    assert all(n.startswith("events.out.tfevents.") and n.endswith(".mine") for n in names)


def test_unclosed_writers_are_flushed_at_exit(tmp_path: Path) -> None:
    program = (
        "import os, dualflow as df\n"
        f"writer = df.summary.create_file_writer({str(tmp_path)!r}, max_queue=100)\n"
        "writer.set_as_default(step=1)\n"
        "df.summary.scalar('loss', 3.0)\n"
        "if os.fork() == 0:\n"
        "    df.summary.scalar('child', 4.0)\n"
        "else:\n"
        "    os.wait()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    assert sorted(read(f).Tags()["scalars"] for f in tmp_path.iterdir()) == [["child"], ["loss"]]  # type: ignore[arg-type]


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    writer = df.summary.create_file_writer(tmp_path, max_queue=1)
    path = next(tmp_path.iterdir())
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with writer.as_default(step=0):
        df.summary.scalar("loss", 1.0)
        size = path.stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, before[1]))
        try:
            with pytest.raises(RuntimeError, match=f"can't be written to .*{os.strerror(errno.EFBIG)}"):
                df.summary.scalar("loss", 2.0)
            assert path.stat().st_size == size
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        df.summary.scalar("loss", 3.0)
    assert [v for _, v in scalars(tmp_path)] == [1.0, 2.0, 3.0]


def test_a_closed_writer_takes_no_more(tmp_path: Path, writer: Any) -> None:
    with writer.as_default(step=0):
        df.summary.scalar("loss", 1.0)
        writer.close()
        writer.close()
        with pytest.raises(RuntimeError, match="SummaryWriter is already closed"):
            df.summary.scalar("loss", 2.0)
    for use in (writer.flush, writer.set_as_default, lambda: writer.as_default().__enter__()):
        with pytest.raises(RuntimeError, match="SummaryWriter is already closed"):
            use()
    assert len(scalars(tmp_path)) == 1


def test_a_missing_package_is_named(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['tensorboardX'] = None\n"
        f"import dualflow as df; df.summary.create_file_writer({str(tmp_path)!r})\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "pip install 'dualflow[summary]'" in ended.stderr.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: df.summary.scalar("x", 1.0), "No step set. Give the summary its step="),
        (lambda: df.summary.scalar("x", [1.0, 2.0], step=0), r"one number, not a tensor of shape \(2,\)"),
        (lambda: df.summary.scalar("x", 1j, step=0), "takes real numbers, not complex128"),
        (lambda: df.summary.scalar("", 1.0, step=0), "name of a summary is a text, not ''"),
        (lambda: df.summary.scalar("x", 1.0, step=1.5), "A step is an integer, .* not 1.5"),
        (lambda: df.summary.scalar("x", 1.0, step=df.constant(1.5)), "not a tensor of float32"),
        (lambda: df.summary.image("x", df.zeros([2, 2, 3]), step=0), r"\(batch, height, width, chan"),
        (lambda: df.summary.image("x", df.zeros([1, 2, 2, 5]), step=0), "1 to 4 channels, not"),
        (lambda: df.summary.image("x", df.zeros([1, 2, 2, 1]), 0, -1), "max_outputs is at least 0"),
        (lambda: df.summary.histogram("x", [1.0], 0, -1), "buckets is at least 0, not -1"),
        (lambda: df.summary.audio("x", df.zeros([2, 2]), 8000, step=0), r"\(batch, frames, channels\)"),
        (lambda: df.summary.audio("x", [[[1]]], 8000, step=0), "takes real numbers, not int32"),
        (
            lambda: df.summary.audio("x", df.zeros([1, 2, 1]), 8000, 0, encoding="mp3"),
            "is \"wav\", not 'mp3'",
        ),
        (lambda: df.summary.text("x", 3.0, step=0), "takes texts, not numbers"),
        (lambda: df.summary.graph(3), "takes a df.function, a concrete function or a graph, not a int"),
        (lambda: df.summary.graph(df.function(lambda: 1)), "has no graph yet: call it"),
        (lambda: df.summary.trace_on(profiler=True), r"with df\.profiler\.trace\(folder\)"),
        (lambda: df.summary.experimental.set_step("a"), "A step is an integer, .* not 'a'"),
        (lambda: df.summary.create_file_writer(None), "logdir is the path of a folder, not None"),
        (lambda: df.summary.create_file_writer(__file__), "can't be written to"),
        (
            lambda: df.summary.create_file_writer("x", max_queue=-1),
            "max_queue and flush_millis are at least 0",
        ),
    ],
)
def test_bad_use_is_an_error(writer: Any, use: Callable[[], Any], message: str) -> None:
    with writer.as_default(), pytest.raises((ValueError, TypeError, RuntimeError), match=message):
        use()


def test_a_writer_is_not_copied(writer: Any) -> None:
    with pytest.raises(TypeError, match="can't be pickled or copied"):
        pickle.dumps(writer)
