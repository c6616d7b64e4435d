"""Errors of datasets: their types, messages, and the user's lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from error_cases import ErrorCases, Frames

import dualflow as df
from dualflow import errors
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.data.handles import source_of_handle

Dataset = df.data.Dataset
r = Dataset.range
SCALAR = df.TensorSpec([], df.int32)


def ragged() -> Any:
    return r(1, 5).map(lambda x: df.fill([x], x))


def yielding(*values: Any, spec: Any = SCALAR) -> Any:
    return Dataset.from_generator(lambda: iter(values), output_signature=spec)


def unequal() -> Any:
    """An element whose components have 1 and 2 rows."""
    return yielding(([1.0], [1.0, 2.0]), spec=(df.TensorSpec([None]), df.TensorSpec([None])))


SPARSE = df.SparseTensor([[0, 1], [1, 0]], [1.0, 2.0], [2, 2])


def uneven() -> Any:
    return Dataset.from_tensors(df.ragged.constant([[1, 2], [3]]))


def sparse() -> Any:
    return Dataset.from_tensors({"x": SPARSE})


def run(dataset: Any) -> None:
    for _ in dataset:
        pass


def raising() -> Iterator[int]:
    yield 1
    raise KeyError("the generator's own")


CASES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (
        lambda: df.data.experimental.map_and_batch(lambda x: x, 2, 1, num_parallel_calls=2),
        InvalidArgumentError,
        "num_parallel_calls or num_parallel_batches, not both",
    ),
    # sources
    (lambda: Dataset.from_tensor_slices(()), InvalidArgumentError, "no tensor to take slices of"),
    (lambda: Dataset.from_tensor_slices(3), InvalidArgumentError, "use from_tensors"),
    (
        lambda: Dataset.from_tensor_slices(([1, 2], [1, 2, 3])),
        InvalidArgumentError,
        "Dimensions 2 and 3 are not",
    ),
    (lambda: Dataset.from_tensors(()), InvalidArgumentError, "at least one tensor"),
    (lambda: Dataset.range(), DTypeError, "range takes stop, or start and stop"),
    (lambda: Dataset.range(5.5), DTypeError, "an integer, not 5.5"),
    (lambda: Dataset.range(5, output_type=df.string), DTypeError, "integers or floats, not string"),
    (lambda: Dataset.range(5, 0, 0), InvalidArgumentError, "step must be a non-zero integer"),
    (lambda: Dataset.from_generator(iter([1]), df.int32), DTypeError, "must be a Python callable"),  # type: ignore[arg-type]  # what is refused
    (lambda: Dataset.from_generator(raising), DTypeError, "either `output_signature`"),
    (
        lambda: Dataset.from_generator(raising, df.int32, output_signature=SCALAR),
        DTypeError,
        "either `output_sig",
    ),
    (
        lambda: Dataset.from_generator(raising, None, [], None, SCALAR),
        DTypeError,
        "given with `output_types`",
    ),
    (
        lambda: Dataset.from_generator(raising, output_signature=3),
        DTypeError,
        "a structure of df.TensorSpec",
    ),
    (lambda: Dataset.from_generator(raising, df.int32, args=3), DTypeError, "args must be a list, not 3"),  # type: ignore[arg-type]  # what is refused
    (
        lambda: df.data.experimental.CsvDataset("x.csv", 3),
        DTypeError,
        "record_defaults must be a list, not 3",
    ),  # type: ignore[arg-type]  # what is refused
    (
        lambda: run(yielding([1, 2])),
        InvalidArgumentError,
        r"produced element 0.* shape \(2,\) where \(\) was expected",
    ),
    (
        lambda: run(yielding(1, 2.5)),
        InvalidArgumentError,
        "produced element 1.* dtype float32 where int32 was expected",
    ),
    (
        lambda: run(yielding((1, 2), spec=(SCALAR,))),
        InvalidArgumentError,
        "another structure than the elements",
    ),
    (lambda: run(yielding({1, 2})), InvalidArgumentError, "produced element 0"),
    (lambda: run(Dataset.from_generator(raising, df.int32)), KeyError, "the generator's own"),
    (lambda: Dataset.from_source(3), DTypeError, "not a source of elements"),
    (lambda: Dataset.from_source(iter([1])), DTypeError, "can be iterated over only once"),
    (lambda: Dataset.from_source([]), InvalidArgumentError, "give output_signature"),
    (lambda: run(Dataset.from_source([1, [2]])), InvalidArgumentError, "A list produced element 1"),
    (lambda: Dataset.zip(), DTypeError, "at least one dataset"),
    (lambda: Dataset.zip([r(1), r(2)]), DTypeError, "Python lists are not supported"),
    (lambda: Dataset.zip(r(1), 3), DTypeError, "structures of datasets"),
    (
        lambda: Dataset.random(rerandomize_each_iteration=True),
        InvalidArgumentError,
        "draw them with df.random.uniform",
    ),
    (lambda: Dataset.choose_from_datasets([], r(1)), InvalidArgumentError, "no dataset to choose from"),
    (lambda: Dataset.choose_from_datasets([r(1)], 3), DTypeError, "a dataset of int64 scalars"),
    (
        lambda: run(Dataset.choose_from_datasets([r(1)], r(5, 6))),
        InvalidArgumentError,
        "one of 1 datasets, not 5",
    ),
    (
        lambda: Dataset.sample_from_datasets([r(1)], [0.5, 0.5]),
        InvalidArgumentError,
        "should have the same length",
    ),
    (lambda: Dataset.sample_from_datasets([r(1)], [-1.0]), InvalidArgumentError, "be probabilities"),
    (lambda: Dataset.sample_from_datasets([r(1)], 1.0), DTypeError, "`weights` must be a list of numbers"),
    (lambda: Dataset.sample_from_datasets([r(1)], ["a"]), DTypeError, "`weights` must be a list of numbers"),
    (lambda: Dataset.sample_from_datasets([r(1), Dataset.from_tensors(1.0)]), DTypeError, "elements differ"),
    (
        lambda: Dataset.sample_from_datasets([r(1)], rerandomize_each_iteration=True),
        InvalidArgumentError,
        "draws the same numbers",
    ),
    (lambda: Dataset.sample_from_datasets([r(1)], [float("inf")]), InvalidArgumentError, "finite positive"),
    (lambda: Dataset.choose_from_datasets(3, r(1)), DTypeError, "datasets must be a list, not 3"),  # type: ignore[arg-type]  # what is refused
    (lambda: Dataset.sample_from_datasets(3), DTypeError, "datasets must be a list, not 3"),  # type: ignore[arg-type]  # what is refused
    (lambda: Dataset.sample_from_datasets([r(2).window(1), r(2)]), DTypeError, "elements differ"),
    # order
    (
        lambda: r(3).shuffle(0),
        InvalidArgumentError,
        "buffer_size must be greater than zero or UNKNOWN_CARDINALITY, not 0",
    ),
    (lambda: r(3).prefetch(-5), InvalidArgumentError, "buffer_size must be >= 0, or AUTOTUNE"),
    (lambda: r(3).shard(0, 0), InvalidArgumentError, "greater than zero .currently num_shards = 0"),
    (lambda: r(3).shard(2, 2), InvalidArgumentError, "between 0 and 1 .currently index = 2"),
    (lambda: r(3).take("x"), DTypeError, "count must be an integer, not 'x'"),
    (lambda: r(3).concatenate(3), DTypeError, "concatenate takes a dataset"),
    (lambda: r(3).concatenate(Dataset.from_tensors(1.0)), DTypeError, "Incompatible dataset elements"),
    (lambda: r(3).cache(3), DTypeError, "a string or a path, not 3"),
    # functions
    (lambda: r(3).map(3), DTypeError, "map_func must be a callable"),  # type: ignore[arg-type]  # what is refused
    (lambda: r(3).enumerate().map(lambda x: x), DTypeError, "the parts of an element, 2 .*: too many posit"),
    (lambda: r(3).filter(lambda x, y: True), DTypeError, "with an element, 1 in number: missing .* 'y'"),
    (lambda: r(3).scan(0, lambda s: s), DTypeError, "a state and an element, 2 .*: too many"),
    (lambda: r(3).map(lambda x: {1, 2}), DTypeError, "returned an object of type set"),
    (
        lambda: r(3).map(lambda x: x, num_parallel_calls=0),
        InvalidArgumentError,
        "num_parallel_calls must be greater",
    ),
    (lambda: r(3).filter(lambda x: x), InvalidArgumentError, "Invalid `predicate`"),
    (lambda: r(3).filter(lambda x: [x > 1, x > 2]), InvalidArgumentError, "a scalar of dtype bool"),
    (lambda: r(3).flat_map(lambda x: x), DTypeError, "must return a dataset for each element"),
    (
        lambda: r(3).interleave(lambda x: r(x), cycle_length=0),
        InvalidArgumentError,
        "cycle_length must be greater",
    ),
    (lambda: r(3).scan(0, lambda s, x: s), DTypeError, "a pair of the new state and a result"),
    (lambda: r(3).scan(0, lambda s, x: (x, x)), DTypeError, "a state of dtype int64 for one of int32"),
    (lambda: r(3).reduce(0, lambda s, x: (s, s)), DTypeError, "a state of another structure"),
    (
        lambda: Dataset.from_generator(raising, df.int32).scan(0, lambda s, x: (s, x)),
        DTypeError,
        "scan needs elements whose number of axes is known",
    ),
    (lambda: r(3).apply(lambda d: 3), DTypeError, "must return a dataset, not a int"),
    (
        lambda: Dataset.from_generator(lambda: iter([1]), df.int32).flat_map(lambda x: r(x)),
        DTypeError,
        "unknown number of axes",
    ),
    # groups
    (lambda: r(3).batch(0), InvalidArgumentError, "Batch size must be greater than zero, not 0"),
    (
        lambda: run(ragged().batch(2)),
        InvalidArgumentError,
        r"shapes in component 0. First element had shape \[1\]",
    ),
    (lambda: run(ragged().padded_batch(2, padded_shapes=[1])), InvalidArgumentError, "pad to a smaller size"),
    (lambda: ragged().padded_batch(2, padded_shapes=[1, 2]), InvalidArgumentError, "another number of axes"),
    (lambda: ragged().padded_batch(2, padding_values=np.int32(-1)), DTypeError, "Invalid `padding_values`"),
    (lambda: ragged().padded_batch(2, padded_shapes=([1], [2])), DTypeError, "integer|structure|shape"),
    (lambda: ragged().padded_batch(2, padded_shapes=2.5), DTypeError, "A shape is a sequence of integers"),
    (lambda: ragged().padded_batch(2, padded_shapes=SCALAR), DTypeError, "A shape is a sequence of integers"),
    (
        lambda: Dataset.zip(r(1), r(1)).padded_batch(2, [None]),
        DTypeError,
        "another structure than the elements",
    ),
    (
        lambda: Dataset.from_generator(lambda: iter([1]), df.int32).padded_batch(2),
        InvalidArgumentError,
        "needs padded_shapes",
    ),
    (lambda: sparse().rebatch(2), InvalidArgumentError, "`rebatch.*` does not support sparse"),
    (lambda: uneven().rebatch(2), InvalidArgumentError, "`rebatch.*` does not support ragged components"),
    (
        lambda: uneven().padded_batch(2),
        InvalidArgumentError,
        "`padded_batch.*` does not support ragged components.*to_tensor",
    ),
    (lambda: sparse().batch(2), InvalidArgumentError, "`batch.*` does not support sparse components"),
    (lambda: sparse().ragged_batch(2), InvalidArgumentError, "`ragged_batch.*` does not support sparse"),
    (lambda: sparse().padded_batch(2), InvalidArgumentError, "`padded_batch.*` does not support sparse"),
    (
        lambda: sparse().unbatch(),
        InvalidArgumentError,
        "`unbatch.*` does not support sparse .* map.df.sparse.to_dense",
    ),
    (
        lambda: Dataset.from_tensor_slices({"x": SPARSE}),
        InvalidArgumentError,
        "`from_tensor_slices.*` does not sup",
    ),
    *[
        (
            lambda method=method, arguments=arguments: getattr(r(3).window(2), method)(*arguments),
            InvalidArgumentError,
            f"`{method}.* elements that are datasets, .* flat_map.lambda window",
        )
        for method, *arguments in [
            ("batch", 2),
            ("ragged_batch", 2),
            ("padded_batch", 2),
            ("rebatch", 2),
            ("unbatch",),
            ("unique",),
        ]
    ],
    (lambda: r(5).unbatch(), InvalidArgumentError, "Cannot unbatch an input with scalar components"),
    (
        lambda: Dataset.from_tensors(([1, 2], [1, 2, 3])).unbatch(),
        InvalidArgumentError,
        "Encountered both 2 and 3",
    ),
    (
        lambda: run(unequal().unbatch()),
        InvalidArgumentError,
        "unbatch requires .* the same first size",
    ),
    (lambda: r(3).window(0), InvalidArgumentError, "Window size must be greater than zero"),
    (lambda: r(3).rebatch(0), InvalidArgumentError, "Batch size must be greater than zero"),
    (lambda: r(3).batch(2).rebatch([]), InvalidArgumentError, "one batch size or more"),
    (lambda: r(3).rebatch(2), InvalidArgumentError, "Cannot rebatch an input with scalar components"),
    (
        lambda: Dataset.from_tensors(([1, 2], [1, 2, 3])).rebatch(2),
        InvalidArgumentError,
        "Encountered both 2 and 3",
    ),
    (lambda: run(unequal().rebatch(2)), InvalidArgumentError, "rebatch requires .* the same first size"),
    (
        lambda: r(3).group_by_window(lambda x: x, lambda k, d: d),
        InvalidArgumentError,
        "takes exactly one of window_size",
    ),
    (lambda: r(3).group_by_window(lambda x: [x, x], lambda k, d: d, 2), DTypeError, "an integer scalar"),
    (lambda: r(3).group_by_window(lambda x: x, lambda k, d: k, 2), DTypeError, "must return a dataset"),
    (
        lambda: ragged().bucket_by_sequence_length(df.size, [3], [2]),
        InvalidArgumentError,
        "one more batch size",
    ),
    (
        lambda: ragged().bucket_by_sequence_length(df.size, 3, [2, 2]),
        DTypeError,
        "bucket_boundaries must be a list",
    ),
    (
        lambda: ragged().bucket_by_sequence_length(df.size, [3], [2, 2.5]),
        DTypeError,
        "An entry of bucket_batch_sizes must be an integer, not 2.5",
    ),
    (
        lambda: run(ragged().bucket_by_sequence_length(df.size, [3], [2, 2], pad_to_bucket_boundary=True)),
        InvalidArgumentError,
        "at least as long as the last boundary",
    ),
    (
        lambda: ragged().bucket_by_sequence_length(df.size, [3], [2, 0]),
        InvalidArgumentError,
        "Batch size must be greater than zero, not 0",
    ),
    (
        lambda: ragged().bucket_by_sequence_length(df.size, [5, 3], [2, 2, 2]),
        InvalidArgumentError,
        "bucket_boundaries must ascend: .5, 3.; sort them",
    ),
    (
        lambda: run(yielding([[1, 2]], [[1, 2, 3]], spec=df.TensorSpec([None, None], df.int32)).rebatch(2)),
        InvalidArgumentError,
        r"differ in shape in component 0: \(2,\) and \(3,\).* with map",
    ),
    # results
    (lambda: len(r(2).repeat()), TypeError, "The dataset is infinite"),
    (lambda: len(r(2).filter(lambda x: x > 1)), TypeError, "The dataset length is unknown"),
    (lambda: r(3).with_options(3), DTypeError, "takes a df.data.Options"),  # type: ignore[arg-type]  # what is refused
    (lambda: r(3).snapshot("x"), AttributeError, "use cache with the name of a file"),
    (lambda: Dataset.sparse_batch, AttributeError, "use padded_batch"),
    (lambda: r(3).bacth(2), AttributeError, "Did you mean 'batch'"),
    (
        lambda: df.data.experimental.get_next_as_optional(r(2)),
        DTypeError,
        r"An iterator was expected, as iter\(dataset\) returns it",
    ),
    (lambda: r(0).get_single_element(), InvalidArgumentError, "Dataset was empty"),
    (lambda: r(2).get_single_element(), InvalidArgumentError, "more than one element"),
    (lambda: list(r(3).window(2).as_numpy_iterator()), DTypeError, "flat_map it first"),
    (lambda: iter(r(0)).get_next(), errors.OutOfRangeError, "End of sequence"),
    (lambda: iter(r(3)).set_state(iter(r(4)).get_state()), InvalidArgumentError, "of another dataset"),
    (lambda: iter(r(3)).set_state({}), InvalidArgumentError, "of another dataset"),
    # files
    (lambda: r(3).window(2).save("nowhere"), DTypeError, "Only elements of numbers can be written"),
    (lambda: r(3).save("nowhere", compression="GZIP"), DTypeError, "not compressed"),
    (lambda: Dataset.load("/nowhere/at/all"), errors.NotFoundError, "There is no file"),
    (
        lambda: Dataset.load(__file__),
        errors.DataLossError,
        "is damaged: it is cut off, or not a file of elements",
    ),
]


class TestErrorMessages(ErrorCases):
    cases: ClassVar = {f"{number} {case[2][:30]}": case for number, case in enumerate(CASES)}
    frames = Frames.ANY


def test_an_error_in_a_loop_names_the_line_that_requested() -> None:
    dataset = ragged().batch(2)
    with pytest.raises(errors.InvalidArgumentError) as caught:
        run(dataset)
    assert str(caught.value).endswith("in test_an_error_in_a_loop_names_the_line_that_requested")


def test_a_file_of_other_elements_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    r(3).save(path)
    with pytest.raises(errors.DTypeError, match="has elements of"):
        Dataset.load(path, df.TensorSpec([], df.float32))


@pytest.mark.parametrize("cut", [0, 10, 40, -1])
def test_a_damaged_file_is_refused(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "numbers"
    r(30).save(path)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(errors.DataLossError, match="damaged"):
        Dataset.load(path)


def test_a_state_beyond_the_end_is_refused() -> None:
    state = iter(r(9).map(lambda x: x).shuffle(3, seed=1))
    for _ in range(9):
        next(state)
    shorter = iter(r(3).map(lambda x: x).shuffle(3, seed=1))
    described = shorter.get_state()["pipeline"]
    with pytest.raises(errors.InvalidArgumentError, match="9 elements into a dataset that has 3"):
        shorter.set_state({**state.get_state(), "pipeline": described})


# In traced functions


def test_python_can_not_iterate_in_a_trace() -> None:
    @df.function(autograph=False)
    def loop(dataset: Any) -> Any:
        for _ in dataset:
            pass

    for source in (r(3), iter(r(3)), iter(r(3).batch(2))):
        with pytest.raises(errors.OperatorNotAllowedInGraphError, match="with autograph on"):
            loop(source)


def test_no_gradient_flows_through_a_loop_over_a_dataset() -> None:
    @df.function
    def slope(x: Any, dataset: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            product = x
            for y in dataset:
                product = product * df.cast(y, df.float32)
        return tape.gradient(product, x)

    with pytest.raises(errors.InvalidArgumentError, match="inside of the loop"):
        slope(df.constant(1.0), r(3))


def test_a_symbolic_size_makes_no_dataset() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="a dataset needs a number"):
        df.function(lambda n: r(n).reduce(np.int64(0), lambda s, x: s + x))(df.constant(3))


def test_another_shape_than_the_traced_one_is_refused() -> None:
    @df.function
    def both(iterator: Any) -> Any:
        return next(iterator), next(iterator)

    with pytest.raises(errors.InvalidArgumentError, match="drop_remainder=True"):
        both(iter(r(3).batch(2)))


def test_a_created_iterator_requires_elements_of_known_rank() -> None:
    @df.function
    def first() -> Any:
        return next(iter(Dataset.from_generator(raising, df.int32)))

    with pytest.raises(errors.InvalidArgumentError, match="requires elements of known rank") as raised:
        first()
    assert "test_error_messages.py" in str(raised.value)


def test_an_argument_is_read_by_loops_only() -> None:
    @df.function(autograph=False)
    def peek(dataset: Any) -> Any:
        return dataset.get_single_element()

    with pytest.raises(errors.DualflowError, match=r"loop|traced"):
        peek(r(1))


def test_a_dataset_that_is_gone_is_missed() -> None:
    with pytest.raises(errors.FailedPreconditionError, match="keep it in a variable"):
        source_of_handle(-1)


def test_a_dataset_that_is_only_tried_has_no_elements() -> None:
    with pytest.raises(errors.DualflowError, match=r"only when|before there is|while a function is traced"):
        r(4).window(2).flat_map(lambda w: Dataset.from_tensors(sum(w)))
