"""Gradients by programs of earlier backward passes: the bits, errors and memory of passes by rules."""

import gc
import tracemalloc
import weakref

import numpy as np
import pytest

import dualflow as df
from dualflow.core import dispatch
from dualflow.eager import backward_cache
from dualflow.eager.backward_program import BackwardProgram, has_fixed_rules
from dualflow.eager.tensor import wrap
from dualflow.ops.families import load_families
from dualflow.ops.record import COMPILED_ABOVE, REGISTRY
from dualflow.ops.testing.cases import cases

load_families()
DIFFERENTIABLE = [op for op in REGISTRY.values() if (op.vjp or op.joint_vjp) and op.samples]
LAYOUTS = ("contiguous", "plain", "broadcast", "special values")


@pytest.fixture(autouse=True)
def _no_programs(monkeypatch):
    """No programs at first; the second pass of a structure is traced, so that few passes are needed."""
    backward_cache._programs.clear()
    monkeypatch.setattr(backward_cache, "OCCURRENCES", 2)


def programs():
    return [x for x in backward_cache._programs.values() if type(x) is BackwardProgram]


def bits(gradients):
    return [None if g is None else (g.dtype.name, g.shape, np.asarray(g).tobytes()) for g in gradients]


def outcome(function, *args):
    """The bits of the gradients, or the error."""
    try:
        return bits(function(*args))
    except df.errors.DualflowError as error:
        return type(error), str(error), getattr(error, "__notes__", [])


def gradients(function, sources, **options):
    """The gradients of a function of tensors or variables."""
    with df.GradientTape() as tape:
        for x in sources:
            if isinstance(x, df.Tensor) and x.dtype.is_inexact:
                tape.watch(x)
        targets = function(*sources)
    return tape.gradient(targets, sources, **options)


def squares(case):
    """A function that sums the squares of the floating outputs of the case's op."""

    def function(*inputs):
        engine = dispatch.current()
        result = engine.apply(case.op, case.op.prepare(inputs, engine), case.attrs)
        outputs = result if isinstance(result, tuple) else (result,)
        return [df.reduce_sum(y * y) for y in outputs if y.dtype.is_inexact]

    return function


def check_passes(op, layouts=None):
    """Compare passes of two sets of values, by rules and by a program."""
    for case, other in zip(cases(op, 0), cases(op, 1), strict=True):
        if layouts and (case.label.split("-")[-1] not in layouts or "64" in case.label):
            continue
        by_rules = []
        for c in (case, other):
            backward_cache._programs.clear()
            by_rules.append(outcome(gradients, squares(c), [wrap(x) for x in c.inputs]))
        backward_cache._programs.clear()
        passes = [case, case, other, case]
        results = [outcome(gradients, squares(c), [wrap(x) for x in c.inputs]) for c in passes]
        assert results == [by_rules[c is other] for c in passes], case


def test_a_program_computes_the_bits_of_the_rules():
    for op in DIFFERENTIABLE:
        check_passes(op, LAYOUTS)


@pytest.mark.exhaustive
@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: op.name)
def test_a_program_computes_the_bits_of_the_rules_in_all_layouts(op):
    check_passes(op)


def mlp(x, w, b):
    h = df.tanh(x @ w + b)
    return df.reduce_mean(h * h)


def arrays(seed, *shapes):
    rng = np.random.default_rng(seed)
    return [df.constant(rng.standard_normal(s), df.float32) for s in shapes]


def test_a_structure_that_occurs_often_has_a_program_which_other_values_share(monkeypatch):
    monkeypatch.undo()
    results = []
    for seed in range(8):
        results.append(bits(gradients(mlp, arrays(seed, (4, 3), (3, 2), (2,)))))
        assert len(programs()) == (seed + 1 >= backward_cache.OCCURRENCES)
    backward_cache._programs.clear()
    assert bits(gradients(mlp, arrays(7, (4, 3), (3, 2), (2,)))) == results[7]


def ops_of_steps():
    (program,) = programs()
    return [step.op.name for step in program.steps]


def test_equal_steps_run_once():
    """Both inputs of a square have the same cotangent."""
    for _ in range(2):
        gradients(lambda x: x * x, [df.constant([1.0, 2.0])])
    assert sorted(ops_of_steps()) == ["add", "multiply"]


def test_arithmetic_reads_a_scalar_instead_of_its_repetition():
    x = df.constant([np.nan, -np.nan, np.inf, -0.0, 0.0, 1.0])
    for weight in (2.0, np.nan, -np.nan, -0.0, np.inf):
        backward_cache._programs.clear()
        by_rules, *later = [
            bits(gradients(lambda x: df.reduce_sum(x * x), [x], output_gradients=df.constant(weight)))
            for _ in range(3)
        ]
        assert later == [by_rules, by_rules]
        assert "broadcast_to" not in ops_of_steps()


def test_a_repeated_scalar_that_is_a_result_is_computed():
    for _ in range(3):
        assert gradients(df.reduce_sum, [df.constant([1.0, 2.0])])[0].numpy().tolist() == [1.0, 1.0]


def test_a_rule_that_reads_values_runs_again_each_time():
    @df.custom_gradient
    def signed(x):
        return df.identity(x), lambda g: g * (1.0 if float(df.reduce_sum(x)) > 0 else -1.0)

    for value in (2.0, 2.0, 2.0, -2.0):
        assert float(gradients(signed, [df.constant(value)])[0]) == np.sign(value)
    assert not programs()


@pytest.mark.parametrize(
    "select",
    [
        lambda x: df.boolean_mask(x, x > 0),
        lambda x: df.dynamic_partition(x, df.cast(x > 0, df.int32), 2)[1],
    ],
)
def test_a_program_serves_one_shape_of_each_result(select):
    """Values determine the number of elements, by which the gradient of the mean divides."""
    for count in (3, 3, 3, 1, 2, 1):
        x = df.constant([1.0] * count + [-1.0] * (4 - count))
        (gradient,) = gradients(lambda x: df.reduce_mean(select(x)), [x])
        np.testing.assert_allclose(gradient, [1 / count] * count + [0] * (4 - count))


def test_numpy_scalars_are_no_plain_attributes():
    """In a key, np.float64(1) and the np.int64 with its bits are equal."""
    assert has_fixed_rules(df.multiply.op, {"factor": 1.0})
    assert not has_fixed_rules(df.multiply.op, {"factor": np.float64(1.0)})


def test_a_user_gradient_function_is_released():
    def reference_after_passes():
        def grad(g):
            return 3.0 * g

        function = df.custom_gradient(lambda x: (df.identity(x), grad))
        for _ in range(3):
            assert float(gradients(function, [df.constant(1.0)])[0]) == 3.0
        return weakref.ref(grad)

    reference = reference_after_passes()
    gc.collect()
    assert reference() is None


def test_second_derivatives_are_recorded():
    x = df.constant(2.0)
    for _ in range(4):
        with df.GradientTape() as outer:
            outer.watch(x)
            (first,) = gradients(lambda x: x * x * x, [x])
        assert float(first) == 12.0
        assert float(outer.gradient(first, x)) == 12.0


def test_a_persistent_tape_computes_several_gradients():
    x, y = df.constant([1.0, 2.0]), df.constant([3.0, 4.0])
    with df.GradientTape(persistent=True) as tape:
        tape.watch([x, y])
        product = x * y
        z = product * product
    results = [tape.gradient(z, source).numpy().tolist() for _ in range(3) for source in (x, y, product)]
    assert results == [[18.0, 64.0], [6.0, 32.0], [6.0, 16.0]] * 3


def test_a_variable_assigned_after_the_forward_pass_keeps_its_value_there():
    v = df.Variable(2.0)
    for value in (2.0, 3.0, 5.0):
        v.assign(value)
        with df.GradientTape() as tape:
            y = v * v
        v.assign(0.0)
        assert float(tape.gradient(y, v)) == 2 * value


def test_several_reads_of_a_variable_add_up():
    v = df.Variable([1.0, 2.0])
    for _ in range(3):
        with df.GradientTape() as tape:
            y = df.reduce_sum(v * v)
            v.assign_add([1.0, 1.0])
            y += df.reduce_sum(3.0 * v)
        assert tape.gradient(y, v).numpy().tolist() == (2 * (v.numpy() - 1) + 3).tolist()


def test_unconnected_sources_and_shared_cotangents():
    x, y, z = df.constant([1.0]), df.constant([2.0]), df.constant([4.0])
    weight = df.constant([5.0])
    for _ in range(3):
        of_x, of_y, of_z = gradients(lambda x, y, z: x + y, [x, y, z], output_gradients=weight)
        assert of_x is of_y is weight
        assert of_z is None


def test_a_target_may_be_a_source_or_unrelated():
    x, other = df.constant(3.0), df.constant(1.0)
    for _ in range(3):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        assert [float(g) for g in tape.gradient([y, x, other], [x, y])] == [7.0, 1.0]


def test_an_error_of_a_kernel_is_that_of_its_op():
    regular, singular = df.eye(3), df.zeros([3, 3])
    expected = outcome(gradients, df.linalg.det, [singular])
    for _ in range(3):
        gradients(df.linalg.det, [regular])
    assert programs()
    assert "inv(float32[3, 3])" in str(expected)
    assert outcome(gradients, df.linalg.det, [singular]) == expected


def test_intermediates_are_released_as_the_pass_goes_on():
    x = df.constant(np.linspace(0, 1, COMPILED_ABOVE), df.float32)
    count = 60

    def chain(x):
        for _ in range(count):
            x = df.sin(x)
        return x

    peaks = []
    for _ in range(3):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = chain(x)
        tracemalloc.start()
        tape.gradient(y, x)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    size = x.numpy().nbytes
    assert programs()
    assert peaks[2] < peaks[0] + 2 * size
    assert peaks[2] < count * size / 4


def activations(x):
    return df.reduce_sum(df.tanh(x) * df.nn.softmax(x)) * df.sin(x[0])


@pytest.mark.parametrize(
    ("function", "shape"), [(activations, [COMPILED_ABOVE + 1]), (lambda x: df.matmul(x, x), [130, 130])]
)
def test_large_tensors_keep_their_compiled_kernels(function, shape):
    x = df.reshape(df.cast(np.linspace(-1, 1, np.prod(shape)), df.float32), shape)
    by_rules, *later = [outcome(gradients, function, [x]) for _ in range(3)]
    assert programs()[0].large
    assert later == [by_rules, by_rules]


def test_ops_of_later_passes_appear_in_a_placement_log(capfd):
    x = df.constant([1.0])
    for _ in range(3):
        gradients(df.sin, [x])
    df.debugging.set_log_device_placement(True)
    try:
        gradients(df.sin, [x])
    finally:
        df.debugging.set_log_device_placement(False)
    assert "cos" in capfd.readouterr().err


@pytest.mark.parametrize(("limit", "most"), [("_MAX_STRUCTURES", 4), ("_MAX_STEPS", 8)])
def test_the_table_of_programs_is_bounded(limit, most, monkeypatch):
    monkeypatch.setattr(backward_cache, limit, most)
    for n in range(20):
        x = df.ones([n])
        for _ in range(3):
            assert gradients(lambda x: df.sin(x) * x, [x])[0].shape == (n,)
        assert programs()
    assert len(backward_cache._programs) <= 4
    assert sum(len(x.steps) for x in programs()) <= 16


def test_a_structure_without_a_program_keeps_its_place(monkeypatch):
    """The entry of a pass that can't be traced is not stored again, which would remove others."""
    monkeypatch.setattr(backward_cache, "_MAX_STRUCTURES", 2)
    x, mask = df.constant([1.0, 2.0]), df.constant([True, False])
    for _ in range(3):
        gradients(df.sin, [x])
    for _ in range(6):
        gradients(lambda x: df.reduce_sum(df.boolean_mask(x, mask)), [x])
    assert len(programs()) == 1
