"""``if``, the conditional expression, ``and``, ``or`` and ``not``, over tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import CellType
from typing import Any, Final

from dualflow.core import dispatch
from dualflow.core.dtypes import DType
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.tree import LEAF, Structure, flatten, unflatten
from dualflow.function.autograph.assigned_variables import (
    UNRETURNED,
    AssignedNames,
    LocalVariable,
    SavedVariables,
)
from dualflow.function.autograph.merge_values import (
    adapts,
    as_index,
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
from dualflow.function.autograph.unassigned import is_maybe_unassigned, maybe_unassigned, value_and_flag
from dualflow.function.control.control_flow import cond
from dualflow.function.control.control_nodes import cond_node
from dualflow.function.control.element_shapes import equal_arrays
from dualflow.function.control.graph_exceptions import (
    BranchRaised,
    TracedBranch,
    check,
    conditional,
    end_with_failing_check,
    proven_value,
)
from dualflow.function.control.shape_invariants import may_merge
from dualflow.function.control.spec_checks import MAIN_AND_ELSE, check_spec, check_structure
from dualflow.function.control.tensor_array import TensorArray
from dualflow.function.control.trace_bodies import Body, inner_tracer, tracer_of
from dualflow.function.errors import here
from dualflow.function.tracing.symbolic_tensor import SymbolicTensor
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.graph.ir import Value
from dualflow.ops.comparison import logical_not
from dualflow.ops.creation import convert_to_tensor

_NAMES: Final = ("main", "else")
_RESULT: Final = "retval_"
_FROM_RESULTS: Final = object()
"""Marks a leaf whose value is the next result of the conditional."""
_WITH_FLAG: Final = object()
"""Marks a leaf whose value, and whether it is assigned, are the next two results."""


def if_stmt(
    condition: Any,
    body: Callable[[], None],
    orelse: Callable[[], None] | None,
    names: AssignedNames,
    temporaries: Sequence[str],
) -> None:
    """Run ``if condition: body() else: orelse()``; a ``cond`` node of the graph if ``condition`` is symbolic.

    Args:
        condition: any value with a truth value.
        body, orelse: generated functions, which assign variables.
        names: the assigned variables that are read afterwards.
        temporaries: the other assigned variables.

    Raises:
        InvalidArgumentError: a variable is None or unassigned after one branch, or differs in shape.
        DTypeError: a variable differs in dtype between the branches, or can't be a tensor.
    """
    condition = condition_value(condition)
    branches = body, orelse or _empty_else
    tensor = symbolic(condition)
    constant = None if tensor is None else tensor.static_value()
    if tensor is None or (constant is not None and not constant.shape):
        branches[0 if (condition if tensor is None else constant) else 1]()
        return
    proven = proven_value(tensor)
    if proven is not None:
        branches[0 if proven else 1]()
        return
    stage_if(tensor, branches, SavedVariables((body, orelse), names, temporaries), fill=False)


def _empty_else() -> None:
    """The ``else`` branch of an ``if`` without one."""


def stage_if(
    condition: Any, branches: Sequence[Callable[[], None]], state: SavedVariables, *, fill: bool
) -> None:
    """Add an ``if`` to the graph; with ``fill`` a variable that one branch does not assign is zeros there."""
    condition = truth(condition, "an if or assert statement")
    before = state.read()
    main = TracedBranch(inner_tracer(_NAMES[0]))
    main.trace(branches[0])
    after_main = state.read()
    state.write(before)
    if main.ended is not None:
        check(logical_not(condition), main)
        _run_inline(branches[1])
        return
    other = TracedBranch(inner_tracer(_NAMES[1]))
    other.trace(branches[1])
    after_other = state.read()
    state.write(before)
    if other.ended is not None:
        check(condition, other)
        state.write(_inlined(main.tracer, after_main))
        return
    tracers = (main.tracer, other.tracer)
    merger = _Merger(tracers, fill)
    plans = [
        merger.merge(name, *_with_implied_values(condition, a, b, tracers))
        for name, a, b in zip(state.names, after_main, after_other, strict=True)
    ]
    bodies = [Body(t, (), LEAF, tuple(v)) for t, v in zip(tracers, merger.outputs, strict=True)]
    results = iter(cond_node(as_index(condition), bodies[::-1]))
    state.write([plan(results) for plan in plans])


def _run_inline(branch: Callable[[], None]) -> None:
    """Trace ``branch`` as part of the current trace, as the other branch only raises: it became a check."""
    with conditional(tracer_of(dispatch.current())):
        try:
            branch()
        except BranchRaised as ended:
            raise end_with_failing_check(ended) from None


def _inlined(tracer: Tracer, values: Sequence[Any]) -> list[Any]:
    """Inline the trace of a branch that always runs.

    Returns the values of its variables in the current trace.
    """
    flat = [flatten(x) for x in values]
    inner = [x for leaves, _ in flat for x in leaves if type(x) is SymbolicTensor and x._tracer is tracer]
    outputs = tuple([x._value for x in inner])
    results = cond_node(convert_to_tensor(0), [Body(tracer, (), LEAF, outputs)])
    result_of = {id(x): result for x, result in zip(inner, results, strict=True)}
    return [unflatten(structure, [result_of.get(id(x), x) for x in leaves]) for leaves, structure in flat]


def _with_implied_values(condition: Any, main: Any, other: Any, tracers: Sequence[Tracer]) -> tuple[Any, Any]:
    """The values after two branches; one that is the condition, or its negation, is a bool in its branch.

    So a flag such as "has returned" is True after ``if not flag: flag = True``.
    """
    if is_same(main, other):
        return main, other
    engine = dispatch.current()
    flag, truthful = engine.lift(condition)._value, True  # type: ignore[attr-defined]  # a trace's are symbols
    while flag.node is not None and flag.node.op is logical_not.op:
        flag, truthful = flag.node.inputs[0], not truthful

    def implied(x: Any, holds: bool, branch: Tracer) -> Any:
        if type(x) is not SymbolicTensor or x._tracer is branch:
            return x
        return holds is truthful if engine.lift(x)._value is flag else x  # type: ignore[attr-defined]  # as above

    return implied(main, True, tracers[0]), implied(other, False, tracers[1])


def _flattened_in(tracer: Tracer, value: Any) -> tuple[list[Any], Structure]:
    """The leaves and the structure of a value after a branch, which records what a TensorArray joins."""
    with tracing(tracer):
        return flatten(value)


class _Merger:
    """Decides which variables of two branches become results of the conditional, and collects them."""

    def __init__(self, tracers: Sequence[Tracer], fill: bool) -> None:
        self.outputs: tuple[list[Value], list[Value]] = ([], [])
        self._tracers = tracers
        self._fill = fill

    def merge(self, name: str, main: Any, other: Any) -> Callable[[Any], Any]:
        """Merge the values that two branches give the variable ``name``.

        Returns a function that takes the merged value from an iterator of the conditional's results.
        """
        if is_same(main, other):
            return lambda results: main
        if name == _RESULT and all(x is None or is_undefined(x) for x in (main, other)):
            return lambda results: None
        what = _display_name(name)
        pair = self._shaped(*self._filled(name, main, other))
        missing = [self._fill and x is not y for x, y in zip((main, other), pair, strict=True)]
        flat = [_flattened_in(tracer, x) for tracer, x in zip(self._tracers, pair, strict=True)]
        structure = flat[0][1]
        check_structure(MAIN_AND_ELSE, what, structure, flat[1][1])
        leaves = [self._leaf(name, *leaf, missing) for leaf in zip(flat[0][0], flat[1][0], strict=True)]

        def merged(results: Iterator[Any]) -> Any:
            value = unflatten(structure, [_merged(name, leaf, results) for leaf in leaves])
            shaped = next((x for x, y in zip(pair, (main, other), strict=True) if x is not y), None)
            return value.sized_as(shaped) if isinstance(shaped, TensorArray) else value

        return merged

    def _filled(self, name: str, main: Any, other: Any) -> tuple[Any, Any]:
        """The values after both branches, with zeros for an unassigned one."""
        what = _display_name(name)
        for which, x, y in (("main", main, other), ("else", other, main)):
            if is_undefined(x):
                if not (self._fill or is_unreturned(x) or name == _RESULT):
                    raise InvalidArgumentError(
                        f"{what} must also be initialized in the {which} branch; assign it in both "
                        f"branches, or before the `if`.{here()}"
                    )
                zeros = _zeros_like(name, y)
                return (zeros, other) if which == "main" else (main, zeros)
            if x is None:
                raise InvalidArgumentError(
                    f"{what} is None at the end of the {which} branch; give it a tensor in both branches, or "
                    f"in none.{here()}"
                )
        return main, other

    def _shaped(self, main: Any, other: Any) -> tuple[Any, Any]:
        """Two values, with the element shape of one TensorArray for the other if that has none."""
        if isinstance(main, TensorArray) and isinstance(other, TensorArray):
            main, other = equal_arrays((main, other), self._tracers)
        return main, other

    def _leaf(self, name: str, main: Any, other: Any, missing: Sequence[bool]) -> Any:
        """The leaf if both branches have the same one, else a mark for a result of the conditional.

        A leaf that may be ``missing`` after a branch, or that a loop may not have assigned, has a flag.
        """
        if is_same(main, other):
            return main
        what = _display_name(name)
        if name != _RESULT and (any(missing) or is_maybe_unassigned(main) or is_maybe_unassigned(other)):
            (main, main_flag), (other, other_flag) = value_and_flag(main), value_and_flag(other)
            flags = zip((main_flag, other_flag), missing, strict=True)
            self._join(what, main, other)
            self._join(what, *(False if is_missing else flag for flag, is_missing in flags))
            return _WITH_FLAG
        self._join(what, main, other)
        return _FROM_RESULTS

    def _join(self, what: str, main: Any, other: Any) -> None:
        """Make a leaf of a variable, which differs between the branches, a result of the conditional."""
        for which, x in zip(_NAMES, (main, other), strict=True):
            if not is_value(x):
                raise DTypeError(
                    f"{what} is a {type(x).__name__} at the end of the {which} branch and something else "
                    "at the end of the other; only tensors, numbers and strings can depend on a "
                    f"tensor.{here()}"
                )
        dtype = _tensor_dtype(main, other)
        for outputs, x, tracer in zip(self.outputs, (main, other), self._tracers, strict=True):
            outputs.append(value_of(x, dtype, tracer))
        a, b = (outputs[-1].spec for outputs in self.outputs)
        check_spec(MAIN_AND_ELSE, what, a, b, may_merge)


def _merged(name: str, leaf: Any, results: Iterator[Any]) -> Any:
    """A leaf of the variable ``name``; one of the conditional's results if it differs between branches."""
    if leaf is _WITH_FLAG:
        x = next(results)
        return maybe_unassigned(x, next(results), name)
    return next(results) if leaf is _FROM_RESULTS else leaf


def _tensor_dtype(a: Any, b: Any) -> DType | None:
    """The dtype of the tensor if the other value is a Python number; else None."""
    for x, y in ((a, b), (b, a)):
        if hasattr(y, "dtype") and adapts(x, spec_of(y).dtype):
            return spec_of(y).dtype
    return None


def _display_name(name: str) -> str:
    return "return value" if name == _RESULT else f"'{name}'"


def _zeros_like(name: str, x: Any) -> Any:
    """Arrays of zeros in the structure of ``x``: the value of a variable that is not assigned."""
    leaves, structure = flatten(x)
    if not all(map(is_value, leaves)):
        raise DTypeError(
            f"{_display_name(name)} is {x!r} on some paths only, and which one runs depends on a tensor: "
            f"only tensors, numbers and strings can. Assign it on all paths, or before.{here()}"
        )
    return unflatten(structure, [zeros(spec_of(leaf)) for leaf in leaves])


def if_exp(condition: Any, if_true: Callable[[], Any], if_false: Callable[[], Any], text: str) -> Any:
    """``if_true() if condition else if_false()``; ``text`` is the source of the condition."""
    result = CellType()

    def body() -> None:
        result.cell_contents = if_true()

    def orelse() -> None:
        result.cell_contents = if_false()

    if_stmt(condition, body, orelse, (LocalVariable(f"... if {text} else ...", result),), ())
    return result.cell_contents


def and_(first: Any, second: Callable[[], Any]) -> Any:
    """``first and second()``; ``second`` is called only if it is needed."""
    tensor = symbolic(condition_value(first))
    if tensor is None:
        return first and second()
    return cond(truth(tensor, "`and`"), lambda: _operand(second, "`and`"), lambda: False)


def or_(first: Any, second: Callable[[], Any]) -> Any:
    """``first or second()``; ``second`` is called only if it is needed."""
    tensor = symbolic(condition_value(first))
    if tensor is None:
        return first or second()
    return cond(truth(tensor, "`or`"), lambda: True, lambda: _operand(second, "`or`"))


def not_(x: Any) -> Any:
    """``not x``."""
    tensor = symbolic(condition_value(x))
    return not x if tensor is None else logical_not(truth(tensor, "`not`"))


def _operand(operand: Callable[[], Any], what: str) -> Any:
    value = condition_value(operand())
    tensor = symbolic(value)
    return truth(value if tensor is None else tensor, what)


def returned(value: Any, did_return: Any) -> Any:
    """The result of a function, whose flag ``did_return`` is whether a ``return`` was reached.

    Raises:
        InvalidArgumentError: the flag depends on a tensor.
    """
    tensor = symbolic(did_return)
    if tensor is not None and value is not None and proven_value(tensor) is not True:
        node = tensor._value.node
        location = f"\n  {node.origin}" if node is not None and node.origin else here()
        raise InvalidArgumentError(
            f"A value is returned under a condition that is a tensor: the else branch must also have a "
            f"return statement. Return a value of the same shape and dtype on all paths.{location}"
        )
    return None if value is UNRETURNED else value
