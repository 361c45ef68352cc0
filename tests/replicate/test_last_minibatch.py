"""The loss of an epoch's last minibatch, and nets as they stood when it was lowest."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import doxa
from doxa import learners, likelihoods, priors
from doxa_replicate.weight_uncertainty.last_minibatch import LAST_NLL, LowestLoss, RecordsLastLoss, last_loss

ROWS, BATCH, BATCHES = 12, 4, 3


def rows() -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.linspace(-1, 1, ROWS)[:, None]
    return x, 2 * x + 0.1 * torch.randn(ROWS, 1, generator=torch.Generator().manual_seed(0))


def fleet(learner: Any, epochs: int = 3, batch_size: int = BATCH, **more: Any) -> list[doxa.Belief]:
    torch.manual_seed(0)
    return doxa.fleet(
        nn.Sequential(nn.Linear(1, 3), nn.Tanh(), nn.Linear(3, 1)),
        rows(),
        learners=learner,
        likelihood=likelihoods.gaussian(0.3),
        seeds=[0, 1],
        epochs=epochs,
        lr=0.05,
        batch_size=batch_size,
        progress=False,
        **more,
    )


MADE = {
    "variational": learners.variational(priors.gaussian(1.0), samples=2),
    "local": learners.variational(priors.gaussian(1.0), doxa.noise.local),
    "mixture": learners.variational(priors.scale_mixture(0.5, 1.0, 0.01)),
    "point": learners.point(),
    "dropout": learners.dropout(0.5),
}


@pytest.mark.parametrize("name", MADE)
def test_recording_it_changes_nothing_else(name: str) -> None:
    for plain, recorded in zip(fleet(MADE[name]), fleet(RecordsLastLoss(MADE[name])), strict=True):
        assert torch.equal(plain.posterior.mean, recorded.posterior.mean)
        assert [{k: v for k, v in row.items() if k != LAST_NLL} for row in recorded.record.history] == (
            plain.record.history
        )


@pytest.mark.parametrize("name", MADE)
def test_of_an_epoch_of_one_minibatch_it_is_the_epoch_s_loss(name: str) -> None:
    for belief in fleet(RecordsLastLoss(MADE[name]), batch_size=ROWS):
        for row in belief.record.history:
            assert row[LAST_NLL] == pytest.approx(row["nll"], rel=1e-6)


def test_it_is_the_last_minibatch_s_alone() -> None:
    """At so small a rate nothing moves: three epochs have losses of other minibatches, and one mean."""
    learner = RecordsLastLoss(learners.point())
    torch.manual_seed(0)
    net = nn.Linear(1, 1)
    belief = doxa.fit(net, rows(), learner=learner, likelihood=likelihoods.gaussian(1.0), epochs=6, lr=1e-30,
                      batch_size=BATCH, optimiser=doxa.optimisers.sgd(), progress=False)  # fmt: skip
    losses = [row[LAST_NLL] for row in belief.record.history]
    means = [row["nll"] for row in belief.record.history]
    assert means == pytest.approx([means[0]] * 6, rel=1e-6)
    assert len({round(loss, 5) for loss in losses}) > 1


def test_the_last_share_of_the_kl_is_one_of_255_with_eight_minibatches() -> None:
    assert last_loss({"kl": 255.0, LAST_NLL: 2.0}, 128, 8) == pytest.approx(1 + 256)
    geometric = doxa.kl_weights.geometric()
    moment = doxa.contracts.Moment(7, 8, 7, 8)
    assert last_loss({"kl": 1.0, LAST_NLL: 0.0}, 128, 8) == pytest.approx(geometric(moment) / 8)
    assert last_loss({"kl": 1e6, LAST_NLL: 0.5}, 128, 468) == pytest.approx(64.0)


def test_the_net_is_kept_as_it_stood_at_the_lowest_loss() -> None:
    keeper = LowestLoss(BATCH, BATCHES, until=6)
    states: dict[int, list[torch.Tensor]] = {0: [], 1: []}

    def watch(beliefs: Any) -> Any:
        for k, belief in enumerate(beliefs):
            states[k].append(belief.posterior.mean.clone())
        return keeper(beliefs)

    beliefs = fleet(RecordsLastLoss(MADE["variational"]), epochs=9, watch=watch)
    for k, belief in enumerate(beliefs):
        losses = [last_loss(row, BATCH, BATCHES) for row in belief.record.history[:6]]
        best = min(range(6), key=lambda epoch: (losses[epoch], -epoch))
        assert torch.equal(keeper.kept(belief).posterior.mean, states[k][best])
        assert len(keeper.kept(belief).record.history) == best + 1


def test_a_broken_off_run_goes_on_with_the_losses_it_had(tmp_path: Any) -> None:
    whole = fleet(RecordsLastLoss(MADE["variational"]))
    calls = []

    def stop(beliefs: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return [{} for _ in beliefs]

    with pytest.raises(KeyboardInterrupt):
        fleet(RecordsLastLoss(MADE["variational"]), watch=stop, checkpoint=tmp_path)
    resumed = fleet(RecordsLastLoss(MADE["variational"]), checkpoint=tmp_path, resume=True)
    assert [belief.record.history for belief in resumed] == [belief.record.history for belief in whole]
