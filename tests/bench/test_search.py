"""What is measured of searches is what it says it is."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import doxa
from doxa import search
from doxa.search.engines.follower import ANSWERS
from doxa_bench import generations, pool_leader, search_faults, search_scaling, worker_cost
from doxa_bench.contenders import evotorch
from doxa_bench.trainables import BeliefTrainer


def rows(inputs: int = 784) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    return torch.rand(16, inputs), torch.randint(0, 10, (16,))


@pytest.mark.parametrize("size", [3, generations.AT_ONCE["cpu"] + 1])
def test_the_floor_is_the_losses_of_as_many_nets(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generations, "SCALE", 0.0)
    x, y = rows(20)
    net = doxa.nets.mlp(20, (6, 5), 10)
    losses = generations.floor_step(net, x, y, size)()
    assert torch.allclose(losses, F.cross_entropy(net(x), y).expand(size))


@pytest.mark.parametrize("case", generations.LEARNERS)
def test_a_generation_of_every_case_lowers_the_loss(case: str) -> None:
    x, y = rows(20)
    net = doxa.nets.mlp(20, (16,), 10)
    step = generations.generation_step(case, net, x, y, 100)
    belief = step.func.__self__
    before = F.cross_entropy(net(x), y)
    for _ in range(60):
        step()
    weights = belief.layout.weights(belief.gradient.mean[0])
    assert F.cross_entropy(torch.func.functional_call(net, weights, (x,)), y) < before - 0.05


@pytest.mark.skipif(evotorch.version() is None, reason="evotorch is not installed")
def test_a_generation_of_evotorch_moves_its_centre_to_lower_losses() -> None:
    x, y = rows(20)
    net = doxa.nets.mlp(20, (16,), 10)
    before = F.cross_entropy(net(x), y).detach()
    step = evotorch.generation(net, x, y, 100, 0.05)
    for _ in range(60):
        step()
    searching = dict(zip(step.__code__.co_freevars, step.__closure__, strict=True))["searching"].cell_contents
    nn.utils.vector_to_parameters(searching.status["center"].as_subclass(torch.Tensor).clone(), net.parameters())
    assert F.cross_entropy(net(x), y) < before - 0.05


@pytest.mark.parametrize("estimator", worker_cost.ESTIMATORS)
def test_a_worker_that_is_timed_moves_as_any_other(estimator: str) -> None:
    worker = worker_cost.TimedWorker(worker_cost.make_net(3), estimator, 8, "cpu")
    plain = BeliefTrainer(
        worker_cost.make_net(3),
        (worker.batch.x[0], worker.batch.y[0]),
        search.learner(worker_cost.ESTIMATORS[estimator], size=8),
    )
    for _ in range(2):
        assert min(worker.generation()) > 0
        plain.step(worker.batch)
    assert torch.equal(worker.belief.gradient.mean, plain.gradient.mean)
    assert worker_cost.weight_count(3) == worker.belief.layout.size


def test_the_leader_s_constants_are_found_from_times_that_follow_them() -> None:
    constants = (3e-4, 2e-5, 4e-6)
    timing_rows = [
        {"workers": w, "parts": p, "seconds": constants[0] + constants[1] * p + constants[2] * p * w}
        for w, p in search_scaling.CREWS
    ]
    fitted, errors = search_scaling.fit_leader_constants(timing_rows)
    assert fitted == pytest.approx(constants)
    assert errors == pytest.approx([0.0] * 3, abs=1e-9)


def test_a_leader_that_rests_at_no_cost_has_no_negative_constant() -> None:
    timing_rows = [{"workers": w, "parts": p, "seconds": 2e-5 * p - 1e-5} for w, p in search_scaling.CREWS]
    (base, block, pair), _ = search_scaling.fit_leader_constants(timing_rows)
    assert base == 0
    assert pair == pytest.approx(0, abs=1e-8)
    assert block == pytest.approx(2e-5, rel=0.05)


def test_who_leads_hears_every_worker_there_is() -> None:
    assert pool_leader.leader_seconds(workers=5, parts=12, generations=3) > 0


def test_bytes_are_those_of_messages() -> None:
    message_bytes, parts, size = pool_leader.message_bytes(), 40, 80
    answers = [np.zeros((size // parts, 2), np.float32) for _ in range(parts)]
    whole = len(pickle.dumps((ANSWERS, 1000, answers)))
    assert parts * message_bytes["told_block"] + size * message_bytes["value"] == pytest.approx(whole, rel=0.1)
    assert message_bytes["value"] == pytest.approx(8, rel=1e-2)


def test_the_model_grows_as_its_parts_do() -> None:
    names = ("evaluate_ns", "move_ns", "once_ns", "bytes")
    result = {
        "constants": {f"weight space, {name}": 1.0 for name in names},
        "bytes": {},
    }
    few_workers, many_workers = (search_scaling.model_generation(result, workers, 1e6) for workers in (2, 1000))
    assert few_workers["perturbations"] == 1000
    assert many_workers["perturbations"] == 2000
    assert few_workers["move"] == pytest.approx(1e-9 * 1e6 * (1 + 1000))
    assert many_workers["evaluate"] == pytest.approx(few_workers["evaluate"] * 2 / 500)
    assert many_workers["shared"] == pytest.approx(1e-9 * 1e6 * (1 + 2))
    assert "lead" not in few_workers
    assert search_scaling.parity(result, "weight space") == search_scaling.BATCH


def test_a_search_that_is_killed_comes_to_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_faults, "GENERATIONS", 40)
    case = search_faults.CASES["driver"]
    counts = search_faults.measure_case(case, 1, search_faults.run_undisturbed())
    assert counts["same"]
    assert counts["kills"] == 1
    assert counts["hung"] == counts["lost"] == counts["twice"] == 0
    assert counts["worst"] > 0


def test_processes_that_are_left_behind_or_replaced_in_vain_are_shown() -> None:
    counts = {"hung": 0, "same": True, "lost": 0, "median": 1.0, "worst": 2.0}
    cases = {
        "pool frozen": {**counts, "freezes": 10, "left_behind": 7},
        "driver frozen": {**counts, "freezes": 10, "replaced": 3},
    }
    table = search_faults.show({"cases": cases, "missing": {}})[0]
    shown = [dict(zip(table.headers, row, strict=True)) for row in table.rows]
    assert [row["workers left behind"] for row in shown] == ["7", "–"]
    assert [row["replaced in vain"] for row in shown] == ["–", "3"]


def test_a_search_that_stands_still_is_counted_as_hung(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_faults, "PATIENCE", 0.1)
    case = search_faults.CASES["pool frozen"]
    counts = search_faults.measure_case(case, 1, {"bits": ""})
    assert counts["hung"] == 1
    assert not counts["same"]
    assert search_faults.show({"cases": {"pool frozen": counts}, "missing": {}})[0].rows[0][2] == "1"
