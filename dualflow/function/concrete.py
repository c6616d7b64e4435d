"""One trace of a function: its graph, compiled, and called with arguments like those it was traced with."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from dualflow.core import dispatch
from dualflow.core.dispatch import AbstractVariable
from dualflow.core.errors import DTypeError, FailedPreconditionError, InvalidArgumentError
from dualflow.core.locks import cached_attribute
from dualflow.core.records import replace
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry, hide_frames
from dualflow.core.tree import Structure, flatten, unflatten
from dualflow.eager.engine import EAGER
from dualflow.eager.tensor import EagerTensor
from dualflow.function.arguments.match_structure import as_tensor, match_structure, match_tensors
from dualflow.function.arguments.results import Packer
from dualflow.function.arguments.signature import CallArguments, Key, Signature
from dualflow.function.arguments.trace_key import Leaf, TensorLeaf, VariableLeaf, static_leaf, variable_leaf
from dualflow.function.calling.array_ownership import array_of
from dualflow.function.calling.backend_door import numba_function, numba_source, short_way
from dualflow.function.calling.compiled_graph import CompiledGraph
from dualflow.function.calling.recent_calls import LongWay, Names
from dualflow.function.calling.specialise_sizes import SpecialisedSizes
from dualflow.function.calling.status import status
from dualflow.function.calling.subtrace import Subtrace
from dualflow.graph.ir import Graph

if TYPE_CHECKING:
    from dualflow.function.calling.memory_budget import MemoryReport
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
        self, subtrace: Subtrace, signature: Signature, key: Key, structure: Structure, shared: Sequence[Any]
    ) -> None:
        self.subtrace = subtrace
        self.key = key
        self.used = 0
        self._interpreted_at = 0
        self._signature = signature
        self._structure = structure
        self.pack = Packer(structure)
        static = all(v.spec.shape.is_static for v in subtrace.graph.arguments)
        self._specialised = None if static else SpecialisedSizes(subtrace)
        self._shared = tuple(shared)
        self._short: Callable[..., Any] | None = None
        self._long_way = LongWay(self._long)

    # running

    def run(self, inputs: Sequence[Any]) -> Any:
        """The function's result for the tensors and variables among the arguments of a call."""
        subtrace = self.subtrace_for(inputs)
        if not subtrace.options.interpret_first:
            return self.pack(subtrace(inputs))
        before, call = subtrace.interpreted_calls, self.used
        outputs = subtrace(inputs)
        if subtrace.interpreted_calls > before:
            self._interpreted_at = call
        return self.pack(outputs)

    def short(
        self, places: Sequence[int], values: Sequence[Any], names: Names, long_way: LongWay
    ) -> Callable[..., Any]:
        """This trace as a function of values like these, of which those at ``places`` are its inputs.

        See ``short_way`` in ``calling/builtin_call.py``. What it can't serve it gives to ``long_way``, with
        the last values by these names.
        """
        compiled = self.subtrace_for([values[i] for i in places]).compiled
        way = len(values), names, long_way
        found = compiled.shorts.get(way)
        if found is None:
            if compiled.interpreted:
                return long_way.named(names)
            found = short_way(compiled, long_way.named(names), self.pack, places, values)
            compiled.shorts[way] = found
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
            v is same if same is not None else not any(v is c for c in self.subtrace.captured)
            for v, same in zip(variables, self._shared, strict=True)
        )

    # looking

    @property
    def _compiled(self) -> CompiledGraph:
        """What runs: for open sizes, what ran last."""
        return (self.subtrace if self._specialised is None else self._specialised.latest()).compiled

    @property
    def sized(self) -> bool:
        """Whether all sizes are known, from the trace or from a call, so that it can be compiled."""
        return self._specialised is None or self._specialised.called

    @property
    def name(self) -> str:
        return self.subtrace.graph.name

    @property
    def graph(self) -> Graph:
        """The computation as it was traced; print it."""
        return self.subtrace.graph

    @property
    @entry
    def optimised_graph(self) -> Graph:
        """The computation as it runs, after all passes."""
        return self._compiled.optimised

    @property
    @entry
    def parts(self) -> Sequence[PartReport]:
        """How each part runs: natively, through NumPy or in Python."""
        return self._compiled.executable.parts

    @property
    def first_calls(self) -> str:
        """What NumPy has run of it while a thread compiled; empty where nothing."""
        if not self._interpreted_at:
            return ""
        if not self.wait(0):
            return f"{self!r} runs through NumPy while a thread compiles it"
        return f"{self!r} ran through NumPy up to call {self._interpreted_at}, and is compiled since"

    @property
    def executed(self) -> str:
        """By how much its kernels execute more than the work of their ops; empty where they do not."""
        most = max([graph.executed for graph in self._graphs], default=1.0)
        return "" if most < 1.005 else f"{self!r}: its kernels execute {most:.2f} times the work of their ops"

    def wait(self, timeout: float | None) -> bool:
        """Wait for the threads that compile it; whether all have ended after so many seconds at most."""
        end = None if timeout is None else time.monotonic() + timeout
        return all(g.wait(None if end is None else max(0.0, end - time.monotonic())) for g in self._graphs)

    @property
    def _graphs(self) -> list[CompiledGraph]:
        """What runs it, as far as it has been called."""
        several = (self.subtrace,) if self._specialised is None else self._specialised.all()
        return [graph for subtrace in several for graph in subtrace.graphs]

    @property
    @entry
    def memory(self) -> MemoryReport:
        """The memory that a call takes beside its arguments, variables and constants, by its plan.

        Raises:
            FailedPreconditionError: sizes of tensors depend on data, or are open and have not been called.
            ResourceExhaustedError: the function has a memory budget that no plan can keep.

        >>> import dualflow as df
        >>> f = df.function(lambda x: df.sort(df.exp(x)), memory_budget="1MB")
        >>> print(f.get_concrete_function(df.TensorSpec([1000])).memory)
        8 KB at the peak of a call, of a budget of 1 MB; nothing is computed again
        """
        if not self.sized:
            raise FailedPreconditionError(
                f"{self!r} leaves sizes open: its memory is planned for those of a call. Call it first."
            )
        return self._compiled.memory

    @property
    def budgeted(self) -> bool:
        """Whether it has a memory budget."""
        return self.subtrace.options.memory_budget is not None

    @entry
    def status(self) -> str:
        """How the parts of this trace run, why not natively, and what works in this process.

        See :meth:`Function.status`. A trace that leaves sizes open says so until it has been called.

        >>> import dualflow as df
        >>> negate = df.function(lambda x: -x, backend="llvm").get_concrete_function(df.TensorSpec([3]))
        >>> print(negate.status())
        <ConcreteFunction <lambda>(x: float32[3])>
            native: 1 kernel
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
        return self._compiled.text

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
        compiled = self._compiled
        tensors = [array_of(c.source) for c in compiled.of_numbers.captures if not c.variable]
        return numba_source(compiled.of_numbers, tensors)

    @entry
    def njit(self) -> Any:
        """This trace as a function that ``numba.njit`` code can call with arrays.

        What it calls is the default backend's machine code, whichever backend the trace itself has.

        Raises:
            InvalidArgumentError: the graph uses variables, or parts of it don't run natively.
        """
        compiled = self._compiled
        return numba_function(compiled.machine_code, [array_of(x) for x in compiled.captured])

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

    @cached_attribute
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

    def subtrace_for(self, inputs: Sequence[Any]) -> Subtrace:
        return self.subtrace if self._specialised is None else self._specialised.subtrace_for(inputs)

    def _long(self, *args: Any) -> Any:
        return self._call(args, {})

    def _call(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        inputs = self._fit(args, kwargs).inputs
        as_given = not kwargs and len(args) == len(inputs) and all(type(x) is EagerTensor for x in args)
        if as_given and self.subtrace_for(inputs).compiled.called and dispatch.current() is EAGER:
            self._short = self.short(range(len(args)), args, (), self._long_way)
        return self.run(inputs)

    def _fit(self, args: Sequence[Any], kwargs: dict[str, Any]) -> CallArguments:
        structure, leaves = self.key
        names = self._signature.leaf_names(structure)
        try:
            values = self._signature.completed(args, kwargs, self._static)
            given = match_structure(structure, tuple(values.values()))
        except DTypeError as error:
            flat = match_tensors(leaves, names, args, kwargs)
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

    @cached_attribute
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
