"""A learner by words: its signature says which knobs it has, and a learner of one's own needs nothing else."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from doxa import kl_weights, learners, likelihoods, noise, posteriors, priors, rates
from doxa.collectors import last
from doxa.contracts import Prior, Problem, Schedule
from doxa.engine.contracts import Gradient
from doxa.errors import BadInput
from doxa.runs import Plan, learn, load_training_data, open_run
from doxa.runs.learner_call import OF_SEARCH, PARAMETERS, parse_learner

NET = nn.Linear(3, 1)
VARIATIONAL, DROPOUT = {"noise", "posterior", "samples", "antithetic"}, {"dropout", "input_dropout"}
CHAIN = {"temperature", "burn_in", "thinning", "on_disk"}


@dataclass(frozen=True)
class Shrunk:
    """MAP under a Gaussian prior of scale 1/strength, around the centre: a learner made of another one's parts."""

    strength: float
    centre: float = 0.0
    rate: float = 0.1  # not dropout's, which is 0.5 unless told
    kl_weight: Schedule = field(default_factory=kl_weights.uniform)

    nets = 1

    @property
    def prior(self) -> Prior:
        return priors.gaussian(1 / self.strength, self.centre)

    @property
    def kind(self) -> tuple[Any, ...]:
        return (Shrunk,)

    def start(self, problem: Problem, fleet: Sequence[Shrunk]) -> Gradient:
        points = [learners.point(shrunk.prior, shrunk.kl_weight) for shrunk in fleet]
        gradient: Gradient = points[0].start(problem, points)
        return gradient

    def optimiser(self, fleet: Sequence[Shrunk]) -> None:
        return None

    def collector(self, fleet: Sequence[Shrunk]) -> Any:
        return last()


@pytest.fixture
def shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(learners.TABLE, "shrunk", Shrunk)


@pytest.mark.parametrize(
    ("learner", "used"),
    [
        ("variational", {"prior", "kl_weight", *VARIATIONAL}),
        ("point", {"prior", "kl_weight"}),
        ("dropout", {"prior", "kl_weight", *DROPOUT}),
        ("langevin", {"prior", "kl_weight", *CHAIN}),
        ("swa", {"prior", "kl_weight", "average_from", "average_every"}),
        ("ema", {"prior", "kl_weight", "average_decay"}),
        ("search", {*OF_SEARCH}),
        ("auto", {"prior", "kl_weight", "noise"}),
    ],
)
def test_the_knobs_of_a_learner_are_its_parameters(learner: str, used: set[str]) -> None:
    unused = {*parse_learner(learner).unused}
    assert {*PARAMETERS, *OF_SEARCH} - unused == used
    assert ("patience" in unused) == (learner in ("auto", "langevin"))


def test_knobs_make_the_learner_they_name() -> None:
    prior = {"prior": "gaussian:0.5", "kl_weight": "0.3"}
    point = learners.point(priors.gaussian(0.5), kl_weights.tempered(0.3))
    plans = {
        Plan(learner="point"): learners.point(),
        Plan(learner="point", **prior): point,
        Plan(learner="dropout", dropout=0.2, input_dropout=0.1): learners.dropout(0.2, 0.1),
        Plan(learner="swa", average_from=0.5, average_every=3, **prior): learners.swa(point, 0.5, 3),
        Plan(learner="ema", average_decay=0.9): learners.ema(learners.point(), 0.9),
        Plan(learner="langevin", prior="laplace", temperature=0.5, burn_in=0.1, thinning=2, on_disk=True): (
            learners.langevin(priors.laplace(), 0.5, 0.1, 2, True)
        ),
        Plan(learner="variational", prior="laplace", samples=2, antithetic=True): learners.variational(
            priors.laplace(), noise.local, 2, True, posteriors.mean_field(), kl_weights.tempered(0.1)
        ),
        Plan(learner="point", members=3, same_start=True): learners.ensemble(learners.point(), 3, False),
    }
    for plan, learner in plans.items():
        assert plan.build_learner(NET) == learner


@pytest.mark.parametrize(
    ("words", "knobs"),
    [
        ("dropout:0.2", {"dropout": 0.2}),
        ("dropout(rate=0.2,input_rate=0.1)", {"dropout": 0.2, "input_dropout": 0.1}),
        ("ema:decay=0.9", {"average_decay": 0.9}),
        ("point:laplace(0.5),0.3", {"prior": "laplace:0.5", "kl_weight": "0.3"}),
        ("variational:noise=shared,posterior=mean_field(layer)", {"noise": "shared", "posterior": "mean_field:layer"}),
    ],
)
def test_what_a_knob_sets_can_be_said_with_the_learner(words: str, knobs: dict[str, Any]) -> None:
    name = words.partition(":")[0].partition("(")[0]
    by_words = Plan.from_settings({"learner": words, "random": "weight"}).build_learner(NET)
    by_knobs = Plan(learner=name, random="weight", **knobs).build_learner(NET)
    assert repr(by_words) == repr(by_knobs)
    knob, value = next(iter(knobs.items()))
    with pytest.raises(BadInput, match=rf"{knob} sets {PARAMETERS[knob]} of the learner {name}, which .* sets too"):
        Plan(learner=words, **{knob: value}).require_used()


def test_an_average_is_of_points_unless_words_name_another_learner() -> None:
    plan = Plan(learner="swa:learner=dropout(0.2),every=3")
    assert plan.build_learner(NET) == learners.swa(learners.dropout(0.2), every=3)
    with pytest.raises(BadInput, match="prior is of no use to the learner swa; leave it out"):
        Plan(learner="swa:learner=dropout(0.2)", prior="laplace").require_used()
    with pytest.raises(BadInput, match="keeps its way in a way of its own"):
        Plan(learner="swa:learner=ema").build_learner(NET)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("shrunk", r"'shrunk' does not fit the learner shrunk \(missing .*'strength'\); it takes: strength, centre"),
        ("shrunk:strnegth=2", "'strnegth'.*; it takes: strength, centre"),
        ("shrunk:1,2,3,4,5", "too many positional arguments"),
        ("dropout:two", "'dropout:two' does not fit the learner dropout: "),
        ("dropout:2", "rate must lie between 0 and 1"),
        ("langevin:thinning=0", "thinning must be at least 1"),
        ("point:lapalce", "there is no prior 'lapalce'; did you mean 'laplace'"),
        ("point:kl_weight=0.1", "kl_weight weighs a prior, and the learner point has none"),
        ("shrunken:2", "there is no learner 'shrunken:2'; did you mean 'shrunk'"),
        ("search:100", "there is no learner 'search:100'; did you mean 'search'"),
        ("ensemble:point", "there is no learner 'ensemble:point'; there is: auto, dropout"),
    ],
)
def test_words_that_make_no_learner_are_refused(words: str, message: str, shrunk: None) -> None:
    with pytest.raises(BadInput, match=message):
        Plan(learner=words).build_learner(NET)


def test_a_learner_of_ones_own_has_the_knobs_that_mean_the_same(shrunk: None) -> None:
    plan = Plan.from_settings({"learner": "shrunk:strength=2", "kl_weight": "0.3"})
    assert plan.build_learner(NET) == Shrunk(2, kl_weight=kl_weights.tempered(0.3))
    assert Plan(learner="shrunk(2,rate=0.3)", members=3).build_learner(NET) == learners.ensemble(Shrunk(2, rate=0.3), 3)
    assert plan.build_rate() == rates.cosine(1e-3)
    with pytest.raises(BadInput, match="samples is of no use to the learner shrunk; leave it out"):
        Plan(learner="shrunk:2", samples=3).require_used()
    with pytest.raises(BadInput, match=r"dropout is of no use to the learner shrunk; write shrunk:rate=0\.3"):
        Plan(learner="shrunk:2", dropout=0.3).require_used()
    with pytest.raises(BadInput, match="prior is of no use to the learner shrunk"):
        Plan(learner="shrunk:2", prior="laplace").require_used()


def test_a_learner_of_ones_own_is_trained_by_words(shrunk: None, tmp_path: Path) -> None:
    x = np.linspace(-2, 2, 60)
    rows = load_training_data({"x": x, "y": 3 * x + np.random.default_rng(0).normal(size=60)}, "y")

    def weights_of(strength: float) -> torch.Tensor:
        plan = Plan.from_settings(
            {"net": "mlp:4", "learner": f"shrunk:{strength}", "lr": 0.05, "epochs": 60, "draws": 2}
        )
        learn(rows, plan, tmp_path / str(strength), progress=False)
        run = open_run(tmp_path / str(strength))
        assert run.plan == plan
        return run.belief.posterior.mean[: run.belief.posterior.random]

    assert weights_of(30.0).norm() < 0.1 * weights_of(0.1).norm()


def test_a_plugin_brings_its_learner_and_its_likelihood(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "doxa_shrunk.py").write_text(
        "from doxa import learners, likelihoods\n"
        "class Noisy(likelihoods.gaussian_per_input):\n"
        "    pass\n"
        "learners.register('of_plugin', learners.point)\n"
        "likelihoods.register('noisy', Noisy)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    point = metadata.EntryPoint("shrunk", "doxa_shrunk", "doxa.plugins")
    monkeypatch.setattr(metadata, "entry_points", lambda *, group: [point] if group == point.group else [])
    for room in (learners, likelihoods):
        monkeypatch.setattr(room, "TABLE", dict(room.TABLE))
    monkeypatch.delitem(sys.modules, "doxa_shrunk", raising=False)
    plan = Plan(learner="of_plugin", likelihood="noisy")
    assert plan.outputs_per_target == 2
    assert plan.build_learner(NET) == learners.point()
    rows = load_training_data({"x": np.arange(50.0), "y": np.arange(50.0) / 7}, "y")
    assert type(plan.build_likelihood(rows)).__name__ == "Noisy"
    assert isinstance(sys.modules.pop("doxa_shrunk"), ModuleType)
