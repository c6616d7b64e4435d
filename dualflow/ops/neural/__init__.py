"""Ops of neural networks: activations, convolutions, pooling, normalisation, losses, samples of classes."""

from dualflow.ops.families import load_modules

load_modules(__name__, __path__)
