"""Concrete functions: one trace, as an object."""

from __future__ import annotations

import functools

import numba
import numpy as np
import pytest
from opencl_driver import use_backend

import dualflow as df
from dualflow.function.options import BACKENDS


@df.function
def scale(x, n=2, *, flag=True):
    return {"y": x * n if flag else x}


SPEC = df.TensorSpec([2], df.float32)


def test_specs_may_replace_tensors():
    f = scale.get_concrete_function(SPEC)
    assert f(df.constant([1.0, 2.0]))["y"].numpy().tolist() == [2.0, 4.0]


def test_it_is_the_trace_that_calls_use():
    f = scale.get_concrete_function(SPEC)
    scale(df.constant([5.0, 6.0]))
    assert scale.get_concrete_function(df.constant([1.0, 2.0])) is f


def test_the_signature_gives_the_arguments():
    f = df.function(lambda x: x + 1.0, input_signature=[SPEC])
    assert f.get_concrete_function()([1.0, 2.0]).numpy().tolist() == [2.0, 3.0]


def test_python_values_may_be_left_out_or_repeated_but_not_changed():
    f = scale.get_concrete_function(SPEC, 3, flag=True)
    x = df.constant([1.0, 1.0])
    assert f(x)["y"].numpy().tolist() == f(x, 3)["y"].numpy().tolist() == [3.0, 3.0]
    with pytest.raises(TypeError, match="traced with n = 3"):
        f(x, 4)
    with pytest.raises(TypeError, match="traced with flag = True"):
        f(x, flag=False)


def test_a_python_value_without_a_default_may_be_left_out():
    f = df.function(lambda n, x: x * n).get_concrete_function(3.0, SPEC)
    assert f(df.constant([1.0, 2.0])).numpy().tolist() == [3.0, 6.0]
    assert f(x=df.constant([1.0, 2.0])).numpy().tolist() == [3.0, 6.0]


def test_numbers_and_lists_are_converted():
    f = df.function(lambda x: x * 2.0).get_concrete_function(df.TensorSpec([]))
    assert float(f(3)) == 6.0
    assert float(f(np.float64(3))) == 6.0


@pytest.mark.parametrize(
    "value", [df.constant([1, 2]), df.constant([1.0]), df.constant([[1.0, 2.0]])], ids=repr
)
def test_another_dtype_or_shape_is_refused(value):
    with pytest.raises(ValueError, match=r"was traced with x: float32\[2\]\. Can not cast"):
        scale.get_concrete_function(SPEC)(value)


def test_another_structure_is_refused():
    f = df.function(lambda d: d["a"]).get_concrete_function({"a": SPEC})
    with pytest.raises(TypeError, match="does not have the structure of a dict with 1 lea"):
        f({"b": df.constant([1.0, 2.0])})


def summed():
    f = df.function(lambda p, q, n=2.0: (p["a"] - p["b"]) * q[0] * n)
    return f.get_concrete_function({"a": SPEC, "b": SPEC}, (df.TensorSpec([2], name="weight"),))


A, B, Q = df.constant([5.0, 6.0]), df.constant([1.0, 1.0]), df.constant([10.0, 20.0])


@pytest.mark.parametrize(
    "call",
    [
        lambda f: f({"a": A, "b": B}, (Q,)),
        lambda f: f(p={"b": B, "a": A}, q=[Q]),
        lambda f: f({"a": A, "b": B}, (Q,), 2.0),
        lambda f: f(A, B, Q),
        lambda f: f(A, B, weight=Q),
        lambda f: f(A, np.ones(2, np.float32), Q),
    ],
)
def test_tensors_come_in_their_structure_or_one_by_one(call):
    f = summed()
    for _ in range(3):
        assert call(f).numpy().tolist() == [80.0, 200.0]


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda f: f(A, B), "does not have the structure of a dict with 2 leaves"),
        (lambda f: f(A, B, Q, Q), "too many positional arguments"),
        (lambda f: f(), "missing a required argument: 'p'"),
        (lambda f: f({"a": A, "b": B}), "missing a required argument: 'q'"),
        (lambda f: f(A, B, mass=Q), "mass"),
        (lambda f: f({"a": A}, (Q,)), "The argument p, {'a': .*} does not have the structure"),
        (lambda f: f({"a": A, "b": B}, {}), r"The argument q, {} does not .* tuple with 1 leaf\."),
    ],
)
def test_arguments_that_do_not_fit_are_refused_with_the_signature(call, reason):
    with pytest.raises(TypeError, match=reason) as caught:
        call(summed())
    assert "It was traced as <ConcreteFunction <lambda>(p['a']: float32[2], p['b']" in str(caught.value)


@pytest.mark.parametrize(
    ("value", "error", "reason"),
    [
        (df.constant([1, 2]), ValueError, r"x: float32\[2\]\. Can not cast .*int32.* to .*float32"),
        (df.ones([3]), ValueError, r"Can not cast .*shape=\(3,\).* to .*shape=\(2,\)"),
        (object(), ValueError, "can't become a tensor"),
        (None, ValueError, "None can't become a tensor"),
        (df.Variable([1.0, 2.0]), ValueError, "pass its value, v.read_value"),
    ],
)
def test_a_non_tensor_is_refused_with_its_position(value, error, reason):
    f = df.function(lambda x: x, name="f").get_concrete_function(SPEC)
    with pytest.raises(error, match=reason) as caught:
        f(value)
    assert str(caught.value).startswith("'f' was traced with x: float32[2].")


def test_it_reports_its_inputs_and_outputs():
    v = df.Variable([1.0, 2.0], name="v")
    f = df.function(lambda x, n: (x * v, None)).get_concrete_function(SPEC, 3)
    assert f.inputs == [SPEC, SPEC]
    assert f.structured_outputs == (SPEC, None)
    args, kwargs = f.structured_input_signature
    assert (args, kwargs) == ((SPEC, 3), {})
    assert args[0].name == "x"
    assert f.variables[0] is v
    assert f.trainable_variables[0] is v


def test_its_graph_prints():
    text = str(scale.get_concrete_function(SPEC).graph)
    assert text.startswith("graph scale(%x: float32[2])")
    assert "multiply(" in text
    assert "test_concrete.py" in text


def test_a_named_spec_names_the_input():
    f = df.function(lambda x: x).get_concrete_function(df.TensorSpec([2], name="pixels"))
    assert "%pixels: float32[2]" in str(f.graph)


def test_structured_arguments_are_named_by_their_path():
    f = df.function(lambda d: d["a"][0] + d["a"][1]).get_concrete_function({"a": (SPEC, SPEC)})
    assert "%d['a'][0]: float32[2], %d['a'][1]: float32[2]" in str(f.graph)


def test_it_works_inside_another_function():
    f = scale.get_concrete_function(SPEC)
    outer = df.function(lambda x: f(x)["y"] + 1.0)
    assert outer(df.constant([1.0, 2.0])).numpy().tolist() == [3.0, 5.0]
    assert "call" not in str(outer.concrete_functions[0].graph)


def test_its_kernels_read_as_python():
    f = df.function(lambda x: df.reduce_sum(x * x, axis=1))
    text = f.get_concrete_function(df.TensorSpec([4, 8])).kernels
    assert "# multiply, reduce_sum" in text
    assert "for i1 in range(n0):" in text


@pytest.mark.parametrize("backend", BACKENDS)
def test_numba_code_calls_it(backend, monkeypatch):
    use_backend(backend, monkeypatch)
    traced = df.function(lambda x: x * x, backend=backend)
    square = traced.get_concrete_function(df.TensorSpec([4])).njit()

    @numba.njit
    def twice(x):
        return square(square(x))

    assert twice(np.full(4, 2, np.float32)).tolist() == [16.0] * 4
    assert traced.get_concrete_function(df.TensorSpec([4])).njit() is square


@pytest.mark.llvm  # the one backend that compiles data-dependent sizes
def test_a_size_that_depends_on_data_is_machine_code():
    f = df.function(lambda x: df.boolean_mask(x, x > 0))
    assert f(df.constant([1.0, -1.0])).numpy().tolist() == [1.0]
    assert f(df.constant([1.0, 3.0])).numpy().tolist() == [1.0, 3.0]
    assert [part.kind for part in f.concrete_functions[0].parts] == ["native"]


def test_outputs_have_shapes_and_dtypes_in_their_structure():
    f = df.function(lambda x: {"y": x, "n": (df.size(x), None)})
    concrete = f.get_concrete_function(df.TensorSpec([None, 2]))
    assert concrete.output_shapes == {"y": [None, 2], "n": ([], None)}
    assert concrete.output_dtypes == {"y": df.float32, "n": (df.int32, None)}
    assert df.function(lambda x: x).get_concrete_function(SPEC).output_shapes == [2]


def test_a_function_is_decorated_in_place_before_its_first_trace():
    """Sonnet's modules do it with their methods."""

    class Model:
        @df.function
        def double(self, x):
            return x + x

    def negative(method):
        @functools.wraps(method)
        def call(*args, **kwargs):
            return -method(*args, **kwargs)

        return call

    Model.double._decorate(negative)
    assert float(Model().double(df.constant(2.0))) == -4.0
    f = df.function(lambda x: x)
    f(df.constant(1.0))
    with pytest.raises(df.errors.FailedPreconditionError, match="has been traced"):
        f._decorate(negative)
