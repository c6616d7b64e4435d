"""``while`` and ``for`` over tensors."""

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
from dualflow.function.autograph.branches import choose
from dualflow.function.autograph.loop_options import LoopOptions, check_invariant, noting
from dualflow.function.autograph.merge_values import (
    adapts,
    is_same,
    is_undefined,
    is_unreturned,
    is_value,
    spec_of,
    symbolic,
    tested,
    truth,
    value_of,
    zeros,
)
from dualflow.function.autograph.sequences import LoopIterations, iterations_of
from dualflow.function.autograph.state import AssignedNames, SavedVariables
from dualflow.function.autograph.streams import StreamReading, stream_node
from dualflow.function.autograph.unassigned import is_maybe_unassigned, maybe_unassigned, taken_apart
from dualflow.function.control.bodies import Body, inner_tracer
from dualflow.function.control.control_nodes import loop_node
from dualflow.function.control.raising import Ended, TracedBranch, stop
from dualflow.function.control.spec_checks import ITERATIONS, check_spec, check_structure
from dualflow.function.control.tensor_array import TensorArray
from dualflow.function.errors import here
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.graph.ir import Value
from dualflow.ops.creation import convert_to_tensor

_TRIALS: Final = 3
"""How often a body is traced for each variable at most: to see it, and for integers that meet floats."""

Values = tuple[Any, ...]


def while_stmt(
    test: Callable[[], Any],
    body: Callable[[], None],
    names: AssignedNames,
    temporaries: Sequence[str],
) -> None:
    """``while test(): body()``, as a loop in the graph from the first iteration whose test is a symbol.

    Raises:
        InvalidArgumentError: a variable's shape or structure differs after one iteration.
        DTypeError: a variable's dtype does, or what the body assigns can't be a tensor.
    """

    def iteration(counters: Sequence[Any]) -> tuple[list[Any], Any]:
        body()
        return [], test()

    while True:
        go_on = tested(test())
        symbol = symbolic(go_on)
        if symbol is not None:
            _Loop(SavedVariables((test, body), names, temporaries)).run(symbol, [], iteration)
            return
        if not go_on:
            return
        with noting(None):
            body()


def for_stmt(
    iterated: Any,
    extra_test: Callable[[], Any] | None,
    body: Callable[[Any], None],
    names: AssignedNames,
    temporaries: Sequence[str],
) -> None:
    """``for x in iterated: body(x)`` while ``extra_test()`` holds: a loop in the graph over a symbol.

    Python's iterables run in Python; from the iteration on whose test is a symbol (a ``break`` under a tensor
    ``if``), each iteration is a conditional.

    Raises:
        InvalidArgumentError: a variable's shape or structure differs after one iteration, or a scalar is
        iterated.
        DTypeError: a variable's dtype does, or what the body assigns can't be a tensor.
    """
    iterations = iterations_of(iterated)
    if iterations is not None:
        loop = _Loop(SavedVariables((body, extra_test), names, temporaries))
        _for_iterations(iterations, extra_test, body, loop)
        return
    if isinstance(iterated, AbstractSource) and not dispatch.current().eager:
        loop = _Loop(SavedVariables((body, extra_test), names, temporaries))
        loop.run_over(iterated.reading(), extra_test, body)
        return
    with noting(None):
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
    go_on = extra_test()
    for x in iterated if symbolic(go_on) is not None or go_on else ():
        if symbolic(go_on) is None:
            body(x)
        else:
            branches = (lambda x=x: body(x)), (lambda: None)
            choose(go_on, branches, SavedVariables((body, extra_test), names, temporaries), fill=True)
        go_on = extra_test()
        if symbolic(go_on) is None and not go_on:
            return


def _for_iterations(
    iterations: LoopIterations, extra_test: Callable[[], Any] | None, body: Callable[[Any], None], loop: _Loop
) -> None:
    def goes_on(k: Any) -> Any:
        inside = iterations.has(k)
        if extra_test is None:
            return inside
        wanted = extra_test()
        if symbolic(wanted) is None:
            return inside if wanted else False
        return inside & truth(symbolic(wanted), "a for loop")

    def iteration(counters: Sequence[Any]) -> tuple[list[Any], Any]:
        (k,) = counters
        body(iterations.at(k))
        return [k + 1], goes_on(k + 1)

    first = convert_to_tensor(as_array(0, iterations.counter))
    flag = goes_on(first)
    if flag is not False:
        loop.run(flag, [first], iteration)


@dataclass(frozen=True, slots=True)
class _Carried:
    """A variable that the graph's loop carries.

    Attributes:
        name: the variable's.
        structure: of its value.
        specs: of its leaves.
        initial: the leaves before the loop; None for one that is not assigned before.
        unsure: of each leaf, whether a bool is carried with it that tells if it has been assigned, since
            it may be missing before the loop, or after an iteration.
    """

    name: str
    structure: Structure
    specs: tuple[TensorSpec, ...]
    initial: tuple[Any, ...]
    unsure: tuple[bool, ...]


class _Loop:
    """A loop whose iterations assign Python variables."""

    def __init__(self, state: SavedVariables) -> None:
        self._state = state
        self._names = state.names
        self._most: int | None = None

    def run(
        self, flag: Any, counters: list[Any], iteration: Callable[[Sequence[Any]], tuple[list[Any], Any]]
    ) -> None:
        """Stage the loop: iterations follow while the flag holds that the iteration before, or ``flag``,
        gave.

        Args:
            flag: whether there is a first iteration, a symbol.
            counters: what else is carried, tensors.
            iteration: runs the body: takes the counters, and returns the next ones and the next flag.
        """
        leading = [truth(flag, "a loop"), *counters]

        def node(body: Body, initial: list[Any]) -> tuple[Any, list[Any]]:
            found = loop_node(_first_argument(body), body, initial, self._most)
            return leading[0], found[len(leading) :]

        self._stage(leading, iteration, (), node)

    def run_over(
        self, reading: StreamReading, extra_test: Callable[[], Any] | None, body: Callable[[Any], None]
    ) -> None:
        """Stage the loop: an iteration for each element that is read, while ``extra_test`` holds."""

        def wanted() -> Any:
            go_on = True if extra_test is None else extra_test()
            found = symbolic(go_on)
            return convert_to_tensor(bool(go_on)) if found is None else truth(found, "a for loop")

        def iteration(given: Sequence[Any]) -> tuple[list[Any], Any]:
            body(unflatten(reading.structure, given[1:]))
            return [convert_to_tensor(True)], wanted()

        def node(body: Body, initial: list[Any]) -> tuple[Any, list[Any]]:
            if self._most is not None:
                raise InvalidArgumentError(
                    "set_loop_options bounds the iterations of loops over tensors, not over data; loop over "
                    f"dataset.take({self._most}).{here()}"
                )
            _, ran, *results = stream_node(reading, body, initial)
            return ran, results

        self._stage([wanted(), convert_to_tensor(False)], iteration, reading.specs, node)

    def _stage(
        self,
        leading: list[Any],
        iteration: Callable[[Sequence[Any]], tuple[list[Any], Any]],
        given: Sequence[TensorSpec],
        node: Callable[[Body, list[Any]], tuple[Any, list[Any]]],
    ) -> None:
        """Trace the body until what it carries is settled, add the loop, and set the variables to its end.

        Args:
            leading: the flag and what else is carried before the variables.
            iteration: runs the body.
            given: the specs of what each iteration is given.
            node: adds the loop to the graph; returns whether there was an iteration, and the variables'
            leaves.
        """
        before = self._state.read()
        plans = [_plan(*row) for row in zip(self._names, before, strict=True)]
        for _ in range(2 + _TRIALS * len(before)):
            body, plans, settled = self._trial(before, plans, leading, iteration, given)
            if settled:
                break
        else:
            raise DTypeError(
                f"The dtypes of a loop's variables change in each iteration; cast them with df.cast.{here()}"
            )
        initial = [*leading, *(leaf for plan in plans if plan for leaf in _initial(plan))]
        ran, results = node(body, initial)
        self._state.write(_packed(before, plans, iter(results), ran=ran))

    def _trial(
        self,
        before: Values,
        plans: list[_Carried | None],
        leading: list[Any],
        iteration: Callable[[Sequence[Any]], tuple[list[Any], Any]],
        given: Sequence[TensorSpec],
    ) -> tuple[Body, list[_Carried | None], bool]:
        """Trace one iteration; return the plans that it shows to be right, and whether it was traced with
        them."""
        tracer = inner_tracer("loop_body")
        arguments = [tracer.argument(spec_of(x)) for x in leading]
        leaves = [tracer.argument(spec) for plan in plans if plan for spec in _carried_specs(plan)]
        items = [tracer.argument(spec) for spec in given]
        with tracing(tracer):
            start = _packed(before, plans, iter(leaves))
        self._state.write(start)
        options = LoopOptions()
        try:
            with noting(options):
                counters, go_on = _turned(tracer, iteration, [*arguments[1:], *items])
        except DualflowError:  # perhaps since it was traced without the shapes that it has said
            self._state.write(before)
            open_plans = _with_invariants(plans, options.invariants(leaves))
            if open_plans == plans:
                raise
            return Body(tracer, (), LEAF, ()), open_plans, False
        self._most = options.most
        after = start if go_on is None else self._state.read()
        self._state.write(before)
        shapes = iter(options.invariants(leaves))
        invariants = [[next(shapes) for _ in _carried_specs(p)] if p else [] for p in plans]
        rows = zip(self._names, before, after, plans, invariants, strict=True)
        seen = [_seen(*row) for row in rows]
        settled = all(new is old for new, old in zip(seen, plans, strict=True))
        outputs: list[Value] = []
        if settled:
            go_on = arguments[0] if go_on is None else go_on
            outputs = [value_of(x, None, tracer) for x in (go_on, *counters)]
            for x, plan in zip(after, plans, strict=True):
                if plan is not None:
                    with tracing(tracer):
                        outputs += _outputs(x, plan, tracer)
        inputs = tuple(x._value for x in (*arguments, *leaves, *items))
        return Body(tracer, inputs, LEAF, tuple(outputs)), seen, settled


def _turned(
    tracer: Tracer, iteration: Callable[[Sequence[Any]], tuple[list[Any], Any]], counters: Sequence[Any]
) -> tuple[Sequence[Any], Any]:
    """The next counters and whether the loop goes on, traced; None if the iteration ends with a ``raise``."""

    def run() -> tuple[Sequence[Any], Any]:
        try:
            following, go_on = iteration(counters)
        except Ended as ended:
            raise stop(ended) from None
        go_on = tested(go_on)
        symbol = symbolic(go_on)
        return following, truth(go_on if symbol is None else symbol, "a loop")

    return TracedBranch(tracer).trace(run) or (counters, None)


def _plan(name: str, x: Any) -> _Carried | None:
    """How the variable ``name`` of value ``x`` is carried; None for what must stay as it is."""
    if x is None or is_undefined(x) or isinstance(x, AbstractVariable | str | bytes):
        return None
    return _carried(name, x)


def _carried(name: str, x: Any) -> _Carried | None:
    """How a variable of value ``x`` is carried; None if a leaf of it can't be a tensor."""
    leaves, structure = flatten(x)
    if not leaves or not all(map(is_value, leaves)):
        return None
    specs, unsure = tuple(map(spec_of, leaves)), tuple(map(is_maybe_unassigned, leaves))
    return _Carried(name, structure, specs, tuple(leaves), unsure)


def _seen(
    name: str, before: Any, after: Any, plan: _Carried | None, invariants: Sequence[Shape | None]
) -> _Carried | None:
    """How a variable is carried that held ``before`` and, after one iteration, ``after``."""
    if plan is None:
        if is_same(before, after):
            return None
        found = _carried(name, after) if isinstance(after, str | bytes) else _plan(name, after)
        if is_unreturned(before):  # the flag that goes with it says whether it is read
            return found and replace(found, initial=tuple(map(zeros, found.specs)), unsure=_sure(found))
        if isinstance(before, TensorArray) and found is not None and isinstance(after, TensorArray):
            first = _plan(name, before.shaped(Shape(found.specs[0].shape[1:])))
            return first and replace(found, initial=first.initial)
        if is_undefined(before):
            return found and replace(found, initial=(None,) * len(found.specs))
        own = isinstance(before, AbstractVariable | str | bytes)
        if own and found is not None and found.structure == LEAF:
            return replace(found, initial=(before,), unsure=_sure(found))
        was = "None" if before is None else f"a {type(before).__name__}"
        raise InvalidArgumentError(
            f"{name!r} is {was} before the loop, but another object after one iteration. Give it a tensor "
            f"of its final shape and dtype before the loop.{here()}"
        )
    leaves, structure = flatten(after)
    if is_undefined(after):
        raise InvalidArgumentError(
            f"{name!r} has a value before the loop, but none after one iteration; assign it in the loop, or "
            f"delete it after the loop.{here()}"
        )
    check_structure(ITERATIONS, repr(name), plan.structure, structure)
    rows = zip(leaves, plan.initial, plan.specs, invariants, strict=False)  # these are of bools too
    specs = [_leaf_spec(name, *row) for row in rows]
    unsure = tuple(
        u or (i is None and is_maybe_unassigned(x))
        for u, i, x in zip(plan.unsure, plan.initial, leaves, strict=True)
    )
    same = unsure == plan.unsure and all(a is b for a, b in zip(specs, plan.specs, strict=True))
    return plan if same else replace(plan, specs=tuple(specs), unsure=unsure)


def _leaf_spec(name: str, after: Any, initial: Any, spec: TensorSpec, invariant: Shape | None) -> TensorSpec:
    if not is_value(after):
        raise DTypeError(
            f"{name!r} is a tensor before the loop, but a {type(after).__name__} after one iteration. Keep "
            f"it a tensor, or use another name.{here()}"
        )
    if adapts(after, spec.dtype) and not spec.shape:
        return spec
    now = spec_of(after)
    if invariant is not None:
        before = None if initial is None else spec_of(initial).shape
        check_invariant(name, before, now.shape, invariant)
        if spec.shape != invariant:
            spec = TensorSpec.of(invariant, spec.dtype)
        now = TensorSpec.of(invariant, now.dtype)
    if now.dtype is not spec.dtype and adapts(initial, now.dtype):
        spec = TensorSpec.of(spec.shape, now.dtype)
    open_sizes = f"df.autograph.experimental.set_loop_options(shape_invariants=[({name}, shape)])"
    check_spec(ITERATIONS, repr(name), spec, now, shape_advice=f", or leave sizes open with {open_sizes}")
    return spec


def _with_invariants(
    plans: Sequence[_Carried | None], invariants: Sequence[Shape | None]
) -> list[_Carried | None]:
    """The plans with the shapes that were said, one for each carried leaf."""
    shapes = iter(invariants)
    found: list[_Carried | None] = []
    for plan in plans:
        said = [next(shapes) for _ in _carried_specs(plan)] if plan else []
        rows = zip(plan.specs if plan else (), said, strict=False)  # these are of bools too
        specs = tuple([spec if s is None else TensorSpec.of(s, spec.dtype) for spec, s in rows])
        found.append(plan and replace(plan, specs=specs))
    return found


def _sure(plan: _Carried) -> tuple[bool, ...]:
    return (False,) * len(plan.specs)


def _packed(
    before: Values, plans: Sequence[_Carried | None], carried: Iterator[Any], ran: Any = None
) -> Values:
    """The state with the variables made of what is carried; after the loop, ``ran`` is if it had an
    iteration."""
    return tuple(
        x if plan is None else unflatten(plan.structure, _leaves(plan, carried, ran))
        for x, plan in zip(before, plans, strict=True)
    )


def _leaves(plan: _Carried, carried: Iterator[Any], ran: Any) -> list[Any]:
    leaves = [next(carried) for _ in plan.specs]
    holds = [next(carried) if u else ran if i is None else None for u, i in _guards(plan)]
    return [
        x if has is None else maybe_unassigned(x, has, plan.name)
        for x, has in zip(leaves, holds, strict=True)
    ]


def _guards(plan: _Carried) -> Iterator[tuple[bool, Any]]:
    return zip(plan.unsure, plan.initial, strict=True)


def _carried_specs(plan: _Carried) -> tuple[TensorSpec, ...]:
    """The specs of the leaves, and of the bools that are carried with some of them."""
    return plan.specs + (TensorSpec([], bool_),) * sum(plan.unsure)


def _initial(plan: _Carried) -> list[Any]:
    """What is carried into the first iteration, as tensors of the current engine."""
    engine = dispatch.current()
    found: list[Any] = []
    for leaf, spec, unsure in zip(plan.initial, plan.specs, plan.unsure, strict=True):
        if unsure and leaf is not None:
            leaf = taken_apart(leaf)[0]
        if leaf is None:
            found.append(engine.constant(zeros(spec)))
        elif isinstance(leaf, AbstractVariable):
            found.append(engine.read(leaf))
        elif isinstance(leaf, AbstractTensor):
            found.append(engine.lift(leaf))
        else:
            found.append(engine.constant(as_array(leaf, spec.dtype)))
    for unsure, leaf in _guards(plan):
        if unsure:
            found.append(convert_to_tensor(False) if leaf is None else engine.lift(taken_apart(leaf)[1]))
    return found


def _outputs(after: Any, plan: _Carried, tracer: Tracer) -> list[Value]:
    """What is carried between iterations."""
    leaves, _ = flatten(after)
    apart = [taken_apart(x) if u else (x, None) for x, u in zip(leaves, plan.unsure, strict=True)]
    values = [value_of(x, spec.dtype, tracer) for (x, _), spec in zip(apart, plan.specs, strict=True)]
    return values + [value_of(ran, None, tracer) for _, ran in apart if ran is not None]


def _first_argument(body: Body) -> Body:
    """The body that takes the arguments of ``body`` and returns the first."""
    tracer = inner_tracer("loop_test")
    arguments = tuple(tracer.argument(v.spec)._value for v in body.arguments)
    return Body(tracer, arguments, LEAF, arguments[:1])
