"""Keras's own tests on this backend: see ``conformance.py``, which prints their table."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

_SPEC = importlib.util.spec_from_file_location("conformance", Path(__file__).with_name("conformance.py"))
assert _SPEC is not None
assert _SPEC.loader is not None
conformance = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(conformance)

EXTENT = os.environ.get("DUALFLOW_KERAS_TESTS", "")
"""Which groups to run: "most" (those that need no other framework), "all", or none by default."""
CHOSEN = [group for group in conformance.GROUPS if EXTENT == "all" or (EXTENT == "most" and group.in_ci)]


@pytest.mark.slow
@pytest.mark.parametrize("group", CHOSEN, ids=lambda group: group.name)
def test_of_kerass_own_tests_only_the_listed_ones_fail(group):
    result = conformance.run(group)
    assert result.count("passed") > 0, result.log
    assert conformance.surprises(result, conformance.known_failures()) == [], result.log


def test_each_known_failure_has_a_reason():
    assert all(reason.strip() for reason in conformance.known_failures().values())
