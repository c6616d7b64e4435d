"""Every op, sample, dtype and layout: the compiled op gives what its kernel gives, and so do its gradients.

Whole numbers, bools and whatever only moves agree to the bit; elements of maths within ``ULPS`` units in the
last place; sums and products within the rounding of any order of adding.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pytest
from op_cases import check_each

import dualflow as df
from dualflow.backends.llvm.executable import Executable
from dualflow.core import dispatch
from dualflow.core.errors import DualflowError
from dualflow.core.spec import TensorSpec
from dualflow.eager.engine import EAGER
from dualflow.eager.tensor import wrap
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.fusion_check import check_fusion
from dualflow.ops.cumulative.running import CUMULATIVE_LOGSUMEXP
from dualflow.ops.op_kinds import Elementwise, Literal, MatMul, Opaque, Reduce
from dualflow.ops.record import REGISTRY, Op, Promotion
from dualflow.ops.testing.cases import SPECIAL, Case, cases, draw

ULPS = 4
MANY = 1037
"""Elements enough for several vectors and a tail."""
DTYPES: dict[str, tuple[type[np.generic], ...]] = {
    "f": (np.float32, np.float64),
    "i": (np.int32,),
    "u": (np.uint8,),
    "b": (np.bool_,),
    "c": (np.complex64,),
    "O": (np.object_,),
}
DENORMALS = {
    np.float32: (1e-45, 3e-42, -1e-40, 1.1754942e-38, -1.1754944e-38, 1e-38, 1.0),
    np.float64: (5e-324, -3e-320, 1e-310, 2.2e-308, -2.3e-308, 1.0),
}


def long_cases(op: Op) -> Iterator[Case]:
    """More elements, and ones too small for an exponent, for the ops that take any shape."""
    for number, sample in enumerate(op.samples):
        if not sample.inputs or any(d.shape is not None or d.values is not None for d in sample.inputs):
            continue
        rng = np.random.default_rng(number)
        for dtype in (t for kind in sample.inputs[0].kinds for t in DTYPES[kind]):
            own = [dtype if np.dtype(dtype).kind in d.kinds else DTYPES[d.kinds[0]][0] for d in sample.inputs]
            many = [draw(d, rng, t, (MANY,)) for d, t in zip(sample.inputs, own, strict=True)]
            yield Case(op, tuple(many), sample.attrs, f"{number}-{np.dtype(dtype)}-many")
            small = [
                np.resize(np.array(DENORMALS[t], t), MANY) if t in DENORMALS else a
                for a, t in zip(many, own, strict=True)
            ]
            if dtype in DENORMALS:
                yield Case(op, tuple(small), sample.attrs, f"{number}-{np.dtype(dtype)}-denormal")


def is_static(case: Case) -> bool:
    """Whether the sizes of the results are known before it runs, as they must be to compile it."""
    specs = case.op.specs([x.spec for x in case.op.prepare(case.inputs, EAGER)], case.attrs)
    return all(spec.shape.is_static for spec in specs)


ALTERNATIVES = (("transposed", "strided", "backwards"), ("vector", "scalar", "one", "with a scalar"))


def is_of_another_op(case: Case, number: int) -> bool:
    """Whether other elementwise ops than the one of that number have the layout of the case at 8 bytes.

    Addresses are computed alike for all of them, and all have each layout at fewer bytes.
    """
    _, dtype, layout = case.label.split("-")
    if not isinstance(case.op.kind, Elementwise) or dtype not in ("float64", "int64"):
        return False
    return any(layout in names and names.index(layout) != number % len(names) for names in ALTERNATIVES)


CASES = [
    case
    for number, op in enumerate(REGISTRY.values())
    if not isinstance(op.kind, Literal)
    for case in (*cases(op), *long_cases(op))
    if not is_of_another_op(case, number) and is_static(case)
]


def test_the_ops_of_families_have_cases() -> None:
    """Also if another file has imported this one first."""
    assert {"relu", "cholesky", "fourier_transform", "lgamma"} < {case.op.name for case in CASES}


@pytest.fixture(autouse=True, scope="module")
def _an_object_cache_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Unless the environment names one, for several runs to share."""
    with pytest.MonkeyPatch.context() as patch:
        if "DUALFLOW_CACHE_DIR" not in os.environ:
            patch.setenv("DUALFLOW_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def kept() -> list[Executable]:
    """Executables that stay, so that cases which differ in sizes alone share their machine code."""
    return []


def tensors(case: Case) -> list[Any]:
    """The inputs of a case, with the strides that they have."""
    prepared = case.op.prepare(case.inputs, EAGER)
    pairs = zip(prepared, case.inputs, strict=True)
    return [wrap(a) if isinstance(a, np.ndarray) and a.dtype == t.dtype.dtype else t for t, a in pairs]


def applied(case: Case, *inputs: Any) -> list[Any]:
    result = dispatch.current().apply(case.op, inputs, case.attrs)
    return list(result) if isinstance(result, tuple) else [result]


def check(case: Case, result: np.ndarray, expected: np.ndarray, inputs: list[np.ndarray]) -> None:
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    kind = case.op.kind
    rounds = (
        isinstance(kind, Elementwise | Reduce | MatMul)
        or (isinstance(kind, Opaque) and kind.lowering)
        or case.op is CUMULATIVE_LOGSUMEXP  # a scan of maths; cumsum and cumprod round as NumPy does
    )
    exact = expected.dtype.kind not in "fc" or not rounds
    if expected.dtype.kind == "f" and isinstance(case.op.kind, Elementwise):
        number = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(result[number]), np.signbit(expected[number]))
    if exact or not expected.size:
        np.testing.assert_array_equal(result, expected)
        return
    if isinstance(case.op.kind, Elementwise):
        for a, b in ((result.real, expected.real), (result.imag, expected.imag)):
            finite = np.isfinite(b)
            assert np.all(np.abs(a[finite] - b[finite]) <= ULPS * np.spacing(np.abs(b[finite])))
            np.testing.assert_array_equal(a[~finite], b[~finite])
        return
    size = max((np.abs(x).max(initial=0) for x in inputs), default=1.0) ** len(inputs)
    eps, terms = np.finfo(expected.dtype).eps, max(x.size for x in inputs)
    np.testing.assert_allclose(result, expected, rtol=terms * eps, atol=terms * eps * float(size))


USUAL_LAYOUTS = {"contiguous", "plain", "strided", "broadcast", "empty", "special values", "many"}


def by_op(cases: Iterable[Case], part: Callable[[Case], str]) -> pytest.MarkDecorator:
    """A test for the cases of each op and part; exhaustive if the part is "other"."""
    grouped = defaultdict[tuple[str, str], list[Case]](list)
    for case in cases:
        grouped[case.op.name, part(case)].append(case)
    return pytest.mark.parametrize(
        "cases",
        [
            pytest.param(group, id="-".join(key), marks=pytest.mark.exhaustive if key[1] == "other" else ())
            for key, group in grouped.items()
        ],
    )


FIRST_DTYPES = {
    (case.op.name, case.label.split("-")[0]): case.label.split("-")[1] for case in reversed(CASES)
}
"""The dtype of the first case of each sample of an op."""


def part_of(case: Case) -> str:
    """The runs that have the case: "basic" in each setting of ``.ci/run``, "usual" in one of the whole suite.

    The others differ from these in widths or strides. The first sample of an op is basic at three dtypes, its
    other samples are at one.
    """
    sample, dtype, layout = case.label.split("-")
    plain = layout in ("contiguous", "plain") and dtype in ("float32", "int32", "bool")
    if plain and (sample == "0" or dtype == FIRST_DTYPES[case.op.name, sample]):
        return "basic"
    return "usual" if dtype not in ("float64", "int64") and layout in USUAL_LAYOUTS else "other"


@by_op(CASES, part_of)
def test_the_compiled_op_equals_its_kernel(cases: list[Case], kept: list[Executable]) -> None:
    check_each(cases, lambda case: check_compiled(case, kept))


def check_compiled(case: Case, kept: list[Executable]) -> None:
    inputs = tensors(case)
    expected = [np.asarray(y) for y in applied(case, *inputs)]
    compiled = df.function(lambda *xs: applied(case, *xs))
    before = [np.array(x) for x in inputs]
    result = compiled(*inputs)
    for x, value in zip(inputs, before, strict=True):
        np.testing.assert_array_equal(np.asarray(x), value, err_msg="the call has written to its input")
    (concrete,) = compiled.concrete_functions
    assert check_fusion(concrete.graph, CompileOptions()) == []
    kept.append(concrete.compiled.executable)
    for a, b in zip(result, expected, strict=True):
        check(case, np.asarray(a), b, [np.asarray(x) for x in inputs])


def other_dtypes() -> Iterator[Case]:
    """The first plain case of every op, at the dtypes that its samples leave out."""
    plain = {c.op: c for c in reversed(CASES) if c.label.endswith(("plain", "contiguous")) and c.inputs}
    for case in plain.values():
        kept = {Promotion.NONE: len(case.inputs), Promotion.AFTER_FIRST: 1}.get(case.op.promotion, 0)
        for dtype in ("bool", "int8", "uint8", "uint64", "float16", "complex128"):
            inputs = [
                np.abs(x).astype(dtype) if x.dtype.kind == "f" or (x.dtype.kind != "c" and i >= kept) else x
                for i, x in enumerate(case.inputs)
            ]
            yield Case(case.op, tuple(inputs), case.attrs, dtype)


USUAL_DTYPES = {"bool", "uint8", "float16"}


@by_op(other_dtypes(), lambda case: "usual" if case.label in USUAL_DTYPES else "other")
def test_other_dtypes_are_refused_or_computed_alike(cases: list[Case]) -> None:
    check_each(cases, check_other_dtype)


def check_other_dtype(case: Case) -> None:
    inputs = tensors(case)
    compiled = df.function(lambda *xs: applied(case, *xs))
    try:
        expected = applied(case, *inputs)
    except DualflowError as refusal:
        with pytest.raises(type(refusal)):
            compiled(*inputs)
        return
    for a, b in zip(compiled(*inputs), expected, strict=True):
        check(case, np.asarray(a), np.asarray(b), [np.asarray(x) for x in inputs])


REDUCTIONS = [
    (op, axis)
    for op in REGISTRY.values()
    if isinstance(op.kind, Reduce) and "f" in op.samples[0].inputs[0].kinds
    for axis in ((0,), (1,), (0, 1))
    if len(axis) <= max(len(sample.attrs["axis"]) for sample in op.samples)
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("op", "axis"), REDUCTIONS, ids=str)
def test_reductions_of_inf_nan_and_zeros(op: Op, axis: tuple[int, ...], dtype: type[np.generic]) -> None:
    rows = np.random.default_rng(0).choice(SPECIAL, (9, 41), p=[0.02, 0.02, 0.02, 0.04, 0.3, 0.3, 0.3])
    case = Case(op, (rows.astype(dtype),), {"axis": axis, "keepdims": False}, "special values")
    (x,) = tensors(case)
    (result,) = df.function(lambda x: applied(case, x))(x)
    np.testing.assert_array_equal(np.asarray(result), np.asarray(applied(case, x)[0]), strict=True)


@pytest.mark.parametrize("length", range(70))
def test_tails_of_every_length(length: int) -> None:
    """One vector, two, and whatever is left."""
    x = np.random.default_rng(length).uniform(-1, 1, (3, length)).astype(np.float32)
    compiled = df.function(
        lambda x: (df.abs(x) + 1.0, df.reduce_max(df.abs(x) + 1.0, 0), df.reduce_sum(x, 1))
    )
    moved, highest, sums = (np.asarray(y) for y in compiled(df.constant(x)))
    np.testing.assert_array_equal(moved, np.abs(x) + 1)
    np.testing.assert_array_equal(highest, (np.abs(x) + 1).max(0))
    np.testing.assert_allclose(sums, x.sum(1), rtol=1e-5, atol=1e-5)


# Gradients


def differentiable(case: Case) -> list[int]:
    return [i for i, x in enumerate(case.inputs) if x.dtype == np.float64 and case.op.differentiable(i)]


def in_float64(case: Case) -> bool:
    specs = [TensorSpec(x.shape, x.dtype) for x in case.inputs]
    return all(spec.dtype == np.float64 for spec in case.op.specs(specs, case.attrs))


def weighted(values: list[Any]) -> list[Any]:
    """The values times weights without symmetry, which no wrong gradient survives."""
    return [y * df.reshape(df.cos(df.range(df.size(y)) + np.float64(1)), df.shape(y)) for y in values]


def first_gradients(case: Case, *inputs: Any) -> list[Any]:
    sources = [inputs[i] for i in differentiable(case)]
    with df.GradientTape() as tape:
        tape.watch(sources)
        results = weighted(applied(case, *inputs))
    gradient: list[Any] = tape.gradient(results, sources, unconnected_gradients="zero")
    return gradient


def has_static_gradients(case: Case) -> bool:
    """Only the gradient of an opaque op may have a size that is known when it runs."""
    if not isinstance(case.op.kind, Opaque):
        return True
    traced = df.function(lambda *xs: first_gradients(case, *xs)).get_concrete_function(*tensors(case))
    return all(spec.shape.is_static for spec in traced.outputs)


GRADIENT_CASES = [
    case
    for case in CASES
    if case.label.split("-")[-1] in ("contiguous", "plain", "broadcast", "empty")
    and "float64" in case.label
    and differentiable(case)
    and in_float64(case)
    and has_static_gradients(case)
]


def both_gradients(case: Case, *inputs: Any) -> list[Any]:
    """The gradients of the op's results, and the gradients of those."""
    sources = [inputs[i] for i in differentiable(case)]
    with df.GradientTape() as tape:
        tape.watch(sources)
        first = first_gradients(case, *inputs)
        again = weighted(first)
    return [*first, *tape.gradient(again, sources, unconnected_gradients="zero")]


@by_op(GRADIENT_CASES, lambda case: "other" if case.label.endswith("empty") else "usual")
def test_gradients_of_both_orders_are_those_of_the_eager_tape(
    cases: list[Case], kept: list[Executable]
) -> None:
    check_each(cases, lambda case: check_gradients(case, kept))


def check_gradients(case: Case, kept: list[Executable]) -> None:
    inputs = tensors(case)
    expected = [np.asarray(g) for g in both_gradients(case, *inputs)]
    compiled = df.function(lambda *xs: both_gradients(case, *xs))
    results = [np.asarray(g) for g in compiled(*inputs)]
    (concrete,) = compiled.concrete_functions
    assert check_fusion(concrete.graph, CompileOptions()) == []
    kept.append(concrete.compiled.executable)
    for a, b in zip(results, expected, strict=True):
        scale = float(np.abs(b).max(initial=1.0))
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13 * scale, strict=True)
