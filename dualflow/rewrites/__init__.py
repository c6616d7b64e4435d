"""User-defined rewrites: rules, equations and passes for the optimiser; public in ``dualflow.rewrite``."""
