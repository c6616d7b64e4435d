"""Recurrent networks of TensorFlow 1: cells, and loops that run them over the steps of sequences."""
