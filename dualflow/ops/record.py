"""The op record, and the registry of all op records.

A record has: how the op's result is typed (``infer``), how it runs now (``kernel``), how a graph compiles it
(``kind``), how gradients flow (``vjp``) and where it may be tested (``samples``).
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.composite_rules import CompositeError
from dualflow.core.convert import as_array
from dualflow.core.dispatch import AbstractComposite, AbstractTensor, AbstractVariable, Engine
from dualflow.core.dtypes import (
    DType,
    as_dtype,
    bool_,
    complex64,
    float32,
    float64,
    int32,
    promote,
    uncommon_in_use,
)
from dualflow.core.errors import DTypeError, InternalError, InvalidArgumentError
from dualflow.core.records import dataclass
from dualflow.core.registered_conversions import CONVERSIONS, registered
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.ops.families import load_families
from dualflow.ops.op_kinds import Elementwise
from dualflow.ops.widening import reject_strings, run_widened, widens
from dualflow.sizes.abstract_size import AbstractSize, symbolic_sizes_enabled

if TYPE_CHECKING:
    from dualflow.ops.batching_rules import BatchingRule
    from dualflow.ops.op_kinds import OperandAttributes, OpKind
    from dualflow.ops.samples import Sample
    from dualflow.ops.tensor import Tensor

Specs = tuple[TensorSpec, ...]
Infer = Callable[..., "TensorSpec | Specs"]


class Promotion(Enum):
    """How the inputs of an op are promoted to a common dtype."""

    NONE = "each input keeps its own dtype"
    TOGETHER = "tensors promote to a common dtype, Python and NumPy values adapt"
    FLOAT = "tensors promote to a common dtype, Python and NumPy values adapt, and integers become float32"
    DIVIDE = (
        "tensors promote to a common dtype, Python and NumPy values adapt, and integers become float64 "
        "(of up to 16 bits: float32)"
    )
    AFTER_FIRST = "the first input keeps its dtype, the others promote together"


class Effect(Enum):
    """The side effect of an op. Ops with effects are neither removed nor merged, and keep their order."""

    PYTHON = "calls Python"
    PRINT = "writes output"
    COLLECTIVE = "exchanges data with other workers"
    RANDOM = "advances a generator"
    CHECK = "may stop the program"
    ASSIGN = "assigns a variable"
    INSIDE = "has the effects of its bodies"


COMPILED_ABOVE: Final = 1 << 15
"""The number of elements of an input above which most eager ops run their compiled kernel."""

HOST_EFFECTS: Final = (Effect.PYTHON, Effect.PRINT, Effect.CHECK, Effect.COLLECTIVE)
"""Effects of ops that always run on the host, without soft placement too, as no device supports them."""


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """The definition of one op, which all engines read.

    All functions of a record and of its kind take their arguments in one order: what they compute with or for
    (``m``, ``read``, ``add``, ``i``, ``needed``), the cotangent ``g`` and the output ``out``, the inputs, and
    the attributes by name.

    Attributes:
        name: unique in the registry.
        doc: one line.
        infer: ``infer(*specs, **attrs)`` returns the output's spec, or a tuple of them; it raises
            InvalidArgumentError for shapes and DTypeError for dtypes the op can't take.
        kernel: ``kernel(*arrays, **attrs)`` in NumPy; never writes to its inputs.
        kind: how a graph lowers it.
        vjp: a tuple with a rule ``rule(g, out, *inputs, **attrs)``, written in ops, for each input, None for
            an input without a gradient; or one ``rule(i, g, out, *inputs, **attrs)`` for any input ``i``; or
            None for an op that is not differentiable.
        joint_vjp: instead of ``vjp``, one rule for the gradients of all inputs, which share work:
            ``joint_vjp(needed, g, out, *inputs, **attrs)`` returns a cotangent for each input, or None if
            ``needed`` (a tuple of bools) is false for it, or it has no gradient. If the op has several
            outputs, ``g`` is a tuple, with None for outputs without a cotangent.
        batching_rule: how its attributes change for inputs with one more axis, the batch axis; None if this
            follows from its kind, or if batch elements are computed one by one.
        promotion: how inputs agree on a dtype before the op sees them.
        samples: inputs that the op matrix tests it with.
        outputs: the number of outputs; None if it depends on the attributes.
        effect: the side effect, if it has one; see also :attr:`dualflow.graph.ir.Node.effect`.
        strings: whether the kernel takes strings too; those of the kinds that only move elements do.
        prune_outputs: ``prune_outputs(needed, **attrs)`` returns the attributes with which the op computes
            only the outputs that are ``needed`` (a tuple of bools, some of them false), or None if it always
            computes all. The bits are the same, except where LAPACK has a faster routine for fewer outputs.
        required_shapes: ``required_shapes(*shapes, **attrs)`` returns the shapes that the inputs must have,
            for inputs of ``shapes`` with sizes that are known only at run time: in place of a size the one
            that it must be equal to. The program compares them. None if sizes can be compared by no such
            rule.
        operand_attributes: the attributes whose integers may come from operands; None if they are numbers.
        compiled_above: the number of elements of an input above which the eager op runs its compiled kernel,
            if it has one for these inputs.
        small: ``small(*arrays, **attrs)`` returns whether the eager op runs its NumPy kernel for inputs of
            which one has more elements than ``compiled_above``; None if their number alone decides.
    """

    name: str
    doc: str
    infer: Infer
    kernel: Callable[..., Any]
    kind: OpKind
    vjp: tuple[Callable[..., Any] | None, ...] | Callable[..., Any] | None = None
    joint_vjp: Callable[..., Sequence[Any]] | None = None
    batching_rule: BatchingRule | None = None
    promotion: Promotion = Promotion.NONE
    samples: tuple[Sample, ...] = ()
    outputs: int | None = 1
    effect: Effect | None = None
    strings: bool = False
    prune_outputs: Callable[..., dict[str, Any] | None] | None = None
    required_shapes: Callable[..., Sequence[Sequence[int]]] | None = None
    operand_attributes: OperandAttributes | None = None
    compiled_above: int = COMPILED_ABOVE
    small: Callable[..., bool] | None = None

    @entry
    def __reduce__(self) -> tuple[Any, ...]:
        """A registered op by its name, another by its module: pickle could not look up their functions."""
        if REGISTRY.get(self.name) is self:
            return _registered, (self.name,)
        for name, module in list(sys.modules.items()):
            if name.startswith("dualflow."):
                for attribute, value in list(vars(module).items()):
                    if value is self:
                        return _constant, (name, attribute)
        raise DTypeError(
            f"The op {self.name} can't be pickled: it is not registered; register it with register(op)."
        )

    def prepare(self, inputs: Sequence[Any], engine: Engine) -> tuple[Any, ...]:
        """Values of any kind as tensors of ``engine``, promoted as the op requires."""
        return _prepare(self.promotion, inputs, engine)

    def run_on(self, engine: Engine, inputs: Sequence[Any], attrs: dict[str, Any]) -> Any:
        """Convert the inputs to tensors, promote their dtypes, and run the op on ``engine``.

        Ragged and sparse tensors are mapped element by element.

        Raises:
            DTypeError: strings, which the op does not take.
        """
        try:
            tensors = _prepare(self.promotion, inputs, engine)
        except CompositeError as error:
            if type(self.kind) is not Elementwise:
                raise
            return error.composite.__map_elements__(self, inputs, attrs)
        if uncommon_in_use:
            if any(x.dtype.is_string for x in tensors):
                reject_strings(self, tensors)
            elif any(x.dtype.narrow for x in tensors) and widens(self):
                return run_widened(self, REGISTRY["cast"], tensors, attrs, engine)
        return engine.run(self, tensors, attrs)

    def specs(self, inputs: Sequence[TensorSpec], attrs: dict[str, Any]) -> Specs:
        """The output specs; errors name the op and its inputs."""
        try:
            outputs = self.infer(*inputs, **attrs)
        except (InvalidArgumentError, DTypeError) as error:
            described = type(error)(f"{self.name}({self._shown(inputs, attrs)}): {error}")
            for note in getattr(error, "__notes__", ()):  # the line of an op in a body
                described.add_note(note)
            raise described from None
        return outputs if isinstance(outputs, tuple) else (outputs,)

    def cotangent(self, i: int, g: Any, out: Any, inputs: Sequence[Any], attrs: dict[str, Any]) -> Any:
        """The cotangent of input ``i`` given ``g``, the output's; None where no gradient flows."""
        rule = self.vjp[i] if isinstance(self.vjp, tuple) else self.vjp
        if rule is None:
            return None
        if isinstance(self.vjp, tuple):
            return rule(g, out, *inputs, **attrs)
        return rule(i, g, out, *inputs, **attrs)

    def differentiable(self, i: int) -> bool:
        """Whether a gradient can reach input ``i``."""
        if self.vjp is None:
            return self.joint_vjp is not None
        return not isinstance(self.vjp, tuple) or self.vjp[i] is not None

    def _shown(self, inputs: Sequence[TensorSpec], attrs: dict[str, Any]) -> str:
        """The inputs and the attributes, but for those of several lines, such as graphs."""
        attributes = [f"{k}={v!r}" for k, v in attrs.items()]
        return ", ".join([*map(str, inputs), *[text for text in attributes if "\n" not in text]])

    def __repr__(self) -> str:
        return f"<op {self.name}>"


REGISTRY: dict[str, Op] = {}


@entry
def _registered(name: str) -> Op:
    if name not in REGISTRY:
        load_families()
    op = REGISTRY.get(name)
    if op is None:
        raise InvalidArgumentError(
            f"What was pickled uses the op {name}, which is not registered here; import the module that "
            "defines it, then unpickle."
        )
    return op


def _constant(module: str, attribute: str) -> Any:
    return getattr(import_module(module), attribute)


def register(op: Op) -> Op:
    """Add ``op`` to the registry. An op that nothing can test can't register."""
    if op.name in REGISTRY:
        raise InternalError(f"op {op.name} is registered twice")
    if not op.samples and op.effect is None:
        raise InternalError(f"op {op.name} has no samples to test it with")
    REGISTRY[op.name] = op
    return op


def promote_together(*values: Any) -> tuple[Tensor, ...]:
    """The values as tensors of their common dtype; Python's and NumPy's values are weakly typed."""
    return _prepare(Promotion.TOGETHER, values, dispatch.current())


def _prepare(promotion: Promotion, inputs: Sequence[Any], engine: Engine) -> tuple[Any, ...]:
    if symbolic_sizes_enabled:
        inputs = _with_adapted_sizes(promotion, inputs)
    values = [_as_tensor(x, engine) for x in inputs]
    count = len(values) if promotion is Promotion.NONE else 1 if promotion is Promotion.AFTER_FIRST else 0
    kept = [x if isinstance(x, AbstractTensor) else engine.constant(as_array(x)) for x in values[:count]]
    if promotion is Promotion.NONE:
        return tuple(kept)
    others = values[count:]
    target = _common_dtype(promotion, others)
    return (
        *kept,
        *[
            x if isinstance(x, AbstractTensor) and x.dtype is target else _as_dtype(x, target, engine)
            for x in others
        ],
    )


def _with_adapted_sizes(promotion: Promotion, inputs: Sequence[Any]) -> Sequence[Any]:
    """``inputs`` with sizes of a trace as tensors, of the dtype of the tensors they are combined with."""
    for x in inputs:
        if isinstance(x, AbstractSize):
            break
    else:
        return inputs
    keep = _KEPT.get(promotion, 0)
    others = [] if keep is None else inputs[keep:]
    strong = [x.dtype for x in others if isinstance(x, _TENSORS) and not isinstance(x, AbstractSize)]
    target = functools.reduce(promote, strong) if strong else bool_
    return [
        x if not isinstance(x, AbstractSize) else _adapted(x, target, as_is=keep is None or i < keep)
        for i, x in enumerate(inputs)
    ]


def _adapted(x: Any, dtype: DType, *, as_is: bool) -> Any:
    """A size, or a float computed from sizes, in the form that ops combine with tensors of ``dtype``."""
    if as_is or dtype.is_bool:
        return x.as_tensor()
    if isinstance(x, float) and not dtype.is_inexact:
        return float(x)
    return x.with_dtype(dtype)


_KEPT: Final = {Promotion.NONE: None, Promotion.AFTER_FIRST: 1}
_TENSORS: Final = (AbstractTensor, AbstractVariable, AbstractComposite)
_LISTS: Final = (list, tuple)


def _as_tensor(x: Any, engine: Engine) -> Any:
    """Lift a tensor or variable to ``engine``; returns NumPy and Python values as they are."""
    if isinstance(x, AbstractTensor):
        return engine.lift(x)
    if isinstance(x, AbstractVariable):
        return engine.read(x)
    if isinstance(x, _LISTS) and holds_tensors(x):
        return engine.apply(REGISTRY["stack"], tuple(x), {"axis": 0})
    if isinstance(x, AbstractComposite):
        return engine.lift(x.__as_tensor__())
    if CONVERSIONS and (tensor := registered(x)) is not x:
        return _as_tensor(tensor, engine)
    return x


def holds_tensors(value: list[Any] | tuple[Any, ...]) -> bool:
    """Whether these nested lists contain a tensor or variable."""
    return any(isinstance(x, _TENSORS) or (isinstance(x, _LISTS) and holds_tensors(x)) for x in value)


def is_raw(x: Any) -> bool:
    """Whether ``x`` is a NumPy or Python value rather than a tensor."""
    return not isinstance(x, AbstractTensor)


def _as_dtype(x: Any, dtype: DType, engine: Engine) -> Any:
    if is_raw(x):
        return engine.constant(operand(x, dtype))
    return x if x.dtype is dtype else engine.apply(REGISTRY["cast"], (x,), {"dtype": dtype})


def operand(value: Any, dtype: DType) -> np.ndarray[Any, Any]:
    """A NumPy or Python value as an array of the dtype of the tensor that it is combined with.

    Raises:
        InvalidArgumentError: an integer outside of an integer dtype.
    """
    kind = type(value)
    if kind is int and dtype.is_integer and not 0 <= value < 128 and not dtype.min <= value <= dtype.max:
        raise InvalidArgumentError(f"{value} is outside of {dtype.name}; cast the tensor with df.cast first.")
    if (kind is int and not dtype.is_string) or (kind is float and dtype.is_inexact):
        return np.array(value, dtype.dtype)
    if dtype.is_integer or kind is bool:
        value = as_array(value) if not isinstance(value, _NUMPY) else value
        _check_range(value, dtype)
    return as_array(value, dtype)


def _check_range(array: Any, dtype: DType) -> None:
    """Raise an error for integers that ``dtype`` can't represent."""
    if array.dtype is dtype.dtype or np.can_cast(array.dtype, dtype.dtype) or not array.size:
        return
    low, high = int(array.min()), int(array.max())
    if low < dtype.min or high > dtype.max:
        outside = low if low < dtype.min else high
        raise InvalidArgumentError(
            f"{outside} is outside of {dtype.name}; cast the tensor with df.cast first."
        )


def _own_dtype(value: Any) -> DType:
    """The dtype of a NumPy or Python value on its own."""
    if type(value) is float:
        return float32
    if type(value) is int and -(1 << 31) <= value < 1 << 31:
        return int32
    return as_dtype(value.dtype if isinstance(value, _NUMPY) else as_array(value).dtype)


def _common_dtype(promotion: Promotion, values: Sequence[Any]) -> DType:
    tensors = [x.dtype for x in values if isinstance(x, AbstractTensor)]
    strong = tensors or [as_dtype(x.dtype) for x in values if isinstance(x, _NUMPY)]
    target: DType | None = None
    for dtype in strong:
        if dtype is not target:
            target = dtype if target is None else promote(target, dtype)
    for x in values if len(tensors) < len(values) else ():
        if is_raw(x) and not (type(x) is int and target is not None and not target.is_bool):
            target = _adapt(target, _own_dtype(x))
    assert target is not None, "an op that promotes has inputs"
    return _in_floats(promotion, target)


_NUMPY: Final = (np.ndarray, np.generic)
_RANK: Final = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3, "O": 4}


def _adapt(target: DType | None, own: DType) -> DType:
    """The common dtype of a tensor and a raw value: ``target``, unless ``own`` is of a higher kind."""
    if target is not None and target.is_string is not own.is_string:
        promote(target, own)
    if target is None or _RANK[own.kind] > _RANK[target.kind]:
        return promote(target, complex64) if own.is_complex and target is not None else own
    return target


def _in_floats(promotion: Promotion, dtype: DType) -> DType:
    if dtype.is_inexact or dtype.is_string or promotion in (Promotion.TOGETHER, Promotion.AFTER_FIRST):
        return dtype
    wide = promotion is Promotion.DIVIDE and dtype.size > 2
    return float64 if wide else float32
