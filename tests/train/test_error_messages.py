"""Errors of checkpoints: each states what is wrong and what to do."""

from __future__ import annotations

import re
import traceback
from pathlib import Path
from typing import Any

import pytest

import dualflow as df
import dualflow.eager as tfe
from dualflow.compat import v1
from dualflow.core.errors import (
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    NotRestoredError,
)

PACKAGE = str(Path(df.__file__).parent)


class Holder:
    def __init__(self, **things: Any) -> None:
        vars(self).update(things)


class Odd(Holder):
    def get_state(self) -> Any:
        return {1, 2}

    def set_state(self, state: Any) -> None:
        raise NotImplementedError


def saved(tmp: Path, **things: Any) -> str:
    return df.train.Checkpoint(**things).save(tmp / "c")


def restored(tmp: Path, saved_things: dict[str, Any], **things: Any) -> Any:
    return df.train.Checkpoint(**things).restore(saved(tmp, **saved_things))


def one(value: Any = 1.0, **options: Any) -> df.Variable:
    return df.Variable(value, **options)


def in_graph(action: Any) -> Any:
    with v1.Graph().as_default(), v1.Session() as session:
        v = v1.get_variable("v", initializer=1.0)
        session.run(v.initializer)
        return action(session, v)


def many_misfits(tmp: Path) -> Any:
    restored(tmp, {"v": [one() for _ in range(8)]}, v=[one([1.0]) for _ in range(8)])


CASES: dict[str, tuple[Any, type[Exception], str]] = {
    "a number is no variable": (
        lambda tmp: df.train.Checkpoint(step=3),
        InvalidArgumentError,
        "A checkpoint saves variables and the objects that hold them, and step is 3: make it a df.Variable, "
        "or leave it out.",
    ),
    "a root that can't hold any": (
        lambda tmp: df.train.Checkpoint("net"),
        InvalidArgumentError,
        "and the root is 'net': make it a df.Variable, or leave it out.",
    ),
    "a variable as the root": (
        lambda tmp: df.train.Checkpoint(one()),
        InvalidArgumentError,
        "The root of a checkpoint must be an object that holds variables. Pass a variable by name: "
        "df.train.Checkpoint(v=v).",
    ),
    "two objects of one name": (
        lambda tmp: df.train.Checkpoint(Holder(w=one()), w=one()),
        InvalidArgumentError,
        "Cannot create a Checkpoint with keyword argument w: the root has another object of that name.",
    ),
    "keys that are one name": (
        lambda tmp: saved(tmp, d={"1": one(), 1: one()}),
        InvalidArgumentError,
        "A dict has the keys '1' and 1, which are one name in a checkpoint: change one.",
    ),
    "a state that is not JSON": (
        lambda tmp: saved(tmp, i=Odd()),
        DTypeError,
        "Odd.get_state() returned {1, 2}, which is not JSON (Object of type set is not JSON serializable): "
        "the state of an object may have numbers, strings, lists and dicts; keep arrays in variables.",
    ),
    "a save in a function": (
        lambda tmp: df.function(lambda: df.train.Checkpoint(v=one()).save(tmp / "c"))(),
        FailedPreconditionError,
        "Checkpoint.save() counts and names checkpoints, which a graph can't do: call it outside of the "
        "df.function, or use Checkpoint.write() in it, which writes to one path.",
    ),
    "a restore in a function": (
        lambda tmp: df.function(lambda: df.train.Checkpoint().restore(str(tmp)))(),
        FailedPreconditionError,
        "A checkpoint can be restored only outside of functions and graphs: call restore() before the "
        "df.function.",
    ),
    "a write in a graph": (
        lambda tmp: in_graph(lambda session, v: df.train.Checkpoint(v=v).write(tmp / "c")),
        FailedPreconditionError,
        "Checkpoint.write() can't be recorded in an explicit graph: save with df.compat.v1.train.Saver, "
        "which takes a session.",
    ),
    "a graph's variable outside of it": (
        lambda tmp: df.train.Checkpoint(net=[in_graph(lambda session, v: v)]).write(tmp / "c"),
        FailedPreconditionError,
        "net/0 is v:0, a variable of an explicit graph: sessions hold its values. Save and restore them with "
        "df.compat.v1.train.Saver, which takes a session.",
    ),
    "no checkpoint": (
        lambda tmp: df.train.Checkpoint().restore(tmp / "no" / "c-1"),
        NotFoundError,
        "There is no checkpoint at TMP/no/c-1. save() returns the path, and "
        "df.train.latest_checkpoint(folder) finds the last one.",
    ),
    "a path without its number": (
        lambda tmp: saved(tmp, v=one()) and df.train.Checkpoint().restore(tmp / "c"),
        NotFoundError,
        "There is no checkpoint at TMP/c. In its folder there is c-1.",
    ),
    "a folder of checkpoints": (
        lambda tmp: saved(tmp, v=one()) and df.train.Checkpoint().restore(tmp),
        NotFoundError,
        "There is no checkpoint at TMP. It is a folder of checkpoints: take the path from "
        "df.train.latest_checkpoint.",
    ),
    "another shape": (
        lambda tmp: restored(tmp, {"net": Holder(w=one([1.0, 2.0]))}, net=Holder(w=one(name="w"))),
        InvalidArgumentError,
        "The checkpoint TMP/c-1 does not fit, and nothing has changed:\n    net/w is float32 of shape (2,), "
        "and "
        "the variable w:0 is float32 of shape ()",
    ),
    "another dtype": (
        lambda tmp: restored(tmp, {"v": one()}, v=one(1, name="step")),
        InvalidArgumentError,
        "v is float32 of shape (), and the variable step:0 is int32 of shape ()",
    ),
    "many other shapes": (
        many_misfits,
        InvalidArgumentError,
        "    v/4 is float32 of shape (), and the variable Variable:0 is ",
    ),
    "how many more": (many_misfits, InvalidArgumentError, "\n    and 3 more"),
    "a value that was never restored": (
        lambda tmp: restored(tmp, {"a": one(), "b": one()}, a=one()).assert_consumed(),
        NotRestoredError,
        "1 values of the checkpoint are deferred, since their objects don't exist: b. Names are paths from "
        "the checkpoint's root: give its objects the same names as when it was saved, or leave the assertion "
        "out.\n"
        "<CheckpointLoadStatus of TMP/c-1\n  restored: save_counter, a\n  pending: b>",
    ),
    "a value with something else in its place": (
        lambda tmp: restored(tmp, {"a": one()}, a=[one()]).assert_consumed(),
        NotRestoredError,
        "1 values of the checkpoint can't be taken by the objects at their paths: a.",
    ),
    "an object without a value": (
        lambda tmp: restored(tmp, {"a": one()}, a=one(), b=[one()]).assert_existing_objects_matched(),
        NotRestoredError,
        "1 objects have no value in the checkpoint: b/0.",
    ),
    "nothing was restored": (
        lambda tmp: df.train.Checkpoint(b=one()).read(saved(tmp, a=one())).assert_nontrivial_match(),
        NotRestoredError,
        "Nothing of the checkpoint was restored.\n<CheckpointLoadStatus of TMP/c-1\n  pending: a\n"
        "  not in the checkpoint: b>",
    ),
    "no path was given": (
        lambda tmp: df.train.Checkpoint(b=one()).restore(None).assert_consumed(),
        NotRestoredError,
        "No checkpoint specified (save_path=None); nothing is being restored.",
    ),
    "a folder that is a file": (
        lambda tmp: (tmp / "f").write_text("x") and df.train.Checkpoint(v=one()).write(tmp / "f" / "c"),
        FailedPreconditionError,
        "Saving the checkpoint TMP/f/c failed: [Errno 20] Not a directory: 'TMP/f/c'. Earlier "
        "checkpoints are unchanged.",
    ),
    "none to keep": (
        lambda tmp: df.train.CheckpointManager(df.train.Checkpoint(), tmp, max_to_keep=0),
        InvalidArgumentError,
        "Expected a positive integer or `None` for `max_to_keep`, got 0.",
    ),
    "an interval without a counter": (
        lambda tmp: df.train.CheckpointManager(df.train.Checkpoint(), tmp, 1, checkpoint_interval=2),
        InvalidArgumentError,
        "`step_counter` should be passed if `checkpoint_interval` is not None: a variable that counts the "
        "steps.",
    ),
    "times and paths that differ": (
        lambda tmp: v1.train.update_checkpoint_state(tmp, "c", all_model_checkpoint_timestamps=[1.0, 2.0]),
        InvalidArgumentError,
        "There are 1 checkpoints and 2 timestamps: give one for each.",
    ),
    "an array that is not there": (
        lambda tmp: df.train.load_variable(saved(tmp, v=one()), "w"),
        NotFoundError,
        "Key w not found in checkpoint TMP/c-1, whose first names are "
        "save_counter/.ATTRIBUTES/VARIABLE_VALUE, "
        "v/.ATTRIBUTES/VARIABLE_VALUE; df.train.list_variables has all.",
    ),
    "a saver of nothing": (
        lambda tmp: v1.train.Saver(),
        FailedPreconditionError,
        "When eager execution is enabled, `var_list` must specify a list or dict of variables to save.",
    ),
    "a saver of an empty graph": (
        lambda tmp: in_graph(lambda session, v: v1.train.Saver([])),
        InvalidArgumentError,
        "No variables to save: create them before the Saver, or give it a list or dict of variables.",
    ),
    "a saver of numbers": (lambda tmp: tfe.Saver([3]), DTypeError, "A Saver saves variables, and got 3."),
    "two variables of one name": (
        lambda tmp: tfe.Saver([one(name="x"), one(name="x")]),
        InvalidArgumentError,
        "At least two variables have the same name: x. Give the Saver a dict, with a name for each.",
    ),
    "no session": (
        lambda tmp: in_graph(lambda session, v: v1.train.Saver().save(None, tmp / "m")),
        DTypeError,
        "'sess' must be a Session, not None. The variables belong to a graph: pass the session that holds "
        "their values.",
    ),
    "a state file elsewhere": (
        lambda tmp: v1.train.Saver([one()]).save(None, tmp / "m", latest_filename="a/b"),
        InvalidArgumentError,
        "'latest_filename' must not contain path components, and is 'a/b': the file is in the "
        "checkpoint's folder.",
    ),
    "a step that is no number": (
        lambda tmp: tfe.Saver([one()]).save(tmp / "m", global_step="five"),
        DTypeError,
        "`global_step` must be a number or a variable that holds it, not 'five'.",
    ),
    "a saver without a path": (
        lambda tmp: v1.train.Saver([one()]).restore(None, None),
        InvalidArgumentError,
        "Can't load save_path when it is None: df.train.latest_checkpoint returns None where there is no "
        "checkpoint.",
    ),
    "a saver without a checkpoint": (
        lambda tmp: tfe.Saver([one()]).restore(tmp / "m"),
        InvalidArgumentError,
        "The passed save_path is not a valid checkpoint: There is no checkpoint at TMP/m.",
    ),
    "a name that was not saved": (
        lambda tmp: tfe.Saver([one(name="b")]).restore(tfe.Saver([one(name="a")]).save(tmp / "m")),
        NotFoundError,
        "Key b not found in checkpoint TMP/m, whose first names are a: save and restore the same variables, "
        "or give the Saver a dict of them by the checkpoint's names.",
    ),
    "a saved value of another shape": (
        lambda tmp: tfe.Saver([one([1.0], name="a")]).restore(tfe.Saver([one(name="a")]).save(tmp / "m")),
        InvalidArgumentError,
        "a is float32 of shape (), and the variable a:0 is float32 of shape (1,)",
    ),
}


@pytest.mark.parametrize(("act", "kind", "text"), CASES.values(), ids=CASES)
def test_an_error_reports_what_to_do(act: Any, kind: type[Exception], text: str, tmp_path: Path) -> None:
    with pytest.raises(kind, match=re.escape(text.replace("TMP", str(tmp_path)))) as caught:
        act(tmp_path)
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert not any(frame.filename.startswith(PACKAGE) for frame in frames)
