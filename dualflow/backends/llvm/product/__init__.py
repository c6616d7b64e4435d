"""Matrix products: the backend's own machine code, or NumPy's BLAS."""
