"""The passes, in the one order in which they run.

A pass is a function from a graph and compile options to a graph with the same results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Final

from dualflow.core.records import NamedTuple, replace
from dualflow.graph.capabilities import Capabilities
from dualflow.graph.ir import Graph
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.algebra import simplify_algebra
from dualflow.graph.passes.assignments import drop_assignments
from dualflow.graph.passes.common_subexpressions import merge_common_subexpressions
from dualflow.graph.passes.constant_folding import fold_constants
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.graph.passes.fourier_tables import transform_in_steps
from dualflow.graph.passes.fusion import fuse
from dualflow.graph.passes.late_passes import (
    add_in_products,
    add_in_scatters,
    batch_products,
    check_before_reading,
    compute_from_sizes,
    cut_products,
    draw_before_loops,
    has_control,
    hoist_invariants,
    lower_small_operands,
    multiply_integer_matrices,
    run_collectives_natively,
    split_complex,
    split_complex_products,
    step_on_rows,
    sum_integer_matrices,
    sum_integer_products,
    take_branches,
    widen_float16,
    with_static_trip_counts,
)
from dualflow.graph.passes.lower_placement import place_on_host, without_placement
from dualflow.graph.passes.map_over_dynamic_stacks import loop_over_stacks
from dualflow.graph.passes.merge_loops import merge_loops
from dualflow.graph.passes.over_bodies import map_bodies, outside_in
from dualflow.graph.passes.trimming import trim_control
from dualflow.graph.size_guards import guards_hold, verify_with_bodies
from dualflow.graph.user_rewrites import Report, Rewrite

PassFunction = Callable[[Graph, CompileOptions], Graph]


class Pass(NamedTuple):
    """A step of the optimiser.

    Attributes:
        name: unique among the passes.
        reason: why it is at this position.
        function: returns the graph after the step.
        in_bodies: whether it runs on the bodies of branches and loops, too. A run of such passes is applied
            to a graph first, then to the bodies that remain in it, the outer ones first. Other passes leave
            bodies unchanged, or visit them themselves.
        applies: whether it runs for a backend with these capabilities; by default for all.
    """

    name: str
    reason: str
    function: PassFunction
    in_bodies: bool = False
    applies: Callable[[Capabilities], bool] = lambda capabilities: True


def _plain(function: Callable[[Graph], Graph]) -> PassFunction:
    """The pass function of ``function``, which reads no options."""
    return lambda graph, options: function(graph)


SIMPLIFICATIONS: Final = (
    Pass(
        "placement",
        "first: no pass changes what a block of the CPU computes for a device",
        _plain(place_on_host),
        in_bodies=True,
    ),
    Pass(
        "assignments",
        "only the replay of a failed call needs intermediate values of variables, and it reads the trace",
        _plain(drop_assignments),
    ),
    Pass("loops", "first: equal loops are recognised by their inputs", _plain(merge_loops), in_bodies=True),
    Pass(
        "stacks", "later passes need the sizes of a loop's results", _plain(loop_over_stacks), in_bodies=True
    ),
    Pass("unused", "saves the later passes work", _plain(eliminate_dead_code), in_bodies=True),
    Pass(
        "constants",
        "before the branches and trip counts that they decide; algebra computes constants, too",
        lambda graph, options: fold_constants(graph) if has_control(graph) else graph,
        in_bodies=True,
    ),
    Pass("branches", "the index of a branch may be a constant by now", _plain(take_branches), in_bodies=True),
    Pass(
        "iterations",
        "inlines loops of one iteration for the passes below",
        _plain(with_static_trip_counts),
        in_bodies=True,
    ),
    Pass("algebra", "each removed identity saves a loop or a copy", _plain(simplify_algebra), in_bodies=True),
    Pass("common", "gradients repeat the forward pass", _plain(merge_common_subexpressions), in_bodies=True),
    Pass(
        "leftovers",
        "the rewrites above leave replaced nodes in the graph",
        _plain(eliminate_dead_code),
        in_bodies=True,
    ),
    Pass(
        "checks",
        "after the leftovers: what nothing reads is not checked",
        _plain(check_before_reading),
        in_bodies=True,
    ),
    Pass("cut", "after the leftovers, which are consumers of products", _plain(cut_products), in_bodies=True),
    Pass(
        "trimming",
        "unused outputs of branches, loops and qr",
        _plain(trim_control),
        in_bodies=True,
    ),
    Pass("invariants", "bodies are simplified by now", _plain(hoist_invariants)),
    Pass(
        "draws",
        "trip counts and the other effects of a body are final by now",
        lambda graph, options: draw_before_loops(graph, options.stack_budget),
    ),
)
"""The passes without kernels and ops of one backend: they suit any use of a graph."""

PASSES: Final = (
    Pass(
        "one memory",
        "before placement, which needs a device",
        _plain(without_placement),
        in_bodies=True,
        applies=lambda capabilities: not capabilities.device,
    ),
    *SIMPLIFICATIONS,
    Pass(
        "scalars of sizes",
        "after algebra, which broadcasts after other ops; before fusion, for which they are constants",
        _plain(compute_from_sizes),
        applies=lambda capabilities: capabilities.size_scalars,
    ),
    Pass(
        "integer products",
        "after the rewrites of users, which may add some",
        _plain(sum_integer_products),
        in_bodies=True,
        applies=lambda capabilities: not capabilities.integer_products,
    ),
    Pass(
        "integer matrices",
        "before fusion, which may join a product with what reads it",
        _plain(multiply_integer_matrices),
        in_bodies=True,
        applies=lambda capabilities: capabilities.integer_matrices,
    ),
    Pass(
        "sums of integers",
        "before fusion, which computes the terms of a sum where they are added",
        _plain(sum_integer_matrices),
        in_bodies=True,
        applies=lambda capabilities: not capabilities.integer_matrices and "i" in capabilities.dtypes,
    ),
    Pass(
        "small operands",
        "before products and fusion, which then see no host call",
        _plain(lower_small_operands),
        in_bodies=True,
        applies=lambda capabilities: "d" in capabilities.dtypes,
    ),
    Pass(
        "complex products",
        "before parts, which lowers the real and imaginary parts that these products read",
        _plain(split_complex_products),
        in_bodies=True,
        applies=lambda capabilities: not capabilities.complex_products,
    ),
    Pass(
        "parts",
        "after algebra, for which each op is one node; loops compute with real numbers",
        _plain(split_complex),
        applies=lambda capabilities: capabilities.complex_numbers,
    ),
    Pass(
        "float16",
        "after algebra, for which each op is one node; later passes see no float16",
        _plain(widen_float16),
    ),
    Pass(
        "products",
        "many small products are slower than one, and prevent fusion",
        lambda graph, options: batch_products(graph, options.stack_budget, options.cost_model),
    ),
    Pass(
        "fourier",
        "the remaining transforms are final by now",
        _plain(transform_in_steps),
        applies=lambda capabilities: capabilities.fourier,
    ),
    Pass(
        "epilogues",
        "BLAS adds a product to a matrix as fast as it writes one",
        _plain(add_in_products),
        in_bodies=True,
    ),
    Pass(
        "rows",
        "before sums become scatters",
        lambda graph, options: step_on_rows(graph, options.cost_model),
        in_bodies=True,
    ),
    Pass(
        "scatters",
        "adding rows in place saves a tensor of zeros, and a sum over all rows",
        _plain(add_in_scatters),
        in_bodies=True,
    ),
    Pass(
        "collectives",
        "the nodes that may fail are final by now",
        _plain(run_collectives_natively),
        applies=lambda capabilities: capabilities.collectives,
    ),
    Pass(
        "fusion",
        "last: no other pass enters the bodies of fused nodes",
        lambda graph, options: fuse(graph, options.cost_model),
        in_bodies=True,
    ),
)


def _simplify_again(graph: Graph) -> Graph:
    return eliminate_dead_code(merge_common_subexpressions(simplify_algebra(graph)))


_SIMPLIFY_AGAIN: Final = Pass(
    "simplify again",
    "rewrites of users leave constants to fold, and unused nodes",
    _plain(_simplify_again),
    in_bodies=True,
)
_AFTER: Final = "leftovers"
"""The pass after which rewrites of users run: graphs are simplified, and each op is still one node."""


def with_rewrites(
    passes: Sequence[Pass], rewrites: Sequence[Rewrite], report: Report = lambda match: None
) -> tuple[Pass, ...]:
    """``passes`` with the rewrites of users inserted; ``report`` is called with each change."""
    if not rewrites:
        return tuple(passes)
    index = [step.name for step in passes].index(_AFTER) + 1
    steps = [_pass_of(rewrite, report) for rewrite in rewrites]
    return (*passes[:index], *steps, _SIMPLIFY_AGAIN, *passes[index:])


def _pass_of(rewrite: Rewrite, report: Report) -> Pass:
    return Pass(rewrite.name, rewrite.algebra, lambda graph, _: rewrite(graph, report), rewrite.in_bodies)


def optimise(
    graph: Graph,
    options: CompileOptions,
    observe: Callable[[str, Graph], None] | None = None,
    passes: Sequence[Pass] | None = None,
) -> Graph:
    """``graph`` after all ``passes``; ``observe(name, graph)`` is called after each.

    By default they are all passes, and the rewrites of the options.

    Raises:
        InternalError: a pass has broken a rule of the IR, if the options have ``checking``.
        InvalidArgumentError: a rewrite of a user has broken such a rule.
    """
    passes = with_rewrites(PASSES, options.rewrites) if passes is None else passes
    with guards_hold(graph):
        return _optimised(graph, options, observe, passes)


def _optimised(
    graph: Graph,
    options: CompileOptions,
    observe: Callable[[str, Graph], None] | None,
    passes: Sequence[Pass],
) -> Graph:
    for in_bodies, group in groupby(passes, key=lambda step: step.in_bodies):
        run = tuple(group)
        for step in run:
            if step.applies(options.capabilities):
                graph = step.function(graph, options)
            if in_bodies and step is run[-1]:
                graph = _with_optimised_bodies(graph, options, run)
            if options.checking:
                verify_with_bodies(graph)
            if observe is not None:
                observe(step.name, graph)
    return graph


def _with_optimised_bodies(graph: Graph, options: CompileOptions, passes: Sequence[Pass]) -> Graph:
    if not has_control(graph):
        return graph
    unchecked = replace(options, checking=False)  # bodies are verified under the guards of the graph
    steps = [step.function for step in passes if step.applies(options.capabilities)]

    def after_steps(body: Graph) -> Graph:
        for function in steps:
            body = function(body, unchecked)
        return body

    return map_bodies(graph, outside_in(after_steps))


def before_fusion(graph: Graph, options: CompileOptions) -> list[Graph]:
    """The inputs of the fusion pass when ``graph`` is optimised: the graph and its remaining bodies."""
    graphs: list[Graph] = []

    def collect(graph: Graph, options: CompileOptions) -> Graph:
        graphs.append(graph)
        return graph

    *earlier, fusion = with_rewrites(PASSES, options.rewrites)
    observer = Pass("collect", "it collects the graphs before fusion", collect, in_bodies=True)
    optimise(graph, options, passes=(*earlier, observer, fusion))
    return graphs
