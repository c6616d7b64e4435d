"""``tfe.Network``: the variables of tracked layers, in the order of tracking."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import dualflow as df
import dualflow.eager as tfe
from dualflow.compat import v1


class Model(tfe.Network):
    """Two layers, whose attributes sort the other way than they were tracked."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.second = self.track_layer(v1.layers.Dense(4, activation=v1.nn.relu, name="one"))
        self.first = self.track_layer(v1.layers.Dense(2, name="two", kernel_regularizer=v1.reduce_sum))

    def call(self, x: Any) -> Any:
        return self.first(self.second(x))


def test_a_network_has_the_variables_of_its_layers_in_their_order() -> None:
    model = Model()
    assert model(df.ones([3, 5])).shape == (3, 2)
    assert [tuple(v.shape) for v in model.variables] == [(5, 4), (4,), (4, 2), (2,)]
    assert model.trainable_variables == model.variables
    assert model.count_params() == 34


def test_a_network_has_the_losses_of_its_layers() -> None:
    model = Model()
    model(df.ones([3, 5]))
    assert len(model.losses) == 1
    np.testing.assert_allclose(model.losses[0], model.first.kernel.numpy().sum(), rtol=1e-5)


def test_layers_are_found_by_name_and_by_place() -> None:
    model = Model()
    assert model.layers == [model.second, model.first]
    assert model.get_layer("two") is model.first
    assert model.get_layer(index=0) is model.get_layer(index=-2) is model.second


def test_networks_hold_networks_and_modules() -> None:
    class Offset(df.Module):
        def __init__(self) -> None:
            super().__init__()
            self.by = df.Variable(1.0)

    outer = tfe.Network("outer")
    inner, offset = outer.track_layer(Model()), outer.track_layer(Offset())
    inner(df.ones([1, 5]))
    assert len(outer.variables) == 5
    assert outer.variables[-1] is offset.by


def test_a_network_is_named_after_its_class() -> None:
    assert (Model().name, Model("mine").name) == ("model", "mine")


def test_a_network_learns() -> None:
    df.random.set_seed(0)
    model, x = Model(), np.float32([[1, 0, 0, 0, 0], [0, 1, 0, 0, 0]])

    def loss() -> Any:
        return df.reduce_mean((model(x) - [[1.0, 2.0], [3.0, 4.0]]) ** 2)

    optimizer = v1.train.AdamOptimizer(0.1)
    first = float(loss())
    for _ in range(60):
        optimizer.minimize(loss)
    assert float(loss()) < 0.1 * first


def test_in_a_graph_a_network_is_built_once() -> None:
    with v1.Graph().as_default(), v1.Session() as session:
        model = Model()
        y, again = model(v1.ones([3, 5])), model(v1.ones([3, 5]))
        assert len(v1.global_variables()) == 4
        session.run(v1.global_variables_initializer())
        np.testing.assert_array_equal(*session.run([y, again]))


def test_sequential_calls_one_after_another() -> None:
    drop = v1.layers.Dropout(0.5)
    model = tfe.Sequential([drop, lambda x: x * 2])
    model.add(v1.layers.Dense(1, kernel_initializer=v1.ones_initializer()))
    assert model([[1.0, 2.0]]).numpy().tolist() == [[6.0]]
    assert len(model.variables) == 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tfe.Network().track_layer(3), "takes a layer, a network or a df.Module, not a int"),
        (lambda: Model().track_layer(v1.layers.Dense(1, name="two")), "two layers with the name 'two'"),
        (lambda: Model().get_layer(), "either the name of a layer or its index"),
        (lambda: Model().get_layer("one", 1), "either the name of a layer or its index"),
        (lambda: Model().get_layer(index=2), "index 2 is out of range: the network has 2 layers"),
        (lambda: Model().get_layer("three"), r"No such layer: 'three'; the layers are \['one', 'two'\]"),
        (lambda: tfe.Sequential([3]), "takes a layer or a function, not 3"),
    ],
)
def test_bad_arguments_are_errors(make: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        make()


def test_the_namespace_is_imported_by_its_name():
    module = importlib.import_module("dualflow.contrib.eager")
    assert module is df.contrib.eager
    assert module.Variable is df.Variable
