"""Gradients of choices and loops.

The gradient of a choice is a choice between the gradients of its branches. That of a loop runs the loop
again, keeps what each turn began with, and goes back through the turns; how many there are is known only when
it runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NoReturn

import numpy as np

from dualflow.core import dispatch
from dualflow.core.errors import InvalidArgumentError, ResourceExhaustedError
from dualflow.core.spec import TensorSpec
from dualflow.eager.tape import GradientTape
from dualflow.function.bodies import trace_body
from dualflow.graph import control
from dualflow.graph.interpret import evaluate, replay
from dualflow.graph.ir import Graph
from dualflow.ops.forms import Opaque
from dualflow.ops.record import Op

Array = np.ndarray[Any, Any]


def _pull_choice(
    needed: Sequence[bool],
    g: Any,
    out: Any,
    index: Any,
    *operands: Any,
    branches: tuple[Graph, ...],
) -> list[Any]:
    wanted = [i for i, x in enumerate(operands) if needed[i + 1] and x.dtype.is_inexact]
    several = g if isinstance(g, tuple) else (g,)
    cotangents = [c for c, v in zip(several, branches[0].outputs, strict=True) if v.spec.dtype.is_inexact]
    if not wanted or not cotangents:
        return [None] * len(needed)
    graphs = tuple(_pull_graph(b, operands, cotangents, wanted) for b in branches)
    inputs = (index, *operands, *cotangents)
    found = dispatch.current().run(control.with_effects(CHOICE, graphs), inputs, {"branches": graphs})
    flows: list[Any] = [None] * len(needed)
    for i, flow in zip(wanted, found, strict=True):
        flows[i + 1] = flow
    return flows


CHOICE: Final = replace(control.CHOICE, pullback=_pull_choice)
"""A choice that gradients flow through."""


def _pull_loop(
    needed: Sequence[bool],
    g: Any,
    out: Any,
    *inputs: Any,
    condition: Graph,
    body: Graph,
    limit: int | None,
) -> list[Any]:
    if any(n.op.effect is not None for n in (*condition.nodes, *body.nodes)):
        raise InvalidArgumentError(
            "A loop that draws random numbers or calls Python can't be run again for its gradient; make "
            "what it draws before the loop, and index it inside."
        )
    count = len(body.outputs)
    moving = [i for i, v in enumerate(body.outputs) if v.spec.dtype.is_inexact]
    resting = [i for i in range(count, len(inputs)) if needed[i] and inputs[i].dtype.is_inexact]
    if not moving or not any(needed[i] for i in (*moving, *resting)):
        return [None] * len(needed)
    several = g if isinstance(g, tuple) else (g,)
    cotangents = [several[i] for i in moving]
    pull = _pull_graph(body, inputs, cotangents, [*moving, *resting])
    attrs = {"condition": condition, "body": body, "pull": pull, "limit": limit}
    found = dispatch.current().run(LOOP_BACK, (*inputs, *cotangents), attrs)
    flows: list[Any] = [None] * len(needed)
    for i, flow in zip([*moving, *resting], found, strict=True):
        flows[i] = flow
    return flows


LOOP: Final = replace(control.LOOP, pullback=_pull_loop)
"""A loop that gradients flow through."""


def _pull_graph(
    body: Graph, operands: Sequence[Any], cotangents: Sequence[Any], wanted: Sequence[int]
) -> Graph:
    """From a body's inputs and the cotangents of its float outputs to those of its inputs ``wanted``."""
    taking = [i for i, v in enumerate(body.outputs) if v.spec.dtype.is_inexact]

    def pull(*symbols: Any) -> Any:
        values, flows = symbols[: len(operands)], symbols[len(operands) :]
        sources = [values[i] for i in wanted]
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(sources)
            results = replay(body, values)
        targets = [results[i] for i in taking]
        return tape.gradient(targets, sources, output_gradients=list(flows), unconnected_gradients="zero")

    specs = [TensorSpec.of(x.shape, x.dtype) for x in (*operands, *cotangents)]
    traced = trace_body(pull, specs, lambda symbols: symbols)
    assert not traced.reads, "a body reads nothing but its inputs"
    return traced.graph(traced.arguments, traced.outputs)


def _infer_back(
    *specs: TensorSpec, condition: Graph, body: Graph, pull: Graph, limit: int | None
) -> tuple[TensorSpec, ...]:
    return tuple(v.spec for v in pull.outputs)


def _run_back(
    *arrays: Array, condition: Graph, body: Graph, pull: Graph, limit: int | None
) -> tuple[Array, ...]:
    count, size = len(body.outputs), len(body.inputs)
    rest, flows = arrays[count:size], list(arrays[size:])
    turns = _history(arrays[:count], rest, condition, body, limit)
    sums: list[Array] = [np.zeros(v.spec.shape, v.spec.dtype.dtype) for v in pull.outputs[len(flows) :]]
    while turns:
        found = evaluate(pull, [*turns.pop(), *rest, *flows])
        flows, shares = found[: len(flows)], found[len(flows) :]
        sums = [a + b for a, b in zip(sums, shares, strict=True)]
    return (*flows, *sums)


def _history(
    carried: Sequence[Array], rest: Sequence[Array], condition: Graph, body: Graph, limit: int | None
) -> list[Sequence[Array]]:
    """What each turn begins with.

    Raises:
        ResourceExhaustedError: memory doesn't hold it.
    """
    turns: list[Sequence[Array]] = []
    try:
        while (limit is None or len(turns) < limit) and bool(evaluate(condition, [*carried, *rest])[0]):
            turns.append(carried)
            carried = evaluate(body, [*carried, *rest])
    except MemoryError:
        kept, each = len(turns), sum(a.nbytes for a in carried)
        turns.clear()
        raise ResourceExhaustedError(
            f"The gradient of a loop keeps {each} bytes of every turn, and memory was full after {kept} "
            "turns. Bound the loop with maximum_iterations, or carry less."
        ) from None
    return turns


def _refuse(*args: Any, **attrs: Any) -> NoReturn:
    raise InvalidArgumentError(
        "The second derivative of a loop of unknown length is not available; unroll it with a Python "
        "range, or take the inner gradient by hand."
    )


LOOP_BACK: Final = Op(
    name="loop_back",
    doc="The cotangents of a loop's inputs, from its inputs and the cotangents of its float results.",
    infer=_infer_back,
    kernel=_run_back,
    form=Opaque("what it keeps of each turn grows while it runs"),
    pullback=_refuse,
    outputs=None,
)
