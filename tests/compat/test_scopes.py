"""Variables by name: created once, reused where a scope allows it; templates and layers use them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.compat import v1


@pytest.fixture
def graph() -> Iterator[v1.Graph]:
    with v1.Graph().as_default() as default:
        yield default


# get_variable


def test_a_variable_has_the_name_of_its_scopes(graph: v1.Graph) -> None:
    with v1.variable_scope("a"), v1.variable_scope("b"):
        assert v1.get_variable("w", [2]).name == "a/b/w:0"


def test_scopes_of_ops_are_no_part_of_a_variables_name(graph: v1.Graph) -> None:
    with v1.name_scope("ops"), v1.variable_scope("a"):
        assert v1.get_variable("w", [2]).name == "a/w:0"


def test_a_variable_scope_is_a_scope_of_ops_too(graph: v1.Graph) -> None:
    with v1.variable_scope("a") as scope:
        assert v1.constant(1.0, name="c").name == "a/c:0"
    assert scope.original_name_scope == "a/"
    with v1.variable_scope("a"):
        assert v1.constant(1.0, name="c").name == "a_1/c:0"


def test_a_second_variable_of_a_name_is_an_error_that_names_the_first(graph: v1.Graph) -> None:
    v1.get_variable("w", [2])
    with pytest.raises(ValueError, match=r"Variable w already exists(.|\n)*test_scopes\.py"):
        v1.get_variable("w", [2])


def test_a_reusing_scope_returns_existing_variables(graph: v1.Graph) -> None:
    with v1.variable_scope("a"):
        w = v1.get_variable("w", [2])
    with v1.variable_scope("a", reuse=True):
        assert v1.get_variable("w") is w
    with v1.variable_scope("a") as scope:
        scope.reuse_variables()
        assert v1.get_variable("w", [2]) is w


def test_reuse_holds_for_the_scopes_inside(graph: v1.Graph) -> None:
    with v1.variable_scope("a"), v1.variable_scope("b"):
        w = v1.get_variable("w", [2])
    with v1.variable_scope("a", reuse=True), v1.variable_scope("b"):
        assert v1.get_variable("w") is w


def test_reuse_requires_an_existing_variable(graph: v1.Graph) -> None:
    with (
        v1.variable_scope("a", reuse=True),
        pytest.raises(
            ValueError, match=r"a/w does not exist, or was not created with df\.compat\.v1\.get_variable"
        ),
    ):
        v1.get_variable("w", [2])


def test_auto_reuse_creates_or_returns_variables(graph: v1.Graph) -> None:
    variables = []
    for _ in range(2):
        with v1.variable_scope("a", reuse=v1.AUTO_REUSE):
            variables.append(v1.get_variable("w", [2]))
    assert variables[0] is variables[1]


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"shape": [3]}, r"specified shape \(3\,?\) and found shape \(2\,?\)"),
        ({"dtype": v1.float64}, "specified dtype float64 and found dtype float32"),
    ],
)
def test_reuse_checks_shape_and_dtype(graph: v1.Graph, properties: dict[str, Any], message: str) -> None:
    v1.get_variable("w", [2])
    with v1.variable_scope(v1.get_variable_scope(), reuse=True), pytest.raises(ValueError, match=message):
        v1.get_variable("w", **properties)


def test_a_scope_is_entered_again_from_anywhere(graph: v1.Graph) -> None:
    with v1.variable_scope("a") as scope:
        w = v1.get_variable("w", [2])
    with v1.variable_scope("b"), v1.variable_scope(scope, reuse=True):
        assert v1.get_variable("w") is w


def test_default_names_of_scopes_are_numbered(graph: v1.Graph) -> None:
    scopes = []
    for _ in range(3):
        with v1.variable_scope(None, "layer") as scope:
            scopes.append(scope.name)
    assert scopes == ["layer", "layer_1", "layer_2"]


def test_graphs_do_not_share_variables() -> None:
    for _ in range(2):
        with v1.Graph().as_default():
            assert v1.get_variable("w", [2]).name == "w:0"


def test_a_scope_does_not_reach_into_another_graph(graph: v1.Graph) -> None:
    with v1.variable_scope("a"), v1.Graph().as_default():
        assert v1.get_variable("w", [2]).name == "w:0"


def test_a_scope_has_defaults_for_its_variables(graph: v1.Graph) -> None:
    with v1.variable_scope("a", initializer=v1.constant_initializer(3.0), dtype=v1.float64):
        w = v1.get_variable("w", [2])
    with v1.Session() as session:
        session.run(w.initializer)
        assert session.run(w).tolist() == [3.0, 3.0]
    assert w.dtype is v1.float64


def test_by_default_floats_begin_by_glorots_rule_and_integers_at_zero(graph: v1.Graph) -> None:
    w, n = v1.get_variable("w", [300, 500]), v1.get_variable("n", [3], v1.int32)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        kernel, count = session.run([w, n])
    limit = (6 / 800) ** 0.5
    assert abs(kernel).max() <= limit
    np.testing.assert_allclose(kernel.std(), limit / 3**0.5, rtol=0.01)
    assert count.tolist() == [0, 0, 0]


def test_a_value_may_be_the_initializer(graph: v1.Graph) -> None:
    assert v1.get_variable("w", initializer=np.ones([2, 3])).shape == (2, 3)
    with pytest.raises(ValueError, match="do not specify shape"):
        v1.get_variable("v", [2], initializer=[1.0, 2.0])


@pytest.mark.parametrize("shape", [None, [None, 2]])
def test_a_new_variable_needs_its_shape(graph: v1.Graph, shape: Any) -> None:
    with pytest.raises(ValueError, match=r"Shape of a new variable \(w\) must be fully defined"):
        v1.get_variable("w", shape)


def test_regularization_losses_are_collected(graph: v1.Graph) -> None:
    with v1.variable_scope("a", regularizer=lambda v: 0.5 * v1.reduce_sum(v * v)):
        v1.get_variable("w", initializer=[2.0, 4.0])
    (loss,) = v1.get_collection(v1.GraphKeys.REGULARIZATION_LOSSES)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        assert session.run(loss) == 10.0


def test_a_scope_needs_a_name(graph: v1.Graph) -> None:
    with pytest.raises(ValueError, match="name_or_scope is required"), v1.variable_scope(None):
        pass


def test_eager_variables_are_shared_through_a_store_only() -> None:
    store = v1.EagerVariableStore()
    with store.as_default(), v1.variable_scope("a", reuse=v1.AUTO_REUSE):
        assert v1.get_variable("w", [2]) is v1.get_variable("w", [2])
    assert [v.name for v in store.variables()] == ["a/w:0"]
    assert v1.get_variable("w", [2]) is not v1.get_variable("w", [2])
    with (
        v1.variable_scope("a", reuse=True),
        pytest.raises(RuntimeError, match="only supported when an EagerVariableStore is active"),
    ):
        v1.get_variable("w", [2])


# Eagerly and in a graph


def value(tensor: Any) -> Any:
    """The tensor's value, in a session where ops are recorded; variables begin anew."""
    if df.executing_eagerly():
        return tensor.numpy()
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        return session.run(tensor)


def test_a_dense_layer_is_a_product_and_a_sum(eager_or_graph: None) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    layer = v1.layers.Dense(
        4, kernel_initializer=v1.ones_initializer(), bias_initializer=v1.constant_initializer(1.0)
    )
    np.testing.assert_array_equal(value(layer(x)), x @ np.ones([3, 4]) + 1)


def test_a_dense_layer_creates_its_variables_once(eager_or_graph: None) -> None:
    layer = v1.layers.Dense(4, name="d")
    layer(v1.ones([2, 3]))
    before = layer.weights
    layer(v1.ones([5, 3]))
    assert [v.name for v in layer.weights] == ["d/kernel:0", "d/bias:0"]
    assert all(a is b for a, b in zip(before, layer.weights, strict=True))
    assert [v.shape for v in layer.weights] == [(3, 4), (4,)]


def test_a_dense_layer_has_an_activation_and_may_do_without_a_bias(eager_or_graph: None) -> None:
    layer = v1.layers.Dense(2, v1.nn.relu, use_bias=False, kernel_initializer=v1.constant_initializer(-1.0))
    assert value(layer(v1.ones([1, 3]))).tolist() == [[0.0, 0.0]]
    assert len(layer.weights) == 1


@pytest.mark.parametrize(("name", "slope"), [("relu", 0.0), ("linear", -3.0), ("elu", math.expm1(-3.0))])
def test_an_activation_may_be_a_name(eager_or_graph: None, name: str, slope: float) -> None:
    result = v1.layers.dense(v1.ones([1, 3]), 1, name, kernel_initializer=v1.constant_initializer(-1.0))
    assert value(result).item() == pytest.approx(slope)


def test_an_unknown_activation_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"'rleu' names no function of df\.nn; give a name such as 'relu'"):
        v1.layers.Dense(2, activation="rleu")


def test_a_dense_layer_maps_the_last_of_several_axes(eager_or_graph: None) -> None:
    result = v1.layers.dense(v1.ones([2, 5, 3]), 4, kernel_initializer=v1.ones_initializer())
    assert value(result).tolist() == np.full([2, 5, 4], 3.0).tolist()


def test_dense_takes_integers(eager_or_graph: None) -> None:
    result = v1.layers.dense(v1.ones([1, 3], v1.int32), 1, kernel_initializer=v1.ones_initializer())
    assert value(result).tolist() == [[3.0]]


@pytest.mark.parametrize(
    ("shape", "message"),
    [([3], "expected min_ndim=2, found ndim=1"), ([2, 5], "expected axis -1 .* value 3")],
)
def test_a_dense_layer_rejects_inputs_of_wrong_shape(
    eager_or_graph: None, shape: list[int], message: str
) -> None:
    layer = v1.layers.Dense(4)
    layer(v1.ones([2, 3]))
    with pytest.raises(ValueError, match=message):
        layer(v1.ones(shape))


def test_a_module_finds_the_variables_of_its_layers(eager_or_graph: None) -> None:
    class Model(df.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = v1.layers.Dense(1)

    model = Model()
    model.layer(v1.ones([1, 2]))
    assert len(model.trainable_variables) == 2


def test_a_template_creates_its_variables_once(eager_or_graph: None) -> None:
    net = v1.make_template("net", lambda x: v1.layers.dense(v1.layers.dense(x, 4), 2))
    first, again = net(v1.ones([1, 3])), net(v1.ones([1, 3]))
    assert [v.name for v in net.variables] == [
        f"net/{layer}/{name}:0" for layer in ("dense", "dense_1") for name in ("kernel", "bias")
    ]
    assert len(net.trainable_variables) == 4
    np.testing.assert_array_equal(*(value([first, again]) if not df.executing_eagerly() else (first, again)))


def test_templates_of_one_name_have_variables_of_their_own(eager_or_graph: None) -> None:
    one, two = (v1.make_template("t", lambda: v1.get_variable("w", initializer=1.0) + 0.0) for _ in range(2))
    one(), two()
    assert one.variables[0] is not two.variables[0]


def test_a_template_passes_arguments_on(eager_or_graph: None) -> None:
    scale = v1.make_template("scale", lambda x, by: x * by, by=3.0)
    assert value(scale(v1.constant(2.0))) == 6.0


def test_a_template_does_not_create_variables_after_its_first_call(eager_or_graph: None) -> None:
    names = iter("ab")
    template = v1.make_template("t", lambda: v1.get_variable(next(names), [2]))
    template()
    with pytest.raises(ValueError, match="t/b does not exist") as caught:
        template()
    assert "test_scopes.py" in caught.value.__notes__[0]


def test_a_template_refuses_variables_that_it_would_create_at_each_call(graph: v1.Graph) -> None:
    template = v1.make_template("t", lambda: v1.Variable(1.0) + 0.0)
    template()
    with pytest.raises(
        ValueError, match=r"perhaps you used df\.Variable when you meant df\.compat\.v1\.get_variable"
    ):
        template()


def test_a_template_has_its_own_variables_in_each_graph() -> None:
    template = v1.make_template("t", lambda: v1.get_variable("w", [2]) + 0.0)
    template()
    eager = template.variables[0]
    with v1.Graph().as_default():
        template(), template()
        assert [v.name for v in template.variables] == ["t/w:0"]
        assert template.variables[0] is not eager


def test_a_template_may_choose_its_scope_at_once(graph: v1.Graph) -> None:
    template = v1.make_template("t", lambda: v1.get_variable("w", [2]), create_scope_now_=True)
    other = v1.make_template("t", lambda: v1.get_variable("w", [2]))
    assert (other().name, template().name) == ("t_1/w:0", "t/w:0")


# One model, both ways


def model(x: Any, y: Any) -> Any:
    """A regression's loss, by names that mean the same in both."""
    with v1.variable_scope("model", reuse=v1.AUTO_REUSE):
        hidden = v1.layers.dense(x, 3, v1.nn.tanh, kernel_initializer=v1.constant_initializer(WEIGHTS))
        scale = v1.get_variable("scale", initializer=2.0)
        guess = v1.reduce_sum(hidden, axis=1) * v1.maximum(scale, 0.0)
    return v1.reduce_mean(v1.square(guess - y), name="loss")


WEIGHTS = np.float32([[0.1, 0.2, -0.3], [0.5, -0.2, 0.4]])
POINTS = np.float32([[1.0, 2.0], [-0.5, 0.25], [3.0, 1.0], [0.0, -1.0]])
TARGETS = np.float32([1.0, 0.0, 2.0, -1.0])


def train_eagerly(make: Callable[[], Any], steps: int) -> list[float]:
    store, optimizer, losses = v1.EagerVariableStore(), make(), []
    with store.as_default():
        for _ in range(steps):
            losses.append(float(model(POINTS, TARGETS)))
            optimizer.minimize(lambda: model(POINTS, TARGETS))
    return losses


def train_in_a_session(make: Callable[[], Any], steps: int) -> list[float]:
    with v1.Graph().as_default(), v1.Session() as session:
        x, y = v1.placeholder(v1.float32, [None, 2]), v1.placeholder(v1.float32, [None])
        loss = model(x, y)
        step = make().minimize(loss)
        session.run(v1.global_variables_initializer())
        feeds = {x: POINTS, y: TARGETS}
        losses = []
        for _ in range(steps):
            losses.append(float(session.run(loss, feeds)))
            session.run(step, feeds)
    return losses


@pytest.mark.parametrize(
    "make",
    [
        lambda: v1.train.GradientDescentOptimizer(0.02),
        lambda: v1.train.MomentumOptimizer(0.01, 0.9, use_nesterov=True),
        lambda: v1.train.AdamOptimizer(0.02),
    ],
    ids=["descent", "momentum", "adam"],
)
def test_one_model_learns_the_same_in_a_session_and_eagerly(make: Callable[[], Any]) -> None:
    eager, session = train_eagerly(make, 6), train_in_a_session(make, 6)
    np.testing.assert_allclose(session, eager, rtol=1e-5)
    assert eager[-1] < eager[0]


# The names that TensorFlow 2.21 gives for the same programs


def test_names_in_nested_scopes_are_tensorflows(graph: v1.Graph) -> None:
    with v1.variable_scope("a"):
        w = v1.get_variable("w", [2])
        with v1.name_scope("n"):
            created = [w, v1.constant(1.0, name="c"), v1.get_variable("v", [1]), v1.Variable(1.0, name="u")]
    with v1.variable_scope("a", reuse=True) as scope:
        created.append(v1.constant(1.0, name="c"))
    with v1.variable_scope(scope):
        created.append(v1.constant(1.0, name="c"))
    with v1.variable_scope(scope, auxiliary_name_scope=False):
        created.append(v1.constant(1.0, name="c"))
    with v1.variable_scope("x/y"):
        created.append(v1.constant(1.0, name="c"))
    names = [tensor.name.removesuffix(":0") for tensor in created]
    assert names == ["a/w", "a/n/c", "a/v", "a/n/u", "a_1/c", "a_2/c", "c", "x/y/c"]


def test_numbers_of_default_names_are_tensorflows(graph: v1.Graph) -> None:
    def opened(name: str | None, default: str | None = None) -> str:
        with v1.variable_scope(name, default) as scope:
            return scope.name

    scopes = [opened(None, "layer") for _ in range(3)]
    with v1.variable_scope("o"):
        scopes += [opened(None, "layer") for _ in range(2)]
    with v1.variable_scope("o"):
        scopes.append(opened(None, "layer"))
    opened("fresh")
    scopes.append(opened(None, "fresh"))
    assert scopes == ["layer", "layer_1", "layer_2", "o/layer", "o/layer_1", "o/layer", "fresh_1"]


def test_names_in_templates_are_tensorflows(graph: v1.Graph) -> None:
    def function(x: float) -> Any:
        return v1.add(x * v1.get_variable("w", [2]), 1.0, name="sum")

    one, two = v1.make_template("t", function), v1.make_template("t", function)
    assert [one(1.0).name, one(2.0).name, two(1.0).name] == ["t/sum:0", "t_1/sum:0", "t_2/sum:0"]
    assert [v.name for v in v1.global_variables()] == ["t/w:0", "t_1/w:0"]


# In branches and loops


def doubled(x: Any) -> Any:
    with v1.variable_scope("layer"):
        w = v1.get_variable("w", [], initializer=v1.initializers.constant(2.0))
    return x * w


@pytest.mark.parametrize(
    "build",
    [
        lambda x: v1.map_fn(doubled, x),
        lambda x: v1.cond(x[0] > 0.0, lambda: doubled(x), lambda: x),
        lambda x: v1.while_loop(lambda y: y[0] < 2.0, doubled, [x]),
        lambda x: v1.foldl(lambda total, row: total + doubled(row), x) + x,
    ],
    ids=["map_fn", "cond", "while_loop", "foldl"],
)
@pytest.mark.parametrize("count", [2, 50])
def test_a_variable_made_in_a_body_is_made_once_in_the_graph(build: Any, count: int) -> None:
    ones = np.ones(count, np.float32)
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(v1.float32, [count])
        y = build(x)
        assert [v.name for v in v1.global_variables()] == ["layer/w:0"]
        session.run(v1.global_variables_initializer())
        before = session.run(y, {x: ones})
        session.run(v1.global_variables()[0].assign(3.0))
        assert (session.run(y, {x: ones}) > before).all()


def test_a_variable_made_in_a_body_is_found_again(graph: v1.Graph) -> None:
    v1.map_fn(doubled, v1.ones([3]))
    with v1.variable_scope("layer", reuse=True):
        assert v1.get_variable("w", []) is v1.global_variables()[0]


# Custom getters


def test_a_custom_getter_is_called_in_the_getter_s_place() -> None:
    calls: list[tuple[str, Any]] = []

    def constant(getter: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        calls.append((name, kwargs["shape"]))
        return getter(f"{name}_renamed", *args, **{**kwargs, "trainable": False})

    with v1.Graph().as_default():
        with v1.variable_scope("a", custom_getter=constant):
            w = v1.get_variable("w", [2], synchronization=None, aggregation=None)
        plain = v1.get_variable("b", [])
        own = v1.get_variable("c", [], custom_getter=constant)
        assert calls == [("a/w", [2]), ("c", [])]
        assert [v.name for v in v1.global_variables()] == ["a/w_renamed:0", "b:0", "c_renamed:0"]
        assert [v.trainable for v in (w, plain, own)] == [False, True, False]


def test_a_constant_has_its_dtype_with_a_custom_getter_too() -> None:
    def same(getter: Any, *args: Any, **kwargs: Any) -> Any:
        return getter(*args, **kwargs)

    with v1.Graph().as_default(), v1.variable_scope("a", initializer=[1, 2]):
        for name, getter in {"b": None, "c": same}.items():
            with v1.variable_scope(name, custom_getter=getter):
                assert v1.get_variable("default").dtype is v1.int32
                assert v1.get_variable("own", initializer=True).dtype is v1.bool
                assert v1.get_variable("other", initializer=1, dtype=v1.float64).dtype is v1.float64


def test_the_getter_of_a_nested_custom_getter_is_that_of_the_outer_scope() -> None:
    order: list[str] = []

    def named(word: str) -> Any:
        def getter_of(getter: Any, *args: Any, **kwargs: Any) -> Any:
            order.append(word)
            return getter(*args, **kwargs)

        return getter_of

    with v1.Graph().as_default(), v1.variable_scope("a", custom_getter=named("outer")):
        with v1.variable_scope("b", custom_getter=named("inner")) as scope:
            v1.get_variable("w", [])
        assert order == ["inner", "outer"]
        with v1.variable_scope(scope, reuse=True):
            assert v1.get_variable("w", []).name == "a/b/w:0"
        assert order == ["inner", "outer"] * 2


def test_the_defaults_of_a_scope_can_be_replaced() -> None:
    with v1.Graph().as_default(), v1.Session() as session:
        with v1.variable_scope("a") as scope:
            scope.set_initializer(v1.ones_initializer())
            scope.set_dtype(v1.float64)
            scope.set_regularizer(v1.reduce_sum)
            scope.set_partitioner(None)
            w = v1.get_variable("w", [2])
            scope.set_custom_getter(lambda getter, *args, **kwargs: w)
            assert v1.get_variable("v", [2]) is w
        session.run(w.initializer)
        assert session.run(w).tolist() == [1.0, 1.0]
        assert (w.dtype, scope.partitioner) == (v1.float64, None)
        assert session.run(v1.losses.get_regularization_losses()) == [2.0]
        assert scope.get_collection(v1.GraphKeys.GLOBAL_VARIABLES) == [w]
        v1.get_variable("b", [])
        assert len(v1.global_variables()) == 2


def test_a_regularizer_may_return_no_loss() -> None:
    with v1.Graph().as_default():
        v1.get_variable("w", [2], regularizer=lambda w: None)
        assert v1.losses.get_regularization_losses() == []
