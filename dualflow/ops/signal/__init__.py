"""Signals: Fourier and cosine transforms, frames, windows and spectra."""
