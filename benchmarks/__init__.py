"""Benchmarks of eager code, graphs and NumPy: ``python -m benchmarks`` at the project's root.

``workloads`` defines the computations, ``steady`` measures the time and memory of calls after compilation,
``first_call`` measures compilation in fresh processes, ``backends`` compares the Numba backend with the
default, ``pipelines`` times datasets, ``processes`` runs a measurement in a new process, ``report`` writes
tables.
"""
