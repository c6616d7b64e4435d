"""GradientTape: what it watches, when it records, and what it returns."""

import gc
import threading
import tracemalloc

import numpy as np
import pytest

import dualflow as df


def gradient(f, *values, **options):
    xs = [df.constant(v) for v in values]
    with df.GradientTape() as tape:
        tape.watch(xs)
        y = f(*xs)
    return tape.gradient(y, xs, **options)


# What is watched


def test_a_tensor_is_watched_only_when_requested():
    x = df.constant(3.0)
    with df.GradientTape() as tape:
        y = x * x
    assert tape.gradient(y, x) is None


def test_values_computed_before_watching_have_no_gradient():
    x = df.constant(3.0)
    with df.GradientTape() as tape:
        before = x * x
        tape.watch(x)
        y = before + x
    assert tape.gradient(y, x).numpy() == 1.0


def test_a_variable_that_is_not_trainable_can_be_watched_by_hand():
    v = df.Variable(3.0, trainable=False)
    with df.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(v)
        y = v * v
    assert tape.gradient(y, v).numpy() == 6.0


def test_a_variable_watched_between_two_reads_counts_from_the_second():
    v = df.Variable(3.0)
    with df.GradientTape() as outer, df.GradientTape(watch_accessed_variables=False) as inner:
        first = v * 1.0
        inner.watch(v)
        y = first + v * v
    assert inner.gradient(y, v).numpy() == 6.0
    assert outer.gradient(y, v).numpy() == 7.0


def test_a_value_read_before_the_tape_is_a_constant_to_it():
    v = df.Variable(3.0)
    old = v.read_value()
    with df.GradientTape() as tape:
        y = v * old
    assert tape.gradient(y, v).numpy() == 3.0


def test_reads_of_different_values_add_up():
    v = df.Variable(3.0)
    with df.GradientTape() as tape:
        y = v * v
        v.assign(10.0)
        y = y + v * v
    assert tape.gradient(y, v).numpy() == 26.0


def test_no_gradient_flows_through_an_assignment():
    v, w = df.Variable(0.0), df.Variable(3.0)
    with df.GradientTape() as tape:
        v.assign(w * w)
        y = v * 2.0
    assert tape.gradient(y, w) is None


@pytest.mark.parametrize("wrong", [3.0, np.ones(2), "x"])
def test_only_tensors_and_variables_can_be_watched(wrong):
    with df.GradientTape() as tape, pytest.raises(ValueError, match="Passed in object"):
        tape.watch(wrong)


def test_integers_warn_and_have_no_gradient():
    i = df.constant(3)
    with df.GradientTape() as tape:
        with pytest.warns(UserWarning, match="must be floating.*int32"):
            tape.watch(i)
        y = i * i
    with pytest.warns(UserWarning, match="target tensor must be floating"):
        assert tape.gradient(y, i) is None


@pytest.mark.parametrize("kind", ["int32", "bool", "uint8"])
@pytest.mark.filterwarnings("ignore:.*target tensor must be floating")
def test_variables_that_are_no_floats_have_no_gradient(kind):
    def slopes(v):
        with df.GradientTape(persistent=True) as tape:
            y = df.where(v, 1, 2) if kind == "bool" else v * 2
            z = df.cast(v, df.float32) * w
        return [tape.gradient(y, v), tape.gradient([y, z], [v, w]), tape.jacobian(y, v)]

    v, w = df.Variable(df.cast([1, 1], kind)), df.Variable([3.0, 4.0])
    for f in (slopes, df.function(slopes)):
        alone, (beside, floats), jacobian = f(v)
        assert alone is beside is jacobian is None
        assert floats.numpy().tolist() == [1.0, 1.0]


@pytest.mark.filterwarnings("ignore:The dtype of the (watched|target) tensor:UserWarning")
def test_strings_have_no_gradient():
    x, text = df.constant(3.0), df.constant(["a"])
    with df.GradientTape() as tape:
        tape.watch([x, text])
        targets = [text, x * x]
    assert [None if g is None else g.numpy() for g in tape.gradient(targets, [x, text])] == [6.0, None]


def test_zeros_for_an_unconnected_integer_variable_are_integers():
    v = df.Variable([1, 2])
    with df.GradientTape() as tape:
        y = df.cast(v, df.float32) * 2.0
    slope = tape.gradient(y, v, unconnected_gradients="zero")
    assert slope.dtype is df.int32
    assert slope.numpy().tolist() == [0, 0]


# When it records


def test_a_tape_that_is_not_persistent_computes_one_gradient():
    x = df.constant(3.0)
    with df.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    tape.gradient(y, x)
    with pytest.raises(
        RuntimeError, match="A non-persistent GradientTape can only be used to compute one set"
    ):
        tape.gradient(y, x)


def test_a_gradient_inside_the_block_ends_a_plain_tape():
    x = df.constant(3.0)
    with df.GradientTape() as tape:
        tape.watch(x)
        assert tape.gradient(x * x, x).numpy() == 6.0
        x * x
    with pytest.raises(RuntimeError):
        tape.gradient(x, x)


def test_an_active_tape_can_not_be_entered_again():
    tape = df.GradientTape()
    with tape, pytest.raises(ValueError, match="Tape is still recording"):
        tape.__enter__()


def test_a_tape_entered_again_goes_on():
    x = df.constant(2.0)
    tape = df.GradientTape(persistent=True)
    with tape:
        tape.watch(x)
        y = x * x
    unseen = x * 100.0
    with tape:
        z = y * x + unseen
    assert tape.gradient(z, x).numpy() == 12.0


def test_recording_can_pause():
    x = df.constant(2.0)
    with df.GradientTape() as tape:
        tape.watch(x)
        with tape.stop_recording():
            pause = x * x * x
        y = x * x + pause
    assert tape.gradient(y, x).numpy() == 4.0


def test_pausing_needs_a_recording():
    with pytest.raises(ValueError, match="Tape is not recording"), df.GradientTape().stop_recording():
        pass


def test_reset_forgets():
    x = df.constant(2.0)
    with df.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        tape.reset()
        tape.watch(x)
        z = x * x * x
    assert tape.gradient([y, z], x).numpy() == 12.0


def test_tapes_may_end_in_any_order():
    x = df.constant(3.0)
    first, second = df.GradientTape(), df.GradientTape()
    first.__enter__()
    second.__enter__()
    first.watch(x)
    second.watch(x)
    y = x * x
    first.__exit__(None, None, None)
    z = y * x
    second.__exit__(None, None, None)
    assert first.gradient(z, x) is None
    assert second.gradient(z, x).numpy() == 27.0
    assert (x * x).numpy() == 9.0


def test_an_exception_ends_the_recording():
    x = df.constant(3.0)
    tape = df.GradientTape(persistent=True)

    def failing():
        with tape:
            tape.watch(x)
            raise KeyError

    with pytest.raises(KeyError):
        failing()
    y = x * x
    assert tape.gradient(y, x) is None


def test_each_thread_has_its_own_tapes():
    results = {}

    def work(i):
        x = df.constant(float(i))
        for _ in range(50):
            with df.GradientTape() as tape:
                tape.watch(x)
                y = x * x * x
            results[i] = tape.gradient(y, x).numpy()

    with df.GradientTape(persistent=True) as outer:
        threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert results == {i: 3.0 * i * i for i in range(6)}
    assert outer.watched_variables() == ()


# What it answers


def test_the_answer_has_the_structure_of_the_sources():
    x, y = df.constant(2.0), df.constant(3.0)
    with df.GradientTape() as tape:
        tape.watch([x, y])
        z = x * y
    gradients = tape.gradient(z, {"x": x, "rest": (y, [x])})
    assert gradients["x"].numpy() == 3.0
    assert gradients["rest"][0].numpy() == 2.0
    assert gradients["rest"][1][0].numpy() == 3.0


def test_targets_and_elements_are_summed():
    (slope,) = gradient(lambda x: [x, {"a": x * x}], [1.0, 2.0])
    assert slope.numpy().tolist() == [3.0, 5.0]


def test_weights_multiply_and_broadcast():
    x = df.constant([1.0, 2.0])
    with df.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y, z = x * x, x * 3.0
    assert tape.gradient(y, x, output_gradients=10.0).numpy().tolist() == [20.0, 40.0]
    assert tape.gradient([y, z], x, output_gradients=[[1.0, 10.0], None]).numpy().tolist() == [5.0, 43.0]
    with pytest.raises(ValueError, match="2 targets need as many"):
        tape.gradient([y, z], x, output_gradients=[1.0])


def test_a_source_that_is_the_target_has_gradient_one():
    assert gradient(lambda x: x, 5.0)[0].numpy() == 1.0
    v = df.Variable(2.0)
    with df.GradientTape() as tape:
        y = v * v
    one, four = tape.gradient([v, y], [v, df.constant(1.0)])
    assert one.numpy() == 5.0
    assert four is None


def test_an_intermediate_result_can_be_a_source():
    x = df.constant(3.0)
    with df.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        z = y * y
    dy, dx = tape.gradient(z, [y, x])
    assert dy.numpy() == 18.0
    assert dx.numpy() == 108.0


def test_unconnected_sources():
    x, u = df.constant(2.0), df.Variable([1.0, 2.0])
    with df.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    assert tape.gradient(y, u) is None
    assert tape.gradient(y, u, unconnected_gradients="zero").numpy().tolist() == [0.0, 0.0]
    assert tape.gradient(y, [u], unconnected_gradients=df.UnconnectedGradients.ZERO)[0].shape == (2,)
    with pytest.raises(ValueError, match="Unknown value for unconnected_gradients: 'maybe'"):
        tape.gradient(y, x, unconnected_gradients="maybe")


@pytest.mark.parametrize("cut", [df.floor, df.round, df.stop_gradient, lambda x: df.constant(x.numpy())])
def test_these_ops_stop_gradients(cut):
    assert gradient(cut, [1.5])[0] is None


def test_targets_and_sources_must_be_tensors():
    x = df.constant(2.0)
    with df.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    with pytest.raises(TypeError, match="received None"):
        tape.gradient(None, x)
    with pytest.raises(TypeError, match="must be a tensor"):
        tape.gradient(3.0, x)
    with pytest.raises(TypeError, match="must be tensors"):
        tape.gradient(y, 3.0)


def test_the_gradient_has_the_sources_shape_and_dtype():
    x, b = df.constant(np.ones((4, 3), np.float64)), df.constant(np.ones((1, 3), np.float64))
    s = df.constant(2.0, df.float64)
    with df.GradientTape() as tape:
        tape.watch([x, b, s])
        y = df.cast((x + b) * s, df.float32)
    for source, result in zip((x, b, s), tape.gradient(y, [x, b, s]), strict=True):
        assert result.spec == source.spec


# Higher orders


def test_gradients_of_gradients():
    x = df.constant(2.0)
    with df.GradientTape() as third:
        third.watch(x)
        with df.GradientTape() as second:
            second.watch(x)
            with df.GradientTape() as first:
                first.watch(x)
                y = x**4
            d1 = first.gradient(y, x)
        d2 = second.gradient(d1, x)
    assert third.gradient(d2, x).numpy() == 48.0


def test_the_variable_of_an_outer_tape_in_an_inner_one():
    v = df.Variable(3.0)
    with df.GradientTape() as outer:
        with df.GradientTape() as inner:
            y = v * v * v
        dy = inner.gradient(y, v)
    assert outer.gradient(dy, v).numpy() == 18.0


def test_jacobian():
    x, w = df.constant([1.0, 2.0]), df.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with df.GradientTape() as tape:
        tape.watch(x)
        y = df.linalg.matvec(w, x)
    dx, dw, none = tape.jacobian(y, [x, w, df.constant(1.0)])
    np.testing.assert_array_equal(dx.numpy(), w.numpy())
    assert dw.shape == (3, 3, 2)
    assert dw.numpy()[1].tolist() == [[0, 0], [1, 2], [0, 0]]
    assert none is None


def test_jacobian_of_what_is_unconnected():
    x = df.constant([1.0, 2.0])
    with df.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    jacobian = tape.jacobian(y, df.constant([[1.0]]), unconnected_gradients="zero")
    assert jacobian.shape == (2, 1, 1)
    assert not jacobian.numpy().any()


@pytest.mark.parametrize("connected", [True, False])
def test_jacobian_with_zeros_of_a_source_of_dynamic_size(connected):
    @df.function(input_signature=[df.TensorSpec([None], df.float32)])
    def jacobian(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.stack([df.reduce_sum(x), df.reduce_sum(2.0 * x)]) if connected else df.constant([1.0, 2.0])
        return tape.jacobian(y, x, unconnected_gradients="zero")

    for size in (3, 0):
        expected = np.repeat([[1.0], [2.0]], size, axis=1) * connected
        np.testing.assert_array_equal(jacobian(df.zeros([size])), expected)


@pytest.mark.parametrize("derivative", [df.GradientTape.gradient, df.GradientTape.jacobian])
def test_a_tape_is_not_used_up_by_an_error_in_the_arguments(derivative):
    x = df.Variable([1.0, 2.0])
    with df.GradientTape() as tape:
        y = x * x
    with pytest.raises(TypeError):
        derivative(tape, "y", x)
    assert tape.gradient(y, x).numpy().tolist() == [2.0, 4.0]


def test_batch_jacobian():
    x = df.constant([[1.0, 2.0], [3.0, 4.0]])
    with df.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = df.stack([x[:, 0] * x[:, 1], x[:, 0] ** 2, x[:, 1]], axis=1)
    jacobian = tape.batch_jacobian(y, x).numpy()
    assert jacobian.tolist() == [[[2, 1], [2, 0], [0, 1]], [[4, 3], [6, 0], [0, 1]]]
    with pytest.raises(ValueError, match="first dimension"):
        tape.batch_jacobian(y, df.constant([1.0]))


# Its cost


def test_a_step_leaves_nothing():
    w, x = df.Variable(np.ones((8, 8), np.float32)), df.constant(np.ones((4, 8), np.float32))

    def step():
        with df.GradientTape() as tape:
            y = df.reduce_sum(df.tanh(df.matmul(x, w)) * 0.5)
        w.assign_sub(1e-6 * tape.gradient(y, w))

    for _ in range(200):
        step()
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for _ in range(1000):
        step()
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 20_000  # the smallest object at each step would be more


def test_a_plain_tape_frees_what_it_recorded_without_the_collector():
    def take_gradient(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.reduce_sum(x * x * x)
        tape.gradient(y, x)

    x = df.constant(np.ones(1 << 16, np.float32))
    take_gradient(x)  # the kernels of these ops stay
    gc.disable()
    tracemalloc.start()
    try:
        take_gradient(x)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    assert held < x.numpy().nbytes // 2


def test_records_independent_of_watched_tensors_are_dropped():
    x, data = df.constant(1.0), df.constant(np.ones(1 << 16, np.float32))
    tracemalloc.start()
    try:
        with df.GradientTape() as tape:
            tape.watch(x)
            for _ in range(20):
                data = data * 1.5
            held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 3 * data.numpy().nbytes


def test_watched_variables_are_known_after_the_gradient_in_order_of_creation():
    a, c = (df.Variable(1.0, name=name) for name in "ac")
    with df.GradientTape() as tape:
        y = c * a
    assert [v.name for v in tape.watched_variables()] == ["a:0", "c:0"]
    tape.gradient(y, a)
    assert [v.name for v in tape.watched_variables()] == ["a:0", "c:0"]
    tape.reset()
    assert tape.watched_variables() == ()


@pytest.mark.parametrize("unconnected", ["none", "zero"])
def test_the_batch_jacobian_of_what_does_not_depend_on_the_source_is_zeros_of_the_target(mode, unconnected):
    def jacobian(x, other):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.cast(other, df.complex64)
        return tape.batch_jacobian(y, x, unconnected_gradients=unconnected)

    result = mode(jacobian)(df.ones([2, 3]), df.ones([2, 4])).numpy()
    np.testing.assert_array_equal(result, np.zeros((2, 4, 3), np.complex64), strict=True)
