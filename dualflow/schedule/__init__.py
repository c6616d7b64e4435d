"""Lowers a graph to a memory plan, loop nests, and statements of its program and kernels."""
