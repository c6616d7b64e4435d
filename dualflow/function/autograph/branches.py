"""``if``, the conditional expression, ``and``, ``or`` and ``not``, over tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import CellType
from typing import Any, Final

from dualflow.core import dispatch
from dualflow.core.dtypes import DType
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.tree import LEAF, flatten, unflatten
from dualflow.function.autograph.merge_values import (
    adapts,
    as_index,
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
from dualflow.function.autograph.state import UNRETURNED, AssignedNames, LocalVariable, SavedVariables
from dualflow.function.autograph.unassigned import is_maybe_unassigned, maybe_unassigned, taken_apart
from dualflow.function.control.bodies import Body, inner_tracer, tracer_of
from dualflow.function.control.control_flow import cond
from dualflow.function.control.control_nodes import cond_node
from dualflow.function.control.raising import Ended, TracedBranch, check, conditional, proven_value, stop
from dualflow.function.control.shape_invariants import may_merge
from dualflow.function.control.spec_checks import MAIN_AND_ELSE, check_spec, check_structure
from dualflow.function.control.tensor_array import TensorArray
from dualflow.function.errors import here
from dualflow.function.tracing.symbolic_tensor import SymbolicTensor
from dualflow.function.tracing.tracer import Tracer
from dualflow.graph.ir import Value
from dualflow.ops.comparison import logical_not
from dualflow.ops.creation import convert_to_tensor

_NAMES: Final = ("main", "else")
_RESULT: Final = "retval_"
_NOTHING: Final = object()
_UNSURE: Final = object()


def if_stmt(
    condition: Any,
    body: Callable[[], None],
    orelse: Callable[[], None] | None,
    names: AssignedNames,
    temporaries: Sequence[str],
) -> None:
    """``if condition: body() else: orelse()``, as a conditional in the graph where ``condition`` is a symbol.

    Args:
        condition: anything that has a truth.
        body, orelse: generated functions, which assign variables.
        names: those that are read afterwards.
        temporaries: the others.

    Raises:
        InvalidArgumentError: a variable is None or unassigned after one branch, or differs in shape.
        DTypeError: a variable differs in dtype between the branches, or can't be a tensor.
    """
    condition = tested(condition)
    branches = body, orelse or _nothing
    symbol = symbolic(condition)
    known = None if symbol is None else symbol.static_value()
    if symbol is None or (known is not None and not known.shape):
        branches[0 if (condition if symbol is None else known) else 1]()
        return
    sure = proven_value(symbol)
    if sure is not None:
        branches[0 if sure else 1]()
        return
    choose(symbol, branches, SavedVariables((body, orelse), names, temporaries), fill=False)


def _nothing() -> None:
    """An ``else`` that isn't there."""


def choose(
    condition: Any, branches: Sequence[Callable[[], None]], state: SavedVariables, *, fill: bool
) -> None:
    """Stage an ``if``; with ``fill`` a variable that one branch leaves unassigned is zeros there."""
    condition = truth(condition, "an if or assert statement")
    before = state.read()
    main = TracedBranch(inner_tracer(_NAMES[0]))
    main.trace(branches[0])
    left = state.read()
    state.write(before)
    if main.ended is not None:
        check(logical_not(condition), main)
        _go_on(branches[1])
        return
    other = TracedBranch(inner_tracer(_NAMES[1]))
    other.trace(branches[1])
    right = state.read()
    state.write(before)
    if other.ended is not None:
        check(condition, other)
        state.write(_brought_out(main.tracer, left))
        return
    tracers = (main.tracer, other.tracer)
    merger = _Merger(tracers, fill)
    plans = [
        merger.merge(name, *_implied(condition, a, b, tracers))
        for name, a, b in zip(state.names, left, right, strict=True)
    ]
    bodies = [Body(t, (), LEAF, tuple(v)) for t, v in zip(tracers, merger.outputs, strict=True)]
    results = iter(cond_node(as_index(condition), bodies[::-1]))
    state.write([plan(results) for plan in plans])


def _go_on(branch: Callable[[], None]) -> None:
    """Run the branch that remains after a check has ended the other one."""
    with conditional(tracer_of(dispatch.current())):
        try:
            branch()
        except Ended as ended:
            raise stop(ended) from None


def _brought_out(tracer: Tracer, values: Sequence[Any]) -> list[Any]:
    """The results of a branch that always runs, moved from its own trace to the current one."""
    flat = [flatten(x) for x in values]
    own = [x for leaves, _ in flat for x in leaves if type(x) is SymbolicTensor and x._tracer is tracer]
    outputs = tuple([x._value for x in own])
    results = cond_node(convert_to_tensor(0), [Body(tracer, (), LEAF, outputs)])
    found = {id(x): result for x, result in zip(own, results, strict=True)}
    return [unflatten(structure, [found.get(id(x), x) for x in leaves]) for leaves, structure in flat]


def _implied(condition: Any, main: Any, other: Any, tracers: Sequence[Tracer]) -> tuple[Any, Any]:
    """Both values, where one that is the condition, or what the condition negates, is known in its branch.

    So a flag such as "has returned" is known to hold after ``if not flag: flag = True``.
    """
    if is_same(main, other):
        return main, other
    engine = dispatch.current()
    flag, truthful = engine.lift(condition)._value, True  # type: ignore[attr-defined]  # a trace's are symbols
    while flag.node is not None and flag.node.op is logical_not.op:
        flag, truthful = flag.node.inputs[0], not truthful

    def known(x: Any, holds: bool, branch: Tracer) -> Any:
        if type(x) is not SymbolicTensor or x._tracer is branch:
            return x
        return holds is truthful if engine.lift(x)._value is flag else x  # type: ignore[attr-defined]  # as above

    return known(main, True, tracers[0]), known(other, False, tracers[1])


class _Merger:
    """Decides which values of two branches become results of the conditional, and collects them."""

    def __init__(self, tracers: Sequence[Tracer], fill: bool) -> None:
        self.outputs: tuple[list[Value], list[Value]] = ([], [])
        self._tracers = tracers
        self._fill = fill

    def merge(self, name: str, main: Any, other: Any) -> Callable[[Any], Any]:
        """How the variable ``name`` is made of the conditional's results, which come from an iterator."""
        if is_same(main, other):
            return lambda results: main
        if name == _RESULT and all(x is None or is_undefined(x) for x in (main, other)):
            return lambda results: None
        what = _called(name)
        pair = _shaped(*self._filled(name, main, other))
        missing = [self._fill and x is not y for x, y in zip((main, other), pair, strict=True)]
        flat = [flatten(x) for x in pair]
        structure = flat[0][1]
        check_structure(MAIN_AND_ELSE, what, structure, flat[1][1])
        leaves = [self._leaf(name, *leaf, missing) for leaf in zip(flat[0][0], flat[1][0], strict=True)]
        return lambda results: unflatten(structure, [_merged(name, leaf, results) for leaf in leaves])

    def _filled(self, name: str, main: Any, other: Any) -> tuple[Any, Any]:
        what = _called(name)
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

    def _leaf(self, name: str, main: Any, other: Any, missing: Sequence[bool]) -> Any:
        """The leaf itself where both branches have it, else a mark that it comes from the conditional.

        A leaf that may be ``missing`` on a way, or that a loop may not have assigned, has a bool with it.
        """
        if is_same(main, other):
            return main
        what = _called(name)
        if name != _RESULT and (any(missing) or is_maybe_unassigned(main) or is_maybe_unassigned(other)):
            (main, main_has), (other, other_has) = taken_apart(main), taken_apart(other)
            self._join(what, main, other)
            self._join(
                what,
                *(False if gone else has for has, gone in zip((main_has, other_has), missing, strict=True)),
            )
            return _UNSURE
        self._join(what, main, other)
        return _NOTHING

    def _join(self, what: str, main: Any, other: Any) -> None:
        """Make the leaf a result of the conditional."""
        for which, x in zip(_NAMES, (main, other), strict=True):
            if not is_value(x):
                raise DTypeError(
                    f"{what} is a {type(x).__name__} at the end of the {which} branch and something else "
                    "at the end of the other; only tensors, numbers and strings can depend on a "
                    f"tensor.{here()}"
                )
        dtype = _meeting(main, other)
        for outputs, x, tracer in zip(self.outputs, (main, other), self._tracers, strict=True):
            outputs.append(value_of(x, dtype, tracer))
        a, b = (outputs[-1].spec for outputs in self.outputs)
        check_spec(MAIN_AND_ELSE, what, a, b, may_merge)


def _merged(name: str, leaf: Any, results: Iterator[Any]) -> Any:
    """A leaf of the variable ``name``, of the conditional's results where it differs between the branches."""
    if leaf is _UNSURE:
        x = next(results)
        return maybe_unassigned(x, next(results), name)
    return next(results) if leaf is _NOTHING else leaf


def _shaped(main: Any, other: Any) -> tuple[Any, Any]:
    """Two values; of two TensorArrays that nothing was written to in one branch, with the other's shape."""
    if isinstance(main, TensorArray) and isinstance(other, TensorArray):
        if main.is_unshaped and other.element_shape is not None:
            return main.shaped(other.element_shape), other
        if other.is_unshaped and main.element_shape is not None:
            return main, other.shaped(main.element_shape)
    return main, other


def _meeting(a: Any, b: Any) -> DType | None:
    """The dtype that a Python number takes if the other branch has a tensor in its place; None otherwise."""
    for x, y in ((a, b), (b, a)):
        if hasattr(y, "dtype") and adapts(x, spec_of(y).dtype):
            return spec_of(y).dtype
    return None


def _called(name: str) -> str:
    return "return value" if name == _RESULT else repr(name)


def _zeros_like(name: str, x: Any) -> Any:
    """Arrays of zeros in the structure of ``x``: what a variable holds where nothing will read it."""
    leaves, structure = flatten(x)
    if not all(map(is_value, leaves)):
        raise DTypeError(
            f"{_called(name)} is {x!r} on some ways alone, and which one runs depends on a tensor: only "
            f"tensors, numbers and strings can. Assign it on all ways, or before.{here()}"
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
    """``first and second()``, where the second runs only if it is needed."""
    symbol = symbolic(tested(first))
    if symbol is None:
        return first and second()
    return cond(truth(symbol, "`and`"), lambda: _operand(second, "`and`"), lambda: False)


def or_(first: Any, second: Callable[[], Any]) -> Any:
    """``first or second()``, where the second runs only if it is needed."""
    symbol = symbolic(tested(first))
    if symbol is None:
        return first or second()
    return cond(truth(symbol, "`or`"), lambda: True, lambda: _operand(second, "`or`"))


def not_(x: Any) -> Any:
    """``not x``."""
    symbol = symbolic(tested(x))
    return not x if symbol is None else logical_not(truth(symbol, "`not`"))


def _operand(operand: Callable[[], Any], what: str) -> Any:
    found = tested(operand())
    symbol = symbolic(found)
    return truth(found if symbol is None else symbol, what)


def returned(value: Any, did_return: Any) -> Any:
    """What a function returns at its end, where ``did_return`` tells whether a ``return`` was reached.

    Raises:
        InvalidArgumentError: that depends on a tensor.
    """
    symbol = symbolic(did_return)
    if symbol is not None and value is not None and proven_value(symbol) is not True:
        node = symbol._value.node
        place = f"\n  {node.origin}" if node is not None and node.origin else here()
        raise InvalidArgumentError(
            f"A value is returned under a condition that is a tensor: the else branch must also have a "
            f"return statement. Return a value of the same shape and dtype on all ways.{place}"
        )
    return None if value is UNRETURNED else value
