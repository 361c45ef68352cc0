"""Where fleets end: nets that cannot run as one program, members that fall, parts, interruptions, odd words."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import doxa
from doxa import collectors, learners, likelihoods, noise, priors
from doxa.errors import BadInput, BrokenFile, Diverged, Interrupted
from laws.test_fleets import KEYS, Interrupting, close, net, rows
from zoo import CASES

LOCAL = learners.variational(priors.gaussian(1.0), noise.local)


class Odd(nn.Module):
    """Two layers with something between them that many nets at once cannot do, or do wrongly."""

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 2)
            self.more = self.extra()

    def extra(self) -> nn.Module:
        return nn.Identity()

    def between(self, h: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.between(torch.tanh(self.first(x))))


class Branching(Odd):
    def between(self, h: torch.Tensor) -> torch.Tensor:
        return h if h.mean() > 0 else -h


class Asking(Odd):
    def between(self, h: torch.Tensor) -> torch.Tensor:
        return h / float(1 + h.detach().abs().max())


class Filling(Odd):
    def between(self, h: torch.Tensor) -> torch.Tensor:
        room = torch.zeros(h.shape)
        room[:] = h
        return room


class Choosing(Odd):
    def between(self, h: torch.Tensor) -> torch.Tensor:
        out = h.clone()
        out[h > 0] = h[h > 0] / 2
        return out


class Counting(Odd):
    def extra(self) -> nn.Module:
        return nn.BatchNorm1d(8, momentum=None)

    def between(self, h: torch.Tensor) -> torch.Tensor:
        return self.more(h)


class Cell(Odd):
    def extra(self) -> nn.Module:
        return nn.LSTMCell(8, 8)

    def between(self, h: torch.Tensor) -> torch.Tensor:
        return self.more(h)[0]


class Frozen(Odd):
    def extra(self) -> nn.Module:
        return nn.LSTM(8, 8).requires_grad_(False)

    def between(self, h: torch.Tensor) -> torch.Tensor:
        return self.more(h[:, None])[0][:, 0]


class Spectral(Odd):
    def extra(self) -> nn.Module:
        return nn.utils.parametrizations.spectral_norm(nn.Linear(8, 8))

    def between(self, h: torch.Tensor) -> torch.Tensor:
        return self.more(h)


class Padded(nn.Module):
    """Words of which the first means nothing: its row is not learned."""

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.words, self.last = nn.Embedding(7, 4, padding_idx=0), nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.words(x).mean(1))


@pytest.mark.parametrize("odd", [Branching, Asking, Filling, Choosing, Counting, Cell, Frozen, Spectral])
def test_a_net_that_cannot_run_as_one_program_takes_turns(odd: type[nn.Module]) -> None:
    learner = learners.point(priors.gaussian(1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        beliefs = doxa.fleet(odd(), rows(), learners=[learner] * 2, seeds=[1, 2], **KEYS)
        for belief, seed in zip(beliefs, (1, 2), strict=True):
            close(belief, doxa.fit(odd(), rows(), learner=learner, seed=seed, **KEYS))


def test_the_row_of_the_padding_stays_as_it_was_in_every_member() -> None:
    tokens = torch.randint(0, 7, (40, 5), generator=torch.Generator().manual_seed(0))
    labels = (tokens.sum(1) > 15).long()
    beliefs = doxa.fleet(Padded(), (tokens, labels), learners=learners.point(), seeds=[1, 2, 3], **{**KEYS, "lr": 0.1})
    for belief in beliefs:
        assert belief.layout.views(belief.posterior.mean)["words.weight"][0].abs().max() == 0


@pytest.mark.parametrize("learner", [LOCAL, learners.point(), learners.dropout(0.2), learners.ensemble(LOCAL, 2)])
def test_batch_norm_in_a_lower_precision_sails_too(learner: Any) -> None:
    keys = {**KEYS, "autocast": torch.bfloat16}
    try:
        doxa.fit(net(), rows(), learner=LOCAL, **keys)
    except BadInput as error:
        pytest.skip(f"this processor has no bfloat16: {error}")
    beliefs = doxa.fleet(net(), rows(), learners=learner, seeds=[1, 2], **keys)
    assert all(bool(belief.posterior.mean.isfinite().all()) for belief in beliefs)


# Members that fall.


def test_a_member_that_diverges_rests_while_the_others_are_trained_to_the_end(tmp_path: Path) -> None:
    """For a grid of rates, the one that is too large must not take the others with it."""
    rates = [1e-3, 1e38, 1e-2]
    keys = {**KEYS, "learners": LOCAL, "seeds": [1, 2, 3], "optimiser": doxa.optimisers.sgd()}
    with pytest.raises(Diverged, match=r"1 of 3 members diverged \(member 1: the loss became") as caught:
        doxa.fleet(net(), rows(), lr=rates, checkpoint=tmp_path, **keys)
    first, fallen, last = caught.value.beliefs
    assert fallen is None
    assert set(caught.value.troubles) == {1}
    for belief, rate, seed in ((first, 1e-3, 1), (last, 1e-2, 3)):
        alone = doxa.fit(net(), rows(), learner=LOCAL, lr=rate, seed=seed, optimiser=doxa.optimisers.sgd(), **KEYS)
        close(belief, alone)
    assert sorted(p.name for p in tmp_path.glob("belief*")) == ["belief-0.doxa", "belief-2.doxa"]
    with pytest.raises(Diverged) as resumed:
        doxa.fleet(net(), rows(), lr=rates, checkpoint=tmp_path, resume=True, **keys)
    assert torch.equal(resumed.value.beliefs[2].posterior.mean, last.posterior.mean), "it was finished"


def test_a_member_that_diverges_in_a_part_of_its_own_does_not_end_the_other_parts() -> None:
    keys = {**KEYS, "learners": LOCAL, "seeds": [1, 2, 3], "optimiser": doxa.optimisers.sgd()}
    with pytest.raises(Diverged, match="member 0") as caught:
        doxa.fleet(net(), rows(), lr=[1e38, 1e-2, 1e-2], at_once=1, **keys)
    assert [belief is None for belief in caught.value.beliefs] == [True, False, False]


# Parts.


def division(folder: Path) -> list[list[int]]:
    parts: list[list[int]] = json.loads((folder / "fleet.json").read_text())["parts"]
    return parts


def cut(folder: Path, forward_pass: int, at_once: int, **more: Any) -> Interrupted:
    with pytest.raises(Interrupted) as caught:
        doxa.fleet(
            Interrupting(forward_pass),
            rows(),
            learners=LOCAL,
            seeds=[1, 2, 3, 4],
            at_once=at_once,
            checkpoint=folder,
            **KEYS,
            **more,
        )
    return caught.value


@pytest.mark.parametrize(("before", "after"), [(2, 4), (4, 2), (2, 3), (1, 4)])
def test_a_fleet_is_resumed_in_the_parts_it_was_begun_in(before: int, after: int, tmp_path: Path) -> None:
    """However much memory there is the second time."""
    keys = {"learners": LOCAL, "seeds": [1, 2, 3, 4], **KEYS}
    whole = doxa.fleet(Interrupting(), rows(), checkpoint=tmp_path / "whole", at_once=before, **keys)
    cut(tmp_path / "cut", 16, before)
    resumed = doxa.fleet(Interrupting(), rows(), checkpoint=tmp_path / "cut", at_once=after, resume=True, **keys)
    for whole_belief, resumed_belief in zip(whole, resumed, strict=True):
        assert torch.equal(whole_belief.posterior.mean, resumed_belief.posterior.mean)
    if before < 4:
        assert division(tmp_path / "cut") == division(tmp_path / "whole")
    with pytest.raises(BadInput, match="already holds a run"):
        doxa.fleet(net(), rows(), checkpoint=tmp_path / "cut", at_once=after, **keys)


def test_another_fleet_is_not_resumed(tmp_path: Path) -> None:
    cut(tmp_path, 16, 2)
    with pytest.raises(BadInput, match="a fleet of 4, not of 3"):
        doxa.fleet(net(), rows(), learners=LOCAL, seeds=[1, 2, 3], checkpoint=tmp_path, resume=True, at_once=2, **KEYS)
    (tmp_path / "fleet.json").write_text("{}")
    with pytest.raises(BrokenFile, match="not the division of a fleet"):
        doxa.fleet(net(), rows(), learners=LOCAL, seeds=[1, 2, 3, 4], checkpoint=tmp_path, resume=True, **KEYS)


def test_a_fleet_that_is_stopped_shows_all_that_was_learned() -> None:
    """The parts that were finished too, and nobody of those to come."""
    learned = cut(None, 32, 2).belief  # type: ignore[arg-type]
    assert [belief is None for belief in learned] == [False] * 4
    whole = doxa.fleet(net(), rows(), learners=LOCAL, seeds=[1, 2, 3, 4], **KEYS)
    close(learned[0], whole[0])
    assert len(learned[2].record.history) < len(whole[2].record.history)


def test_ctrl_c_in_the_last_step_of_a_part_ends_the_fleet() -> None:
    steps = KEYS["epochs"] * 4
    probes = 0

    class Noting(Interrupting):
        passes = 0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            Noting.passes += self.training
            return super().forward(x)

    doxa.fleet(Noting(), rows(), learners=LOCAL, seeds=[1, 2], **KEYS)
    probes = Noting.passes - steps
    error = cut(None, probes + steps, 2)  # type: ignore[arg-type]
    assert "after part 1 of 2" in str(error)
    assert [belief is None for belief in error.belief] == [False, False, True, True]


def test_what_a_resting_member_shows_when_stopped_is_its_best() -> None:
    x, y = rows()
    held = [(x[:6], 1 - y[:6]), (x, y)]  # the first gets worse by learning, and stops at once
    keys = {**KEYS, "epochs": 12, "patience": 1, "lr": 0.05, "learners": LOCAL, "seeds": [1, 2], "validation": held}
    whole = doxa.fleet(net(), rows(), **keys)
    with pytest.raises(Interrupted) as caught:
        doxa.fleet(Interrupting(24), rows(), **keys)
    shown = caught.value.belief[0]
    assert len(shown.record.history) == len(whole[0].record.history) < 4
    close(shown, whole[0])


# Words.


def test_nets_that_differ_in_more_than_their_weights_are_refused() -> None:
    def make_net(*layers: nn.Module) -> nn.Module:
        return nn.Sequential(nn.Linear(6, 5), *layers, nn.Linear(5, 2))

    pairs = [
        (make_net(nn.Tanh()), make_net(nn.ReLU())),
        (make_net(nn.BatchNorm1d(5)), make_net(nn.BatchNorm1d(5, momentum=0.3))),
        (make_net(nn.BatchNorm1d(5)), make_net(nn.BatchNorm1d(5, track_running_stats=False))),
        (make_net(nn.Tanh()), make_net(nn.Tanh()).double()),
    ]
    for nets in pairs:
        with pytest.raises(BadInput, match="one architecture"):
            doxa.fleet(nets, rows(), learners=LOCAL, **KEYS)


def test_members_that_are_one_are_told_of() -> None:
    with pytest.warns(UserWarning, match="members 0 and 1 are the same in everything"):
        doxa.fleet(net(), rows(), learners=[LOCAL] * 2, **{**KEYS, "epochs": 1})


@pytest.mark.parametrize("seeds", [np.array([1, 2]), torch.tensor([1, 2]), (1, 2), range(1, 3), iter([1, 2])])
def test_seeds_and_rates_may_come_as_any_list(seeds: Any) -> None:
    keys = {**KEYS, "epochs": 1}
    beliefs = doxa.fleet(net(), rows(), learners=LOCAL, seeds=seeds, lr=np.array([0.1, 0.2], np.float32), **keys)
    assert [belief.record.settings["seed"] for belief in beliefs] == [1, 2]
    assert [belief.record.history[0]["lr"] for belief in beliefs] == pytest.approx([0.1, 0.2])
    assert doxa.fit(net(), rows(), learner=LOCAL, lr=np.float32(0.25), **keys).record.history[0]["lr"] == 0.25


@pytest.mark.parametrize(
    ("message", "keys"),
    [
        ("learner must be one of", {"learners": [LOCAL, None]}),
        ("learner must be one of", {"learners": "local"}),
        ("at_once must be at least 1", {"at_once": 0}),
        ("at_once must be a whole number", {"at_once": 1.5}),
        ("cannot be used here", {"device": "gpu"}),
        ("some members have validation", {"validation": [None, rows()]}),
        ("2 seeds", {"learners": [LOCAL] * 3, "seeds": [1, 2]}),
    ],
)
def test_what_cannot_be_asked_of_a_fleet_is_refused_in_words(message: str, keys: dict[str, Any]) -> None:
    fleet_keys = {"learners": LOCAL, "seeds": [1, 2], **KEYS, **keys}
    with pytest.raises(BadInput, match=message):
        doxa.fleet(net(), rows(), **fleet_keys)


def test_a_net_that_is_none_is_refused() -> None:
    with pytest.raises(BadInput, match="net must be a torch module"):
        doxa.fleet(None, rows(), learners=LOCAL, **KEYS)  # type: ignore[arg-type]


def test_a_pair_may_be_a_list_of_two() -> None:
    x, y = rows()
    keys = {**KEYS, "learners": LOCAL, "seeds": [1, 2], "epochs": 2}
    beliefs = doxa.fleet(net(), (x, y), validation=[x, y], **keys)
    assert "validation_nll" in beliefs[1].record.history[-1]


def test_other_validation_data_is_not_resumed_with(tmp_path: Path) -> None:
    x, y = rows()
    keys = {**KEYS, "learner": LOCAL, "checkpoint": tmp_path, "patience": 9}
    doxa.fit(net(), (x, y), validation=(x, y), **keys)
    with pytest.raises(BadInput, match="validation"):
        doxa.fit(net(), (x, y), validation=(x, 1 - y), resume=True, **keys)


# Asked together.


@pytest.mark.parametrize("likelihood", [likelihoods.categorical(), likelihoods.gaussian_learned()])
def test_beliefs_asked_together_say_what_each_says_alone(likelihood: Any) -> None:
    x, y = rows()
    target = y if likelihood.discrete else torch.stack([x[:, 0], x[:, 1]], 1)
    keys = {**KEYS, "likelihood": likelihood, "epochs": 1}
    beliefs = doxa.fleet(net(), (x, target), learners=LOCAL, seeds=[1, 2, 3], **keys)
    beliefs += [doxa.fit(net(), (x, target), learner=learners.ensemble(learners.point(), 2), seed=4, **keys)]
    # The same net with fewer weights as beliefs: laid out in another order.
    last = {"random": lambda name, _: name.startswith("3.")}
    beliefs += [doxa.fit(beliefs[0].net, (x, target), learner=LOCAL, seed=6, **keys, **last)]
    for belief, draws in zip(beliefs, doxa.predict(beliefs, x, samples=9, seed=5), strict=True):
        alone = belief.predict(x, samples=9, seed=5)
        torch.testing.assert_close(draws.outputs, alone.outputs, rtol=1e-4, atol=1e-5)
        for name, value in alone.parameters.items():
            assert torch.equal(draws.parameters[name], value)


def test_rows_of_members_may_be_a_matrix() -> None:
    """A row of indices for each member, as a tensor or an array, is what a list of them is."""
    x, y = rows(40)
    index = torch.stack([torch.arange(20), torch.arange(20, 40)])
    keys = {**KEYS, "learners": learners.point(), "epochs": 2}
    listed = doxa.fleet(net(), (x, y), rows=list(index), **keys)
    for matrix in (index, index.numpy()):
        beliefs = doxa.fleet(net(), (x, y), rows=matrix, **keys)
        assert len(beliefs) == 2
        for belief, expected in zip(beliefs, listed, strict=True):
            assert torch.equal(belief.posterior.mean, expected.posterior.mean)


def test_a_learner_derived_from_another_is_a_program_of_its_own() -> None:
    """What it keeps of its way is not what the learner keeps that it is derived from."""

    class SecondHalf(learners.point):
        def collector(self, fleet):
            return collectors.average(start_at=0.5)

    pair = [learners.point(), SecondHalf()]
    beliefs = doxa.fleet(net(), rows(), learners=pair, **KEYS)
    for belief, learner in zip(beliefs, pair, strict=True):
        alone = doxa.fit(net(), rows(), learner=learner, **KEYS)
        close(belief, alone)
    assert not torch.equal(beliefs[0].posterior.mean, beliefs[1].posterior.mean)


class ThreeBells:
    """A plain prior with a few numbers of its own, which are not one for each weight."""

    def __init__(self, component_scales) -> None:
        self.component_scales = component_scales

    def _log_parts(self, w):
        scales = torch.as_tensor(self.component_scales, dtype=w.dtype)
        return -0.5 * (w[..., None] / scales).square() - scales.log()

    def log_prob(self, w):
        return self._log_parts(w).logsumexp(-1) - 2.01753

    def grad_log_prob(self, w):
        scales = torch.as_tensor(self.component_scales, dtype=w.dtype)
        return -(self._log_parts(w).softmax(-1) / scales.square()).sum(-1) * w


@pytest.mark.parametrize("kind", [noise.shared, noise.local, noise.flipout], ids=lambda kind: kind.name)
def test_a_tensor_of_a_prior_is_cut_only_where_it_has_a_number_for_each_weight(kind) -> None:
    case = CASES["tied_embedding"]  # weights with the noise and weights that fall back, in turn
    beliefs = []
    for scales in (torch.tensor([0.1, 0.5, 2.0]), (0.1, 0.5, 2.0)):
        learner = learners.variational(ThreeBells(scales), kind)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            beliefs.append(doxa.fit(case.net(), case.data(12), learner=learner, **{**KEYS, "batch_size": 6}))
    assert torch.equal(beliefs[0].posterior.mean, beliefs[1].posterior.mean)
    assert torch.equal(beliefs[0].posterior.rho, beliefs[1].posterior.rho)


class MadeAnew:
    """A plain learner whose prior is another object each time it is asked for."""

    def __init__(self, strength: float) -> None:
        self.strength = strength

    def __getattr__(self, name: str) -> Any:
        return getattr(learners.variational(priors.gaussian(self.strength)), name)


def test_priors_that_are_made_when_they_are_asked_for_are_each_member_s_own() -> None:
    fleet_learners = [MadeAnew(strength) for strength in (0.1, 1.0, 10.0)]
    beliefs = doxa.fleet(net(), rows(), learners=fleet_learners, seeds=[1, 1, 1], **KEYS)
    for belief, learner in zip(beliefs, fleet_learners, strict=True):
        alone = doxa.fit(net(), rows(), learner=learner, seed=1, **KEYS)
        assert belief.record.history[-1]["kl"] == pytest.approx(alone.record.history[-1]["kl"], rel=1e-3)
