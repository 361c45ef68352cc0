"""Evidence: every number as the judge room's own functions give it, all of it plain JSON."""

from __future__ import annotations

import json
import math

import pytest
import torch
from torch import nn

import doxa
from doxa.judge import coverage, judge, pruning_curve, reliability, robustness, signal_to_noise_histogram
from doxa.judge.evidence import evidence
from doxa.likelihoods import bernoulli, categorical, gaussian, gaussian_per_input
from doxa.posteriors.delta import Delta
from doxa.predict.belief import Belief
from doxa.results import first_problem, read_result, write_result
from doxa.weights.layout import lay_out, untrained_tensors

SOURCE = torch.Generator().manual_seed(0)
X = torch.rand(90, 4, generator=SOURCE)
FAR = 4 + torch.rand(40, 4, generator=SOURCE)
LABELS = torch.randint(0, 3, (90,), generator=SOURCE)
IMAGES = torch.rand(30, 1, 2, 2, generator=SOURCE)
LINE = torch.linspace(-1, 1, 50)[:, None]


@pytest.fixture
def classifier(make_belief, make_mlp) -> Belief:
    return make_belief(make_mlp(4, 3), categorical(), gain=2.0, scale=0.2)


def is_json(result) -> bool:
    return first_problem(json.loads(json.dumps(result, allow_nan=False))) is None


def test_scores_and_findings_are_those_of_judge(classifier):
    result = evidence(classifier, (X, LABELS), name="a", samples=20, seed=3, out_of_distribution=FAR)
    judgement = judge(classifier, (X, LABELS), samples=20, seed=3, out_of_distribution=FAR)
    for name, estimate in judgement.scores.items():
        score = {"value": estimate.value, "error": estimate.error, "over": "draws", "count": 20}
        assert result["scores"][name] == score, name
    assert result["findings"] == judgement.findings
    assert is_json(result)


def test_classification_sections(classifier):
    result = evidence(classifier, (X, LABELS), name="a", samples=20, attack_radius=0.3)
    draws = classifier.predict(X, 20)
    table = reliability(draws.mean, LABELS)
    assert result["reliability"]["count"] == table.count.tolist()
    for confidence, exact in zip(result["reliability"]["confidence"], table.confidence.tolist(), strict=True):
        assert confidence is None if math.isnan(exact) else confidence == pytest.approx(exact, abs=1e-6)
    curve = pruning_curve(classifier, (X, LABELS), samples=20)
    assert result["pruning"] == {"share": curve["fraction"], "error": curve["error"]}
    assert result["scores"]["error_pruned_95"]["value"] == curve["error"][curve["fraction"].index(0.95)]
    edges, counts = signal_to_noise_histogram(classifier)
    assert result["signal_to_noise"]["edges"] == edges
    assert sum(result["signal_to_noise"]["count"]) == sum(map(sum, counts.values())) == classifier.layout.random
    attacked = robustness(classifier, (X, LABELS), result["attack"]["radius"], samples=20)
    assert result["attack"]["accuracy"] == pytest.approx(attacked["accuracy"])
    assert result["attack"]["radius"][-1] == 0.3
    assert result["scores"]["accuracy_attacked"]["value"] == attacked["accuracy"][-1]
    about = {"name": "data", "rows": 90, "task": "classification", "classes": ["0", "1", "2"]}
    assert {k: v for k, v in result["data"].items() if k != "digest"} == about


def test_entropies_inside_and_outside(classifier):
    entropy = evidence(classifier, (X, LABELS), name="a", samples=20, out_of_distribution=FAR)["entropy"]
    assert entropy["edges"][0] == 0
    assert entropy["edges"][-1] == pytest.approx(math.log(3))
    assert (sum(entropy["inside"]), sum(entropy["outside"])) == (90, 40)
    middles = [(a + b) / 2 for a, b in zip(entropy["edges"], entropy["edges"][1:], strict=False)]
    mean = sum(m * n for m, n in zip(middles, entropy["inside"], strict=True)) / 90
    assert mean == pytest.approx(float(classifier.predict(X, 20).entropy().mean()), abs=math.log(3) / 30)
    assert "outside" not in evidence(classifier, (X, LABELS), name="a", samples=5)["entropy"]


@pytest.mark.parametrize("channels", [1, 3])
def test_the_least_sure_images_come_first(channels, make_belief, make_mlp):
    images = IMAGES.expand(30, channels, 2, 2).contiguous()
    net = nn.Sequential(nn.Flatten(), make_mlp(4 * channels, 3))
    belief = make_belief(net, categorical(), gain=3.0)
    result = evidence(
        belief, (images, LABELS[:30]), name="a", samples=10, about={"name": "x", "classes": ["r", "g", "b"]}
    )
    draws = belief.predict(images, 10)
    order = draws.entropy().argsort(descending=True)
    assert len(result["unsure"]) == 6
    for row, i in zip(result["unsure"], order, strict=False):
        assert row["label"] == int(LABELS[i])
        assert row["probabilities"] == pytest.approx(draws.mean[i].tolist(), abs=1e-4)
        expected = images[i, 0] if channels == 1 else images[i].movedim(0, -1)
        assert torch.allclose(torch.tensor(row["image"]), expected, atol=1e-4)
    assert result["data"]["classes"] == ["r", "g", "b"]
    assert is_json(result)


@pytest.mark.parametrize("likelihood", [gaussian(0.3), gaussian_per_input()])
def test_regression_over_one_input(likelihood, make_belief, make_mlp):
    outputs = 2 if likelihood == gaussian_per_input() else 1
    belief = make_belief(make_mlp(1, outputs), likelihood, scale=0.2)
    y = LINE.sin()
    result = evidence(belief, (LINE, y), name="a", samples=20, train=(LINE[10:20], y[10:20]), truth=(2 * LINE, y))
    draws = belief.predict(LINE, 20)
    for level, covered in zip(result["intervals"]["level"], result["intervals"]["coverage"], strict=True):
        assert covered == float(coverage(y, draws.quantile((1 - level) / 2), draws.quantile((1 + level) / 2)))
    band = result["band"]
    assert (band["x"][0], band["x"][-1]) == (-2, 2), "as far as the truth reaches"
    grid_draws = belief.predict(torch.tensor(band["x"])[:, None], 20)
    assert band["mean"] == pytest.approx(grid_draws.mean.flatten().tolist(), abs=1e-3)
    assert band["lower"] == pytest.approx(grid_draws.quantile(0.05).flatten().tolist(), abs=1e-3)
    assert band["upper"] == pytest.approx(grid_draws.quantile(0.95).flatten().tolist(), abs=1e-3)
    noise = [(high - low) / 2 for low, high in zip(band["aleatoric_lower"], band["aleatoric_upper"], strict=True)]
    assert noise == pytest.approx((1.645 * grid_draws.aleatoric).flatten().tolist(), rel=1e-3, abs=1e-4)
    assert band["train_x"] == pytest.approx(LINE[10:20].flatten().tolist(), abs=1e-4)
    assert "rmse" in result["pruning"]
    assert "rmse_pruned_95" in result["scores"]
    assert "reliability" not in result
    assert result["data"]["task"] == "regression"
    assert is_json(result)


def test_intervals_band_and_findings_are_moved_by_the_levels(make_belief, make_mlp):
    """Levels that ask for the half of everything: nothing else tells intervals, width, band and findings what to do."""
    belief, y = make_belief(make_mlp(1, 1), gaussian(0.3), scale=0.2), LINE.sin()
    levels = torch.tensor([[0.0, 0.05, 0.95, 1.0], [0.0, 0.2, 0.7, 1.0]], dtype=torch.float64)
    result = evidence(belief, (LINE, y), name="a", samples=20, levels=levels)
    draws = belief.predict(LINE, 20)
    lower, upper = draws.quantile(0.2), draws.quantile(0.7)
    covered = float(coverage(y, lower, upper))
    assert result["scores"]["coverage_90"]["value"] == covered
    assert result["scores"]["width_90"]["value"] == pytest.approx(float((upper - lower).mean()), rel=1e-5)
    assert result["intervals"]["coverage"][result["intervals"]["level"].index(0.9)] == covered
    assert any(f"90% intervals hold {covered:.1%}" in finding for finding in result["findings"])
    band = result["band"]
    grid_draws = belief.predict(torch.tensor(band["x"])[:, None], 20)
    assert band["lower"] == pytest.approx(grid_draws.quantile(0.2).flatten().tolist(), abs=1e-3)
    assert band["upper"] == pytest.approx(grid_draws.quantile(0.7).flatten().tolist(), abs=1e-3)
    noise = torch.distributions.Normal(grid_draws.mean, grid_draws.aleatoric)
    assert band["aleatoric_lower"] == pytest.approx(noise.icdf(torch.tensor(0.2)).flatten().tolist(), abs=1e-3)
    assert band["aleatoric_upper"] == pytest.approx(noise.icdf(torch.tensor(0.7)).flatten().tolist(), abs=1e-3)


def test_a_digest_tells_rows_apart(classifier, make_belief, make_mlp):
    def of(belief, x, y, **more):
        return evidence(belief, (x, y), name="a", samples=2, **more)["data"]["digest"]

    once = of(classifier, X, LABELS)
    assert once == of(classifier, X.clone(), LABELS)
    assert once != of(classifier, X[:80], LABELS[:80])
    assert once != of(classifier, X.flip(0), LABELS), "other rows may have the same labels"
    assert once != of(classifier, X, (LABELS + 1) % 3)
    assert of(classifier, X, LABELS, about={"digest": "of the table"}) == "of the table"
    # The targets of a quantity tell rows apart, and are the same for beliefs about other columns.
    y = X.sum(1, keepdim=True)
    two, four = make_belief(make_mlp(2, 1), gaussian(0.3)), make_belief(make_mlp(4, 1), gaussian(0.3))
    assert of(two, X[:, :2], y) == of(four, X, y) == of(four, X, y[:, 0])
    assert of(four, X, y) == of(four.to(dtype=torch.float64), X.double(), y.double())
    assert of(four, X, y) != of(four, X, y + 1)


def test_many_training_rows_are_thinned(make_belief, make_mlp):
    many = torch.linspace(-1, 1, 1000)[:, None]
    result = evidence(make_belief(make_mlp(1, 1), gaussian(0.3)), (LINE, LINE), name="a", samples=3, train=(many, many))
    assert 200 <= len(result["band"]["train_x"]) <= 300


def test_a_point_has_no_signal_to_noise(make_mlp):
    net = make_mlp(4, 3)
    layout, flat = lay_out(net)
    belief = Belief(net, categorical(), Delta(flat, layout.random), layout, (untrained_tensors(net),))
    result = evidence(belief, (X, LABELS), name="plain")
    assert "signal_to_noise" not in result
    assert result["scores"]["nll"]["count"] == 1


def test_yes_or_no_and_several_targets(make_belief, make_mlp):
    y = (X[:, :2] > 0.5).float()
    result = evidence(make_belief(make_mlp(4, 2), bernoulli()), (X, y), name="a", samples=5)
    assert sum(result["reliability"]["count"]) == 180
    assert result["data"]["classes"] == ["0", "1"]
    assert is_json(result)
    real = evidence(make_belief(make_mlp(4, 2), gaussian(1.0)), (X, X[:, :2]), name="a", samples=5, attack_radius=0.1)
    assert "band" not in real
    assert "attack" not in real
    assert is_json(real)


def test_it_can_be_written_and_read(classifier, tmp_path):
    result = evidence(classifier, (X, LABELS), name="a", samples=5, settings={"why": "because"})
    write_result(tmp_path / "a.json", result)
    back = read_result(tmp_path / "a.json")
    assert {key: back[key] for key in result} == result
    assert back["settings"] == {"why": "because"}
    assert back["stamp"]["versions"]["torch"] == torch.__version__


def test_the_fit_is_told_in_words_with_its_history():
    learner = doxa.learners.variational(doxa.priors.scale_mixture(0.5, 1.0, 0.01), doxa.noise.local)
    belief = doxa.fit(
        nn.Sequential(nn.Linear(4, 3)),
        (X, LABELS),
        learner=learner,
        likelihood=categorical(),
        epochs=2,
        validation=(X[:20], LABELS[:20]),
        seed=7,
        progress=False,
    )
    result = evidence(belief, (X, LABELS), name="a", samples=5)
    assert "prior=scale_mixture(share=0.5, wide=1.0, narrow=0.01" in result["settings"]["learner"]
    assert "noise=local" in result["settings"]["learner"]
    assert result["settings"]["epochs"] == 2
    assert result["stamp"]["seeds"] == [7]
    assert [set(row) for row in result["history"]] == [{"nll", "kl", "validation_nll"}] * 2
    assert result["history"][0]["nll"] == belief.record.history[0]["nll"]
