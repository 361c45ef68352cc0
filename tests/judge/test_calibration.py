"""Reliability tables and calibration errors: by hand, and beside torchmetrics and scikit-learn."""

from __future__ import annotations

import pytest
import torch
from sklearn.calibration import calibration_curve
from torchmetrics.functional.classification import multiclass_calibration_error

from doxa.judge import ece, ece_adaptive, ece_classwise, reliability, reliability_all_classes

# Confidences 0.9, 0.8, 0.6, 0.6; right, wrong, right, wrong.
P = torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.4, 0.6]], dtype=torch.float64)
Y = torch.tensor([0, 0, 0, 0])


def random_table(seed: int, rows: int = 400, classes: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    source = torch.Generator().manual_seed(seed)
    p = torch.randn(rows, classes, generator=source, dtype=torch.float64).mul(1.5).softmax(1)
    return p, torch.randint(0, classes, (rows,), generator=source)


def test_reliability_by_hand():
    table = reliability(P, Y, bins=4)  # (0, ¼], (¼, ½], (½, ¾], (¾, 1]
    assert table.edges.tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert table.count.tolist() == [0, 0, 2, 2]
    assert table.confidence[2:].tolist() == pytest.approx([0.6, 0.85])
    assert table.accuracy[2:].tolist() == pytest.approx([0.5, 0.5])
    assert bool(table.confidence[:2].isnan().all())
    assert float(table.ece) == pytest.approx(0.5 * 0.1 + 0.5 * 0.35)
    assert float(ece(P, Y, bins=4)) == pytest.approx(0.225)


def test_a_score_on_an_edge_belongs_to_the_bin_below():
    table = reliability(torch.tensor([[0.5, 0.5], [1.0, 0.0]]), torch.tensor([0, 0]), bins=2)
    assert table.count.tolist() == [1, 1]


def test_all_classes_by_hand():
    table = reliability_all_classes(P, Y, bins=2)  # scores up to ½: .1 .2 .4 .4; above: .9 .8 .6 .6
    assert table.count.tolist() == [4, 4]
    assert table.confidence.tolist() == pytest.approx([1.1 / 4, 2.9 / 4])
    assert table.accuracy.tolist() == pytest.approx([2 / 4, 2 / 4])


def test_classwise_by_hand():
    # Class 0 has scores .2 .4 | .6 .9, all of them label 0; class 1 the rest, none of them label 1.
    gaps = [(0.8 + 0.6) + (0.4 + 0.1), (0.1 + 0.4) + (0.6 + 0.8)]
    assert float(ece_classwise(P, Y, bins=2)) == pytest.approx(sum(gaps) / 4 / 2)


def test_adaptive_by_hand():
    p = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]])
    y = torch.tensor([0, 1, 0, 1])  # two rows a bin, (.6, .7) and (.8, .9), half of each right
    assert float(ece_adaptive(p, y, bins=2)) == pytest.approx(0.5 * 0.15 + 0.5 * 0.35)
    assert float(ece_adaptive(p, y, bins=4)) == pytest.approx((0.1 + 0.8 + 0.3 + 0.6) / 4)


@pytest.mark.parametrize("bins", [2, 10, 15])
def test_top_label_agrees_with_torchmetrics(bins):
    for seed in range(5):
        p, y = random_table(seed)
        theirs = multiclass_calibration_error(p, y, num_classes=5, n_bins=bins, norm="l1")
        assert float(ece(p, y, bins)) == pytest.approx(float(theirs), abs=1e-6)  # they sum in float32


@pytest.mark.parametrize("seed", range(3))
def test_classwise_is_the_mean_of_binary_tables(seed):
    p, y = random_table(seed)
    gaps = []
    for c in range(5):
        cell = (p[:, c] * 10).ceil().clamp_min(1)
        hit = (y == c).double()
        gaps.append(sum(abs(float((hit - p[:, c])[cell == k].sum())) for k in range(1, 11)) / len(y))
    assert float(ece_classwise(p, y, bins=10)) == pytest.approx(sum(gaps) / 5)


def test_all_classes_agrees_with_scikit_learn():
    p, y = random_table(0)
    table = reliability_all_classes(p, y, bins=10)
    hit = torch.nn.functional.one_hot(y, 5).flatten()
    share, mean_score = calibration_curve(hit, p.flatten(), n_bins=10)
    full = table.count > 0
    assert table.accuracy[full].tolist() == pytest.approx(share.tolist())
    assert table.confidence[full].tolist() == pytest.approx(mean_score.tolist())


def test_adaptive_bins_hold_equally_many_rows():
    p, y = random_table(1, rows=100)
    order = p.max(1).values.argsort()
    gap = (p.argmax(1) == y).double() - p.max(1).values
    by_hand = sum(abs(float(part.sum())) for part in gap[order].split(10)) / 100
    assert float(ece_adaptive(p, y, bins=10)) == pytest.approx(by_hand)
