"""``graph.draw``: what a picture of a graph shows, and how it is written."""

from __future__ import annotations

import os
import re
import struct
from pathlib import Path

import pytest
from forked_programs import run_forked
from required_tools import require_module

import dualflow as df
from dualflow.core.spec import TensorSpec
from dualflow.graph.draw import drawing
from dualflow.graph.draw.diagram import Box, Diagram, diagram
from dualflow.graph.draw.styles import DARK, KERNEL_STYLES, LIGHT, STYLES, Style
from dualflow.graph.ir import Graph
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.pipeline import optimise


def boxes_of(graph: Graph) -> dict[str, Box]:
    return {box.title: box for box in diagram(graph).boxes}


def words_of(path: Path) -> list[str]:
    """The texts of an svg."""
    return re.findall(r"<text [^>]*>([^<]+)</text>", path.read_text(encoding="utf-8"))


def test_a_diagram_has_inputs_ops_lines_and_specs(traced) -> None:
    graph = traced(lambda x, w: df.matmul(x, w), TensorSpec([2, 3], name="x"), TensorSpec([3, 1], name="w"))
    boxes = boxes_of(graph)
    assert list(boxes) == ["%x", "%w", "matmul", "return"]
    assert boxes["%x"].labels == ("float32[2, 3]",)
    assert boxes["matmul"].labels == ("%0: float32[2, 1]",)
    assert re.fullmatch(r"test_drawing\.py:\d+", boxes["matmul"].details[-1])


def test_constants_are_part_of_their_readers(traced) -> None:
    boxes = boxes_of(traced(lambda x: x * 2.5, [3]))
    assert "constant" not in boxes
    assert "(%in0, 2.5)" in boxes["multiply"].details


def test_variables_updates_and_effects_are_marked(traced) -> None:
    v = df.Variable([1.0], name="weight")

    def step(x):
        df.print(x)
        v.assign_add(x)

    boxes = boxes_of(traced(step, [1]))
    assert boxes["%weight"].kind == "variable"
    assert boxes["%weight <-"].kind == "update"
    assert boxes["print"].kind == "effect"
    assert "effect: writes output" in boxes["print"].details


def test_a_kernel_holds_its_ops_whose_inputs_have_the_outer_names(traced) -> None:
    graph = optimise(
        traced(lambda x: df.reduce_sum(df.exp(x) * 2.0), TensorSpec([100], name="x")), CompileOptions()
    )
    ((_, inside),) = boxes_of(graph)["kernel 1"].panels
    assert [box.title for box in inside.boxes] == ["%x", "exp", "multiply", "reduce_sum", "return"]


def test_branches_and_loops_hold_theirs(traced) -> None:
    def pick(x):
        return df.cond(x > 0.0, lambda: x * 2.0, lambda: df.exp(x))

    cond = boxes_of(traced(pick, TensorSpec([], name="x")))["cond"]
    assert [name for name, _ in cond.panels] == ["then", "else"]
    assert [[b.title for b in inside.boxes] for _, inside in cond.panels] == [
        ["%x", "multiply", "return"],
        ["%x", "exp", "return"],
    ]


def test_a_loops_inputs_report_what_they_are_at_first(traced) -> None:
    def count(x):
        return df.while_loop(lambda i: i < 10.0, lambda i: (i + x,), (df.constant(0.5),))

    loop = boxes_of(traced(count, TensorSpec([], name="x")))["loop"]
    titles = {box.title for _, inside in loop.panels for box in inside.boxes}
    assert any(title.endswith(" from 0.5") for title in titles)


def test_an_svg_has_the_texts_as_texts(traced, tmp_path: Path) -> None:
    graph = traced(lambda x: df.nn.softmax(x), TensorSpec([4, 100], name="x"))
    graph.draw(tmp_path / "softmax.svg")
    words = words_of(tmp_path / "softmax.svg")
    for node in graph.nodes:
        assert node.op.name in words
    assert "%0: float32[4, 1]" in words


def test_the_same_graph_is_the_same_file(traced, tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        traced(lambda x: df.exp(x) + 1.0, [3]).draw(tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_a_png_is_a_picture_of_the_layouts_proportions(traced, tmp_path: Path) -> None:
    traced(lambda x: df.exp(df.exp(df.exp(x))), [3]).draw(str(tmp_path / "chain.png"))
    data = (tmp_path / "chain.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", data[16:24])
    assert 100 < width < height


def test_a_users_graph_can_be_drawn_as_traced_and_as_it_runs(tmp_path: Path) -> None:
    concrete = df.function(lambda x: df.exp(x) * 2.0).get_concrete_function(df.TensorSpec([8]))
    concrete.graph.draw(tmp_path / "traced.svg")
    concrete.optimised_graph.draw(tmp_path / "runs.svg")
    assert "kernel 1" not in words_of(tmp_path / "traced.svg")
    assert "kernel 1" in words_of(tmp_path / "runs.svg")


def test_a_graph_of_no_nodes_and_one_without_anything_are_drawn(traced, tmp_path: Path) -> None:
    traced(lambda x: x, TensorSpec([3], name="x")).draw(tmp_path / "same.svg")
    assert sorted(words_of(tmp_path / "same.svg")) == ["%x", "float32[3]", "graph &lt;lambda&gt;", "return"]
    traced(lambda: ()).draw(tmp_path / "nothing.svg")
    assert words_of(tmp_path / "nothing.svg") == ["graph &lt;lambda&gt;"]


def test_long_names_are_shortened(traced) -> None:
    v = df.Variable(1.0, name="layer/" * 40)

    def step(x):
        v.assign(x)
        return v * 2.0 + x

    result = diagram(traced(step, TensorSpec([], name="x" * 300))).boxes
    words = [word for box in result for word in (box.title, *box.details, *box.labels, *box.names)]
    assert max(map(len, words)) < 60
    assert any(word.startswith("%xxx") and word.endswith("...") for word in words)


def test_dollars_and_angles_in_names_are_drawn_as_they_are(traced, tmp_path: Path) -> None:
    traced(lambda x: x + 1.0, TensorSpec([], name="a$b$<c>")).draw(tmp_path / "graph.svg")
    assert "%a$b$&lt;c&gt;" in words_of(tmp_path / "graph.svg")


def test_slices_are_written_as_in_python(traced) -> None:
    (box,) = [b for b in diagram(traced(lambda x: x[2:256, 1:255], [256, 300])).boxes if b.title == "getitem"]
    assert box.details[0] == "[2:256, 1:255]"


def test_the_side_of_a_constant_operand_is_shown(traced) -> None:
    boxes = diagram(traced(lambda x: (1 / x, x / 2000), TensorSpec([3], name="x"))).boxes
    assert [b.details[0] for b in boxes if b.title == "divide"] == ["(1., %x)", "(%x, 2000.)"]


def test_an_assignment_is_a_box_of_the_variable_and_reading_one_is_none(traced) -> None:
    v = df.Variable([1.0], name="v")

    def step(x):
        v.assign(x)
        v.assign_add(x)
        return v.read_value(), df.identity(v)

    boxes = diagram(traced(step, TensorSpec([1], name="x"))).boxes
    titles = [box.title for box in boxes]
    assert titles.count("%v <-") == 2
    assert "assignment" not in titles


def test_reading_a_variable_is_no_op(traced) -> None:
    v = df.Variable([1.0], name="v")
    boxes = diagram(traced(lambda: (v.read_value(), v.value() * 2.0))).boxes
    assert [box.title for box in boxes] == ["%v", "multiply", "return"]


def test_repeated_equal_ops_are_one_box(traced) -> None:
    boxes = diagram(traced(lambda x: [x[i] for i in range(31)], [31])).boxes
    assert [box.title for box in boxes] == ["%in0", "getitem \N{MULTIPLICATION SIGN} 31", "return"]
    assert boxes[1].labels == ("31 values",)
    assert boxes[2].inputs == 1


def test_many_repeated_ops_are_one_box_whatever_reads_them_and_few_are_not(traced) -> None:
    def total(x):
        parts = [x[i] for i in range(x.shape[0])]
        return df.add_n(parts)

    many, few = [[box.title for box in diagram(traced(total, [n])).boxes] for n in (31, 4)]
    assert "getitem \N{MULTIPLICATION SIGN} 31" in many
    assert "getitem" not in many
    assert few.count("getitem") == 4


def names_in(drawn: Diagram) -> list[str]:
    """The names of all values that boxes compute, at all depths."""
    inside = [name for box in drawn.boxes for _, panel in box.panels for name in names_in(panel)]
    return inside + [name for box in drawn.boxes if box.kind != "input" for name in box.names]


def test_no_two_values_have_one_name() -> None:
    def f(x):
        y = df.exp(x) + 1.0
        return df.reduce_sum(df.while_loop(lambda z: df.reduce_sum(z) < 9.0, lambda z: (z * 2.0,), (y,))[0])

    names = names_in(diagram(df.function(f).get_concrete_function(df.TensorSpec([3])).optimised_graph))
    assert len(names) > 5
    assert len(set(names)) == len(names)


def test_the_fields_of_a_loop_are_those_that_the_user_reads(traced) -> None:
    def count(x):
        start = (df.constant(0.5),)
        return df.while_loop(lambda i: i < 10.0, lambda i: (i + x,), start, maximum_iterations=7)

    details = boxes_of(traced(count, TensorSpec([], name="x")))["loop"].details
    assert details[:1] == ("7 iterations at most",)
    assert len(details) == 2


def halved(x):
    for _ in range(60):
        x = x * 0.5
    return x


def test_a_large_graph_is_folded_by_source_function(traced) -> None:
    def shifted(x):
        for _ in range(60):
            x = df.sin(x) + 1.0
        return x

    boxes = diagram(traced(lambda x: halved(shifted(halved(x))), [3])).boxes
    assert [box.title for box in boxes if box.kind == "group"] == [
        "multiply \N{MULTIPLICATION SIGN} 60",
        "shifted: 120 ops",
        "multiply \N{MULTIPLICATION SIGN} 60",
    ]


def test_a_large_graph_of_one_function_is_folded_by_line(traced) -> None:
    def chain(x):
        for _ in range(100):
            x = df.sin(x)
        for _ in range(150):
            x = df.cos(x)
        return x

    boxes = diagram(traced(chain, [3])).boxes
    assert [box.title for box in boxes if box.kind == "group"] == [
        "sin \N{MULTIPLICATION SIGN} 100",
        "cos \N{MULTIPLICATION SIGN} 150",
    ]


def test_a_trace_is_drawn_at_each_stage(tmp_path: Path) -> None:
    graph = df.function(lambda x: df.exp(x) * 1.0).get_concrete_function(df.TensorSpec([8])).graph
    for stage in ("traced", "optimised", "kernels"):
        graph.draw(tmp_path / f"{stage}.svg", stage=stage)
    words = {stage: words_of(tmp_path / f"{stage}.svg") for stage in ("traced", "optimised", "kernels")}
    assert "multiply" in words["traced"]
    assert "multiply" not in words["optimised"]
    assert "kernel 1" in words["kernels"]


def test_kernels_are_numbered_in_branches_too_and_have_colours_by_number() -> None:
    def f(x):
        y = df.tanh(df.reduce_sum(df.exp(x)) + x)
        return df.cond(y[0] > 0.0, lambda: df.exp(y) * 2.0, lambda: df.sin(y) * 3.0)

    graph = df.function(f).get_concrete_function(df.TensorSpec([300])).optimised_graph

    def kernels(drawn: Diagram) -> list[Box]:
        inside = [box for outer in drawn.boxes for _, panel in outer.panels for box in kernels(panel)]
        return [*(box for box in drawn.boxes if box.kind == "kernel"), *inside]

    boxes = kernels(diagram(graph))
    assert len(boxes) >= 3
    assert sorted(box.title for box in boxes) == [f"kernel {i}" for i in range(1, len(boxes) + 1)]
    assert sorted(box.kernel for box in boxes) == list(range(1, len(boxes) + 1))


def luminance(colour: str) -> float:
    """The relative luminance of ``#rrggbb``, as the web's guidelines for contrast define it."""
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours, by the same guidelines."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("style", [*STYLES.values(), *KERNEL_STYLES])
def test_text_can_be_read_on_every_colour(style: Style) -> None:
    for colours, fill in ((LIGHT, style.fill), (DARK, style.dark_fill)):
        assert contrast(fill, colours.title) > 4.5
        assert contrast(fill, colours.text) > 4.5


def test_the_style_sheet_applies_to_pictures_only(traced, tmp_path: Path) -> None:
    traced(lambda x: x + 1.0, [3]).draw(tmp_path / "graph.svg")
    style = re.search(r"<style>(.*?)</style>", (tmp_path / "graph.svg").read_text("utf-8"), re.DOTALL)[1]
    selectors = re.findall(r"([^{}]+)\{[^{}]*\}", re.sub(r"@media [^{]*\{", "", style))
    assert len(selectors) > 20
    assert all(s.strip().startswith("svg.dualflow-graph ") for group in selectors for s in group.split(","))


@pytest.mark.parametrize(
    ("one", "other"), [("variable", "input"), ("effect", "op"), ("update", "result"), ("reference", "input")]
)
def test_kinds_differ_in_print_without_colours(one: str, other: str) -> None:
    assert STYLES[one][1:] != STYLES[other][1:]


def test_a_png_that_nothing_could_read_is_refused(
    traced, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "_MAX_PIXELS", 50)
    with pytest.raises(df.errors.InvalidArgumentError, match=r"write an \.svg"):
        traced(lambda x: x + 1.0, [3]).draw(tmp_path / "long.png")
    assert os.listdir(tmp_path) == []


def test_a_failure_leaves_nothing_half_written(traced, tmp_path: Path) -> None:
    (tmp_path / "graph.svg").mkdir()
    with pytest.raises(IsADirectoryError):
        traced(lambda x: x + 1.0, [3]).draw(tmp_path / "graph.svg")
    assert os.listdir(tmp_path) == ["graph.svg"]


def test_a_folder_that_is_not_there_is_reported_by_the_files_own_name(traced, tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "graph.svg"
    with pytest.raises(FileNotFoundError) as caught:
        traced(lambda x: x + 1.0, [3]).draw(path)
    assert caught.value.filename == str(path)


def test_another_kind_of_file_is_refused(traced, tmp_path: Path) -> None:
    with pytest.raises(df.errors.InvalidArgumentError, match=r"\.svg, \.png, \.pdf"):
        traced(lambda x: x, [3]).draw(tmp_path / "graph.jpeg")


def test_without_matplotlib_an_svg_is_drawn_and_a_png_names_the_command_that_installs_it(
    tmp_path: Path,
) -> None:
    program = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import dualflow as df\n"
        "graph = df.function(lambda x: x + 1.0).get_concrete_function(df.TensorSpec([])).graph\n"
        "graph.draw('graph.svg')\n"
        "graph.draw('graph.png')"
    )
    done = run_forked(["-c", program], cwd=tmp_path)
    assert "NotFoundError" in done.stderr
    assert "pip install 'dualflow[draw]'" in done.stderr
    assert os.listdir(tmp_path) == ["graph.svg"]


def test_lines_of_a_notebook_name_the_cell(tmp_path: Path) -> None:
    require_module("IPython")
    program = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        "shell.run_cell('import dualflow as df', store_history=True)\n"
        "shell.run_cell('def f(x):\\n    return df.exp(x)', store_history=True)\n"
        "shell.run_cell('c = df.function(f).get_concrete_function(df.TensorSpec([]))\\nprint(c.graph)')\n"
        "shell.run_cell('print(c.kernels)')\n"
    )
    done = run_forked(["-c", program], env={**os.environ, "IPYTHONDIR": str(tmp_path)})
    assert "exp(%x)   # cell 2, line 2" in done.stdout
    assert "# exp (cell 2, line 2)" in done.stdout
