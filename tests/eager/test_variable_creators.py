"""``variable_creator_scope``: functions that create variables in place of the class."""

from __future__ import annotations

import threading
from typing import Any

import dualflow as df
from dualflow.compat import v1


def frozen(next_creator: Any, **kwargs: Any) -> Any:
    return next_creator(**{**kwargs, "trainable": False})


def test_a_creator_changes_the_arguments() -> None:
    with df.variable_creator_scope(frozen):
        v = df.Variable(1.0, name="v")
    assert (v.trainable, v.name, float(v)) == (False, "v:0", 1.0)
    assert df.Variable(1.0).trainable


def test_the_innermost_creator_is_called_first() -> None:
    names = []

    def named(name: str) -> Any:
        def creator(next_creator: Any, **kwargs: Any) -> Any:
            names.append(name)
            return next_creator(**kwargs)

        return creator

    with df.variable_creator_scope(named("outer")), df.variable_creator_scope(named("inner")):
        df.Variable(1.0)
    assert names == ["inner", "outer"]


def test_a_creator_may_return_another_variable() -> None:
    shared = df.Variable(3.0)
    with df.variable_creator_scope(lambda next_creator, **kwargs: shared):
        assert df.Variable(1.0) is shared


def test_the_scope_is_of_one_thread_and_ends_with_an_error() -> None:
    created = []
    try:
        with df.variable_creator_scope(frozen):
            thread = threading.Thread(target=lambda: created.append(df.Variable(1.0)))
            thread.start()
            thread.join()
            raise KeyError
    except KeyError:
        created.append(df.Variable(1.0))
    assert [v.trainable for v in created] == [True, True]


def test_variables_of_a_graph_have_creators_too() -> None:
    with v1.Graph().as_default(), df.variable_creator_scope(frozen):
        assert not v1.get_variable("w", [2]).trainable


def test_a_class_of_the_program_creates_its_instances_itself() -> None:
    class Own(df.Variable):
        pass

    with df.variable_creator_scope(frozen):
        assert Own(1.0).trainable
