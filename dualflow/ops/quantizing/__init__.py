"""Quantization: floats as integers of few bits and back, and its rounding errors."""
