"""``ConcreteFunction``: one trace of a function, callable with arguments that match those of the trace."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from dualflow.core import dispatch
from dualflow.core.dispatch import AbstractVariable
from dualflow.core.errors import DTypeError, FailedPreconditionError, InvalidArgumentError
from dualflow.core.locks import cached_attribute
from dualflow.core.records import replace
from dualflow.core.report_text import ReportText, escaped, preformatted
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry, hide_frames
from dualflow.core.tree import Structure, flatten, unflatten
from dualflow.eager.engine import EAGER
from dualflow.eager.tensor import EagerTensor
from dualflow.function.arguments.match_structure import as_tensor, match_arguments, match_tensors
from dualflow.function.arguments.signature import CallArguments, Key, Signature
from dualflow.function.arguments.trace_key import Leaf, TensorLeaf, VariableLeaf, static_leaf, variable_leaf
from dualflow.function.calls.array_ownership import array_of
from dualflow.function.calls.call_form import REFUSED, refuse
from dualflow.function.calls.compiled_graph import CompiledGraph
from dualflow.function.calls.exported_graph import exported_graph
from dualflow.function.calls.exports import write_c, write_onnx
from dualflow.function.calls.lazy_backends import numba_function, numba_source
from dualflow.function.calls.recorded_trace import RecordedTrace
from dualflow.function.calls.status_text import status
from dualflow.function.calls.traced_graph import TracedGraph
from dualflow.graph.ir import Graph
from dualflow.graph.user_rewrites import REWRITES

if TYPE_CHECKING:
    from dualflow.function.calls.memory_budget import MemoryReport
    from dualflow.graph.compiled import PartReport


class ConcreteFunction(TracedGraph):
    """A function traced for arguments of certain shapes, dtypes and Python values.

    Returned by :meth:`Function.get_concrete_function`; a :class:`Function` has one for each kind of call. It
    is called with the arguments of the Python function, where Python values may be omitted but not changed;
    or with its tensors alone, one by one instead of in lists and dicts.

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
        self,
        trace: RecordedTrace,
        *,
        signature: Signature,
        names: Sequence[str],
        key: Key,
        structure: Structure,
        captured_arguments: Sequence[AbstractVariable | None],
    ) -> None:
        super().__init__(trace)
        # for each argument that is a variable, the captured variable that it must be; None if it must not
        # be a captured one
        self._captured_arguments = tuple(captured_arguments)
        self.key = key
        self.leaf_names = names
        self.last_call = 0
        """The number of the function's latest call that this trace served."""
        self._last_interpreted_call = 0
        self._signature = signature
        self._structure = structure
        self._fast: Callable[..., Any] = refuse
        self.for_all_batches: ConcreteFunction | None = None
        """The trace that runs the function's calls in place of this one, with dynamic first axes."""

    # calls

    def run(self, arguments: Sequence[Any]) -> Any:
        """The function's result for the tensors and variables among the arguments of a call."""
        if not self.options.interpret_first:
            return super().run(arguments)
        before, call = self.interpreted_calls, self.last_call
        result = super().run(arguments)
        if self.interpreted_calls > before:
            self._last_interpreted_call = call
        return result

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's result.

        Raises:
            DTypeError: a Python value differs from the traced one, or the arguments have another structure.
            InvalidArgumentError: a tensor has another dtype or shape than the traced one.
        """
        try:
            if not kwargs and dispatch.current() is EAGER and (result := self._fast(*args)) is not REFUSED:
                return result
            return self._call(args, kwargs)
        except Exception as error:
            hide_frames(error)
            raise

    def serves(self, inputs: Sequence[Any]) -> bool:
        """Whether this trace is valid for ``inputs``.

        The guards must hold, and each variable among them must be the captured variable that it was in the
        trace, or none of the captured ones.
        """
        variables = [x for x in inputs if isinstance(x, AbstractVariable)]
        for variable, captured in zip(variables, self._captured_arguments, strict=True):
            if captured is not None and variable is not captured:
                return False
            if captured is None and any(variable is source for source in self.captured):
                return False
        return self.guards.hold(inputs)

    # Inspection. With dynamic sizes, ``_latest`` is the program that ran last, which may be for all sizes;
    # ``_latest_inputs`` are the shapes of the last call that took no fast path, and ``_latest_static`` is the
    # program for these shapes alone.

    @property
    def _latest(self) -> CompiledGraph:
        """The compiled graph: for dynamic sizes, the one that ran last.

        Raises:
            FailedPreconditionError: sizes are dynamic, and the trace has not been called yet.
        """
        specialisations = self._specialisations
        if not specialisations:
            raise FailedPreconditionError(
                f"{self.name!r} has dynamic sizes and is compiled for those of a call; call it."
            )
        return specialisations[-1].compiled.latest

    @property
    def _latest_static(self) -> CompiledGraph:
        """The compiled graph for the static shapes of the latest call that took no fast path.

        Raises:
            FailedPreconditionError: sizes are dynamic, and the trace has not been called yet.
        """
        inputs = self._latest_inputs
        return self._latest if inputs is None else self.with_static_shapes(inputs).compiled

    @property
    def _latest_inputs(self) -> list[TensorSpec] | None:
        """Specs of the latest call that took no fast path; None without one, or if no size is dynamic."""
        if self._variants is None or not self._variants.latest_shapes:
            return None
        specs = [v.spec for v in self.graph.arguments]
        return [TensorSpec(s, x.dtype) for s, x in zip(self._variants.latest_shapes, specs, strict=True)]

    @property
    def has_all_sizes(self) -> bool:
        """Whether all sizes are known, from the trace or a call, so that the trace can be compiled."""
        return bool(self._specialisations)

    @property
    def name(self) -> str:
        return self.graph.name

    @property
    @entry
    def optimised_graph(self) -> Graph:
        """The computation as it runs, after all passes.

        Of a trace with dynamic sizes it is that of the latest call, or else that of all sizes.
        """
        if not self.has_all_sizes:
            return exported_graph(self.graph, self.options, self.options.backend)
        return self._latest.optimised

    @property
    @entry
    def parts(self) -> Sequence[PartReport]:
        """A report for each part of the graph: whether it runs natively, through NumPy or in Python."""
        return self._latest.executable.parts

    @property
    def interpretation_note(self) -> str:
        """A line of text about calls that NumPy has run while a thread compiled; empty if there were none."""
        if not self._last_interpreted_call:
            return ""
        if not self.wait(0):
            return f"{self!r} runs through NumPy while a thread compiles it"
        return f"{self!r} ran through NumPy up to call {self._last_interpreted_call}, and is compiled since"

    def wait(self, timeout: float | None) -> bool:
        """Wait at most ``timeout`` seconds for threads that compile it; returns whether all have ended."""
        end = None if timeout is None else time.monotonic() + timeout
        graphs = [graph for trace in self._specialisations for graph in trace.graphs]
        return all(g.wait(None if end is None else max(0.0, end - time.monotonic())) for g in graphs)

    @property
    @entry
    def memory(self) -> MemoryReport:
        """The memory of a call by its plan, without its arguments, variables and constants.

        Raises:
            FailedPreconditionError: sizes of tensors depend on data, or are dynamic and have not been called.
            ResourceExhaustedError: the function has a memory budget that no plan can keep.

        >>> import dualflow as df
        >>> f = df.function(lambda x: df.sort(df.exp(x)), memory_budget="1MB")
        >>> print(f.get_concrete_function(df.TensorSpec([1000])).memory)
        8 KB at the peak of a call, of a budget of 1 MB; nothing is computed again
        """
        if not self.has_all_sizes:
            raise FailedPreconditionError(
                f"{self!r} has dynamic sizes: its memory is planned for those of a call. Call it first."
            )
        inputs = self._latest_inputs
        if inputs is None or not self.budgeted:
            return self._latest_static.memory()
        return self.compiled_for(inputs).memory(inputs)

    @property
    def budgeted(self) -> bool:
        """Whether it has a memory budget."""
        return self.options.memory_budget is not None

    @entry
    def status(self) -> str:
        """A report of how the parts of this trace run, why not natively, and the process's fast paths.

        See :meth:`Function.status`. A trace with dynamic sizes has no parts until it has been called.

        >>> import dualflow as df
        >>> negate = df.function(lambda x: -x, backend="llvm").get_concrete_function(df.TensorSpec([3]))
        >>> print(negate.status())
        <ConcreteFunction <lambda>(x: float32[3])>
            native: 1 kernel
        in this process
            C fast call: ...
        """
        return status([self])

    @property
    @entry
    def kernels(self) -> str:
        """The compiled program as Python source, with comments: kernels, and the function that calls them.

        It is what the Numba backend runs; other backends compile the same loop nests. Saved to a file it
        needs only NumPy and Numba: its function takes an array for each tensor among the arguments, then for
        each variable and captured tensor. The text of :meth:`source` has the captured tensors too.
        """
        return ReportText(self._latest_static.text)

    @entry
    def source(self, backend: str = "numba") -> str:
        """This trace as one Python file, which needs NumPy and Numba, but not dualflow.

        The file has a function of the trace's name. It takes an array for each tensor among the arguments
        and then for each variable, which it updates in place, and returns a list of arrays. Captured
        tensors are part of the file. Dynamic sizes of the trace are those of the arrays.

        Args:
            backend: ``"numba"``, the one backend whose programs are files.

        Raises:
            InvalidArgumentError: another backend; or a part of the graph runs in Python, or through code of
                dualflow. Calls of NumPy functions, such as sorting, are part of it. Or sizes are dynamic,
                and the size of a tensor depends on data.

        >>> import dualflow as df
        >>> f = df.function(lambda x: df.reduce_sum(x * x), name="squares")
        >>> text = f.get_concrete_function(df.TensorSpec([3])).source()
        >>> "def squares(x):" in text, "import dualflow" in text
        (True, False)
        """
        if backend != "numba":
            raise InvalidArgumentError(f"There is no source for the backend {backend!r}: use 'numba'.")
        if self._variants is None:
            graph = self.compiled.without_symbolic_sizes
        else:
            self.guards.require_none(repr(self))
            graph = exported_graph(self.graph, self.options, "numba")
        text = numba_source(graph, [array_of(c.source) for c in graph.captures if not c.variable])
        return ReportText(text)

    @entry
    def export(
        self, folder: str | os.PathLike[str], to: str = "c", *, cpu: str = "native", force: bool = False
    ) -> list[str]:
        """Write this trace as a program for C or the web, or as ONNX; returns the paths of the files.

        The program needs neither Python nor dualflow. Its function has the trace's name. In C it takes a
        pointer for each tensor among the arguments and for each variable, which it updates in place; the
        dynamic sizes of the trace; a pointer for each output; and a workspace. The header documents
        them. In JavaScript it takes typed arrays by name. Captured tensors are part of the program.

        A model of ONNX takes the tensors among the arguments by name. Variables are part of it; one that the
        function assigns is an input with its value as the default, and an output with the new value.

        Args:
            folder: where the files are written; it is created if it doesn't exist. For ONNX, the file.
            to: ``"c"`` for ``NAME.c``, ``NAME.h``, ``CMakeLists.txt`` and an example ``main.c``;
                ``"library"`` for these and a shared library of them; ``"wasm"`` for a WebAssembly module and
                the JavaScript module that calls it; ``"html"`` for one page that runs the function;
                ``"onnx"`` for an ONNX file.
            cpu: the processor of the library: ``"native"`` for this one, ``"x86-64-v3"``, ``"generic"`` or
                ``"aarch64"``.
            force: whether to replace files that dualflow has not written.

        Raises:
            InvalidArgumentError: another target or processor; or the target has no form of an op.
            FailedPreconditionError: a file exists that dualflow has not written, or no compiler works.
            NotFoundError: the package onnx, which ``pip install 'dualflow[onnx]'`` brings, is not installed.

        >>> import os, tempfile
        >>> import dualflow as df
        >>> f = df.function(lambda x: df.exp(x) + 1, name="shifted")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     paths = f.get_concrete_function(df.TensorSpec([None], name="x")).export(folder)
        ...     header = open(os.path.join(folder, "shifted.h")).read()
        >>> "int shifted(const float *x, int64_t x_size0, float *out0, void *workspace);" in header
        True
        """
        self.guards.require_none(repr(self))
        path, options = os.fspath(folder), self.trace.active_options
        if to == "onnx":
            return write_onnx(self.graph, options, self.structured_outputs, path, force=force)
        return write_c(self.graph, options, path, to, cpu=cpu, force=force)

    @entry
    def njit(self) -> Any:
        """This trace as a function that ``numba.njit`` code can call with arrays.

        It calls the default backend's machine code, whichever backend the trace has.

        Raises:
            InvalidArgumentError: the graph uses variables, or parts of it don't run natively.
        """
        compiled = self._latest_static
        return numba_function(compiled.machine_code, [array_of(x) for x in compiled.sources.captured])

    @property
    def parameters(self) -> tuple[inspect.Parameter, ...]:
        """The parameters of the traced Python function."""
        return self._signature.parameters

    @property
    def variables(self) -> tuple[Any, ...]:
        """The variables that the function captures."""
        return tuple([c.source for c in self.graph.captures if c.variable])

    @property
    def trainable_variables(self) -> tuple[Any, ...]:
        """The captured variables that tapes watch automatically."""
        return tuple([v for v in self.variables if v.trainable])

    @property
    def inputs(self) -> list[TensorSpec]:
        """The specs of the graph's inputs: arguments, then captures."""
        return [v.spec for v in self.graph.inputs]

    @property
    def outputs(self) -> list[TensorSpec]:
        """The specs of the results, flattened."""
        return [v.spec for v in self.graph.outputs]

    def add_to_graph(self, g: object = None, overwrite: bool = False) -> None:
        """Does nothing: a graph holds the ops of the functions that are called in it.

        Args:
            g: a graph.
            overwrite: whether a function of the same name is replaced.
        """

    def add_gradient_functions_to_graph(self, g: object = None) -> None:
        """Does nothing: the gradients of a function are traced when they are computed.

        Args:
            g: a graph.
        """

    @property
    def structured_outputs(self) -> Any:
        """The specs of the results, in the structure that the function returns."""
        return unflatten(self._structure, self.outputs)

    @property
    def output_shapes(self) -> Any:
        """The shapes of the results, in the structure that the function returns."""
        return unflatten(self._structure, [spec.shape for spec in self.outputs])

    @property
    def output_dtypes(self) -> Any:
        """The dtypes of the results, in the structure that the function returns."""
        return unflatten(self._structure, [spec.dtype for spec in self.outputs])

    @cached_attribute
    def structured_input_signature(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The positional and the keyword arguments: specs for tensors, the values of others."""
        leaves = [
            TensorSpec(leaf.spec.shape, leaf.spec.dtype, leaf.spec.name or name)
            if isinstance(leaf, TensorLeaf | VariableLeaf)
            else leaf.value
            for leaf, name in zip(self.key.leaves, self.leaf_names, strict=True)
        ]
        args, kwargs = self._signature.spread(unflatten(self.key.structure, leaves))
        return tuple(args), kwargs

    def __repr__(self) -> str:
        shown = ", ".join(f"{n}: {leaf}" for n, leaf in zip(self.leaf_names, self.key.leaves, strict=True))
        return f"<ConcreteFunction {self.name}({shown})>"

    def _repr_html_(self) -> str:
        results = ", ".join(map(str, self.outputs)) or "nothing"
        graph = f"<details><summary>graph</summary>{preformatted(str(self.graph))}</details>"
        return f"<code>{escaped(repr(self))} -&gt; {escaped(results)}</code>{graph}"

    def __copy__(self) -> ConcreteFunction:
        return self

    def __deepcopy__(self, memo: Any) -> ConcreteFunction:
        """Itself, as with a Python function: it is immutable, and refers to the variables it captured."""
        return self

    @entry
    def __reduce__(self) -> NoReturn:
        raise DTypeError(
            f"{self!r} can't be pickled: its machine code and its variables belong to this process. Pickle "
            "the function that it was traced from, and call get_concrete_function where it is loaded; its "
            ".graph can be pickled too."
        )

    def forget_fast_paths(self) -> None:
        """Drop the cached fast path; the next call looks up its program."""
        self._fast = refuse

    def _call(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        inputs = self._fit(args, kwargs).inputs
        if not kwargs and len(args) == len(inputs) and all(type(x) is EagerTensor for x in args):
            generation, compiled = REWRITES.generation, self.compiled_for(inputs)
            if compiled.may_use_fast_path() and dispatch.current() is EAGER:
                self._fast = compiled.fast_path()
                REWRITES.watch(self, generation)
        return self.run(inputs)

    def _fit(self, args: Sequence[Any], kwargs: dict[str, Any]) -> CallArguments:
        """The flattened arguments, converted to the trace's specs; raises if they don't match."""
        (structure, leaves, _), names = self.key, self.leaf_names
        try:
            values = self._signature.completed(args, kwargs, self._static)
            matched = match_arguments(structure, values)
        except DTypeError as error:
            tensors = match_tensors(leaves, names, args, kwargs)
            if tensors is None:
                raise DTypeError(
                    f"{error} It was traced as {self!r}, whose tensors may also be passed one by one."
                ) from None
            matched = tensors
        fitted = [self._fit_leaf(*leaf) for leaf in zip(leaves, matched, names, strict=True)]
        call = self._signature.call(unflatten(structure, fitted))
        if _variables(call.key) != _variables(self.key):
            raise DTypeError(
                f"In the call of {self!r} other arguments are the same variable than in its trace; get "
                "another concrete function for it."
            )
        return call

    @cached_attribute
    def _static(self) -> dict[str, Any]:
        """The values of parameters without tensors, by name; calls may omit these."""
        args, kwargs = self.structured_input_signature
        names = [p.name for p in self._signature.parameters]
        values = {**dict(zip(names, args, strict=False)), **kwargs}
        return {n: v for n, v in values.items() if not any(isinstance(x, TensorSpec) for x in flatten(v)[0])}

    def _fit_leaf(self, traced: Leaf, value: Any, name: str) -> Any:
        """``value`` converted to the spec of a leaf of the trace; raises if it doesn't match."""
        if isinstance(traced, TensorLeaf):
            try:
                return as_tensor(traced.spec, value)
            except DTypeError as error:
                raise InvalidArgumentError(
                    f"{self.name!r} was traced with {name}: {traced}. {error}; get another trace for it."
                ) from None
        passed = variable_leaf(value, {}) if isinstance(value, AbstractVariable) else static_leaf(value)
        if isinstance(traced, VariableLeaf) and isinstance(passed, VariableLeaf):
            passed = replace(passed, alias=traced.alias)
        if traced != passed:
            raise DTypeError(
                f"{self.name!r} was traced with {name} = {traced} and can't be called with {passed}; "
                "get another concrete function for it."
            )
        return value


def _variables(key: Key) -> list[Leaf]:
    return [leaf for leaf in key.leaves if isinstance(leaf, VariableLeaf)]
