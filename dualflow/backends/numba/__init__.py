"""Loop programs as plain Python source for ``numba.njit``: portable, readable, exportable."""
