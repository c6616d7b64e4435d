"""The CPU features of this machine, on which the kernel and LLVM agree."""

from __future__ import annotations

import pytest

from dualflow.backends.llvm.runtime import compiler, cpu_fingerprint


@pytest.mark.parametrize("feature", ["avx2", "avx512f", "fma"])
def test_linux_and_llvm_agree_on_extensions(feature: str) -> None:
    assert (feature in cpu_fingerprint.features()) == (f"+{feature}" in compiler.FEATURES.split(","))


def test_the_fingerprint_is_stable() -> None:
    before = cpu_fingerprint.fingerprint()
    cpu_fingerprint.fingerprint.cache_clear()
    assert cpu_fingerprint.fingerprint() == before != ""
    assert "MHz" not in before
