"""The standard's Fourier transforms: ``dualflow.array_api.fft``."""
