"""Finding out what a program does: ``df.debugging``."""

from dualflow.function.numerics import disable_check_numerics as disable_check_numerics
from dualflow.function.numerics import enable_check_numerics as enable_check_numerics
from dualflow.function.stepping import Step as Step
