"""`doxa.references.hmc`: the posterior of a net and its data, and of nothing else."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import doxa
from doxa import likelihoods, priors
from doxa.errors import BadInput, BrokenFile, Interrupted
from doxa.judge import against
from doxa.references import diagnose, hmc, values_by_chain
from doxa.references.diagnostics import ess_mean
from doxa.references.energy import PosteriorEnergy
from doxa.references.problem import build_question
from doxa.references.sampling import Sampling

D = torch.float64
NOISE = 0.3
SOURCE = torch.Generator().manual_seed(0)
X = torch.randn(20, 3, generator=SOURCE)
Y = X @ torch.tensor([[1.0], [-2.0], [0.5]]) + NOISE * torch.randn(20, 1, generator=SOURCE)
LABELS = (X[:, 0] + 0.3 * torch.randn(20, generator=SOURCE) > 0).long()


def small_net() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


def run(net: nn.Module | None = None, data: Any = (X, Y), **settings: Any) -> doxa.Belief:
    settings = {
        "likelihood": likelihoods.gaussian(NOISE),
        "prior": priors.gaussian(1.0),
        "chains": 3,
        "draws": 6,
        "warmup": 40,
        "steps": 3,
        "progress": False,
    } | settings
    return hmc(net or small_net(), data, **settings)


def test_conjugate_regression_is_exact() -> None:
    """Mean and covariance of the weights within four Monte-Carlo standard errors of what algebra says."""
    belief = run(nn.Linear(3, 1), chains=64, draws=80, warmup=100, steps=6, dtype=D)
    design = torch.cat([X, torch.ones(20, 1)], 1).double()
    covariance = (design.T @ design / NOISE**2 + torch.eye(4, dtype=D)).inverse()
    mean = (covariance @ design.T @ Y.double() / NOISE**2)[:, 0]
    draws = (
        torch.stack([draw.weights for draw in belief.posterior.draws(64 * 80, (0,))]).double().unflatten(0, (64, 80))
    )
    centred = draws - mean
    products = (centred[..., :, None] * centred[..., None, :]).flatten(2)
    for values, expected in ((draws, mean), (products, covariance.flatten())):
        flat = values.flatten(0, 1)
        error = flat.std(0) / ess_mean(values).sqrt()
        assert float(((flat.mean(0) - expected).abs() / error).max()) < 4
    assert belief.record.settings["sampled"]["ess_bulk"] > 2000


@pytest.mark.parametrize("prior", [priors.laplace(0.8), priors.student_t(3.0, 1.0)], ids=["laplace", "student"])
def test_a_posterior_that_is_no_gaussian_has_the_moments_of_its_integrals(prior: Any) -> None:
    """One weight, yes or no, priors with a kink or heavy tails: mean and mean square by quadrature."""
    x, y = torch.linspace(-1, 2, 7)[:, None], torch.tensor([0.0, 1, 0, 1, 1, 1, 1])[:, None]
    net = nn.Linear(1, 1, bias=False)
    belief = run(net, (x, y), likelihood=likelihoods.bernoulli(), prior=prior, chains=64, draws=80, warmup=60, dtype=D)
    w = torch.linspace(-15, 40, 20001, dtype=D)
    log_p = torch.nn.functional.logsigmoid(w * (2 * y.double() - 1) * x.double()).sum(0) + prior.log_prob(w)
    p = log_p.softmax(0)
    draws = belief.posterior.rows.double().view(64, 80, 1)
    for power in (1, 2):
        values = draws**power
        error = values.std() / ess_mean(values).sqrt()
        assert abs(float(values.mean() - (p * w**power).sum())) < 4 * float(error)


@pytest.mark.parametrize("rows", [20, 7])
@pytest.mark.parametrize("name", ["gaussian", "categorical", "scale_mixture"])
def test_the_energy_is_that_of_all_rows_and_the_prior(name: str, rows: int) -> None:
    """Written out by hand, and its slope by autograd: no weight on either term, whatever goes through at once."""
    net = small_net() if name != "categorical" else nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    likelihood = likelihoods.categorical() if name == "categorical" else likelihoods.gaussian(NOISE)
    prior = priors.scale_mixture(0.5, 1.0, 0.1) if name == "scale_mixture" else priors.gaussian(0.7)
    data = (X, LABELS) if name == "categorical" else (X, Y)
    question = build_question(net, data, likelihood, prior, range(3), 0, None, D, None)
    energy = PosteriorEnergy(question.problem, question.prior, question.x, question.y, rows)
    energy.evaluate()
    layout = question.problem.layout
    for k in range(3):
        w = energy.position[k].clone().requires_grad_()
        output = torch.func.functional_call(net, layout.weights(w), X.double())
        expected = -likelihood.log_prob(output, question.y, {}).sum() - prior.log_prob(w).sum()
        expected.backward()
        torch.testing.assert_close(energy.energy()[k], expected.detach())
        torch.testing.assert_close(energy.slope[k], w.grad)


def test_a_chain_is_the_same_alone_or_in_a_fleet() -> None:
    settings = {"adapt_mass": False, "dtype": D, "warmup": 20, "draws": 4}
    together, alone = run(chains=[5, 2, 9], **settings), run(chains=[2], **settings)
    torch.testing.assert_close(alone.posterior.rows, together.posterior.rows[4:8], rtol=0, atol=1e-5)
    assert not torch.allclose(together.posterior.rows[:4], together.posterior.rows[4:8], atol=1e-2)


def test_same_seed_same_bits_and_the_net_is_not_touched() -> None:
    net = small_net()
    before = {k: v.clone() for k, v in net.state_dict().items()}
    state = torch.get_rng_state()
    first, second, other = run(net), run(net), run(net, seed=1)
    assert torch.equal(first.posterior.rows, second.posterior.rows)
    assert not torch.equal(first.posterior.rows, other.posterior.rows)
    assert all(torch.equal(v, before[k]) for k, v in net.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("stop", [5, 27, 43])
def test_resumed_equals_uninterrupted_to_the_bit(stop: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped before a window of the warm-up, at its end, and among the draws."""
    settings = {"warmup": 40, "draws": 6, "dtype": D}
    whole = run(**settings)
    advance = Sampling.advance

    def interrupted(sampling: Sampling) -> str:
        if sampling.done == stop:
            signal.raise_signal(signal.SIGINT)
        return advance(sampling)

    with monkeypatch.context() as patch:
        patch.setattr(Sampling, "advance", interrupted)
        with pytest.raises(Interrupted, match=rf"after trajectory {stop + 1} of 46; saved in") as error:
            run(checkpoint=tmp_path, **settings)
    assert isinstance(error.value.belief, doxa.Belief)
    resumed = run(checkpoint=tmp_path, resume=True, **settings)
    assert torch.equal(resumed.posterior.rows, whole.posterior.rows)
    assert resumed.record == whole.record
    assert torch.equal(doxa.load(tmp_path / "belief.doxa", small_net()).posterior.rows, whole.posterior.rows)


def test_more_draws_go_on_where_the_first_ended(tmp_path: Path) -> None:
    run(checkpoint=tmp_path, draws=3)
    longer = run(checkpoint=tmp_path, draws=6, resume=True)
    assert torch.equal(longer.posterior.rows, run(draws=6).posterior.rows)
    with pytest.raises(BadInput, match="steps: 3 there, 4 here"):
        run(checkpoint=tmp_path, steps=4, resume=True)
    with pytest.raises(BadInput, match="data: "):
        run(checkpoint=tmp_path, data=(X, Y + 1), resume=True)
    with pytest.raises(BadInput, match="ask for as many draws, or for more"):
        run(checkpoint=tmp_path, draws=5, resume=True)
    with pytest.raises(BadInput, match="already holds a sampling"):
        run(checkpoint=tmp_path)
    with pytest.raises((BadInput, BrokenFile)):
        run(nn.Linear(3, 1), checkpoint=tmp_path, resume=True)


def test_what_is_frozen_belongs_to_the_energy(tmp_path: Path) -> None:
    """Chains are not gone on with over another trunk, whose shapes are the same."""

    def on_a_frozen_trunk(seed: int) -> nn.Module:
        torch.manual_seed(seed)
        net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        net[0].requires_grad_(False)
        return net

    run(on_a_frozen_trunk(1), checkpoint=tmp_path)
    with pytest.raises(BadInput, match="frozen"):
        run(on_a_frozen_trunk(2), checkpoint=tmp_path, draws=8, resume=True)
    run(on_a_frozen_trunk(1), checkpoint=tmp_path, draws=8, resume=True)


def test_a_part_of_the_draws_tells_how_often_they_were_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    advance = Sampling.advance

    def interrupted(sampling: Sampling) -> str:
        if sampling.done == 44:
            signal.raise_signal(signal.SIGINT)
        return advance(sampling)

    monkeypatch.setattr(Sampling, "advance", interrupted)
    with pytest.raises(Interrupted) as error:
        run(checkpoint=tmp_path, thinning=3, step_size=1e-4, warmup=0, draws=20)
    assert error.value.belief is not None
    acceptance = error.value.belief.record.settings["sampled"]["acceptance"]
    assert max(acceptance) <= 1
    assert min(acceptance) > 0.99


def test_chains_that_never_move_are_no_reference() -> None:
    stuck = run(warmup=0, step_size=50.0)
    assert stuck.record.settings["sampled"]["acceptance"] == [0, 0, 0]
    verdict = against(stuck, stuck, X)
    assert any("No reference yet" in finding for finding in verdict.findings)


def test_a_belief_is_saved_loaded_and_asked_as_any_other(tmp_path: Path) -> None:
    belief = run(draws=8)
    belief.save(tmp_path / "belief.doxa")
    loaded = doxa.load(tmp_path / "belief.doxa", small_net())
    assert torch.equal(loaded.posterior.rows, belief.posterior.rows)
    assert loaded.record == belief.record
    assert json.dumps(loaded.record.settings)
    sampled = loaded.record.settings["sampled"]
    assert {"acceptance", "step_size", "divergences", "r_hat", "ess_bulk", "ess_tail", "gradients"} <= sampled.keys()
    assert str(diagnose(loaded, X)) == str(diagnose(belief, X))
    assert float(doxa.judge(loaded, (X, Y), samples=24)["rmse"]) < 2
    assert float(diagnose(belief, X).worst["r_hat"]) == pytest.approx(sampled["r_hat"], rel=1e-6)


def test_values_by_chain_are_those_of_each_chain_in_order() -> None:
    belief = run(nn.Linear(3, 1, bias=False), chains=4, draws=5)
    values = values_by_chain(belief, torch.eye(3))  # each row asks for one weight
    assert values.shape == (4, 5, 3, 1)
    assert torch.equal(values[..., 0], belief.posterior.rows.view(4, 5, 3))


def test_thinning_keeps_every_so_manieth() -> None:
    every, third = run(draws=6, chains=2), run(draws=2, thinning=3, chains=2)
    assert torch.equal(third.posterior.rows.view(2, 2, -1), every.posterior.rows.view(2, 6, -1)[:, 2::3])


def test_arithmetic_may_be_finer_than_the_net() -> None:
    coarse, fine = (run(dtype=dtype, warmup=0, step_size=0.02, draws=2) for dtype in (torch.float32, D))
    assert coarse.posterior.rows.dtype == fine.posterior.rows.dtype == torch.float32
    torch.testing.assert_close(coarse.posterior.rows, fine.posterior.rows, rtol=0, atol=1e-3)
    assert fine.record.settings["dtype"] == "torch.float64"


class Recurrent(nn.Module):
    """A net that torch cannot run many times as one program."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.out = nn.LSTM(1, 2, batch_first=True), nn.Linear(2, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.cell(x[..., None])[0][:, -1])


def test_nets_that_cannot_run_together_take_turns() -> None:
    settings = {"warmup": 0, "step_size": 0.01, "draws": 2, "adapt_mass": False, "dtype": D}
    together, alone = run(Recurrent(), **settings), run(Recurrent(), chains=[1], **settings)
    torch.testing.assert_close(together.posterior.rows[2:4], alone.posterior.rows, rtol=0, atol=1e-5)


def test_chains_begin_where_they_are_told() -> None:
    start = torch.full((3, 21), 0.3)
    told = run(start=start, warmup=0, step_size=1e-6, draws=1)
    torch.testing.assert_close(told.posterior.rows, start, rtol=0, atol=1e-3)
    fresh = run(warmup=0, step_size=1e-6, draws=1).posterior.rows
    assert float((fresh[0] - fresh[1]).abs().max()) > 0.1, "each from a start of its own"


class WithNorm(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no data": ({"data": None}, "a likelihood needs data"),
    "no pair": ({"data": X}, r"must be a pair \(x, y\)"),
    "a loader": ({"data": DataLoader(TensorDataset(X, Y), 5)}, "a DataLoader gives some at a time"),
    "no likelihood": ({"likelihood": None}, "likelihood must be one of doxa.likelihoods"),
    "no prior": ({"prior": None}, "prior must be one of doxa.priors"),
    "labels": ({"likelihood": likelihoods.categorical()}, "targets|labels|classes"),
    "no chains": ({"chains": 0}, "chains must be at least 1"),
    "chains that are none": ({"chains": "many"}, "chains must be how many"),
    "the same chain twice": ({"chains": [1, 1]}, "different ones"),
    "half a chain": ({"chains": 1.5}, "chains must be how many"),
    "no draws": ({"draws": 0}, "draws must be at least 1"),
    "no steps": ({"steps": 0}, "steps must be at least 1"),
    "jitter": ({"jitter": 1.0}, "jitter must lie between 0 and 1"),
    "acceptance": ({"acceptance": 1.0}, "acceptance must lie between 0 and 1"),
    "no step size": ({"warmup": 0}, "give step_size="),
    "a step size below zero": ({"step_size": -1.0}, "step_size must be a positive"),
    "a start of another shape": ({"start": torch.zeros(2, 21)}, r"of shape \(3, 21\); got \(2, 21\)"),
    "a start without numbers": ({"start": torch.full((3, 21), torch.nan)}, "NaN or infinite"),
    "a start without density": ({"start": torch.full((3, 21), 1e25)}, "not finite where chain 0 starts"),
    "batch norm": ({"net": WithNorm()}, "1 makes what a row's output is depend on the other rows"),
    "dropout": ({"net": nn.Sequential(nn.Linear(3, 1), nn.Dropout())}, "draws random numbers of its own"),
    "learned noise": ({"likelihood": likelihoods.gaussian_learned()}, "learns log_scale as a point"),
    "half precision": ({"dtype": torch.float16}, "torch.float32 or torch.float64"),
    "resume without a folder": ({"resume": True}, "pass checkpoint="),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_sampled_is_refused_in_words(name: str) -> None:
    arguments, says = BAD[name]
    with pytest.raises(BadInput, match=says):
        run(**arguments)


def test_only_chains_have_a_diagnosis() -> None:
    belief = doxa.fit(
        small_net(),
        (X, Y),
        learner=doxa.learners.point(),
        likelihood=likelihoods.gaussian(1.0),
        epochs=1,
        progress=False,
    )
    with pytest.raises(BadInput, match=r"only beliefs by doxa\.references\.hmc"):
        diagnose(belief, X)
