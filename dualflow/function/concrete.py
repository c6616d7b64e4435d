"""One trace of a function: its graph, compiled, and called with arguments like those it was traced with."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.convert import as_array
from dualflow.core.dispatch import AbstractTensor, AbstractVariable
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.core.tree import Structure, unflatten
from dualflow.eager.tensor import wrap
from dualflow.function.creation import Creation
from dualflow.function.execute import short_way
from dualflow.function.leaf import ObjectLeaf, TensorLeaf, ValueLeaf, VariableLeaf
from dualflow.function.outputs import Packer, collect
from dualflow.function.section import Section
from dualflow.function.signature import Call, Key, Signature
from dualflow.function.trace import Tracer, tracing
from dualflow.graph.ir import Graph
from dualflow.graph.passes.dead_code import eliminate_dead_code

if TYPE_CHECKING:
    from dualflow.native.executable import PartReport


class ConcreteFunction:
    """A function traced for arguments of certain shapes, dtypes and Python values.

    Made by :meth:`Function.get_concrete_function`; a :class:`Function` holds one for each kind of call. Takes
    the arguments of the Python function, where Python values may be left out but not changed.

    >>> import dualflow as df
    >>> add = df.function(lambda x, y: x + y).get_concrete_function(df.TensorSpec([]), df.TensorSpec([]))
    >>> add(df.constant(1.0), df.constant(2.0)).numpy()
    np.float32(3.0)
    >>> print(add.graph)
    graph <lambda>(%x: float32[], %y: float32[])
        %0: float32[] = add(%x, %y)...
        return %0
    """

    def __init__(
        self, section: Section, signature: Signature, key: Key, structure: Structure, shared: Sequence[Any]
    ) -> None:
        self.section = section
        self.key = key
        self.used = 0
        self._signature = signature
        self._structure = structure
        self.pack = Packer(structure)
        self._shared = tuple(shared)
        self._short: Callable[..., Any] | None = None

    # running

    def run(self, inputs: Sequence[Any]) -> Any:
        """The function's result for the tensors and variables among the arguments of a call."""
        return self.pack(self.section(inputs))

    def short(self, long_way: Callable[..., Any]) -> Callable[..., Any]:
        """This trace as a function of positional tensors; see :func:`dualflow.function.fast.short_way`."""
        if self._short is None:
            self._short = short_way(self, long_way)
        return self._short

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's result.

        Raises:
            DTypeError: a Python value differs from the traced one, or the arguments have another structure.
            InvalidArgumentError: a tensor has another dtype or shape than the traced one.
        """
        return self.run(self._fit(args, kwargs).inputs)

    def serves(self, inputs: Sequence[Any]) -> bool:
        """Whether those of the arguments that are captured variables too are the same ones as when traced."""
        variables = [x for x in inputs if isinstance(x, AbstractVariable)]
        return all(
            v is same if same is not None else not any(v is c for c in self.section.captured)
            for v, same in zip(variables, self._shared, strict=True)
        )

    # looking

    @property
    def name(self) -> str:
        return self.section.graph.name

    @property
    def graph(self) -> Graph:
        """The computation as it was traced; print it."""
        return self.section.graph

    @property
    def optimised_graph(self) -> Graph:
        """The computation as it runs, after all passes."""
        return self.section.runner.optimised

    @property
    def parts(self) -> Sequence[PartReport]:
        """How each part runs: natively, through NumPy or in Python."""
        return self.section.runner.executable.parts

    @property
    def variables(self) -> tuple[Any, ...]:
        """The variables that the function captures."""
        return tuple([c.source for c in self.graph.captures if c.variable])

    @property
    def trainable_variables(self) -> tuple[Any, ...]:
        """The captured variables that tapes watch by themselves."""
        return tuple([v for v in self.variables if v.trainable])

    @property
    def inputs(self) -> list[TensorSpec]:
        """The specs of the graph's inputs, captures last."""
        return [v.spec for v in self.graph.inputs]

    @property
    def outputs(self) -> list[TensorSpec]:
        """The specs of the results, flattened."""
        return [v.spec for v in self.graph.outputs]

    @property
    def structured_outputs(self) -> Any:
        """The specs of the results, in the structure that the function returns."""
        return unflatten(self._structure, self.outputs)

    @cached_property
    def structured_input_signature(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The positional and the keyword arguments: specs for tensors, the values of others."""
        names = self._signature.leaf_names(self.key[0])
        leaves = [
            TensorSpec(leaf.spec.shape, leaf.spec.dtype, leaf.spec.name or name)
            if isinstance(leaf, TensorLeaf | VariableLeaf)
            else leaf.value
            for leaf, name in zip(self.key[1], names, strict=True)
        ]
        args, kwargs = self._signature.spread(self.key[0], leaves)
        return tuple(args), kwargs

    def __repr__(self) -> str:
        names = self._signature.leaf_names(self.key[0])
        shown = ", ".join(f"{n}: {leaf}" for n, leaf in zip(names, self.key[1], strict=True))
        return f"<ConcreteFunction {self.name}({shown})>"

    # arguments

    def _fit(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Call:
        structure, leaves = self.key
        call = self._signature.call(tuple(self._complete(args, kwargs).values()))
        if call.structure != structure:
            raise DTypeError(
                f"{self!r} was called with arguments of another structure: {args!r}, {kwargs!r}."
            )
        names = self._signature.leaf_names(structure)
        rows = zip(leaves, call.key[1], call.leaves, names, strict=True)
        return self._signature.call(unflatten(structure, [self._fit_leaf(*row) for row in rows]))

    def _complete(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Each parameter's value; Python values that were left out are the traced ones."""
        traced, traced_kwargs = self.structured_input_signature
        try:
            return self._signature.arguments(args, kwargs)
        except DTypeError:
            names = [p.name for p in self._signature.parameters]
            static = {n: v for n, v in zip(names, traced, strict=False) if not isinstance(v, TensorSpec)}
            static |= {n: v for n, v in traced_kwargs.items() if not isinstance(v, TensorSpec)}
            given = dict(zip([n for n in names if n not in static and n not in kwargs], args, strict=False))
            if len(given) < len(args):
                raise
            return self._signature.arguments((), {**static, **given, **kwargs})

    def _fit_leaf(self, wanted: Any, given: Any, value: Any, name: str) -> Any:
        if isinstance(wanted, ValueLeaf | ObjectLeaf):
            if wanted != given:
                raise DTypeError(
                    f"{self.name!r} was traced with {name} = {wanted} and can't be called with {given}; "
                    "get another concrete function for it."
                )
            return value
        if isinstance(wanted, VariableLeaf):
            if wanted != given:
                raise DTypeError(f"{self.name!r} was traced with a {wanted} as {name}, not with {given}.")
            return value
        tensor = value if isinstance(value, AbstractTensor) else wrap(as_array(value, wanted.spec.dtype))
        if not wanted.spec.is_compatible_with(tensor):
            raise InvalidArgumentError(
                f"{self.name!r} was traced with {name}: {wanted.spec} and can't take "
                f"{TensorSpec.of(tensor.shape, tensor.dtype)}; get another concrete function for it."
            )
        return tensor


def trace(
    function: Callable[..., Any], signature: Signature, call: Call, name: str, creation: Creation
) -> ConcreteFunction:
    """Run ``function`` once with symbols for tensors, and keep the graph of what it did."""
    concrete = _trace(function, signature, call, name, creation, frozenset())
    shared = (
        frozenset(id(x) for x in call.inputs if isinstance(x, AbstractVariable) and not concrete.serves([x]))
        if concrete.variables
        else frozenset()
    )
    return _trace(function, signature, call, name, creation, shared) if shared else concrete


def _trace(
    function: Callable[..., Any],
    signature: Signature,
    call: Call,
    name: str,
    creation: Creation,
    shared: frozenset[int],
) -> ConcreteFunction:
    """``shared`` are the ids of variables that are an argument and also captured: both are one input."""
    tracer = Tracer(name, creation)
    leaves = _symbolic(tracer, call, signature.leaf_names(call.structure), shared)
    args, kwargs = signature.spread(call.structure, leaves)
    with tracing(tracer):
        result = function(*args, **kwargs)
    structure, outputs = collect(result, tracer)
    graph = eliminate_dead_code(tracer.builder.finish(outputs, tracer.updates()))
    effects = [n for n in graph.nodes if n.op.effect is not None]
    section = Section(tracer, graph, graph.inputs, graph.outputs, effects)
    same = [x if id(x) in shared else None for x in call.inputs if isinstance(x, AbstractVariable)]
    return ConcreteFunction(section, signature, call.key, structure, same)


def _symbolic(tracer: Tracer, call: Call, names: Sequence[str], shared: frozenset[int]) -> list[Any]:
    """The leaves to trace with: symbols for tensors, stand-ins for variables, Python values."""
    bound: dict[int, Any] = {}
    found: list[Any] = []
    for leaf, value, name in zip(call.key[1], call.leaves, names, strict=True):
        if isinstance(leaf, TensorLeaf):
            found.append(
                tracer.argument(TensorSpec(leaf.spec.shape, leaf.spec.dtype, leaf.spec.name or name))
            )
        elif isinstance(leaf, VariableLeaf):
            if id(value) not in bound:
                bound[id(value)] = value if id(value) in shared else _stand_in(value)
                tracer.bind(bound[id(value)])
            found.append(bound[id(value)])
        else:
            found.append(value)
    return found


def _stand_in(variable: Any) -> Any:
    """A variable for the trace alone: it shares no value with the argument, which each call gives anew."""
    found = copy.copy(variable)
    found._tensor = wrap(np.broadcast_to(np.zeros((), variable.dtype.dtype), variable._tensor.shape))
    return found
