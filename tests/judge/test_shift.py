"""AUROC and FPR at 95 % TPR: by hand, and beside scikit-learn and torchmetrics."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score, roc_curve
from torchmetrics.functional.classification import binary_auroc

from doxa.judge import auroc, fpr95

# Whole numbers, so that there are many ties.
scores = st.lists(st.integers(0, 12), min_size=1, max_size=60)


def test_by_hand():
    inside, outside = torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([2.0, 5.0])
    assert float(auroc(inside, outside)) == pytest.approx((1.5 + 4) / 8)
    assert float(fpr95(inside, outside)) == 0.75  # both must be caught, so the threshold is 2


def test_threshold_leaves_out_five_in_a_hundred():
    outside = torch.arange(100.0)  # 95 caught: the threshold is 5
    assert float(fpr95(torch.tensor([4.0, 5.0]), outside)) == 0.5


@settings(max_examples=60, deadline=None)
@given(scores, scores)
def test_agree_with_scikit_learn(inside, outside):
    truth, score = np.r_[np.zeros(len(inside)), np.ones(len(outside))], np.r_[inside, outside]
    a, b = torch.tensor(inside).float(), torch.tensor(outside).float()
    assert float(auroc(a, b)) == pytest.approx(roc_auc_score(truth, score))
    false, true, _ = roc_curve(truth, score, drop_intermediate=False)
    # Counted, not divided: 0.95 itself is no binary fraction.
    assert float(fpr95(a, b)) == pytest.approx(false[true * len(outside) * 100 >= 95 * len(outside) - 1e-6].min())


def test_auroc_agrees_with_torchmetrics():
    source = torch.Generator().manual_seed(0)
    a, b = torch.rand(300, generator=source), torch.rand(200, generator=source) ** 0.5
    truth = torch.cat([torch.zeros(300), torch.ones(200)]).long()
    assert float(auroc(a, b)) == pytest.approx(float(binary_auroc(torch.cat([a, b]), truth)), abs=1e-5)
