"""Eager against graph against plain NumPy on this machine: ``python -m benchmarks`` at the project's root.

``workloads`` says what is computed, ``steady`` times calls once everything is compiled and measures their
memory, ``first_call`` measures what compiling costs in fresh processes, ``backends`` compares
the Numba backend with the default, ``pipelines`` times datasets, ``report`` writes tables.
"""
