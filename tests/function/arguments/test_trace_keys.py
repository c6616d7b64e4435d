"""Keys of traces, of their compiled parts and of stored objects: none of their parts can be left out."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.backends.llvm.runtime import cpu_fingerprint, jit, target
from dualflow.function.arguments import trace_key
from dualflow.function.calls import call_cache, shape_variants

pytestmark = pytest.mark.llvm
Patch = pytest.MonkeyPatch
Calls = list[Callable[[], Any]]
A, B = df.constant([1.0, 2.0]), df.constant([3.0, 5.0])
LONG, WIDE = df.constant([1.0, 2.0, 4.0]), df.constant([1.0, 2.0], df.float64)


def outcome(call: Callable[[], Any]) -> Any:
    try:
        results = df.nest.flatten(call())
    except Exception as error:  # of any kind: an incomplete key breaks everything keyed by it
        return type(error)
    return [None if x is None else (np.asarray(x).dtype, np.asarray(x).tolist()) for x in results]


def without_part(at: int) -> Callable[[Patch], None]:
    """Leaves a part out of what recent calls are found by."""

    def patch(monkeypatch: Patch) -> None:
        kind_of_call = call_cache.kind_of_call

        def blurred(values: Sequence[Any], names: Any) -> Hashable | None:
            key: Any = kind_of_call(values, names)
            return None if key is None else (*key[:at], *key[at + 1 :])

        monkeypatch.setattr(sys.modules["dualflow.function.traced_function"], "kind_of_call", blurred)

    return patch


def comparing(leaf: type, *names: str) -> Callable[[Patch], None]:
    """Lets leaves of trace keys be equal if these attributes are; recent calls are found by none."""

    def patch(monkeypatch: Patch) -> None:
        monkeypatch.setattr(
            sys.modules["dualflow.function.traced_function"], "kind_of_call", lambda values, names: None
        )
        monkeypatch.setattr(leaf, "__hash__", lambda leaf: 0)
        monkeypatch.setattr(
            leaf,
            "__eq__",
            lambda x, y: type(x) is type(y) and all(getattr(x, n) == getattr(y, n) for n in names),
        )

    return patch


def of(function: Callable[..., Any], *calls: Callable[[Any], Any], **options: Any) -> Callable[[], Calls]:
    """Calls of one traced function, which is made anew each time."""

    def create() -> Calls:
        traced = df.function(function, **options)
        return [lambda call=call: call(traced) for call in calls]

    return create


def on_variables(function: Callable[..., Any], *trainable: bool) -> Callable[[], Calls]:
    """Calls with two variables, and with one twice."""

    def create() -> Calls:
        traced = df.function(function)
        first, *others = [df.Variable([float(i)], trainable=t) for i, t in enumerate(trainable)]
        return [lambda other=other: traced(first, other) for other in (*others, first)]

    return create


def assigned(x: Any, y: Any) -> Any:
    x.assign_add([10.0])
    return y * 1.0


def slope(x: Any, y: Any) -> Any:
    with df.GradientTape() as tape:
        z = y * y
    return tape.gradient(z, y)


LEAF = trace_key
MUTANTS: dict[str, tuple[Callable[[Patch], None], Callable[[], Calls]]] = {
    "keywords of recent calls": (
        without_part(0),
        of(lambda x, y: x - 2 * y, lambda f: f(x=A, y=B), lambda f: f(y=A, x=B)),
    ),
    "dtypes of recent calls": (without_part(1), of(lambda x: x + 1, lambda f: f(A), lambda f: f(WIDE))),
    "shapes of recent calls": (
        without_part(2),
        of(lambda x: x + 1, lambda f: f(A), lambda f: f(LONG), sizes="exact"),
    ),
    "types of values of recent calls": (
        without_part(3),
        of(lambda x, n: x + int(n is True), lambda f: f(A, 1), lambda f: f(A, True)),
    ),
    "values of recent calls": (
        without_part(4),
        of(lambda x, n: x + n, lambda f: f(A, 1), lambda f: f(A, 2)),
    ),
    "specs of tensors": (
        comparing(LEAF.TensorLeaf),
        of(lambda x: x + 1, lambda f: f(A), lambda f: f(LONG), lambda f: f(WIDE)),
    ),
    "values": (comparing(LEAF.ValueLeaf), of(lambda x, n: x + n, lambda f: f(A, 1), lambda f: f(A, 2))),
    "specs of variables": (
        comparing(LEAF.VariableLeaf, "trainable", "alias"),
        of(
            lambda v: v + 1,
            lambda f: f(df.Variable([1.0, 2.0])),
            lambda f: f(df.Variable([1.0, 2.0, 3.0])),
        ),
    ),
    "whether variables are trainable": (
        comparing(LEAF.VariableLeaf, "spec", "alias"),
        on_variables(slope, True, True, False),
    ),
    "which variables are the same": (
        comparing(LEAF.VariableLeaf, "spec", "trainable"),
        on_variables(assigned, True, True),
    ),
    "objects": (
        comparing(LEAF.ObjectLeaf),
        of(lambda x, k: x + len(k.__name__), lambda f: f(A, int), lambda f: f(A, float)),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_key_without_one_of_its_parts_gives_other_results(name: str, monkeypatch: Patch) -> None:
    patch, calls = MUTANTS[name]
    expected = [outcome(call) for call in calls() for _ in range(3)]
    assert [outcome(call) for call in calls() for _ in range(3)] == expected
    patch(monkeypatch)
    assert [outcome(call) for call in calls() for _ in range(3)] != expected


def test_a_recent_call_is_distinguished_from_others_of_its_values() -> None:
    """The meaning of the parts above: names, then two parts per tensor and two per Python value."""
    assert call_cache.kind_of_call([A, 1], ("n",)) == (("n",), np.dtype("f4"), (2,), int, 1)


class Ratio(float):
    pass


EQUAL = {
    "a dict in another order": ({"a": A, "b": B}, {"b": B, "a": A}),
    "a dict inside a list in another order": ([{"a": A, "b": B}], [{"b": B, "a": A}]),
    "keys of other types": ({1: A}, {True: A}),
    "keys that are zeros of other signs": ({0.0: A}, {-0.0: A}),
    "keys that contain values of other types": ({(1, "a"): A}, {(1.0, "a"): A}),
    "sets of values of other types": (frozenset({1}), frozenset({True})),
    "sets of zeros of other signs": (frozenset({0.0}), frozenset({-0.0})),
    "zeros of a subclass of float": (Ratio(0.0), Ratio(-0.0)),
    "decimal zeros": (Decimal("0"), Decimal("-0")),
    "decimals of other precisions": (Decimal("1.0"), Decimal("1.00")),
    "empty ranges": (range(0), range(5, 5)),
    "nans of other signs": (math.nan, -math.nan),
    "complex nans of other signs": (complex(math.nan, 0), complex(-math.nan, 0)),
}
"""Arguments that are equal to Python, or print alike, and that Python code distinguishes."""


def description(value: Any) -> str:
    """The text of a value, with the sign of a number."""
    sign = math.copysign(1.0, value.real) if isinstance(value, complex | float) else 1.0
    return f"{value} {sign}"


@pytest.mark.parametrize("name", EQUAL)
def test_arguments_that_python_code_distinguishes_have_traces_of_their_own(name: str) -> None:
    def f(x: Any, value: Any) -> Any:
        without_tensors = value if type(value) not in (dict, list) else df.nest.map_structure(len, value)
        return x, df.constant(description(without_tensors))

    one, other = EQUAL[name]
    traced = df.function(f)
    calls = [lambda v=v: traced(A, v)[1].numpy() for v in (one, other, one, other)]
    results = [call() for call in calls]
    assert results[:2] == results[2:]
    assert results[0] != results[1]
    assert traced.experimental_get_tracing_count() == 2


def test_a_trace_for_a_dict_in_another_order_has_its_reason() -> None:
    traced = df.function(lambda d: df.concat(list(d.values()), 0))
    assert traced({"a": A, "b": B}).numpy().tolist() == [1.0, 2.0, 3.0, 5.0]
    assert traced({"b": B, "a": A}).numpy().tolist() == [3.0, 5.0, 1.0, 2.0]
    assert "the keys of a dict are in another order" in traced.explain()


def test_a_set_of_plain_values_is_served_by_one_trace_after_it_is_deleted() -> None:
    traced = df.function(lambda x, names: x + len(names))
    for _ in range(3):
        traced(A, frozenset(["a", "b"]))
    assert traced.experimental_get_tracing_count() == 1


class OneEntry(dict[Any, Any]):
    """A table whose keys are all equal."""

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(None, default)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(None, value)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        return super().setdefault(None, default)


@pytest.mark.parametrize(("part", "decisions"), [("_traces", 0), ("_programs", shape_variants.MAX_DECISIONS)])
def test_a_trace_of_dynamic_sizes_without_its_sizes_gives_other_results(
    monkeypatch: pytest.MonkeyPatch, part: str, decisions: int
) -> None:
    monkeypatch.setattr(shape_variants, "MAX_DECISIONS", decisions)
    calls = ((A, A), (LONG, A[:1]), (LONG, LONG))

    def outcomes(mutated: bool) -> list[Any]:
        signature = [df.TensorSpec([None]), df.TensorSpec([None])]
        f = df.function(lambda x, y: x / y, input_signature=signature)
        if mutated:
            variants: Any = f.get_concrete_function()._variants
            setattr(variants, part, OneEntry())
        return [outcome(lambda x=x, y=y: f(x, y)) for x, y in calls]

    assert outcomes(mutated=True) != outcomes(mutated=False)


def test_a_taped_call_without_its_sources_gives_other_results() -> None:
    def slopes(f: Any, source: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(source)
            y = f(A, B)
        return tape.gradient(y, source)

    f = df.function(lambda x, y: x * y, sizes="exact")
    assert [outcome(lambda s=s: slopes(f, s)) for s in (A, B)] == [outcome(lambda: B), outcome(lambda: A)]
    gradients: Any = f.get_concrete_function(A, B)._own._gradients
    gradients._by_watched = OneEntry()
    assert [outcome(lambda s=s: slopes(f, s)) for s in (A, B)] != [outcome(lambda: B), outcome(lambda: A)]


CONTEXT: dict[str, Callable[[Patch], None]] = {
    "the release of LLVM's binding": lambda m: m.setattr(jit.llvmlite, "__version__", "0"),
    "the width of vectors": lambda m: m.setattr(target, "vector_bits", lambda: 64),
    "the processor": lambda m: m.setattr(cpu_fingerprint, "fingerprint", lambda: "another"),
    "the compiler's settings": lambda m: m.setattr(jit, "_settings", lambda: "others"),
}


@pytest.mark.parametrize("name", CONTEXT)
def test_stored_objects_are_of_one_context(name: str, monkeypatch: Patch) -> None:
    before = jit._key("text")
    assert jit._key("text") == before != jit._key("another text")
    CONTEXT[name](monkeypatch)
    assert jit._key("text") != before
