"""``while`` and ``for`` over tensors: loops of the graph that carry Python variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from dualflow.core import dispatch
from dualflow.core.convert import as_array
from dualflow.core.dispatch import AbstractSource
from dualflow.core.errors import DTypeError, DualflowError, InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.core.tree import LEAF, unflatten
from dualflow.function.autograph.assigned_variables import AssignedNames, SavedVariables
from dualflow.function.autograph.branches import stage_if
from dualflow.function.autograph.carried_variables import (
    Carried,
    Values,
    carried_inputs,
    carried_specs,
    packed_variables,
    plan_after_iteration,
    plan_for,
    values_after,
    values_before,
    with_invariants,
)
from dualflow.function.autograph.loop_options import LoopOptions, loop_options
from dualflow.function.autograph.merge_values import (
    condition_value,
    spec_of,
    symbolic,
    truth,
    value_of,
)
from dualflow.function.autograph.sequences import LoopIterations, iterations_of
from dualflow.function.autograph.stream_loops import ElementSource, stream_node
from dualflow.function.control.control_nodes import loop_node
from dualflow.function.control.element_shapes import with_element_shapes
from dualflow.function.control.graph_exceptions import BranchRaised, TracedBranch, end_with_failing_check
from dualflow.function.control.trace_bodies import Body, check_sizes_read, inner_tracer
from dualflow.function.errors import here
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.graph.ir import Value
from dualflow.ops.creation import convert_to_tensor

_TRACES_PER_VARIABLE: Final = 3
"""The most traces of a loop body for each of its variables, until the specs of all are stable."""


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
        plans = [plan_for(*variable) for variable in zip(self._names, before, strict=True)]
        for _ in range(2 + _TRACES_PER_VARIABLE * len(before)):
            body, plans, is_stable = self._trace_iteration(before, plans, leading, iteration, item_specs)
            if is_stable:
                break
        else:
            raise DTypeError(
                f"The dtypes of a loop's variables change in each iteration; cast them with df.cast.{here()}"
            )
        check_sizes_read([body], body)
        ran, results = node(body, values_before(leading, plans))
        self._state.write(packed_variables(before, plans, iter(results), ran=ran))

    def _trace_iteration(
        self,
        before: Values,
        plans: list[Carried | None],
        leading: list[Any],
        iteration: Callable[[Sequence[Any]], tuple[list[Any], Any]],
        item_specs: Sequence[TensorSpec],
    ) -> tuple[Body, list[Carried | None], bool]:
        """Trace one iteration with the variables carried as in ``plans``.

        Returns the body, the plans that follow, and whether they are the same.
        """
        tracer = inner_tracer("loop_body")
        arguments = [tracer.argument(spec_of(x)) for x in leading]
        leaves = [tracer.argument(*x) for plan in plans if plan for x in carried_inputs(plan)]
        items = [tracer.argument(spec) for spec in item_specs]
        with tracing(tracer):
            start = packed_variables(before, plans, iter(leaves))
        self._state.write(start)
        options = LoopOptions()
        try:
            with loop_options(options):
                counters, flag = _traced_iteration(tracer, iteration, [*arguments[1:], *items])
        except DualflowError:  # perhaps since it was traced without its shape invariants
            self._state.write(before)
            dynamic_plans = with_invariants(plans, options.invariants(leaves))
            if dynamic_plans == plans:
                raise
            return Body(tracer, (), LEAF, ()), dynamic_plans, False
        self._max_iterations = options.max_iterations
        after = start if flag is None else self._state.read()
        self._state.write(before)
        shapes = iter(options.invariants(leaves))
        invariants = [[next(shapes) for _ in carried_specs(p)] if p else [] for p in plans]
        inputs = [x._value for x in (*arguments, *leaves)]
        shaped = with_element_shapes(before, after, tracer, inputs, lambda: values_before(leading, plans))
        variables = zip(self._names, shaped, after, plans, invariants, strict=True)
        new_plans = [plan_after_iteration(*variable) for variable in variables]
        is_stable = all(new is old for new, old in zip(new_plans, plans, strict=True))
        outputs: list[Value] = []
        if is_stable:
            flag = arguments[0] if flag is None else flag
            outputs = [value_of(x, None, tracer) for x in (flag, *counters)]
            for x, plan in zip(after, plans, strict=True):
                if plan is not None:
                    with tracing(tracer):
                        outputs += values_after(x, plan, tracer)
        inputs += [x._value for x in items]
        return Body(tracer, tuple(inputs), LEAF, tuple(outputs)), new_plans, is_stable


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


def _first_argument(body: Body) -> Body:
    """The test of a loop: a body that returns the flag, the first argument of ``body``."""
    tracer = inner_tracer("loop_test")
    arguments = tuple(tracer.argument(v.spec)._value for v in body.arguments)
    return Body(tracer, arguments, LEAF, arguments[:1])
