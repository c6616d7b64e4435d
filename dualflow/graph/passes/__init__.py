"""The passes, in the one order in which they run.

A pass is a plain function from a graph to a graph that computes the same results, value for value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from dualflow.core.records import NamedTuple
from dualflow.graph.cost_model import CPU, CostModel
from dualflow.graph.ir import Graph, verify
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.algebra import simplify_algebra
from dualflow.graph.passes.assignments import drop_assignments
from dualflow.graph.passes.batching import batch_products
from dualflow.graph.passes.bodies import in_bodies
from dualflow.graph.passes.branches import take_branches
from dualflow.graph.passes.common_subexpressions import merge_common_subexpressions
from dualflow.graph.passes.complex_parts import part_complex
from dualflow.graph.passes.constant_folding import fold_constants
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.graph.passes.epilogues import add_in_products
from dualflow.graph.passes.fourier import transform_in_steps
from dualflow.graph.passes.fusion import fuse
from dualflow.graph.passes.halves import widen_halves
from dualflow.graph.passes.hoist_random import draw_before_loops
from dualflow.graph.passes.invariants import hoist_invariants
from dualflow.graph.passes.loops import merge_loops
from dualflow.graph.passes.map_over_open_stacks import loop_over_stacks
from dualflow.graph.passes.partial_products import cut_products
from dualflow.graph.passes.scatters import add_in_scatters
from dualflow.graph.passes.sparse_updates import step_on_rows
from dualflow.graph.passes.trimming import trim_control
from dualflow.graph.passes.unroll_trivial_loops import count_trips
from dualflow.graph.scalars import bodies


class Pass(NamedTuple):
    """One step of the optimiser, and why it stands where it does."""

    name: str
    function: Callable[[Graph], Graph]
    reason: str

    def run(self, graph: Graph, options: CompileOptions) -> Graph:
        """``graph`` after the step."""
        return self.function(graph)


class RoomyPass(NamedTuple):
    """A step that takes memory to save time, and is told how many bytes of it."""

    name: str
    function: Callable[[Graph, int], Graph]
    reason: str

    def run(self, graph: Graph, options: CompileOptions) -> Graph:
        """``graph`` after the step."""
        return self.function(graph, options.stack_budget)


class LoopPass(NamedTuple):
    """A step for a backend whose loops hold complex numbers, as the default's do."""

    name: str
    function: Callable[[Graph], Graph]
    reason: str

    def run(self, graph: Graph, options: CompileOptions) -> Graph:
        """``graph`` after the step."""
        return self.function(graph) if options.backend == "llvm" else graph


class OptionPass(NamedTuple):
    """A step that reads the options, such as the figures of the cost model."""

    name: str
    function: Callable[[Graph, CompileOptions], Graph]
    reason: str

    def run(self, graph: Graph, options: CompileOptions) -> Graph:
        """``graph`` after the step."""
        return self.function(graph, options)


AnyPass = Pass | RoomyPass | LoopPass | OptionPass


def simplify_body(graph: Graph) -> Graph:
    """A body after the passes that go before those for bodies."""
    for step in _INSIDE:
        graph = step.function(graph)
    return graph


def fuse_bodies(graph: Graph, costs: CostModel = CPU) -> Graph:
    """``graph`` whose bodies have gone through the passes that end with fusion."""
    return in_bodies(lambda body: fuse(_before_fusion_of_body(body, costs), costs))(graph)


def _before_fusion_of_body(graph: Graph, costs: CostModel) -> Graph:
    return add_in_scatters(step_on_rows(add_in_products(graph), costs))


_INSIDE: Final = (
    Pass("loops", merge_loops, "first: a loop is found again by its inputs, which others would replace"),
    Pass("stacks", loop_over_stacks, "no other pass knows what to do with sizes that are not known"),
    Pass("unused", eliminate_dead_code, "the later passes need not look at what nobody reads"),
    Pass("constants", fold_constants, "what is known now isn't computed at each call"),
    Pass("branches", take_branches, "an index is known once constants are"),
    Pass("trip counts", count_trips, "what a loop of one iteration hides, the passes below see"),
    Pass("algebra", simplify_algebra, "an identity removed is a loop, or a copy, saved"),
    Pass("common", merge_common_subexpressions, "gradients repeat the forward pass; once is enough"),
    Pass("leftovers", eliminate_dead_code, "the rewrites above leave their old nodes behind"),
    Pass("cut", cut_products, "once the leftovers, which read products too, are gone"),
    Pass("trimming", trim_control, "values of choices, loops and qr are needed one by one, not as a node"),
)

SIMPLIFICATIONS: Final[tuple[AnyPass, ...]] = (
    Pass("assignments", drop_assignments, "only calls that failed ask what a variable held on the way"),
    *_INSIDE,
    Pass("bodies", in_bodies(simplify_body), "what is inside branches and loops runs as often as anything"),
    Pass(
        "invariants",
        hoist_invariants,
        "what each iteration computes again is what the passes have left of it",
    ),
    RoomyPass(
        "draws", draw_before_loops, "the number of iterations is known by now, and what else a body does"
    ),
)

_BEFORE_FUSION: Final[tuple[AnyPass, ...]] = (
    *SIMPLIFICATIONS,
    LoopPass(
        "parts", part_complex, "algebra and gradients see each op once; loops compute with real numbers"
    ),
    Pass("halves", widen_halves, "algebra and gradients see each op once, all that follow see no float16"),
    OptionPass(
        "products",
        lambda graph, options: batch_products(graph, options.stack_budget, options.cost_model),
        "many small products are slower than one, and hold what could be fused",
    ),
    Pass("epilogues", add_in_products, "BLAS adds a product to a matrix as fast as it writes one"),
    LoopPass("fourier", transform_in_steps, "tables are for what is left of transforms when all is simple"),
    OptionPass(
        "rows",
        lambda graph, options: step_on_rows(graph, options.cost_model),
        "before sums are scattered onto what they are added to",
    ),
    Pass("scatters", add_in_scatters, "a row added in its place saves zeros and a sum over everything"),
)

PASSES: Final[tuple[AnyPass, ...]] = (
    *_BEFORE_FUSION,
    OptionPass(
        "fusion",
        lambda graph, options: fuse(graph, options.cost_model),
        "last: it hides nodes in bodies, where no other pass looks",
    ),
    OptionPass(
        "inside",
        lambda graph, options: fuse_bodies(graph, options.cost_model),
        "choices and loops that no kernel holds have kernels of their own",
    ),
)


def optimise(
    graph: Graph,
    options: CompileOptions,
    observe: Callable[[str, Graph], None] | None = None,
    passes: Sequence[AnyPass] = PASSES,
) -> Graph:
    """``graph`` after every pass of ``passes`` in turn; ``observe(name, graph)`` sees each result.

    Raises:
        InternalError: the options ask for checking, and a pass has broken a rule of the IR.
    """
    for step in passes:
        graph = step.run(graph, options)
        if options.checking:
            _check(graph)
        if observe is not None:
            observe(step.name, graph)
    return graph


def _check(graph: Graph) -> None:
    """Raise InternalError where ``graph``, or one inside of it, breaks a rule of the IR."""
    pending = [graph]
    while pending:
        current = pending.pop()
        verify(current)
        pending += [body for node in current.nodes for _, body in node.bodies]


def before_fusion(graph: Graph, options: CompileOptions) -> Iterator[Graph]:
    """What fusion is given when ``graph`` is optimised: it, and bodies of loops and choices in no kernel."""
    pending = [optimise(graph, options, passes=_BEFORE_FUSION)]
    while pending:
        given = pending.pop()
        yield given
        inside = [body for node in fuse(given, options.cost_model).nodes for body in bodies(node)]
        pending += [_before_fusion_of_body(body, options.cost_model) for body in inside]
