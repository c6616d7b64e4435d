"""Floats as integers of few bits and back, and the rounding that this does to them."""
