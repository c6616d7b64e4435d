"""Conditionals, loops, maps and TensorArrays of traced functions, and their gradients."""
