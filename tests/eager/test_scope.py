"""``name_scope``: the prefix of variable names."""

import threading

import pytest

import dualflow as df
from dualflow.compat import v1
from dualflow.core.errors import InvalidArgumentError


def test_variables_have_the_names_of_the_open_scopes():
    with df.name_scope("a") as scope:
        v, unnamed = df.Variable(1.0, name="v"), df.Variable(1.0)
        with df.name_scope("b"):
            inner = df.Variable(1.0, name="v")
    assert scope == "a/"
    assert [x.name for x in (v, unnamed, inner)] == ["a/v:0", "a/Variable:0", "a/b/v:0"]
    assert df.Variable(1.0, name="v").name == "v:0"


def test_the_scopes_of_version_1_are_the_same():
    with v1.name_scope("a"), df.name_scope("b"):
        assert df.Variable(1.0, name="v").name == v1.Variable(1.0, name="v").name == "a/b/v:0"
        assert v1.get_variable("g", []).name == "g:0"


def test_a_name_that_ends_in_a_slash_is_the_whole_scope():
    with df.name_scope("a"), df.name_scope("x/"):
        assert df.Variable(1.0, name="v").name == "x/v:0"


def test_a_variable_that_a_function_creates_is_in_its_scope():
    variables = []

    @df.function
    def f(x):
        with df.name_scope("a"):
            if not variables:
                variables.append(df.Variable(2.0, name="v"))
        return variables[0] * x

    assert float(f(3.0)) == 6.0
    assert variables[0].name == "a/v:0"


def test_in_a_graph_scopes_are_unique_and_hold_ops():
    with df.name_scope("outside"), v1.Graph().as_default():
        for expected in ("a/", "a_1/"):
            with df.name_scope("a") as scope, df.GradientTape():
                assert scope == expected
                assert v1.Variable(1.0, name="v").name == f"{expected}v:0"
                assert v1.placeholder(df.float32, [], name="x").name == f"{expected}x:0"


def test_an_error_leaves_the_scope():
    with pytest.raises(KeyError), df.name_scope("a"):
        raise KeyError
    assert df.Variable(1.0, name="v").name == "v:0"


def test_a_scope_can_be_entered_again_while_it_is_open():
    scope = df.name_scope("a")
    with scope, scope:
        assert df.Variable(1.0, name="v").name == "a/a/v:0"
    assert df.Variable(1.0, name="v").name == "v:0"


def test_other_threads_have_scopes_of_their_own():
    names = []
    with df.name_scope("a"):
        thread = threading.Thread(target=lambda: names.append(df.Variable(1.0, name="v").name))
        thread.start()
        thread.join()
    assert names == ["v:0"]


def test_a_module_scopes_its_variables_within_the_scope_it_was_made_in():
    class Inner(df.Module):
        def __init__(self):
            super().__init__()
            with self.name_scope:
                self.v = df.Variable(1.0, name="v")

        @df.Module.with_name_scope
        def create(self):
            return df.Variable(1.0, name="late").name

    class Outer(df.Module):
        def __init__(self):
            super().__init__(name="outer")
            with self.name_scope:
                self.inner = Inner()

    outer = Outer()
    assert outer.inner.v.name == "outer/inner/v:0"
    assert outer.inner.create() == "outer/inner/late:0"
    assert outer.name_scope.name == "outer/"


def test_a_scoped_method_is_converted_in_a_function():
    class Sign(df.Module):
        @df.Module.with_name_scope
        def __call__(self, x):
            if x > 0.0:
                return x
            return -x

    assert float(df.function(Sign())(-2.0)) == 2.0


def test_a_scope_has_a_name():
    with pytest.raises(InvalidArgumentError, match="must be a string, not 3"):
        df.name_scope(3)
