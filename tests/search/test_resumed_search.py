"""A search that was finished, and is asked to go on: nothing of it changes, neither numbers nor words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import doxa
import for_workers
from doxa import search

ESTIMATORS = {"local": search.local(), "weight space": search.weight_space(), "low rank": search.low_rank()}


@pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS.keys())
def test_a_learner_s_belief_says_the_same_of_its_noise(estimator: Any, tmp_path: Path) -> None:
    def fitted(resume: bool) -> doxa.Belief:
        torch.manual_seed(0)
        return doxa.fit(
            doxa.nets.mlp(2, (4,), 2),
            for_workers.rows(),
            learner=search.learner(estimator, size=8),
            likelihood=doxa.likelihoods.categorical(),
            epochs=2,
            batch_size=96,
            lr=0.01,
            checkpoint=tmp_path,
            resume=resume,
            progress=False,
        )

    finished, resumed = fitted(resume=False), fitted(resume=True)
    assert resumed.noise == finished.noise
    assert resumed.record.history == finished.record.history
    assert torch.equal(resumed.posterior.mean, finished.posterior.mean)


def test_a_minimum_stays_what_it_was(tmp_path: Path) -> None:
    def minimised(resume: bool) -> search.SearchResult:
        keys: dict[str, Any] = {"generations": 8, "size": 8, "checkpoint": tmp_path, "progress": False}
        return search.minimise(for_workers.sphere, [0.0, 0.0], resume=resume, **keys)

    finished, resumed = minimised(resume=False), minimised(resume=True)
    assert resumed.trajectory == finished.trajectory
    assert resumed.value == finished.value
    for name in ("best", "mean", "scale", "path"):
        assert torch.equal(getattr(resumed, name), getattr(finished, name))
