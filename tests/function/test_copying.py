"""Traced functions, concrete functions and graphs under ``pickle`` and ``copy``."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.graph.interpret import evaluate
from dualflow.graph.ir import verify

X = df.constant([1.0, 2.0])


@df.function
def decorated(x):
    return x + 1.0


def plain(x):
    return x * 2.0


class Model(df.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = df.Variable(3.0)
        self.traced = df.function(self.scaled, input_signature=[df.TensorSpec([None])])
        self.alias = self.called

    def scaled(self, x: Any) -> Any:
        return x * self.weight

    @df.function
    def called(self, x: Any) -> Any:
        return x - self.weight


MADE = """
import pickle
import mine

mine.f(mine.X)
print(pickle.dumps([mine.f, mine.A.g]).hex())
"""
USED = """
import pickle
import sys

f, g = pickle.loads(bytes.fromhex(sys.argv[1]))
import mine

print(f is mine.f, g is mine.A.g, f(mine.X).numpy())
"""
MINE = """
import dualflow as df

X = df.constant([1.0, 2.0])

@df.function
def f(x):
    return x + 1.0

class A:
    @df.function
    def g(self, x):
        return x - 1.0
"""


def test_a_function_of_a_module_is_pickled_by_its_name(tmp_path):
    for name, text in (("mine", MINE), ("made", MADE), ("used", USED)):
        (tmp_path / f"{name}.py").write_text(text)

    def run(*command: str) -> str:
        started = [sys.executable, *command]
        return subprocess.run(
            started, cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout.strip()

    assert run("used.py", run("made.py")) == "True True [2. 3.]"


def test_another_function_is_pickled_as_its_python_function_and_its_options():
    f = df.function(plain, input_signature=[df.TensorSpec([None])], reduce_retracing=True, name="doubled")
    f(X)
    g = pickle.loads(pickle.dumps(f))
    assert g(X).numpy().tolist() == [2.0, 4.0]
    assert (g.python_function, g.input_signature, g._options) == (plain, f.input_signature, f._options)
    assert repr(g) == repr(f)
    assert g.experimental_get_tracing_count() == 1


def test_picklers_of_any_python_function_take_traced_ones_too():
    cloudpickle = pytest.importorskip("cloudpickle")
    rate = 3.0
    f = df.function(lambda x: x * rate)
    f(X)
    assert pickle.loads(cloudpickle.dumps(f))(X).numpy().tolist() == [3.0, 6.0]
    with pytest.raises(TypeError, match="can't be pickled"):
        pickle.dumps(f)


def test_no_compiled_state_is_pickled():
    f = df.function(plain)
    before = len(pickle.dumps(f))
    for n in range(1, 4):
        f(df.ones([n]))
    assert len(pickle.dumps(f)) == before


@pytest.mark.parametrize("f", [decorated, df.function(plain), df.function(lambda x: x)])
def test_copies_are_the_function_itself_as_pythons_are(f):
    f(X)
    assert copy.copy(f) is f
    assert copy.deepcopy([f])[0] is f


@pytest.mark.parametrize("again", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
@pytest.mark.parametrize("called", [False, True])
def test_a_copied_object_has_functions_of_its_own_variables(again, called):
    model = Model()
    if called:
        for _ in range(3):
            model.traced(X), model.called(X), model.alias(X)
    other = again(model)
    other.weight.assign(10.0)
    assert other.traced(X).numpy().tolist() == [10.0, 20.0]
    assert other.called(X).numpy().tolist() == [-9.0, -8.0]
    assert other.alias(X).numpy().tolist() == [-9.0, -8.0]
    assert model.traced(X).numpy().tolist() == [3.0, 6.0]
    assert model.alias(X).numpy().tolist() == [-2.0, -1.0]


def test_a_bound_method_is_copied_and_pickled_with_its_object():
    model = Model()
    model.called(X)
    for other in (copy.deepcopy(model.called), pickle.loads(pickle.dumps(model.called))):
        assert other.__self__ is not model
        assert other(X).numpy().tolist() == [-2.0, -1.0]
    assert copy.copy(model.called).__self__ is model


def test_a_concrete_function_is_its_own_copy():
    concrete = decorated.get_concrete_function(X)
    assert copy.copy(concrete) is concrete
    assert copy.deepcopy([concrete])[0] is concrete


# Graphs


def looped(x):
    total = df.zeros([2])
    for i in df.range(df.cast(x[0], df.int32)):
        if total[0] > 3.0:
            total += x
        else:
            total += df.cast(i, df.float32)
    return {"total": total, "sum": df.reduce_sum(df.nn.softmax(x) * X)}


FUNCTIONS = {
    "ops": decorated,
    "loops and conditionals": df.function(looped),
    "parts": df.function(lambda x: df.gather(df.concat([x, x[::-1]], 0), [3, 0])[1:]),
    "Python inside": df.function(lambda x: df.py_function(plain, [x], df.float32) + 1.0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_graph_comes_back_as_it_was(name):
    concrete = FUNCTIONS[name].get_concrete_function(X)
    for graph in (concrete.graph, concrete.optimised_graph):
        arrays = [np.array([5.0, 1.0], np.float32), *(c.source.numpy() for c in graph.captures)]
        loaded = pickle.loads(pickle.dumps(graph))
        verify(loaded)
        assert str(loaded) == str(graph)
        for result, expected in zip(evaluate(loaded, arrays), evaluate(graph, arrays), strict=True):
            assert np.array_equal(result, expected)


def test_a_graph_is_pickled_with_copies_of_what_it_captures():
    v = df.Variable([1.0, 2.0], name="v")
    big = df.range(100.0)

    @df.function
    def f(x):
        v.assign_add(x)
        return df.reduce_sum(big) * x

    graph = f.get_concrete_function(X).graph
    loaded = pickle.loads(pickle.dumps(graph))
    assert [(c.variable, c.source.shape) for c in loaded.captures] == [(True, (2,)), (False, (100,))]
    assert loaded.captures[0].source is not v
    assert loaded.updates[0].input is loaded.inputs[1]
    assert str(loaded) == str(graph)


def test_a_long_graph_is_pickled_too():
    def chain(x):
        for _ in range(5000):
            x = x + 1.0
        return x

    graph = df.function(chain).get_concrete_function(X).graph
    assert len(pickle.loads(pickle.dumps(graph)).nodes) == len(graph.nodes)
    assert copy.deepcopy(graph) is graph
