"""``GraphDef``: graphs as text, imported into other graphs and processes, frozen, and damaged."""

from __future__ import annotations

import copy
import pickle
import random
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.compat import v1
from dualflow.core.errors import InvalidArgumentError

tf: Any = v1  # wrong calls are no errors of types here
GraphDef: Any = v1.GraphDef

X = np.arange(12, dtype=np.float32).reshape(3, 4) / 10


def model() -> None:
    """A dense layer with its loss, initializer and training step."""
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    hidden = tf.layers.dense(x, 5, activation=tf.nn.relu, name="fc", kernel_initializer=tf.ones_initializer())
    loss = tf.reduce_mean(tf.square(hidden), name="loss")
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss, name="step")
    assert step is not None
    tf.group(tf.global_variables_initializer(), name="begin")
    tf.identity(loss, name="y")


def control_flow() -> None:
    x = tf.placeholder(tf.float32, [3, 4], name="x")
    total = tf.while_loop(lambda t: tf.reduce_sum(t) < 100.0, lambda t: [t * 2.0 + 1.0], [x])
    tf.cond(tf.reduce_sum(x) > 3.0, lambda: total, lambda: x, name="y")


def constants() -> None:
    x = tf.placeholder(tf.float32, [3, 4], name="x")
    table = tf.constant(np.arange(60, dtype=np.float64).reshape(4, 15))
    names = tf.constant([b"\xff%d" % i for i in range(20)])
    outside = df.constant(np.arange(40, dtype=np.int16))
    with tf.init_scope():
        half = tf.cast(tf.constant(np.arange(16.0)), tf.bfloat16)
    parts = tf.split(tf.cast(x, tf.float64) @ table, 3, axis=1)
    y = parts[1] + tf.cast(tf.reduce_sum(outside), tf.float64) + tf.cast(half[3], tf.float64)
    tf.identity(y, name="y")
    tf.identity(names, name="names")


def seeded() -> None:
    tf.set_random_seed(3)
    x = tf.placeholder(tf.float32, [3, 4], name="x")
    tf.identity(x + tf.random_normal([3, 4]) + tf.random_uniform([4], seed=1), name="y")


def defaults_and_order() -> None:
    x = tf.placeholder_with_default(tf.constant(X), [None, 4], name="x")
    count = tf.Variable(0.0, name="count")
    with tf.control_dependencies([tf.assign_add(count, 1.0), tf.print("seen", x[0, 0])]):
        tf.multiply(x, count.read_value(), name="y")
    tf.group(tf.global_variables_initializer(), name="begin")


FREEZE: Any = tf.graph_util.convert_variables_to_constants
PROGRAMS: list[Callable[[], None]] = [model, control_flow, constants, seeded, defaults_and_order]


def built(program: Callable[[], None]) -> v1.Graph:
    with v1.Graph().as_default() as graph:
        program()
    return graph


def imported(definition: v1.GraphDef, name: str = "") -> v1.Graph:
    with v1.Graph().as_default() as graph:
        tf.import_graph_def(definition, name=name)
    return graph


def results(graph: v1.Graph, prefix: str = "") -> list[Any]:
    """What a graph computes before and after a training step, if it has one."""
    names = {op.name for op in graph.get_operations()}
    with v1.Session(graph=graph) as session:
        if f"{prefix}begin" in names:
            session.run(f"{prefix}begin")
        values = [session.run(f"{prefix}y:0", {f"{prefix}x:0": X})]
        if f"{prefix}step" in names:
            session.run(f"{prefix}step", {f"{prefix}x:0": X})
        return [*values, session.run(f"{prefix}y:0", {f"{prefix}x:0": X})]


# Round trips


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_imported_graph_computes_the_same_and_has_the_same_text(program: Callable[[], None]) -> None:
    graph = built(program)
    definition = graph.as_graph_def()
    again = imported(GraphDef.FromString(definition.SerializeToString()))
    assert str(again.as_graph_def()) == str(definition)
    assert [n.name for n in again.as_graph_def().node] == [n.name for n in definition.node]
    np.testing.assert_equal(results(again), results(graph))


def test_a_definition_lists_names_ops_inputs_and_dependencies() -> None:
    nodes = {node.name: node for node in built(defaults_and_order).as_graph_def().node}
    assert nodes["y"].op == "multiply"
    assert nodes["y"].input == ("x", "count/read_1", "^count/assign_1", "^print")
    assert nodes["begin"].op == "NoOp"
    assert nodes["begin"].input == ("^count/Assign",)
    node = nodes["y"]
    node.device = ""  # programs clear devices


def test_a_definition_is_a_snapshot_that_can_be_copied_compared_and_pickled() -> None:
    graph = built(model)
    definition = graph.as_graph_def()
    with graph.as_default():
        tf.placeholder(tf.float32, [], name="later")
    assert "later" not in str(definition)
    assert definition != graph.as_graph_def()
    for other in (copy.deepcopy(definition), pickle.loads(pickle.dumps(definition))):
        assert other == definition
        assert other.ByteSize() == len(other.SerializeToString())
    empty = GraphDef()
    assert (str(empty), empty.node) == ("", ())
    empty.CopyFrom(definition)
    assert len(empty.node) == len(definition.node)


def test_variables_of_an_import_belong_to_sessions_not_to_collections() -> None:
    graph = imported(built(model).as_graph_def())
    with graph.as_default(), v1.Session() as session:
        assert tf.global_variables() == []
        with pytest.raises(RuntimeError, match="fc/kernel: it is uninitialized"):
            session.run("y:0", {"x:0": X})


# import_graph_def


def test_imports_have_scopes_of_their_own() -> None:
    definition = built(model).as_graph_def()
    with v1.Graph().as_default() as graph:
        tf.import_graph_def(definition)
        tf.import_graph_def(definition)
        tf.import_graph_def(definition, name="net")
    expected = results(built(model))
    for prefix in ("import/", "import_1/", "net/"):
        np.testing.assert_array_equal(results(graph, prefix), expected)


def test_return_elements_are_tensors_operations_and_groups() -> None:
    with v1.Graph().as_default():
        y, op, begin = tf.import_graph_def(built(model).as_graph_def(), return_elements=["y:0", "y", "begin"])
    assert (y.name, op.name, begin.type) == ("import/y:0", "import/y", "NoOp")
    assert y.op is op


def test_input_map_feeds_tensors_of_the_graph_with_sizes_inferred_again() -> None:
    definition = built(model).as_graph_def()
    with v1.Graph().as_default(), v1.Session() as session:
        mine = tf.constant(X[:2])
        y, hidden = tf.import_graph_def(definition, {"x": mine}, ["y:0", "fc/relu:0"])
        session.run("import/begin")
        assert hidden.shape == (2, 5)
        assert session.run(y) == pytest.approx(np.mean((X[:2].sum(1)) ** 2))


@pytest.mark.parametrize(
    ("mapped", "returned", "message"),
    [
        ({"z:0": X}, None, "Attempted to map an input: 'z:0' not found in graph_def"),
        ({"x:1": X}, None, "'x:1' not found"),
        ({"x:0": X.astype(int)}, None, "of dtype float32, by a tensor of dtype int64; cast it"),
        ({"x:0": X[:, :3]}, None, "'fc/matmul' can't read the tensors of input_map"),
        ({}, ["z"], "Requested return_element 'z' not found"),
        ({}, ["y:3"], "Requested return_element 'y:3' not found"),
    ],
)
def test_a_refused_import_adds_nothing(mapped: Any, returned: Any, message: str) -> None:
    definition = built(model).as_graph_def()
    with v1.Graph().as_default() as graph:
        tensors = {key: tf.constant(value) for key, value in mapped.items()}
        before = len(graph.get_operations())
        with pytest.raises(ValueError, match=message):
            tf.import_graph_def(definition, tensors, returned)
        assert len(graph.get_operations()) == before


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda d: tf.import_graph_def("graph"), TypeError, "takes a GraphDef, not a str"),
        (lambda d: tf.import_graph_def(d, [1]), TypeError, "input_map is a dict"),
        (lambda d: tf.import_graph_def(d, {3: X}), TypeError, "keys of input_map are names"),
        (lambda d: tf.import_graph_def(d, return_elements=[3]), TypeError, "return_elements are names"),
        (lambda d: tf.import_graph_def(d, name="two words"), ValueError, "not a valid scope"),
        (lambda d: tf.get_default_graph().as_graph_def(3), ValueError, "from_version is None, not 3"),
        (lambda d: tf.GraphDef().ParseFromString("graph"), TypeError, "read from bytes, not from a str"),
        (lambda d: v1.GraphDef.FromString(b"\n\x1a\n\x01x"), ValueError, "Protocol buffers of"),
        (lambda d: v1.GraphDef.FromString(b"\xff\xfe"), ValueError, "no graph definition of dualflow"),
        (lambda d: tf.graph_util.extract_sub_graph(d, ["z"]), ValueError, "z is not in graph"),
        (lambda d: tf.graph_util.extract_sub_graph(d, "y"), TypeError, "are a list of names"),
        (lambda d: tf.graph_util.extract_sub_graph("y", ["y"]), TypeError, "A GraphDef is needed"),
        (lambda d: tf.io.write_graph("y", "folder", "name"), TypeError, "takes a tf.Graph or a GraphDef"),
        (lambda d: FREEZE(None, d, ["y"]), TypeError, "sess is the session"),
    ],
)  # fmt: skip
def test_bad_use_is_an_error(call: Callable[[v1.GraphDef], Any], kind: type[Exception], message: str) -> None:
    definition = built(model).as_graph_def()
    with v1.Graph().as_default(), pytest.raises(kind, match=message):
        call(definition)


def test_an_eager_program_builds_no_graph() -> None:
    with pytest.raises(RuntimeError, match=r"import_graph_def\(\) is not compatible with eager execution"):
        tf.import_graph_def(GraphDef())


# What has no text


def python_call() -> None:
    tf.py_func(lambda x: x, [tf.placeholder(tf.float32, [2])], tf.float32)


def unknown_rank() -> None:
    tf.square(tf.placeholder(tf.float32))


def assertion_of_unknown_rank() -> None:
    tf.assert_rank(tf.placeholder(tf.float32), 1)


def eager_variable() -> None:
    tf.identity(VARIABLE)


VARIABLE = df.Variable(1.0, name="outside")


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (python_call, "Saved graphs call no Python"),
        (unknown_rank, "calls square on a tensor of unknown rank.*placeholder a shape"),
        (assertion_of_unknown_rank, "calls assert_rank on a tensor of unknown rank.*placeholder a shape"),
        (eager_variable, "outside.*created outside of it"),
    ],
)
def test_a_graph_without_a_text_form_is_refused_with_the_line(
    program: Callable[[], None], message: str
) -> None:
    graph = built(program)
    with pytest.raises(ValueError, match=rf"(?s){message}.*{Path(__file__).name}"):
        graph.as_graph_def()


# Files, freezing, parts


def test_a_frozen_model_runs_in_another_process(tmp_path: Path) -> None:
    with built(model).as_default() as graph, v1.Session() as session:
        session.run("begin")
        session.run("step", {"x:0": X})
        expected = session.run("y:0", {"x:0": X})
        frozen = tf.graph_util.convert_variables_to_constants(session, session.graph_def, ["y"])
        tf.train.write_graph(graph, str(tmp_path), "train.pbtxt")
    assert {node.op for node in frozen.node}.isdisjoint({"read_variable", "assign_variable", "NoOp"})
    with tf.gfile.GFile(str(tmp_path / "frozen.pb"), "wb") as file:
        file.write(frozen.SerializeToString())
    np.save(tmp_path / "x.npy", X)
    script = f"""
import numpy as np
from dualflow.compat import v1 as tf
with tf.gfile.GFile({str(tmp_path / "frozen.pb")!r}, "rb") as file:
    graph_def = tf.GraphDef()
    graph_def.ParseFromString(file.read())
with tf.Graph().as_default() as graph:
    tf.import_graph_def(graph_def, name="")
with tf.Session(graph=graph) as session:
    print(repr(float(session.run("y:0", {{"x:0": np.load({str(tmp_path / "x.npy")!r})}}))))
"""
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert float(output.stdout) == float(expected)
    assert GraphDef.FromString((tmp_path / "train.pbtxt").read_bytes()) == graph.as_graph_def()


def test_extraction_keeps_what_the_outputs_need() -> None:
    definition = built(defaults_and_order).as_graph_def()
    part = tf.graph_util.extract_sub_graph(definition, ["count/assign_1"])
    names = {node.name for node in part.node}
    assert "count/assign_1" in names
    assert names.isdisjoint({"x", "y", "begin", "print"})
    assert {n.name for n in tf.graph_util.extract_sub_graph(definition, ["y"]).node} >= {"x", "print"}
    assert [n.name for n in tf.graph_util.extract_sub_graph(definition, ["begin"]).node][-1] == "begin"


def test_freezing_may_leave_variables_and_refuses_assignments() -> None:
    convert = tf.graph_util.convert_variables_to_constants
    with built(model).as_default() as graph, v1.Session() as session:
        definition = graph.as_graph_def()
        with pytest.raises(RuntimeError, match="uninitialized"):
            convert(session, definition, ["y"])
        session.run("begin")
        part = convert(session, definition, ["y"], variable_names_blacklist=["fc/bias"])
        with pytest.raises(ValueError, match="assigns a variable, which can't become a constant"):
            convert(session, definition, ["step"])
        assert convert(session, definition, ["y"], variable_names_whitelist=[]) == (
            tf.graph_util.extract_sub_graph(definition, ["y"])
        )
    assert [node.name for node in part.node if node.op == "read_variable"] == ["fc/bias/read"]


# Hostile text

HOSTILE = [
    "graph g(%x: float32[]",
    "graph g()\n    return %x",
    "graph g(%x: float32[])\n    return %x",
    "graph g(%w: float32[] = variable)\n    return nothing",
    "graph g(%w: float32[?] = variable @w)\n    return nothing",
    "graph g(%a: float32[] = variable @w, %b: float32[] = variable @w)\n    return nothing",
    'graph g(%"a b": float32[])\n    return nothing',
    "graph g(%x: float32[])\n    group(name='x', of=())\n    return nothing",
    "graph g(%x: float32[])\n    group(name='g', of=('x',))\n    return nothing",
    "graph g(%x: float32[])\n    group(name='g', of=('y',))\n    return nothing",
    "graph g()\n    group(name='g', of=3)\n    return nothing",
    "graph g()\n    named(name='g')\n    return nothing",
    "graph g(%x: float32[])\n    run_after(name='x', of=())\n    return nothing",
    "graph g(%x: float32[])\n    print(%x, texts=('', ''), stream='stderr', edge=3)\n    return nothing",
    "graph g()\n    %y: float32[] = read_variable(variable=3)\n    return nothing",
    "graph g()\n    %y: float32[2] = constant(value=@constants/0)\n    return nothing",
    "graph g()\n    return nothing\n\nconstants/0: float32[99999999999] = AAAA",
    "graph g()\n    return nothing\n\nconstants/0: float32[1] = AAA",
    "graph g()\n    return nothing\n\nconstants/0: float32[1] = AAAAAAAA",
    "graph g()\n    return nothing\n\nconstants/0: nodtype[1] = AAAA",
    "graph g()\n    return nothing\n\nsomething else",
    "graph g()\n    return nothing\ngraph h()\n    return nothing",
    "graph g()\n    summary(kind='scalar', tag='x', most=None)\n    return nothing",
    "graph g()\n    %x: string[] = summary(kind='__class__', tag='x', most=None)\n    return nothing",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_an_error_with_its_place(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="graph definition"):
        GraphDef.FromString(text.encode())


FRAGMENTS = [b"", b"9", b"(", b"\n", b"%x", b"\xff", b"constants/0", b"[999999999]"]


@pytest.mark.filterwarnings("ignore:invalid escape sequence")
def test_damaged_text_is_an_error_or_another_graph() -> None:
    rng = random.Random(5)
    data = built(constants).as_graph_def().SerializeToString()
    refused = 0
    for _ in range(150):
        damaged = bytearray(data)
        for _ in range(rng.choice([1, 1, 4])):
            at = rng.randrange(len(damaged))
            damaged[at : at + rng.choice([0, 1, 1, 9])] = rng.choice(FRAGMENTS)
        try:
            imported(GraphDef.FromString(bytes(damaged)))
        except InvalidArgumentError:
            refused += 1
    assert refused > 75


def test_memory_is_proportional_to_the_text() -> None:
    data = built(constants).as_graph_def().SerializeToString()
    data = data.replace(b"int16[40]", b"int16[40000000]").replace(b"float64[4, 15]", b"float64[4, 15000000]")
    tracemalloc.start()
    try:
        with pytest.raises(InvalidArgumentError, match="not the elements"):
            GraphDef.FromString(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 50 * len(data)
