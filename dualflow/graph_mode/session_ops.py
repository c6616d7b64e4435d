"""Ops that read the state of the session that runs them, such as which variables have values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import bool_
from dualflow.core.errors import FailedPreconditionError
from dualflow.core.shape import SCALAR, Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.string_arrays import string
from dualflow.core.tracebacks import entry
from dualflow.graph_mode.default_graph import recording_graph
from dualflow.graph_mode.graph_engine import GLOBAL_VARIABLES
from dualflow.graph_mode.running_session import SessionState, running_state
from dualflow.ops.creation import constant
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Effect, Op

if TYPE_CHECKING:
    from dualflow.eager.variable import Variable
    from dualflow.ops.tensor import Tensor

READS_SESSION: Final = Opaque("it reads the state of the session")


def session_state(what: str) -> SessionState:
    """The state of the session that runs ``what``.

    Raises:
        FailedPreconditionError: no session runs it.
    """
    state = running_state()
    if state is None:
        raise FailedPreconditionError(f"{what} reads the state of a session: fetch it with session.run.")
    return state


@entry
def report_uninitialized_variables(
    var_list: Sequence[Any] | None = None, name: str = "report_uninitialized_variables"
) -> Tensor:
    """The names of the variables that have no value in the session that runs it; eagerly none.

    Args:
        var_list: variables of the graph; by default its global and local ones.
        name: of the operation.

    Returns:
        A vector of strings.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     w = v1.get_variable("w", [])
    ...     names = v1.report_uninitialized_variables()
    ...     before = session.run(names)
    ...     session.run(w.initializer)
    ...     print(before, len(session.run(names)))
    [b'w'] 0
    """
    graph = recording_graph()
    if graph is None:
        return constant([], string, [0])
    if var_list is None:
        collections = (GLOBAL_VARIABLES, "local_variables")
        var_list = [v for key in collections for v in graph.get_collection(key)]
    variables = tuple(dict.fromkeys(var_list))
    return dispatch.current().apply(UNINITIALISED, (), {"variables": variables})


@entry
def is_variable_initialized(variable: Variable) -> Tensor:
    """Whether a variable has a value in the session that runs it; eagerly True.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     print(session.run(v1.is_variable_initialized(v1.get_variable("w", []))))
    False
    """
    if recording_graph() is None:
        return constant(True)
    return dispatch.current().apply(IS_INITIALISED, (), {"variable": variable})


def _has_value(variable: Any) -> bool:
    held = session_state("the check of a variable").variables.get(id(variable))
    return held is not None and held.initialised


def _uninitialised_names(variables: Sequence[Any]) -> np.ndarray[Any, Any]:
    names = [v.name.rpartition(":")[0].encode() for v in variables if not _has_value(v)]
    return np.array(names, object)


UNINITIALISED: Final = Op(
    name="uninitialized_variables",
    doc="The names of those of ``variables`` that have no value in the session.",
    infer=lambda variables: TensorSpec.of(Shape([None]), string),
    kernel=_uninitialised_names,
    kind=READS_SESSION,
    effect=Effect.PYTHON,
)

IS_INITIALISED: Final = Op(
    name="is_variable_initialized",
    doc="Whether ``variable`` has a value in the session.",
    infer=lambda variable: TensorSpec.of(SCALAR, bool_),
    kernel=lambda variable: np.asarray(_has_value(variable)),
    kind=READS_SESSION,
    effect=Effect.PYTHON,
)
