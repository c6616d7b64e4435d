"""A plugin for pytest: names that NumPy has dropped since the libraries under test were released."""

import numpy as np

np.int = int
np.product = np.prod
