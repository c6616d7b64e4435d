"""Every op, sample, dtype and layout: the eager kernel agrees with the op's definition."""

import itertools
import math

import numpy as np
import pytest
from op_cases import check_each

from dualflow.core.dtypes import as_dtype
from dualflow.core.errors import DTypeError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.eager.engine import EAGER
from dualflow.ops import maths_reference
from dualflow.ops.integer_product import INTEGER_PRODUCT
from dualflow.ops.op_kinds import (
    CopyPieces,
    Decompose,
    Elementwise,
    Gather,
    Literal,
    MatMul,
    Opaque,
    Reduce,
    Scan,
    View,
)
from dualflow.ops.record import REGISTRY, Promotion
from dualflow.ops.testing.cases import cases

CASES = {op.name: list(cases(op)) for op in REGISTRY.values()}
each_op = pytest.mark.parametrize("name", CASES)


def run(case):
    """The prepared inputs of a case, and the arrays that the eager engine returns."""
    inputs = case.op.prepare(case.inputs, EAGER)
    with np.errstate(all="ignore"):
        result = EAGER.run(case.op, inputs, case.attrs)
    outputs = result if isinstance(result, tuple) else (result,)
    return [np.asarray(x) for x in inputs], [np.asarray(y) for y in outputs], [x.spec for x in inputs]


def close(actual, expected, places=8):
    """Equal shapes and dtypes, and values within some units of the last place of the largest of them."""
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    if actual.dtype.kind not in "fc" or not actual.size:
        np.testing.assert_array_equal(actual, expected)
        return
    finite = np.abs(expected[np.isfinite(expected)])
    scale = finite.max() if finite.size else 1.0
    eps = np.finfo(actual.dtype).eps
    np.testing.assert_allclose(actual, expected, rtol=places * eps, atol=places * eps * scale * 1e-3)


class Indexed:
    """The reference namespace with the positions of an output's elements."""

    def __init__(self, shape):
        self._shape = shape

    def index(self, axis):
        return np.indices(self._shape)[axis]

    def __getattr__(self, name):
        return getattr(maths_reference, name)


def element(case, arrays, spec):
    with np.errstate(all="ignore"):
        result = case.op.kind.code(Indexed(spec.shape), *arrays, **case.attrs)
    return np.broadcast_to(np.asarray(result), spec.shape)


def fold(case, arrays, spec, *, halves):
    """The fold taken element by element in order, over all at once or over two parts that are merged."""
    (x,), kind, axes = arrays, case.op.kind, case.attrs["axis"]
    kept = [a for a in range(x.ndim) if a not in axes]
    count = math.prod(x.shape[a] for a in axes)
    rows = x.transpose(*kept, *axes).reshape(*[x.shape[a] for a in kept], count)
    parts = [range(count // 2), range(count // 2, count)] if halves else [range(count)]
    dtype, reduced = as_dtype(x.dtype), []
    with np.errstate(all="ignore"):
        for part in parts:
            acc = kind.start(maths_reference, dtype)
            for i in part:
                acc = kind.step(maths_reference, acc, rows[..., i], np.int64(i))
            reduced.append(acc)
        acc = kind.merge(maths_reference, *reduced) if halves else reduced[0]
        result = np.broadcast_to(kind.finish(maths_reference, acc), rows.shape[:-1])
    return np.asarray(result, spec.dtype.dtype).reshape(spec.shape)


def scan(case, arrays, spec):
    """What the fold results in after each element, or before it, one after another."""
    (x,), axis, exclusive = arrays, case.attrs["axis"], case.attrs["exclusive"]
    kind = case.op.kind.exclusive if exclusive else case.op.kind.inclusive
    rows, out = np.moveaxis(x, axis, 0), np.empty(spec.shape, spec.dtype.dtype)
    to = np.moveaxis(out, axis, 0)
    acc = kind.start(maths_reference, as_dtype(x.dtype))
    with np.errstate(all="ignore"):
        for i in reversed(range(len(rows))) if case.attrs["reverse"] else range(len(rows)):
            taken = kind.step(maths_reference, acc, rows[i], np.int64(i))
            to[i] = kind.finish(maths_reference, acc if exclusive else taken)
            acc = taken
    return out


def assemble(case, arrays, spec):
    out = np.full(spec.shape, 77, spec.dtype.dtype)
    for destination, source in case.op.kind.pieces(out, *arrays, **case.attrs):
        assert not isinstance(source, np.ndarray) or destination.shape == source.shape
        destination[...] = source
    return out


def take(case, arrays, spec):
    params, indices = arrays
    axis, batch = case.attrs["axis"], case.attrs.get("batch_dims", 0)
    end = axis + indices.ndim - batch
    out = np.empty(spec.shape, params.dtype)
    for at in itertools.product(*map(range, spec.shape)):
        picked = indices[(*at[:batch], *at[axis:end])]
        out[at] = params[(*at[:axis], picked, *at[end:])]
    return out


def contract(case, arrays, spec):
    a, b, *added = arrays
    if case.op is INTEGER_PRODUCT:  # of bytes, with four neighbours of a column together
        b = b.swapaxes(-1, -2).reshape(*b.shape[:-3], a.shape[-1], b.shape[-2])
        a, b = a.astype(np.int32), b.astype(np.int32)
    a = a.swapaxes(-1, -2) if case.attrs.get("transpose_a") else a
    b = b.swapaxes(-1, -2) if case.attrs.get("transpose_b") else b
    product = (a[..., :, :, None] * b[..., None, :, :]).sum(-2).astype(a.dtype).reshape(spec.shape)
    return added[0] + a.dtype.type(case.attrs["scale"]) * product if added else product


@each_op
def test_the_kernel_does_what_the_form_reports(name):
    check_each(CASES[name], check_kernel)


def check_kernel(case):
    arrays, outputs, specs = run(case)
    kind = case.op.kind
    if isinstance(kind, Opaque):
        assert kind.reason
        return
    if isinstance(kind, Decompose):  # is other ops, where it is compiled
        return
    (spec,), (out,) = case.op.specs(specs, case.attrs), outputs
    match kind:
        case Elementwise():
            close(out, element(case, arrays, spec))
        case Reduce():
            close(out, fold(case, arrays, spec, halves=False), places=64)
            close(out, fold(case, arrays, spec, halves=True), places=64)
        case Scan():
            np.testing.assert_array_equal(out, scan(case, arrays, spec))
        case View():
            try:
                view = kind.view(arrays[0], **case.attrs)
            except ValueError:  # these strides have no such view
                return
            assert np.shares_memory(view, arrays[0]) or not view.size
            close(out, view)
        case CopyPieces():
            close(out, assemble(case, arrays, spec))
        case Gather():
            close(out, take(case, arrays, spec))
        case MatMul():
            close(out, contract(case, arrays, spec), places=64)
        case Literal():
            close(out, case.attrs["value"])


@each_op
def test_the_spec_foretells_the_result(name):
    check_each(CASES[name], check_spec)


def check_spec(case):
    _, outputs, specs = run(case)
    foretold = case.op.specs(specs, case.attrs)
    assert len(foretold) == len(outputs)
    for spec, out in zip(foretold, outputs, strict=True):
        assert spec.dtype == out.dtype
        assert spec.is_compatible_with(TensorSpec(out.shape, out.dtype))


@each_op
def test_a_first_axis_of_unknown_size_foretells_less_but_nothing_wrong(name):
    check_each(CASES[name], check_spec_of_unspecs_size)


def check_spec_of_unspecs_size(case):
    inputs = case.op.prepare(case.inputs, EAGER)
    specs = case.op.specs([x.spec for x in inputs], case.attrs)
    blank = [TensorSpec.of(Shape([None, *x.shape[1:]] if x.ndim else []), x.dtype) for x in inputs]
    for vague, exact in zip(case.op.specs(blank, case.attrs), specs, strict=True):
        assert len(vague.shape) == len(exact.shape)
        assert vague.dtype is exact.dtype
        assert all(a is None or b is None or a == b for a, b in zip(vague.shape, exact.shape, strict=True))


@each_op
def test_inputs_are_not_written_to(name):
    check_each(CASES[name], check_inputs_are_kept)


def check_inputs_are_kept(case):
    before = [a.copy() for a in case.inputs]
    inputs = case.op.prepare([np.array(a) for a in case.inputs], EAGER)
    with np.errstate(all="ignore"):
        EAGER.run(case.op, inputs, case.attrs)
    for kept, now in zip(case.op.prepare(before, EAGER), inputs, strict=True):
        np.testing.assert_array_equal(np.asarray(now), np.asarray(kept))


def test_every_op_without_effects_has_samples():
    assert all(op.samples or op.effect for op in REGISTRY.values())


def test_every_op_reports_in_one_line_what_it_does():
    assert all(op.doc and "\n" not in op.doc for op in REGISTRY.values())


DTYPES = ("bool", "int8", "uint8", "uint64", "float16", "complex64", "complex128")
PLAIN = [
    next((case for case in op_cases if case.label.endswith(("plain", "contiguous")) and case.inputs), None)
    for op_cases in CASES.values()
]


@pytest.mark.parametrize("case", [case for case in PLAIN if case is not None], ids=str)
def test_other_dtypes_are_refused_or_computed_alike_eagerly_and_in_a_graph(case):
    """Graphs use the spec rule, the eager engine the kernel: they must accept the same inputs."""
    check_each(DTYPES, lambda dtype: check_other_dtype(case, dtype))


def check_other_dtype(case, dtype):
    kept = {Promotion.NONE: len(case.inputs), Promotion.AFTER_FIRST: 1}.get(case.op.promotion, 0)
    arguments = [
        np.abs(x).astype(dtype) if i >= kept or x.dtype.kind == "f" else x for i, x in enumerate(case.inputs)
    ]
    inputs = case.op.prepare(arguments, EAGER)
    try:
        specs = case.op.specs([x.spec for x in inputs], case.attrs)
    except DTypeError:
        with pytest.raises(DTypeError, match=case.op.name):
            EAGER.run(case.op, inputs, case.attrs)
    else:
        result = EAGER.run(case.op, inputs, case.attrs)
        outputs = result if isinstance(result, tuple) else (result,)
        assert [x.dtype for x in outputs] == [spec.dtype for spec in specs]
        if isinstance(case.op.kind, Elementwise) and dtype != "float16":
            close(np.asarray(result), element(case, [np.asarray(x) for x in inputs], specs[0]))
