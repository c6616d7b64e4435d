"""Engines that extend another one delegate all other methods to it."""

from __future__ import annotations

import dualflow as df
from dualflow.compat import v1
from dualflow.core import dispatch
from dualflow.core.delegating_engine import DelegatingEngine
from dualflow.core.dispatch import Engine

OWN = {
    "unary",
    "binary",
    "apply",
    "record_numpy_use",
    "unrecorded",
    "eager",
    "composite",
    "generated",
    "part",
}
"""Methods that are not delegated: a delegating engine converts inputs and sees each op itself."""


def test_every_method_of_an_engine_is_delegated() -> None:
    methods = {name for name in vars(Engine) if not name.startswith("__")}
    assert methods - OWN <= set(vars(DelegatingEngine))


def test_ops_and_variables_are_the_base_engines() -> None:
    v = df.Variable([1.0, 2.0])
    with dispatch.using(DelegatingEngine(dispatch.current())):
        v.assign_add([1.0, 1.0])
        assert df.reduce_sum(v * 2.0).numpy() == 10.0
        assert df.Variable(3.0).numpy() == 3.0


def test_gradients_flow_through_ops_that_a_tape_below_records() -> None:
    x = df.constant(3.0)
    with df.GradientTape() as tape:
        tape.watch(x)
        with dispatch.using(DelegatingEngine(dispatch.current())):
            y = x * x
    assert tape.gradient(y, x).numpy() == 6.0


def test_an_assignment_in_a_graph_is_the_tensor_to_fetch_for_it() -> None:
    with v1.Graph().as_default(), v1.Session() as session:
        v = v1.Variable(1.0)
        with dispatch.using(DelegatingEngine(dispatch.current())):
            done = v.assign(2.0)
        session.run(v.initializer)
        assert session.run(done) == 2.0
