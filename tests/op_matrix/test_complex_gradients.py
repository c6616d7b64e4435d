"""Every gradient rule at complex inputs, against finite differences: conjugates are where they belong."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from op_cases import check_each

from dualflow.core import dispatch
from dualflow.core.errors import DTypeError
from dualflow.core.spec import TensorSpec
from dualflow.eager.accumulator import ForwardAccumulator
from dualflow.eager.tape import GradientTape
from dualflow.eager.tensor import wrap
from dualflow.ops.record import REGISTRY
from dualflow.ops.testing.cases import cases

LAYOUTS = ("contiguous", "plain", "broadcast", "scalar", "empty")


def complexes(shape, seed=0):
    """Numbers without symmetry, which no wrong rule survives."""
    steps = np.arange(np.prod(shape, dtype=int)) + seed
    return (np.cos(steps + 1.0) + 1j * np.sin(2.0 * steps + 0.3)).reshape(shape)


def sources_of(case):
    """The inputs that have a complex gradient."""
    return [i for i, x in enumerate(case.inputs) if x.dtype.kind == "c" and case.op.differentiable(i)]


def of_complex_numbers():
    """The cases of real numbers whose op takes complex ones too, with an imaginary part."""
    for op in REGISTRY.values():
        for case in cases(op):
            if "float64" not in case.label or case.label.split("-")[-1] not in LAYOUTS:
                continue
            inputs = tuple(
                x + 0.3 * case.allowed(i, complexes(x.shape)) if x.dtype == np.float64 else x
                for i, x in enumerate(case.inputs)
            )
            complex_case = replace(case, inputs=inputs)
            try:
                specs = op.specs([TensorSpec(x.shape, x.dtype) for x in inputs], case.attrs)
            except DTypeError:
                continue
            is_precise = all(spec.dtype.kind in "fc" and spec.dtype.size >= 8 for spec in specs)
            if is_precise and sources_of(complex_case):
                yield complex_case


CASES = defaultdict(list)
for complex_case in of_complex_numbers():
    CASES[complex_case.op.name].append(complex_case)
each_op = pytest.mark.parametrize("name", CASES)


def outputs_of(case, tensors):
    result = dispatch.current().run(case.op, tuple(tensors), case.attrs)
    return list(result) if isinstance(result, tuple) else [result]


def weight(y):
    return complexes(y.shape) if y.dtype.is_complex else complexes(y.shape).real


@each_op
def test_the_gradient_is_the_slope_along_both_axes(name):
    """``dL = Re(conj(gradient) dx)`` for ``L = Re(sum(conj(weight) y))``, as TensorFlow's gradients are."""
    check_each(CASES[name], check_slope)


def check_slope(case):
    sources = sources_of(case)
    tensors = [wrap(x) for x in case.inputs]
    with GradientTape() as tape:
        tape.watch([tensors[i] for i in sources])
        outputs = outputs_of(case, tensors)
    outputs = [y for y in outputs if not y.dtype.is_complex] or outputs  # singular vectors have any phase
    gradients = tape.gradient(
        outputs, [tensors[i] for i in sources], output_gradients=[wrap(weight(y)) for y in outputs]
    )

    def value(arrays):
        results = outputs_of(case, [wrap(x) for x in arrays])[: len(outputs)]  # the real ones come first
        return sum(np.sum((np.conj(weight(y)) * np.asarray(y)).real) for y in results)

    for i, gradient in zip(sources, gradients, strict=True):
        along = case.allowed(i, complexes(case.inputs[i].shape, seed=5))
        step = 1e-6
        there, back = (
            value([x + sign * step * along if k == i else x for k, x in enumerate(case.inputs)])
            for sign in (1, -1)
        )
        slope = (there - back) / (2 * step)
        if gradient is None:
            assert abs(slope) < 1e-6
            continue
        assert gradient.dtype == np.complex128
        np.testing.assert_allclose(
            np.sum((np.conj(np.asarray(gradient)) * along).real), slope, rtol=1e-5, atol=1e-5
        )


@each_op
def test_tangents_and_gradients_belong_together(name):
    """``Re(sum(conj(w) J v)) = Re(sum(conj(gradient) v))``."""
    check_each(CASES[name], check_tangents)


def check_tangents(case):
    sources = sources_of(case)
    tensors = [wrap(x) for x in case.inputs]
    watched = [tensors[i] for i in sources]
    along = [case.allowed(i, complexes(case.inputs[i].shape, seed=7)) for i in sources]
    with GradientTape() as tape, ForwardAccumulator(watched, [wrap(v) for v in along]) as acc:
        tape.watch(watched)
        outputs = outputs_of(case, tensors)
    tangents = acc.jvp(outputs, unconnected_gradients="zero")
    forward = sum(
        np.sum((np.conj(weight(y)) * np.asarray(t)).real) for y, t in zip(outputs, tangents, strict=True)
    )
    gradients = tape.gradient(outputs, watched, output_gradients=[wrap(weight(y)) for y in outputs])
    backward = [
        np.sum((np.conj(np.asarray(g)) * v).real)
        for g, v in zip(gradients, along, strict=True)
        if g is not None
    ]
    np.testing.assert_allclose(
        forward, sum(backward), rtol=1e-9, atol=1e-9 * max(1.0, *map(abs, backward), 0)
    )


def test_most_ops_take_complex_numbers():
    assert len(CASES) > 50
