"""DeepXDE: equations solved by neural networks, on the backend that DDE_BACKEND names."""

import deepxde as dde
import numpy as np
from deepxde.backend import tf

dde.config.set_random_seed(1)


def network(inputs=1, outputs=1):
    return dde.nn.FNN([inputs, 30, 30, outputs], "tanh", "Glorot uniform")


def relative_error(computed, exact):
    return np.linalg.norm(computed - exact) / np.linalg.norm(exact)


def solution_of_poisson(x):
    return np.sin(np.pi * x)


def poisson_data():
    def equation(x, y):
        return dde.grad.hessian(y, x) + np.pi**2 * tf.sin(np.pi * x)

    line = dde.geometry.Interval(-1, 1)
    ends = dde.icbc.DirichletBC(line, solution_of_poisson, lambda x, is_at_end: is_at_end)
    return dde.data.PDE(line, equation, ends, 16, 2, solution=solution_of_poisson, num_test=50)


def poisson():
    model = dde.Model(poisson_data(), network())
    model.compile("adam", lr=0.001, metrics=["l2 relative error"])
    history, _ = model.train(iterations=1500)
    assert history.metrics_test[-1][0] < 0.05
    x = np.linspace(-1, 1, 40)[:, None].astype("float32")
    assert relative_error(model.predict(x), solution_of_poisson(x)) < 0.05


def poisson_by_lbfgs():
    model = dde.Model(poisson_data(), network())
    model.compile("adam", lr=0.001)
    model.train(iterations=200)
    model.compile("L-BFGS")
    model.train()
    x = np.linspace(-1, 1, 40)[:, None].astype("float32")
    assert relative_error(model.predict(x), solution_of_poisson(x)) < 0.02


def conditions_by_construction():
    net = network()
    net.apply_output_transform(lambda x, y: (1 - x**2) * y)
    data = poisson_data()
    data = dde.data.PDE(data.geom, data.pde, [], 16, solution=solution_of_poisson)
    model = dde.Model(data, net)
    model.compile("adam", lr=0.005)
    model.train(iterations=800)
    x = np.array([[-1.0], [1.0]], "float32")
    np.testing.assert_allclose(model.predict(x), 0.0, atol=1e-6)


def heat():
    def equation(x, y):
        return dde.grad.jacobian(y, x, i=0, j=1) - 0.4 * dde.grad.hessian(y, x, i=0, j=0)

    def exact(x):
        return np.exp(-0.4 * np.pi**2 * x[:, 1:2]) * np.sin(np.pi * x[:, 0:1])

    domain = dde.geometry.GeometryXTime(dde.geometry.Interval(0, 1), dde.geometry.TimeDomain(0, 1))
    ends = dde.icbc.DirichletBC(domain, lambda x: 0, lambda x, is_at_end: is_at_end)
    start = dde.icbc.IC(domain, exact, lambda x, is_at_start: is_at_start)
    data = dde.data.TimePDE(domain, equation, [ends, start], 200, 40, 40, solution=exact, num_test=200)
    model = dde.Model(data, network(2))
    model.compile("adam", lr=0.005)
    model.train(iterations=1500)
    x = np.random.default_rng(0).random((100, 2)).astype("float32")
    assert relative_error(model.predict(x), exact(x)) < 0.2


def an_unknown_coefficient():
    coefficient = dde.Variable(0.5)

    def equation(x, y):
        return dde.grad.jacobian(y, x) + coefficient * y

    line = dde.geometry.TimeDomain(0, 2)
    times = np.linspace(0, 2, 20)[:, None]
    observed = dde.icbc.PointSetBC(times, np.exp(-1.5 * times))
    data = dde.data.PDE(line, equation, [observed], 30, 2, anchors=times)
    model = dde.Model(data, network())
    model.compile("adam", lr=0.01, external_trainable_variables=coefficient)
    values = dde.callbacks.VariableValue(coefficient, period=500)
    model.train(iterations=1500, callbacks=[values])
    assert abs(values.get_value()[0] - 1.5) < 0.15


def a_function():
    data = dde.data.Function(
        dde.geometry.Interval(-1, 1), lambda x: x * np.sin(5 * x), num_train=32, num_test=50
    )
    model = dde.Model(data, network())
    model.compile("adam", lr=0.005, metrics=["l2 relative error"], decay=("inverse time", 1000, 0.5))
    history, _ = model.train(iterations=2000)
    assert history.metrics_test[-1][0] < 0.1


def an_operator():
    rng = np.random.default_rng(0)
    x = np.linspace(0, 1, 20)[:, None].astype("float32")
    weights = rng.normal(size=(80, 3))
    functions = (weights @ np.stack([np.ones(20), x[:, 0], x[:, 0] ** 2])).astype("float32")
    integrals = (np.cumsum(functions, 1) / 20).astype("float32")
    train, test = ((functions[:60], x), integrals[:60]), ((functions[60:], x), integrals[60:])
    data = dde.data.TripleCartesianProd(*train, *test)
    net = dde.nn.DeepONetCartesianProd([20, 30, 30], [1, 30, 30], "relu", "Glorot normal")
    model = dde.Model(data, net)
    model.compile("adam", lr=0.003, metrics=["mean l2 relative error"])
    history, _ = model.train(iterations=1000)
    assert history.metrics_test[-1][0] < 0.3


TESTS = {
    "Poisson": poisson,
    "Poisson by L-BFGS": poisson_by_lbfgs,
    "conditions by construction": conditions_by_construction,
    "heat": heat,
    "an unknown coefficient": an_unknown_coefficient,
    "a function": a_function,
    "an operator": an_operator,
}
for test, run in TESTS.items():
    try:
        run()
    except Exception as error:  # the others run too
        print(f"\nfail {test}: {type(error).__name__}: {str(error)[:300]}", flush=True)
    else:
        print(f"\npass {test}", flush=True)
