"""The judgement of whole beliefs, each score against the function that defines it."""

from __future__ import annotations

import json
import math

import pytest
import torch
from torch import nn

from doxa.contracts import Estimate
from doxa.errors import BadInput
from doxa.judge import TABLE, Judgement, auroc, ece, judge, lppd, lppd_error, nll
from doxa.judge import verdict as module
from doxa.likelihoods import bernoulli, categorical, gaussian, gaussian_learned, gaussian_per_input
from doxa.posteriors.delta import Delta
from doxa.posteriors.particles import Particles
from doxa.predict.belief import Belief
from doxa.weights.layout import lay_out, untrained_tensors

X = torch.rand(120, 4, generator=torch.Generator().manual_seed(0))
FAR = 4 + torch.rand(60, 4, generator=torch.Generator().manual_seed(1))
CLASSIFICATION = ["error", "brier", "ece", "ece_classwise", "ece_adaptive", "entropy", "mutual_information"]
DENSITY = ["nll", "lppd", "gibbs_nll"]
SHIFT = ["auroc_entropy", "auroc_mutual_information", "fpr95_entropy", "fpr95_mutual_information"]


def labels(classes: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, classes, (120, *shape), generator=torch.Generator().manual_seed(2))


def test_categorical(make_belief, make_mlp):
    belief, y = make_belief(make_mlp(4, 3), categorical(), gain=2.0), labels(3)
    verdict = judge(belief, (X, y), samples=20, seed=3)
    assert list(verdict.scores) == CLASSIFICATION + DENSITY
    assert (verdict.rows, verdict.samples) == (120, 20)
    draws = belief.predict(X, 20, seed=3)
    for name in ("error", "brier", "nll", "ece", "ece_classwise", "ece_adaptive"):
        assert verdict[name] == pytest.approx(float(TABLE["classification"][name](draws.mean, y)), abs=1e-5), name
    assert verdict["lppd"] == -verdict["nll"]
    assert verdict["gibbs_nll"] > verdict["nll"]
    assert verdict["entropy"] == pytest.approx(float(draws.entropy().mean()), abs=1e-5)
    assert verdict["mutual_information"] == pytest.approx(float(draws.mutual_information().mean()), abs=1e-5)
    assert verdict.scores["lppd"].error == pytest.approx(float(lppd_error(draws.log_prob(y))))
    for name in ("brier", "ece", "entropy", "mutual_information", "gibbs_nll"):
        assert verdict.scores[name].error > 0, name


def test_same_seed_same_judgement(make_belief, make_mlp):
    belief, y = make_belief(make_mlp(4, 3), categorical()), labels(3)
    assert judge(belief, (X, y), samples=8) == judge(belief, (X.numpy(), y.numpy()), samples=8)
    assert judge(belief, (X, y), samples=8)["nll"] != judge(belief, (X, y), samples=8, seed=1)["nll"]


@pytest.mark.parametrize("shape", [(), (1,)])
def test_one_yes_or_no_is_two_classes(shape, make_belief, make_mlp):
    net = nn.Sequential(make_mlp(4, 1), nn.Flatten(0)) if shape == () else make_mlp(4, 1)
    belief, y = make_belief(net, bernoulli(), gain=2.0), labels(2)
    verdict = judge(belief, (X, y.float()), samples=10)
    q = belief.predict(X, 10).mean.reshape(-1)
    p = torch.stack([1 - q, q], 1)
    assert verdict["error"] == pytest.approx(float(((q > 0.5) != y.bool()).double().mean()))
    assert verdict["brier"] == pytest.approx(2 * float((q - y).square().mean()), abs=1e-5)
    assert verdict["nll"] == pytest.approx(float(nll(p, y)), abs=1e-5)
    assert verdict["entropy"] == pytest.approx(float(belief.predict(X, 10).entropy().mean()), abs=1e-5)


def test_several_yes_or_no_targets(make_belief, make_mlp):
    belief, y = make_belief(make_mlp(4, 5), bernoulli()), labels(2, 5).float()
    verdict = judge(belief, (X, y), samples=10)
    q = belief.predict(X, 10).mean
    assert verdict["error"] == pytest.approx(float(((q > 0.5) != y.bool()).double().mean()))
    assert verdict["brier"] == pytest.approx(2 * float((q - y).square().mean()), abs=1e-5)
    log_p = belief.predict(X, 10).log_prob(y)
    assert verdict["nll"] == pytest.approx(-float(lppd(log_p)))  # a row's targets together


@pytest.mark.parametrize("class_axis", [-1, -2])
def test_several_labels_a_row(class_axis, make_belief, make_mlp):
    shape = (3, 7) if class_axis == -1 else (7, 3)
    belief = make_belief(nn.Sequential(make_mlp(4, 21), nn.Unflatten(1, shape)), categorical(class_axis), gain=2.0)
    y = labels(7, 3)
    verdict = judge(belief, (X, y), samples=10, out_of_distribution=FAR)
    p = belief.predict(X, 10).mean.movedim(class_axis, -1)
    assert p.shape == (120, 3, 7)
    assert verdict["error"] == pytest.approx(float((p.argmax(-1) != y).double().mean()))
    assert verdict["ece"] == pytest.approx(float(ece(p.reshape(-1, 7), y.reshape(-1))), abs=1e-5)
    assert verdict["lppd"] == pytest.approx(float(lppd(belief.predict(X, 10).log_prob(y))))
    assert verdict["mutual_information"] == pytest.approx(
        float(belief.predict(X, 10).mutual_information().mean()), abs=1e-5
    )


@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("likelihood", [gaussian(0.3), gaussian_learned(0.3), gaussian_per_input()])
def test_regression(likelihood, targets, make_belief, make_mlp):
    outputs = 2 * targets if likelihood == gaussian_per_input() else targets
    belief = make_belief(make_mlp(4, outputs), likelihood)
    y = torch.randn(120, targets, generator=torch.Generator().manual_seed(4))
    verdict = judge(belief, (X, y), samples=10, level=0.8)
    draws = belief.predict(X, 10)
    assert verdict["rmse"] == pytest.approx(float((draws.mean - y).square().mean().sqrt()), abs=1e-5)
    assert verdict["nll"] == pytest.approx(-float(lppd(draws.log_prob(y))))
    assert verdict["aleatoric"] == pytest.approx(float(draws.aleatoric.mean()), abs=1e-5)
    assert verdict["epistemic"] == pytest.approx(float(draws.epistemic.mean()), abs=1e-5)
    inside = (draws.quantile(0.05) <= y) & (y <= draws.quantile(0.95))
    assert verdict["coverage_90"] == pytest.approx(float(inside.double().mean()))
    assert verdict["coverage_50"] <= verdict["coverage_80"] <= verdict["coverage_95"]
    assert verdict["width_80"] == pytest.approx(float((draws.quantile(0.9) - draws.quantile(0.1)).mean()), abs=1e-5)
    sampled = draws.means + draws.likelihood.variance(draws.outputs, draws.parameters).sqrt() * torch.randn(
        400, *draws.means.shape, generator=torch.Generator().manual_seed(0)
    )
    first, second = sampled.flatten(0, 1)[::2], sampled.flatten(0, 1)[1::2].flip(0)
    by_sampling = (sampled.flatten(0, 1) - y).abs().mean() - (first - second).abs().mean() / 2
    assert verdict["crps"] == pytest.approx(float(by_sampling), rel=0.02)


def test_flat_targets_of_a_column(make_belief, make_mlp):
    belief, y = make_belief(make_mlp(4, 1), gaussian(0.3)), torch.randn(120)
    assert judge(belief, (X, y), samples=5).scores == judge(belief, (X, y[:, None]), samples=5).scores


def test_flat_outputs(make_belief, make_mlp):
    y = torch.randn(120)
    column = judge(make_belief(make_mlp(4, 1), gaussian(0.3)), (X, y), samples=5)
    flat = make_belief(nn.Sequential(make_mlp(4, 1), nn.Flatten(0)), gaussian(0.3))
    verdict = judge(flat, (X, y), samples=5)
    for name in verdict.scores:
        assert verdict[name] == pytest.approx(column[name], abs=1e-5), name


def test_crps_of_many_draws_takes_some_of_them(monkeypatch, make_belief, make_mlp):
    belief, y = make_belief(make_mlp(4, 1), gaussian(0.3), scale=0.3), torch.randn(120, 1)
    all_draws = judge(belief, (X, y), samples=100).scores["crps"]
    monkeypatch.setattr(module, "CRPS_DRAWS", 50)
    thinned = judge(belief, (X, y), samples=100).scores["crps"]
    assert thinned.value != all_draws.value
    assert thinned.value == pytest.approx(all_draws.value, abs=5 * thinned.error)
    assert thinned.error > all_draws.error


def test_out_of_distribution(make_belief, make_mlp):
    belief, y = make_belief(make_mlp(4, 3), categorical(), scale=0.3), labels(3)
    verdict = judge(belief, (X, y), samples=20, out_of_distribution=FAR)
    assert list(verdict.scores) == CLASSIFICATION + SHIFT + DENSITY
    inside, outside = belief.predict(X, 20), belief.predict(FAR, 20)
    by_information = auroc(inside.mutual_information(), outside.mutual_information())
    assert verdict["auroc_mutual_information"] == pytest.approx(float(by_information), abs=2e-3)
    assert verdict["auroc_mutual_information"] > 0.9
    same = judge(belief, (X, y), samples=20, out_of_distribution=X)
    assert same["auroc_entropy"] == pytest.approx(0.5)


def test_out_of_distribution_for_regression(make_belief, make_mlp):
    belief = make_belief(make_mlp(4, 1), gaussian(0.3), scale=0.3)
    verdict = judge(belief, (X, torch.randn(120, 1)), samples=10, out_of_distribution=FAR)
    assert verdict["auroc_entropy"] > 0.9
    assert verdict["fpr95_entropy"] < 0.3


@pytest.mark.parametrize("likelihood", [categorical(), gaussian_per_input()])
def test_a_point_has_no_monte_carlo_error_and_no_disagreement(likelihood, make_mlp):
    net = make_mlp(4, 2)
    layout, flat = lay_out(net)
    belief = Belief(net, likelihood, Delta(flat, layout.random), layout, (untrained_tensors(net),))
    y = labels(2) if likelihood == categorical() else torch.randn(120)
    verdict = judge(belief, (X, y), out_of_distribution=FAR)
    assert verdict.samples == 1
    assert all(e.error == 0 for e in verdict.scores.values())
    assert verdict["auroc_mutual_information"] == 0.5
    assert not any("draw" in finding or "samples" in finding for finding in verdict.findings)


def test_particles_are_judged_once_each(make_mlp):
    net = make_mlp(4, 3)
    layout, flat = lay_out(net)
    weights = flat + 0.3 * torch.randn(4, len(flat), generator=torch.Generator().manual_seed(0))
    belief = Belief(net, categorical(), Particles(weights, layout.random), layout, (untrained_tensors(net),) * 4)
    verdict = judge(belief, (X, labels(3)), samples=50)
    assert verdict.samples == 4
    assert verdict.scores["lppd"].error == 0  # there are no other draws to move it


def test_findings_reach_the_judgement(make_belief, make_mlp):
    belief = make_belief(make_mlp(4, 3), categorical(), scale=0.01, gain=30.0)  # sure of everything
    verdict = judge(belief, (X, labels(3)), samples=10)
    assert any(finding.startswith("Overconfident") for finding in verdict.findings)
    unsure = make_belief(make_mlp(4, 3), categorical(), scale=0.01, gain=0.3)
    verdict = judge(unsure, (X, unsure.predict(X, 10).mean.argmax(1)), samples=10)
    assert any(finding.startswith("Underconfident") for finding in verdict.findings)


def test_table_and_json(make_belief, make_mlp):
    verdict = judge(make_belief(make_mlp(4, 3), categorical(), gain=30.0), (X, labels(3)), samples=10)
    text = str(verdict)
    head, *lines = text.splitlines()
    assert head.startswith("120 rows, 10 draws")
    table = lines[: len(verdict.scores)]
    assert len({len(line.split(" ±")[0]) for line in table}) == 1, "values line up"
    assert [line.split()[0] for line in table] == list(verdict.scores)
    assert all(finding.split(":")[0] in text for finding in verdict.findings)
    back = json.loads(json.dumps(verdict.as_dict(), allow_nan=False))
    assert back["scores"]["nll"]["value"] == verdict["nll"]
    assert back["findings"] == verdict.findings


def test_what_json_lacks_is_null():
    verdict = Judgement({"nll": Estimate(math.inf)}, rows=1, samples=1)
    assert verdict.as_dict()["scores"]["nll"]["value"] is None


def test_refusals(make_belief, make_mlp):
    belief = make_belief(make_mlp(4, 3), categorical())
    with pytest.raises(BadInput, match="pair"):
        judge(belief, X)
    with pytest.raises(BadInput, match="rows"):
        judge(belief, (X, labels(3)[:-1]))
    with pytest.raises(BadInput, match="labels run"):
        judge(belief, (X, labels(3) + 1))
    with pytest.raises(BadInput, match="NaN"):
        judge(belief, (X * math.nan, labels(3)))
    with pytest.raises(BadInput, match="level"):
        judge(belief, (X, labels(3)), level=90)
    with pytest.raises(BadInput, match="bins"):
        judge(belief, (X, labels(3)), bins=0)
