"""``case``: the first true predicate runs its function; errors for none or several, in both modes."""

import pytest

import dualflow as df
from dualflow.core.errors import InvalidArgumentError

SIGNS = [(-1.0, -1.0), (-1.0, 1.0), (1.0, -1.0), (1.0, 1.0)]


def chosen(x, y, **options):
    return df.case([(x > 0.0, lambda: x * 2.0), (y > 0.0, lambda: y * 3.0)], **options)


@pytest.mark.parametrize(("x", "y"), SIGNS)
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("has_default", [False, True])
def test_one_function_runs_or_an_error_reports_why_none(mode, x, y, exclusive, has_default):
    def f(x, y):
        options = {"default": lambda: df.constant(9.0)} if has_default else {}
        return chosen(x, y, exclusive=exclusive, **options)

    inputs = df.constant(x), df.constant(y)
    if exclusive and x > 0 and y > 0:
        with pytest.raises(InvalidArgumentError, match="several predicates"):
            mode(f)(*inputs)
    elif not has_default and x < 0 and y < 0:
        with pytest.raises(InvalidArgumentError, match="no predicate"):
            mode(f)(*inputs)
    else:
        assert float(mode(f)(*inputs)) == (2.0 if x > 0 else 3.0 if y > 0 else 9.0)


def test_gradients_flow_through_the_function_that_ran(mode):
    def slope(x, y):
        with df.GradientTape() as tape:
            tape.watch([x, y])
            z = chosen(x, y, exclusive=True)
        return tape.gradient(z, [x, y], unconnected_gradients="zero")

    assert [float(g) for g in mode(slope)(df.constant(-1.0), df.constant(1.0))] == [0.0, 3.0]


@pytest.mark.parametrize(
    "loop",
    [
        lambda x, back: df.while_loop(
            lambda i, y: i < 3, lambda i, y: [i + 1, y * x], [0, x], back_prop=back
        )[1],
        lambda x, back: df.map_fn(lambda y: y * x, df.stack([x, x]), back_prop=back),
        lambda x, back: df.scan(lambda a, y: a * y, df.stack([x, x]), back_prop=back),
        lambda x, back: df.foldl(lambda a, y: a * y, df.stack([x, x]), back_prop=back),
        lambda x, back: df.foldr(lambda a, y: a * y, df.stack([x, x]), back_prop=back),
    ],
    ids=["while_loop", "map_fn", "scan", "foldl", "foldr"],
)
def test_no_gradient_flows_through_a_loop_without_back_prop(mode, loop):
    def slope(x, back):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = loop(x, back)
        return y, tape.gradient(y, x)

    x = df.constant(2.0)
    value, gradient = mode(lambda x: slope(x, False))(x)
    same, flowing = mode(lambda x: slope(x, True))(x)
    assert gradient is None
    assert flowing is not None
    assert value.numpy().tolist() == same.numpy().tolist()
