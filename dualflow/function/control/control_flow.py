"""``cond``, ``case``, ``switch_case`` and ``while_loop``: Python's control flow eagerly, nodes in a trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from dualflow.core import dispatch
from dualflow.core.dispatch import AbstractTensor
from dualflow.core.dtypes import int32
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.core.tree import Structure, flatten, unflatten
from dualflow.function.control.control_nodes import cond_node, loop_node
from dualflow.function.control.element_shapes import with_element_shapes, with_equal_arrays
from dualflow.function.control.graph_exceptions import BranchRaised, TracedBranch, check
from dualflow.function.control.postponed_calls import postponable
from dualflow.function.control.shape_invariants import invariant_specs, matches_invariant, may_merge
from dualflow.function.control.spec_checks import (
    CASES,
    ITERATIONS,
    check_loop_variables,
    check_spec,
    check_structure,
)
from dualflow.function.control.tensor_array import TensorArray
from dualflow.function.control.trace_bodies import (
    Body,
    carried_shapes,
    check_sizes_read,
    inner_tracer,
    trace_body,
)
from dualflow.function.errors import here
from dualflow.function.tracing.collect_results import collect
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.ops.arithmetic import add_n
from dualflow.ops.checks import required
from dualflow.ops.comparison import not_equal
from dualflow.ops.conversion import cast, stop_gradient
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.selection import where

if TYPE_CHECKING:
    from typing import SupportsInt

    from dualflow.core.argument_types import IntLike, TensorLike

_NUMBERS: Final = (bool, int, float, complex)
_SEVERAL: Final = "several predicates of case(exclusive=True) hold; let them exclude each other."
_NONE: Final = "no predicate of case holds, and there is no default; give it one."


@entry
@postponable
def cond(
    pred: TensorLike, true_fn: Callable[[], Any], false_fn: Callable[[], Any], name: str | None = None
) -> Any:
    """The result of ``true_fn`` if the scalar ``pred`` is true, else of ``false_fn``; only one of them runs.

    Args:
        pred: a scalar of any dtype; zero is false.
        true_fn, false_fn: functions without parameters, which return tensors of the same structure, dtypes
            and shapes.
        name: ignored; as in TensorFlow.

    Raises:
        InvalidArgumentError: ``pred`` is no scalar, or the results differ in shape or structure.
        DTypeError: the results differ in dtype.

    >>> import dualflow as df
    >>> df.cond(df.constant(3) > 2, lambda: df.constant(1), lambda: df.constant(2)).numpy()
    np.int32(1)
    """
    pred = convert_to_tensor(pred)
    if pred.shape:
        raise InvalidArgumentError(
            f"cond takes a scalar, not a tensor of shape {pred.shape}; use df.where.{here()}"
        )
    if dispatch.current().eager:
        return true_fn() if bool(pred) else false_fn()
    return _choose(
        cast(pred != cast(0, pred.dtype) if not pred.dtype.is_bool else pred, int32), (false_fn, true_fn)
    )


@entry
@postponable
def switch_case(
    branch_index: IntLike,
    branch_fns: Sequence[Callable[[], Any]],
    default: Callable[[], Any] | None = None,
    name: str | None = None,
) -> Any:
    """The result of ``branch_fns[branch_index]``; of ``default``, or else the last, if it is out of range.

    >>> import dualflow as df
    >>> df.switch_case(df.constant(1), [lambda: df.constant(10), lambda: df.constant(20)]).numpy()
    np.int32(20)
    """
    index = cast(convert_to_tensor(branch_index), int32)
    branches = [*_in_order(branch_fns), *([default] if default is not None else [])]
    last = len(branches) - 1
    index = where((index < 0) | (index > last), last, index)
    if dispatch.current().eager:
        return branches[int(index)]()
    return _choose(index, branches)


@entry
def case(
    pred_fn_pairs: Sequence[tuple[Any, Callable[[], Any]]] | dict[Any, Callable[[], Any]],
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str | None = None,
) -> Any:
    """The result of the first function whose predicate is true, else of ``default``.

    Args:
        pred_fn_pairs: pairs of a bool scalar and a function without parameters, or a dict of them.
        default: a function without parameters; without it one of the predicates must be true.
        exclusive: whether at most one of the predicates may be true.
        strict: ignored; as in TensorFlow.
        name: ignored; as in TensorFlow.

    Raises:
        InvalidArgumentError: no predicate is true and there is no default, or several are that are exclusive.

    >>> import dualflow as df
    >>> x = df.constant(3)
    >>> size = df.case([(x < 2, lambda: 1), (x < 5, lambda: 2)], default=lambda: 3)
    >>> int(size)
    2
    """
    pairs = list(pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs)
    if not pairs:
        raise InvalidArgumentError(f"case takes at least one pair of a predicate and a function.{here()}")
    count = add_n([cast(pred, int32) for pred, _ in pairs])
    (first, function), *others = pairs
    if exclusive:
        first = required(first, count <= 1, _SEVERAL)
    if default is None:
        first = required(first, count > 0, _NONE)
        default = pairs[-1][1]
    return _first_of([(first, function), *others], default)


def _first_of(pairs: Sequence[tuple[Any, Callable[[], Any]]], default: Callable[[], Any]) -> Any:
    (pred, function), *others = pairs
    return cond(pred, function, (lambda: _first_of(others, default)) if others else default)


@entry
@postponable
def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: object,
    shape_invariants: object = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    maximum_iterations: SupportsInt | None = None,
    name: str | None = None,
) -> Any:
    """Repeat ``loop_vars = body(*loop_vars)`` while ``cond(*loop_vars)`` is true.

    Args:
        cond: a function of the loop variables that returns a scalar.
        body: a function of the loop variables that returns the next ones, of the same structure, dtypes and
            shapes.
        loop_vars: a list, tuple or other structure of tensors, or of values that convert to tensors.
        shape_invariants: a shape or spec for each loop variable, in their structure, with None for sizes
            that iterations may change; by default all shapes are constant. A SparseTensor keeps its shape;
            with an invariant, the number of its elements may change.
        back_prop: whether gradients flow through the loop.
        maximum_iterations: the largest number of iterations, a Python int; unlimited by default.

    The other arguments are TensorFlow's, and ignored.

    Raises:
        InvalidArgumentError: a loop variable changes its shape, or the structure differs.
        DTypeError: a loop variable changes its dtype. A variable that is a Python number before the loop has
            the dtype that it has after the first iteration.

    >>> import dualflow as df
    >>> i, total = df.while_loop(lambda i, s: i < 5, lambda i, s: (i + 1, s + i), (0, 0))
    >>> int(total)
    10
    """
    if not dispatch.current().eager:
        loop_vars = _with_shapes(body, loop_vars)
    flat, structure = flatten(loop_vars)
    limit = None if maximum_iterations is None else int(maximum_iterations)
    initial = [convert_to_tensor(x) for x in flat]
    numbers = [isinstance(x, _NUMBERS) for x in flat]
    specs = invariant_specs(unflatten(structure, initial), shape_invariants)
    loop = _eager_loop if dispatch.current().eager else _loop_node
    final = loop(cond, body, initial, structure, specs, limit, numbers)
    return final if back_prop else without_gradient(final)


def without_gradient(values: Any) -> Any:
    """The structure ``values`` with ``stop_gradient`` applied to its tensors."""
    leaves, structure = flatten(values)
    stopped = [stop_gradient(x) if isinstance(x, AbstractTensor) else x for x in leaves]
    return unflatten(structure, stopped)


def _with_shapes(body: Callable[..., Any], loop_vars: Any) -> Any:
    """The loop variables, with an element shape for each TensorArray that has none.

    The element shape of a TensorArray without one is that of the first write in ``body``.
    """
    if not isinstance(loop_vars, list | tuple):
        return loop_vars
    if not any(isinstance(x, TensorArray) and x.may_take_shape for x in loop_vars):
        return loop_vars
    flat, structure = flatten(loop_vars)
    initial, tracer = [convert_to_tensor(x) for x in flat], inner_tracer("loop_body")
    inputs = [tracer.argument(TensorSpec.of(x.shape, x.dtype)) for x in initial]
    with tracing(tracer):
        after = _as_vars(structure, body(*_arguments(structure, inputs)))
    arrays = with_element_shapes(loop_vars, after, tracer, [x._value for x in inputs], lambda: initial)
    return type(loop_vars)(arrays)


def _in_order(branches: Any) -> list[Callable[[], Any]]:
    if isinstance(branches, dict):
        branches = sorted(branches.items())
    items = [b if callable(b) else b[1] for b in branches]
    if not items:
        raise InvalidArgumentError(f"switch_case takes at least one branch.{here()}")
    return items


def _arguments(structure: Structure, leaves: Sequence[Any]) -> Sequence[Any]:
    """The arguments of a loop's functions: the items of a sequence of loop variables, else the structure."""
    packed = unflatten(structure, leaves)
    return packed if structure.kind in (list, tuple) or hasattr(structure.kind, "_fields") else (packed,)


def _eager_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    carried: list[Any],
    structure: Structure,
    specs: Sequence[TensorSpec],
    limit: int | None,
    numbers: Sequence[bool],
) -> Any:
    iterations = 0
    while (limit is None or iterations < limit) and bool(cond(*_arguments(structure, carried))):
        flat, new_structure = flatten(_as_vars(structure, body(*_arguments(structure, carried))))
        carried = [convert_to_tensor(x) for x in flat]
        if not iterations:
            specs = _adapted(specs, [x.spec for x in carried], numbers)
        check_structure(ITERATIONS, "loop_vars", structure, new_structure)
        check_loop_variables(specs, [x.spec for x in carried], matches_invariant)
        iterations += 1
    return unflatten(structure, carried)


def _as_vars(structure: Structure, result: Any) -> Any:
    """A body's result in the structure of the loop variables.

    A list may stand for a tuple and vice versa, and a value for a sequence of one.
    """
    if structure.kind in (list, tuple):
        items = result if isinstance(result, list | tuple) else [result]
        return structure.kind(items)
    return result


def _choose(index: Any, functions: Sequence[Callable[[], Any]]) -> Any:
    """The results of a cond node for ``functions``, in their structure.

    Assigned variables get their new values. A function that ends with a ``raise`` becomes a check before the
    node.
    """
    traced = [_branch(f) for f in functions]
    for i, (branch, _) in enumerate(traced):
        if branch.ended is not None:
            check(not_equal(index, i), branch)
    returned = [(branch.tracer, result) for branch, (result,) in traced if branch.ended is None]
    if not returned:
        raise BranchRaised(None)
    tracers = [tracer for tracer, _ in returned]
    results = with_equal_arrays([result for _, result in returned], tracers)
    bodies = [_body(tracer, result) for tracer, result in zip(tracers, results, strict=True)]
    _check_branches(bodies)
    remaining = iter(bodies)
    outputs = cond_node(
        index, [next(remaining) if branch.ended is None else bodies[0] for branch, _ in traced]
    )
    return unflatten(bodies[0].structure, outputs)


def _branch(function: Callable[[], Any]) -> tuple[TracedBranch, tuple[Any]]:
    """The trace of a branch, and its result; None if it ends with a ``raise``."""
    branch = TracedBranch(inner_tracer(getattr(function, "__name__", "branch")))
    return branch, branch.trace(lambda: (function(),)) or (None,)


def _body(tracer: Tracer, result: Any) -> Body:
    """The body of a branch with this result."""
    with tracing(tracer):
        structure, outputs = collect(result, tracer)
    return Body(tracer, (), structure, tuple(outputs))


def _check_branches(bodies: Sequence[Body]) -> None:
    first = bodies[0]
    for other in bodies[1:]:
        check_structure(CASES, "The result", other.structure, first.structure)
        for a, b in zip(first.outputs, other.outputs, strict=True):
            check_spec(CASES, "A result", b.spec, a.spec, may_merge)


def _loop_node(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    initial: list[Any],
    structure: Structure,
    specs: Sequence[TensorSpec],
    limit: int | None,
    numbers: Sequence[bool],
) -> Any:
    def pack(tensors: list[Any]) -> Sequence[Any]:
        return _arguments(structure, tensors)

    shapes = carried_shapes(initial, specs)
    test = trace_body(lambda *xs: cast(convert_to_tensor(cond(*xs)), "bool"), specs, pack, shapes)
    iteration = trace_body(lambda *xs: _as_vars(structure, body(*xs)), specs, pack, shapes)
    adapted = _adapted(specs, [v.spec for v in iteration.outputs], numbers)
    if adapted != list(specs):
        initial = [cast(x, spec.dtype) for x, spec in zip(initial, adapted, strict=True)]
        return _loop_node(cond, body, initial, structure, adapted, limit, [False] * len(initial))
    check_structure(ITERATIONS, "loop_vars", structure, iteration.structure)
    check_loop_variables(specs, [v.spec for v in iteration.outputs], matches_invariant)
    check_sizes_read([test, iteration], iteration)
    if test.outputs[0].spec.shape:
        raise InvalidArgumentError(
            f"cond must return a scalar, not shape {test.outputs[0].spec.shape}; use df.reduce_all or "
            f"df.reduce_any.{here()}"
        )
    return unflatten(structure, loop_node(test, iteration, initial, limit))


def _adapted(
    specs: Sequence[TensorSpec], after_iteration: Sequence[TensorSpec], numbers: Sequence[bool]
) -> list[TensorSpec]:
    """``specs``, with the dtypes after an iteration for variables that are Python numbers before the loop."""
    if len(specs) != len(after_iteration):
        return list(specs)
    return [
        TensorSpec.of(spec.shape, new.dtype) if is_number else spec
        for spec, new, is_number in zip(specs, after_iteration, numbers, strict=True)
    ]
