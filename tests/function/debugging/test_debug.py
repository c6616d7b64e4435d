"""``f.debug``: runs a traced function op by op, with a callback for each step or under pdb."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from forked_programs import run_forked

import dualflow as df
from dualflow.debugging import Step

SCRIPT = """\
import dualflow as df

total = df.Variable(0.0)


@df.function
def grow(x):
    rate = df.reduce_max(x) * 2.0
    while rate < 10.0:
        rate = rate * 3.0
    total.assign_add(rate)
    return rate


def main():
    print("answer", grow.debug(df.constant([0.5, 1.0])).numpy(), total.numpy())


main()
"""


def steps_of(f: object, *args: object) -> list[Step]:
    steps: list[Step] = []
    f.debug(*args, step=steps.append)
    return steps


def pdb(tmp_path: Path, *commands: str, script: str = SCRIPT) -> tuple[int, str, str]:
    """Runs the script with these lines as its standard input; returns exit status, output and errors."""
    path = tmp_path / "train.py"
    path.write_text(script)
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(df.__file__))}
    done = run_forked([str(path)], input="\n".join(commands) + "\n", env=environment, timeout=120)
    return done.returncode, done.stdout, done.stderr


def test_it_returns_and_assigns_what_a_call_does() -> None:
    v = df.Variable(1.0)

    @df.function
    def f(x):
        v.assign_add(df.reduce_sum(x))
        return {"twice": x * 2.0, "v": v + 0.0}

    x = df.constant([1.0, 2.0])
    answered = f.debug(x, step=lambda step: None)
    assert v.numpy() == 4.0
    called = f(x)
    np.testing.assert_array_equal(answered["twice"], called["twice"])
    assert answered["v"].numpy() == 4.0
    assert v.numpy() == 7.0


def test_each_op_is_reported_with_its_line_and_values() -> None:
    @df.function
    def f(x):
        y = df.exp(x)
        return df.reduce_sum(y)

    first, second = steps_of(f, df.constant([0.0, 0.0]))
    line = inspect.getsourcelines(f.python_function)[1]
    assert (first.op, first.origin.line, first.origin.file) == ("exp", line + 2, __file__)
    assert (second.op, second.origin.line) == ("reduce_sum", line + 3)
    np.testing.assert_array_equal(first.outputs[0], second.inputs[0])
    assert second.outputs[0].numpy() == 2.0
    assert second.attrs["axis"] == (0,)


def test_the_ops_are_those_of_the_trace_before_any_pass() -> None:
    f = df.function(lambda x: (x + 1.0) - (x + 1.0))
    assert [step.op for step in steps_of(f, df.ones([2]))] == ["add", "add", "subtract"]


def test_bodies_are_entered_iteration_by_iteration() -> None:
    @df.function
    def f(x):
        while x < 4.0:
            if x > 1.0:
                x *= 2.0
            else:
                x += 1.0
        return x

    steps = steps_of(f, df.constant(0.5))
    deep = [(s.op, float(s.outputs[0])) for s in steps if s.depth == 2]
    assert deep == [("add", 1.5), ("multiply", 3.0), ("multiply", 6.0)]
    assert [s.op for s in steps if s.depth == 0][-1] == "loop"
    assert steps[-1].op == "loop"


@pytest.mark.parametrize("above", range(12, 20))
def test_lines_inside_of_loops_are_right_wherever_the_function_is_defined(tmp_path: Path, above: int) -> None:
    """The lines of the code that a loop is converted to are not the user's; each place in a new process."""
    source = """\
        @df.function
        def f(x):
            root = df.ones_like(x)
            while df.reduce_max(df.abs(root * root - x)) > 1e-4:
                root = 0.5 * (root + x / root)
            return root

        f.debug(df.ones([2]) * 4.0, step=lambda step: print(step.op, step.origin.line))
    """
    script = tmp_path / "below.py"
    script.write_text("import dualflow as df\n" + "\n" * above + textwrap.dedent(source))
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(df.__file__))}
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, env=environment, check=True
    )
    lines = dict(line.split() for line in done.stdout.splitlines())
    assert int(lines["divide"]) - above == 6
    assert int(lines["reduce_max"]) - above == int(lines["loop"]) - above == 5


def test_the_python_function_does_not_run_again() -> None:
    runs = []

    @df.function
    def f(x):
        runs.append(1)
        return x + 1.0

    f(df.constant(1.0))
    steps_of(f, df.constant(2.0))
    assert runs == [1]


def test_gradients_inside_are_steps_too() -> None:
    @df.function
    def f(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.exp(x)
        return tape.gradient(y, x)

    assert "multiply" in [step.op for step in steps_of(f, df.constant([1.0]))]


def test_ops_of_the_callback_are_no_steps() -> None:
    @df.function
    def count(n):
        while n > 0:
            n = n - 1
        return n

    ops: list[str] = []

    def step(current: Step) -> None:
        ops.append(current.op)
        count(df.constant(3))

    df.function(lambda x: x + 1.0).debug(df.constant(1.0), step=step)
    assert ops == ["add"]


def test_an_error_in_the_callback_ends_the_call_before_variables_change() -> None:
    v = df.Variable(1.0)

    def stop(step: Step) -> None:
        raise KeyError(step.op)

    with pytest.raises(KeyError, match="add"):
        df.function(lambda: v.assign_add(1.0)).debug(step=stop)
    assert v.numpy() == 1.0


def test_dynamic_sizes_are_those_of_the_arguments() -> None:
    f = df.function(lambda x: df.reduce_sum(x), input_signature=[df.TensorSpec([None])])
    (step,) = steps_of(f, df.ones([5]))
    assert step.inputs[0].shape == [5]


def test_methods_can_be_debugged() -> None:
    class Scale(df.Module):
        def __init__(self) -> None:
            self.by = df.Variable(3.0)

        @df.function
        def __call__(self, x):
            return x * self.by

    scale = Scale()
    assert scale.__call__.debug(df.constant(2.0), step=lambda step: None).numpy() == 6.0


def test_random_numbers_go_on_as_by_a_call() -> None:
    generator = df.random.Generator.from_seed(1)
    f = df.function(lambda: generator.normal([2]))
    first = f.debug(step=lambda step: None)
    second = f()
    again = df.random.Generator.from_seed(1)
    np.testing.assert_array_equal(first, again.normal([2]))
    np.testing.assert_array_equal(second, again.normal([2]))


def test_a_step_that_is_no_function_is_refused() -> None:
    with pytest.raises(df.errors.DTypeError, match="takes a function, not 3"):
        df.function(lambda x: x).debug(df.constant(1.0), step=3)


def test_a_tape_is_made_to_stay_outside() -> None:
    f = df.function(lambda x: x + 1.0)
    with df.GradientTape(), pytest.raises(df.errors.FailedPreconditionError, match="outside"):
        f.debug(df.constant(1.0), step=print)


def test_a_step_is_readable() -> None:
    (step,) = steps_of(df.function(lambda x: df.reduce_sum(x, 0)), df.ones([3]))
    assert str(step) == "reduce_sum(float32[3]) -> float32[] = 3."


def test_pdb_stops_on_the_users_line_and_shows_the_source(tmp_path: Path) -> None:
    status, out, err = pdb(tmp_path, "list", "p op", "p outputs[0].numpy()", "continue")
    assert (status, err) == (0, "")
    assert "train.py(8)grow()" in out
    assert "-> rate = df.reduce_max(x) * 2.0" in out
    assert "  8  ->\t    rate = df.reduce_max(x) * 2.0" in out
    assert "'reduce_max'" in out
    assert out.endswith("answer 18.0 18.0\n")


def test_pdb_steps_from_op_to_op_and_into_loops(tmp_path: Path) -> None:
    status, out, err = pdb(tmp_path, *["step"] * 5, "p inputs[0].numpy()", "continue")
    assert (status, err) == (0, "")
    places = [line.split("(")[1].split(")")[0] for line in out.splitlines() if "train.py(" in line]
    assert places == ["8", "8", "9", "9", "10", "9"]
    assert "6.0" in out


def test_next_goes_over_a_loop_and_return_out_of_it(tmp_path: Path) -> None:
    status, out, err = pdb(tmp_path, *["step"] * 4, "return", "p op, outputs[-1].numpy()", "next", "continue")
    assert (status, err) == (0, "")
    assert "('loop'," in out
    _, _, after = out.partition("('loop',")
    assert "train.py(11)grow()" in after


def test_up_goes_to_the_loop_and_to_the_caller(tmp_path: Path) -> None:
    _, out, err = pdb(tmp_path, *["step"] * 4, "up", "up", "where", "continue")
    assert err == ""
    (where,) = [part for part in out.split("(Pdb) ") if "<module>" in part]
    places = [line.split("train.py(")[1] for line in where.splitlines() if "train.py(" in line]
    assert places == ["19)<module>()", "16)main()", "9)grow()", "10)grow()"]


def test_breakpoints_hold_where_they_are_set(tmp_path: Path) -> None:
    _, out, err = pdb(tmp_path, "break 10, outputs[0] > 10.0", "continue", "p outputs[0].numpy()", "clear 1")
    assert "18.0" in out
    assert "DebuggingEnded" in err, "the end of the input ends the session"


def test_quitting_ends_the_call_and_assigns_nothing(tmp_path: Path) -> None:
    status, out, err = pdb(tmp_path, "quit")
    assert status == 1
    assert "DebuggingEnded: The debugger was left" in err
    assert "answer" not in out


def test_errors_that_end_the_call_are_shown_by_pdb(tmp_path: Path) -> None:
    script = SCRIPT.replace(
        "\nmain()\n", "\ntry:\n    main()\nexcept bdb.BdbQuit:\n    print(total.numpy())\n"
    )
    status, out, err = pdb(tmp_path, "next", "quit", script="import bdb\n" + script)
    assert (status, err) == (0, "")
    assert out.endswith("0.0\n")


def test_pdb_stops_at_an_op_that_fails(tmp_path: Path) -> None:
    script = """\
import dualflow as df

f = df.function(lambda x, i: df.gather(x, i))
f.debug(df.ones([3]), df.constant([7]))
"""
    status, out, err = pdb(tmp_path, "p inputs[1].numpy()", "continue", script=script)
    assert status == 1
    assert "gather failed: index 7 is out of range" in out
    assert "[7]" in out
    assert "OutOfRangeError" in err
    assert "dualflow/function" not in err


def test_other_tracers_keep_tracing(tmp_path: Path) -> None:
    events = []

    def tracer(frame, event, arg):
        events.append(event)
        return tracer

    f = df.function(lambda x: x + 1.0)
    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        f.debug(df.constant(1.0), step=lambda step: None)
        assert sys.gettrace() is tracer
    finally:
        sys.settrace(before)
    assert events


# The user's names at the prompt


NAMES = """\
import dualflow as df

x = "the module's x"
h = "the module's h"
late = "the module's late"


@df.function
def f(x, n, pair):
    h = df.tanh(x)
    factor = 3
    s = df.zeros([])
    for i in df.range(n):
        if s > 1.0:
            s = s + h[0] * factor
        else:
            s = s + 1.0
    late = s * 2.0
    return late + pair["a"]


f.debug(df.constant([1.0, 2.0]), df.constant(3), {"a": df.constant(7.0)})
"""


def printed(tmp_path: Path, script: str, *commands: str) -> list[str]:
    """What the prompt prints for each ``p``."""
    code, out, err = pdb(tmp_path, *commands, "c", script=script)
    assert (code, err) == (0, "")
    lines = out.replace("(Pdb) ", "\n(Pdb) ").splitlines()
    starts = ("<tf.Tensor", "<", "{", "'", '"')
    return [x for line in lines if (x := line.removeprefix("(Pdb) ")).startswith(starts) or x.isdigit()]


def test_names_are_the_users_arguments_and_locals(tmp_path: Path) -> None:
    lines = printed(
        tmp_path, NAMES, "p x.numpy().tolist()[0] == 1.0 and 'argument'", "p pair", "n", "p factor"
    )
    assert lines[0] == "'argument'"
    assert lines[1] == "{'a': <tf.Tensor: shape=(), dtype=float32, numpy=7.0>}"
    assert lines[2] == "3"


def test_a_local_name_without_a_value_is_no_global(tmp_path: Path) -> None:
    lines = printed(tmp_path, NAMES, "p h", "p late")
    assert lines == ["<h is not assigned here>", "<late is not assigned here>"]


def test_names_in_branches_and_loops_follow_the_iterations(tmp_path: Path) -> None:
    show = "p (int(i), float(s), 'iteration') and str((int(i), round(float(s), 4)))"
    commands = ["b 17", "b 15", "c", show, "c", show, "c", show, "p late", "cl 1", "cl 2"]
    lines = printed(tmp_path, NAMES, *commands)
    assert lines[:3] == ["'(0, 0.0)'", "'(1, 1.0)'", "'(2, 2.0)'"]
    assert lines[3] == "<late is not assigned here>"


def test_after_a_loop_names_have_what_it_left(tmp_path: Path) -> None:
    lines = printed(tmp_path, NAMES, "b 18", "c", "p str(round(float(s), 4))", "c")
    assert lines == ["'4.2848'"]


def test_a_function_that_does_not_do_the_same_twice_has_no_names(tmp_path: Path) -> None:
    script = """\
        import dualflow as df

        y = "the module's y"
        seen = []


        @df.function
        def f(x):
            seen.append(x)
            y = x * 2.0
            for _ in seen:
                y = y + 1.0
            return y


        f.debug(df.constant(1.0))
    """
    lines = printed(tmp_path, textwrap.dedent(script), "p x", "p y")
    assert lines == ["<the trace keeps no value of x>", "<the trace keeps no value of y>"]


def test_names_of_methods_and_of_callees(tmp_path: Path) -> None:
    script = """\
        import dualflow as df

        y = "the module's y"


        def scaled(y, factor):
            return y * factor


        class Model:
            rate = 4

            @df.function
            def call(self, x):
                inputs = x + 1.0
                return scaled(inputs, 2.0)


        model = Model()
        model.call.debug(df.constant(1.0))
    """
    lines = printed(
        tmp_path, textwrap.dedent(script), "p self.rate", "s", "p y", "p __step__.op", "u", "p inputs"
    )
    assert lines[0] == "4"
    assert lines[1] == "<tf.Tensor: shape=(), dtype=float32, numpy=2.0>"
    assert lines[2] == "'multiply'"


def test_names_do_not_keep_the_users_objects_alive(tmp_path: Path) -> None:
    script = """\
        import weakref
        import dualflow as df


        class Box:
            pass


        @df.function
        def f(x):
            box = Box()
            boxes.append(weakref.ref(box))
            y = x * 2.0
            return y + 1.0


        boxes = []
        f.debug(df.constant(1.0))
        print({"alive": [ref() for ref in boxes]})
    """
    lines = printed(tmp_path, textwrap.dedent(script), "p box")
    assert lines == ["<box exists no more>", "{'alive': [None, None]}"]
