"""``while`` and ``for`` over tensors: loops of the graph that carry Python variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from dualflow.core import dispatch
from dualflow.core.convert import as_array
from dualflow.core.dispatch import AbstractSource, AbstractTensor, AbstractVariable
from dualflow.core.dtypes import bool_
from dualflow.core.errors import DTypeError, DualflowError, InvalidArgumentError
from dualflow.core.records import dataclass, replace
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.tree import LEAF, Structure, flatten, unflatten
from dualflow.function.autograph.assigned_variables import AssignedNames, SavedVariables
from dualflow.function.autograph.branches import stage_if
from dualflow.function.autograph.loop_options import LoopOptions, check_invariant, loop_options
from dualflow.function.autograph.merge_values import (
    adapts,
    condition_value,
    is_same,
    is_undefined,
    is_unreturned,
    is_value,
    spec_of,
    symbolic,
    truth,
    value_of,
    zeros,
)
from dualflow.function.autograph.sequences import LoopIterations, iterations_of
from dualflow.function.autograph.stream_loops import ElementSource, stream_node
from dualflow.function.autograph.unassigned import is_maybe_unassigned, maybe_unassigned, value_and_flag
from dualflow.function.control.control_nodes import loop_node
from dualflow.function.control.graph_exceptions import BranchRaised, TracedBranch, end_with_failing_check
from dualflow.function.control.spec_checks import ITERATIONS, check_spec, check_structure
from dualflow.function.control.tensor_array import TensorArray
from dualflow.function.control.trace_bodies import Body, carried_shapes, check_sizes_read, inner_tracer
from dualflow.function.errors import here
from dualflow.function.tracing.tracer import OuterShape, Tracer, tracing
from dualflow.graph.ir import Value
from dualflow.ops.creation import convert_to_tensor

_TRACES_PER_VARIABLE: Final = 3
"""The most traces of a loop body for each of its variables, until the specs of all are stable."""

Values = tuple[Any, ...]


def while_stmt(
    test: Callable[[], Any],
    body: Callable[[], None],
    names: AssignedNames,
    temporaries: Sequence[str],
) -> None:
    """``while test(): body()``; a loop of the graph from the first iteration with a symbolic test.

    Raises:
        InvalidArgumentError: a variable's shape or structure differs after one iteration.
        DTypeError: a variable's dtype differs after one iteration, or its value can't be a tensor.
    """

    def iteration(counters: Sequence[Any]) -> tuple[list[Any], Any]:
        body()
        return [], test()

    while True:
        condition = condition_value(test())
        tensor = symbolic(condition)
        if tensor is not None:
            _Loop(SavedVariables((test, body), names, temporaries)).add(tensor, [], iteration)
            return
        if not condition:
            return
        with loop_options(None):
            body()


def for_stmt(
    iterated: Any,
    extra_test: Callable[[], Any] | None,
    body: Callable[[Any], None],
    names: AssignedNames,
    temporaries: Sequence[str],
) -> None:
    """``for x in iterated: body(x)`` while ``extra_test()`` is true; a loop of the graph over a tensor.

    Python's iterables are iterated while tracing. From the first iteration with a symbolic test (after a
    ``break`` under a tensor ``if``), each iteration is a conditional.

    Raises:
        InvalidArgumentError: a variable's shape or structure differs after one iteration, or ``iterated`` is
            a scalar.
        DTypeError: a variable's dtype differs after one iteration, or its value can't be a tensor.
    """
    iterations = iterations_of(iterated)
    if iterations is not None:
        loop = _Loop(SavedVariables((body, extra_test), names, temporaries))
        _for_iterations(iterations, extra_test, body, loop)
        return
    if isinstance(iterated, AbstractSource) and not dispatch.current().eager:
        loop = _Loop(SavedVariables((body, extra_test), names, temporaries))
        loop.add_over_stream(iterated.reading(), extra_test, body)
        return
    with loop_options(None):
        _for_in_python(iterated, extra_test, body, names, temporaries)


def _for_in_python(
    iterated: Any,
    extra_test: Callable[[], Any] | None,
    body: Callable[[Any], None],
    names: AssignedNames,
    temporaries: Sequence[str],
) -> None:
    if extra_test is None:
        for x in iterated:
            body(x)
        return
    condition = extra_test()
    for x in iterated if symbolic(condition) is not None or condition else ():
        if symbolic(condition) is None:
            body(x)
        else:
            branches = (lambda x=x: body(x)), (lambda: None)
            state = SavedVariables((body, extra_test), names, temporaries)
            stage_if(condition, branches, state, fill=True)
        condition = extra_test()
        if symbolic(condition) is None and not condition:
            return


def _for_iterations(
    iterations: LoopIterations, extra_test: Callable[[], Any] | None, body: Callable[[Any], None], loop: _Loop
) -> None:
    def continues(k: Any) -> Any:
        in_range = iterations.has(k)
        if extra_test is None:
            return in_range
        condition = extra_test()
        if symbolic(condition) is None:
            return in_range if condition else False
        return in_range & truth(symbolic(condition), "a for loop")

    def iteration(counters: Sequence[Any]) -> tuple[list[Any], Any]:
        (k,) = counters
        body(iterations.at(k))
        return [k + 1], continues(k + 1)

    first = convert_to_tensor(as_array(0, iterations.counter))
    flag = continues(first)
    if flag is not False:
        loop.add(flag, [first], iteration)


@dataclass(frozen=True, slots=True)
class _Carried:
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


class _Loop:
    """Traces a Python loop, and adds it to the graph with the variables that it assigns."""

    def __init__(self, state: SavedVariables) -> None:
        self._state = state
        self._names = state.names
        self._max_iterations: int | None = None

    def add(
        self, flag: Any, counters: list[Any], iteration: Callable[[Sequence[Any]], tuple[list[Any], Any]]
    ) -> None:
        """Add the loop to the graph. It carries a flag, which is true if there is another iteration.

        Args:
            flag: the initial flag, a symbolic bool.
            counters: tensors that are carried besides the flag and the variables.
            iteration: runs the body; maps the counters to the next ones and the next flag.
        """
        leading = [truth(flag, "a loop"), *counters]

        def node(body: Body, initial: list[Any]) -> tuple[Any, list[Any]]:
            final = loop_node(_first_argument(body), body, initial, self._max_iterations)
            return leading[0], final[len(leading) :]

        self._add_node(leading, iteration, (), node)

    def add_over_stream(
        self, reading: ElementSource, extra_test: Callable[[], Any] | None, body: Callable[[Any], None]
    ) -> None:
        """Add a loop over the elements of a stream to the graph; it ends if ``extra_test()`` is false."""

        def continues() -> Any:
            condition = True if extra_test is None else extra_test()
            tensor = symbolic(condition)
            return convert_to_tensor(bool(condition)) if tensor is None else truth(tensor, "a for loop")

        def iteration(inputs: Sequence[Any]) -> tuple[list[Any], Any]:
            body(unflatten(reading.structure, inputs[1:]))
            return [convert_to_tensor(True)], continues()

        def node(body: Body, initial: list[Any]) -> tuple[Any, list[Any]]:
            if self._max_iterations is not None:
                raise InvalidArgumentError(
                    "set_loop_options bounds the iterations of loops over tensors, not over data; loop over "
                    f"dataset.take({self._max_iterations}).{here()}"
                )
            _, ran, *results = stream_node(reading, body, initial)
            return ran, results

        self._add_node([continues(), convert_to_tensor(False)], iteration, reading.specs, node)

    def _add_node(
        self,
        leading: list[Any],
        iteration: Callable[[Sequence[Any]], tuple[list[Any], Any]],
        item_specs: Sequence[TensorSpec],
        node: Callable[[Body, list[Any]], tuple[Any, list[Any]]],
    ) -> None:
        """Trace the body until the specs of the carried variables are stable, and add the loop to the graph.

        The variables get their final values.

        Args:
            leading: the flag and the counters, which are carried before the variables.
            iteration: runs the body.
            item_specs: the specs of the inputs of each iteration that are not carried.
            node: adds the loop to the graph; returns whether an iteration has run, and the final leaves of
                the variables.
        """
        before = self._state.read()
        plans = [_plan(*variable) for variable in zip(self._names, before, strict=True)]
        for _ in range(2 + _TRACES_PER_VARIABLE * len(before)):
            body, plans, is_stable = self._trace_iteration(before, plans, leading, iteration, item_specs)
            if is_stable:
                break
        else:
            raise DTypeError(
                f"The dtypes of a loop's variables change in each iteration; cast them with df.cast.{here()}"
            )
        check_sizes_read([body], body)
        initial = [*leading, *(leaf for plan in plans if plan for leaf in _initial(plan))]
        ran, results = node(body, initial)
        self._state.write(_packed(before, plans, iter(results), ran=ran))

    def _trace_iteration(
        self,
        before: Values,
        plans: list[_Carried | None],
        leading: list[Any],
        iteration: Callable[[Sequence[Any]], tuple[list[Any], Any]],
        item_specs: Sequence[TensorSpec],
    ) -> tuple[Body, list[_Carried | None], bool]:
        """Trace one iteration with the variables carried as in ``plans``.

        Returns the body, the plans that follow, and whether they are the same.
        """
        tracer = inner_tracer("loop_body")
        arguments = [tracer.argument(spec_of(x)) for x in leading]
        leaves = [tracer.argument(*x) for plan in plans if plan for x in _carried_inputs(plan)]
        items = [tracer.argument(spec) for spec in item_specs]
        with tracing(tracer):
            start = _packed(before, plans, iter(leaves))
        self._state.write(start)
        options = LoopOptions()
        try:
            with loop_options(options):
                counters, flag = _traced_iteration(tracer, iteration, [*arguments[1:], *items])
        except DualflowError:  # perhaps since it was traced without its shape invariants
            self._state.write(before)
            dynamic_plans = _with_invariants(plans, options.invariants(leaves))
            if dynamic_plans == plans:
                raise
            return Body(tracer, (), LEAF, ()), dynamic_plans, False
        self._max_iterations = options.max_iterations
        after = start if flag is None else self._state.read()
        self._state.write(before)
        shapes = iter(options.invariants(leaves))
        invariants = [[next(shapes) for _ in _carried_specs(p)] if p else [] for p in plans]
        variables = zip(self._names, before, after, plans, invariants, strict=True)
        new_plans = [_plan_after_iteration(*variable) for variable in variables]
        is_stable = all(new is old for new, old in zip(new_plans, plans, strict=True))
        outputs: list[Value] = []
        if is_stable:
            flag = arguments[0] if flag is None else flag
            outputs = [value_of(x, None, tracer) for x in (flag, *counters)]
            for x, plan in zip(after, plans, strict=True):
                if plan is not None:
                    with tracing(tracer):
                        outputs += _outputs(x, plan, tracer)
        inputs = tuple(x._value for x in (*arguments, *leaves, *items))
        return Body(tracer, inputs, LEAF, tuple(outputs)), new_plans, is_stable


def _traced_iteration(
    tracer: Tracer, iteration: Callable[[Sequence[Any]], tuple[list[Any], Any]], counters: Sequence[Any]
) -> tuple[Sequence[Any], Any]:
    """Run an iteration; returns the next counters and the flag (None if it ends with a ``raise``)."""

    def run() -> tuple[Sequence[Any], Any]:
        try:
            next_counters, flag = iteration(counters)
        except BranchRaised as ended:
            raise end_with_failing_check(ended) from None
        flag = condition_value(flag)
        tensor = symbolic(flag)
        return next_counters, truth(flag if tensor is None else tensor, "a loop")

    return TracedBranch(tracer).trace(run) or (counters, None)


def _plan(name: str, x: Any) -> _Carried | None:
    """The plan for carrying the variable ``name`` with value ``x``; None if the loop doesn't carry it."""
    if x is None or is_undefined(x) or isinstance(x, AbstractVariable | str | bytes):
        return None
    return _carried(name, x)


def _carried(name: str, x: Any) -> _Carried | None:
    """The plan for a variable with value ``x``; None if one of its leaves can't be a tensor."""
    leaves, structure = flatten(x)
    if not leaves or not all(map(is_value, leaves)):
        return None
    specs, flagged = tuple(map(spec_of, leaves)), tuple(map(is_maybe_unassigned, leaves))
    return _Carried(name, structure, specs, tuple(leaves), flagged)


def _plan_after_iteration(
    name: str, before: Any, after: Any, plan: _Carried | None, invariants: Sequence[Shape | None]
) -> _Carried | None:
    """The plan for a variable with value ``before`` before the loop, and ``after`` after an iteration.

    It has the dtypes and shapes of both; an error if they are incompatible.
    """
    if plan is None:
        if is_same(before, after):
            return None
        new = _carried(name, after) if isinstance(after, str | bytes) else _plan(name, after)
        if is_unreturned(before):  # it is read only if the flag "has returned" is set
            return new and replace(new, initial=tuple(map(zeros, new.specs)), flagged=_unflagged(new))
        if isinstance(before, TensorArray) and new is not None and isinstance(after, TensorArray):
            first = _plan(name, before.shaped(Shape(new.specs[0].shape[1:])))
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


def _with_invariants(
    plans: Sequence[_Carried | None], invariants: Sequence[Shape | None]
) -> list[_Carried | None]:
    """The plans with the shapes of ``invariants``, one for each carried leaf."""
    shapes = iter(invariants)
    new_plans: list[_Carried | None] = []
    for plan in plans:
        plan_shapes = [next(shapes) for _ in _carried_specs(plan)] if plan else []
        pairs = zip(plan.specs if plan else (), plan_shapes, strict=False)  # flags have invariants too
        specs = tuple([spec if s is None else TensorSpec.of(s, spec.dtype) for spec, s in pairs])
        new_plans.append(plan and replace(plan, specs=specs))
    return new_plans


def _unflagged(plan: _Carried) -> tuple[bool, ...]:
    return (False,) * len(plan.specs)


def _packed(
    before: Values, plans: Sequence[_Carried | None], carried: Iterator[Any], ran: Any = None
) -> Values:
    """The values of all variables of a loop; those that it carries come from ``carried``.

    ``ran`` is a bool tensor: whether an iteration has run, and so assigned the variables.
    """
    return tuple(
        x if plan is None else unflatten(plan.structure, _leaves(plan, carried, ran))
        for x, plan in zip(before, plans, strict=True)
    )


def _leaves(plan: _Carried, carried: Iterator[Any], ran: Any) -> list[Any]:
    leaves = [next(carried) for _ in plan.specs]
    flags = [next(carried) if f else ran if i is None else None for f, i in _flags_and_initial(plan)]
    return [
        x if flag is None else maybe_unassigned(x, flag, plan.name)
        for x, flag in zip(leaves, flags, strict=True)
    ]


def _flags_and_initial(plan: _Carried) -> Iterator[tuple[bool, Any]]:
    return zip(plan.flagged, plan.initial, strict=True)


def _carried_specs(plan: _Carried) -> tuple[TensorSpec, ...]:
    """The specs of the leaves, then of the flags."""
    return plan.specs + (TensorSpec([], bool_),) * sum(plan.flagged)


def _carried_inputs(plan: _Carried) -> Iterator[tuple[TensorSpec, OuterShape | None]]:
    """The spec of each leaf and flag, and the tensor whose dynamic sizes it has."""
    shapes = carried_shapes(plan.initial, plan.specs)
    return zip(_carried_specs(plan), [*shapes, *[None] * sum(plan.flagged)], strict=True)


def _initial(plan: _Carried) -> list[Any]:
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


def _outputs(after: Any, plan: _Carried, tracer: Tracer) -> list[Value]:
    """The carried values of a variable after an iteration."""
    leaves, _ = flatten(after)
    pairs = [value_and_flag(x) if f else (x, None) for x, f in zip(leaves, plan.flagged, strict=True)]
    values = [value_of(x, spec.dtype, tracer) for (x, _), spec in zip(pairs, plan.specs, strict=True)]
    return values + [value_of(flag, None, tracer) for _, flag in pairs if flag is not None]


def _first_argument(body: Body) -> Body:
    """The test of a loop: a body that returns the flag, the first argument of ``body``."""
    tracer = inner_tracer("loop_test")
    arguments = tuple(tracer.argument(v.spec)._value for v in body.arguments)
    return Body(tracer, arguments, LEAF, arguments[:1])
