"""Functions whose name, argument order or meaning differs between TensorFlow 1 and 2."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.compat import v1

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (lambda: v1.reduce_sum(X, reduction_indices=1), lambda: v1.reduce_sum(X, axis=1)),
        (lambda: v1.reduce_mean(X, 1, keep_dims=True), lambda: v1.reduce_mean(X, 1, keepdims=True)),
        (lambda: v1.argmax(X, dimension=1), lambda: v1.argmax(X, axis=1)),
        (lambda: v1.nn.softmax(X, dim=0), lambda: v1.nn.softmax(X, axis=0)),
        (lambda: v1.expand_dims(X, dim=0), lambda: v1.expand_dims(X, axis=0)),
        (lambda: v1.squeeze(X[:1], squeeze_dims=[0]), lambda: v1.squeeze(X[:1], axis=[0])),
    ],
)
def test_arguments_have_their_older_names_too(old, new):
    np.testing.assert_array_equal(old().numpy(), new().numpy())


IMAGES, KERNEL = np.ones([1, 4, 4, 1], np.float32), np.ones([2, 2, 1, 1], np.float32)
TRANSPOSED = [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (lambda: v1.argmax(X, 1, "n", None, v1.int32), [2, 2]),
        (lambda: v1.argmin(X, 1, None, None, v1.int32), [0, 0]),
        (lambda: v1.math.argmax(X, 1, "n"), [2, 2]),
        (lambda: v1.boolean_mask(X, [True, False], "n", 0), [[0.0, 1.0, 2.0]]),
        (
            lambda: v1.cond(False, lambda: v1.constant(X), lambda: v1.constant(X[0]), False, "n"),
            [0.0, 1.0, 2.0],
        ),
        (lambda: v1.cond(True, fn1=lambda: v1.constant(X[0]), fn2=lambda: v1.constant(X)), [0.0, 1.0, 2.0]),
        (lambda: v1.constant(1, v1.float32, [2], "n", False), [1.0, 1.0]),
        (lambda: v1.convert_to_tensor([1], None, "n", v1.float32), [1.0]),
        (lambda: v1.gather(X, [1], None, "n", 1), [[1.0], [4.0]]),
        (lambda: v1.gather_nd(X, [[1, 1]], "n"), [4.0]),
        (lambda: v1.nn.embedding_lookup(X, [0], "mod", "n"), [[0.0, 1.0, 2.0]]),
        (lambda: v1.nn.moments(X, [0], None, "n", True)[0], [[1.5, 2.5, 3.5]]),
        (lambda: v1.ones_like(X, v1.int32, "n", True), [[1, 1, 1], [1, 1, 1]]),
        (lambda: v1.zeros_like(tensor=X[0]), [0.0, 0.0, 0.0]),
        (lambda: v1.pad(X[0], [[1, 0]], "CONSTANT", "n", 9.0), [9.0, 0.0, 1.0, 2.0]),
        (lambda: v1.shape(X, "n", v1.int64), [2, 3]),
        (lambda: v1.size(X, "n", v1.int64), 6),
        (lambda: v1.transpose(X, [1, 0], "n"), TRANSPOSED),
        (lambda: v1.while_loop(lambda i: i < 9, lambda i: (i + 1,), (0,), None, 10, True, False, "n")[0], 9),
        (lambda: v1.nn.conv2d(IMAGES, filter=KERNEL, strides=1, padding="VALID")[0, 0, 0], [4.0]),
        (lambda: v1.nn.conv2d(IMAGES, KERNEL, [1, 2, 2, 1], "SAME", True, "NHWC", name="n")[0, 1, 1], [4.0]),
        (lambda: v1.nn.convolution(IMAGES, KERNEL, "SAME", [1, 1], [2, 2])[0, 1, 1], [4.0]),
        (
            lambda: v1.nn.depthwise_conv2d(IMAGES, KERNEL, [1, 1, 1, 1], "VALID", rate=[2, 2])[0, 1],
            [[4.0]] * 2,
        ),
        (lambda: v1.nn.max_pool(value=IMAGES, ksize=2, strides=2, padding="VALID")[0, 0], [[1.0]] * 2),
    ],
)
def test_arguments_have_their_older_places(result, expected):
    assert result().numpy().tolist() == expected


def test_arguments_by_place_are_counted():
    with pytest.raises(TypeError, match=r"size\(\) takes 3 positional arguments, not 4"):
        v1.size(X, "n", v1.int32, 0)


def test_an_argument_is_given_once():
    with pytest.raises(TypeError, match=r"argmax\(\) got 'axis' twice"):
        v1.argmax(X, 1, "n", axis=1)


def test_a_name_in_its_older_place_names_the_operation():
    with v1.Graph().as_default():
        assert v1.argmax(v1.constant([1.0, 2.0]), 0, "best").op.name == "best"


def test_an_older_name_next_to_the_newer_is_an_error():
    with pytest.raises(TypeError, match=r"reduce_sum\(\) got 'axis' and 'reduction_indices'"):
        v1.reduce_sum(X, axis=0, reduction_indices=1)


def test_an_older_name_without_a_value_is_nothing_given():
    assert v1.reduce_sum(X, axis=0, reduction_indices=None).shape == (3,)


def test_division_of_integers_is_rounded_down():
    assert v1.div([7, -7], 2).numpy().tolist() == [3, -4]
    assert v1.div([7, -7], 2.0).numpy().tolist() == [3.5, -3.5]


def test_casts_by_name():
    dtypes = [f(2.7).dtype for f in (v1.to_float, v1.to_double, v1.to_int32, v1.to_int64)]
    assert dtypes == [v1.float32, v1.float64, v1.int32, v1.int64]


def test_dropout_takes_keep_prob():
    result = v1.nn.dropout(v1.ones([10_000]), 0.8).numpy()
    assert set(result.tolist()) == {0.0, 1.25}
    assert abs((result > 0).mean() - 0.8) < 0.03


@pytest.mark.parametrize("options", [{}, {"keep_prob": 0.5, "rate": 0.5}])
def test_dropout_takes_one_probability(options):
    with pytest.raises(ValueError, match="either keep_prob or rate"):
        v1.nn.dropout(v1.ones([3]), **options)


def test_dropout_takes_dynamic_sizes_and_a_fed_probability():
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(v1.float32, [None, 3])
        keep = v1.placeholder_with_default(1.0, [])
        y = v1.nn.dropout(x, keep, name="dropped")
        (slope,) = v1.gradients(v1.reduce_sum(y), [x])
        ones = np.ones([1000, 3], np.float32)
        assert y.name == "dropped:0"
        assert session.run(y, {x: ones}).min() == 1.0
        result, back = session.run([y, slope], {x: ones, keep: 0.5})
        np.testing.assert_array_equal(result, back)
        assert set(result.ravel().tolist()) == {0.0, 2.0}
        assert abs((result > 0).mean() - 0.5) < 0.05
        assert not np.array_equal(result, session.run(y, {x: ones, keep: 0.5}))


@pytest.mark.parametrize(
    ("make", "low", "high", "mean"),
    [
        (lambda shape: v1.zeros(shape), 0.0, 0.0, 0.0),
        (lambda shape: v1.ones(shape), 1.0, 1.0, 1.0),
        (lambda shape: v1.random_normal(shape, 5.0, 0.1), 4.0, 6.0, 5.0),
        (lambda shape: v1.random_uniform(shape, 2.0, 4.0), 2.0, 4.0, 3.0),
        (lambda shape: v1.random.uniform(shape), 0.0, 1.0, 0.5),
    ],
)
def test_new_tensors_may_have_the_sizes_of_feeds(make, low, high, mean):
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(v1.int32, [None, 3])
        y = make(v1.shape(x))
        assert y.shape == (None, 3)
        assert y.dtype is v1.float32
        for rows in (400, 900):
            result = session.run(y, {x: np.zeros([rows, 3], np.int32)})
            assert result.shape == (rows, 3)
            assert low <= result.min() <= result.max() <= high
            assert abs(result.mean() - mean) < 0.1


def test_draws_of_dynamic_shapes_are_new_in_each_run():
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(v1.float32, [None])
        y = v1.random_normal(v1.shape(x))
        one, two = session.run([y, y + 0.0], {x: [1.0, 2.0]})
        assert np.array_equal(one, two)
        assert not np.array_equal(one, session.run(y, {x: [1.0, 2.0]}))


# Choices and loops


ROWS = np.array([[1.0, 2.0, 3.0], [-1.0, 5.0, 6.0]])


def run(build: Any, feeds: Any = None) -> Any:
    """What ``build()`` adds to a graph, run in a session."""
    with v1.Graph().as_default(), v1.Session() as session:
        return session.run(build(), feeds)


@pytest.mark.parametrize("kind", ["eager", "function", "graph"])
def test_where_chooses_rows_by_a_vector(kind: str) -> None:
    def choose() -> Any:
        return v1.where(v1.constant([True, False]), v1.constant(ROWS), v1.constant(-ROWS))

    results = {"eager": choose, "function": df.function(choose), "graph": lambda: run(choose)}[kind]()
    np.testing.assert_array_equal(results, [ROWS[0], -ROWS[1]])


def test_where_chooses_rows_of_dynamic_sizes() -> None:
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(v1.float64, [None, 3])
        chosen = v1.where(x[:, 0] > 0.0, x, -x)
        np.testing.assert_array_equal(session.run(chosen, {x: ROWS}), [ROWS[0], -ROWS[1]])


def test_where_of_equal_shapes_and_of_scalars() -> None:
    np.testing.assert_array_equal(v1.where(ROWS > 2.0, ROWS, -ROWS), np.where(ROWS > 2.0, ROWS, -ROWS))
    np.testing.assert_array_equal(v1.where(True, ROWS, -ROWS), ROWS)
    np.testing.assert_array_equal(v1.where([True, False], [1, 2], [3, 4]), [1, 4])


def test_where_without_values_gives_indices() -> None:
    assert v1.where([True, False, True]).numpy().tolist() == [[0], [2]]


@pytest.mark.parametrize(
    ("condition", "x", "y", "message"),
    [
        ([True, False, True], ROWS, ROWS, r"neither the shape \(2, 3\)"),
        ([True, False], ROWS, [1.0, 2.0, 3.0], "two tensors of one shape"),
        ([[True], [False]], ROWS, ROWS, "neither the shape"),
    ],
)
def test_where_broadcasts_nothing(condition: Any, x: Any, y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        v1.where(condition, x, y)


@pytest.mark.parametrize("listed", [False, True])
def test_a_loop_of_one_variable_in_a_graph_gives_it_bare(listed: bool) -> None:
    def body(i: Any) -> Any:
        return [i + 1] if listed else i + 1

    assert run(lambda: v1.while_loop(lambda i: i < 10, body, [v1.constant(0)])) == 10
    assert run(lambda: v1.while_loop(lambda i: i < 10, body, [0], return_same_structure=True)) == [10]


def test_a_loop_of_one_variable_gives_eagerly_what_its_body_does() -> None:
    assert int(v1.while_loop(lambda i: i < 10, lambda i: i + 1, [df.constant(0)])) == 10
    (listed,) = v1.while_loop(lambda i: i < 10, lambda i: [i + 1], [df.constant(0)])
    assert int(listed) == 10


def test_a_loop_of_several_variables_gives_them_all() -> None:
    assert run(lambda: v1.while_loop(lambda i, j: i < 3, lambda i, j: (i + 1, j * 2), [0, 1])) == [3, 8]


# Initializers


@pytest.mark.parametrize(
    ("initializer", "values"),
    [
        (v1.initializers.zeros(), [0.0, 0.0]),
        (v1.initializers.ones(), [1.0, 1.0]),
        (v1.initializers.constant(2.0), [2.0, 2.0]),
        (v1.initializers.random_normal(3.0, 0.0), [3.0, 3.0]),
    ],
)
def test_initializers_have_short_names(initializer: Any, values: list[float]) -> None:
    np.testing.assert_array_equal(initializer([2]), values)
    assert initializer([2], dtype=v1.float64).dtype is df.float64


def test_the_namespace_of_initializers_shows_nothing_else() -> None:
    initializers = [getattr(v1.initializers, name) for name in dir(v1.initializers)]
    assert all(issubclass(x, df.initializers.Initializer) for x in initializers)


def test_older_names_of_argmax_and_argmin():
    assert v1.arg_max(X, 1).numpy().tolist() == v1.argmax(X, 1).numpy().tolist()
    assert v1.arg_min(X, dimension=1).numpy().tolist() == v1.argmin(X, 1).numpy().tolist()
    assert v1.arg_max(X, 1, v1.int32).dtype is v1.int32


def test_py_func_calls_numpy_functions():
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(v1.float32, [2])
        assert session.run(v1.py_func(np.sort, [x], v1.float32), {x: [2.0, 1.0]}).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (lambda: v1.div_no_nan(X, 0.0), lambda: v1.math.divide_no_nan(X, 0.0)),
        (lambda: v1.floor_div(X, 2.0), lambda: v1.floordiv(X, 2.0)),
        (lambda: v1.floormod(X, 2.0), lambda: v1.math.mod(X, 2.0)),
        (lambda: v1.truediv(X, 2.0), lambda: v1.divide(X, 2.0)),
        (lambda: v1.realdiv(X, 2.0), lambda: v1.divide(X, 2.0)),
        (lambda: v1.is_nan(X), lambda: v1.math.isnan(X)),
        (lambda: v1.is_inf(X), lambda: v1.math.isinf(X)),
        (lambda: v1.is_finite(X), lambda: v1.math.isfinite(X)),
        (lambda: v1.lin_space(0.0, 1.0, 3), lambda: v1.linspace(0.0, 1.0, 3)),
        (lambda: v1.log_sigmoid(X), lambda: v1.math.log_sigmoid(X)),
        (lambda: v1.rint(X / 4), lambda: v1.round(X / 4)),
        (lambda: v1.trace(X), lambda: v1.linalg.trace(X)),
        (lambda: v1.matrix_transpose(X), lambda: v1.transpose(X)),
        (lambda: v1.matrix_band_part(X, 0, 1), lambda: v1.linalg.band_part(X, 0, 1)),
        (lambda: v1.matrix_determinant(v1.eye(2)), lambda: v1.linalg.det(v1.eye(2))),
        (lambda: v1.matrix_inverse(v1.eye(2) * 2), lambda: v1.linalg.inv(v1.eye(2) * 2)),
        (lambda: v1.diag(X), lambda: v1.linalg.tensor_diag(X)),
        (lambda: v1.matrix_diag(X), lambda: v1.linalg.diag(X)),
        (lambda: v1.self_adjoint_eigvals(v1.eye(2)), lambda: v1.linalg.eigvalsh(v1.eye(2))),
    ],
)
def test_functions_have_their_older_names_too(old, new):
    np.testing.assert_array_equal(old().numpy(), new().numpy())
    with v1.Graph().as_default(), v1.Session() as session:
        np.testing.assert_array_equal(session.run(old()), new().eval(session=session))


def test_partition_strategies_decide_nothing():
    arguments = (
        np.ones([9, 2], np.float32),
        np.zeros(9, np.float32),
        [[1], [2]],
        np.ones([2, 2], np.float32),
        3,
        9,
    )
    for loss in (v1.nn.nce_loss, v1.nn.sampled_softmax_loss):
        assert loss(*arguments, partition_strategy="div").shape == (2,)
        assert loss(*arguments, 1, None, True, "mod", "loss").shape == (2,)


def test_local_variables_begin_on_their_own():
    with v1.Graph().as_default(), v1.Session() as session:
        w = v1.Variable(1.0)
        count = v1.Variable(3, trainable=False, collections=[v1.GraphKeys.LOCAL_VARIABLES], name="count")
        assert [v.name for v in v1.local_variables()] == ["count:0"]
        session.run(v1.initialize_all_variables())
        with pytest.raises(RuntimeError, match="count"):
            session.run(count)
        session.run(v1.local_variables_initializer())
        assert session.run([w, count]) == [1.0, 3]


def test_settings_of_sessions_are_taken():
    config = v1.ConfigProto(log_device_placement=True, gpu_options=v1.GPUOptions(allow_growth=True))
    config.gpu_options.per_process_gpu_memory_fraction = 0.5
    config.graph_options.optimizer_options.global_jit_level = v1.OptimizerOptions.ON_1
    with v1.Graph().as_default(), v1.Session(config=config) as session:
        assert session.run(v1.constant(2.0)) == 2.0
    with pytest.raises(AttributeError):
        config.gpu_option = None
