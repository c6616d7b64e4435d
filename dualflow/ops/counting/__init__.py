"""Counting: how often integers, pairs of them, or numbers in an interval occur."""
