"""Sessions: they hold the values of a graph's variables and run the parts of it that are asked for."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, Self

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import as_array
from dualflow.core.dispatch import AbstractTensor, AbstractVariable
from dualflow.core.errors import DTypeError, FailedPreconditionError, InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.core.tree import Structure, flatten, unflatten
from dualflow.eager.engine import EAGER
from dualflow.function.session.graph import Graph, Operation, get_default_graph
from dualflow.function.session.growth import Growth
from dualflow.function.session.plan import Plan, plan
from dualflow.function.symbol import Symbol
from dualflow.graph.ir import Node, Value

Array = np.ndarray[Any, Any]
_PLANS = 256


class Session:
    """Runs parts of one graph, and holds the values of its variables.

    Args:
        target: ignored: there is one machine.
        graph: by default the one that is the default now.
        config: ignored.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default():
    ...     count = v1.Variable(0)
    ...     step = v1.assign_add(count, 1)
    ...     with v1.Session() as session:
    ...         session.run(v1.global_variables_initializer())
    ...         print([int(session.run(step)) for _ in range(3)])
    [1, 2, 3]
    """

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        self.graph = get_default_graph() if graph is None else graph
        self._values: dict[int, Array] = {}
        self._growth = Growth(self.graph.engine)
        self._lock = threading.RLock()
        self._closed = False
        self._blocks: list[ExitStack] = []

    def __enter__(self) -> Self:
        block = ExitStack()
        block.enter_context(self.graph.as_default())
        self._blocks.append(block)
        return self

    def __exit__(self, *exc: object) -> None:
        self._blocks.pop().close()
        self.close()

    def close(self) -> None:
        """Let the variables' values go. A closed session runs nothing."""
        self._closed = True
        self._values.clear()

    def run(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """The values of ``fetches`` as NumPy arrays, in their structure; None for an operation.

        One run sees one state: a random op that several fetches depend on draws once, variables are read and
        assigned in program order, and the assignments that no fetch depends on don't happen.

        Args:
            fetches: tensors, variables, operations or names of tensors, in lists, tuples and dicts.
            feed_dict: values for placeholders, or for any other tensors in the place of computing them.

        Raises:
            InvalidArgumentError: a placeholder is not fed, or a value doesn't fit what it is fed for.
            DTypeError: a fetch or a key is of the wrong kind, or a value is a tensor.
            FailedPreconditionError: a variable has no value yet, or the session is closed.
        """
        if self._closed:
            raise FailedPreconditionError("Attempted to use a closed Session.")
        leaves, structure = flatten(fetches)
        if _holds_none(structure):
            raise DTypeError("A fetch has invalid type NoneType: None can not be fetched.")
        wanted = [self._fetch(x) for x in leaves]
        fed = dict([self._feed(key, value) for key, value in (feed_dict or {}).items()])
        values = [x for x in wanted if isinstance(x, Value)]
        nodes = [n for x in wanted if not isinstance(x, Value) for n in x]
        self._growth.look()
        with self._lock, dispatch.using(EAGER):
            found = iter(self._execute(self._plan(values, nodes, fed), fed))
        return unflatten(structure, [next(found) if isinstance(x, Value) else None for x in wanted])

    def _fetch(self, given: Any) -> Value | tuple[Node, ...]:
        if isinstance(given, str):
            given = (
                self.graph.get_tensor_by_name(given)
                if ":" in given
                else (self.graph.get_operation_by_name(given))
            )
        if isinstance(given, Operation):
            if given.graph is not self.graph:
                raise InvalidArgumentError(f"{given!r} is not an element of this graph.")
            return given.nodes
        found = self._value(given, "Fetch argument")
        if found is None:
            raise DTypeError(
                f"Fetch argument {given!r} has invalid type {type(given).__name__}, must be a string or "
                f"Tensor. (Can not convert a {type(given).__name__} into a Tensor or Operation.)"
            )
        return found

    def _value(self, given: Any, what: str) -> Value | None:
        """The graph's value that a tensor or variable stands for; None for anything else."""
        found: Value | None = None
        if isinstance(given, Symbol):
            found = given._value if given._tracer is self.graph.engine else None
        elif isinstance(given, AbstractVariable):
            found = self.graph.engine.value_of(given)
        else:
            return None
        if found is None:
            raise InvalidArgumentError(f"{what} {given!r} is not an element of this graph.")
        return found

    def _feed(self, key: Any, given: Any) -> tuple[Value, Array]:
        tensor = self.graph.get_tensor_by_name(key) if isinstance(key, str) else key
        value = self._value(tensor, "Feed argument")
        if value is None:
            raise DTypeError(
                f"Cannot interpret feed_dict key as Tensor: {key!r} is a {type(key).__name__}, and keys are "
                "tensors of the graph, or their names."
            )
        if isinstance(given, AbstractTensor | AbstractVariable):
            raise DTypeError(
                "The value of a feed cannot be a tf.Tensor object. Acceptable feed values include Python "
                f"scalars, lists and numpy ndarrays. For reference, the tensor object was {given!r} which "
                f"was passed to the argument `feed_dict` with key {key!r}; feed its .numpy()."
            )
        array = as_array(given, value.spec.dtype)
        spec = TensorSpec(array.shape, value.spec.dtype)
        if not value.spec.is_compatible_with(spec):
            raise InvalidArgumentError(
                f"Cannot feed value of shape {spec.shape} for Tensor {self.graph.engine.tensor_name(value)}, "
                f"which has shape {value.spec.shape}"
            )
        return value, np.ascontiguousarray(array).reshape(array.shape)

    def _plan(self, values: list[Value], nodes: list[Node], fed: dict[Value, Array]) -> Plan:
        plans = self.graph.plans
        key = tuple(values), tuple(nodes), tuple([(v, a.shape) for v, a in fed.items()])
        found: Plan | None = plans.get(key)
        if found is None:
            specs = {v: TensorSpec(a.shape, v.spec.dtype) for v, a in fed.items()}
            found = plan(self.graph.engine, values, nodes, specs)
            if len(plans) >= _PLANS:
                del plans[next(iter(plans))]
            plans[key] = found
        return found

    def _execute(self, planned: Plan, fed: dict[Value, Array]) -> list[Any]:
        arguments = list(fed.values())
        started: dict[int, Array] = {}
        for slot in planned.slots:
            array = self._values.get(id(slot.variable))
            if array is None:
                if slot.read:
                    raise FailedPreconditionError(
                        f"Error while reading resource variable {slot.variable.name.partition(':')[0]}: it "
                        "is uninitialized in this session. Run global_variables_initializer() first."
                    )
                array = started[id(slot.variable)] = np.zeros(slot.variable.shape, slot.variable.dtype.dtype)
            arguments.append(array)
        results = planned.runner.run(arguments)
        self._values |= started
        return [_own(a) for a in results]


def _holds_none(structure: Structure) -> bool:
    return structure.kind is type(None) or any(map(_holds_none, structure.children))


def _own(array: Array) -> Any:
    """A copy that shares nothing with variables or constants; a NumPy scalar for what has no axes."""
    return np.array(array)[()]
