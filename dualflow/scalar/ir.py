"""The scalar IR: ops on scalars, and functions of them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, Final

from dualflow.core.dtypes import DType
from dualflow.core.records import NamedTuple


class ScalarOp(Enum):
    """An op of the scalar IR. The operands of an op have one dtype, unless documented otherwise.

    The value is the name of the method that computes it, in the namespaces that :func:`evaluate` takes: the
    name of the NumPy function, if there is one.
    """

    CONSTANT = "constant"
    """The number ``attribute``."""
    INDEX = "index"
    """The element's position along axis ``attribute`` of the output, an int64."""
    CHECK = "check"
    """Stops the program with the message ``attribute`` unless its operand, a bool, is true. No result."""
    CAST = "cast"
    """The operand in another dtype."""
    BITCAST = "bitcast"
    """The bits of the operand as a number of another dtype of the same size."""
    SELECT = "where"
    """The second operand where the first, a bool, is true; the third elsewhere."""

    ADD = "add"
    SUBTRACT = "subtract"
    MULTIPLY = "multiply"
    DIVIDE = "divide"
    NEGATE = "negative"
    AND = "bitwise_and"
    OR = "bitwise_or"
    XOR = "bitwise_xor"
    NOT = "invert"
    SHIFT_LEFT = "left_shift"
    SHIFT_RIGHT = "right_shift"
    LESS = "less"
    LESS_EQUAL = "less_equal"
    GREATER = "greater"
    GREATER_EQUAL = "greater_equal"

    EQUAL = "equal"
    NOT_EQUAL = "not_equal"
    ISNAN = "isnan"
    ISINF = "isinf"
    ISFINITE = "isfinite"
    ABS = "abs"
    SIGN = "sign"
    COPYSIGN = "copysign"
    MAXIMUM = "maximum"
    MINIMUM = "minimum"
    FLOOR = "floor"
    CEIL = "ceil"
    TRUNC = "trunc"
    ROUND = "round"
    FLOOR_DIVIDE = "floor_divide"
    MOD = "mod"
    FMOD = "fmod"
    QUOTIENT = "quotient"
    """Integer division towards zero, by a divisor that is not 0, and not -1 for the smallest integer."""
    REMAINDER = "remainder"
    """The remainder of QUOTIENT, with the sign of the dividend."""
    FMA = "fma"
    """``x * y + z``, rounded once."""
    MULTIPLY_ADD = "multiply_add"
    """``x * y + z``, rounded once by processors that have an instruction for it."""
    SQRT = "sqrt"
    RSQRT = "rsqrt"
    POW = "pow"

    REAL = "real"
    IMAG = "imag"
    COMPLEX = "complex"
    """The complex number of two parts."""

    EXP = "exp"
    EXP2 = "exp2"
    EXPM1 = "expm1"
    LOG = "log"
    LOG2 = "log2"
    LOG10 = "log10"
    LOG1P = "log1p"
    LOGADDEXP = "logaddexp"
    SIGMOID = "sigmoid"
    SIN = "sin"
    COS = "cos"
    TAN = "tan"
    ASIN = "asin"
    ACOS = "acos"
    ATAN = "atan"
    ATAN2 = "atan2"
    SINH = "sinh"
    COSH = "cosh"
    TANH = "tanh"
    ASINH = "asinh"
    ACOSH = "acosh"
    ATANH = "atanh"
    ERF = "erf"
    ERFC = "erfc"
    NDTR = "ndtr"

    # Members are compared by identity; Enum's own hash computes that of the name at each lookup.
    __hash__ = object.__hash__


class Instruction(NamedTuple):
    """One instruction of a scalar function: an op, and the values that it reads.

    Attributes:
        op: what it computes.
        dtype: the dtype of its result; of a check, bool.
        operands: the numbers of the values that it reads: inputs first, then the results of instructions.
        attribute: a number for CONSTANT, an axis for INDEX, a message for CHECK, else None.
    """

    op: ScalarOp
    dtype: DType
    operands: tuple[int, ...] = ()
    attribute: Any = None


class ScalarFunction:
    """An immutable function of scalars in SSA form, pure except for its checks.

    Functions with equal instructions are equal.

    No two instructions are equal, and each is needed for a result or a check.

    Attributes:
        inputs: the dtypes of the inputs, which are values 0 to n - 1.
        instructions: in order of dependence. Instruction i is value n + i.
        results: the numbers of the values that it returns.
    """

    __slots__ = ("_hash", "_key", "inputs", "instructions", "results")

    def __init__(
        self, inputs: tuple[DType, ...], instructions: tuple[Instruction, ...], results: tuple[int, ...]
    ) -> None:
        self.inputs: Final = inputs
        self.instructions: Final = instructions
        self.results: Final = results
        chars = tuple([dtype.char for dtype in inputs])
        self._key = chars, tuple(map(instruction_key, instructions)), results
        self._hash = hash(self._key)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, ScalarFunction) and self._hash == other._hash and self._key == other._key

    def __hash__(self) -> int:
        return self._hash

    @property
    def dtypes(self) -> tuple[DType, ...]:
        """The dtypes of the results."""
        values = (*self.inputs, *[instruction.dtype for instruction in self.instructions])
        return tuple([values[number] for number in self.results])

    def returning(self, indices: Sequence[int]) -> ScalarFunction:
        """The function that returns only the results ``indices``, with the instructions that it needs."""
        return pruned(self.inputs, self.instructions, [self.results[i] for i in indices])

    def uses(self, op: ScalarOp) -> bool:
        """Whether one of the instructions is this op."""
        return any(instruction.op is op for instruction in self.instructions)

    def reads(self) -> frozenset[int]:
        """The numbers of the inputs that a result or a check depends on."""
        operands = {number for instruction in self.instructions for number in instruction.operands}
        return frozenset(n for n in operands.union(self.results) if n < len(self.inputs))

    def __str__(self) -> str:
        count = len(self.inputs)
        head = ", ".join([f"v{i}: {dtype.name}" for i, dtype in enumerate(self.inputs)])
        lines = [f"({head}) -> {', '.join([f'v{number}' for number in self.results])}"]
        for i, (op, dtype, operands, attribute) in enumerate(self.instructions, count):
            shown = [f"v{number}" for number in operands]
            if op is ScalarOp.CONSTANT:
                call = f"constant {attribute!r}"
            else:
                call = f"{op.value}({', '.join(shown if attribute is None else [*shown, repr(attribute)])})"
            lines.append(f"    {call}" if op is ScalarOp.CHECK else f"    v{i}: {dtype.name} = {call}")
        return "\n".join(lines)

    __repr__ = __str__


def instruction_key(instruction: Instruction) -> tuple[Any, ...]:
    """A hashable key of an instruction, in which 0.0 differs from -0.0, and nan equals nan."""
    op, dtype, operands, attribute = instruction
    return op, dtype.char, operands, repr(attribute) if op is ScalarOp.CONSTANT else attribute


def pruned(
    inputs: tuple[DType, ...], instructions: Sequence[Instruction], results: Sequence[int]
) -> ScalarFunction:
    """The scalar function of those ``instructions`` that a result or a check needs."""
    count, needed = len(inputs), set(results)
    for number in range(count + len(instructions) - 1, count - 1, -1):
        instruction = instructions[number - count]
        if number in needed or instruction.op is ScalarOp.CHECK:
            needed.update((number, *instruction.operands))
    renumbered = {number: number for number in range(count)}
    kept: list[Instruction] = []
    for number, instruction in enumerate(instructions, count):
        if number in needed:
            renumbered[number] = count + len(kept)
            operands = tuple([renumbered[n] for n in instruction.operands])
            kept.append(instruction._replace(operands=operands))
    return ScalarFunction(inputs, tuple(kept), tuple([renumbered[n] for n in results]))
