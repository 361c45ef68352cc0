"""Nets of every kind learned from values alone, by the same call as all others."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import doxa
from doxa import likelihoods, search
from doxa.judge.attacks import fgsm
from doxa.search.score_function import ScoreFunction
from doxa.terminal.progress import epoch_text


class Step(nn.Module):
    def forward(self, z: Tensor) -> Tensor:
        return (z > 0).to(z.dtype)


class Tosses(nn.Module):
    """A discrete latent variable: every hidden unit is a coin, and what it shows has no slope."""

    def __init__(self) -> None:
        super().__init__()
        self.chances, self.out = nn.Linear(2, 32), nn.Linear(32, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(torch.bernoulli(torch.sigmoid(self.chances(x))))


class Reads(nn.Module):
    """Words into a recurrent net: weights that no perturbation of activations reaches."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.cell, self.out = nn.Embedding(5, 4), nn.LSTM(4, 6, batch_first=True), nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.cell(self.embedding(x))[0][:, -1])


def rings(rows: int = 192) -> tuple[Tensor, Tensor]:
    x = torch.randn(rows, 2, generator=torch.Generator().manual_seed(0))
    return x, (x.norm(dim=1) > 1.1).long()


def halves(rows: int = 192) -> tuple[Tensor, Tensor]:
    x, _ = rings(rows)
    return x, (x[:, 0] > 0).long()


def images(rows: int = 64) -> tuple[Tensor, Tensor]:
    x = torch.randn(rows, 1, 6, 6, generator=torch.Generator().manual_seed(1))
    y = (x.mean((1, 2, 3)) > 0).long()
    return x + 0.5 * (2 * y - 1).view(-1, 1, 1, 1), y


def token_rows(rows: int = 64) -> tuple[Tensor, Tensor]:
    x = torch.randint(0, 5, (rows, 4), generator=torch.Generator().manual_seed(2))
    return x, (x[:, -1] > 2).long()


ESTIMATORS = {"local": search.local(), "weight space": search.weight_space(), "low rank": search.low_rank(2)}
NETS = {
    "dense": (lambda: doxa.nets.mlp(2, (16, 16), 2), rings),
    "steps": (lambda: nn.Sequential(nn.Linear(2, 32), Step(), nn.Linear(32, 2)), rings),
    "discrete latent": (Tosses, halves),
    "dropout": (lambda: nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 2)), rings),
    "batch norm": (lambda: nn.Sequential(nn.Linear(2, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2)), rings),
    "convolutional": (
        lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 2)),
        images,
    ),
    "recurrent": (Reads, token_rows),
}


def fit_search(net: nn.Module, data: Any, learner: Any, epochs: int = 30, lr: float = 0.03, **more: Any) -> doxa.Belief:
    keys = {"likelihood": likelihoods.categorical(), "batch_size": 64, "lr": lr, "progress": False, "seed": 1}
    return doxa.fit(net, data, learner=learner, epochs=epochs, **{**keys, **more})


@pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS.keys())
@pytest.mark.parametrize("kind", NETS)
def test_nets_of_any_kind_learn_without_gradients(kind: str, estimator: Any) -> None:
    make, rows = NETS[kind]
    torch.manual_seed(0)
    slow = kind in ("convolutional", "recurrent")
    belief = fit_search(
        make(), rows(), search.learner(estimator, size=20 if slow else 40, scale=0.1), epochs=8 if slow else 30
    )
    history = belief.record.history
    assert history[-1]["nll"] < 0.9 * history[0]["nll"]
    assert {"objective", "scale", "gradient", "scale_gradient"} <= {*history[0]}
    assert float(belief.posterior.scale.min()) > 0
    assert belief.predict(rows()[0], 4).mean.shape == (len(rows()[1]), 2)


def test_progress_shows_objective_scale_and_both_norms() -> None:
    row = {"nll": 0.5, "kl": 0.0, "objective": 0.25, "scale": 0.1, "gradient": 7.0, "scale_gradient": 0.3}
    assert epoch_text([row], 1) == "NLL 0.5000  objective 0.25  scale 0.1  ‖∂mean‖ 7  ‖∂log scale‖ 0.3"


def test_a_searched_belief_can_be_attacked() -> None:
    x, y = rings()
    belief = fit_search(doxa.nets.mlp(2, (16,), 2), (x, y), search.learner(size=40))
    moved = fgsm(belief, x, y, radius=0.3, low=-5.0, high=5.0)
    assert float((moved - x).abs().max()) <= 0.3 + 1e-6

    def accuracy(rows: Tensor) -> float:
        return float((belief.predict(rows, 20).mean.argmax(1) == y).float().mean())

    assert accuracy(moved) < accuracy(x) - 0.1


def test_what_was_searched_can_be_judged_pruned_and_saved(tmp_path: Path) -> None:
    belief = fit_search(doxa.nets.mlp(2, (16,), 2), rings(), search.learner(size=40))
    judged = doxa.judge(belief, rings())
    assert judged is not None
    assert belief.prune(0.5).predict(rings()[0], 4).mean.isfinite().all()
    belief.save(tmp_path / "found.doxa")
    loaded = doxa.load(tmp_path / "found.doxa", doxa.nets.mlp(2, (16,), 2))
    torch.testing.assert_close(loaded.posterior.scale, belief.posterior.scale)


@pytest.mark.parametrize("estimator", [search.local(), search.weight_space()], ids=["local", "weight space"])
def test_errors_can_be_counted_instead_of_weighed(estimator: Any) -> None:
    net = doxa.nets.mlp(2, (16, 16), 2)
    belief = fit_search(net, rings(), search.learner(estimator, minimise=search.zero_one, size=60, scale=0.2))
    history = belief.record.history
    assert history[-1]["objective"] < 0.75 * history[0]["objective"]


def test_a_score_of_all_rows_can_be_maximised() -> None:
    learner = search.learner(search.weight_space(), maximise=search.f1, size=60, scale=0.2)
    history = fit_search(doxa.nets.mlp(2, (16, 16), 2), rings(), learner).record.history
    assert history[-1]["objective"] > history[0]["objective"] + 0.1


def test_a_net_learns_where_each_perturbation_has_rows_of_its_own() -> None:
    net = nn.Sequential(nn.Linear(2, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
    learner = search.learner(search.weight_space(own_rows=True), size=24, scale=0.1, per="tensor", scale_rate=0.1)
    belief = fit_search(net, rings(240), learner, epochs=60, batch_size=240)
    history = belief.record.history
    assert history[-1]["nll"] < 0.9 * history[0]["nll"]
    assert belief.posterior.scale.unique().numel() == 4  # weights and biases of two layers; BatchNorm's are no beliefs
    with pytest.raises(doxa.BadInput, match="each of 24 perturbations is to have rows of its own"):
        fit_search(net, rings(240), learner, epochs=1, batch_size=100)


@pytest.mark.parametrize("per", ["weight", "tensor", "layer", "network"])
@pytest.mark.parametrize("estimator", [search.local(), search.weight_space()], ids=["local", "weight space"])
def test_scales_are_adapted_where_they_are_asked_to_be(per: str, estimator: Any) -> None:
    for rate, moves in ((0.0, False), (0.3, True)):
        learner = search.learner(estimator, size=40, scale=0.1, per=per, scale_rate=rate, gradient=search.natural)
        scale = fit_search(doxa.nets.mlp(2, (8,), 2), rings(), learner, epochs=3).posterior.scale
        assert (not torch.allclose(scale, torch.full_like(scale, 0.1), rtol=1e-3)) is moves


def test_variances_that_an_optimiser_took_below_zero_come_back_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lowest_scales: list[float] = []
    evaluate = ScoreFunction.evaluate

    def step(self: ScoreFunction, *arguments: Any) -> Tensor:
        with torch.no_grad():
            self.scales.fill_(-5.0)
        losses = evaluate(self, *arguments)
        lowest_scales.append(float(self.scales.detach().min()))
        return losses

    monkeypatch.setattr(ScoreFunction, "evaluate", step)
    learner = search.learner(search.weight_space(), size=10, scale_rate=0.1, coordinate=search.variance)
    fit_search(doxa.nets.mlp(2, (4,), 2), rings(), learner, epochs=1)
    assert all(0 < value < 1e-11 for value in lowest_scales)


@pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS.keys())
def test_a_search_resumes_to_the_same_bits(estimator: Any, tmp_path: Path) -> None:
    def run(epochs: int, folder: Path, **more: Any) -> doxa.Belief:
        torch.manual_seed(0)
        return fit_search(
            doxa.nets.mlp(2, (8,), 2), rings(), search.learner(estimator, size=10), epochs, checkpoint=folder, **more
        )

    uninterrupted = run(4, tmp_path / "whole")
    run(2, tmp_path / "half")
    resumed = run(4, tmp_path / "half", resume=True)
    assert torch.equal(uninterrupted.posterior.mean, resumed.posterior.mean)
    assert uninterrupted.record.history == resumed.record.history


def test_a_fleet_of_searches_is_each_of_them() -> None:
    torch.manual_seed(0)
    net = doxa.nets.mlp(2, (8,), 2)
    learner = search.learner(size=10)
    options = {"likelihood": likelihoods.categorical(), "epochs": 2, "batch_size": 64, "lr": 0.01, "progress": False}
    fleet = doxa.fleet(net, rings(), learners=learner, seeds=[3, 4], **options)
    alone = doxa.fit(net, rings(), learner=learner, seed=4, **options)
    torch.testing.assert_close(fleet[1].posterior.mean, alone.posterior.mean)


OPTIMISERS = {
    "SGD": (partial(torch.optim.SGD, momentum=0.9), 0.5),
    "SGD with decay": (partial(torch.optim.SGD, momentum=0.9, weight_decay=1e-3), 0.5),
    "AdamW": (partial(torch.optim.AdamW, weight_decay=0.1), 0.03),
}
optimisers = pytest.mark.parametrize(("optimiser", "lr"), OPTIMISERS.values(), ids=OPTIMISERS.keys())


@optimisers
def test_any_optimiser_of_torch_s_can_take_the_steps_and_leaves_scales_that_are_to_stay(
    optimiser: Any, lr: float
) -> None:
    learner = search.learner(size=40, scale=0.1)
    belief = fit_search(doxa.nets.mlp(2, (16, 16), 2), rings(), learner, lr=lr, optimiser=optimiser)
    history = belief.record.history
    assert history[-1]["nll"] < 0.8 * history[0]["nll"]
    torch.testing.assert_close(belief.posterior.scale, torch.full_like(belief.posterior.scale, 0.1))


@pytest.mark.parametrize("make", [torch.optim.SGD, torch.optim.AdamW], ids=["SGD", "AdamW"])
def test_scales_that_move_are_moved_by_their_slopes_alone(make: Any) -> None:
    def scale(decay: float) -> Tensor:
        torch.manual_seed(0)
        learner = search.learner(size=10, scale=0.1, scale_rate=0.3)
        net = doxa.nets.mlp(2, (4,), 2)
        # One step: what decays the mean changes the slopes of the next.
        optimiser = partial(make, weight_decay=decay)
        return fit_search(net, rings(64), learner, epochs=1, lr=0.1, optimiser=optimiser).posterior.scale

    assert torch.equal(scale(0.5), scale(0.0))
    assert not torch.allclose(scale(0.0), torch.tensor(0.1), rtol=1e-4)


def test_scales_that_a_torch_optimiser_moves_resume_to_the_same_bits(tmp_path: Path) -> None:
    def run(epochs: int, folder: Path, **more: Any) -> doxa.Belief:
        torch.manual_seed(0)
        learner = search.learner(size=10, scale_rate=0.3, per="weight")
        net = doxa.nets.mlp(2, (4,), 2)
        return fit_search(net, rings(), learner, epochs, checkpoint=folder, optimiser=torch.optim.AdamW, **more)

    uninterrupted = run(4, tmp_path / "whole")
    run(2, tmp_path / "half")
    resumed = run(4, tmp_path / "half", resume=True)
    assert torch.equal(uninterrupted.posterior.scale, resumed.posterior.scale)
    assert torch.equal(uninterrupted.posterior.mean, resumed.posterior.mean)


def row_by_rank(output: Tensor, y: Tensor) -> Tensor:
    return output[:, 0] - output[:, 0].mean()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: search.learner(minimise=search.zero_one, maximise=search.f1), "not both"),
        (lambda: search.learner(maximise=search.f1), "need a loss for each row"),
        (lambda: search.learner(minimise=row_by_rank), "depends on the other rows"),
        (lambda: search.learner(minimise=lambda output, y: output), "one number a row"),
        (lambda: search.learner(search.weight_space(), minimise=lambda output, y: "low"), "must give numbers"),
        (lambda: search.learner(search.low_rank(), per="weight"), "leave scales as they are"),
        (lambda: search.learner(search.low_rank(0)), "rank must be at least 1"),
        (lambda: search.learner("local"), "one of doxa.search"),
        (lambda: search.learner(per="row"), 'per must be "weight", "tensor"'),
        (lambda: search.learner(search.weight_space(), size=7), "in pairs"),
        (lambda: search.learner(scale=0.0), "scale must be a positive"),
        (lambda: search.learner(scale_rate="slow"), "scale_rate must be a finite number from 0 up"),
        (lambda: search.learner(minimise="zero_one"), "minimise must be a function of outputs and targets"),
        (lambda: search.learner(maximise="f1"), "maximise must be a function of outputs and targets"),
        (lambda: search.learner(gradient="natural"), "gradient must be one of doxa.search"),
        (lambda: search.learner(coordinate="variance"), "coordinate must be doxa.search.log_scale"),
        (lambda: search.learner(search.weight_space(shaping="ranks")), "shaping must be one of doxa.search.shaping"),
    ],
)
def test_bad_input_is_named(make: Any, says: str) -> None:
    with pytest.raises(doxa.BadInput, match=says):
        fit_search(doxa.nets.mlp(2, (4,), 2), rings(), make(), epochs=1)


class Stopped(Exception):
    pass


def counted(output: Tensor, y: Tensor) -> Tensor:
    counted.calls -= 1  # type: ignore[attr-defined]
    if counted.calls == 0:  # type: ignore[attr-defined]
        raise Stopped
    return nn.functional.cross_entropy(output, y, reduction="none")


def test_every_generation_can_be_saved(tmp_path: Path) -> None:
    def run(calls: int, **more: Any) -> doxa.Belief:
        counted.calls = calls  # type: ignore[attr-defined]
        torch.manual_seed(0)
        learner = search.learner(search.weight_space(), minimise=counted, size=10)
        return fit_search(doxa.nets.mlp(2, (8,), 2), rings(), learner, 4, **more)

    uninterrupted = run(-1)
    with pytest.raises(Stopped):
        run(9, checkpoint=tmp_path, checkpoint_steps=1)  # in the third epoch's midst
    resumed = run(-1, checkpoint=tmp_path, resume=True)
    assert torch.equal(uninterrupted.posterior.mean, resumed.posterior.mean)
    assert uninterrupted.record.history == resumed.record.history


def test_a_net_that_draws_and_keeps_statistics_resumes_to_the_same_bits(tmp_path: Path) -> None:
    def run(epochs: int, folder: Path, **more: Any) -> doxa.Belief:
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(2, 8), nn.Dropout(0.3), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
        return fit_search(net, rings(), search.learner(size=8), epochs, checkpoint=folder, **more)

    uninterrupted = run(3, tmp_path / "whole")
    torch.rand(7)  # what others draw does not matter
    run(1, tmp_path / "half")
    resumed = run(3, tmp_path / "half", resume=True)
    assert torch.equal(uninterrupted.posterior.mean, resumed.posterior.mean)
    for name, buffer in uninterrupted.buffers[0].items():
        assert torch.equal(buffer, resumed.buffers[0][name])


def sometimes_nothing(output: Tensor, y: Tensor) -> Tensor:
    loss = nn.functional.cross_entropy(output, y)
    return torch.where(output[0, 0] > 0.3, torch.nan, loss)


def test_perturbations_without_a_number_count_as_the_worst_and_end_nothing() -> None:
    learner = search.learner(search.weight_space(), minimise=sometimes_nothing, size=40, scale=0.2)
    history = fit_search(doxa.nets.mlp(2, (16,), 2), rings(), learner, epochs=10).record.history
    assert all(row["objective"] == row["objective"] for row in history)
    assert history[-1]["nll"] < history[0]["nll"]


@pytest.mark.parametrize("sensitivity", [None, "sum"])
def test_a_generation_that_fails_for_one_net_of_a_fleet_changes_nothing(sensitivity: str | None) -> None:
    net = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
    learner = search.learner(search.weight_space(), minimise=counted, size=10, sensitivity=sensitivity)
    options = {"likelihood": likelihoods.categorical(), "epochs": 2, "batch_size": 192, "lr": 0.01, "progress": False}
    states: list[dict[str, Tensor]] = []
    evaluate = ScoreFunction.evaluate

    def step(self: ScoreFunction, *arguments: Any) -> Tensor:
        before = {k: v.clone() for k, v in self.state().tensors.items()}
        metrics_before = [dict(row) for row in self.net_metrics]
        try:
            return evaluate(self, *arguments)
        except Stopped:
            states.extend([before, {k: v.clone() for k, v in self.state().tensors.items()}])
            assert self.net_metrics == metrics_before
            raise

    # Whether an objective is one of rows is asked twice of each net, and then once a generation.
    counted.calls = 8  # type: ignore[attr-defined]  # in the second generation of the second net
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ScoreFunction, "evaluate", step)
        with pytest.raises(Stopped):
            doxa.fleet(net, rings(), learners=learner, seeds=[3, 4], **options)
    before, after = states
    assert {"buffers.1.running_mean", "mean", "scales", "relative"} <= {*before}
    assert float(before["buffers.1.running_mean"].abs().sum()) > 0
    for name, value in before.items():
        assert torch.equal(value, after[name]), name
