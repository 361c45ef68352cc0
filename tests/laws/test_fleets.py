"""Laws of fleets: what a member is alone, it is in company; early stopping, chunks, resume and rows of its own too."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import doxa
from doxa import kl_weights, learners, likelihoods, noise, optimisers, posteriors, priors
from doxa.errors import BadInput, Interrupted
from doxa.gradients import mean_field_beliefs
from doxa.posteriors.divergence import SAMPLES, kl
from doxa.storage.describe import describe
from examples import MAKERS, three_priors, with_kl_weight
from zoo import CASES

WEIGHTS = [kl_weights.tempered(0.1), kl_weights.uniform(), kl_weights.annealed(2)]
SEEDS, RATES = [3, 8, 3], [1e-3, 1e-2, 3e-3]


def learners_of(name: str, fleet_priors: list[Any]) -> list[Any]:
    return [with_kl_weight(MAKERS[name](p), w) for p, w in zip(fleet_priors, WEIGHTS, strict=True)]


def rows(count: int = 60) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(count, 6, generator=torch.Generator().manual_seed(0))
    return x, (x[:, 0] + x[:, 1].square() > 0.5).long()


def net(seed: int = 0) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        # No bias before BatchNorm, which takes it away: Adam would make steps of the rounding errors of its gradient.
        return nn.Sequential(nn.Linear(6, 9, bias=False), nn.BatchNorm1d(9), nn.Tanh(), nn.Linear(9, 2))


KEYS = {"likelihood": likelihoods.categorical(), "epochs": 4, "batch_size": 16, "progress": False}


def numbers(belief: doxa.Belief) -> list[torch.Tensor]:
    parts = getattr(belief.posterior, "members", (belief.posterior,))
    tensors = [t for p in parts for t in vars(p).values() if isinstance(t, torch.Tensor)]
    return tensors + [b for buffers in belief.buffers for b in buffers.values()]


def close(belief: doxa.Belief, expected: doxa.Belief) -> None:
    for a, b in zip(numbers(belief), numbers(expected), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("prior", priors.TABLE)
@pytest.mark.parametrize("name", MAKERS)
def test_a_member_is_what_it_is_alone(name: str, prior: str) -> None:
    """Priors, KL weights, seeds and rates of their own, BatchNorm's statistics too: equal to rounding."""
    fleet_learners = learners_of(name, three_priors(prior))
    beliefs = doxa.fleet(net(), rows(), learners=fleet_learners, seeds=SEEDS, lr=RATES, **KEYS)
    for belief, learner, seed, rate in zip(beliefs, fleet_learners, SEEDS, RATES, strict=True):
        alone = doxa.fit(net(), rows(), learner=learner, seed=seed, lr=rate, **KEYS)
        close(belief, alone)
        for row, alone_row in zip(belief.record.history, alone.record.history, strict=True):
            assert row == pytest.approx(alone_row, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("name", ["strided", "lstm", "transformer", "grouped", "tied_embedding", "batch_norm"])
def test_every_kind_of_net_sails_in_a_fleet(name: str) -> None:
    """Where many nets do not run as one program, they take turns."""
    case = CASES[name]
    fleet_learners = [learners.variational(priors.gaussian(s), noise.local) for s in (0.5, 2.0)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        beliefs = doxa.fleet(
            case.net(), case.data(12), learners=fleet_learners, seeds=[1, 2], **{**KEYS, "batch_size": 6}
        )
        for belief, learner, seed in zip(beliefs, fleet_learners, (1, 2), strict=True):
            alone = doxa.fit(case.net(), case.data(12), learner=learner, seed=seed, **{**KEYS, "batch_size": 6})
            close(belief, alone)


@pytest.mark.parametrize("prior", ["gaussian", "scale_mixture", "student_t"])
@pytest.mark.parametrize("name", ["shared", "local", "flipout"])
@pytest.mark.parametrize("members", [1, 3])
def test_draws_side_by_side_are_draws_one_after_the_other(
    members: int, name: str, prior: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way of a GPU, taken here: all samples of a step as one program."""
    fleet_learners = [
        learners.variational(p, noise.TABLE[name], 4, antithetic=True) for p in three_priors(prior)[:members]
    ]
    sequential_beliefs = doxa.fleet(net(), rows(), learners=fleet_learners, **KEYS)
    monkeypatch.setattr(sys.modules["doxa.gradients.variational"], "vectorizes_draws", lambda problem: True)
    for sequential, vectorized in zip(
        sequential_beliefs, doxa.fleet(net(), rows(), learners=fleet_learners, **KEYS), strict=True
    ):
        close(sequential, vectorized)


def test_members_may_have_starts_rows_and_validation_of_their_own() -> None:
    x, y = rows()
    folds = [torch.arange(60)[k::3] for k in range(3)]
    training_rows = [torch.cat([folds[j] for j in range(3) if j != k]) for k in range(3)]
    nets = [net(k) for k in range(3)]
    learner = learners.variational(priors.gaussian(1.0))
    keys = {**KEYS, "epochs": 30, "patience": 2, "lr": 0.05}
    validation = [(x[folds[k]], y[folds[k]]) for k in range(3)]
    beliefs = doxa.fleet(nets, (x, y), learners=learner, rows=training_rows, validation=validation, **keys)
    lengths = set()
    for k, belief in enumerate(beliefs):
        alone = doxa.fit(
            nets[k], (x[training_rows[k]], y[training_rows[k]]), learner=learner, validation=validation[k], **keys
        )
        lengths.add(len(alone.record.history))
        assert len(belief.record.history) == len(alone.record.history), "each stops when it would alone"
        assert belief.record.settings["steps"] == alone.record.settings["steps"]
        close(belief, alone)
    assert len(lengths) > 1
    assert max(lengths) < 30


def test_a_member_at_rest_does_not_turn_a_torch_optimiser_round() -> None:
    """The rate of those awake must stay the one that was asked for while some members rest."""
    x, y = rows()
    rest = (x[:6], 1 - y[:6])  # labels that learning makes worse: it stops at once
    keys = {**KEYS, "epochs": 12, "patience": 1, "optimiser": torch.optim.SGD, "lr": 0.2}
    learner = learners.variational(priors.gaussian(1.0))
    beliefs = doxa.fleet(net(), (x, y), learners=[learner] * 2, seeds=[1, 2], validation=[rest, (x, y)], **keys)
    alone = doxa.fit(net(), (x, y), learner=learner, seed=2, validation=(x, y), **keys)
    assert len(beliefs[0].record.history) < len(beliefs[1].record.history)
    assert {row["lr"] for row in beliefs[1].record.history} == {0.2}
    close(beliefs[1], alone)


def test_kinds_and_chunks_come_back_in_order() -> None:
    fleet_learners = [
        with_kl_weight(MAKERS[n](priors.gaussian(1.0)), WEIGHTS[0])
        for n in ("variational-shared", "point-map", "variational-shared", "variational-local", "point-map")
    ]
    beliefs = doxa.fleet(net(), rows(), learners=fleet_learners, seeds=list(range(5)), at_once=1, **KEYS)
    whole = doxa.fleet(net(), rows(), learners=fleet_learners, seeds=list(range(5)), **KEYS)
    for belief, whole_belief, learner in zip(beliefs, whole, fleet_learners, strict=True):
        assert belief.record.settings["learner"] == describe(learner)
        close(belief, whole_belief)


class Interrupting(nn.Module):
    """A net that asks to stop at its n-th pass."""

    def __init__(self, forward_pass: int = -1) -> None:
        super().__init__()
        self.net, self.left = net(), forward_pass

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.left -= self.training
        if self.left == 0:
            import signal

            signal.raise_signal(signal.SIGINT)
        return self.net(x)


@pytest.mark.parametrize("name", MAKERS)
def test_a_resumed_fleet_is_the_uninterrupted_one_to_the_byte(name: str, tmp_path: Path) -> None:
    fleet_learners = learners_of(name, three_priors("gaussian"))

    def run(module: nn.Module, folder: str, **more: Any) -> None:
        doxa.fleet(
            module, rows(), learners=fleet_learners, seeds=SEEDS, lr=RATES, checkpoint=tmp_path / folder, **KEYS, **more
        )

    run(Interrupting(), "whole")
    with pytest.raises(Interrupted) as caught:
        run(Interrupting(8), "cut")
    assert len(caught.value.belief) == 3
    run(Interrupting(), "cut", resume=True)
    names = sorted(p.name for p in (tmp_path / "whole").iterdir())
    assert names == [*(f"belief-{k}.doxa" for k in range(3)), "checkpoint-previous.doxa", "checkpoint.doxa"]
    for file in names:
        assert (tmp_path / "whole" / file).read_bytes() == (tmp_path / "cut" / file).read_bytes()


@pytest.mark.parametrize(
    ("message", "keys"),
    [
        ("one a member", {"seeds": [1, 2, 3]}),
        ("at least one member", {"learners": []}),
        ("one architecture", {"net": [net(), nn.Linear(6, 2)]}),
        ("indices from 0 to 59", {"rows": [torch.tensor([0, 60])] * 2}),
    ],
)
def test_what_makes_no_fleet_is_refused(message: str, keys: dict[str, Any]) -> None:
    fleet_keys = {"net": net(), "learners": [learners.point(), learners.point()], **KEYS, **keys}
    with pytest.raises(BadInput, match=message):
        doxa.fleet(fleet_keys.pop("net"), rows(), **fleet_keys)


@pytest.mark.parametrize("optimiser", [optimisers.sgd(), optimisers.sgd(0.9), optimisers.adam((0.8, 0.99))])
def test_doxa_s_optimisers_are_torch_s(optimiser: Any) -> None:
    """One net, one rate: the same path as torch's own."""
    settings = vars(optimiser)
    if "momentum" in settings:
        theirs = lambda p: torch.optim.SGD(p, 0.1, momentum=settings["momentum"])  # noqa: E731
    else:
        theirs = lambda p: torch.optim.Adam(p, 0.1, settings["betas"])  # noqa: E731
    learner = learners.variational(priors.gaussian(1.0), noise.local)
    ours = doxa.fit(net(), rows(), learner=learner, optimiser=optimiser, lr=0.1, **KEYS)
    close(ours, doxa.fit(net(), rows(), learner=learner, optimiser=theirs, **KEYS))


@pytest.mark.parametrize("per", ["weight", "layer"])
def test_the_kl_on_record_is_each_members_own_where_priors_are_shared(per: str) -> None:
    believed = [priors.gaussian(0.5), priors.gaussian(torch.linspace(0.1, 2.0, 74)), priors.laplace(0.3)]
    for fleet_priors in ([believed[0], believed[1], believed[0]], [believed[1]] * 3, [believed[2]] * 3):
        fleet_learners = [
            learners.variational(p, posterior=posteriors.mean_field(per, scale=0.2)) for p in fleet_priors
        ]
        for belief in doxa.fleet(net(), rows(), learners=fleet_learners, seeds=[1, 2, 3], **KEYS):
            expected = kl(belief.posterior, belief.prior).value
            assert belief.record.history[-1]["kl"] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("at_once", [1, 2, 3])
@pytest.mark.parametrize("per", ["weight", "layer"])
def test_kls_that_are_estimated_are_so_for_nets_of_one_prior_together(
    per: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU, by the draws that each has alone: a prior is asked once a draw, however many nets have it."""
    asked: list[int] = []

    class Counting(priors.student_t):
        def log_prob(self, w: Tensor) -> Tensor:
            asked.append(len(w))
            return super().log_prob(w)

    shared, own = Counting(4.0, 0.3), Counting(4.0, 1.0)
    fleet_learners = [
        learners.variational(p, posterior=posteriors.mean_field(per, scale=0.2)) for p in (shared, own, shared, shared)
    ]
    assert [mean_field_beliefs.nets_at_once(own, 1 << 21, on_gpu) for on_gpu in (True, False)] == [2, 1]
    monkeypatch.setattr(mean_field_beliefs, "nets_at_once", lambda prior, random, on_gpu: at_once)
    beliefs = doxa.fleet(net(), rows(), learners=fleet_learners, seeds=[1, 2, 3, 4], **KEYS)
    passes = -(-3 // at_once) + 1
    assert len(asked) == SAMPLES * passes * len(beliefs[0].record.history)
    for belief in beliefs:
        expected = kl(belief.posterior, belief.prior).value
        assert belief.record.history[-1]["kl"] == pytest.approx(expected, rel=1e-6)
