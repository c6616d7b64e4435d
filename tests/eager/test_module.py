"""Modules find their variables."""

import dualflow as df


class Dense(df.Module):
    def __init__(self, n):
        super().__init__()
        self.w = df.Variable(df.ones([n]), name="w")
        self.b = df.Variable(0.0, name="b", trainable=False)


class Net(df.Module):
    def __init__(self):
        super().__init__(name="my_net")
        self.layers = [Dense(1), Dense(2)]
        self.table = {"z": df.Variable(1.0, name="z"), "a": (df.Variable(2.0, name="a"),)}
        self.scale = df.Variable(3.0, name="scale")
        self.shared = self.layers[0]
        self.note = "text"


def names(variables):
    return [v.name.removesuffix(":0") for v in variables]


def test_own_variables_come_first_then_those_of_submodules():
    net = Net()
    assert names(net.variables) == ["scale", "a", "z", "b", "w", "b", "w"]
    assert names(net.trainable_variables) == ["scale", "a", "z", "w", "w"]
    assert names(net.non_trainable_variables) == ["b", "b"]


def test_submodules_are_found_once():
    net = Net()
    assert net.submodules == tuple(net.layers)


def test_names():
    assert Net().name == "my_net"
    assert Dense(1).name == "dense"
    with Net().name_scope as scope:
        assert scope == "my_net/"


def test_cycles_end():
    a, b = Dense(1), Dense(2)
    a.other, b.other = b, a
    loop = [a.w]
    loop.append(loop)
    a.loop = loop
    assert len(a.variables) == 4
    assert a.submodules == (b,)


def test_a_subclass_may_forget_to_call_init():
    class Bare(df.Module):
        def __init__(self):
            self.v = df.Variable(1.0)

    assert len(Bare().variables) == 1
    assert Bare().name == "bare"


def test_no_dependency_values_are_found_but_not_saved():
    module = df.Module()
    module.w, module.copies = df.Variable(1.0), module._no_dependency({"w": df.Variable(2.0)})
    assert sorted(float(v) for v in module.variables) == [1.0, 2.0]
    assert set(module.copies) == {"w"}
    children = df.Module._trackable_children(module)
    assert "w" in children
    assert "copies" not in children
    module.copies = {}
    assert "copies" in df.Module._trackable_children(module)
