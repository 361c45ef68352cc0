"""What is chosen without a knob: folds, noise, calibration, and the committee itself."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import doxa
from doxa import kl_weights
from doxa.auto import KL_WEIGHTS, best_noise, by_fan_in, choose, folds
from doxa.auto.kl_candidates import build_schedule, require_candidates
from doxa.errors import BadInput
from doxa.posteriors.mixture import Mixture
from doxa.random.keys import normal
from doxa.weights.layout import lay_out

LIKE = torch.zeros(1)


def test_folds_are_even_and_every_label_is_spread_over_them() -> None:
    labels = torch.arange(103) % 3
    fold = folds(labels, 5, seed=1)
    assert sorted(fold.bincount().tolist()) == [20, 20, 21, 21, 21]
    for label in range(3):
        counts = fold[labels == label].bincount(minlength=5)
        assert int(counts.max() - counts.min()) <= 1
    assert torch.equal(fold, folds(labels, 5, seed=1))
    assert not torch.equal(fold, folds(labels, 5, seed=2))


def test_the_best_noise_is_the_one_that_made_the_data() -> None:
    """Draws that agree: the maximum-likelihood deviation, in closed form; draws that differ: found by hand."""
    y = 3 + 0.2 * normal(500, (1,), LIKE)[:, None]
    outputs = torch.full((4, 500, 1), 3.0)
    noise, nll = best_noise(outputs, y)
    assert noise == pytest.approx(float((y - 3).square().mean().sqrt()), rel=1e-3)
    assert nll == pytest.approx(math.log(noise) + 0.5 * math.log(2 * math.pi) + 0.5, abs=1e-5)
    spread = outputs + 0.5 * normal(2000, (2,), LIKE).reshape(4, 500, 1)
    noise, nll = best_noise(spread, y)
    grid = torch.linspace(0.05, 1, 400)
    scores = []
    for g in grid:
        log_p = torch.distributions.Normal(spread.double(), float(g)).log_prob(y.double()).squeeze(-1)
        scores.append(-(log_p.logsumexp(0) - math.log(4)).mean())
    best = torch.stack(scores).argmin()
    assert noise == pytest.approx(float(grid[best]), abs=0.01)
    assert nll <= float(scores[best]) + 1e-6


def test_the_noise_keeps_its_units() -> None:
    y, outputs = normal(200, (1,), LIKE)[:, None], 0.1 * normal(600, (2,), LIKE).reshape(3, 200, 1)
    noise, nll = best_noise(outputs, y)
    scaled_noise, more = best_noise(1e4 * outputs, 1e4 * y)
    assert scaled_noise == pytest.approx(1e4 * noise, rel=1e-3)
    assert more == pytest.approx(nll + math.log(1e4), abs=1e-4)


def test_the_prior_keeps_outputs_of_unit_size_at_every_width() -> None:
    for width in (10, 1000):
        net = doxa.nets.mlp(20, (width,), 1)
        layout, _ = lay_out(net)
        prior = by_fan_in(net)
        views = layout.views(torch.as_tensor(prior.scale))
        assert float(views["1.weight"][0, 0]) == pytest.approx(20**-0.5)
        assert float(views["3.weight"][0, 0]) == pytest.approx(width**-0.5)
        assert float(views["1.bias"][0]) == 1


@pytest.fixture(scope="module")
def line() -> tuple[torch.Tensor, torch.Tensor]:
    x = normal(120, (5,), LIKE)[:, None]
    return x, 100 + 50 * (2 * x + 0.3 * normal(120, (6,), LIKE)[:, None])


def test_a_committee_learns_a_line_in_the_target_s_units(line: tuple[torch.Tensor, torch.Tensor]) -> None:
    x, y = line
    net = lambda: doxa.nets.rescaled(doxa.nets.mlp(1, (20,), 1), float(y.mean()), float(y.std()))  # noqa: E731
    messages: list[str] = []
    choice = choose(net, x, y, classes=False, kl_weights=(1.0, 0.1), epochs=60, members=3, say=messages.append)
    assert isinstance(choice.belief.posterior, Mixture)
    assert len(choice.belief.posterior.members) == 3
    assert choice.kl_weight in (1.0, 0.1)
    assert choice.kl_weight == min(choice.trials, key=lambda t: t.nll).kl_weight
    assert choice.noise == pytest.approx(15, rel=0.35), "the noise is 50 · 0.3"
    far = torch.tensor([[0.0], [1.0]])
    mean = choice.belief.predict(far, 50).mean.flatten()
    assert mean.tolist() == pytest.approx([100, 200], abs=12)
    assert len(choice.held_out_rows) == len(choice.held_out_rows.unique()) == 72, (
        "three of five folds were set aside, each once"
    )
    assert choice.held_out_draws.outputs.shape[1] == 72
    assert len(messages) == 4


def test_members_have_not_seen_the_rows_they_are_judged_on() -> None:
    """Labels at random: whoever had seen a row would know its label; who has not is at chance."""
    x = normal(120 * 8, (7,), LIKE).reshape(120, 8)
    y = torch.arange(120) % 2
    y = y[torch.randperm(120, generator=torch.Generator().manual_seed(3))]
    net = lambda: doxa.nets.mlp(8, (60,), 2)  # noqa: E731
    choice = choose(net, x, y, classes=True, kl_weights=(1e-4,), epochs=40)
    correct = choice.held_out_draws.mean.argmax(1) == y[choice.held_out_rows]
    assert len(correct) == 120
    assert 0.3 < float(correct.double().mean()) < 0.7


def test_a_choice_repeats_and_goes_on_where_it_was_stopped(
    line: tuple[torch.Tensor, torch.Tensor], tmp_path: Path
) -> None:
    x, y = line
    y = (y - y.mean()) / y.std()
    net = lambda: doxa.nets.mlp(1, (8,), 1)  # noqa: E731
    again = {"classes": False, "kl_weights": (0.1, 0.01), "epochs": 4, "members": 2}
    once = choose(net, x, y, **again)

    class Stop(Exception):
        pass

    def stop(message: str) -> None:
        if "0.01:" in message:
            raise Stop

    with pytest.raises(Stop):
        choose(net, x, y, folder=tmp_path, say=stop, **again)
    after = choose(net, x, y, folder=tmp_path, **again)
    assert isinstance(once.belief.posterior, Mixture)
    assert isinstance(after.belief.posterior, Mixture)
    for a, b in zip(once.belief.posterior.members, after.belief.posterior.members, strict=True):
        assert torch.equal(a.mean, b.mean)
    assert once.noise == after.noise


def test_a_kl_weight_is_a_number_a_name_or_a_schedule(line: tuple[torch.Tensor, torch.Tensor]) -> None:
    x, y = line
    net = lambda: doxa.nets.mlp(1, (8,), 1)  # noqa: E731
    again = {"classes": False, "epochs": 3, "members": 2, "batch_size": 24}
    named = choose(net, x, y, kl_weights=("geometric",), **again)
    built = choose(net, x, y, kl_weights=(doxa.kl_weights.geometric(),), **again)
    assert named.kl_weight == "geometric"
    assert built.kl_weight == doxa.kl_weights.geometric()
    for belief in (named.belief, built.belief):
        assert isinstance(belief.posterior, Mixture)
    assert torch.equal(named.belief.posterior.members[1].mean, built.belief.posterior.members[1].mean)
    even = choose(net, x, y, kl_weights=(1.0,), **again)
    assert not torch.equal(named.belief.posterior.members[0].rho, even.belief.posterior.members[0].rho)


def test_numbers_and_words_of_numpy_are_those_of_python() -> None:
    given = (np.float32(0.5), np.float64(0.1), np.int64(1), np.str_("geometric"))
    candidates = require_candidates(given)
    assert candidates == (0.5, 0.1, 1.0, "geometric")
    assert [type(weight) for weight in candidates] == [float, float, float, str]
    json.dumps(candidates)


def test_halving_shares_are_among_the_kl_weights_tried() -> None:
    assert "geometric" in KL_WEIGHTS
    assert {kl_weights.tempered(w) if isinstance(w, float) else build_schedule(w) for w in KL_WEIGHTS} >= {
        kl_weights.geometric(),
        kl_weights.tempered(1.0),
    }


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (("geometrc",), "did you mean 'geometric'"),
        (("tempered",), "cannot do without arguments"),
        ((0.0,), "positive, finite number"),
        (([1.0],), "positive, finite number"),
        ("geometric", "at least one weight"),
        ((True,), "number, a name or a schedule; got True"),
        ((torch.tensor(0.1),), "number, a name or a schedule; got tensor"),
    ],
)
def test_what_is_no_kl_weight_is_refused(weights: Any, message: str) -> None:
    x = torch.zeros(5, 1)
    with pytest.raises(BadInput, match=message):
        choose(lambda: doxa.nets.mlp(1, (8,), 1), x, x, classes=False, kl_weights=weights)


@pytest.mark.parametrize("members", [1, 5, 8])
def test_there_are_as_many_members_as_were_asked_for(members: int, line: tuple[torch.Tensor, torch.Tensor]) -> None:
    x, y = line
    net = lambda: doxa.nets.mlp(1, (4,), 1)  # noqa: E731
    choice = choose(net, x[:20], y[:20], classes=False, kl_weights=(0.1,), epochs=1, members=members)
    assert isinstance(choice.belief.posterior, Mixture)
    assert len(choice.belief.posterior.members) == members
    held_out_count = 20 if members >= 5 else 4
    assert len(choice.held_out_rows) == len(choice.held_out_rows.unique()) == held_out_count, (
        "each member has a fold of its own"
    )


def test_bad_input_is_refused() -> None:
    net = lambda: doxa.nets.mlp(1, (8,), 1)  # noqa: E731
    x = torch.zeros(1, 1)
    with pytest.raises(BadInput, match="at least 2 rows"):
        choose(net, x, x, classes=False)
    with pytest.raises(BadInput, match="at least one weight"):
        choose(net, torch.zeros(5, 1), torch.zeros(5, 1), classes=False, kl_weights=())
    with pytest.raises(BadInput, match="at least one weight"):
        choose(net, torch.zeros(5, 1), torch.zeros(5, 1), classes=False, kl_weights=0.1)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="members must be at most 5, the number of rows"):
        choose(net, torch.zeros(5, 1), torch.zeros(5, 1), classes=False, members=6)
    for name in ("epochs", "members", "batch_size"):
        for value in (0, -1, 1.5):
            with pytest.raises(BadInput, match=f"{name} must be"):
                choose(net, torch.zeros(5, 1), torch.zeros(5, 1), classes=False, **{name: value})  # type: ignore[arg-type]
