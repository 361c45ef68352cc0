"""MNIST's cells: what is judged of a trained net, on small nets of other data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import doxa
from doxa.predict.belief import Belief
from doxa_replicate import ReplicationOptions
from doxa_replicate.weight_uncertainty.digits import pruning
from doxa_replicate.weight_uncertainty.digits.trainings import cells
from doxa_replicate.weight_uncertainty.digits.trainings.attacks import gradient_signs
from doxa_replicate.weight_uncertainty.digits.trainings.cells import FRACTIONS, predicting_belief, weight_statistics


def train_belief(net: nn.Module, learner: Any, epochs: int = 1) -> Belief:
    x, y = torch.rand(64, 6, generator=torch.Generator().manual_seed(1)), torch.arange(64) % 3
    likelihood = doxa.likelihoods.categorical()
    return doxa.fit(net, (x, y), learner=learner, likelihood=likelihood, epochs=epochs, lr=1e-6, progress=False)


def test_the_weights_of_a_net_with_dropout_are_those_that_it_predicts_with() -> None:
    """Not a draw with half of its channels at zero and the rest doubled."""
    belief = train_belief(doxa.nets.mlp(6, (8, 8), 3), doxa.learners.dropout(0.5))
    statistics = weight_statistics(predicting_belief(False, belief))
    assert statistics["std"] == statistics["std_of_means"]
    assert weight_statistics(belief)["std"] != statistics["std"]


def test_a_belief_is_judged_by_its_draws() -> None:
    belief = train_belief(doxa.nets.mlp(6, (8, 8), 3), doxa.learners.variational(doxa.priors.gaussian(1.0)))
    assert predicting_belief(True, belief) is belief


def test_attacks_know_which_way_is_up_from_a_net_that_is_all_but_certain() -> None:
    """Where 1 − p is below single precision: ∇J = Σ_j p_j (w_j − w_y), and w_y is much the longer."""
    net = nn.Linear(6, 3)
    with torch.no_grad():
        net.weight.copy_(torch.tensor([[10.0], [0.1], [-10.0]]).expand(3, 6))
        net.bias.zero_()
    belief = train_belief(net, doxa.learners.point())
    x, y = torch.full((1, 6), 0.5), torch.tensor([0])
    assert float(belief.predict_at_mean(x).mean[0, 0]) == 1.0
    assert torch.equal(gradient_signs(belief, x, y, 1), -torch.ones(1, 6))


@pytest.mark.parametrize(
    ("half", "whole", "holds"),
    [(0.9, 0.95, True), (0.95, 0.9, False), (0.95, 0.95, False), (FRACTIONS[-1],) * 2 + (None,)],
)
def test_longer_training_is_judged_only_where_pruning_went_far_enough(half: float, whole: float, holds: Any) -> None:
    """The mean of three equal numbers is not always that number."""
    assert (
        pruning.longer_is_safer([{"half": [0.5] * 3, "all": [0.6] * 3}, {"half": [half] * 3, "all": [whole] * 3}])
        is holds
    )


@pytest.mark.parametrize(
    ("errors", "share"),
    [
        ([2.0, 2.5, 4.5, 9.0], 0.525),
        ([2.0, 9.0, 2.0, 2.0], 0.5 / 7),
        ([2.0, 3.0, 2.0, 3.0], 0.9),
        ([9.0, 2.0, 2.0, 2.0], 0.9),
    ],
)
def test_what_can_go_is_read_off_a_straight_line_to_the_first_point_beyond(errors: list[float], share: float) -> None:
    assert pruning.tolerated_share({"fraction": [0.0, 0.5, 0.6, 0.9], "error": errors}) == pytest.approx(share)


def test_what_was_judged_otherwise_is_not_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def make(*arguments: Any) -> dict[str, Any]:
        calls.append(1)
        return {"plain": []}

    monkeypatch.setattr(cells, "_train_cells", make)
    for _ in range(2):
        cells.cells(ReplicationOptions(folder=tmp_path), "plain", 400)
    assert len(calls) == 1
    monkeypatch.setattr(cells, "JUDGED_BY", {**cells.JUDGED_BY, "fractions": (0.0, 0.5)})
    cells.cells(ReplicationOptions(folder=tmp_path), "plain", 400)
    assert len(calls) == 2
