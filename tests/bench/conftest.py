"""Every question on nets and data so small that an answer takes no time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

import doxa
from doxa_bench import (
    estimators,
    fleet_cost,
    generations,
    gradient_variance,
    memory,
    mnist_ten_epochs,
    net_kinds,
    peak_memory,
    pool_leader,
    prediction_cost,
    runner,
    scaling,
    sealing_cost,
    search_cost,
    search_episodes,
    search_faults,
    search_scaling,
    step_cost,
    time_to_accuracy,
)
from doxa_bench.faults import campaign
from doxa_bench.faults.contract import Case, Outcome, Workshop
from doxa_bench.faults.workshop import LocalWorkshop

TINY = "tiny"


def small_digits(device: str = "cpu", width: int = 20) -> Any:
    torch.manual_seed(0)
    x, y = torch.rand(600, width), torch.randint(0, 10, (600,))
    return tuple((x[part], y[part]) for part in (slice(0, 520), slice(520, 560), slice(560, 600)))


def fake_job(job: tuple[str, str, int]) -> dict[str, Any]:
    kind, name, split = job
    if kind == "regression":
        scores = dict.fromkeys(("log_likelihood", "rmse", "coverage_90", "seconds"), float(split))
        return {"set": name, **scores}
    scores = dict.fromkeys(("nll", "mlp_nll", "error", "mlp_error", "seconds"), float(split))
    p = [[0.2, 0.8], [0.7, 0.3]]
    return {"set": name, **scores, "labels": [1, 0], "probabilities": p, "mlp_probabilities": p}


class SmallKind:
    """Cases without any process, every second of which goes wrong."""

    asks, share = "nothing", 1.0

    def try_case(self, case: Case, workshop: Workshop) -> Outcome:
        return Outcome({"kills": 1}, [("lost", "a thing")] * (case.number % 2))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten units where there would be hundreds."""
    monkeypatch.setattr(runner, "THREADS", 1)
    tiny = net_kinds.NetKind(lambda: doxa.nets.mlp(20, (10,), 10), (20,), "20-10-10")
    monkeypatch.setitem(net_kinds.KINDS, TINY, tiny)
    monkeypatch.setattr(step_cost, "CASES", {TINY: ("shared gaussian", "local gaussian", "dropout")})
    monkeypatch.setattr(memory, "CASES", {TINY: ("shared gaussian", "shared scale_mixture")})
    monkeypatch.setattr(
        memory, "growth_in_subprocess", lambda kind, case, settings: 1 + peak_memory.measure_growth(kind, case)
    )
    monkeypatch.setattr(scaling, "POINTS", (scaling.WorkloadPoint(4), scaling.WorkloadPoint(4, nets=2)))
    monkeypatch.setattr(scaling.Cpu, "memory", lambda self, point, kind: 1000 * (1 + (kind == "belief")))
    monkeypatch.setattr(scaling.Cpu, "share", 0.005)
    monkeypatch.setattr(fleet_cost, "CASES", {"8-4-4-10, 2 nets": (8, 4, 2)})
    monkeypatch.setattr(prediction_cost, "CASES", {TINY: 40})
    monkeypatch.setattr(prediction_cost, "LEARNED", TINY)
    monkeypatch.setattr(gradient_variance, "KIND", TINY)
    monkeypatch.setattr(gradient_variance, "EACH", 4)
    monkeypatch.setattr(time_to_accuracy, "KIND", TINY)
    for module in (prediction_cost, gradient_variance, time_to_accuracy):
        monkeypatch.setattr(module, "mnist_splits", small_digits)
    monkeypatch.setattr(mnist_ten_epochs, "mnist_splits", lambda device="cpu": small_digits(device, 784))
    monkeypatch.setattr(mnist_ten_epochs, "EPOCHS", 1)
    monkeypatch.setattr(mnist_ten_epochs, "WEIGHTS", (1.0, 0.1))
    monkeypatch.setattr(mnist_ten_epochs, "DRAWS", 2)
    monkeypatch.setattr(estimators, "ProcessPoolExecutor", ThreadPoolExecutor)
    monkeypatch.setattr(estimators, "run_job", fake_job)
    monkeypatch.setattr(search_episodes, "TASKS", {"CartPole-v1": search_episodes.SearchTask(4, (4,), 2, 2)})
    monkeypatch.setattr(search_episodes, "EPISODES", 4)
    monkeypatch.setattr(search_episodes, "COPIES", 2)
    monkeypatch.setattr(search_episodes, "STEPS", 3)
    monkeypatch.setattr(search_cost, "fashion_mnist_batch", lambda device: (torch.rand(8, 784), torch.arange(8)))
    monkeypatch.setattr(search_cost, "generation_step", lambda *given: generations.generation_step(*given, size=4))
    monkeypatch.setattr(search_cost, "growth_in_subprocess", lambda case, device: 1000)
    outcome = {"bits": "0", "generations": [1], "recovered": [0.5]}
    monkeypatch.setattr(search_faults, "run_undisturbed", lambda: outcome)
    monkeypatch.setattr(
        search_faults, "run_with_lost_workers", lambda engine, how, times: {**outcome, "seconds": [1.0] * times}
    )
    for name in ("run_with_killed_leader", "run_with_frozen_leader"):
        monkeypatch.setattr(search_faults, name, lambda times: {**outcome, "seconds": [1.0] * times})
    monkeypatch.setattr(campaign, "KINDS", {"kills": SmallKind()})
    monkeypatch.setattr(sealing_cost, "DATA", "digits")
    monkeypatch.setattr(sealing_cost, "WIDTH", 4)
    monkeypatch.setattr(sealing_cost, "EPOCHS", 2)
    monkeypatch.setattr(sealing_cost, "LARGE_WIDTH", 4)
    monkeypatch.setattr(search_scaling, "WIDTHS", {"cpu": (2, 4)})
    monkeypatch.setattr(search_scaling, "WORK", {"cpu": 20_000})
    monkeypatch.setattr(search_scaling, "growth_in_subprocess", lambda estimator, width, device: 1000 * width)
    monkeypatch.setattr(pool_leader, "leader_seconds", lambda workers, parts, generations: 1e-3 * parts * workers)


@pytest.fixture(scope="session")
def workshop() -> Iterator[LocalWorkshop]:
    """One server for all tests of the campaign, which finds the planted faults too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent))
        with LocalWorkshop() as opened:
            yield opened
            assert opened._server is not None
            process = opened._server.process
    assert process.poll() is not None  # the server ends with the campaign, and leaves nothing behind
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
