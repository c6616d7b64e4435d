"""One trace of a function: its graph, compiled, and called with arguments like those it was traced with."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dispatch import AbstractVariable
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry, hide_frames
from dualflow.core.tree import Structure, flatten, unflatten
from dualflow.eager.engine import EAGER
from dualflow.eager.tensor import EagerTensor, wrap
from dualflow.function.arguments.match_structure import as_tensor, one_by_one, parts
from dualflow.function.arguments.results import Packer, collect
from dualflow.function.arguments.signature import CallArguments, Key, Signature
from dualflow.function.arguments.trace_key import Leaf, TensorLeaf, VariableLeaf, static_leaf, variable_leaf
from dualflow.function.calling.array_ownership import array_of
from dualflow.function.calling.backend_door import numba_function, numba_source, short_way
from dualflow.function.calling.compiled_graph import Runner
from dualflow.function.calling.recent_calls import LongWay, Names
from dualflow.function.inspect.status import status
from dualflow.function.tracing.specialise_sizes import Shaped
from dualflow.function.tracing.subtrace import Section
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.function.tracing.variable_creation import Creation
from dualflow.graph.ir import Graph, GraphBuilder
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.assignments import acting
from dualflow.graph.passes.dead_code import eliminate_dead_code

if TYPE_CHECKING:
    from dualflow.graph.compiled import PartReport


class ConcreteFunction:
    """A function traced for arguments of certain shapes, dtypes and Python values.

    Made by :meth:`Function.get_concrete_function`; a :class:`Function` holds one for each kind of call. Takes
    the arguments of the Python function, where Python values may be left out but not changed; or its tensors
    one by one, out of their lists and dicts.

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
        static = all(v.spec.shape.is_static for v in section.graph.arguments)
        self._shaped = None if static else Shaped(section)
        self._shared = tuple(shared)
        self._short: Callable[..., Any] | None = None
        self._long_way = LongWay(self._long)

    # running

    def run(self, inputs: Sequence[Any]) -> Any:
        """The function's result for the tensors and variables among the arguments of a call."""
        return self.pack(self._section(inputs)(inputs))

    def short(
        self, places: Sequence[int], values: Sequence[Any], names: Names, long_way: LongWay
    ) -> Callable[..., Any]:
        """This trace as a function of values like these, of which those at ``places`` are its inputs.

        See ``short_way`` in ``calling/builtin_call.py``. What it can't serve it gives to ``long_way``, with
        the last values by these names.
        """
        runner = self._section([values[i] for i in places]).runner
        way = len(values), names, long_way
        found = runner.shorts.get(way)
        if found is None:
            found = short_way(runner, long_way.named(names), self.pack, places, values)
            runner.shorts[way] = found
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's result.

        Raises:
            DTypeError: a Python value differs from the traced one, or the arguments have another structure.
            InvalidArgumentError: a tensor has another dtype or shape than the traced one.
        """
        try:
            if self._short is None or kwargs or dispatch.current() is not EAGER:
                return self._call(args, kwargs)
            return self._short(*args)
        except Exception as error:
            hide_frames(error)
            raise

    def serves(self, inputs: Sequence[Any]) -> bool:
        """Whether those of the arguments that are captured variables too are the same ones as when traced."""
        variables = [x for x in inputs if isinstance(x, AbstractVariable)]
        return all(
            v is same if same is not None else not any(v is c for c in self.section.captured)
            for v, same in zip(variables, self._shared, strict=True)
        )

    # looking

    @property
    def _runner(self) -> Runner:
        """What runs: for open sizes, what ran last."""
        return (self.section if self._shaped is None else self._shaped.latest()).runner

    @property
    def sized(self) -> bool:
        """Whether all sizes are known, from the trace or from a call, so that it can be compiled."""
        return self._shaped is None or self._shaped.called

    @property
    def name(self) -> str:
        return self.section.graph.name

    @property
    def graph(self) -> Graph:
        """The computation as it was traced; print it."""
        return self.section.graph

    @property
    @entry
    def optimised_graph(self) -> Graph:
        """The computation as it runs, after all passes."""
        return self._runner.optimised

    @property
    @entry
    def parts(self) -> Sequence[PartReport]:
        """How each part runs: natively, through NumPy or in Python."""
        return self._runner.executable.parts

    @entry
    def status(self) -> str:
        """How the parts of this trace run, why not natively, and what works in this process.

        See :meth:`Function.status`. A trace that leaves sizes open says so until it has been called.

        >>> import dualflow as df
        >>> negate = df.function(lambda x: -x).get_concrete_function(df.TensorSpec([3]))
        >>> print(negate.status())
        <ConcreteFunction <lambda>(x: float32[3])>
            native: 1 kernels, 0 routines
        in this process
            builtin call: ...
        """
        return status([self])

    @property
    @entry
    def kernels(self) -> str:
        """The compiled program as Python source, with comments: kernels, and the function that calls them.

        It is what the Numba backend runs, and the loop nests that the others run. Saved to a file it needs
        NumPy and Numba only: its function takes an array for each tensor among the arguments, and then for
        each variable and captured tensor. :meth:`source` looks at them and adds the captured tensors.
        """
        return self._runner.text

    @entry
    def source(self, backend: str = "numba") -> str:
        """This trace as one Python file, which needs NumPy and Numba, but not dualflow.

        The file has a function of the trace's name. It takes an array for each tensor among the arguments
        and then for each variable, which it updates in place, and returns a list of arrays. Captured
        tensors are part of the file.

        Args:
            backend: ``"numba"``, the one backend whose programs are files.

        Raises:
            InvalidArgumentError: another backend; or a part of the graph runs in Python, or through code of
                dualflow: what NumPy does by a function of its own, such as sorting, is part of the file.
            FailedPreconditionError: sizes are open, and the trace has not been called yet.

        >>> import dualflow as df
        >>> f = df.function(lambda x: df.reduce_sum(x * x), name="squares")
        >>> text = f.get_concrete_function(df.TensorSpec([3])).source()
        >>> "def squares(x):" in text, "import dualflow" in text
        (True, False)
        """
        if backend != "numba":
            raise InvalidArgumentError(f"There is no source for the backend {backend!r}: take 'numba'.")
        runner = self._runner
        tensors = [array_of(c.source) for c in runner.optimised.captures if not c.variable]
        return numba_source(runner.optimised, tensors)

    @entry
    def njit(self) -> Any:
        """This trace as a function that ``numba.njit`` code can call with arrays.

        Raises:
            InvalidArgumentError: the graph uses variables, or parts of it don't run natively.
        """
        runner = self._runner
        return numba_function(runner.executable, [array_of(x) for x in runner.captured])

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
        args, kwargs = self._signature.spread(unflatten(self.key[0], leaves))
        return tuple(args), kwargs

    def __repr__(self) -> str:
        names = self._signature.leaf_names(self.key[0])
        shown = ", ".join(f"{n}: {leaf}" for n, leaf in zip(names, self.key[1], strict=True))
        return f"<ConcreteFunction {self.name}({shown})>"

    def __copy__(self) -> ConcreteFunction:
        return self

    def __deepcopy__(self, memo: Any) -> ConcreteFunction:
        """Itself, as with a Python function: it doesn't change, and reads the variables that it captured."""
        return self

    @entry
    def __reduce__(self) -> NoReturn:
        raise DTypeError(
            f"{self!r} can't be pickled: its machine code and its variables are this process's own. Pickle "
            "the function that it was traced from, and call get_concrete_function where it is loaded; its "
            ".graph can be pickled too."
        )

    # inside

    def _section(self, inputs: Sequence[Any]) -> Section:
        return self.section if self._shaped is None else self._shaped.section(inputs)

    def _long(self, *args: Any) -> Any:
        return self._call(args, {})

    def _call(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        inputs = self._fit(args, kwargs).inputs
        as_given = not kwargs and len(args) == len(inputs) and all(type(x) is EagerTensor for x in args)
        if as_given and self._section(inputs).runner.called and dispatch.current() is EAGER:
            self._short = self.short(range(len(args)), args, (), self._long_way)
        return self.run(inputs)

    def _fit(self, args: Sequence[Any], kwargs: dict[str, Any]) -> CallArguments:
        structure, leaves = self.key
        names = self._signature.leaf_names(structure)
        try:
            values = self._signature.completed(args, kwargs, self._static)
            given = parts(structure, tuple(values.values()))
        except DTypeError as error:
            flat = one_by_one(leaves, names, args, kwargs)
            if flat is None:
                raise DTypeError(
                    f"{error} It was traced as {self!r}, whose tensors may also come one by one."
                ) from None
            given = flat
        fitted = [self._fit_leaf(*row) for row in zip(leaves, given, names, strict=True)]
        call = self._signature.call(unflatten(structure, fitted))
        if _variables(call.key) != _variables(self.key):
            raise DTypeError(
                f"{self!r} was called with variables that coincide otherwise than in its trace; get another."
            )
        return call

    @cached_property
    def _static(self) -> dict[str, Any]:
        """The parameters without tensors, which a call may leave out, and their values."""
        args, kwargs = self.structured_input_signature
        names = [p.name for p in self._signature.parameters]
        values = {**dict(zip(names, args, strict=False)), **kwargs}
        return {n: v for n, v in values.items() if not any(isinstance(x, TensorSpec) for x in flatten(v)[0])}

    def _fit_leaf(self, wanted: Leaf, value: Any, name: str) -> Any:
        if isinstance(wanted, TensorLeaf):
            try:
                return as_tensor(wanted.spec, value)
            except DTypeError as error:
                raise InvalidArgumentError(
                    f"{self.name!r} was traced with {name}: {wanted}. {error}; get another trace for it."
                ) from None
        given = variable_leaf(value, {}) if isinstance(value, AbstractVariable) else static_leaf(value)
        if isinstance(wanted, VariableLeaf) and isinstance(given, VariableLeaf):
            given = replace(given, alias=wanted.alias)
        if wanted != given:
            raise DTypeError(
                f"{self.name!r} was traced with {name} = {wanted} and can't be called with {given}; "
                "get another concrete function for it."
            )
        return value


def _variables(key: Key) -> list[Leaf]:
    return [leaf for leaf in key[1] if isinstance(leaf, VariableLeaf)]


def trace(
    function: Callable[..., Any],
    signature: Signature,
    call: CallArguments,
    name: str,
    creation: Creation,
    options: CompileOptions,
    builder: GraphBuilder | None = None,
) -> ConcreteFunction:
    """Run ``function`` once with symbols for tensors, and keep the graph of what it did.

    ``builder`` takes the nodes, in place of a plain one.
    """
    concrete = _trace(function, signature, call, name, creation, frozenset(), options, builder)
    captured = {id(source) for source in concrete.section.captured}
    variables = [x for x in call.inputs if isinstance(x, AbstractVariable)]
    shared = frozenset(id(v) for v in variables if id(v) in captured)
    if not shared:
        return concrete
    again = None if builder is None else builder.inner(name)
    return _trace(function, signature, call, name, creation, shared, options, again)


def _trace(
    function: Callable[..., Any],
    signature: Signature,
    call: CallArguments,
    name: str,
    creation: Creation,
    shared: frozenset[int],
    options: CompileOptions,
    builder: GraphBuilder | None,
) -> ConcreteFunction:
    """``shared`` are the ids of variables that are an argument and also captured: both are one input."""
    tracer = Tracer(name, creation, options)
    tracer.builder = builder or tracer.builder
    leaves = _symbolic(tracer, call, signature.leaf_names(call.structure), shared)
    values = unflatten(call.structure, leaves)
    args, kwargs = signature.spread(values)
    with tracing(tracer):
        result = function(*args, **kwargs)
    signature.check_unmodified(values, call.structure, leaves)
    structure, outputs = collect(result, tracer)
    graph = eliminate_dead_code(tracer.builder.finish(outputs, tracer.updates()))
    section = Section(
        tracer, graph, graph.inputs, graph.outputs, acting(graph.nodes), options=options, bound=tracer.bound
    )
    same = [x if id(x) in shared else None for x in call.inputs if isinstance(x, AbstractVariable)]
    return ConcreteFunction(section, signature, call.key, structure, same)


def _symbolic(tracer: Tracer, call: CallArguments, names: Sequence[str], shared: frozenset[int]) -> list[Any]:
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
    shape = variable.shape if variable.shape.is_static else EAGER.read(variable)._array.shape
    found._tensor = wrap(np.broadcast_to(np.zeros((), variable.dtype.dtype), shape))
    return found
