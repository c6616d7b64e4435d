"""TensorFlow 1's optimizers, against their formulas in NumPy."""

import numpy as np
import pytest

import dualflow as df
from dualflow.compat import v1

GRADIENTS = [np.float32([0.5, -2.0]), np.float32([1.5, 0.0]), np.float32([-1.0, 3.0])]


def run(optimizer):
    v = df.Variable([1.0, 2.0], name="w")
    for g in GRADIENTS:
        optimizer.apply_gradients([(df.constant(g), v)])
    return v.numpy()


def test_gradient_descent():
    expected = np.float32([1, 2]) - np.float32(0.1) * sum(GRADIENTS)
    np.testing.assert_allclose(run(v1.train.GradientDescentOptimizer(0.1)), expected, rtol=1e-6)


@pytest.mark.parametrize("nesterov", [False, True])
def test_momentum(nesterov):
    w, a = np.array([1.0, 2.0]), np.zeros(2)
    for g in GRADIENTS:
        a = 0.9 * a + g
        w = w - 0.1 * (g + 0.9 * a if nesterov else a)
    np.testing.assert_allclose(run(v1.train.MomentumOptimizer(0.1, 0.9, use_nesterov=nesterov)), w, rtol=1e-6)


def test_adam():
    w, m, n = np.array([1.0, 2.0]), np.zeros(2), np.zeros(2)
    for t, g in enumerate(GRADIENTS, 1):
        m = 0.9 * m + 0.1 * g
        n = 0.999 * n + 0.001 * g * g
        w = w - 0.01 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t) * m / (np.sqrt(n) + 1e-8)
    np.testing.assert_allclose(run(v1.train.AdamOptimizer(0.01)), w, rtol=1e-5)


def test_adagrad():
    w, a = np.array([1.0, 2.0]), np.full(2, 0.1)
    for g in GRADIENTS:
        a = a + g * g
        w = w - 0.1 * g / np.sqrt(a)
    np.testing.assert_allclose(run(v1.train.AdagradOptimizer(0.1)), w, rtol=1e-5)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("centered", [False, True])
def test_rmsprop(momentum, centered):
    w, a, m, n = np.array([1.0, 2.0]), np.zeros(2), np.zeros(2), np.ones(2)
    for g in GRADIENTS:
        n = 0.8 * n + 0.2 * g * g
        m = 0.8 * m + 0.2 * g
        a = momentum * a + 0.1 * g / np.sqrt(n - centered * m * m + 1e-10)
        w = w - a
    optimizer = v1.train.RMSPropOptimizer(0.1, 0.8, momentum, centered=centered)
    np.testing.assert_allclose(run(optimizer), w, rtol=1e-5)


def test_a_graph_has_one_global_step():
    with v1.Graph().as_default() as graph, v1.variable_scope("scope"), v1.name_scope("ops"):
        assert v1.train.get_global_step() is None
        steps = v1.train.get_or_create_global_step()
        assert (steps.name, steps.dtype, steps.trainable) == ("global_step:0", v1.int64, False)
        assert v1.train.get_or_create_global_step() is v1.train.get_global_step(graph) is steps
        with pytest.raises(ValueError, match="already exists"):
            v1.train.create_global_step()


def test_eagerly_the_process_has_one_global_step():
    steps = v1.train.get_or_create_global_step()
    assert (steps.name, steps.dtype, steps.trainable) == ("global_step:0", v1.int64, False)
    assert df.function(v1.train.get_or_create_global_step)().dtype is df.int64
    assert v1.train.get_or_create_global_step() is v1.train.get_global_step() is steps
    with pytest.raises(ValueError, match="already exists"):
        v1.train.create_global_step()


def test_minimize_counts_steps_and_takes_the_variables_it_is_given():
    x, y, step = df.Variable(3.0), df.Variable(5.0), df.Variable(0, trainable=False)
    optimizer = v1.train.GradientDescentOptimizer(lambda: 0.5)
    optimizer.minimize(lambda: x * x + y * y, global_step=step, var_list=[x])
    assert (x.numpy(), y.numpy(), step.numpy()) == (0.0, 5.0, 1)


@pytest.mark.parametrize("in_graph", [False, True])
def test_grad_loss_weights_a_vector_loss(in_graph):
    optimizer = v1.train.GradientDescentOptimizer(1.0)
    if not in_graph:
        x = v1.Variable([1.0, 1.0])
        optimizer.minimize(lambda: x * x, grad_loss=df.constant([0.25, 0.5]))
        assert x.numpy().tolist() == [0.5, 0.0]
        return
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.Variable([1.0, 1.0])
        step = optimizer.minimize(x * x, grad_loss=[0.25, 0.5])
        session.run(x.initializer)
        session.run(step)
        assert session.run(x).tolist() == [0.5, 0.0]


def test_a_graph_without_variables_has_nothing_to_train():
    with v1.Graph().as_default(), pytest.raises(ValueError, match="No variables to optimize"):
        v1.train.GradientDescentOptimizer(1.0).minimize(v1.constant(1.0))


def test_gradients_that_are_none_are_left_out():
    x, y = df.Variable(3.0), df.Variable(5.0, name="y")
    optimizer = v1.train.MomentumOptimizer(0.1, 0.9)
    optimizer.apply_gradients([(df.constant(1.0), x), (None, y)])
    assert y.numpy() == 5.0
    with pytest.raises(ValueError, match=r"No gradients provided for any variable: \['y:0'\]"):
        optimizer.apply_gradients([(None, y)])


def test_a_loss_is_a_function():
    with pytest.raises(RuntimeError, match="should be a function"):
        v1.train.GradientDescentOptimizer(0.1).minimize(df.constant(1.0))


def test_slots_are_named_after_their_variable():
    x = df.Variable(3.0, name="x")
    optimizer = v1.train.AdamOptimizer()
    assert optimizer.get_slot(x, "m") is None
    optimizer.minimize(lambda: x * x)
    assert optimizer.get_slot_names() == ["m", "v"]
    assert [optimizer.get_slot(x, name).name for name in ("m", "v")] == ["x/Adam:0", "x/Adam_1:0"]
    assert [v.name for v in optimizer.variables()[:2]] == ["beta1_power:0", "beta2_power:0"]
    assert len(optimizer.variables()) == 4
    assert not any(v.trainable for v in optimizer.variables())


def test_the_slot_of_momentum_has_the_name_of_the_optimizer():
    x = df.Variable(3.0, name="x")
    optimizer = v1.train.MomentumOptimizer(0.1, 0.9)
    optimizer.minimize(lambda: x * x)
    assert optimizer.get_slot(x, "momentum").name == "x/Momentum:0"


def test_a_constraint_holds_after_the_update():
    x = df.Variable(1.0, constraint=lambda v: df.maximum(v, 0.0))
    v1.train.GradientDescentOptimizer(1.0).apply_gradients([(df.constant(5.0), x)])
    assert x.numpy() == 0.0


def test_names_of_version_1_and_2():
    assert v1.float32 is df.float32
    assert v1.random_normal([2]).shape == (2,)
    assert v1.random_uniform([2, 2]).shape == (2, 2)
    assert v1.matmul.__wrapped__ is df.matmul
    with pytest.raises(AttributeError, match=r"dualflow\.compat\.v1.*nonsense"):
        v1.nonsense  # noqa: B018


def test_the_variables_of_an_optimizer_have_operations_in_a_graph():
    with v1.Graph().as_default():
        x = v1.Variable(3.0, name="x")
        v1.train.AdamOptimizer().minimize(x * x)
        names = [v.op.name for v in v1.global_variables()]
    assert names == ["x", "beta1_power", "beta2_power", "x/Adam", "x/Adam_1"]
