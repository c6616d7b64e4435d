"""``v1.summary``: summaries as ops of a graph, and their writer, read back by TensorBoard's own reader."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.compat import v1
from dualflow.summary.images import rescaled

tf: Any = v1  # wrong calls are no errors of types here
pytest.importorskip("tensorboardX")
accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")


@pytest.fixture
def graph() -> Iterator[v1.Graph]:
    with v1.Graph().as_default() as graph:
        yield graph


@pytest.fixture
def session(graph: v1.Graph) -> v1.Session:
    return v1.Session()


def read(folder: Path) -> Any:
    """What TensorBoard reads from a folder."""
    events = accumulators.EventAccumulator(str(folder), {"images": 0, "tensors": 0, "audio": 0})
    events.Reload()
    return events


def values(serialised: bytes) -> list[Any]:
    return list(tf.Summary.FromString(serialised).value)


# Training with summaries, as TensorFlow 1's tutorials write it


def test_a_training_program_writes_curves_distributions_images_and_its_graph(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    images = rng.random([20, 16], np.float32)
    labels = (images.sum(1) > 8).astype(np.int64)

    def variable_summaries(var: Any) -> None:
        with tf.name_scope("summaries"):
            mean = tf.reduce_mean(var)
            tf.summary.scalar("mean", mean)
            with tf.name_scope("stddev"):
                stddev = tf.sqrt(tf.reduce_mean(tf.square(var - mean)))
            tf.summary.scalar("stddev", stddev)
            tf.summary.histogram("histogram", var)

    with v1.Graph().as_default(), v1.Session() as sess:
        with tf.name_scope("input"):
            x = tf.placeholder(tf.float32, [None, 16], name="x-input")
            y = tf.placeholder(tf.int64, [None], name="y-input")
            tf.summary.image("input", tf.reshape(x, [-1, 4, 4, 1]), 2)
        with tf.name_scope("layer"):
            weights = tf.Variable(tf.truncated_normal([16, 2], stddev=0.1, seed=1), name="weights")
            variable_summaries(weights)
            logits = tf.matmul(x, weights, name="logits")
        loss = tf.losses.sparse_softmax_cross_entropy(labels=y, logits=logits)
        tf.summary.scalar("loss", loss)
        train_step = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
        merged = tf.summary.merge_all()
        log_dir = tmp_path / "train"
        tf.gfile.MakeDirs(str(log_dir))
        writer = tf.summary.FileWriter(str(log_dir), sess.graph)
        tf.global_variables_initializer().run()
        losses = []
        for i in range(5):
            summary, _, now = sess.run([merged, train_step, loss], {x: images, y: labels})
            losses.append(now)
            writer.add_summary(summary, i)
        writer.close()

    events = read(log_dir)
    assert [(e.step, e.value) for e in events.Scalars("loss")] == list(enumerate(losses))
    assert losses[-1] < losses[0]
    assert set(events.Tags()["scalars"]) == {"layer/summaries/mean", "layer/summaries/stddev_1", "loss"}
    assert events.Tags()["histograms"] == ["layer/summaries/histogram"]
    assert sorted(events.Tags()["images"]) == ["input/input/image/0", "input/input/image/1"]
    nodes = {node.name: node for node in events.Graph().node}
    assert {"input/x-input", "layer/logits", "layer/weights", "layer/weights/Assign"} <= set(nodes)
    assert list(nodes["layer/logits"].input) == ["input/x-input", "layer/weights/read"]
    sources = {source.removeprefix("^").partition(":")[0] for node in nodes.values() for source in node.input}
    assert sources <= set(nodes)


def test_summaries_leave_the_training_step_compiled_with_the_same_bits(
    graph: v1.Graph, session: v1.Session
) -> None:
    w = tf.Variable(np.ones([3, 3], np.float32))
    loss = tf.reduce_sum(tf.tanh(w) ** 2.0)
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    summary = tf.summary.merge([tf.summary.scalar("loss", loss), tf.summary.histogram("w", w)])
    session.run(tf.global_variables_initializer())
    session.run(step)
    without = session.run(w)
    session.run(tf.global_variables_initializer())
    session.run([summary, step])
    assert session.run(w).tobytes() == without.tobytes()
    plans = [plan for request in session._requests.values() for plan in request.plans.values() if plan.tail]
    assert plans
    assert not any(value.spec.dtype.is_string for plan in plans for value in plan.compiled.graph.outputs)


def test_strings_that_other_ops_read_are_computed_in_the_run(graph: v1.Graph, session: v1.Session) -> None:
    x = tf.placeholder(tf.float32, [])
    text = tf.strings.as_string(x)
    length = tf.strings.length(text) + 1
    assert session.run([text, length], {x: 0.5}) == [b"0.500000", 9]
    assert session.run(length, {text: b"abc"}) == 4
    with tf.control_dependencies([text]):
        after = tf.identity(x)
    assert session.run([after, text], {x: 0.5}) == [0.5, b"0.500000"]


# Names and collections


def test_tags_are_names_of_ops_with_scopes_families_and_numbers(graph: v1.Graph, session: v1.Session) -> None:
    with tf.name_scope("scope"):
        summaries = [
            tf.summary.scalar("a b", 1.0),
            tf.summary.scalar("a b", 1.0),
            tf.summary.scalar("c", 1.0, family="family"),
        ]
    assert [s.name for s in summaries] == ["scope/a_b:0", "scope/a_b_1:0", "scope/family/c:0"]
    tags = [values(x)[0].tag for x in session.run(summaries)]
    assert tags == ["scope/a_b", "scope/a_b_1", "family/scope/family/c"]


def test_merge_all_takes_a_collection_and_a_scope(graph: v1.Graph, session: v1.Session) -> None:
    assert tf.summary.merge_all() is None
    tf.summary.scalar("a", 1.0)
    tf.summary.scalar("b", 2.0, collections=["mine"])
    with tf.name_scope("inner"):
        tf.summary.text("c", ["x", "y"])
    merges = [tf.summary.merge_all(), tf.summary.merge_all("mine"), tf.summary.merge_all(scope="inner")]
    assert [[v.tag for v in values(x)] for x in session.run(merges)] == [["a", "inner/c"], ["b"], ["inner/c"]]
    assert merges[0].name == "Merge/MergeSummary:0"


def test_a_definition_has_summaries(graph: v1.Graph, tmp_path: Path) -> None:
    tf.summary.merge([tf.summary.audio("tone", tf.zeros([1, 8]), 8000, 2)], name="all")
    definition = graph.as_graph_def()
    with v1.Graph().as_default(), v1.Session() as session:
        (summary,) = tf.import_graph_def(definition, return_elements=["all:0"], name="")
        (sound,) = values(session.run(summary))
    assert (sound.tag, sound.audio.sample_rate, sound.audio.length_frames) == ("tone/audio", 8000, 8)


def test_eager_code_gets_the_message_too() -> None:
    (value,) = values(tf.summary.scalar("loss", 2.5).numpy())
    assert (value.tag, value.simple_value) == ("loss", 2.5)


def test_a_measured_run_is_metadata_of_the_graph(
    tmp_path: Path, graph: v1.Graph, session: v1.Session
) -> None:
    x = v1.placeholder(v1.float32, [2], name="x")
    y = v1.exp(x, name="y")
    metadata, unmeasured = tf.RunMetadata(), tf.RunMetadata()
    session.run([y], {x: [1.0, 2.0]}, tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), metadata)
    session.run([y], {x: [1.0, 2.0]}, tf.RunOptions(), unmeasured)
    with tf.summary.FileWriter(tmp_path, graph) as writer:
        writer.add_run_metadata(metadata, "step001", 1)
        with pytest.raises(ValueError, match="'step001' was already used"):
            writer.add_run_metadata(metadata, "step001", 2)
        with pytest.raises(TypeError, match="A RunMetadata is needed"):
            writer.add_run_metadata(b"", "step002")
    (device,) = read(tmp_path).RunMetadata("step001").step_stats.dev_stats
    (node,) = device.node_stats
    assert (device.device, node.node_name) == ("/device:CPU:0", "y")
    assert node.all_end_rel_micros == max(1, metadata.duration // 1000)
    assert unmeasured.SerializeToString() == b""


# Images


def test_images_fill_the_range_of_brightness() -> None:
    image = np.array([[[[0.0], [1.0], [4.0]]], [[[-2.0], [0.0], [1.0]]], [[[0.0], [0.0], [0.0]]]])
    expected = [[0, 63, 255], [1, 128, 191], [0, 0, 0]]
    assert rescaled(image).reshape(3, 3).tolist() == expected
    colours = np.ones([1, 1, 2, 3])
    colours[0, 0, 1, 1] = np.nan
    assert rescaled(colours).tolist() == [[[[255, 255, 255], [255, 0, 0]]]]
    assert rescaled(np.array([[[[300]]]])).tolist() == [[[[255]]]]


# The writer


def test_messages_made_by_hand_are_written(tmp_path: Path) -> None:
    with tf.summary.FileWriter(tmp_path) as writer:
        summary = tf.Summary()
        summary.value.add(tag="accuracy", simple_value=0.75)
        writer.add_summary(summary, global_step=7)
        writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="other", simple_value=1.0)]))
        writer.add_event(tf.Event(summary=summary), 8)
    events = read(tmp_path)
    assert [(e.step, e.value) for e in events.Scalars("accuracy")] == [(7, 0.75), (8, 0.75)]
    assert [e.step for e in events.Scalars("other")] == [0]


def test_a_closed_writer_is_reopened_with_a_new_file(tmp_path: Path) -> None:
    writer = tf.summary.FileWriter(tmp_path, filename_suffix=".mine")
    assert writer.get_logdir() == str(tmp_path)
    writer.close()
    writer.close()
    with pytest.raises(RuntimeError, match="already closed"):
        writer.add_summary(b"")
    writer.reopen()
    writer.reopen()
    writer.add_summary(b"")
    writer.flush()
    writer.close()
    assert len(list(tmp_path.glob("*.mine"))) == 2


def test_a_definition_is_written_as_a_graph(tmp_path: Path, graph: v1.Graph) -> None:
    x = tf.placeholder(tf.float32, [2], name="x")
    with tf.control_dependencies([tf.square(x, name="first")]):
        tf.exp(x, name="second")
    tf.summary.FileWriter(tmp_path, graph_def=graph.as_graph_def()).close()
    nodes = {node.name: list(node.input) for node in read(tmp_path).Graph().node}
    assert nodes == {"x": [], "first": ["x"], "second": ["x", "^first"]}


def test_the_cache_has_one_writer_for_a_folder(tmp_path: Path) -> None:
    cache = tf.summary.FileWriterCache
    writer = cache.get(tmp_path)
    assert cache.get(str(tmp_path)) is writer
    cache.clear()
    assert cache.get(tmp_path) is not writer
    cache.clear()


@pytest.mark.parametrize(
    ("use", "kind", "message"),
    [
        (lambda path: tf.summary.FileWriter(""), ValueError, "path of a folder"),
        (lambda path: tf.summary.FileWriter(path, "graph"), TypeError, "takes a tf.Graph, not a str"),
        (lambda path: tf.summary.FileWriter(path).add_graph(None), TypeError, "takes a graph"),
        (lambda path: tf.summary.FileWriter(path).add_event(b""), TypeError, "An Event is needed"),
        (lambda path: tf.summary.FileWriter(path).add_summary(b"\xff"), ValueError, "no serialised summary"),
        (lambda path: tf.summary.FileWriter(path).add_summary(3.5), ValueError, "no serialised summary"),
        (lambda path: tf.summary.scalar("", 1.0), ValueError, "name of a summary is a text"),
        (lambda path: tf.summary.scalar("a", [1.0]), ValueError, "takes one number"),
        (lambda path: tf.summary.image("a", df.zeros([1, 2, 2, 1]), 0), ValueError, "at least 1, not 0"),
        (lambda path: tf.summary.merge([]), ValueError, "at least one summary"),
        (lambda path: tf.summary.merge([tf.summary.scalar("a", 1.0)] * 2), ValueError, "Duplicate tag a"),
        (lambda path: tf.summary.merge(["text"]), ValueError, "no serialised summary"),
    ],
)
def test_bad_use_is_an_error(tmp_path: Path, use: Callable[[Path], Any], kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message):
        use(tmp_path)
