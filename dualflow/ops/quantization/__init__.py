"""Quantization ops: quantize, dequantize and fake quantization."""
