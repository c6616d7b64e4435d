"""Run now: tensors that have their values, tapes, variables; also importable by the old name ``tfe``."""

from dualflow.eager import engine as engine
