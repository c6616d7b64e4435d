"""Rewrites of users: rules, equations and passes for the optimiser; public in ``dualflow.rewrite``."""
