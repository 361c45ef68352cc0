"""Error, Brier score and NLL: by hand, and beside scikit-learn and torchmetrics."""

from __future__ import annotations

import math

import pytest
import torch
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss
from torchmetrics.functional.classification import multiclass_accuracy

from doxa.judge import brier, error, nll

P = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.2, 0.5, 0.3], [0.25, 0.25, 0.5]])
Y = torch.tensor([0, 1, 1, 2])


def test_error_by_hand():
    assert float(error(P, Y)) == 0.25  # only the second row is wrong


def test_brier_by_hand():
    rows = [0.09 + 0.04 + 0.01, 0.01 + 0.49 + 0.36, 0.04 + 0.25 + 0.09, 0.0625 + 0.0625 + 0.25]
    assert float(brier(P, Y)) == pytest.approx(sum(rows) / 4, abs=1e-6)


def test_nll_by_hand():
    assert float(nll(P, Y)) == pytest.approx(-math.log(0.7 * 0.3 * 0.5 * 0.5) / 4, abs=1e-6)


def test_nll_of_a_label_ruled_out_is_infinite():
    assert float(nll(torch.tensor([[1.0, 0.0]]), torch.tensor([1]))) == math.inf


@pytest.mark.parametrize("seed", range(5))
def test_agree_with_scikit_learn_and_torchmetrics(seed):
    source = torch.Generator().manual_seed(seed)
    p = torch.randn(300, 4, generator=source, dtype=torch.float64).mul(2).softmax(1)
    y = torch.randint(0, 4, (300,), generator=source)
    assert float(error(p, y)) == pytest.approx(1 - accuracy_score(y, p.argmax(1)))
    assert float(error(p, y)) == pytest.approx(1 - float(multiclass_accuracy(p, y, 4, average="micro")))
    assert float(nll(p, y)) == pytest.approx(log_loss(y, p, labels=range(4)))
    one_against_rest = sum(brier_score_loss(y == c, p[:, c], scale_by_half=True) for c in range(4))
    assert float(brier(p, y)) == pytest.approx(one_against_rest)


def test_two_classes_are_twice_the_one_sided_brier_score():
    q, y = torch.tensor([0.2, 0.9, 0.5], dtype=torch.float64), torch.tensor([0, 1, 1])
    two_sided = brier(torch.stack([1 - q, q], 1), y)
    assert float(two_sided) == pytest.approx(2 * brier_score_loss(y, q, scale_by_half=True))
