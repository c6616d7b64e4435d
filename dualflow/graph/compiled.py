"""The interface of backends: compiled graphs, and reports on them.

Callers, ``compare`` and ``explain`` use this interface, and depend on no backend.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol

import numpy as np

from dualflow.core.records import NamedTuple
from dualflow.core.spec import TensorSpec
from dualflow.graph.effect_log import EffectLog
from dualflow.graph.ir import Capture, Graph, Node, Value
from dualflow.graph.options import CompileOptions
from dualflow.sizes.symbolic_sizes import SizeVariable, evaluate_size

Array = np.ndarray[Any, Any]


class PartKind(StrEnum):
    """The kinds of code that execute a part of a graph."""

    NATIVE = "native"
    NUMPY = "numpy"
    PYTHON = "python"


class PartReport(NamedTuple):
    """A report on a part of a graph: what executes it, and why.

    Attributes:
        kind: what executes it.
        what: its description.
        reason: why it isn't native, or which feature it doesn't use.
        node: the node without native code; None for a native part.
    """

    kind: PartKind
    what: str
    reason: str = ""
    node: Node | None = None


class GraphInputs(NamedTuple):
    """The inputs of a compiled graph, which calls and errors read without the graph.

    Attributes:
        name: the name of the graph.
        arguments: the spec of each argument.
        captures: the source of each capture: the inputs after the arguments.
        capture_specs: the spec of each capture.
        updated: the numbers of the inputs that a call updates.
    """

    name: str
    arguments: tuple[TensorSpec, ...]
    captures: tuple[Capture, ...]
    capture_specs: tuple[TensorSpec, ...]
    updated: tuple[int, ...]

    @classmethod
    def of(cls, graph: Graph) -> GraphInputs:
        """The inputs of ``graph``."""
        specs = tuple([v.spec for v in graph.inputs])
        count = len(graph.arguments)
        return cls(graph.name, specs[:count], graph.captures, specs[count:], graph.updated_inputs)


class KernelReport(NamedTuple):
    """A kernel: its name, and the nodes it computes."""

    name: str
    nodes: tuple[Node, ...]


class CompileStats(NamedTuple):
    """Counts of the parts of a compiled graph.

    Attributes:
        kernels: its loop nests.
        products: the number of matrix products.
        host_calls: the number of nodes that run through NumPy or in Python.
        arena_bytes: the memory of its intermediates.
        keeps_arena: whether the arena is kept between calls.
        recomputation_ratio: the work of its loop nests with recomputation, divided by that of their ops.
        tasks: the number of tasks that may run at the same time; 0 if all calls run in order.
    """

    kernels: tuple[KernelReport, ...]
    products: int
    host_calls: int
    arena_bytes: int
    keeps_arena: bool
    recomputation_ratio: float = 1.0
    tasks: int = 0


class MemoryBlock(NamedTuple):
    """Memory for an intermediate value.

    Attributes:
        value: the value of the graph; None for what the plan adds, such as copies.
        birth: the step that writes it.
        reads: the steps that read it, in order.
        nbytes: its size in bytes.
    """

    value: Value | None
    birth: int
    reads: tuple[int, ...]
    nbytes: int


class Footprint(NamedTuple):
    """The memory that a call of a graph takes, by the plan of its values.

    Arguments, variables and constants exist before and after the call and are not counted; neither is the
    scratch memory of kernels.

    Attributes:
        steps: the node of the graph that each step runs; None for what the plan adds.
        blocks: the intermediate values.
        non_contiguous: the values of the graph that are not contiguous in memory.
        arena: the bytes of the arena for all blocks; the memory of dead values is reused.
        held: the bytes allocated from the first step to the last: results, and arrays of host calls.
    """

    steps: tuple[Node | None, ...]
    blocks: tuple[MemoryBlock, ...]
    non_contiguous: frozenset[Value]
    arena: int
    held: int

    @property
    def peak(self) -> int:
        """The largest number of bytes allocated at a time."""
        return self.arena + self.held

    def with_sizes(self, sizes: Mapping[SizeVariable, int]) -> Footprint:
        """The memory of a call with these numbers for size variables."""
        blocks = [block._replace(nbytes=evaluate_size(block.nbytes, sizes)) for block in self.blocks]
        arena, held = evaluate_size(self.arena, sizes), evaluate_size(self.held, sizes)
        return self._replace(blocks=tuple(blocks), arena=arena, held=held)


class CodeSource(StrEnum):
    """The sources of compiled code, the cheapest first."""

    NONE = "none"
    """There is none."""
    PROCESS = "process"
    """Another graph of this process has the same code."""
    DISK = "disk"
    """An earlier process has compiled it."""
    COMPILED = "compiled"
    """This process has compiled it."""


class CompileCosts(NamedTuple):
    """The seconds that the steps of a compile take, after the passes.

    Attributes:
        emission: the memory plan, and writing the code.
        compilation: the compiler's work when nothing is cached.
        linking: loading compiled code.
        paid: what this process spent on compilation and linking.
        source: where the code comes from.
    """

    emission: float
    compilation: float
    linking: float
    paid: float
    source: CodeSource


class TimedKind(StrEnum):
    """The kinds of timed steps of a call."""

    KERNEL = "kernel"
    """A loop nest."""
    PRODUCT = "product"
    """A matrix product."""
    COPY = "copy"
    """A copy of memory."""
    HOST = "host"
    """An op that runs through NumPy or in Python."""
    CONTROL = "control"
    """A conditional or a loop."""
    NATIVE = "native"
    """Machine code that is not divided: concurrent calls, or all calls."""
    TRANSFER = "transfer"
    """A copy between the memories of the host and of a device."""
    WAIT = "wait"
    """The host waits for a device."""


class StepTime(NamedTuple):
    """The time of a step of one call.

    Attributes:
        kind: what it is.
        node: the node that it computes; None if it is not divided into nodes.
        seconds: its duration; of a step in a loop, the sum of all iterations.
        runs: how often it ran.
        slowest: the duration of the slowest run.
        iterations: the trip count of a loop.
        steps: the steps inside a conditional or a loop that ran, in order.
        nbytes: the bytes of a transfer.
        label: the name of a step without a node; "" for that of its kind.
        kernel: the name of its kernel, in backends whose kernels are not those of the listing.
    """

    kind: TimedKind
    node: Node | None
    seconds: float
    runs: int = 1
    slowest: float = 0.0
    iterations: int = 0
    steps: tuple[StepTime, ...] = ()
    nbytes: int = 0
    label: str = ""
    kernel: str = ""


StepTimer = Callable[[Sequence[Array]], list[StepTime]]


class Compiled(Protocol):
    """The interface of a compiled graph.

    Attributes:
        graph: what it computes, after all passes.
        inputs: the inputs of the graph.
        updates_in_place: whether ``run`` may write to the buffers of variables themselves: it changes nothing
            if it fails, and no Python code runs in it between the writes.
    """

    @property
    def graph(self) -> Graph: ...

    @property
    def inputs(self) -> GraphInputs: ...

    @property
    def updates_in_place(self) -> bool: ...

    @property
    def parts(self) -> Sequence[PartReport]:
        """A report on each part of the graph."""
        ...

    def run(self, arrays: Sequence[Array], effect_log: EffectLog | None = None) -> list[Array]:
        """The graph's outputs for these inputs: C-contiguous arrays of the inputs' dtypes and shapes.

        The arrays of updated variables are written to, after everything in the graph that may fail.
        ``effect_log`` records what runs through NumPy and Python, and what ended the call if it fails.
        """
        ...


class Backend(Protocol):
    """A module that compiles graphs, and reports on compiled ones."""

    def build(self, graph: Graph, options: CompileOptions) -> Compiled:
        """Compile ``graph``, whose passes have run.

        Raises:
            UndecidedSize: no one program serves all values of its size variables.
        """
        ...

    def footprint(self, graph: Graph, *, in_order: bool = True) -> Footprint:
        """The memory that a call of ``graph``, an optimised graph, takes.

        Symbolic sizes are those of arguments. ``in_order``: its calls run one after another, as those of a
        graph with a memory budget do.
        """
        ...

    def compile_stats(self, compiled: Any) -> CompileStats:
        """The kernels, products and host calls of the program."""
        ...

    def costs(self, compiled: Any) -> CompileCosts:
        """The costs of compiling it, measured now if possible."""
        ...

    def step_timer(self, compiled: Any) -> StepTimer:
        """A function that runs a call for the arrays of :meth:`Compiled.run` and returns each step's time."""
        ...


def count_text(count: int, one: str, several: str = "") -> str:
    return f"{count} {one if count == 1 else several or one + 's'}"


def whole_call(compiled: Compiled, arrays: Sequence[Array]) -> list[StepTime]:
    """One call as a single step."""
    begin = time.perf_counter()
    compiled.run(arrays)
    return [StepTime(TimedKind.NATIVE, None, time.perf_counter() - begin)]
