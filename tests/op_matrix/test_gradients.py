"""Every gradient rule, to the second order, against finite differences in float64."""

import numpy as np
import pytest
from op_cases import check_each

import dualflow as df
from dualflow.core import dispatch
from dualflow.core.spec import TensorSpec
from dualflow.eager.accumulator import ForwardAccumulator
from dualflow.eager.tape import GradientTape
from dualflow.eager.tensor import wrap
from dualflow.ops.record import REGISTRY
from dualflow.ops.testing.cases import cases

LAYOUTS = ("contiguous", "plain", "broadcast", "scalar", "empty")


def differentiable(case):
    return [i for i, x in enumerate(case.inputs) if x.dtype == np.float64 and case.op.differentiable(i)]


def in_float64(case):
    """Whether the result is precise enough for finite differences."""
    specs = [TensorSpec(x.shape, x.dtype) for x in case.inputs]
    return all(spec.dtype == np.float64 for spec in case.op.specs(specs, case.attrs))


def bounded(case):
    """Whether the outputs are finite, as finite differences require; maxima of empty axes aren't."""
    result = case.op.kernel(*case.inputs, **case.attrs)
    return all(np.isfinite(y).all() for y in (result if isinstance(result, tuple) else (result,)))


def cases_of(op):
    return [
        case
        for case in cases(op)
        if "float64" in case.label
        and case.label.split("-")[-1] in LAYOUTS
        and differentiable(case)
        and in_float64(case)
        and bounded(case)
    ]


CASES = {op.name: op_cases for op in REGISTRY.values() if (op_cases := cases_of(op))}
each_op = pytest.mark.parametrize("name", CASES)


def weights(shape):
    """A cotangent without symmetry, which no wrong rule survives."""
    return np.cos(np.arange(np.prod(shape, dtype=int)) + 1.0).reshape(shape)


def value(case, arrays):
    """The weighted sum of the op's outputs, computed in NumPy."""
    result = case.op.kernel(*arrays, **case.attrs)
    outputs = result if isinstance(result, tuple) else (result,)
    return sum(np.sum(np.asarray(y) * weights(np.shape(y))) for y in outputs)


def first_order(case, tensors):
    """The gradient of ``value``, as tensors, from the op's own rules."""
    with GradientTape() as tape:
        for i in differentiable(case):
            tape.watch(tensors[i])
        result = dispatch.current().run(case.op, tuple(tensors), case.attrs)
    outputs = result if isinstance(result, tuple) else (result,)
    sources = [tensors[i] for i in differentiable(case)]
    return tape.gradient(list(outputs), sources, output_gradients=[wrap(weights(y.shape)) for y in outputs])


def slope(function, arrays, i, direction):
    """The central difference of ``function`` as input ``i`` moves along ``direction``."""
    step = 1e-5
    sides = []
    for sign in (1, -1):
        moved = list(arrays)
        moved[i] = arrays[i] + sign * step * direction
        sides.append(function(moved))
    return (sides[0] - sides[1]) / (2 * step)


def agree(result, expected):
    np.testing.assert_allclose(
        result, expected, rtol=2e-6, atol=2e-6 * max(1.0, float(np.max(np.abs(expected), initial=0)))
    )


def direction(shape, seed):
    return np.random.default_rng(seed).uniform(-1, 1, shape)


@each_op
def test_first_order(name):
    check_each(CASES[name], check_first_order)


def check_first_order(case):
    gradients = first_order(case, [wrap(x) for x in case.inputs])
    for i, gradient in zip(differentiable(case), gradients, strict=True):
        if gradient is None:
            assert slope(lambda xs: value(case, xs), case.inputs, i, direction(case.inputs[i].shape, 1)) == 0
            continue
        assert gradient.shape == case.inputs[i].shape
        assert gradient.dtype == np.float64
        along = case.allowed(i, direction(case.inputs[i].shape, 1))
        expected = slope(lambda xs: value(case, xs), case.inputs, i, along)
        agree(np.sum(np.asarray(gradient) * along), expected)


@each_op
def test_second_order(name):
    """The gradient of the gradient's weighted sum, against differences of the first-order gradient."""
    check_each(CASES[name], check_second_order)


def check_second_order(case):
    tensors = [wrap(x) for x in case.inputs]
    sources = differentiable(case)

    def weighted(gradients):
        return [(g, wrap(weights(g.shape))) for g in gradients if g is not None]

    def first(arrays):
        return sum(
            np.sum(np.asarray(g) * np.asarray(w))
            for g, w in weighted(first_order(case, [wrap(x) for x in arrays]))
        )

    with GradientTape() as tape:
        for i in sources:
            tape.watch(tensors[i])
        pairs = weighted(first_order(case, tensors))
    derivatives = tape.gradient(
        [g for g, _ in pairs],
        [tensors[i] for i in sources],
        output_gradients=[w for _, w in pairs],
        unconnected_gradients="zero",
    )
    for i, second in zip(sources, derivatives, strict=True):
        along = case.allowed(i, direction(case.inputs[i].shape, 2))
        agree(np.sum(np.asarray(second) * along), slope(first, case.inputs, i, along))


@each_op
def test_tangents_and_cotangents_belong_together(name):
    """``<w, J v> = <J' w, v>``: forward mode is the transpose of what the op's own rules do."""
    check_each(CASES[name], check_tangents)


def check_tangents(case):
    tensors = [wrap(x) for x in case.inputs]
    sources = differentiable(case)
    along = [case.allowed(i, direction(case.inputs[i].shape, 3)) for i in sources]
    with ForwardAccumulator([tensors[i] for i in sources], [wrap(v) for v in along]) as acc:
        result = dispatch.current().run(case.op, tuple(tensors), case.attrs)
    outputs = result if isinstance(result, tuple) else (result,)
    tangents = acc.jvp(list(outputs), unconnected_gradients="zero")
    assert [(t.shape, t.dtype) for t in tangents] == [(y.shape, y.dtype) for y in outputs]
    forward = sum(np.sum(np.asarray(t) * weights(t.shape)) for t in tangents)
    cotangents = first_order(case, tensors)
    backward = [np.sum(np.asarray(g) * v) for g, v in zip(cotangents, along, strict=True) if g is not None]
    np.testing.assert_allclose(
        forward, sum(backward), rtol=1e-9, atol=1e-9 * max(1.0, *map(abs, backward), 0)
    )


def tangents_of(case, tensors, along):
    """The outputs of the op, and their tangents."""
    sources = [tensors[i] for i in differentiable(case)]
    with ForwardAccumulator(sources, list(along)) as acc:
        result = dispatch.current().apply(case.op, tuple(tensors), case.attrs)
    outputs = result if isinstance(result, tuple) else (result,)
    return outputs, acc.jvp(list(outputs), unconnected_gradients="zero")


@each_op
def test_compiled_tangents_are_those_of_eager_code(name):
    case = CASES[name][0]
    tensors = [wrap(x) for x in case.inputs]
    along = [wrap(case.allowed(i, direction(case.inputs[i].shape, 3))) for i in differentiable(case)]
    _, eager = tangents_of(case, tensors, along)
    _, compiled = df.function(lambda xs, vs: tangents_of(case, xs, vs))(tensors, along)
    for result, expected in zip(compiled, eager, strict=True):
        scale = np.abs(expected).max(initial=1.0)
        np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-9 * scale)
