"""``df.compare`` with a device: its measurements, the steps of a call, and its column on the page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from chromium import chromium

import dualflow as df
from dualflow.function.inspect import measure, timeline
from dualflow.function.inspect.compare_report import Comparison
from dualflow.graph.compiled import TimedKind


def repeated(x: Any) -> Any:
    for _ in df.range(5):
        x = df.tanh(x @ x)
    return df.sort(x)


@pytest.fixture(scope="module")
def report() -> Comparison:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measure, "SECONDS", 0.01)
        patch.setattr(timeline, "SECONDS", 0.01)
        return df.compare(df.function(repeated), df.ones([8, 8]), devices=["/GPU:0"])


def test_a_device_has_its_time_and_agrees_with_the_eager_results(report: Comparison) -> None:
    (device,) = report.devices
    assert device.device == "/GPU:0"
    assert device.difference.agrees
    assert device.seconds > 0
    assert device.compile_seconds > 0
    assert device.peak_bytes >= 8 * 8 * 4
    assert re.search(r"on /GPU:0 .* than on the CPU; \S+ B moved", str(report))


def test_the_steps_of_a_device_are_kernels_transfers_and_host_calls(report: Comparison) -> None:
    steps = report.devices[0].timeline
    (loop,) = [step for step in steps if step.kind == TimedKind.CONTROL]
    assert loop.iterations == 5
    assert {step.runs for step in steps if step.kind == TimedKind.PRODUCT} == {5}
    assert "sort" in {step.name for step in steps if step.kind == TimedKind.HOST}
    assert [step.name for step in steps if step.kind == TimedKind.TRANSFER] == [
        "to the device",
        "to the host",
    ]


def test_kernels_of_a_device_have_names_of_their_own_and_their_source(report: Comparison) -> None:
    (device,) = report.devices
    on_device = [step for step in device.timeline if step.kind in (TimedKind.KERNEL, TimedKind.PRODUCT)]
    names = {step.kernel for step in on_device}
    assert names == set(re.findall(r"^// (g\d+): ", device.listing, re.MULTILINE))
    assert names.isdisjoint(step.kernel for step in report.timelines.graph)
    line = repeated.__code__.co_firstlineno + 2
    assert re.search(rf"^// g\d+: matmul\+tanh \({Path(__file__).name}:{line}\)$", device.listing, re.M)
    assert not {step.kernel for step in device.timeline if step not in on_device} & names


def test_kernels_of_equal_text_have_one_name() -> None:
    def twice(x: Any) -> Any:
        return df.sort(df.exp(df.sort(df.exp(x))))

    (device,) = df.compare(twice, df.ones([4]), devices=["/GPU:0"]).devices
    assert [step.kernel for step in device.timeline if step.kind == TimedKind.KERNEL] == ["g0", "g0"]
    assert device.listing.count("__kernel ") == 1


def test_a_function_that_no_device_runs_has_no_kernels() -> None:
    (device,) = df.compare(df.strings.upper, df.constant(["a"]), devices=["/GPU:0"]).devices
    assert device.difference.agrees
    assert device.listing == ""


def test_the_bytes_moved_are_those_of_the_transfers(report: Comparison) -> None:
    assert report.devices[0].transferred == 2 * 8 * 8 * 4


def test_a_check_on_the_device_is_a_wait() -> None:

    def checked(x: Any, at: Any) -> Any:
        return df.gather(x, at) * 2.0

    report = df.compare(checked, df.ones([8]), df.constant([1, 2]), devices=["/GPU:0"])
    assert TimedKind.WAIT in {step.kind for step in report.devices[0].timeline}


def test_the_memory_of_sizes_that_depend_on_data_is_not_planned() -> None:

    def positive(x: Any) -> Any:
        return df.sort(df.boolean_mask(x, x > 0.0))

    (device,) = df.compare(positive, df.constant([1.0, -1.0, 2.0]), devices=["/GPU:0"]).devices
    assert device.difference.agrees
    assert device.peak_bytes is None


def test_the_figures_as_plain_data_have_the_device_without_its_steps(report: Comparison) -> None:
    (device,) = json.loads(json.dumps(report.as_dict()))["devices"]
    assert device["seconds"] == report.devices[0].seconds
    assert device["agrees"] is True
    assert "timeline" not in device


def test_the_page_has_a_lane_and_bars_for_the_device(report: Comparison) -> None:
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', report.page())[1]
    (device,) = json.loads(data)["comparisons"][0]["devices"]
    assert len(device["steps"]) == len(report.devices[0].timeline)
    assert device["agrees"] is True


def test_chromium_shows_the_lane_of_the_device_with_a_row_for_transfers(
    report: Comparison, tmp_path: Path
) -> None:
    report.save(tmp_path / "report.html")
    with chromium(tmp_path / "profile") as page:
        page.appearance(scheme="light", width=1280)
        page.open(tmp_path / "report.html")
        page.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert page.errors == []
        text = page.value("document.querySelector('main').textContent")
        assert "compiled, on /GPU:0" in text
        assert "the results agree with the eager ones." in text
        names = page.value("[...document.querySelectorAll('td button')].map((name) => name.textContent)")
        assert {name[0] for name in names} == {"k", "g"}
        page.value("[...document.querySelectorAll('td button')].at(-1).click()")
        marked = page.value("document.querySelector('.listing .on').textContent")
        assert marked.startswith(f"// {names[-1]}: ")
        rectangles = page.value(
            "[...document.querySelectorAll('.timeline .step')]"
            ".map((step) => [step.getAttribute('fill'), step.getAttribute('y')])"
        )
    transfers = {y for fill, y in rectangles if fill == "var(--transfer)"}
    assert len(transfers) == 1
    assert transfers.isdisjoint(y for fill, y in rectangles if fill != "var(--transfer)")


def test_a_profile_has_a_span_for_each_transfer(tmp_path: Path) -> None:
    f = df.function(lambda x: df.sort(df.exp(x)) * 2.0, backend="opencl")
    x = df.zeros([5, 3])
    f(x)
    with df.profiler.trace(tmp_path) as file:
        f(x).numpy()
        x.gpu().numpy()
    events = json.loads(file.path.read_text(encoding="utf-8"))["traceEvents"]
    transfers = [event for event in events if event.get("cat") == "transfer"]
    to_device, to_host = "60 bytes to the device", "60 bytes to the host"
    assert [e["name"] for e in transfers] == [to_device, to_host, to_device, to_host, to_device, to_host]
    assert all(event["dur"] > 0 for event in transfers)


def test_the_copy_of_an_addend_that_no_kernel_executes_is_no_work_of_kernels() -> None:
    def centred(x: Any) -> Any:
        for _ in range(12):
            x = x - df.reduce_mean(x, 1, keepdims=True) + 0.1
        return x

    def share(f: Any, *arguments: Any) -> str:
        compiled = df.function(f, backend="opencl", autograph=False)
        compiled(*arguments)
        return re.search(r"its kernels execute (\S+) times the work", compiled.explain())[1]  # type: ignore[index]

    x, a = df.ones([64, 8]), df.ones([64, 64])
    assert share(lambda x, a: (centred(x), a @ a + a), x, a) == share(centred, x)
