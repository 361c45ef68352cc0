"""The laws of metrics, for everything in the room's table."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from doxa.errors import BadInput
from doxa.judge import TABLE

CLASSIFICATION, DENSITY, MIXTURE = TABLE["classification"], TABLE["density"], TABLE["mixture"]
POINT, INTERVAL, SHIFT = TABLE["point"], TABLE["interval"], TABLE["shift"]
STRICTLY_PROPER = ["brier", "nll"]
CALIBRATION = ["ece", "ece_classwise", "ece_adaptive"]

seeds = st.integers(0, 10**6)
few = settings(max_examples=20, deadline=None)


def table(seed: int, rows: int = 60, classes: int = 4) -> tuple[torch.Tensor, torch.Tensor, torch.Generator]:
    source = torch.Generator().manual_seed(seed)
    p = torch.randn(rows, classes, generator=source, dtype=torch.float64).mul(2).softmax(1)
    return p, torch.randint(0, classes, (rows,), generator=source), source


@pytest.mark.parametrize("metric", CLASSIFICATION.values(), ids=CLASSIFICATION)
class TestClassification:
    @few
    @given(seeds)
    def test_the_order_of_rows_is_nothing(self, metric, seed):
        p, y, source = table(seed)
        p = (p * 4).round() / 4 if seed % 2 else p  # ties, too
        p = (p + 1e-3) / (p + 1e-3).sum(1, keepdim=True)
        order = torch.randperm(len(y), generator=source)
        assert float(metric(p[order], y[order])) == pytest.approx(float(metric(p, y)), abs=1e-12)

    @few
    @given(seeds)
    def test_the_names_of_classes_are_nothing(self, metric, seed):
        p, y, source = table(seed)
        order = torch.randperm(4, generator=source)
        assert float(metric(p[:, order], order.argsort()[y])) == pytest.approx(float(metric(p, y)), abs=1e-12)

    @few
    @given(seeds)
    def test_certain_and_right_is_best(self, metric, seed):
        p, y, _ = table(seed)
        assert float(metric(torch.eye(4, dtype=torch.float64)[y], y)) == 0
        assert float(metric(p, y)) > 0

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_the_dtype_is_nothing(self, metric, dtype):
        p, y, _ = table(0)
        assert float(metric(p.to(dtype), y)) == pytest.approx(float(metric(p, y)), abs=1e-6)
        assert float(metric(p, y.to(torch.int32))) == float(metric(p, y))

    @pytest.mark.parametrize(
        ("p", "y", "says"),
        [
            (torch.full((3, 2), 0.5), torch.zeros(4, dtype=torch.long), "one label a row"),
            (torch.full((3, 2), 0.5), torch.zeros(3, 1, dtype=torch.long), "one label a row"),
            (torch.full((5, 3, 2), 0.5), torch.zeros(3, dtype=torch.long), "average over draws"),
            (torch.full((3, 1), 1.0), torch.zeros(3, dtype=torch.long), "two classes"),
            (torch.full((3, 2), 0.5), torch.tensor([0, 1, 2]), "labels run from 0 to 2"),
            (torch.full((3, 2), 0.5), torch.tensor([0, 1, -1]), "labels run from -1"),
            (torch.full((3, 2), 0.5), torch.zeros(3), "y.long"),
            (torch.tensor([[0.5, 0.5], [math.nan, 0.5]]), torch.tensor([0, 1]), "NaN"),
            (torch.tensor([[2.0, -1.0]]), torch.tensor([0]), "softmax"),
            (torch.tensor([[3.0, 2.0]]), torch.tensor([0]), "softmax"),
            (torch.zeros(0, 2), torch.zeros(0, dtype=torch.long), "nothing to judge"),
        ],
    )
    def test_refuses_what_it_cannot_judge(self, metric, p, y, says):
        with pytest.raises(BadInput, match=says):
            metric(p, y)


def expected(metric, predicted: torch.Tensor, true: torch.Tensor) -> float:
    """E_y metric(said, y), y ~ true: exact, by summing over the classes."""
    return sum(float(true[c]) * float(metric(predicted[None], torch.tensor([c]))) for c in range(len(true)))


@pytest.mark.parametrize("name", STRICTLY_PROPER)
@few
@given(seeds, st.floats(0.05, 2.0))
def test_proper_scores_are_best_at_the_truth(name, seed, size):
    true, _, source = table(seed, rows=1)
    perturbed = (true[0].log() + size * torch.randn(4, generator=source, dtype=torch.float64)).softmax(0)
    assert expected(CLASSIFICATION[name], perturbed, true[0]) > expected(CLASSIFICATION[name], true[0], true[0])


@pytest.mark.parametrize("name", CALIBRATION)
def test_calibration_is_best_at_the_truth(name):
    true, _, source = table(0, rows=20_000)
    y = torch.multinomial(true, 1, generator=source).squeeze(1)
    at_truth = float(CLASSIFICATION[name](true, y))
    assert at_truth < 0.02
    for power in (0.5, 2.0):  # flatter and sharper than the truth
        assert float(CLASSIFICATION[name](true.pow(power) / true.pow(power).sum(1, keepdim=True), y)) > 3 * at_truth


@pytest.mark.parametrize("metric", DENSITY.values(), ids=DENSITY)
class TestDensity:
    @few
    @given(seeds)
    def test_the_order_of_rows_and_draws_is_nothing(self, metric, seed):
        source = torch.Generator().manual_seed(seed)
        log_p = -3 * torch.rand(7, 11, generator=source, dtype=torch.float64)
        shuffled = log_p[torch.randperm(7, generator=source)][:, torch.randperm(11, generator=source)]
        assert float(metric(shuffled)) == pytest.approx(float(metric(log_p)))

    def test_the_unit_of_y_shifts_it(self, metric):
        log_p = -3 * torch.rand(7, 11, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        assert abs(float(metric(log_p + 700)) - float(metric(log_p))) == pytest.approx(700)

    @pytest.mark.parametrize(
        ("log_p", "says"),
        [
            (torch.zeros(5), "draws, rows"),
            (torch.zeros(3, 0), "nothing to judge"),
            (torch.tensor([[math.nan, 0.0]]), "NaN"),
            (torch.tensor([[math.inf, 0.0]]), "noise scale"),
        ],
    )
    def test_refuses_what_it_cannot_judge(self, metric, log_p, says):
        with pytest.raises(BadInput, match=says):
            metric(log_p)


@few
@given(seeds)
def test_averaging_never_loses_to_sampling(seed):
    log_p = -5 * torch.rand(6, 9, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    assert -float(DENSITY["lppd"](log_p)) < float(DENSITY["gibbs_nll"](log_p))
    same = log_p[:1].expand(6, 9)
    assert -float(DENSITY["lppd"](same)) == pytest.approx(float(DENSITY["gibbs_nll"](same)))


@pytest.mark.parametrize("metric", MIXTURE.values(), ids=MIXTURE)
class TestMixture:
    @few
    @given(seeds)
    def test_the_order_of_rows_and_draws_is_nothing(self, metric, seed):
        source = torch.Generator().manual_seed(seed)
        location, scale = torch.randn(5, 8, 2, generator=source), torch.rand(5, 8, 2, generator=source) + 0.1
        y = torch.randn(8, 2, generator=source)
        rows, draws = torch.randperm(8, generator=source), torch.randperm(5, generator=source)
        shuffled = metric(location[draws][:, rows], scale[draws][:, rows], y[rows])
        assert shuffled.value == pytest.approx(metric(location, scale, y).value)
        assert shuffled.error == pytest.approx(metric(location, scale, y).error)

    def test_certain_and_right_is_best(self, metric):
        y = torch.randn(9, generator=torch.Generator().manual_seed(0))
        assert metric(y.expand(4, 9), torch.tensor(0.0), y).value == pytest.approx(0, abs=1e-12)
        assert metric(y.expand(4, 9), torch.tensor(0.1), y).value > 0

    @pytest.mark.parametrize(("shift", "factor"), [(0.3, 1.0), (0.0, 1.5), (0.0, 0.6), (-0.2, 1.2)])
    def test_best_at_the_truth(self, metric, shift, factor):
        location, scale = torch.tensor([[-1.0], [0.5], [2.0]]), torch.tensor([[0.5], [1.0], [0.3]])
        ranks = (torch.arange(4000) + 0.5) / 4000
        y = torch.cat([torch.distributions.Normal(m, s).icdf(ranks) for m, s in zip(location, scale, strict=True)])

        def score(location, scale):
            return metric(location.expand(3, len(y)), scale, y).value

        assert score(location + shift, scale * factor) > score(location, scale)


@pytest.mark.parametrize("metric", POINT.values(), ids=POINT)
@few
@given(seeds)
def test_point_scores(metric, seed):
    source = torch.Generator().manual_seed(seed)
    mean, y = (torch.randn(12, 2, generator=source, dtype=torch.float64) for _ in range(2))
    order = torch.randperm(12, generator=source)
    assert float(metric(mean[order], y[order])) == pytest.approx(float(metric(mean, y)))
    assert float(metric(y, y)) == 0 < float(metric(mean, y))
    assert float(metric(3 * mean, 3 * y)) == pytest.approx(3 * float(metric(mean, y)))


@pytest.mark.parametrize("metric", INTERVAL.values(), ids=INTERVAL)
@few
@given(seeds)
def test_interval_scores(metric, seed):
    source = torch.Generator().manual_seed(seed)
    y, centre = (torch.randn(12, 2, generator=source) for _ in range(2))
    order = torch.randperm(12, generator=source)
    shuffled = metric(y[order], centre[order] - 1, centre[order] + 1)
    assert float(shuffled) == pytest.approx(float(metric(y, centre - 1, centre + 1)))
    assert float(metric(y, y, y)) == 1
    assert float(metric(y, y + 1, y + 2)) == 0
    assert float(metric(y, centre - 1, centre + 1)) <= float(metric(y, centre - 2, centre + 2))


@pytest.mark.parametrize(("name", "best"), [("auroc", 1.0), ("fpr95", 0.0)])
@few
@given(seeds)
def test_shift_scores(name, best, seed):
    metric = SHIFT[name]
    source = torch.Generator().manual_seed(seed)
    inside, outside = (torch.randint(0, 9, (n,), generator=source).double() for n in (13, 17))
    shuffled = metric(inside[torch.randperm(13, generator=source)], outside[torch.randperm(17, generator=source)])
    assert float(shuffled) == float(metric(inside, outside))
    assert float(metric(inside.exp(), outside.exp())) == float(metric(inside, outside)), "ranks are all that counts"
    assert float(metric(inside, outside + 9)) == best
    assert float(metric(inside + 9, outside)) == 1 - best


def test_every_shift_score_is_under_its_law():
    assert set(SHIFT) == {"auroc", "fpr95"}


@few
@given(seeds)
def test_auroc_of_the_exchanged_is_the_complement(seed):
    source = torch.Generator().manual_seed(seed)
    a, b = (torch.randint(0, 5, (n,), generator=source).float() for n in (10, 14))
    assert float(SHIFT["auroc"](a, b)) + float(SHIFT["auroc"](b, a)) == pytest.approx(1)


@pytest.mark.parametrize("metric", SHIFT.values(), ids=SHIFT)
@pytest.mark.parametrize(
    ("inside", "outside", "says"),
    [
        (torch.zeros(0), torch.zeros(3), "nothing to judge"),
        (torch.zeros(3), torch.tensor([math.nan]), "NaN"),
        (torch.zeros(3, 2), torch.zeros(3), "one score an input"),
        (torch.zeros(3), torch.zeros(3).double(), "one dtype"),
    ],
)
def test_shift_scores_refuse_what_they_cannot_judge(metric, inside, outside, says):
    with pytest.raises(BadInput, match=says):
        metric(inside, outside)
