"""The tables of several machines run for a moment; the model of many workers scales as it should."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmark_commands import run_benchmark
from hypothesis import given
from hypothesis import strategies as st
from workers import require_mpi

from benchmarks.scaling import GBIT, WORKERS, Network, Training, all_reduce_seconds, efficiency, limit, lines

ROOT = Path(__file__).parents[2]
TRAININGS = st.builds(Training, st.floats(1e-3, 10.0), st.floats(1e3, 1e9))
NETWORKS = st.builds(Network, st.floats(1e-6, 1e-3), st.floats(1e8, 1e11))


@pytest.mark.exhaustive
def test_the_tables_have_a_line_for_each_collective_and_model(tmp_path: Path) -> None:
    require_mpi()
    output, figures = run_benchmark(
        tmp_path, "benchmarks.several_machines", "--quick", "--rounds", "1", PYTHONPATH=str(ROOT)
    )
    assert {"dualflow", "dualflow, eager", "mpi4py"} <= set(figures["collectives"]["4 kB"])
    (model,) = figures["models"]
    assert 0.0 < figures["shares"][model] < 1.0
    assert set(figures["steps"]) == {"1", "2"}
    assert output.count(f"| {model} |") == 1
    assert output.count("| 1,000 |") == 1


@given(TRAININGS, NETWORKS)
def test_more_workers_exchange_for_longer_and_are_less_efficient(
    training: Training, network: Network
) -> None:
    seconds = [all_reduce_seconds(training, network, n) for n in WORKERS]
    efficiencies = [efficiency(training, network, n) for n in WORKERS]
    assert seconds == sorted(seconds)
    assert efficiencies == sorted(efficiencies, reverse=True)
    assert efficiencies[0] == 1.0


@given(TRAININGS, NETWORKS)
def test_at_the_limit_half_of_a_step_is_computation(training: Training, network: Network) -> None:
    workers = limit(training, network)
    assert workers == 1 or efficiency(training, network, workers) >= 0.5
    assert efficiency(training, network, workers + 1) < 0.5


@given(TRAININGS, NETWORKS)
def test_a_faster_network_or_a_larger_batch_never_scales_less(training: Training, network: Network) -> None:
    workers = limit(training, network)
    assert limit(training, Network(network.latency, 2 * network.bandwidth)) >= workers
    assert limit(Training(2 * training.compute, training.nbytes), network) >= workers


def test_the_table_has_a_line_for_each_number_of_workers() -> None:
    networks = {"25 Gbit/s": Network(20e-6, 25 * GBIT), "200 Gbit/s": Network(20e-6, 200 * GBIT)}
    head, rule, *rows, _, last = "\n".join(lines(Training(1.0, 4e7), networks)).splitlines()
    assert {line.count("|") for line in (head, rule, *rows)} == {7}
    assert len(rows) == len(WORKERS)
    assert last.endswith("on up to 39 workers with 25 Gbit/s, 284 workers with 200 Gbit/s.")
