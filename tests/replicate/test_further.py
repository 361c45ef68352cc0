"""What the document leaves for later: rows of each seed, settings that are chosen, gradients of beliefs held still."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import torch

import doxa
from doxa.results import to_plain_json
from doxa_replicate import TABLE, ReplicationOptions, perform
from doxa_replicate.show import ResultTable
from doxa_replicate.weight_uncertainty.further import contest, imbalanced_digits
from doxa_replicate.weight_uncertainty.further.contest import Arena, Entrant, differences, enter, test_scores
from doxa_replicate.weight_uncertainty.further.gradients import NOISES, gradient_numbers
from doxa_replicate.weight_uncertainty.further.rows import few_digits

test_scores.__test__ = False  # scores of test rows: no test
QUICK = ReplicationOptions()


def small_arena(scarce_share: float = 1.0) -> Arena:
    seeds = [0, 1]
    return Arena("further-test", few_digits(QUICK, seeds, 20, 20, scarce_share), seeds, units=16, epochs=8)


def test_each_seed_has_rows_of_its_own_that_nothing_is_chosen_by() -> None:
    digits = few_digits(QUICK, [0, 1, 12], 30, 10)
    x, y = digits.pool
    for split in digits.splits:
        assert torch.bincount(y[[*split.learn]], minlength=10).tolist() == [30] * 10
        assert torch.bincount(split.choose[1], minlength=10).tolist() == [10] * 10
        learned = {image.numpy().tobytes() for image in x[[*split.learn]]}
        assert not learned & {image.numpy().tobytes() for image in split.choose[0]}
        assert split.scarce is None
    assert len({tuple(split.learn) for split in digits.splits}) == 3


def test_one_class_is_scarce_another_for_each_seed() -> None:
    digits = few_digits(QUICK, [3, 4], 100, 50, 0.02)
    for split, scarce in zip(digits.splits, (3, 4), strict=True):
        expected = [2 if label == scarce else 100 for label in range(10)]
        assert torch.bincount(digits.pool[1][[*split.learn]], minlength=10).tolist() == expected
        assert int((split.choose[1] == scarce).sum()) == 1
        assert split.scarce == scarce
    assert few_digits(QUICK, [3], 100, 50).splits[0].learn != digits.splits[0].learn


def test_the_setting_with_the_least_validation_nll_is_judged() -> None:
    """One setting learns, the other is held at zero by its prior: who chose by lot would take it now and then."""
    arena = small_arena()
    settings = {"held": doxa.learners.point(doxa.priors.gaussian(1e-3)), "free": doxa.learners.point()}
    entry = enter(QUICK, arena, Entrant("a", settings, lr=1e-2), test_scores)
    assert entry["chosen"] == "free"
    assert all(free < held for free, held in zip(*(entry["validation"][k] for k in ("free", "held")), strict=True))
    alone = enter(QUICK, arena, Entrant("b", {"held": settings["held"]}, lr=1e-2), test_scores)
    assert all(a < b for a, b in zip(entry["scores"]["nll"], alone["scores"]["nll"], strict=True))
    assert entry["epochs"] == [arena.epochs] * 2
    gaps = differences({"a": entry, "b": alone}, "b")["a"]
    assert gaps["nll"]["each"] == pytest.approx(
        [a - b for a, b in zip(entry["scores"]["nll"], alone["scores"]["nll"], strict=True)]
    )


def test_a_part_is_found_again_by_another_process() -> None:
    """What it is asked with holds no address of this one's memory."""
    asked = contest.part_settings(QUICK, small_arena(), Entrant("e", contest.kl_settings(contest.belief_learner)))
    text = json.dumps(to_plain_json(asked))
    assert "0x" not in text
    assert '"temperature": 0.3' in text
    assert '"local"' in text


def test_who_stops_early_keeps_the_best_epoch() -> None:
    arena = replace(small_arena(), epochs=80)
    settings = {"one": doxa.learners.point()}
    patient = Entrant("c", settings, lr=0.03, patience=3)
    entry = enter(QUICK, arena, patient, test_scores)
    to_the_end = enter(QUICK, arena, Entrant("d", settings, lr=0.03), test_scores)
    assert min(entry["epochs"]) < arena.epochs
    assert sum(entry["validation"]["one"]) < sum(to_the_end["validation"]["one"])


def test_gradients_scatter_less_with_local_noise() -> None:
    """By means, of a belief whose noise is large: the document's reason for it."""
    digits = small_arena().digits
    learn = [*digits.splits[0].learn]
    rows = digits.pool[0][learn], digits.pool[1][learn]
    belief = doxa.fit(
        doxa.nets.mlp(784, (16, 16), 10),
        rows,
        learner=doxa.learners.variational(doxa.priors.gaussian(1.0), posterior=doxa.posteriors.mean_field(scale=0.1)),
        likelihood=doxa.likelihoods.categorical(),
        epochs=1,
        progress=False,
    )
    numbers = gradient_numbers(belief, rows, copies=16, rounds=3)
    assert set(numbers) == {f"{what}, {noise}" for what in ("means", "rhos", "time") for noise in NOISES}
    assert numbers["means, local"] < 0.8 * numbers["means, shared"]
    assert numbers["time, shared"] == 1
    assert all(value > 0 for value in numbers.values())


def test_a_quick_run_has_every_entrant_in_every_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imbalanced_digits, "KL_WEIGHTS", (0.1,))
    artefact = TABLE["weight-uncertainty/imbalanced-digits"]
    result: Mapping[str, Any] = perform(artefact, QUICK)
    tables = [element for element in artefact.show(result) if isinstance(element, ResultTable)]
    names = set(result["numbers"]["entries"])
    assert names == {"plain net", "dropout", "belief"}
    for table in tables:
        told = {row[0] for row in table.rows}
        assert told == (names - {"plain net"} if table.title.startswith("Less those") else names)
    for by_score in result["numbers"]["differences"].values():
        for part in by_score.values():
            assert part["verdict"] in ("PASS", "FAIL", "OPEN")
            assert len(part["each"]) == 2
