"""Constants of mathematics, and ``newaxis``."""

from __future__ import annotations

from typing import Final

import numpy as np

newaxis: Final = None
pi: Final = float(np.pi)
e: Final = float(np.e)
euler_gamma: Final = float(np.euler_gamma)
inf: Final = float(np.inf)
nan: Final = float(np.nan)
