"""Counting: how often integers, pairs of them, or numbers in an interval occur."""

from dualflow.ops.families import load_modules

load_modules(__name__, __path__)
