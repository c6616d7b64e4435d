"""``df.profiler``: the structure and content of a trace, and that nothing remains after it ends."""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.core import spans
from dualflow.eager.engine import EAGER, EagerEngine
from dualflow.function.run_eagerly import CALL_MODE


def profiled(folder: Path, run: Callable[[], object]) -> list[dict[str, Any]]:
    """The events of a trace of ``run``."""
    with df.profiler.trace(folder) as file:
        run()
    events: list[dict[str, Any]] = json.loads(file.path.read_text())["traceEvents"]
    return events


def events_of(events: list[dict[str, Any]], kind: str | None = None) -> list[dict[str, Any]]:
    return [e for e in events if e["ph"] == "X" and kind in (None, e["cat"])]


def span_of(event: dict[str, Any]) -> tuple[int, int]:
    """Begin and end in nanoseconds."""
    begin = round(event["ts"] * 1000)
    return begin, begin + round(event["dur"] * 1000)


def inside(inner: dict[str, Any], outer: dict[str, Any]) -> bool:
    (a, b), (c, d) = span_of(inner), span_of(outer)
    return c <= a and b <= d and inner["tid"] == outer["tid"]


def line_of(function: Callable[..., Any], offset: int) -> str:
    code = function.__code__
    return f"{code.co_filename}:{code.co_firstlineno + offset}"


def work() -> Any:
    step = df.function(lambda x: df.reduce_sum(df.tanh(x) * 2.0))
    x = df.ones([100])
    return [float(step(x)) for _ in range(3)]


def test_events_have_what_the_format_requests_for(tmp_path: Path) -> None:
    events = profiled(tmp_path, work)
    assert {e["ph"] for e in events} == {"M", "X"}
    for event in events_of(events):
        assert event.keys() >= {"name", "cat", "ts", "dur", "pid", "tid", "args"}
        assert event["ts"] >= 0
        assert event["dur"] >= 0
    named = {e["tid"] for e in events if e["name"] == "thread_name"}
    assert named == {e["tid"] for e in events_of(events)}


def test_the_spans_of_a_thread_nest(tmp_path: Path) -> None:
    events = profiled(tmp_path, work)
    rows = defaultdict(list)
    for event in events_of(events):
        rows[event["tid"]].append(span_of(event))
    for row in rows.values():
        assert row == sorted(row, key=lambda s: (s[0], -s[1]))
        around: list[int] = []
        for begin, end in row:
            while around and around[-1] <= begin:
                around.pop()
            assert not around or end <= around[-1]
            around.append(end)


def test_ops_have_their_names_and_the_users_lines(tmp_path: Path) -> None:
    def run() -> None:
        x = df.constant([1.0, 2.0])
        y = x + x
        df.reduce_sum(y * 3.0)

    ops = events_of(profiled(tmp_path, run), "op")
    assert [e["name"] for e in ops] == ["add", "multiply", "reduce_sum"]
    assert [e["args"]["line"] for e in ops] == [line_of(run, 2), line_of(run, 3), line_of(run, 3)]
    assert ops[0]["args"]["function"].endswith("run")


def test_a_placement_log_and_a_profiler_do_not_end_each_other(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def run() -> None:
        x = df.constant([1.0, 2.0])
        df.debugging.set_log_device_placement(True)
        df.exp(x)
        df.debugging.set_log_device_placement(False)
        df.tanh(x)
        df.debugging.set_log_device_placement(True)

    try:
        ops = events_of(profiled(tmp_path, run), "op")
        df.sin(df.constant(1.0))
    finally:
        df.debugging.set_log_device_placement(False)
    assert [e["name"] for e in ops] == ["exp", "tanh"]
    assert [line.split()[2] for line in capfd.readouterr().err.splitlines()] == ["exp", "sin"]
    assert type(EAGER) is EagerEngine


def test_ops_under_a_tape_are_seen(tmp_path: Path) -> None:
    def run() -> None:
        x = df.constant(2.0)
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.tanh(x)
        tape.gradient(y, x)

    ops = events_of(profiled(tmp_path, run), "op")
    assert "tanh" in {e["name"] for e in ops}
    assert line_of(run, 5) in {e["args"]["line"] for e in ops}


def test_a_function_is_traced_and_compiled_once_and_called_each_time(tmp_path: Path) -> None:
    counts: list[Any] = []
    events = profiled(tmp_path, lambda: counts.extend(work()))
    np.testing.assert_allclose(counts, [200 * np.tanh(1)] * 3, rtol=1e-5)
    kinds = {kind: events_of(events, kind) for kind in ("call", "trace", "compile", "kernels", "native")}
    assert [len(kinds[k]) for k in ("call", "trace", "compile", "kernels")] == [3, 1, 1, 3]
    assert len(kinds["native"]) >= 3
    first = kinds["call"][0]
    assert first["args"]["line"] == line_of(work, 3)
    assert inside(kinds["trace"][0], first)
    assert inside(kinds["compile"][0], first)
    assert all(any(inside(k, c) for c in kinds["call"]) for k in kinds["kernels"])
    assert all(any(inside(n, k) for k in kinds["kernels"]) for n in kinds["native"])


def test_a_function_that_is_known_already_is_seen(tmp_path: Path) -> None:
    step = df.function(lambda x, y=0.0: x * 2.0 + y)
    x = df.ones([10])
    for _ in range(5):
        step(x), step(x, y=x)
    events = profiled(tmp_path, lambda: [step(x), step(x.numpy()), step(x, y=x)])
    assert (len(events_of(events, "call")), len(events_of(events, "kernels"))) == (3, 3)
    assert events_of(events, "trace") == []


def test_python_calls_are_listed_with_their_line(tmp_path: Path) -> None:
    def body(x: Any) -> Any:
        return df.numpy_function(lambda a: a + 1, [x], df.float32) * 2.0

    f = df.function(body)
    hosts = events_of(profiled(tmp_path, lambda: f(df.constant(1.0))), "host")
    assert len(hosts) == 1
    assert hosts[0]["args"]["line"] == line_of(body, 1)


def test_a_dataset_is_waited_for(tmp_path: Path) -> None:
    def run() -> None:
        for _ in df.data.Dataset.range(3):
            pass

    waits = events_of(profiled(tmp_path, run), "data")
    assert len(waits) == 4  # the end is waited for too
    assert waits[0]["args"]["line"] == line_of(run, 1)


def test_each_thread_has_a_row(tmp_path: Path) -> None:
    def run() -> None:
        x = df.constant(1.0)
        threads = [threading.Thread(target=lambda: x + x, name=f"worker {i}") for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    events = profiled(tmp_path, run)
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert {names[e["tid"]] for e in events_of(events, "op")} == {"worker 0", "worker 1", "worker 2"}


def test_steps_are_marked(tmp_path: Path) -> None:
    def run() -> None:
        for i in range(2):
            with df.profiler.experimental.Trace("train", step_num=i) as step:
                x = df.constant(1.0) + 1.0
                step.set_metadata(loss=x)

    events = profiled(tmp_path, run)
    steps = events_of(events, "step")
    assert [(e["name"], e["args"]["step_num"]) for e in steps] == [("train", 0), ("train", 1)]
    assert steps[0]["args"]["loss"] == str(df.constant(2.0))
    assert [inside(op, step) for op, step in zip(events_of(events, "op"), steps, strict=True)] == [True, True]


def test_the_times_are_those_that_passed(tmp_path: Path) -> None:
    def run() -> None:
        with df.profiler.experimental.Trace("wait"):
            begin = time.perf_counter()
            while time.perf_counter() - begin < 0.02:
                pass

    (step,) = events_of(profiled(tmp_path, run), "step")
    assert step["dur"] >= 20_000


def test_a_failing_call_is_recorded_and_the_trace_written(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), df.profiler.trace(tmp_path) as file:  # noqa: PT012
        with pytest.raises(ValueError, match="matmul"):
            df.matmul(df.ones([2, 3]), df.ones([2, 3]))
        _ = 1 / 0
    names = [e["name"] for e in json.loads(file.path.read_text())["traceEvents"]]
    assert "matmul" in names
    assert [p.name for p in tmp_path.iterdir()] == [file.path.name]


def test_nothing_is_left_when_it_ends(tmp_path: Path) -> None:
    profiled(tmp_path, work)
    assert type(EAGER) is EagerEngine
    assert spans.WATCHED.value is None
    assert not CALL_MODE.is_slow
    assert spans.span("data", "a") is spans.span("op", "b")


def test_results_are_the_same_with_a_profiler(tmp_path: Path) -> None:
    def train() -> Any:
        w = df.Variable([1.0, 2.0, 3.0])

        @df.function
        def step(x: Any) -> Any:
            with df.GradientTape() as tape:
                loss = df.reduce_sum(df.sin(w * x) ** 2)
            w.assign_sub(0.1 * tape.gradient(loss, w))
            return loss

        losses = [float(step(df.constant([1.0, 2.0, 3.0]))) for _ in range(4)]
        with df.GradientTape() as tape:
            loss = step(df.constant([1.0, 1.0, 1.0]))
        return losses, tape.gradient(loss, w).numpy().tolist(), w.numpy().tolist()

    alone, profiled_runs = train(), []
    profiled(tmp_path, lambda: profiled_runs.append(train()))
    assert profiled_runs == [alone]


def test_functions_still_run_as_python_when_reported(tmp_path: Path) -> None:
    df.config.run_functions_eagerly(True)
    try:
        events = profiled(tmp_path, work)
        assert events_of(events, "call") == []
        assert "tanh" in {e["name"] for e in events_of(events, "op")}
        assert df.config.functions_run_eagerly()
    finally:
        df.config.run_functions_eagerly(False)


def test_tensorflows_names(tmp_path: Path) -> None:
    profiler = df.profiler.experimental
    profiler.start(str(tmp_path / "a"), options=profiler.ProfilerOptions(host_tracer_level=3))
    df.constant(1.0) + 1.0
    profiler.stop()
    with profiler.Profile(tmp_path / "b"):
        df.constant(1.0) + 1.0
    profiler.start(tmp_path / "c")
    profiler.stop(save=False)
    assert [len(list((tmp_path / name).iterdir())) for name in "abc"] == [1, 1, 0]


def test_one_profiler_runs_at_a_time(tmp_path: Path) -> None:
    again = pytest.raises(RuntimeError, match=r"Another profiler is running, for .*: stop it first")
    with df.profiler.trace(tmp_path), again:
        df.profiler.experimental.start(tmp_path)
    with pytest.raises(RuntimeError, match="No profiler is running"):
        df.profiler.experimental.stop()


@pytest.mark.parametrize(
    ("logdir", "message"),
    [(None, "logdir is the path of a folder, not None"), (__file__, "A profile can't be written to")],
)
def test_a_folder_is_needed(logdir: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message), df.profiler.trace(logdir):
        pass
    assert not CALL_MODE.is_slow


def test_a_trace_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    with pytest.raises(RuntimeError, match="The profile can't be written to"), df.profiler.trace(folder):
        folder.rmdir()
    assert list(tmp_path.iterdir()) == []
    assert not CALL_MODE.is_slow


def test_a_trace_of_many_events_counts_the_dropped_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dualflow.profiler.recorder.MAX_EVENTS", 3)
    with df.profiler.trace(tmp_path) as file:
        for _ in range(5):
            df.constant(1.0) + 1.0
    trace = json.loads(file.path.read_text())
    assert len(events_of(trace["traceEvents"])) == 3
    assert trace["otherData"]["dropped_events"] == 2


def test_methods_are_functions_too(tmp_path: Path) -> None:
    class Model:
        @df.function
        def step(self, x: Any) -> Any:
            return x * 2.0

    model, x = Model(), df.ones([3])
    for _ in range(4):
        model.step(x)
    events = profiled(tmp_path, lambda: [model.step(x), model.step(x)])
    assert (len(events_of(events, "call")), len(events_of(events, "kernels"))) == (2, 2)
