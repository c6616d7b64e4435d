"""The standard's constants."""

import math
from typing import Final

e: Final = math.e
inf: Final = math.inf
nan: Final = math.nan
pi: Final = math.pi
