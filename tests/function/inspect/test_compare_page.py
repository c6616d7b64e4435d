"""The page of a comparison: what it contains, and what Chromium shows of it."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.core.records import replace
from dualflow.function.inspect import compare_page, measure, timeline
from dualflow.function.inspect.compare_report import Comparison
from dualflow.function.inspect.measurements import DeviceMeasurements
from dualflow.graph.compiled import TimedKind
from tests.harness.chromium import Page, chromium


@pytest.fixture(autouse=True)
def short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "SECONDS", 0.01)
    monkeypatch.setattr(measure, "ROUND_SECONDS", 0.0005)
    monkeypatch.setattr(timeline, "SECONDS", 0.01)


def loss(x: Any, w: Any) -> Any:
    hidden = df.tanh(x @ w)
    return df.reduce_sum(hidden * hidden)


def comparison_of(function: Any, *args: Any, **options: Any) -> Comparison:
    return df.compare(df.function(function, **options), *args)


@pytest.fixture(scope="module")
def report() -> Comparison:
    return comparison_of(loss, df.ones([16, 8]), df.ones([8, 4]))


def data_of(text: str) -> Any:
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text)[1])


# Timelines


def test_the_eager_steps_are_the_ops_in_their_order_with_the_users_lines(report: Comparison) -> None:
    steps = report.timelines.eager
    assert [step.name for step in steps] == ["matmul", "tanh", "multiply", "reduce_sum"]
    first = loss.__code__.co_firstlineno
    assert [step.origins[0].line - first for step in steps] == [1, 1, 2, 2]
    assert all(later.begin >= step.begin + step.seconds for step, later in pairwise(steps))


def test_the_compiled_steps_are_the_kernels_and_products_of_the_program(report: Comparison) -> None:
    kinds = [step.kind for step in report.timelines.graph]
    assert kinds.count(TimedKind.PRODUCT) == report.blas_calls
    assert kinds.count(TimedKind.KERNEL) == report.kernels
    assert {step.kernel for step in report.timelines.graph} >= {"k0"}


def test_each_kernel_has_its_name_in_the_listing_and_equal_ones_share_it() -> None:
    def layers(x: Any, w: Any) -> Any:
        for _ in range(3):
            x = df.tanh(x @ w) + 1.0
        return df.reduce_sum(x)

    report = comparison_of(layers, df.ones([4, 4]), df.ones([4, 4]), backend="llvm")
    names = [step.kernel for step in report.timelines.graph if step.kind == TimedKind.KERNEL]
    assert len(set(names)) < len(names)
    assert all(f"def {name}(" in report.listing for name in names)


def test_a_host_call_is_a_step_between_those_of_machine_code() -> None:
    def sorted_exp(x: Any) -> Any:
        return df.exp(df.sort(df.exp(x)))

    steps = comparison_of(sorted_exp, df.ones([100]), backend="llvm").timelines.graph
    assert [step.kind for step in steps] == ["kernel", "host", "kernel"]
    assert steps[1].name == "sort"


@pytest.mark.parametrize("backend", ["numpy", pytest.param("numba", marks=pytest.mark.exhaustive)])
def test_other_backends_have_timelines(backend: str) -> None:
    steps = comparison_of(lambda x: df.exp(x) + 1.0, df.ones([10]), backend=backend).timelines.graph
    assert [step.kind for step in steps] == [{"numpy": "host", "numba": "native"}[backend]]


def power(x: Any) -> Any:
    for _ in df.range(7):
        x = df.tanh(x @ x)
    return x


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_a_loop_has_its_trip_count_and_its_steps_the_sum_of_their_runs(backend: str) -> None:
    steps = comparison_of(power, df.ones([8, 8]), backend=backend).timelines.graph
    (loop,) = [step for step in steps if step.kind == TimedKind.CONTROL]
    inside = [step for step in steps if step.depth == 1]
    assert loop.iterations == 7
    assert loop.depth == 0
    assert {step.runs for step in inside if step.name in ("matmul", "tanh")} == {7}
    assert 0 < sum(step.seconds for step in inside) <= loop.seconds
    assert all(step.slowest <= step.seconds for step in inside)
    assert all(loop.begin <= step.begin <= loop.begin + loop.seconds for step in inside)


def test_a_loop_of_many_iterations_is_as_few_steps() -> None:
    def doubled(x: Any) -> Any:
        return df.while_loop(lambda y: df.reduce_sum(y) < 1e30, lambda y: (y * 1.3,), (x,))

    steps = comparison_of(doubled, df.ones([4]), backend="llvm").timelines.graph
    (loop,) = [step for step in steps if step.kind == TimedKind.CONTROL]
    assert loop.iterations > 200
    assert len(steps) < 10


def test_of_a_conditional_the_branch_that_ran_has_steps() -> None:
    def pick(x: Any) -> Any:
        return df.cond(df.reduce_sum(x) > 0.0, lambda: x @ x, lambda: df.sort(x))

    steps = comparison_of(pick, df.ones([8, 8]), backend="numpy").timelines.graph
    assert [step.name for step in steps if step.depth == 1] == ["matmul"]


def test_a_loop_inside_a_loop_is_two_levels_deep() -> None:
    def nested(x: Any) -> Any:
        for _ in df.range(3):
            for _ in df.range(5):
                x = df.tanh(x @ x)
        return x

    steps = comparison_of(nested, df.ones([8, 8]), backend="llvm").timelines.graph
    assert [(s.iterations, s.runs, s.depth) for s in steps if s.kind == TimedKind.CONTROL] == [
        (3, 1, 0),
        (15, 3, 1),
    ]
    assert {s.runs for s in steps if s.kind == TimedKind.PRODUCT} == {15}


def test_a_loop_over_sizes_that_depend_on_data_has_steps_too() -> None:
    def kept(x: Any) -> Any:
        y = df.boolean_mask(x, x > 0.0)
        for _ in df.range(4):
            y = df.tanh(y) * 2.0
        return df.sort(y)

    steps = comparison_of(kept, df.constant([1.0, -1.0, 2.0]), backend="llvm").timelines.graph
    (loop,) = [step for step in steps if step.kind == TimedKind.CONTROL]
    assert loop.iterations == 4
    assert "sort" in {step.name for step in steps if step.kind == TimedKind.HOST}


def test_timing_steps_one_by_one_changes_no_variable() -> None:
    total = df.Variable([1.0, 2.0])

    def step(x: Any) -> Any:
        total.assign_add(x)
        return df.reduce_sum(total)

    comparison_of(step, df.ones([2]))
    np.testing.assert_array_equal(total.numpy(), [1.0, 2.0])


def test_the_memory_of_a_call_grows_by_its_results_and_shrinks_by_what_is_freed() -> None:
    def chain(x: Any) -> Any:
        return df.reduce_sum(df.exp(df.exp(x)))

    memory = comparison_of(chain, df.ones([1 << 16])).timelines.eager_memory
    assert memory[1] >= 2 * (1 << 18) > memory[2]


def test_a_value_whose_size_depends_on_data_has_no_planned_memory() -> None:
    report = comparison_of(lambda x: df.boolean_mask(x, x > 0.0), df.constant([1.0, -1.0, 2.0]))
    assert report.timelines.graph_memory == ()
    assert data_of(report.page())["comparisons"][0]["memory"][1] == []


def test_a_loop_whose_sizes_grow_with_the_data_is_compared() -> None:
    def grown(x: Any) -> Any:
        y = df.boolean_mask(x, x > 0.0)
        while df.reduce_sum(y) < 50.0:
            y = df.concat([y, y * 1.5], 0)
        return y

    report = comparison_of(grown, df.ones([4]))
    assert report.difference.agrees
    assert report.pass_graphs[0].name == "trace"
    assert report.timelines.graph


# The file


def test_the_page_is_one_file_below_a_megabyte_that_loads_nothing(report: Comparison, tmp_path: Path) -> None:
    report.save(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert len(text.encode()) < 1_000_000
    assert not re.search(r'(src|href)="(?!data:,)|url\(|import |fetch\(', text.split('id="data"')[0])
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)


def test_an_error_of_the_file_system_names_the_page(report: Comparison, tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "report.html"
    with pytest.raises(FileNotFoundError) as caught:
        report.save(path)
    assert caught.value.filename == str(path)


def test_names_and_source_text_cannot_end_the_script() -> None:
    def wicked(x: Any) -> Any:
        return x + 1.0  # </script><script>throw 1</script>

    text = comparison_of(wicked, df.ones([2]), name="</script>").page()
    assert text.count("</script>") == 2
    assert data_of(text)["comparisons"][0]["name"] == "</script>"


def test_a_page_of_a_large_graph_leaves_out_pictures_that_do_not_fit(
    report: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare_page, "MAX_PICTURE_BYTES", 0)
    passes = data_of(report.page())["comparisons"][0]["passes"]
    assert [entry["picture"] for entry in passes] == [""] * len(passes)


@pytest.mark.parametrize("count", [1, 3])
def test_comparisons_share_the_size_of_the_page(
    report: Comparison, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, most in (("STEPS", 12), ("PICTURE_BYTES", 30_000), ("LISTING", 600), ("POINTS", 12)):
        monkeypatch.setattr(compare_page, f"MAX_{name}", most)
    timelines = replace(report.timelines, eager_memory=tuple(range(100)))
    many = replace(report, timelines=timelines, listing=report.listing * 3)
    entries = data_of(many.page(*[many] * (count - 1)))["comparisons"]
    assert sum(len(steps) for entry in entries for steps in (entry["eager"], entry["graph"])) <= 12
    assert 0 < sum(len(stage["picture"]) for entry in entries for stage in entry["passes"]) <= 30_000
    assert sum(len(entry["listing"].partition("\n... and ")[0]) for entry in entries) == 600
    points = [points for entry in entries for points in entry["memory"]]
    assert sum(map(len, points)) <= 12
    assert {max(eager) for eager in points[::2]} == {99}


def test_a_program_without_kernels_has_no_listing() -> None:
    report = comparison_of(lambda x: df.sort(x), df.ones([4]), backend="llvm")
    assert data_of(report.page())["comparisons"][0]["listing"] == ""


def test_the_passes_begin_with_the_trace_and_end_with_the_graph_that_runs(report: Comparison) -> None:
    graphs = report.pass_graphs
    assert graphs[0].name == "trace"
    assert graphs[-1].name == "fusion"
    assert len({str(entry.graph) for entry in graphs}) == len(graphs)


def test_kernels_of_the_graph_that_runs_have_the_names_of_the_listing(report: Comparison) -> None:
    (stage,) = [stage for stage in report.pass_graphs if stage.kernels]
    assert stage is report.pass_graphs[-1]
    names = {kernel.name for kernel in stage.kernels.values()}
    assert names == {f"kernel {s.kernel}" for s in report.timelines.graph if s.kernel}
    picture = data_of(report.page())["comparisons"][0]["passes"][-1]["picture"]
    assert all(f">{name}</text>" in picture for name in names)


def test_a_function_at_several_sizes_has_their_times_and_where_compiling_pays(report: Comparison) -> None:
    larger = comparison_of(loss, df.ones([32, 8]), df.ones([8, 4]))
    (sizes,) = data_of(larger.page(report))["sizes"]
    assert sizes["bytes"] == [4 * (16 * 8 + 8 * 4), 4 * (32 * 8 + 8 * 4)]
    assert sizes["seconds"]["compiled"] == [report.graph_seconds, larger.graph_seconds]
    assert "compiled" in sizes["pays"]
    assert data_of(report.page())["sizes"] == []


def test_functions_of_one_name_are_not_one_function_at_several_sizes() -> None:
    exponential = lambda x: df.exp(x)  # noqa: E731
    sine = lambda x: df.sin(x)  # noqa: E731
    first, other, larger = [
        comparison_of(f, df.ones([n])) for f, n in ((exponential, 8), (sine, 16), (exponential, 32))
    ]
    assert first.name == other.name
    assert data_of(first.page(other))["sizes"] == []
    (sizes,) = data_of(first.page(other, larger))["sizes"]
    assert (sizes["bytes"], sizes["comparisons"]) == ([32, 128], [0, 2])


def test_arguments_without_elements_are_no_size_of_the_chart(report: Comparison) -> None:
    empty, small, large = [
        replace(report, argument_bytes=n, graph_seconds=s, eager_seconds=2e-3)
        for n, s in ((0, 4e-3), (8, 3e-3), (800, 1e-3))
    ]
    assert data_of(small.page(empty))["sizes"] == []
    (sizes,) = data_of(empty.page(small, large))["sizes"]
    assert sizes["bytes"] == [8, 800]


# The browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with chromium(tmp_path_factory.mktemp("profile")) as page:
        yield page


def texts(page: Page, selector: str) -> list[str]:
    return page.value(f"[...document.querySelectorAll({json.dumps(selector)})].map((x) => x.textContent)")


def test_chromium_shows_the_page_without_errors(report: Comparison, browser: Page, tmp_path: Path) -> None:
    other = comparison_of(lambda x: df.exp(x) * 2.0, df.ones([32]), name="other")
    report.save(tmp_path / "report.html", other)
    for scheme, width in (("light", 360), ("dark", 1280), ("light", 3840)):
        browser.appearance(scheme=scheme, width=width)
        browser.open(tmp_path / "report.html")
        browser.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert browser.errors == []
        assert browser.value("document.documentElement.scrollWidth <= innerWidth"), width
        assert browser.value("document.querySelectorAll('.timeline .step').length") == len(
            report.timelines.eager
        ) + len(report.timelines.graph)

    assert "4 ops eager" in " ".join(texts(browser, ".figures small"))

    kernel = 'document.querySelector(".picture .box.kernel > rect.hue0")'
    assert browser.value(f"getComputedStyle({kernel}).fill") == "rgb(201, 236, 223)"

    browser.value("document.querySelector('.timeline').focus()")
    browser.key("ArrowRight")
    assert texts(browser, ".details")[0].startswith("eager op matmul: ")
    assert "test_compare_page.py" in texts(browser, ".details")[0]
    browser.key("Enter")
    marked = f"{loss.__code__.co_firstlineno + 1}    hidden = df.tanh(x @ w)"
    assert texts(browser, ".row-of-source.on") == [marked]
    browser.key("+")
    assert browser.value("Number(document.querySelector('.timeline .step').getAttribute('width'))") > 0

    assert texts(browser, "td button") == ["k0"]
    browser.value("document.querySelector('td button').click()")
    assert texts(browser, ".listing .on")[0].startswith("def k0(")

    slider = "document.querySelector('input[type=range]')"
    browser.value(f"{slider}.value = 0; {slider}.dispatchEvent(new Event('input'))")
    assert browser.value("document.querySelector('.picture .box.kernel') === null")
    browser.value(f"{slider}.value = {slider}.max; {slider}.dispatchEvent(new Event('input'))")
    assert browser.value("document.querySelector('.picture .box.kernel') !== null")

    browser.value("document.querySelectorAll('#choices button')[1].click()")
    assert texts(browser, ".signature") == ["other(x: float32[32])"]
    assert browser.errors == []


def test_on_paper_the_page_is_light_and_legends_have_colours(
    report: Comparison, browser: Page, tmp_path: Path
) -> None:
    report.save(tmp_path / "report.html")
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.command("Emulation.setEmulatedMedia", media="print", features=dark)
    browser.open(tmp_path / "report.html")
    assert browser.value("getComputedStyle(document.body).color") == "rgb(22, 25, 29)"
    swatch = "document.querySelector('.timeline + .legend i')"
    assert browser.value(f"getComputedStyle({swatch}).printColorAdjust") == "exact"
    browser.command("Emulation.setEmulatedMedia", media="", features=[])


def test_the_page_has_the_numbers_of_the_steps_that_it_leaves_out(
    report: Comparison, browser: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare_page, "MAX_STEPS", 9)  # of three timelines
    steps = report.timelines.graph * 3
    device = DeviceMeasurements("/GPU:0", "a device", 1e-3, 1e-3, 64, 0, report.difference, steps, "")
    replace(report, devices=(device,)).save(tmp_path / "report.html")
    browser.open(tmp_path / "report.html")
    omitted = max(0, len(report.timelines.graph) - 3) + len(steps) - 3
    assert f"leaves out 1 eager op and {omitted} steps at the end." in " ".join(texts(browser, ".wide .hint"))


def test_the_comparisons_of_a_function_at_several_sizes_have_the_chart(
    report: Comparison, browser: Page, tmp_path: Path
) -> None:
    other = comparison_of(lambda x: df.exp(x) * 2.0, df.ones([32]), name="other")
    larger = comparison_of(loss, df.ones([32, 8]), df.ones([8, 4]))
    report.save(tmp_path / "report.html", other, larger)
    browser.open(tmp_path / "report.html")
    charts = []
    for i in range(3):
        browser.value(f"document.querySelectorAll('#choices button')[{i}].click()")
        charts.append(len(texts(browser, ".card.sizes h2")))
    assert charts == [1, 0, 1]
    assert browser.errors == []
