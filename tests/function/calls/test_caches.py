"""Caches change no result: every call has the same bits whatever ran before it."""

from __future__ import annotations

import ast
import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

import dualflow as df
from dualflow.core import dispatch
from dualflow.core.dtypes import of_array
from dualflow.core.spec import TensorSpec
from dualflow.eager.backward_cache import OCCURRENCES
from dualflow.eager.tensor import EagerTensor, wrap
from dualflow.ops.op_kinds import Elementwise, Opaque
from dualflow.ops.record import COMPILED_ABOVE, REGISTRY, Op
from dualflow.ops.samples import Sample
from dualflow.ops.testing.cases import draw

pytestmark = pytest.mark.llvm
Array = np.ndarray[Any, Any]

CACHES = {
    "backends.llvm.early_compile": ("libraries",),
    "backends.llvm.fourier_kernels": ("columns_routine", "rows_routine"),
    "backends.llvm.product.gemm": ("_source",),
    "backends.llvm.product.product": ("_blas_module",),
    "backends.llvm.scatter_kernels": ("bounds_routine", "routine"),
    "backends.llvm.text.values": ("_iota_literal",),
    "backends.llvm.window_sum_kernels": ("routine",),
    "backends.llvm.kernel_texts": ("_cached",),
    "eager.backward_cache": ("_programs",),
    "eager.tensor": ("_shapes",),
    "function.autograph.compilation": ("_conversions",),
    "function.autograph.plain_functions": ("_callees",),
    "function.eager_kernels": ("_shared_kernels", "_served_once", "_runs"),
    "graph.views": ("_dims", "_keeps_order"),
    "graph.loop_dtypes": ("_kinds",),
    "graph.passes.complex_parts": ("part_op",),
    "graph.passes.fourier_tables": ("tables",),
    "ops.linear_algebra.lapack": ("_routine",),
    "ops.linear_algebra.triangular_blas": ("_routine",),
    "ops.text.patterns": ("_compiled",),
}
"""Every module-level cache of results; functions, datasets and sessions have caches of their own."""


def caches() -> Iterator[Any]:
    for module, names in CACHES.items():
        loaded = sys.modules.get(f"dualflow.{module}")
        yield from (getattr(loaded, name) for name in names if loaded is not None)


@contextmanager
def empty_caches() -> Iterator[None]:
    """A block at whose start all caches are empty; they are restored at its end."""
    with ExitStack() as stack:
        for cache in caches():
            if hasattr(cache, "cache_clear"):
                cache.cache_clear()
            else:
                content = cache.copy() if isinstance(cache, set) else dict(cache.items())
                cache.clear()
                stack.callback(cache.update, content)
                stack.callback(cache.clear)
        yield


def outcome(call: Callable[[], Any]) -> Any:
    """The bits of the result, or the kind of error."""
    try:
        results = df.nest.flatten(call())
    except (df.errors.DualflowError, ValueError, TypeError, IndexError, ArithmeticError) as error:
        return type(error)
    arrays = [np.asarray(x) for x in results]
    return [(a.dtype.str, a.shape, a.tolist() if a.dtype.hasobject else a.tobytes()) for a in arrays]


# Drawn values

SMALL = [(1,), (16,), (COMPILED_ABOVE,), (64, 64)]
UNIT = [(33_000, 1), (1, 33_000), (33_001, 1, 1), (1, 33_000, 1), (1, 1, 33_001)]
FULL = [(COMPILED_ABOVE + 1,), (182, 181), (181, 182), (2, 16_500), (16_500, 2), (30, 35, 40)]
HUGE = [(512, 512), (1 << 20,)]
"""Shapes on both sides of each size threshold at which another implementation takes over."""
LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "row-major": lambda a: a,
    "transposed": lambda a: a.T.copy().T,
    "backwards": lambda a: a[::-1].copy()[::-1] if a.ndim else a,
    "every other": lambda a: np.repeat(a, 2, axis=-1)[..., ::2] if a.ndim else a,
    "repeated": lambda a: np.broadcast_to(a[:1], a.shape) if a.ndim else a,
}
DTYPES = {"f": ["f4", "f8", "f2"], "i": ["i4", "i8"], "u": ["u1"], "b": ["?"], "c": ["c8", "c16"]}
PARTS: dict[str, Callable[[tuple[int, ...]], tuple[int, ...]]] = {
    "whole": lambda shape: shape,
    "scalar": lambda shape: (),
    "one element": lambda shape: (1,) * len(shape),
    "row": lambda shape: shape[-1:],
    "column": lambda shape: (*shape[:-1], 1),
}
"""Shapes that broadcast with a whole shape."""


def is_pure_numeric(op: Op) -> bool:
    """Whether an op has no effect and computes numbers from numbers."""
    kinds = {kind for sample in op.samples for domain in sample.inputs for kind in domain.kinds}
    return op.effect is None and bool(kinds) and "O" not in kinds


OPS = [op for op in REGISTRY.values() if is_pure_numeric(op)]
NATIVE = [op for op in OPS if not isinstance(op.kind, Opaque)]
KINDS = [
    [op.name for op in NATIVE if isinstance(op.kind, Elementwise)],
    [op.name for op in NATIVE],
    [op.name for op in OPS],
]
"""Three pools of ops, drawn with equal probability: elementwise, native, all."""
AXIS_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "softmax": df.nn.softmax,
    "log_softmax": df.nn.log_softmax,
    "logsumexp": lambda x, axis: df.reduce_logsumexp(x, axis, keepdims=True),
    "mean": lambda x, axis: df.reduce_mean(x, axis, keepdims=True),
    "variance": lambda x, axis: df.math.reduce_variance(x, axis, keepdims=True),
    "norm": lambda x, axis: df.math.reduce_euclidean_norm(x, axis, keepdims=True),
    "l2_normalize": df.math.l2_normalize,
    "moments": lambda x, axis: df.nn.moments(x, [axis])[1],
    "gelu": lambda x, axis: df.nn.gelu(x, approximate=axis == 0),
    "leaky_relu": lambda x, axis: df.nn.leaky_relu(x, 0.0 if axis else -0.0),
    "clip_by_value": lambda x, axis: df.clip_by_value(x, -1.0, 0.5 + axis),
    "stateless_normal": lambda x, axis: df.random.stateless_normal(x.shape, [1, axis]),
}
"""Functions of several ops, with an axis."""


@dataclass(frozen=True)
class AxisFunction:
    """One of these with its axis, as a function of a tensor."""

    name: str
    axis: int

    def __call__(self, x: Any) -> Any:
        return AXIS_FUNCTIONS[self.name](x, self.axis)


@dataclass(frozen=True)
class Applied:
    """A sample's op as a function."""

    op: Op
    number: int

    def __call__(self, *inputs: Any) -> Any:
        engine = dispatch.current()
        return engine.apply(self.op, self.op.prepare(inputs, engine), self.op.samples[self.number].attrs)


def resized(draws: st.DataObject, sample: Sample, free: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Shapes for a sample: some of its sizes are 1 or 2, and one may make an input large."""
    fixed = [d.shape for d in sample.inputs if d.shape is not None]
    sizes = sorted({n for shape in fixed for n in shape})
    new_sizes = {n: draws.draw(st.sampled_from([n, n, 1, 2])) for n in sizes}
    large = draws.draw(st.sampled_from([None, *sizes]))
    for shape in (s for s in fixed if large in s):
        others, occurrences = math.prod(new_sizes[n] for n in shape if n != large), shape.count(large)
        side = math.ceil((COMPILED_ABOVE + 1) / max(others, 1)) ** (1 / occurrences)
        new_sizes[large] = (
            min(new_sizes[large], math.ceil(side)) if new_sizes[large] > 2 * large else math.ceil(side)
        )
    whole = next((i for i, d in enumerate(sample.inputs) if d.shape is None), None)
    return [
        tuple([new_sizes[n] for n in d.shape])
        if d.shape is not None
        else free
        if i == whole
        else PARTS[draws.draw(st.sampled_from([*PARTS]))](free)
        for i, d in enumerate(sample.inputs)
    ]


class Calls:
    """Calls of a few functions on a few shapes, each compared with a call with empty caches.

    Attributes:
        applied: an op of a sample.
        axis_function: a function of several ops, with its axis.
        dtype: of their inputs.
        shapes: the inputs' own, where a function takes any.
        functions: compiled functions of them, which are called again.
    """

    def __init__(self, draws: st.DataObject) -> None:
        self.draws = draws
        op = REGISTRY[self.pick(KINDS[self.pick(range(len(KINDS)))])]
        self.sample = self.pick([i for i, sample in enumerate(op.samples) if sample.inputs])
        self.applied = Applied(op, self.sample)
        self.dtype = self.pick(DTYPES[self.pick(op.samples[self.sample].inputs[0].kinds)])
        self.axis_function = AxisFunction(self.pick([*AXIS_FUNCTIONS]), self.pick([0, 1, -1]))
        self.shapes = [self.pick(shapes) for shapes in (UNIT, UNIT, FULL, FULL, SMALL, [*FULL, *HUGE])]
        self.functions: dict[Any, Any] = {}

    def pick(self, values: Sequence[Any]) -> Any:
        return self.draws.draw(st.sampled_from(values))

    def check(self, call: Callable[[], Any], alone: Callable[[], Any] | None = None) -> None:
        """Compare two calls with one that has empty caches; the second may be the first to read a cache."""
        with empty_caches():
            expected = outcome(alone or call)
        assert outcome(call) == expected
        assert outcome(call) == expected

    def check_reused_function(self, key: Any, create: Callable[[], Any], *inputs: Any) -> None:
        """Compare a compiled function that was called before with a new one."""
        function = self.functions.setdefault(key, create())
        self.check(lambda: function(*inputs), lambda: create()(*inputs))

    def tensor(self, array: Array) -> EagerTensor:
        return wrap(LAYOUTS[self.pick(["row-major", *LAYOUTS])](array))

    def inputs(self) -> list[EagerTensor]:
        """Inputs of the op, if its result isn't huge."""
        sample = self.applied.op.samples[self.sample]
        kinds = [(self.dtype, *DTYPES[d.kinds[0]]) for d in sample.inputs]
        dtypes = [
            next(t for t in k if np.dtype(t).kind in d.kinds)
            for k, d in zip(kinds, sample.inputs, strict=True)
        ]
        shapes = resized(self.draws, sample, self.pick(self.shapes))
        assume(all(math.prod(shape) <= 1 << 20 for shape in shapes))
        specs = [TensorSpec(s, of_array(np.dtype(t))) for s, t in zip(shapes, dtypes, strict=True)]
        try:
            results = self.applied.op.specs(specs, dict(sample.attrs))
        except Exception:  # errors are compared too
            results = ()
        assume(all(spec.shape.is_static and spec.size <= 1 << 20 for spec in results))
        rng = np.random.default_rng(self.pick([0, 1]))
        drawn = zip(sample.inputs, dtypes, shapes, strict=True)
        return [self.tensor(draw(d, rng, t, s)) for d, t, s in drawn]

    def floats(self) -> EagerTensor:
        shape, dtype = self.pick(self.shapes), self.dtype if self.dtype in ("f4", "f8") else "f4"
        rng = np.random.default_rng(self.pick([0, 1]))
        return self.tensor(rng.standard_normal(shape).astype(dtype))

    # Kinds of calls

    def op(self) -> None:
        inputs = self.inputs()
        self.check(lambda: self.applied(*inputs))

    def several_ops(self) -> None:
        x = self.floats()
        self.check(lambda: self.axis_function(x))

    def compiled(self) -> None:
        self.check_reused_function("op", lambda: df.function(self.applied), *self.inputs())

    def shape_relaxed(self) -> None:
        self.check_reused_function(
            "relaxed", lambda: df.function(self.applied, reduce_retracing=True), *self.inputs()
        )

    def dynamic_sizes(self) -> None:
        x = self.floats()
        signature = [df.TensorSpec([None] * x.ndim, x.dtype)]
        self.check_reused_function(
            x.ndim, lambda: df.function(self.axis_function, input_signature=signature), x
        )

    def gradient(self) -> None:
        inputs = self.inputs()
        floats = [x for x in inputs if x.dtype.is_floating]

        def gradients() -> Any:
            with df.GradientTape() as tape:
                tape.watch(floats)
                y = self.applied(*inputs)
            flowing = [x for x in df.nest.flatten(y) if x.dtype.is_floating]
            return [g for g in tape.gradient(flowing, floats) if g is not None]

        assume(floats)
        self.check(gradients)

    def vectorized(self) -> None:
        x = self.floats()
        self.check(lambda: df.vectorized_map(self.axis_function, x))

    def dataset(self) -> None:
        x = self.floats()
        self.check(lambda: [*df.data.Dataset.from_tensors(x).map(self.axis_function)])


KINDS_OF_CALL = [
    *[Calls.op, Calls.several_ops, Calls.compiled, Calls.shape_relaxed],
    *[Calls.dynamic_sizes, Calls.gradient, Calls.vectorized, Calls.dataset],
]


@pytest.mark.filterwarnings("ignore:.*triggered retracing")
@settings(
    max_examples=30,
    phases=[Phase.explicit, Phase.generate],  # to shrink a sequence takes minutes
    suppress_health_check=[*HealthCheck],
)
@given(st.data())
def test_no_result_depends_on_earlier_calls(draws: st.DataObject) -> None:
    with empty_caches():
        calls = Calls(draws)
        kinds = [calls.pick(KINDS_OF_CALL[:2]), calls.pick(KINDS_OF_CALL)]
        for _ in range(8):
            calls.pick(kinds)(calls)


# Mutation tests of cache keys


class KeyWithoutComponent(dict[Any, Any]):
    """A cache whose key lacks one component, as if the author had forgotten it: the test must then fail."""

    def __init__(self, mutate: Callable[[Any], Any]) -> None:
        super().__init__()
        self.mutate = mutate

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(self.mutate(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(self.mutate(key), value)

    def __contains__(self, key: Any) -> bool:
        return super().__contains__(self.mutate(key))

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(self.mutate(key), default)

    def update(self, kept: dict[Any, Any]) -> None:  # type: ignore[override]  # all that is called here
        for key, value in kept.items():
            self[key] = value


def without(*path: int) -> Callable[[Any], Any]:
    """A mutation that leaves a component out of a key; -1 means all components of a level."""

    def mutate(key: Any, path: tuple[int, ...] = path) -> Any:
        if not path:
            return None
        index, *inner = path
        return tuple([mutate(x, tuple(inner)) if i == index or index == -1 else x for i, x in enumerate(key)])

    return mutate


def without_in_layouts(component: int) -> Callable[[Any], Any]:
    """A mutation that leaves the dtype, shape or strides of all inputs out of the key of a call."""
    return lambda key: (*key[:3], *[without(component)(layout) for layout in key[3:]])


def normal(*shape: int, dtype: str = "f4") -> EagerTensor:
    return wrap((np.random.default_rng(len(shape)).standard_normal(shape) * 9).astype(dtype))


def long_chain(factor: float) -> Any:
    def chain(x: Any) -> Any:
        for i in range(80):
            x = df.sin(x * (factor + i))
        return x

    return df.function(chain, autograph=False)


def gradient_of(
    function: Callable[..., Any], size: int = 3, *, dtype: str = "f4", source: int = 0
) -> Callable[[], Any]:
    """A call that computes by a program the gradient of a function of two square matrices."""

    def call() -> Any:
        x = normal(size, size, dtype=dtype)
        inputs = [x, x + x]
        for _ in range(OCCURRENCES):
            with df.GradientTape() as tape:
                tape.watch(inputs)
                target = function(*inputs)
            gradient = tape.gradient(target, inputs[source])
        return gradient

    return call


def drawn_numbers(count: int) -> Any:
    df.random.set_seed(3)
    return df.random.normal([count])


KERNELS, WRITTEN = "function.eager_kernels", "backends.llvm.kernel_texts"
BACKWARD = "eager.backward_cache"
X, Y = normal(33_000), normal(33_010)
MUTANTS: dict[str, tuple[str, str, Callable[[Any], Any], list[Callable[[], Any]]]] = {
    "the op": (KERNELS, "_runs", without(0), [lambda: df.exp(X), lambda: df.sin(X)]),
    "attributes": (
        *(KERNELS, "_runs", without(1)),
        [lambda: df.reduce_max(normal(190, 190), 0), lambda: df.reduce_max(normal(190, 190), 1)],
    ),
    "count": (KERNELS, "_runs", without(2), [partial(drawn_numbers, n) for n in (40_000, 40_002)]),
    "dtype": (
        *(KERNELS, "_runs", without_in_layouts(0)),
        [lambda: X + X, lambda: normal(33_000, dtype="i4") + normal(33_000, dtype="i4")],
    ),
    "shape": (
        *(KERNELS, "_runs", without_in_layouts(1)),
        [lambda: df.reduce_max(normal(1800, 20), 0), lambda: df.reduce_max(normal(2000, 20), 0)],
    ),
    "strides": (
        *(KERNELS, "_runs", without_in_layouts(2)),
        [
            lambda: df.sin(normal(2, 33_000)),
            lambda: df.sin(wrap(np.broadcast_to(normal(33_000).numpy(), (2, 33_000)))),
        ],
    ),
    "the op of a kernel for several shapes": (
        *(KERNELS, "_shared_kernels", without(0)),
        [lambda: df.exp(X), lambda: df.sin(Y)],
    ),
    "attributes of several shapes": (
        *(KERNELS, "_shared_kernels", without(1)),
        [
            lambda: df.nn.leaky_relu(X, 0.1),
            lambda: df.nn.leaky_relu(Y, 0.1),
            lambda: df.nn.leaky_relu(Y, 0.2),
        ],
    ),
    "dtypes of several shapes": (
        *(KERNELS, "_shared_kernels", without(2)),
        [lambda: X + X, lambda: normal(33_010, dtype="i4") + normal(33_010, dtype="i4")],
    ),
    "scalars with several shapes": (
        *(KERNELS, "_shared_kernels", without(2, -1, 1)),
        [lambda: X + df.constant(2.0), lambda: Y + Y],
    ),
    "axes of one element": (
        *(KERNELS, "_shared_kernels", without(3)),
        [lambda n=n, m=m: df.nn.softmax(normal(n, m)) for n, m in ((33_000, 1), (33_001, 1), (190, 180))],
    ),
    "ops of a tape": (
        *(BACKWARD, "_programs", without(0)),
        [gradient_of(lambda x, y: df.sin(x)), gradient_of(lambda x, y: df.cos(x))],
    ),
    "attributes of the ops of a tape": (
        *(BACKWARD, "_programs", lambda key: (tuple([x for x in key[0] if isinstance(x, Op)]), *key[1:])),
        [gradient_of(lambda x, y, axis=axis: df.reduce_max(x, axis)) for axis in (0, 1)],
    ),
    "inputs of the ops of a tape": (
        *(BACKWARD, "_programs", without(1)),
        [gradient_of(lambda x, y: df.sin(x) - x), gradient_of(lambda x, y: x - df.sin(x))],
    ),
    "shapes of a tape": (
        *(BACKWARD, "_programs", lambda key: (*key[:2], key[2][1::2], *key[3:])),
        [gradient_of(lambda x, y: df.reduce_sum(x), n) for n in (3, 4)],
    ),
    "dtypes of a tape": (
        *(BACKWARD, "_programs", lambda key: (*key[:2], key[2][::2], *key[3:])),
        [gradient_of(lambda x, y: df.math.erf(x), dtype=dtype) for dtype in ("f4", "f8")],
    ),
    "targets of a tape": (
        *(BACKWARD, "_programs", without(3)),
        [gradient_of(lambda x, y, i=i: (df.sin(x), df.exp(x))[i]) for i in (0, 1)],
    ),
    "sources of a tape": (
        *(BACKWARD, "_programs", without(4)),
        [gradient_of(lambda x, y: x * x * y, source=i) for i in (0, 1)],
    ),
    "structure of a kernel": (WRITTEN, "_cached", without(0), [lambda: df.exp(X), lambda: df.sin(X)]),
    "literals of a large kernel": (
        *(WRITTEN, "_cached", without(2)),
        [lambda: long_chain(0.5)(X), lambda: long_chain(0.25)(X)],
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_cache_key_without_one_of_its_components_gives_wrong_results(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, table, mutate, calls = MUTANTS[name]
    expected = []
    for call in calls:
        with empty_caches():
            expected.append(outcome(call))
    with empty_caches():
        assert [outcome(call) for call in calls for _ in range(2)] == [x for x in expected for _ in range(2)]
    with empty_caches():
        monkeypatch.setattr(sys.modules[f"dualflow.{module}"], table, KeyWithoutComponent(mutate))
        assert [outcome(call) for call in calls for _ in range(2)] != [x for x in expected for _ in range(2)]


def module_level_caches() -> Iterator[tuple[Path, str]]:
    """The empty tables of modules, and the functions with arguments whose results are cached."""
    package = Path(df.__file__).parent
    for path in (*package.rglob("*.py"), *package.with_name("keras_dualflow").rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.args.args:
                if any("cache" in ast.unparse(decorator) for decorator in node.decorator_list):
                    yield path, node.name
            elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
                empty = re.fullmatch(r"\{\}|(set|dict|[\w.]*Weak\w+)\(\)", ast.unparse(node.value))
                if empty and not ast.unparse(target).lstrip("_").startswith("NO"):  # an empty constant
                    yield path, ast.unparse(target)


def documented_caches(path: Path) -> str:
    """The sections about kept values in the pages of the packages around a file, up to the outermost."""
    pages = [parent / "README.md" for parent in path.parents if (parent / "README.md").exists()]
    texts = [page.read_text(encoding="utf-8") for page in pages]
    return "".join(text.partition("## Kept values")[2].partition("\n## ")[0] for text in texts)


def test_each_cache_has_its_key_in_the_page_of_its_package() -> None:
    missing = [
        (path, name) for path, name in module_level_caches() if f"`{name}`" not in documented_caches(path)
    ]
    assert missing == []
