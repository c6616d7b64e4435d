"""Creates the attribute of a branch or loop from the text of its graphs, and checks it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dualflow.core.dtypes import bool_
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.graph.control_ops import COND, LOOP
from dualflow.graph.control_spec import CondSpec, LoopSpec, new_derivation, row_spec
from dualflow.graph.graph_gradient import GraphGradient
from dualflow.graph.ir import Graph, Value
from dualflow.ops.custom_vjp import CUSTOM
from dualflow.ops.record import Op


def spec_of_bodies(
    op: Op,
    inputs: Sequence[Value],
    settings: dict[str, Any],
    bodies: Mapping[str, Graph],
    loops: dict[int, int],
) -> dict[str, Any]:
    """The attributes of a node of ``op``, with ``bodies`` inside it.

    Args:
        op: the op of the node.
        inputs: what the node reads.
        settings: its other attributes, which are changed.
        bodies: its graphs by name.
        loops: the numbers in the derivations of loops by those in the text; extended.

    Raises:
        InvalidArgumentError: the graphs don't fit the op, the inputs, or each other.
    """
    for name, body in bodies.items():
        if body.captures or body.updates:
            raise InvalidArgumentError(f"the graph {name} inside of {op.name} captures or updates something")
    if op is COND:
        return {**settings, "cond": _cond(inputs, bodies)}
    if op is LOOP:
        return {"loop": _loop(inputs, settings, bodies, loops)}
    if op is CUSTOM and bodies:
        return _gradient(inputs, settings, bodies)
    if bodies:
        raise InvalidArgumentError(f"{op.name} has no graphs inside")
    return settings


def _gradient(
    inputs: Sequence[Value], settings: dict[str, Any], bodies: Mapping[str, Graph]
) -> dict[str, Any]:
    """The attributes of a custom gradient whose rule is a graph."""
    count, flows = settings.get("outputs"), settings.get("flows")
    if list(bodies) != ["gradient"] or settings.keys() != {"outputs", "flows"}:
        raise InvalidArgumentError("a custom gradient has the graph gradient, outputs and flows")
    if type(count) is not int or not 0 < count < len(inputs):
        raise InvalidArgumentError(f"a custom gradient has outputs={count!r} for {len(inputs)} inputs")
    if type(flows) is not tuple or len(flows) != len(inputs) - count or {*map(type, flows)} != {bool}:
        raise InvalidArgumentError(f"a custom gradient has flows={flows!r} for {len(inputs) - count} inputs")
    specs = [v.spec for v in inputs]
    graph = bodies["gradient"]
    _check_inputs("gradient", graph, [*specs[:count], *specs[:count], *specs[count:]])
    expected = [spec for spec, flow in zip(specs[count:], flows, strict=True) if flow]
    returned = [v.spec for v in graph.outputs]
    if len(returned) != len(expected) or not all(map(_fits, returned, expected)):
        raise InvalidArgumentError("a custom gradient returns tensors of the specs of its inputs")
    return {"grad": GraphGradient(graph, flows), "outputs": count}


def _cond(inputs: Sequence[Value], bodies: Mapping[str, Graph]) -> CondSpec:
    names = [f"branches[{i}]" for i in range(len(bodies))]
    if not bodies or list(bodies) != names:
        raise InvalidArgumentError(f"a cond has the graphs branches[0], branches[1], ..., not {list(bodies)}")
    first = bodies[names[0]]
    for name, branch in bodies.items():
        _check_inputs(name, branch, [v.spec for v in inputs[1:]])
        if [(v.spec.dtype, v.spec.rank) for v in branch.outputs] != [
            (v.spec.dtype, v.spec.rank) for v in first.outputs
        ]:
            raise InvalidArgumentError(f"{name} returns tensors of other dtypes or ranks than {names[0]}")
    return CondSpec(tuple(bodies.values()))


def _loop(
    inputs: Sequence[Value], settings: dict[str, Any], bodies: Mapping[str, Graph], loops: dict[int, int]
) -> LoopSpec:
    if list(bodies) not in (["body"], ["body", "condition"]):
        raise InvalidArgumentError(f"a loop has the graphs body and condition, not {list(bodies)}")
    spec = LoopSpec(
        body=bodies["body"],
        carried=_count(settings, "carried"),
        scanned=_count(settings, "scanned"),
        length=_count(settings, "length") if "length" in settings else None,
        condition=bodies.get("condition"),
        reverse=_flag(settings, "reverse"),
        recompute=_flag(settings, "recompute"),
        derivation=_derivation(settings.get("derivation"), loops),
    )
    if settings.keys() - {"carried", "scanned", "length", "reverse", "recompute", "derivation"}:
        raise InvalidArgumentError(f"a loop has no attributes {sorted(settings)}")
    _check_loop(spec, [v.spec for v in inputs])
    return spec


def _check_loop(spec: LoopSpec, inputs: Sequence[TensorSpec]) -> None:
    """Raise unless the graphs of a loop fit its inputs."""
    carried, scanned, invariants = spec.split_inputs(inputs)
    if len(carried) != spec.carried or len(scanned) != spec.scanned:
        raise InvalidArgumentError(f"a loop of {spec.end} carried and scanned values has {len(inputs)}")
    if any(not x.shape for x in scanned):
        raise InvalidArgumentError("a loop scans a tensor without axes")
    rows = list(map(row_spec, scanned))
    if spec.condition is None and spec.length is None and not scanned:
        raise InvalidArgumentError("a loop has neither a condition, nor a length, nor rows to scan")
    _check_inputs("body", spec.body, [*carried, *rows, *invariants])
    if len(spec.body.outputs) < spec.carried:
        raise InvalidArgumentError(f"the body of a loop returns fewer than its {spec.carried} carried values")
    for before, after in spec.carried_values:
        if not _fits(before.spec, after.spec):
            raise InvalidArgumentError(f"an iteration changes {before.spec} to {after.spec}")
    if spec.condition is not None:
        if scanned:
            raise InvalidArgumentError("a loop with a condition scans no rows")
        _check_inputs("condition", spec.condition, [*carried, *invariants])
        if [v.spec for v in spec.condition.outputs] != [TensorSpec((), bool_)]:
            raise InvalidArgumentError("the condition of a loop returns one bool scalar")


def _check_inputs(name: str, graph: Graph, operands: Sequence[TensorSpec]) -> None:
    """Raise unless ``graph`` takes ``operands``."""
    takes = [v.spec for v in graph.inputs]
    if len(takes) != len(operands) or not all(map(_fits, takes, operands)):
        raise InvalidArgumentError(
            f"the graph {name} takes ({', '.join(map(str, takes))}), and its node gives it "
            f"({', '.join(map(str, operands))})"
        )


def _fits(taken: TensorSpec, operand: TensorSpec) -> bool:
    return taken.dtype is operand.dtype and taken.shape.is_compatible_with(operand.shape)


def _count(settings: Mapping[str, Any], name: str) -> int:
    value = settings.get(name)
    if type(value) is not int or value < 0:
        raise InvalidArgumentError(f"a loop has {name}={value!r}, where a number of at least 0 belongs")
    return value


def _flag(settings: Mapping[str, Any], name: str) -> bool:
    value = settings.get(name)
    if type(value) is not bool:
        raise InvalidArgumentError(f"a loop has {name}={value!r}, where True or False belongs")
    return value


def _derivation(written: Any, loops: dict[int, int]) -> tuple[int, ...]:
    """The derivation of a loop that a text contains, with ids of this process for the loops in the text."""
    if type(written) is not tuple or not written or not all(type(n) is int for n in written):
        raise InvalidArgumentError(f"a loop has derivation={written!r}, where a tuple of numbers belongs")
    return tuple([loops[n] if n in loops else loops.setdefault(n, *new_derivation()) for n in written])
