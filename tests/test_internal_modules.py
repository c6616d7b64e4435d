"""What libraries import from TensorFlow's inside, and names that they test for."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.cli.internal_modules import internal_module
from dualflow.cli.internal_nest import FUNCTIONS
from dualflow.compat import v1

PROGRAM = """
import tensorflow as tf
import tensorflow.python as tfpy
from tensorflow.python.eager.tape import should_record_backprop
from tensorflow.python.data.ops.iterator_ops import OwnedIterator
from tensorflow.python.framework import ops, dtypes
from tensorflow.python.ops import math_ops, variable_scope
from tensorflow.python.util import nest, deprecation
from tensorflow.python.util.object_identity import Reference

@deprecation.deprecated(None, "Use another one.")
def double(x):
    return math_ops.multiply(x, 2.0)

x = tf.constant([1.0, 2.0])
assert isinstance(x, ops.EagerTensor) and ops.Tensor is tf.Tensor and dtypes.float32 is tf.float32
assert tfpy.eager.tape.should_record_backprop is should_record_backprop
assert isinstance(x.ref(), Reference) and isinstance(iter(tf.data.Dataset.range(2)), OwnedIterator)
assert not should_record_backprop([x])
with tf.GradientTape() as tape:
    assert not should_record_backprop([x])
    tape.watch(x)
    assert should_record_backprop([x])
assert nest.flatten_up_to([0], [{"a": 1}]) == [{"a": 1}] and nest.map_structure is tf.nest.map_structure
assert variable_scope.get_variable is tf.compat.v1.get_variable
with deprecation.silence():
    print(double(x).numpy().tolist())
try:
    import tensorflow.python.kernel_tests.core
except ModuleNotFoundError as error:
    print(str(error).partition(":")[0])
try:
    math_ops.no_such_op
except AttributeError as error:
    print(error)
"""


def test_a_library_imports_names_of_internal_modules(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "dualflow", "run", str(tmp_path / "program.py")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.stdout.splitlines() == [
        "[2.0, 4.0]",
        "No module named 'tensorflow.python.kernel_tests'",
        "module 'tensorflow.python.ops.math_ops' has no attribute 'no_such_op'.",
    ], run.stderr


def test_tf_keras_is_keras(tmp_path: Path) -> None:
    pytest.importorskip("keras")
    (tmp_path / "program.py").write_text("import tf_keras, tensorflow as tf; print(tf_keras is tf.keras)")
    command = [sys.executable, "-m", "dualflow", "run", str(tmp_path / "program.py")]
    assert subprocess.run(command, capture_output=True, text=True, check=False).stdout == "True\n"


def test_the_context_is_eager_outside_of_functions() -> None:
    module: Any = internal_module("tensorflow.python.eager.context")
    states: list[bool] = []
    df.function(lambda: states.append(module.context().executing_eagerly()))()
    assert (module.executing_eagerly(), states) == (True, [False])
    assert module.context().device_spec.device_type is None
    with df.device("/cpu:0"):
        assert module.context().device_spec.device_type == "CPU"


def test_the_mode_is_eager_or_a_graph() -> None:
    module: Any = internal_module("tensorflow.python.eager.context")
    with v1.Graph().as_default() as graph:
        with module.eager_mode():
            assert (df.constant(2) + 1).numpy() == 3
        with module.graph_mode():
            assert (df.constant(2) + 1).graph is graph
    with module.graph_mode():
        assert (df.constant(2) + 1).graph is v1.get_default_graph()


LIBRARY = """
import tensorflow as tf
from tensorflow.python.autograph.pyct import transformer
from tensorflow.python.eager import context
from tensorflow.python.framework import tensor_shape, tensor_util, type_spec, type_spec_registry
from tensorflow.python.ops import array_ops, control_flow_case, control_flow_util, random_ops
from tensorflow.python.ops import resource_variable_ops
from tensorflow.python.ops.linalg import linear_operator_addition
from tensorflow.python.ops.parallel_for import control_flow_ops
from tensorflow.python.util import deprecation, nest, tf_inspect, variable_utils

class Pair(tf.__internal__.CompositeTensor):
    def __init__(self, v):
        self.v = v
    _type_spec = property(lambda self: PairSpec(self.v.shape))

@type_spec_registry.register("test.PairSpec")
class PairSpec(type_spec.BatchableTypeSpec):
    value_type = Pair
    def __init__(self, shape):
        self.shape = tf.TensorShape(shape)
    def _serialize(self):
        return (self.shape,)
    @property
    def _component_specs(self):
        return resource_variable_ops.VariableSpec(self.shape)
    def _to_components(self, value):
        return value.v
    def _from_components(self, components):
        return Pair(components)

v = tf.Variable([1.0, 2.0])
assert type_spec_registry.lookup("test.PairSpec") is PairSpec
assert type_spec_registry.get_name(PairSpec) == "test.PairSpec"
assert variable_utils.convert_variables_to_tensors([v])[0].numpy().tolist() == [1.0, 2.0]
assert resource_variable_ops.VariableSpec([2]).is_compatible_with(v)
@tf.function
def add_one(pair):
    pair.v.assign_add([1.0, 1.0])
    return pair.v + 0.0
assert add_one(Pair(v)).numpy().tolist() == v.numpy().tolist() == [2.0, 3.0]
class Owner(tf.Module):
    def __init__(self):
        super().__init__()
        self.pair = Pair(v)
assert Owner().variables == (v,)

assert control_flow_ops.pfor(lambda i: i * 2, 3).numpy().tolist() == [0, 2, 4]
assert not control_flow_util.GraphOrParentsInXlaContext(None)
assert tensor_shape.as_shape([2]) == tf.TensorShape([2])
assert context.in_eager_mode()
assert tensor_util.constant_value_as_shape([2, -1]) == [2, None]
assert tensor_util.try_evaluate_constant(tf.constant(2)) == 2
@tf.function
def shape_of_rows(x, n):
    assert tensor_util.constant_value_as_shape([tf.shape(x)[1], n[0], 7]) == [3, None, 7]
    assert tensor_util.constant_value_as_shape(n).rank is None
shape_of_rows.get_concrete_function(tf.TensorSpec([None, 3]), tf.TensorSpec([None], tf.int32))
(total,) = linear_operator_addition.add_operators([tf.linalg.LinearOperatorIdentity(2)] * 2)
assert total.to_dense().numpy().tolist() == [[2.0, 0.0], [0.0, 2.0]]
draws = random_ops.parameterized_truncated_normal([2, 50], [0.0, 10.0], 1.0, [1.0, 9.0], [2.0, 11.0]).numpy()
assert ((draws >= [[1.0], [9.0]]) & (draws <= [[2.0], [11.0]])).all()
pairs = [(False, lambda: 1), (True, lambda: 2)]
chosen = control_flow_case._case_helper(tf.cond, pairs, lambda: 3, False, None)
assert int(chosen) == 2
spec = tf_inspect.getfullargspec(tf.rank)
assert spec.args == ["input", "name"] and not spec.annotations
assert tf_inspect.getfullargspec(shape_of_rows).args == ["x", "n"]
assert nest._is_namedtuple(tf.unique([1])) and nest._sequence_like((1, 2), [3, 4]) == (3, 4)
assert deprecation.deprecated_alias("old", "new", len) is len
x = tf.constant(2.0)
with tf.GradientTape() as tape:
    tape.watch(x)
    y = array_ops.prevent_gradient(x, "it is discrete")
for call in (lambda: tape.gradient(y, x), lambda: transformer.Base(None)):
    try:
        call()
    except Exception as error:
        print(error)
"""


def test_a_library_defines_composites_and_calls_internal_functions(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(LIBRARY)
    command = [sys.executable, "-m", "dualflow", "run", str(tmp_path / "program.py")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = run.stdout.splitlines()
    assert len(lines) == 2, run.stderr
    assert "it is discrete" in lines[0]
    assert "has no equivalent" in lines[1]


# nest


def call(name: str, *args: Any, **kwargs: Any) -> Any:
    return FUNCTIONS[name](*args, **kwargs)


def test_a_shallow_tree_maps_whole_structures() -> None:
    assert call("map_structure_up_to", {"a": 0}, len, {"a": [1, 2, 3]}) == {"a": 3}
    assert call("map_structure_up_to", [0, 0], lambda a, b: (a, b), [1, [2]], [3, 4]) == [(1, 3), ([2], 4)]
    assert call("map_structure_up_to", 0, lambda x: x, [1, 2]) == [1, 2]


def test_paths_lead_to_the_leaves() -> None:
    tree = {"b": [1, {"c": 2}], "a": 3}
    assert call("flatten_with_tuple_paths", tree) == [(("a",), 3), (("b", 0), 1), (("b", 1, "c"), 2)]
    assert call("flatten_with_joined_string_paths", tree) == [("a", 3), ("b/0", 1), ("b/1/c", 2)]
    assert list(call("yield_flat_paths", [7, (8,)])) == [(0,), (1, 0)]
    texts = call("map_structure_with_path_up_to", tree, lambda path, x: f"{path}={x}", tree)
    assert texts == {"b": ["b/0=1", {"c": "b/1/c=2"}], "a": "a=3"}


def test_traversal_stops_where_the_function_says_no() -> None:
    def enters(x: Any) -> bool:
        return not isinstance(x, tuple)

    assert call("get_traverse_shallow_structure", enters, [1, (2, 3), {"a": 4}]) == [True, False, {"a": True}]
    assert call(
        "get_traverse_shallow_structure", lambda x: [True, False] if x == [1, 2] else True, [1, 2]
    ) == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("shallow", "tree", "message"),
    [
        ([0], 1, "input must also be a sequence"),
        ([0], (1,), "don't have the same sequence type"),
        ([0, 0], [1], "don't have the same keys or length"),
        ({"a": 0}, {"b": 1}, "don't have the same keys or length"),
    ],
)
def test_a_tree_of_another_upper_part_is_an_error(shallow: Any, tree: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call("assert_shallow_structure", shallow, tree)


def test_calls_without_inputs_or_bools_are_errors() -> None:
    with pytest.raises(ValueError, match="Cannot map over no sequences"):
        call("map_structure_up_to", [0], len)
    with pytest.raises(TypeError, match="traverse_fn returns bools"):
        call("get_traverse_shallow_structure", lambda x: 7, [1])


# Names of other hardware and of TensorFlow's kernels


def test_a_device_spec_has_the_parts_of_a_name() -> None:
    spec = df.DeviceSpec.from_string("/job:worker/replica:1/task:2/device:cpu:0")
    assert (spec.job, spec.replica, spec.task, spec.device_type, spec.device_index) == (
        "worker",
        1,
        2,
        "CPU",
        0,
    )
    assert df.DeviceSpec.from_string(spec.to_string()) == spec
    assert df.DeviceSpec.from_string("") == df.DeviceSpec()
    assert spec.replace(device_index=None).to_string() == "/job:worker/replica:1/task:2/device:CPU:*"
    assert df.DeviceSpec.from_string(df.constant(1).device).device_type == "CPU"
    with pytest.raises(ValueError, match="no name of a device"):
        df.DeviceSpec.from_string("somewhere")


def test_a_strategy_of_tpus_is_a_class_without_instances() -> None:
    assert not isinstance(df.distribute.get_strategy(), df.distribute.TPUStrategy)
    with pytest.raises(ValueError, match="no TPUs here"):
        df.distribute.TPUStrategy()


def test_xla_compiles_a_function_of_inputs() -> None:
    compiled = df.xla.experimental.compile(lambda x, y: (x + y, x - y), [df.constant(3.0), df.constant(1.0)])
    assert [float(x) for x in compiled] == [4.0, 2.0]
    assert df.xla.experimental.compile(lambda: None) == []
    with df.xla.experimental.jit_scope():
        pass
    with pytest.raises(ValueError, match="run eagerly"), df.xla.experimental.jit_scope(False):
        pass


def test_a_fused_batch_norm_normalizes_by_the_batch_or_by_its_arguments() -> None:
    x = np.random.default_rng(0).normal(2.0, 3.0, (8, 4, 4, 2)).astype(np.float32)
    ones, zeros = np.ones(2, np.float32), np.zeros(2, np.float32)
    trained = df.raw_ops.FusedBatchNormV2(x=x, scale=ones, offset=zeros, mean=[], variance=[], epsilon=0.0)
    np.testing.assert_allclose(trained.batch_mean, x.mean((0, 1, 2)), rtol=1e-5)
    np.testing.assert_allclose(trained.y, (x - x.mean((0, 1, 2))) / x.std((0, 1, 2)), atol=1e-5)
    served = df.raw_ops.FusedBatchNormV3(
        x=x, scale=ones, offset=ones, mean=zeros, variance=4 * ones, epsilon=0.0, is_training=False
    )
    np.testing.assert_allclose(served.y, x / 2 + 1, rtol=1e-5)


def test_graphs_and_operations_are_public() -> None:
    with df.Graph().as_default() as graph:
        x = df.compat.v1.placeholder(df.float32, [])
        assert isinstance((x * 2.0).op, df.Operation)
    assert isinstance(graph, df.compat.v1.Graph)


# TensorFlow 1's modules

LIBRARY_OF_TENSORFLOW_1 = """
import tempfile
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2, saver_pb2
from tensorflow.python.framework import device_spec, ops, sparse_tensor, tensor_util
from tensorflow.python.layers import convolutional
from tensorflow.python.ops import control_flow_ops, io_ops, variable_scope, variables
from tensorflow.python.training import evaluation, moving_averages
from tensorflow.python.util import all_util, deprecation, tf_contextlib, tf_decorator, tf_inspect
from tensorflow.python import tf2

def double(x, axis=None):
    "Twice x."
    return 2 * x
double_again = tf_decorator.make_decorator(double, lambda x, axis=None: double(x))
assert double_again.__doc__ == "Twice x." and tf_decorator.unwrap(double_again)[1] is double
assert tf_inspect.getargspec(double_again).args == ["x", "axis"]
@tf_contextlib.contextmanager
def block():
    yield 3
with block() as three:
    assert three == 3
lookup = deprecation.deprecated_argument_lookup
assert [lookup("axis", *pair) for pair in [(1, "dim", None), (None, "dim", 2)]] == [1, 2]
assert lookup("axis", None, "dim", None) is None
assert "ops" in all_util.make_all(__name__) and "__doc__" not in all_util.make_all(__name__)
assert all_util.remove_undocumented(__name__) is None
assert config_pb2.ConfigProto is tf.ConfigProto and device_spec.DeviceSpecV1 is tf.DeviceSpec
assert convolutional.Convolution2D is tf.layers.Conv2D and not tf2.enabled()
assert variable_scope.variable is tf.Variable
assert not isinstance(tf.Variable(1.0), variables.PartitionedVariable)
assert tensor_util.constant_value(tf.constant(3)) == 3
assert isinstance(sparse_tensor.SparseTensorValue([[0]], [1.0], [1]), tuple)

x = tf.placeholder(tf.float32, [])
zeros = tf.zeros_initializer()
w, plain, mean = (tf.get_variable(name, [], initializer=zeros) for name in ("w", "plain", "mean"))
assert ops._get_graph_from_inputs([x]) is ops._get_graph_from_inputs([]) is tf.get_default_graph()
biased = moving_averages.assign_moving_average(plain, x, 0.75, zero_debias=False)
unbiased = moving_averages.assign_moving_average(mean, x, 0.75)
after = control_flow_ops.with_dependencies([w.assign_add(1.0)], x * 2.0)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    print([session.run([after, biased, unbiased], {x: value}) for value in (4.0, 8.0)], session.run(w))
    path = tf.train.Saver().save(session, tempfile.mkdtemp() + "/model")
step = evaluation._get_or_create_eval_step()
assert evaluation._get_or_create_eval_step() is step
total = tf.Variable(0.0, trainable=False, collections=[tf.GraphKeys.LOCAL_VARIABLES])
for eval_ops in (total.assign_add(w), [total.assign_add(w)], {"total": total.assign_add(w)}, None):
    hooks = [evaluation._StopAfterNEvalsHook(3)] if eval_ops is not None else []
    print(evaluation._evaluate_once(path, eval_ops=eval_ops, final_ops=[total, step], hooks=hooks))
for call in (
    lambda: lookup("axis", 1, "dim", 2),
    lambda: io_ops.ReaderBase(None),
    lambda: variables.PartitionedVariable(),
    lambda: __import__("tensorflow.core.framework"),
):
    try:
        call()
    except Exception as error:
        print(type(error).__name__, error)
"""


def test_a_library_of_tensorflow_1_imports_its_internal_modules(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(LIBRARY_OF_TENSORFLOW_1)
    command = [sys.executable, "-m", "dualflow", "run", "--v1", str(tmp_path / "program.py")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    averages, *evaluations, both, reader, parts, module = run.stdout.splitlines()
    assert [round(float(n), 5) for n in re.findall(r"-?\d+\.\d+", averages)] == [
        *(8.0, 1.0, 4.0),  # 0.25 * 4; the average of 4 alone
        *(16.0, 2.75, 6.28571),  # 0.75 * 1 + 0.25 * 8; that divided by 1 - 0.75 ** 2
        2.0,
    ]
    counts = [[float(n) for n in re.findall(r"\((-?[\d.]+)\)", line)] for line in evaluations]
    assert counts == [[6.0, 3.0]] * 3 + [[0.0, 0.0]]
    assert both == "InvalidArgumentError Cannot specify both 'dim' and 'axis'; leave out 'dim'."
    assert "read the files with df.data" in reader
    assert "not divided into parts" in parts
    assert "No module named 'tensorflow.core.framework': use the public name" in module
