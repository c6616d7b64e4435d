"""Names in an explicit graph: unique, scoped, and usable to look elements up."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dualflow as df
from dualflow.compat import v1
from dualflow.graph_mode.names import UniqueNames


@pytest.fixture
def graph() -> Iterator[v1.Graph]:
    with v1.Graph().as_default() as default:
        yield default


def scalar(name: str | None = None) -> v1.Tensor:
    return v1.placeholder(v1.float32, [], name=name)


# Uniqueness


@given(st.lists(st.tuples(st.sampled_from(["a", "A", "a_1", "b"]), st.sampled_from(["", "s", "S", "a"]))))
def test_names_differ_in_more_than_case_and_find_their_elements(requested: list[tuple[str, str]]) -> None:
    names: UniqueNames[int] = UniqueNames()
    for element, (base, scope) in enumerate(requested):
        with names.scoped(scope):
            names.add(element, base)
    assigned = [names.of(i) for i in range(len(requested))]
    assert len({name.lower() for name in assigned}) == len(requested)
    assert [names.find(name) for name in assigned] == list(range(len(requested)))


def test_a_name_that_is_taken_gets_a_number(graph: v1.Graph) -> None:
    assert [scalar("x").name for _ in range(3)] == ["x:0", "x_1:0", "x_2:0"]


def test_a_number_that_is_taken_is_left_out(graph: v1.Graph) -> None:
    assert [scalar(n).name for n in ("x", "x_1", "x")] == ["x:0", "x_1:0", "x_2:0"]


def test_unnamed_results_are_named_after_their_op(graph: v1.Graph) -> None:
    x = scalar()
    assert [x.name, (x + 1.0).name, (x + 2.0).name] == ["Placeholder:0", "add:0", "add_1:0"]


def test_graphs_number_their_names_each_from_the_start() -> None:
    for _ in range(2):
        with v1.Graph().as_default():
            assert scalar("x").name == "x:0"


@pytest.mark.parametrize("name", ["two words", "", "a:0", "_first", "a$"])
def test_a_name_of_other_characters_is_an_error(graph: v1.Graph, name: str) -> None:
    with pytest.raises(ValueError, match="not a valid scope or op name"):
        scalar(name)


# The name argument


def test_an_op_has_the_name_that_it_is_given(graph: v1.Graph) -> None:
    x = scalar()
    assert v1.multiply(x, x, name="product").name == "product:0"
    assert v1.multiply(x, x, "product").name == "product_1:0"


def test_functions_of_namespaces_name_too(graph: v1.Graph) -> None:
    assert v1.nn.relu(scalar(), name="rectified").name == "rectified:0"
    assert v1.math.exp(scalar(), name="grown").name == "grown:0"


def test_inside_of_a_function_of_several_ops_names_are_scoped(graph: v1.Graph) -> None:
    x = v1.placeholder(v1.float32, [3])
    probabilities = v1.nn.softmax(x, name="p")
    assert probabilities.name == "p:0"
    inner = [op.name for op in graph.get_operations() if op.name not in ("Placeholder", "p")]
    assert inner
    assert all(name.startswith("p/") for name in inner)


def test_a_name_for_what_is_handed_through_renames_nothing(graph: v1.Graph) -> None:
    x = scalar("x")
    assert v1.convert_to_tensor(x, name="y").name == "x:0"


def test_the_name_of_a_constant(graph: v1.Graph) -> None:
    assert v1.constant(1.0, name="one").name == "one:0"


def test_the_name_of_a_device_is_no_ops(graph: v1.Graph) -> None:
    with v1.device("/cpu:0"):
        assert scalar("x").name == "x:0"


def test_names_are_ignored_where_ops_run() -> None:
    assert float(v1.add(1.0, 2.0, name="unrequested")) == 3.0


# Scopes


def test_scopes_are_prefixes(graph: v1.Graph) -> None:
    with v1.name_scope("a"), v1.name_scope("b"):
        assert scalar("x").name == "a/b/x:0"
    assert scalar("x").name == "x:0"


def test_a_scope_of_a_taken_name_gets_a_number(graph: v1.Graph) -> None:
    created = []
    for _ in range(2):
        with v1.name_scope("a") as scope:
            created += [scope, scalar("x").name]
    assert created == ["a/", "a/x:0", "a_1/", "a_1/x:0"]


def test_a_scope_is_entered_again_by_its_full_name(graph: v1.Graph) -> None:
    with v1.name_scope("a") as scope:
        scalar("x")
    with v1.name_scope("b"), v1.name_scope(scope):
        assert scalar("x").name == "a/x_1:0"


@pytest.mark.parametrize("name", [None, ""])
def test_no_name_leaves_all_scopes(graph: v1.Graph, name: str | None) -> None:
    with v1.name_scope("a"), graph.name_scope(name):
        assert scalar("x").name == "x:0"


def test_a_scope_may_have_a_default_name(graph: v1.Graph) -> None:
    with v1.name_scope(None, "made_up") as scope:
        assert scope == "made_up/"


def test_a_scopes_own_name_may_be_its_results(graph: v1.Graph) -> None:
    with v1.name_scope("layer") as scope:
        assert v1.identity(scalar("x"), name=scope).name == "layer:0"


def test_an_error_leaves_the_scope(graph: v1.Graph) -> None:
    with pytest.raises(ZeroDivisionError), v1.name_scope("a"):
        raise ZeroDivisionError
    assert scalar("x").name == "x:0"


def test_variables_are_named_in_scopes(graph: v1.Graph) -> None:
    with v1.name_scope("a"):
        assert [v1.Variable(1.0, name="w").name for _ in range(2)] == ["a/w:0", "a/w_1:0"]


def test_variables_are_named_in_scopes_where_ops_run() -> None:
    with v1.name_scope("a"), v1.name_scope("b") as scope:
        assert (scope, v1.Variable(1.0, name="w").name) == ("a/b/", "a/b/w:0")


def test_gradients_and_training_have_scopes(graph: v1.Graph) -> None:
    w = v1.Variable(2.0, name="w")
    (slope,) = v1.gradients(w * w, [w])
    step = v1.train.GradientDescentOptimizer(0.1).minimize(w * w)
    assert slope.name.startswith("gradients/")
    assert step.name == "GradientDescent"
    assert graph.get_operation_by_name("GradientDescent") is step


def test_slots_are_named_after_their_variables(graph: v1.Graph) -> None:
    w = v1.Variable(2.0, name="w")
    optimizer = v1.train.AdamOptimizer()
    with v1.name_scope("training"):
        optimizer.minimize(w * w)
    assert [optimizer.get_slot(w, name).name for name in ("m", "v")] == ["w/Adam:0", "w/Adam_1:0"]


# Finding


def test_every_operation_and_every_result_is_found_by_its_name(graph: v1.Graph) -> None:
    x = v1.placeholder(v1.float32, [4], name="x")
    w = v1.Variable(1.0, name="w")
    with v1.name_scope("s"):
        v1.split(x * w, 2)
    v1.group(x, w, name="both")
    for op in graph.get_operations():
        assert graph.get_operation_by_name(op.name) is op
        for i, tensor in enumerate(op.outputs):
            assert tensor.name == f"{op.name}:{i}"
            assert graph.get_tensor_by_name(tensor.name) is tensor
            assert tensor.op is op


def test_operations_come_in_an_order_in_which_they_can_run(graph: v1.Graph) -> None:
    x = v1.placeholder(v1.float32, [3])
    v1.gradients(v1.reduce_sum(v1.nn.softmax(x, name="p") * v1.Variable(2.0)), [x])
    visited = set()
    for op in graph.get_operations():
        assert all(tensor.op in visited for tensor in op.inputs)
        visited.add(op)


def test_an_operation_has_what_it_reads_and_makes(graph: v1.Graph) -> None:
    x, y = scalar("x"), scalar("y")
    z = v1.add(x, y, name="z")
    assert (z.op.name, z.op.type) == ("z", "add")
    assert [t.name for t in z.op.inputs] == ["x:0", "y:0"]
    assert z.op.outputs[0] is z
    assert x.op.type == "Placeholder"
    assert z.graph is graph
    assert z.op.origin is not None
    assert z.op.origin.file == __file__


def test_an_operation_has_what_must_run_before_it(graph: v1.Graph) -> None:
    w = v1.Variable(1.0)
    change = v1.assign_add(w, 1.0)
    with v1.control_dependencies([change]):
        after = scalar() * 2.0
    assert after.op.control_inputs == [change.op]


def test_a_graph_element_is_found_by_itself_or_by_name(graph: v1.Graph) -> None:
    x = scalar("x")
    w = v1.Variable(1.0, name="w")
    assert graph.as_graph_element("x:0") is x
    assert graph.as_graph_element("x") is x.op
    assert graph.as_graph_element(x) is x
    assert graph.as_graph_element(w).name == "w:0"


@pytest.mark.parametrize(
    ("element", "allowed", "error", "message"),
    [
        (3, {}, TypeError, "Can not convert a int into a Tensor or Operation"),
        ("image", {"allow_operation": False}, TypeError, "Can not convert a str into a Tensor"),
        ("images", {}, KeyError, "refers to an Operation not in the graph. Did you mean 'image'"),
        ("y:0", {}, KeyError, "refers to a Tensor which does not exist. The operation, 'y', does not exist"),
        ("image:1", {}, KeyError, "exists but only has 1 outputs"),
    ],
)
def test_elements_outside_of_the_graph_are_an_error(
    graph: v1.Graph, element: object, allowed: dict[str, bool], error: type[Exception], message: str
) -> None:
    scalar("image")
    with pytest.raises(error, match=message):
        graph.as_graph_element(element, **allowed)


def test_a_tensors_name_is_no_operations(graph: v1.Graph) -> None:
    scalar("x")
    with pytest.raises(ValueError, match="Name 'x:0' appears to refer to a Tensor, not a Operation"):
        graph.get_operation_by_name("x:0")


@pytest.mark.parametrize("name", ["y", "y:0"])
def test_an_unknown_name_is_neither_fetched_nor_fed(graph: v1.Graph, name: str) -> None:
    x, session = scalar("x"), v1.Session()
    with pytest.raises(ValueError, match=r"cannot be interpreted as a Tensor\..*The name 'y"):
        session.run(name)
    with pytest.raises(TypeError, match="Cannot interpret feed_dict key as Tensor: The name 'y"):
        session.run(x, {name: 1.0})


def test_an_operations_name_is_no_tensors(graph: v1.Graph) -> None:
    scalar("x")
    with pytest.raises(ValueError, match=r'must be of the form "<op_name>:<output_index>": "x:0"'):
        graph.get_tensor_by_name("x")


def test_in_a_function_tensors_have_no_operations_and_share_one_graph() -> None:
    def look(x: v1.Tensor) -> v1.Tensor:
        assert not hasattr(x, "op")
        assert x.graph is (x + 1).graph
        return x

    df.function(look)(df.constant(1.0))


# Collections


def test_a_collection_keeps_what_is_put_into_it(graph: v1.Graph) -> None:
    v1.add_to_collection("things", 1)
    v1.add_to_collection("things", 2)
    assert v1.get_collection("things") == [1, 2]
    assert v1.get_collection("nothing") == []


def test_a_collections_list_is_a_copy(graph: v1.Graph) -> None:
    v1.get_collection("things").append(1)
    assert v1.get_collection("things") == []


def test_variables_are_collected(graph: v1.Graph) -> None:
    with v1.name_scope("a"):
        w = v1.Variable(1.0)
    count = v1.Variable(0, trainable=False)
    assert [v.name for v in v1.global_variables()] == [w.name, count.name]
    assert [v.name for v in v1.get_collection(v1.GraphKeys.TRAINABLE_VARIABLES)] == [w.name]
    assert [v.name for v in v1.global_variables("a/")] == [w.name]


def test_a_variable_may_be_in_other_collections(graph: v1.Graph) -> None:
    local = v1.Variable(0, trainable=False, collections=[v1.GraphKeys.LOCAL_VARIABLES])
    assert v1.global_variables() == []
    assert [v.name for v in v1.get_collection(v1.GraphKeys.LOCAL_VARIABLES)] == [local.name]


def test_collections_are_changed_in_their_graph(graph: v1.Graph) -> None:
    v1.add_to_collections(["a", "b", "a"], 1)
    v1.add_to_collections("a", 2)
    v1.get_collection_ref("c").append(3)
    assert [v1.get_collection(name) for name in "abc"] == [[1, 2], [1], [3]]
    assert graph.get_all_collection_keys() == ["a", "b", "c"]
    graph.clear_collection("a")
    graph.clear_collection("nothing")
    assert v1.get_collection("a") == []
    for key, listed in (
        ("MODEL_VARIABLES", v1.model_variables),
        ("MOVING_AVERAGE_VARIABLES", v1.moving_average_variables),
    ):
        w = v1.Variable(1.0, collections=[getattr(v1.GraphKeys, key)])
        assert listed() == [w]


def test_a_collection_is_searched_by_a_regular_expression(graph: v1.Graph) -> None:
    for scope in ("first", "second"):
        with v1.variable_scope(scope):
            v1.get_variable("w", [])
            v1.get_variable("wide", [])
    v1.add_to_collection("variables", "nameless")
    names = {scope: [v.name for v in v1.global_variables(scope)] for scope in (".*/w:", "second/", "w", "")}
    assert names == {
        ".*/w:": ["first/w:0", "second/w:0"],
        "second/": ["second/w:0", "second/wide:0"],
        "w": [],
        "": ["first/w:0", "first/wide:0", "second/w:0", "second/wide:0"],
    }


def test_a_program_sets_attributes_of_a_graph_s_tensor(graph: v1.Graph) -> None:
    x = scalar("x")
    x.aliases = ["input"]  # type: ignore[attr-defined]  # any attribute
    assert graph.get_tensor_by_name("x:0").aliases == ["input"]
