"""Where boxes and wires of a diagram lie: nothing on top of anything else, whatever the graph."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from dualflow.graph.draw.diagram import Box, Diagram, Wire
from dualflow.graph.draw.layout import FARTHEST, Label, Picture, PlacedBox, place, text_width


@st.composite
def diagrams(draw: st.DrawFn, depth: int = 1) -> Diagram:
    """Boxes with random titles, some with a diagram inside, each reading some of the earlier ones."""
    boxes: list[Box] = []
    wires: list[Wire] = []
    for target in range(draw(st.integers(1, 9))):
        count = draw(st.integers(0, min(3, target)))
        for slot in range(count):
            source = draw(st.integers(0, target - 1))
            wires.append(Wire(source, draw(st.integers(0, len(boxes[source].labels) - 1)), target, slot))
        labels = tuple(
            draw(st.lists(st.sampled_from(["%0: float32[3]", "%17: int32[4, 5, 6]"]), min_size=1, max_size=3))
        )
        inside = draw(st.booleans()) if depth else False
        panels = (("body", draw(diagrams(depth - 1))),) if inside else ()
        details = tuple(draw(st.lists(st.text("ab", max_size=30), max_size=3)))
        title = draw(st.text("xyz", min_size=1, max_size=20))
        boxes.append(Box("op", title, details, count, labels, panels, ("%",) * len(labels)))
    return Diagram(tuple(boxes), tuple(wires))


def rectangles(picture: Picture) -> list[tuple[float, float, float, float]]:
    """Boxes and labels as left, top, right, bottom."""
    return [*(sides(box) for box in picture.boxes), *(around(label) for label in picture.labels)]


def sides(box: PlacedBox) -> tuple[float, float, float, float]:
    return box.x, box.y, box.x + box.width, box.y + box.height


def around(label: Label) -> tuple[float, float, float, float]:
    half = text_width(label.text, 6.5) / 2
    return label.x - half, label.y - 3.25, label.x + half, label.y + 3.25


def apart(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    slack = 1e-6
    return a[2] <= b[0] + slack or b[2] <= a[0] + slack or a[3] <= b[1] + slack or b[3] <= a[1] + slack


@given(diagrams())
@settings(max_examples=25, deadline=None)
def test_no_box_or_label_overlaps_another(diagram: Diagram) -> None:
    shapes = rectangles(place(diagram))
    for i, one in enumerate(shapes):
        assert all(apart(one, other) for other in shapes[:i])


@given(diagrams(0))
@settings(max_examples=25, deadline=None)
def test_no_wire_runs_through_a_box(diagram: Diagram) -> None:
    picture = place(diagram)
    for segment in picture.segments:
        left, right = sorted((segment.x0, segment.x1))
        run = (left, segment.y0, right, segment.y1)
        assert segment.y0 <= segment.y1
        assert all(apart(run, sides(box)) for box in picture.boxes)


@given(diagrams())
@settings(max_examples=25, deadline=None)
def test_each_box_is_below_its_inputs(diagram: Diagram) -> None:
    picture = place(diagram)
    for wire in diagram.wires:
        source, target = picture.boxes[wire.source], picture.boxes[wire.target]
        assert source.y + source.height < target.y


@given(diagrams())
@settings(max_examples=25, deadline=None)
def test_every_input_has_an_arrowhead_at_its_box(diagram: Diagram) -> None:
    picture = place(diagram)
    heads = {(round(s.x1, 3), round(s.y1, 3)) for s in picture.segments if s.last}
    for wire in diagram.wires:
        target = picture.boxes[wire.target]
        x = target.x + round(target.width * (wire.input + 1) / (target.box.inputs + 1))
        assert (x, round(target.y, 3)) in heads


@given(diagrams())
@settings(max_examples=25, deadline=None)
def test_all_is_inside_of_the_picture_and_panels_inside_of_their_boxes(diagram: Diagram) -> None:
    def check(picture: Picture) -> None:
        for left, top, right, bottom in rectangles(picture):
            assert min(left, top) >= -1e-6
            assert right <= picture.width + 1e-6
            assert bottom <= picture.height + 1e-6
        for box in picture.boxes:
            for panel in box.panels:
                assert box.x <= panel.x
                assert panel.x + panel.width <= box.x + box.width + 1e-6
                assert panel.y + panel.height <= box.y + box.height + 1e-6
                assert panel.left + panel.picture.width <= panel.x + panel.width + 1e-6
                assert panel.top + panel.picture.height <= panel.y + panel.height + 1e-6
                check(panel.picture)

    check(place(diagram))


def test_a_crossing_that_can_be_avoided_is() -> None:
    boxes = [Box("op", name, (), n, ("%",)) for name, n in (("a", 0), ("b", 0), ("c", 1), ("d", 1))]
    picture = place(Diagram(tuple(boxes), (Wire(0, 0, 3, 0), Wire(1, 0, 2, 0))))
    a, b, c, d = picture.boxes
    assert (a.x < b.x) == (d.x < c.x)


def test_a_long_wire_is_a_straight_line() -> None:
    """Next to a chain of boxes of many widths."""
    names = ["x" * (1 + 5 * i % 17) for i in range(20)]
    boxes = [Box("op", name, (), min(i, 1) + (i == 19), ("%",), names=("%",)) for i, name in enumerate(names)]
    wires = [*(Wire(i, 0, i + 1, 0) for i in range(19)), Wire(0, 0, 19, 1)]
    picture = place(Diagram(tuple(boxes), tuple(wires)))
    last = picture.boxes[-1]
    end = next(s for s in picture.segments if s.last and s.x1 == last.x + round(last.width * 2 / 3))
    beside = [s for s in picture.segments if s.x0 == s.x1 == end.x0]
    assert sum(s.y1 - s.y0 for s in beside) > 0.85 * picture.height


def long_diagram(count: int) -> Diagram:
    """A chain, each tenth box of which reads the first one, too."""
    boxes = [Box("op", f"op{i}", (), min(i, 1) + (i % 10 == 2), ("%",), (), (f"%{i}",)) for i in range(count)]
    wires = [Wire(i, 0, i + 1, 0) for i in range(count - 1)]
    return Diagram(tuple(boxes), (*wires, *(Wire(0, 0, i, 1) for i in range(2, count, 10))))


def test_a_wire_over_very_many_rows_is_cut_and_goes_on_by_name() -> None:
    picture = place(long_diagram(2 * FARTHEST))
    cut = [box for box in picture.boxes if box.box.kind == "reference"]
    assert [box.box.title for box in cut] == ["%0"] * 4
    heads = {(s.x1, s.y1) for s in picture.segments if s.last}
    for i in range(2, 2 * FARTHEST, 10):  # every input is drawn, cut or not
        box = picture.boxes[i]
        assert (box.x + round(box.width * 2 / 3), box.y) in heads


def test_a_wire_over_fewer_rows_is_drawn_whole() -> None:
    picture = place(long_diagram(FARTHEST))
    assert {box.box.kind for box in picture.boxes} == {"op"}


def test_a_layout_takes_time_in_proportion_to_its_boxes(lines_run) -> None:
    few, many = (lines_run(lambda count=count: place(long_diagram(count))) for count in (100, 300))
    assert many < 5 * few


def test_a_long_chain_is_laid_out_without_recursion() -> None:
    boxes = [Box("op", "add", (), min(i, 1), ("%",)) for i in range(2000)]
    picture = place(Diagram(tuple(boxes), tuple(Wire(i, 0, i + 1, 0) for i in range(1999))))
    middles = [box.x + box.width / 2 for box in picture.boxes]
    assert max(middles) - min(middles) < 1.0
    assert all(upper.y < lower.y for upper, lower in pairwise(picture.boxes))


def test_an_empty_diagram_is_a_picture() -> None:
    assert place(Diagram((), ())).boxes == ()


def test_one_box_is_a_picture_of_its_size() -> None:
    picture = place(Diagram((Box("op", "exp"),), ()))
    (box,) = picture.boxes
    assert (box.x, box.y, box.width, box.height) == (0, 0, picture.width, picture.height)
