"""The Python variables that a loop of the graph carries: their structures, specs and initial values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dualflow.core import dispatch
from dualflow.core.convert import as_array
from dualflow.core.dispatch import AbstractTensor, AbstractVariable
from dualflow.core.dtypes import bool_
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.records import dataclass, replace
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.tree import LEAF, Structure, flatten, unflatten
from dualflow.function.autograph.loop_options import check_invariant
from dualflow.function.autograph.merge_values import (
    adapts,
    is_same,
    is_undefined,
    is_unreturned,
    is_value,
    spec_of,
    value_of,
    zeros,
)
from dualflow.function.autograph.unassigned import is_maybe_unassigned, maybe_unassigned, value_and_flag
from dualflow.function.control.spec_checks import ITERATIONS, check_spec, check_structure
from dualflow.function.control.tensor_array import TensorArray
from dualflow.function.control.trace_bodies import carried_shapes
from dualflow.function.errors import here
from dualflow.function.tracing.tracer import OuterShape, Tracer
from dualflow.graph.ir import Value
from dualflow.ops.creation import convert_to_tensor

Values = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Carried:
    """A Python variable that the graph's loop carries: its structure, and the specs of its leaves.

    Attributes:
        name: its name.
        structure: the structure of its value.
        specs: the specs of its leaves.
        initial: the leaves before the loop; None for one that is unassigned there.
        flagged: for each leaf, whether the loop also carries a bool that is true once the leaf is assigned.
            A leaf that may be unassigned before the loop or after an iteration has such a flag.
    """

    name: str
    structure: Structure
    specs: tuple[TensorSpec, ...]
    initial: tuple[Any, ...]
    flagged: tuple[bool, ...]


def plan_for(name: str, x: Any) -> Carried | None:
    """The plan for carrying the variable ``name`` with value ``x``; None if the loop doesn't carry it."""
    if x is None or is_undefined(x) or isinstance(x, AbstractVariable | str | bytes):
        return None
    return _carried(name, x)


def _carried(name: str, x: Any) -> Carried | None:
    """The plan for a variable with value ``x``; None if one of its leaves can't be a tensor."""
    leaves, structure = flatten(x)
    if not leaves or not all(map(is_value, leaves)):
        return None
    specs, flagged = tuple(map(spec_of, leaves)), tuple(map(is_maybe_unassigned, leaves))
    return Carried(name, structure, specs, tuple(leaves), flagged)


def plan_after_iteration(
    name: str, before: Any, after: Any, plan: Carried | None, invariants: Sequence[Shape | None]
) -> Carried | None:
    """The plan for a variable with value ``before`` before the loop, and ``after`` after an iteration.

    It has the dtypes and shapes of both; an error if they are incompatible.
    """
    if plan is None:
        if is_same(before, after):
            return None
        new = _carried(name, after) if isinstance(after, str | bytes) else plan_for(name, after)
        if is_unreturned(before):  # it is read only if the flag "has returned" is set
            return new and replace(new, initial=tuple(map(zeros, new.specs)), flagged=_unflagged(new))
        if isinstance(before, TensorArray) and new is not None and isinstance(after, TensorArray):
            first = plan_for(name, before)
            return first and replace(new, initial=first.initial)
        if is_undefined(before):
            return new and replace(new, initial=(None,) * len(new.specs))
        is_variable = isinstance(before, AbstractVariable | str | bytes)
        if is_variable and new is not None and new.structure == LEAF:
            return replace(new, initial=(before,), flagged=_unflagged(new))
        kind = "None" if before is None else f"a {type(before).__name__}"
        raise InvalidArgumentError(
            f"{name!r} is {kind} before the loop, but another object after one iteration. Give it a tensor "
            f"of its final shape and dtype before the loop.{here()}"
        )
    if isinstance(before, TensorArray) and flatten(before)[1] != plan.structure:
        return plan_for(name, before)  # its elements become unequal
    leaves, structure = flatten(after)
    if is_undefined(after):
        raise InvalidArgumentError(
            f"{name!r} has a value before the loop, but none after one iteration; assign it in the loop, or "
            f"delete it after the loop.{here()}"
        )
    check_structure(ITERATIONS, repr(name), plan.structure, structure)
    columns = zip(leaves, plan.initial, plan.specs, invariants, strict=False)  # flags have invariants too
    specs = [_leaf_spec(name, *column) for column in columns]
    flagged = tuple(
        has_flag or (initial is None and is_maybe_unassigned(x))
        for has_flag, initial, x in zip(plan.flagged, plan.initial, leaves, strict=True)
    )
    same = flagged == plan.flagged and all(a is b for a, b in zip(specs, plan.specs, strict=True))
    return plan if same else replace(plan, specs=tuple(specs), flagged=flagged)


def _leaf_spec(name: str, after: Any, initial: Any, spec: TensorSpec, invariant: Shape | None) -> TensorSpec:
    if not is_value(after):
        raise DTypeError(
            f"{name!r} is a tensor before the loop, but a {type(after).__name__} after one iteration. Keep "
            f"it a tensor, or use another name.{here()}"
        )
    if adapts(after, spec.dtype) and not spec.shape:
        return spec
    new_spec = spec_of(after)
    if invariant is not None:
        before = None if initial is None else spec_of(initial).shape
        check_invariant(name, before, new_spec.shape, invariant)
        if spec.shape != invariant:
            spec = TensorSpec.of(invariant, spec.dtype)
        new_spec = TensorSpec.of(invariant, new_spec.dtype)
    if new_spec.dtype is not spec.dtype and adapts(initial, new_spec.dtype):
        spec = TensorSpec.of(spec.shape, new_spec.dtype)
    advice = f"df.autograph.experimental.set_loop_options(shape_invariants=[({name}, shape)])"
    check_spec(ITERATIONS, repr(name), spec, new_spec, shape_advice=f", or make sizes dynamic by {advice}")
    return spec


def with_invariants(
    plans: Sequence[Carried | None], invariants: Sequence[Shape | None]
) -> list[Carried | None]:
    """The plans with the shapes of ``invariants``, one for each carried leaf."""
    shapes = iter(invariants)
    new_plans: list[Carried | None] = []
    for plan in plans:
        plan_shapes = [next(shapes) for _ in carried_specs(plan)] if plan else []
        pairs = zip(plan.specs if plan else (), plan_shapes, strict=False)  # flags have invariants too
        specs = tuple([spec if s is None else TensorSpec.of(s, spec.dtype) for spec, s in pairs])
        new_plans.append(plan and replace(plan, specs=specs))
    return new_plans


def _unflagged(plan: Carried) -> tuple[bool, ...]:
    return (False,) * len(plan.specs)


def packed_variables(
    before: Values, plans: Sequence[Carried | None], carried: Iterator[Any], ran: Any = None
) -> Values:
    """The values of all variables of a loop; those that it carries come from ``carried``.

    ``ran`` is a bool tensor: whether an iteration has run, and so assigned the variables.
    """
    return tuple(
        x if plan is None else unflatten(plan.structure, _leaves(plan, carried, ran))
        for x, plan in zip(before, plans, strict=True)
    )


def _leaves(plan: Carried, carried: Iterator[Any], ran: Any) -> list[Any]:
    leaves = [next(carried) for _ in plan.specs]
    flags = [next(carried) if f else ran if i is None else None for f, i in _flags_and_initial(plan)]
    return [
        x if flag is None else maybe_unassigned(x, flag, plan.name)
        for x, flag in zip(leaves, flags, strict=True)
    ]


def _flags_and_initial(plan: Carried) -> Iterator[tuple[bool, Any]]:
    return zip(plan.flagged, plan.initial, strict=True)


def carried_specs(plan: Carried) -> tuple[TensorSpec, ...]:
    """The specs of the leaves, then of the flags."""
    return plan.specs + (TensorSpec([], bool_),) * sum(plan.flagged)


def carried_inputs(plan: Carried) -> Iterator[tuple[TensorSpec, OuterShape | None]]:
    """The spec of each leaf and flag, and the tensor whose dynamic sizes it has."""
    shapes = carried_shapes(plan.initial, plan.specs)
    return zip(carried_specs(plan), [*shapes, *[None] * sum(plan.flagged)], strict=True)


def values_before(leading: Sequence[Any], plans: Sequence[Carried | None]) -> list[Any]:
    """The initial carried values of a loop."""
    return [*leading, *(leaf for plan in plans if plan for leaf in _initial(plan))]


def _initial(plan: Carried) -> list[Any]:
    """The initial carried values of a variable, as tensors of the current engine."""
    engine = dispatch.current()
    tensors: list[Any] = []
    for leaf, spec, flagged in zip(plan.initial, plan.specs, plan.flagged, strict=True):
        if flagged and leaf is not None:
            leaf = value_and_flag(leaf)[0]
        if leaf is None:
            tensors.append(engine.constant(zeros(spec)))
        elif isinstance(leaf, AbstractVariable):
            tensors.append(engine.read(leaf))
        elif isinstance(leaf, AbstractTensor):
            tensors.append(engine.lift(leaf))
        else:
            tensors.append(engine.constant(as_array(leaf, spec.dtype)))
    for flagged, leaf in _flags_and_initial(plan):
        if flagged:
            flag = convert_to_tensor(False) if leaf is None else engine.lift(value_and_flag(leaf)[1])
            tensors.append(flag)
    return tensors


def values_after(after: Any, plan: Carried, tracer: Tracer) -> list[Value]:
    """The carried values of a variable after an iteration."""
    leaves, _ = flatten(after)
    pairs = [value_and_flag(x) if f else (x, None) for x, f in zip(leaves, plan.flagged, strict=True)]
    values = [value_of(x, spec.dtype, tracer) for (x, _), spec in zip(pairs, plan.specs, strict=True)]
    return values + [value_of(flag, None, tracer) for _, flag in pairs if flag is not None]
