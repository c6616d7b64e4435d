"""Matrix products in machine code of our own, or NumPy's BLAS."""
