"""dualflow: operations that run now on NumPy, and the same Python compiled as a graph."""
