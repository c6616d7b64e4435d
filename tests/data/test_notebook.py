"""A dataset's display in a notebook: specs, and elements if reading them has no side effect."""

from __future__ import annotations

import numpy as np
import pytest

import dualflow as df

Dataset = df.data.Dataset


def test_the_first_elements_of_arrays_are_a_table_with_a_column_for_each_leaf() -> None:
    html = Dataset.from_tensor_slices({"x": [1, 2, 3], "y": (np.zeros(3), ["<a>", "b", "c"])})._repr_html_()
    assert "<th>x int32[]</th><th>y.0 float64[]</th><th>y.1 string[]</th>" in html
    assert "<tr><td>1</td><td>0.</td><td>b'&lt;a&gt;'</td></tr>" in html
    assert html.count("<tr>") == 4


def test_at_most_five_elements_are_shown() -> None:
    html = Dataset.range(100).repeat()._repr_html_()
    assert html.count("<td>") == 5
    assert "<th>int64[]</th>" in html


def test_a_large_element_is_one_short_line() -> None:
    html = Dataset.from_tensors(np.random.default_rng(0).random((100, 100, 3)))._repr_html_()
    cell = html.partition("<td>")[2].partition("</td>")[0]
    assert len(cell) <= 60
    assert "..." in cell


@pytest.mark.parametrize(
    ("dataset", "row"),
    [
        (Dataset.range(9).skip(2).take(2).batch(2), "<td>[2 3]</td>"),
        (Dataset.range(9).shard(3, 1), "<td>1</td>"),
        (Dataset.zip((Dataset.range(2), Dataset.range(5, 7))), "<td>0</td><td>5</td>"),
        (Dataset.range(1).concatenate(Dataset.range(7, 8)), "<tr><td>7</td></tr>"),
        (Dataset.from_tensor_slices(["a"]).enumerate(), "<td>0</td><td>b'a'</td>"),
    ],
    ids=["take and batch", "shard", "zip", "concatenate", "enumerate"],
)
def test_elements_of_selections_are_shown(dataset: df.data.Dataset, row: str) -> None:
    assert row in dataset._repr_html_()


def test_an_empty_dataset_has_an_empty_table() -> None:
    assert "<td>" not in Dataset.range(0)._repr_html_()


def test_showing_a_dataset_runs_no_code_of_the_user() -> None:
    calls: list[object] = []

    def generate():
        calls.append("generator")
        yield 1

    class Rows:
        def __len__(self) -> int:
            return 3

        def __getitem__(self, index: int) -> np.ndarray:
            calls.append(index)
            return np.zeros(2)

    generated = Dataset.from_generator(generate, output_signature=df.TensorSpec([], df.int32))
    mapped = Dataset.range(3).map(lambda x: df.py_function(lambda y: calls.append(y) or y, [x], df.int64))
    rows = Dataset.from_source(Rows())
    calls.clear()
    for dataset in (rows, generated, generated.batch(2), Dataset.zip((Dataset.range(3), generated)), mapped):
        html = dataset._repr_html_()
        assert "Elements are not shown: " in html
        assert "element_spec" in html
    assert calls == []


def test_showing_a_shuffled_dataset_draws_no_random_number() -> None:
    df.random.set_seed(3)
    dataset = Dataset.range(100).shuffle(100)
    expected = [int(x) for x in dataset]
    df.random.set_seed(3)
    dataset = Dataset.range(100).shuffle(100)
    assert "Shuffle would have to run; a loop over take(5) reads them" in dataset.batch(2)._repr_html_()
    assert [int(x) for x in dataset] == expected


def test_an_iterator_of_the_dataset_stays_where_it_is() -> None:
    dataset = Dataset.range(5)
    iterator = iter(dataset)
    next(iterator)
    dataset._repr_html_()
    assert int(next(iterator)) == 1
