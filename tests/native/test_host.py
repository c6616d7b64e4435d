"""What the processor offers, as the kernel and LLVM agree on it."""

from __future__ import annotations

import pytest

from dualflow.native import compiler, host


@pytest.mark.parametrize("feature", ["avx2", "avx512f", "fma"])
def test_linux_and_llvm_agree_on_extensions(feature: str) -> None:
    assert (feature in host.features()) == (f"+{feature}" in compiler.FEATURES.split(","))


def test_the_fingerprint_is_stable() -> None:
    before = host.fingerprint()
    host.fingerprint.cache_clear()
    assert host.fingerprint() == before != ""
    assert "MHz" not in before
